//! Processes of one view: all that inherited its mark, also those that have left their parents.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Variable by which a view's processes are known.
pub(super) const MARK: &str = "TERMINAL_BENCH";
/// Kernel ticks per second; Linux has reported time in these since ever.
const TICKS: u64 = 100;

fn of(mark: &str) -> Vec<u32> {
    let wanted = format!("{MARK}={mark}");
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    })
    .collect()
}

/// Sum of the memory that is theirs alone or their share of what is common.
pub(super) fn memory(mark: &str) -> u64 {
    let of_one = |pid: &u32| -> Option<u64> {
        let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
        let line = rollup.lines().find(|line| line.starts_with("Rss:"))?;
        Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? << 10)
    };
    of(mark).iter().filter_map(of_one).sum()
}

pub(super) fn cpu(mark: &str) -> Duration {
    let of_one = |pid: &u32| -> Option<u64> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks: u64 = [11, 12, 13, 14].iter().filter_map(|at| fields.get(*at)?.parse::<u64>().ok()).sum();
        Some(ticks)
    };
    let ticks: u64 = of(mark).iter().filter_map(of_one).sum();
    Duration::from_millis(ticks * 1_000 / TICKS)
}

/// Number of times that their threads have left a processor, by waiting or by force: as often as they were woken.
pub(super) fn wakes(mark: &str) -> u64 {
    let switches = |status: &str| -> u64 {
        let counts = status.lines().filter(|line| line.contains("ctxt_switches:"));
        counts.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum()
    };
    let threads = |pid: &u32| std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of_thread = |thread: std::fs::DirEntry| {
        std::fs::read_to_string(thread.path().join("status")).map_or(0, |status| switches(&status))
    };
    of(mark).iter().flat_map(threads).map(of_thread).sum()
}

pub(super) fn end(mark: &str) {
    for pid in of(mark) {
        // One that has gone meanwhile needs no signal.
        let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
    }
}
