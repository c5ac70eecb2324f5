//! The portal's view of this machine: its agents, their configuration, and logs for agents that keep none.

use std::sync::{Arc, OnceLock};

use anyhow::Result;
use futures_util::future::BoxFuture;
use hangar_jobs::record::RunOrder;
use hangar_models::config::ProviderConfig;
use hangar_protocol::data::CodeChanges;
use hangar_protocol::{Event, LogPosition};
use hangar_registry::host::{
    AgentHost, FleetSessions, JoinedSession, LogWriter, LogWriterError, OtherProcesses, PastSession,
    Placement, RegistryHost, SessionLogs, SessionRequest,
};
use hangar_registry::hub::{Hub, HubConfig};
use hangar_runtimes::host::Host;
use hangar_runtimes::runtime::{AgentOrder, Resume, Runtime};
use hangar_runtimes::usage::AgentUsage;
use hangar_store::{SessionId, Store, StoreError};
use parking_lot::Mutex;

use crate::config::live::FileStamp;
use crate::costs;
use crate::endpoint;
use crate::fleet::portal::FleetPortal;
use crate::portal::joined;
use crate::providers;
use crate::queue;
use crate::redact::Redactor;
use crate::runtimes::config::RuntimesConfig;
use crate::runtimes::record;
use crate::runtimes::{AgentRuntimes, choice};
use crate::settings::{LoginPlaces, Settings};

/// The machine with its current configuration. A change of `config.toml` applies to what is opened after it; a file that cannot be
/// used leaves the configuration as it was.
pub(crate) struct Machine {
    store: Store,
    settings: Settings,
    current: Mutex<Current>,
}

struct Current {
    /// Settings with the secrets that were learned since the start.
    settings: Settings,
    /// The file that the configuration was read from.
    stamp: FileStamp,
    configured: Arc<Configuration>,
}

/// Agents and providers, as they are configured.
struct Configuration {
    config: RuntimesConfig,
    /// Runtimes and named agents, the default one first.
    runtimes: Arc<[Arc<dyn Runtime>]>,
    redactor: Redactor,
    /// Settings that start no program to find a login.
    quiet: Settings,
    /// Configured providers, resolved on first use.
    providers: OnceLock<Vec<ProviderConfig>>,
}

impl Configuration {
    fn load(settings: &Settings) -> Result<Self> {
        let runtimes = AgentRuntimes::assemble(settings)?;
        let default = runtimes.config.default.as_deref().unwrap_or(choice::NATIVE);
        runtimes.find(default)?;
        let mut all: Vec<Arc<dyn Runtime>> = runtimes.iter().chain(runtimes.named()).cloned().collect();
        all.sort_by_key(|runtime| runtime.card().name != default);
        // The window of a model does not depend on the login, so no program is started to find one.
        let mut quiet = settings.clone();
        quiet.logins = LoginPlaces::Variables;
        Ok(Self {
            config: runtimes.config,
            redactor: runtimes.redactor,
            runtimes: all.into(),
            quiet,
            providers: OnceLock::new(),
        })
    }

    fn providers(&self) -> &[ProviderConfig] {
        self.providers.get_or_init(|| providers::configured(&self.quiet).unwrap_or_default())
    }

    /// Whether it is our own agent, which takes our own flags.
    fn keeps_log(&self, name: &str) -> bool {
        let mut runtimes = self.runtimes.iter().map(|runtime| runtime.card());
        runtimes.any(|card| card.name == name && card.capabilities.own_log)
    }
}

impl Machine {
    pub(crate) fn new(settings: &Settings) -> Result<Self> {
        let stamp = FileStamp::of(&settings.config_path());
        let configured = Arc::new(Configuration::load(settings)?);
        Ok(Self {
            store: Store::new(&settings.home),
            settings: settings.clone(),
            current: Mutex::new(Current { settings: settings.clone(), stamp, configured }),
        })
    }

    /// Hides further secrets from agents that are opened from now on, and from their output.
    pub(crate) fn hide(&self, hidden: impl FnOnce(&Settings) -> Settings) -> Result<()> {
        let mut current = self.current.lock();
        let settings = hidden(&current.settings);
        if settings.secret_values().count() != current.settings.secret_values().count() {
            current.configured = Arc::new(Configuration::load(&settings)?);
            current.settings = settings;
        }
        Ok(())
    }

    fn configured(&self) -> Arc<Configuration> {
        let mut current = self.current.lock();
        let stamp = FileStamp::of(&self.settings.config_path());
        if stamp != current.stamp {
            current.stamp = stamp;
            match Configuration::load(&current.settings) {
                Ok(configured) => current.configured = Arc::new(configured),
                Err(error) => tracing::error!("the configuration stays as it was: {error:#}"),
            }
        }
        Arc::clone(&current.configured)
    }

