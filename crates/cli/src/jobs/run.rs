//! A run from the command line: carried out, shown, and stopped by a signal.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures_util::future::join_all;
use hangar_jobs::driver::{Controls, Executor, RunDriver, RunListener};
use hangar_jobs::record::{RunEnd, RunId, RunOrder, Subject};
use hangar_jobs::store::{RunStatus, RunStore, RunStoreError};
use hangar_registry::hub::Hub;
use hangar_registry::runs::{HubSlots, forget_ended, hub_runtimes};
use tokio::signal::unix::{SignalKind, signal};

use super::args::{JobRunArgs, ResumeArgs};
use super::progress::Shown;
use super::views::{self, ViewRequests};
use crate::args::OutputFormat;
use crate::config::live;
use crate::exit::Exit;
use crate::fleet::portal::FleetPortal;
use crate::logging;
use crate::machine::{Machine, registry};
use crate::notify;
use crate::output::remark;
use crate::settings::Settings;

/// How often the reasons of waits are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

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
    let fleet = args.fleet.as_deref();
    carry_out(settings, fleet, args.output_format, |executor, shown| Ok(executor.start(order, shown)?))
}

pub(super) fn resume(settings: &Settings, args: ResumeArgs) -> Result<Exit> {
    let Some(run) = args.run.map(RunId) else { return resume_all(settings, args.output_format) };
    let fleet = args.fleet.as_deref();
    carry_out(settings, fleet, args.output_format, |executor, shown| Ok(executor.resume(&run, shown)?))
}

/// Continues all runs whose processes have ended.
fn resume_all(settings: &Settings, format: OutputFormat) -> Result<Exit> {
    let all = super::store(settings).list(usize::MAX)?;
    let mut interrupted: Vec<RunId> = all
        .into_iter()
        .filter(|summary| summary.status == RunStatus::Interrupted)
        .map(|summary| summary.run)
        .collect();
    // The oldest one first, as they were started.
    interrupted.reverse();
    if interrupted.is_empty() {
        remark("no run is interrupted");
        return Ok(Exit::Done);
    }
    let mut refused = false;
    let exit = carry_out_all(settings, None, format, |executor| {
        let shown = Arc::new(Shown::of_several(format));
        let resumed = interrupted.iter().filter_map(|run| {
            let resumed = executor.resume(run, Arc::clone(&shown) as Arc<dyn RunListener>);
            match resumed {
                Ok(resumed) => Some(resumed),
                Err(error) => {
                    remark(&format!("error: run {run} cannot be continued: {error}"));
                    refused = true;
                    None
                }
            }
        });
        Ok(resumed.collect())
    })?;
    Ok(if refused { Exit::Failed } else { exit })
}

/// Says on stderr why runs wait, once for each reason of a run.
async fn tell_waits(hub: &Hub, runs: &[RunId], format: OutputFormat) -> Infallible {
    let mut told: HashMap<&RunId, String> = HashMap::new();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        for run in runs {
            let reason = hub.scheduler().reasons(&run.0).into_iter().next();
            if let Some((item, reason)) = reason
                && format == OutputFormat::Text
                && told.get(run) != Some(&reason)
            {
                remark(&format!("{item}: {reason}"));
                told.insert(run, reason);
            }
        }
    }
}

/// What carries runs out: with records in the home, or on the servers of a fleet.
pub(super) fn executor(settings: &Settings, hub: &Hub, fleet: Option<&str>) -> Result<Arc<Executor>> {
    let store: Arc<dyn RunStore> = match fleet {
        Some(url) => Arc::new(crate::fleet::runs(settings, url)?),
        None => Arc::new(super::store(settings)),
    };
    Ok(Arc::new(Executor {
        runtimes: hub_runtimes(hub),
        store,
        slots: Arc::new(HubSlots::new(hub)),
        job_tools: Some(super::job_tools()?),
        environment: super::run_environment(settings),
        now: jiff::Timestamp::now,
    }))
}

fn carry_out(
    settings: &Settings,
    fleet: Option<&str>,
    format: OutputFormat,
    begin: impl FnOnce(&Arc<Executor>, Arc<Shown>) -> Result<RunDriver>,
) -> Result<Exit> {
    carry_out_all(settings, fleet, format, |executor| {
        Ok(vec![begin(executor, Arc::new(Shown::new(format)))?])
    })
}

