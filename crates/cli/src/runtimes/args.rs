//! What may be typed behind `hangar run` and `hangar runtimes`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::args::{Effort, OutputFormat};

#[derive(Debug, Args)]
pub(crate) struct RunWithArgs {
    /// The agent to use; `hangar runtimes` lists them
    #[arg(long, value_name = "NAME", help_heading = "Agent")]
    pub(crate) runtime: Option<String>,
    /// The model that it shall use, by the name that it knows
    #[arg(long, value_name = "MODEL", help_heading = "Agent")]
    pub(crate) model: Option<String>,
    /// How hard it should think
    #[arg(long, visible_alias = "reasoning-effort", value_name = "LEVEL", help_heading = "Agent")]
    pub(crate) effort: Option<Effort>,
    /// Run it on another machine: HOST, USER@HOST, or a name of your ssh configuration
    #[arg(long, value_name = "HOST", help_heading = "Agent")]
    pub(crate) ssh: Option<String>,
    /// The port of ssh on the other machine
    #[arg(long, value_name = "PORT", requires = "ssh", help_heading = "Agent")]
    pub(crate) ssh_port: Option<u16>,
    /// Let the scripted model answer: one of its own, or the one at this address
    #[arg(long, value_name = "URL", num_args = 0..=1, require_equals = true, default_missing_value = "", help_heading = "Agent")]
    pub(crate) rehearse: Option<String>,
    /// Say where each setting comes from, and run nothing
    #[arg(long, help_heading = "Agent")]
    pub(crate) explain: bool,
    /// Arguments for the agent alone
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) extra: Vec<String>,

    /// Run this prompt and exit
    #[arg(short, long, value_name = "TEXT", help_heading = "Prompt", allow_hyphen_values = true)]
    pub(crate) prompt: Option<String>,
    /// Instructions before the prompt
    #[arg(long, value_name = "TEXT", help_heading = "Prompt", allow_hyphen_values = true)]
    pub(crate) system: Option<String>,
    /// The same from a file
    #[arg(long, value_name = "FILE", conflicts_with = "system", help_heading = "Prompt")]
    pub(crate) system_file: Option<PathBuf>,
    /// Work in this directory
    #[arg(short = 'C', value_name = "DIR", help_heading = "Prompt")]
    pub(crate) directory: Option<PathBuf>,

    /// text, or json for one event per line
    #[arg(long, value_name = "FORMAT", default_value = "text", help_heading = "Output")]
    pub(crate) output_format: OutputFormat,
    /// Print the answer only
    #[arg(short, long, help_heading = "Output")]
    pub(crate) silent: bool,
    /// With json: print every event, also those that are only logged
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
    #[arg(short, long, value_name = "NAME", help_heading = "Session")]
    pub(crate) name: Option<String>,

    /// Tools to allow. Without any rule about tools, all are
    #[arg(
        long,
        visible_alias = "tools",
        value_name = "RULES",
        value_delimiter = ',',
        help_heading = "Tools"
    )]
    pub(crate) allow_tool: Vec<String>,
    /// Tools to deny
    #[arg(long, value_name = "RULES", value_delimiter = ',', help_heading = "Tools")]
    pub(crate) deny_tool: Vec<String>,
    /// The only tools that the model is shown
    #[arg(long, value_name = "TOOLS", value_delimiter = ',', help_heading = "Tools")]
    pub(crate) available_tools: Vec<String>,
    /// Tools that the model is not shown
    #[arg(long, value_name = "TOOLS", value_delimiter = ',', help_heading = "Tools")]
    pub(crate) excluded_tools: Vec<String>,
    /// MCP servers: JSON, or @ and a file
    #[arg(long, visible_alias = "additional-mcp-config", value_name = "CONFIG", help_heading = "Tools")]
    pub(crate) mcp_config: Option<String>,
    /// Let tools touch this directory too
    #[arg(long, value_name = "DIR", help_heading = "Tools")]
    pub(crate) add_dir: Vec<PathBuf>,

    /// End a turn that takes longer; 0 for never
    #[arg(long, value_name = "SECONDS", help_heading = "Limits")]
    pub(crate) turn_timeout: Option<f64>,
    /// End a turn in which the agent says nothing for so long; 0 for never
    #[arg(long, value_name = "SECONDS", help_heading = "Limits")]
    pub(crate) stall_timeout: Option<f64>,
    /// End an agent that has said nothing so long after its start; 0 for never
    #[arg(long, value_name = "SECONDS", help_heading = "Limits")]
    pub(crate) startup_timeout: Option<f64>,
    /// Steps that the agent may take by itself
    #[arg(long, visible_alias = "max-autopilot-continues", value_name = "COUNT", help_heading = "Limits")]
    pub(crate) max_steps: Option<u32>,
    /// What a turn may cost
    #[arg(long, value_name = "USD", help_heading = "Limits")]
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
    /// Prove what the installed agents can do, on the scripted model, and remember it
    Probe {
        /// Only this agent
        name: Option<String>,
    },
}
