//! The command line. Flags keep the names and forms of Copilot CLI, so that programs that drive it can drive Hangar.

use std::fmt;
use std::num::ParseIntError;
use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::PossibleValuesParser;
use clap::{ArgAction, Args, CommandFactory, Parser, Subcommand, ValueEnum};
use hangar_simulators::Profile;

use crate::portal::args::ListenArgs;

const EXIT_CODES: &str = "\
Exit codes:
  0  the run ended: with an answer, by a signal, at the autopilot limit, or with tools refused
  1  no run or no answer: bad usage, no provider or model, unknown session, a model that kept failing, or a budget
     that is used up
  2  hangar doctor found a problem, or hangar runtimes probe an unexpected result

Environment: HANGAR_HOME, COPILOT_MODEL, COPILOT_PROVIDER_BASE_URL, COPILOT_PROVIDER_TYPE, COPILOT_PROVIDER_API_KEY,
COPILOT_OFFLINE, COPILOT_ALLOW_ALL and the other provider variables of Copilot CLI.";

#[derive(Debug, Parser)]
#[command(
    name = "hangar",
    about = "A coding agent for any model. Alone it opens a session in the terminal; -p or standard input give it one prompt.",
    after_help = EXIT_CODES,
    disable_version_flag = true,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Subcommands>,

    /// Show the version
    #[arg(short = 'v', short_alias = 'V', long)]
    pub(crate) version: bool,

    #[command(flatten)]
    pub(crate) run: RunArgs,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// How SDKs start the program as their server. They define the flags.
#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    /// Serve the Copilot SDKs instead of running a prompt
    #[arg(long, visible_alias = "headless", help_heading = "Server")]
    pub(crate) server: bool,
    /// Open the terminal and serve the Copilot SDKs beside it
    #[arg(long, help_heading = "Server", conflicts_with_all = ["server", "prompt"])]
    pub(crate) ui_server: bool,
    /// Serve one client on standard input and output
    #[arg(long, help_heading = "Server", conflicts_with = "port")]
    pub(crate) stdio: bool,
    /// Serve clients on this port of 127.0.0.1; 0 picks a free one
    #[arg(long, value_name = "PORT", help_heading = "Server")]
    pub(crate) port: Option<u16>,
    #[arg(long, hide = true)]
    pub(crate) host: Option<String>,
    /// Serve any client that can reach the port, without a token
    #[arg(long, help_heading = "Server")]
    pub(crate) no_token: bool,
    /// Environment variable that holds the GitHub token
    #[arg(long, value_name = "NAME", help_heading = "Server")]
    pub(crate) auth_token_env: Option<String>,
    /// Use only the login of --auth-token-env and those that clients provide
    #[arg(long, help_heading = "Server")]
    pub(crate) no_auto_login: bool,
    /// Close sessions after this many seconds without activity; they can be resumed
    #[arg(long, value_name = "SECONDS", help_heading = "Server")]
    pub(crate) session_idle_timeout: Option<u64>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Subcommands {
    /// List the models that the configured providers offer
    Models(ModelsArgs),
    /// Serve the scripted model, or simulated vendors, to other programs
    Model {
        #[command(subcommand)]
        command: ModelCommand,
    },
    /// List, show, export, fork, rewind and delete saved sessions
    Sessions {
        #[command(subcommand)]
        command: Option<SessionsCommand>,
    },
    /// Show and steer a session that runs elsewhere: in another terminal or in the portal
    Attach {
        /// Id of the session, the start of one, or its name
        session: String,
    },
    /// List and change the configured MCP servers
    Mcp {
        #[command(subcommand)]
        command: crate::commands::mcp::McpSubcommand,
    },
    /// Run a prompt with any installed agent, such as Claude Code or Codex
    #[command(after_help = EXIT_CODES)]
    Run(Box<crate::runtimes::args::RunWithArgs>),
    /// List the agents that `run` can use, or test what they can do
    Runtimes(crate::runtimes::args::RuntimesArgs),
    /// Run jobs: trees of tasks for agents, defined in a file
    Job {
        #[command(subcommand)]
        command: crate::jobs::args::JobCommand,
    },
    /// Show the queue: what runs, what waits and why
    Queue(crate::queue::QueueArgs),
    /// Start no more queued work; running work goes on
    Pause,
    /// Continue the queue after `pause` or `drain`, and try held accounts again
    Resume,
    /// Start no more queued work, and wait until nothing runs
    Drain,
    /// Stop all that runs, in all processes of the home folder
    StopAll,
    /// Serve the portal: sessions, jobs and agents in a browser, and an HTTP API
    Up(crate::portal::args::UpArgs),
    /// Check models, credentials, the home folder and the tools of this machine
    Doctor(DoctorArgs),
    /// List the features and whether they are on
    Features(FeaturesArgs),
    /// Print the completion script of a shell
    Completions { shell: crate::commands::shell_files::Shell },
    /// Write the man pages into a directory
    Man { directory: PathBuf },
    /// Show the version
    Version,
}

