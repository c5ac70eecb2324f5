//! State of one shell command, shared by the tool calls that read its output, write to it or stop it.

use parking_lot::{Mutex, MutexGuard};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::confinement::LimitedSandbox;
use super::output::{self, CommandOutput};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandMode {
    /// Its call waits for it.
    Sync,
    /// It runs on its own, until the session ends.
    Async,
    /// It outlives the session.
    Detached,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandPhase {
    Running,
    Ended { code: i32, after: Duration },
    Stopped { after: Duration },
}

/// Input of a command.
pub(super) enum ShellInput {
    Text(String),
    End,
}

/// Recipient of a command's completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CompletionWaiter {
    /// A call is waiting for just that.
    Call,
    Nobody,
}

pub(super) struct Tracked {
    pub(super) id: String,
    pub(super) command: String,
    pub(super) description: String,
    pub(super) mode: CommandMode,
    /// Number of commands that have had this id.
    pub(super) commands: u32,
    pub(super) pid: i32,
    /// Its sandbox, if it has limits.
    pub(super) confined: Option<Arc<LimitedSandbox>>,
    /// Ends the command.
    pub(super) stop: CancellationToken,
    /// Cancelled when the call that started the command no longer waits for it.
    pub(super) left_alone: CancellationToken,
    started: Instant,
    phase: watch::Sender<CommandPhase>,
    state: Mutex<State>,
}

struct State {
    transcript: Transcript,
    /// Calls that wait for the end. A call of [`CommandMode::Sync`] counts from the start: its command can end before the
    /// call gets to wait for it.
    waiting: usize,
    /// The whole output of the ended command has been handed out.
    was_read: bool,
    input: Option<mpsc::Sender<ShellInput>>,
}

enum Transcript {
    Kept(CommandOutput),
    /// A file that the command writes itself.
    Log(PathBuf),
}

/// Output and state of a command.
pub(super) struct CommandSnapshot {
    pub(super) text: String,
    pub(super) phase: CommandPhase,
}

impl Tracked {
    #[expect(clippy::too_many_arguments, reason = "the only caller names each where it comes from")]
    pub(super) fn attached(
        id: &str,
        command: String,
        description: String,
        mode: CommandMode,
        commands: u32,
        pid: i32,
        dir: &Path,
        input: Option<mpsc::Sender<ShellInput>>,
        stop: CancellationToken,
    ) -> Self {
        let transcript = Transcript::Kept(CommandOutput::new(dir));
        Self {
            id: id.to_owned(),
            command,
            description,
            mode,
            commands,
            pid,
            confined: None,
            stop,
            left_alone: CancellationToken::new(),
            started: Instant::now(),
            phase: watch::Sender::new(CommandPhase::Running),
            state: Mutex::new(State {
                transcript,
                waiting: usize::from(mode == CommandMode::Sync),
                was_read: false,
                input,
            }),
        }
    }

    pub(super) fn detached(
        id: &str,
        command: String,
        description: String,
        commands: u32,
        pid: i32,
        log: PathBuf,
    ) -> Self {
        // The end of the session is no reason for this one to stop.
        let stop = CancellationToken::new();
        let (mode, nowhere) = (CommandMode::Detached, Path::new(""));
        let shell = Self::attached(id, command, description, mode, commands, pid, nowhere, None, stop);
        shell.state().transcript = Transcript::Log(log);
        shell
    }

    pub(super) fn confined_by(self, confined: Option<Arc<LimitedSandbox>>) -> Self {
        Self { confined, ..self }
    }

    pub(super) fn phase(&self) -> CommandPhase {
        *self.phase.borrow()
    }

    pub(super) fn is_running(&self) -> bool {
        self.phase() == CommandPhase::Running
    }

    pub(super) fn is_detached(&self) -> bool {
        self.mode == CommandMode::Detached
    }

    /// Whether a call waits for the end.
    pub(super) fn is_awaited(&self) -> bool {
        self.state().waiting > 0
    }

