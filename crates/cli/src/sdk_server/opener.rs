//! Sessions for clients: the same composition as for a prompt, from the client's request.

use parking_lot::{Mutex, MutexGuard};
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use futures_util::future::BoxFuture;
use hangar_agent::agents::config::Reporting;
use hangar_agent::tool::{ToolFilter, ToolSpec};
use hangar_engine::EngineParts;
use hangar_models::facts;
use hangar_server::{
    AccountHost, Accounts, AuthStatus, InstructionSource, ModelTransport, OpenError, OpenRequest,
    OpenedSession, RecomposeRequest, Recomposed, Recomposer, SessionOpener, SessionSurroundings, TodoBoard,
    TodoDependency, TodoItem, Todos, UserSettings,
};
use hangar_spec::{CustomizationOptions, IdentityOptions, SessionSpec};
use hangar_store::Store;
use hangar_tools::sql::Database;

use super::{account, endpoint, instructions, models};
use crate::args::RunArgs;
use crate::compose::{self, HostSettings, LiveSession, ModelSource, Opened, RecomposedParts, SessionRequest};
use crate::config::live::LiveConfig;
use crate::flags;
use crate::mcp::{self, ServerSources};
use crate::providers;
use crate::selection::SessionSelection;
use crate::settings::{LoginSource, Settings};
use crate::workspace::trust::Trust;

/// Limit of the values that clients hide.
const MAX_HIDDEN: usize = 1024;

#[derive(Clone)]
pub(super) struct Opener(Arc<Server>);

/// State that all sessions of the server share.
pub(super) struct Server {
    config: LiveConfig,
    /// The token that the server was started with.
    given: Option<String>,
    /// Values that tools of later sessions must not show.
    hidden: Mutex<Vec<String>>,
    args: Arc<RunArgs>,
    front: Front,
}

/// Kind of client that sessions are opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Front {
    /// A program, which says what its sessions are to be.
    Program,
    /// The terminal: a session is what the flags say, under the rules of `-p`.
    Person,
}

impl Opener {
    /// Flags that make no sense are refused before there is a client.
    pub(super) fn new(
        settings: Settings,
        given: Option<String>,
        args: Arc<RunArgs>,
        front: Front,
    ) -> Result<Self> {
        flags::policy(&args, &settings)?;
        let config = LiveConfig::new(settings);
        Ok(Self(Arc::new(Server { config, given, hidden: Mutex::default(), args, front })))
    }

    pub(super) fn server(&self) -> &Arc<Server> {
        &self.0
    }
}

impl Server {
    fn hidden(&self) -> MutexGuard<'_, Vec<String>> {
        self.hidden.lock()
    }

    pub(super) fn config(&self) -> &LiveConfig {
        &self.config
    }

    /// The settings of one session that is opened now.
    pub(super) fn settings(&self, identity: &IdentityOptions) -> Settings {
        settings_of(&self.config.settings(), identity)
    }

    /// Settings of the process for one session, with those of the user whose home it has. `config` is the configuration that the
    /// session has.
    fn host(
        &self,
        config: &Settings,
        settings: &Settings,
        spec: &SessionSpec,
        transport: &ModelTransport,
    ) -> Result<HostSettings> {
        let user = UserSettings::of(&settings.home);
        let mut host = flags::host(config, &self.args)?;
        if spec.customization.experimental.unwrap_or_else(|| user.is_on("experimental")) {
            host.features.switch_experimental();
        }
        host.permissions.hidden = self.hidden().clone();
        host.conduct.metered = true;
        host.conduct.reporting = Reporting::Announced;
        if self.front == Front::Person {
            host.models.keeps_model = true;
            // The terminal opens without a model too: it is where one is chosen.
            host.models.may_be_missing = true;
            return Ok(host);
        }
        // A client that wants to be asked is asked about everything.
        host.permissions.policy.asks_about_reads = true;
        // A client that asks for the project's configuration trusts it.
        host.extensions.server_trust = Trust::Given;
        // The client decides about GitHub's server.
        host.extensions.github = None;
        host.conduct.mode = None;
        host.conduct.may_ask &= user.is_on("askUser");
        host.conduct.names_client = true;
        host.reads_instructions &= user.is_on("customInstructions");
        host.models = ModelSource {
            ways: hangar_models::Ways {
                request_proxy: transport.request_proxy.clone(),
                tokens: transport.tokens.clone(),
            },
            keeps_model: true,
            usual: user.text("model"),
            is_fixed: false,
            checks_list: false,
            may_be_missing: true,
            ..host.models.unrecorded()
        };
        Ok(host)
    }
}

