//! Errors of the registry: reasons why it refuses a request.

use hangar_runtimes::outcome::TurnFailure;
use hangar_store::{SessionId, StoreError};

use crate::host::LogWriterError;

#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    #[error("there is no session {0}")]
    NoSession(String),
    #[error("there is no agent `{0}`")]
    NoRuntime(String),
    #[error("there is no run {0}")]
    NoRun(String),
    #[error("there is no job `{0}`")]
    NoJob(String),
    #[error("there is no question {0}")]
    NoApproval(String),
    #[error("question {0} has been answered already")]
    AlreadyAnswered(String),
    #[error("another process works on session {id}{}; wait until it is done", Holder(*pid))]
    BusyElsewhere { id: SessionId, pid: Option<u32> },
    #[error("session {0} is open in a terminal; close it there")]
    OpenElsewhere(SessionId),
    #[error("session {id} is open in a terminal that cannot be joined: {reason}")]
    Unreachable { id: SessionId, reason: String },
    #[error("session {0} has {most} prompts waiting; send more when some are done", most = crate::live::MOST_PROMPTS)]
    QueueFull(SessionId),
    #[error("session {0} is closed; send it a message to open it")]
    NotOpen(SessionId),
    #[error("session {0} is busy with a task; wait until that has ended or stop it")]
    Leased(SessionId),
    #[error("agent `{0}` cannot resume a closed session; open a new one")]
    NotResumable(String),
    #[error("agent `{0}` cannot ask before it acts; open the session with the policy allow-all")]
    CannotAsk(String),
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    Unprocessable(String),
    #[error("the session could not be opened: {}", .0.message)]
    NotOpened(Box<TurnFailure>),
    #[error("the server is shutting down, so no session can be opened")]
    Stopping,
    /// The servers of the fleet did not take it.
    #[error("{0}")]
    Fleet(String),
    #[error("no jobs are installed")]
    NoEntry,
    #[error("run {0} has ended")]
    RunEnded(String),
    #[error("run {0} is still running; stop it first, or wait for its end")]
    RunUnderWay(String),
    #[error("{0}")]
    Store(String),
}

struct Holder(Option<u32>);

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.map_or(Ok(()), |pid| write!(f, " (process {pid})"))
    }
}

impl From<StoreError> for RegistryError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::InUse { id, pid } => RegistryError::BusyElsewhere { id, pid },
            StoreError::NotFound { id } => RegistryError::NoSession(id.to_string()),
            StoreError::Exists { .. } => RegistryError::Invalid(error.to_string()),
            StoreError::Io { ref source, .. } => RegistryError::Store(format!("{error}: {source}")),
        }
    }
}

impl From<LogWriterError> for RegistryError {
    fn from(error: LogWriterError) -> Self {
        match error {
            LogWriterError::Store(error) => error.into(),
            LogWriterError::Write(message) => RegistryError::Store(message),
        }
    }
}
