//! A pty of 120x40 with a program in it, whose queries are answered as a plain terminal would.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use nix::pty::{Winsize, openpty};
use nix::sys::termios::{LocalFlags, SetArg, tcgetattr, tcsetattr};

use super::processes;
use super::views::View;

const SIZE: Winsize = Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
/// Bytes of output that are searched; older ones are dropped.
const KEPT: usize = 256 << 10;

/// Queries of programs and what they are answered.
const ANSWERS: &[(&[u8], &[u8])] = &[
    (b"\x1b[c", b"\x1b[?62;22c"),
    (b"\x1b[0c", b"\x1b[?62;22c"),
    (b"\x1b[>0q", b"\x1bP>|plain(1)\x1b\\"),
    (b"\x1b[6n", b"\x1b[1;1R"),
    (b"\x1b[?6n", b"\x1b[?1;1R"),
    (b"\x1b[5n", b"\x1b[0n"),
    (b"\x1b[?u", b"\x1b[?0u"),
    (b"\x1b[?2026$p", b"\x1b[?2026;2$y"),
    (b"\x1b]10;?", b"\x1b]10;rgb:d0d0/d0d0/d0d0\x1b\\"),
    (b"\x1b]11;?", b"\x1b]11;rgb:1010/1010/1010\x1b\\"),
];

pub(super) struct Pty {
    child: Child,
    master: File,
    output: Receiver<(Instant, Vec<u8>)>,
    /// Output that was not forgotten.
    seen: Vec<u8>,
    /// Output that the emulator has not got.
    unfed: Vec<u8>,
    emulator: avt::Terminal,
    written: u64,
    began: Instant,
    mark: String,
}

