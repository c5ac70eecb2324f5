//! A process that outlives us by a moment: it kills the groups of running commands if we are killed ourselves.
//!
//! It holds the reading end of a pipe that closes with our process, however that ends. The parent-death signal of Linux
//! would not do: it reaches the shell alone and not what the shell started, and it comes when the *thread* that started
//! the shell ends.

use std::io::{self, Write};
use std::process::{Child, Stdio};
use std::sync::{Mutex, PoisonError};

use crate::group::std_command_in_own_session;

/// Reads `+ group` and `- group`, and kills what is left when nothing more can come. Plain enough for every `sh`.
const SCRIPT: &str = r#"
trap '' HUP INT QUIT TERM
groups=
while read -r what group; do
    case $what in
        +) groups="$groups $group" ;;
        -) kept=
           for each in $groups; do [ "$each" = "$group" ] || kept="$kept $each"; done
           groups=$kept ;;
    esac
done
for each in $groups; do kill -s KILL -- "-$each"; done
"#;

/// One of them. A process shares one, see [`guard`].
struct Watchdog {
    pipe: io::PipeWriter,
    /// Not awaited: it ends when the pipe closes, which is when we do.
    _process: Child,
}

/// The one of this process. Started when the first group needs it; a process that starts nothing has none.
static SHARED: Mutex<Option<Watchdog>> = Mutex::new(None);

/// Has a group killed if this process is killed before the guard is dropped.
pub(crate) fn guard(group: i32) -> Guard {
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    // A missing watchdog is no reason not to run: it matters only if we are killed.
    if shared.is_none() {
        *shared = Watchdog::start().ok();
    }
    if let Some(watchdog) = &mut *shared {
        watchdog.guard(group);
    }
    Guard { group }
}

pub(crate) struct Guard {
    group: i32,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(watchdog) = &mut *SHARED.lock().unwrap_or_else(PoisonError::into_inner) {
            watchdog.release(self.group);
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
            .current_dir("/")
            .stdin(end)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { pipe, _process: process })
    }

    fn guard(&mut self, group: i32) {
        self.tell('+', group);
    }

    fn release(&mut self, group: i32) {
        self.tell('-', group);
    }

    /// Lines are far shorter than what a pipe takes at once, and the other side does nothing but read: this does not
    /// block. If somebody killed the watchdog, commands run without it.
    fn tell(&mut self, what: char, group: i32) {
        let _ = self.pipe.write_all(format!("{what} {group}\n").as_bytes());
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
        watchdog.guard(id(&spared));
        watchdog.guard(id(&sleeper));
        watchdog.release(id(&spared));
        // The pipe closes as it would if this process were killed.
        drop(watchdog);
        assert_eq!(exit_code(sleeper.wait().await.unwrap()), 137);
        assert!(spared.try_wait().unwrap().is_none());
        spared.kill().await.unwrap();
    }
}
