//! Commands that clients run in a session's place of work, outside the conversation. They are run by the session's own
//! shell tool, so that its groups, limits and secrets hold for them too.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

use hangar_agent::permissions::Grant;
use hangar_agent::tool::{Tool, ToolContext, ToolInput, ToolOutcome};
use hangar_protocol::Body;
use hangar_protocol::data::ToolType;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Maximum number of running commands of clients per session.
const MAX_RUNNING: usize = 64;
/// Capacity of the queue of reports. A command that fills it waits.
const PIECES: usize = 16;
/// The longest that the shell tool waits for a command.
const LONGEST_WAIT: u64 = 600;

/// Running commands, by the name that the client knows them by.
#[derive(Default)]
pub(crate) struct ClientShells(Mutex<HashMap<String, CancellationToken>>);

/// A place among the running commands; leaving it forgets the command.
pub(crate) struct ShellSlot {
    shells: Arc<ClientShells>,
    id: String,
    cancel: CancellationToken,
}

impl ClientShells {
    /// `None` when the name is taken or too many run already.
    pub(crate) fn enter(self: &Arc<Self>, id: &str) -> Option<ShellSlot> {
        let mut running = self.0.lock();
        if running.len() >= MAX_RUNNING || running.contains_key(id) {
            return None;
        }
        let cancel = CancellationToken::new();
        running.insert(id.to_owned(), cancel.clone());
        Some(ShellSlot { shells: Arc::clone(self), id: id.to_owned(), cancel })
    }

    /// Ends a command. False when there is none of that name.
    pub(crate) fn cancel(&self, id: &str) -> bool {
        self.0.lock().get(id).inspect(|cancel| cancel.cancel()).is_some()
    }

    /// Ends all of them.
    pub(crate) fn close(&self) {
        for cancel in self.0.lock().values() {
            cancel.cancel();
        }
    }
}

impl Drop for ShellSlot {
    fn drop(&mut self) {
        self.shells.0.lock().remove(&self.id);
    }
}

impl ShellSlot {
    /// Runs a command to its end, and hands each report of its progress on.
    pub(crate) async fn run<F: Future<Output = ()>>(
        self,
        shell: Arc<dyn Tool>,
        call_id: String,
        command: &str,
        report: impl Fn(Body) -> F,
    ) -> ToolOutcome {
        let call = ToolInput {
            call_id,
            kind: ToolType::Function,
            arguments: json!({
                "command": command,
                "description": "Run by the user",
                "initial_wait": LONGEST_WAIT,
            }),
        };
        if let Err(refused) = shell.inspect(&call) {
            return refused;
        }
        let (progress, mut pieces) = mpsc::channel(PIECES);
        let running = shell.run(
            call,
            ToolContext {
                grant: Grant::Full,
                cancel: self.cancel.clone(),
                hurry: CancellationToken::new(),
                progress,
            },
        );
        tokio::pin!(running);
        loop {
            tokio::select! {
                outcome = &mut running => return outcome,
                Some(piece) = pieces.recv() => report(*piece).await,
            }
        }
    }
}

/// Output alone, without the exit status that the shell tool adds for the model.
pub(crate) fn output(outcome: &ToolOutcome) -> String {
    let text = outcome.text.trim_end();
    let ending = |line: &str| line.starts_with("<shellId:") || line.starts_with("<exited with");
    match text.rsplit_once('\n') {
        Some((before, last)) if ending(last) => before.to_owned(),
        None if ending(text) => String::new(),
        _ => text.to_owned(),
    }
}
