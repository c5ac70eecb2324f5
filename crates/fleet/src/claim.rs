//! Claims: the one writer of a log.
//!
//! A claim is a message in the log; its sequence is the epoch. Every append names the sequence of the message before it, so the
//! server refuses a writer that lost its claim. Appends are made in order by one task, which repeats those that were not
//! confirmed; a message that was stored all the same is recognised by its id.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::lease::LeaseEnd;
use crate::log::{EPOCH, EVENTS, KIND, MESSAGE_ID, PART, RECORD, VERSION_HEADER, last_message};
use crate::record::FleetRecord;
use crate::{Broker, FleetError, VERSION};

/// Bytes of appends that wait for the servers, at most. The session ends when it makes more.
const MAX_QUEUED: usize = 32 << 20;
/// Room in a message for its headers.
const HEADERS: usize = 1024;
/// Largest message of events, however large the server takes them: appends of others do not wait behind it.
const MAX_MESSAGE: usize = 1 << 20;
/// Reason of a claim that ended with its lease.
const LEASE_ENDED: &str = "the lease has ended";
/// Time limit of one attempt to append, and the pause before the next.
const APPEND: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(200);

/// A claim of one log. Clones share it.
#[derive(Debug, Clone)]
pub struct LogClaim(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    broker: Broker,
    subject: String,
    epoch: u64,
    state: Mutex<State>,
    work: Notify,
    /// Number of appends that are stored.
    stored: watch::Sender<u64>,
    /// Cancelled when the claim is lost or released.
    over: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Append>,
    queued_bytes: usize,
    /// Number of appends that were made.
    made: u64,
    /// Sequence of the last message of the log.
    last: u64,
    lost: Option<String>,
    latency: Duration,
    /// Lease that the claim ends with.
    lease: Option<LeaseEnd>,
}

#[derive(Debug, Clone)]
enum Append {
    Record(Bytes),
    Lines(Bytes),
}

impl Append {
    fn bytes(&self) -> usize {
        match self {
            Append::Record(bytes) | Append::Lines(bytes) => bytes.len(),
        }
    }
}

impl LogClaim {
    /// Claims a log whose last message is known. Fails if there is a newer one by now.
    pub async fn take(
        broker: &Broker,
        subject: String,
        last: u64,
        claimed: &FleetRecord,
    ) -> Result<Self, FleetError> {
        let id = format!("claim:{}", uuid::Uuid::new_v4());
        let payload = Bytes::from(claimed.encode()?);
        let deadline = Instant::now() + broker.settings().lease;
        let epoch = loop {
            match append(
                broker,
                &subject,
                Message { kind: RECORD, epoch: 0, last, id: &id, part: None },
                payload.clone(),
            )
            .await
            {
                Ok(seq) => break seq,
                Err(AppendError::Passing(why)) if Instant::now() >= deadline => {
                    return Err(FleetError::Failed { doing: format!("claiming {subject}"), why });
                }
                Err(AppendError::Passing(_)) => tokio::time::sleep(PAUSE).await,
                Err(AppendError::Moved) => return Err(FleetError::Moved { subject }),
                Err(AppendError::Full(why)) => return Err(FleetError::Full { stream: "LOG", why }),
            }
        };
        let inner = Arc::new(Inner {
            broker: broker.clone(),
            subject,
            epoch,
            state: Mutex::new(State { last: epoch, ..State::default() }),
            work: Notify::new(),
            stored: watch::Sender::new(0),
            over: CancellationToken::new(),
        });
        tokio::spawn(FutureExt::boxed(run(Arc::clone(&inner))));
        Ok(Self(inner))
    }

    pub fn epoch(&self) -> u64 {
        self.0.epoch
    }

    /// Sequence of the last message that is stored.
    pub fn last(&self) -> u64 {
        self.0.state.lock().last
    }

    /// Time that the last append took.
    pub fn latency(&self) -> Duration {
        self.0.state.lock().latency
    }

    /// Ends the claim with a lease. A process that was stopped while it waited for an append finds here that the append came too
    /// late to act upon.
    pub fn bind(&self, lease: LeaseEnd) {
        self.0.state.lock().lease = Some(lease);
    }

    /// Whether the claim is over, by the clock too.
    fn is_over(&self) -> bool {
        if !self.0.over.is_cancelled() && self.0.lease_has_ended() {
            self.give_up(LEASE_ENDED);
        }
        self.0.over.is_cancelled()
    }

    /// Fails if the claim is lost, was given up, or its lease is over.
    pub fn check(&self) -> Result<(), FleetError> {
        if self.is_over() { Err(self.refused()) } else { Ok(()) }
    }

    /// Cancelled when the claim is lost, or was given up.
    pub fn over(&self) -> &CancellationToken {
        &self.0.over
    }

