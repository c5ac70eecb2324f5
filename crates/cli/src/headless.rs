//! One prompt, run to its end: the `-p` contract.

use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use hangar_agent::agents::fleet;
use hangar_agent::driver::EventSink;
use hangar_agent::prompt::notices;
use hangar_agent::session::{Command, Input, Origin, Prompt, iso};
use hangar_agent::tool::InvokedSkill;
use hangar_mcp::Running;
use hangar_protocol::data::{CompactionTrigger, Mode};
use hangar_protocol::result::{ResultKind, RunResult};
use hangar_store::Store;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::{OutputFormat, RunArgs};
use crate::compose::{self, Opened, SessionRequest};
use crate::exit::Exit;
use crate::flags;
use crate::output::{Printer, SeenHandle, remark};
use crate::selection;
use crate::settings::Settings;
use crate::usage;

/// Largest prompt that is read from standard input.
const MAX_PROMPT: u64 = 16 << 20;
/// How long a finished run waits for commands that it left in the background.
const DEFAULT_TASK_WAIT: u64 = 600;
/// How long the news that a background command has ended may take to arrive.
const NEWS_PATIENCE: Duration = Duration::from_secs(1);

pub(crate) fn run(settings: &Settings, args: RunArgs) -> Result<Exit> {
    let prompt = read_prompt(args.prompt.as_deref().or(args.interactive.as_deref()))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let exit = runtime.block_on(drive(settings, args, prompt));
    // Whatever still blocks a worker thread (a search that was cancelled) must not hold the exit up.
    runtime.shutdown_timeout(Duration::from_millis(100));
    exit
}

/// The prompt that was typed, or what is on standard input.
pub(crate) fn read_prompt(typed: Option<&str>) -> Result<String> {
    let text = match typed {
        Some(text) => text.to_owned(),
        None if std::io::stdin().is_terminal() => String::new(),
        None => {
            let mut bytes = Vec::new();
            std::io::stdin()
                .lock()
                .take(MAX_PROMPT + 1)
                .read_to_end(&mut bytes)
                .context("cannot read standard input")?;
            if bytes.len() as u64 > MAX_PROMPT {
                bail!("the prompt on standard input is larger than {} MB", MAX_PROMPT >> 20);
            }
            String::from_utf8_lossy(&bytes).into_owned()
        }
    };
    if text.trim().is_empty() {
        bail!("no prompt: give one with -p or on standard input");
    }
    Ok(text)
}

/// What was typed, as a session that is wanted.
fn request(
    settings: &Settings,
    args: &RunArgs,
    prompt: &str,
    sink: Box<dyn EventSink>,
) -> Result<SessionRequest> {
    Ok(SessionRequest {
        host: flags::host(settings, args)?,
        spec: flags::spec(args),
        selection: selection::select(&Store::new(&settings.home), args)?,
        prompt: Some(prompt.to_owned()),
        attachments: args.attachment.clone(),
        sink,
        hooks: None,
        away: None,
    })
}

