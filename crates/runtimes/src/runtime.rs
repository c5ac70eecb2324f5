//! The contract of all agents: open a session, receive its events, send it commands, stop it. The abilities of an agent
//! are data in its [`Capabilities`]; only an adapter knows which agent it is.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hangar_git::Snapshot;
pub use hangar_git::{FileContent, FileDifference, TreeFollower};
use hangar_protocol::data::{CodeChanges, ElicitationAction};
use hangar_protocol::{Body, Event, EventId};
use serde::Serialize;
use serde_with::skip_serializing_none;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::capabilities::Capabilities;
use crate::host::Host;
use crate::options::AgentOptions;
use crate::outcome::{TurnFailure, TurnOutcome};
use crate::usage::AgentUsage;

/// Capacity of a filter's queue of news; the session has to wait beyond it.
const FILTER_QUEUE: usize = 16;

/// An agent that sessions can be opened with. One instance serves any number of them at once.
pub trait Runtime: Send + Sync {
    fn card(&self) -> &AgentCard;

    /// Checks that the agent is installed and logged in, without a model call.
    fn preflight(&self) -> BoxFuture<'static, Preflight>;

    /// Models that the agent offers. `None` if they cannot be listed: any name may work then.
    fn models(&self, lookup: Lookup) -> BoxFuture<'static, Option<Vec<OfferedModel>>>;

    /// Opens a session. Nothing is said to a model before the first prompt.
    fn open(&self, order: AgentOrder) -> BoxFuture<'static, Result<AgentSession, TurnFailure>>;

    /// Makes an order one for a rehearsal: the agent asks the scripted model and leaves the user's own state alone.
    fn rehearse(&self, order: &mut AgentOrder, stage: &RehearsalStage);
}

/// Freshness that a list must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// A cached list is accepted while it is fresh.
    Cached,
    /// The list is fetched.
    Fresh,
}

/// Environment of a rehearsal: a scratch home and a scripted model.
#[derive(Debug, Clone)]
pub struct RehearsalStage {
    /// The address of a model that follows scripts, without a path.
    pub model_url: String,
    /// A directory that agents may take for the user's home.
    pub home: PathBuf,
}

/// Identity and claimed capabilities of an agent.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentCard {
    /// The name in configuration and on the command line.
    pub name: Cow<'static, str>,
    pub label: Cow<'static, str>,
    /// Runtime that a named agent is based on; absent for a runtime itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Cow<'static, str>>,
    pub capabilities: Capabilities,
    /// Installation command or hint.
    pub install: Cow<'static, str>,
    /// Shell tool of the agent's model, where it is known.
    pub shell_tool: Option<ShellTool>,
}

impl AgentCard {
    /// Name of the runtime: of a named agent, that of the runtime that it is based on.
    pub fn base(&self) -> &str {
        self.runtime.as_deref().unwrap_or(&self.name)
    }

    /// Name of the agent, if it is a named one.
    pub fn agent(&self) -> Option<&str> {
        self.runtime.is_some().then_some(&*self.name)
    }
}

/// The tool that runs commands, as the scripted model has to call it.
#[derive(Debug, Clone, Serialize)]
pub struct ShellTool {
    pub name: Cow<'static, str>,
    pub argument: Cow<'static, str>,
}

impl ShellTool {
    pub const fn new(name: &'static str, argument: &'static str) -> Self {
        Self { name: Cow::Borrowed(name), argument: Cow::Borrowed(argument) }
    }

    /// A script in which the model runs a command.
    pub fn script(&self, command: &str) -> String {
        let arguments = serde_json::json!({ &*self.argument: command, "description": "a command" });
        format!("TOOL:{}:{arguments}", self.name)
    }
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OfferedModel {
    pub id: String,
    pub name: Option<String>,
    pub provider: Option<String>,
    /// Premium requests that one request counts for at GitHub.
    pub multiplier: Option<f64>,
}

/// Result of a preflight check.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preflight {
    /// Path of its program.
    pub program: Option<PathBuf>,
    /// Host that was checked, if it is another machine.
    pub host: Option<String>,
    pub version: Option<String>,
    /// Capabilities of the installed version, where they are fewer than claimed.
    pub capabilities: Option<Capabilities>,
    /// Hash of its help.
    pub help_hash: Option<String>,
    /// The levels of effort that its help names.
    pub effort_levels: Option<Vec<String>>,
    /// Whether a substitute is used, which may lack some capabilities.
    pub best_effort: bool,
    pub auth: LoginState,
    /// Problems that will or may occur; one sentence each, with advice.
    pub problems: Vec<String>,
    pub warnings: Vec<String>,
}

