//! `hangar orchestrate`, `hangar issues` and `hangar issue`: work on the issues of a tracker, as a workflow file says.
//!
//! The decisions are those of `hangar_orchestrator`; here are their effects. [`driver`] is the loop, [`effects`] what it does,
//! [`host`] the loops of a portal with their [`board`], [`config`] the setting that names them, [`serve`] and [`api`] its state over HTTP, [`tools`] those of agents, [`publish`] and [`push`] its pull requests, [`contest`] candidates and their judge, [`session`] an agent at work in a slot of the queue, [`workspace`] and [`mirror`] its directory, [`log`] the records.

mod api;
pub(crate) mod args;
mod board;
pub(crate) mod config;
mod contest;
mod driver;
mod effects;
mod hooks;
pub(crate) mod host;
mod log;
pub(crate) mod mirror;
mod mock;
mod publish;
mod push;
mod review;
mod serve;
mod session;
mod show;
mod source;
mod tools;
mod workspace;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use hangar_orchestrator::plan::{TrackerSnapshot, watched};
use hangar_orchestrator::record::{IssueFact, OrchestratorRecord, PersonRequest};
use hangar_orchestrator::state::OrchestratorState;
use hangar_registry::host::RegistryHost;
use hangar_registry::hub::{Hub, HubConfig};
use hangar_store::Store;
use hangar_trackers::IssueId;
use hangar_workflow::Report;
use hangar_workflow::config::AppKey;
use jiff::Timestamp;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::commands::print_line;
use crate::credentials;
use crate::exit::Exit;
use crate::machine::Machine;
use crate::output::remark;
use crate::queue;
use crate::runtimes::AgentRuntimes;
use crate::settings::Settings;
use args::{IssueArgs, IssueCommand, IssuesArgs, OrchestrateArgs, OrchestrateCommand, WorkflowArgs};
use driver::{Driver, Work};
use effects::Context;
use log::RecordLog;
use mirror::Mirror;
use serve::Ask;
use show::Shown;
use source::{Loaded, Source};

/// Time that what is left of a killed process has to give the lock back.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);

pub(crate) fn run(settings: &Settings, args: OrchestrateArgs) -> Result<Exit> {
    if let Some(OrchestrateCommand::Validate { file, format, env_file }) = args.command {
        let source = source(settings, file, env_file)?;
        let report = match source.load() {
            Ok(loaded) => Report::of(loaded.warnings),
            Err(report) => report,
        };
        return show::report(&source, &report, format);
    }
    let source = source(settings, args.workflow.clone(), args.env_file.clone())?;
    let loaded = match source.load() {
        Ok(loaded) => loaded,
        Err(report) => {
            report.all().for_each(|problem| remark(&problem.line(&source.name())));
            bail!("{} is invalid; nothing was started", source.name());
        }
    };
    loaded.warnings.iter().for_each(|warning| remark(&warning.line(&source.name())));
    if args.dry_run {
        let state = log::read(&source.records())?;
        let snapshot = runtime()?.block_on(snapshot(&loaded, &state))?;
        return show::dry_run(&loaded.workflow.config, &snapshot, &state, args.output_format);
    }
    work(settings, source, loaded, &args)
}

fn source(settings: &Settings, path: Option<PathBuf>, env_file: Option<PathBuf>) -> Result<Source> {
    let runtimes = AgentRuntimes::assemble(settings)?;
    let all = runtimes.iter().chain(runtimes.named());
    let agents: Vec<String> = all.map(|runtime| runtime.card().name.to_string()).collect();
    Source::new(settings, path, env_file, Arc::new(move || agents.clone()))
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}

fn work(settings: &Settings, source: Source, loaded: Loaded, args: &OrchestrateArgs) -> Result<Exit> {
    let machine = Arc::new(Machine::new(settings)?);
    let hub = Hub::new(HubConfig {
        host: Arc::clone(&machine) as Arc<dyn RegistryHost>,
        store: Store::new(&settings.home),
        scheduler: queue::scheduler(settings)?,
        ledger: crate::costs::ledger(settings)?,
        fleet: None,
        now: Timestamp::now,
    });
    let bench = Workbench { settings: settings.clone(), machine, hub: hub.clone() };
    let path = source.path.clone();
    log::wait_for_lock(&source.records(), LOCK_PATIENCE);
    let output = Output { shown: Shown::Printed(args.output_format), until_idle: args.until_idle };
    runtime()?.block_on(async {
        let Some((driver, _)) = bench.driver(source, loaded, output).await? else {
            bail!("another process works on the issues of {}", path.display());
        };
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot catch SIGINT")?;
        let mut terminate = signal(SignalKind::terminate()).context("cannot catch SIGTERM")?;
        let asked = async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        };
        let ended = driver.run(asked).await;
        hub.close().await;
        ended
    })?;
    Ok(Exit::Done)
}

