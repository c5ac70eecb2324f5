//! Questions of agents and their answers.

use hangar_protocol::Event;
use hangar_runtimes::runtime::SessionCommand;
use serde_json::value::RawValue;

use super::{Hub, lock};
use crate::approvals::{Approval, ApprovalKind, ApprovalReply, ApprovalState, NotOpen};
use crate::error::RegistryError;
use crate::live::LiveSession;

impl Hub {
    pub fn approvals(&self) -> Vec<Approval> {
        lock(&self.0.approvals).list()
    }

    /// Answers a question. Whoever comes second is told so.
    pub async fn answer(&self, id: &str, reply: ApprovalReply) -> Result<Approval, RegistryError> {
        let closed = |error: NotOpen| match error {
            NotOpen::Unknown => RegistryError::NoApproval(id.to_owned()),
            NotOpen::AlreadyAnswered => RegistryError::AlreadyAnswered(id.to_owned()),
        };
        let (approval, answer) = {
            let mut approvals = lock(&self.0.approvals);
            let kind = approvals.get(id).map_err(closed)?.kind;
            let answer =
                reply.to(kind).map_err(|missing| RegistryError::Unprocessable(missing.to_owned()))?;
            (approvals.settle(id).map_err(closed)?, answer)
        };
        if let Some(live) = self.live(&approval.session_id) {
            live.state().settle(id);
            let _ = live.commands.send(SessionCommand::Answer { request_id: id.to_owned(), answer }).await;
            self.changed(&live);
        }
        self.announce("approval", &approval);
        Ok(approval)
    }

    pub(super) fn asked(&self, live: &LiveSession, kind: ApprovalKind, request_id: &str, event: &Event) {
        let Ok(Ok(event_json)) = serde_json::to_string(event).map(RawValue::from_string) else { return };
        let name = self.0.store.look(&live.id).and_then(|summary| summary.meta.name);
        let approval = Approval {
            id: request_id.to_owned(),
            session_id: live.id.clone(),
            session_name: name.map(|name| name.as_str().to_owned()),
            kind,
            event: event_json,
            since: event.timestamp().to_owned(),
            state: ApprovalState::Open,
        };
        // Whoever sees that the session waits, or is told of the question, may answer it at once.
        lock(&self.0.approvals).open(approval.clone());
        live.state().ask(request_id);
        self.announce("approval", &approval);
    }

    pub(super) fn settled(&self, live: &LiveSession, request_id: &str) {
        live.state().settle(request_id);
        let settled = lock(&self.0.approvals).settle(request_id);
        if let Ok(approval) = settled {
            self.announce("approval", &approval);
        }
    }

    /// Withdraws all open questions of a session.
    pub(super) fn settle_all(&self, live: &LiveSession) {
        let open: Vec<String> = {
            let approvals = lock(&self.0.approvals);
            approvals.of(&live.id).map(|approval| approval.id.clone()).collect()
        };
        open.iter().for_each(|id| self.settled(live, id));
    }
}
