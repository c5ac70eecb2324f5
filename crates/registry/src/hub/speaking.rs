//! Commands to sessions: messages, names, and the end.

use std::sync::Arc;

use hangar_runtimes::runtime::SessionCommand;
use hangar_store::{SessionId, SessionName};

use super::{FAREWELL, Hub};
use crate::error::RegistryError;
use crate::host::FleetCommand;
use crate::live::{LiveSession, PromptSender, SessionListener};
use crate::resource::{SessionResource, SessionState};

/// Longest name of a session.
pub const MAX_NAME: usize = 500;

/// Time at which a message reaches its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MessageDelivery {
    /// A turn of its own, after the queued ones.
    #[default]
    Enqueue,
    /// Into the current turn, where the agent supports it.
    Immediate,
}

impl Hub {
    /// Sends a message. A session that is closed is opened for it.
    pub async fn send(
        &self,
        id: &SessionId,
        text: String,
        delivery: MessageDelivery,
    ) -> Result<SessionState, RegistryError> {
        self.send_as(id, None, text, delivery).await
    }

    /// The same with an id of the message: to a session of a fleet, a repetition with the same id is the same message.
    pub async fn send_as(
        &self,
        id: &SessionId,
        message: Option<String>,
        text: String,
        delivery: MessageDelivery,
    ) -> Result<SessionState, RegistryError> {
        if let Some(fleet) = self.fleet() {
            return self.send_to_fleet(fleet, id, message, text, delivery).await;
        }
        let live = loop {
            let live = self.woken(id).await?;
            // Prompts are counted in the order in which the agent gets them.
            let mut state = live.state();
            if !live.takes_words(&state, self.store()) {
                // It was ended after it was looked at.
                drop(state);
                continue;
            }
            let steers = delivery == MessageDelivery::Immediate && state.is_working() && live.steers;
            if !steers && !state.takes_prompts() {
                return Err(RegistryError::QueueFull(id.clone()));
            }
            let command = if steers { SessionCommand::Steer(text) } else { SessionCommand::Send(text) };
            if live.commands.try_send(command).is_err() {
                return Err(RegistryError::QueueFull(id.clone()));
            }
            if !steers {
                state.prompted(PromptSender::Anybody);
            }
            drop(state);
            break live;
        };
        self.changed(&live);
        let state = live.state().state();
        Ok(state)
    }

    /// Ends the current turn.
    pub async fn abort(&self, id: &SessionId) -> Result<(), RegistryError> {
        if let Some(fleet) = self.fleet() {
            return fleet.tell(id, FleetCommand::Abort).await;
        }
        self.meet(id).await?;
        let live = self.opened(id)?;
        let _ = live.commands.send(SessionCommand::Abort).await;
        Ok(())
    }

    /// Ends the current turns of all sessions of this process, except those for a run: the run ends them when it is stopped, and
    /// a turn that is aborted before would count as its failure.
    pub(crate) async fn abort_all(&self) {
        let all: Vec<Arc<LiveSession>> = self.0.live.lock().values().cloned().collect();
        let is_ours = |live: &LiveSession| {
            let mut state = live.state();
            !live.elsewhere && state.is_working() && state.holder().is_none()
        };
        for live in all.iter().filter(|live| is_ours(live)) {
            let _ = live.commands.send(SessionCommand::Abort).await;
        }
    }

    /// Ends the agent. The log stays.
    pub async fn stop(&self, id: &SessionId) -> Result<(), RegistryError> {
        if let Some(fleet) = self.fleet() {
            // Its worker ends the agent when nothing is left to do.
            return match fleet.tell(id, FleetCommand::Abort).await {
                Err(RegistryError::NotOpen(_)) => Ok(()),
                told => told,
            };
        }
        if let Some(live) = self.live(id) {
            own(&live)?;
            live.end().await;
            return Ok(());
        }
        if self.0.store.contains(id) { Ok(()) } else { Err(RegistryError::NoSession(id.to_string())) }
    }

    fn opened(&self, id: &SessionId) -> Result<Arc<LiveSession>, RegistryError> {
        match self.live(id) {
            Some(live) => Ok(live),
            None if self.0.store.contains(id) => Err(RegistryError::NotOpen(id.clone())),
            None => Err(RegistryError::NoSession(id.to_string())),
        }
    }

    pub async fn rename(&self, id: &SessionId, name: String) -> Result<SessionResource, RegistryError> {
        let name = name_of(name)?;
        self.own_only("keeps the name that it was opened with")?;
        match self.live(id) {
            Some(live) => {
                // The writer of the log writes the name too.
                let _ = match live.own_log {
                    true => live.commands.send(SessionCommand::Rename(name.clone())).await.is_ok(),
                    false => live.names.send(name.clone()).await.is_ok(),
                };
                self.0.catalogue.renamed(id, name);
            }
            None => self.0.store.rename(id, SessionName::Given(name))?,
        }
        let session = self.session(id).ok_or_else(|| RegistryError::NoSession(id.to_string()))?;
        self.announce("session", &session);
        Ok(session)
    }

    /// Ends a session and removes its files.
    pub async fn delete(&self, id: &SessionId) -> Result<(), RegistryError> {
        self.own_only("is removed when it is older than `retention_days` of [fleet]")?;
        self.meet(id).await?;
        if let Some(live) = self.live(id) {
            own(&live)?;
            live.end().await;
            let _ = tokio::time::timeout(FAREWELL, live.over.cancelled()).await;
        }
        let (hub, erased) = (self.clone(), id.clone());
        // Its costs stay in the ledger.
        let charged = move || {
            if let Err(error) = hub.ledger().take_in([erased.clone()]) {
                tracing::error!(%error, "the ledger cannot be written");
            }
            hub.erase(&erased)
        };
        tokio::task::spawn_blocking(charged)
            .await
            .map_err(|error| RegistryError::Store(error.to_string()))??;
        self.gone(id);
        // Those who read its file look again.
        self.0.openings.send_modify(|openings| *openings += 1);
        Ok(())
    }

    /// Adds a listener to a session that is open here.
    pub fn listen(&self, id: &SessionId, listener: Arc<dyn SessionListener>) -> Result<(), RegistryError> {
        self.opened(id)?.listen(listener);
        Ok(())
    }
}

/// Refuses to end what another process runs.
fn own(live: &LiveSession) -> Result<(), RegistryError> {
    if live.elsewhere { Err(RegistryError::OpenElsewhere(live.id.clone())) } else { Ok(()) }
}

pub(super) fn name_of(name: String) -> Result<String, RegistryError> {
    let name = name.trim().to_owned();
    if name.is_empty() || name.chars().count() > MAX_NAME {
        return Err(RegistryError::Invalid(format!("a name has 1 to {MAX_NAME} characters")));
    }
    Ok(name)
}
