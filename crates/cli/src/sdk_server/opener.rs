//! Sessions for clients: the same composition as for a prompt, from what the client asked for.

use parking_lot::{Mutex, MutexGuard};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use futures_util::future::BoxFuture;
use hangar_agent::agents::config::Reporting;
use hangar_agent::model::{
    ModelError, ModelErrorKind, ModelEvent, ModelProvider, ModelRequest, ProviderFacts,
};
use hangar_agent::permissions::Policy;
use hangar_agent::tool::{ToolFilter, ToolSpec};
use hangar_engine::{Mcp, Parts};
use hangar_mcp::Sandboxes;
use hangar_models::known;
use hangar_sandbox::SandboxConfig;
use hangar_server::{
    Accounts, AuthStatus, InstructionSource, McpPlace, OpenError, Opened, SessionOpener, SessionSpec, Todo,
    TodoBoard, TodoDependency, Todos, UserSettings, Wanted, Ways,
};
use hangar_store::Store;
use hangar_tools::sql::Database;
use hangar_tools::tool_files::ToolFiles;

use super::{account, endpoint, instructions, models};
use crate::agents::{AgentPlan, ModelFinder};
use crate::args::RunArgs;
use crate::compose::{self, Plan};
use crate::custom::Customs;
use crate::mcp::{self, Servers, Surroundings};
use crate::plan;
use crate::providers::{self, Chosen};
use crate::redact;
use crate::sandbox;
use crate::selection::Selection;
use crate::settings::{LoginSource, Settings};
use crate::workspace::trust::Trust;

/// Values that clients may have hidden.
const MAX_HIDDEN: usize = 1024;

pub(super) struct Opener {
    settings: Settings,
    /// The token that the server was started with.
    given: Option<String>,
    /// Values that the tools of later sessions must not show.
    hidden: Mutex<Vec<String>>,
    /// What every session may do, from the server's own flags.
    policy: Policy,
    args: RunArgs,
}

impl Opener {
    pub(super) fn new(settings: Settings, given: Option<String>, policy: Policy, args: RunArgs) -> Self {
        Self { settings, given, hidden: Mutex::default(), policy, args }
    }

