//! Puts a session together: where it works, who answers, which tools, what is allowed, what the log remembers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use hangar_agent::driver::{Discovery, Driver, Host};
use hangar_agent::entropy::Entropy;
use hangar_agent::model::{ModelRequest, TokenCount, TokenMeter};
use hangar_agent::permissions::{Policy, Rule};
use hangar_agent::prompt::{Environment, SystemPrompt};
use hangar_agent::session::{Command, Input, Notice, Opening, Session, SessionConfig, State};
use hangar_agent::tool::{Tool, Toolset};
use hangar_models::known;
use hangar_models::tokens::Counter;
use hangar_protocol::Body;
use hangar_protocol::data::{Mode, NotificationKind, WorkingDirectory};
use hangar_store::{OpenSession, SessionId, SessionMeta, SessionName, Store, StoreError};
use hangar_tools::shell::{ShellCompletion, ShellOptions, Shells};
use hangar_tools::spill::{DEFAULT_THRESHOLD, Spill};
use hangar_tools::sql::Database;
use hangar_tools::web::{Reach, Redirects};
use hangar_tools::{Builtin, Dialect, Workspace};
use tokio::sync::mpsc;

use crate::args::{ModeArg, RunArgs, Switch};
use crate::output::{Printer, remark};
use crate::providers::{self, Chosen, PROVIDER_SECRETS, Wanted};
use crate::redact::Redactor;
use crate::selection::{self, Selection};
use crate::settings::Settings;
use crate::workspace::git::Repository;
use crate::workspace::instructions::on_demand::OnDemand;
use crate::workspace::instructions::{Instructions, Places};
use crate::workspace::working_directory;

/// What the shell tools run commands with.
const SHELL: &str = "/bin/bash";
/// Commands and news that may wait for the loop.
const INBOX: usize = 64;

/// A session, ready to be driven.
pub(crate) struct Composed {
    pub(crate) driver: Driver,
    pub(crate) shells: Shells,
    pub(crate) store: Store,
    pub(crate) id: SessionId,
    pub(crate) cwd: PathBuf,
    opening: Option<Opening>,
}

impl Composed {
    /// The first input of the session.
    pub(crate) fn open(&mut self) -> Result<()> {
        if let Some(opening) = self.opening.take() {
            self.driver.advance(Input::Opened(opening))?;
        }
        Ok(())
    }
}

