//! Opens sessions: new ones for people and for runs, and closed ones again.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hangar_protocol::Body;
use hangar_protocol::data::{PermissionMode, PermissionsChanged};
use hangar_runtimes::agents::merged_mcp_config;
use hangar_runtimes::capabilities::EFFORT_LEVELS;
use hangar_runtimes::host::Host;
use hangar_runtimes::outcome::TurnFailure;
use hangar_runtimes::runtime::{AgentCard, AgentOrder, AgentSession, Consent, Runtime};
use hangar_scheduler::item::{ItemId, WorkItem, WorkKind};
use hangar_store::SessionId;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use super::leases::AtRelease;
use super::pump::Pump;
use super::speaking::{MessageDelivery, name_of};
use super::{FAREWELL, Hub, Inner, LOCAL};
use crate::error::RegistryError;
use crate::host::{LogWriter, SessionRequest};
use crate::live::{LiveSession, LiveState};
use crate::queue::Slot;
use crate::resource::{SessionPolicy, SessionResource};
use crate::session_stats::SessionStats;

/// Names on their way into the log of a session.
const NAME_QUEUE: usize = 4;

/// Settings of a new session.
#[derive(Debug, Clone, Default)]
pub struct NewSession {
    /// The default agent where absent.
    pub runtime: Option<String>,
    /// A named agent. It has a runtime, so the two must agree if both are given.
    pub agent: Option<String>,
    pub model: Option<String>,
    pub effort: Option<String>,
    pub workspace: PathBuf,
    /// Defaults to `ask`, where the agent supports it.
    pub policy: Option<SessionPolicy>,
    pub name: Option<String>,
    pub prompt: Option<String>,
    /// For agents that take MCP servers.
    pub mcp_config: Option<String>,
    /// Id of the new session. A request that is repeated with the same id gives the same session.
    pub id: Option<SessionId>,
    /// In a fleet: git remote to work on, the branch or commit to begin at, and the labels that the worker must have.
    pub remote: Option<String>,
    pub reference: Option<String>,
    pub labels: Vec<String>,
}

/// The log of a session that is about to be opened.
enum Log {
    New,
    Resumed(Option<Box<dyn LogWriter>>),
}

/// Removes the id from `opening` when dropped.
pub(super) struct OpeningGuard<'a> {
    pub(super) hub: &'a Inner,
    pub(super) id: SessionId,
}

impl Drop for OpeningGuard<'_> {
    fn drop(&mut self) {
        self.hub.opening.lock().remove(&self.id);
        self.hub.opened.notify_waiters();
    }
}

impl Hub {
    pub async fn open(&self, new: NewSession) -> Result<SessionResource, RegistryError> {
        if let Some(fleet) = self.fleet() {
            return self.open_in_fleet(fleet, new).await;
        }
        if new.remote.is_some() || new.reference.is_some() || !new.labels.is_empty() {
            let why = "`remote`, `ref` and `labels` are for a portal of a fleet (`hangar up --fleet URL`)";
            return Err(RegistryError::Unprocessable(why.to_owned()));
        }
        if let Some(known) = new.id.as_ref().and_then(|id| self.session(id)) {
            return Ok(known);
        }
        let runtime = self.chosen(new.runtime.as_deref(), new.agent.as_deref())?;
        let workspace = new.workspace;
        self.check_workspace(&workspace, [&*runtime.card().name]).map_err(|bad| bad.of(&workspace))?;
        let asks = runtime.card().capabilities.permission_callbacks;
        let policy = new.policy.unwrap_or(if asks { SessionPolicy::Ask } else { SessionPolicy::AllowAll });
        if policy == SessionPolicy::Ask && !asks {
            return Err(RegistryError::CannotAsk(runtime.card().name.to_string()));
        }
        if let Some(effort) = &new.effort {
            check_effort(effort, runtime.card())?;
        }
        let name = new.name.map(name_of).transpose()?;
        let id = match new.id {
            Some(id) => id,
            None => fresh_id()?,
        };
        let wanted = SessionRequest {
            id: id.clone(),
            runtime: runtime.card().name.to_string(),
            model: new.model,
            effort: new.effort,
            workspace,
            consent: consent(policy),
            host: self.pool_host(&runtime.card().name),
        };
        let mut order = self.0.host.order(wanted).map_err(RegistryError::Unprocessable)?;
        if runtime.card().capabilities.mcp_config {
            order.mcp_config = merged_mcp_config(order.mcp_config, new.mcp_config);
        }
        let live = self.start(&runtime, order, policy, Log::New).await?;
        if let Some(name) = name {
            self.rename(&id, name).await?;
        }
        match new.prompt.filter(|prompt| !prompt.trim().is_empty()) {
            Some(prompt) => drop(self.send(&id, prompt, MessageDelivery::Enqueue).await?),
            None => self.changed(&live),
        }
        self.session(&id).ok_or_else(|| RegistryError::NoSession(id.to_string()))
    }

