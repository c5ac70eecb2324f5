//! The fleet: `hangar worker`, `hangar workers` and `hangar run --fleet`.
//!
//! `worker.rs` takes orders and keeps their leases, `attempt.rs` claims one and says how it ended, `session.rs` carries it out with the
//! code of `hangar run`, `workspace.rs` is where it works. `portal.rs` is the fleet as `hangar up --fleet` shows it, and `follow.rs` one
//! session of it. `submit.rs` places an order and shows its events here. Streams, claims and leases are `crates/fleet`.

pub(crate) mod args;
mod at_work;
mod attempt;
pub(crate) mod config;
pub(crate) mod doctor;
mod flags;
mod follow;
mod listing;
pub(crate) mod portal;
mod session;
mod submit;
mod worker;
mod workspace;

use anyhow::{Context, Result};
use hangar_fleet::Broker;
use hangar_fleet::run_store::FleetRunStore;

use crate::exit::Exit;
use crate::runtimes::args::RunWithArgs;
use crate::settings::Settings;
use args::{WorkerArgs, WorkersArgs};

/// Threads of a process of the fleet: a session that computes must not keep leases from being extended.
const THREADS: usize = 2;

fn runtime() -> Result<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).enable_all().build();
    runtime.context("cannot start the runtime")
}

async fn connect(settings: &Settings, url: Option<&str>, name: &str) -> Result<Broker> {
    Ok(Broker::connect(config::load(settings, url)?, name).await?)
}

pub(crate) fn worker(settings: &Settings, args: &WorkerArgs) -> Result<Exit> {
    runtime()?.block_on(worker::run(settings, args))
}

pub(crate) fn workers(settings: &Settings, args: WorkersArgs) -> Result<Exit> {
    runtime()?.block_on(listing::run(settings, args))
}

/// The records of the runs of a fleet.
pub(crate) fn runs(settings: &Settings, url: &str) -> Result<FleetRunStore> {
    let fleet = config::load(settings, Some(url).filter(|url| !url.is_empty()))?;
    let owner = format!("{}-{}", worker::machine_name(), std::process::id());
    Ok(FleetRunStore::connect(fleet, &owner, settings.home.join("fleet").join("runs"))?)
}

pub(crate) fn run(settings: &Settings, args: RunWithArgs) -> Result<Exit> {
    let runtime = runtime()?;
    let exit = runtime.block_on(submit::run(settings, &args));
    runtime.shutdown_timeout(std::time::Duration::from_millis(100));
    exit
}
