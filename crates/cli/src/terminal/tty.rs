//! Guard of the terminal: raw mode and our modes while a session has it, everything as before afterwards.
//!
//! Order when it is given back: modes off, input that is still under way discarded, line settings restored. It happens once, whoever
//! comes first: [`Tty::release`] after the screen has been left, the panic hook, or the drop of the guard. After `kill -9` raw mode and
//! bracketed paste remain, which `reset` or the next program ends.

use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Once;
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use hangar_terminal::modes::{self, Modes};
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr};

use super::abilities::{Abilities, guess, is_dumb};
use super::input::{ASK_BACKGROUND, Decoder, Input};
use super::reader::KeyReader;
use super::signals;

/// Time in which a terminal answers, if it answers at all. Nobody waits for it but the end of a session that asked just before.
const ANSWER_WAIT: Duration = Duration::from_millis(150);
/// Time for which a terminal may take no bytes before a write fails.
const WRITE_WAIT: Duration = Duration::from_secs(10);
/// Size of a terminal that does not tell it.
const DEFAULT_SIZE: (usize, usize) = (80, 24);

/// Terminal that is held at the moment. It is here and not in the guard because the panic hook has to find it.
static HELD: Mutex<Option<Held>> = Mutex::new(None);

#[derive(Debug)]
struct Held {
    input: OwnedFd,
    output: OwnedFd,
    saved: Termios,
    modes: Modes,
    /// Thread of the session. If it panics, the session is over; other threads' panics are theirs.
    owner: ThreadId,
    /// Whether the alternate screen is shown.
    alternate: bool,
    /// Time of a question that has no answer yet.
    asked: Option<Instant>,
}

/// Reason for which a session cannot have the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unfit {
    Input,
    Output,
    Dumb,
}

impl std::fmt::Display for Unfit {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Input => "standard input is not a terminal",
            Self::Output => "standard output is not a terminal",
            Self::Dumb => "TERM names a terminal that can only print lines",
        })
    }
}

/// Terminal of the process, in raw mode from [`Self::acquire`] to [`Self::release`].
#[derive(Debug)]
pub(crate) struct Tty {
    input: OwnedFd,
    output: OwnedFd,
    abilities: Abilities,
    reader: Option<KeyReader>,
    asked: bool,
    /// Whether the terminal reports its focus while it is held.
    watches_focus: bool,
    /// Whether the terminal shows that work is under way.
    shows_progress: bool,
}

impl Tty {
    /// The terminal of standard input and output, untouched yet.
    pub(crate) fn open() -> io::Result<Result<Self, Unfit>> {
        let variable = |name: &str| std::env::var(name).ok();
        let (stdin, stdout) = (io::stdin(), io::stdout());
        if !stdin.is_terminal() {
            return Ok(Err(Unfit::Input));
        }
        if !stdout.is_terminal() {
            return Ok(Err(Unfit::Output));
        }
        if is_dumb(variable) {
            return Ok(Err(Unfit::Dumb));
        }
        Ok(Ok(Self {
            input: stdin.as_fd().try_clone_to_owned()?,
            output: stdout.as_fd().try_clone_to_owned()?,
            abilities: guess(variable),
            reader: None,
            asked: false,
            watches_focus: false,
            shows_progress: false,
        }))
    }

    pub(crate) fn abilities(&self) -> Abilities {
        self.abilities
    }

