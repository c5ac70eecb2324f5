//! Running other programs from the root of the repository.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// A program, to be run in the root of the repository.
pub(crate) fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    command.current_dir(crate::root());
    // What cargo tells us of ourselves is not about what we run; build scripts that look at it would run again.
    let told = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"];
    for (variable, _) in std::env::vars_os() {
        let name = variable.to_string_lossy();
        if told.iter().any(|prefix| name.starts_with(prefix)) {
            command.env_remove(&variable);
        }
    }
    command
}

/// Runs a program whose output is for the reader.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let label = label(command);
    let status = command.status().with_context(|| format!("cannot run `{label}`"))?;
    if !status.success() {
        bail!("`{label}` failed with {status}");
    }
    Ok(())
}

/// Runs a program whose output is for us.
pub(crate) fn read(command: &mut Command) -> Result<String> {
    let label = label(command);
    let output =
        command.stderr(Stdio::inherit()).output().with_context(|| format!("cannot run `{label}`"))?;
    if !output.status.success() {
        bail!("`{label}` failed with {}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{label}` printed no text"))
}

/// Runs a program whose output is for the reader, and shows us each line of its stdout and stderr too.
pub(crate) fn watch(command: &mut Command, mut line: impl FnMut(&str)) -> Result<()> {
    let label = label(command);
    let (reader, writer) = std::io::pipe().context("cannot make a pipe")?;
    let mut child = command
        .stdout(writer.try_clone().context("cannot make a pipe")?)
        .stderr(writer)
        .spawn()
        .with_context(|| format!("cannot run `{label}`"))?;
    // The command still holds the writing end, which would keep the pipe open for ever.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    for text in BufReader::new(reader).split(b'\n') {
        let text = String::from_utf8_lossy(&text.context("cannot read a pipe")?).into_owned();
        println!("{text}");
        line(&text);
    }
    let status = child.wait().with_context(|| format!("cannot wait for `{label}`"))?;
    if !status.success() {
        bail!("`{label}` failed with {status}");
    }
    Ok(())
}

/// Whether a program can be run at all.
pub(crate) fn is_installed(name: &str, args: &[&str]) -> bool {
    let quiet =
        program(name).args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    quiet.is_ok_and(|status| status.success())
}

fn label(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}
