//! Arguments of a run, by the headings of `--help`.

use std::path::PathBuf;

use clap::Args;

use super::compatible::CompatibleArgs;
use super::values::{ContinueLimit, LogLevel, ModeArg, OutputFormat, Switch};

#[derive(Debug, Default, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) input: PromptArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) agents: AgentArgs,
    #[command(flatten)]
    pub(crate) models: ModelChoiceArgs,
    #[command(flatten)]
    pub(crate) conduct: ModeArgs,
    #[command(flatten)]
    pub(crate) selection: SessionArgs,
    #[command(flatten)]
    pub(crate) permissions: PermissionArgs,
    #[command(flatten)]
    pub(crate) confinement: SandboxArgs,
    #[command(flatten)]
    pub(crate) diagnostics: DiagnosticArgs,
    #[command(flatten)]
    pub(crate) budget: BudgetArgs,
    #[command(flatten)]
    pub(crate) extensions: ExtensionArgs,
    /// Speak the Agent Client Protocol on standard input and output, or on --port
    #[arg(long, help_heading = "Server", conflicts_with_all = ["prompt", "interactive", "attachment", "server"])]
    pub(crate) acp: bool,
    #[command(flatten)]
    pub(crate) compatible: CompatibleArgs,
}

impl RunArgs {
    /// Whether a person is meant to use the run: no prompt of -p, no events on standard output.
    pub(crate) fn wants_terminal(&self) -> bool {
        self.input.prompt.is_none()
            && self.output.output_format == OutputFormat::Text
            && self.compatible.named.words.is_empty()
    }

    /// `--plan` together with autopilot: plan first, then carry the plan out.
    pub(crate) fn implements_plan(&self) -> bool {
        self.conduct.plan && (self.conduct.autopilot || self.conduct.mode == Some(ModeArg::Autopilot))
    }
}

/// The prompt, and where it is worked on.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Prompt")]
pub(crate) struct PromptArgs {
    /// Run this prompt and exit
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) prompt: Option<String>,
    /// Open the terminal and begin with this prompt; without a terminal the same as -p
    #[arg(short, long, value_name = "TEXT", conflicts_with = "prompt", allow_hyphen_values = true)]
    pub(crate) interactive: Option<String>,
    /// Attach a file (image or text)
    #[arg(long, value_name = "PATH")]
    pub(crate) attachment: Vec<PathBuf>,
    /// Work in this directory
    #[arg(short = 'C', value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Do not load AGENTS.md and other instruction files
    #[arg(long)]
    pub(crate) no_custom_instructions: bool,
}

/// Output of the run.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Print text, or one JSON event per line
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) output_format: OutputFormat,
    /// Print only the answer
    #[arg(short, long)]
    pub(crate) silent: bool,
    /// Stream answers as they are generated
    #[arg(long, value_name = "MODE", value_enum, default_value_t)]
    pub(crate) stream: Switch,
    /// With json: also print events that are usually only logged
    #[arg(long)]
    pub(crate) all_events: bool,
    /// Write the final usage as JSON to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) usage_output_file: Option<PathBuf>,
    /// Write the transcript as Markdown when done (default: ./hangar-session-<id>.md)
    #[arg(long, value_name = "PATH", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) share: Option<String>,
}

/// Agents that work on the prompt.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Agents")]
pub(crate) struct AgentArgs {
    /// Run the session as this custom or built-in agent
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Split the task among agents that work in parallel
    #[arg(long)]
    pub(crate) fleet: bool,
}

/// The model, and recordings of it.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct ModelChoiceArgs {
    /// Model to use; `hangar models` lists them
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Reasoning effort: none, minimal, low, medium, high, xhigh or max, if the model supports it
    #[arg(long, visible_alias = "effort", value_name = "LEVEL")]
    pub(crate) reasoning_effort: Option<String>,
    /// Record requests to the model and its answers in this file
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Replay answers from a file that --record wrote, without a model
    #[arg(long, value_name = "FILE", conflicts_with = "record")]
    pub(crate) replay: Option<PathBuf>,
}

/// How independently the agent works.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Mode")]
pub(crate) struct ModeArgs {
    /// Work alone until the task is complete
    #[arg(long)]
    pub(crate) autopilot: bool,
    /// Explore and plan without changing anything
    #[arg(long)]
    pub(crate) plan: bool,
    /// Mode to start in
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<ModeArg>,
    /// How often to continue an autopilot run that stops early
    #[arg(long, value_name = "COUNT", default_value_t)]
    pub(crate) max_autopilot_continues: ContinueLimit,
    /// Do not offer the ask_user tool
    #[arg(long)]
    pub(crate) no_ask_user: bool,
}

