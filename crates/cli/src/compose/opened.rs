//! The second step: [`Checked::open`] creates or opens the log and assembles the session.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use futures_util::future::BoxFuture;
use hangar_agent::budget::Spending;
use hangar_agent::driver::{Driver, InstructionFinder, SessionHost};
use hangar_agent::entropy::Entropy;
use hangar_agent::hook::HookSet;
use hangar_agent::model::{Message, TokenMeter};
use hangar_agent::permissions::Policy;
use hangar_agent::prompt::{PromptEnvironment, SystemPrompt};
use hangar_agent::session::{
    ClientAbilities, Command, ConversationState, Metering, Opening, Role, Session, SessionConfig,
    SessionInput, StartNotices,
};
use hangar_agent::tool::{Tool, ToolFilter, ToolSpec};
use hangar_agent::tool_search::Deferral;
use hangar_custom::skills::Skills;
use hangar_mcp::{McpHost, News};
use hangar_models::tokens::Counter;
use hangar_protocol::data::{Attachment, Mode};
use hangar_sandbox::Sandbox;
use hangar_server::ProgramSandbox;
use hangar_spec::SessionSpec;
use hangar_store::snapshots::Snapshots;
use hangar_store::{SessionId, SessionMeta, SessionName, Store};
use hangar_tools::memory::Memory;
use hangar_tools::shell::Shells;
use hangar_tools::spill::Spill;
use hangar_tools::sql::Database;
use tokio::sync::mpsc;

use super::confinement::SessionSandboxes;
use super::live::LiveSession;
use super::model::effort_warning;
use super::spill::SpillDir;
use super::tools::{BuiltinTools, Storage};
use super::{Checked, HostSettings, SessionRequest, instructions};
use crate::home::{Home, Past};
use crate::mcp::{self, ServerContext};
use crate::selection::SessionSelection;
use crate::telemetry;
use crate::work_state::SessionWork;
use crate::workspace::instructions::Instructions;
use crate::workspace::instructions::on_demand::OnDemand;

/// Capacity of the queues of commands and news for the loop.
pub(super) const INBOX: usize = 64;

/// The parts of a session that is ready to be driven. No input was given to it yet.
pub(crate) struct Opened {
    pub(crate) driver: Driver,
    /// First inputs of the session: opening it, then the changes since the last time.
    pub(crate) opening: Vec<SessionInput>,
    /// The MCP servers and their news. None has been started.
    pub(crate) mcp: Option<(McpHost, mpsc::Receiver<News>)>,
    /// Filter of the tools that the model is offered.
    pub(crate) filter: ToolFilter,
    pub(crate) skills: Arc<Skills>,
    pub(crate) shells: Shells,
    pub(crate) database: Option<Arc<Database>>,
    pub(crate) store: Store,
    pub(crate) id: SessionId,
    pub(crate) cwd: PathBuf,
    /// Attachments of the prompt.
    pub(crate) attachments: Vec<Attachment>,
    /// All built-in tools, including those that the model is not offered.
    pub(crate) builtin: Vec<Arc<dyn Tool>>,
    /// Input of the system prompt.
    pub(crate) environment: PromptEnvironment,
    pub(crate) instructions: String,
    /// Storage of large outputs.
    pub(crate) spill: Spill,
    /// Sandbox of the session's commands.
    pub(crate) sandbox: Option<Sandbox>,
    /// Makes the sandboxes of programs that join the session.
    pub(crate) confine: ProgramSandbox,
    /// Recomposes parts.
    pub(crate) live: LiveSession,
    /// The state of the working tree, for the model.
    pub(crate) git_state: Option<BoxFuture<'static, Option<String>>>,
}

/// Parts that are created before the session is assembled.
struct Made {
    log: Home,
    /// The state of a resumed session.
    past: Option<Past>,
    inbox: mpsc::Sender<Box<SessionInput>>,
    commands: mpsc::Receiver<Box<SessionInput>>,
    storage: Storage,
    tools: BuiltinTools,
    mcp: Option<(McpHost, mpsc::Receiver<News>)>,
    /// Input of the prompts of the session and of its agents.
    environment: PromptEnvironment,
    instructions: String,
}

