//! One run of a program: started in a process group of its own, watched line by line, ended by a deadline.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, kill_process, kill_process_group, pidfd_open, pidfd_send_signal};
use serde_json::Value;

use crate::pty::Pty;

pub use rustix::process::Signal;

/// Far above what any run needs on a loaded machine; reaching it is a failure, never a measurement.
const DEFAULT_LIMIT: Duration = Duration::from_secs(120);

/// Characters of a command that a message about it repeats.
const LABEL_LENGTH: usize = 200;

pub struct Invocation {
    command: Command,
    stdin: Option<Vec<u8>>,
    limit: Duration,
}

impl Invocation {
    /// A run of a program whose environment and user the test has chosen itself.
    pub fn new(command: Command) -> Self {
        Self { command, stdin: None, limit: DEFAULT_LIMIT }
    }

    pub fn arg(mut self, arg: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    pub fn args<I: IntoIterator<Item = S>, S: AsRef<std::ffi::OsStr>>(mut self, args: I) -> Self {
        self.command.args(args);
        self
    }

    pub fn env(mut self, key: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.env(key, value);
        self
    }

    pub fn without_env(mut self, key: &str) -> Self {
        self.command.env_remove(key);
        self
    }

    /// Copilot's own variables, pointing at a scripted model.
    pub fn provider(self, base_url: &str) -> Self {
        self.env("COPILOT_PROVIDER_BASE_URL", format!("{base_url}/v1"))
            .env("COPILOT_PROVIDER_TYPE", "openai")
            .env("COPILOT_PROVIDER_API_KEY", "dummy")
            .env("COPILOT_MODEL", "mock-model")
            .env("COPILOT_OFFLINE", "true")
    }

    pub fn cwd(mut self, directory: impl AsRef<Path>) -> Self {
        self.command.current_dir(directory);
        self
    }

    /// The command, for a test that starts it itself.
    pub fn into_command(self) -> Command {
        self.command
    }

    /// Text on a pipe. Without it, stdin is empty and not a pipe.
    pub fn stdin(mut self, text: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(text.into());
        self
    }

    pub fn within(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs to the end.
    pub fn finish(self) -> Finished {
        self.start().finish()
    }

    /// Starts the program with its standard input and output open to the test, which ends it too.
    pub fn open(mut self) -> Child {
        self.command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("starting the program: {error}"))
    }

    /// Starts the program in a terminal of a size.
    pub fn in_terminal(self, columns: u16, rows: u16) -> Pty {
        Pty::start(&self.command, columns, rows)
    }

    pub fn start(mut self) -> Running {
        let words = std::iter::once(self.command.get_program()).chain(self.command.get_args());
        let words: Vec<_> = words.map(std::ffi::OsStr::to_string_lossy).collect();
        let label: String = words.join(" ").chars().take(LABEL_LENGTH).collect();
        let mut child = self
            .command
            .stdin(if self.stdin.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("starting {label}: {error}"));
        if let (Some(text), Some(mut pipe)) = (self.stdin, child.stdin.take()) {
            // A thread, because a program may print before it has read everything. A closed pipe is its business.
            std::thread::spawn(move || drop(pipe.write_all(&text)));
        }
        let (sender, lines) = channel();
        let stdout = child.stdout.take().expect("stdout is piped");
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
                if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    break;
                }
            }
        });
        let mut stderr = child.stderr.take().expect("stderr is piped");
        let stderr = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            drop(stderr.read_to_end(&mut bytes));
            String::from_utf8_lossy(&bytes).into_owned()
        });
        let deadline = Instant::now() + self.limit;
        Running { child, label, lines, printed: Vec::new(), stderr: Some(stderr), deadline, reaped: false }
    }
}

pub struct Running {
    child: Child,
    label: String,
    lines: Receiver<String>,
    printed: Vec<String>,
    stderr: Option<JoinHandle<String>>,
    deadline: Instant,
    reaped: bool,
}

impl Running {
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// The next line of stdout; `None` at its end.
    pub fn next_line(&mut self) -> Option<&str> {
        match self.lines.recv_timeout(self.remaining()) {
            Ok(line) => {
                self.printed.push(line);
                self.printed.last().map(String::as_str)
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => self.fail("did not end in time"),
        }
    }

    /// Waits for the first line of stdout, from here on, that is an event of this type.
    pub fn wait_for_event(&mut self, kind: &str) -> Value {
        loop {
            let Some(line) = self.next_line() else { self.fail(&format!("ended without `{kind}`")) };
            if let Ok(event) = serde_json::from_str::<Value>(line)
                && event["type"] == kind
            {
                return event;
            }
        }
    }

    /// Whether the program has ended. It is not waited for.
    pub fn has_ended(&self) -> bool {
        exited_within(self.pid(), Duration::ZERO)
    }

    /// To the program alone. What it started is its own affair.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("the program is running");
    }

    /// The same to a program that may have ended by itself.
    pub fn try_signal(&self, signal: Signal) {
        // It was not waited for yet, so that nobody else can have its number.
        let _ = kill_process(self.pid(), signal);
    }

