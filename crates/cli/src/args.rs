//! What may be typed. Flags keep the names and forms of Copilot CLI, so that whatever drives it can drive Hangar.

use std::path::PathBuf;

use clap::{ArgAction, Args, CommandFactory, Parser, Subcommand, ValueEnum};

const EXIT_CODES: &str = "\
Exit codes:
  0  the run ended: answered, stopped by a signal, out of autopilot continuations, or with tools refused
  1  no run or no answer: bad usage, no provider or model, unknown session, or a model that failed for good
  2  hangar doctor found something that needs attention, or hangar runtimes probe something that is not as expected

Environment: HANGAR_HOME, COPILOT_MODEL, COPILOT_PROVIDER_BASE_URL, COPILOT_PROVIDER_TYPE, COPILOT_PROVIDER_API_KEY,
COPILOT_OFFLINE, COPILOT_ALLOW_ALL and the rest of Copilot CLI's provider variables work unchanged.";

#[derive(Debug, Parser)]
#[command(
    name = "hangar",
    about = "A coding agent for any model. Give it a prompt with -p or on standard input.",
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
    pub(crate) server: ServerArgs,

    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// How SDKs start the program as their server. The forms are theirs.
#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    /// Serve the Copilot SDKs instead of running a prompt
    #[arg(long, visible_alias = "headless", help_heading = "Server")]
    pub(crate) server: bool,
    /// Serve one client on standard input and output
    #[arg(long, help_heading = "Server", conflicts_with = "port")]
    pub(crate) stdio: bool,
    /// Serve clients on this port of 127.0.0.1; 0 picks a free one
    #[arg(long, value_name = "PORT", help_heading = "Server")]
    pub(crate) port: Option<u16>,
    #[arg(long, hide = true)]
    pub(crate) host: Option<String>,
    /// Serve any client that reaches the port, without the token of COPILOT_CONNECTION_TOKEN or one that is printed
    #[arg(long, help_heading = "Server")]
    pub(crate) no_token: bool,
    /// The variable that holds the GitHub token to use
    #[arg(long, value_name = "NAME", help_heading = "Server")]
    pub(crate) auth_token_env: Option<String>,
    /// Use no login but the one of --auth-token-env and those that clients give
    #[arg(long, help_heading = "Server")]
    pub(crate) no_auto_login: bool,
    /// Close sessions that nothing happened in for so many seconds; they can be resumed
    #[arg(long, value_name = "SECONDS", help_heading = "Server")]
    pub(crate) session_idle_timeout: Option<u64>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Subcommands {
    /// List the models that the configured providers offer
    Models(ModelsArgs),
    /// Offer the scripted model to other programs
    Model {
        #[command(subcommand)]
        command: ModelCommand,
    },
    /// List, show, export, fork, rewind and delete saved sessions
    Sessions {
        #[command(subcommand)]
        command: Option<SessionsCommand>,
    },
    /// Show and change which MCP servers are configured
    Mcp {
        #[command(subcommand)]
        command: crate::commands::mcp::McpCommand,
    },
    /// Run a prompt with any agent: Hangar itself, or one that is installed beside it
    #[command(after_help = EXIT_CODES)]
    Run(Box<crate::runtimes::args::RunWithArgs>),
    /// Show the agents that `run` can use, or prove what they can do
    Runtimes(crate::runtimes::args::RuntimesArgs),
    /// Run jobs: trees of tasks for agents, from a file
    Job {
        #[command(subcommand)]
        command: crate::jobs::args::JobCommand,
    },
    /// Serve the portal: sessions, jobs and agents in a browser, and an API for programs
    Up(crate::portal::args::UpArgs),
    /// Check providers, credentials, the home folder and the tools on this machine
    Doctor(DoctorArgs),
    /// Show which parts of Hangar are on
    Features(FeaturesArgs),
    /// Print the completion script of a shell
    Completions {
        shell: crate::commands::shell_files::Shell,
    },
    /// Write the man pages into a directory
    Man { directory: PathBuf },
    /// Show the version
    Version,
}

