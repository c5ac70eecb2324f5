//! What one run of a program costs, with everything it starts.
//!
//! Each run happens inside a helper (`xtask measure`), because the kernel's account of finished children can only be
//! read as a sum: a helper has no other children than the measured ones.

use std::collections::HashMap;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::sys::time::TimeValLike;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use serde_json::{Value, json};

/// How often memory is looked at.
const SAMPLE: Duration = Duration::from_millis(2);
/// A run that takes longer is broken, not slow.
const LIMIT: Duration = Duration::from_secs(180);

/// A command to measure.
#[derive(Clone)]
pub(crate) struct Job {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) directory: PathBuf,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) wall: Duration,
    /// User and system time of the program and of all that it started.
    pub(crate) cpu: Duration,
    /// Bytes that the program and all that it started had in memory at once.
    pub(crate) peak_memory: u64,
}

impl Job {
    pub(crate) fn cost(&self) -> Result<Cost> {
        Helper::start(self, Watch::Time)?.finish()
    }

    /// Sampling memory takes time itself, so this is a run of its own.
    pub(crate) fn peak_memory(&self) -> Result<u64> {
        Ok(Helper::start(self, Watch::Memory)?.finish()?.peak_memory)
    }

    /// The same job several times at once: the wall time of all, and the sums of the rest.
    pub(crate) fn cost_of_many(&self, count: usize) -> Result<Cost> {
        let start = Instant::now();
        let helpers = (0..count).map(|_| Helper::start(self, Watch::Time)).collect::<Result<Vec<_>>>()?;
        let costs = helpers.into_iter().map(Helper::finish).collect::<Result<Vec<_>>>()?;
        let peak_memory = costs.iter().map(|cost| cost.peak_memory).sum();
        Ok(Cost { wall: start.elapsed(), cpu: costs.iter().map(|cost| cost.cpu).sum(), peak_memory })
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Watch {
    Time,
    Memory,
}

impl Watch {
    fn word(self) -> &'static str {
        match self {
            Watch::Time => "time",
            Watch::Memory => "memory",
        }
    }
}

struct Helper {
    process: std::process::Child,
    label: String,
}

impl Helper {
    fn start(job: &Job, watch: Watch) -> Result<Self> {
        let label = job.program.display().to_string();
        let process = Command::new(std::env::current_exe().context("cannot find xtask itself")?)
            .args(["measure", watch.word()])
            .arg(&job.program)
            .args(&job.args)
            .env_clear()
            .envs(job.env.iter().map(|(key, value)| (key, value)))
            .current_dir(&job.directory)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot measure {label}"))?;
        Ok(Self { process, label })
    }

    fn finish(self) -> Result<Cost> {
        let output =
            self.process.wait_with_output().with_context(|| format!("cannot measure {}", self.label))?;
        let report: Value = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("measuring {} gave no figures", self.label))?;
        let number = |name: &str| report[name].as_u64().unwrap_or(0);
        if report["exit"] != 0 {
            bail!("{} ended with {}", self.label, report["exit"]);
        }
        Ok(Cost {
            wall: Duration::from_micros(number("wall_us")),
            cpu: Duration::from_micros(number("cpu_us")),
            peak_memory: number("peak_memory"),
        })
    }
}

/// The helper: runs `program args…` and prints what it cost.
pub(crate) fn run_inside(args: &[&str]) -> Result<()> {
    let [watch, program, args @ ..] = args else { bail!("measure needs what to watch and a program") };
    // Whatever outlives its parent becomes a child of the helper, and so a part of the account.
    nix::sys::prctl::set_child_subreaper(true).context("cannot become a subreaper")?;
    let start = Instant::now();
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot run {program}"))?;
    let done = Arc::new(AtomicBool::new(false));
    let sampled = Arc::new(AtomicU64::new(0));
    let watcher = {
        let (done, sampled, is_sampling) =
            (Arc::clone(&done), Arc::clone(&sampled), *watch == Watch::Memory.word());
        let pid = child.id();
        std::thread::spawn(move || watch_over(pid, start, is_sampling, &done, &sampled))
    };
    let status = child.wait().context("cannot wait for the program")?;
    let wall = start.elapsed();
    done.store(true, Ordering::Relaxed);
    watcher.thread().unpark();
    end_leftovers();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("cannot read the account")?;
    let cpu = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    // The kernel counts in kilobytes, and knows the largest single process exactly.
    let largest = u64::try_from(usage.max_rss()).unwrap_or(0) * 1024;
    println!(
        "{}",
        json!({
            "exit": status.code().unwrap_or_else(|| -status.signal().unwrap_or(0)),
            "wall_us": u64::try_from(wall.as_micros()).unwrap_or(u64::MAX),
            "cpu_us": cpu,
            "peak_memory": largest.max(sampled.load(Ordering::Relaxed)),
        })
    );
    Ok(())
}

fn watch_over(pid: u32, start: Instant, is_sampling: bool, done: &AtomicBool, sampled: &AtomicU64) {
    while !done.load(Ordering::Relaxed) {
        if start.elapsed() > LIMIT {
            kill_tree(pid);
            return;
        }
        if is_sampling {
            sampled.fetch_max(memory_of_tree(pid), Ordering::Relaxed);
            std::thread::sleep(SAMPLE);
        } else {
            std::thread::park_timeout(LIMIT);
        }
    }
}

/// Ends what the program left running, and takes it into the account.
fn end_leftovers() {
    for process in processes_below(std::process::id()) {
        kill_tree(process);
    }
    while !matches!(waitpid(None::<Pid>, Some(WaitPidFlag::empty())), Ok(WaitStatus::StillAlive) | Err(_)) {}
}

pub(crate) fn kill_tree(pid: u32) {
    for process in std::iter::once(pid).chain(processes_below(pid)) {
        if let Ok(process) = i32::try_from(process) {
            // It may have ended meanwhile.
            let _ = kill(Pid::from_raw(process), Signal::SIGKILL);
        }
    }
}

/// The most that a process itself ever had in memory, by the kernel's account.
pub(crate) fn peak_memory_of(process: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).context("the process is gone")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    Ok(kilobytes.context("the kernel does not tell the peak of a process")? << 10)
}

/// The sum over a process and all below it. A child that was just forked still shares its parent's memory and is the
/// same program: it counts once.
pub(crate) fn memory_of_tree(pid: u32) -> u64 {
    let resident = |pid: u32| {
        let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
        statm.split(' ').nth(1)?.parse::<u64>().ok()
    };
    let program = |pid: u32| std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    let mut sum = resident(pid).unwrap_or(0);
    for process in processes_below(pid) {
        let is_fork = parent_of(process).is_some_and(|parent| {
            program(parent) == program(process) && resident(parent) == resident(process)
        });
        if !is_fork {
            sum += resident(process).unwrap_or(0);
        }
    }
    sum * 4096
}

fn processes_below(pid: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in std::fs::read_dir(Path::new("/proc")).into_iter().flatten().flatten() {
        if let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok())
            && let Some(parent) = parent_of(process)
        {
            children.entry(parent).or_default().push(process);
        }
    }
    let mut below = Vec::new();
    let mut next = vec![pid];
    while let Some(process) = next.pop() {
        let children = children.get(&process).cloned().unwrap_or_default();
        below.extend(&children);
        next.extend(children);
    }
    below
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before the state is in parentheses and may hold anything.
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}
