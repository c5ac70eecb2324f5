//! The servers of one session.

use futures_util::FutureExt;
use parking_lot::{Mutex, MutexGuard};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use hangar_agent::driver::Hooks;
use hangar_agent::model::ModelProvider;
use hangar_agent::permissions::{Grant, Verdict};
use hangar_agent::tool::{Tool, ToolContext};
use hangar_protocol::Body;
use jiff::Timestamp;
use reqwest::Url;
use reqwest::redirect::Policy;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::cache::ToolCache;
use crate::client::{Listener, check_sampling};
use crate::config::ServerConfig;
use crate::connection::CallError;
use crate::naming::ToolNames;
use crate::oauth::Token;
use crate::pending::{ElicitationAnswer, Interest, PendingQuestions};
use crate::process::{Launcher, Sandboxes};
use crate::sampler::{Sampled, Sampler};
use crate::server::{ManagedServer, ServerReport};
use crate::tool::McpTool;

/// Maximum wait for servers before the session continues. Late servers join then.
const START_BUDGET: Duration = Duration::from_secs(5);
/// Servers that start at once.
const AT_ONCE: usize = 8;
/// Maximum delay that a starting server causes to the next. One that hangs must not cost their tools.
const HEAD_START: Duration = Duration::from_secs(1);
/// Capacity of the queue of news.
const NEWS: usize = 256;
/// Progress of calls that no session waits for.
const UNHEARD: usize = 1;
/// Timeout of connecting over the network.
const CONNECT_PATIENCE: Duration = Duration::from_secs(15);

/// Options of a host.
pub struct HostOptions {
    pub servers: Vec<ServerConfig>,
    /// Servers that are there and not to be started.
    pub disabled: Vec<String>,
    /// The environment of programs; nothing else is inherited.
    pub env: Vec<(OsString, OsString)>,
    /// Names of variables that programs do not get.
    pub secrets: Vec<String>,
    pub cwd: PathBuf,
    pub session_id: String,
    /// Directory of cached lists of tools.
    pub cache_dir: PathBuf,
    /// Directory of stored logins.
    pub tokens_dir: PathBuf,
    pub now: fn() -> Timestamp,
    pub sampler: Option<Sampler>,
    /// Sandboxes of the servers' programs, if any.
    pub sandboxes: Sandboxes,
    /// By what the waits before another attempt are multiplied.
    pub retry_scale: f64,
    pub hooks: Option<Arc<dyn Hooks>>,
    /// Makes ids that were never used.
    pub fresh_id: fn() -> String,
    /// Stands between every tool and the session: keeps secrets in and large answers out.
    pub guard: ToolGuard,
}

pub type ToolGuard = Arc<dyn Fn(Arc<dyn Tool>) -> Arc<dyn Tool> + Send + Sync>;

/// Event of the servers.
#[derive(Debug)]
pub enum News {
    /// For the session's stream of events.
    Event(Box<Body>),
    /// [`McpHost::tools`] has other tools than before.
    Tools,
    /// A server wants to ask the model and waits for what the rules of the session say to that.
    Sampling { server: String, verdict: oneshot::Sender<Verdict> },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    #[error("MCP server \"{0}\" is not configured")]
    NotConfigured(String),
    #[error("MCP server \"{0}\" is not connected")]
    NotConnected(String),
    #[error("MCP server \"{0}\" is not a remote server")]
    NotRemote(String),
    #[error("{0}")]
    Failed(String),
}

/// The servers of one session. Clones are the same host.
#[derive(Clone)]
pub struct McpHost(Arc<Inner>);

struct Inner {
    common: Arc<HostShared>,
    servers: Mutex<BTreeMap<String, Arc<ManagedServer>>>,
    /// Held while the servers start; other callers wait for it.
    starting: tokio::sync::Mutex<bool>,
}

