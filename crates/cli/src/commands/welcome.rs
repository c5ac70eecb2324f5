//! `hangar` alone in a terminal: a short guide.

use std::io::IsTerminal;

use anyhow::Result;

use super::{print_line, version_line};
use crate::exit::Exit;
use crate::settings::Settings;

/// Commands without the name of the program, each with a description.
const COMMANDS: [(&str, &str); 6] = [
    ("-p \"why does the test fail?\"", "ask or give a task, in this directory"),
    ("run --runtime claude -p \"...\"", "the same with another agent"),
    ("up", "sessions, jobs and agents in a browser"),
    ("job run jobs.yaml NAME", "several tasks, each until it is done"),
    ("sessions", "list saved sessions"),
    ("doctor", "check models, logins and this machine"),
];
const MORE: [(&str, &str); 2] = [
    ("--help", "all commands, flags and exit codes"),
    ("--model scripted -p SAY:hello", "try it without a model or a key"),
];

const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// Whether a person typed only the name of the program. A program that passes no prompt on standard input gets an error.
pub(crate) fn is_asked_for() -> bool {
    std::env::args_os().len() == 1 && std::io::stdin().is_terminal()
}

pub(crate) fn run(settings: &Settings) -> Result<Exit> {
    let color = std::io::stdout().is_terminal() && settings.var("NO_COLOR").is_none();
    print_line(&page(&settings.program, color))?;
    Ok(Exit::Done)
}

fn page(program: &str, color: bool) -> String {
    let (bold, dim, plain) = if color { (BOLD, DIM, PLAIN) } else { ("", "", "") };
    let rows = |rows: &[(&str, &str)]| -> String {
        let width = COMMANDS.iter().chain(&MORE).map(|(typed, _)| typed.len()).max().unwrap_or_default();
        rows.iter()
            .map(|(typed, does)| format!("  {program} {bold}{typed:<width$}{plain}  {dim}{does}{plain}\n"))
            .collect()
    };
    format!(
        "{bold}{}{plain}: a coding agent for any model\n\n{}\n{}",
        version_line(program),
        rows(&COMMANDS),
        rows(&MORE).trim_end()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_fits_eighty_columns_and_has_no_color_unless_wanted() {
        let plain = page("copilot", false);
        assert!(plain.lines().all(|line| line.chars().count() <= 80), "{plain}");
        assert!(!plain.contains('\x1b'));
        assert!(page("hangar", true).contains(BOLD));
    }
}
