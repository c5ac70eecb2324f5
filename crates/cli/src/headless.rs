//! One prompt, run to its end: the `-p` contract. It is `run` with our own agent: the same listener hears the session, and
//! there is nobody to ask.

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use hangar_agent::session::{ConversationState, iso};
use hangar_engine::commands;
use hangar_protocol::result::{ResultKind, RunResult};
use hangar_runtimes::outcome::{ErrorKind, TurnResult};
use hangar_runtimes::runtime::{TurnEnded, TurnLimits};
use hangar_store::{SessionId, Store};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::{OutputFormat, RunArgs};
use crate::compose::OutputFile;
use crate::exit::Exit;
use crate::opening::{Questions, Resumed, SessionOrder};
use crate::output::{OutputPrinter, SeenHandle, remark};
use crate::runtimes::native::{self, FirstMessage, NativeOrder, NativeSession};
use crate::runtimes::run::OutputListener;
use crate::selection;
use crate::settings::Settings;
use crate::usage::{self, Footer};

/// Largest prompt that is read from standard input.
const MAX_PROMPT: u64 = 16 << 20;

/// Output that is written after the run.
struct Afterwards {
    output_format: OutputFormat,
    silent: bool,
    all_events: bool,
    usage_output_file: Option<PathBuf>,
    share: Option<String>,
}

impl Afterwards {
    fn of(args: &RunArgs) -> Result<Self> {
        let usage_output_file = args.output.usage_output_file.as_deref().map(std::path::absolute).transpose();
        Ok(Self {
            output_format: args.output.output_format,
            silent: args.output.silent,
            all_events: args.output.all_events,
            usage_output_file: usage_output_file.context("the current directory is gone")?,
            share: args.output.share.clone(),
        })
    }

    /// The files that are written.
    fn files(&self, program: &str, id: &SessionId) -> Vec<OutputFile> {
        let usage =
            self.usage_output_file.clone().map(|path| OutputFile { flag: "--usage-output-file", path });
        let share = self.transcript(program, id).map(|path| OutputFile { flag: "--share", path });
        usage.into_iter().chain(share).collect()
    }

    /// Path of the transcript, in the directory that the session works in.
    fn transcript(&self, program: &str, id: &SessionId) -> Option<PathBuf> {
        Some(match self.share.as_deref()? {
            "" => PathBuf::from(format!("{program}-session-{id}.md")),
            path => PathBuf::from(path),
        })
    }
}

pub(crate) fn run(settings: &Settings, args: RunArgs) -> Result<Exit> {
    let prompt = read_prompt(args.input.prompt.as_deref().or(args.input.interactive.as_deref()))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let exit = runtime.block_on(drive(settings, args, prompt));
    // A worker thread that is still blocked (by a cancelled search) must not delay the exit.
    runtime.shutdown_timeout(Duration::from_millis(100));
    exit
}

/// Prompt from the command line, or from standard input.
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
        bail!("no prompt: give one with -p or on standard input; --help says what else can be done");
    }
    Ok(text)
}

/// Order for the session that the flags describe.
fn order(settings: &Settings, args: RunArgs, text: &str, after: &Afterwards) -> Result<NativeOrder> {
    let first = FirstMessage { fleet: args.agents.fleet, implements_plan: args.implements_plan() };
    let selection = selection::select(&Store::new(&settings.home), &args)?;
    let session = SessionOrder {
        outputs: after.files(&settings.program, selection.id()),
        selection,
        directory: args.input.directory.clone(),
        system: None,
        // A slash command is no name.
        named_after: Some(text.to_owned()).filter(|text| commands::parse(text).is_none()),
        attachments: args.input.attachment.clone(),
        resumed: Resumed::AsNew,
        questions: Questions::Nobody,
        client: None,
        records: Vec::new(),
        notes_script: true,
        is_queued: false,
        args: Arc::new(args),
    };
    // One prompt has no time limit.
    let limits = TurnLimits {
        turn: None,
        stall: None,
        tool: None,
        progress: None,
        stop_without_progress: false,
        startup: None,
        steps: None,
        budget_usd: None,
    };
    Ok(NativeOrder { session, limits, first, warnings: Vec::new() })
}

async fn drive(settings: &Settings, args: RunArgs, text: String) -> Result<Exit> {
    let started = Instant::now();
    let seen = SeenHandle::default();
    let printer = OutputPrinter::new(
        args.output.output_format,
        args.output.silent,
        args.output.all_events,
        seen.clone(),
    );
    // Signals are caught before the first effect, so that none can end the process without a result.
    let interrupts = Interrupts::new()?;
    let after = Afterwards::of(&args)?;
    let order = order(settings, args, &text, &after)?;
    let NativeSession { live, id, cwd, store, last, hurry } = native::open(settings.clone(), order)?;
    let mut listener =
        OutputListener { live, record: None, printer, seen: seen.clone(), interrupts, stopped: false };
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
    let usage = usage::of_totals(&state.totals, duration_ms);
    if after.output_format == OutputFormat::Text && !after.silent {
        let resume = format!("{} --resume={}", settings.program, state.session_id);
        remark(&Footer { usage: &usage, counts_changes: true, resume }.to_string());
    }
    let result = RunResult {
        kind: ResultKind::Result,
        timestamp: iso(jiff::Timestamp::now()),
        session_id: state.session_id.clone(),
        exit_code: exit.code(),
        usage,
    };
    let mut printer = OutputPrinter::new(after.output_format, after.silent, after.all_events, seen);
    printer.result(&result);
    Ok(printer.exit(exit))
}

/// Reason why a turn failed. A turn that we were told to stop did not fail; an agent that somebody else stopped did.
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

fn write_usage(after: &Afterwards, state: &ConversationState) -> Result<()> {
    let Some(path) = &after.usage_output_file else { return Ok(()) };
    let document = usage::document(state);
    let text = serde_json::to_string_pretty(&document)?;
    make_parent(path)
        .and_then(|()| std::fs::write(path, text + "\n"))
        .with_context(|| format!("cannot write usage to {}", path.display()))
}

/// Creates the directories above a file, as the reference does.
fn make_parent(path: &Path) -> std::io::Result<()> {
    path.parent().map_or(Ok(()), std::fs::create_dir_all)
}

/// Session whose transcript may be exported.
struct SharedSession {
    id: SessionId,
    cwd: PathBuf,
    store: Store,
}

fn share(settings: &Settings, after: &Afterwards, session: &SharedSession) -> Result<()> {
    let SharedSession { id, cwd, store } = session;
    let Some(path) = after.transcript(&settings.program, id) else { return Ok(()) };
    let path = cwd.join(path);
    let write = || -> Result<()> {
        make_parent(&path)?;
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