    /// Reason why the claim was lost.
    pub fn lost(&self) -> Option<String> {
        self.0.state.lock().lost.clone()
    }

    /// Gives the claim up: nothing more is written.
    pub fn give_up(&self, why: &str) {
        self.0.state.lock().lost.get_or_insert_with(|| why.to_owned());
        self.0.over.cancel();
        // Those who wait for an append learn that it is not made.
        self.0.stored.send_modify(|_| {});
    }

    /// Queues whole lines of events. They are stored when [`Self::settled`] says so.
    pub fn append_lines(&self, lines: &[u8]) -> Result<(), FleetError> {
        self.queue(Append::Lines(Bytes::copy_from_slice(lines))).map(drop)
    }

    /// Appends a record, and waits until it is stored.
    pub async fn append(&self, record: &FleetRecord) -> Result<(), FleetError> {
        let number = self.queue(Append::Record(record.encode()?.into()))?;
        self.wait(number).await
    }

    /// Waits until everything that was appended is stored. `None` if it is.
    pub fn settled(&self) -> Option<impl Future<Output = Result<(), FleetError>> + Send + 'static> {
        let made = self.0.state.lock().made;
        if *self.0.stored.borrow() >= made && !self.is_over() {
            return None;
        }
        let claim = self.clone();
        Some(async move { claim.wait(made).await })
    }

    async fn wait(&self, number: u64) -> Result<(), FleetError> {
        let mut stored = self.0.stored.subscribe();
        loop {
            let is_stored = *stored.borrow_and_update() >= number;
            // What was stored before the claim was lost is no leave to act after it.
            self.check()?;
            if is_stored {
                return Ok(());
            }
            tokio::select! {
                _ = stored.changed() => {}
                () = self.0.over.cancelled() => {}
            }
        }
    }

    fn refused(&self) -> FleetError {
        match self.lost() {
            Some(why) => FleetError::Failed { doing: format!("writing the log {}", self.0.subject), why },
            None => FleetError::Moved { subject: self.0.subject.clone() },
        }
    }

    fn queue(&self, append: Append) -> Result<u64, FleetError> {
        self.check()?;
        let mut state = self.0.state.lock();
        if state.queued_bytes + append.bytes() > MAX_QUEUED {
            let why = format!("{MAX_QUEUED} bytes wait for the servers");
            return Err(FleetError::Failed { doing: format!("writing the log {}", self.0.subject), why });
        }
        state.queued_bytes += append.bytes();
        state.queue.push_back(append);
        state.made += 1;
        let number = state.made;
        drop(state);
        self.0.work.notify_one();
        Ok(number)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.over.cancel();
    }
}

/// Appends of one message: those that were queued together.
struct Batch {
    kind: &'static str,
    payload: Bytes,
    appends: u64,
}

impl Inner {
    fn lease_has_ended(&self) -> bool {
        self.state.lock().lease.as_ref().is_some_and(LeaseEnd::has_come)
    }

    /// Takes what is queued, as one message: one record, or lines up to the largest message.
    fn next_batch(&self) -> Option<Batch> {
        let mut state = self.state.lock();
        let first = state.queue.pop_front()?;
        state.queued_bytes -= first.bytes();
        let Append::Lines(first) = first else {
            let Append::Record(payload) = first else { return None };
            return Some(Batch { kind: RECORD, payload, appends: 1 });
        };
        let (mut lines, mut appends) = (vec![first], 1);
        let mut size = lines[0].len();
        while let Some(Append::Lines(next)) = state.queue.front()
            && size + next.len() <= self.largest()
        {
            let next = next.clone();
            state.queue.pop_front();
            state.queued_bytes -= next.len();
            size += next.len();
            lines.push(next);
            appends += 1;
        }
        let payload = match lines.len() {
            1 => lines.remove(0),
            _ => {
                let mut all = BytesMut::with_capacity(size);
                lines.iter().for_each(|line| all.extend_from_slice(line));
                all.freeze()
            }
        };
        Some(Batch { kind: EVENTS, payload, appends })
    }

    fn largest(&self) -> usize {
        let server = self.broker.client().max_payload().saturating_sub(HEADERS).max(HEADERS);
        server.min(MAX_MESSAGE)
    }
}

/// Appends what is queued until the claim is over.
async fn run(inner: Arc<Inner>) {
    let over = inner.over.clone();
    let weak = Arc::downgrade(&inner);
    drop(inner);
    let mut number = 0;
    loop {
        let Some(inner) = weak.upgrade() else { return };
        let Some(batch) = inner.next_batch() else {
            // The claim ends with its last user, so the task keeps none while it waits.
            let work = WaitForWork { inner: Arc::downgrade(&inner) };
            drop(inner);
            tokio::select! {
                () = work.wait() => continue,
                () = over.cancelled() => return,
            }
        };
        let stored = tokio::select! {
            stored = store(&inner, &batch, &mut number) => stored,
            () = over.cancelled() => return,
        };
        match stored {
            Ok(()) => inner.stored.send_modify(|stored| *stored += batch.appends),
            Err(why) => {
                inner.state.lock().lost = Some(why);
                over.cancel();
                inner.stored.send_modify(|_| {});
                return;
            }
        }
    }
}

