//! One turn of an agent that is a process: starts it, sends the prompt, translates its output, and ends it.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use futures_util::FutureExt;
use hangar_peer::LineReader;
use hangar_process::{ProcessGroup, command_in_own_session};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::host::{Host, ProcessInput, RemoteProgram};
use crate::invocation::{AgentCommandLine, Argument, TurnFiles};
use crate::outcome::{ErrorKind, ProcessExit, Stopped, TurnFacts, Unstarted};
use crate::runtime::TurnLimits;
use crate::stderr_buffer::{MAX_LINE, StderrBuffer};
use crate::translate::{TranslatedEvent, Translation, Translator};
use crate::watch::{TreeProbe, TurnWatch, WatchNews};

/// Grace period between SIGTERM and SIGKILL.
const TERM_GRACE: Duration = Duration::from_secs(5);
/// Grace period of an agent that has reported its result. Some never exit.
const VERDICT_GRACE: Duration = Duration::from_secs(10);
/// Time that pipes are still read after the process ended, in case another process holds them.
const PIPE_GRACE: Duration = Duration::from_millis(200);

/// Receiver of a turn's events.
pub(crate) trait TurnListener: Send {
    fn hear(&mut self, spoken: Vec<TranslatedEvent>) -> impl Future<Output = ()> + Send;

    /// Receives the agent's name of the session.
    fn named(&mut self, agent_session: &str) -> impl Future<Output = ()> + Send;
}

pub(crate) struct TurnProcess<'a> {
    pub(crate) invocation: AgentCommandLine,
    pub(crate) workspace: PathBuf,
    /// Environment of the process; the invocation's variables are added to it.
    pub(crate) environment: &'a BTreeMap<String, String>,
    pub(crate) host: &'a Host,
    pub(crate) limits: TurnLimits,
    pub(crate) cancel: CancellationToken,
    /// Names the processes of the session, so that those which left their group are found.
    pub(crate) mark: String,
    /// A directory of ours, for files of the turn.
    pub(crate) scratch: Option<PathBuf>,
    /// Whether the agent writes output before its model answers.
    pub(crate) speaks_at_start: bool,
    /// Working tree of the agent, whose changes are progress.
    pub(crate) tree: TreeProbe,
}

impl TurnProcess<'_> {
    /// Runs the turn to its end. Events are handed on as they come, and waited for: an agent that talks faster than
    /// anyone listens has to wait itself.
    pub(crate) async fn run(
        self,
        translator: &mut dyn Translator,
        listener: &mut impl TurnListener,
    ) -> (TurnFacts, Translation) {
        let mut output = TurnOutput {
            translator,
            listener,
            said: Translation::default(),
            spoke: false,
            watch: TurnWatch::new(self.limits, Instant::now()),
            report_mark: None,
        };
        let remote = matches!(self.host, Host::Ssh(_));
        let mut facts = TurnFacts { remote, ..TurnFacts::default() };
        let mut process = match RunningTurn::start(&self) {
            Ok(process) => process,
            Err(error) => {
                facts.unstarted = Some(self.unstarted(&error));
                return (facts, output.said);
            }
        };
        output.report_mark = process.report_mark.take();
        // An agent that closed its output is about to exit, and may still be writing its state.
        facts.exit = match self.hear_out(&mut process, &mut output).await {
            OutputEnd::Closed => process.wait(self.cancel.clone(), &mut output).await,
            OutputEnd::Judged => process.end(&mut output).await,
            OutputEnd::Stopped(why) => {
                facts.stopped = Some(why);
                process.end(&mut output).await
            }
            OutputEnd::Unreadable(error) => {
                facts.unreadable = Some(error.to_string());
                process.end(&mut output).await
            }
        };
        facts.stderr = process.excerpt.text();
        facts.spoke = output.spoke;
        let said = output.end(process.files.report()).await;
        facts.verdict = said.facts.verdict;
        facts.reported_error = said.facts.reported_error.clone();
        facts.worked = said.facts.worked;
        facts.aborted = said.facts.aborted;
        facts.halted = said.facts.halted;
        (facts, said)
    }

    /// Hands the agent's output on until it ends or a limit is reached.
    async fn hear_out(
        &self,
        process: &mut RunningTurn,
        output: &mut TurnOutput<'_, impl TurnListener>,
    ) -> OutputEnd {
        let TurnLimits { turn, startup, .. } = self.limits;
        let mut tree = self.tree.clone();
        let seconds = |limit: Option<Duration>| limit.unwrap_or_default().as_secs();
        let deadline = turn.map(|limit| Instant::now() + limit);
        let first_output = startup.filter(|_| self.speaks_at_start).map(|limit| Instant::now() + limit);
        let mut judged: Option<Instant> = None;
        loop {
            let leave = judged.map(|at| at + VERDICT_GRACE);
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => return OutputEnd::Stopped(Stopped::Cancelled),
                () = until(deadline) => return OutputEnd::Stopped(Stopped::TimedOut { seconds: seconds(turn) }),
                () = until(leave) => return OutputEnd::Judged,
                () = until(output.watch.due()), if judged.is_none() => match output.watch.check(&mut tree).await {
                    Some(WatchNews::Stop(why)) => return OutputEnd::Stopped(why),
                    Some(WatchNews::Warn(warning)) => {
                        output.listener.hear(vec![TranslatedEvent::Body { agent: None, body: (*warning).into() }]).await;
                    }
                    None => {}
                },
                () = until(first_output), if !output.spoke => {
                    return OutputEnd::Stopped(Stopped::Unanswered { seconds: seconds(startup) });
                }
                line = process.lines.next_text() => match line {
                    Ok(Some(line)) => {
                        output.line(&line).await;
                        let heard = Instant::now();
                        output.watch.heard(heard);
                        if output.said.facts.verdict.is_some() && judged.is_none() {
                            judged = Some(heard);
                        }
                    }
                    Ok(None) => return OutputEnd::Closed,
                    Err(error) => return OutputEnd::Unreadable(error),
                },
                length = process.stderr.read(&mut process.buffer), if process.stderr_open => {
                    process.stderr_came(length);
                }
            }
        }
    }

    fn unstarted(&self, error: &io::Error) -> Unstarted {
        let (kind, message) = match self.host {
            // The system has one word for both.
            Host::Local if !self.workspace.is_dir() => (
                ErrorKind::InvalidWorkspace,
                format!("the working directory {} is gone", self.workspace.display()),
            ),
            Host::Local => {
                let kind = match error.kind() {
                    io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => ErrorKind::AgentNotFound,
                    _ => ErrorKind::PortExit,
                };
                (kind, format!("`{}` could not be started: {error}", self.invocation.program))
            }
            Host::Ssh(_) => (ErrorKind::AgentNotFound, format!("`ssh` could not be started: {error}")),
        };
        Unstarted { kind, message }
    }
}

