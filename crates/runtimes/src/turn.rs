//! One turn of an agent that is a process: start it, hand it the prompt, hear it out, and end it when it must end.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use hangar_peer::Lines;
use hangar_process::{Group, command_in_own_session};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::host::{Host, Input};
use crate::lines::{Excerpt, MAX_LINE};
use crate::outcome::{ErrorKind, Exit, Stopped, TurnFacts, Unstarted};
use crate::runtime::Limits;
use crate::translate::{Said, Spoken, Translator};

/// How long an agent that was asked to end may take to do so.
const TERM_GRACE: Duration = Duration::from_secs(5);
/// How long an agent may stay after it said how the turn went. Some never leave.
const VERDICT_GRACE: Duration = Duration::from_secs(10);
/// How long stderr is read behind the end of the process, in case another one holds it.
const STDERR_GRACE: Duration = Duration::from_millis(200);

/// A command line with what goes in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// As found here; over ssh as people wrote it.
    pub program: String,
    pub args: Vec<OsString>,
    pub env: Vec<(String, String)>,
    /// Further variables that it must not see.
    pub without: Vec<String>,
    pub stdin: Option<String>,
}

impl Invocation {
    /// Arguments and what goes in. The program is found by whoever starts it.
    pub(crate) fn new(args: Vec<String>, stdin: String) -> Self {
        Self {
            program: String::new(),
            args: args.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            without: Vec::new(),
            stdin: Some(stdin),
        }
    }
}

/// Who hears what the agent says.
pub(crate) trait Listener: Send {
    fn hear(&mut self, spoken: Vec<Spoken>) -> impl Future<Output = ()> + Send;

    /// What the agent calls the session.
    fn named(&mut self, agent_session: &str) -> impl Future<Output = ()> + Send;
}

pub(crate) struct TurnProcess<'a> {
    pub(crate) invocation: Invocation,
    pub(crate) workspace: PathBuf,
    /// What the process sees, before what the invocation adds.
    pub(crate) environment: &'a BTreeMap<String, String>,
    pub(crate) host: &'a Host,
    pub(crate) limits: Limits,
    pub(crate) cancel: CancellationToken,
    /// Names the processes of the session, so that those which left their group are found.
    pub(crate) mark: String,
}

impl TurnProcess<'_> {
    /// Runs the turn to its end. Events are handed on as they come, and waited for: an agent that talks faster than
    /// anyone listens has to wait itself.
    pub(crate) async fn run(
        self,
        translator: &mut dyn Translator,
        listener: &mut impl Listener,
    ) -> (TurnFacts, Said) {
        let mut said = Said::default();
        let remote = matches!(self.host, Host::Ssh(_));
        let mut facts = TurnFacts { remote, ..TurnFacts::default() };
        let mut process = match Process::start(&self) {
            Ok(process) => process,
            Err(error) => {
                facts.unstarted = Some(self.unstarted(&error));
                return (facts, said);
            }
        };
        let deadline = self.limits.turn.map(|limit| Instant::now() + limit);
        let mut heard = Instant::now();
        let mut judged: Option<Instant> = None;
        // One that closed its output is about to leave, and may have its state to write.
        let mut leaving = false;
        loop {
            let stall = self.limits.stall.map(|limit| heard + limit);
            let leave = judged.map(|at| at + VERDICT_GRACE);
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => {
                    facts.stopped = Some(Stopped::Cancelled);
                    break;
                }
                () = until(deadline) => {
                    let seconds = self.limits.turn.unwrap_or_default().as_secs();
                    facts.stopped = Some(Stopped::TimedOut { seconds });
                    break;
                }
                // It said how it went; that it does not leave takes nothing back.
                () = until(leave) => break,
                () = until(stall), if judged.is_none() => {
                    let seconds = self.limits.stall.unwrap_or_default().as_secs();
                    facts.stopped = Some(Stopped::Stalled { seconds });
                    break;
                }
                line = process.lines.next_text() => match line {
                    Ok(Some(line)) => {
                        heard = Instant::now();
                        translator.line(&line, &mut said);
                        if let Some(name) = &said.facts.session_id {
                            listener.named(name).await;
                        }
                        let events = std::mem::take(&mut said.events);
                        if !events.is_empty() {
                            listener.hear(events).await;
                            heard = Instant::now();
                        }
                        if said.facts.verdict.is_some() && judged.is_none() {
                            judged = Some(heard);
                        }
                    }
                    Ok(None) => {
                        leaving = true;
                        break;
                    }
                    Err(error) => {
                        facts.unreadable = Some(error.to_string());
                        break;
                    }
                },
                length = process.stderr.read(&mut process.buffer), if process.stderr_open => {
                    process.stderr_came(length);
                }
            }
        }
        facts.exit = if leaving { process.wait(self.cancel.clone()).await } else { process.end().await };
        facts.stderr = process.excerpt.text();
        translator.end(&mut said);
        let events = std::mem::take(&mut said.events);
        if !events.is_empty() {
            listener.hear(events).await;
        }
        facts.verdict = said.facts.verdict;
        facts.complaint = said.facts.complaint.clone();
        facts.worked = said.facts.worked;
        facts.aborted = said.facts.aborted;
        facts.halted = said.facts.halted;
        (facts, said)
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