/// State shared by the servers of a host.
pub(crate) struct HostShared {
    pub(crate) session_id: String,
    pub(crate) cwd: PathBuf,
    pub(crate) now: fn() -> Timestamp,
    pub(crate) cache: ToolCache,
    pub(crate) tokens_dir: PathBuf,
    pub(crate) launcher: Arc<Launcher>,
    pub(crate) pending: PendingQuestions,
    pub(crate) retry_scale: f64,
    sampler: Mutex<Option<Sampler>>,
    /// Cancellation of sampling requests that clients made for servers, by their ids.
    samplings: Mutex<HashMap<String, CancellationToken>>,
    hooks: Option<Arc<dyn Hooks>>,
    hooked: AtomicBool,
    fresh_id: fn() -> String,
    guard: ToolGuard,
    news: mpsc::Sender<News>,
    generation: AtomicU64,
    /// Whether a notice of changed tools waits for room in the queue of news.
    untold: AtomicBool,
    http: OnceLock<reqwest::Client>,
}

impl HostShared {
    pub(crate) fn fresh_id(&self) -> String {
        (self.fresh_id)()
    }

    /// Sends an event to the session. Waits when the session is behind.
    pub(crate) async fn tell(&self, body: impl Into<Body>) {
        // A session that is over hears nothing more.
        let _ = self.news.send(News::Event(Box::new(body.into()))).await;
    }

    /// Sends an event that may be dropped when the session is behind.
    pub(crate) fn hint(&self, body: impl Into<Body>) {
        let _ = self.news.try_send(News::Event(Box::new(body.into())));
    }

    pub(crate) fn tools_changed(self: &Arc<Self>) {
        self.generation.fetch_add(1, Ordering::Relaxed);
        let full = matches!(self.news.try_send(News::Tools), Err(TrySendError::Full(_)));
        // A session that is behind hears of it when there is room; one word that waits for that is enough.
        if !full || self.untold.swap(true, Ordering::AcqRel) {
            return;
        }
        let common = Arc::clone(self);
        tokio::spawn(FutureExt::boxed(async move {
            let room = common.news.reserve().await;
            // Changes from here on are news again.
            common.untold.store(false, Ordering::Release);
            if let Ok(room) = room {
                room.send(News::Tools);
            }
        }));
    }

    pub(crate) fn hooks(&self) -> Option<&Arc<dyn Hooks>> {
        self.hooks.as_ref().filter(|_| self.hooked.load(Ordering::Relaxed))
    }

    /// Asks the session whether a server may sample the model. `None` when the session is over.
    pub(crate) async fn may_sample(&self, server: &str) -> Option<Verdict> {
        let (verdict, heard) = oneshot::channel();
        let question = News::Sampling { server: server.to_owned(), verdict };
        self.news.send(question).await.ok()?;
        heard.await.ok()
    }

    pub(crate) async fn sample(&self, request: Value) -> Result<Value, String> {
        check_sampling(&request)?;
        let sampler = self.sampler.lock().clone();
        match sampler {
            Some(sampler) => sampler.sample(&request).await,
            None => Err("no model is there for sampling".to_owned()),
        }
    }

