//! `cargo xtask bench runtimes`: what Hangar costs beside the agents that it looks after.

use anyhow::{Context, Result};
use serde_json::Value;

use super::Model;
use crate::{clients, root, shell};

const SESSIONS: u32 = 200;
const SECONDS: u32 = 30;
const TURNS: u32 = 5;

/// The bars: megabytes per session, share of the agent's own processor time, cores for all sessions.
const MEGABYTES: f64 = 3.0;
const SHARE: f64 = 0.05;
const CORES: f64 = 1.0;
/// Growth between the middle of the run and its end that is still called flat.
const FLAT: f64 = 1.1;

pub(crate) fn run() -> Result<()> {
    let build = ["build", "--release", "--locked", "--package", "hangar-cli", "--package", "hangar-runtimes"];
    shell::run(shell::program("cargo").args(build).args(["--bins", "--example", "crowd"]))?;
    clients::install_agents()?;
    let crowd = root().join("target/release/examples/crowd").display().to_string();
    let many = figures(&crowd, &["many", &SESSIONS.to_string(), &SECONDS.to_string()])?;
    let flat = number(&many, "residentLate") / number(&many, "residentEarly");
    println!("\n{SESSIONS} stand-ins at 50 events a second, {SECONDS} s:");
    line("events lost", number(&many, "lost"), 0.0, "");
    line("memory per session", number(&many, "megabytesPerSession"), MEGABYTES, "MB");
    line("memory at the end over halfway", flat, FLAT, "");
    line("cores", number(&many, "cores"), CORES, "");
    let model = Model::start(&root().join("target/release/hangar"))?;
    for (name, program) in clients::agents() {
        let program = program.display().to_string();
        let cost = figures(&crowd, &["cost", name, &program, &model.url, &TURNS.to_string()])?;
        println!("\n{name}, {TURNS} turns:");
        line("share of its processor time", number(&cost, "share"), SHARE, "");
        line("memory", number(&cost, "megabytesPerSession"), MEGABYTES, "MB");
    }
    Ok(())
}

fn figures(crowd: &str, args: &[&str]) -> Result<Value> {
    let text = shell::read(shell::program(crowd).args(args))?;
    serde_json::from_str(text.trim()).with_context(|| format!("crowd printed `{}`", text.trim()))
}

fn number(figures: &Value, name: &str) -> f64 {
    figures[name].as_f64().unwrap_or(f64::NAN)
}

fn line(what: &str, value: f64, bar: f64, unit: &str) {
    let met = if value <= bar { "met" } else { "NOT met" };
    println!("  {what:<36} {value:>8.3} {unit:<2}  bar {bar} {met}");
}
