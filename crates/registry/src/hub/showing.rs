//! Sessions as lists show them.

use hangar_store::SessionId;

use super::{Hub, iso};
use crate::digest::Digest;
use crate::live::LiveSession;
use crate::resource::{Session, SessionState};
use crate::trouble::Trouble;

impl Hub {
    /// A session as lists show it.
    pub fn session(&self, id: &SessionId) -> Option<Session> {
        let summary = self.0.store.look(id)?;
        self.describe(summary).ok()
    }

    pub(crate) fn describe(&self, summary: hangar_store::SessionSummary) -> Result<Session, Trouble> {
        let hangar_store::SessionSummary { id, meta, log_bytes } = summary;
        let live = self.live(&id);
        let digest = match &live {
            Some(live) => live.state().digest.clone(),
            None => self.0.catalogue.digest_of(&id, log_bytes)?,
        };
        let runtime = self.runtime_of(&digest, live.as_deref());
        let capabilities = self.runtime(Some(&runtime)).ok().map(|runtime| &runtime.card().capabilities);
        // What our own agent would show a model is known here; what others would, nobody tells.
        let own = capabilities.is_some_and(|capabilities| capabilities.own_log);
        let limit = |model: &str| self.0.house.context_limit(model).filter(|_| own);
        let mut session = Session {
            name: meta.name.map(|name| name.as_str().to_owned()),
            state: if digest.error.is_some() { SessionState::Failed } else { SessionState::Closed },
            model: digest.model.clone(),
            effort: digest.effort.clone(),
            workspace: digest
                .workspace
                .clone()
                .or(meta.context.map(|context| context.cwd))
                .unwrap_or_default(),
            created_at: iso(meta.created_at),
            updated_at: iso(meta.updated_at),
            events: digest.at.seq,
            usage: digest.used(),
            context: digest.context(limit),
            approvals: 0,
            run: digest.run.clone(),
            resumable: capabilities.is_some_and(|capabilities| capabilities.resume),
            error: digest.error.clone(),
            policy: capabilities.map(|capabilities| digest.policy(capabilities)),
            runtime,
            id: id.to_string(),
        };
        if let Some(live) = live {
            let state = live.state();
            session.state = state.state();
            session.model = session.model.or_else(|| state.model.clone());
            session.error = state.error().cloned();
            session.usage = state.used();
            session.approvals = state.asked();
            session.policy = Some(live.policy);
            session.resumable = true;
        }
        if let Some(name) = self.0.catalogue.name_given(&id) {
            session.name = Some(name);
        }
        Ok(session)
    }

    fn runtime_of(&self, digest: &Digest, live: Option<&LiveSession>) -> String {
        if let Some(live) = live {
            return live.runtime.clone();
        }
        let known =
            |name: &String| self.runtimes().iter().any(|runtime| runtime.card().name == name.as_str());
        let told = digest.agent.as_ref().or(digest.producer.as_ref()).filter(|name| known(name));
        // Logs that other programs wrote are for our own agent to go on with.
        told.cloned().unwrap_or_else(|| {
            let own = self.runtimes().iter().find(|runtime| runtime.card().capabilities.own_log);
            own.map(|runtime| runtime.card().name.to_string()).unwrap_or_default()
        })
    }
}
