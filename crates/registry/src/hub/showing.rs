//! Sessions as lists show them.

use std::collections::BTreeMap;

use hangar_store::SessionId;

use super::{Hub, iso};
use crate::error::RegistryError;
use crate::live::LiveSession;
use crate::resource::{OpenIn, SessionResource, SessionState};
use crate::session_stats::SessionStats;

impl Hub {
    /// A session as lists show it.
    pub fn session(&self, id: &SessionId) -> Option<SessionResource> {
        if let Some(fleet) = self.fleet() {
            return self.fleet_session(&**fleet, id);
        }
        let summary = self.0.store.look(id)?;
        self.describe(summary).ok()
    }

    pub(crate) fn describe(
        &self,
        summary: hangar_store::SessionSummary,
    ) -> Result<SessionResource, RegistryError> {
        let hangar_store::SessionSummary { id, meta, log_bytes } = summary;
        let live = self.live(&id);
        let stats = match &live {
            Some(live) => live.state().stats.clone(),
            None => self.0.catalogue.stats_of(&id, log_bytes)?,
        };
        let runtime = self.runtime_of(&stats, live.as_deref());
        let known = self.runtime(Some(&runtime)).ok();
        let capabilities = known.as_ref().map(|runtime| &runtime.card().capabilities);
        // The size of the context is known for our own agent only.
        let own = capabilities.is_some_and(|capabilities| capabilities.own_log);
        let limit = |model: &str| self.0.host.context_limit(model).filter(|_| own);
        let mut session = SessionResource {
            name: meta.name.map(|name| name.as_str().to_owned()),
            state: if stats.error.is_some() { SessionState::Failed } else { SessionState::Closed },
            model: stats.model.clone(),
            effort: stats.effort.clone(),
            workspace: stats
                .workspace
                .clone()
                .or(meta.context.map(|context| context.cwd))
                .unwrap_or_default(),
            created_at: iso(meta.created_at),
            updated_at: iso(meta.updated_at),
            events: stats.at.seq,
            usage: stats.used(),
            context: stats.context(limit),
            approvals: 0,
            run: stats.run.clone(),
            resumable: capabilities.is_some_and(|capabilities| capabilities.resume),
            error: stats.error.clone(),
            policy: capabilities.map(|capabilities| stats.policy(capabilities)),
            agent: stats.named_agent.clone(),
            runtime,
            id: id.to_string(),
            no_progress: None,
            open: None,
            worker: None,
            waits: None,
            canvases: None,
        };
        if let Some(live) = live {
            let state = live.state();
            session.state = state.state();
            session.model = session.model.or_else(|| state.model.clone());
            session.error = state.error().cloned();
            session.usage = state.used();
            session.approvals = state.asked();
            session.no_progress = state.no_progress().cloned();
            session.canvases = Some(state.canvases().to_vec()).filter(|canvases| !canvases.is_empty());
            session.policy = Some(live.policy);
            session.resumable = true;
            session.open = Some(if live.elsewhere { OpenIn::Terminal } else { OpenIn::Portal });
        }
        if let Some(name) = self.0.catalogue.name_given(&id) {
            session.name = Some(name);
        }
        Ok(session)
    }

    /// Number of sessions that are open here, by state.
    pub fn open_states(&self) -> Vec<(String, usize)> {
        let mut states: BTreeMap<String, usize> = BTreeMap::new();
        let all: Vec<_> = self.0.live.lock().values().cloned().collect();
        for live in all {
            let state = serde_json::to_value(live.state().state()).unwrap_or_default();
            *states.entry(state.as_str().unwrap_or_default().to_owned()).or_default() += 1;
        }
        states.into_iter().collect()
    }

    pub(super) fn runtime_of(&self, stats: &SessionStats, live: Option<&LiveSession>) -> String {
        if let Some(live) = live {
            return live.runtime.clone();
        }
        let runtimes = self.runtimes();
        let known = |name: &String| runtimes.iter().any(|runtime| runtime.card().name == name.as_str());
        let told = stats.agent.as_ref().or(stats.producer.as_ref()).filter(|name| known(name));
        // Our own agent continues sessions whose log another program wrote.
        told.cloned().unwrap_or_else(|| {
            let own = runtimes.iter().find(|runtime| runtime.card().capabilities.own_log);
            own.map(|runtime| runtime.card().base().to_owned()).unwrap_or_default()
        })
    }
}