async fn drive(settings: &Settings, args: RunArgs, text: String) -> Result<Exit> {
    let started = Instant::now();
    let seen = SeenHandle::default();
    let printer = Printer::new(args.output_format, args.silent, args.all_events, seen.clone());
    // Signals are caught before the first effect, so that none can end the process without a result.
    let mut interrupts = Interrupts::new()?;
    let task_wait = settings.number("COPILOT_TASK_WAIT_TIMEOUT_SECONDS")?.unwrap_or(DEFAULT_TASK_WAIT);
    let checked = compose::check(settings, request(settings, &args, &text, Box::new(printer))?)?;
    if checked.is_scripted() {
        remark("note: the scripted model answers; no real model is asked");
    }
    let mut composed = checked.open()?;
    let attachments = std::mem::take(&mut composed.attachments);
    let filter = composed.filter.clone();
    let mut servers = match composed.mcp.take() {
        None => None,
        Some((host, news)) => {
            let mut servers = Running::new(host, news, filter, &composed.driver);
            servers.start(&mut composed.driver).await?;
            Some(servers)
        }
    };
    for input in std::mem::take(&mut composed.opening) {
        composed.driver.advance(input)?;
    }
    let input = match WantedSummary::of(&text) {
        Some(summary) => {
            Command::Compact { instructions: summary.focus, trigger: Some(CompactionTrigger::Manual) }
        }
        None => {
            let preface =
                composed.skills.called_by(&text).map(InvokedSkill::into_preface).unwrap_or_default();
            let prompt = if args.fleet { fleet::prompt(Some(&text)) } else { Prompt::user(text.clone()) };
            Command::Send(Prompt { attachments, preface, ..prompt })
        }
    };
    let compacts = matches!(input, Command::Compact { .. });
    composed.driver.advance(Input::Command(input))?;

    let task_wait = Duration::from_secs(task_wait);
    let mut ended = match compacts {
        true => until_compacted(&mut composed, &seen, &mut interrupts).await,
        false => until_idle(&mut composed, &mut servers, &seen, &mut interrupts, task_wait).await,
    };
    let planned = matches!(ended, Ok(Ended::Idle)) && seen.with(|seen| seen.totals.error.is_none());
    if planned && args.implements_plan() && !compacts {
        composed.driver.advance(Input::Command(Command::SetMode(Mode::Autopilot)))?;
        let go =
            Prompt { origin: Origin::Source("plan".to_owned()), ..Prompt::user(notices::IMPLEMENT_PLAN) };
        composed.driver.advance(Input::Command(Command::Send(go)))?;
        ended = until_idle(&mut composed, &mut servers, &seen, &mut interrupts, task_wait).await;
    }
    let failure = ended.err();
    let error = failure
        .as_ref()
        .map(|error| format!("{error:#}"))
        .or_else(|| seen.with(|seen| seen.totals.error.clone()));
    let closing = tokio::select! {
        closed = composed.driver.close(error.clone()) => closed,
        // Whoever asks again does not wait for what is left: everything that happened is on record.
        () = interrupts.next() => Ok(()),
    };
    if let Some(servers) = &servers {
        servers.shutdown().await;
    }
    composed.shells.shutdown().await;

    let state = composed.driver.session().state().clone();
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let refused = seen.with(|seen| seen.refused);
    let mut exit = if error.is_some() || refused { Exit::Failed } else { Exit::Done };
    let after = [
        failure.map_or(Ok(()), Err),
        closing.map_err(anyhow::Error::from),
        write_usage(&args, &state),
        share(settings, &args, &composed),
    ];
    for problem in after.into_iter().filter_map(Result::err) {
        remark(&format!("{}: {problem:#}", settings.program));
        exit = Exit::Failed;
    }
    if args.output_format == OutputFormat::Text && !args.silent {
        remark(&usage::summary(&state, duration_ms, &settings.program));
    }
    let result = RunResult {
        kind: ResultKind::Result,
        timestamp: iso(jiff::Timestamp::now()),
        session_id: state.session_id.clone(),
        exit_code: exit.code(),
        usage: usage::of_run(&state, duration_ms),
    };
    Printer::new(args.output_format, args.silent, args.all_events, seen).result(&result);
    Ok(exit)
}

/// The prompt is the command that asks for a summary, and no prompt.
struct WantedSummary {
    /// What it is to be about most of all.
    focus: Option<String>,
}

impl WantedSummary {
    fn of(text: &str) -> Option<Self> {
        let rest = text.trim().strip_prefix("/compact")?;
        if !rest.is_empty() && !rest.starts_with(char::is_whitespace) {
            return None;
        }
        let focus = rest.trim();
        Some(Self { focus: (!focus.is_empty()).then(|| focus.to_owned()) })
    }
}