    /// Whether some agent of a run works on this machine.
    pub(crate) fn works_here(&self, order: &RunOrder) -> bool {
        let runtimes = self.configured().runtimes.clone();
        let default = || runtimes.first().map_or(choice::NATIVE, |runtime| &*runtime.card().name);
        order.runtimes().iter().any(|name| self.placement(name.unwrap_or_else(default)).host == Host::Local)
    }
}

/// The registry of a process that works: of the sessions of the home, or of those of a fleet.
pub(crate) fn registry(
    settings: &Settings,
    machine: &Arc<Machine>,
    fleet: Option<&FleetPortal>,
) -> Result<Hub> {
    let (store, ledger) = match fleet {
        Some(fleet) => (fleet.store(), fleet.ledger()?),
        None => (Store::new(&settings.home), costs::ledger(settings)?),
    };
    Ok(Hub::new(HubConfig {
        host: Arc::clone(machine) as Arc<dyn RegistryHost>,
        store,
        scheduler: queue::working_scheduler(settings)?,
        ledger,
        fleet: fleet.map(|fleet| Arc::new(fleet.clone()) as Arc<dyn FleetSessions>),
        now: jiff::Timestamp::now,
    }))
}

impl AgentHost for Machine {
    fn runtimes(&self) -> Arc<[Arc<dyn Runtime>]> {
        self.configured().runtimes.clone()
    }

    fn order(&self, wanted: SessionRequest) -> Result<AgentOrder, String> {
        let configured = self.configured();
        let config = &configured.config;
        let host = match &wanted.host {
            Some(target) => choice::host_named(config, &wanted.runtime, target),
            None => choice::host_of(config, &wanted.runtime),
        };
        let order = choice::configured(config, &wanted.runtime)
            .and_then(|usual| usual.order(config, wanted.id.to_string(), wanted.workspace, host));
        let mut order = order.map_err(|error| format!("{error:#}"))?;
        order.model = wanted.model.or(order.model);
        order.effort = wanted.effort.or(order.effort);
        order.consent = wanted.consent;
        if configured.keeps_log(&wanted.runtime) {
            // Clients may display how full its context is.
            order.extra.push("--all-events".to_owned());
        }
        order.scratch = Some(self.store.session_dir(&wanted.id));
        Ok(order)
    }

    fn placement(&self, runtime: &str) -> Placement {
        let configured = self.configured();
        let host = choice::host_of(&configured.config, runtime);
        let (pool, labels) = match configured.config.named.get(runtime) {
            Some(agent) => (agent.pool().to_vec(), agent.labels.iter().cloned().collect()),
            None => Default::default(),
        };
        Placement { host, pool, labels }
    }

    fn account(&self, runtime: &str, model: Option<&str>) -> String {
        let configured = self.configured();
        let base = configured.config.base(runtime);
        if !configured.keeps_log(runtime) {
            return base.to_owned();
        }
        let usual = configured.config.model(runtime);
        let model = model.or(usual.as_deref()).unwrap_or_default();
        let found = hangar_models::config::find(configured.providers(), model);
        found.map_or_else(|| base.to_owned(), |(provider, _)| provider.name.clone())
    }

    fn context_limit(&self, model: &str) -> Option<u64> {
        Some(providers::prompt_limit(self.configured().providers(), model))
    }
}

impl SessionLogs for Machine {
    fn begin(
        &self,
        id: &SessionId,
        order: &AgentOrder,
        runtime: &str,
    ) -> Result<Box<dyn LogWriter>, LogWriterError> {
        let log = record::SessionRecorder::create(&self.store, id, &order.workspace, None, runtime)
            .map_err(trouble)?;
        Ok(Box::new(Logged { log, named: false, redactor: self.configured().redactor.clone() }))
    }

    fn take_up(&self, id: &SessionId) -> Result<Box<dyn LogWriter>, LogWriterError> {
        let log = record::SessionRecorder::open(&self.store, id).map_err(trouble)?;
        Ok(Box::new(Logged { log, named: true, redactor: self.configured().redactor.clone() }))
    }

    fn past(&self, id: &SessionId) -> Result<PastSession, LogWriterError> {
        let runtimes = self.runtimes();
        let knows = |name: &str| runtimes.iter().any(|runtime| runtime.card().name == name);
        let past = record::SessionPast::read(&self.store, id, knows).map_err(trouble)?;
        Ok(PastSession {
            runtime: past.runtime,
            agent: past.agent,
            host: past.host,
            agent_session: past.agent_session,
            workspace: past.workspace,
        })
    }
}

impl OtherProcesses for Machine {
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
        usage: &AgentUsage,
        changes: CodeChanges,
        error: Option<String>,
    ) -> Result<Event, LogWriterError> {
        let changes = self.log.changes(changes);
        self.log.close(model, usage, changes, error).map_err(trouble)
    }
}
