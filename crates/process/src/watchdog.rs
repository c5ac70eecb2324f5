//! A process that outlives us by a moment: it kills the groups of running commands if we are killed ourselves.
//!
//! It holds the reading end of a pipe that closes with our process, however that ends. The parent-death signal of Linux
//! would not do: it reaches the shell alone and not what the shell started, and it comes when the *thread* that started
//! the shell ends.

use parking_lot::Mutex;
use std::io::{self, Write};
use std::process::{Child, Stdio};

use crate::group::{MARK, std_command_in_own_session};
use crate::tag::ProcessTag;

/// Reads `+ mark tag 0` before a command is started, `+ mark tag group` when it has a group, and `- mark`, and kills what
/// is left when nothing more can come: the groups, and where the system shows the environment and the limits of processes,
/// all that carry the mark or the tag. Twice, because one may be started while the others are looked for, and with a rest between, because one that we
/// were just starting shows its mark a moment later. Plain enough for every `sh`.
const SCRIPT: &str = r#"
trap '' HUP INT QUIT TERM
guarded=
while read -r what mark tag group; do
    kept=
    for each in $guarded; do [ "${each%%=*}" = "$mark" ] || kept="$kept $each"; done
    guarded=$kept
    [ "$what" = + ] && guarded="$guarded $mark=$tag=$group"