/// Waits for the summary that was asked for. That there is none is a failure.
async fn until_compacted(
    composed: &mut Opened,
    seen: &SeenHandle,
    interrupts: &mut Interrupts,
) -> Result<Ended> {
    while composed.driver.session().is_compacting() {
        tokio::select! {
            going = composed.driver.turn() => if !going? { break },
            () = interrupts.next() => return Ok(Ended::Stopped),
        }
    }
    match seen.with(|seen| seen.summary.take()) {
        Some(Ok(())) => Ok(Ended::Idle),
        Some(Err(problem)) => bail!("the conversation could not be summed up: {problem}"),
        None => bail!("there is nothing to sum up: no part of the conversation is without a summary"),
    }
}

/// How a wait for the session ended.
enum Ended {
    Idle,
    /// A signal came, or nobody reads any more.
    Stopped,
}

/// Runs until nothing is under way, in the session or in the background.
async fn until_idle(
    composed: &mut Opened,
    servers: &mut Option<Running>,
    seen: &SeenHandle,
    interrupts: &mut Interrupts,
    task_wait: Duration,
) -> Result<Ended> {
    let mut background_deadline = None;
    loop {
        if composed.driver.session().is_idle() {
            let now = tokio::time::Instant::now();
            if composed.shells.has_background_work() || !composed.driver.is_idle() {
                background_deadline.get_or_insert(now + task_wait);
            } else if background_deadline.is_some() {
                // What was waited for has ended; its news is on the way.
                background_deadline = Some(now + NEWS_PATIENCE);
            } else {
                return Ok(Ended::Idle);
            }
        } else {
            background_deadline = None;
        }
        let deadline = async {
            match background_deadline {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let news = async {
            match servers.as_mut() {
                Some(servers) => servers.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            news = news => {
                if let Some(servers) = servers.as_mut() {
                    servers.take(news, &mut composed.driver)?;
                }
            }
            going = composed.driver.turn() => if !going? { return Ok(Ended::Idle) },
            () = interrupts.next() => {
                composed.driver.advance(Input::Command(Command::Abort { reason: "user_initiated".to_owned() }))?;
                return Ok(Ended::Stopped);
            }
            () = deadline => return Ok(Ended::Idle),
        }
        if seen.with(|seen| seen.broken_pipe) {
            composed.driver.advance(Input::Command(Command::Abort { reason: "user_abort".to_owned() }))?;
            return Ok(Ended::Stopped);
        }
    }
}

/// SIGINT and SIGTERM.
pub(crate) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
}

impl Interrupts {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).context("cannot catch SIGINT")?,
            terminate: signal(SignalKind::terminate()).context("cannot catch SIGTERM")?,
        })
    }

    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

fn write_usage(args: &RunArgs, state: &hangar_agent::session::State) -> Result<()> {
    let Some(path) = &args.usage_output_file else { return Ok(()) };
    let document = usage::document(state);
    let text = serde_json::to_string_pretty(&document)?;
    std::fs::write(path, text + "\n").with_context(|| format!("cannot write usage to {}", path.display()))
}

fn share(settings: &Settings, args: &RunArgs, composed: &Opened) -> Result<()> {
    let Some(target) = &args.share else { return Ok(()) };
    let id = &composed.id;
    let path = match target.as_str() {
        "" => PathBuf::from(format!("{}-session-{id}.md", settings.program)),
        path => PathBuf::from(path),
    };
    let path = composed.cwd.join(path);
    let write = || -> Result<()> {
        let events = composed.store.read(id)?;
        let mut file = std::io::BufWriter::new(std::fs::File::create(&path)?);
        hangar_store::export_markdown(events, &mut file)?;
        std::io::Write::flush(&mut file)?;
        Ok(())
    };
    write().with_context(|| format!("cannot share the session to {}", path.display()))?;
    remark(&format!("Session exported to: {}", path.display()));
    Ok(())
}