/// Carries out the runs that `begin` starts, to their ends.
fn carry_out_all(
    settings: &Settings,
    fleet: Option<&str>,
    format: OutputFormat,
    begin: impl FnOnce(&Arc<Executor>) -> Result<Vec<RunDriver>>,
) -> Result<Exit> {
    // It is hidden from agents, and redacted in output.
    let token = views::token();
    let settings = &settings.with_secret(None, &token);
    logging::start_run_logs(settings);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let portal = match fleet {
        Some(url) => Some(runtime.block_on(FleetPortal::connect(settings, url))?),
        None => None,
    };
    let machine = Arc::new(Machine::new(settings)?);
    let hub = registry(settings, &machine, portal.as_ref())?;
    if !hub.scheduler().budgets().is_empty() {
        // Spending of other processes counts from the start.
        hub.charge_all();
    }
    forget_ended(&hub, &super::store(settings));
    let executor = executor(settings, &hub, fleet)?;
    let again = if fleet.is_some() { " --fleet" } else { "" };
    let again = format!("{} job resume{again}", settings.program);
    runtime.block_on(async {
        if let Some(portal) = &portal {
            portal.announce_to(&hub);
        }
        notify::start(settings, &hub)?;
        let drivers = begin(&executor)?;
        let runs: Vec<RunId> = drivers.iter().map(|driver| driver.run().clone()).collect();
        let controls: Vec<Controls> = drivers.iter().map(RunDriver::controls).collect();
        if let Some(portal) = &portal {
            for run in &runs {
                portal.abort_run(&run.0).await;
            }
        }
        let mut requests = ViewRequests::new(settings);
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot catch SIGINT")?;
        let mut terminate = signal(SignalKind::terminate()).context("cannot catch SIGTERM")?;
        let ends = join_all(drivers.into_iter().map(|driver| to_end(&hub, driver, &again)));
        tokio::pin!(ends);
        let ended = tokio::select! {
            ended = &mut ends => ended,
            never = tell_waits(&hub, &runs, format) => match never {},
            never = live::follow_for(settings.clone(), hub.clone()) => match never {},
            never = requests.serve(settings, &hub, &token) => match never {},
            () = hub.scheduler().stopped() => { stop(&controls).await; ends.await }
            _ = interrupt.recv() => { stop(&controls).await; ends.await }
            _ = terminate.recv() => { stop(&controls).await; ends.await }
        };
        hub.close().await;
        let mut exit = Exit::Done;
        for (run, end) in runs.iter().zip(ended) {
            match end.with_context(|| format!("the run stopped; go on with it: {again} {run}"))? {
                RunExit::Left | RunExit::Ended(RunEnd::Succeeded) => {}
                RunExit::Ended(end) => {
                    let name = if runs.len() > 1 { format!("run {run}") } else { "the run".to_owned() };
                    remark(&format!("error: {name} {end}"));
                    exit = Exit::Failed;
                }
            }
        }
        Ok(exit)
    })
}

async fn stop(all: &[Controls]) {
    for controls in all {
        controls.stop().await;
    }
}

/// How a run ended for this process.
enum RunExit {
    Ended(RunEnd),
    /// The queue is drained, and the run is left to be resumed.
    Left,
}

/// Carries one run out, and tells people how it ended.
async fn to_end(hub: &Hub, running: RunDriver, again: &str) -> Result<RunExit, RunStoreError> {
    let (run, order) = (running.run().clone(), running.order());
    let (subject, project) = (order.subject.name().to_owned(), order.working_directory.display().to_string());
    let end = tokio::select! {
        end = running.to_end() => end?,
        () = hub.scheduler().drained(&run.0) => {
            remark(&format!("the queue is drained; go on with the run: {again} {run}"));
            return Ok(RunExit::Left);
        }
    };
    match &end {
        RunEnd::Succeeded => hub.notify_run(&run.0, &subject, &project, None),
        RunEnd::Failed { .. } | RunEnd::LimitReached { .. } => {
            let told = end.to_string();
            let told = format!("The run {}.", told.trim_end_matches('.'));
            hub.notify_run(&run.0, &subject, &project, Some(&told));
        }
        // A person stopped it, or the process ends.
        RunEnd::Canceled | RunEnd::Interrupted => {}
    }
    Ok(RunExit::Ended(end))
}
