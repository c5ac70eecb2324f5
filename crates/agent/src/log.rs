//! The log of a session, as its writer sees it.

use futures_util::future::BoxFuture;
use hangar_protocol::data::WorkingDirectory;
use hangar_protocol::{Event, LogPosition};

use crate::model::ProviderFacts;
use crate::session::Checkpoint;

/// Position in a log: the number of events before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Seq(pub u64);

/// The one writer of one session's log. Holding it is holding the session's lock.
pub trait SessionLog: SessionNotes + Send {
    /// Appends events at `expected`, all or none of them, and returns the new end. After that a killed process loses
    /// none of them.
    fn append(&mut self, expected: Seq, events: &[Event]) -> Result<Seq, LogError>;

    /// Positions in the log after each event of the last append, in order. Empty for a log that does not count bytes.
    fn appended(&self) -> &[LogPosition] {
        &[]
    }

    /// Syncs the log to disk, so that it survives a power cut too.
    fn sync(&mut self) -> Result<(), LogError>;

    /// Future that completes when all appended events are stored; `None` if they are already. The session takes no
    /// further input before that, so at most the events of one step are in flight.
    fn settle(&mut self) -> Option<BoxFuture<'static, Result<(), LogError>>> {
        None
    }

    /// Releases the lock while the session is idle, so that another process may take it over. The next append takes it
    /// back, if it can.
    fn rest(&mut self) {}
}

/// State beside the log. A log that stores nothing else implements none of it.
pub trait SessionNotes {
    /// Stores the answers that are arriving, in place of those of the last time, for the next process to log if this one is
    /// killed.
    fn keep_unfinished(&mut self, events: &[Event]) {
        let _ = events;
    }

    /// The plan, if there is one.
    fn plan(&mut self) -> Option<String> {
        None
    }

    /// Stores a fact that lists show. Logs that are in no list ignore it.
    fn note(&mut self, fact: ListedFact) -> Result<(), LogError> {
        let _ = fact;
        Ok(())
    }
}

/// The provider of a session's model, which answers when the session is resumed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedProvider {
    pub base_url: String,
    /// Its name in the configuration, if it is configured.
    pub name: Option<String>,
}

impl From<ProviderFacts> for ListedProvider {
    fn from(facts: ProviderFacts) -> Self {
        Self { base_url: facts.base_url, name: facts.name }
    }
}

/// A fact that lists show of a session.
#[derive(Debug, Clone)]
pub enum ListedFact {
    /// A name that the user chose.
    GivenName(String),
    /// A generated name.
    DerivedName(String),
    /// A prompt to derive a name from, if the session has none yet.
    FirstPrompt(String),
    Context(WorkingDirectory),
    /// A checkpoint.
    Checkpoint(Checkpoint),
    /// The provider of the session's model.
    ModelProvider(ListedProvider),
}

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("session {id} ends at event {actual}, not at {expected}: another process has written to it")]
    Moved { id: String, expected: u64, actual: u64 },
    #[error("writing the log of session {id}")]
    Write { id: String, source: std::io::Error },
}
