//! Slash commands that clients queue and clients carry out, one at a time.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{HashMap, VecDeque};

use tokio::sync::oneshot;

/// Commands that may wait.
const LIMIT: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueuedCommand {
    pub(crate) request_id: String,
    pub(crate) command: String,
}

#[derive(Debug, Default)]
pub(crate) struct CommandQueue {
    /// Offered to the clients.
    current: Option<QueuedCommand>,
    waiting: VecDeque<QueuedCommand>,
}

impl CommandQueue {
    /// Queues a command. Returns the one to offer now, if there is one.
    pub(crate) fn push(&mut self, command: QueuedCommand) -> Result<Option<QueuedCommand>, QueueFull> {
        if self.waiting.len() >= LIMIT {
            return Err(QueueFull);
        }
        self.waiting.push_back(command);
        Ok(self.offer())
    }

    fn offer(&mut self) -> Option<QueuedCommand> {
        if self.current.is_some() {
            return None;
        }
        self.current = self.waiting.pop_front();
        self.current.clone()
    }

    /// A client has dealt with the command on offer. `None` if it was not on offer; otherwise the next to offer.
    pub(crate) fn respond(&mut self, request_id: &str, stop: bool) -> Option<Option<QueuedCommand>> {
        if self.current.as_ref().is_none_or(|current| current.request_id != request_id) {
            return None;
        }
        self.current = None;
        if stop {
            self.waiting.clear();
        }
        Some(self.offer())
    }

    pub(crate) fn waiting(&self) -> impl Iterator<Item = &QueuedCommand> {
        self.waiting.iter()
    }

    pub(crate) fn remove(&mut self, request_id: &str) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|waiting| waiting.request_id != request_id);
        self.waiting.len() < before
    }

    pub(crate) fn remove_last(&mut self) -> bool {
        self.waiting.pop_back().is_some()
    }

    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct QueueFull;

/// Commands that a client was asked to carry out and has not answered for. The answer is what went wrong, if something
/// did.
#[derive(Debug, Default)]
pub(crate) struct PendingCommands(Mutex<HashMap<String, oneshot::Sender<Option<String>>>>);

impl PendingCommands {
    pub(crate) fn begin(&self, request_id: &str) -> oneshot::Receiver<Option<String>> {
        let (answer, answered) = oneshot::channel();
        self.lock().insert(request_id.to_owned(), answer);
        answered
    }

    /// Completes a command; true if a caller was waiting for it.
    pub(crate) fn finish(&self, request_id: &str, error: Option<String>) -> bool {
        self.lock().remove(request_id).is_some_and(|answer| answer.send(error).is_ok())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<Option<String>>>> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(name: &str) -> QueuedCommand {
        QueuedCommand { request_id: name.to_owned(), command: format!("/{name}") }
    }

    #[test]
    fn one_command_is_on_offer_at_a_time() {
        let mut queue = CommandQueue::default();
        assert_eq!(queue.push(command("a")), Ok(Some(command("a"))));
        assert_eq!(queue.push(command("b")), Ok(None));
        assert_eq!(queue.respond("b", false), None);
        assert_eq!(queue.respond("a", false), Some(Some(command("b"))));
        assert_eq!(queue.respond("b", false), Some(None));
    }

    #[test]
    fn whoever_carries_a_command_out_may_drop_the_rest() {
        let mut queue = CommandQueue::default();
        queue.push(command("a")).unwrap();
        queue.push(command("b")).unwrap();
        assert_eq!(queue.respond("a", true), Some(None));
        assert_eq!(queue.waiting().count(), 0);
    }
}