    /// Opens a session that was closed, without a message.
    pub async fn wake(&self, id: &SessionId) -> Result<SessionResource, RegistryError> {
        let live = self.woken(id).await?;
        live.state().share();
        self.changed(&live);
        self.session(id).ok_or_else(|| RegistryError::NoSession(id.to_string()))
    }

    /// Opens a session for a run, which has it until it lets go of it.
    pub(crate) async fn open_for_run(
        &self,
        runtime: &Arc<dyn Runtime>,
        order: AgentOrder,
    ) -> Result<AgentSession, RegistryError> {
        if let Some(fleet) = self.fleet() {
            let live = self.open_run_in_fleet(fleet, runtime, order).await?;
            return self.grant_lease(&live, AtRelease::Ends);
        }
        let wanted = SessionRequest {
            id: session_id(&order.session_id)?,
            runtime: runtime.card().name.to_string(),
            model: order.model.clone(),
            effort: order.effort.clone(),
            workspace: order.workspace.clone(),
            consent: Consent::Confined,
            // The slot was granted for this host.
            host: match order.host {
                Host::Ssh(ssh) => Some(ssh.target),
                Host::Local => None,
            },
        };
        let configured = self.0.host.order(wanted).map_err(RegistryError::Unprocessable)?;
        let mcp_config = merged_mcp_config(configured.mcp_config.clone(), order.mcp_config);
        let order = AgentOrder { mcp_config, opening: order.opening, ..configured };
        let live = self.start(runtime, order, SessionPolicy::AllowAll, Log::New).await?;
        self.grant_lease(&live, AtRelease::Ends)
    }

    /// The session, open and not about to end.
    pub(super) async fn woken(&self, id: &SessionId) -> Result<Arc<LiveSession>, RegistryError> {
        loop {
            let opened = self.0.opened.notified();
            tokio::pin!(opened);
            opened.as_mut().enable();
            let ending = match self.live(id) {
                Some(live) if self.is_of_use(&live) => return Ok(live),
                ending => ending,
            };
            if let Some(ending) = ending {
                // Its agent is going, or has to; its log is about to be closed.
                ending.end_now();
                let _ = tokio::time::timeout(FAREWELL, ending.over.cancelled()).await;
                self.0.live.lock().remove(id);
                continue;
            }
            if self.0.opening.lock().insert(id.clone()) {
                let _opening = OpeningGuard { hub: &self.0, id: id.clone() };
                return match self.join(id).await? {
                    Some(joined) => Ok(joined),
                    None if self.fleet().is_some() => Err(RegistryError::NoSession(id.to_string())),
                    None => self.reopen(id).await,
                };
            }
            opened.await;
        }
    }

    fn is_of_use(&self, live: &LiveSession) -> bool {
        !live.commands.is_closed() && live.takes_words(&live.state(), &self.0.store)
    }

    /// Opens a session again that was closed.
    async fn reopen(&self, id: &SessionId) -> Result<Arc<LiveSession>, RegistryError> {
        if !self.0.store.contains(id) {
            return Err(RegistryError::NoSession(id.to_string()));
        }
        let past = self.0.host.past(id)?;
        // The settings of a named agent apply as long as there is one on the same runtime.
        let named = past.agent.as_deref().and_then(|name| self.runtime(Some(name)).ok());
        let runtime = match named.filter(|agent| agent.card().base() == past.runtime) {
            Some(agent) => agent,
            None => self.runtime(Some(&past.runtime))?,
        };
        let name = runtime.card().name.to_string();
        let capabilities = &runtime.card().capabilities;
        if !capabilities.resume {
            return Err(RegistryError::NotResumable(past.runtime));
        }
        let record = match capabilities.own_log {
            true if self.0.store.is_in_use(id) => {
                return Err(RegistryError::BusyElsewhere { id: id.clone(), pid: None });
            }
            true => None,
            false => Some(self.0.host.take_up(id)?),
        };
        let policy = self.0.catalogue.stats(id)?.policy(capabilities);
        let workspace = past.workspace.unwrap_or_default();
        if self.check_workspace(&workspace, [&*name]).is_err() {
            let gone = workspace.display();
            return Err(RegistryError::Unprocessable(format!(
                "the session worked in {gone}, which is no directory any more; make it again to go on"
            )));
        }
        let wanted = SessionRequest {
            id: id.clone(),
            host: self.host_of_past(&name, past.host),
            runtime: name,
            model: None,
            effort: None,
            workspace,
            consent: consent(policy),
        };
        let mut order = self.0.host.order(wanted).map_err(RegistryError::Unprocessable)?;
        // The session keeps the model that it had.
        order.model = None;
        order.resume =
            Some(record.as_ref().map(|record| record.resume(past.agent_session.clone())).unwrap_or_default());
        self.start(&runtime, order, policy, Log::Resumed(record)).await
    }

