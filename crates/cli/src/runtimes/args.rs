//! Arguments of `hangar run` and `hangar runtimes`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use hangar_runtimes::runtime::Consent;

use crate::args::{EffortArg, OutputFormat, RunArgs, Switch};

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RunWithArgs {
    /// Agent to use; `hangar runtimes` lists them
    #[arg(long, value_name = "NAME", help_heading = "Agent")]
    pub(crate) runtime: Option<String>,
    /// Model to use, by the agent's own name for it
    #[arg(long, value_name = "MODEL", help_heading = "Agent")]
    pub(crate) model: Option<String>,
    /// Reasoning effort
    #[arg(long, visible_alias = "reasoning-effort", value_name = "LEVEL", help_heading = "Agent")]
    pub(crate) effort: Option<EffortArg>,
    /// Run it on another machine: HOST, USER@HOST, or a name from your ssh configuration
    #[arg(long, value_name = "HOST", help_heading = "Agent")]
    pub(crate) ssh: Option<String>,
    /// Port of ssh on the other machine
    #[arg(long, value_name = "PORT", requires = "ssh", help_heading = "Agent")]
    pub(crate) ssh_port: Option<u16>,
    /// Use the scripted model instead of a real one; URL names one that is already served
    #[arg(long, value_name = "URL", num_args = 0..=1, require_equals = true, default_missing_value = "", help_heading = "Agent")]
    pub(crate) rehearse: Option<String>,
    /// Show where each setting comes from and run nothing
    #[arg(long, help_heading = "Agent")]
    pub(crate) explain: bool,
    /// Run as this custom agent, by its name in the agent
    #[arg(long, visible_alias = "agent", value_name = "NAME", help_heading = "Agent")]
    pub(crate) persona: Option<String>,
    /// Load as little as possible: no hooks, plugins, memories and instruction files
    #[arg(long, help_heading = "Agent")]
    pub(crate) bare: bool,
    /// Ignore AGENTS.md and other instruction files of the workspace
    #[arg(long, visible_alias = "no-custom-instructions", help_heading = "Agent")]
    pub(crate) no_agents_md: bool,
    /// Do not start the MCP servers that come with the agent
    #[arg(long, visible_alias = "disable-builtin-mcps", help_heading = "Agent")]
    pub(crate) no_builtin_mcp: bool,
    /// Enable experimental features of the agent
    #[arg(long, help_heading = "Agent")]
    pub(crate) experimental: bool,
    /// Stream the answer as it is written
    #[arg(long, value_name = "MODE", help_heading = "Agent")]
    pub(crate) stream: Option<Switch>,
    /// Arguments to pass to the agent unchanged
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) extra: Vec<String>,

    /// Run this prompt and exit; without it, a terminal opens a session
    #[arg(short, long, value_name = "TEXT", help_heading = "Prompt", allow_hyphen_values = true)]
    pub(crate) prompt: Option<String>,
    /// System prompt: instructions before the prompt
    #[arg(long, value_name = "TEXT", help_heading = "Prompt", allow_hyphen_values = true)]
    pub(crate) system: Option<String>,
    /// The same from a file
    #[arg(long, value_name = "FILE", conflicts_with = "system", help_heading = "Prompt")]
    pub(crate) system_file: Option<PathBuf>,
    /// Attach a file (image or text)
    #[arg(long, value_name = "PATH", help_heading = "Prompt")]
    pub(crate) attachment: Vec<PathBuf>,
    /// Work in this directory
    #[arg(short = 'C', value_name = "DIR", help_heading = "Prompt")]
    pub(crate) directory: Option<PathBuf>,

    /// Print text, or one JSON event per line
    #[arg(long, value_name = "FORMAT", default_value = "text", help_heading = "Output")]
    pub(crate) output_format: OutputFormat,
    /// Print only the answer
    #[arg(short, long, help_heading = "Output")]
    pub(crate) silent: bool,
    /// With json: also print events that are usually only logged
    #[arg(long, help_heading = "Output")]
    pub(crate) all_events: bool,

    /// Resume a session by id, unique prefix or name
    #[arg(
        short,
        long,
        value_name = "SESSION",
        conflicts_with_all = ["continue_last", "session_id"],
        help_heading = "Session"
    )]
    pub(crate) resume: Option<String>,
    /// Resume the latest session
    #[arg(long = "continue", conflicts_with = "session_id", help_heading = "Session")]
    pub(crate) continue_last: bool,
    /// Resume the session with this id, or start one with this UUID
    #[arg(long, value_name = "ID", help_heading = "Session")]
    pub(crate) session_id: Option<String>,
    /// Name the new session
    #[arg(short, long, value_name = "NAME", conflicts_with_all = ["resume", "continue_last"], help_heading = "Session")]
    pub(crate) name: Option<String>,

    /// Tools to allow; without any tool rule, all are allowed
    #[arg(
        long,
        visible_alias = "tools",
        value_name = "RULES",
        value_delimiter = ',',
        help_heading = "Tools"
    )]
    pub(crate) allow_tool: Vec<String>,
    /// Allow all tools, whatever config.toml allows; deny rules win
    #[arg(
        long,
        visible_aliases = ["allow-all", "yolo"],
        conflicts_with = "allow_tool",
        help_heading = "Tools"
    )]
    pub(crate) allow_all_tools: bool,
    /// Tools to deny
    #[arg(long, value_name = "RULES", value_delimiter = ',', help_heading = "Tools")]
    pub(crate) deny_tool: Vec<String>,
    /// Offer only these tools to the model
    #[arg(long, value_name = "TOOLS", value_delimiter = ',', help_heading = "Tools")]
    pub(crate) available_tools: Vec<String>,
    /// Do not offer these tools to the model
    #[arg(long, value_name = "TOOLS", value_delimiter = ',', help_heading = "Tools")]
    pub(crate) excluded_tools: Vec<String>,
    /// MCP servers: JSON, or @FILE
    #[arg(long, visible_alias = "additional-mcp-config", value_name = "CONFIG", help_heading = "Tools")]
    pub(crate) mcp_config: Option<String>,
    /// Let tools access this directory too
    #[arg(long, value_name = "DIR", help_heading = "Tools")]
    pub(crate) add_dir: Vec<PathBuf>,
    /// Environment variables to redact in all output; Hangar's own agent and Copilot hide them from tools too
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "Tools")]
    pub(crate) secret_env_vars: Vec<String>,

    /// End a turn that takes longer; 0 means never
    #[arg(long, value_name = "SECONDS", help_heading = "Limits")]
    pub(crate) turn_timeout: Option<f64>,
    /// End a turn when the agent is silent for this long; 0 means never
    #[arg(long, value_name = "SECONDS", help_heading = "Limits")]
    pub(crate) stall_timeout: Option<f64>,
    /// End an agent that is silent for this long after its start; 0 means never
    #[arg(long, value_name = "SECONDS", help_heading = "Limits")]
    pub(crate) startup_timeout: Option<f64>,
    /// Maximum number of steps of the agent
    #[arg(long, visible_alias = "max-autopilot-continues", value_name = "COUNT", help_heading = "Limits")]
    pub(crate) max_steps: Option<u32>,
    /// Maximum cost of a turn
    #[arg(long, visible_alias = "max-cost", value_name = "USD", help_heading = "Limits")]
    pub(crate) budget: Option<f64>,
}

