//! `hangar queue`, `pause`, `resume`, `drain` and `stop-all`: the queue of the home, whichever processes work on it.

pub(crate) mod budgets;
pub(crate) mod config;
mod spans;

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use hangar_registry::queue::{QueueItem, QueueMode, QueueView, Scheduler, SchedulerConfig};
use hangar_scheduler::limits::Limits;
use hangar_scheduler::retry::RetryPolicy;
use jiff::tz::TimeZone;

use crate::commands::print_line;
use crate::exit::Exit;
use crate::output::remark;
use crate::settings::Settings;

/// Time that running work gets to stop before `stop-all` reports it.
const STOP_TIME: Duration = Duration::from_secs(30);

#[derive(Debug, Args)]
pub(crate) struct QueueArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Limits with budgets, and the retry policy, as `config.toml` has them now.
pub(crate) fn configured(settings: &Settings) -> Result<(Limits, RetryPolicy)> {
    let (mut limits, retries) = config::load(settings)?;
    limits.budgets = budgets::load(settings)?;
    Ok((limits, retries))
}

/// The queue of the home.
pub(crate) fn scheduler(settings: &Settings) -> Result<Scheduler> {
    let (limits, retries) = configured(settings)?;
    let scheduler = Scheduler::open(SchedulerConfig {
        dir: settings.home.join("queue"),
        limits,
        retries,
        now: jiff::Timestamp::now,
        random,
        zone: TimeZone::UTC,
    })?;
    Ok(scheduler)
}

/// The same for a process that works: its work is traced.
pub(crate) fn working_scheduler(settings: &Settings) -> Result<Scheduler> {
    let scheduler = scheduler(settings)?;
    spans::listen(&scheduler, crate::telemetry::exporter(settings));
    Ok(scheduler)
}

/// A random number from 0 to 1.
fn random() -> f64 {
    let bits = uuid::Uuid::new_v4().as_u128() as u32;
    f64::from(bits) / f64::from(u32::MAX)
}

pub(crate) fn show(settings: &Settings, args: &QueueArgs) -> Result<Exit> {
    let view = scheduler(settings)?.view()?;
    if args.json {
        print_line(&serde_json::to_string_pretty(&view)?)?;
        return Ok(Exit::Done);
    }
    for line in lines(&view) {
        print_line(&line)?;
    }
    Ok(Exit::Done)
}

fn lines(view: &QueueView) -> Vec<String> {
    let mode = match view.mode {
        QueueMode::Open => "",
        QueueMode::Paused => "; paused",
        QueueMode::Draining => "; draining",
    };
    let slots = &view.slots;
    let waiting = view.waiting_count;
    let mut lines =
        vec![format!("{} of {} slots are taken, {waiting} waiting{mode}", slots.used, slots.limit)];
    for limit in &view.limits {
        lines.push(format!("  {} {}: {} of {}", limit.kind, limit.name, limit.used, limit.limit));
    }
    for budget in &view.budgets {
        if let Some(held) = &budget.held {
            lines.push(format!("  {held}"));
        }
    }
    for held in &view.held {
        lines.push(format!("  account {} is held: {}", held.account, held.reason));
    }
    let line = |item: &QueueItem, state: &str| {
        let agent = item.agent.as_ref().unwrap_or(&item.runtime);
        format!("{}  {agent}  {}  {state}", item.id, item.project)
    };
    lines.extend(view.running.iter().map(|item| match &item.note {
        Some(note) => line(item, &format!("running: {note}")),
        None => line(item, "running"),
    }));
    lines.extend(view.waiting.iter().map(|item| line(item, item.reason.as_deref().unwrap_or("waiting"))));
    lines
}

pub(crate) fn pause(settings: &Settings) -> Result<Exit> {
    scheduler(settings)?.pause()?;
    print_line(
        "The queue is paused: running work goes on, nothing new is started. `hangar resume` continues it.",
    )?;
    Ok(Exit::Done)
}

pub(crate) fn resume(settings: &Settings) -> Result<Exit> {
    scheduler(settings)?.resume()?;
    print_line("The queue is open, and accounts that were held are tried again.")?;
    Ok(Exit::Done)
}

/// Waits until nothing runs.
pub(crate) fn drain(settings: &Settings) -> Result<Exit> {
    let scheduler = scheduler(settings)?;
    scheduler.drain()?;
    let (running, _) = scheduler.running_kinds();
    if running > 0 {
        remark(&format!("waiting for {running} that run; `hangar queue` lists them"));
    }
    let others = runtime()?.block_on(scheduler.queue_idle())?;
    print_line(
        "The queue is drained: no work of it runs, nothing new is started. `hangar resume` continues it.",
    )?;
    if others > 0 {
        let turns = if others == 1 { "1 turn".to_owned() } else { format!("{others} turns") };
        remark(&format!(
            "note: {turns} of people still run; `hangar queue` lists them, `hangar stop-all` ends them"
        ));
    }
    Ok(Exit::Done)
}

pub(crate) fn stop_all(settings: &Settings) -> Result<Exit> {
    let scheduler = scheduler(settings)?;
    scheduler.stop_all()?;
    let idle = async { tokio::time::timeout(STOP_TIME, scheduler.idle()).await };
    match runtime()?.block_on(idle) {
        Ok(idle) => idle?,
        Err(_) => {
            remark("error: some work still runs; `hangar queue` lists it");
            return Ok(Exit::Failed);
        }
    }
    print_line("Nothing runs.")?;
    Ok(Exit::Done)
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}