    pub fn finish(mut self) -> Finished {
        while self.next_line().is_some() {}
        if !exited_within(self.pid(), self.remaining()) {
            self.fail("closed its stdout but did not exit");
        }
        let status = self.child.wait().expect("the program was started here");
        self.reaped = true;
        let stderr = self.stderr.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        let mut stdout = self.printed.join("\n");
        if !stdout.is_empty() || !self.printed.is_empty() {
            stdout.push('\n');
        }
        let exit = status.code().unwrap_or_else(|| -status.signal().unwrap_or(0));
        Finished { label: std::mem::take(&mut self.label), exit, stdout, stderr }
    }

    fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    fn fail(&mut self, what: &str) -> ! {
        self.kill();
        let stderr = self.stderr.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        panic!("{} {what}\n--- stdout\n{}\n--- stderr\n{stderr}", self.label, self.printed.join("\n"));
    }

    fn kill(&mut self) {
        if !self.reaped {
            let _ = kill_process_group(self.pid(), Signal::KILL);
            drop(self.child.wait());
            self.reaped = true;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A process that somebody else started, such as a tool's shell.
pub struct Witness(std::os::fd::OwnedFd);

impl Witness {
    /// Holds on to the process, so that a later process with the same number is not taken for it.
    pub fn of(pid: i32) -> Self {
        let pid = Pid::from_raw(pid).expect("a process id is positive");
        Self(pidfd_open(pid, PidfdFlags::empty()).expect("the process is running"))
    }

    /// The same of a process that may have ended meanwhile.
    pub fn try_of(pid: i32) -> Option<Self> {
        pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok().map(Self)
    }

    /// Ends the process, if it is still there.
    pub fn kill(&self) {
        let _ = pidfd_send_signal(&self.0, Signal::KILL);
    }

    /// Everything that a process has started and that runs, with what that has started.
    pub fn all_below(pid: Pid) -> Vec<Self> {
        let (mut found, mut next) = (Vec::new(), vec![pid]);
        while let Some(parent) = next.pop() {
            for child in children_of(parent) {
                // A process that has ended meanwhile is fine.
                if let Ok(process) = pidfd_open(child, PidfdFlags::empty()) {
                    found.push(Self(process));
                    next.push(child);
                }
            }
        }
        found
    }

    pub fn is_gone_within(&self, limit: Duration) -> bool {
        readable_within(&self.0, limit)
    }
}

fn children_of(parent: Pid) -> Vec<Pid> {
    let threads = std::fs::read_dir(format!("/proc/{}/task", parent.as_raw_nonzero()));
    let children = threads.into_iter().flatten().flatten().flat_map(|thread| {
        let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        children.split_whitespace().filter_map(|id| Pid::from_raw(id.parse().ok()?)).collect::<Vec<_>>()
    });
    children.collect()
}

fn exited_within(pid: Pid, limit: Duration) -> bool {
    // The process is a child that nobody has waited for, so that its number is still its own.
    let descriptor = pidfd_open(pid, PidfdFlags::empty()).expect("a child that was not waited for");
    readable_within(&descriptor, limit)
}

fn readable_within(descriptor: &std::os::fd::OwnedFd, limit: Duration) -> bool {
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).expect("a limit of a test is short");
        match poll(&mut [PollFd::new(descriptor, PollFlags::IN)], Some(&timeout)) {
            Ok(ready) => return ready > 0,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("waiting for a process: {error}"),
        }
    }
}

/// A run that ended.
#[derive(Debug, Clone)]
pub struct Finished {
    pub label: String,
    /// The exit code; negative: the signal that ended it.
    pub exit: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    /// Every line of stdout as JSON. A line that is not JSON fails the test, unless a kill cut it.
    pub fn events(&self) -> Vec<Value> {
        let mut events = Vec::new();
        for line in self.stdout.lines() {
            match serde_json::from_str(line) {
                Ok(event) => events.push(event),
                Err(_) if self.exit == -Signal::KILL.as_raw() && self.stdout.trim_end().ends_with(line) => {}
                Err(error) => panic!("{}: stdout has a line that is not JSON ({error}): {line}", self.label),
            }
        }
        events
    }

    /// The last line, which says how the run ended.
    pub fn result(&self) -> Value {
        let last = self.events().pop().unwrap_or_default();
        assert_eq!(last["type"], "result", "{}: the last line is not the result\n{self:#?}", self.label);
        last
    }

    pub fn session_id(&self) -> String {
        self.result()["sessionId"].as_str().expect("a result names its session").to_owned()
    }

    pub fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
        events.iter().filter(|event| event["type"] == kind).collect()
    }

    #[track_caller]
    pub fn expect_exit(self, exit: i32) -> Self {
        assert_eq!(
            self.exit, exit,
            "{}\n--- stdout\n{}\n--- stderr\n{}",
            self.label, self.stdout, self.stderr
        );
        self
    }
}
