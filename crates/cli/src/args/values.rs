//! Values of flags.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use clap::ValueEnum;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    #[default]
    Text,
    Json,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    #[default]
    On,
    Off,
}

impl From<bool> for Switch {
    fn from(on: bool) -> Self {
        if on { Switch::On } else { Switch::Off }
    }
}

/// How often a run in autopilot mode is continued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContinueLimit(pub(crate) u32);

impl FromStr for ContinueLimit {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.parse().map(Self)
    }
}

impl fmt::Display for ContinueLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Default for ContinueLimit {
    fn default() -> Self {
        Self(5)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeArg {
    Interactive,
    Plan,
    Autopilot,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EffortArg {
    None,
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

impl EffortArg {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            EffortArg::None => "none",
            EffortArg::Minimal => "minimal",
            EffortArg::Low => "low",
            EffortArg::Medium => "medium",
            EffortArg::High => "high",
            EffortArg::Xhigh => "xhigh",
            EffortArg::Max => "max",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    None,
    Error,
    Warning,
    Info,
    Debug,
    All,
    Default,
}
