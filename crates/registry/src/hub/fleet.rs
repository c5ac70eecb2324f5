//! Sessions of a fleet: listed from its facts, followed by copies of their logs, and told what to do where they run.
//!
//! A hub with a fleet runs no agent. A session that somebody reads, or that asks a person, is joined like one of a terminal
//! ([`super::joining`]); the host keeps the copy of its log up to date.

use std::sync::Arc;

use hangar_protocol::Body;
use hangar_runtimes::runtime::{AgentOrder, Runtime};
use hangar_store::SessionId;

use super::opening::fresh_id;
use super::speaking::name_of;
use super::{Hub, MessageDelivery, NewSession};
use crate::error::RegistryError;
use crate::host::{FleetCommand, FleetSessions, NewFleetSession};
use crate::live::{LiveSession, PromptSender};
use crate::resource::{OpenIn, SessionPolicy, SessionResource, SessionState};

impl Hub {
    /// The fleet whose sessions are shown, if it is one.
    pub fn fleet(&self) -> Option<&Arc<dyn FleetSessions>> {
        self.0.fleet.as_ref()
    }

    /// Whether there is such a session, open or not.
    pub(crate) fn has(&self, id: &SessionId) -> bool {
        match self.fleet() {
            Some(fleet) => fleet.look(id).is_some(),
            None => self.0.store.contains(id),
        }
    }

    /// Refuses what only the owner of a session can do.
    pub(super) fn own_only(&self, why: &str) -> Result<(), RegistryError> {
        match self.fleet() {
            Some(_) => Err(RegistryError::Unprocessable(format!("a session of the fleet {why}"))),
            None => Ok(()),
        }
    }

    pub(super) fn fleet_session(&self, fleet: &dyn FleetSessions, id: &SessionId) -> Option<SessionResource> {
        let listed = fleet.look(id)?;
        let Some(_live) = self.live(id) else { return Some(listed) };
        let Some(Ok(seen)) = self.0.store.look(id).map(|summary| self.describe(summary)) else {
            return Some(listed);
        };
        let state = match (listed.state, seen.state) {
            (_, SessionState::Waiting) => SessionState::Waiting,
            // Its worker has further messages, although a turn has ended.
            (SessionState::Queued | SessionState::Working, _) => listed.state,
            (_, seen) => seen,
        };
        Some(SessionResource {
            name: listed.name,
            state,
            workspace: listed.workspace,
            created_at: listed.created_at,
            updated_at: listed.updated_at,
            policy: listed.policy,
            open: listed.worker.is_some().then_some(OpenIn::Worker),
            worker: listed.worker,
            waits: listed.waits,
            resumable: true,
            ..seen
        })
    }

    pub(super) async fn open_in_fleet(
        &self,
        fleet: &Arc<dyn FleetSessions>,
        new: NewSession,
    ) -> Result<SessionResource, RegistryError> {
        let id = match &new.id {
            Some(id) => id.clone(),
            None => fresh_id()?,
        };
        if let Some(known) = self.session(&id) {
            return Ok(known);
        }
        let runtime = self.chosen(new.runtime.as_deref(), new.agent.as_deref())?;
        let asks = runtime.card().capabilities.permission_callbacks;
        if new.policy == Some(SessionPolicy::Ask) && !asks {
            return Err(RegistryError::CannotAsk(runtime.card().name.to_string()));
        }
        let policy = new.policy.unwrap_or(if asks { SessionPolicy::Ask } else { SessionPolicy::AllowAll });
        let name = new.name.clone().map(name_of).transpose()?;
        let session = NewSession { policy: Some(policy), name, ..new };
        fleet.open(&id, NewFleetSession { session, run: None }).await?;
        self.session(&id).ok_or_else(|| RegistryError::NoSession(id.to_string()))
    }

    /// Makes the session of a task known, and joins it. Its first prompt becomes an order.
    pub(super) async fn open_run_in_fleet(
        &self,
        fleet: &Arc<dyn FleetSessions>,
        runtime: &Arc<dyn Runtime>,
        order: AgentOrder,
    ) -> Result<Arc<LiveSession>, RegistryError> {
        let id: SessionId =
            order.session_id.parse().map_err(|_| RegistryError::NoSession(order.session_id.clone()))?;
        let run = order.opening.iter().find_map(|body| match body {
            Body::RunAssigned(assigned) => Some(assigned.clone()),
            _ => None,
        });
        let card = runtime.card();
        let session = NewSession {
            runtime: Some(card.base().to_owned()),
            agent: card.agent().map(str::to_owned),
            model: order.model.clone(),
            effort: order.effort.clone(),
            workspace: order.workspace.clone(),
            policy: Some(SessionPolicy::AllowAll),
            mcp_config: order.mcp_config.clone(),
            name: run.as_ref().map(|run| format!("{}: {}", run.job, run.task)),
            ..NewSession::default()
        };
        fleet.open(&id, NewFleetSession { session, run }).await?;
        self.woken(&id).await
    }

    pub(super) async fn send_to_fleet(
        &self,
        fleet: &Arc<dyn FleetSessions>,
        id: &SessionId,
        message: Option<String>,
        text: String,
        delivery: MessageDelivery,
    ) -> Result<SessionState, RegistryError> {
        let known = fleet.look(id).ok_or_else(|| RegistryError::NoSession(id.to_string()))?;
        let is_working = matches!(known.state, SessionState::Working | SessionState::Waiting);
        let steers = delivery == MessageDelivery::Immediate && is_working;
        let message = message.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
        let command =
            if steers { FleetCommand::Steer { text } } else { FleetCommand::Send { id: message, text } };
        fleet.tell(id, command).await?;
        if let Some(live) = self.live(id).filter(|_| !steers) {
            live.state().prompted(PromptSender::Anybody);
            self.changed(&live);
        }
        Ok(self.session(id).map_or(SessionState::Queued, |session| session.state))
    }

    /// Announces a session of the fleet whose facts have changed, and joins it if it asks a person.
    pub async fn fleet_changed(&self, id: &SessionId) {
        let Some(session) = self.session(id) else { return };
        if session.approvals > 0
            && self.live(id).is_none()
            && let Err(error) = self.meet(id).await
        {
            tracing::warn!(session = %id, %error, "the questions of a session cannot be read");
        }
        match self.live(id) {
            Some(live) => self.changed(&live),
            None => self.announce("session", &session),
        }
    }
}
