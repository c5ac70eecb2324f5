//! Flags of `hangar job`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::args::OutputFormat;

#[derive(Debug, Subcommand)]
pub(crate) enum JobCommand {
    /// Run a job to its end
    Run(JobRunArgs),
    /// Continue a run whose process ended, or all of them
    Resume(ResumeArgs),
    /// Check a file and list its jobs
    List {
        /// File with tasks and jobs, YAML or JSON
        file: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show a run and its outcome
    Show {
        /// Id of the run; `hangar job runs` lists them
        run: String,
        /// Print its records as JSON lines
        #[arg(long)]
        json: bool,
    },
    /// List runs, newest first
    Runs {
        /// Maximum number of runs
        #[arg(long, default_value_t = 50)]
        limit: usize,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schema of job files
    Schema,
    /// Serve the MCP tools that agents report with
    #[command(hide = true)]
    Tools,
}

#[derive(Debug, Args)]
pub(crate) struct JobRunArgs {
    /// File with tasks and jobs, YAML or JSON
    pub(crate) file: PathBuf,
    /// Name of the job
    pub(crate) name: String,
    /// Input for a job that requires it
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) input: String,
    /// Work in this directory
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Named agent or runtime for tasks that name none
    #[arg(long, visible_alias = "agent", value_name = "NAME")]
    pub(crate) runtime: Option<String>,
    /// Let the workers of this fleet carry the tasks out, and keep the records there; without URL, of the one in config.toml
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "")]
    pub(crate) fleet: Option<String>,
    /// Print text, or JSON lines
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) output_format: OutputFormat,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// Id of the run; `hangar job runs` lists them
    #[arg(required_unless_present = "all")]
    pub(crate) run: Option<String>,
    /// Continue all runs of this home whose process ended, in one process
    #[arg(long, conflicts_with_all = ["run", "fleet"])]
    pub(crate) all: bool,
    /// The run is one of this fleet; without URL, of the one in config.toml
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "")]
    pub(crate) fleet: Option<String>,
    /// Print text, or JSON lines
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) output_format: OutputFormat,
}
