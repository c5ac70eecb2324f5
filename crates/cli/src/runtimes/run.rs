//! `hangar run`: one prompt, run to its end by any agent. What is printed and how it ends is the `-p` contract.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use hangar_agent::driver::EventSink;
use hangar_agent::session::iso;
use hangar_protocol::data::{CodeChanges, SessionError};
use hangar_protocol::result::{ResultKind, RunResult, RunUsage};
use hangar_protocol::{Body, Event, EventId, EventKind};
use hangar_runtimes::host::Host;
use hangar_runtimes::outcome::ErrorKind;
use hangar_runtimes::runtime::{
    AgentAnswer, AgentCard, AgentOrder, AgentSession, PermissionReply, SessionCommand, SessionNews, TurnEnded,
};
use hangar_runtimes::usage::Usage;
use hangar_store::{SessionId, SessionName, Store};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::Fleet;
use super::args::RunWithArgs;
use super::choice::{Choice, Resumed};
use super::record::{SessionPast, SessionRecorder};
use super::rehearsal::Rehearsal;
use crate::args::OutputFormat;
use crate::commands::print_line;
use crate::compose::working_dir;
use crate::exit::Exit;
use crate::headless::{Interrupts, failure, read_prompt};
use crate::output::{Printer, SeenHandle, remark, result_of_nothing};
use crate::selection::{self, Selection, Typed};
use crate::settings::Settings;

/// Answer to an agent that asks a person.
const NOBODY: &str = "Nobody is here to answer. Decide by yourself, and say what you decided.";

/// Why a run did not begin.
#[derive(Debug)]
struct Refused {
    kind: ErrorKind,
    message: String,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refused {}

impl Refused {
    fn because(kind: ErrorKind, error: &anyhow::Error) -> anyhow::Error {
        Self { kind, message: format!("{error:#}") }.into()
    }

    /// The event that tells drivers about it.
    fn event(error: &anyhow::Error) -> Event {
        let kind = error.downcast_ref::<Self>().map_or(ErrorKind::InvalidRequest, |refused| refused.kind);
        let body = SessionError {
            error_type: kind.as_str().to_owned(),
            message: format!("{error:#}"),
            status_code: None,
            error_code: None,
            transient: false,
        };
        let id = EventId(uuid::Uuid::new_v4().to_string());
        Event::new(id, iso(jiff::Timestamp::now()), None, None, body.into())
    }
}

pub(crate) fn run(settings: &Settings, args: RunWithArgs) -> Result<Exit> {
    let json = args.output_format == OutputFormat::Json && !args.explain;
    begin(settings, args).inspect_err(|error| {
        if json {
            let mut printer = Printer::new(OutputFormat::Json, true, false, SeenHandle::default());
            printer.publish(&Refused::event(error));
            result_of_nothing(Exit::Failed);
        }
    })
}

fn begin(settings: &Settings, args: RunWithArgs) -> Result<Exit> {
    let fleet = Fleet::assemble(settings)?;
    let store = Store::new(&settings.home);
    let typed = Typed {
        session_id: args.session_id.as_deref(),
        resume: args.resume.as_deref(),
        continue_last: args.continue_last,
        name: args.name.as_deref(),
    };
    let selection = selection::select(&store, typed)?;
    let past = match &selection {
        Selection::New { .. } => None,
        Selection::Resume(id) => Some(SessionPast::read(&store, id, |name| fleet.find(name).is_ok())?),
    };
    let before = past.as_ref().map(|past| {
        // One that keeps the log of the session knows what that says.
        let forgets = fleet.find(&past.runtime).is_ok_and(|agent| !agent.card().capabilities.own_log);
        Resumed {
            runtime: &past.runtime,
            model: past.model.as_deref().filter(|_| forgets),
            effort: past.effort.as_deref().filter(|_| forgets),
        }
    });
    let choice = Choice::make(&args, &fleet.config, before)?;
    let agent = fleet
        .find(&choice.runtime.value)
        .map_err(|error| Refused::because(ErrorKind::AgentNotFound, &error))?;
    if args.explain {
        return explain(&choice, agent.card(), args.output_format);
    }
    let prompt = read_prompt(args.prompt.as_deref())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let run = Run { settings, args, fleet, store, selection, past, choice };
    let exit = runtime.block_on(run.drive(prompt));
    runtime.shutdown_timeout(Duration::from_millis(100));
    exit
}

fn explain(choice: &Choice, card: &AgentCard, format: OutputFormat) -> Result<Exit> {
    match format {
        OutputFormat::Json => {
            print_line(&serde_json::to_string_pretty(&json!({ "choice": choice, "agent": card }))?)?;
        }
        OutputFormat::Text => choice.lines().iter().try_for_each(|line| print_line(line))?,
    }
    Ok(Exit::Done)
}

struct Run<'a> {
    settings: &'a Settings,
    args: RunWithArgs,
    fleet: Fleet,
    store: Store,
    selection: Selection,
    past: Option<SessionPast>,
    choice: Choice,
}