    /// Opens a session. The caller publishes its state once it has given the session its first task.
    async fn start(
        &self,
        runtime: &Arc<dyn Runtime>,
        mut order: AgentOrder,
        policy: SessionPolicy,
        log: Log,
    ) -> Result<Arc<LiveSession>, RegistryError> {
        if self.0.stopping.is_cancelled() {
            return Err(RegistryError::Stopping);
        }
        let id = session_id(&order.session_id)?;
        let card = runtime.card();
        let (name, capabilities) = (card.base().to_owned(), &card.capabilities);
        let before = match log {
            Log::New => SessionStats::default(),
            Log::Resumed(_) => self.0.catalogue.stats(&id)?,
        };
        // It is logged, so that the next process that opens the session knows it. An agent that cannot ask needs no record.
        if matches!(log, Log::New) && capabilities.permission_callbacks && policy == SessionPolicy::AllowAll {
            let previous_mode = Some(PermissionMode::Manual);
            let mode = PermissionMode::AllowAll;
            let changed = PermissionsChanged { previous_mode, mode, assisted_approval_model: None };
            order.opening.push(changed.into());
        }
        let begun = order.clone();
        let host = order.host.target().map(str::to_owned);
        // A session of a run says so in its first events.
        let of_run = order.opening.iter().any(|body| matches!(body, Body::RunAssigned(_)));
        let counts_as = (!of_run).then(|| self.turn_item(&id, card, &order));
        let opened = tokio::select! {
            opened = runtime.open(order) => opened,
            () = self.0.stopping.cancelled() => return Err(RegistryError::Stopping),
        };
        let opened = opened.map_err(|failure| {
            self.note_host(host.as_deref(), Some(&failure));
            RegistryError::NotOpened(Box::new(failure))
        })?;
        let record = match log {
            Log::New if capabilities.own_log => None,
            Log::New => Some(self.0.host.begin(&id, &begun, &name)?),
            Log::Resumed(record) => record,
        };
        let (names, renamed) = mpsc::channel(NAME_QUEUE);
        let live = Arc::new(LiveSession {
            id: id.clone(),
            runtime: name,
            policy,
            own_log: capabilities.own_log,
            elsewhere: false,
            steers: capabilities.steering,
            commands: opened.commands.clone(),
            names,
            state: Mutex::new(LiveState::new(before, begun.model)),
            joined: Notify::new(),
            over: CancellationToken::new(),
        });
        self.0.live.lock().insert(id, Arc::clone(&live));
        self.0.openings.send_modify(|openings| *openings += 1);
        let (hub, approvals) = (self.clone(), VecDeque::new());
        let pump = Pump {
            hub,
            live: Arc::clone(&live),
            tree: opened.follow_tree(),
            agent: opened,
            host,
            record,
            renamed,
            approvals,
            counts_as,
            counted: None,
            remarked: None,
            positions: None,
        };
        self.spawn(pump.run());
        Ok(live)
    }
}

impl Hub {
    /// A session's turns as an item of the queue.
    fn turn_item(&self, id: &SessionId, card: &AgentCard, order: &AgentOrder) -> WorkItem {
        WorkItem {
            id: ItemId(id.to_string()),
            kind: WorkKind::Turn,
            project: order.workspace.display().to_string(),
            runtime: card.base().to_owned(),
            agent: card.agent().map(str::to_owned),
            account: self.account(&card.name, order.model.as_deref()),
            host: match &order.host {
                Host::Local => LOCAL.to_owned(),
                Host::Ssh(ssh) => ssh.target.clone(),
            },
            job: None,
            run: None,
            labels: self.placement(&card.name).labels,
            priority: 0,
            enqueued: self.now(),
            attempt: 1,
        }
    }

