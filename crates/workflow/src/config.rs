//! Settings of a workflow, with their defaults.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::contest::JudgeConfig;
use crate::dispatch::DispatchRule;
use crate::reactions::PullConfig;
use crate::template::Language;

pub const POLL_INTERVAL: Duration = Duration::from_secs(30);
pub const HOOK_TIMEOUT: Duration = Duration::from_secs(60);
pub const MAX_AGENTS: u32 = 10;
pub const MAX_TURNS: u32 = 20;
pub const TURN_TIMEOUT: Duration = Duration::from_secs(3600);
pub const READ_TIMEOUT: Duration = Duration::from_secs(5);
pub const STALL_TIMEOUT: Duration = Duration::from_secs(300);
pub const MAX_RETRY_BACKOFF: Duration = Duration::from_secs(300);
pub const PORT: u16 = 7678;
/// Label of an issue that waits for a person.
pub const ESCALATION_LABEL: &str = "needs-human";
/// Default name of the branch of an issue.
pub const BRANCH: &str = "hangar/{{ issue.identifier }}";

#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    pub tracker: TrackerConfig,
    pub poll_interval: Duration,
    pub workspace: WorkspaceConfig,
    pub hooks: WorkflowHooks,
    pub agent: WorkflowAgent,
    pub pulls: PullConfig,
    /// Rules that choose the agent of an issue, the first that fits.
    pub dispatch: Vec<DispatchRule>,
    /// Judge of the candidates of a rule.
    pub judge: JudgeConfig,
    pub self_review: SelfReview,
    pub server: StateServerConfig,
    pub logging: Logging,
    pub worker: WorkerConfig,
    /// Dollars per million tokens, by kind of agent.
    pub token_rates: BTreeMap<String, TokenRates>,
    /// Path of Sortie's database. Accepted without effect: records are in Hangar's home.
    pub db_path: Option<PathBuf>,
    /// Language of the prompt, where the file says so.
    pub template: Option<Language>,
    /// Blocks of adapters, by name.
    pub extensions: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct TrackerConfig {
    pub kind: String,
    pub endpoint: String,
    pub api_key: WorkflowSecret,
    /// GitHub App that is used instead of a key.
    pub app: Option<AppConfig>,
    pub project: String,
    pub query_filter: String,
    pub active_states: Vec<String>,
    pub terminal_states: Vec<String>,
    pub handoff_state: Option<String>,
    pub in_progress_state: Option<String>,
    /// Labels that an issue must have, in lower case.
    pub required_labels: Vec<String>,
    /// Label of an issue that is parked until a person acts.
    pub escalation_label: String,
    pub comments: Comments,
    /// Settings of the tracker's own block, `tracker.provider` and the block with its name.
    pub settings: Map<String, Value>,
}

impl TrackerConfig {
    pub fn is_active(&self, state: &str) -> bool {
        holds(&self.active_states, state)
    }

    pub fn is_terminal(&self, state: &str) -> bool {
        holds(&self.terminal_states, state)
    }
}

fn holds(states: &[String], state: &str) -> bool {
    let state = state.to_lowercase();
    states.iter().any(|known| known.to_lowercase() == state)
}

/// A secret: it is not printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct WorkflowSecret(pub String);

impl fmt::Debug for WorkflowSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "WorkflowSecret(empty)" } else { "WorkflowSecret(…)" })
    }
}

/// A GitHub App. Its tokens last an hour and are made with its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppConfig {
    /// Number or client id of the app.
    pub id: String,
    /// Number of the installation. That of the repository if absent.
    pub installation: Option<String>,
    pub private_key: AppKey,
}

/// A private key in PEM form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppKey {
    Text(WorkflowSecret),
    File(PathBuf),
}

/// Events of an issue that are also written as comments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Comments {
    pub on_dispatch: bool,
    pub on_completion: bool,
    pub on_failure: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct WorkspaceConfig {
    pub root: PathBuf,
    /// Repository that workspaces are worktrees of: a URL or a path. Without one, a workspace is a plain directory.
    pub repository: Option<String>,
    /// Branch or commit that new branches begin at. The default branch of the repository if absent.
    pub base: Option<String>,
    /// Template of the branch of an issue.
    pub branch: String,
    /// Most workspaces. The least recently used idle one goes first.
    pub max_workspaces: Option<u32>,
    /// Most bytes of all workspaces together.
    pub quota_bytes: Option<u64>,
    /// How long a workspace stays that nobody uses.
    pub retention: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct WorkflowHooks {
    pub after_create: Option<String>,
    pub before_run: Option<String>,
    pub after_run: Option<String>,
    pub before_remove: Option<String>,
    pub timeout: Duration,
}

#[derive(Debug, Clone, PartialEq)]
pub struct WorkflowAgent {
    pub kind: String,
    pub command: Option<String>,
    pub max_concurrent: u32,
    /// Limits by state, in lower case.
    pub max_concurrent_by_state: BTreeMap<String, u32>,
    pub max_turns: u32,
    /// Sessions of an issue that may end before it is parked. `None` is unlimited.
    pub max_sessions: Option<u32>,
    pub turn_timeout: Duration,
    pub read_timeout: Duration,
    /// Longest silence of an agent. `None` is unlimited.
    pub stall_timeout: Option<Duration>,
    pub max_retry_backoff: Duration,
}

impl WorkflowAgent {
    /// Name of the runtime that the kind of agent stands for.
    pub fn runtime(&self) -> &str {
        runtime_of(&self.kind)
    }
}

/// Name of the runtime that a kind of agent stands for.
pub fn runtime_of(kind: &str) -> &str {
    match kind {
        "claude-code" => "claude",
        "copilot-cli" => "copilot",
        "codex-cli" => "codex",
        "hangar" => "native",
        other => other,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Escalation {
    Label,
    Comment,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SelfReview {
    pub enabled: bool,
    pub max_iterations: u32,
    pub verification_commands: Vec<String>,
    pub verification_timeout: Duration,
    pub max_diff_bytes: u64,
    pub reviewer: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StateServerConfig {
    /// `None` serves nothing.
    pub port: Option<u16>,
    pub host: IpAddr,
    /// Key of the signatures of webhooks. Without one they are refused.
    pub webhook_secret: WorkflowSecret,
    /// Whether the workflow names the port.
    pub is_named: bool,
}

impl Default for StateServerConfig {
    fn default() -> Self {
        let host = IpAddr::V4(Ipv4Addr::LOCALHOST);
        Self { port: None, host, webhook_secret: WorkflowSecret::default(), is_named: false }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Logging {
    pub level: String,
    pub format: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct WorkerConfig {
    pub ssh_hosts: Vec<String>,
    pub max_concurrent_per_host: Option<u32>,
    pub host_key_checking: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TokenRates {
    pub input_per_mtok: f64,
    pub output_per_mtok: f64,
    pub cache_read_per_mtok: f64,
}
