//! `cargo xtask bench`: what a run costs, beside the same run of other agents, as a table.
//!
//! A slow machine is no failure: the task ends well whatever the figures are, and says which bars are met.

mod big_log;
mod contender;
mod cost;
mod cost_steps;
mod first_screen;
mod fleet;
mod harness;
pub(crate) mod measure;
mod orchestrator;
mod portal;
mod queue;
mod readers;
mod rpc;
pub(crate) mod runtimes;
mod server;
mod table;
mod terminal;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::{root, shell};
use contender::{Contender, Kind, Task};
use measure::{Cost, Job};
use table::{Bar, Table, Unit};

const RUNS: usize = 10;
const SLOW_RUNS: usize = 3;
const AT_ONCE: usize = 8;
const SHELL_CALLS: u32 = 20;
const DELTAS: u32 = 10_000;
const BIG_LOG: u64 = 200 << 20;

/// What to compare with what.
#[derive(Default)]
struct Subjects {
    /// Where npm has installed the other agents.
    peers: Option<PathBuf>,
    /// The program to measure instead of one that is built.
    program: Option<PathBuf>,
}

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum About {
    Prompts,
    Server,
    Portal,
    Queue,
    Harness,
    Cost,
    Terminal,
    Orchestrator,
}

/// `bench [server|portal|queue|harness|cost|terminal|orchestrator] [--peers DIR] [--program FILE]`, or
/// `bench fleet [--workers N] [--sessions N]`
pub(crate) fn run(args: &[&str]) -> Result<()> {
    if let ["fleet", flags @ ..] = args {
        return fleet::run(flags);
    }
    let (about, mut flags) = match args {
        ["server", flags @ ..] => (About::Server, flags),
        ["portal", flags @ ..] => (About::Portal, flags),
        ["queue", flags @ ..] => (About::Queue, flags),
        ["harness", flags @ ..] => (About::Harness, flags),
        ["cost", flags @ ..] => (About::Cost, flags),
        ["terminal", flags @ ..] => (About::Terminal, flags),
        ["orchestrator", flags @ ..] => (About::Orchestrator, flags),
        flags => (About::Prompts, flags),
    };
    let mut subjects = Subjects::default();
    while let [flag, value, rest @ ..] = flags {
        match *flag {
            "--peers" => subjects.peers = Some(value.into()),
            "--program" => subjects.program = Some(value.into()),
            other => bail!("`{other}` is not a flag of bench"),
        }
        flags = rest;
    }
    if let [flag] = flags {
        bail!("`{flag}` is not a flag of bench, or lacks its value");
    }
    let cache = root().join("target/bench");
    let program = subjects.program()?;
    match about {
        About::Prompts => run_prompts(program, &subjects.peers(&cache), &cache),
        About::Server => server::run(&program, &subjects.peers(&cache), &cache),
        About::Portal => portal::run(&program, &cache),
        About::Queue => queue::run(&program, &cache),
        About::Harness => harness::run(&program, &cache),
        About::Cost => cost::run(&program, &subjects.peers(&cache), &cache),
        About::Orchestrator => orchestrator::run(&program, &cache),
        About::Terminal => terminal::run(&program, &subjects.peers(&cache), &cache),
    }
}

impl Subjects {
    fn program(&self) -> Result<PathBuf> {
        if let Some(program) = &self.program {
            return program.canonicalize().with_context(|| format!("{} is not there", program.display()));
        }
        shell::run(shell::program("cargo").args([
            "build",
            "--release",
            "--locked",
            "--package",
            "hangar-cli",
        ]))?;
        Ok(root().join("target/release/hangar"))
    }

    fn peers(&self, cache: &Path) -> PathBuf {
        if let Some(directory) = &self.peers {
            // Contenders run in directories of their own.
            return directory.canonicalize().unwrap_or_else(|_| directory.clone());
        }
        let directory = cache.join("peers");
        if let Err(error) = contender::install_peers(&directory) {
            println!("the other agents could not be installed: {error:#}");
        }
        directory
    }
}

fn run_prompts(hangar: PathBuf, peers: &Path, cache: &Path) -> Result<()> {
    let model = Model::start(&hangar)?;
    let mut contenders = vec![Contender::new(Kind::Hangar, hangar, cache, &model.url)?];
    contenders.extend(Contender::peers(peers, cache, &model.url)?);
    let mut table = compare(&contenders, measure_one);
    table.set_bars(&[
        ("one-shot: CPU", Bar::ShareOfBestPeer(0.1)),
        ("one-shot: wall", Bar::Below(50.0)),
        ("one-shot: peak memory", Bar::Below(25.0)),
        ("8 at once: CPU", Bar::ShareOfBestPeer(0.1)),
        ("8 at once: wall", Bar::ShareOfBestPeer(0.1)),
        ("tool turn, without the tool", Bar::Below(6.0)),
        ("one delta: CPU", Bar::Below(20.0)),
        ("size of the program", Bar::Below(30.0)),
        ("resume: CPU per 100 MB", Bar::Below(1000.0)),
    ]);
    println!("\n{table}");
    Ok(())
}

/// Measures one after the other. One that fails keeps none of the others from being measured.
fn compare(contenders: &[Contender], measure: impl Fn(&Contender, &mut Table) -> Result<()>) -> Table {
    let mut table = Table::new(contenders.iter().map(|contender| contender.kind.name()).collect());
    for contender in contenders {
        eprintln!("measuring {} …", contender.kind.name());
        if let Err(error) = measure(contender, &mut table) {
            println!("{} was not measured to the end: {error:#}", contender.kind.name());
        }
    }
    table
}

