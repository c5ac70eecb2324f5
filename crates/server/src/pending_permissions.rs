//! Questions about permissions for calls that are part of no turn.

use hangar_agent::session::PendingPermission;
use hangar_protocol::permission::{PermissionOutcome, PermissionRequest};
use tokio::sync::oneshot;

/// Permission questions of `tools.execute` without an answer. Each is dropped with its caller.
#[derive(Default)]
pub(crate) struct PendingPermissions(Vec<(PendingPermission, oneshot::Sender<PermissionOutcome>)>);

impl PendingPermissions {
    /// Adds a question and returns its id.
    pub(crate) fn begin(
        &mut self,
        request: PermissionRequest,
        answer: oneshot::Sender<PermissionOutcome>,
    ) -> String {
        // A caller that gave up needs no answer.
        self.0.retain(|(_, answer)| !answer.is_closed());
        let request_id = uuid::Uuid::new_v4().to_string();
        self.0.push((PendingPermission { request_id: request_id.clone(), request }, answer));
        request_id
    }

    pub(crate) fn pending(&self) -> impl Iterator<Item = &PendingPermission> {
        self.0.iter().filter(|(_, answer)| !answer.is_closed()).map(|(pending, _)| pending)
    }

    /// Answers a question; false if no caller waits for it.
    pub(crate) fn answer(&mut self, request_id: &str, outcome: PermissionOutcome) -> bool {
        let Some(at) = self.0.iter().position(|(pending, _)| pending.request_id == request_id) else {
            return false;
        };
        let (_, answer) = self.0.remove(at);
        answer.send(outcome).is_ok()
    }
}