    fn hidden(&self) -> MutexGuard<'_, Vec<String>> {
        self.hidden.lock()
    }

    /// The settings of one session: a token of its own goes before the server's.
    fn settings(&self, spec: &SessionSpec) -> Settings {
        let mut settings = match &spec.git_hub_token {
            Some(token) => self.settings.with_login(token, LoginSource::Given),
            None => self.settings.clone(),
        };
        if providers::github_login(&settings, false).is_none()
            && let Some(account) = Accounts::of(&self.settings.home).current()
        {
            settings = settings.with_login(&account.token, LoginSource::Account);
        }
        if let Some(dir) = &spec.config_dir {
            // What is configured there and what is kept there belong together, as in any other home.
            settings.home.clone_from(dir);
        }
        settings
    }

    fn agents(&self, settings: &Settings, spec: &SessionSpec, ways: &Ways) -> AgentPlan {
        let (settings, spec, ways) = (settings.clone(), spec.clone(), ways.clone());
        AgentPlan {
            custom: spec.agents(),
            excluded: spec.excluded_builtin_agents.clone().unwrap_or_default(),
            selected: spec.agent.clone(),
            may_choose_model: spec.model.is_none(),
            reporting: Reporting::Announced,
            models: Some(Arc::new(ModelFinder(move |name: &str| {
                models::choose(&settings, &spec, Some(name), &ways).ok()
            }))),
        }
    }

    fn reads_instructions(&self, spec: &SessionSpec) -> bool {
        !self.args.no_custom_instructions && !spec.skip_custom_instructions.unwrap_or(false)
    }

    /// What the client wants, unless the server was started with a sandbox: that is not for a client to take off.
    fn sandbox(&self, spec: &SessionSpec) -> Result<SandboxConfig> {
        let own = sandbox::wanted(&self.settings, &self.args)?;
        Ok(match &spec.sandbox_config {
            Some(asked) => SandboxConfig { enabled: asked.enabled || self.args.sandbox, ..asked.clone() },
            None => own,
        })
    }

    fn compose(&self, wanted: Wanted<'_>) -> Result<Opened> {
        let Wanted { id, spec, sink, hooks, ways, client_session } = wanted;
        let settings = self.settings(spec);
        let user = UserSettings::of(&settings.home);
        let mut features = settings.features()?;
        if spec.is_experimental_mode.unwrap_or_else(|| user.is_on("experimental")) {
            features.switch_experimental();
        }
        let wanted_model = spec.model.clone().or_else(|| user.text("model"));
        let stored = match &client_session {
            Some(session) => session.stored.is_some(),
            None => Store::new(&settings.home).contains(&id),
        };
        let choose = |before: Option<&str>| {
            Ok(choose(&settings, spec, spec.model.as_deref().or(before).or(wanted_model.as_deref()), &ways))
        };
        let plan = Plan {
            selection: if stored { Selection::Resume(id) } else { Selection::New { id, name: None } },
            directory: spec.working_directory.clone(),
            choose: &choose,
            effort: spec.reasoning_effort.clone(),
            mode: None,
            // A client that wants to be asked is asked about everything.
            policy: Policy { asks_about_reads: true, ..self.policy.clone() },
            add_dirs: spec.additional_directories.clone().unwrap_or_default(),
            temp_dir: !self.args.disallow_temp_dir,
            filter: spec.filter(),
            own_tools: spec.filter(),
            headers: headers(spec),
            custom_instructions: self.reads_instructions(spec) && user.is_on("customInstructions"),
            instruction_dirs: spec.instruction_directories.clone().unwrap_or_default(),
            further_instructions: spec.organization_custom_instructions.clone(),
            on_demand_instructions: spec.enable_on_demand_instruction_discovery.unwrap_or(true),
            shows_git: spec.enable_host_git_operations.unwrap_or(true),
            secrets: self.args.secret_env_vars.clone(),
            hidden: self.hidden().clone(),
            features,
            sandbox: self.sandbox(spec)?,
            metered: true,
            streaming: spec.streaming.unwrap_or(false),
            compaction: spec.compaction(),
            tracks_files: spec.enable_file_change_tracking.unwrap_or(false),
            vision: spec.has_vision(),
            autopilot_cap: self.args.max_autopilot_continues,
            may_ask: !self.args.no_ask_user
                && user.is_on("askUser")
                && !spec.ask_user_disabled.unwrap_or(false),
            prompt: None,
            client_name: spec.client_name.clone(),
            silent_resume: spec.disable_resume.unwrap_or(false),
            continue_pending: Some(spec.continue_pending_work.unwrap_or(false)),
            sink,
            hooks: Some(hooks),
            agents: self.agents(&settings, spec, &ways),
            customs: customs(&self.args, spec),
            mcp: Some(servers(&self.args, spec)),
            client_session,
            large_output: spec.large_output.clone(),
        };
        let composed = compose::session(&settings, plan)?;
        let fitting = Arc::new(composed.fitting);
        Ok(Opened {
            parts: Parts {
                driver: composed.driver,
                opening: composed.opening,
                mcp: composed.mcp,
                // The server says which tools there are, with those of its clients.
                filter: ToolFilter::default(),
                skills: composed.skills,
                background: Arc::new(composed.shells),
                directory: composed.cwd,
                sandboxed: composed.sandbox.is_some(),
            },
            tools: composed.builtin,
            environment: composed.environment,
            instructions: composed.instructions,
            todos: Arc::new(SqlTodos(composed.database)),
            sandbox: composed.sandbox,
            guard: Arc::new(move |tool| mcp::fitted(tool, &fitting)),
        })
    }
}

impl SessionOpener for Opener {
    fn open(&self, wanted: Wanted<'_>) -> Result<Opened, OpenError> {
        self.compose(wanted).map_err(|error| OpenError(format!("{error:#}")))
    }

    fn provider(
        &self,
        spec: &SessionSpec,
        model: &str,
        ways: Ways,
    ) -> Result<Arc<dyn ModelProvider>, OpenError> {
        let settings = self.settings(spec);
        let chosen = choose(&settings, spec, Some(model), &ways);
        let hidden = self.hidden().clone();
        let redactor = redact::of_session(&settings, &self.args.secret_env_vars, &hidden, &chosen);
        Ok(redactor.provider(chosen.provider))
    }

    fn instructions(&self, spec: &SessionSpec) -> Result<String, OpenError> {
        let dirs = spec.instruction_directories.clone().unwrap_or_default();
        let load = || compose::custom_instructions(&self.settings, spec.working_directory.as_deref(), &dirs);
        let of_files = if self.reads_instructions(spec) { load() } else { Ok(String::new()) };
        let of_files = of_files.map_err(|error| OpenError(format!("{error:#}")))?;
        Ok(compose::with_further(of_files, spec.organization_custom_instructions.as_deref()))
    }