    /// Counts a turn that nobody queued. A turn that cannot be counted runs nevertheless.
    pub(super) fn counted(&self, item: Option<&WorkItem>) -> Option<Slot> {
        let item = WorkItem { enqueued: self.now(), ..item?.clone() };
        self.0.scheduler.count(item).inspect_err(|error| tracing::warn!(%error, "a turn is not counted")).ok()
    }
}

/// Refuses an effort that no agent knows; the installed version does not matter.
fn check_effort(effort: &str, card: &AgentCard) -> Result<(), RegistryError> {
    let levels = &card.capabilities.effort_levels;
    if EFFORT_LEVELS.contains(&effort) || levels.iter().any(|level| level == effort) {
        return Ok(());
    }
    let known = if levels.is_empty() { EFFORT_LEVELS.join(", ") } else { levels.join(", ") };
    let why = format!("agent `{}` knows no effort `{effort}`; it knows {known}", card.name);
    Err(RegistryError::Unprocessable(why))
}

fn consent(policy: SessionPolicy) -> Consent {
    match policy {
        SessionPolicy::Ask => Consent::Asked,
        SessionPolicy::AllowAll => Consent::Given,
    }
}

/// Id of a new session.
pub(super) fn fresh_id() -> Result<SessionId, RegistryError> {
    let id = uuid::Uuid::new_v4().to_string().parse();
    id.map_err(|error: hangar_store::InvalidId| RegistryError::Invalid(error.to_string()))
}

fn session_id(text: &str) -> Result<SessionId, RegistryError> {
    text.parse().map_err(|_| RegistryError::NoSession(text.to_owned()))
}

/// Why agents cannot work in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadWorkspace {
    NotAbsolute,
    NotADirectory,
}

impl BadWorkspace {
    pub(crate) fn of(self, workspace: &Path) -> RegistryError {
        if workspace.as_os_str().is_empty() {
            return RegistryError::Invalid("`workspace` is missing".to_owned());
        }
        let shown = workspace.display();
        RegistryError::Unprocessable(match self {
            BadWorkspace::NotAbsolute => format!("the workspace `{shown}` is not an absolute path"),
            BadWorkspace::NotADirectory => format!("the workspace {shown} is not a directory"),
        })
    }
}

impl Hub {
    /// Checks that all these agents can work in a directory, as far as this machine can tell: agents on other machines
    /// find out themselves.
    pub fn check_workspace<'a>(
        &self,
        workspace: &Path,
        runtimes: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), BadWorkspace> {
        if !workspace.is_absolute() {
            return Err(BadWorkspace::NotAbsolute);
        }
        let mut hosts = runtimes.into_iter().map(|runtime| self.placement(runtime).host);
        match hosts.any(|host| host == Host::Local) && !workspace.is_dir() {
            true => Err(BadWorkspace::NotADirectory),
            false => Ok(()),
        }
    }

    /// Name of the default agent.
    pub fn default_runtime(&self) -> String {
        self.runtimes().first().map_or_else(String::new, |runtime| runtime.card().name.to_string())
    }

    /// The agent that a request names: a named agent, a runtime, or the default one.
    pub fn chosen(
        &self,
        runtime: Option<&str>,
        agent: Option<&str>,
    ) -> Result<Arc<dyn Runtime>, RegistryError> {
        let Some(name) = agent else { return self.runtime(runtime) };
        let found = self.runtime(Some(name))?;
        match runtime {
            Some(runtime) if runtime != found.card().base() => Err(RegistryError::Unprocessable(format!(
                "agent `{name}` runs on {}, not on {runtime}; leave the `runtime` out",
                found.card().base()
            ))),
            Some(_) | None => Ok(found),
        }
    }

    /// Host of a session that is continued: the one of the pool that has its conversation.
    fn host_of_past(&self, agent: &str, past: Option<String>) -> Option<String> {
        let pool = self.placement(agent).pool;
        past.filter(|host| pool.contains(host)).or_else(|| self.0.scheduler.least_loaded(&pool))
    }

    /// Notes whether a host of a pool could be reached, for the work that is placed next.
    pub(super) fn note_host(&self, host: Option<&str>, failure: Option<&TurnFailure>) {
        let Some(host) = host else { return };
        match failure {
            Some(failure) if failure.is_lost_connection() => self.0.scheduler.host_failed(host),
            Some(_) => {}
            None => self.0.scheduler.host_answered(host),
        }
    }

    /// Host of an agent that has a pool.
    fn pool_host(&self, agent: &str) -> Option<String> {
        self.0.scheduler.least_loaded(&self.placement(agent).pool)
    }
}