pub(crate) fn session(
    settings: &Settings,
    args: &RunArgs,
    prompt: &str,
    printer: Printer,
) -> Result<Composed> {
    // What was typed is checked before anything is looked up or made.
    let policy = policy(args, settings)?;
    let store = Store::new(&settings.home);
    let here = working_dir(args)?;
    let selection = selection::select(&store, args)?;
    let chosen = providers::choose(
        settings,
        Wanted {
            model: args.model.as_deref(),
            record: args.record.as_deref(),
            replay: args.replay.as_deref(),
        },
    )?;
    if chosen.scripted {
        remark("note: the scripted model answers; no real model is asked");
    }
    let (mut log, mut state, resumed) = open_log(&store, selection, &here, prompt)?;
    let cwd = if resumed && args.directory.is_none() { stored_dir(&log, &here)? } else { here };
    let repository = Repository::find(&cwd);
    let context = working_directory(&cwd, repository.as_ref());
    if resumed {
        log.set_context(context.clone())?;
    }

    let instructions = instructions(settings, args, &cwd, repository.as_ref());
    let (inbox, commands) = mpsc::channel(INBOX);
    let redactor = Redactor::new(
        PROVIDER_SECRETS
            .iter()
            .copied()
            .chain(args.secret_env_vars.iter().map(String::as_str))
            .filter_map(|name| settings.var(name).map(str::to_owned)),
    );
    let (shells, builtin) = tools(settings, args, &cwd, &log, &chosen.model, &inbox)?;
    let (tools, disabled_tools) = visible(builtin, args, &redactor);

    let mode = mode(args);
    let policy = Policy { roots: roots(args, &cwd, &log)?, ..policy };
    let environment = Environment {
        cwd: cwd.display().to_string(),
        git_root: repository.as_ref().map(|repository| repository.root.display().to_string()),
        os: std::env::consts::OS.to_owned(),
        session_dir: log.dir().display().to_string(),
        tools: tools.names().map(str::to_owned).collect(),
    };
    let custom = instructions.as_ref().map(Instructions::render).unwrap_or_default();
    let config = SessionConfig {
        system: SystemPrompt::new(&environment, &custom).render().into(),
        tools: tools.iter().map(|tool| tool.spec().clone()).collect(),
        policy,
        provider: chosen.provider.facts(),
        max_prompt_tokens: chosen.max_prompt_tokens,
        // Only a reader of all events sees the count, and the tokenizer is not free.
        meter: args.all_events.then(|| Arc::new(Meter(chosen.model.clone())) as Arc<dyn TokenMeter>),
        streaming: args.stream == Switch::On,
        autopilot_cap: args.max_autopilot_continues,
        user_reachable: false,
        may_ask: !args.no_ask_user,
        session_dir: log.dir().to_path_buf(),
        disabled_tools,
        discovers_instructions: instructions.is_some(),
    };
    let effort = args.reasoning_effort.map(|effort| effort.as_str().to_owned());
    let opening = opening(&mut state, &log, &chosen, effort.as_deref(), mode, context, resumed);
    let model_change = resumed && (state.model != chosen.model || effort.is_some());
    let retry_scale = settings.number("HANGAR_RETRY_SCALE")?.unwrap_or(1.0);
    let id = log.id().clone();
    let told: Vec<String> = if resumed { told_instructions(&store, &id)? } else { Vec::new() };
    let discovery = instructions.map(|instructions| {
        let mut discovery = OnDemand::from(instructions);
        for source in &told {
            discovery.note_told(source);
        }
        Box::new(discovery) as Box<dyn Discovery>
    });
    let host = Host {
        provider: chosen.provider,
        tools,
        log: Box::new(log),
        sink: Box::new(printer),
        discovery,
        now: Box::new(jiff::Timestamp::now),
        entropy: Entropy::seeded(uuid::Uuid::new_v4().as_u128()),
        retry_scale,
    };
    let mut driver = Driver::new(Session::new(state, config), host, commands);
    if resumed {
        // The opening of a resumed session says what it was; what is different now follows as changes.
        driver.advance(Input::Opened(opening))?;
        if model_change {
            driver.advance(Input::Command(Command::SetModel { model: chosen.model, effort }))?;
        }
        driver.advance(Input::Command(Command::SetMode(mode)))?;
        return Ok(Composed { driver, shells, store, id, cwd, opening: None });
    }
    Ok(Composed { driver, shells, store, id, cwd, opening: Some(opening) })
}

fn working_dir(args: &RunArgs) -> Result<PathBuf> {
    let current = std::env::current_dir().context("the current directory is gone")?;
    let wanted = match &args.directory {
        None => current,
        Some(dir) => current.join(dir),
    };
    wanted.canonicalize().with_context(|| format!("cannot change to the directory {}", wanted.display()))
}

/// Where the session was started, which is where it goes on.
fn stored_dir(log: &OpenSession, here: &Path) -> Result<PathBuf> {
    let Some(context) = &log.meta().context else { return Ok(here.to_path_buf()) };
    let stored = PathBuf::from(&context.cwd);
    if !stored.is_dir() {
        bail!(
            "session {} worked in {}, which is gone; pass -C to go on elsewhere",
            log.id(),
            stored.display()
        );
    }
    Ok(stored)
}

fn open_log(
    store: &Store,
    selection: Selection,
    here: &Path,
    prompt: &str,
) -> Result<(OpenSession, State, bool)> {
    let in_use = |error: StoreError| match error {
        StoreError::InUse { ref id, .. } => {
            let hint = format!("session {id} is in use; wait for it to end, or start a new one");
            anyhow::Error::from(error).context(hint)
        }
        other => other.into(),
    };
    match selection {
        Selection::New { id, name } => {
            let context = working_directory(here, Repository::find(here).as_ref());
            let mut meta = SessionMeta::new(context, jiff::Timestamp::now());
            meta.name = name.map(SessionName::Given).or_else(|| SessionName::from_prompt(prompt));
            meta.client_name = Some("hangar".to_owned());
            Ok((store.create(&id, meta).map_err(in_use)?, State::default(), false))
        }
        Selection::Resume(id) => {
            let log = store.open(&id).map_err(in_use)?;
            let state = fold(store, &id, &log)?;
            Ok((log, state, true))
        }
    }
}