#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    /// What this agent can be asked to use, instead of what the providers offer
    #[arg(long, value_name = "NAME")]
    pub(crate) runtime: Option<String>,
    /// Ask the providers again instead of using what is cached
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
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// Serve the scripted model on loopback as OpenAI chat completions, OpenAI responses and Anthropic messages
    Serve {
        /// Port on 127.0.0.1; 0 picks a free one
        #[arg(long, default_value_t = 0)]
        port: u16,
        /// Answer every request from this script instead of the markers in its prompt
        #[arg(long, value_name = "FILE")]
        script: Option<PathBuf>,
        /// The answer to a prompt without markers
        #[arg(long, default_value = "pong")]
        default: String,
        /// Append one JSON line per request
        #[arg(long, value_name = "FILE")]
        log: Option<PathBuf>,
    },
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
        /// Where to; standard output if absent
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Begin a new session with the history of another
    Fork {
        session: String,
        /// The first event that the new session does not have; `sessions rewind` lists the prompts
        #[arg(long, value_name = "EVENT")]
        before: Option<String>,
        /// What the new session is called
        #[arg(long)]
        name: Option<String>,
    },
    /// Take back what was said from a prompt on; without one, list the prompts
    Rewind {
        session: String,
        /// The prompt to go back to, by the id of its event
        #[arg(long, value_name = "EVENT")]
        to: Option<String>,
        /// Put files back that tools have changed since, where the session kept what they were
        #[arg(long, requires = "to")]
        files: bool,
    },
    /// Delete a session and its files
    Delete { session: String },
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Run this prompt and exit
    #[arg(short, long, value_name = "TEXT", help_heading = "Prompt", allow_hyphen_values = true)]
    pub(crate) prompt: Option<String>,
    /// The same as -p: there is no screen to stay on
    #[arg(
        short,
        long,
        value_name = "TEXT",
        conflicts_with = "prompt",
        hide = true,
        allow_hyphen_values = true
    )]
    pub(crate) interactive: Option<String>,
    /// Be an agent of the Agent Client Protocol on standard input and output, or on --port
    #[arg(long, help_heading = "Server", conflicts_with_all = ["prompt", "interactive", "server"])]
    pub(crate) acp: bool,
    /// Attach a file (image or text) to the prompt
    #[arg(long, value_name = "PATH", help_heading = "Prompt")]
    pub(crate) attachment: Vec<PathBuf>,
    /// Change to this directory first
    #[arg(short = 'C', value_name = "DIR", help_heading = "Prompt")]
    pub(crate) directory: Option<PathBuf>,
    /// Do not load AGENTS.md and other instruction files
    #[arg(long, help_heading = "Prompt")]
    pub(crate) no_custom_instructions: bool,

    /// text, or json for one event per line
    #[arg(long, value_name = "FORMAT", default_value = "text", help_heading = "Output")]
    pub(crate) output_format: OutputFormat,
    /// Print the answer only
    #[arg(short, long, help_heading = "Output")]
    pub(crate) silent: bool,
    /// Whether answers arrive in pieces
    #[arg(long, value_name = "MODE", default_value = "on", help_heading = "Output")]
    pub(crate) stream: Switch,
    /// With json: print every event, also those that are only logged
    #[arg(long, help_heading = "Output")]
    pub(crate) all_events: bool,
    /// Write the final usage as JSON to this file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) usage_output_file: Option<PathBuf>,
    /// Write the transcript as Markdown when done (default: ./hangar-session-<id>.md)
    #[arg(long, value_name = "PATH", num_args = 0..=1, require_equals = true, default_missing_value = "", help_heading = "Output")]
    pub(crate) share: Option<String>,

    /// The agent whose role the session plays
    #[arg(long, value_name = "NAME", help_heading = "Agents")]
    pub(crate) agent: Option<String>,
    /// Split the task and let agents work on it side by side
    #[arg(long, help_heading = "Agents")]
    pub(crate) fleet: bool,

    /// The model to use
    #[arg(long, value_name = "MODEL", help_heading = "Model")]
    pub(crate) model: Option<String>,
    /// How hard the model should think
    #[arg(long, visible_alias = "effort", value_name = "LEVEL", help_heading = "Model")]
    pub(crate) reasoning_effort: Option<Effort>,

    /// Keep what the model is asked and what it answers in this file
    #[arg(long, value_name = "FILE", help_heading = "Model")]
    pub(crate) record: Option<PathBuf>,
    /// Answer from a file that --record made; no model is asked
    #[arg(long, value_name = "FILE", conflicts_with = "record", help_heading = "Model")]
    pub(crate) replay: Option<PathBuf>,

    /// Work alone until the task is complete
    #[arg(long, help_heading = "Mode")]
    pub(crate) autopilot: bool,
    /// Explore and plan, change nothing
    #[arg(long, help_heading = "Mode")]
    pub(crate) plan: bool,
    /// The mode to start in
    #[arg(long, value_name = "MODE", help_heading = "Mode")]
    pub(crate) mode: Option<ModeArg>,
    /// How often an autopilot that stops early is sent on
    #[arg(long, value_name = "COUNT", default_value_t = 5, help_heading = "Mode")]
    pub(crate) max_autopilot_continues: u32,
    /// Take the ask_user tool away
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
    #[arg(short, long, value_name = "NAME", help_heading = "Session")]
    pub(crate) name: Option<String>,

    /// Let every tool run without asking
    #[arg(long, help_heading = "Permissions")]
    pub(crate) allow_all_tools: bool,
    /// Let tools touch any path
    #[arg(long, help_heading = "Permissions")]
    pub(crate) allow_all_paths: bool,
    /// Let tools fetch any URL
    #[arg(long, help_heading = "Permissions")]
    pub(crate) allow_all_urls: bool,
    /// All three of the above
    #[arg(long, visible_alias = "yolo", help_heading = "Permissions")]
    pub(crate) allow_all: bool,
    /// Tools to allow: shell, shell(git:*), write(src), url(example.com), SERVER(tool)
    #[arg(long, value_name = "RULES", num_args = 0.., help_heading = "Permissions")]
    pub(crate) allow_tool: Vec<String>,
    /// Tools to deny; denying wins over allowing
    #[arg(long, value_name = "RULES", num_args = 0.., help_heading = "Permissions")]
    pub(crate) deny_tool: Vec<String>,
    /// The only tools that the model is shown
    #[arg(long, value_name = "TOOLS", num_args = 0.., help_heading = "Permissions")]
    pub(crate) available_tools: Option<Vec<String>>,
    /// Tools that the model is not shown
    #[arg(long, value_name = "TOOLS", num_args = 0.., help_heading = "Permissions")]
    pub(crate) excluded_tools: Vec<String>,
    /// URLs or domains to allow
    #[arg(long, value_name = "URLS", num_args = 0.., help_heading = "Permissions")]
    pub(crate) allow_url: Vec<String>,
    /// URLs or domains to deny
    #[arg(long, value_name = "URLS", num_args = 0.., help_heading = "Permissions")]
    pub(crate) deny_url: Vec<String>,
    /// Let tools touch this directory too
    #[arg(long, value_name = "DIR", help_heading = "Permissions")]
    pub(crate) add_dir: Vec<PathBuf>,
    /// Keep tools out of the system's temporary directory
    #[arg(long, help_heading = "Permissions")]
    pub(crate) disallow_temp_dir: bool,
    /// Variables that tools must not see and output must not show
    #[arg(long, value_name = "NAMES", num_args = 0.., value_delimiter = ',', help_heading = "Permissions")]
    pub(crate) secret_env_vars: Vec<String>,

    /// Run all commands in a sandbox, allowed ones too: they write in the allowed directories only and have no network
    #[arg(long, help_heading = "Sandbox")]
    pub(crate) sandbox: bool,
    /// No sandbox for commands that are allowed, whatever config.toml says; those nobody said yes to are confined all the same
    #[arg(long, conflicts_with = "sandbox", help_heading = "Sandbox")]
    pub(crate) no_sandbox: bool,
    /// Let commands in the sandbox reach the network
    #[arg(long, help_heading = "Sandbox")]
    pub(crate) sandbox_network: bool,

    /// Where log files go (default: logs in the home folder)
    #[arg(long, value_name = "DIR", help_heading = "Diagnostics")]
    pub(crate) log_dir: Option<PathBuf>,
    /// What is logged
    #[arg(long, value_name = "LEVEL", help_heading = "Diagnostics")]
    pub(crate) log_level: Option<LogLevel>,

    #[command(flatten)]
    pub(crate) extensions: ExtensionArgs,
    #[command(flatten)]
    pub(crate) compatible: CompatibleArgs,
}

