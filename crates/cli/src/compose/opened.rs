//! The second step: the log is created or opened, and the parts are put together.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use hangar_agent::driver::{Discovery, Driver, Host as DriverHost};
use hangar_agent::entropy::Entropy;
use hangar_agent::hook::HookSet;
use hangar_agent::model::{Message, TokenMeter};
use hangar_agent::permissions::Policy;
use hangar_agent::prompt::{Environment, SystemPrompt};
use hangar_agent::session::{Command, Input, Opening, Role, Session, SessionConfig, State};
use hangar_agent::tool::{Tool, ToolFilter, ToolSpec};
use hangar_custom::skills::Skills;
use hangar_mcp::{McpHost, News};
use hangar_models::tokens::Counter;
use hangar_protocol::data::{Attachment, Mode};
use hangar_sandbox::Sandbox;
use hangar_spec::SessionSpec;
use hangar_store::snapshots::Snapshots;
use hangar_store::{SessionId, SessionMeta, SessionName, Store};
use hangar_tools::shell::Shells;
use hangar_tools::spill::Spill;
use hangar_tools::sql::Database;
use tokio::sync::mpsc;

use super::live::LiveSession;
use super::spill::SpillDir;
use super::tools::{BuiltinTools, Storage};
use super::{Checked, Host, SessionRequest, instructions};
use crate::home::{Home, Past};
use crate::mcp::{self, ServerContext};
use crate::selection::Selection;
use crate::telemetry;
use crate::work_state::WorkState;
use crate::workspace::instructions::Instructions;
use crate::workspace::instructions::on_demand::OnDemand;

/// Commands and news that may wait for the loop.
pub(super) const INBOX: usize = 64;

/// A session, ready to be driven. Nothing has happened in it since it was opened.
pub(crate) struct Opened {
    pub(crate) driver: Driver,
    /// The first inputs of the session. A resumed one says first what it was; what is different now follows.
    pub(crate) opening: Vec<Input>,
    /// The MCP servers and their news. None has been started.
    pub(crate) mcp: Option<(McpHost, mpsc::Receiver<News>)>,
    /// Which tools the model is shown.
    pub(crate) filter: ToolFilter,
    pub(crate) skills: Arc<Skills>,
    pub(crate) shells: Shells,
    pub(crate) database: Option<Arc<Database>>,
    pub(crate) store: Store,
    pub(crate) id: SessionId,
    pub(crate) cwd: PathBuf,
    /// What goes with the prompt.
    pub(crate) attachments: Vec<Attachment>,
    /// All built-in tools, shown or not.
    pub(crate) builtin: Vec<Arc<dyn Tool>>,
    /// What the system prompt was made of.
    pub(crate) environment: Environment,
    pub(crate) instructions: String,
    /// What keeps outputs within what the model is shown.
    pub(crate) spill: Spill,
    /// What confines the session's commands, if anything does.
    pub(crate) sandbox: Option<Sandbox>,
    /// For parts that change.
    pub(crate) live: LiveSession,
}

/// What is made before the session is put together.
struct Made {
    log: Home,
    /// What a session that is resumed was.
    past: Option<Past>,
    inbox: mpsc::Sender<Box<Input>>,
    commands: mpsc::Receiver<Box<Input>>,
    storage: Storage,
    tools: BuiltinTools,
    mcp: Option<(McpHost, mpsc::Receiver<News>)>,
    /// What the prompts of the session and of its agents are made of.
    environment: Environment,
    instructions: String,
}