    fn mcp(&self, place: McpPlace<'_>) -> Result<Option<Mcp>, OpenError> {
        let McpPlace { id, files, spec, cwd, model, provider, hooks } = place;
        let settings = self.settings(spec);
        let open = || {
            let is_local = files.local().is_some();
            let (files, dir) = ToolFiles::of_session(&files);
            let own = is_local.then(|| dir.clone());
            let chosen = models::choose(&settings, spec, Some(model), &Ways::default())?;
            let hidden = self.hidden().clone();
            let redactor = redact::of_session(&settings, &self.args.secret_env_vars, &hidden, &chosen);
            let config = self.sandbox(spec)?;
            let roots: Vec<PathBuf> = own.into_iter().chain([cwd.to_path_buf()]).collect();
            let session = || sandbox::Session {
                id: String::new(),
                cwd,
                roots: &roots,
                temp_dir: true,
                session_dir: settings.home.clone(),
                is_local: false,
            };
            let confined =
                config.confines_mcp_servers().then(|| sandbox::ready(&settings, &config, session()));
            let of_projects = sandbox::of_project_servers(&settings, &config, session())?;
            let around = Surroundings {
                session_id: id.to_string(),
                cwd,
                provider,
                model: model.to_owned(),
                secrets: &self.args.secret_env_vars,
                spill: compose::spill_to(&settings, dir, files, spec.large_output.as_ref(), &redactor)?,
                redactor,
                sandboxes: Sandboxes { all: confined.transpose()?.map(|ready| ready.sandbox), of_projects },
                hooks: Some(hooks),
            };
            mcp::open(&settings, &servers(&self.args, spec), around)
        };
        open().map_err(|error| OpenError(format!("{error:#}")))
    }

    fn discover_mcp(&self, directory: Option<&Path>) -> Result<Vec<serde_json::Value>, OpenError> {
        let discover = || -> Result<Vec<serde_json::Value>> {
            let cwd = match directory {
                Some(directory) => directory.to_path_buf(),
                None => std::env::current_dir()?,
            };
            let spec = SessionSpec { enable_config_discovery: Some(true), ..SessionSpec::default() };
            let (configs, disabled) = mcp::configured(&self.settings, &servers(&self.args, &spec), &cwd)?;
            Ok(configs
                .iter()
                .map(|config| {
                    serde_json::json!({
                        "name": config.name,
                        "type": config.transport(),
                        "source": config.source,
                        "enabled": !disabled.contains(&config.name),
                    })
                })
                .collect())
        };
        discover().map_err(|error| OpenError(format!("{error:#}")))
    }

    fn instruction_sources(&self, spec: &SessionSpec) -> Result<Vec<InstructionSource>, OpenError> {
        if !self.reads_instructions(spec) {
            return Ok(Vec::new());
        }
        let dirs = spec.instruction_directories.clone().unwrap_or_default();
        instructions::sources(&self.settings, spec.working_directory.as_deref(), &dirs)
            .map_err(|error| OpenError(format!("{error:#}")))
    }

    fn models(&self, token: Option<String>) -> BoxFuture<'static, Result<Vec<serde_json::Value>, OpenError>> {
        let settings = self.settings(&SessionSpec { git_hub_token: token, ..SessionSpec::default() });
        Box::pin(
            async move { models::list(&settings).await.map_err(|error| OpenError(format!("{error:#}"))) },
        )
    }

    fn known_models(&self) -> &'static [&'static str] {
        known::CATALOGUE
    }

    fn tools(&self, model: Option<&str>) -> Vec<Arc<ToolSpec>> {
        let absent: Vec<&str> =
            self.settings.features().map(|features| features.absent_tools().collect()).unwrap_or_default();
        let mut tools = compose::tool_specs(&self.settings, model.unwrap_or_default());
        tools.retain(|tool| !absent.contains(&tool.name.as_str()));
        tools
    }

    fn quota(&self, token: Option<String>) -> BoxFuture<'static, Result<serde_json::Value, OpenError>> {
        let settings = self.settings(&SessionSpec::default());
        Box::pin(async move {
            account::quota(&settings, token).await.map_err(|error| OpenError(format!("{error:#}")))
        })
    }

    fn given_token(&self) -> Option<String> {
        self.given.clone()
    }

    fn endpoint(&self, spec: &SessionSpec, model: &str) -> Result<serde_json::Value, OpenError> {
        endpoint::describe(&self.settings(spec), spec, model).map_err(|error| OpenError(format!("{error:#}")))
    }

    fn hide(&self, values: Vec<String>) -> Result<(), OpenError> {
        let mut hidden = self.hidden();
        if hidden.len() + values.len() > MAX_HIDDEN {
            return Err(OpenError(format!("more than {MAX_HIDDEN} values are to be hidden")));
        }
        hidden.extend(values.into_iter().filter(|value| !value.is_empty()));
        Ok(())
    }

    fn auth(&self, token: Option<String>) -> BoxFuture<'static, Result<AuthStatus, OpenError>> {
        let settings = self.settings(&SessionSpec::default());
        Box::pin(async move {
            account::status(&settings, token).await.map_err(|error| OpenError(format!("{error:#}")))
        })
    }
}