pub(crate) async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Reason for which an agent's output is not read any further.
enum OutputEnd {
    /// The agent closed its output.
    Closed,
    /// It reported its result and did not exit; the result holds.
    Judged,
    Stopped(Stopped),
    Unreadable(io::Error),
}

/// Output of an agent on its way to the listener.
struct TurnOutput<'a, L> {
    translator: &'a mut dyn Translator,
    listener: &'a mut L,
    said: Translation,
    spoke: bool,
    watch: TurnWatch,
    /// Prefix of the line that holds the report which the agent left in a file on the other host.
    report_mark: Option<String>,
}

impl<L: TurnListener> TurnOutput<'_, L> {
    async fn line(&mut self, line: &str) {
        self.spoke = true;
        match self.report_mark.as_ref().and_then(|mark| line.strip_prefix(mark.as_str())) {
            Some(report) => self.translator.report(report, &mut self.said),
            None => self.translator.line(line, &mut self.said),
        }
        if let Some(name) = &self.said.facts.session_id {
            self.listener.named(name).await;
        }
        self.flush().await;
    }

    async fn end(mut self, report: Option<String>) -> Translation {
        if let Some(report) = report {
            self.translator.report(&report, &mut self.said);
        }
        self.translator.end(&mut self.said);
        self.flush().await;
        self.said
    }

    async fn flush(&mut self) {
        let events = std::mem::take(&mut self.said.events);
        if !events.is_empty() {
            let now = Instant::now();
            events.iter().for_each(|event| self.watch.note(event.body(), now));
            self.listener.hear(events).await;
        }
    }
}

struct RunningTurn {
    child: Child,
    group: ProcessGroup,
    lines: LineReader<tokio::process::ChildStdout>,
    stderr: ChildStderr,
    stderr_open: bool,
    buffer: Box<[u8]>,
    excerpt: StderrBuffer,
    files: TurnFiles,
    report_mark: Option<String>,
    /// The link of ssh, which tells the other side to end when it is dropped.
    link: Option<oneshot::Sender<()>>,
}

