//! Resources of others on the machine that are not files: made for the attempts that need them, and removed with them.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

#[derive(Default)]
pub(super) struct Neighbours {
    /// The number of some shared memory.
    memory: Option<String>,
    /// Somebody at a terminal, and its path.
    terminal: Option<(Child, String)>,
}

impl Neighbours {
    pub(super) fn wanted_by(arguments: &[&str]) -> Self {
        let wants = |name: &str| arguments.iter().any(|argument| argument.contains(name));
        Self { memory: wants("ENV{SHM}").then(share_memory), terminal: wants("$PTS").then(sit_at_a_terminal) }
    }

    pub(super) fn memory(&self) -> &str {
        self.memory.as_deref().unwrap_or_default()
    }

    pub(super) fn terminal(&self) -> &str {
        self.terminal.as_ref().map_or("", |(_, path)| path)
    }
}

/// Prints `Shared memory id: 7`.
fn share_memory() -> String {
    let made = Command::new("ipcmk").args(["-M", "64"]).output().expect("ipcmk is installed");
    let said = String::from_utf8_lossy(&made.stdout);
    said.split_whitespace().next_back().expect("a number").to_owned()
}

fn sit_at_a_terminal() -> (Child, String) {
    let mut child = Command::new("script")
        .args(["-qfc", "tty; exec sleep 600", "/dev/null"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script is installed");
    let mut path = String::new();
    let mut said = BufReader::new(child.stdout.take().expect("its standard output"));
    said.read_line(&mut path).expect("the path of a terminal");
    (child, path.trim().to_owned())
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        if let Some(id) = &self.memory {
            let _ = Command::new("ipcrm").args(["-m", id]).status();
        }
        if let Some((child, _)) = &mut self.terminal {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
