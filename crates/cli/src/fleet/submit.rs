//! `hangar run --fleet`: places an order, and shows its events here. Ctrl+C aborts the turn where it runs.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use hangar_agent::driver::EventSink;
use hangar_agent::session::iso;
use hangar_fleet::control::ControlCommand;
use hangar_fleet::facts::{FleetSessionState, SessionFact};
use hangar_fleet::fold::SessionFold;
use hangar_fleet::log::{self, FleetLogReader, LogEntry, LogItem};
use hangar_fleet::order::{Labels, Order, OrderId, OrderWorkspace};
use hangar_fleet::queue::OrderQueue;
use hangar_fleet::record::{FleetRecord, FleetTurnEnd, OrderEnd};
use hangar_fleet::work_queue::WorkQueue;
use hangar_fleet::{Broker, FleetError, VERSION};
use hangar_protocol::Event;
use hangar_protocol::result::{ResultKind, RunResult};
use hangar_store::SessionId;
use jiff::Timestamp;

use super::flags;
use super::worker::machine_name;
use crate::args::OutputFormat;
use crate::compose::working_dir;
use crate::credentials;
use crate::exit::Exit;
use crate::headless::{Interrupts, read_prompt};
use crate::output::{OutputPrinter, SeenHandle, remark};
use crate::redact;
use crate::runtimes::args::RunWithArgs;
use crate::settings::Settings;
use crate::usage::{self, Footer};

/// Time without a worker after which that is said.
const WAITING: Duration = Duration::from_secs(5);
/// Pause between two attempts to abort an order that nobody has taken yet.
const ABORT_AGAIN: Duration = Duration::from_secs(1);
/// Events that pass which are held until the log is as far, at most.
const MAX_HELD: usize = 4096;
/// Limits of the questions to git.
const GIT: hangar_git::CallLimits =
    hangar_git::CallLimits { time: Duration::from_secs(10), output: 64 << 10 };

pub(super) async fn run(settings: &Settings, args: &RunWithArgs) -> Result<Exit> {
    let started = Instant::now();
    let prompt = read_prompt(args.input.prompt.as_deref())?;
    let redactor = redact::of_machine(settings);
    let wanted = flags::settings(args, &redactor)?;
    let labels = Labels::parse(&args.placement.label)?;
    let mut interrupts = Interrupts::new()?;
    let broker = super::connect(settings, args.placement.fleet.as_deref(), "hangar run").await?;
    let id = session_id(args)?;
    let subject = log::session_subject(&broker, &id);
    let fold = SessionFold::of(&log::read(&broker, &subject).await?);
    if args.selection.resume.is_some() && fold.last == 0 {
        bail!("the fleet has no session {id}");
    }
    let order = Order {
        v: VERSION,
        id: OrderId(uuid::Uuid::new_v4().to_string()),
        session: id.to_string(),
        workspace: workspace(args, &labels).await?,
        labels,
        prompt: redactor.text(prompt),
        settings: wanted,
        from: machine_name(),
        placed: Timestamp::now(),
    };
    let seen = SeenHandle::default();
    let output = &args.output;
    let printer = OutputPrinter::new(output.output_format, output.silent, output.all_events, seen.clone());
    let mut shown = Shown {
        printer: printer.with_beginning(),
        lines: fold.events,
        held: VecDeque::new(),
        order: order.id.clone(),
        outcome: None,
        quiet: output.silent,
    };
    // Before the order is placed, so that nothing is missed.
    let mut follow = FleetLogReader::open(&broker, &subject, fold.last).await?;
    let mut live = broker.live(&id).await?;
    place(&broker, &id, &order).await?;
    let mut patience = Some(tokio::time::Instant::now() + WAITING);
    let mut abort_at: Option<tokio::time::Instant> = None;
    let end = loop {
        tokio::select! {
            entry = follow.next() => {
                let Some(entry) = entry? else { bail!("the connection to the fleet was closed") };
                patience = None;
                if let Some(end) = shown.entry(&entry) {
                    break end;
                }
            }
            Some((after, event)) = live.next() => shown.live(after, event),
            () = until(patience) => {
                patience = None;
                remark("the order waits for a worker; `hangar workers` lists them");
            }
            () = until(abort_at) => abort_at = abort(&broker, &id).await?,
            () = interrupts.next() => match abort_at {
                None => abort_at = abort(&broker, &id).await?,
                Some(_) => {
                    remark(&format!("the order stays in the fleet: session {id}"));
                    return Ok(Exit::Done);
                }
            },
        }
        if seen.with(|seen| seen.is_unheard()) {
            let _ = broker.command(&id, ControlCommand::Abort).await;
            return Ok(Exit::Done);
        }
    };
    let failure = failure(end, shown.outcome.as_ref());
    if let Some(failure) = &failure {
        remark(&format!("{}: {failure}", settings.program));
    }
    let exit = if failure.is_some() { Exit::Failed } else { Exit::Done };
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let usage = seen.with(|seen| usage::of_totals(&seen.totals, duration_ms));
    if output.output_format == OutputFormat::Text && !output.silent {
        let resume = format!("{} run --fleet --resume={id}", settings.program);
        remark(&Footer { usage: &usage, counts_changes: true, resume }.to_string());
    }
    let result = RunResult {
        kind: ResultKind::Result,
        timestamp: iso(Timestamp::now()),
        session_id: id.to_string(),
        exit_code: exit.code(),
        usage,
    };
    let mut printer = OutputPrinter::new(output.output_format, output.silent, output.all_events, seen);
    printer.result(&result);
    Ok(printer.exit(exit))
}

