//! Questions of agents and their answers.

use hangar_protocol::Event;
use hangar_runtimes::runtime::SessionCommand;
use hangar_store::SessionId;
use serde_json::value::RawValue;

use super::Hub;
use crate::approvals::{Approval, ApprovalKind, ApprovalReply, ApprovalState, NotOpen};
use crate::error::RegistryError;
use crate::host::FleetCommand;
use crate::live::LiveSession;

impl Hub {
    pub fn approvals(&self) -> Vec<Approval> {
        self.0.approvals.lock().list()
    }

    /// Answers a question. The second answer to a question is refused.
    pub async fn answer(&self, id: &str, reply: ApprovalReply) -> Result<Approval, RegistryError> {
        let closed = |error: NotOpen| match error {
            NotOpen::Unknown => RegistryError::NoApproval(id.to_owned()),
            NotOpen::AlreadyAnswered => RegistryError::AlreadyAnswered(id.to_owned()),
        };
        let (asked, answer) = {
            let approvals = self.0.approvals.lock();
            let asked = approvals.get(id).map_err(closed)?;
            let answer = reply.to(asked.kind);
            let answer = answer.map_err(|missing| RegistryError::Unprocessable(missing.to_owned()))?;
            (asked.clone(), answer)
        };
        if let Some(fleet) = self.fleet() {
            // The worker has the word: somebody may have answered in another portal.
            let command = FleetCommand::Answer { request_id: id.to_owned(), answer: answer.clone() };
            fleet.tell(&asked.session_id, command).await.map_err(|error| match error {
                RegistryError::Invalid(_) => RegistryError::AlreadyAnswered(id.to_owned()),
                error => error,
            })?;
        }
        let settled = self.0.approvals.lock().settle(id).map_err(closed);
        let approval = match settled {
            Ok(approval) => approval,
            // The log of the fleet was faster; the answer was accepted nevertheless.
            Err(_) if self.fleet().is_some() => Approval { state: ApprovalState::Answered, ..asked },
            Err(error) => return Err(error),
        };
        if let Some(live) = self.live(&approval.session_id) {
            live.state().settle(id);
            if self.fleet().is_none() {
                let command = SessionCommand::Answer { request_id: id.to_owned(), answer };
                let _ = live.commands.send(command).await;
            }
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
        // A client that sees the question may answer it at once.
        self.0.approvals.lock().open(approval.clone());
        live.state().ask(request_id);
        self.announce("approval", &approval);
        let text = match kind {
            ApprovalKind::Permission => "An agent asks for a permission.",
            ApprovalKind::Question | ApprovalKind::Elicitation | ApprovalKind::Plan => {
                "An agent asks a question."
            }
        };
        self.notify_question(live, text);
    }

    pub(super) fn settled(&self, live: &LiveSession, request_id: &str) {
        live.state().settle(request_id);
        let settled = self.0.approvals.lock().settle(request_id);
        if let Ok(approval) = settled {
            self.announce("approval", &approval);
        }
    }

    /// A question of a session of the fleet was answered or withdrawn elsewhere.
    pub fn question_settled(&self, id: &SessionId, request_id: &str) {
        if let Some(live) = self.live(id) {
            self.settled(&live, request_id);
            self.changed(&live);
        }
    }

    /// Withdraws all open questions of a session.
    pub(super) fn settle_all(&self, live: &LiveSession) {
        let open: Vec<String> = {
            let approvals = self.0.approvals.lock();
            approvals.of(&live.id).map(|approval| approval.id.clone()).collect()
        };
        open.iter().for_each(|id| self.settled(live, id));
    }
}