struct Process {
    child: Child,
    group: Group,
    lines: Lines<tokio::process::ChildStdout>,
    stderr: ChildStderr,
    stderr_open: bool,
    buffer: Box<[u8]>,
    excerpt: Excerpt,
    /// Over ssh the other side ends when this is dropped.
    _link: oneshot::Sender<()>,
}

impl Process {
    fn start(turn: &TurnProcess<'_>) -> io::Result<Self> {
        let Invocation { program, args, env, without, stdin } = &turn.invocation;
        let mut command = match turn.host {
            Host::Local => {
                let mut command = command_in_own_session(program);
                command.args(args).current_dir(&turn.workspace).env_clear().envs(turn.environment);
                for (name, value) in env {
                    command.env(name, value);
                }
                for name in without {
                    command.env_remove(name);
                }
                command
            }
            Host::Ssh(ssh) => {
                let mut command = command_in_own_session("ssh");
                let input = stdin.as_ref().map_or(Input::Nothing, |stdin| Input::Bytes(stdin.len()));
                command.args(ssh.arguments(&turn.workspace, program, args, env, input));
                command.env_clear().envs(turn.environment);
                command
            }
        };
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let keeps_link = matches!(turn.host, Host::Ssh(_));
        command.stdin(if stdin.is_some() || keeps_link { Stdio::piped() } else { Stdio::null() });
        let (mut child, group) = Group::spawn(&mut command, turn.mark.clone())?;
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(io::Error::other("the process has no pipes"));
        };
        let (link, closed) = oneshot::channel::<()>();
        if let Some(mut pipe) = child.stdin.take() {
            let text = stdin.clone().unwrap_or_default();
            tokio::spawn(async move {
                // An agent that does not read its prompt ends, or is ended, by itself.
                let _ = pipe.write_all(text.as_bytes()).await;
                if keeps_link {
                    let _ = closed.await;
                }
            });
        }
        Ok(Self {
            child,
            group,
            lines: Lines::new(stdout, MAX_LINE),
            stderr,
            stderr_open: true,
            buffer: vec![0; 8 << 10].into_boxed_slice(),
            excerpt: Excerpt::default(),
            _link: link,
        })
    }

    fn stderr_came(&mut self, length: io::Result<usize>) {
        match length {
            Ok(0) | Err(_) => self.stderr_open = false,
            Ok(length) => self.excerpt.push(&self.buffer[..length]),
        }
    }

    /// Waits for a process whose output has ended.
    async fn wait(&mut self, cancel: CancellationToken) -> Option<Exit> {
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
            None => self.end().await,
        }
    }

    /// Asks the process to end, and ends it and all it started if it does not.
    async fn end(&mut self) -> Option<Exit> {
        self.group.terminate();
        let deadline = tokio::time::sleep(TERM_GRACE);
        tokio::pin!(deadline);
        let mut status = None;
        loop {
            tokio::select! {
                () = &mut deadline => break,
                ended = self.child.wait() => {
                    status = ended.ok();
                    self.group.leader_ended();
                    break;
                }
                // Somebody must read, or it cannot write its last words and leave.
                line = self.lines.next_text() => if !matches!(line, Ok(Some(_))) {
                    let ended = tokio::select! {
                        ended = self.child.wait() => ended.ok(),
                        () = &mut deadline => None,
                    };
                    status = ended;
                    break;
                },
                length = self.stderr.read(&mut self.buffer), if self.stderr_open => self.stderr_came(length),
            }
        }
        self.group.kill();
        if status.is_none() {
            status = self.child.wait().await.ok();
        }
        self.drain_stderr().await;
        status.map(exit_of)
    }

    async fn drain_stderr(&mut self) {
        let deadline = Instant::now() + STDERR_GRACE;
        while self.stderr_open {
            let Ok(length) = tokio::time::timeout_at(deadline, self.stderr.read(&mut self.buffer)).await
            else {
                return;
            };
            self.stderr_came(length);
        }
    }
}

fn exit_of(status: std::process::ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Code(1),
    }
}