    /// The HTTP client, made when the first remote server needs it.
    pub(crate) fn http(&self) -> Result<reqwest::Client, String> {
        if let Some(client) = self.http.get() {
            return Ok(client.clone());
        }
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // Another task may have been faster, which is as good.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let client = reqwest::Client::builder()
            .redirect(same_origin())
            .connect_timeout(CONNECT_PATIENCE)
            .user_agent(concat!("hangar/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| format!("no HTTP client: {error}"))?;
        Ok(self.http.get_or_init(|| client).clone())
    }
}

/// Headers that were configured for a server may be secrets of any name; they go nowhere else.
fn same_origin() -> Policy {
    Policy::custom(|attempt| {
        let from = attempt.previous().last().map(Url::origin);
        if from.is_some_and(|from| from == attempt.url().origin()) {
            Policy::default().redirect(attempt)
        } else {
            attempt.error("the server sends requests on to another host")
        }
    })
}

impl McpHost {
    /// A host and its news. Nothing is started yet.
    pub fn new(options: HostOptions) -> (Self, mpsc::Receiver<News>) {
        let (news, heard) = mpsc::channel(NEWS);
        let launcher = Launcher::new(options.env, &options.secrets, options.cwd.clone(), options.sandboxes);
        let common = Arc::new(HostShared {
            session_id: options.session_id,
            cwd: options.cwd,
            now: options.now,
            cache: ToolCache::new(options.cache_dir, options.now),
            tokens_dir: options.tokens_dir,
            launcher: Arc::new(launcher),
            pending: PendingQuestions::default(),
            retry_scale: options.retry_scale,
            sampler: Mutex::new(options.sampler),
            samplings: Mutex::default(),
            hooks: options.hooks,
            hooked: AtomicBool::new(false),
            fresh_id: options.fresh_id,
            guard: options.guard,
            news,
            generation: AtomicU64::new(0),
            untold: AtomicBool::new(false),
            http: OnceLock::new(),
        });
        (Self::of(common, options.servers, &options.disabled), heard)
    }

    fn of(common: Arc<HostShared>, servers: Vec<ServerConfig>, disabled: &[String]) -> Self {
        let servers = servers
            .into_iter()
            .map(|config| {
                let off = config.off || disabled.contains(&config.name);
                (config.name.clone(), ManagedServer::new(config, &common, off))
            })
            .collect();
        Self(Arc::new(Inner {
            common,
            servers: Mutex::new(servers),
            starting: tokio::sync::Mutex::new(false),
        }))
    }

    /// Servers of an agent's own: another set, whose news go to the same session and which ends with it.
    pub(crate) fn for_agent(&self, servers: Vec<ServerConfig>) -> Self {
        Self::of(Arc::clone(&self.0.common), servers, &[])
    }

    /// Ends the programs and connections of all servers. What is called again starts again.
    pub(crate) async fn rest(&self) {
        let servers: Vec<Arc<ManagedServer>> = self.0.servers.lock().values().cloned().collect();
        for server in servers {
            server.rest().await;
        }
    }

    /// Sends an event to the session.
    pub(crate) async fn tell(&self, body: impl Into<Body>) {
        self.0.common.tell(body).await;
    }

    /// A variable of the environment that programs get.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        self.0.common.launcher.variable(name)
    }

    /// Starts what has to be started for the tools to be known, and waits for it within the budget. Later, those that
    /// failed are tried again when it is time, and nobody waits for them.
    pub async fn ready(&self) {
        let mut started = self.0.starting.lock().await;
        if std::mem::replace(&mut *started, true) {
            let due: Vec<Arc<ManagedServer>> =
                self.0.servers.lock().values().filter(|server| server.is_due()).cloned().collect();
            drop(Self::attempts(due));
            return;
        }
        let unknown: Vec<Arc<ManagedServer>> =
            self.0.servers.lock().values().filter(|server| server.is_unknown()).cloned().collect();
        self.start(unknown).await;
    }

    /// Starts everything that is not disabled, whether or not its tools are known.
    pub async fn connect_all(&self) {
        let mut started = self.0.starting.lock().await;
        *started = true;
        let idle: Vec<Arc<ManagedServer>> =
            self.0.servers.lock().values().filter(|server| server.is_idle()).cloned().collect();
        self.start(idle).await;
    }

    async fn start(&self, servers: Vec<Arc<ManagedServer>>) {
        let mut starts = Self::attempts(servers);
        let all = async { while starts.next().await.is_some() {} };
        let _ = tokio::time::timeout(START_BUDGET, all).await;
    }

    /// Connection attempts in progress. Each is a task of its own: a late server continues to start when nobody waits
    /// for it.
    fn attempts(servers: Vec<Arc<ManagedServer>>) -> FuturesUnordered<JoinHandle<()>> {
        let permits = Arc::new(Semaphore::new(AT_ONCE));
        let attempt = |server: Arc<ManagedServer>| {
            let permits = Arc::clone(&permits);
            tokio::spawn(FutureExt::boxed(async move {
                let permit = permits.acquire().await;
                let connection = server.connection();
                tokio::pin!(connection);
                // The failure is the server's status and has been told.
                if tokio::time::timeout(HEAD_START, &mut connection).await.is_err() {
                    drop(permit);
                    let _ = connection.await;
                }
            }))
        };
        servers.into_iter().map(attempt).collect()
    }

    /// The tools that are there now, by name.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let mut names = ToolNames::default();
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        for server in self.0.servers.lock().values() {
            let Some(offer) = server.offer() else { continue };
            for offered in offer.tools.iter().filter(|tool| server.config().wants(&tool.name)) {
                let name = names.name(server.name(), &offered.name);
                tools.push((self.0.common.guard)(Arc::new(McpTool::new(server, name, offered))));
            }
        }
        tools.sort_by(|a, b| a.spec().name.cmp(&b.spec().name));
        tools
    }

