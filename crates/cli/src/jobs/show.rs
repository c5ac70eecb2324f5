//! Lists the jobs of a file and earlier runs, and shows one run in full.

use anyhow::Result;
use hangar_jobs::chart::chart;
use hangar_jobs::record::RunId;
use hangar_jobs::store::{FileStore, RunStore};
use hangar_jobs::validate::ValidEntry;
use serde_json::json;

use super::progress::told;
use crate::commands::print_line;
use crate::exit::Exit;

pub(super) fn jobs(entry: &ValidEntry, as_json: bool) -> Result<Exit> {
    if as_json {
        let charts: serde_json::Map<String, serde_json::Value> = entry
            .jobs
            .iter()
            .map(|(name, job)| Ok((name.clone(), serde_json::to_value(chart(&job.work))?)))
            .collect::<Result<_>>()?;
        let all = json!({ "grid": entry.grid, "jobs": entry.jobs, "chart": charts });
        print_line(&serde_json::to_string_pretty(&all)?)?;
        return Ok(Exit::Done);
    }
    for (name, job) in &entry.jobs {
        let tasks = job.work.tasks().len();
        let input = if job.require_user_input == Some(true) { ", needs --input" } else { "" };
        print_line(&format!("{name}  ({tasks} tasks{input})"))?;
    }
    Ok(Exit::Done)
}

pub(super) fn runs(store: &FileStore, limit: usize, as_json: bool) -> Result<Exit> {
    let runs = store.list(limit)?;
    if as_json {
        print_line(&serde_json::to_string_pretty(&runs)?)?;
        return Ok(Exit::Done);
    }
    if runs.is_empty() {
        print_line("No runs yet. Start one with: hangar job run FILE NAME")?;
    }
    for run in runs {
        let started = run.started.strftime("%Y-%m-%d %H:%M");
        let place = run.working_directory.display();
        print_line(&format!("{}  {started}  {:<12}  {}  {place}", run.run, run.status, run.subject.name()))?;
    }
    Ok(Exit::Done)
}

pub(super) fn run(store: &FileStore, run: String, as_json: bool) -> Result<Exit> {
    for record in store.read(&RunId(run))? {
        let line = if as_json { Some(serde_json::to_string(&record)?) } else { told(&record) };
        if let Some(line) = line {
            print_line(&line)?;
        }
    }
    Ok(Exit::Done)
}