/// Waits for an append, without keeping the claim alive for long.
struct WaitForWork {
    inner: std::sync::Weak<Inner>,
}

impl WaitForWork {
    /// Interval at which the writer checks whether the claim still has users.
    const LOOK: Duration = Duration::from_secs(1);

    async fn wait(&self) {
        if let Some(inner) = self.inner.upgrade() {
            let _ = tokio::time::timeout(Self::LOOK, inner.work.notified()).await;
        }
    }
}

/// Stores one batch, in parts if it is too large for a message. The error is why it cannot be stored any more.
async fn store(inner: &Inner, batch: &Batch, number: &mut u64) -> Result<(), String> {
    let largest = inner.largest();
    let parts = batch.payload.len().div_ceil(largest).max(1);
    for part in 0..parts {
        *number += 1;
        let id = format!("{}:{}", inner.epoch, number);
        let id = format!("{}:{id}", inner.subject);
        let payload = batch.payload.slice(part * largest..batch.payload.len().min((part + 1) * largest));
        let part = (parts > 1).then_some((part, parts));
        let began = Instant::now();
        let seq = loop {
            if inner.lease_has_ended() {
                return Err(LEASE_ENDED.to_owned());
            }
            let last = inner.state.lock().last;
            let message = Message { kind: batch.kind, epoch: inner.epoch, last, id: &id, part };
            match append(&inner.broker, &inner.subject, message, payload.clone()).await {
                Ok(seq) => break seq,
                Err(AppendError::Moved) => return Err("another worker has taken the session over".to_owned()),
                Err(AppendError::Full(why)) => {
                    tracing::warn!(subject = inner.subject, why, "the stream of logs takes nothing");
                    tokio::time::sleep(APPEND).await;
                }
                Err(AppendError::Passing(why)) => {
                    tracing::debug!(subject = inner.subject, why, "an append is repeated");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        };
        let mut state = inner.state.lock();
        state.last = seq;
        state.latency = began.elapsed();
    }
    Ok(())
}

/// Headers of a message of a log.
struct Message<'a> {
    kind: &'static str,
    epoch: u64,
    /// Sequence of the message before it.
    last: u64,
    id: &'a str,
    part: Option<(usize, usize)>,
}

enum AppendError {
    /// The log has a message that this writer does not know.
    Moved,
    Full(String),
    /// It may work if it is tried again.
    Passing(String),
}

async fn append(
    broker: &Broker,
    subject: &str,
    message: Message<'_>,
    payload: Bytes,
) -> Result<u64, AppendError> {
    let mut publish = PublishMessage::build()
        .payload(payload)
        .message_id(message.id)
        .expected_last_subject_sequence(message.last)
        .header(KIND, message.kind)
        .header(VERSION_HEADER, VERSION.to_string())
        .header(EPOCH, message.epoch.to_string());
    if let Some((part, of)) = message.part {
        publish = publish.header(PART, format!("{part}/{of}"));
    }
    let attempt = async {
        match broker.context().send_publish(subject.to_owned(), publish).await {
            Ok(acknowledged) => acknowledged.await,
            Err(error) => Err(error),
        }
    };
    let passing = |error: &dyn std::fmt::Display| AppendError::Passing(error.to_string());
    match tokio::time::timeout(APPEND, attempt).await {
        Err(elapsed) => Err(passing(&elapsed)),
        Ok(Ok(acknowledged)) => Ok(acknowledged.sequence),
        Ok(Err(error)) if error.kind() == PublishErrorKind::WrongLastSequence => {
            // An attempt whose answer was lost may have been stored.
            let found = last_message(broker, subject).await.map_err(|error| passing(&error))?;
            let ours = found.filter(|found| {
                found.headers.get(MESSAGE_ID).is_some_and(|found| found.as_str() == message.id)
            });
            ours.map(|found| found.sequence).ok_or(AppendError::Moved)
        }
        Ok(Err(error)) => {
            let FleetError::Failed { why, .. } = FleetError::failed("", &error) else {
                return Err(passing(&error));
            };
            let full = ["maximum bytes", "insufficient", "resource", "maximum messages"];
            match full.iter().any(|word| why.contains(word)) {
                true => Err(AppendError::Full(why)),
                false => Err(AppendError::Passing(why)),
            }
        }
    }
}