#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    /// List the models of this agent instead of those of the providers
    #[arg(long, value_name = "NAME")]
    pub(crate) runtime: Option<String>,
    /// Ask the providers again instead of using the cache
    #[arg(long)]
    pub(crate) refresh: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FeaturesArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Ask each provider one tiny question with a tool, and report what works; costs a few hundred tokens each
    #[arg(long)]
    pub(crate) probe: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) portal: ListenArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// Serve the scripted model on loopback as OpenAI chat completions, OpenAI responses and Anthropic messages, or simulate
    /// vendors strictly
    Serve(ModelServeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ModelServeArgs {
    /// Port on 127.0.0.1; 0 picks a free one
    #[arg(long, default_value_t = 0)]
    pub(crate) port: u16,
    /// Answer every request from this script instead of from the markers in its prompt
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// Answer to a prompt without markers
    #[arg(long, default_value = "pong")]
    pub(crate) default: String,
    /// Append one JSON line per request
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// Simulate this vendor: refuse what it refuses, cache and count as it does; repeat it to serve several, each below its name
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(vendors()))]
    pub(crate) vendor: Vec<String>,
    /// Turns of the vendor and expectations of requests, as TOML
    #[arg(long, value_name = "FILE", requires = "vendor")]
    pub(crate) scenario: Option<PathBuf>,
    /// Record fields that the vendor does not know instead of refusing them
    #[arg(long, requires = "vendor")]
    pub(crate) lenient: bool,
}

fn vendors() -> Vec<&'static str> {
    Profile::all().iter().map(|profile| profile.name).collect()
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List sessions, newest first
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one session's transcript
    Show { session: String },
    /// Write a session's transcript as Markdown
    Export {
        session: String,
        /// File to write to; standard output by default
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Start a new session with the history of another
    Fork {
        session: String,
        /// First event to leave out; `sessions rewind` lists the prompts
        #[arg(long, value_name = "EVENT")]
        before: Option<String>,
        /// Name of the new session
        #[arg(long)]
        name: Option<String>,
    },
    /// Rewind a session to before a prompt; without --to, list the prompts
    Rewind {
        session: String,
        /// Prompt to go back to, by the id of its event
        #[arg(long, value_name = "EVENT")]
        to: Option<String>,
        /// Also restore files that tools have changed since, if the session saved them
        #[arg(long, requires = "to")]
        files: bool,
    },
    /// Delete a session and its files
    Delete { session: String },
}