/// The settings of one session: a token of its own goes before the server's.
fn settings_of(config: &Settings, identity: &IdentityOptions) -> Settings {
    let mut settings = match &identity.github_token {
        Some(token) => config.with_login(token, LoginSource::Given),
        None => config.clone(),
    };
    if providers::github_login(&settings, false).is_none()
        && let Some(account) = Accounts::of(&config.home).current()
    {
        settings = settings.with_login(&account.token, LoginSource::Account);
    }
    match &identity.config_dir {
        // Configuration and state of a home belong together.
        Some(dir) => settings.with_home(dir),
        None => settings,
    }
}

impl Opener {
    fn compose(&self, request: OpenRequest<'_>) -> Result<OpenedSession> {
        let OpenRequest { id, spec, sink, hooks, transport, client_session } = request;
        let config = self.0.config.settings();
        let settings = settings_of(&config, &spec.identity);
        let stored = match &client_session {
            Some(session) => session.stored.is_some(),
            None => Store::new(&settings.home).contains(&id),
        };
        let host = self.0.host(&config, &settings, spec, &transport)?;
        let mut spec = spec.clone();
        spec.entry.continue_pending.get_or_insert(false);
        let request = SessionRequest {
            selection: SessionSelection::by_id(id, stored),
            spec,
            host,
            prompt: None,
            attachments: Vec::new(),
            outputs: Vec::new(),
            sink,
            hooks: Some(hooks),
            client_session,
        };
        Ok(self.split_with(compose::check(&settings, request)?.open()?, config))
    }

    /// A session that was composed with the configuration as it is now, in the parts that the server drives and those that it shows.
    pub(super) fn split(&self, opened: Opened) -> OpenedSession {
        self.split_with(opened, self.0.config.settings())
    }

    fn split_with(&self, opened: Opened, config: Settings) -> OpenedSession {
        let spill = Arc::new(opened.spill);
        OpenedSession {
            parts: EngineParts {
                driver: opened.driver,
                opening: opened.opening,
                mcp: opened.mcp,
                // The server says which tools there are, with those of its clients.
                filter: ToolFilter::default(),
                skills: opened.skills,
                background: Arc::new(opened.shells),
                directory: opened.cwd,
                sandboxed: opened.sandbox.is_some(),
                // Messages of a client are accepted at once, in the order of its requests. A person's first prompt waits.
                fact: opened.git_state.filter(|_| self.0.front == Front::Person),
            },
            surroundings: SessionSurroundings {
                tools: opened.builtin,
                environment: opened.environment,
                instructions: opened.instructions,
                todos: Arc::new(SqlTodos(opened.database)),
                recomposer: Arc::new(SessionRecomposer {
                    server: Arc::clone(&self.0),
                    config,
                    live: opened.live,
                }),
                sandbox: opened.sandbox,
                confine: opened.confine,
                guard: Arc::new(move |tool| mcp::fitted(tool, &spill)),
            },
        }
    }
}

/// Recomposes parts of one session.
struct SessionRecomposer {
    server: Arc<Server>,
    /// Configuration that the session began with.
    config: Settings,
    live: LiveSession,
}

impl SessionRecomposer {
    /// Configuration for a change of the session: the one that it began with, unless a model is chosen, which may be one that was
    /// configured since. A person's session has the current one, since the terminal itself changes it.
    fn config(&self, is_chosen: bool) -> Settings {
        match is_chosen || self.server.front == Front::Person {
            true => self.server.config.settings(),
            false => self.config.clone(),
        }
    }

    fn recompose(&self, change: &RecomposeRequest<'_>) -> Result<Recomposed> {
        let hangar_server::RecomposeScope { model, is_chosen, instructions, servers } = change.scope;
        let config = self.config(is_chosen);
        let settings = settings_of(&config, &change.spec.identity);
        let mut host = self.server.host(&config, &settings, change.spec, &change.transport)?;
        if is_chosen {
            host.models.may_be_missing = false;
            compose::check_switch(&settings, &change.spec.model)?;
        }
        let scope = RecomposedParts { model, instructions, servers };
        let made = self.live.recompose(&settings, &host, change.spec, scope)?;
        Ok(Recomposed {
            provider: made.provider,
            effort_notice: made.effort_notice,
            instructions: made.instructions,
            servers: made.servers,
        })
    }

    fn instruction_sources(&self, spec: &SessionSpec) -> Result<Vec<InstructionSource>> {
        let config = self.config(false);
        let settings = settings_of(&config, &spec.identity);
        let host = self.server.host(&config, &settings, spec, &ModelTransport::default())?;
        Ok(match host.reads_instructions(&spec.instructions) {
            true => instructions::sources(&settings, &spec.instructions, &self.live.paths().cwd),
            false => Vec::new(),
        })
    }
}

impl Recomposer for SessionRecomposer {
    fn recompose(&self, request: RecomposeRequest<'_>) -> Result<Recomposed, OpenError> {
        SessionRecomposer::recompose(self, &request).map_err(|error| OpenError(format!("{error:#}")))
    }

