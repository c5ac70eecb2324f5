//! `hangar run --fleet`: places an order, and shows its events here. Ctrl+C aborts the turn where it runs.

use std::collections::VecDeque;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use hangar_agent::driver::EventSink;
use hangar_agent::session::iso;
use hangar_fleet::control::{Answer, ControlCommand};
use hangar_fleet::fold::SessionFold;
use hangar_fleet::log::{self, FleetLogReader, LogEntry, LogItem};
use hangar_fleet::order::{Labels, Order, OrderId, OrderWorkspace};
use hangar_fleet::placing;
use hangar_fleet::record::{FleetRecord, FleetTurnEnd, OrderEnd};
use hangar_fleet::work_queue::WorkQueue;
use hangar_fleet::{Broker, FleetError, VERSION};
use hangar_protocol::Event;
use hangar_protocol::result::{ResultKind, RunResult};
use hangar_store::SessionId;
use jiff::Timestamp;
use serde_json::Value;

use super::flags;
use super::worker::machine_name;
use crate::args::OutputFormat;
use crate::compose::working_dir;
use crate::credentials;
use crate::exit::Exit;
use crate::headless::{Interrupts, read_prompt};
use crate::output::{OutputPrinter, SeenHandle, remark};
use crate::redact;
use crate::runtimes::args::{RunOutputArgs, RunWithArgs};
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
    let mut wanted = flags::settings(args, &redactor)?;
    // Without rules about tools nothing is asked, as in `hangar run`.
    wanted.asks = is_attended(args) && !wanted.allow_tool.is_empty() && !wanted.allow_all_tools;
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
        workspace: workspace(&Wanted::of(args)?, &labels).await?,
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
        questions: VecDeque::new(),
    };
    // Before the order is placed, so that nothing is missed.
    let mut follow = FleetLogReader::open(&broker, &subject, fold.last).await?;
    let mut live = broker.live(&id).await?;
    placing::deliver(&broker, &WorkQueue::new(&broker), &order).await?;
    let mut patience = Some(tokio::time::Instant::now() + WAITING);
    let mut abort_at: Option<tokio::time::Instant> = None;
    let mut asking: Option<Asking> = None;
    let end = loop {
        if asking.is_none()
            && order.settings.asks
            && let Some((question, event)) = shown.questions.front()
        {
            asking = Some(Asking::start(question.clone(), event.clone()));
        }
        tokio::select! {
            answer = answered(&mut asking) => {
                let (question, answer) = answer;
                shown.questions.retain(|(asked, _)| *asked != question);
                if let Some(answer) = answer
                    && let Err(error) = broker.command(&id, ControlCommand::Answer { request: question, answer }).await
                {
                    remark(&format!("the answer came too late: {error}"));
                }
            }
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
    Ok(report(settings, &args.output, &id, seen, started, exit))
}

/// Prints the last lines of a run, and its result.
fn report(
    settings: &Settings,
    output: &RunOutputArgs,
    id: &SessionId,
    seen: SeenHandle,
    started: Instant,
    exit: Exit,
) -> Exit {
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
    printer.exit(exit)
}

/// The session: one of the fleet, or a new one.
fn session_id(args: &RunWithArgs) -> Result<SessionId> {
    let given = args.selection.resume.as_deref().or(args.selection.session_id.as_deref());
    match given {
        Some(text) => text.parse().with_context(|| format!("`{text}` is no id of a session of the fleet")),
        None => Ok(uuid::Uuid::new_v4().to_string().parse()?),
    }
}

/// What was said about the place where a session is to work.
pub(super) struct Wanted {
    pub(super) remote: Option<String>,
    pub(super) reference: Option<String>,
    /// Directory of the workers, if labels say which.
    pub(super) path: Option<PathBuf>,
    /// Directory here, whose remote is used if nothing else is said.
    pub(super) directory: PathBuf,
}

impl Wanted {
    fn of(args: &RunWithArgs) -> Result<Self> {
        let path = args.input.directory.clone();
        let is_theirs =
            path.as_ref().is_some_and(|path| path.is_absolute()) && !args.placement.label.is_empty();
        Ok(Self {
            remote: args.placement.remote.clone(),
            reference: args.placement.reference.clone(),
            directory: match args.placement.remote.is_some() || is_theirs {
                true => PathBuf::new(),
                false => working_dir(path.as_deref())?,
            },
            path,
        })
    }
}

/// Workspace of the session: a git remote, or a directory of the workers with the labels.
pub(super) async fn workspace(wanted: &Wanted, labels: &Labels) -> Result<OrderWorkspace> {
    let reference = wanted.reference.clone();
    if let Some(remote) = &wanted.remote {
        return Ok(OrderWorkspace::Git { remote: remote.clone(), reference });
    }
    if let (Some(path), false) = (&wanted.path, labels.is_empty())
        && path.is_absolute()
    {
        return Ok(OrderWorkspace::Path { path: path.clone() });
    }
    let directory = &wanted.directory;
    let git = credentials::git();
    let ask = async |words: &[&str]| {
        let tree = git.open(directory, hangar_git::Filters::Off).await.ok()?;
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

/// Whether a person sits at the terminal that places the order.
fn is_attended(args: &RunWithArgs) -> bool {
    let is_text = args.output.output_format == OutputFormat::Text && !args.output.silent;
    is_text
        && args.input.prompt.is_some()
        && std::io::stdin().is_terminal()
        && std::io::stderr().is_terminal()
}

/// A question that a person is reading.
struct Asking {
    question: String,
    answer: tokio::task::JoinHandle<Option<Answer>>,
}

impl Asking {
    fn start(question: String, event: Value) -> Self {
        Self { question, answer: tokio::task::spawn_blocking(move || read_answer(&event)) }
    }
}

/// The answer of the person, once there is one. Never, if nothing is asked.
async fn answered(asking: &mut Option<Asking>) -> (String, Option<Answer>) {
    let Some(current) = asking else { return std::future::pending().await };
    let answer = (&mut current.answer).await.ok().flatten();
    let question = std::mem::take(&mut current.question);
    *asking = None;
    (question, answer)
}

/// Asks on the terminal. `None` once nothing can be read there.
fn read_answer(event: &Value) -> Option<Answer> {
    let is_permission = event["type"] == "permission.requested";
    let shown = match is_permission {
        true => {
            format!("allow this? {}\n[y]es, for the [s]ession, or what to do instead: ", subject_of(event))
        }
        false => format!("{}\n> ", event["data"]["question"].as_str().unwrap_or("the agent asks")),
    };
    // What the model wrote must not act on the terminal.
    let shown: String = shown.chars().filter(|c| !c.is_control() || *c == '\n').collect();
    remark(&shown);
    let mut line = String::new();
    if std::io::stdin().read_line(&mut line).ok()? == 0 {
        return None;
    }
    let line = line.trim();
    Some(match (is_permission, line) {
        (true, "y" | "yes") => Answer::Once,
        (true, "s") => Answer::ForSession,
        (true, "" | "n" | "no") => Answer::Denied { feedback: None },
        (true, feedback) => Answer::Denied { feedback: Some(feedback.to_owned()) },
        (false, text) => Answer::Text { text: text.to_owned() },
    })
}

/// What a permission is asked for, in a line.
fn subject_of(event: &Value) -> String {
    let request = &event["data"]["permissionRequest"];
    let words = ["fullCommandText", "path", "fileName", "url", "toolName", "intention", "kind"];
    let found = words.iter().find_map(|word| request[word].as_str());
    found.unwrap_or("a call").to_owned()
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
    /// Questions that wait for an answer.
    questions: VecDeque<(String, Value)>,
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
            FleetRecord::Asked { id, event } => self.questions.push_back((id.clone(), event.clone())),
            FleetRecord::Settled { id } => self.questions.retain(|(asked, _)| asked != id),
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
