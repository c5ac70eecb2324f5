//! Arguments of `hangar run` and `hangar runtimes`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use hangar_runtimes::runtime::Consent;

use crate::args::{EffortArg, OutputFormat, RunArgs, Switch};

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RunWithArgs {
    /// Arguments to pass to the agent unchanged
    // Before the groups, whose headings would otherwise be its own.
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) extra: Vec<String>,
    #[command(flatten)]
    pub(crate) agent: RunAgentArgs,
    #[command(flatten)]
    pub(crate) switches: AgentSwitchArgs,
    #[command(flatten)]
    pub(crate) input: RunPromptArgs,
    #[command(flatten)]
    pub(crate) output: RunOutputArgs,
    #[command(flatten)]
    pub(crate) selection: RunSessionArgs,
    #[command(flatten)]
    pub(crate) tools: RunToolArgs,
    #[command(flatten)]
    pub(crate) limits: RunLimitArgs,
    #[command(flatten)]
    pub(crate) placement: crate::fleet::args::PlacementArgs,
}

impl RunWithArgs {
    /// Whether nothing says that the run is for a program: no prompt, no events on standard output.
    pub(crate) fn wants_terminal(&self) -> bool {
        self.input.prompt.is_none() && self.output.output_format == OutputFormat::Text
    }

    /// Consent to calls of a session in a terminal: a person is asked, unless all tools are allowed.
    pub(crate) fn terminal_consent(&self) -> Consent {
        if self.tools.allow_all_tools { Consent::Given } else { Consent::Asked }
    }

    /// Flags of `hangar`, for a session of another agent that is resumed.
    pub(crate) fn like(args: &RunArgs, runtime: Option<String>) -> Self {
        let effort = args.models.reasoning_effort.as_deref();
        let permissions = &args.permissions;
        Self {
            agent: RunAgentArgs {
                runtime,
                model: args.models.model.clone(),
                effort: effort.and_then(|level| EffortArg::from_str(level, true).ok()),
                ..RunAgentArgs::default()
            },
            input: RunPromptArgs { directory: args.input.directory.clone(), ..RunPromptArgs::default() },
            tools: RunToolArgs {
                allow_tool: permissions.allow_tool.clone(),
                allow_all_tools: permissions.allow_all_tools || permissions.allow_all,
                deny_tool: permissions.deny_tool.clone(),
                available_tools: permissions.available_tools.clone().unwrap_or_default(),
                excluded_tools: permissions.excluded_tools.clone(),
                mcp_config: None,
                add_dir: permissions.add_dir.clone(),
                secret_env_vars: permissions.secret_env_vars.clone(),
            },
            ..Self::default()
        }
    }

    /// The flags that apply to any session, not only to the requested one.
    pub(crate) fn common(&self) -> Self {
        Self {
            agent: RunAgentArgs { rehearse: self.agent.rehearse.clone(), ..RunAgentArgs::default() },
            tools: RunToolArgs { mcp_config: None, ..self.tools.clone() },
            limits: self.limits.clone(),
            ..Self::default()
        }
    }
}

/// The agent, its model and where it runs.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Agent")]
pub(crate) struct RunAgentArgs {
    /// Agent to use; `hangar runtimes` lists them
    #[arg(long, value_name = "NAME")]
    pub(crate) runtime: Option<String>,
    /// Model to use, by the agent's own name for it
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Reasoning effort
    #[arg(long, visible_alias = "reasoning-effort", value_name = "LEVEL")]
    pub(crate) effort: Option<EffortArg>,
    /// Run it on another machine: HOST, USER@HOST, or a name from your ssh configuration
    #[arg(long, value_name = "HOST")]
    pub(crate) ssh: Option<String>,
    /// Port of ssh on the other machine
    #[arg(long, value_name = "PORT", requires = "ssh")]
    pub(crate) ssh_port: Option<u16>,
    /// Use the scripted model instead of a real one; URL names one that is already served
    #[arg(long, value_name = "URL", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) rehearse: Option<String>,
    /// Put the prompt into the queue and return; a named agent has all other settings
    #[arg(
        long,
        conflicts_with_all = [
            "effort", "ssh", "rehearse", "explain", "persona", "bare", "no_agents_md", "no_builtin_mcp",
            "experimental", "stream", "system", "system_file", "attachment", "silent", "all_events", "resume",
            "continue_last", "session_id", "name", "allow_tool", "allow_all_tools", "deny_tool",
            "available_tools", "excluded_tools", "mcp_config", "add_dir", "secret_env_vars", "turn_timeout",
            "stall_timeout", "tool_timeout", "progress_timeout", "stop_without_progress", "startup_timeout",
            "max_steps", "budget", "extra",
        ])]
    pub(crate) background: bool,
    /// Show where each setting comes from and run nothing
    #[arg(long)]
    pub(crate) explain: bool,
}

/// Switches that agents have in common.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Agent")]
pub(crate) struct AgentSwitchArgs {
    /// Named agent of config.toml, or else a custom agent of the runtime as with --persona
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Run as this custom agent, by its name in the runtime
    #[arg(long, value_name = "NAME")]
    pub(crate) persona: Option<String>,
    /// Load as little as possible: no hooks, plugins, memories and instruction files
    #[arg(long)]
    pub(crate) bare: bool,
    /// Ignore AGENTS.md and other instruction files of the workspace
    #[arg(long, visible_alias = "no-custom-instructions")]
    pub(crate) no_agents_md: bool,
    /// Do not start the MCP servers that come with the agent
    #[arg(long, visible_alias = "disable-builtin-mcps")]
    pub(crate) no_builtin_mcp: bool,
    /// Enable experimental features of the agent
    #[arg(long)]
    pub(crate) experimental: bool,
    /// Stream the answer as it is written
    #[arg(long, value_name = "MODE")]
    pub(crate) stream: Option<Switch>,
}

