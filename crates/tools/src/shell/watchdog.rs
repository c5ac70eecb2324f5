//! A process that outlives us by a moment: it kills the groups of running commands if we are killed ourselves.
//!
//! It holds the reading end of a pipe that closes with our process, however that ends. The parent-death signal of Linux
//! would not do: it reaches the shell alone and not what the shell started, and it comes when the *thread* that started
//! the shell ends.

use std::io::{self, Write};
use std::process::Stdio;

use tokio::process::Child;

use super::process::command_in_own_session;

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

pub(super) struct Watchdog {
    pipe: io::PipeWriter,
    /// Not awaited: it ends when the pipe closes, and the runtime collects it.
    _process: Child,
}

impl Watchdog {
    pub(super) fn start() -> io::Result<Self> {
        let (end, pipe) = io::pipe()?;
        let process = command_in_own_session("/bin/sh")
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

    pub(super) fn guard(&mut self, group: i32) {
        self.tell('+', group);
    }

    pub(super) fn release(&mut self, group: i32) {
        self.tell('-', group);
    }

    /// Lines are far shorter than what a pipe takes at once, and the other side does nothing but read: this does not
    /// block. If somebody killed the watchdog, commands run without it.
    fn tell(&mut self, what: char, group: i32) {
        let _ = self.pipe.write_all(format!("{what} {group}\n").as_bytes());
    }
}