/// Resources that the workflows of a process share.
pub(super) struct Workbench {
    settings: Settings,
    machine: Arc<Machine>,
    hub: Hub,
}

/// Output of a loop, and when it ends.
struct Output {
    shown: Shown,
    until_idle: bool,
}

impl Workbench {
    /// The loop of a workflow, and the sender of questions to it. `None` if another process works on its issues.
    async fn driver(
        &self,
        source: Source,
        loaded: Loaded,
        output: Output,
    ) -> Result<Option<(Driver, mpsc::Sender<Ask>)>> {
        let Some((state, log)) = RecordLog::open(&source.records())? else { return Ok(None) };
        self.machine.hide(|settings| hiding_key(settings, &loaded))?;
        let settings = &self.settings;
        let mirrors = settings.home.join("orchestrator").join("mirrors");
        let agent_socket = settings.var("SSH_AUTH_SOCK").map(std::ffi::OsString::from);
        let mirror = move |loaded: &Loaded| {
            let config = &loaded.workflow.config;
            let url = publish::repository(config)?;
            let access = publish::access(config, &url, agent_socket.clone());
            // One that cannot be opened was refused with the forge.
            let tokens = hangar_trackers::open_tokens(&config.pulls).ok().flatten();
            Some(Arc::new(Mirror::new(credentials::git(), &mirrors, &url, access).with_tokens(tokens)))
        };
        let served = serve::start(&loaded.workflow.config.server).await?;
        let context = Context {
            mirror: mirror(&loaded),
            tools: served.tools,
            workflow: Arc::new(loaded.workflow),
            tracker: loaded.tracker,
            forge: loaded.forge,
            hub: self.hub.clone(),
            hook_variables: Arc::new(hooks::variables(settings)),
            project: source.project(),
            key: source.key(),
        };
        let machine = Arc::clone(&self.machine);
        let rebuild = Box::new(move |loaded: Loaded, before: &Context| {
            if let Err(error) = machine.hide(|settings| hiding_key(settings, &loaded)) {
                tracing::error!("new keys of the workflow are not hidden: {error:#}");
            }
            let of = |config: &hangar_workflow::Config| {
                (publish::repository(config), config.pulls.api_key.clone(), config.pulls.app.clone())
            };
            let same = of(&loaded.workflow.config) == of(&before.workflow.config);
            let mirror = if same { before.mirror.clone() } else { mirror(&loaded) };
            let (tracker, forge) = (loaded.tracker, loaded.forge);
            Context { mirror, workflow: Arc::new(loaded.workflow), tracker, forge, ..before.clone() }
        });
        let driver = Driver {
            work: Work::new(source.version()),
            source,
            context,
            state,
            log,
            shown: output.shown,
            rebuild,
            questions: served.questions,
            _serving: served.serving,
            counts: Default::default(),
            until_idle: output.until_idle,
            retry_scale: settings.retry_scale()?,
        };
        Ok(Some((driver, served.asks)))
    }
}

/// Settings in which the keys of tracker and forge are secrets: agents do not see them, and they are redacted in
/// their output.
fn hiding_key(settings: &Settings, loaded: &Loaded) -> Settings {
    let config = &loaded.workflow.config;
    let app = config.tracker.app.as_ref().and_then(|app| match &app.private_key {
        AppKey::Text(key) => Some(&key.0),
        AppKey::File(_) => None,
    });
    let keys = [&config.tracker.api_key.0, &config.pulls.api_key.0].into_iter().chain(app);
    let keys = keys.filter(|key| !key.is_empty());
    keys.fold(settings.clone(), |hidden, key| {
        let holders = settings.variables().filter(|(_, value)| value == key).map(|(name, _)| name);
        holders.fold(hidden.with_secret(None, key), |settings, name| settings.with_secret(Some(name), key))
    })
}

