//! Logs of sessions that clients read page by page, as they were when the first page was read.
//!
//! A log only grows, so what it was is a list of positions in it; nothing is copied and no file stays open in between.

use parking_lot::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use hangar_protocol::{Body, EventKind, LogPosition};
use hangar_store::{SessionId, Store, StoreError};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::audience::is_for_clients;

/// Maximum number of open journals, and the lifetime of each without a read.
const MAX_OPEN: usize = 8;
const PATIENCE: Duration = Duration::from_secs(5 * 60);
/// Bytes of one page. A single event that is larger is a page of its own.
const PAGE: usize = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Direction {
    /// From the oldest event on.
    Forward,
    /// From the newest event back.
    Backward,
}

/// Unread rest of a log.
pub(crate) struct LogReader {
    store: Store,
    pub(crate) id: SessionId,
    direction: Direction,
    /// Offsets of the events that are still valid.
    offsets: Arc<[u64]>,
    left: Range<usize>,
}

pub(crate) struct LogPage {
    /// In the order of the log.
    pub(crate) events: Vec<Box<RawValue>>,
    /// Remaining events after this page.
    pub(crate) rest: Option<LogReader>,
}

impl LogReader {
    /// Indexes a log, once.
    pub(crate) fn open(store: Store, id: SessionId, direction: Direction) -> Result<Self, StoreError> {
        #[derive(Deserialize)]
        struct EventHead {
            id: String,
        }
        let mut lines = store.lines(&id)?;
        // Clients do not hear of all, but any may be the one from which on all is taken back.
        let mut kept: Vec<(String, Option<u64>)> = Vec::new();
        while let Some(line) = lines.next(|_| true)? {
            let Ok(EventHead { id }) = serde_json::from_slice(line.bytes) else { continue };
            if line.event_kind() != Some(EventKind::HistoryTruncated) {
                kept.push((id, is_for_clients(line.event_kind()).then_some(line.offset)));
            } else if let Ok(event) = line.parse()
                && let Body::HistoryTruncated(truncated) = event.body()
            {
                let from = kept.iter().position(|(known, _)| *known == truncated.up_to_event_id);
                kept.truncate(from.unwrap_or(kept.len()));
            }
        }
        let offsets: Arc<[u64]> = kept.into_iter().filter_map(|(_, offset)| offset).collect();
        let left = 0..offsets.len();
        Ok(Self { store, id, direction, offsets, left })
    }

    /// Next page, of at most `max` events.
    pub(crate) fn read(mut self, max: usize) -> Result<LogPage, StoreError> {
        let mut events = Vec::new();
        let mut bytes = 0;
        while events.len() < max && !self.left.is_empty() {
            let at = match self.direction {
                Direction::Forward => self.left.start,
                Direction::Backward => self.left.end - 1,
            };
            if let Some(event) = self.event(at)? {
                bytes += event.get().len();
                if bytes > PAGE && !events.is_empty() {
                    break;
                }
                events.push(event);
            }
            match self.direction {
                Direction::Forward => self.left.start += 1,
                Direction::Backward => self.left.end -= 1,
            }
        }
        if self.direction == Direction::Backward {
            events.reverse();
        }
        let rest = (!self.left.is_empty()).then_some(self);
        Ok(LogPage { events, rest })
    }

    /// Event at an index; `None` if it was incomplete when the log was indexed.
    fn event(&self, at: usize) -> Result<Option<Box<RawValue>>, StoreError> {
        let position = LogPosition { seq: 0, offset: self.offsets[at] };
        let mut follow = self.store.follow(&self.id, position)?;
        let line = follow.next_line().map_err(|source| StoreError::Io {
            doing: "reading",
            path: self.store.session_dir(&self.id),
            source,
        })?;
        let text = line.and_then(|(_, bytes)| std::str::from_utf8(bytes).ok().map(str::to_owned));
        Ok(text.and_then(|text| RawValue::from_string(text).ok()))
    }
}

/// The logs that are under way, each by the cursor that leads on in it. A cursor leads on once.
#[derive(Default)]
pub(crate) struct LogReaders(Mutex<VecDeque<OpenReader>>);

struct OpenReader {
    cursor: String,
    since: Instant,
    reader: LogReader,
}

impl LogReaders {
    /// Stores the rest of a log and returns its cursor.
    pub(crate) fn keep(&self, reader: LogReader) -> String {
        let cursor = format!("journal:{}", uuid::Uuid::new_v4());
        let mut waiting = self.lock();
        if waiting.len() >= MAX_OPEN {
            waiting.pop_front();
        }
        waiting.push_back(OpenReader { cursor: cursor.clone(), since: Instant::now(), reader });
        cursor
    }

    pub(crate) fn take(&self, cursor: &str, id: &SessionId) -> Option<LogReader> {
        let mut waiting = self.lock();
        let now = Instant::now();
        waiting.retain(|waiting| now.duration_since(waiting.since) < PATIENCE);
        let at = waiting.iter().position(|known| known.cursor == cursor && known.reader.id == *id)?;
        waiting.remove(at).map(|waiting| waiting.reader)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<OpenReader>> {
        self.0.lock()
    }
}
