//! Puts a session together: where it works, who answers, which tools, what is allowed, what the log remembers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use hangar_agent::agents::AgentSource;
use hangar_agent::driver::{Driver, EventSink, Hooks, Host, InstructionFinder};
use hangar_agent::entropy::Entropy;
use hangar_agent::features::Features;
use hangar_agent::model::{Message, TokenMeter};
use hangar_agent::permissions::{Confinement, Policy};
use hangar_agent::prompt::{Environment, SystemPrompt};
use hangar_agent::session::{Command, Compaction, Input, Notice, Opening, Role, Session, SessionConfig};
use hangar_agent::tool::{Tool, ToolFilter, ToolSource, ToolSpec, Toolset};
use hangar_custom::skills::Skills;
use hangar_mcp::{McpHost, News, Sandboxes};
use hangar_models::known;
use hangar_models::tokens::Counter;
use hangar_protocol::data::Mode;
use hangar_sandbox::{Network, Sandbox, SandboxConfig};
use hangar_server::LargeOutput;
use hangar_store::client_session::ClientSession;
use hangar_store::snapshots::Snapshots;
use hangar_store::{SessionId, SessionMeta, SessionName, Store};
use hangar_tools::shell::{ShellCompletion, ShellOptions, Shells};
use hangar_tools::spill::{Cleaner, DEFAULT_THRESHOLD, Spill};
use hangar_tools::sql::Database;
use hangar_tools::tool_files::ToolFiles;
use hangar_tools::web::{Redirects, WebAccess};
use hangar_tools::{Builtin, Dialect, Workspace, paths};
use tokio::sync::mpsc;

use crate::agents::AgentPlan;
use crate::credentials;
use crate::custom::{self, Configured, Customs};
use crate::home::{Home, Past};
use crate::just_in_time;
use crate::mcp::{self, Servers, Surroundings};
use crate::providers::Chosen;
use crate::redact::{self, Redactor};
use crate::resumed;
use crate::sandbox;
use crate::selection::Selection;
use crate::settings::Settings;
use crate::surroundings::Place;
use crate::telemetry;
use crate::tracked::Tracked;
use crate::workspace::git::Repository;
use crate::workspace::instructions::on_demand::OnDemand;
use crate::workspace::instructions::{Instructions, Places};
use crate::workspace::working_directory;

/// What the shell tools run commands with.
const SHELL: &str = "/bin/bash";
/// Commands and news that may wait for the loop.
const INBOX: usize = 64;

/// What a session is to be, whoever asks for it.
pub(crate) struct Plan<'a> {
    pub(crate) selection: Selection,
    /// Where to work; without it where the session worked before, or here.
    pub(crate) directory: Option<PathBuf>,
    /// Chooses who answers, given the model that the session had.
    pub(crate) choose: &'a dyn Fn(Option<&str>) -> Result<Chosen>,
    pub(crate) effort: Option<String>,
    /// Without it the mode that the session had.
    pub(crate) mode: Option<Mode>,
    /// Rules only; where tools may go is added.
    pub(crate) policy: Policy,
    pub(crate) add_dirs: Vec<PathBuf>,
    pub(crate) temp_dir: bool,
    pub(crate) filter: ToolFilter,
    /// Which of the session's own tools may be shown.
    pub(crate) own_tools: ToolFilter,
    /// Headers of every call to the model.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) custom_instructions: bool,
    pub(crate) instruction_dirs: Vec<PathBuf>,
    /// Further instructions, of whoever asks for the session.
    pub(crate) further_instructions: Option<String>,
    /// Whether instructions about a part of the project are looked for when a file of it is touched.
    pub(crate) on_demand_instructions: bool,
    /// Whether the model and the lists are told of the repository.
    pub(crate) shows_git: bool,
    /// Variables that tools must not see and output must not show.
    pub(crate) secrets: Vec<String>,
    /// Values that output must not show.
    pub(crate) hidden: Vec<String>,
    pub(crate) features: Features,
    /// What commands may do.
    pub(crate) sandbox: SandboxConfig,
    pub(crate) metered: bool,
    pub(crate) streaming: bool,
    /// When the session sums itself up; never where absent.
    pub(crate) compaction: Option<Compaction>,
    /// Whether files are kept as they were before tools change them.
    pub(crate) tracks_files: bool,
    /// Whether the model is shown images.
    pub(crate) vision: bool,
    pub(crate) autopilot_cap: u32,
    pub(crate) may_ask: bool,
    /// The text that a new session may be named after.
    pub(crate) prompt: Option<String>,
    pub(crate) client_name: Option<String>,
    /// Whether to say nothing of a resume in the log.
    pub(crate) silent_resume: bool,
    /// What whoever resumes the session wants to become of work that was under way, if they said.
    pub(crate) continue_pending: Option<bool>,
    pub(crate) sink: Box<dyn EventSink>,
    pub(crate) hooks: Option<Arc<dyn Hooks>>,
    pub(crate) agents: AgentPlan,
    pub(crate) customs: Customs,
    /// The MCP servers; none where absent.
    pub(crate) mcp: Option<Servers>,
    /// The session's files, where a client keeps them.
    pub(crate) client_session: Option<ClientSession>,
    pub(crate) large_output: Option<LargeOutput>,
}

