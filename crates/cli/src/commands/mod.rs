//! Commands beside running a prompt.

mod checks;
pub(crate) mod doctor;
pub(crate) mod features;
pub(crate) mod mcp;
pub(crate) mod memory;
pub(crate) mod models;
pub(crate) mod plugin;
pub(crate) mod probe;
pub(crate) mod rewind;
pub(crate) mod serve;
pub(crate) mod sessions;
pub(crate) mod shell_files;

use std::io::Write;

use anyhow::Result;

use crate::exit::Exit;
use crate::settings::Settings;

pub(crate) fn version(settings: &Settings) -> Result<Exit> {
    print_line(&version_line(&settings.program))?;
    Ok(Exit::Done)
}

/// `hangar 0.2.0 (abc1234)`, without the commit where the build could not tell. Drivers read the first `X.Y.Z` of the line.
fn version_line(program: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    match option_env!("HANGAR_COMMIT") {
        Some(commit) => format!("{program} {version} ({commit})"),
        None => format!("{program} {version}"),
    }
}

/// Prints a line of a command's output. A closed pipe is not an error.
pub(crate) fn print_line(line: &str) -> Result<()> {
    print_text(format!("{line}\n").as_bytes())
}

fn print_text(text: &[u8]) -> Result<()> {
    match std::io::stdout().lock().write_all(text) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        other => Ok(other?),
    }
}