/// The session: one of the fleet, or a new one.
fn session_id(args: &RunWithArgs) -> Result<SessionId> {
    let given = args.selection.resume.as_deref().or(args.selection.session_id.as_deref());
    match given {
        Some(text) => text.parse().with_context(|| format!("`{text}` is no id of a session of the fleet")),
        None => Ok(uuid::Uuid::new_v4().to_string().parse()?),
    }
}

/// Workspace of the session: a git remote, or a directory of the workers with the labels.
async fn workspace(args: &RunWithArgs, labels: &Labels) -> Result<OrderWorkspace> {
    let reference = args.placement.reference.clone();
    if let Some(remote) = &args.placement.remote {
        return Ok(OrderWorkspace::Git { remote: remote.clone(), reference });
    }
    if let (Some(path), false) = (&args.input.directory, labels.is_empty())
        && path.is_absolute()
    {
        return Ok(OrderWorkspace::Path { path: path.clone() });
    }
    let directory = working_dir(args.input.directory.as_deref())?;
    let git = credentials::git();
    let ask = async |words: &[&str]| {
        let tree = git.open(&directory, hangar_git::Filters::Off).await.ok()?;
        let answer = tree.run(words, GIT).await.ok()?;
        (answer.code == 0).then(|| answer.text()).filter(|text| !text.is_empty())
    };
    let Some(remote) = ask(&["remote", "get-url", "origin"]).await else {
        bail!(
            "{} has no git remote `origin` that a worker could work on; give --remote URL, or -C DIR and a --label of workers \
             that have the directory",
            directory.display()
        );
    };
    let reference = match reference {
        Some(reference) => Some(reference),
        None => ask(&["rev-parse", "--abbrev-ref", "HEAD"]).await.filter(|branch| branch != "HEAD"),
    };
    if ask(&["status", "--porcelain"]).await.is_some() {
        remark("note: changes that are not pushed stay on this machine");
    }
    Ok(OrderWorkspace::Git { remote, reference })
}

/// Gives the message to the owner of the session, or places an order for it.
async fn place(broker: &Broker, id: &SessionId, order: &Order) -> Result<()> {
    let send = ControlCommand::Send { id: order.id.0.clone(), text: order.prompt.clone() };
    match broker.command(id, send).await {
        Ok(()) => return Ok(()),
        Err(FleetError::NoOwner(_)) => {}
        // The owner may have accepted it, or be gone. The id makes the order the same message.
        Err(error) => tracing::debug!(%error, "the owner did not answer"),
    }
    WorkQueue::new(broker).put(order).await?;
    let title = order.prompt.lines().next().unwrap_or_default().chars().take(80).collect();
    let fact = SessionFact {
        session: id.to_string(),
        state: FleetSessionState::Queued,
        worker: None,
        title,
        remote: match &order.workspace {
            OrderWorkspace::Git { remote, .. } => Some(remote.clone()),
            OrderWorkspace::Path { .. } => None,
        },
        at: Timestamp::now(),
        why: None,
    };
    // The worker may have been faster; then its fact is the newer one.
    if broker.fact::<SessionFact>(id.as_str()).await?.is_none() {
        broker.put_fact(&fact).await?;
    }
    Ok(())
}