/// A session, ready to be driven.
pub(crate) struct Composed {
    pub(crate) driver: Driver,
    pub(crate) shells: Shells,
    pub(crate) database: Option<Arc<Database>>,
    pub(crate) store: Store,
    pub(crate) id: SessionId,
    pub(crate) cwd: PathBuf,
    /// All built-in tools, shown or not.
    pub(crate) builtin: Vec<Arc<dyn Tool>>,
    /// What the system prompt was made of.
    pub(crate) environment: Environment,
    pub(crate) instructions: String,
    pub(crate) skills: Arc<Skills>,
    /// The first inputs of the session. A resumed one says first what it was; what is different now follows.
    pub(crate) opening: Vec<Input>,
    /// The MCP servers and their news. None has been started.
    pub(crate) mcp: Option<(McpHost, mpsc::Receiver<News>)>,
    /// What keeps outputs within what the model is shown.
    pub(crate) fitting: Spill,
    /// What confines the session's commands, if anything does.
    pub(crate) sandbox: Option<Sandbox>,
}

pub(crate) fn session(settings: &Settings, mut plan: Plan<'_>) -> Result<Composed> {
    let store = Store::new(&settings.home);
    let here = match &plan.client_session {
        Some(client_session) => {
            client_dir(plan.directory.as_deref(), &client_session.files.site().initial_cwd)?
        }
        None => working_dir(plan.directory.as_deref())?,
    };
    // A new session that has no model, or not the agent that was asked for, is not begun.
    let ready = match &plan.selection {
        Selection::New { .. } => {
            let warnings = add_file_agents(settings, &mut plan, &here, Repository::find(&here).as_ref());
            Some(((plan.choose)(None)?, plan.agents.cast()?, warnings))
        }
        Selection::Resume(_) => None,
    };
    // Nor is one named before it is known what must not be in a name.
    let naming =
        ready.as_ref().map(|(chosen, ..)| redact::of_session(settings, &plan.secrets, &plan.hidden, chosen));
    let (mut log, past) = open_log(&store, &mut plan, &here, &naming.unwrap_or_default())?;
    let resumed = past.is_some();
    let (mut state, told_instructions) = past.map(|past| (past.state, past.told)).unwrap_or_default();
    let cwd = if resumed && plan.directory.is_none() { stored_dir(&store, &log, &here)? } else { here };
    let repository = Repository::find(&cwd);
    let (chosen, cast, agent_warnings) = match ready {
        Some(ready) => ready,
        None => {
            let warnings = add_file_agents(settings, &mut plan, &cwd, repository.as_ref());
            let chosen = (plan.choose)(Some(state.model.as_str()).filter(|model| !model.is_empty()))?;
            (chosen, plan.agents.cast()?, warnings)
        }
    };
    let chosen = match cast.as_ref().and_then(|agent| plan.agents.model_of(agent)) {
        Some(liked) => Chosen {
            provider: liked.provider,
            model: liked.model,
            max_prompt_tokens: liked.max_prompt_tokens,
            scripted: chosen.scripted,
            secrets: chosen.secrets,
        },
        None => chosen,
    };
    let shown_repository = repository.as_ref().filter(|_| plan.shows_git);
    let context = working_directory(&cwd, shown_repository);
    if resumed {
        log.set_context(context.clone())?;
    }

    let instructions = instructions(settings, &plan, &cwd, repository.as_ref());
    let (inbox, commands) = mpsc::channel(INBOX);
    let redactor = redact::of_session(settings, &plan.secrets, &plan.hidden, &chosen);
    let mut configured = Configured::load(settings, &plan.customs, &cwd, repository.as_ref());
    let skills = Arc::clone(&configured.skills);
    let mut warnings = std::mem::take(&mut configured.warnings);
    warnings.extend(agent_warnings);
    let database = log.database().map(Arc::new);
    let roots = roots(&plan, &cwd, &log)?;
    let sandbox = confinement(settings, &plan, &cwd, &log, &roots)?;
    let limited = sandbox::limited(settings, &plan.sandbox, place(&plan, &cwd, &log, &roots))?;
    let ground =
        Ground { database: database.clone(), sandbox: sandbox.as_ref(), limited, redactor: &redactor };
    let (shells, mut builtin) = tools(settings, &plan, &cwd, &log, &chosen.model, &inbox, ground)?;
    if configured.offers_skills(&plan.filter) {
        builtin.push(skills.tool());
    }
    // What a client keeps is not for us to restore.
    let snapshots = log.local_folder().map(|folder| Arc::new(Snapshots::new(folder)));
    let snapshots = snapshots.filter(|kept| plan.tracks_files || (resumed && kept.exist()));
    let watch = |tool| match &snapshots {
        Some(snapshots) => Tracked::watch(tool, snapshots),
        None => tool,
    };
    let absent: Vec<&str> = plan.features.absent_tools().collect();
    let builtin: Vec<Arc<dyn Tool>> = builtin
        .into_iter()
        .filter(|tool| !absent.contains(&tool.spec().name.as_str()))
        .map(|tool| redactor.tool(watch(tool)))
        .collect();
    let mut own_tools = plan.own_tools.clone();
    own_tools.excluded.extend(absent.iter().map(|&name| name.to_owned()));
    let (tools, disabled_tools) = visible(&builtin, &plan.filter);

    let fitting = spill(settings, &log, plan.large_output.as_ref(), &redactor)?;
    if let Some(wanted) = &mut plan.mcp {
        wanted.for_agents = plan.agents.custom.iter().any(|agent| !agent.mcp_servers.is_empty());
        // The session has what the agent has whose role it plays.
        if let Some(agent) = &cast {
            let servers = match agent.source {
                AgentSource::File(_) => &mut wanted.role,
                AgentSource::Client | AgentSource::Builtin => &mut wanted.client,
            };
            servers.extend(agent.mcp_servers.clone());
        }
    }
    let mcp = match &plan.mcp {
        None => None,
        Some(wanted) => mcp::open(
            settings,
            wanted,
            Surroundings {
                session_id: log.id().to_string(),
                cwd: &cwd,
                provider: redactor.provider(Arc::clone(&chosen.provider)),
                model: chosen.model.clone(),
                secrets: &plan.secrets,
                redactor: redactor.clone(),
                sandboxes: Sandboxes {
                    all: sandbox
                        .as_ref()
                        .filter(|_| plan.sandbox.confines_mcp_servers())
                        .map(|ready| ready.sandbox.clone()),
                    of_projects: sandbox::of_project_servers(
                        settings,
                        &plan.sandbox,
                        place(&plan, &cwd, &log, &roots),
                    )?,
                },
                spill: fitting.clone(),
                hooks: plan.hooks.clone(),
            },
        )?,
    };
    let environment = Environment {
        cwd: cwd.display().to_string(),
        git_root: shown_repository.map(|repository| repository.root.display().to_string()),
        os: std::env::consts::OS.to_owned(),
        session_dir: log.dir().display().to_string(),
        tools: tools.names().map(str::to_owned).collect(),
    };
    let custom = instructions.as_ref().map(Instructions::render).unwrap_or_default();
    let custom = with_further(custom, plan.further_instructions.as_deref());
    plan.agents.custom.iter_mut().for_each(|agent| skills.brief(agent));
    let agent_config = plan.agents.agent_config(settings, &environment, &custom)?;
    let keeper = sandbox.as_ref().map(|ready| ready.sandbox.clone());
    let confinement = sandbox.map(|ready| {
        // What commands must leave alone is still the session's own.
        let writable =
            ready.policy.writable.into_iter().chain(log.local_dir().and_then(|dir| dir.canonicalize().ok()));
        Confinement { writable: writable.collect(), denied: ready.policy.denied }
    });
    let policy = Policy { roots, confinement, ..configured.extend(plan.policy.clone()) };
    let (hooks, hook_kinds) = configured.hooks(settings, &plan.secrets, plan.hooks, inbox);
    let config = SessionConfig {
        system: SystemPrompt::new(&environment, &custom).render().into(),
        tools: hangar_agent::interned::list(tools.iter().map(|tool| tool.spec())),
        policy,
        provider: chosen.provider.facts(),
        max_prompt_tokens: chosen.max_prompt_tokens,
        meter: Some(Arc::new(Meter(Counter::new(&chosen.model)))),
        reports_usage: plan.metered,
        just_in_time: just_in_time::load(settings)?.into(),
        streaming: plan.streaming,
        vision: plan.vision,
        compaction: plan.compaction,
        autopilot_cap: plan.autopilot_cap,
        user_reachable: false,
        questions_answered: false,
        may_ask: plan.may_ask,
        hooks: hook_kinds,
        client_hooks: false,
        skills: skills.list(),
        warnings,
        headers: plan.headers,
        own_tools,
        session_dir: log.dir(),
        disabled_tools,
        discovers_instructions: instructions.is_some() && plan.on_demand_instructions,
        role: Role::Main,
        agent_config: Some(Arc::new(agent_config)),
    };
    let mut opening = if resumed {
        let resumed = Opening::Resumed {
            log_bytes: log.log_bytes(),
            context,
            silent: plan.silent_resume,
            continue_pending: plan.continue_pending,
        };
        let mut opening = vec![Input::Opened(resumed)];
        if state.model != chosen.model || plan.effort.is_some() {
            let change = Command::SetModel { model: chosen.model.clone(), effort: plan.effort };
            opening.push(Input::Command(change));
        }
        opening.extend(plan.mode.map(|mode| Input::Command(Command::SetMode(mode))));
        opening
    } else {
        state.model.clone_from(&chosen.model);
        state.effort = plan.effort;
        state.mode = plan.mode.unwrap_or(Mode::Interactive);
        let version = env!("CARGO_PKG_VERSION").to_owned();
        vec![Input::Opened(Opening::New { session_id: log.id().to_string(), version, context })]
    };
    opening.extend(cast.map(|agent| Input::Command(Command::SelectAgent(Some(agent.name)))));
    let retry_scale = settings.number("HANGAR_RETRY_SCALE")?.unwrap_or(1.0);
    let id = log.id().clone();
    let discovery = instructions.filter(|_| plan.on_demand_instructions).map(|instructions| {
        let mut discovery = OnDemand::from(instructions);
        for source in &told_instructions {
            discovery.note_told(source);
        }
        Box::new(discovery) as Box<dyn InstructionFinder>
    });
    let sink = telemetry::tap(settings, plan.sink, id.as_str(), chosen.provider.facts());
    let surroundings = Place::new(
        Arc::clone(log.session_files()),
        database.clone(),
        &cwd,
        repository.as_ref(),
        keeper.clone(),
    );
    let host = Host {
        provider: redactor.provider(chosen.provider),
        tools,
        log: redactor.log(log.into_log()),
        sink: redactor.sink(sink),
        discovery,
        hooks,
        surroundings: Some(Box::new(surroundings)),
        models: plan.agents.models.map(|models| redactor.models(models)),
        now: Box::new(jiff::Timestamp::now),
        entropy: Entropy::seeded(uuid::Uuid::new_v4().as_u128()),
        retry_scale,
    };
    let mut driver = Driver::new(Session::new(state, config), host, commands);
    if let Some((servers, _)) = &mcp {
        driver.set_tool_provider(Some(Arc::new(servers.clone())));
    }
    let instructions = custom;
    Ok(Composed {
        driver,
        shells,
        database,
        store,
        id,
        cwd,
        builtin,
        environment,
        instructions,
        skills,
        opening,
        mcp,
        fitting,
        sandbox: keeper,
    })
}

