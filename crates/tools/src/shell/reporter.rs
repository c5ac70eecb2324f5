//! Reports commands that ended while no call waited for them to the session that started them.

use std::path::PathBuf;

use tokio::sync::mpsc;

use super::calls;
use super::registry::{ShellCompletion, ShellOptions};
use super::tracked::{CommandMode, Tracked};
use crate::spill::Spill;

pub(super) struct Reporter {
    completions: mpsc::Sender<ShellCompletion>,
    spill: Spill,
    cwd: PathBuf,
}

impl Reporter {
    pub(super) fn new(options: &ShellOptions) -> Self {
        Self {
            completions: options.completions.clone(),
            spill: options.spill.clone(),
            cwd: options.cwd.clone(),
        }
    }

    /// Waits while many ended commands have not been received yet.
    pub(super) async fn tell(&self, shell: &Tracked, exit_code: i32) {
        let completion = ShellCompletion {
            shell_id: shell.id.clone(),
            description: shell.description.clone(),
            exit_code,
            detached: shell.mode == CommandMode::Detached,
            read: calls::told(&self.spill, &self.cwd, shell),
        };
        // A session that is gone need not know.
        let _ = self.completions.send(completion).await;
    }
}