    fn instruction_sources(&self, spec: &SessionSpec) -> Result<Vec<InstructionSource>, OpenError> {
        SessionRecomposer::instruction_sources(self, spec).map_err(|error| OpenError(format!("{error:#}")))
    }
}

impl SessionOpener for Opener {
    fn open(&self, request: OpenRequest<'_>) -> Result<OpenedSession, OpenError> {
        self.compose(request).map_err(|error| OpenError(format!("{error:#}")))
    }

    fn discover_mcp(&self, directory: Option<&Path>) -> Result<Vec<serde_json::Value>, OpenError> {
        let discover = || -> Result<Vec<serde_json::Value>> {
            let cwd = match directory {
                Some(directory) => directory.to_path_buf(),
                None => std::env::current_dir()?,
            };
            let customization =
                CustomizationOptions { discovery: Some(true), ..CustomizationOptions::default() };
            let spec = SessionSpec { customization, ..SessionSpec::default() };
            let config = self.0.config.settings();
            let host = self.0.host(&config, &config, &spec, &ModelTransport::default())?;
            let sources = ServerSources::of(&host.extensions, &spec, None);
            let servers = mcp::configured(&config, &sources, &cwd)?;
            Ok(servers
                .configs
                .iter()
                .map(|config| {
                    serde_json::json!({
                        "name": config.name,
                        "type": config.transport(),
                        "source": config.source,
                        "enabled": !servers.disabled.contains(&config.name),
                    })
                })
                .collect())
        };
        discover().map_err(|error| OpenError(format!("{error:#}")))
    }

    fn tools(&self, model: Option<&str>) -> Vec<Arc<ToolSpec>> {
        let settings = self.0.config.settings();
        let absent: Vec<&str> =
            settings.features().map(|features| features.absent_tools().collect()).unwrap_or_default();
        let mut tools = compose::tool_specs(&settings, model.unwrap_or_default());
        tools.retain(|tool| !absent.contains(&tool.name.as_str()));
        tools
    }

    fn endpoint(&self, spec: &SessionSpec, model: &str) -> Result<serde_json::Value, OpenError> {
        endpoint::describe(&self.0.settings(&spec.identity), &spec.model, model)
            .map_err(|error| OpenError(format!("{error:#}")))
    }

    fn hide(&self, values: Vec<String>) -> Result<(), OpenError> {
        let mut hidden = self.0.hidden();
        if hidden.len() + values.len() > MAX_HIDDEN {
            return Err(OpenError(format!("more than {MAX_HIDDEN} values are to be hidden")));
        }
        hidden.extend(values.into_iter().filter(|value| !value.is_empty()));
        Ok(())
    }
}

impl AccountHost for Opener {
    fn auth(&self, token: Option<String>) -> BoxFuture<'static, Result<AuthStatus, OpenError>> {
        let settings = self.0.settings(&IdentityOptions::default());
        Box::pin(async move {
            account::status(&settings, token).await.map_err(|error| OpenError(format!("{error:#}")))
        })
    }

    fn given_token(&self) -> Option<String> {
        self.0.given.clone()
    }

    fn quota(&self, token: Option<String>) -> BoxFuture<'static, Result<serde_json::Value, OpenError>> {
        let settings = self.0.settings(&IdentityOptions::default());
        Box::pin(async move {
            account::quota(&settings, token).await.map_err(|error| OpenError(format!("{error:#}")))
        })
    }

    fn models(&self, token: Option<String>) -> BoxFuture<'static, Result<Vec<serde_json::Value>, OpenError>> {
        let settings =
            self.0.settings(&IdentityOptions { github_token: token, ..IdentityOptions::default() });
        Box::pin(
            async move { models::list(&settings).await.map_err(|error| OpenError(format!("{error:#}"))) },
        )
    }

    fn known_models(&self) -> &'static [&'static str] {
        facts::ids()
    }
}

/// The todos in a session's database.
struct SqlTodos(Option<Arc<Database>>);

impl Todos for SqlTodos {
    fn read(&self) -> BoxFuture<'static, Result<TodoBoard, String>> {
        let database = self.0.clone();
        Box::pin(async move {
            let Some(database) = database else { return Ok(TodoBoard::default()) };
            let read = tokio::task::spawn_blocking(move || database.todos()).await;
            let list = read.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
            let rows = list.rows.into_iter().map(|row| TodoItem {
                id: row.id,
                title: row.title,
                description: row.description,
                status: row.status,
                created_at: row.created_at,
            });
            let dependencies = list
                .dependencies
                .into_iter()
                .map(|(todo_id, depends_on)| TodoDependency { todo_id, depends_on });
            Ok(TodoBoard { rows: rows.collect(), dependencies: dependencies.collect() })
        })
    }
}
