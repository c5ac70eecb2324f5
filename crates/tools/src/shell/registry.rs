//! The commands of a session: which there are, what became of them, and that none is left behind.

use futures_util::FutureExt;
use parking_lot::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use hangar_agent::permissions::Grant;
use hangar_agent::session::{BackgroundNotice, ReadForModel};
use hangar_agent::tool::ToolOutcome;
use hangar_disk::Folder;
use hangar_protocol::Body;
use hangar_protocol::data::NotificationKind;
use hangar_sandbox::Sandbox;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::confinement::{Confinement, LimitedSandbox, SandboxCache};
use super::environment::{self, EnvironmentVariables};
use super::pipes::Pipes;
use super::progress::OutputProgress;
use super::reporter::Reporter;
use super::supervisor::{self, Supervisor};
use super::tracked::{CommandMode, Tracked};
use crate::spill::Spill;
use hangar_process::{ProcessGroup, command_in_own_session, kill_marked, mark_command, unique_mark};

/// Commands that can run at once.
const RUNNING_LIMIT: usize = 64;

/// Ended commands that can still be asked about.
const ENDED_LIMIT: usize = 64;

/// Stopped commands of which it is still known that they were stopped.
const STOPPED_LIMIT: usize = 64;

/// Time that closing waits for commands after SIGKILL.
const CLOSING_LIMIT: Duration = Duration::from_secs(5);

/// Inputs that may wait for a command to read them.
const INPUT_QUEUE: usize = 16;

/// Options of the shell tools.
#[derive(Debug, Clone)]
pub struct ShellOptions {
    /// The shell: `/bin/bash`.
    pub program: PathBuf,
    /// Working directory of commands. Absolute.
    pub cwd: PathBuf,
    /// The environment of commands; nothing else is inherited.
    pub env: Vec<(OsString, OsString)>,
    /// Names of variables that commands do not get.
    pub secrets: Vec<String>,
    /// Sandbox of approved commands; `None` for all that the user may do.
    pub sandbox: Option<Sandbox>,
    /// Sandbox of commands with limits; `None` where the kernel cannot confine them.
    pub confinement: Option<Confinement>,
    pub spill: Spill,
    /// Hears of commands that ended while no call waited for them.
    pub completions: mpsc::Sender<ShellCompletion>,
}

/// A command in the background has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct ShellCompletion {
    pub shell_id: String,
    pub description: String,
    pub exit_code: i32,
    pub detached: bool,
    /// Answer of `read_bash` for it, which spares the model the next call.
    pub read: ToolOutcome,
}

impl From<ShellCompletion> for BackgroundNotice {
    fn from(completion: ShellCompletion) -> Self {
        let ShellCompletion { shell_id, description, exit_code, detached, read } = completion;
        let end = match exit_code {
            0 => "has completed successfully".to_owned(),
            code => format!("has exited with exit code {code}"),
        };
        let text = format!("Shell command \"{description}\" (shellId: {shell_id}) {end}.");
        let arguments = json!({ "shellId": shell_id, "delay": 0 });
        let read = Some(Box::new(ReadForModel { tool: "read_bash", arguments, outcome: read }));
        let description = Some(description);
        let kind = if detached {
            NotificationKind::ShellDetachedCompleted { shell_id, description }
        } else {
            NotificationKind::ShellCompleted { shell_id, exit_code: Some(exit_code), description }
        };
        BackgroundNotice { text, kind, read }
    }
}

/// The commands of one session. Clones are the same registry; when the last is dropped, so are the commands.
#[derive(Clone)]
pub struct Shells(pub(super) Arc<Registry>);

pub(super) struct Registry {
    pub(super) options: ShellOptions,
    /// Environment of every command: that of the options, without secrets and with what keeps programs from asking.
    env: EnvironmentVariables,
    confiner: SandboxCache,
    /// Prefix of its processes' tags.
    marks: String,
    table: Mutex<ShellTable>,
    supervisors: TaskTracker,
    /// Ends every command that is not detached.
    closing: CancellationToken,
}

#[derive(Default)]
struct ShellTable {
    /// In the order in which they started.
    shells: Vec<Arc<Tracked>>,
    stopped: VecDeque<String>,
    next_number: u64,
    /// Numbers the marks, which outlive ids.
    next_mark: u64,
}

/// Request to start a command.
pub(super) struct StartRequest {
    pub(super) call_id: String,
    pub(super) command: String,
    pub(super) description: String,
    pub(super) shell_id: Option<String>,
    pub(super) mode: CommandMode,
    pub(super) grant: Grant,
}

pub(super) enum StartRefusal {
    /// A command with that id runs already.
    InUse(String),
    TooMany,
    Start(io::Error),
}

/// Result of looking up an id.
pub(super) enum ShellLookup {
    Here(Arc<Tracked>),
    Stopped,
    Never,
}

