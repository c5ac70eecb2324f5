//! Logs of sessions on the servers: one subject each, whose messages are records of workers and lines of events.
//!
//! A message of events has whole lines, as the file has them. Lines that are larger than what a server takes are sent in
//! parts, one message each; a reader puts them together, and drops parts whose writer was lost before the last.

use async_nats::HeaderMap;
use async_nats::jetstream::consumer::{DeliverPolicy, pull};
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{DirectGetErrorKind, LastRawMessageErrorKind};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use hangar_store::SessionId;
use std::time::Duration;

use crate::record::FleetRecord;
use crate::{Broker, FleetError, VERSION};

pub(crate) const KIND: &str = "Hangar-Kind";
pub(crate) const EPOCH: &str = "Hangar-Epoch";
pub(crate) const PART: &str = "Hangar-Part";
pub(crate) const VERSION_HEADER: &str = "Hangar-V";
pub(crate) const EVENTS: &str = "events";
pub(crate) const RECORD: &str = "record";
pub(crate) const MESSAGE_ID: &str = "Nats-Msg-Id";
/// Largest log that is put together from parts, in bytes.
const MAX_PARTS: usize = 64 << 20;
/// Messages of a log that are read one by one.
const SHORT: usize = 64;
/// Time without a message after which a log that has more of them cannot be read.
const STALLED: Duration = Duration::from_secs(30);
/// Attempts to read a message while a leader is elected.
const READS: u32 = 40;
const READ_PAUSE: Duration = Duration::from_millis(250);

/// A message of a log.
#[derive(Debug, Clone, PartialEq)]
pub struct LogEntry {
    pub seq: u64,
    /// Claim that its writer had; zero for the claim itself.
    pub epoch: u64,
    pub item: LogItem,
}

#[derive(Debug, Clone, PartialEq)]
pub enum LogItem {
    Record(FleetRecord),
    /// Whole lines.
    Events(Bytes),
}

/// Puts messages together to entries.
#[derive(Debug, Default)]
pub struct Assembler {
    epoch: u64,
    parts: BytesMut,
    next: usize,
}

impl Assembler {
    /// Takes the next message of a log. `None` while parts are missing.
    pub(crate) fn take(
        &mut self,
        seq: u64,
        headers: Option<&HeaderMap>,
        payload: Bytes,
    ) -> Result<Option<LogEntry>, FleetError> {
        let header =
            |name: &str| headers.and_then(|headers| headers.get(name)).map(async_nats::HeaderValue::as_str);
        let number =
            |name: &str| header(name).and_then(|value| value.parse::<u64>().ok()).unwrap_or_default();
        let version = u32::try_from(number(VERSION_HEADER)).unwrap_or(u32::MAX);
        if version > VERSION {
            return Err(FleetError::Newer { found: version });
        }
        let epoch = number(EPOCH);
        if header(KIND) != Some(EVENTS) {
            self.forget();
            return Ok(Some(LogEntry { seq, epoch, item: LogItem::Record(FleetRecord::parse(&payload)?) }));
        }
        let Some((part, of)) = header(PART).and_then(parse_part) else {
            self.forget();
            return Ok(Some(LogEntry { seq, epoch, item: LogItem::Events(payload) }));
        };
        if part == 0 || epoch != self.epoch || part != self.next {
            self.forget();
            if part > 0 {
                // The rest of a message whose beginning is not there.
                return Ok(None);
            }
            self.epoch = epoch;
        }
        if self.parts.len() + payload.len() > MAX_PARTS {
            self.forget();
            let why = format!("message {seq} belongs to more than {MAX_PARTS} bytes");
            return Err(FleetError::Failed { doing: "reading a log".to_owned(), why });
        }
        self.parts.extend_from_slice(&payload);
        self.next = part + 1;
        if self.next < of {
            return Ok(None);
        }
        let lines = std::mem::take(&mut self.parts).freeze();
        self.forget();
        Ok(Some(LogEntry { seq, epoch, item: LogItem::Events(lines) }))
    }