/// The state that a log tells of, without holding the log.
fn fold(store: &Store, id: &SessionId, log: &OpenSession) -> Result<State> {
    let mut state = State::default();
    for event in store.read_where(id, State::wants)? {
        state.apply_event(&event?);
    }
    state.end = log.end();
    state.last_event = log.last_event_id().cloned();
    if state.session_id.is_empty() {
        state.session_id = id.to_string();
    }
    Ok(state)
}

/// Instructions that the model was told about in the course of the session already.
fn told_instructions(store: &Store, id: &SessionId) -> Result<Vec<String>> {
    let mut told = Vec::new();
    for event in store.read_where(id, |kind| kind == "system.notification")? {
        if let Body::SystemNotification(notification) = event?.body()
            && let NotificationKind::InstructionDiscovered { source_path, .. } = &notification.kind
        {
            told.push(source_path.clone());
        }
    }
    Ok(told)
}

fn opening(
    state: &mut State,
    log: &OpenSession,
    chosen: &Chosen,
    effort: Option<&str>,
    mode: Mode,
    context: WorkingDirectory,
    resumed: bool,
) -> Opening {
    if resumed {
        return Opening::Resumed { log_bytes: log.log_bytes(), context };
    }
    state.model.clone_from(&chosen.model);
    state.effort = effort.map(str::to_owned);
    state.mode = mode;
    Opening::New { session_id: log.id().to_string(), version: env!("CARGO_PKG_VERSION").to_owned(), context }
}

fn instructions(
    settings: &Settings,
    args: &RunArgs,
    cwd: &Path,
    repository: Option<&Repository>,
) -> Option<Instructions> {
    if args.no_custom_instructions {
        return None;
    }
    let extra_dirs: Vec<PathBuf> = settings
        .var("COPILOT_CUSTOM_INSTRUCTIONS_DIRS")
        .map(|dirs| dirs.split(',').map(|dir| cwd.join(dir.trim())).collect())
        .unwrap_or_default();
    Some(Instructions::load(Places {
        home: &settings.home,
        cwd,
        git_root: repository.map(|repository| repository.root.as_path()),
        extra_dirs: &extra_dirs,
    }))
}

fn mode(args: &RunArgs) -> Mode {
    match args.mode {
        _ if args.plan => Mode::Plan,
        _ if args.autopilot => Mode::Autopilot,
        Some(ModeArg::Plan) => Mode::Plan,
        Some(ModeArg::Autopilot) => Mode::Autopilot,
        Some(ModeArg::Interactive) | None => Mode::Interactive,
    }
}

fn policy(args: &RunArgs, settings: &Settings) -> Result<Policy> {
    let rules = |flag: &str, values: &[String]| -> Result<Vec<Rule>> {
        let mut rules = Vec::new();
        for value in values {
            let parsed = Rule::parse_list(value).map_err(|error| anyhow!("invalid {flag} value: {error}"))?;
            rules.extend(parsed);
        }
        Ok(rules)
    };
    let urls = |flag: &str, values: &[String]| -> Result<Vec<Rule>> {
        values
            .iter()
            .flat_map(|value| value.split(','))
            .map(|url| {
                Rule::parse(&format!("url({url})")).map_err(|_| anyhow!("invalid {flag} value: {url}"))
            })
            .collect()
    };
    let mut allow = rules("--allow-tool", &args.allow_tool)?;
    allow.extend(urls("--allow-url", &args.allow_url)?);
    let mut deny = rules("--deny-tool", &args.deny_tool)?;
    deny.extend(urls("--deny-url", &args.deny_url)?);
    Ok(Policy {
        allow,
        deny,
        allow_all_tools: args.allow_all_tools || args.allow_all || settings.flag("COPILOT_ALLOW_ALL"),
        allow_all_paths: args.allow_all_paths || args.allow_all,
        allow_all_urls: args.allow_all_urls || args.allow_all,
        ..Policy::default()
    })
}

