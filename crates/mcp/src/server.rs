//! One server of a session: whether it runs, what it offers, and how it comes back after it died.

use futures_util::FutureExt;
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use std::time::Duration;

use hangar_agent::tool::ToolOutcome;
use hangar_protocol::data::{McpServerStatusChanged, McpToolsListChanged};
use serde::Serialize;
use serde_json::{Map, Value, json};
use serde_with::skip_serializing_none;
use tokio::time::Instant;

use crate::cache::ToolListing;
use crate::client::Listener;
use crate::config::{ConfigSource, ServerConfig};
use crate::connection::{CallError, McpConnection};
use crate::host::HostShared;
use crate::oauth::Authority;
use crate::outcome;

/// Timeout of starting one server.
const START_LIMIT: Duration = Duration::from_secs(60);
/// The first wait before a server that failed is tried again; each failure in a row doubles it.
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
const LONGEST_BACKOFF: Duration = Duration::from_secs(60);
/// Minimum interval between two listings of a server that keeps reporting changed tools.
const RELIST_PAUSE: Duration = Duration::from_secs(1);

pub(crate) struct ManagedServer {
    config: ServerConfig,
    common: Arc<HostShared>,
    authority: Option<Arc<Authority>>,
    state: Mutex<ServerState>,
    /// Held while connecting, so that other callers wait for that connection.
    connecting: tokio::sync::Mutex<()>,
}

struct ServerState {
    phase: Phase,
    offer: Option<Arc<ToolListing>>,
    /// Whether it has been connected in this session.
    worked: bool,
    /// Attempts in a row that failed.
    failures: u32,
    relisting: Relisting,
}

/// State of listing the tools anew after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relisting {
    No,
    Yes,
    /// And there has been another change since.
    Again,
}

enum Phase {
    /// Not started, and nothing is against it.
    Idle,
    Connecting,
    Connected(Arc<McpConnection>),
    Failed {
        error: String,
        retry_at: Instant,
    },
    NeedsAuth,
    Disabled,
    Stopped,
}

/// Status of a server, as events and responses have it.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerReport {
    pub name: String,
    pub status: &'static str,
    pub source: ConfigSource,
    pub display_name: Option<String>,
    pub error: Option<String>,
    pub server_metadata: Option<Value>,
    /// Not in answers, only in events.
    #[serde(skip)]
    pub transport: &'static str,
}

