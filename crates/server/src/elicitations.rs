//! Forms that wait for someone to fill them in.

use parking_lot::Mutex;
use std::collections::HashMap;

use hangar_protocol::data::ElicitationAction;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;
use tokio::sync::oneshot;

/// Maximum number of pending forms per session.
const MAX_WAITING: usize = 64;

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ElicitationResult {
    pub(crate) action: ElicitationAction,
    pub(crate) content: Option<Value>,
}

#[derive(Default)]
pub(crate) struct Elicitations(Mutex<HashMap<String, oneshot::Sender<ElicitationResult>>>);

impl Elicitations {
    /// Registers a question and returns the receiver of its answer; `None` when too many are pending.
    pub(crate) fn expect(&self, request_id: &str) -> Option<oneshot::Receiver<ElicitationResult>> {
        let mut waiting = self.0.lock();
        // The caller may have gone.
        waiting.retain(|_, answer| !answer.is_closed());
        if waiting.len() >= MAX_WAITING {
            return None;
        }
        let (answer, answered) = oneshot::channel();
        waiting.insert(request_id.to_owned(), answer);
        Some(answered)
    }

    /// Delivers an answer; false if no caller waits for it.
    pub(crate) fn answer(&self, request_id: &str, result: ElicitationResult) -> bool {
        let Some(answer) = self.0.lock().remove(request_id) else { return false };
        answer.send(result).is_ok()
    }
}