impl Preflight {
    pub fn is_ready(&self) -> bool {
        self.problems.is_empty()
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state", content = "source")]
pub enum LoginState {
    /// By what: a variable, a file, another program.
    Found(String),
    Missing,
    /// It has a login that cannot be checked.
    #[default]
    Unknown,
}

/// Order for a session: workspace, model, tools and limits.
#[derive(Debug, Clone)]
pub struct AgentOrder {
    /// Our name for the session. Agents that take one from outside get it.
    pub session_id: String,
    /// Chosen name of a new session.
    pub name: Option<String>,
    pub workspace: PathBuf,
    pub model: Option<String>,
    pub effort: Option<String>,
    /// Models of a named agent that are tried in turn when one is overloaded or its quota is used up.
    pub fallback_models: Vec<String>,
    pub tools: ToolPolicy,
    pub options: AgentOptions,
    /// Whether commands run in a sandbox; `None` leaves it to the configuration. Only Hangar's own agent has one.
    pub sandbox: Option<bool>,
    pub consent: Consent,
    /// Whether a person prompts the agent turn by turn, so that it stops after each.
    pub is_attended: bool,
    /// An MCP configuration: JSON, or `@` and a path.
    pub mcp_config: Option<String>,
    /// Instructions of the host, before the prompt.
    pub system: Option<String>,
    /// For a session that has been going on before.
    pub resume: Option<Resume>,
    /// Events that follow the first event of the session.
    pub opening: Vec<Body>,
    pub limits: TurnLimits,
    pub add_dirs: Vec<PathBuf>,
    /// Files that go with the first prompt.
    pub attachments: Vec<PathBuf>,
    /// Arguments for this agent alone, after all others.
    pub extra: Vec<String>,
    /// Names of variables whose values are secrets.
    pub secret_variables: Vec<String>,
    /// Variables beside those that we have ourselves.
    pub env: Vec<(String, String)>,
    pub host: Host,
    /// A directory of ours beside the session, for files that an agent writes for us.
    pub scratch: Option<PathBuf>,
}

/// Earlier state of a session that is resumed.
#[derive(Debug, Clone, Default)]
pub struct Resume {
    /// Name of the session in the agent. An agent that was ended before its first output has none.
    pub agent_session: Option<String>,
    pub last_event: Option<EventId>,
    pub events: u64,
    /// Model of the earlier turns, which stays in use unless another is requested: agents that run one process per turn
    /// forget it.
    pub model: Option<String>,
    pub effort: Option<String>,
    /// Usage so far, as far as it was recorded.
    pub used: AgentUsage,
}

impl AgentOrder {
    pub fn new(session_id: String, workspace: PathBuf) -> Self {
        Self {
            session_id,
            name: None,
            workspace,
            model: None,
            effort: None,
            fallback_models: Vec::new(),
            tools: ToolPolicy::default(),
            options: AgentOptions::default(),
            sandbox: None,
            consent: Consent::default(),
            is_attended: false,
            mcp_config: None,
            system: None,
            resume: None,
            opening: Vec::new(),
            limits: TurnLimits::default(),
            add_dirs: Vec::new(),
            attachments: Vec::new(),
            extra: Vec::new(),
            secret_variables: Vec::new(),
            env: Vec::new(),
            host: Host::Local,
            scratch: None,
        }
    }
}

/// Decision on calls that no rule covers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Consent {
    /// It is allowed.
    #[default]
    Given,
    /// Allowed within the workspace: the individual actions were not approved. Agents that confine their commands do
    /// so; for others it means the same as given.
    Confined,
    /// A person is asked, by an agent that can.
    Asked,
}

/// Rules about tools. Without a rule all are allowed: an agent in the background has nobody to ask.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolPolicy {
    pub allow: Vec<String>,
    pub deny: Vec<String>,
    pub available: Vec<String>,
    pub excluded: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TurnLimits {
    /// For one turn.
    pub turn: Option<Duration>,
    /// Without a word from the agent, while none of its tools runs and no person is asked.
    pub stall: Option<Duration>,
    /// For one command or other tool call.
    pub tool: Option<Duration>,
    /// Without a new commit, change or call.
    pub progress: Option<Duration>,
    /// Whether a turn without progress is ended. It is told in any case.
    pub stop_without_progress: bool,
    /// Until its first word, of an agent that speaks before its model does.
    pub startup: Option<Duration>,
    /// Maximum number of autonomous steps within a turn.
    pub steps: Option<u32>,
    pub budget_usd: Option<f64>,
}

impl Default for TurnLimits {
    fn default() -> Self {
        Self {
            turn: Some(Duration::from_secs(3600)),
            stall: Some(Duration::from_secs(300)),
            tool: Some(Duration::from_secs(1800)),
            progress: Some(Duration::from_secs(900)),
            stop_without_progress: false,
            // Some need twenty seconds on a busy machine, and MCP servers of theirs may be slow.
            startup: Some(Duration::from_secs(120)),
            steps: None,
            budget_usd: None,
        }
    }
}

/// Open session. Dropping it ends the agent.
pub struct AgentSession {
    pub commands: mpsc::Sender<SessionCommand>,
    pub news: mpsc::Receiver<SessionNews>,
    owner: AbortOnDrop,
    /// The working tree when the session was opened.
    pub(crate) tree: Option<Arc<Snapshot>>,
}

/// Aborts the task that owns a session when dropped.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Time that the processes of a killed session get to be gone.
const KILLED: Duration = Duration::from_secs(2);

/// Filter on the news of a session.
pub trait NewsFilter: Send + 'static {
    /// Messages that replace the given one, in order.
    fn pass(&mut self, news: SessionNews) -> Vec<SessionNews>;
}