impl Shells {
    pub fn new(options: ShellOptions) -> Self {
        let env = environment::of(&options);
        Self(Arc::new(Registry {
            options,
            env,
            confiner: SandboxCache::default(),
            marks: unique_mark("shell"),
            table: Mutex::default(),
            supervisors: TaskTracker::new(),
            closing: CancellationToken::new(),
        }))
    }

    /// Whether a command is running that ends with the session.
    pub fn has_background_work(&self) -> bool {
        self.0.list().iter().any(|shell| shell.is_running() && shell.mode != CommandMode::Detached)
    }

    /// Ends everything that is not detached and waits until it is gone. No command can be started afterwards.
    pub async fn shutdown(&self) {
        self.0.closing.cancel();
        self.0.supervisors.close();
        // A process that the kernel cannot end (a dead network file system) must not keep us from ending.
        let _ = tokio::time::timeout(CLOSING_LIMIT, self.0.supervisors.wait()).await;
        // Looking at every process of the machine is for those who have started one.
        if self.0.table().next_mark > 0 {
            kill_marked(&self.0.marks);
        }
    }
}

impl Registry {
    /// Starts a command; `progress` hears of what it prints.
    pub(super) fn start(
        self: &Arc<Self>,
        order: StartRequest,
        progress: mpsc::Sender<Box<Body>>,
    ) -> Result<Arc<Tracked>, StartRefusal> {
        let mut table = self.table();
        let id = table.admit(order.shell_id.as_deref())?;
        if self.closing.is_cancelled() {
            return Err(StartRefusal::Start(io::Error::other("the session is closing")));
        }
        let commands = table.find(&id).map_or(1, |former| former.commands + 1);
        table.next_mark += 1;
        let number = table.next_mark;
        let shell = match order.mode {
            CommandMode::Sync | CommandMode::Async => {
                let mark = format!("{}{number}.", self.marks);
                self.start_attached(order, &id, commands, mark, progress)
            }
            CommandMode::Detached => {
                // Not found by the prefix of the session's own commands, which end with it.
                let mark = format!("detached:{}{number}.", self.marks);
                self.start_detached(order, &id, commands, mark)
            }
        }
        .map_err(StartRefusal::Start)?;
        table.enter(Arc::clone(&shell));
        Ok(shell)
    }

    fn start_attached(
        self: &Arc<Self>,
        order: StartRequest,
        id: &str,
        commands: u32,
        mark: String,
        progress: mpsc::Sender<Box<Body>>,
    ) -> io::Result<Arc<Tracked>> {
        let (pipes, ends) = Pipes::open()?;
        let (mut command, confined) = self.command(&order, &mark)?;
        command.stdout(ends.stdout).stderr(ends.stderr);
        let progress = match order.mode {
            CommandMode::Sync => {
                command.stdin(Stdio::null());
                OutputProgress::waiting(order.call_id, progress)
            }
            CommandMode::Async | CommandMode::Detached => {
                command.stdin(Stdio::piped());
                OutputProgress::passing(order.call_id, &progress)
            }
        };
        let (mut child, group) = ProcessGroup::spawn_marked(&mut command, mark)?;
        // The command holds the writing ends that the pipes went to; ours would keep the pipes open.
        drop(command);
        let input = child.stdin.take().map(|stdin| {
            let (sender, receiver) = mpsc::channel(INPUT_QUEUE);
            self.supervisors.spawn(FutureExt::boxed(supervisor::feed(stdin, receiver)));
            sender
        });
        let shell = Tracked::attached(
            id,
            order.command,
            order.description,
            order.mode,
            commands,
            group.id(),
            &self.options.spill.dir,
            input,
            self.closing.child_token(),
        );
        let shell = Arc::new(shell.confined_by(confined));
        let supervisor =
            Supervisor::new(Arc::clone(&shell), child, group, pipes, progress, Reporter::new(&self.options));
        self.supervisors.spawn(FutureExt::boxed(supervisor.run()));
        Ok(shell)
    }