/// Adds the agents that files describe, before those that a client brings, which count more.
fn add_file_agents(
    settings: &Settings,
    plan: &mut Plan<'_>,
    cwd: &Path,
    repository: Option<&Repository>,
) -> Vec<String> {
    let (mut found, mut warnings) = custom::agents(settings, &plan.customs, cwd, repository);
    let project = repository.map_or(cwd, |repository| repository.root.as_path());
    let trusted = |wanted: &Servers| mcp::may_configure(settings, wanted.trust, project);
    for agent in found.iter_mut().filter(|agent| !agent.mcp_servers.is_empty()) {
        let theirs = matches!(&agent.source, AgentSource::File(path) if path.starts_with(project));
        if theirs && !plan.mcp.as_ref().is_some_and(trusted) {
            agent.mcp_servers.clear();
            warnings.push(format!(
                "The MCP servers of the agent `{}` are not started: the project is not trusted.",
                agent.name
            ));
        }
    }
    // Of two with one name the first that was found counts, and here the last.
    found.reverse();
    plan.agents.custom.splice(0..0, found);
    warnings
}

pub(crate) fn working_dir(directory: Option<&Path>) -> Result<PathBuf> {
    let current = std::env::current_dir().context("the current directory is gone")?;
    let wanted = match directory {
        None => current,
        Some(dir) => current.join(dir),
    };
    wanted.canonicalize().with_context(|| format!("cannot change to the directory {}", wanted.display()))
}

