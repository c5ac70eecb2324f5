//! A run from the command line: carried out, shown, and stopped by a signal.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use hangar_jobs::driver::{Executor, RunDriver};
use hangar_jobs::record::{RunEnd, RunId, RunOrder, Subject};
use hangar_jobs::store::RunStore;
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
    let run = RunId(args.run);
    let fleet = args.fleet.as_deref();
    carry_out(settings, fleet, args.output_format, |executor, shown| Ok(executor.resume(&run, shown)?))
}

/// Says on stderr why the run waits, once for each reason.
async fn tell_waits(hub: &Hub, run: &RunId, format: OutputFormat) -> Infallible {
    let mut told = String::new();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let reason = hub.scheduler().reasons(&run.0).into_iter().next();
        if let Some((item, reason)) = reason
            && format == OutputFormat::Text
            && reason != told
        {
            remark(&format!("{item}: {reason}"));
            told = reason;
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
    runtime.block_on(async {
        if let Some(portal) = &portal {
            portal.announce_to(&hub);
        }
        notify::start(settings, &hub)?;
        let running = begin(&executor, Arc::new(Shown::new(format)))?;
        let (run, controls) = (running.run().clone(), running.controls());
        if let Some(portal) = &portal {
            portal.abort_run(&run.0).await;
        }
        let order = running.order();
        let (subject, project) =
            (order.subject.name().to_owned(), order.working_directory.display().to_string());
        let mut requests = ViewRequests::new(settings);
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot catch SIGINT")?;
        let mut terminate = signal(SignalKind::terminate()).context("cannot catch SIGTERM")?;
        let to_end = running.to_end();
        tokio::pin!(to_end);
        let end = tokio::select! {
            end = &mut to_end => end,
            () = hub.scheduler().drained(&run.0) => {
                remark(&format!("the queue is drained; go on with the run: {} job resume{again} {run}", settings.program));
                return Ok(Exit::Done);
            }
            never = tell_waits(&hub, &run, format) => match never {},
            never = live::follow_for(settings.clone(), hub.clone()) => match never {},
            never = requests.serve(settings, &hub, &token) => match never {},
            () = hub.scheduler().stopped() => { controls.stop().await; to_end.await }
            _ = interrupt.recv() => { controls.stop().await; to_end.await }
            _ = terminate.recv() => { controls.stop().await; to_end.await }
        };
        if let Ok(end) = &end {
            match end {
                RunEnd::Succeeded => hub.notify_run(&run.0, &subject, &project, None),
                RunEnd::Failed { .. } | RunEnd::LimitReached { .. } => {
                    let told = end.to_string();
                    let told = format!("The run {}.", told.trim_end_matches('.'));
                    hub.notify_run(&run.0, &subject, &project, Some(&told));
                }
                // A person stopped it, or the process ends.
                RunEnd::Canceled | RunEnd::Interrupted => {}
            }
        }
        hub.close().await;
        let end = end.with_context(|| {
            format!("the run stopped; go on with it: {} job resume{again} {run}", settings.program)
        })?;
        if end == RunEnd::Succeeded {
            return Ok(Exit::Done);
        }
        remark(&format!("error: the run {end}"));
        Ok(Exit::Failed)
    })
}