    /// Changes whenever [`McpHost::tools`] may have changed.
    pub fn generation(&self) -> u64 {
        self.0.common.generation.load(Ordering::Relaxed)
    }

    pub fn is_empty(&self) -> bool {
        self.0.servers.lock().is_empty()
    }

    pub fn reports(&self) -> Vec<ServerReport> {
        self.0.servers.lock().values().map(|server| server.report()).collect()
    }

    /// The servers as `session.mcp_servers_loaded` lists them.
    pub fn summaries(&self) -> Vec<Value> {
        let summary = |report: ServerReport| {
            let transport = report.transport;
            let mut summary = serde_json::to_value(report).unwrap_or_default();
            summary["transport"] = json!(transport);
            summary
        };
        self.reports().into_iter().map(summary).collect()
    }

    pub fn set_interest(&self, interest: Interest, answered: bool) {
        self.0.common.pending.set(interest, answered);
    }

    /// Sets whether hooks are asked before a call.
    pub fn set_hooked(&self, hooked: bool) {
        self.0.common.hooked.store(hooked, Ordering::Relaxed);
    }

    /// Has servers ask another model from now on.
    pub fn set_model(&self, provider: Arc<dyn ModelProvider>, model: String) {
        if let Some(sampler) = &mut *self.0.common.sampler.lock() {
            *sampler = Sampler { provider, model, session_id: sampler.session_id.clone() };
        }
    }

    pub fn is_running(&self, name: &str) -> bool {
        self.find(name).is_ok_and(|server| server.is_running())
    }

    /// Name and `_meta` of each tool of a connected server.
    pub async fn list_tools(&self, name: &str) -> Result<Vec<(String, Option<Value>)>, HostError> {
        let server = self.connected(name)?;
        let offer = server.offer().unwrap_or_default();
        let wanted = offer.tools.iter().filter(|tool| server.config().wants(&tool.name));
        Ok(wanted.map(|tool| (tool.name.clone(), tool.meta.clone())).collect())
    }

    pub async fn enable(&self, name: &str) -> Result<(), HostError> {
        let server = self.find(name)?;
        // An explicit request does not wait for the next attempt.
        server.reset().await;
        self.connect(&server).await
    }

    pub async fn disable(&self, name: &str) -> Result<(), HostError> {
        self.find(name)?.disable().await;
        Ok(())
    }

    pub async fn stop(&self, name: &str) -> Result<(), HostError> {
        self.find(name)?.stop().await;
        Ok(())
    }

