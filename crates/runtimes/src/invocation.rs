//! The command line of one turn, with the files that belong to it.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// A larger file is not one that an agent left for us.
pub(crate) const MAX_REPORT: u64 = 4 << 20;

/// A command line with what goes in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCommandLine {
    /// Path of the program here; over ssh the configured one.
    pub program: String,
    pub args: Vec<Argument>,
    pub env: Vec<(String, String)>,
    /// Further variables that it must not see.
    pub without: Vec<String>,
    pub stdin: Option<String>,
    /// Session id that the agent is told to use.
    pub session_id: Option<String>,
}

impl AgentCommandLine {
    /// Arguments and input. The caller finds the program.
    pub(crate) fn new(args: Vec<impl Into<Argument>>, stdin: String) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        Self {
            program: String::new(),
            args,
            env: Vec::new(),
            without: Vec::new(),
            stdin: Some(stdin),
            session_id: None,
        }
    }
}

/// One argument of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Argument {
    Word(OsString),
    /// Path of a file that holds a text, prefixed by `before`: for texts that are too long or too secret for a command
    /// line.
    Input {
        before: String,
        text: String,
    },
    /// Path of a file that the agent writes for us, prefixed by `before`. There is at most one.
    Report {
        before: String,
    },
}

impl<T: Into<OsString>> From<T> for Argument {
    fn from(word: T) -> Self {
        Argument::Word(word.into())
    }
}

impl std::fmt::Display for Argument {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Argument::Word(word) => f.write_str(&word.to_string_lossy()),
            Argument::Input { before, text } => write!(f, "{before}<{text}>"),
            Argument::Report { before } => write!(f, "{before}<report>"),
        }
    }
}

/// The files of one turn on this machine. They are removed with it.
#[derive(Debug, Default)]
pub(crate) struct TurnFiles {
    inputs: Vec<PathBuf>,
    report: Option<PathBuf>,
}

impl TurnFiles {
    /// Writes the files below `scratch` and returns the command-line arguments.
    pub(crate) fn write(args: &[Argument], scratch: Option<&Path>) -> io::Result<(Vec<OsString>, Self)> {
        let mut files = Self::default();
        let mut words = Vec::with_capacity(args.len());
        for argument in args {
            words.push(match argument {
                Argument::Word(word) => word.clone(),
                Argument::Input { before, text } => {
                    let path = new_file(scratch)?;
                    files.inputs.push(path.clone());
                    hangar_disk::private()
                        .write(true)
                        .create_new(true)
                        .open(&path)?
                        .write_all(text.as_bytes())?;
                    with_path(before, &path)
                }
                Argument::Report { before } => {
                    let path = new_file(scratch)?;
                    files.report = Some(path.clone());
                    with_path(before, &path)
                }
            });
        }
        Ok((words, files))
    }

    /// Report that the agent left in a file.
    pub(crate) fn report(&self) -> Option<String> {
        let mut text = String::new();
        let file = std::fs::File::open(self.report.as_ref()?).ok()?;
        file.take(MAX_REPORT).read_to_string(&mut text).ok()?;
        Some(text)
    }
}

impl Drop for TurnFiles {
    fn drop(&mut self) {
        for file in self.inputs.iter().chain(&self.report) {
            // A report that the agent did not write does not exist.
            let _ = std::fs::remove_file(file);
        }
    }
}

fn new_file(scratch: Option<&Path>) -> io::Result<PathBuf> {
    let scratch = scratch.ok_or_else(|| io::Error::other("there is no directory for the files of a turn"))?;
    hangar_disk::ensure_dir(scratch)?;
    Ok(scratch.join(format!("turn-{}", uuid::Uuid::new_v4())))
}

fn with_path(before: &str, path: &Path) -> OsString {
    let mut word = OsString::from(before);
    word.push(path);
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_turn_are_there_for_its_time_and_for_nobody_else() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let args = [
            Argument::from("-x"),
            Argument::Input { before: "--in=@".to_owned(), text: "secret".to_owned() },
            Argument::Report { before: "--out=".to_owned() },
        ];
        let (words, files) = TurnFiles::write(&args, Some(dir.path())).unwrap();
        let words: Vec<&str> = words.iter().map(|word| word.to_str().unwrap()).collect();
        let input = Path::new(words[1].strip_prefix("--in=@").unwrap());
        assert_eq!((words[0], std::fs::read_to_string(input).unwrap().as_str()), ("-x", "secret"));
        assert_eq!(input.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(files.report(), None);
        std::fs::write(words[2].strip_prefix("--out=").unwrap(), "{}").unwrap();
        assert_eq!(files.report().as_deref(), Some("{}"));
        drop(files);
        assert_eq!(dir.path().read_dir().unwrap().count(), 0);
    }
}