    /// Columns and rows.
    pub(crate) fn size(&self) -> (usize, usize) {
        match rustix::termios::tcgetwinsize(&self.output) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
            Ok(_) | Err(_) => DEFAULT_SIZE,
        }
    }

    /// Switches to raw mode, switches our modes on and starts to read. Keys that were typed before are kept. The terminal is asked
    /// for its background colour the first time; the answer is an input like others.
    ///
    /// Called on the thread that runs the session, and that runs no tasks of others: a panic there ends the session.
    pub(crate) fn acquire(&mut self) -> io::Result<()> {
        install_panic_hook();
        let saved = tcgetattr(&self.input)?;
        let mut raw = saved.clone();
        raw.make_raw();
        let ask = self.abilities.background && !self.asked;
        let modes = self.modes();
        *HELD.lock() = Some(Held {
            input: self.input.try_clone()?,
            output: self.output.try_clone()?,
            saved,
            modes,
            owner: std::thread::current().id(),
            alternate: false,
            asked: ask.then(Instant::now),
        });
        tcsetattr(&self.input, OptionalActions::Now, &raw)?;
        let mut bytes = modes::enter(&modes);
        if ask {
            bytes.extend_from_slice(ASK_BACKGROUND);
            self.asked = true;
        }
        write_all(&self.output, &bytes)?;
        self.reader = Some(KeyReader::start(self.input.try_clone()?)?);
        Ok(())
    }

    /// The modes that are on while the terminal is held.
    fn modes(&self) -> Modes {
        let focus = self.abilities.modes.focus && self.watches_focus;
        Modes { focus, ..self.abilities.modes }
    }

    /// Has the terminal report its focus, or no longer. A program that is killed leaves the reports on, and the shell shows them as
    /// garbage: they are on only while somebody needs them.
    pub(crate) fn watch_focus(&mut self, on: bool) -> io::Result<()> {
        if self.watches_focus == on {
            return Ok(());
        }
        self.watches_focus = on;
        let modes = self.modes();
        let before = match HELD.lock().as_mut() {
            Some(held) => std::mem::replace(&mut held.modes, modes),
            None => return Ok(()),
        };
        match before == modes {
            true => Ok(()),
            false => write_all(&self.output, modes::focus(on)),
        }
    }

    /// Shows in the task bar or tab of the terminal that work is under way, where the terminal can.
    pub(crate) fn show_progress(&mut self, on: bool) -> io::Result<()> {
        if !self.modes().progress || self.shows_progress == on {
            return Ok(());
        }
        self.shows_progress = on;
        write_all(&self.output, modes::progress(on))
    }

    /// Gives the terminal back. The screen has been left before.
    pub(crate) fn release(&mut self) {
        self.reader = None;
        self.shows_progress = false;
        if let Some(held) = HELD.lock().take() {
            let bytes = modes::leave(&held.modes);
            held.restore(&bytes);
        }
    }

    /// Gives the terminal back, stops the process as Ctrl+Z does, and takes the terminal again when it is continued. The screen has been
    /// suspended before, and is drawn anew after.
    pub(crate) async fn suspend(&mut self) -> io::Result<()> {
        self.release();
        signals::stop().await?;
        self.acquire()
    }

    /// Writes the bytes of a draw. `alternate` says whether they leave the alternate screen shown.
    pub(crate) fn write(&mut self, bytes: &[u8], alternate: bool) -> io::Result<()> {
        if let Some(held) = HELD.lock().as_mut() {
            held.alternate |= alternate;
        }
        write_all(&self.output, bytes)?;
        if let Some(held) = HELD.lock().as_mut() {
            held.alternate = alternate;
        }
        Ok(())
    }

    /// The next input; `None` if the terminal is closed or not held. Cancellation loses nothing.
    pub(crate) async fn next(&mut self) -> Option<Input> {
        let input = self.reader.as_mut()?.next().await;
        if let (Some(Input::Background { .. }), Some(held)) = (&input, HELD.lock().as_mut()) {
            held.asked = None;
        }
        input
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        self.reader = None;
        rescue();
    }
}

/// Restores a terminal that is still held, whatever is on its screen.
fn rescue() {
    if let Some(held) = HELD.lock().take() {
        let bytes = modes::rescue(&held.modes, held.alternate);
        held.restore(&bytes);
    }
}

impl Held {
    /// Errors have nowhere to go: the terminal may be closed, and everybody who calls this is about to end.
    fn restore(self, bytes: &[u8]) {
        let _ = write_all(&self.output, bytes);
        if let Some(asked) = self.asked {
            drain_answer(&self.input, asked + ANSWER_WAIT);
        }
        // In the background the terminal is the shell's, and setting it would stop us.
        let foreground = rustix::termios::tcgetpgrp(&self.input);
        if foreground.is_ok_and(|group| group != rustix::process::getpgrp()) {
            return;
        }
        let _ = tcflush(&self.input, QueueSelector::IFlush);
        // Not after the output was taken: a terminal that takes none would keep us here.
        let _ = tcsetattr(&self.input, OptionalActions::Now, &self.saved);
    }
}

/// Reads until the answer to our question has come, or its time is over: the shell would take it for typed text.
fn drain_answer(input: &OwnedFd, until: Instant) {
    let mut decoder = Decoder::default();
    let mut buffer = [0; 1024];
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        if !ready(input, PollFlags::IN, left) {
            return;
        }
        match rustix::io::read(input, &mut buffer) {
            Ok(0) => return,
            Ok(length) => {
                let inputs = decoder.feed(&buffer[..length]);
                if inputs.iter().any(|input| matches!(input, Input::Background { .. })) {
                    return;
                }
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => return,
        }
    }
}

/// Waits until a file can be read or written, within a bound.
fn ready(file: &OwnedFd, flags: PollFlags, bound: Duration) -> bool {
    let Ok(bound) = Timespec::try_from(bound) else { return false };
    let mut files = [PollFd::from_borrowed_fd(file.as_fd(), flags)];
    match poll(&mut files, Some(&bound)) {
        Ok(count) => count > 0,
        Err(Errno::INTR) => true,
        Err(_) => false,
    }
}

fn write_all(output: &OwnedFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(output, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            // Another program that has the terminal open may have made it non-blocking.
            Err(Errno::AGAIN) if ready(output, PollFlags::OUT, WRITE_WAIT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Makes a panic of the session restore the terminal before its message is printed. A panic elsewhere goes to the log while a
/// session has the terminal: its text would be drawn into the tail.
fn install_panic_hook() {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            // No lock is waited for: the panic may have come while it was held.
            let owner = HELD.try_lock().and_then(|held| held.as_ref().map(|held| held.owner));
            match owner {
                Some(owner) if owner == std::thread::current().id() => rescue(),
                Some(_) => {
                    tracing::error!(panic = %info, "a thread panicked");
                    return;
                }
                None => {}
            }
            previous(info);
        }));
    });
}

#[cfg(test)]
mod tests;
