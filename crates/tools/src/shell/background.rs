//! Commands that run on their own, for front ends that list, show and stop them.

use std::time::Duration;

use super::Shells;

/// A command that runs and that no call waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackgroundCommand {
    /// Id by which the model names it.
    pub id: String,
    pub command: String,
    pub description: String,
    pub pid: i32,
    /// Whether it outlives the session.
    pub is_detached: bool,
    /// Time since it was started.
    pub running: Duration,
}

impl Shells {
    /// Commands in the background, in the order in which they started.
    pub fn background(&self) -> Vec<BackgroundCommand> {
        let shells = self.0.list();
        let running = shells.iter().filter(|shell| shell.is_running() && !shell.is_awaited());
        let command = |shell: &std::sync::Arc<super::tracked::Tracked>| BackgroundCommand {
            id: shell.id.clone(),
            command: shell.command.clone(),
            description: shell.description.clone(),
            pid: shell.pid,
            is_detached: shell.is_detached(),
            running: shell.elapsed(),
        };
        running.map(command).collect()
    }

    /// Output of a command in the background so far, as the model would read it. It stays unread.
    pub fn output(&self, id: &str) -> Option<String> {
        let shells = self.0.list();
        let shell = shells.iter().find(|shell| shell.id == id && shell.is_running())?;
        Some(shell.peek())
    }

    /// Stops a command in the background, as `stop_bash` does. False if there is none with this id.
    pub fn stop(&self, id: &str) -> bool {
        let is_there = self.background().iter().any(|command| command.id == id);
        let stopped = is_there.then(|| self.0.remove(id)).flatten();
        stopped.is_some_and(|shell| {
            shell.stop.cancel();
            true
        })
    }
}