    /// Its output goes to a file, since no reader of a pipe would be left when we end before it.
    fn start_detached(
        self: &Arc<Self>,
        order: StartRequest,
        id: &str,
        commands: u32,
        mark: String,
    ) -> io::Result<Arc<Tracked>> {
        let dir = &self.options.spill.dir;
        let folder = Folder::ensure_resolved(dir)?;
        let (log, path) = tempfile::Builder::new()
            .prefix("detached-")
            .suffix(".log")
            .tempfile_in(folder.fd_path())?
            .keep()
            .map_err(|error| error.error)?;
        let path = dir.join(path.file_name().unwrap_or_default());
        let stderr = log.try_clone()?;
        let (mut command, confined) = self.command(&order, &mark)?;
        let child = command.stdin(Stdio::null()).stdout(log).stderr(stderr).spawn()?;
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).unwrap_or_default();
        let shell = Tracked::detached(id, order.command, order.description, commands, pid, path);
        let shell = Arc::new(shell.confined_by(confined));
        self.supervisors.spawn(FutureExt::boxed(supervisor::watch_detached(
            Arc::clone(&shell),
            child,
            mark,
            self.closing.child_token(),
            Reporter::new(&self.options),
        )));
        Ok(shell)
    }

    /// The shell with a command, marked and in the sandbox of its grant. It is to be spawned at once.
    fn command(
        &self,
        order: &StartRequest,
        mark: &str,
    ) -> io::Result<(tokio::process::Command, Option<Arc<LimitedSandbox>>)> {
        let program = &self.options.program;
        let confined = match (&order.grant, &self.options.confinement) {
            (Grant::Limited(limits), Some(place)) => {
                Some((self.confiner.of(place, limits).map_err(io::Error::other)?, place))
            }
            (Grant::Limited(_) | Grant::Full, _) => None,
        };
        let sandbox = match &confined {
            Some((confined, _)) => Some(&confined.sandbox),
            None => self.options.sandbox.as_ref(),
        };
        let in_child = sandbox.map(Sandbox::for_child).transpose().map_err(io::Error::other)?.flatten();
        let mut command = match sandbox.filter(|_| in_child.is_none()) {
            None => command_in_own_session(program),
            Some(sandbox) => {
                let (launcher, leading) = sandbox.wrap(program.as_os_str());
                let mut command = command_in_own_session(launcher);
                command.args(leading);
                command
            }
        };
        // The text may start with a dash.
        command
            .args(["--norc", "--noprofile", "-c", "--"])
            .arg(&order.command)
            .current_dir(&self.options.cwd)
            .env_clear();
        match &confined {
            Some((confined, place)) if confined.reads_only() => {
                command.envs(environment::reading(&self.env, &place.scratch))
            }
            _ => command.envs(&self.env),
        };
        mark_command(&mut command, mark);
        // Last: a mark cannot be put on a process that is confined.
        if let Some(sandbox) = in_child {
            sandbox.put_on(command.as_std_mut());
        }
        Ok((command, confined.map(|(confined, _)| confined)))
    }

    pub(super) fn find(&self, id: &str) -> ShellLookup {
        let table = self.table();
        match table.find(id) {
            Some(shell) => ShellLookup::Here(Arc::clone(shell)),
            None if table.stopped.iter().any(|stopped| stopped == id) => ShellLookup::Stopped,
            None => ShellLookup::Never,
        }
    }

    /// Takes a command out of the list; it is then only known to have been stopped.
    pub(super) fn remove(&self, id: &str) -> Option<Arc<Tracked>> {
        let mut table = self.table();
        let position = table.shells.iter().position(|shell| shell.id == id)?;
        let shell = table.shells.remove(position);
        if table.stopped.len() == STOPPED_LIMIT {
            table.stopped.pop_front();
        }
        table.stopped.push_back(id.to_owned());
        Some(shell)
    }

    pub(super) fn list(&self) -> Vec<Arc<Tracked>> {
        self.table().shells.clone()
    }

    /// The environment that commands see.
    pub(super) fn env(&self) -> &EnvironmentVariables {
        &self.env
    }

    fn table(&self) -> MutexGuard<'_, ShellTable> {
        // The table is whole between statements: a panic elsewhere says nothing about it.
        self.table.lock()
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

impl ShellTable {
    fn find(&self, id: &str) -> Option<&Arc<Tracked>> {
        self.shells.iter().find(|shell| shell.id == id)
    }

    /// The id that a new command gets, if there may be one.
    fn admit(&mut self, wanted: Option<&str>) -> Result<String, StartRefusal> {
        let running = self.shells.iter().filter(|shell| shell.is_running()).count();
        if running >= RUNNING_LIMIT {
            return Err(StartRefusal::TooMany);
        }
        match wanted {
            Some(id) if self.find(id).is_some_and(|shell| shell.is_running()) => {
                Err(StartRefusal::InUse(id.to_owned()))
            }
            Some(id) => Ok(id.to_owned()),
            None => loop {
                let id = self.next_number.to_string();
                self.next_number += 1;
                if self.find(&id).is_none() {
                    return Ok(id);
                }
            },
        }
    }

    fn enter(&mut self, shell: Arc<Tracked>) {
        self.shells.retain(|former| former.id != shell.id);
        self.stopped.retain(|stopped| *stopped != shell.id);
        self.shells.push(shell);
        let ended = self.shells.iter().filter(|shell| !shell.is_running()).count();
        let mut surplus = ended.saturating_sub(ENDED_LIMIT);
        self.shells.retain(|shell| {
            let goes = surplus > 0 && !shell.is_running();
            surplus -= usize::from(goes);
            !goes
        });
    }
}