    /// Starts a server, with another configuration if one is given.
    pub async fn restart(&self, name: &str, config: Option<ServerConfig>) -> Result<(), HostError> {
        let known = self.find(name);
        if let Ok(server) = &known {
            server.stop().await;
        }
        let server = match (config, known) {
            (Some(config), _) => {
                let server = ManagedServer::new(config, &self.0.common, false);
                self.0.servers.lock().insert(name.to_owned(), Arc::clone(&server));
                server
            }
            (None, Ok(server)) => {
                server.reset().await;
                server
            }
            (None, Err(error)) => return Err(error),
        };
        self.connect(&server).await
    }

    /// Replaces the servers. Unchanged ones stay connected.
    pub async fn replace(&self, configs: Vec<ServerConfig>, disabled: &[String]) {
        let mut next = BTreeMap::new();
        let mut gone = Vec::new();
        {
            let mut servers = self.0.servers.lock();
            for config in configs {
                let off = config.off || disabled.contains(&config.name);
                let same = servers
                    .get(&config.name)
                    .filter(|server| *server.config() == config && server.is_disabled() == off)
                    .cloned();
                let server = same.unwrap_or_else(|| ManagedServer::new(config, &self.0.common, off));
                next.insert(server.name().to_owned(), server);
            }
            for (name, server) in std::mem::take(&mut *servers) {
                if next.get(&name).is_none_or(|kept| !Arc::ptr_eq(kept, &server)) {
                    gone.push(server);
                }
            }
            *servers = next;
        }
        for server in gone {
            server.stop().await;
        }
        *self.0.starting.lock().await = false;
        self.0.common.tools_changed();
    }

    async fn connect(&self, server: &Arc<ManagedServer>) -> Result<(), HostError> {
        match server.connection().await {
            Ok(_) => Ok(()),
            Err(error) => Err(HostError::Failed(format!("MCP server \"{}\": {error}", server.name()))),
        }
    }

    /// Calls a tool for someone who is not the model. The answer is that of `tools/call`.
    pub async fn call(
        &self,
        name: &str,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<Value, HostError> {
        let server = self.connected(name)?;
        let connection = server.connection().await.map_err(HostError::Failed)?;
        let (progress, _unheard) = mpsc::channel(UNHEARD);
        let context = ToolContext {
            grant: Grant::Full,
            cancel: CancellationToken::new(),
            hurry: CancellationToken::new(),
            progress,
        };
        let listener = Listener { call_id: String::new(), context };
        let answer = connection.call(tool, arguments, None, server.config().timeout, listener).await;
        answer.map_err(|error| match error {
            CallError::Refused(error) | CallError::TimedOut(error) | CallError::Lost(error) => {
                HostError::Failed(error)
            }
            CallError::Cancelled => HostError::Failed("the call was cancelled".to_owned()),
        })
    }

    pub async fn read_resource(&self, name: &str, uri: &str) -> Result<Value, HostError> {
        let connection = self.connected(name)?.connection().await.map_err(HostError::Failed)?;
        connection
            .read_resource(uri)
            .await
            .map_err(|error| HostError::Failed(format!("resource {uri}: {error}")))
    }

    pub async fn resources(&self, name: &str, cursor: Option<String>) -> Result<Value, HostError> {
        let connection = self.connected(name)?.connection().await.map_err(HostError::Failed)?;
        connection.resources(cursor).await.map_err(HostError::Failed)
    }

    pub async fn resource_templates(&self, name: &str, cursor: Option<String>) -> Result<Value, HostError> {
        let connection = self.connected(name)?.connection().await.map_err(HostError::Failed)?;
        connection.resource_templates(cursor).await.map_err(HostError::Failed)
    }

    /// Asks the model as a server would, until it is cancelled under the same id.
    pub async fn sample(&self, id: &str, request: Value) -> Sampled {
        let cancel = CancellationToken::new();
        match self.samplings().entry(id.to_owned()) {
            Entry::Occupied(_) => return Sampled::Failed(format!("a request {id} is under way already")),
            Entry::Vacant(free) => free.insert(cancel.clone()),
        };
        // Also if no caller waits for the answer any more.
        let _over = SamplingGuard { host: self, id };
        match cancel.run_until_cancelled(self.0.common.sample(request)).await {
            Some(Ok(answer)) => Sampled::Answer(answer),
            Some(Err(error)) => Sampled::Failed(error),
            None => Sampled::Cancelled,
        }
    }

    /// Cancels a request to the model; false if there was none under this id.
    pub fn cancel_sampling(&self, id: &str) -> bool {
        self.samplings().get(id).inspect(|cancel| cancel.cancel()).is_some()
    }

    fn samplings(&self) -> MutexGuard<'_, HashMap<String, CancellationToken>> {
        self.0.common.samplings.lock()
    }

