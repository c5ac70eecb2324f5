//! Extensions of one session: which there are, which run, and how they come and go.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use hangar_custom::extensions::Extension;
use hangar_protocol::data::{ExtensionStatus, ExtensionsLoaded, LoadedExtension, SessionWarning};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::host::ExtensionSession;
use super::life;
use super::process::StderrTail;
use crate::hub::{ServedSession, ServerHub};
use crate::methods::Failure;
use crate::user_settings::{ExtensionMode, UserSettings};

/// Longest wait of a prompt for extensions that start.
const READY_PATIENCE: Duration = Duration::from_secs(60);
/// Time of an extension that was refused until it is ended.
const REFUSAL_GRACE: Duration = Duration::from_secs(2);

#[derive(Default)]
pub(crate) struct SessionExtensions {
    state: Mutex<ExtensionStates>,
    /// Loading and switching take turns.
    turn: tokio::sync::Mutex<()>,
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct ExtensionStates {
    /// Whether the session has extensions at all.
    on: bool,
    loading: bool,
    entries: Vec<Entry>,
    /// Extensions that were switched for this session, with whether they are on.
    switched: BTreeMap<String, bool>,
    runs: u64,
}

struct Entry {
    extension: Extension,
    status: ExtensionStatus,
    pid: Option<u32>,
    /// Why it failed.
    problem: Option<String>,
    stderr: StderrTail,
    run: Option<Run>,
}

/// One run of an extension, over all its restarts.
#[derive(Clone)]
pub(super) struct Run {
    pub(super) number: u64,
    /// Cancelled to end it.
    pub(super) stop: CancellationToken,
    /// Cancelled when it has ended.
    pub(super) ended: CancellationToken,
}

/// State of an extension, for people.
pub(super) struct ExtensionReport {
    pub(super) extension: Extension,
    pub(super) status: ExtensionStatus,
    pub(super) pid: Option<u32>,
    pub(super) problem: Option<String>,
    pub(super) stderr: String,
}

impl ExtensionSession {
    /// The session as it is now.
    pub(crate) async fn of(live: &ServedSession) -> Result<Self, Failure> {
        let id = live.id.to_string();
        let session_dir = live.client_files.is_none().then(|| live.store.session_dir(&live.id));
        live.ask(move |task| Self {
            id,
            directory: PathBuf::from(task.cwd()),
            session_dir,
            spec: task.spec.clone(),
            confine: Arc::clone(&task.confine),
        })
        .await
    }
}

impl SessionExtensions {
    pub(crate) fn is_on(&self) -> bool {
        self.state.lock().on
    }

    /// Whether a prompt has to wait for extensions.
    pub(crate) fn is_pending(&self) -> bool {
        let state = self.state.lock();
        state.loading || state.is_starting()
    }

    /// Turns extensions on. True if they were off; they are to be loaded then.
    pub(crate) fn turn_on(&self) -> bool {
        let mut state = self.state.lock();
        let was_off = !state.on;
        state.on = true;
        state.loading |= was_off;
        was_off
    }

    /// Ends all extensions and starts those that are there now. Waits until each has joined or failed.
    pub(crate) async fn load(hub: &Arc<ServerHub>, live: &Arc<ServedSession>) -> Result<(), Failure> {
        let extensions = &live.extensions;
        let _turn = extensions.turn.lock().await;
        extensions.state.lock().loading = true;
        let loaded = extensions.load_in_turn(hub, live).await;
        extensions.state.lock().loading = false;
        extensions.changed.send_replace(());
        Self::publish(live).await;
        loaded
    }

    async fn load_in_turn(&self, hub: &Arc<ServerHub>, live: &Arc<ServedSession>) -> Result<(), Failure> {
        self.stop_all().await;
        let Some(host) = hub.config().extensions.as_deref() else { return Ok(()) };
        let session = ExtensionSession::of(live).await?;
        let settings = settings(hub, &session);
        let (found, problems) = match settings.extension_mode() {
            ExtensionMode::Disabled => (Vec::new(), Vec::new()),
            ExtensionMode::LoadOnly | ExtensionMode::LoadAndAugment => host.find(Some(&session)),
        };
        for problem in problems {
            live.ask(|task| task.record(SessionWarning::new("extension", problem))).await?;
        }
        let disabled = settings.disabled_extensions();
        let ids: Vec<String> = {
            let mut state = self.state.lock();
            let is_off = |id: &String| state.switched.get(id).map_or(disabled.contains(id), |on| !on);
            let entries: Vec<Entry> = found
                .into_iter()
                .map(|extension| {
                    let off = is_off(&extension.id);
                    Entry::new(
                        extension,
                        if off { ExtensionStatus::Disabled } else { ExtensionStatus::Starting },
                    )
                })
                .collect();
            state.entries = entries;
            let starting = state.entries.iter().filter(|entry| entry.status == ExtensionStatus::Starting);
            starting.map(|entry| entry.extension.id.clone()).collect()
        };
        for id in ids {
            self.start(hub, live, &session, &id);
        }
        self.wait_until(|state| !state.is_starting()).await;
        Ok(())
    }