impl Checked<'_> {
    /// Creates or opens the log, and puts the session together.
    pub(crate) fn open(mut self) -> Result<Opened> {
        let (log, past) = self.open_log()?;
        self.confinement.make_scratch(&self.paths)?;
        let (inbox, commands) = mpsc::channel(INBOX);
        let storage = self.storage(&log, past.is_some());
        let tools = BuiltinTools::make(&self, &storage, &inbox);
        let mcp = self.host_servers(&storage.spill);
        let environment = Environment {
            cwd: self.paths.cwd.display().to_string(),
            git_root: self.paths.shown_repository().map(|repository| repository.root.display().to_string()),
            os: std::env::consts::OS.to_owned(),
            session_dir: log.dir().display().to_string(),
            tools: tools.shown.names().map(str::to_owned).collect(),
        };
        let instructions = instructions::render(self.instructions.as_ref(), &self.request.spec.instructions);
        let made = Made { log, past, inbox, commands, storage, tools, mcp, environment, instructions };
        Ok(self.assemble(made))
    }

    /// The log of the session. One that is resumed has a past.
    fn open_log(&mut self) -> Result<(Home, Option<Past>)> {
        let away = self.request.away.take();
        let context = self.paths.context();
        let id = &self.paths.id;
        match self.past.take() {
            Some(past) => {
                let (mut home, past) = Home::resume(&self.store, away, id, past)?;
                home.set_context(context)?;
                Ok((home, Some(past)))
            }
            None => {
                let mut meta = SessionMeta::new(context, jiff::Timestamp::now());
                meta.name = self.name();
                let client = self.request.spec.identity.client_name.clone();
                meta.client_name = Some(client.unwrap_or_else(|| "hangar".to_owned()));
                Ok((Home::create(&self.store, away, id, meta)?, None))
            }
        }
    }

    /// The name of a new session, without what must not be in a name.
    fn name(&self) -> Option<SessionName> {
        let given = match &self.request.selection {
            Selection::New { name, .. } => name.clone(),
            Selection::Resume(_) => None,
        };
        let given = given.map(|name| SessionName::Given(self.redactor.text(name)));
        let prompt = self.request.prompt.clone().map(|prompt| self.redactor.text(prompt));
        given.or_else(|| prompt.as_deref().and_then(SessionName::from_prompt))
    }

    fn storage(&self, log: &Home, resumed: bool) -> Storage {
        let options = &self.request.spec.tools;
        let dir = SpillDir { dir: log.spill_dir(), files: log.files() };
        let wanted = options.tracks_files.unwrap_or(false);
        // What a client keeps is not for us to restore.
        let snapshots = log.local_folder().map(|folder| Arc::new(Snapshots::new(folder.clone())));
        Storage {
            database: log.database().map(Arc::new),
            spill: dir.spill(self.tuning.large_output, options.large_output.as_ref(), &self.redactor),
            snapshots: snapshots.filter(|kept| wanted || (resumed && kept.exist())),
        }
    }

    /// The MCP servers, unless there are none.
    fn host_servers(&mut self, spill: &Spill) -> Option<(McpHost, mpsc::Receiver<News>)> {
        let servers = std::mem::take(&mut self.servers);
        if servers.configs.is_empty() && !self.agents.have_servers() {
            return None;
        }
        let context = ServerContext {
            session_id: self.paths.id.to_string(),
            cwd: &self.paths.cwd,
            provider: self.redactor.provider(Arc::clone(&self.model.provider)),
            model: self.model.model.clone(),
            secrets: &self.request.host.permissions.secrets,
            redactor: self.redactor.clone(),
            sandboxes: self.confinement.servers.clone(),
            spill: spill.clone(),
            hooks: self.request.hooks.clone(),
            retry_scale: self.tuning.retry_scale,
        };
        Some(mcp::host(self.settings, servers, context))
    }

    /// Puts together what was made.
    fn assemble(mut self, made: Made) -> Opened {
        let mut config = self.config(&made);
        let Made { log, past, inbox, commands, storage, tools, mcp, environment, instructions } = made;
        let (state, opening, told) = self.begin(past, log.log_bytes());
        let Self { settings, store, request, paths, configured, confinement, model, redactor, .. } = self;
        let sandbox = confinement.sandbox().cloned();
        let work_state = WorkState::new(
            log.plan_reader(),
            storage.database.clone(),
            &paths.cwd,
            paths.repository.as_ref(),
            sandbox.clone(),
        );
        let live = LiveSession {
            spill: SpillDir { dir: log.spill_dir(), files: log.files() },
            paths: paths.clone(),
            hooks: request.hooks.clone(),
        };
        let skills = Arc::clone(&configured.skills);
        let secrets = &request.host.permissions.secrets;
        let (hooks, hook_kinds) = configured.hooks(settings, secrets, request.hooks, inbox);
        config.hooks = hook_kinds;
        let sink = telemetry::tap(settings, request.sink, paths.id.as_str(), model.provider.facts());
        let discovery = self.instructions.filter(|_| config.discovers_instructions);
        let host = DriverHost {
            provider: redactor.provider(model.provider),
            tools: tools.shown,
            log: redactor.log(log.into_log()),
            sink: redactor.sink(sink),
            discovery: discovery.map(|instructions| discover(instructions, &told)),
            hooks,
            surroundings: Some(Box::new(work_state)),
            models: Some(redactor.models(self.models)),
            now: Box::new(jiff::Timestamp::now),
            entropy: Entropy::seeded(uuid::Uuid::new_v4().as_u128()),
            retry_scale: self.tuning.retry_scale,
        };
        let mut driver = Driver::new(Session::new(state, config), host, commands);
        if let Some((servers, _)) = &mcp {
            driver.set_outfitter(Some(Arc::new(servers.clone())));
        }
        Opened {
            driver,
            opening,
            mcp,
            filter: request.spec.tools.filter(),
            skills,
            shells: tools.shells,
            database: storage.database,
            store,
            id: paths.id,
            cwd: paths.cwd,
            attachments: self.attachments,
            builtin: tools.all,
            environment,
            instructions,
            spill: storage.spill,
            sandbox,
            live,
        }
    }

    fn config(&mut self, made: &Made) -> SessionConfig {
        let Made { log, tools, environment, instructions, .. } = made;
        let mut warnings = std::mem::take(&mut self.configured.warnings);
        warnings.append(&mut self.agents.warnings);
        let SessionRequest { spec, host, .. } = &self.request;
        let skills = &self.configured.skills;
        let agents = self.agents.config(skills, self.tuning.agents, host, environment, instructions);
        let policy = Policy {
            roots: self.paths.roots.clone(),
            confinement: self.confinement.rules(&self.paths),
            ..self.configured.extend(host.permissions.policy.clone())
        };
        let mut own_tools = spec.tools.filter();
        own_tools.excluded.extend(tools.absent.iter().cloned());
        let on_demand = spec.instructions.on_demand.unwrap_or(true);
        SessionConfig {
            system: SystemPrompt::new(environment, instructions).render().into(),
            tools: hangar_agent::shared::list(tools.shown.iter().map(|tool| tool.spec())),
            policy,
            provider: self.model.provider.facts(),
            max_prompt_tokens: self.model.max_prompt_tokens,
            meter: Some(Arc::new(Meter(Counter::new(&self.model.model)))),
            reports_usage: host.conduct.metered,
            just_in_time: std::mem::take(&mut self.tuning.just_in_time).into(),
            streaming: spec.conversation.streaming.unwrap_or(false),
            vision: spec.model.has_vision(),
            compaction: spec.conversation.compaction(),
            autopilot_cap: host.conduct.autopilot_cap,
            user_reachable: false,
            questions_answered: false,
            may_ask: host.conduct.may_ask(&spec.conversation),
            hooks: HookSet::NONE,
            client_hooks: false,
            skills: skills.list(),
            warnings,
            headers: headers(spec, host),
            own_tools,
            session_dir: log.dir(),
            disabled_tools: tools.disabled.clone(),
            discovers_instructions: self.instructions.is_some() && on_demand,
            role: Role::Main,
            crew: Some(Arc::new(agents)),
        }
    }

    /// What the session begins as, its first inputs, and the instructions that its model was told of already.
    fn begin(&self, past: Option<Past>, log_bytes: u64) -> (State, Vec<Input>, Vec<String>) {
        let SessionRequest { spec, host, .. } = &self.request;
        let (model, effort, mode) = (&self.model.model, &spec.model.effort, host.conduct.mode);
        let context = self.paths.context();
        let (state, mut opening, told) = match past {
            Some(Past { state, told, .. }) => {
                let mut opening = vec![Input::Opened(Opening::Resumed {
                    log_bytes,
                    context,
                    silent: spec.entry.silent.unwrap_or(false),
                    continue_pending: spec.entry.continue_pending,
                })];
                if state.model != *model || effort.is_some() {
                    let change = Command::SetModel { model: model.clone(), effort: effort.clone() };
                    opening.push(Input::Command(change));
                }
                opening.extend(mode.map(|mode| Input::Command(Command::SetMode(mode))));
                (state, opening, told)
            }
            None => {
                let state = State {
                    model: model.clone(),
                    effort: effort.clone(),
                    mode: mode.unwrap_or(Mode::Interactive),
                    ..State::default()
                };
                let session_id = self.paths.id.to_string();
                let version = env!("CARGO_PKG_VERSION").to_owned();
                let opening = vec![Input::Opened(Opening::New { session_id, version, context })];
                (state, opening, Vec::new())
            }
        };
        let role = self.agents.active_role().map(|agent| agent.name.clone());
        opening.extend(role.map(|name| Input::Command(Command::SelectAgent(Some(name)))));
        (state, opening, told)
    }
}

/// Looks for instructions about the files that tools touch, but for those that the model was told of.
fn discover(instructions: Instructions, told: &[String]) -> Box<dyn Discovery> {
    let mut discovery = OnDemand::from(instructions);
    for source in told {
        discovery.note_told(source);
    }
    Box::new(discovery)
}

/// Says who drives the session to whoever serves the model.
fn headers(spec: &SessionSpec, host: &Host) -> Vec<(String, String)> {
    let client = spec.identity.client_name.as_ref().filter(|_| host.conduct.names_client);
    let named = client.map(|name| {
        let agent = format!("hangar/{} (client/{name})", env!("CARGO_PKG_VERSION"));
        ("user-agent".to_owned(), agent)
    });
    named.into_iter().collect()
}

/// Counts with the tokenizer of one model.
struct Meter(Counter);

impl TokenMeter for Meter {
    fn system(&self, text: &str) -> u64 {
        self.0.system(text)
    }

    fn message(&self, message: &Message) -> u64 {
        self.0.message(message)
    }

    fn tools(&self, tools: &[Arc<ToolSpec>]) -> u64 {
        self.0.tools(tools)
    }
}