/// Where a session works whose files a client keeps. The place may be the client's alone.
fn client_dir(directory: Option<&Path>, initial: &str) -> Result<PathBuf> {
    let wanted = directory.unwrap_or(Path::new(initial));
    Ok(if wanted.is_dir() { working_dir(Some(wanted))? } else { wanted.to_path_buf() })
}

/// Where the session was started, which is where it goes on.
fn stored_dir(store: &Store, log: &Home, here: &Path) -> Result<PathBuf> {
    if log.local_dir().is_some() {
        return resumed::directory(store, log.id(), log.meta(), here);
    }
    // The place may be the client's alone.
    Ok(log.meta().context.as_ref().map_or_else(|| here.to_path_buf(), |context| PathBuf::from(&context.cwd)))
}

/// Opens the session that is wanted. One that is gone on with has a past.
fn open_log(
    store: &Store,
    plan: &mut Plan<'_>,
    here: &Path,
    redactor: &Redactor,
) -> Result<(Home, Option<Past>)> {
    let client_session = plan.client_session.take();
    match &plan.selection {
        Selection::New { id, name } => {
            let repository = Repository::find(here).filter(|_| plan.shows_git);
            let context = working_directory(here, repository.as_ref());
            let mut meta = SessionMeta::new(context, jiff::Timestamp::now());
            let given = name.clone().map(|name| SessionName::Given(redactor.text(name)));
            let prompt = plan.prompt.clone().map(|prompt| redactor.text(prompt));
            meta.name = given.or_else(|| prompt.as_deref().and_then(SessionName::from_prompt));
            meta.client_name = Some(plan.client_name.clone().unwrap_or_else(|| "hangar".to_owned()));
            Ok((Home::create(store, client_session, id, meta)?, None))
        }
        Selection::Resume(id) => {
            let (home, past) = Home::resume(store, client_session, id)?;
            Ok((home, Some(past)))
        }
    }
}

