//! Where a session's events are kept.

use futures_util::future::BoxFuture;
use hangar_protocol::data::WorkingDirectory;
use hangar_protocol::{Event, LogPosition};

use crate::session::Checkpoint;

/// Number of events in a log; the position at which the next one goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Seq(pub u64);

/// The one writer of one session's log. Holding it is holding the session's lock.
pub trait SessionLog: Send {
    /// Writes events behind `expected`, all or none of them, and returns the new end. After this returns, a killed
    /// process loses none of them.
    fn append(&mut self, expected: Seq, events: &[Event]) -> Result<Seq, LogError>;

    /// Where the events of the last append end in the log, in order. Empty for a log that does not count bytes.
    fn appended(&self) -> &[LogPosition] {
        &[]
    }

    /// Makes everything appended survive a power cut too.
    fn sync(&mut self) -> Result<(), LogError>;

    /// What has been appended and is still on its way to where the log is kept. `None` where nothing is: there an append
    /// is kept when it returns. The session takes nothing more before this is done, so at most the events of one step
    /// are on their way.
    fn settle(&mut self) -> Option<BoxFuture<'static, Result<(), LogError>>> {
        None
    }

    /// Nothing is under way: another process may take the session over. The next append takes it back, if it can.
    fn rest(&mut self) {}

    /// The plan that is kept beside the log, if there is one.
    fn plan(&mut self) -> Option<String> {
        None
    }

    /// Keeps something that lists show beside the log. A log that is in no list need not.
    fn note(&mut self, fact: Fact) -> Result<(), LogError> {
        let _ = fact;
        Ok(())
    }
}

/// What lists show of a session.
#[derive(Debug, Clone)]
pub enum Fact {
    /// The name that a person chose.
    GivenName(String),
    /// A name that was made for the session.
    DerivedName(String),
    /// A prompt to make a name from, where the session has none yet.
    FirstPrompt(String),
    Context(WorkingDirectory),
    /// A summary that was made of it.
    Checkpoint(Checkpoint),
}

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("session {id} ends at event {actual}, not at {expected}: another writer was here")]
    Moved { id: String, expected: u64, actual: u64 },
    #[error("writing the log of session {id}")]
    Write { id: String, source: std::io::Error },
}