impl Run<'_> {
    async fn drive(self, prompt: String) -> Result<Exit> {
        let started = Instant::now();
        // Signals are caught before the first effect, so that none can end the process without a result.
        let mut interrupts = Interrupts::new()?;
        let seen = SeenHandle::default();
        let args = &self.args;
        let printer = Printer::new(args.output_format, args.silent, args.all_events, seen.clone());
        let mut printer = printer.with_beginning();
        let runtime = self.fleet.find(&self.choice.runtime.value)?;
        let (id, name) = match &self.selection {
            Selection::New { id, name } => (id.clone(), name.clone()),
            Selection::Resume(id) => (id.clone(), None),
        };
        let mut order = self.order(&id)?;
        let own_log = runtime.card().capabilities.own_log;
        // A session that goes on is taken before its agent is started; one that begins is written once it has.
        let mut record = match &self.selection {
            Selection::Resume(id) if !own_log => Some(SessionRecorder::open(&self.store, id)?),
            Selection::Resume(_) | Selection::New { .. } => None,
        };
        if let Some(past) = &self.past {
            let known = past.agent_session.clone();
            order.resume = Some(record.as_ref().map(|record| record.resume(known)).unwrap_or_default());
        }
        let _rehearsal = self.rehearse(&mut order, runtime.as_ref()).await?;
        let workspace = order.workspace.clone();
        let opened = tokio::select! {
            opened = runtime.open(order) => opened,
            () = interrupts.next() => {
                if args.output_format == OutputFormat::Json {
                    result_of_nothing(Exit::Done);
                }
                return Ok(Exit::Done);
            }
        };
        let live = opened.map_err(|failure| Refused { kind: failure.kind, message: failure.message })?;
        if let Selection::Resume(id) = &self.selection {
            // The session is named by its first event, also in a run that goes on with it.
            let begun = self.store.read_kinds(id, |kind| kind == EventKind::SessionStart)?.next();
            if let Some(Ok(event)) = begun {
                printer.publish(&event);
            }
        }
        if record.is_none() && !own_log {
            let clean = |text: String| self.fleet.redactor.text(text);
            let given = name.map(|name| SessionName::Given(clean(name)));
            let name = given.or_else(|| SessionName::from_prompt(&clean(prompt.clone())));
            record = Some(SessionRecorder::create(&self.store, &id, &workspace, name, &runtime.card().name)?);
        }
        let mut listener =
            RunListener { live, record, printer, seen: seen.clone(), interrupts, stopped: false };
        let ended = listener.listen(prompt).await;
        let mut changes = listener.live.code_changes().await.unwrap_or_default();
        if let Some(record) = &listener.record {
            changes = record.changes(changes);
        }
        let exit = self.conclude(&id, &ended, listener.record.as_mut(), &changes, listener.stopped);
        let counted = listener.drain(own_log, &CancellationToken::new()).await;
        let changes = counted.unwrap_or(changes);
        let usage = ended.as_ref().map(|ended| ended.outcome.total).unwrap_or_default();
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        if args.output_format == OutputFormat::Text && !args.silent {
            remark(&summary(&usage, duration_ms, &self.settings.program, &id));
        }
        let result = RunResult {
            kind: ResultKind::Result,
            timestamp: iso(jiff::Timestamp::now()),
            session_id: id.to_string(),
            exit_code: exit.code(),
            usage: run_usage(&usage, changes, duration_ms),
        };
        let mut printer = Printer::new(args.output_format, args.silent, args.all_events, seen);
        printer.result(&result);
        Ok(printer.exit(exit))
    }

    fn order(&self, id: &SessionId) -> Result<AgentOrder> {
        let args = &self.args;
        let host = self.choice.host(args, &self.fleet.config);
        let stored = self.past.as_ref().and_then(|past| past.workspace.clone());
        let workspace = match (&host, &args.directory, stored) {
            // What is over there only the other side knows.
            (Host::Ssh(_), Some(directory), _) => directory.clone(),
            (_, None, Some(stored)) => stored,
            (_, directory, _) => working_dir(directory.as_deref())
                .map_err(|error| Refused::because(ErrorKind::InvalidWorkspace, &error))?,
        };
        let add_dirs: Vec<PathBuf> = args.add_dir.iter().map(|dir| workspace.join(dir)).collect();
        let mut order = self.choice.order(&self.fleet.config, id.to_string(), workspace, host)?;
        order.system = match &args.system_file {
            Some(file) => {
                let text = std::fs::read_to_string(file);
                Some(text.with_context(|| format!("cannot read the instructions in {}", file.display()))?)
            }
            None => args.system.clone(),
        };
        if let Selection::New { name, .. } = &self.selection {
            order.name.clone_from(name);
        }
        order.add_dirs = add_dirs;
        order.extra.extend(args.extra.iter().cloned());
        order.scratch = Some(self.store.session_dir(id));
        Ok(order)
    }

    async fn rehearse(
        &self,
        order: &mut AgentOrder,
        runtime: &dyn hangar_runtimes::runtime::Runtime,
    ) -> Result<Option<Rehearsal>> {
        let Some(url) = &self.args.rehearse else { return Ok(None) };
        // It stays, so that a rehearsed session can be resumed.
        let home = self.settings.home.join("rehearsal");
        let rehearsal = match url.as_str() {
            "" => Rehearsal::start(&home).await?,
            url => Rehearsal::with(url, &home)?,
        };
        remark("note: the scripted model answers; no real model is asked");
        runtime.rehearse(order, &rehearsal.stage);
        Ok(Some(rehearsal))
    }

    /// Records how the run ended, in the log and for the caller.
    fn conclude(
        &self,
        id: &SessionId,
        ended: &Result<TurnEnded>,
        record: Option<&mut SessionRecorder>,
        changes: &CodeChanges,
        stopped: bool,
    ) -> Exit {
        let program = &self.settings.program;
        let error = failure(ended, stopped);
        let mut exit = if error.is_some() { Exit::Failed } else { Exit::Done };
        if let Err(error) = ended {
            remark(&format!("{program}: {error:#}"));
        }
        let (model, usage) = match ended {
            Ok(ended) => {
                (ended.model.clone().or_else(|| self.choice.model.value.clone()), ended.outcome.total)
            }
            Err(_) => (None, Usage::default()),
        };
        if let Some(record) = record
            && let Err(error) = record.close(model, &usage, changes.clone(), error)
        {
            remark(&format!("{program}: cannot close session {id}: {error:#}"));
            exit = Exit::Failed;
        }
        exit
    }
}

