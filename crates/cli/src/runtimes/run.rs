//! `hangar run`: one prompt, run to its end by any agent. Output and exit code follow the `-p` contract. Without a prompt in a
//! terminal, the interactive view opens over the agent.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use hangar_agent::driver::EventSink;
use hangar_agent::session::iso;
use hangar_jobs::prompt_run::PromptWork;
use hangar_protocol::data::CodeChanges;
use hangar_protocol::result::{ResultKind, RunResult};
use hangar_protocol::{Body, Event, EventKind};
use hangar_registry::changes::record_turn;
use hangar_runtimes::runtime::{
    AgentCard, AgentSession, PermissionReply, SessionCommand, SessionNews, TreeFollower, TurnEnded,
};
use hangar_runtimes::usage::AgentUsage;
use hangar_store::{SessionId, Store};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::AgentRuntimes;
use super::args::RunWithArgs;
use super::choice::RunChoice;
use super::plan::{self, SessionPlan};
use super::record::SessionRecorder;
use super::refused::NamedError;
use crate::args::OutputFormat;
use crate::commands::print_line;
use crate::exit::Exit;
use crate::headless::{Interrupts, failure, read_prompt};
use crate::jobs::background;
use crate::output::{OutputPrinter, SeenHandle, remark, result_of_nothing};
use crate::selection::{self, SessionSelection, Typed};
use crate::settings::Settings;
use crate::terminal;
use crate::usage::{self, Footer};

pub(crate) fn run(settings: &Settings, args: RunWithArgs) -> Result<Exit> {
    let json = args.output.output_format == OutputFormat::Json && !args.agent.explain;
    begin(settings, args).inspect_err(|error| {
        if json {
            let mut printer = OutputPrinter::new(OutputFormat::Json, true, false, SeenHandle::default());
            printer.publish(&NamedError::event(error));
            result_of_nothing(Exit::Failed);
        }
    })
}

fn begin(settings: &Settings, args: RunWithArgs) -> Result<Exit> {
    if args.agent.background {
        return in_background(settings, args);
    }
    if args.placement.fleet.is_some() {
        return crate::fleet::run(settings, args);
    }
    let runtimes = AgentRuntimes::assemble(settings)?;
    let store = Store::new(&settings.home);
    let typed = Typed {
        session_id: args.selection.session_id.as_deref(),
        resume: args.selection.resume.as_deref(),
        continue_last: args.selection.continue_last,
        name: args.selection.name.as_deref(),
    };
    let selection = selection::select(&store, typed)?;
    let plan = SessionPlan::make(&runtimes, &store, &args, selection)?;
    if args.agent.explain {
        return explain(&plan.choice, plan.runtime.card(), args.output.output_format);
    }
    if args.wants_terminal() && terminal::is_possible() {
        return terminal::run_agent(settings, args, runtimes, plan);
    }
    let prompt = read_prompt(args.input.prompt.as_deref())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let run = Run { settings, args, runtimes, store, plan };
    let exit = runtime.block_on(run.drive(prompt));
    runtime.shutdown_timeout(Duration::from_millis(100));
    exit
}

/// Puts the prompt into the queue.
fn in_background(settings: &Settings, args: RunWithArgs) -> Result<Exit> {
    let (agent, runtime) = (args.switches.agent, args.agent.runtime);
    if let (Some(agent), Some(runtime)) = (&agent, &runtime) {
        bail!("`--background` takes `--agent {agent}` or `--runtime {runtime}`, not both");
    }
    let work = PromptWork {
        prompt: read_prompt(args.input.prompt.as_deref())?,
        agent: agent.or(runtime),
        model: args.agent.model,
        directory: args.input.directory.unwrap_or_else(|| ".".into()),
    };
    background::start(settings, work, args.output.output_format)
}

fn explain(choice: &RunChoice, card: &AgentCard, format: OutputFormat) -> Result<Exit> {
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
    runtimes: AgentRuntimes,
    store: Store,
    plan: SessionPlan,
}

