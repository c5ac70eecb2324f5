//! One prompt, run to its end: the `-p` contract. It is `run` with our own agent: the same listener hears the session, and
//! nobody can be asked.

use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use hangar_agent::session::{State, iso};
use hangar_engine::commands;
use hangar_protocol::result::{ResultKind, RunResult};
use hangar_runtimes::outcome::{ErrorKind, TurnResult};
use hangar_runtimes::runtime::{TurnEnded, TurnLimits};
use hangar_store::{SessionId, Store};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::{OutputFormat, RunArgs};
use crate::exit::Exit;
use crate::opening::{Questions, Resumed, SessionOrder};
use crate::output::{Printer, SeenHandle, remark};
use crate::runtimes::native::{self, FirstMessage, NativeOrder, NativeSession};
use crate::runtimes::run::RunListener;
use crate::selection;
use crate::settings::Settings;
use crate::usage;

/// Largest prompt that is read from standard input.
const MAX_PROMPT: u64 = 16 << 20;

/// Work after the prompt's run, beside its answer.
struct Afterwards {
    output_format: OutputFormat,
    silent: bool,
    all_events: bool,
    usage_output_file: Option<PathBuf>,
    share: Option<String>,
}

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

/// The session that flags ask for.
fn order(settings: &Settings, args: RunArgs, text: &str) -> Result<NativeOrder> {
    let first = FirstMessage { fleet: args.fleet, implements_plan: args.implements_plan() };
    let session = SessionOrder {
        selection: selection::select(&Store::new(&settings.home), &args)?,
        directory: args.directory.clone(),
        system: None,
        // A slash command is no name.
        named_after: Some(text.to_owned()).filter(|text| commands::parse(text).is_none()),
        attachments: args.attachment.clone(),
        resumed: Resumed::AsNew,
        questions: Questions::Nobody,
        client: None,
        records: Vec::new(),
        notes_script: true,
        args: Arc::new(args),
    };
    // One prompt takes as long as it takes.
    let limits = TurnLimits { turn: None, stall: None, startup: None, steps: None, budget_usd: None };
    Ok(NativeOrder { session, limits, first, warnings: Vec::new() })
}

async fn drive(settings: &Settings, args: RunArgs, text: String) -> Result<Exit> {
    let started = Instant::now();
    let seen = SeenHandle::default();
    let printer = Printer::new(args.output_format, args.silent, args.all_events, seen.clone());
    // Signals are caught before the first effect, so that none can end the process without a result.
    let interrupts = Interrupts::new()?;
    let after = Afterwards {
        output_format: args.output_format,
        silent: args.silent,
        all_events: args.all_events,
        usage_output_file: args.usage_output_file.clone(),
        share: args.share.clone(),
    };
    let NativeSession { live, id, cwd, store, last, hurry } =
        native::open(settings.clone(), order(settings, args, &text)?)?;
    let mut listener =
        RunListener { live, record: None, printer, seen: seen.clone(), interrupts, stopped: false };
    let ended = listener.listen(text).await;
    listener.drain(true, &hurry).await;
    let state = last.await.context("the session ended without a state")?;
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let mut exit = if failure(&ended, listener.stopped).is_some() { Exit::Failed } else { Exit::Done };
    let session = SharedSession { id, cwd, store };
    let problems = [ended.map(drop), write_usage(&after, &state), share(settings, &after, &session)];
    for problem in problems.into_iter().filter_map(Result::err) {
        remark(&format!("{}: {problem:#}", settings.program));
        exit = Exit::Failed;
    }
    if after.output_format == OutputFormat::Text && !after.silent {
        remark(&usage::summary(&state, duration_ms, &settings.program));
    }
    let result = RunResult {
        kind: ResultKind::Result,
        timestamp: iso(jiff::Timestamp::now()),
        session_id: state.session_id.clone(),
        exit_code: exit.code(),
        usage: usage::of_run(&state, duration_ms),
    };
    let mut printer = Printer::new(after.output_format, after.silent, after.all_events, seen);
    printer.result(&result);
    Ok(printer.exit(exit))
}

/// Why a turn failed, if it did. One that we were told to stop did not; an agent that somebody else stopped has not done its
/// work.
pub(crate) fn failure(ended: &Result<TurnEnded>, stopped: bool) -> Option<String> {
    match ended {
        Err(error) => Some(format!("{error:#}")),
        Ok(TurnEnded { outcome, .. }) => match &outcome.end {
            TurnResult::Completed => None,
            TurnResult::Failed(failure) if failure.kind == ErrorKind::TurnCancelled && stopped => None,
            TurnResult::Failed(failure) => Some(failure.message.clone()),
        },
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

fn write_usage(after: &Afterwards, state: &State) -> Result<()> {
    let Some(path) = &after.usage_output_file else { return Ok(()) };
    let document = usage::document(state);
    let text = serde_json::to_string_pretty(&document)?;
    std::fs::write(path, text + "\n").with_context(|| format!("cannot write usage to {}", path.display()))
}

/// A session whose transcript may be wanted.
struct SharedSession {
    id: SessionId,
    cwd: PathBuf,
    store: Store,
}

fn share(settings: &Settings, after: &Afterwards, session: &SharedSession) -> Result<()> {
    let Some(target) = &after.share else { return Ok(()) };
    let SharedSession { id, cwd, store } = session;
    let path = match target.as_str() {
        "" => PathBuf::from(format!("{}-session-{id}.md", settings.program)),
        path => PathBuf::from(path),
    };
    let path = cwd.join(path);
    let write = || -> Result<()> {
        let events = store.read(id)?;
        let mut file = std::io::BufWriter::new(std::fs::File::create(&path)?);
        hangar_store::export_markdown(events, &mut file)?;
        std::io::Write::flush(&mut file)?;
        Ok(())
    };
    write().with_context(|| format!("cannot share the session to {}", path.display()))?;
    remark(&format!("Session exported to: {}", path.display()));
    Ok(())
}