    /// All output so far, which stays to be read.
    pub(super) fn peek(&self) -> String {
        match &self.state().transcript {
            Transcript::Kept(output) => output.text(),
            Transcript::Log(path) => output::read_log(path),
        }
    }

    pub(super) fn elapsed(&self) -> Duration {
        match self.phase() {
            CommandPhase::Running => self.started.elapsed(),
            CommandPhase::Ended { after, .. } | CommandPhase::Stopped { after } => after,
        }
    }

    /// The wait of the call that started this command and has counted as waiting since. Taken once, of a command in
    /// [`CommandMode::Sync`].
    pub(super) fn first_wait(&self) -> WaitGuard<'_> {
        WaitGuard(self)
    }

    /// Counts a further call as waiting.
    pub(super) fn wait(&self) -> WaitGuard<'_> {
        self.state().waiting += 1;
        WaitGuard(self)
    }

    /// Waits for the end, but not for longer than `limit`.
    pub(super) async fn ended_within(&self, limit: Duration, _waiting: WaitGuard<'_>) -> CommandPhase {
        let mut phase = self.phase.subscribe();
        let ended = phase.wait_for(|phase| *phase != CommandPhase::Running);
        // The sender lives as long as `self`: the wait cannot fail, only take too long.
        let _ = tokio::time::timeout(limit, ended).await;
        self.phase()
    }

    /// Waits for the end, however long that takes.
    pub(super) async fn ended(&self) -> CommandPhase {
        let mut phase = self.phase.subscribe();
        let ended = phase.wait_for(|phase| *phase != CommandPhase::Running).await;
        ended.map_or_else(|_| self.phase(), |phase| *phase)
    }

    /// All output so far. Of an ended command it is handed out once.
    pub(super) fn read(&self) -> CommandSnapshot {
        let mut state = self.state();
        // Under the lock that the end is noted under: output and phase belong together.
        let phase = self.phase();
        let ended = phase != CommandPhase::Running;
        let text = if ended && state.was_read {
            String::new()
        } else {
            match &state.transcript {
                Transcript::Kept(output) => output.text(),
                Transcript::Log(path) => output::read_log(path),
            }
        };
        state.was_read |= ended;
        CommandSnapshot { text, phase }
    }

    pub(super) fn has_unread_output(&self) -> bool {
        let state = self.state();
        match &state.transcript {
            Transcript::Kept(output) => !state.was_read && !output.is_empty(),
            Transcript::Log(_) => false,
        }
    }

    /// Runs `look` on what is kept of the output, with `text` added to it first.
    pub(super) fn print<T>(&self, text: &str, look: impl FnOnce(&CommandOutput) -> T) -> Option<T> {
        match &mut self.state().transcript {
            Transcript::Kept(output) => {
                output.push(text);
                Some(look(output))
            }
            Transcript::Log(_) => None,
        }
    }

    /// Notes the end.
    pub(super) fn end(&self, code: i32) -> CompletionWaiter {
        self.finish(CommandPhase::Ended { code, after: self.started.elapsed() })
    }

    pub(super) fn end_stopped(&self) {
        self.finish(CommandPhase::Stopped { after: self.started.elapsed() });
    }

    fn finish(&self, phase: CommandPhase) -> CompletionWaiter {
        let mut state = self.state();
        state.input = None;
        self.phase.send_replace(phase);
        if state.waiting > 0 { CompletionWaiter::Call } else { CompletionWaiter::Nobody }
    }

    /// The way to the command's input; `None` if it has none or has ended.
    pub(super) fn input(&self) -> Option<mpsc::Sender<ShellInput>> {
        self.state().input.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No panic can leave the state half changed.
        self.state.lock()
    }
}

/// Drop guard of a call that counts as waiting.
pub(super) struct WaitGuard<'a>(&'a Tracked);

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        self.0.state().waiting -= 1;
    }
}
