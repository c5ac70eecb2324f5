//! What `hangar job` takes.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::args::OutputFormat;

#[derive(Debug, Subcommand)]
pub(crate) enum JobCommand {
    /// Run a job of a file to its end
    Run(RunArgs),
    /// Go on with a run whose process ended
    Resume(ResumeArgs),
    /// Check a file and list its jobs
    List {
        file: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what became of a run
    Show {
        /// Its id, as `hangar job runs` lists it
        run: String,
        /// Print its records, one JSON line each
        #[arg(long)]
        json: bool,
    },
    /// List runs, newest first
    Runs {
        #[arg(long, default_value_t = 50)]
        limit: usize,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schema of job files
    Schema,
    /// Serve the tools by which agents report to a job
    #[command(hide = true)]
    Tools,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// A file with tasks and jobs, YAML or JSON
    pub(crate) file: PathBuf,
    /// The name of the job
    pub(crate) name: String,
    /// What the job is to do, if it asks for that
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) input: String,
    /// Work in this directory instead of the current one
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// The agent for tasks that name none
    #[arg(long, value_name = "NAME")]
    pub(crate) runtime: Option<String>,
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) output_format: OutputFormat,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// Its id, as `hangar job runs` lists it
    pub(crate) run: String,
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) output_format: OutputFormat,
}
