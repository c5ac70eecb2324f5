//! `cargo xtask bench orchestrator`: 10,000 issues and 500 agents at once, which do nothing: what a tick takes, and how much
//! memory the process has.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::table::{Bar, Table, Unit};
use super::{measure, megabytes};

const NAME: &str = "hangar";
const ISSUES: usize = 10_000;
const AGENTS: usize = 500;
/// Duration of a turn of an agent, in milliseconds.
const TURN: usize = 5000;
/// Sessions that have to end before the figures are read.
const SESSIONS: usize = 2000;
const LIMIT: Duration = Duration::from_secs(600);

pub(crate) fn run(program: &Path, cache: &Path) -> Result<()> {
    let place = cache.join("orchestrator");
    let _ = std::fs::remove_dir_all(&place);
    std::fs::create_dir_all(place.join("home"))?;
    let issues: Vec<Value> = (0..ISSUES)
        .map(|number| {
            let (id, name) = (format!("id-{number}"), format!("I-{number}"));
            json!({ "id": id, "identifier": name, "title": "Mend it", "state": "To Do" })
        })
        .collect();
    std::fs::write(place.join("issues.json"), serde_json::to_vec(&issues)?)?;
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    std::fs::write(
        place.join("WORKFLOW.md"),
        format!(
            "---\ntracker: {{ kind: file, active_states: [To Do], handoff_state: Review, terminal_states: [Done] }}\nfile: {{ path: issues.json }}\npolling: {{ interval_ms: 1000 }}\nworkspace: {{ root: {} }}\nagent: {{ kind: mock, max_turns: 2, max_concurrent_agents: {AGENTS} }}\nmock: {{ turn_delay_ms: {TURN} }}\nserver: {{ port: {port} }}\n---\nx\n",
            place.join("ws").display()
        ),
    )?;
    std::fs::write(place.join("home/config.toml"), format!("[limits]\nglobal = {AGENTS}\n"))?;
    let mut command = Command::new(program);
    command.args(["orchestrate", "--output-format", "json"]).current_dir(&place);
    command.env("HANGAR_HOME", place.join("home")).stdin(Stdio::null()).stdout(Stdio::piped());
    let child = command.spawn().with_context(|| format!("{} cannot be started", program.display()))?;
    let mut orchestrator = Orchestrator { child };
    let (most, begun) = orchestrator.follow()?;
    let metrics = metrics(port)?;
    let figure = |name: &str| {
        let line = metrics.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.and_then(|figure| figure.trim().parse::<f64>().ok())
            .with_context(|| format!("there is no {name}"))
    };
    let mean = |name: &str| -> Result<f64> {
        Ok(figure(&format!("{name}_seconds_sum"))? / figure(&format!("{name}_seconds_count"))? * 1e3)
    };
    let mut table = Table::new(vec![NAME]);
    let (tick, plan) = ("hangar_orchestrator_tick", "hangar_orchestrator_plan");
    table.add("decision: mean", Unit::Milliseconds, NAME, mean(plan)?);
    table.add("tick: mean", Unit::Milliseconds, NAME, mean(tick)?);
    table.add("tick: longest", Unit::Milliseconds, NAME, figure(&format!("{tick}_longest_seconds"))? * 1e3);
    table.add("most agents at once", Unit::Pieces, NAME, most as f64);
    table.add("sessions per second", Unit::Tenths, NAME, SESSIONS as f64 / begun.elapsed().as_secs_f64());
    let memory = measure::peak_memory_of(orchestrator.child.id())?;
    table.add("peak memory", Unit::Megabytes, NAME, megabytes(memory));
    table.set_bars(&[
        ("tick: mean", Bar::Below(50.0)),
        ("most agents at once", Bar::Below(AGENTS as f64)),
        ("peak memory", Bar::Below(300.0)),
    ]);
    println!("\n{table}");
    Ok(())
}

/// The process, which ends with its owner.
struct Orchestrator {
    child: Child,
}

impl Drop for Orchestrator {
    fn drop(&mut self) {
        measure::kill_tree(self.child.id());
        let _ = self.child.wait();
    }
}

impl Orchestrator {
    /// Reads records until enough sessions have ended. The result is the most agents that ran at once, and the start.
    fn follow(&mut self) -> Result<(usize, Instant)> {
        let begun = Instant::now();
        let output = self.child.stdout.take().context("there is no output")?;
        let (mut running, mut most, mut ended) = (0_usize, 0, 0);
        for line in BufReader::new(output).lines() {
            let record: Value = serde_json::from_str(&line?)?;
            match record["type"].as_str() {
                Some("opened") => running += 1,
                Some("finished") => (running, ended) = (running.saturating_sub(1), ended + 1),
                _ => {}
            }
            most = most.max(running);
            if ended >= SESSIONS {
                return Ok((most, begun));
            }
            if begun.elapsed() > LIMIT {
                bail!("only {ended} of {SESSIONS} sessions ended in {} s", LIMIT.as_secs());
            }
        }
        bail!("the orchestrator ended")
    }
}

fn metrics(port: u16) -> Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}
