//! Agents of this machine as the terminal knows them: which one a session belongs to.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use anyhow::{Result, anyhow};
use hangar_runtimes::runtime::AgentCard;
use hangar_store::{Filter, SessionId, SessionMeta, SessionSummary, Store};
use serde_json::{Value, json};

use super::opening::shown;
use crate::runtimes::choice::NATIVE;
use crate::runtimes::{AgentRuntimes, record};
use crate::selection;
use crate::settings::Settings;

/// Name by which sessions of our own terminal are created.
pub(super) const OWN_CLIENT: &str = "hangar";

/// The agents, assembled when they are first asked for: sessions of our own need none of them.
#[derive(Clone)]
pub(crate) struct Agents {
    settings: Settings,
    runtimes: Arc<OnceLock<Result<Arc<AgentRuntimes>, String>>>,
}

impl Agents {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self { settings: settings.clone(), runtimes: Arc::default() }
    }

    pub(super) fn of(settings: &Settings, runtimes: AgentRuntimes) -> Self {
        Self { settings: settings.clone(), runtimes: Arc::new(OnceLock::from(Ok(Arc::new(runtimes)))) }
    }

    pub(crate) fn runtimes(&self) -> Result<Arc<AgentRuntimes>> {
        let assembled = self.runtimes.get_or_init(|| match AgentRuntimes::assemble(&self.settings) {
            Ok(runtimes) => Ok(Arc::new(runtimes)),
            Err(error) => Err(format!("{error:#}")),
        });
        assembled.clone().map_err(|error| anyhow!(error))
    }

    /// Name of the agent of a session, if it is not our own.
    pub(crate) fn of_session(&self, store: &Store, id: &SessionId) -> Result<Option<String>> {
        match store.look(id) {
            Some(session) if is_candidate(&session.meta) => {
                let runtimes = self.runtimes()?;
                Ok(card(&runtimes, store, id, &session.meta).map(|card| card.name.to_string()))
            }
            _ => Ok(None),
        }
    }

    /// Sessions of this machine for the picker, the last first. `here` is the one that the view shows.
    pub(super) fn sessions(
        &self,
        store: &Store,
        here: Option<&str>,
        now: jiff::Timestamp,
    ) -> Result<Value, String> {
        let listed = store.list(&Filter::default()).map_err(|error| error.to_string())?;
        // Sessions are listed without the names of their agents if those cannot be assembled.
        let runtimes = listed.iter().any(|session| is_candidate(&session.meta)).then(|| self.runtimes().ok());
        let runtimes = runtimes.flatten();
        let sessions: Vec<Value> = listed
            .iter()
            .filter(|session| here == Some(session.id.as_str()) || was_used(store, session))
            .map(|session| {
                let meta = &session.meta;
                let directory =
                    meta.context.as_ref().map(|context| shown(Path::new(&context.cwd), &self.settings));
                let age = now.duration_since(meta.updated_at).as_secs();
                let agent = runtimes.as_ref().and_then(|runtimes| card(runtimes, store, &session.id, meta));
                json!({
                    "id": session.id.as_str(),
                    "name": meta.name.as_ref().map(hangar_store::SessionName::as_str),
                    "age": age.max(0),
                    "directory": directory,
                    "agent": agent.map_or("Hangar", |card| &*card.label),
                    "state": match here == Some(session.id.as_str()) {
                        true => Some("open here"),
                        false => store.is_in_use(&session.id).then_some("open elsewhere"),
                    },
                })
            })
            .collect();
        Ok(json!({ "sessions": sessions }))
    }
}

/// Whether something was said in a session, or may still be: somebody who opens a terminal and leaves it leaves an empty one.
fn was_used(store: &Store, session: &SessionSummary) -> bool {
    session.meta.name.is_some()
        || store.is_in_use(&session.id)
        || selection::was_prompted(store, &session.id).unwrap_or(true)
}

/// Whether a session may be another agent's. Those are recorded under the agent's name.
fn is_candidate(meta: &SessionMeta) -> bool {
    meta.client_name.as_deref().is_some_and(|name| name != OWN_CLIENT && name != NATIVE)
}

/// Agent of a session, if it is not our own. Programs may call themselves as they like, so the log decides.
fn card<'a>(
    runtimes: &'a AgentRuntimes,
    store: &Store,
    id: &SessionId,
    meta: &SessionMeta,
) -> Option<&'a AgentCard> {
    let client = meta.client_name.as_deref().filter(|_| is_candidate(meta))?;
    let card = runtimes.find(client).ok()?.card();
    (record::producer(store, id)? == *card.name).then_some(card)
}
