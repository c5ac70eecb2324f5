//! Event log of one session, task or job, for clients that poll.
//!
//! A log with cursors. It is append-only, and each reader has a cursor in it. Two kinds of readers share it: the one
//! without a token is given one item per call, exactly as it was pushed; readers with a token are given all unread
//! items, with the deltas of a text joined.
//!
//! The log is bounded. Within its bound everything is kept for later readers. Beyond it, texts that have ended lose
//! their deltas, because their end repeats them; if that is not enough, the oldest items are dropped, and a reader that
//! had not read them is given a notice in their place.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::item::{PollItem, TextPart};

/// Longest wait of a call, and the interval between two answers to a waiting reader with a token.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum size of one log.
const MOST_BYTES: usize = 2 << 20;
/// Size after the oldest items were dropped, so that they are not dropped one by one.
const LEFT_BYTES: usize = MOST_BYTES / 4 * 3;
/// Readers with tokens whose place is remembered. The one that was away for longest is forgotten first; if it comes back, it
/// is new.
const MOST_TOKENS: usize = 256;
/// Tokens are UUIDs.
const LONGEST_TOKEN: usize = 128;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Reader {
    /// The one without a token. Its place is kept from the beginning.
    Plain,
    Token(String),
}

/// Answer to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PollAnswer<T> {
    One(T),
    /// At least one.
    Many(Vec<T>),
    TimedOut,
    /// Another call of the same reader is waiting.
    Parallel,
    /// The log has ended. Returned once.
    Closed,
    NotFound,
}

pub(crate) struct PollLog<T> {
    state: Mutex<State<T>>,
    news: Notify,
    /// Time after the end in which new readers may come.
    grace: Duration,
}

struct State<T> {
    items: VecDeque<NumberedItem<T>>,
    /// The place of the next item.
    next: u64,
    /// Items before this place were dropped.
    floor: u64,
    bytes: usize,
    closed: Option<Instant>,
    readers: HashMap<Reader, ReaderCursor>,
    calls: u64,
}

struct NumberedItem<T> {
    place: u64,
    weight: usize,
    item: T,
}

#[derive(Debug, Clone, Default)]
struct ReaderCursor {
    next: u64,
    /// Whether a call is waiting.
    waiting: bool,
    /// Whether the reader was told that the log has ended.
    over: bool,
    /// When it was last given something.
    given: Option<Instant>,
    /// Its last call, counted.
    used: u64,
}

enum ReadResult<T> {
    Answer(PollAnswer<T>),
    WaitUntil(Instant),
}

/// When unread items are handed out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReadTime {
    /// A call that has just come gets what is there.
    First,
    /// The reader waits; a short delay lets more items come.
    Waiting,
}

impl<T: PollItem> PollLog<T> {
    pub(crate) fn new(grace: Duration) -> Self {
        let state = State {
            items: VecDeque::new(),
            next: 0,
            floor: 0,
            bytes: 0,
            closed: None,
            readers: HashMap::from([(Reader::Plain, ReaderCursor::default())]),
            calls: 0,
        };
        Self { state: Mutex::new(state), news: Notify::new(), grace }
    }

    /// Adds an item. After the end nothing happens any more.
    pub(crate) fn push(&self, item: T) {
        let mut state = self.state();
        if state.closed.is_some() {
            return;
        }
        let (place, weight) = (state.next, item.weight());
        state.items.push_back(NumberedItem { place, weight, item });
        state.next += 1;
        state.bytes += weight;
        state.shrink();
        drop(state);
        self.news.notify_waiters();
    }

    pub(crate) fn close(&self) {
        self.state().closed.get_or_insert_with(Instant::now);
        self.news.notify_waiters();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state().closed.is_some()
    }

    pub(crate) async fn until_closed(&self) {
        loop {
            let mut news = std::pin::pin!(self.news.notified());
            news.as_mut().enable();
            if self.is_closed() {
                return;
            }
            news.await;
        }
    }

    /// Whether all readers have read everything.
    pub(crate) fn is_done(&self) -> bool {
        let state = self.state();
        state.joining_is_over(self.grace) && state.readers.values().all(|cursor| cursor.over)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.state().bytes
    }

    /// Waits until there is something for a reader. A call that is dropped has taken nothing.
    pub(crate) async fn read(&self, reader: Reader) -> PollAnswer<T> {
        if let Err(refusal) = self.state().enter(&reader, self.grace) {
            return refusal;
        }
        let _call = WaitingCall { log: self, reader: &reader };
        let deadline = Instant::now() + PATIENCE;
        let mut turn = ReadTime::First;
        loop {
            let mut news = std::pin::pin!(self.news.notified());
            // From here on nothing that is pushed is missed.
            news.as_mut().enable();
            let until = match self.state().look(&reader, turn, deadline) {
                ReadResult::Answer(answer) => return answer,
                ReadResult::WaitUntil(until) => until,
            };
            turn = ReadTime::Waiting;
            tokio::select! {
                () = news => {}
                () = sleep_until(until) => {}
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock()
    }
}

/// Waiting call. Its client may disconnect at any time.
struct WaitingCall<'a, T: PollItem> {
    log: &'a PollLog<T>,
    reader: &'a Reader,
}

impl<T: PollItem> Drop for WaitingCall<'_, T> {
    fn drop(&mut self) {
        if let Some(cursor) = self.log.state().readers.get_mut(self.reader) {
            cursor.waiting = false;
        }
    }
}

