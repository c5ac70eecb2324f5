//! Exit codes of the program.

use std::process::ExitCode;

/// Documented exit code. `--help` lists the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Done,
    Failed,
    NeedsAttention,
    /// A signal ended the terminal's view; with the code that shells give it.
    Signal(u8),
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::NeedsAttention => 2,
            Exit::Signal(code) => code,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.code())
    }
}
