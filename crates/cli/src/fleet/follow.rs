//! A session of the fleet that a portal reads: its log is copied and followed, and its events are news for the registry.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use hangar_fleet::control::LiveReader;
use hangar_fleet::fold::SessionFold;
use hangar_fleet::log::{self, FleetLogReader, LogEntry, LogItem};
use hangar_fleet::record::{FleetRecord, FleetTurnEnd, OrderEnd};
use hangar_protocol::Event;
use hangar_registry::error::RegistryError;
use hangar_registry::host::{FleetCommand, JoinedSession};
use hangar_runtimes::outcome::{ErrorKind, Evidence, TurnFailure, TurnOutcome, TurnResult};
use hangar_runtimes::runtime::{AgentSession, SessionCommand, SessionNews, TurnEnded};
use hangar_runtimes::usage::AgentUsage;
use hangar_store::{CopiedLog, SessionId};
use tokio::sync::mpsc;

use super::portal::{FleetChange, Inner};
use super::session::lines;

/// Capacity of the queues between the portal and the session.
const COMMAND_QUEUE: usize = 64;
const NEWS_QUEUE: usize = 256;
/// Ephemeral events that are held until the log is as far, at most.
const MAX_HELD: usize = 4096;

/// Copies the log of a session and follows it.
pub(super) async fn join(portal: Arc<Inner>, id: SessionId) -> Result<JoinedSession, RegistryError> {
    let failed = |error: hangar_fleet::FleetError| RegistryError::Fleet(error.to_string());
    let broker = &portal.broker;
    let subject = log::session_subject(broker, &id);
    // Before the log is read, so that nothing is missed.
    let live = broker.live(&id).await.map_err(failed)?;
    let entries = log::read(broker, &subject).await.map_err(failed)?;
    let fold = SessionFold::of(&entries);
    let copy = portal.store.begin_copy(&id, &lines(&entries))?;
    drop(entries);
    let reader = FleetLogReader::open(broker, &subject, fold.last).await.map_err(failed)?;
    let questions: Vec<Event> = fold.asked.values().filter_map(event_of).collect();
    let working = fold.owner.is_some() && !fold.waiting.is_empty();
    let (commands, inbox) = mpsc::channel(COMMAND_QUEUE);
    let (outbox, news) = mpsc::channel(NEWS_QUEUE);
    let follower = Follower {
        portal,
        id,
        copy,
        lines: fold.events,
        asked: fold.asked.keys().cloned().collect(),
        held: VecDeque::new(),
        outbox,
    };
    let owner = tokio::spawn(follower.run(reader, live, inbox));
    let agent = AgentSession::new(commands, news, owner.abort_handle());
    Ok(JoinedSession { agent, working, questions, canvases: Vec::new() })
}

fn event_of(json: &serde_json::Value) -> Option<Event> {
    Event::parse(&json.to_string()).ok()
}

/// Passes the log of a session on, and commands to its worker.
struct Follower {
    portal: Arc<Inner>,
    id: SessionId,
    copy: CopiedLog,
    /// Lines of the copy.
    lines: u64,
    /// Questions that wait for an answer.
    asked: BTreeSet<String>,
    /// Ephemeral events that belong after lines that are not here yet.
    held: VecDeque<(u64, Vec<u8>)>,
    outbox: mpsc::Sender<SessionNews>,
}

/// Nobody reads the session any more, or it cannot be followed.
struct Over;

impl Follower {
    async fn run(
        mut self,
        mut reader: FleetLogReader,
        mut live: LiveReader,
        mut inbox: mpsc::Receiver<SessionCommand>,
    ) {
        loop {
            let goes_on = tokio::select! {
                entry = reader.next() => match entry {
                    Ok(Some(entry)) => self.entry(&entry).await,
                    Ok(None) => Err(Over),
                    Err(error) => {
                        tracing::warn!(session = %self.id, %error, "a session of the fleet cannot be followed");
                        Err(Over)
                    }
                },
                Some((after, event)) = live.next() => self.passing(after, event).await,
                command = inbox.recv() => match command {
                    // The session goes on where it runs.
                    Some(SessionCommand::Stop) | None => Err(Over),
                    Some(command) => self.pass(command).await,
                },
            };
            if goes_on.is_err() {
                return;
            }
        }
    }

    /// Gives a command to the worker.
    async fn pass(&mut self, command: SessionCommand) -> Result<(), Over> {
        let is_prompt = matches!(command, SessionCommand::Send(_));
        let command = match command {
            SessionCommand::Send(text) => FleetCommand::Send { id: uuid::Uuid::new_v4().to_string(), text },
            SessionCommand::Steer(text) => FleetCommand::Steer { text },
            SessionCommand::Abort => FleetCommand::Abort,
            SessionCommand::Answer { request_id, answer } => FleetCommand::Answer { request_id, answer },
            SessionCommand::Rename(_) | SessionCommand::Stop => return Ok(()),
        };
        match self.portal.tell(&self.id, command).await {
            Ok(()) => Ok(()),
            Err(error) if is_prompt => self.turn_ended(Some(error.to_string()), ErrorKind::TurnFailed).await,
            Err(error) => {
                tracing::warn!(session = %self.id, %error, "the fleet refused a command");
                Ok(())
            }
        }
    }