impl ManagedServer {
    pub(crate) fn new(config: ServerConfig, common: &Arc<HostShared>, disabled: bool) -> Arc<Self> {
        let authority = config.remote().map(|remote| {
            let dir = common.tokens_dir.clone();
            let (url, client) = (&remote.url, remote.oauth.clone());
            Arc::new(Authority::new(&config.name, url, client, Arc::clone(common), dir))
        });
        let offer = if config.cached && !disabled { common.cache.load(&config).map(Arc::new) } else { None };
        Arc::new(Self {
            config,
            common: Arc::clone(common),
            authority,
            state: Mutex::new(ServerState {
                phase: if disabled { Phase::Disabled } else { Phase::Idle },
                offer,
                worked: false,
                failures: 0,
                relisting: Relisting::No,
            }),
            connecting: tokio::sync::Mutex::new(()),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.config.name
    }

    pub(crate) fn config(&self) -> &ServerConfig {
        &self.config
    }

    pub(crate) fn common(&self) -> &Arc<HostShared> {
        &self.common
    }

    pub(crate) fn authority(&self) -> Option<Arc<Authority>> {
        self.authority.clone()
    }

    /// Its tools, as far as they are known and wanted.
    pub(crate) fn offer(&self) -> Option<Arc<ToolListing>> {
        let state = self.state();
        match state.phase {
            Phase::Disabled | Phase::Stopped | Phase::NeedsAuth => None,
            // A server that died may come back: a call tries it. A server that never started has no tools.
            Phase::Failed { .. } if !state.worked => None,
            Phase::Idle | Phase::Connecting | Phase::Connected(_) | Phase::Failed { .. } => {
                state.offer.clone()
            }
        }
    }

    /// Whether it has to be started for its tools to be known.
    pub(crate) fn is_unknown(&self) -> bool {
        let state = self.state();
        matches!(state.phase, Phase::Idle) && state.offer.is_none()
    }

    /// Whether it was never started and may be.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.state().phase, Phase::Idle)
    }

    /// Whether it failed and may be retried.
    pub(crate) fn is_due(&self) -> bool {
        matches!(&self.state().phase, Phase::Failed { retry_at, .. } if *retry_at <= Instant::now())
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(&self.state().phase, Phase::Connected(connection) if !connection.is_closed())
    }

    pub(crate) fn is_disabled(&self) -> bool {
        matches!(self.state().phase, Phase::Disabled)
    }

    pub(crate) fn report(&self) -> ServerReport {
        let state = self.state();
        let (status, error) = state.phase.status();
        let instructions = state.offer.as_ref().and_then(|offer| offer.instructions.clone());
        ServerReport {
            name: self.config.name.clone(),
            status,
            source: self.config.source,
            display_name: self.config.display_name.clone(),
            error,
            server_metadata: instructions.map(|instructions| json!({ "instructions": instructions })),
            transport: self.config.transport(),
        }
    }

    /// The connection, made if there is none. However many want it, it is made once.
    pub(crate) async fn connection(self: &Arc<Self>) -> Result<Arc<McpConnection>, String> {
        let _one_at_a_time = self.connecting.lock().await;
        match &self.state().phase {
            Phase::Connected(connection) if !connection.is_closed() => return Ok(Arc::clone(connection)),
            off @ (Phase::Disabled | Phase::Stopped) => return Err(off.refusal()),
            Phase::Failed { error, retry_at } if Instant::now() < *retry_at => {
                let wait = retry_at.duration_since(Instant::now()).as_secs_f64().ceil();
                return Err(format!("{error} (it can be tried again in {wait} s)"));
            }
            Phase::Idle
            | Phase::Connecting
            | Phase::Connected(_)
            | Phase::Failed { .. }
            | Phase::NeedsAuth => {}
        }
        self.connect().await
    }

    async fn connect(self: &Arc<Self>) -> Result<Arc<McpConnection>, String> {
        self.enter(Phase::Connecting).await;
        if let Some(authority) = &self.authority {
            authority.ask_anew();
        }
        let opened = async {
            let (connection, ended) = McpConnection::open(self).await?;
            let offer = connection.offer().await?;
            Ok::<_, String>((connection, ended, offer))
        };
        let opened = tokio::time::timeout(START_LIMIT, opened)
            .await
            .unwrap_or_else(|_| Err(format!("it did not start within {} s", START_LIMIT.as_secs())));
        match opened {
            Ok((connection, ended, offer)) => {
                if self.config.cached {
                    self.common.cache.save(&self.config, &offer);
                }
                let connection = Arc::new(connection);
                let connected = Phase::Connected(Arc::clone(&connection));
                self.arrive(connected, |state| {
                    (state.failures, state.worked) = (0, true);
                    state.offer = Some(Arc::new(offer));
                })
                .await?;
                self.common.tools_changed();
                let (server, mine) = (Arc::downgrade(self), Arc::downgrade(&connection));
                tokio::spawn(FutureExt::boxed(async move {
                    ended.await;
                    if let (Some(server), Some(connection)) = (server.upgrade(), mine.upgrade()) {
                        server.lost(&connection).await;
                    }
                }));
                Ok(connection)
            }
            Err(error) => {
                let refused = self.authority.as_ref().is_some_and(|authority| authority.is_refused());
                if refused {
                    self.arrive(Phase::NeedsAuth, |_| {}).await?;
                    return Err("it requires a login".to_owned());
                }
                self.fail(error.clone()).await?;
                Err(error)
            }
        }
    }

    /// Handles a connection that ended unexpectedly.
    async fn lost(&self, connection: &Arc<McpConnection>) {
        let ours =
            matches!(&self.state().phase, Phase::Connected(current) if Arc::ptr_eq(current, connection));
        if ours {
            let error = connection
                .last_words()
                .map_or_else(|| "the connection was lost".to_owned(), |words| format!("it ended: {words}"));
            // Its tools stay: the next call starts it again.
            self.enter(Phase::Failed { error, retry_at: Instant::now() }).await;
        }
    }

    async fn fail(&self, error: String) -> Result<(), String> {
        let failures = self.state().failures;
        let wait = backoff(failures).mul_f64(self.common.retry_scale);
        let failed = Phase::Failed { error, retry_at: Instant::now() + wait };
        self.common.cache.forget(&self.config);
        self.arrive(failed, |state| state.failures = failures.saturating_add(1)).await?;
        self.common.tools_changed();
        Ok(())
    }

    /// Records the result of a connection attempt. A server that was disabled meanwhile stays off, and its connection
    /// is closed.
    async fn arrive(&self, phase: Phase, learn: impl FnOnce(&mut ServerState)) -> Result<(), String> {
        let news = {
            let mut state = self.state();
            if matches!(state.phase, Phase::Disabled | Phase::Stopped) {
                return Err(state.phase.refusal());
            }
            learn(&mut state);
            self.change(&mut state, phase).1
        };
        self.announce(news).await;
        Ok(())
    }

    /// Enters a phase and publishes it if clients see the difference.
    async fn enter(&self, phase: Phase) {
        let news = self.change(&mut self.state(), phase).1;
        self.announce(news).await;
    }

    /// Replaces the phase. Returns the old one, and the event if clients see the difference.
    fn change(&self, state: &mut ServerState, phase: Phase) -> (Phase, Option<McpServerStatusChanged>) {
        let (status, error) = phase.status();
        let before = std::mem::replace(&mut state.phase, phase);
        let same = !matches!(before, Phase::Idle) && before.status() == (status, error.clone());
        let news = || McpServerStatusChanged {
            server_name: self.config.name.clone(),
            status: status.to_owned(),
            error,
        };
        (before, (!same).then(news))
    }

    async fn announce(&self, news: Option<McpServerStatusChanged>) {
        if let Some(news) = news {
            self.common.tell(news).await;
        }
    }

    /// Calls a tool, for which a connection is made if there is none. One that is lost on the way is not made again for
    /// the same call: the server may have done what it was asked.
    pub(crate) async fn call(
        self: &Arc<Self>,
        tool: &str,
        arguments: Map<String, Value>,
        meta: Option<Map<String, Value>>,
        listener: Listener,
    ) -> ToolOutcome {
        let name = &self.config.name;
        let cancel = listener.context.cancel.clone();
        let connection = tokio::select! {
            connection = self.connection() => connection,
            () = cancel.cancelled() => return interrupted(),
        };
        let connection = match connection {
            Ok(connection) => connection,
            Err(error) => return outcome::failure(name, &error),
        };
        match connection.call(tool, arguments, meta, self.config.timeout, listener).await {
            Ok(result) => outcome::of_result(name, &result),
            Err(CallError::Refused(error) | CallError::Lost(error)) => outcome::failure(name, &error),
            Err(CallError::TimedOut(error)) => outcome::timeout(name, &error),
            Err(CallError::Cancelled) => interrupted(),
        }
    }

    /// Handles a notice of changed tools. However many come, one listing runs, and one more follows for all notices
    /// meanwhile.
    pub(crate) fn tools_changed(self: &Arc<Self>) {
        {
            let mut state = self.state();
            if state.relisting != Relisting::No {
                state.relisting = Relisting::Again;
                return;
            }
            state.relisting = Relisting::Yes;
        }
        let server = Arc::clone(self);
        tokio::spawn(FutureExt::boxed(async move {
            loop {
                server.relist().await;
                {
                    let mut state = server.state();
                    if state.relisting != Relisting::Again {
                        state.relisting = Relisting::No;
                        return;
                    }
                    state.relisting = Relisting::Yes;
                }
                tokio::time::sleep(RELIST_PAUSE).await;
            }
        }));
    }

    async fn relist(self: &Arc<Self>) {
        // A server that is gone is not started for this. Without an answer, the known list stays.
        let connection = match &self.state().phase {
            Phase::Connected(connection) if !connection.is_closed() => Arc::clone(connection),
            _ => return,
        };
        let Ok(offer) = connection.offer().await else { return };
        if self.config.cached {
            self.common.cache.save(&self.config, &offer);
        }
        self.state().offer = Some(Arc::new(offer));
        self.common.tell(McpToolsListChanged { server_name: self.name().to_owned() }).await;
        self.common.tools_changed();
    }

    pub(crate) async fn disable(&self) {
        self.leave(Phase::Disabled).await;
    }

    pub(crate) async fn stop(&self) {
        self.leave(Phase::Stopped).await;
    }

    /// Ends what runs, until a tool is called again.
    pub(crate) async fn rest(&self) {
        let old = {
            let mut state = self.state();
            match std::mem::replace(&mut state.phase, Phase::Idle) {
                Phase::Connected(connection) => connection,
                // Nothing runs, or what is coming up is on its way and finds its place.
                other => {
                    state.phase = other;
                    return;
                }
            }
        };
        old.close();
        let (server_name, status) = (self.config.name.clone(), "stopped".to_owned());
        self.common.tell(McpServerStatusChanged { server_name, status, error: None }).await;
    }

    /// Lets a server that was stopped, disabled or unlucky be started again.
    pub(crate) async fn reset(&self) {
        if let Some(authority) = &self.authority {
            authority.reset().await;
        }
        let mut state = self.state();
        state.failures = 0;
        if !matches!(state.phase, Phase::Connected(_)) {
            state.phase = Phase::Idle;
        }
    }

    async fn leave(&self, phase: Phase) {
        let (before, news) = self.change(&mut self.state(), phase);
        if let Phase::Connected(connection) = before {
            connection.close();
        }
        self.announce(news).await;
        self.common.tools_changed();
    }

    fn state(&self) -> MutexGuard<'_, ServerState> {
        self.state.lock()
    }
}

