//! Looks after one running command: takes its output, notes its end, and ends it when told to.

use std::sync::Arc;
use std::time::Duration;

use hangar_process::{ProcessGroup, exit_code};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::output::{OutputDecoder, Plain};
use super::pipes::{Pipes, Stream};
use super::progress::OutputProgress;
use super::reporter::Reporter;
use super::tracked::{CompletionWaiter, ShellInput, Tracked};

/// Bytes taken from a stream at once, and so the most that one event of output carries.
const CHUNK: usize = 8 * 1024;

/// How long a command that was asked to end may take to tidy up.
const GRACE: Duration = Duration::from_millis(500);

/// Bytes read behind the end of a shell. What it wrote itself is in the pipes by then, and this is more than two pipes
/// hold; what comes after is from others, who may go on for ever.
const REST_LIMIT: usize = 4 * 1024 * 1024;

pub(super) struct Supervisor {
    shell: Arc<Tracked>,
    child: Child,
    group: ProcessGroup,
    pipes: Pipes,
    printing: Printing,
    reporter: Reporter,
}

/// From bytes to kept text and events.
struct Printing {
    shell: Arc<Tracked>,
    buffer: Box<[u8]>,
    stdout: (OutputDecoder, Plain),
    stderr: (OutputDecoder, Plain),
    progress: OutputProgress,
}

impl Supervisor {
    pub(super) fn new(
        shell: Arc<Tracked>,
        child: Child,
        group: ProcessGroup,
        pipes: Pipes,
        progress: OutputProgress,
        reporter: Reporter,
    ) -> Self {
        let printing = Printing {
            shell: Arc::clone(&shell),
            buffer: vec![0; CHUNK].into_boxed_slice(),
            stdout: Default::default(),
            stderr: Default::default(),
            progress,
        };
        Self { shell, child, group, pipes, printing, reporter }
    }

    pub(super) async fn run(mut self) {
        match self.run_to_end().await {
            Some(code) => {
                let witness = self.shell.end(code);
                self.report(code, witness).await;
                self.linger().await;
            }
            None => {
                self.terminate().await;
                self.shell.end_stopped();
            }
        }
    }

    /// The exit code, or `None` if the command is to be stopped.
    async fn run_to_end(&mut self) -> Option<i32> {
        let status = loop {
            let Printing { buffer, progress, .. } = &mut self.printing;
            let may_print = self.pipes.is_open() && !progress.is_behind();
            let partial_due = progress.partial_due();
            tokio::select! {
                () = self.shell.stop.cancelled() => return None,
                status = self.child.wait() => break status,
                Some((stream, length)) = self.pipes.next(buffer), if may_print => {
                    self.printing.take(stream, length);
                }
                () = progress.deliver(), if progress.has_news() => {}
                () = tokio::time::sleep_until(partial_due.unwrap_or_else(tokio::time::Instant::now)),
                    if partial_due.is_some() => self.printing.show_partial(),
                () = self.shell.left_alone.cancelled(), if !progress.is_passing() => progress.pass(),
            }
        };
        self.group.leader_ended();
        self.take_rest();
        self.printing.finish();
        while self.printing.progress.has_news() {
            tokio::select! {
                () = self.printing.progress.deliver() => {}
                // A call that has ended or was cancelled receives no events.
                () = self.shell.left_alone.cancelled() => self.printing.progress.pass(),
                () = self.shell.stop.cancelled() => self.printing.progress.pass(),
            }
        }
        // The status is unknown if another part of the process has reaped the child.
        Some(status.map_or(1, exit_code))
    }

    /// Reads what the shell had written when it ended, without waiting for others who hold its pipes.
    fn take_rest(&mut self) {
        let mut taken = 0;
        while taken < REST_LIMIT {
            let Some((stream, length)) = self.pipes.try_next(&mut self.printing.buffer) else { break };
            self.printing.take(stream, length);
            taken += length;
        }
    }

    async fn report(&self, exit_code: i32, witness: CompletionWaiter) {
        if witness == CompletionWaiter::Call {
            return;
        }
        tokio::select! {
            () = self.reporter.tell(&self.shell, exit_code) => {}
            () = self.shell.stop.cancelled() => {}
        }
    }

