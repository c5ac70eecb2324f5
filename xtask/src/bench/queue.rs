//! `cargo xtask bench queue`: the cost of the scheduler's decisions with 10,000 items in the queue, and how soon its page shows them.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::portal::{NAME, Portal};
use super::table::{Bar, Table, Unit};
use crate::{clients, root, shell};

const QUEUED: usize = 10_000;
const DECISIONS: usize = 5_000;
const SLOTS: usize = 8;
/// Visits with a new browser each, and visits of one browser again.
const RUNS: usize = 7;
/// Words of the row of the item that is next.
const WORDS: &str = "first in line";
const OWNER: &str = "bench";

pub(crate) fn run(program: &Path, cache: &Path) -> Result<()> {
    let mut table = Table::new(vec![NAME]);
    decisions(&mut table)?;
    if let Err(error) = page(program, cache, &mut table) {
        println!("the page was not measured: {error:#}");
    }
    table.set_bars(&[
        ("10,000 queued: a decision", Bar::Below(1000.0)),
        ("10,000 queued: a decision, p99", Bar::Below(1000.0)),
        ("10,000 queued: a decision on record", Bar::Below(1000.0)),
        ("10,000 queued: page, cold", Bar::Below(500.0)),
        ("10,000 queued: page, warm", Bar::Below(500.0)),
    ]);
    println!("\n{table}");
    Ok(())
}

fn decisions(table: &mut Table) -> Result<()> {
    let package = ["--release", "--locked", "--package", "hangar-registry", "--example", "decisions"];
    shell::run(shell::program("cargo").arg("build").args(package))?;
    let program = root().join("target/release/examples/decisions");
    let mut measured = shell::program(&program.to_string_lossy());
    let told = shell::read(measured.args([QUEUED.to_string(), DECISIONS.to_string()]))?;
    let told: Value = serde_json::from_str(told.trim()).with_context(|| format!("it told `{told}`"))?;
    for (what, name, figure) in [
        ("10,000 queued: a decision", "decide", "median"),
        ("10,000 queued: a decision, p99", "decide", "p99"),
        ("10,000 queued: a decision on record", "recorded", "median"),
        ("10,000 queued: a decision on record, p99", "recorded", "p99"),
        ("10,000 queued: why one item waits", "reason", "median"),
        ("10,000 queued: why one item waits, p99", "reason", "p99"),
    ] {
        let time = told[name][figure].as_f64().with_context(|| format!("{name} was not measured"))?;
        table.add(what, Unit::Microseconds, NAME, time);
    }
    Ok(())
}

fn page(program: &Path, cache: &Path, table: &mut Table) -> Result<()> {
    clients::install_node()?;
    clients::install_chromium()?;
    let mut presence = None;
    let portal = Portal::start_with(program, cache, |home| {
        std::fs::create_dir_all(home.join("queue/owners"))?;
        std::fs::write(home.join("config.toml"), format!("[limits]\nglobal = {SLOTS}\n"))?;
        std::fs::write(home.join("queue/queue.jsonl"), log())?;
        // The work belongs to a process that is there: this one.
        let owner = File::create(home.join("queue/owners").join(OWNER))?;
        owner.lock()?;
        presence = Some(owner);
        Ok(())
    })?;
    let mut visits = shell::program("node");
    visits.arg(root().join("e2e/portal/first-screen.mjs"));
    visits.arg(format!("{}/queue", portal.url())).arg(WORDS).arg(RUNS.to_string());
    let told = shell::read(&mut visits)?;
    let told: Value =
        serde_json::from_str(told.trim()).with_context(|| format!("the browser told `{told}`"))?;
    for (what, visits) in [("10,000 queued: page, cold", "cold"), ("10,000 queued: page, warm", "warm")] {
        let mut times: Vec<f64> =
            told[visits].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
        times.sort_by(f64::total_cmp);
        let median = times.get(times.len() / 2).with_context(|| format!("no {visits} visit was measured"))?;
        table.add(what, Unit::Milliseconds, NAME, *median);
    }
    drop(presence);
    Ok(())
}

/// The log of a queue with work in all slots and much that waits, of several projects, agents and jobs.
fn log() -> String {
    let mut log = String::new();
    for number in 0..QUEUED + SLOTS {
        let id = format!("run-{number}/1");
        let (minutes, seconds) = (number / 60 % 60, number % 60);
        let at = format!("2026-01-01T{:02}:{minutes:02}:{seconds:02}.000Z", number / 3600);
        let item = json!({
            "id": id, "kind": "task", "project": format!("/projects/{}", number % 100),
            "runtime": format!("runtime-{}", number % 3), "account": format!("account-{}", number % 5),
            "host": "local", "job": format!("job-{}", number % 1000), "run": format!("run-{number}"),
            "enqueued": at, "attempt": 1,
        });
        let enqueued = json!({ "at": at, "type": "enqueued", "item": item, "owner": OWNER });
        log.push_str(&format!("{enqueued}\n"));
        if number < SLOTS {
            log.push_str(&format!("{}\n", json!({ "at": at, "type": "granted", "item": id })));
        }
    }
    log
}