impl Run<'_> {
    async fn drive(self, prompt: String) -> Result<Exit> {
        let started = Instant::now();
        // Signals are caught before the first effect, so that none can end the process without a result.
        let mut interrupts = Interrupts::new()?;
        let seen = SeenHandle::default();
        let args = &self.args;
        let printer = OutputPrinter::new(
            args.output.output_format,
            args.output.silent,
            args.output.all_events,
            seen.clone(),
        );
        let mut printer = printer.with_beginning();
        let plan = &self.plan;
        let (id, name) = match &plan.selection {
            SessionSelection::New { id, name } => (id.clone(), name.clone()),
            SessionSelection::Resume(id) => (id.clone(), None),
        };
        let own_log = plan.own_log();
        let mut record = plan.take_up(&self.store)?;
        let mut order = plan.order(&self.runtimes, &self.store, args, record.as_ref())?;
        let rehearsal = plan::rehearsal(self.settings, args).await?;
        if let Some(rehearsal) = &rehearsal {
            remark("note: the scripted model answers; no real model is asked");
            plan.runtime.rehearse(&mut order, &rehearsal.stage);
        }
        let workspace = order.workspace.clone();
        let opened = tokio::select! {
            opened = plan.open(order) => opened,
            () = interrupts.next() => {
                if args.output.output_format == OutputFormat::Json {
                    result_of_nothing(Exit::Done);
                }
                return Ok(Exit::Done);
            }
        };
        let live = opened?;
        if let SessionSelection::Resume(id) = &plan.selection {
            // The first event has the id of the session, also in a run that resumes it.
            let begun = self.store.read_kinds(id, |kind| kind == EventKind::SessionStart)?.next();
            if let Some(Ok(event)) = begun {
                printer.publish(&event);
            }
        }
        if record.is_none() && !own_log {
            record =
                Some(plan.begin_record(&self.runtimes, &self.store, &workspace, name.as_deref(), &prompt)?);
        }
        let mut listener =
            OutputListener { live, record, printer, seen: seen.clone(), interrupts, stopped: false };
        let tree = listener.live.follow_tree();
        let ended = listener.listen(prompt).await;
        self.record_changes(&id, tree).await;
        let counted = listener.live.code_changes().await;
        let counts_changes = own_log || counted.is_some();
        let mut changes = counted.unwrap_or_default();
        if let Some(record) = &listener.record {
            changes = record.changes(changes);
        }
        let exit = self.conclude(&id, &ended, listener.record.as_mut(), &changes, listener.stopped);
        let counted = listener.drain(own_log, &CancellationToken::new()).await;
        let changes = counted.unwrap_or(changes);
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        // The log of our own agent has every call and its price.
        let usage = match usage::logged(&self.store, &id).filter(|_| own_log) {
            Some(totals) => usage::of_totals(&totals, duration_ms),
            None => {
                let used = ended.as_ref().map(|ended| ended.outcome.total).unwrap_or_default();
                usage::of_agent(&used, changes, duration_ms)
            }
        };
        if args.output.output_format == OutputFormat::Text && !args.output.silent {
            let resume = format!("{} run --resume={id}", self.settings.program);
            remark(&Footer { usage: &usage, counts_changes, resume }.to_string());
        }
        let result = RunResult {
            kind: ResultKind::Result,
            timestamp: iso(jiff::Timestamp::now()),
            session_id: id.to_string(),
            exit_code: exit.code(),
            usage,
        };
        let mut printer =
            OutputPrinter::new(args.output.output_format, args.output.silent, args.output.all_events, seen);
        printer.result(&result);
        Ok(printer.exit(exit))
    }

    /// Records the files that the turn has changed, for an agent that does not tell of them.
    async fn record_changes(&self, id: &SessionId, tree: Option<TreeFollower>) {
        let Some(mut tree) = tree else { return };
        let turn = usage::logged(&self.store, id).map_or(1, |totals| totals.prompts);
        let recorded = match tree.step().await {
            Ok(files) => record_turn(&self.store, id, turn, files).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = recorded {
            tracing::warn!(session = %id, %error, "the changes of the turn are not known");
        }
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
                (ended.model.clone().or_else(|| self.plan.choice.model.value.clone()), ended.outcome.total)
            }
            Err(_) => (None, AgentUsage::default()),
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
pub(crate) struct OutputListener {
    pub(crate) live: AgentSession,
    /// The log, where the agent keeps none itself.
    pub(crate) record: Option<SessionRecorder>,
    pub(crate) printer: OutputPrinter,
    pub(crate) seen: SeenHandle,
    pub(crate) interrupts: Interrupts,
    /// Whether the agent was told to stop.
    pub(crate) stopped: bool,
}

impl OutputListener {
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
            // A session that has ended needs no command to stop.
            let _ = self.live.commands.send(SessionCommand::Abort).await;
        }
    }

    /// Lets the session end, and prints its last events if `shows` is set. An interrupt ends the wait: everything that happened
    /// is logged already.
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
        self.live.answer_unattended(event, PermissionReply::Denied { feedback: None }).await;
        Ok(())
    }
}