impl Pty {
    pub(super) fn spawn(view: &View) -> Result<Self> {
        let pair = openpty(Some(&SIZE), None).context("cannot open a pty")?;
        let slave = File::from(pair.slave);
        silence(&slave).context("cannot set the pty up")?;
        let master = File::from(pair.master);
        let mark = format!("{}{}", processes::MARK, std::process::id());
        let job = view.job();
        let mut command = Command::new("setsid");
        command.arg("--ctty").arg(&job.program).args(&job.args).current_dir(&job.directory);
        command.env_clear().envs(job.env.iter().map(|(name, value)| (name, value)));
        command.env("TERM", "xterm-256color").env(processes::MARK, &mark);
        command
            .stdin(Stdio::from(slave.try_clone()?))
            .stdout(Stdio::from(slave.try_clone()?))
            .stderr(Stdio::from(slave));
        let began = Instant::now();
        let child = command.spawn().with_context(|| format!("cannot start {}", view.name))?;
        drop(command);
        let (sender, output) = channel();
        let mut reader = master.try_clone()?;
        let mut answers = master.try_clone()?;
        std::thread::spawn(move || {
            let mut buffer = vec![0; 64 << 10];
            // The read fails when the last program of the pty has gone.
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                let now = Instant::now();
                for answer in replies(&buffer[..count]) {
                    let _ = answers.write_all(answer);
                }
                if sender.send((now, buffer[..count].to_vec())).is_err() {
                    return;
                }
            }
        });
        let (columns, rows) = (usize::from(SIZE.ws_col), usize::from(SIZE.ws_row));
        let emulator = avt::Terminal::with_scrollback(columns, rows, Some(0))
            .map_err(|error| anyhow!("the emulator cannot be made: {error:?}"))?;
        let (seen, unfed) = (Vec::new(), Vec::new());
        Ok(Self { child, master, output, seen, unfed, emulator, written: 0, began, mark })
    }

    pub(super) fn began(&self) -> Instant {
        self.began
    }

    /// Bytes that the program has written.
    pub(super) fn written(&mut self) -> u64 {
        while let Ok(piece) = self.output.try_recv() {
            self.take(piece.1);
        }
        self.written
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.master.write_all(bytes).context("the program has left its terminal")
    }

    fn take(&mut self, piece: Vec<u8>) {
        self.written += piece.len() as u64;
        self.unfed.extend_from_slice(&piece);
        self.seen.extend(piece);
        if self.seen.len() > KEPT {
            self.seen.drain(..self.seen.len() - KEPT);
        }
    }

    /// Drops what was written so far, so that it is not found again.
    pub(super) fn forget(&mut self) {
        self.written();
        self.seen.clear();
    }

    /// Waits until a text is written, and tells when. Sequences between its letters do not matter.
    pub(super) fn wait_for(&mut self, text: &str, patience: Duration) -> Option<Instant> {
        let until = Instant::now() + patience;
        loop {
            let left = until.checked_duration_since(Instant::now())?;
            match self.output.recv_timeout(left) {
                Ok((at, piece)) => {
                    self.take(piece);
                    if plain(&self.seen).contains(text) {
                        return Some(at);
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// Waits until a text is on the screen, other than in a prompt (`SAY:text`), and tells when it was written. Programs that draw
    /// only the cells that change never write it in one piece.
    pub(super) fn wait_until_shown(&mut self, text: &str, patience: Duration) -> Option<Instant> {
        let until = Instant::now() + patience;
        loop {
            let left = until.checked_duration_since(Instant::now())?;
            let (at, piece) = self.output.recv_timeout(left).ok()?;
            self.take(piece);
            if self.shows(text) {
                return Some(at);
            }
        }
    }

    fn shows(&mut self, text: &str) -> bool {
        // A character may have come in part.
        let whole = match std::str::from_utf8(&self.unfed) {
            Ok(_) => self.unfed.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => self.unfed.len(),
        };
        let rest = self.unfed.split_off(whole);
        let fed = std::mem::replace(&mut self.unfed, rest);
        self.emulator.feed(String::from_utf8_lossy(&fed).into_owned());
        let is_answer = |line: &str| line.match_indices(text).any(|(at, _)| !line[..at].ends_with(':'));
        self.emulator.screen().visible_lines().any(|line| is_answer(&line.text()))
    }

    /// Waits until nothing has been written for a while.
    pub(super) fn settle(&mut self, quiet: Duration) {
        while let Ok((_, piece)) = self.output.recv_timeout(quiet) {
            self.take(piece);
        }
    }

    /// The end of what was written, for messages.
    pub(super) fn tail(&self) -> String {
        let text = plain(&self.seen);
        let from = text.ceil_char_boundary(text.len().saturating_sub(600));
        text[from..].to_owned()
    }

    /// Memory of the program and everything that it started.
    pub(super) fn memory(&self) -> u64 {
        processes::memory(&self.mark)
    }

    /// Number of times that a thread of the program was put on a processor.
    pub(super) fn wakes(&self) -> u64 {
        processes::wakes(&self.mark)
    }

    pub(super) fn cpu(&self) -> Duration {
        processes::cpu(&self.mark)
    }

    /// Ends the program and everything that it started.
    pub(super) fn close(self) {
        drop(self);
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        processes::end(&self.mark);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Has the pty echo nothing by itself: a key is seen once the program shows it.
fn silence(slave: &File) -> nix::Result<()> {
    let mut settings = tcgetattr(slave)?;
    settings.local_flags.remove(LocalFlags::ECHO);
    tcsetattr(slave, SetArg::TCSANOW, &settings)
}

fn replies(bytes: &[u8]) -> impl Iterator<Item = &'static [u8]> {
    let found =
        ANSWERS.iter().filter(move |(query, _)| bytes.windows(query.len()).any(|window| window == *query));
    found.map(|(_, answer)| *answer)
}

/// Text without escape sequences and line ends: words that were wrapped or drawn in parts are whole.
fn plain(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\x1b' => match chars.next() {
                Some('[') => while chars.next().is_some_and(|char| !('\x40'..='\x7e').contains(&char)) {},
                Some(']' | 'P' | '_') => {
                    while let Some(char) = chars.next() {
                        if char == '\x07' || (char == '\x1b' && chars.next_if_eq(&'\\').is_some()) {
                            break;
                        }
                    }
                }
                _ => {}
            },
            '\r' | '\n' => {}
            char => plain.push(char),
        }
    }
    plain
}