/// Listens to one turn of any agent.
pub(crate) struct RunListener {
    pub(crate) live: AgentSession,
    /// The log, where the agent keeps none itself.
    pub(crate) record: Option<SessionRecorder>,
    pub(crate) printer: Printer,
    pub(crate) seen: SeenHandle,
    pub(crate) interrupts: Interrupts,
    /// Whether the agent was told to stop.
    pub(crate) stopped: bool,
}

impl RunListener {
    pub(crate) async fn listen(&mut self, prompt: String) -> Result<TurnEnded> {
        let gone = || anyhow!("the agent's session ended before its turn did");
        self.live.commands.send(SessionCommand::Send(prompt)).await.map_err(|_| gone())?;
        loop {
            tokio::select! {
                news = self.live.news.recv() => match news.ok_or_else(gone)? {
                    SessionNews::Event(event) => self.hear(&event).await?,
                    SessionNews::TurnEnded(ended) => return Ok(*ended),
                },
                // A second signal changes nothing: the agent is being ended, and that has its own time-out.
                () = self.interrupts.next() => self.stop().await,
            }
            if self.seen.with(|seen| seen.is_unheard()) {
                self.stop().await;
            }
        }
    }

    async fn stop(&mut self) {
        if !std::mem::replace(&mut self.stopped, true) {
            // A session that is gone needs no order to stop.
            let _ = self.live.commands.send(SessionCommand::Abort).await;
        }
    }

