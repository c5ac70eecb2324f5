//! `cargo xtask bench runtimes`: what Hangar costs beside the agents that it looks after.

use anyhow::{Context, Result};
use serde_json::Value;

use super::Model;
use crate::{clients, root, shell};

const SESSIONS: u32 = 200;
const SECONDS: u32 = 30;
const TURNS: u32 = 5;

/// The bars: megabytes per session, percent of the agent's own processor time, cores for all sessions.
const MEGABYTES: f64 = 3.0;
const SHARE: f64 = 5.0;
const CORES: f64 = 1.0;
/// Growth between the first third of the run and its end that is still called flat.
const FLAT: f64 = 1.1;

/// `debug` finds faults without the long build; its figures are no measure.
pub(crate) fn run(debug: bool) -> Result<()> {
    let profile = if debug { "dev" } else { "release" };
    let packages = ["--package", "hangar-cli", "--package", "hangar-runtimes"];
    let mut build = shell::program("cargo");
    build.args(["build", "--locked", "--profile", profile]).args(packages);
    shell::run(build.args(["--bins", "--example", "crowd"]))?;
    clients::install_agents()?;
    let built = root().join("target").join(if debug { "debug" } else { "release" });
    let crowd = built.join("examples/crowd").display().to_string();
    let many = figures(&crowd, &["many", &SESSIONS.to_string(), &SECONDS.to_string()])?;
    let memory: Vec<f64> =
        many["residentMegabytes"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
    let flat = match (memory.get(memory.len() / 3), memory.last()) {
        (Some(early), Some(late)) => late / early,
        _ => f64::NAN,
    };
    println!("\n{SESSIONS} stand-ins at 50 events a second, {SECONDS} s:");
    line("events lost", number(&many, "lost"), 0.0, "");
    line("memory per session", number(&many, "megabytesPerSession"), MEGABYTES, "MB");
    line("memory at the end over a third", flat, FLAT, "");
    println!(
        "  memory over time, MB                   {}",
        memory.iter().map(|at| format!("{at:.1}")).collect::<Vec<_>>().join(" ")
    );
    line("cores", number(&many, "cores"), CORES, "");
    let model = Model::start(&built.join("hangar"))?;
    for (name, program) in clients::agents() {
        let program = program.display().to_string();
        let cost = figures(&crowd, &["cost", name, &program, &model.url, &TURNS.to_string()])?;
        println!("\n{name}, {TURNS} turns:");
        line("ours, in percent of its processor time", number(&cost, "share") * 100.0, SHARE, "%");
        println!(
            "  {:<38} {:>8.3} s of {:.2} s",
            "which is",
            number(&cost, "ourSeconds"),
            number(&cost, "agentSeconds")
        );
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
    println!("  {what:<38} {value:>8.3} {unit:<2}  bar {bar} {met}");
}