fn instructions(
    settings: &Settings,
    plan: &Plan<'_>,
    cwd: &Path,
    repository: Option<&Repository>,
) -> Option<Instructions> {
    plan.custom_instructions.then(|| load_instructions(settings, &plan.instruction_dirs, cwd, repository))
}

/// Custom instructions with those that no file has behind them.
pub(crate) fn with_further(mut instructions: String, further: Option<&str>) -> String {
    if let Some(further) = further.map(str::trim).filter(|further| !further.is_empty()) {
        if !instructions.is_empty() {
            instructions.push_str("\n\n");
        }
        instructions.push_str(further);
    }
    instructions
}

/// The custom instructions of a place, as the model is told them.
pub(crate) fn custom_instructions(
    settings: &Settings,
    directory: Option<&Path>,
    dirs: &[PathBuf],
) -> Result<String> {
    Ok(loaded_instructions(settings, directory, dirs)?.render())
}

/// The custom instructions of a place.
pub(crate) fn loaded_instructions(
    settings: &Settings,
    directory: Option<&Path>,
    dirs: &[PathBuf],
) -> Result<Instructions> {
    let cwd = working_dir(directory)?;
    Ok(load_instructions(settings, dirs, &cwd, Repository::find(&cwd).as_ref()))
}

fn load_instructions(
    settings: &Settings,
    dirs: &[PathBuf],
    cwd: &Path,
    repository: Option<&Repository>,
) -> Instructions {
    let mut extra_dirs: Vec<PathBuf> = settings
        .var("COPILOT_CUSTOM_INSTRUCTIONS_DIRS")
        .map(|dirs| dirs.split(',').map(|dir| cwd.join(dir.trim())).collect())
        .unwrap_or_default();
    extra_dirs.extend(dirs.iter().map(|dir| cwd.join(dir)));
    Instructions::load(Places {
        home: &settings.home,
        cwd,
        git_root: repository.map(|repository| repository.root.as_path()),
        extra_dirs: &extra_dirs,
    })
}