/// The session: a new one, or one to resume.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Session")]
pub(crate) struct SessionArgs {
    /// Resume a session by id, unique prefix or name
    #[arg(short, long, value_name = "SESSION", num_args = 0..=1, default_missing_value = "", conflicts_with = "continue_last")]
    pub(crate) resume: Option<String>,
    /// Resume the latest session
    #[arg(long = "continue")]
    pub(crate) continue_last: bool,
    /// Resume the session with this id, or start one with this UUID
    #[arg(long, value_name = "ID", conflicts_with_all = ["resume", "continue_last"])]
    pub(crate) session_id: Option<String>,
    /// Name the new session
    #[arg(short, long, value_name = "NAME", conflicts_with_all = ["resume", "continue_last"])]
    pub(crate) name: Option<String>,
}

/// Permissions of tools.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Permissions")]
pub(crate) struct PermissionArgs {
    /// Run every tool without asking
    #[arg(long)]
    pub(crate) allow_all_tools: bool,
    /// Let tools access any path
    #[arg(long)]
    pub(crate) allow_all_paths: bool,
    /// Let tools fetch any URL
    #[arg(long)]
    pub(crate) allow_all_urls: bool,
    /// Allow all tools, paths and URLs
    #[arg(long, visible_alias = "yolo")]
    pub(crate) allow_all: bool,
    /// Tools to allow: shell, shell(git:*), write(src), url(example.com), SERVER(tool)
    #[arg(long, value_name = "RULES", num_args = 0..)]
    pub(crate) allow_tool: Vec<String>,
    /// Tools to deny; deny rules win over allow rules
    #[arg(long, value_name = "RULES", num_args = 0..)]
    pub(crate) deny_tool: Vec<String>,
    /// Offer only these tools to the model
    #[arg(long, value_name = "TOOLS", num_args = 0..)]
    pub(crate) available_tools: Option<Vec<String>>,
    /// Do not offer these tools to the model
    #[arg(long, value_name = "TOOLS", num_args = 0..)]
    pub(crate) excluded_tools: Vec<String>,
    /// URLs or domains to allow
    #[arg(long, value_name = "URLS", num_args = 0..)]
    pub(crate) allow_url: Vec<String>,
    /// URLs or domains to deny
    #[arg(long, value_name = "URLS", num_args = 0..)]
    pub(crate) deny_url: Vec<String>,
    /// Let tools access this directory too
    #[arg(long, value_name = "DIR")]
    pub(crate) add_dir: Vec<PathBuf>,
    /// Keep tools out of the system's temporary directory
    #[arg(long)]
    pub(crate) disallow_temp_dir: bool,
    /// Environment variables to hide from tools and redact in all output
    #[arg(long, value_name = "NAMES", num_args = 0.., value_delimiter = ',')]
    pub(crate) secret_env_vars: Vec<String>,
}

/// How commands are confined.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Sandbox")]
pub(crate) struct SandboxArgs {
    /// Run all commands in a sandbox: they write only in allowed directories and have no network
    #[arg(long)]
    pub(crate) sandbox: bool,
    /// Run allowed commands without the sandbox, whatever config.toml says; commands that nobody approved stay confined
    #[arg(long, conflicts_with = "sandbox")]
    pub(crate) no_sandbox: bool,
    /// Allow the network in the sandbox
    #[arg(long)]
    pub(crate) sandbox_network: bool,
}

/// Logs of the program, and its home.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Diagnostics")]
pub(crate) struct DiagnosticArgs {
    /// Directory of the log files (default: logs in the home folder)
    #[arg(long, value_name = "DIR")]
    pub(crate) log_dir: Option<PathBuf>,
    /// Keep sessions, settings and everything else in this directory instead of the home of Hangar
    #[arg(long, value_name = "DIR")]
    pub(crate) config_dir: Option<PathBuf>,
    /// How much to log
    #[arg(long, value_name = "LEVEL")]
    pub(crate) log_level: Option<LogLevel>,
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
    /// Folder of the SDK that extensions import, instead of the built-in one
    #[arg(long, value_name = "DIR")]
    pub(crate) extension_sdk_path: Option<PathBuf>,
}