impl Phase {
    fn status(&self) -> (&'static str, Option<String>) {
        match self {
            Phase::Idle | Phase::Connecting => ("pending", None),
            Phase::Connected(_) => ("connected", None),
            Phase::Failed { error, .. } => ("failed", Some(error.clone())),
            Phase::NeedsAuth => ("needs-auth", None),
            Phase::Disabled => ("disabled", None),
            Phase::Stopped => ("stopped", None),
        }
    }
}

impl Phase {
    /// Error of starting a server that is switched off.
    fn refusal(&self) -> String {
        match self {
            Phase::Disabled => "it is disabled",
            _ => "it was stopped",
        }
        .to_owned()
    }
}

/// Backoff after this many failures in a row.
fn backoff(failures: u32) -> Duration {
    // Six doublings reach the longest wait; a larger shift would overflow before `min` could help.
    FIRST_BACKOFF.saturating_mul(1 << failures.min(6)).min(LONGEST_BACKOFF)
}

fn interrupted() -> ToolOutcome {
    ToolOutcome::of(hangar_agent::tool::ToolStatus::Interrupted, hangar_agent::conversation::INTERRUPTED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_in_a_row_doubles_the_wait_up_to_the_longest() {
        let waits: Vec<u64> = (0..8).map(|failures| backoff(failures).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(backoff(u32::MAX), LONGEST_BACKOFF);
    }
}