    /// A shell can end before what it started (`server &`). That goes on until the session ends, and so does reading
    /// what it prints: it would be stuck or killed by a pipe that nobody reads.
    async fn linger(&mut self) {
        if self.group.is_gone() && !self.pipes.is_open() {
            return;
        }
        self.printing.progress.silence();
        loop {
            tokio::select! {
                () = self.shell.stop.cancelled() => break,
                piece = self.pipes.next(&mut self.printing.buffer), if self.pipes.is_open() => match piece {
                    Some((stream, length)) => self.printing.take(stream, length),
                    // Everyone who held the pipes is gone; those who never did are only known by their group.
                    None if self.group.is_gone() => return,
                    None => {}
                },
            }
        }
        self.group.kill();
    }

    /// Asks the command to end, and ends it if it does not.
    async fn terminate(&mut self) {
        self.printing.progress.silence();
        self.group.terminate();
        let grace = tokio::time::sleep(GRACE);
        tokio::pin!(grace);
        let mut waited = false;
        while !waited || self.pipes.is_open() {
            tokio::select! {
                () = &mut grace => break,
                _ = self.child.wait(), if !waited => {
                    waited = true;
                    self.group.leader_ended();
                }
                piece = self.pipes.next(&mut self.printing.buffer), if self.pipes.is_open() => {
                    if let Some((stream, length)) = piece {
                        self.printing.take(stream, length);
                    }
                }
            }
        }
        self.group.kill();
        if !waited {
            let _ = self.child.wait().await;
        }
        self.printing.finish();
    }
}

impl Printing {
    fn take(&mut self, stream: Stream, length: usize) {
        let decoder = match stream {
            Stream::Stdout => &mut self.stdout.0,
            Stream::Stderr => &mut self.stderr.0,
        };
        let text = decoder.decode(&self.buffer[..length]);
        self.print(stream, text);
    }

    fn print(&mut self, stream: Stream, text: String) {
        if text.is_empty() {
            return;
        }
        let plain = match stream {
            Stream::Stdout => &mut self.stdout.1,
            Stream::Stderr => &mut self.stderr.1,
        };
        let mut readable = String::with_capacity(text.len());
        plain.push(&text, &mut readable);
        self.shell.print(&readable, |output| {
            // Listeners are spared what is not kept either.
            if !output.is_full() {
                self.progress.printed(stream, text, output.tail());
            }
        });
    }

    fn show_partial(&mut self) {
        self.shell.print("", |output| self.progress.show_partial(output.tail()));
    }

    /// Nothing more will come: shows what there is in the end, even if it is nothing.
    fn finish(&mut self) {
        let rest = self.stdout.0.finish();
        self.print(Stream::Stdout, rest);
        let rest = self.stderr.0.finish();
        self.print(Stream::Stderr, rest);
        self.show_partial();
    }
}

/// Writes to a command what calls give it.
pub(super) async fn feed(mut stdin: ChildStdin, mut inputs: mpsc::Receiver<ShellInput>) {
    while let Some(ShellInput::Text(text)) = inputs.recv().await {
        // A command that no longer reads has ended or will.
        if stdin.write_all(text.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Waits for a detached command for as long as the session lasts. The command does not end with it.
pub(super) async fn watch_detached(
    shell: Arc<Tracked>,
    mut child: Child,
    mark: String,
    closing: CancellationToken,
    reporter: Reporter,
) {
    let status = tokio::select! {
        status = child.wait() => status,
        () = closing.cancelled() => return,
        () = shell.stop.cancelled() => {
            // Made only now: a group kills its processes when it is dropped.
            if let Some(mut group) = ProcessGroup::of(&child, mark) {
                group.terminate();
                let _ = tokio::time::timeout(GRACE, child.wait()).await;
                group.kill();
                let _ = child.wait().await;
            }
            return shell.end_stopped();
        }
    };
    let code = status.map_or(1, exit_code);
    if shell.end(code) == CompletionWaiter::Nobody {
        reporter.tell(&shell, code).await;
    }
}
