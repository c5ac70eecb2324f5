//! `hangar job`: runs jobs without a portal, and shows what became of them.

pub(crate) mod args;
mod progress;
mod run;
mod show;

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use hangar_jobs::read::{Format, MAX_ENTRY_BYTES, read_entry};
use hangar_jobs::store::FileStore;
use hangar_jobs::validate::{ValidEntry, validate_entry};

use crate::commands::print_line;
use crate::exit::Exit;
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
            print_line(&serde_json::to_string_pretty(&hangar_jobs::entry::schema())?)?;
            Ok(Exit::Done)
        }
        JobCommand::Tools => serve_tools(),
    }
}

pub(crate) fn store(settings: &Settings) -> FileStore {
    FileStore::new(settings.home.join("runs"))
}

pub(crate) fn read(file: &Path) -> Result<Arc<ValidEntry>> {
    let doing = || format!("reading {}", file.display());
    let length = std::fs::metadata(file).with_context(doing)?.len();
    anyhow::ensure!(length <= MAX_ENTRY_BYTES as u64, "{} is too long for an entry", file.display());
    let text = std::fs::read_to_string(file).with_context(doing)?;
    let code_path = format!("{}:", file.display());
    let entry = read_entry(&text, Format::of(file), &code_path).with_context(doing)?;
    Ok(Arc::new(validate_entry(entry, &code_path)?))
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