fn measure_one(contender: &Contender, table: &mut Table) -> Result<()> {
    let name = contender.kind.name();
    let pong = contender.job(Task::Pong);
    // The first run on a machine unpacks and creates; it is not what people wait for.
    pong.cost().context("the first run")?;
    let runs = repeat(&pong, RUNS)?;
    let plain =
        Cost { wall: median(&runs, |run| run.wall), cpu: median(&runs, |run| run.cpu), peak_memory: 0 };
    let quickest = runs.iter().map(|run| run.wall).min().unwrap_or_default();
    table.add("one-shot: wall", Unit::Milliseconds, name, millis(plain.wall));
    table.add("one-shot: wall, quickest", Unit::Milliseconds, name, millis(quickest));
    table.add("one-shot: CPU", Unit::Milliseconds, name, millis(plain.cpu));
    table.add("one-shot: peak memory", Unit::Megabytes, name, megabytes(pong.peak_memory()?));

    let many = pong.cost_of_many(AT_ONCE)?;
    table.add("8 at once: wall", Unit::Milliseconds, name, millis(many.wall));
    table.add("8 at once: CPU", Unit::Milliseconds, name, millis(many.cpu));

    let calls = repeat(&contender.job(Task::ShellCalls(SHELL_CALLS)), SLOW_RUNS)?;
    let calls = median(&calls, |run| run.wall);
    let turn = millis(calls.saturating_sub(plain.wall)) / f64::from(SHELL_CALLS);
    table.add("tool turn", Unit::Milliseconds, name, turn);

    let deltas = repeat(&contender.job(Task::Deltas(DELTAS)), SLOW_RUNS)?;
    let deltas = median(&deltas, |run| run.cpu).saturating_sub(plain.cpu);
    table.add("one delta: CPU", Unit::Microseconds, name, deltas.as_secs_f64() * 1e6 / f64::from(DELTAS));

    let version = repeat(&contender.job_with(vec!["--version".to_owned()]), RUNS)?;
    table.add("--version: wall", Unit::Milliseconds, name, millis(median(&version, |run| run.wall)));
    let size = std::fs::metadata(contender.program()).context("the size of the program")?.len();
    table.add("size of the program", Unit::Megabytes, name, megabytes(size));
    if contender.kind == Kind::Hangar {
        table.add(
            "tool turn, without the tool",
            Unit::Milliseconds,
            name,
            turn - millis(cost_of_a_shell(&pong)?),
        );
        measure_resume(contender, table)?;
    }
    Ok(())
}

/// What the tool itself takes: a shell that does nothing.
fn cost_of_a_shell(like: &Job) -> Result<Duration> {
    let shell = Job { program: "/bin/bash".into(), args: vec!["-c".into(), "true".into()], ..like.clone() };
    Ok(median(&repeat(&shell, RUNS)?, |run| run.wall))
}

fn measure_resume(contender: &Contender, table: &mut Table) -> Result<()> {
    const SESSION: &str = "0b5a2a57-6f0a-4b5e-9f0c-0c8f0e4ad200";
    let say = |prompt: &str| {
        let args = ["--output-format", "json", "--allow-all-tools", "--session-id", SESSION, "-p", prompt];
        contender.job_with(args.map(str::to_owned).to_vec())
    };
    let session = contender.state().join("session-state").join(SESSION);
    if session.exists() {
        std::fs::remove_dir_all(&session).context("removing the session of the last benchmark")?;
    }
    let fifteen_kilobytes = r#"TOOL:bash:{"command":"printf 'x%.0s' $(seq 15000)","description":"much"}"#;
    say(fifteen_kilobytes).cost().context("the run that the big session is made of")?;
    let small = median(&repeat(&say("SAY:small"), SLOW_RUNS)?, |run| run.cpu);
    big_log::grow(&session.join("events.jsonl"), BIG_LOG)?;
    let job = say("SAY:big");
    let cpu = median(&repeat(&job, SLOW_RUNS)?, |run| run.cpu).saturating_sub(small);
    let name = contender.kind.name();
    table.add(
        "resume: CPU per 100 MB",
        Unit::Milliseconds,
        name,
        millis(cpu) * (100 << 20) as f64 / BIG_LOG as f64,
    );
    table.add("resume: peak memory (200 MB log)", Unit::Megabytes, name, megabytes(job.peak_memory()?));
    Ok(())
}

fn repeat(job: &Job, times: usize) -> Result<Vec<Cost>> {
    (0..times).map(|_| job.cost()).collect()
}

fn median(runs: &[Cost], of: impl Fn(&Cost) -> Duration) -> Duration {
    middle(runs.iter().map(of).collect())
}

fn middle<T: Ord + Copy + Default>(mut values: Vec<T>) -> T {
    values.sort();
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// The scripted model that all contenders talk to.
struct Model {
    process: Child,
    url: String,
    /// Held open: it may have more to say.
    _said: BufReader<ChildStdout>,
}

impl Model {
    fn start(hangar: &Path) -> Result<Self> {
        Self::start_with(hangar, &[])
    }

    fn start_with(hangar: &Path, args: &[&str]) -> Result<Self> {
        let mut process = shell::program(&hangar.to_string_lossy())
            .args(["model", "serve", "--port", "0"])
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the scripted model")?;
        let mut line = String::new();
        let mut said = BufReader::new(process.stdout.take().context("what the scripted model says")?);
        said.read_line(&mut line).context("reading where the scripted model listens")?;
        match line.trim().strip_prefix("listening on ") {
            Some(url) => Ok(Self { url: url.to_owned(), process, _said: said }),
            None => {
                let _ = process.kill();
                bail!("the scripted model did not say where it listens: {line:?}");
            }
        }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // It may be gone already; then there is nothing to stop.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