    /// Lets the session end, and shows what it says at that if that is wanted. Whoever interrupts now does not wait for
    /// what is left: everything that happened is on record.
    ///
    /// Returns the changes of an agent that counts them itself.
    pub(crate) async fn drain(&mut self, shows: bool, hurry: &CancellationToken) -> Option<CodeChanges> {
        let _ = self.live.commands.send(SessionCommand::Stop).await;
        let mut changes = None;
        loop {
            let news = tokio::select! {
                news = self.live.news.recv() => news,
                () = self.interrupts.next() => {
                    hurry.cancel();
                    continue;
                }
            };
            match news {
                Some(SessionNews::Event(event)) if shows => {
                    if let Body::SessionShutdown(shutdown) = event.body() {
                        changes = Some(shutdown.code_changes.clone());
                    }
                    self.printer.publish(&event);
                }
                Some(SessionNews::Event(_) | SessionNews::TurnEnded(_)) => {}
                None => return changes,
            }
        }
    }

    async fn hear(&mut self, event: &Event) -> Result<()> {
        if let Some(record) = &mut self.record {
            record.append(event)?;
        }
        self.printer.publish(event);
        // Nobody can be asked here.
        let answer = match event.body() {
            Body::PermissionRequested(asked) => (
                asked.request_id.clone(),
                AgentAnswer::Permission(PermissionReply::Denied { feedback: None }),
            ),
            Body::UserInputRequested(asked) => {
                (asked.request_id.clone(), AgentAnswer::Question(NOBODY.to_owned()))
            }
            _ => return Ok(()),
        };
        let (request_id, answer) = answer;
        let _ = self.live.commands.send(SessionCommand::Answer { request_id, answer }).await;
        Ok(())
    }
}

fn run_usage(usage: &Usage, code_changes: CodeChanges, duration_ms: u64) -> RunUsage {
    RunUsage {
        premium_requests: usage.premium_requests.count().unwrap_or(0),
        total_api_duration_ms: usage.api_ms.count().unwrap_or(0),
        session_duration_ms: duration_ms,
        code_changes,
        input_tokens: usage.input_tokens.count(),
        output_tokens: usage.output_tokens.count(),
    }
}

fn summary(usage: &Usage, duration_ms: u64, program: &str, id: &SessionId) -> String {
    let count = |tokens: Option<u64>| tokens.map_or_else(|| "?".to_owned(), |tokens| tokens.to_string());
    let cost = usage.cost_usd.value().map(|cost| format!("Cost       ${cost:.4}\n")).unwrap_or_default();
    format!(
        "\nDuration   {}s\nTokens     \u{2191} {} \u{2022} \u{2193} {}\n{cost}Resume     {program} run --resume={id}",
        duration_ms / 1000,
        count(usage.input_tokens.count()),
        count(usage.output_tokens.count()),
    )
}
