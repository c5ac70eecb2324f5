//! `hangar job`: runs jobs without a portal, and shows their results.

pub(crate) mod args;
pub(crate) mod background;
mod progress;
mod run;
mod show;
mod views;

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use hangar_jobs::driver::RunEnvironment;
use hangar_jobs::mcp;
use hangar_jobs::read::load;
use hangar_jobs::store::FileStore;
use hangar_jobs::validate::ValidEntry;
use hangar_process::credentials::Child;

use crate::commands::print_line;
use crate::credentials;
use crate::exit::Exit;
use crate::redact;
use crate::settings::Settings;
use args::JobCommand;

pub(crate) fn run(settings: &Settings, command: JobCommand) -> Result<Exit> {
    match command {
        JobCommand::Run(args) => run::run(settings, args),
        JobCommand::Resume(args) => run::resume(settings, args),
        JobCommand::List { file, json } => {
            let entry = read(&file)?;
            show::jobs(&entry, json)
        }
        JobCommand::Show { run, json } => show::run(&store(settings), run, json),
        JobCommand::Runs { limit, json } => show::runs(&store(settings), limit, json),
        JobCommand::Schema => {
            print_line(hangar_jobs::entry::SCHEMA.trim_end())?;
            Ok(Exit::Done)
        }
        JobCommand::Tools => serve_tools(),
    }
}

pub(crate) fn store(settings: &Settings) -> FileStore {
    FileStore::new(settings.home.join("runs"))
}

fn read(file: &Path) -> Result<Arc<ValidEntry>> {
    Ok(Arc::new(load(file)?))
}

/// Facts about this machine for jobs.
pub(crate) fn run_environment(settings: &Settings) -> RunEnvironment {
    let redactor = redact::of_machine(settings);
    RunEnvironment {
        variables: credentials::environment(settings, Child::Command, &[]),
        git: credentials::git(),
        clean: Arc::new(move |record| redactor.record(record)),
    }
}

/// The MCP configuration by which agents find the job tools: this program serves them.
pub(crate) fn job_tools() -> Result<String> {
    let program = std::env::current_exe().context("finding the program itself")?;
    Ok(mcp::configuration(&program.to_string_lossy(), &["job", "tools"]))
}

/// The job tools as an MCP server, for the agents that a job starts.
fn serve_tools() -> Result<Exit> {
    for line in std::io::stdin().lines() {
        if let Some(answer) = hangar_jobs::mcp::answer(&line?) {
            print_line(&answer)?;
        }
    }
    Ok(Exit::Done)
}
