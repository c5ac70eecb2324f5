//! Flags of `hangar orchestrate`, `hangar issues` and `hangar issue`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::args::OutputFormat;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct OrchestrateArgs {
    #[command(subcommand)]
    pub(crate) command: Option<OrchestrateCommand>,
    /// Workflow file (default: WORKFLOW.md)
    #[arg(value_name = "FILE")]
    pub(crate) workflow: Option<PathBuf>,
    /// Read the tracker once, say what would be started and why the rest would not, and exit
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Exit when no issue can be worked on
    #[arg(long)]
    pub(crate) until_idle: bool,
    /// File with SORTIE_* variables
    #[arg(long, value_name = "FILE")]
    pub(crate) env_file: Option<PathBuf>,
    /// Print text, or JSON lines
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) output_format: OutputFormat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum OrchestrateCommand {
    /// Check a workflow file without running it
    Validate {
        /// Workflow file (default: WORKFLOW.md)
        file: Option<PathBuf>,
        /// Print text or JSON
        #[arg(long, value_name = "FORMAT", value_enum, default_value_t = OutputFormat::Text)]
        format: OutputFormat,
        /// File with SORTIE_* variables
        #[arg(long, value_name = "FILE")]
        env_file: Option<PathBuf>,
    },
}

/// The workflow whose issues are meant.
#[derive(Debug, Args)]
pub(crate) struct WorkflowArgs {
    /// Workflow file (default: WORKFLOW.md)
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) workflow: Option<PathBuf>,
    /// File with SORTIE_* variables
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) env_file: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct IssuesArgs {
    #[command(flatten)]
    pub(crate) workflow: WorkflowArgs,
}

#[derive(Debug, Args)]
pub(crate) struct IssueArgs {
    #[command(subcommand)]
    pub(crate) command: IssueCommand,
    #[command(flatten)]
    pub(crate) workflow: WorkflowArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum IssueCommand {
    /// Show an issue: its state, its sessions, and why it is not worked on
    Show {
        /// Identifier or id of the issue
        issue: String,
    },
    /// Work on an issue next, whatever holds it except limits
    Start {
        /// Identifier or id of the issue
        issue: String,
    },
    /// End the session of an issue and park it
    Stop {
        /// Identifier or id of the issue
        issue: String,
    },
    /// Do not work on an issue until a person acts
    Park {
        /// Identifier or id of the issue
        issue: String,
    },
    /// Try an issue again now
    Retry {
        /// Identifier or id of the issue
        issue: String,
    },
    /// Go on with the work of one of the candidates of an issue
    Promote {
        /// Identifier or id of the issue
        issue: String,
        /// Number of the candidate, as `hangar issue show` lists them
        candidate: u32,
    },
}
