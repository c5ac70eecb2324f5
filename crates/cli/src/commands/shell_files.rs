//! Completion scripts and man pages, generated from the same table as `--help`.

use std::path::Path;

use anyhow::{Context, Result};
use clap::builder::Resettable;
use clap::{Command, CommandFactory, ValueEnum};

use super::print_text;
use crate::args::Cli;
use crate::exit::Exit;
use crate::settings::Settings;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Prints the completion script of a shell.
pub(crate) fn completions(settings: &Settings, shell: Shell) -> Result<Exit> {
    let shell = match shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut visible(&Cli::command()), &settings.program, &mut script);
    print_text(&script)?;
    Ok(Exit::Done)
}

/// The same command without its hidden flags, which `clap_complete` would offer.
fn visible(command: &Command) -> Command {
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    // Conflicts may name a hidden flag; a completion script needs none of them.
    let args = shown.map(|arg| arg.clone().conflicts_with(Resettable::Reset).requires(Resettable::Reset));
    // Names of commands are static strings; the process prints one script and ends.
    let name: &'static str = command.get_name().to_owned().leak();
    let shown = Command::new(name)
        .args(args)
        .subcommands(command.get_subcommands().map(visible))
        .disable_version_flag(true);
    match command.get_about() {
        Some(about) => shown.about(about.clone()),
        None => shown,
    }
}

/// Writes a man page for the program and one for each command.
pub(crate) fn man(directory: &Path) -> Result<Exit> {
    std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let command = Cli::command().version(env!("CARGO_PKG_VERSION"));
    clap_mangen::generate_to(command, directory)
        .with_context(|| format!("cannot write man pages into {}", directory.display()))?;
    Ok(Exit::Done)
}