    async fn entry(&mut self, entry: &LogEntry) -> Result<(), Over> {
        match &entry.item {
            LogItem::Events(lines) => self.events(lines).await,
            LogItem::Record(record) => self.record(record).await,
        }
    }

    async fn events(&mut self, lines: &[u8]) -> Result<(), Over> {
        // In the copy before anybody hears of them.
        if let Err(error) = self.copy.append(lines) {
            tracing::warn!(session = %self.id, %error, "the copy of a log cannot be written");
            return Err(Over);
        }
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            self.lines += 1;
            self.publish(line).await?;
            self.catch_up().await?;
        }
        Ok(())
    }

    async fn publish(&self, line: &[u8]) -> Result<(), Over> {
        match std::str::from_utf8(line).map(Event::parse) {
            Ok(Ok(event)) => self.news(SessionNews::Event(Box::new(event))).await,
            _ => Ok(()),
        }
    }

    async fn news(&self, news: SessionNews) -> Result<(), Over> {
        self.outbox.send(news).await.map_err(|_| Over)
    }

    async fn passing(&mut self, after: u64, event: Vec<u8>) -> Result<(), Over> {
        if self.held.len() == MAX_HELD {
            self.held.pop_front();
        }
        self.held.push_back((after, event));
        self.catch_up().await
    }

    /// Publishes the ephemeral events that belong here. Those that came too late are dropped: the log has the whole answer.
    async fn catch_up(&mut self) -> Result<(), Over> {
        while self.held.front().is_some_and(|(after, _)| *after <= self.lines)
            && let Some((after, event)) = self.held.pop_front()
        {
            if after == self.lines {
                self.publish(&event).await?;
            }
        }
        Ok(())
    }

    async fn record(&mut self, record: &FleetRecord) -> Result<(), Over> {
        match record {
            FleetRecord::TurnEnded { outcome, .. } => {
                self.asked.clear();
                let (error, kind) = match outcome {
                    FleetTurnEnd::Completed => (None, ErrorKind::TurnFailed),
                    FleetTurnEnd::Cancelled => {
                        (Some("the turn was aborted".to_owned()), ErrorKind::TurnCancelled)
                    }
                    FleetTurnEnd::Failed { message } => (Some(message.clone()), ErrorKind::TurnFailed),
                };
                self.turn_ended(error, kind).await
            }
            FleetRecord::Asked { id, event } => {
                self.asked.insert(id.clone());
                match event_of(event) {
                    // Others are in the log.
                    Some(event) if event.is_ephemeral() => {
                        self.news(SessionNews::Event(Box::new(event))).await
                    }
                    _ => Ok(()),
                }
            }
            FleetRecord::Settled { id } => {
                self.asked.remove(id);
                self.settled(id.clone()).await
            }
            // The questions of the worker that had it before are void.
            FleetRecord::Claimed { .. } => {
                for question in std::mem::take(&mut self.asked) {
                    self.settled(question).await?;
                }
                Ok(())
            }
            FleetRecord::Released { end: OrderEnd::Parked { why }, .. } => {
                self.turn_ended(Some(format!("the order was given up: {why}")), ErrorKind::TurnFailed).await
            }
            FleetRecord::Kept { reference, .. } => {
                self.portal.note_kept(&self.id, reference);
                Ok(())
            }
            FleetRecord::Released { .. }
            | FleetRecord::Message { .. }
            | FleetRecord::TurnBegan { .. }
            | FleetRecord::NotKept { .. }
            | FleetRecord::BegunAnew { .. }
            | FleetRecord::Trouble { .. } => Ok(()),
        }
    }

    async fn settled(&self, question: String) -> Result<(), Over> {
        self.portal.changes.send(FleetChange::Settled(self.id.clone(), question)).await.map_err(|_| Over)
    }

    async fn turn_ended(&self, error: Option<String>, kind: ErrorKind) -> Result<(), Over> {
        let end = match error {
            Some(message) => TurnResult::Failed(TurnFailure { kind, message, evidence: Evidence::default() }),
            None => TurnResult::Completed,
        };
        // The usage is in the log.
        let outcome = TurnOutcome { end, usage: AgentUsage::default(), total: AgentUsage::default() };
        let ended = TurnEnded { outcome, model: None, unknown: BTreeSet::new() };
        self.news(SessionNews::TurnEnded(Box::new(ended))).await
    }
}