    /// Begins a login at a remote server. The address is where a person goes on; the rest happens by itself.
    pub async fn login(&self, name: &str, login: Login) -> Result<Option<String>, HostError> {
        let server = self.find(name)?;
        let authority = server.authority().ok_or_else(|| HostError::NotRemote(name.to_owned()))?;
        if login.force {
            authority.logins().forget();
        } else {
            server.reset().await;
            if server.connection().await.is_ok() {
                return Ok(None);
            }
        }
        let started = authority.logins().start(&login.client_name).await.map_err(HostError::Failed)?;
        let url = started.authorization_url.clone();
        let waiting = Arc::downgrade(&server);
        let wait = tokio::spawn(FutureExt::boxed(async move {
            let finished = started.finish(&login.goodbye).await;
            let Some(server) = waiting.upgrade() else { return };
            match finished {
                // A task of its own: the next login ends this one, not the connection that it made.
                Ok(()) => drop(tokio::spawn(async move {
                    server.reset().await;
                    // The failure is the server's status and has been told.
                    let _ = server.connection().await;
                })),
                Err(error) => tracing::warn!(server = server.name(), %error, "a login failed"),
            }
        }));
        authority.await_login(wait);
        Ok(Some(url))
    }

    /// Answers a request for a token; false if there was none under this id.
    pub fn answer_oauth(&self, request_id: &str, token: Option<Token>) -> bool {
        self.0.common.pending.tokens.answer(request_id, token)
    }

    pub fn answer_elicitation(&self, request_id: &str, answer: ElicitationAnswer) -> bool {
        self.0.common.pending.elicitations.answer(request_id, answer)
    }

    pub fn answer_sampling(&self, request_id: &str, answer: Option<Value>) -> bool {
        self.0.common.pending.samplings.answer(request_id, answer)
    }

    /// Ends all servers and waits until their programs are gone.
    pub async fn shutdown(&self) {
        for server in self.0.servers.lock().values() {
            server.authority().inspect(|authority| authority.forget_login());
        }
        self.0.common.launcher.shutdown().await;
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.servers.lock().contains_key(name)
    }

    fn find(&self, name: &str) -> Result<Arc<ManagedServer>, HostError> {
        self.0.servers.lock().get(name).cloned().ok_or_else(|| HostError::NotConfigured(name.to_owned()))
    }

    fn connected(&self, name: &str) -> Result<Arc<ManagedServer>, HostError> {
        let server = self.find(name).ok().filter(|server| server.is_running());
        server.ok_or_else(|| HostError::NotConnected(name.to_owned()))
    }
}

/// Drop guard of a sampling request by a client.
struct SamplingGuard<'a> {
    host: &'a McpHost,
    id: &'a str,
}

impl Drop for SamplingGuard<'_> {
    fn drop(&mut self) {
        self.host.samplings().remove(self.id);
    }
}

/// Options of a login.
#[derive(Debug, Clone)]
pub struct Login {
    /// Forget the stored login.
    pub force: bool,
    /// Client name that is sent to the server.
    pub client_name: String,
    /// Message that the browser shows at the end.
    pub goodbye: String,
}