impl RunWithArgs {
    /// Whether nothing says that the run is for a program: no prompt, no events on standard output.
    pub(crate) fn wants_terminal(&self) -> bool {
        self.prompt.is_none() && self.output_format == OutputFormat::Text
    }

    /// Consent to calls of a session in a terminal: a person is asked, unless all tools are allowed.
    pub(crate) fn terminal_consent(&self) -> Consent {
        if self.allow_all_tools { Consent::Given } else { Consent::Asked }
    }

    /// Flags of `hangar`, for a session of another agent that is resumed.
    pub(crate) fn like(args: &RunArgs, runtime: Option<String>) -> Self {
        Self {
            runtime,
            model: args.model.clone(),
            effort: args.reasoning_effort.as_deref().and_then(|level| EffortArg::from_str(level, true).ok()),
            directory: args.directory.clone(),
            allow_tool: args.allow_tool.clone(),
            allow_all_tools: args.allow_all_tools || args.allow_all,
            deny_tool: args.deny_tool.clone(),
            available_tools: args.available_tools.clone().unwrap_or_default(),
            excluded_tools: args.excluded_tools.clone(),
            add_dir: args.add_dir.clone(),
            secret_env_vars: args.secret_env_vars.clone(),
            ..Self::default()
        }
    }

    /// The flags that apply to any session, not only to the requested one.
    pub(crate) fn common(&self) -> Self {
        Self {
            rehearse: self.rehearse.clone(),
            allow_tool: self.allow_tool.clone(),
            allow_all_tools: self.allow_all_tools,
            deny_tool: self.deny_tool.clone(),
            available_tools: self.available_tools.clone(),
            excluded_tools: self.excluded_tools.clone(),
            add_dir: self.add_dir.clone(),
            secret_env_vars: self.secret_env_vars.clone(),
            turn_timeout: self.turn_timeout,
            stall_timeout: self.stall_timeout,
            startup_timeout: self.startup_timeout,
            max_steps: self.max_steps,
            budget: self.budget,
            ..Self::default()
        }
    }
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
