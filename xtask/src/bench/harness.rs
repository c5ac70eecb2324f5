//! `cargo xtask bench harness`: what hooks, confinement, MCP servers that nobody uses, and many sub-agents cost.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Map, json};

use super::contender::{Contender, Kind, Task};
use super::measure::Job;
use super::table::{Bar, Table, Unit};
use super::{Model, median, megabytes, millis, repeat};
use crate::root;

/// Runs of each kind; they take turns, so that a machine that slows down slows all of them.
const RUNS: usize = 20;
const SERVERS: usize = 13;
const HOOKED_CALLS: u32 = 20;
const AGENTS: usize = 100;

pub(super) fn run(program: &Path, cache: &Path) -> Result<()> {
    let model = Model::start(program)?;
    let place = |name: &str| {
        let home = cache.join("harness").join(name);
        if home.exists() {
            std::fs::remove_dir_all(&home).context("removing what the last benchmark left")?;
        }
        std::fs::create_dir_all(&home)?;
        Contender::new(Kind::Hangar, program.to_path_buf(), &home, &model.url)
    };
    let mut table = Table::new(vec![Kind::Hangar.name()]);
    measure_servers(&place("plain")?, &place("servers")?, &mut table)?;
    measure_hooks(&place("free")?, &place("hooked")?, &mut table)?;
    measure_confinement(&place("confined")?, &mut table)?;
    measure_agents(&place("agents")?, &mut table)?;
    table.set_bars(&[
        ("13 unused MCP servers: slower than none by", Bar::Below(20.0)),
        ("a hook that does nothing", Bar::Below(10.0)),
        ("a confined command: more than a plain one", Bar::Below(3.0)),
        ("100 sub-agents: peak memory", Bar::Below(150.0)),
    ]);
    println!("\n{table}");
    Ok(())
}

/// Servers whose tools are known are not started before one is called, so only the first run starts them.
fn measure_servers(plain: &Contender, servers: &Contender, table: &mut Table) -> Result<()> {
    let server = root().join("xtask/src/bench/tools.mjs");
    let configured: Map<_, _> = (0..SERVERS)
        .map(|number| (format!("server{number}"), json!({ "command": "node", "args": [server] })))
        .collect();
    std::fs::create_dir_all(servers.state())?;
    let config = json!({ "mcpServers": configured }).to_string();
    std::fs::write(servers.state().join("mcp-config.json"), config)?;
    let (none, some) = in_turns(&plain.job(Task::Pong), &servers.job(Task::Pong))?;
    let name = plain.kind.name();
    table.add("one-shot: wall", Unit::Milliseconds, name, none);
    table.add("13 unused MCP servers: wall", Unit::Milliseconds, name, some);
    let slower = (some / none - 1.0) * 100.0;
    table.add("13 unused MCP servers: slower than none by", Unit::Percent, name, slower);
    Ok(())
}

fn measure_hooks(free: &Contender, hooked: &Contender, table: &mut Table) -> Result<()> {
    let hooks = hooked.state().join("hooks");
    std::fs::create_dir_all(&hooks)?;
    let hook = json!({ "version": 1, "hooks": { "preToolUse": [{ "type": "command", "bash": "true" }] } });
    std::fs::write(hooks.join("nothing.json"), hook.to_string())?;
    let task = Task::ShellCalls(HOOKED_CALLS);
    let (without, with) = in_turns(&free.job(task), &hooked.job(task))?;
    let each = (with - without) / f64::from(HOOKED_CALLS);
    table.add("a hook that does nothing", Unit::Milliseconds, free.kind.name(), each);
    Ok(())
}

/// The same commands with everybody's yes, and with nobody's.
fn measure_confinement(contender: &Contender, table: &mut Table) -> Result<()> {
    let call = |n: u32| {
        let call = json!({ "command": format!("true {n}"), "description": "d" });
        format!("TOOL:bash:{call}\n")
    };
    let prompt = format!("{}SAY:done", (0..HOOKED_CALLS).map(call).collect::<String>());
    let job = |flags: &[&str]| {
        let args = [&["--output-format", "json", "-p", &prompt], flags].concat();
        contender.job_with(args.into_iter().map(str::to_owned).collect())
    };
    let (plain, confined) = in_turns(&job(&["--allow-all-tools"]), &job(&[]))?;
    let each = (confined - plain) / f64::from(HOOKED_CALLS);
    table.add("a confined command: more than a plain one", Unit::Milliseconds, contender.kind.name(), each);
    Ok(())
}

fn measure_agents(contender: &Contender, table: &mut Table) -> Result<()> {
    let task = |number: usize| {
        let call = json!({
            "description": "d", "agent_type": "general-purpose", "name": format!("agent-{number}"),
            "prompt": "DELAY:2000\nSAY:done", "mode": "background",
        });
        format!("PTOOL:task:{call}")
    };
    let calls: Vec<String> = (0..AGENTS).map(task).collect();
    let prompt = format!("{}\nTOOL:list_agents:{{}}\nSAY:started", calls.join("\n"));
    let args = ["--output-format", "json", "--allow-all-tools", "-p", &prompt];
    let mut job = contender.job_with(args.map(str::to_owned).to_vec());
    job.env.push(("COPILOT_SUBAGENT_MAX_CONCURRENT".to_owned(), AGENTS.to_string()));
    let memory = megabytes(job.peak_memory()?);
    table.add("100 sub-agents: peak memory", Unit::Megabytes, contender.kind.name(), memory);
    Ok(())
}

/// The median times of two jobs in milliseconds, after a first run of each that fills what is remembered.
fn in_turns(one: &Job, other: &Job) -> Result<(f64, f64)> {
    one.cost().context("the first run")?;
    other.cost().context("the first run")?;
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        first.extend(repeat(one, 1)?);
        second.extend(repeat(other, 1)?);
    }
    Ok((millis(median(&first, |run| run.wall)), millis(median(&second, |run| run.wall))))
}
