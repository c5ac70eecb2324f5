//! A machine that exists for one test: a home, a directory to work in, a temp directory, and nothing of the real user.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::Invocation;

pub struct Scratch {
    root: tempfile::TempDir,
    /// The root with links resolved, as the program under test will report it.
    real: PathBuf,
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl Scratch {
    pub fn new() -> Self {
        let root = tempfile::Builder::new().prefix("hangar-test-").tempdir().expect("a temporary directory");
        let real = root.path().canonicalize().expect("the temporary directory exists");
        let scratch = Self { root, real };
        for directory in [scratch.home(), scratch.work(), scratch.tmp()] {
            std::fs::create_dir_all(&directory).expect("a directory in the scratch");
        }
        scratch
    }

    pub fn root(&self) -> &Path {
        &self.real
    }

    /// `$HOME`.
    pub fn home(&self) -> PathBuf {
        self.real.join("home")
    }

    /// Where the program keeps its own state: `$HANGAR_HOME`.
    pub fn state(&self) -> PathBuf {
        self.home().join("state")
    }

    /// The directory that the program is started in unless a test says otherwise.
    pub fn work(&self) -> PathBuf {
        self.real.join("work")
    }

    pub fn tmp(&self) -> PathBuf {
        self.real.join("tmp")
    }

    /// Puts a file below the working directory.
    pub fn file(&self, path: &str, text: &str) -> PathBuf {
        let path = self.work().join(path);
        std::fs::create_dir_all(path.parent().expect("a file is in a directory"))
            .expect("a directory for the file");
        std::fs::write(&path, text).expect("a file in the scratch");
        path
    }

    /// The log of a session, as text.
    pub fn log(&self, session: &str) -> String {
        self.try_log(session).unwrap_or_else(|| panic!("session {session} has no log"))
    }

    /// The log of a session that may not have come into being.
    pub fn try_log(&self, session: &str) -> Option<String> {
        let path = self.state().join("session-state").join(session).join("events.jsonl");
        std::fs::read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The ids of all sessions, sorted.
    pub fn sessions(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.state().join("session-state")) else { return Vec::new() };
        let mut ids: Vec<String> = entries
            .filter_map(Result::ok)
            .filter(|entry| entry.path().join("events.jsonl").exists())
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        ids.sort();
        ids
    }

    /// A program with the environment of this machine and nothing else.
    pub fn run(&self, program: impl AsRef<Path>) -> Invocation {
        Invocation::new(self.command(program))
    }

    /// The same as a command, for tests that start it themselves.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home())
            .env("HANGAR_HOME", self.state())
            .env("COPILOT_HOME", self.state())
            .env("TMPDIR", self.tmp())
            .env("LANG", "C.UTF-8")
            .current_dir(self.work());
        command
    }

    /// Keeps the directory after the test and says where it is, for a look at what a failure left behind.
    pub fn keep(self) -> PathBuf {
        self.root.keep()
    }
}