/// The prompt, and where it is worked on.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Prompt")]
pub(crate) struct RunPromptArgs {
    /// Run this prompt and exit; without it, a terminal opens a session
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) prompt: Option<String>,
    /// System prompt: instructions before the prompt
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) system: Option<String>,
    /// The same from a file
    #[arg(long, value_name = "FILE", conflicts_with = "system")]
    pub(crate) system_file: Option<PathBuf>,
    /// Attach a file (image or text)
    #[arg(long, value_name = "PATH")]
    pub(crate) attachment: Vec<PathBuf>,
    /// Work in this directory
    #[arg(short = 'C', value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

/// Output of the run.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct RunOutputArgs {
    /// Print text, or one JSON event per line
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output_format: OutputFormat,
    /// Print only the answer
    #[arg(short, long)]
    pub(crate) silent: bool,
    /// With json: also print events that are usually only logged
    #[arg(long)]
    pub(crate) all_events: bool,
}

/// The session: a new one, or one to resume.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Session")]
pub(crate) struct RunSessionArgs {
    /// Resume a session by id, unique prefix or name
    #[arg(
        short,
        long,
        value_name = "SESSION",
        conflicts_with_all = ["continue_last", "session_id"])]
    pub(crate) resume: Option<String>,
    /// Resume the latest session
    #[arg(long = "continue", conflicts_with = "session_id")]
    pub(crate) continue_last: bool,
    /// Resume the session with this id, or start one with this UUID
    #[arg(long, value_name = "ID")]
    pub(crate) session_id: Option<String>,
    /// Name the new session
    #[arg(short, long, value_name = "NAME", conflicts_with_all = ["resume", "continue_last"])]
    pub(crate) name: Option<String>,
}

/// Tools that the agent may use.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Tools")]
pub(crate) struct RunToolArgs {
    /// Tools to allow; without any tool rule, all are allowed
    #[arg(long, visible_alias = "tools", value_name = "RULES", value_delimiter = ',')]
    pub(crate) allow_tool: Vec<String>,
    /// Allow all tools, whatever config.toml allows; deny rules win
    #[arg(
        long,
        visible_aliases = ["allow-all", "yolo"],
        conflicts_with = "allow_tool")]
    pub(crate) allow_all_tools: bool,
    /// Tools to deny
    #[arg(long, value_name = "RULES", value_delimiter = ',')]
    pub(crate) deny_tool: Vec<String>,
    /// Offer only these tools to the model
    #[arg(long, value_name = "TOOLS", value_delimiter = ',')]
    pub(crate) available_tools: Vec<String>,
    /// Do not offer these tools to the model
    #[arg(long, value_name = "TOOLS", value_delimiter = ',')]
    pub(crate) excluded_tools: Vec<String>,
    /// MCP servers: JSON, or @FILE
    #[arg(long, visible_alias = "additional-mcp-config", value_name = "CONFIG")]
    pub(crate) mcp_config: Option<String>,
    /// Let tools access this directory too
    #[arg(long, value_name = "DIR")]
    pub(crate) add_dir: Vec<PathBuf>,
    /// Environment variables to redact in all output; Hangar's own agent and Copilot hide them from tools too
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) secret_env_vars: Vec<String>,
}

/// Limits of a turn.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct RunLimitArgs {
    /// End a turn that takes longer; 0 means never
    #[arg(long, value_name = "SECONDS")]
    pub(crate) turn_timeout: Option<f64>,
    /// End a turn when the agent is silent for this long; 0 means never
    #[arg(long, value_name = "SECONDS")]
    pub(crate) stall_timeout: Option<f64>,
    /// End a turn whose command or other tool call takes longer; 0 means never
    #[arg(long, value_name = "SECONDS")]
    pub(crate) tool_timeout: Option<f64>,
    /// Warn when there was no new commit, change or call for this long; 0 means never
    #[arg(long, value_name = "SECONDS")]
    pub(crate) progress_timeout: Option<f64>,
    /// End a turn that makes no progress, instead of warning
    #[arg(long)]
    pub(crate) stop_without_progress: bool,
    /// End an agent that is silent for this long after its start; 0 means never
    #[arg(long, value_name = "SECONDS")]
    pub(crate) startup_timeout: Option<f64>,
    /// Maximum number of steps of the agent
    #[arg(long, visible_alias = "max-autopilot-continues", value_name = "COUNT")]
    pub(crate) max_steps: Option<u32>,
    /// Maximum cost of a turn
    #[arg(long, visible_alias = "max-cost", value_name = "USD")]
    pub(crate) budget: Option<f64>,
}

#[derive(Debug, Args)]
pub(crate) struct RuntimesArgs {
    #[command(subcommand)]
    pub(crate) command: Option<RuntimesCommand>,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RuntimesCommand {
    /// Test what the installed agents can do, on the scripted model, and store the result
    Probe {
        /// Test only this agent
        name: Option<String>,
    },
}