#[derive(Debug, Default, Args)]
pub(crate) struct RunArgs {
    /// Run this prompt and exit
    #[arg(short, long, value_name = "TEXT", help_heading = "Prompt", allow_hyphen_values = true)]
    pub(crate) prompt: Option<String>,
    /// Open the terminal and begin with this prompt; without a terminal the same as -p
    #[arg(
        short,
        long,
        value_name = "TEXT",
        help_heading = "Prompt",
        conflicts_with = "prompt",
        allow_hyphen_values = true
    )]
    pub(crate) interactive: Option<String>,
    /// Attach a file (image or text)
    #[arg(long, value_name = "PATH", help_heading = "Prompt")]
    pub(crate) attachment: Vec<PathBuf>,
    /// Work in this directory
    #[arg(short = 'C', value_name = "DIR", help_heading = "Prompt")]
    pub(crate) directory: Option<PathBuf>,
    /// Do not load AGENTS.md and other instruction files
    #[arg(long, help_heading = "Prompt")]
    pub(crate) no_custom_instructions: bool,

    /// Print text, or one JSON event per line
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t, help_heading = "Output")]
    pub(crate) output_format: OutputFormat,
    /// Print only the answer
    #[arg(short, long, help_heading = "Output")]
    pub(crate) silent: bool,
    /// Stream answers as they are generated
    #[arg(long, value_name = "MODE", value_enum, default_value_t, help_heading = "Output")]
    pub(crate) stream: Switch,
    /// With json: also print events that are usually only logged
    #[arg(long, help_heading = "Output")]
    pub(crate) all_events: bool,
    /// Write the final usage as JSON to this file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) usage_output_file: Option<PathBuf>,
    /// Write the transcript as Markdown when done (default: ./hangar-session-<id>.md)
    #[arg(long, value_name = "PATH", num_args = 0..=1, require_equals = true, default_missing_value = "", help_heading = "Output")]
    pub(crate) share: Option<String>,

    /// Run the session as this custom or built-in agent
    #[arg(long, value_name = "NAME", help_heading = "Agents")]
    pub(crate) agent: Option<String>,
    /// Split the task among agents that work in parallel
    #[arg(long, help_heading = "Agents")]
    pub(crate) fleet: bool,

    /// Model to use; `hangar models` lists them
    #[arg(long, value_name = "MODEL", help_heading = "Model")]
    pub(crate) model: Option<String>,
    /// Reasoning effort: none, minimal, low, medium, high, xhigh or max, if the model supports it
    #[arg(long, visible_alias = "effort", value_name = "LEVEL", help_heading = "Model")]
    pub(crate) reasoning_effort: Option<String>,

    /// Record requests to the model and its answers in this file
    #[arg(long, value_name = "FILE", help_heading = "Model")]
    pub(crate) record: Option<PathBuf>,
    /// Replay answers from a file that --record wrote, without a model
    #[arg(long, value_name = "FILE", conflicts_with = "record", help_heading = "Model")]
    pub(crate) replay: Option<PathBuf>,

    /// Work alone until the task is complete
    #[arg(long, help_heading = "Mode")]
    pub(crate) autopilot: bool,
    /// Explore and plan without changing anything
    #[arg(long, help_heading = "Mode")]
    pub(crate) plan: bool,
    /// Mode to start in
    #[arg(long, value_name = "MODE", help_heading = "Mode")]
    pub(crate) mode: Option<ModeArg>,
    /// How often to continue an autopilot run that stops early
    #[arg(long, value_name = "COUNT", default_value_t, help_heading = "Mode")]
    pub(crate) max_autopilot_continues: ContinueLimit,
    /// Do not offer the ask_user tool
    #[arg(long, help_heading = "Mode")]
    pub(crate) no_ask_user: bool,

    /// Resume a session by id, unique prefix or name
    #[arg(short, long, value_name = "SESSION", num_args = 0..=1, default_missing_value = "", conflicts_with = "continue_last", help_heading = "Session")]
    pub(crate) resume: Option<String>,
    /// Resume the latest session
    #[arg(long = "continue", help_heading = "Session")]
    pub(crate) continue_last: bool,
    /// Resume the session with this id, or start one with this UUID
    #[arg(long, value_name = "ID", conflicts_with_all = ["resume", "continue_last"], help_heading = "Session")]
    pub(crate) session_id: Option<String>,
    /// Name the new session
    #[arg(short, long, value_name = "NAME", conflicts_with_all = ["resume", "continue_last"], help_heading = "Session")]
    pub(crate) name: Option<String>,

    /// Run every tool without asking
    #[arg(long, help_heading = "Permissions")]
    pub(crate) allow_all_tools: bool,
    /// Let tools access any path
    #[arg(long, help_heading = "Permissions")]
    pub(crate) allow_all_paths: bool,
    /// Let tools fetch any URL
    #[arg(long, help_heading = "Permissions")]
    pub(crate) allow_all_urls: bool,
    /// Allow all tools, paths and URLs
    #[arg(long, visible_alias = "yolo", help_heading = "Permissions")]
    pub(crate) allow_all: bool,
    /// Tools to allow: shell, shell(git:*), write(src), url(example.com), SERVER(tool)
    #[arg(long, value_name = "RULES", num_args = 0.., help_heading = "Permissions")]
    pub(crate) allow_tool: Vec<String>,
    /// Tools to deny; deny rules win over allow rules
    #[arg(long, value_name = "RULES", num_args = 0.., help_heading = "Permissions")]
    pub(crate) deny_tool: Vec<String>,
    /// Offer only these tools to the model
    #[arg(long, value_name = "TOOLS", num_args = 0.., help_heading = "Permissions")]
    pub(crate) available_tools: Option<Vec<String>>,
    /// Do not offer these tools to the model
    #[arg(long, value_name = "TOOLS", num_args = 0.., help_heading = "Permissions")]
    pub(crate) excluded_tools: Vec<String>,
    /// URLs or domains to allow
    #[arg(long, value_name = "URLS", num_args = 0.., help_heading = "Permissions")]
    pub(crate) allow_url: Vec<String>,
    /// URLs or domains to deny
    #[arg(long, value_name = "URLS", num_args = 0.., help_heading = "Permissions")]
    pub(crate) deny_url: Vec<String>,
    /// Let tools access this directory too
    #[arg(long, value_name = "DIR", help_heading = "Permissions")]
    pub(crate) add_dir: Vec<PathBuf>,
    /// Keep tools out of the system's temporary directory
    #[arg(long, help_heading = "Permissions")]
    pub(crate) disallow_temp_dir: bool,
    /// Environment variables to hide from tools and redact in all output
    #[arg(long, value_name = "NAMES", num_args = 0.., value_delimiter = ',', help_heading = "Permissions")]
    pub(crate) secret_env_vars: Vec<String>,

    /// Run all commands in a sandbox: they write only in allowed directories and have no network
    #[arg(long, help_heading = "Sandbox")]
    pub(crate) sandbox: bool,
    /// Run allowed commands without the sandbox, whatever config.toml says; commands that nobody approved stay confined
    #[arg(long, conflicts_with = "sandbox", help_heading = "Sandbox")]
    pub(crate) no_sandbox: bool,
    /// Allow the network in the sandbox
    #[arg(long, help_heading = "Sandbox")]
    pub(crate) sandbox_network: bool,

    /// Directory of the log files (default: logs in the home folder)
    #[arg(long, value_name = "DIR", help_heading = "Diagnostics")]
    pub(crate) log_dir: Option<PathBuf>,
    /// Keep sessions, settings and everything else in this directory instead of the home of Hangar
    #[arg(long, value_name = "DIR", hide = true)]
    pub(crate) config_dir: Option<PathBuf>,
    /// How much to log
    #[arg(long, value_name = "LEVEL", help_heading = "Diagnostics")]
    pub(crate) log_level: Option<LogLevel>,

    #[command(flatten)]
    pub(crate) budget: BudgetArgs,
    #[command(flatten)]
    pub(crate) extensions: ExtensionArgs,
    /// Speak the Agent Client Protocol on standard input and output, or on --port
    #[arg(long, help_heading = "Server", conflicts_with_all = ["prompt", "interactive", "server"])]
    pub(crate) acp: bool,
    #[command(flatten)]
    pub(crate) compatible: CompatibleArgs,
}

