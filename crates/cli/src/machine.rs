//! The portal's view of this machine: its agents, their configuration, and logs for agents that keep none.

use std::sync::{Arc, OnceLock};

use anyhow::Result;
use futures_util::future::BoxFuture;
use hangar_jobs::record::RunOrder;
use hangar_models::config::ProviderConfig;
use hangar_protocol::data::CodeChanges;
use hangar_protocol::{Event, LogPosition};
use hangar_registry::host::{
    AgentHost, JoinedSession, LogWriter, LogWriterError, PastSession, SessionRequest,
};
use hangar_runtimes::host::Host;
use hangar_runtimes::runtime::{AgentOrder, Resume, Runtime};
use hangar_runtimes::usage::Usage;
use hangar_store::{SessionId, Store, StoreError};

use crate::endpoint;
use crate::portal::joined;
use crate::providers;
use crate::redact::Redactor;
use crate::runtimes::config::RuntimesConfig;
use crate::runtimes::record;
use crate::runtimes::{Fleet, choice};
use crate::settings::{LoginPlaces, Settings};

pub(crate) struct Machine {
    store: Store,
    config: RuntimesConfig,
    /// The default one first.
    runtimes: Vec<Arc<dyn Runtime>>,
    settings: Settings,
    redactor: Redactor,
    /// Configured providers, resolved on first use.
    providers: OnceLock<Vec<ProviderConfig>>,
}

impl Machine {
    pub(crate) fn new(settings: &Settings) -> Result<Self> {
        let fleet = Fleet::assemble(settings)?;
        let default = fleet.config.default.as_deref().unwrap_or(choice::NATIVE);
        fleet.find(default)?;
        let mut runtimes: Vec<Arc<dyn Runtime>> = fleet.iter().cloned().collect();
        runtimes.sort_by_key(|runtime| runtime.card().name != default);
        // The window of a model does not depend on the login, so no program is started to find one.
        let mut quiet = settings.clone();
        quiet.logins = LoginPlaces::Variables;
        Ok(Self {
            store: Store::new(&settings.home),
            config: fleet.config,
            redactor: fleet.redactor,
            runtimes,
            settings: quiet,
            providers: OnceLock::new(),
        })
    }
}

impl Machine {
    /// Whether some agent of a run works on this machine.
    pub(crate) fn works_here(&self, order: &RunOrder) -> bool {
        let default = || self.runtimes.first().map_or(choice::NATIVE, |runtime| &*runtime.card().name);
        order.runtimes().iter().any(|name| self.location(name.unwrap_or_else(default)) == Host::Local)
    }

    fn providers(&self) -> &[ProviderConfig] {
        self.providers.get_or_init(|| providers::configured(&self.settings).unwrap_or_default())
    }

    /// Whether it is our own agent, which takes our own flags.
    fn keeps_log(&self, name: &str) -> bool {
        let mut runtimes = self.runtimes.iter().map(|runtime| runtime.card());
        runtimes.any(|card| card.name == name && card.capabilities.own_log)
    }
}

impl AgentHost for Machine {
    fn runtimes(&self) -> &[Arc<dyn Runtime>] {
        &self.runtimes
    }

    fn order(&self, wanted: SessionRequest) -> Result<AgentOrder, String> {
        let host = self.location(&wanted.runtime);
        let order = choice::configured(&self.config, &wanted.runtime)
            .and_then(|usual| usual.order(&self.config, wanted.id.to_string(), wanted.workspace, host));
        let mut order = order.map_err(|error| format!("{error:#}"))?;
        order.model = wanted.model.or(order.model);
        order.effort = wanted.effort.or(order.effort);
        order.consent = wanted.consent;
        if self.keeps_log(&wanted.runtime) {
            // Clients may display how full its context is.
            order.extra.push("--all-events".to_owned());
        }
        order.scratch = Some(self.store.session_dir(&wanted.id));
        Ok(order)
    }

    fn location(&self, runtime: &str) -> Host {
        choice::host_of(&self.config, runtime)
    }

    fn account(&self, runtime: &str, model: Option<&str>) -> String {
        if !self.keeps_log(runtime) {
            return runtime.to_owned();
        }
        let providers = self.providers();
        let found = hangar_models::config::find(providers, model.unwrap_or_default());
        found.map_or_else(|| runtime.to_owned(), |(provider, _)| provider.name.clone())
    }

    fn begin(
        &self,
        id: &SessionId,
        order: &AgentOrder,
        runtime: &str,
    ) -> Result<Box<dyn LogWriter>, LogWriterError> {
        let log = record::SessionRecorder::create(&self.store, id, &order.workspace, None, runtime)
            .map_err(trouble)?;
        Ok(Box::new(Logged { log, named: false, redactor: self.redactor.clone() }))
    }

    fn take_up(&self, id: &SessionId) -> Result<Box<dyn LogWriter>, LogWriterError> {
        let log = record::SessionRecorder::open(&self.store, id).map_err(trouble)?;
        Ok(Box::new(Logged { log, named: true, redactor: self.redactor.clone() }))
    }

    fn context_limit(&self, model: &str) -> Option<u64> {
        Some(providers::prompt_limit(self.providers(), model))
    }

    fn past(&self, id: &SessionId) -> Result<PastSession, LogWriterError> {
        let knows = |name: &str| self.runtimes.iter().any(|runtime| runtime.card().name == name);
        let past = record::SessionPast::read(&self.store, id, knows).map_err(trouble)?;
        Ok(PastSession {
            runtime: past.runtime,
            agent_session: past.agent_session,
            workspace: past.workspace,
        })
    }

    fn open_elsewhere(&self) -> Vec<SessionId> {
        endpoint::open_sessions(&self.settings.home)
    }

    fn join(&self, id: &SessionId) -> BoxFuture<'static, Result<Option<JoinedSession>, String>> {
        let (home, id) = (self.settings.home.clone(), id.clone());
        Box::pin(async move { joined::join(&home, &id).await })
    }
}

fn trouble(error: anyhow::Error) -> LogWriterError {
    match error.downcast::<StoreError>() {
        Ok(error) => LogWriterError::Store(error),
        Err(error) => LogWriterError::Write(format!("{error:#}")),
    }
}

/// A log that the portal keeps for an agent.
struct Logged {
    log: record::SessionRecorder,
    /// Whether the session has a name; otherwise its first prompt names it.
    named: bool,
    redactor: Redactor,
}

impl LogWriter for Logged {
    fn append(&mut self, event: &Event) -> Result<Option<LogPosition>, LogWriterError> {
        let position = self.log.append(event).map_err(trouble)?;
        if let (false, hangar_protocol::Body::UserMessage(message)) = (self.named, event.body()) {
            self.named = true;
            self.log.name_by(&message.content).map_err(trouble)?;
        }
        Ok(position)
    }

    fn rename(&mut self, name: String) -> Result<(), LogWriterError> {
        self.named = true;
        self.log.rename(self.redactor.text(name)).map_err(trouble)
    }

    fn resume(&self, agent_session: Option<String>) -> Resume {
        self.log.resume(agent_session)
    }

    fn close(
        &mut self,
        model: Option<String>,
        usage: &Usage,
        changes: CodeChanges,
        error: Option<String>,
    ) -> Result<Event, LogWriterError> {
        let changes = self.log.changes(changes);
        self.log.close(model, usage, changes, error).map_err(trouble)
    }
}
