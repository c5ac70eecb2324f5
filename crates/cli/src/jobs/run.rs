//! A run from the command line: carried out, shown, and stopped by a signal.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use hangar_jobs::driver::{Executor, RunDriver};
use hangar_jobs::record::{RunEnd, RunId, RunOrder, Subject};
use hangar_registry::hub::{Hub, HubConfig};
use hangar_registry::runs::hub_runtimes;
use hangar_store::Store;
use tokio::signal::unix::{SignalKind, signal};

use super::args::{JobRunArgs, ResumeArgs};
use super::progress::Shown;
use super::views;
use crate::args::OutputFormat;
use crate::exit::Exit;
use crate::machine::Machine;
use crate::output::remark;
use crate::settings::Settings;

pub(super) fn run(settings: &Settings, args: JobRunArgs) -> Result<Exit> {
    let entry = super::read(&args.file)?;
    let Some(job) = entry.jobs.get(&args.name) else {
        let names: Vec<&str> = entry.jobs.keys().map(String::as_str).collect();
        bail!("{} has no job `{}`; it has {}", args.file.display(), args.name, names.join(", "));
    };
    if job.require_user_input == Some(true) && args.input.trim().is_empty() {
        bail!("the job `{}` needs input: --input \"...\"", args.name);
    }
    let directory = args.directory.unwrap_or_else(|| ".".into());
    let here = || format!("the working directory {}", directory.display());
    let mut order = RunOrder {
        subject: Subject::Job { name: args.name },
        input: args.input,
        working_directory: std::path::absolute(&directory).with_context(here)?,
        runtime: args.runtime,
        entry,
    };
    // A folder of another machine is checked on that machine.
    if Machine::new(settings)?.works_here(&order) {
        order.working_directory = std::fs::canonicalize(&order.working_directory).with_context(here)?;
    }
    carry_out(settings, args.output_format, |executor, shown| Ok(executor.start(order, shown)?))
}

pub(super) fn resume(settings: &Settings, args: ResumeArgs) -> Result<Exit> {
    let run = RunId(args.run);
    carry_out(settings, args.output_format, |executor, shown| Ok(executor.resume(&run, shown)?))
}

fn carry_out(
    settings: &Settings,
    format: OutputFormat,
    begin: impl FnOnce(&Arc<Executor>, Arc<Shown>) -> Result<RunDriver>,
) -> Result<Exit> {
    // It is hidden from agents, and redacted in output.
    let token = views::token();
    let settings = &settings.with_secret(None, &token);
    // Sessions of a run are listed like all others.
    let hub = Hub::new(HubConfig {
        host: Arc::new(Machine::new(settings)?),
        store: Store::new(&settings.home),
        now: jiff::Timestamp::now,
    });
    let executor = Arc::new(Executor {
        runtimes: hub_runtimes(&hub),
        store: Arc::new(super::store(settings)),
        job_tools: Some(super::job_tools()?),
        environment: super::run_environment(settings)?,
        now: jiff::Timestamp::now,
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let running = begin(&executor, Arc::new(Shown::new(format)))?;
        let (run, controls) = (running.run().clone(), running.controls());
        // Without it the run is carried out all the same; nobody can attach to its sessions.
        let _views = views::open(settings, &hub, &token, Path::new("."))
            .await
            .inspect_err(|error| tracing::warn!(%error, "no view can join the sessions of the run"));
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot catch SIGINT")?;
        let mut terminate = signal(SignalKind::terminate()).context("cannot catch SIGTERM")?;
        let to_end = running.to_end();
        tokio::pin!(to_end);
        let end = tokio::select! {
            end = &mut to_end => end,
            _ = interrupt.recv() => { controls.stop().await; to_end.await }
            _ = terminate.recv() => { controls.stop().await; to_end.await }
        };
        hub.close().await;
        let end = end.with_context(|| {
            format!("the run stopped; go on with it: {} job resume {run}", settings.program)
        })?;
        if end == RunEnd::Succeeded {
            return Ok(Exit::Done);
        }
        remark(&format!("error: the run {end}"));
        Ok(Exit::Failed)
    })
}