async fn snapshot(loaded: &Loaded, state: &OrchestratorState) -> Result<TrackerSnapshot> {
    let (asked, ids) = (Timestamp::now(), watched(state));
    let list: Vec<IssueId> = ids.iter().cloned().collect();
    let candidates = loaded.tracker.by_states(&loaded.workflow.config.tracker.active_states).await?;
    let found = loaded.tracker.by_ids(&list).await?;
    let watched: HashMap<_, _> = found.into_iter().map(|issue| (issue.id.clone(), issue)).collect();
    Ok(TrackerSnapshot { asked, candidates, asked_for: ids, watched })
}

/// A workflow that is looked at, with its records.
fn looked_at(settings: &Settings, args: &WorkflowArgs) -> Result<(Source, Loaded, OrchestratorState)> {
    let source = source(settings, args.workflow.clone(), args.env_file.clone())?;
    let loaded = source.load().map_err(|report| {
        let lines: Vec<String> = report.all().map(|problem| problem.line(&source.name())).collect();
        anyhow::anyhow!("{}", lines.join("\n"))
    })?;
    let state = log::read(&source.records())?;
    Ok((source, loaded, state))
}

pub(crate) fn issues(settings: &Settings, args: &IssuesArgs) -> Result<Exit> {
    let (_, loaded, state) = looked_at(settings, &args.workflow)?;
    let snapshot = runtime()?.block_on(snapshot(&loaded, &state))?;
    let issues = show::issues(&loaded.workflow.config, &snapshot, &state);
    if args.workflow.json {
        print_line(&serde_json::to_string_pretty(&issues)?)?;
        return Ok(Exit::Done);
    }
    for issue in &issues {
        print_line(&show::line(issue))?;
    }
    Ok(Exit::Done)
}

pub(crate) fn issue(settings: &Settings, args: IssueArgs) -> Result<Exit> {
    let (source, loaded, state) = looked_at(settings, &args.workflow)?;
    let snapshot = runtime()?.block_on(snapshot(&loaded, &state))?;
    let issues = show::issues(&loaded.workflow.config, &snapshot, &state);
    let (name, request) = match &args.command {
        IssueCommand::Show { issue } => (issue, None),
        IssueCommand::Start { issue } => (issue, Some(PersonRequest::Start)),
        IssueCommand::Stop { issue } => (issue, Some(PersonRequest::Stop)),
        IssueCommand::Park { issue } => (issue, Some(PersonRequest::Park)),
        IssueCommand::Retry { issue } => (issue, Some(PersonRequest::Retry)),
        IssueCommand::Promote { issue, candidate } => {
            (issue, Some(PersonRequest::Promote { candidate: *candidate }))
        }
    };
    let found = issues.iter().find(|issue| issue["identifier"] == **name || issue["id"] == **name);
    let Some(found) = found else {
        bail!("`{name}` is neither an active issue nor one that is worked on; `hangar issues` lists them");
    };
    let Some(request) = request else {
        print_line(&if args.workflow.json {
            serde_json::to_string_pretty(found)?
        } else {
            show::paragraph(found)
        })?;
        return Ok(Exit::Done);
    };
    if let PersonRequest::Promote { candidate } = request {
        show::check_promotion(found, candidate)?;
    }
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    let (issue, identifier) = (IssueId(text("id")), text("identifier"));
    let id = uuid::Uuid::new_v4().to_string();
    ask(&source, IssueFact::Requested { issue, identifier, request, id: id.clone() }, &id)?;
    Ok(Exit::Done)
}

/// Hands a request to the process that works on the issues, or writes it down if there is none.
fn ask(source: &Source, fact: IssueFact, id: &str) -> Result<()> {
    let directory = source.records();
    if let Some((state, mut log)) = RecordLog::open(&directory)? {
        log.append(&[OrchestratorRecord { seq: state.next_seq, at: Timestamp::now(), fact }])?;
        return print_line("Written down for the next `hangar orchestrate`.");
    }
    let requests = log::requests(&directory);
    hangar_disk::ensure_dir(&requests)?;
    hangar_disk::replace(&requests.join(format!("{id}.json")), serde_json::to_vec(&fact)?)?;
    print_line("Asked the orchestrator that runs.")
}
