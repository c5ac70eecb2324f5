//! `hangar workers`: who is there, and who takes no more.

use anyhow::{Result, bail};
use hangar_fleet::Broker;
use hangar_fleet::facts::{CordonFact, CordonMode, WorkerFact, check_name};
use jiff::Timestamp;
use serde_json::json;

use super::args::{WorkersArgs, WorkersCommand};
use crate::commands::print_line;
use crate::exit::Exit;
use crate::settings::Settings;

/// Leases without a heartbeat after which a worker counts as lost.
const LOST_LEASES: i64 = 2;

pub(super) async fn run(settings: &Settings, args: WorkersArgs) -> Result<Exit> {
    let broker = super::connect(settings, args.fleet.fleet.as_deref(), "hangar workers").await?;
    match &args.command {
        None => list(&broker, args.json).await,
        Some(WorkersCommand::Cordon { name }) => tell(&broker, name, CordonMode::Cordoned).await,
        Some(WorkersCommand::Uncordon { name }) => tell(&broker, name, CordonMode::Open).await,
        Some(WorkersCommand::Drain { name }) => tell(&broker, name, CordonMode::Draining).await,
    }
}

async fn tell(broker: &Broker, name: &str, mode: CordonMode) -> Result<Exit> {
    check_name(name)?;
    let Some(worker) = broker.fact::<WorkerFact>(name).await? else {
        bail!("there is no worker `{name}`; `hangar workers` lists them");
    };
    broker.put_fact(&CordonFact { worker: name.to_owned(), mode, at: Timestamp::now() }).await?;
    let busy = worker.busy;
    print_line(&match mode {
        CordonMode::Open => format!("{name} takes orders."),
        CordonMode::Cordoned => format!("{name} takes no more orders; {busy} go on."),
        CordonMode::Draining => format!("{name} takes no more orders, and ends when its {busy} have ended."),
    })?;
    Ok(Exit::Done)
}

async fn list(broker: &Broker, as_json: bool) -> Result<Exit> {
    let mut workers = broker.facts::<WorkerFact>().await?;
    workers.sort_by(|a, b| a.name.cmp(&b.name));
    let lease = i64::try_from(broker.settings().lease.as_secs()).unwrap_or(i64::MAX);
    let now = Timestamp::now();
    let rows: Vec<Row> = workers.iter().map(|worker| Row::of(worker, now, lease)).collect();
    if as_json {
        let rows: Vec<_> = rows
            .iter()
            .map(|row| json!({ "state": row.state, "secondsSinceHeartbeat": row.age, "worker": row.worker }))
            .collect();
        print_line(&serde_json::to_string_pretty(&rows)?)?;
        return Ok(Exit::Done);
    }
    if rows.is_empty() {
        print_line("There is no worker; `hangar worker --fleet URL` starts one.")?;
    }
    for row in rows {
        print_line(&row.line())?;
    }
    Ok(Exit::Done)
}

/// Whether a worker was silent for too long.
pub(super) fn is_lost(worker: &WorkerFact, broker: &Broker) -> bool {
    let lease = i64::try_from(broker.settings().lease.as_secs()).unwrap_or(i64::MAX);
    age(worker, Timestamp::now()) > LOST_LEASES.saturating_mul(lease)
}

/// Seconds since the last heartbeat.
pub(super) fn age(worker: &WorkerFact, now: Timestamp) -> i64 {
    now.as_second().saturating_sub(worker.at.as_second()).max(0)
}

/// State of a worker in a word. `lease` is in seconds.
pub(super) fn state_of(worker: &WorkerFact, now: Timestamp, lease: i64) -> &'static str {
    match worker.mode {
        _ if worker.gone => "gone",
        _ if age(worker, now) > LOST_LEASES.saturating_mul(lease) => "lost",
        CordonMode::Cordoned => "cordoned",
        CordonMode::Draining => "draining",
        CordonMode::Open => "ready",
    }
}

struct Row<'a> {
    worker: &'a WorkerFact,
    state: &'static str,
    /// Seconds since the last heartbeat.
    age: i64,
}

impl<'a> Row<'a> {
    fn of(worker: &'a WorkerFact, now: Timestamp, lease: i64) -> Self {
        Self { worker, state: state_of(worker, now, lease), age: age(worker, now) }
    }

    fn line(&self) -> String {
        let worker = self.worker;
        let labels: Vec<&str> = worker.labels.iter().collect();
        let labels = if labels.is_empty() { String::new() } else { format!("  [{}]", labels.join(" ")) };
        let disk = worker.free_bytes.map_or_else(String::new, |free| format!("  {} GB free", free >> 30));
        let load = worker.load.map_or_else(String::new, |load| format!("  load {load:.1}"));
        let trouble = worker.trouble.as_deref().map_or_else(String::new, |why| format!("\n  {why}"));
        let (name, state, age) = (&worker.name, self.state, self.age);
        let (busy, slots, version) = (worker.busy, worker.slots, &worker.version);
        format!(
            "{name}  {state}  {busy} of {slots} slots{labels}  {version}  seen {age} s ago{load}{disk}{trouble}"
        )
    }
}