/// What a client and the flags of the server add to what is configured.
fn customs(args: &RunArgs, spec: &SessionSpec) -> Customs {
    let mut customs = plan::customs(args);
    customs.plugin_dirs.extend(spec.plugin_directories.iter().flatten().cloned());
    customs.skill_dirs.extend(spec.skill_directories.iter().flatten().cloned());
    // A client that embeds an agent decides what the folder it works in may add.
    customs.project_skills = spec.enable_config_discovery.unwrap_or(false);
    customs.disabled_skills.extend(spec.disabled_skills.iter().flatten().cloned());
    customs.skills = spec.enable_skills.unwrap_or(true);
    customs.hooks = spec.enable_file_hooks.unwrap_or(true);
    customs
}

/// The MCP servers of a client's session: what it brings, and what is configured if it wants that.
fn servers(args: &RunArgs, spec: &SessionSpec) -> Servers {
    let discover = spec.enable_config_discovery.unwrap_or(false);
    let flags = plan::servers(args);
    let github = spec.github_mcp_tool_config.clone().filter(|_| discover);
    let mut disabled = flags.disabled;
    disabled.extend(spec.disabled_mcp_servers.clone().unwrap_or_default());
    Servers {
        discover,
        // Whoever wants the project's configuration found has decided about it.
        trust: Trust::Given,
        client: spec.mcp_servers.clone().unwrap_or_default(),
        plugin_dirs: spec.plugin_directories.clone().unwrap_or_default(),
        disabled,
        github: github.map(|config| serde_json::from_value(config).unwrap_or_default()),
        for_agents: spec.agents().iter().any(|agent| !agent.mcp_servers.is_empty()),
        ..flags
    }
}

/// Says who drives the session to whoever serves the model.
fn headers(spec: &SessionSpec) -> Vec<(String, String)> {
    let named = spec.client_name.as_ref().map(|name| {
        let agent = format!("hangar/{} (client/{name})", env!("CARGO_PKG_VERSION"));
        ("user-agent".to_owned(), agent)
    });
    named.into_iter().collect()
}

/// Who answers. A session without a provider is one that cannot talk yet, so that is said when it is asked to.
fn choose(settings: &Settings, spec: &SessionSpec, model: Option<&str>, ways: &Ways) -> Chosen {
    models::choose(settings, spec, model, ways).unwrap_or_else(|error| Chosen {
        provider: Arc::new(NoProvider(format!("{error:#}"))),
        model: model.unwrap_or_default().to_owned(),
        max_prompt_tokens: known::DEFAULT_PROMPT_TOKENS,
        scripted: false,
        secrets: Vec::new(),
    })
}

/// Answers every call with the reason why nobody can.
struct NoProvider(String);

impl ModelProvider for NoProvider {
    fn stream(
        &self,
        _request: ModelRequest,
    ) -> futures_util::stream::BoxStream<'static, Result<ModelEvent, ModelError>> {
        let error = ModelError {
            kind: ModelErrorKind::AccessDenied,
            status: None,
            message: self.0.clone(),
            body: None,
            code: None,
            retry_after: None,
        };
        Box::pin(futures_util::stream::iter([Err(error)]))
    }

    fn facts(&self) -> ProviderFacts {
        ProviderFacts {
            endpoint: "/chat/completions",
            is_byok: false,
            base_url: String::new(),
            max_prompt_tokens: None,
        }
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
            let rows = list.rows.into_iter().map(|row| Todo {
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