/// Where tools may go, links resolved, since that is how paths are compared.
fn roots(plan: &Plan<'_>, cwd: &Path, log: &Home) -> Result<Vec<PathBuf>> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let mut roots = vec![real(cwd), real(&log.dir())];
    if plan.temp_dir {
        roots.push(real(&std::env::temp_dir()));
    }
    for dir in &plan.add_dirs {
        let dir = cwd.join(dir);
        let resolved = dir
            .canonicalize()
            .with_context(|| format!("--add-dir {} is not a directory that can be read", dir.display()))?;
        roots.push(resolved);
    }
    Ok(roots)
}

/// Where outputs go that are too large for the model.
fn spill(
    settings: &Settings,
    log: &Home,
    wanted: Option<&LargeOutput>,
    redactor: &Redactor,
) -> Result<Spill> {
    spill_to(settings, log.spill_dir(), log.files(), wanted, redactor)
}

/// The same for a folder that is known by its place alone.
pub(crate) fn spill_to(
    settings: &Settings,
    dir: PathBuf,
    files: ToolFiles,
    wanted: Option<&LargeOutput>,
    redactor: &Redactor,
) -> Result<Spill> {
    let threshold = settings.number("COPILOT_LARGE_OUTPUT_THRESHOLD_BYTES")?.unwrap_or(DEFAULT_THRESHOLD);
    let (threshold, dir) = match wanted {
        None => (threshold, dir),
        Some(LargeOutput { enabled: Some(false), .. }) => (usize::MAX, dir),
        Some(wanted) => {
            let size = wanted.max_size_bytes.and_then(|size| usize::try_from(size).ok());
            let chosen = wanted.output_dir.as_deref().and_then(|dir| std::path::absolute(dir).ok());
            (size.unwrap_or(threshold), chosen.map_or(dir, |chosen| paths::resolve(&chosen)))
        }
    };
    let redactor = redactor.clone();
    let clean = Cleaner::new(move |text| redactor.text(text));
    Ok(Spill { dir, threshold, files, clean: Some(clean) })
}

/// The sandbox of the session's commands, if they are to have one.
fn confinement(
    settings: &Settings,
    plan: &Plan<'_>,
    cwd: &Path,
    log: &Home,
    roots: &[PathBuf],
) -> Result<Option<sandbox::Ready>> {
    let enabled = plan.sandbox.enabled;
    enabled.then(|| sandbox::ready(settings, &plan.sandbox, place(plan, cwd, log, roots))).transpose()
}

/// Where a session is, as far as sandboxes have to know.
fn place<'a>(plan: &Plan<'_>, cwd: &'a Path, log: &Home, roots: &'a [PathBuf]) -> sandbox::Session<'a> {
    sandbox::Session {
        id: log.id().to_string(),
        cwd,
        roots,
        temp_dir: plan.temp_dir,
        session_dir: log.dir(),
        is_local: log.local_dir().is_some(),
    }
}

/// What tools stand on, and are held to.
struct Ground<'a> {
    database: Option<Arc<Database>>,
    sandbox: Option<&'a sandbox::Ready>,
    /// What commands with limits run in.
    limited: Option<hangar_tools::shell::Confinement>,
    redactor: &'a Redactor,
}