impl Checked<'_> {
    /// Creates or opens the log, and assembles the session.
    pub(crate) fn open(mut self) -> Result<Opened> {
        let (log, past) = self.open_log()?;
        self.confinement.make_scratch(&self.paths)?;
        let (inbox, commands) = mpsc::channel(INBOX);
        let storage = self.storage(&log, past.is_some());
        let tools = BuiltinTools::make(&self, &storage, &inbox);
        let mcp = self.host_servers(&storage.spill);
        let environment = PromptEnvironment {
            cwd: self.paths.cwd.display().to_string(),
            git_root: self.paths.shown_repository().map(|repository| repository.root.display().to_string()),
            os: std::env::consts::OS.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            tools: tools.shown.names().map(str::to_owned).collect(),
        };
        let mut instructions =
            instructions::render(self.instructions.as_ref(), &self.request.spec.instructions);
        if let Some(notes) = self.memory().and_then(|memory| memory.prompt()) {
            let gap = if instructions.is_empty() { "" } else { "\n\n" };
            instructions = format!("{instructions}{gap}{notes}");
        }
        let git_state = self.git_state();
        let made = Made { log, past, inbox, commands, storage, tools, mcp, environment, instructions };
        Ok(Opened { git_state, ..self.assemble(made) })
    }

    /// Memory of the session's repository, if the session has one: by the feature, or because the client asks for it.
    pub(super) fn memory(&self) -> Option<Memory> {
        let asked = self.request.spec.customization.memory.and_then(|memory| memory.enabled);
        let wanted = asked.unwrap_or_else(|| self.request.host.features.is_on("memory"));
        wanted.then(|| crate::commands::memory::of_directory(self.settings, &self.paths.cwd))
    }

    /// Creates the log of a new session, or opens that of a resumed one.
    fn open_log(&mut self) -> Result<(Home, Option<Past>)> {
        let client = self.request.client_session.take();
        let context = self.paths.context();
        let id = &self.paths.id;
        match self.past.take() {
            Some(past) => {
                let (mut home, past) = Home::resume(&self.store, client, id, past)?;
                home.set_context(context)?;
                home.set_model_provider(self.model.provider.facts().into())?;
                Ok((home, Some(past)))
            }
            None => {
                let mut meta = SessionMeta::new(context, jiff::Timestamp::now());
                meta.name = self.name();
                meta.model_provider = Some(self.model.provider.facts().into());
                let client_name = self.request.spec.identity.client_name.clone();
                meta.client_name = Some(client_name.unwrap_or_else(|| "hangar".to_owned()));
                Ok((Home::create(&self.store, client, id, meta)?, None))
            }
        }
    }

    /// The redacted name of a new session.
    fn name(&self) -> Option<SessionName> {
        let given = match &self.request.selection {
            SessionSelection::New { name, .. } => name.clone(),
            SessionSelection::Resume(_) => None,
        };
        let given = given.map(|name| SessionName::Given(self.redactor.text(name)));
        let prompt = self.request.prompt.clone().map(|prompt| self.redactor.text(prompt));
        given.or_else(|| prompt.as_deref().and_then(SessionName::from_prompt))
    }

    fn storage(&self, log: &Home, resumed: bool) -> Storage {
        let options = &self.request.spec.tools;
        let dir = SpillDir { dir: log.spill_dir(), files: log.files() };
        let wanted = options.tracks_files.unwrap_or(false);
        // Files that a client keeps cannot be restored from here.
        let snapshots = log.local_folder().map(|folder| Arc::new(Snapshots::new(folder)));
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
            provider: self.ledger.unattended(self.redactor.provider(Arc::clone(&self.model.provider))),
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

    /// Assembles the session.
    fn assemble(mut self, made: Made) -> Opened {
        let mut config = self.config(&made);
        let Made { log, past, inbox, commands, storage, tools, mcp, environment, instructions } = made;
        let (state, opening, told) = self.begin(past, log.log_bytes());
        let Self { settings, store, request, paths, configured, confinement, model, redactor, .. } = self;
        let sandbox = confinement.sandbox().cloned();
        let limits = request.host.permissions.sandbox(&request.spec.workspace);
        let confine = SessionSandboxes::of_programs(settings, &limits, &paths);
        let work_state = SessionWork::new(
            Arc::clone(log.session_files()),
            storage.database.clone(),
            &paths.cwd,
            paths.repository.as_ref(),
            sandbox.clone(),
        );
        self.ledger.add_spent(Spending::from(&state.totals));
        let live = LiveSession {
            ledger: self.ledger.clone(),
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
        let host = SessionHost {
            provider: redactor.provider(model.provider),
            tools: tools.shown,
            log: redactor.log(log.into_log()),
            sink: redactor.sink(sink),
            discovery: discovery.map(|instructions| discover(instructions, &told)),
            hooks,
            surroundings: Some(Box::new(work_state)),
            models: Some(redactor.models(self.models)),
            ledger: self.ledger,
            now: Box::new(jiff::Timestamp::now),
            entropy: Entropy::seeded(uuid::Uuid::new_v4().as_u128()),
            retry_scale: self.tuning.retry_scale,
        };
        let mut driver = Driver::new(Session::new(state, config), host, commands);
        if let Some((servers, _)) = &mcp {
            driver.set_tool_provider(Some(Arc::new(servers.clone())));
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
            confine,
            live,
            git_state: None,
        }
    }

    fn config(&mut self, made: &Made) -> SessionConfig {
        let Made { log, tools, environment, instructions, .. } = made;
        let mut warnings = std::mem::take(&mut self.configured.warnings);
        warnings.append(&mut self.agents.warnings);
        warnings.extend(effort_warning(&self.model, self.request.spec.model.effort.as_deref()));
        let SessionRequest { spec, host, .. } = &self.request;
        let skills = &self.configured.skills;
        let small = self.model.small.clone();
        let agents = self.agents.config(skills, &self.tuning, small, host, environment, instructions);
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
            instructions: instructions.as_str().into(),
            tools: hangar_agent::interned::list(tools.shown.iter().map(|tool| tool.spec())),
            policy,
            provider: self.model.provider.facts(),
            max_prompt_tokens: self.model.max_prompt_tokens,
            metering: Metering {
                meter: Some(Arc::new(Meter(Counter::new(&self.model.model)))),
                reports_usage: host.conduct.metered,
            },
            just_in_time: std::mem::take(&mut self.tuning.just_in_time).into(),
            streaming: spec.conversation.streaming.unwrap_or(false),
            vision: spec.model.has_vision(),
            compaction: spec.conversation.compaction(),
            autopilot_cap: host.conduct.autopilot_cap,
            clients: ClientAbilities::default(),
            may_ask: host.conduct.may_ask(&spec.conversation),
            hooks: HookSet::NONE,
            notices: StartNotices { skills: skills.list(), warnings, disabled_tools: tools.disabled.clone() },
            headers: headers(spec, host),
            own_tools,
            session_dir: log.dir(),
            deferral: self.deferral(),
            facts: self.facts(&log.dir()),
            discovers_instructions: self.instructions.is_some() && on_demand,
            role: Role::Main,
            agent_config: Some(Arc::new(agents)),
        }
    }

    /// Rule that hides tools behind a search; `None` if no tool is ever hidden.
    fn deferral(&self) -> Option<Deferral> {
        let options = self.request.spec.tools.tool_search.unwrap_or_default();
        let tokens = self.tuning.tool_tokens;
        let wanted = options.enabled.unwrap_or(true) && tokens > 0;
        let count = options.defer_threshold.and_then(|count| usize::try_from(count).ok());
        wanted.then(|| Deferral { tokens, count, ..Deferral::default() })
    }

    /// The initial state, the first inputs, and the on-demand instructions that the model already knows.
    fn begin(
        &self,
        past: Option<Past>,
        log_bytes: u64,
    ) -> (ConversationState, Vec<SessionInput>, Vec<String>) {
        let SessionRequest { spec, host, .. } = &self.request;
        let (model, effort, mode) = (&self.model.model, &spec.model.effort, host.conduct.mode);
        let context = self.paths.context();
        let (state, mut opening, told) = match past {
            Some(Past { state, told, .. }) => {
                let mut opening = vec![SessionInput::Opened(Opening::Resumed {
                    log_bytes,
                    context,
                    silent: spec.entry.silent.unwrap_or(false),
                    continue_pending: spec.entry.continue_pending,
                })];
                if state.model != *model || effort.is_some() {
                    let change = Command::SetModel { model: model.clone(), effort: effort.clone() };
                    opening.push(SessionInput::Command(change));
                }
                opening.extend(mode.map(|mode| SessionInput::Command(Command::SetMode(mode))));
                (state, opening, told)
            }
            None => {
                let state = ConversationState {
                    model: model.clone(),
                    effort: effort.clone(),
                    mode: mode.unwrap_or(Mode::Interactive),
                    ..ConversationState::default()
                };
                let session_id = self.paths.id.to_string();
                let version = env!("CARGO_PKG_VERSION").to_owned();
                let opening = vec![SessionInput::Opened(Opening::New { session_id, version, context })];
                (state, opening, Vec::new())
            }
        };
        let role = self.agents.active_role().map(|agent| agent.name.clone());
        opening.extend(role.map(|name| SessionInput::Command(Command::SelectAgent(Some(name)))));
        (state, opening, told)
    }
}

/// Finds instructions about files that tools touch, except those that the model already knows.
fn discover(instructions: Instructions, told: &[String]) -> Box<dyn InstructionFinder> {
    let mut discovery = OnDemand::from(instructions);
    for source in told {
        discovery.note_told(source);
    }
    Box::new(discovery)
}

/// HTTP headers that name the client to the provider.
fn headers(spec: &SessionSpec, host: &HostSettings) -> Vec<(String, String)> {
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