/// Where tools may go, links resolved, since that is how paths are compared.
fn roots(args: &RunArgs, cwd: &Path, log: &OpenSession) -> Result<Vec<PathBuf>> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let mut roots = vec![real(cwd), real(log.dir())];
    if !args.disallow_temp_dir {
        roots.push(real(&std::env::temp_dir()));
    }
    for dir in &args.add_dir {
        let dir = cwd.join(dir);
        let resolved = dir
            .canonicalize()
            .with_context(|| format!("--add-dir {} is not a directory that can be read", dir.display()))?;
        roots.push(resolved);
    }
    Ok(roots)
}

/// The built-in tools, all of them.
fn tools(
    settings: &Settings,
    args: &RunArgs,
    cwd: &Path,
    log: &OpenSession,
    model: &str,
    inbox: &mpsc::Sender<Input>,
) -> Result<(Shells, Vec<Arc<dyn Tool>>)> {
    let threshold = settings.number("COPILOT_LARGE_OUTPUT_THRESHOLD_BYTES")?.unwrap_or(DEFAULT_THRESHOLD);
    let spill = Spill { dir: log.files_dir(), threshold };
    let secrets = PROVIDER_SECRETS
        .iter()
        .map(|name| (*name).to_owned())
        .chain(args.secret_env_vars.iter().cloned())
        .collect();
    let (completions, completed) = mpsc::channel(INBOX);
    let shells = Shells::new(ShellOptions {
        program: PathBuf::from(SHELL),
        cwd: cwd.to_path_buf(),
        env: std::env::vars_os().collect(),
        secrets,
        session_id: log.id().to_string(),
        spill: spill.clone(),
        completions,
    });
    tokio::spawn(report_completions(completed, inbox.clone()));
    let online = !settings.flag("COPILOT_OFFLINE");
    let dialect = if known::edits_by_patch(model) { Dialect::Patches } else { Dialect::Edits };
    let builtin = hangar_tools::builtin(Builtin {
        workspace: Arc::new(Workspace { cwd: cwd.to_path_buf(), spill }),
        dialect,
        database: Arc::new(Database::new(log.dir().join("session.db"))),
        web: online.then(|| Reach {
            redirects: if args.allow_all || args.allow_all_urls {
                Redirects::AnyHost
            } else {
                Redirects::SameHost
            },
            ..Reach::default()
        }),
    });
    let mut tools = shells.tools();
    tools.extend(builtin);
    Ok((shells, tools))
}

/// Tells the session when a command that it left in the background ends.
async fn report_completions(mut completed: mpsc::Receiver<ShellCompletion>, inbox: mpsc::Sender<Input>) {
    while let Some(completion) = completed.recv().await {
        if inbox.send(Input::Background(Notice::from(completion))).await.is_err() {
            return;
        }
    }
}

/// What the model is shown of the built-in tools, and the names of those that it is not.
fn visible(builtin: Vec<Arc<dyn Tool>>, args: &RunArgs, redactor: &Redactor) -> (Toolset, Vec<String>) {
    let names = |values: &[String]| -> Vec<String> {
        values.iter().flat_map(|value| value.split(',')).map(|name| name.trim().to_owned()).collect()
    };
    // Where both lists are given, the one that names what is available wins.
    let available = args.available_tools.as_deref().map(names);
    let excluded = names(&args.excluded_tools);
    let shown = |name: &str| match &available {
        Some(available) => available.iter().any(|wanted| wanted == name),
        None => !excluded.iter().any(|unwanted| unwanted == name),
    };
    let (kept, dropped): (Vec<_>, Vec<_>) = builtin.into_iter().partition(|tool| shown(&tool.spec().name));
    let mut disabled: Vec<String> = dropped.iter().map(|tool| tool.spec().name.clone()).collect();
    disabled.sort();
    (Toolset::new(kept.into_iter().map(|tool| redactor.guard(tool)).collect()), disabled)
}

/// Counts with the tokenizer of one model.
struct Meter(String);

impl TokenMeter for Meter {
    fn measure(&self, request: &ModelRequest) -> TokenCount {
        let counter = Counter::new(&self.0);
        TokenCount {
            system: counter.system(&request.system),
            conversation: request.messages.iter().map(|message| counter.message(message)).sum(),
            tools: counter.tools(&request.tools),
        }
    }
}