impl RunningTurn {
    fn start(turn: &TurnProcess<'_>) -> io::Result<Self> {
        let AgentCommandLine { program, args, env, without, stdin, session_id: _ } = &turn.invocation;
        let mut files = TurnFiles::default();
        let mut report_mark = None;
        let mut text = stdin.clone().unwrap_or_default().into_bytes();
        let mut command = match turn.host {
            Host::Local => {
                let (words, written) = TurnFiles::write(args, turn.scratch.as_deref())?;
                files = written;
                let mut command = command_in_own_session(program);
                command.args(words).current_dir(&turn.workspace).env_clear().envs(turn.environment);
                for (name, value) in env {
                    command.env(name, value);
                }
                for name in without {
                    command.env_remove(name);
                }
                command
            }
            Host::Ssh(ssh) => {
                if args.iter().any(|argument| matches!(argument, Argument::Report { .. })) {
                    report_mark = Some(format!("report {} ", uuid::Uuid::new_v4()));
                }
                let remote = RemoteProgram {
                    workspace: &turn.workspace,
                    program,
                    args,
                    env,
                    input: stdin
                        .as_ref()
                        .map_or(ProcessInput::Nothing, |stdin| ProcessInput::Bytes(stdin.len())),
                    report: report_mark.as_deref(),
                };
                text.splice(0..0, remote.preface());
                let mut command = command_in_own_session("ssh");
                command.args(ssh.arguments(&remote)).env_clear().envs(turn.environment);
                command
            }
        };
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let keeps_link = matches!(turn.host, Host::Ssh(_));
        command.stdin(if stdin.is_some() || keeps_link { Stdio::piped() } else { Stdio::null() });
        let (mut child, group) = ProcessGroup::spawn(&mut command, turn.mark.clone())?;
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(io::Error::other("the process has no pipes"));
        };
        let (link, closed) = oneshot::channel::<()>();
        if let Some(mut pipe) = child.stdin.take() {
            tokio::spawn(FutureExt::boxed(async move {
                // An agent that does not read its prompt ends, or is ended, by itself.
                let _ = pipe.write_all(&text).await;
                if keeps_link {
                    let _ = closed.await;
                }
            }));
        }
        Ok(Self {
            child,
            group,
            lines: LineReader::new(stdout, MAX_LINE),
            stderr,
            stderr_open: true,
            buffer: vec![0; 8 << 10].into_boxed_slice(),
            excerpt: StderrBuffer::default(),
            files,
            report_mark,
            link: keeps_link.then_some(link),
        })
    }

    fn stderr_came(&mut self, length: io::Result<usize>) {
        match length {
            Ok(0) | Err(_) => self.stderr_open = false,
            Ok(length) => self.excerpt.push(&self.buffer[..length]),
        }
    }

    /// Waits for a process whose output has ended.
    async fn wait(
        &mut self,
        cancel: CancellationToken,
        output: &mut TurnOutput<'_, impl TurnListener>,
    ) -> Option<ProcessExit> {
        let left = tokio::select! {
            status = self.child.wait() => Some(status),
            () = tokio::time::sleep(TERM_GRACE) => None,
            () = cancel.cancelled() => None,
        };
        match left {
            Some(status) => {
                self.drain_stderr().await;
                self.group.leader_ended();
                self.group.kill();
                status.ok().map(exit_of)
            }
            None => self.end(output).await,
        }
    }

    /// Asks the process to end, reads what it still writes, and kills it and all it started if it does not end.
    async fn end(&mut self, output: &mut TurnOutput<'_, impl TurnListener>) -> Option<ProcessExit> {
        match self.link.take() {
            // The other side ends the agent then. A signal would end ssh alone, with what the agent has yet to say.
            Some(link) => drop(link),
            None => self.group.terminate(),
        }
        let deadline = Instant::now() + TERM_GRACE;
        let ended = tokio::time::timeout_at(deadline, self.last_lines(output)).await;
        let mut status = match ended {
            Ok(Some(status)) => Some(status),
            Ok(None) => tokio::time::timeout_at(deadline, self.child.wait()).await.ok().and_then(Result::ok),
            Err(_) => None,
        };
        if status.is_some() {
            self.group.leader_ended();
        }
        self.group.kill();
        if status.is_none() {
            status = self.child.wait().await.ok();
        }
        self.drain_stderr().await;
        status.map(exit_of)
    }

    /// Reads until the output ends, or the process does, whose status is returned then.
    async fn last_lines(&mut self, output: &mut TurnOutput<'_, impl TurnListener>) -> Option<ExitStatus> {
        // Lines behind a verdict are about being ended, which changes nothing.
        let counts = output.said.facts.verdict.is_none();
        let mut status = None;
        let mut limit = None;
        loop {
            tokio::select! {
                biased;
                line = self.lines.next_text() => match line {
                    Ok(Some(line)) if counts => output.line(&line).await,
                    Ok(Some(_)) => {}
                    Ok(None) | Err(_) => return status,
                },
                length = self.stderr.read(&mut self.buffer), if self.stderr_open => self.stderr_came(length),
                ended = self.child.wait(), if status.is_none() => {
                    status = ended.ok();
                    limit = Some(Instant::now() + PIPE_GRACE);
                }
                () = until(limit) => return status,
            }
        }
    }

    async fn drain_stderr(&mut self) {
        let deadline = Instant::now() + PIPE_GRACE;
        while self.stderr_open {
            let Ok(length) = tokio::time::timeout_at(deadline, self.stderr.read(&mut self.buffer)).await
            else {
                return;
            };
            self.stderr_came(length);
        }
    }
}

fn exit_of(status: ExitStatus) -> ProcessExit {
    match (status.code(), status.signal()) {
        (Some(code), _) => ProcessExit::Code(code),
        (None, Some(signal)) => ProcessExit::Signal(signal),
        (None, None) => ProcessExit::Code(1),
    }
}
