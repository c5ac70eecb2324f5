//! Where a session's events are kept.

use hangar_protocol::Event;

/// Number of events in a log; the position at which the next one goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Seq(pub u64);

/// The one writer of one session's log. Holding it is holding the session's lock.
pub trait SessionLog: Send {
    /// Writes events behind `expected`, all or none of them, and returns the new end. After this returns, a killed
    /// process loses none of them.
    fn append(&mut self, expected: Seq, events: &[Event]) -> Result<Seq, LogError>;

    /// Makes everything appended survive a power cut too.
    fn sync(&mut self) -> Result<(), LogError>;
}

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("session {id} ends at event {actual}, not at {expected}: another writer was here")]
    Moved { id: String, expected: u64, actual: u64 },
    #[error("writing the log of session {id}")]
    Write { id: String, source: std::io::Error },
}