    fn start(&self, hub: &Arc<ServerHub>, live: &Arc<ServedSession>, session: &ExtensionSession, id: &str) {
        let started = {
            let mut state = self.state.lock();
            state.runs += 1;
            let run =
                Run { number: state.runs, stop: CancellationToken::new(), ended: CancellationToken::new() };
            state.entries.iter_mut().find(|entry| entry.extension.id == id).map(|entry| {
                entry.status = ExtensionStatus::Starting;
                entry.problem = None;
                entry.stderr.clear();
                entry.run = Some(run.clone());
                (entry.extension.clone(), entry.stderr.clone(), run)
            })
        };
        let Some((extension, stderr, run)) = started else { return };
        tokio::spawn(FutureExt::boxed(life::live(
            Arc::clone(hub),
            Arc::clone(live),
            session.clone(),
            extension,
            stderr,
            run,
        )));
    }

    /// Switches an extension on or off for this session. One that is not there is remembered for when it is.
    pub(crate) async fn switch(
        hub: &Arc<ServerHub>,
        live: &Arc<ServedSession>,
        id: &str,
        on: bool,
    ) -> Result<(), Failure> {
        let extensions = &live.extensions;
        let _turn = extensions.turn.lock().await;
        let run = {
            let mut state = extensions.state.lock();
            state.switched.insert(id.to_owned(), on);
            let Some(entry) = state.entries.iter_mut().find(|entry| entry.extension.id == id) else {
                return Ok(());
            };
            let is_off = entry.status == ExtensionStatus::Disabled;
            if is_off != on {
                return Ok(());
            }
            if !on {
                entry.status = ExtensionStatus::Disabled;
                entry.pid = None;
            }
            entry.run.take()
        };
        match on {
            true => {
                let session = ExtensionSession::of(live).await?;
                extensions.start(hub, live, &session, id);
                extensions.wait_until(|state| !state.is_starting()).await;
            }
            false => end(run).await,
        }
        Self::publish(live).await;
        Ok(())
    }

    /// Waits until no extension is starting, for a while.
    pub(crate) async fn ready(&self) {
        let settled = self.wait_until(|state| !state.loading && !state.is_starting());
        // A prompt goes on without those that take too long.
        let _ = tokio::time::timeout(READY_PATIENCE, settled).await;
    }

    async fn wait_until(&self, holds: impl Fn(&ExtensionStates) -> bool) {
        let mut changed = self.changed.subscribe();
        while !holds(&self.state.lock()) {
            if changed.changed().await.is_err() {
                return;
            }
        }
    }

    /// Sets the state of a run. False if that run is over.
    pub(super) fn set(
        &self,
        id: &str,
        run: u64,
        status: ExtensionStatus,
        pid: Option<u32>,
        problem: Option<String>,
    ) -> bool {
        let mut state = self.state.lock();
        let entry = state.entries.iter_mut().find(|entry| {
            entry.extension.id == id && entry.run.as_ref().is_some_and(|known| known.number == run)
        });
        let Some(entry) = entry else { return false };
        entry.status = status;
        entry.pid = pid;
        entry.problem = problem;
        drop(state);
        self.changed.send_replace(());
        true
    }

    /// Notes that an extension has joined.
    pub(crate) fn joined(&self, id: &str, run: u64) {
        let pid = {
            let state = self.state.lock();
            state.entries.iter().find(|entry| entry.extension.id == id).and_then(|entry| entry.pid)
        };
        self.set(id, run, ExtensionStatus::Running, pid, None);
    }