impl AgentSession {
    pub fn new(
        commands: mpsc::Sender<SessionCommand>,
        news: mpsc::Receiver<SessionNews>,
        owner: AbortHandle,
    ) -> Self {
        Self { commands, news, owner: AbortOnDrop(owner), tree: None }
    }

    /// The same session, with the working tree that it was opened on.
    #[must_use]
    pub fn on(self, tree: Option<Snapshot>) -> Self {
        Self { tree: tree.map(Arc::new), ..self }
    }

    /// A session that stands for another one, on the same working tree.
    pub(crate) fn relayed(
        commands: mpsc::Sender<SessionCommand>,
        news: mpsc::Receiver<SessionNews>,
        owner: AbortHandle,
        tree: Option<Arc<Snapshot>>,
    ) -> Self {
        Self { tree, ..Self::new(commands, news, owner) }
    }

    /// Code changes in the working tree since the session was opened. `None` where they are unknown: outside a
    /// repository, on another machine, and for an agent that counts them itself.
    pub async fn code_changes(&self) -> Option<CodeChanges> {
        let changes = self.tree.as_ref()?.changes().await.ok()?;
        Some(CodeChanges {
            lines_added: changes.lines_added,
            lines_removed: changes.lines_removed,
            files_modified: changes.files.iter().map(|file| file.display().to_string()).collect(),
        })
    }

    /// Follows the working tree from when the session was opened. `None` where its changes are not known.
    pub fn follow_tree(&self) -> Option<TreeFollower> {
        self.tree.clone().map(TreeFollower::new)
    }

    /// Ends the session at once, with its processes. What it would still have said is dropped.
    pub async fn kill(self) {
        let Self { commands, mut news, owner, tree: _ } = self;
        drop((owner, commands));
        // The task drops its end of the news together with the agent's processes.
        let ended = async { while news.recv().await.is_some() {} };
        let _ = tokio::time::timeout(KILLED, ended).await;
    }

    /// The same session with its news filtered.
    pub fn filtered(self, mut filter: impl NewsFilter) -> Self {
        let Self { commands, mut news, owner, tree } = self;
        let (outbox, filtered) = mpsc::channel(FILTER_QUEUE);
        let relay = tokio::spawn(FutureExt::boxed(async move {
            // The session ends with the relay, which is the one that hears it.
            let _owner = owner;
            while let Some(said) = news.recv().await {
                for passed in filter.pass(said) {
                    if outbox.send(passed).await.is_err() {
                        return;
                    }
                }
            }
        }));
        Self::relayed(commands, filtered, relay.abort_handle(), tree)
    }
}

#[derive(Debug)]
pub enum SessionCommand {
    /// Another turn. Waits while one is under way.
    Send(String),
    /// Ends the current turn.
    Abort,
    /// Text for the current turn, where the agent accepts input while it works; another turn otherwise.
    Steer(String),
    /// Answers a question of the agent. An unknown question is ignored.
    Answer { request_id: String, answer: AgentAnswer },
    /// For agents that keep the log of the session: what it is called from now on.
    Rename(String),
    /// Ends the session and its current turn.
    Stop,
}

/// Answer to a question of an agent.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentAnswer {
    Permission(PermissionReply),
    Question(String),
    Elicitation { action: ElicitationAction, content: Option<serde_json::Value> },
    Plan { approved: bool, feedback: Option<String> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PermissionReply {
    Once,
    /// Also for what is like it, as long as the session lives. An agent that knows no such thing takes it for once.
    ForSession,
    Denied {
        feedback: Option<String>,
    },
}

impl PermissionReply {
    pub fn allows(&self) -> bool {
        !matches!(self, PermissionReply::Denied { .. })
    }
}

/// The end of a turn, with what it showed of the agent.
#[derive(Debug)]
pub struct TurnEnded {
    pub outcome: TurnOutcome,
    /// Model that answered, where the agent reports it.
    pub model: Option<String>,
    /// Types of output that the adapter does not know.
    pub unknown: BTreeSet<String>,
}

#[derive(Debug)]
pub enum SessionNews {
    Event(Box<Event>),
    TurnEnded(Box<TurnEnded>),
}