impl<T: PollItem> State<T> {
    fn joining_is_over(&self, grace: Duration) -> bool {
        self.closed.is_some_and(|closed| closed.elapsed() >= grace)
    }

    fn enter(&mut self, reader: &Reader, grace: Duration) -> Result<(), PollAnswer<T>> {
        self.calls += 1;
        if !self.readers.contains_key(reader) {
            let too_long = matches!(reader, Reader::Token(token) if token.len() > LONGEST_TOKEN);
            if too_long || self.joining_is_over(grace) {
                return Err(PollAnswer::NotFound);
            }
            self.make_room_for_a_token();
        }
        let cursor = self.readers.entry(reader.clone()).or_default();
        if cursor.over {
            return Err(PollAnswer::NotFound);
        }
        if cursor.waiting {
            return Err(PollAnswer::Parallel);
        }
        cursor.waiting = true;
        cursor.used = self.calls;
        Ok(())
    }

    fn make_room_for_a_token(&mut self) {
        if self.readers.len() <= MOST_TOKENS {
            return;
        }
        let away =
            self.readers.iter().filter(|(reader, cursor)| **reader != Reader::Plain && !cursor.waiting);
        let longest = away.min_by_key(|(_, cursor)| (!cursor.over, cursor.used));
        if let Some(reader) = longest.map(|(reader, _)| reader.clone()) {
            self.readers.remove(&reader);
        }
    }

    fn look(&mut self, reader: &Reader, turn: ReadTime, deadline: Instant) -> ReadResult<T> {
        let now = Instant::now();
        let (end, closed) = (self.next, self.closed.is_some());
        let Some(cursor) = self.readers.get_mut(reader) else {
            return ReadResult::Answer(PollAnswer::NotFound);
        };
        if cursor.next == end {
            return match (closed, now >= deadline) {
                (true, _) => {
                    cursor.over = true;
                    ReadResult::Answer(PollAnswer::Closed)
                }
                (false, true) => ReadResult::Answer(PollAnswer::TimedOut),
                (false, false) => ReadResult::WaitUntil(deadline),
            };
        }
        let due = match (reader, turn, cursor.given) {
            (Reader::Token(_), ReadTime::Waiting, Some(given)) if !closed => deadline.min(given + PATIENCE),
            _ => now,
        };
        if now < due {
            return ReadResult::WaitUntil(due);
        }
        cursor.given = Some(now);
        let from = cursor.next;
        let missed = from < self.floor;
        let first = self.items.partition_point(|placed| placed.place < from);
        match reader {
            Reader::Plain if missed => {
                cursor.next = self.floor;
                ReadResult::Answer(PollAnswer::One(T::dropped()))
            }
            Reader::Plain => match self.items.get(first) {
                Some(placed) => {
                    cursor.next = placed.place + 1;
                    ReadResult::Answer(PollAnswer::One(placed.item.clone()))
                }
                // The rest has ended meanwhile, and its end has been read.
                None => {
                    cursor.next = end;
                    self.look(reader, turn, deadline)
                }
            },
            Reader::Token(_) => {
                cursor.next = end;
                let dropped = missed.then(T::dropped);
                let unread = self.items.range(first..).map(|placed| placed.item.clone());
                let unread = put_together(dropped.into_iter().chain(unread).collect());
                if unread.is_empty() {
                    return self.look(reader, turn, deadline);
                }
                ReadResult::Answer(PollAnswer::Many(unread))
            }
        }
    }

    fn shrink(&mut self) {
        if self.bytes <= MOST_BYTES {
            return;
        }
        let repeated = repeated(self.items.iter().map(|placed| &placed.item));
        let mut index = 0;
        self.items.retain(|_| {
            index += 1;
            !repeated.contains(&(index - 1))
        });
        self.bytes = self.items.iter().map(|placed| placed.weight).sum();
        if self.bytes <= MOST_BYTES {
            return;
        }
        // The last one stays, however large it is.
        while self.bytes > LEFT_BYTES && self.items.len() > 1 {
            if let Some(oldest) = self.items.pop_front() {
                self.bytes -= oldest.weight;
                self.floor = oldest.place + 1;
            }
        }
    }
}

/// Items that are deltas of a text whose end is in the log too.
fn repeated<'a, T: PollItem + 'a>(
    items: impl DoubleEndedIterator<Item = &'a T> + ExactSizeIterator,
) -> HashSet<usize> {
    let mut ended = HashSet::new();
    let mut found = HashSet::new();
    for (index, item) in items.enumerate().rev() {
        match item.piece() {
            TextPart::End(text) => {
                ended.insert(text);
            }
            TextPart::Start(text) => {
                ended.remove(&text);
            }
            TextPart::Delta(text) if ended.contains(&text) => {
                found.insert(index);
            }
            TextPart::Delta(_) | TextPart::Whole => {}
        }
    }
    found
}

/// Leaves out pieces of texts that end here, and makes one of neighbouring pieces of the same text.
fn put_together<T: PollItem>(items: Vec<T>) -> Vec<T> {
    let repeated = repeated(items.iter());
    let mut out: Vec<T> = Vec::with_capacity(items.len() - repeated.len());
    for (index, item) in items.into_iter().enumerate() {
        if repeated.contains(&index) {
            continue;
        }
        match (out.last_mut(), item.piece()) {
            (Some(last), TextPart::Delta(text)) if last.piece() == TextPart::Delta(text) => last.join(&item),
            _ => out.push(item),
        }
    }
    out
}

#[cfg(test)]
#[path = "live_tests.rs"]
mod tests;