impl RunArgs {
    /// Whether nothing says that the run is for a program: no prompt of -p, no events on standard output.
    pub(crate) fn wants_terminal(&self) -> bool {
        self.prompt.is_none()
            && self.output_format == OutputFormat::Text
            && self.compatible.named.words.is_empty()
    }

    /// `--plan` together with autopilot: plan first, then carry the plan out.
    pub(crate) fn implements_plan(&self) -> bool {
        self.plan && (self.autopilot || self.mode == Some(ModeArg::Autopilot))
    }
}

/// Caps on what a session may use, agents and summaries included. No call is made that could pass one.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Budget")]
pub(crate) struct BudgetArgs {
    /// Maximum cost of the session
    #[arg(long, value_name = "USD", value_parser = crate::budget::parse_cost)]
    pub(crate) max_cost: Option<f64>,
    /// Maximum number of model calls of the session
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_turns: Option<u64>,
    /// Maximum number of input and output tokens of the session
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_tokens: Option<u64>,
}

/// Extensions for one run.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Extensions")]
pub(crate) struct ExtensionArgs {
    /// Further MCP servers for this run: JSON, or @FILE
    #[arg(long, value_name = "JSON")]
    pub(crate) additional_mcp_config: Vec<String>,
    /// Do not start this MCP server
    #[arg(long, value_name = "SERVER")]
    pub(crate) disable_mcp_server: Vec<String>,
    /// Start this MCP server even if the configuration disables it
    #[arg(long, value_name = "SERVER")]
    pub(crate) enable_mcp_server: Vec<String>,
    /// Do not start the built-in MCP servers
    #[arg(long)]
    pub(crate) disable_builtin_mcps: bool,
    /// Offer all tools of GitHub's MCP server
    #[arg(long)]
    pub(crate) enable_all_github_mcp_tools: bool,
    /// Offer this set of tools of GitHub's MCP server
    #[arg(long, value_name = "SET")]
    pub(crate) add_github_mcp_toolset: Vec<String>,
    /// Offer this tool of GitHub's MCP server
    #[arg(long, value_name = "TOOL")]
    pub(crate) add_github_mcp_tool: Vec<String>,
    /// Load the plugin in this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) plugin_dir: Vec<PathBuf>,
    /// Trust the hooks and MCP servers of the working directory for this run
    #[arg(long)]
    pub(crate) trust_folder: bool,
}

