//! A program in a terminal of its own: a pty whose other end the test reads and types into.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

/// Far above what any step needs on a loaded machine; reaching it is a failure, never a measurement.
const LIMIT: Duration = Duration::from_secs(60);

/// Job-control shell in which the program runs. It prints the status of the program, continues it if it was stopped, and stays
/// until the test is over, so that the terminal can be looked at after the program.
const SHELL: &str = r#"
set -m
"$@"
echo "status $?"
if fg > /dev/null 2>&1; then echo "status $?"; fi
read -r last
"#;

pub struct Pty {
    terminal: OwnedFd,
    output: Vec<u8>,
    child: Child,
    /// Line settings before anything ran in the terminal.
    pub before: LineSettings,
}

/// Line settings, in a form that can be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineSettings {
    flags: String,
    /// Whether the terminal collects lines and echoes, as shells leave it.
    pub cooked: bool,
}

impl Pty {
    /// Starts a command in a terminal of a size. Its standard streams are the terminal, whatever the command says.
    pub fn start(command: &Command, columns: u16, rows: u16) -> Self {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a pty");
        grantpt(&terminal).expect("grant the pty");
        unlockpt(&terminal).expect("unlock the pty");
        let name = ptsname(&terminal, Vec::new()).expect("the name of the pty");
        let inside =
            File::options().read(true).write(true).open(name.to_str().expect("a name")).expect("open it");
        set_size(&terminal, columns, rows);
        let before = line_settings(&terminal);
        let stream = || Stdio::from(inside.try_clone().expect("another handle"));
        let mut shell = Command::new("setsid");
        shell.args(["--ctty", "sh", "-c", SHELL, "sh"]).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        if let Some(directory) = command.get_current_dir() {
            shell.current_dir(directory);
        }
        let child =
            shell.stdin(stream()).stdout(stream()).stderr(stream()).spawn().expect("setsid of util-linux");
        Self { terminal, output: Vec::new(), child, before }
    }

    pub fn resize(&self, columns: u16, rows: u16) {
        set_size(&self.terminal, columns, rows);
    }

    pub fn line_settings(&self) -> LineSettings {
        line_settings(&self.terminal)
    }

    pub fn type_bytes(&self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match rustix::io::write(&self.terminal, bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(Errno::INTR) => {}
                Err(error) => panic!("typing failed: {error}"),
            }
        }
    }

    /// Reads until a text has been printed after the last one that was waited for, and returns what came until then.
    pub fn wait_for(&mut self, text: &str) -> String {
        self.wait_for_any(&[text]).1
    }

    /// The same for the first of several texts, with its index.
    pub fn wait_for_any(&mut self, texts: &[&str]) -> (usize, String) {
        let until = Instant::now() + LIMIT;
        loop {
            let found = texts.iter().enumerate().filter_map(|(index, text)| {
                find(&self.output, text.as_bytes()).map(|at| (at, index, at + text.len()))
            });
            if let Some((_, index, end)) = found.min() {
                let seen: Vec<u8> = self.output.drain(..end).collect();
                return (index, String::from_utf8_lossy(&seen).into_owned());
            }
            let left = until.saturating_duration_since(Instant::now());
            assert!(
                self.read(left),
                "{texts:?} did not come, but {:?}",
                String::from_utf8_lossy(&self.output)
            );
        }
    }

    /// Reads for a while; whether a text has come by then. It counts as waited for if so.
    pub fn comes(&mut self, text: &str, within: Duration) -> bool {
        let until = Instant::now() + within;
        loop {
            if let Some(at) = find(&self.output, text.as_bytes()) {
                self.output.drain(..at + text.len());
                return true;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || !self.read(left) {
                return false;
            }
        }
    }

    /// Takes everything that has been printed and not waited for.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// Reads once, within a bound; whether anything came.
    pub fn read(&mut self, bound: Duration) -> bool {
        let bound = Timespec::try_from(bound).expect("a bound");
        let mut files = [PollFd::from_borrowed_fd(self.terminal.as_fd(), PollFlags::IN)];
        match poll(&mut files, Some(&bound)) {
            Ok(0) => return false,
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => panic!("waiting for the terminal failed: {error}"),
        }
        let mut buffer = [0; 4096];
        match rustix::io::read(&self.terminal, &mut buffer) {
            Ok(length) => self.output.extend_from_slice(&buffer[..length]),
            Err(Errno::INTR) => {}
            // Nobody has the other end any more.
            Err(_) => return false,
        }
        true
    }

    /// Closes the terminal as a closed window does, and waits until the shell in it has ended.
    pub fn hang_up(self) {
        let Self { terminal, mut child, .. } = self;
        drop(terminal);
        child.wait().expect("wait for the shell");
    }

    /// Ends the shell, once the program has ended.
    pub fn finish(mut self) {
        self.type_bytes(b"\n");
        self.child.wait().expect("wait for the shell");
    }
}