done
[ -n "$guarded" ] || exit 0
tags=
set --
for each in $guarded; do
    group=${each##*=}
    [ "$group" != 0 ] && kill -s KILL -- "-$group"
    tag=${each#*=}
    tags="$tags -e ${tag%=*}"
    set -- "$@" -e "$MARK=${each%%=*}"
done
for rest in 1 0; do
    for file in $(grep -lsF "$@" /proc/[0-9]*/environ) $(grep -lsF $tags /proc/[0-9]*/limits); do
        process=${file#/proc/}
        kill -s KILL "${process%%/*}"
    done
    sleep $rest
done
"#;

/// One of them. A process shares one, see [`guard`].
struct Watchdog {
    pipe: io::PipeWriter,
    /// Not awaited: it ends when the pipe closes, which is when we do.
    _process: Child,
}

/// The one of this process. Started when the first group needs it; a process that starts nothing has none.
static SHARED: Mutex<Option<Watchdog>> = Mutex::new(None);

/// Has everything killed that carries a mark if this process is killed before the guard is dropped.
pub(crate) fn guard(mark: &str) -> WatchdogGuard {
    let mut shared = SHARED.lock();
    // A missing watchdog is no reason not to run: it matters only if we are killed.
    if shared.is_none() {
        *shared = Watchdog::start().ok();
    }
    if let Some(watchdog) = &mut *shared {
        watchdog.guard(mark, None);
    }
    WatchdogGuard { mark: mark.to_owned() }
}

pub(crate) struct WatchdogGuard {
    mark: String,
}

impl WatchdogGuard {
    /// Has the group of that number killed with it.
    pub(crate) fn name(&self, group: i32) {
        if let Some(watchdog) = &mut *SHARED.lock() {
            watchdog.guard(&self.mark, Some(group));
        }
    }
}

impl Drop for WatchdogGuard {
    fn drop(&mut self) {
        if let Some(watchdog) = &mut *SHARED.lock() {
            watchdog.release(&self.mark);
        }
    }
}

impl Watchdog {
    fn start() -> io::Result<Self> {
        let (end, pipe) = io::pipe()?;
        let process = std_command_in_own_session("/bin/sh")
            .arg("-c")
            .arg(SCRIPT)
            .env_clear()
            .env("MARK", MARK)
            .current_dir("/")
            .stdin(end)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { pipe, _process: process })
    }

    fn guard(&mut self, mark: &str, group: Option<i32>) {
        self.tell(&format!("+ {mark} {} {}\n", ProcessTag::of(mark).number(), group.unwrap_or(0)));
    }

    fn release(&mut self, mark: &str) {
        self.tell(&format!("- {mark}\n"));
    }

    /// Lines are far shorter than what a pipe takes at once, and the other side does nothing but read: this does not
    /// block. If somebody killed the watchdog, commands run without it.
    fn tell(&mut self, line: &str) {
        let _ = self.pipe.write_all(line.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{command_in_own_session, exit_code};

    #[tokio::test]
    async fn groups_are_killed_when_the_watchdog_is_left_alone() {
        let mut sleeper = command_in_own_session("sleep").arg("1000").spawn().unwrap();
        let mut spared = command_in_own_session("sleep").arg("1000").spawn().unwrap();
        let id = |child: &tokio::process::Child| child.id().unwrap().cast_signed();
        let mut watchdog = Watchdog::start().unwrap();
        watchdog.guard("spared.", Some(id(&spared)));
        watchdog.guard("sleeper.", Some(id(&sleeper)));
        watchdog.release("spared.");
        // The pipe closes as it would if this process were killed.
        drop(watchdog);
        assert_eq!(exit_code(sleeper.wait().await.unwrap()), 137);
        assert!(spared.try_wait().unwrap().is_none());
        spared.kill().await.unwrap();
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn whoever_left_a_group_is_found_by_its_mark() {
        use tokio::io::{AsyncBufReadExt, BufReader};
        let mark = format!("test:{}.", std::process::id());
        let mut leader = command_in_own_session("sh")
            .args(["-c", "setsid sleep 1000 & echo $!; wait"])
            .env(MARK, &mark)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(leader.stdout.take().unwrap()).lines();
        lines.next_line().await.unwrap().unwrap();
        let mut watchdog = Watchdog::start().unwrap();
        watchdog.guard(&mark, leader.id().map(u32::cast_signed));
        drop(watchdog);
        leader.wait().await.unwrap();
        // The pipe ends when its last holder is gone, which includes the process that left.
        assert_eq!(lines.next_line().await.unwrap(), None);
    }

    /// A process that has nothing left of where it came from, and the pipe that ends with it.
    #[cfg(target_os = "linux")]
    async fn estranged(
        mark: &str,
    ) -> (tokio::process::Child, tokio::io::Lines<tokio::io::BufReader<tokio::process::ChildStdout>>) {
        use tokio::io::{AsyncBufReadExt, BufReader};
        let script = "env -i setsid sh -c 'sleep 1000 & echo started' & wait";
        let mut command = command_in_own_session("sh");
        crate::mark_command(&mut command, mark).args(["-c", script]).stdout(Stdio::piped());
        let mut leader = command.spawn().unwrap();
        let mut lines = BufReader::new(leader.stdout.take().unwrap()).lines();
        assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("started"));
        leader.wait().await.unwrap();
        (leader, lines)
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn whoever_cleared_its_environment_is_found_by_its_tag() {
        let session = format!("estranged:{}:", std::process::id());
        let (_leader, mut lines) = estranged(&format!("{session}1.")).await;
        crate::kill_marked(&session);
        assert_eq!(lines.next_line().await.unwrap(), None);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn the_watchdog_finds_it_by_its_tag_too() {
        let mark = format!("estranged-too:{}:1.", std::process::id());
        let mut watchdog = Watchdog::start().unwrap();
        watchdog.guard(&mark, None);
        let (_leader, mut lines) = estranged(&mark).await;
        drop(watchdog);
        assert_eq!(lines.next_line().await.unwrap(), None);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_command_is_found_by_its_mark_before_its_number_is_known() {
        let mark = format!("early:{}.", std::process::id());
        let mut watchdog = Watchdog::start().unwrap();
        watchdog.guard(&mark, None);
        let mut command = command_in_own_session("sleep").arg("1000").env(MARK, &mark).spawn().unwrap();
        drop(watchdog);
        assert_eq!(exit_code(command.wait().await.unwrap()), 137);
    }
}
