//! `cargo xtask bench cost`: tokens and simulated cost of the same work, beside other agents, at the same simulated vendor.
//!
//! Every agent does the steps of the gate, each in a process of its own that goes on with the same session. What differs is what
//! each sends along: its system prompt, its tools, how it shows results, and how much of that the vendor's cache keeps. A step
//! that some agent cannot be driven through is named, and is left out of the sums of all: these are about the same work.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::contender::{Contender, Kind};
use super::cost_steps::{STEPS, Step};
use super::measure::{Job, kill_tree};
use super::table::{Bar, Table, Unit};
use super::{Model, compare};

/// How long a step that is killed has until its command runs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A vendor, two models of it, and who can ask it.
struct Vendor {
    name: &'static str,
    /// The model of the work, and one to switch to.
    models: [&'static str; 2],
    /// Path of the API below the simulator's address.
    path: &'static str,
    peers: &'static [Kind],
}

/// The models are ones that every agent here asks in a way that the vendor takes.
const VENDORS: [Vendor; 2] = [
    Vendor {
        name: "anthropic",
        models: ["claude-sonnet-4-6", "claude-opus-4-6"],
        path: "",
        peers: &[Kind::Copilot, Kind::Claude],
    },
    Vendor {
        name: "openai-responses",
        models: ["gpt-5.6-sol", "gpt-5.6-terra"],
        path: "/v1",
        peers: &[Kind::Copilot, Kind::Codex],
    },
];

/// What the steps of one agent used.
struct Work {
    contender: Kind,
    steps: Vec<(&'static str, Result<Figures>)>,
}

/// What the simulator counted.
#[derive(Debug, Clone, Copy, Default)]
struct Figures {
    answers: f64,
    input: f64,
    cache_read: f64,
    output: f64,
    cost: f64,
}

pub(crate) fn run(hangar: &Path, peers: &Path, cache: &Path) -> Result<()> {
    for vendor in &VENDORS {
        let mut contenders = vec![Contender::new(Kind::Hangar, hangar.to_owned(), cache, "")?];
        let installed = Contender::peers(peers, cache, "")?;
        contenders.extend(installed.into_iter().filter(|peer| vendor.peers.contains(&peer.kind)));
        let mut done = Vec::new();
        for contender in &contenders {
            done.push(work(hangar, vendor, contender, cache)?);
        }
        let shared = shared_steps(&done);
        let mut table = compare(&contenders, |contender, table| {
            tell(&done, contender.kind, &shared, table);
            Ok(())
        });
        table.set_bars(&[
            ("input tokens", Bar::ShareOfBestPeer(1.0)),
            ("cost, thousandths of a dollar", Bar::ShareOfBestPeer(1.0)),
        ]);
        println!("\n{} with {}: {}\n\n{table}", vendor.name, vendor.models[0], shared.join(", "));
        for Work { contender, steps } in &done {
            for (step, error) in
                steps.iter().filter_map(|(step, figures)| Some((step, figures.as_ref().err()?)))
            {
                println!("{} is not driven through `{step}`: {error:#}", contender.name());
            }
        }
    }
    Ok(())
}

/// Steps that all agents did.
fn shared_steps(done: &[Work]) -> Vec<&'static str> {
    let did =
        |work: &Work, name: &str| work.steps.iter().any(|(step, figures)| *step == name && figures.is_ok());
    STEPS.iter().map(|step| step.name).filter(|name| done.iter().all(|work| did(work, name))).collect()
}

fn tell(done: &[Work], contender: Kind, shared: &[&str], table: &mut Table) {
    let Some(work) = done.iter().find(|work| work.contender == contender) else { return };
    let name = contender.name();
    let mut sum = Figures::default();
    for (step, figures) in &work.steps {
        if let (true, Ok(figures)) = (shared.contains(step), figures) {
            sum = sum.plus(*figures);
        }
    }
    table.add("requests", Unit::Pieces, name, sum.answers);
    table.add("input tokens", Unit::Pieces, name, sum.input);
    table.add("of them from the cache", Unit::Percent, name, sum.cache_read * 100.0 / sum.input.max(1.0));
    table.add("output tokens", Unit::Pieces, name, sum.output);
    table.add("cost, thousandths of a dollar", Unit::Tenths, name, sum.cost * 1000.0);
    for (step, figures) in &work.steps {
        if let (true, Ok(figures)) = (shared.contains(step), figures) {
            table.add(step, Unit::Tenths, name, figures.cost * 1000.0);
        }
    }
}

/// Has an agent do all steps, and tells what each used.
fn work(hangar: &Path, vendor: &Vendor, contender: &Contender, cache: &Path) -> Result<Work> {
    let kind = contender.kind;
    let project = contender.project();
    for (file, text) in [("a.txt", "alpha\n"), ("b.txt", "beta\n"), ("c.txt", "gamma\n")] {
        std::fs::write(project.join(file), text)?;
    }
    std::fs::write(project.join("dot.png"), super::cost_steps::PNG)?;
    let turns = STEPS.iter().filter_map(|step| (step.turns)(kind, &project)).flatten().collect::<String>();
    let scenario = cache.join(format!("cost-{}-{}.toml", vendor.name, kind.name()));
    std::fs::write(&scenario, turns).context("writing the scenario")?;
    let scenario = scenario.to_string_lossy();
    let simulator =
        Model::start_with(hangar, &["--vendor", vendor.name, "--lenient", "--scenario", &scenario])?;
    let url = format!("{}{}", simulator.url, vendor.path);
    let mut steps = Vec::new();
    let mut before = Figures::of(&simulator.url)?;
    for step in &STEPS {
        let done = do_step(step, vendor, contender, &url).and_then(|()| {
            let now = Figures::of(&simulator.url)?;
            let used = now.minus(before);
            before = now;
            if used.answers == 0.0 {
                bail!("it asked the model nothing")
            }
            Ok(used)
        });
        if done.is_err() {
            before = Figures::of(&simulator.url)?;
        }
        steps.push((step.name, done));
    }
    Ok(Work { contender: kind, steps })
}

fn do_step(step: &Step, vendor: &Vendor, contender: &Contender, url: &str) -> Result<()> {
    let kind = contender.kind;
    if (step.turns)(kind, &contender.project()).is_none() {
        bail!("it has nothing for it");
    }
    let model = vendor.models[usize::from(step.switches)];
    let prompt = step.prompt();
    let mut job = contender.job_at(vendor.name, model, url, &prompt);
    job.args = step.args(kind, model, job.args);
    if step.killed { killed(&job) } else { job.cost().map(|_| ()) }
}

/// Starts an agent and kills it when its command runs.
fn killed(job: &Job) -> Result<()> {
    let started = job.directory.join("started");
    let _ = std::fs::remove_file(&started);
    let mut process = Command::new(&job.program)
        .args(&job.args)
        .env_clear()
        .envs(job.env.iter().map(|(key, value)| (key, value)))
        .current_dir(&job.directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start the agent")?;
    let begun = Instant::now();
    while !started.exists() && begun.elapsed() < PATIENCE && process.try_wait()?.is_none() {
        std::thread::sleep(Duration::from_millis(50));
    }
    kill_tree(process.id());
    process.wait().context("cannot wait for the agent")?;
    if started.exists() { Ok(()) } else { bail!("its command did not run") }
}

impl Figures {
    fn of(url: &str) -> Result<Self> {
        let stats = stats(url)?;
        let figure = |pointer: &str| stats.pointer(pointer).and_then(Value::as_f64);
        let (Some(input), Some(cost)) = (figure("/totals/usage/input"), figure("/totals/cost")) else {
            bail!("the simulator does not say what was used: {stats}");
        };
        Ok(Self {
            answers: figure("/totals/answers").unwrap_or_default(),
            input,
            cache_read: figure("/totals/usage/cache_read").unwrap_or_default(),
            output: figure("/totals/usage/output").unwrap_or_default(),
            cost,
        })
    }

    fn plus(self, other: Self) -> Self {
        Self {
            answers: self.answers + other.answers,
            input: self.input + other.input,
            cache_read: self.cache_read + other.cache_read,
            output: self.output + other.output,
            cost: self.cost + other.cost,
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            answers: self.answers - other.answers,
            input: self.input - other.input,
            cache_read: self.cache_read - other.cache_read,
            output: self.output - other.output,
            cost: self.cost - other.cost,
        }
    }
}

/// What the simulator says of itself.
fn stats(url: &str) -> Result<Value> {
    let address = url.strip_prefix("http://").context("the address of the simulator")?;
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(
        format!("GET /__stats HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").as_bytes(),
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
    let start = body.find(['[', '{']).context("the simulator's figures")?;
    let end = body.rfind([']', '}']).context("the simulator's figures")?;
    let value: Value = serde_json::from_str(&body[start..=end])?;
    Ok(value.get(0).cloned().unwrap_or(value))
}
