//! Dependencies of the registry: runtimes, their configuration, and logs for agents that keep none.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use hangar_protocol::data::{CanvasOpened, CodeChanges, RunAssigned};
use hangar_protocol::{Event, LogPosition};
use hangar_runtimes::host::Host;
use hangar_runtimes::runtime::{AgentAnswer, AgentOrder, AgentSession, Consent, Resume, Runtime};
use hangar_runtimes::usage::AgentUsage;
use hangar_store::{SessionId, StoreError};
use jiff::Timestamp;

use crate::error::RegistryError;
use crate::hub::NewSession;
use crate::resource::SessionResource;

/// The machine as the registry sees it.
pub trait RegistryHost: AgentHost + SessionLogs + OtherProcesses {}

impl<T: AgentHost + SessionLogs + OtherProcesses> RegistryHost for T {}

/// The agents of the machine and their configuration.
pub trait AgentHost: Send + Sync {
    /// All runtimes and named agents, the default one first. They change with the configuration.
    fn runtimes(&self) -> Arc<[Arc<dyn Runtime>]>;

    /// An order for a session, with what is configured for its agent.
    fn order(&self, wanted: SessionRequest) -> Result<AgentOrder, String>;

    /// How the queue counts and places the sessions of an agent.
    fn placement(&self, runtime: &str) -> Placement;

    /// Provider account that an agent calls with a model, by which limits and breakers are counted.
    fn account(&self, runtime: &str, model: Option<&str>) -> String;

    /// Context limit of Hangar's own agent with a model, in tokens.
    fn context_limit(&self, model: &str) -> Option<u64>;
}

/// Logs of the sessions whose agents keep none.
pub trait SessionLogs: Send + Sync {
    /// Begins the log of a new session.
    fn begin(
        &self,
        id: &SessionId,
        order: &AgentOrder,
        runtime: &str,
    ) -> Result<Box<dyn LogWriter>, LogWriterError>;

    /// Opens the log of an earlier session again.
    fn take_up(&self, id: &SessionId) -> Result<Box<dyn LogWriter>, LogWriterError>;

    /// Agent and settings of an earlier session, of any agent.
    fn past(&self, id: &SessionId) -> Result<PastSession, LogWriterError>;
}

/// Other processes of the home that have sessions open.
pub trait OtherProcesses: Send + Sync {
    /// Sessions that other processes have open and let others join.
    fn open_elsewhere(&self) -> Vec<SessionId>;

    /// Joins a session where another process has it open. `None` if none has; the error is a sentence.
    fn join(&self, id: &SessionId) -> BoxFuture<'static, Result<Option<JoinedSession>, String>>;
}

/// Sessions of a fleet, which workers on other machines run. A hub with a fleet shows those sessions and no others; the store holds
/// copies of the logs of those that are joined.
pub trait FleetSessions: Send + Sync {
    /// Sessions that mention the words in their title, id or workspace, most recent activity first. No log is read.
    fn list(&self, words: Option<&str>) -> Vec<(Timestamp, SessionId)>;

    /// A session as lists show it. No log is read.
    fn look(&self, id: &SessionId) -> Option<SessionResource>;

    /// Copies the log of a session into the store and follows it, whether a worker has the session or not. `None` if the fleet has
    /// no such session.
    fn join(&self, id: &SessionId) -> BoxFuture<'static, Result<Option<JoinedSession>, RegistryError>>;

    /// Makes a new session known to the fleet. With a prompt it becomes an order. Returns once the servers have it; a session that
    /// the fleet has is left as it is.
    fn open(&self, id: &SessionId, new: NewFleetSession) -> BoxFuture<'static, Result<(), RegistryError>>;

    /// Gives a command to the worker that has the session. A message to a session that nobody has becomes an order. Returns once the
    /// worker or the servers have accepted it.
    fn tell(&self, id: &SessionId, what: FleetCommand) -> BoxFuture<'static, Result<(), RegistryError>>;
}

/// A session that a worker is to open.
#[derive(Debug, Clone)]
pub struct NewFleetSession {
    pub session: NewSession,
    /// The task of a run that it works for.
    pub run: Option<RunAssigned>,
}

/// A command to a session of a fleet.
#[derive(Debug, Clone)]
pub enum FleetCommand {
    /// A message with an id; repeated, it is the same message.
    Send {
        id: String,
        text: String,
    },
    Steer {
        text: String,
    },
    Abort,
    Answer {
        request_id: String,
        answer: AgentAnswer,
    },
}

/// How the queue counts and places the sessions of an agent, beside its runtime and account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// Host of the agent; of a pool, the first. A directory on another machine cannot be checked here.
    pub host: Host,
    /// Hosts of a pool. The one with the least work is used.
    pub pool: Vec<String>,
    pub labels: BTreeSet<String>,
}

/// A session of another process. Stopping it leaves it: it goes on where it runs.
pub struct JoinedSession {
    pub agent: AgentSession,
    /// Whether a turn is under way.
    pub working: bool,
    /// Events of the questions that wait for an answer.
    pub questions: Vec<Event>,
    /// Its open canvases.
    pub canvases: Vec<CanvasOpened>,
}

/// A session that is about to be opened, before what is configured for its agent is added.
#[derive(Debug, Clone)]
pub struct SessionRequest {
    pub id: SessionId,
    /// Name of the runtime or of the named agent.
    pub runtime: String,
    pub model: Option<String>,
    pub effort: Option<String>,
    pub workspace: PathBuf,
    pub consent: Consent,
    /// Host that was chosen of a pool.
    pub host: Option<String>,
}

/// The one writer of the log of a session.
pub trait LogWriter: Send {
    /// Writes an event and returns its end in the log. An ephemeral event is not written.
    fn append(&mut self, event: &Event) -> Result<Option<LogPosition>, LogWriterError>;

    fn rename(&mut self, name: String) -> Result<(), LogWriterError>;

    /// Earlier state of the session, for the agent that resumes it.
    fn resume(&self, agent_session: Option<String>) -> Resume;

    /// Writes the closing event and returns it. `changes` are those since the session was opened here.
    fn close(
        &mut self,
        model: Option<String>,
        usage: &AgentUsage,
        changes: CodeChanges,
        error: Option<String>,
    ) -> Result<Event, LogWriterError>;
}

/// Agent and settings of a session, from its log.
#[derive(Debug, Clone)]
pub struct PastSession {
    pub runtime: String,
    /// Named agent that it was opened with.
    pub agent: Option<String>,
    /// Host by ssh that it was opened on.
    pub host: Option<String>,
    pub agent_session: Option<String>,
    pub workspace: Option<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub enum LogWriterError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0}")]
    Write(String),
}