impl RunArgs {
    /// `--plan` together with autopilot: plan first, then carry the plan out.
    pub(crate) fn implements_plan(&self) -> bool {
        self.plan && (self.autopilot || self.mode == Some(ModeArg::Autopilot))
    }
}

/// What is added to the agent for one run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Extensions")]
pub(crate) struct ExtensionArgs {
    /// MCP servers for this run beside those that are configured: JSON, or @FILE
    #[arg(long, value_name = "JSON")]
    pub(crate) additional_mcp_config: Vec<String>,
    /// Do not start this MCP server
    #[arg(long, value_name = "SERVER")]
    pub(crate) disable_mcp_server: Vec<String>,
    /// Start this MCP server although it is switched off in the configuration
    #[arg(long, value_name = "SERVER")]
    pub(crate) enable_mcp_server: Vec<String>,
    /// Start no MCP server that comes with the program
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
    /// Let the working directory's own hooks and MCP servers run, this once
    #[arg(long)]
    pub(crate) trust_folder: bool,
}

/// The command that somebody may have meant by a word that is none.
pub(crate) fn similar_command(word: &str) -> Option<String> {
    const ALIKE: f64 = 0.8;
    let command = Cli::command();
    let names = command.get_subcommands().map(clap::Command::get_name);
    let scored = names.map(|name| (strsim::jaro_winkler(word, name), name));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(score, _)| *score > ALIKE)?;
    Some(best.1.to_owned())
}

