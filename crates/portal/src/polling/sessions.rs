//! Sessions that clients start, talk to and stop. The hub keeps them; their events become callbacks.

use std::path::PathBuf;
use std::sync::Arc;

use hangar_registry::error::RegistryError;
use hangar_registry::hub::{BadWorkspace, MessageDelivery, NewSession};
use hangar_registry::resource::SessionPolicy;
use hangar_registry::{SessionListener, SessionUpdate};
use hangar_store::SessionId;
use serde_json::json;

use super::Polling;
use super::answer::{PollingError, PollingResponse};
use super::entities::{PolledSession, SessionOwner};
use super::response::SessionResponse;
use super::table::{Entity, Named};

impl Polling {
    pub(super) async fn models(&self) -> PollingResponse {
        let models = self.known_models().await.unwrap_or_default();
        let models = models.iter().map(|model| {
            let mut shown = json!({ "name": model.name.as_ref().unwrap_or(&model.id), "id": model.id });
            // An agent without a multiplier is billed otherwise, or not at all; a zero would be a claim.
            if let Some(multiplier) = model.multiplier {
                shown["multiplier"] = json!(multiplier);
            }
            shown
        });
        PollingResponse::Done(json!({ "models": models.collect::<Vec<_>>() }))
    }

    /// Models of the default agent. `None` if they cannot be listed, and any name may work.
    async fn known_models(&self) -> Option<Vec<hangar_runtimes::runtime::OfferedModel>> {
        let models = self.roster.models(None).await.ok()??;
        Some(models).filter(|models| !models.is_empty())
    }

    pub(super) async fn start_session(&self, model: &str, directory: &str) -> PollingResponse {
        let models = self.known_models().await;
        if models.is_some_and(|models| models.iter().all(|known| known.id != model)) {
            return PollingError::ModelIdNotFound.into();
        }
        let directory = directory.trim();
        let workspace = if directory.is_empty() { self.workspace.clone() } else { PathBuf::from(directory) };
        match self.hub.check_workspace(&workspace, [&*self.hub.default_runtime()]) {
            Err(BadWorkspace::NotAbsolute) => return PollingError::WorkingDirectoryNotAbsolutePath.into(),
            Err(BadWorkspace::NotADirectory) => return PollingError::WorkingDirectoryNotExists.into(),
            Ok(()) => {}
        }
        if let Err(full) = self.tables.sessions.check_room() {
            return PollingResponse::Failed(full.to_string());
        }
        match self.open(model, workspace).await {
            Ok(session) => PollingResponse::Done(json!({ "sessionId": session.id })),
            Err(error) => PollingResponse::Failed(error.to_string()),
        }
    }

    async fn open(&self, model: &str, workspace: PathBuf) -> Result<Named<PolledSession>, RegistryError> {
        let opened = self
            .hub
            .open(NewSession {
                agent: None,
                model: Some(model.to_owned()),
                workspace: workspace.clone(),
                policy: Some(SessionPolicy::AllowAll),
                mcp_config: self.runs.job_tools(),
                ..NewSession::default()
            })
            .await?;
        let id: SessionId = opened.id.parse().map_err(|_| RegistryError::NoSession(opened.id.clone()))?;
        let session = self.tables.sessions.put(PolledSession::of_client(id.clone(), workspace, &self.tables));
        self.hub.listen(&id, Arc::clone(&session.entity) as Arc<dyn SessionListener>)?;
        Ok(session)
    }

    /// A session that a client opened and that is open.
    pub(super) fn client_session(&self, id: &str) -> Option<(Named<PolledSession>, SessionId)> {
        let entity = self.tables.sessions.find(id).filter(|session| session.is_open())?;
        let SessionOwner::Client(of_hub) = &entity.owner else { return None };
        let of_hub = of_hub.clone();
        Some((Named { id: id.to_owned(), entity }, of_hub))
    }

    pub(super) async fn stop_session(&self, id: &str) -> PollingResponse {
        let Some((session, of_hub)) = self.client_session(id) else {
            return PollingError::SessionNotFound.into();
        };
        session.entity.log.close();
        match self.hub.stop(&of_hub).await {
            // The session has ended by itself.
            Ok(()) | Err(RegistryError::NoSession(_)) => PollingResponse::closed(),
            Err(error) => PollingResponse::Failed(error.to_string()),
        }
    }

    pub(super) async fn query(&self, id: &str, prompt: String) -> PollingResponse {
        let Some((_, of_hub)) = self.client_session(id) else { return PollingError::SessionNotFound.into() };
        match self.hub.send(&of_hub, prompt, MessageDelivery::Enqueue).await {
            Ok(_) => PollingResponse::Done(json!({})),
            Err(RegistryError::NoSession(_)) => PollingError::SessionNotFound.into(),
            Err(error) => PollingResponse::Failed(error.to_string()),
        }
    }
}

impl SessionListener for PolledSession {
    fn hear(&self, heard: SessionUpdate<'_>) {
        match heard {
            SessionUpdate::Event(event) => self.tell(|callbacks| callbacks.event(event)),
            SessionUpdate::TurnEnded(failure) => self.tell(|callbacks| callbacks.turn_ended(failure)),
            SessionUpdate::Closed(failure) => {
                if let Some(failure) = failure {
                    let session_error = failure.to_owned();
                    self.log.push(SessionResponse::Error { session_error });
                }
                self.log.close();
            }
        }
    }
}
