//! What the portal is given: agents, how they are configured here, and the logs of those that keep none.

use std::path::PathBuf;
use std::sync::Arc;

use hangar_protocol::{Event, LogPosition};
use hangar_runtimes::host::Host;
use hangar_runtimes::runtime::{Consent, Order, Resume, Runtime};
use hangar_runtimes::usage::Usage;
use hangar_store::{SessionId, StoreError};

/// The machine as the portal sees it.
pub trait House: Send + Sync {
    /// All agents, the default one first.
    fn runtimes(&self) -> &[Arc<dyn Runtime>];

    /// An order for a session, with what is configured for its agent.
    fn order(&self, wanted: Wanted) -> Result<Order, String>;

    /// Where an agent runs. A folder of another machine cannot be looked at here.
    fn host(&self, runtime: &str) -> Host;

    /// Begins the log of a session whose agent keeps none.
    fn begin(&self, id: &SessionId, order: &Order, runtime: &str) -> Result<Box<dyn Record>, RecordError>;

    /// Takes up the log of such a session again.
    fn take_up(&self, id: &SessionId) -> Result<Box<dyn Record>, RecordError>;

    /// How much our own agent would show a model, in tokens.
    fn context_limit(&self, model: &str) -> Option<u64>;

    /// Who worked on a session so far.
    fn past(&self, id: &SessionId) -> Result<Past, RecordError>;
}

/// What somebody wants a session to be.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub id: SessionId,
    pub runtime: String,
    pub model: Option<String>,
    pub effort: Option<String>,
    pub workspace: PathBuf,
    pub consent: Consent,
}

/// The log of a session, held by its one writer.
pub trait Record: Send {
    /// Writes an event, and says where it ends in the log. A passing one is not written.
    fn append(&mut self, event: &Event) -> Result<Option<LogPosition>, RecordError>;

    fn rename(&mut self, name: String) -> Result<(), RecordError>;

    /// Where the session has come to, for the agent that goes on with it.
    fn resume(&self, agent_session: Option<String>) -> Resume;

    /// Writes the closing event and gives it back.
    fn close(
        &mut self,
        model: Option<String>,
        usage: &Usage,
        error: Option<String>,
    ) -> Result<Event, RecordError>;
}

/// What the log of a session says about who worked on it.
#[derive(Debug, Clone)]
pub struct Past {
    pub runtime: String,
    pub agent_session: Option<String>,
    pub workspace: Option<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0}")]
    Write(String),
}