/// Flags of Copilot CLI that change nothing here.
#[derive(Debug, Args)]
pub(crate) struct CompatibleArgs {
    #[command(flatten)]
    pub(crate) silent: SilentArgs,
    #[command(flatten)]
    pub(crate) named: NamedArgs,
}

/// Accepted without a word: they ask for what Hangar does anyway.
#[derive(Debug, Args)]
pub(crate) struct SilentArgs {
    #[arg(long, hide = true)]
    no_auto_update: bool,
    #[arg(long, hide = true)]
    no_color: bool,
    #[arg(long, hide = true)]
    plain_diff: bool,
    #[arg(long, hide = true)]
    screen_reader: bool,
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
}

/// Accepted with one line on stderr each: whoever passes them expects something that does not happen.
#[derive(Debug, Args)]
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
    environment_host: Option<String>,
    #[arg(long, hide = true)]
    environment_compute_id: Option<String>,
    #[arg(long, hide = true)]
    dynamic_retrieval: Vec<String>,
    #[arg(long, hide = true)]
    extension_sdk_path: Option<PathBuf>,
    #[arg(short = 'w', long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "")]
    worktree: Option<String>,
    /// Left-over words: a prompt that was not quoted.
    #[arg(hide = true, action = ArgAction::Append)]
    pub(crate) words: Vec<String>,
}

impl NamedArgs {
    /// The flags that were given and do nothing, for one notice on stderr.
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
            ("--environment-host", self.environment_host.is_some()),
            ("--environment-compute-id", self.environment_compute_id.is_some()),
            ("--dynamic-retrieval", !self.dynamic_retrieval.is_empty()),
            ("--extension-sdk-path", self.extension_sdk_path.is_some()),
            ("--worktree", self.worktree.is_some()),
        ];
        table.into_iter().filter_map(|(name, given)| given.then_some(name)).collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    Text,
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeArg {
    Interactive,
    Plan,
    Autopilot,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Effort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

impl Effort {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Effort::None => "none",
            Effort::Minimal => "minimal",
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
            Effort::Xhigh => "xhigh",
            Effort::Max => "max",
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
