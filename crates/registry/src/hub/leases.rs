//! Leases: a task holds a session, sends its prompts, and receives the news.

use std::sync::Arc;

use futures_util::FutureExt;
use hangar_runtimes::runtime::{AgentSession, SessionCommand};
use hangar_store::SessionId;
use tokio::sync::mpsc;

use super::Hub;
use crate::error::RegistryError;
use crate::live::{LiveSession, PromptSender};

/// Capacity of a lease holder's queue of news.
const LEASE_QUEUE: usize = 256;

/// Whether a session ends with its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AtRelease {
    StaysOpen,
    Ends,
}

/// A session in the hands of a task. Releases it when dropped.
struct Lease {
    live: Arc<LiveSession>,
    at_release: AtRelease,
}

impl Drop for Lease {
    fn drop(&mut self) {
        match self.at_release {
            AtRelease::StaysOpen => {}
            AtRelease::Ends => self.live.end_now(),
        }
    }
}

impl Hub {
    /// Leases a session to a task. It stays open when the task lets go of it.
    pub async fn lease(&self, id: &SessionId) -> Result<AgentSession, RegistryError> {
        let live = self.woken(id).await?;
        self.grant_lease(&live, AtRelease::StaysOpen)
    }

    pub(super) fn grant_lease(
        &self,
        live: &Arc<LiveSession>,
        at_release: AtRelease,
    ) -> Result<AgentSession, RegistryError> {
        let (commands, mut orders) = mpsc::channel::<SessionCommand>(LEASE_QUEUE);
        let (news, heard) = mpsc::channel(LEASE_QUEUE);
        let id = live.grant_lease(news).ok_or_else(|| RegistryError::Leased(live.id.clone()))?;
        self.changed(live);
        let lease = Lease { live: Arc::clone(live), at_release };
        let hub = self.clone();
        let passing = async move {
            while let Some(command) = orders.recv().await {
                match (command, lease.at_release) {
                    (SessionCommand::Stop, AtRelease::StaysOpen) => return,
                    (SessionCommand::Stop, AtRelease::Ends) => lease.live.end().await,
                    (command, _) => {
                        let Ok(place) = lease.live.commands.reserve().await else { return };
                        let mut state = lease.live.state();
                        if matches!(command, SessionCommand::Send(_)) {
                            state.prompted(PromptSender::Holder(id));
                        }
                        place.send(command);
                    }
                }
                hub.changed(&lease.live);
            }
        };
        let owner = tokio::spawn(FutureExt::boxed(passing)).abort_handle();
        Ok(AgentSession::new(commands, heard, owner))
    }
}