/// Aborts the turn. The time of the next attempt, if nobody has the session yet.
async fn abort(broker: &Broker, id: &SessionId) -> Result<Option<tokio::time::Instant>> {
    let again = tokio::time::Instant::now() + ABORT_AGAIN;
    match broker.command(id, ControlCommand::Abort).await {
        // It stays set, so that a second signal ends the wait.
        Ok(()) => Ok(Some(again + Duration::from_secs(3600))),
        Err(FleetError::NoOwner(_)) => Ok(Some(again)),
        Err(error) => Err(error.into()),
    }
}

async fn until(at: Option<tokio::time::Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// How the wait for the order ended.
enum End {
    /// The turn of the message has ended, and the owner goes on with others.
    Turn,
    Released(OrderEnd),
}

/// Sentence about what went wrong.
fn failure(end: End, outcome: Option<&FleetTurnEnd>) -> Option<String> {
    match (end, outcome) {
        (End::Released(OrderEnd::Parked { why }), _) => Some(format!("the order was given up: {why}")),
        (_, Some(FleetTurnEnd::Failed { message })) => Some(message.clone()),
        (_, Some(FleetTurnEnd::Completed | FleetTurnEnd::Cancelled)) => None,
        (_, None) => Some("the session was released before the turn ended".to_owned()),
    }
}

/// Output of the session: what was shown, and what is still to be shown.
struct Shown {
    printer: OutputPrinter,
    /// Lines of the log that are here.
    lines: u64,
    /// Events that pass which belong after lines that are not here yet.
    held: VecDeque<(u64, Vec<u8>)>,
    order: OrderId,
    outcome: Option<FleetTurnEnd>,
    quiet: bool,
}

impl Shown {
    fn entry(&mut self, entry: &LogEntry) -> Option<End> {
        match &entry.item {
            LogItem::Events(lines) => {
                for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                    self.print(line);
                    self.lines += 1;
                    self.catch_up();
                }
            }
            LogItem::Record(record) => {
                if let Some(end) = self.record(record) {
                    return Some(end);
                }
            }
        }
        None
    }

    /// Shows the events that pass which belong here. Those that came too late are dropped: the log has the whole answer.
    fn catch_up(&mut self) {
        while self.held.front().is_some_and(|(after, _)| *after <= self.lines)
            && let Some((after, event)) = self.held.pop_front()
        {
            if after == self.lines {
                self.print(&event);
            }
        }
    }

    fn record(&mut self, record: &FleetRecord) -> Option<End> {
        let note = |text: String| {
            if !self.quiet {
                remark(&text);
            }
        };
        match record {
            FleetRecord::Claimed { worker, .. } => note(format!("\u{25cf} worker {worker}")),
            FleetRecord::NotKept { why } => note(format!("the work could not be pushed: {why}")),
            FleetRecord::Kept { reference, .. } => note(format!("\u{25cf} kept as {reference}")),
            FleetRecord::BegunAnew { why } => note(format!("the agent begins anew: {why}")),
            FleetRecord::Trouble { why } => note(format!("the worker could not go on: {why}")),
            FleetRecord::TurnEnded { message, outcome, .. } if *message == self.order.0 => {
                self.outcome = Some(outcome.clone());
            }
            FleetRecord::TurnBegan { .. } if self.outcome.is_some() => return Some(End::Turn),
            FleetRecord::Released { order, end, .. } => {
                let over = *order == self.order || self.outcome.is_some();
                if over && *end != OrderEnd::HandedOver {
                    return Some(End::Released(end.clone()));
                }
            }
            FleetRecord::Message { .. } | FleetRecord::TurnBegan { .. } | FleetRecord::TurnEnded { .. } => {}
        }
        None
    }

    fn live(&mut self, after: u64, event: Vec<u8>) {
        if self.held.len() == MAX_HELD {
            self.held.pop_front();
        }
        self.held.push_back((after, event));
        self.catch_up();
    }

    fn print(&mut self, line: &[u8]) {
        if let Ok(Ok(event)) = std::str::from_utf8(line).map(Event::parse) {
            self.printer.publish(&event);
        }
    }
}