    fn forget(&mut self) {
        self.parts = BytesMut::new();
        self.next = 0;
    }
}

fn parse_part(text: &str) -> Option<(usize, usize)> {
    let (part, of) = text.split_once('/')?;
    Some((part.parse().ok()?, of.parse().ok()?))
}

/// Subject of the log of a session.
pub fn session_subject(broker: &Broker, id: &SessionId) -> String {
    broker.subject(&format!("log.session.{id}"))
}

/// Sequence of the last message of a subject; zero if there is none. The leader of the stream answers, so nothing that was
/// acknowledged is missing.
pub(crate) async fn last_message(
    broker: &Broker,
    subject: &str,
) -> Result<Option<StreamMessage>, FleetError> {
    let mut tries = 0;
    loop {
        match broker.log().get_last_raw_message_by_subject(subject).await {
            Ok(message) => return Ok(Some(message)),
            Err(error) => match error.kind() {
                LastRawMessageErrorKind::NoMessageFound => return Ok(None),
                LastRawMessageErrorKind::JetStream(refused) if refused.code() == 404 => return Ok(None),
                _ if tries < READS => {
                    tries += 1;
                    tokio::time::sleep(READ_PAUSE).await;
                }
                _ => return Err(FleetError::failed(format!("reading the log {subject}"), &error)),
            },
        }
    }
}

/// Reads a log to its end as it is now.
pub async fn read(broker: &Broker, subject: &str) -> Result<Vec<LogEntry>, FleetError> {
    let Some(last) = last_message(broker, subject).await? else { return Ok(Vec::new()) };
    let (mut entries, mut assembler) = (Vec::new(), Assembler::default());
    let mut seen = 0;
    // A log of a few messages needs no consumer, which a cluster would have to agree on.
    for _ in 0..SHORT {
        if seen >= last.sequence {
            return Ok(entries);
        }
        let message = next_message(broker, subject, seen).await?;
        seen = message.sequence;
        entries.extend(assembler.take(seen, Some(&message.headers), message.payload)?);
    }
    if seen >= last.sequence {
        return Ok(entries);
    }
    // Parts whose last one is missing are read again.
    let after = entries.last().map_or(0, |entry| entry.seq);
    let mut reader = FleetLogReader::open(broker, subject, after).await?;
    while reader.seen < last.sequence {
        match tokio::time::timeout(STALLED, reader.step()).await {
            Ok(step) => match step? {
                Some(entry) => entries.extend(entry),
                None => break,
            },
            Err(elapsed) => return Err(FleetError::failed(format!("reading the log {subject}"), &elapsed)),
        }
    }
    Ok(entries)
}

async fn next_message(broker: &Broker, subject: &str, after: u64) -> Result<StreamMessage, FleetError> {
    let mut tries = 0;
    loop {
        match broker.log().direct_get_next_for_subject(subject, Some(after + 1)).await {
            Ok(message) => return Ok(message),
            // A follower may be behind the leader, or a server is being restarted.
            Err(error) if tries < READS && !matches!(error.kind(), DirectGetErrorKind::InvalidSubject) => {
                tries += 1;
                tokio::time::sleep(READ_PAUSE).await;
            }
            Err(error) => return Err(FleetError::failed(format!("reading the log {subject}"), &error)),
        }
    }
}

/// A log that is read from any message on, for as long as its reader wants. Survives the loss of servers.
pub struct FleetLogReader {
    broker: Broker,
    subject: String,
    messages: pull::Ordered,
    assembler: Assembler,
    /// Sequence of the last entry that was given out.
    after: u64,
    /// Sequence of the last message that was read.
    seen: u64,
}

impl FleetLogReader {
    /// Entries after a sequence, then those that come.
    pub async fn open(broker: &Broker, subject: &str, after: u64) -> Result<Self, FleetError> {
        let messages = messages(broker, subject, after).await?;
        let (broker, subject) = (broker.clone(), subject.to_owned());
        Ok(Self { broker, subject, messages, assembler: Assembler::default(), after, seen: after })
    }