/// The built-in tools, all of them.
fn tools(
    settings: &Settings,
    plan: &Plan<'_>,
    cwd: &Path,
    log: &Home,
    model: &str,
    inbox: &mpsc::Sender<Box<Input>>,
    Ground { database, sandbox, limited, redactor }: Ground<'_>,
) -> Result<(Shells, Vec<Arc<dyn Tool>>)> {
    let spill = spill(settings, log, plan.large_output.as_ref(), redactor)?;
    let secrets = credentials::withheld_from_commands(settings, &plan.secrets);
    let (completions, completed) = mpsc::channel(INBOX);
    let shells = Shells::new(ShellOptions {
        program: PathBuf::from(SHELL),
        cwd: cwd.to_path_buf(),
        env: std::env::vars_os().collect(),
        secrets,
        sandbox: sandbox.map(|ready| ready.sandbox.clone()),
        confinement: limited,
        spill: spill.clone(),
        completions,
    });
    tokio::spawn(report_completions(completed, inbox.clone(), redactor.clone()));
    // A network that is closed to commands is not open to the model by another tool.
    let closed = sandbox.is_some_and(|ready| ready.policy.network == Network::Closed);
    let online = !settings.flag("COPILOT_OFFLINE") && !closed;
    let dialect = if known::edits_by_patch(model) { Dialect::Patches } else { Dialect::Edits };
    let builtin = hangar_tools::builtin(Builtin {
        workspace: Arc::new(Workspace { cwd: cwd.to_path_buf(), spill, files: log.files() }),
        dialect,
        database,
        web: online.then(|| WebAccess {
            redirects: if plan.policy.allow_all_urls { Redirects::AnyHost } else { Redirects::SameHost },
            ..WebAccess::default()
        }),
    });
    let mut tools = shells.tools();
    tools.extend(builtin);
    Ok((shells, tools))
}

/// Tells the session when a command that it left in the background ends.
async fn report_completions(
    mut completed: mpsc::Receiver<ShellCompletion>,
    inbox: mpsc::Sender<Box<Input>>,
    redactor: Redactor,
) {
    while let Some(mut completion) = completed.recv().await {
        completion.read = redactor.outcome(completion.read);
        if inbox.send(Box::new(Input::Background(Notice::from(completion)))).await.is_err() {
            return;
        }
    }
}

/// What the model is shown of the built-in tools, and the names of those that it is not.
fn visible(builtin: &[Arc<dyn Tool>], filter: &ToolFilter) -> (Toolset, Vec<String>) {
    let (kept, dropped): (Vec<_>, Vec<_>) =
        builtin.iter().cloned().partition(|tool| filter.admits(ToolSource::Builtin, &tool.spec().name));
    let mut disabled: Vec<String> = dropped.iter().map(|tool| tool.spec().name.clone()).collect();
    disabled.sort();
    (Toolset::new(kept), disabled)
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

/// The built-in tools that a session with this model would have. Nothing is started or opened for the answer.
pub(crate) fn tool_specs(settings: &Settings, model: &str) -> Vec<Arc<ToolSpec>> {
    let nowhere = PathBuf::from("/");
    let spill =
        Spill { dir: nowhere.clone(), threshold: DEFAULT_THRESHOLD, files: ToolFiles::Here, clean: None };
    let (completions, _) = mpsc::channel(1);
    let shells = Shells::new(ShellOptions {
        program: PathBuf::from(SHELL),
        cwd: nowhere.clone(),
        env: Vec::new(),
        secrets: Vec::new(),
        spill: spill.clone(),
        completions,
        sandbox: None,
        confinement: None,
    });
    let builtin = hangar_tools::builtin(Builtin {
        workspace: Arc::new(Workspace { cwd: nowhere.clone(), spill, files: ToolFiles::Here }),
        dialect: if known::edits_by_patch(model) { Dialect::Patches } else { Dialect::Edits },
        database: Some(Arc::new(Database::new(nowhere))),
        web: (!settings.flag("COPILOT_OFFLINE")).then(WebAccess::default),
    });
    shells.tools().into_iter().chain(builtin).map(|tool| tool.spec().clone()).collect()
}