/// The command that a mistyped word was probably meant to be.
pub(crate) fn similar_command(word: &str) -> Option<String> {
    const ALIKE: f64 = 0.8;
    let command = Cli::command();
    let names = command.get_subcommands().map(clap::Command::get_name);
    let scored = names.map(|name| (strsim::jaro_winkler(word, name), name));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(score, _)| *score > ALIKE)?;
    Some(best.1.to_owned())
}

/// Flags of Copilot CLI that have no effect here.
#[derive(Debug, Default, Args)]
pub(crate) struct CompatibleArgs {
    #[command(flatten)]
    pub(crate) silent: SilentArgs,
    #[command(flatten)]
    pub(crate) named: NamedArgs,
}

/// Accepted silently: they ask for what Hangar does anyway.
#[derive(Debug, Default, Args)]
pub(crate) struct SilentArgs {
    #[arg(long, hide = true)]
    no_auto_update: bool,
    #[arg(long, hide = true)]
    no_color: bool,
    #[arg(long, hide = true)]
    plain_diff: bool,
    /// Print plain lines in the terminal, for screen readers: nothing is redrawn
    #[arg(long, help_heading = "Output")]
    pub(crate) screen_reader: bool,
    #[arg(long, hide = true)]
    banner: bool,
    #[arg(long, hide = true)]
    no_banner: bool,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    mouse: Option<String>,
    #[arg(long, hide = true)]
    no_mouse: bool,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    bash_env: Option<String>,
    #[arg(long, hide = true)]
    no_bash_env: bool,
    #[arg(long, hide = true)]
    experimental: bool,
    #[arg(long, hide = true)]
    no_experimental: bool,
    #[arg(long, hide = true)]
    disable_client_telemetry: bool,
    #[arg(long, hide = true)]
    enable_reasoning_summaries: bool,
    #[arg(long, hide = true)]
    no_remote: bool,
    #[arg(long, hide = true)]
    no_remote_export: bool,
    #[arg(long, hide = true)]
    no_eager_powershell_resolution: bool,
}