    /// The next entry. `None` when the connection is closed.
    pub async fn next(&mut self) -> Result<Option<LogEntry>, FleetError> {
        loop {
            match self.step().await? {
                Some(Some(entry)) => return Ok(Some(entry)),
                Some(None) => {}
                None => return Ok(None),
            }
        }
    }

    /// Reads one message. The entry is absent if the message was a part and others are missing.
    async fn step(&mut self) -> Result<Option<Option<LogEntry>>, FleetError> {
        let message = loop {
            match self.messages.next().await {
                Some(Ok(message)) => break message,
                Some(Err(error)) => {
                    tracing::debug!(%error, subject = self.subject, "a reader begins again behind its last entry");
                    self.reopen().await?;
                }
                None => return Ok(None),
            }
        };
        let seq = message.info().map_err(FleetError::of("following a log"))?.stream_sequence;
        self.seen = seq;
        let entry = self.assembler.take(seq, message.headers.as_ref(), message.payload.clone())?;
        if entry.is_some() {
            self.after = seq;
        }
        Ok(Some(entry))
    }

    async fn reopen(&mut self) -> Result<(), FleetError> {
        let mut tries = 0;
        loop {
            match messages(&self.broker, &self.subject, self.after).await {
                Ok(messages) => {
                    self.messages = messages;
                    self.assembler = Assembler::default();
                    return Ok(());
                }
                Err(error) if tries == READS => return Err(error),
                Err(_) => {
                    tries += 1;
                    tokio::time::sleep(READ_PAUSE).await;
                }
            }
        }
    }
}

async fn messages(broker: &Broker, subject: &str, after: u64) -> Result<pull::Ordered, FleetError> {
    let config = pull::OrderedConfig {
        filter_subject: subject.to_owned(),
        deliver_policy: match after {
            0 => DeliverPolicy::All,
            _ => DeliverPolicy::ByStartSequence { start_sequence: after + 1 },
        },
        ..pull::OrderedConfig::default()
    };
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
        FleetError::of(format!("following the log {subject}"))(error)
    };
    let consumer = broker.log().create_consumer(config).await.map_err(|error| failed(error.into()))?;
    consumer.messages().await.map_err(|error| failed(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages as `epoch part/of text`, or `epoch - text`; the texts of the entries.
    #[track_caller]
    fn check(messages: &[&str], expected: &[&str]) {
        let mut assembler = Assembler::default();
        let mut found = Vec::new();
        for (n, message) in messages.iter().enumerate() {
            let [epoch, part, text] = message.splitn(3, ' ').collect::<Vec<_>>()[..] else { unreachable!() };
            let mut headers = HeaderMap::new();
            headers.insert(KIND, EVENTS);
            headers.insert(EPOCH, epoch);
            if part != "-" {
                headers.insert(PART, part);
            }
            let payload = Bytes::copy_from_slice(text.as_bytes());
            let entry = assembler.take(n as u64 + 1, Some(&headers), payload).expect("a valid message");
            if let Some(LogEntry { item: LogItem::Events(lines), .. }) = entry {
                found.push(String::from_utf8(lines.to_vec()).expect("text"));
            }
        }
        assert_eq!(found, expected);
    }

    #[test]
    fn parts_become_one_entry() {
        check(&["1 - a", "1 0/3 b", "1 1/3 c", "1 2/3 d", "1 - e"], &["a", "bcd", "e"]);
    }

    #[test]
    fn parts_of_a_writer_that_was_lost_are_dropped() {
        check(&["1 0/2 a", "2 - b"], &["b"]);
        check(&["1 0/2 a", "2 0/2 b", "2 1/2 c"], &["bc"]);
        check(&["1 0/2 a", "2 1/2 b", "2 - c"], &["c"]);
    }
}