pub fn signal(process: u32, signal: Signal) {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(pid, signal).expect("send a signal");
}

fn line_settings(terminal: &OwnedFd) -> LineSettings {
    let termios = tcgetattr(terminal).expect("line settings");
    let modes = (termios.input_modes, termios.output_modes, termios.control_modes, termios.local_modes);
    let cooked = termios.local_modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
    LineSettings { flags: format!("{modes:?} {:?}", termios.special_codes), cooked }
}

fn set_size(terminal: &OwnedFd, columns: u16, rows: u16) {
    let size = Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).expect("set the size");
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|window| window == needle)
}

/// Modes that some output has switched on and not off again, as they are named in it (`?2004`), or by a word: the keyboard's
/// protocol, the title, the shape of the cursor, colours and other styles.
pub fn modes_left_on(output: &str) -> BTreeSet<String> {
    let mut on = BTreeSet::new();
    for sequence in output.split("\x1b[").skip(1) {
        let end = sequence.find(|char: char| ('@'..='~').contains(&char)).unwrap_or(0);
        let (parameters, last) = (&sequence[..end], sequence[end..].chars().next());
        match (parameters, last) {
            // The cursor and wrapping are on where nothing is switched.
            ("?25" | "?7", Some('l')) => on.insert(format!("no {parameters}")),
            ("?25" | "?7", Some('h')) => on.remove(&format!("no {parameters}")),
            (mode, Some('h')) if mode.starts_with('?') => on.insert(mode.to_owned()),
            (mode, Some('l')) if mode.starts_with('?') => on.remove(mode),
            (mode, Some('u')) if mode.starts_with('>') => on.insert("keyboard".to_owned()),
            (mode, Some('u')) if mode.starts_with('<') => on.remove("keyboard"),
            (">4;2", Some('m')) => on.insert("keys".to_owned()),
            (">4", Some('m')) => on.remove("keys"),
            ("22;2", Some('t')) => on.insert("title".to_owned()),
            ("23;2", Some('t')) => on.remove("title"),
            ("" | "0", Some('m')) => on.remove("style"),
            (style, Some('m')) if !style.starts_with('>') => on.insert("style".to_owned()),
            ("0 ", Some('q')) => on.remove("cursor"),
            (shape, Some('q')) if shape.ends_with(' ') => on.insert("cursor".to_owned()),
            _ => false,
        };
    }
    on
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_left_on_if_nothing_switches_them_off() {
        let left = |output: &str| modes_left_on(output).into_iter().collect::<Vec<_>>().join(" ");
        assert_eq!(left("a\x1b[?2004h\x1b[?25lb\x1b[>1u"), "?2004 keyboard no ?25");
        assert_eq!(left("\x1b[?2004h\x1b[>1u\x1b[?25l\x1b[?25h\x1b[<u\x1b[?2004l"), "");
        assert_eq!(left("\x1b[31ma\x1b[6 q"), "cursor style");
        assert_eq!(left("\x1b[1;38;5;9ma\x1b[m\x1b[6 q\x1b[>4;2mb\x1b[0 q\x1b[>4m"), "");
    }
}
