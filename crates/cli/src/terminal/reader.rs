//! Thread that reads the terminal while the session has it.
//!
//! A thread, since the file of a terminal is shared with the shell: the non-blocking mode that an event loop needs would stay on
//! in the shell if we were killed. It sleeps in `poll` and wakes only for bytes.

use std::io::{PipeReader, PipeWriter};
use std::os::fd::{AsFd as _, OwnedFd};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::input::{Decoder, Input};

/// Time after which an escape byte that nothing follows is the key Esc.
const ESCAPE_WAIT: Duration = Duration::from_millis(50);
/// Time after which a paste that nothing follows has ended, although the terminal did not say so.
const PASTE_WAIT: Duration = Duration::from_secs(5);
/// Inputs that wait for the session. With more, the kernel keeps the bytes, and after it the terminal.
const QUEUE: usize = 256;
const READ_SIZE: usize = 16 * 1024;

/// Running reader. It stops when it is dropped, without taking a byte that comes after.
#[derive(Debug)]
pub(super) struct KeyReader {
    inputs: Receiver<Input>,
    /// The thread ends when this end of its pipe is closed.
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl KeyReader {
    pub(super) fn start(terminal: OwnedFd) -> std::io::Result<Self> {
        let (stopped, stop) = std::io::pipe()?;
        let (sender, inputs) = channel(QUEUE);
        let thread = std::thread::Builder::new()
            .name("terminal-input".to_owned())
            .spawn(move || read(&terminal, &stopped, &sender))?;
        Ok(Self { inputs, stop: Some(stop), thread: Some(thread) })
    }

    /// The next input; `None` once the terminal is closed.
    pub(super) async fn next(&mut self) -> Option<Input> {
        self.inputs.recv().await
    }
}

impl Drop for KeyReader {
    fn drop(&mut self) {
        // The thread may be waiting for room in the queue.
        self.inputs.close();
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // It has nothing to tell, not even of a panic.
            let _ = thread.join();
        }
    }
}

fn read(terminal: &OwnedFd, stopped: &PipeReader, sender: &Sender<Input>) {
    let mut decoder = Decoder::default();
    let mut buffer = vec![0; READ_SIZE];
    loop {
        let inputs = match wait(terminal, stopped, timeout(&decoder)) {
            Wake::Bytes => match rustix::io::read(terminal, &mut buffer) {
                Ok(0) => return,
                Ok(length) => decoder.feed(&buffer[..length]),
                Err(Errno::INTR | Errno::AGAIN) => continue,
                // The terminal is closed.
                Err(_) => return,
            },
            Wake::Timeout => decoder.flush(),
            Wake::Stop => return,
        };
        for input in inputs {
            if sender.blocking_send(input).is_err() {
                return;
            }
        }
    }
}

fn timeout(decoder: &Decoder) -> Option<Duration> {
    if decoder.pasting() { Some(PASTE_WAIT) } else { decoder.undecided().then_some(ESCAPE_WAIT) }
}

/// Reason for which the thread goes on.
enum Wake {
    Bytes,
    Timeout,
    Stop,
}

fn wait(terminal: &OwnedFd, stopped: &PipeReader, timeout: Option<Duration>) -> Wake {
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    loop {
        let mut files = [
            PollFd::from_borrowed_fd(stopped.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(terminal.as_fd(), PollFlags::IN),
        ];
        match poll(&mut files, timeout.as_ref()) {
            Ok(0) => return Wake::Timeout,
            Ok(_) if !files[0].revents().is_empty() => return Wake::Stop,
            // A closed terminal is readable, too: the read fails.
            Ok(_) => return Wake::Bytes,
            Err(Errno::INTR) => {}
            Err(_) => return Wake::Stop,
        }
    }
}
