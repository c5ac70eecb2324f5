//! The commands beside the run itself.

pub(crate) mod doctor;
pub(crate) mod features;
pub(crate) mod mcp;
pub(crate) mod models;
pub(crate) mod rewind;
pub(crate) mod serve;
pub(crate) mod sessions;

use std::io::Write;

use anyhow::Result;

use crate::exit::Exit;
use crate::settings::Settings;

/// Drivers read the first `X.Y.Z` of the first line.
pub(crate) fn version(settings: &Settings) -> Result<Exit> {
    print_line(&format!("{} {}", settings.program, env!("CARGO_PKG_VERSION")))?;
    Ok(Exit::Done)
}

/// A line of a command's answer. A reader that went away is a normal end.
pub(crate) fn print_line(line: &str) -> Result<()> {
    match writeln!(std::io::stdout().lock(), "{line}") {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        other => Ok(other?),
    }
}