/// Accepted with a notice on stderr: the caller expects an effect that they do not have.
#[derive(Debug, Default, Args)]
pub(crate) struct NamedArgs {
    #[arg(long, hide = true)]
    context: Option<String>,
    #[arg(long, hide = true)]
    auto_tier: Option<String>,
    #[arg(long, hide = true)]
    assisted_approval: bool,
    #[arg(long, hide = true)]
    max_ai_credits: Option<String>,
    #[arg(long, hide = true)]
    enable_memory: bool,
    #[arg(long, hide = true)]
    share_gist: bool,
    #[arg(long, hide = true)]
    mcp_github_auth: Vec<String>,
    #[arg(long, hide = true)]
    allow_all_mcp_server_instructions: bool,
    #[arg(long, hide = true)]
    remote: bool,
    #[arg(long, hide = true)]
    remote_export: bool,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "")]
    connect: Option<String>,
    #[arg(long, hide = true)]
    ahp_host: Option<String>,
    #[arg(long, hide = true)]
    environment_host: Option<String>,
    #[arg(long, hide = true)]
    environment_compute_id: Option<String>,
    #[arg(long, hide = true)]
    dynamic_retrieval: Vec<String>,
    #[arg(long, hide = true)]
    extension_sdk_path: Option<PathBuf>,
    #[arg(short = 'w', long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "")]
    worktree: Option<String>,
    /// Remaining words: probably a prompt without quotes.
    #[arg(hide = true, action = ArgAction::Append)]
    pub(crate) words: Vec<String>,
}

impl NamedArgs {
    /// The given flags that have no effect, for one notice on stderr.
    pub(crate) fn given(&self) -> Vec<&'static str> {
        let table = [
            ("--context", self.context.is_some()),
            ("--auto-tier", self.auto_tier.is_some()),
            ("--assisted-approval", self.assisted_approval),
            ("--max-ai-credits", self.max_ai_credits.is_some()),
            ("--enable-memory", self.enable_memory),
            ("--share-gist", self.share_gist),
            ("--mcp-github-auth", !self.mcp_github_auth.is_empty()),
            ("--allow-all-mcp-server-instructions", self.allow_all_mcp_server_instructions),
            ("--remote", self.remote),
            ("--remote-export", self.remote_export),
            ("--connect", self.connect.is_some()),
            ("--ahp-host", self.ahp_host.is_some()),
            ("--environment-host", self.environment_host.is_some()),
            ("--environment-compute-id", self.environment_compute_id.is_some()),
            ("--dynamic-retrieval", !self.dynamic_retrieval.is_empty()),
            ("--extension-sdk-path", self.extension_sdk_path.is_some()),
            ("--worktree", self.worktree.is_some()),
        ];
        table.into_iter().filter_map(|(name, given)| given.then_some(name)).collect()
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    #[default]
    Text,
    Json,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    #[default]
    On,
    Off,
}

impl From<bool> for Switch {
    fn from(on: bool) -> Self {
        if on { Switch::On } else { Switch::Off }
    }
}

/// How often a run in autopilot mode is continued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContinueLimit(pub(crate) u32);

impl FromStr for ContinueLimit {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.parse().map(Self)
    }
}

impl fmt::Display for ContinueLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Default for ContinueLimit {
    fn default() -> Self {
        Self(5)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeArg {
    Interactive,
    Plan,
    Autopilot,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EffortArg {
    None,
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

impl EffortArg {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            EffortArg::None => "none",
            EffortArg::Minimal => "minimal",
            EffortArg::Low => "low",
            EffortArg::Medium => "medium",
            EffortArg::High => "high",
            EffortArg::Xhigh => "xhigh",
            EffortArg::Max => "max",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    None,
    Error,
    Warning,
    Info,
    Debug,
    All,
    Default,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_is_resumed_keeps_its_name() {
        for command in [&["hangar", "-p", "hi"][..], &["hangar", "run", "-p", "hi"]] {
            for resumed in ["--resume=abc", "--continue"] {
                let line = command.iter().copied().chain(["--name", "x", resumed]);
                let told = Cli::try_parse_from(line).expect_err(resumed).to_string();
                assert!(told.contains("'--name <NAME>' cannot be used with '--"), "{told}");
            }
        }
    }

    #[test]
    fn the_defaults_are_those_of_the_command_line() {
        let parsed = Cli::parse_from(["hangar"]).run;
        assert_eq!(format!("{:?}", RunArgs::default()), format!("{parsed:?}"));
        assert_eq!(parsed.max_autopilot_continues, ContinueLimit(5));
    }
}