    /// Ends the run of an extension that was not allowed to join, once it had time to read the answer. It is not started
    /// again.
    pub(crate) fn refused(&self, id: &str, run: u64, problem: String) {
        if !self.set(id, run, ExtensionStatus::Failed, None, Some(problem)) {
            return;
        }
        let stop = {
            let state = self.state.lock();
            let entry = state.entries.iter().find(|entry| entry.extension.id == id);
            entry.and_then(|entry| Some(entry.run.as_ref()?.stop.clone()))
        };
        if let Some(stop) = stop {
            tokio::spawn(FutureExt::boxed(async move {
                tokio::time::sleep(REFUSAL_GRACE).await;
                stop.cancel();
            }));
        }
    }

    /// State of this very run of an extension; `None` if it is over.
    pub(super) fn status(&self, id: &str, run: u64) -> Option<ExtensionStatus> {
        let state = self.state.lock();
        let entry = state.entries.iter().find(|entry| {
            entry.extension.id == id && entry.run.as_ref().is_some_and(|known| known.number == run)
        });
        entry.map(|entry| entry.status)
    }

    /// Tells the clients of the session about a change. While extensions are loaded they are told at the end.
    pub(crate) async fn publish_change(live: &ServedSession) {
        if !live.extensions.state.lock().loading {
            Self::publish(live).await;
        }
    }

    pub(crate) async fn stop_all(&self) {
        let runs: Vec<Run> = self.state.lock().entries.drain(..).filter_map(|entry| entry.run).collect();
        for run in &runs {
            run.stop.cancel();
        }
        for run in runs {
            run.ended.cancelled().await;
        }
    }

    /// Ends all extensions, for a session that has ended.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.on = false;
        for run in state.entries.drain(..).filter_map(|entry| entry.run) {
            run.stop.cancel();
        }
        drop(state);
        self.changed.send_replace(());
    }

    /// Tells the clients of the session which extensions there are.
    async fn publish(live: &ServedSession) {
        let extensions = {
            let state = live.extensions.state.lock();
            let told = |entry: &Entry| LoadedExtension {
                id: entry.extension.id.clone(),
                name: entry.extension.name.clone(),
                source: entry.extension.source,
                status: entry.status,
            };
            state.entries.iter().map(told).collect()
        };
        // A session that has ended has nothing to tell.
        let _ = live.ask(move |task| task.record(ExtensionsLoaded { extensions })).await;
    }

    /// The extensions, serialised for clients.
    pub(crate) fn list(&self) -> Vec<Value> {
        let state = self.state.lock();
        let shown = |entry: &Entry| {
            let mut shown = json!({
                "id": entry.extension.id,
                "name": entry.extension.name,
                "source": entry.extension.source,
                "status": entry.status,
            });
            if let Some(pid) = entry.pid {
                shown["pid"] = json!(pid);
            }
            shown
        };
        state.entries.iter().map(shown).collect()
    }

    pub(super) fn reports(&self) -> Vec<ExtensionReport> {
        let state = self.state.lock();
        let report = |entry: &Entry| ExtensionReport {
            extension: entry.extension.clone(),
            status: entry.status,
            pid: entry.pid,
            problem: entry.problem.clone(),
            stderr: entry.stderr.text(),
        };
        state.entries.iter().map(report).collect()
    }
}

impl ExtensionStates {
    fn is_starting(&self) -> bool {
        self.entries.iter().any(|entry| entry.status == ExtensionStatus::Starting)
    }
}

impl Entry {
    fn new(extension: Extension, status: ExtensionStatus) -> Self {
        Self { extension, status, pid: None, problem: None, stderr: StderrTail::default(), run: None }
    }
}

async fn end(run: Option<Run>) {
    if let Some(run) = run {
        run.stop.cancel();
        run.ended.cancelled().await;
    }
}

/// Settings of the user whose home the session has.
pub(super) fn settings(hub: &ServerHub, session: &ExtensionSession) -> UserSettings {
    let home = session.spec.identity.config_dir.clone().unwrap_or_else(|| hub.home());
    UserSettings::of(&home)
}

/// Starts the extensions of a session that has just turned them on.
pub(crate) async fn begin(hub: &Arc<ServerHub>, live: &Arc<ServedSession>) {
    let Ok(session) = ExtensionSession::of(live).await else { return };
    if settings(hub, &session).extension_mode() == ExtensionMode::LoadAndAugment {
        let tools = super::manage::tools(hub, live);
        // A session that has ended needs no tools.
        let _ = live.ask(move |task| task.set_management(tools)).await;
    }
    if let Err(failure) = SessionExtensions::load(hub, live).await {
        tracing::warn!(session = %live.id, error = %failure.into_message(), "extensions are not loaded");
    }
}
