//! Slash commands that are subcommands of the program: `/plugin install NAME` is `hangar plugin install NAME`. They run in a process
//! of their own, since they change files that other sessions read too; the session then reads them again.

use serde_json::{Value, json};

use crate::calls::Purpose;
use crate::effect::Effect;
use crate::gate;
use crate::row::Row;
use crate::state::State;

/// Rows of output that are printed.
const MAX_ROWS: usize = 500;

/// A command whose work the program does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramCommand {
    Diagnose,
    Features,
    Memory,
}

/// Subcommands of the session's commands that the program carries out, for completion.
pub(crate) const MORE_CHOICES: &[(&str, &[(&str, &str)])] = &[(
    "mcp",
    &[
        ("add", "Add a server: NAME -- COMMAND, or NAME URL --transport http"),
        ("get", "Show the configuration of a server"),
        ("remove", "Remove a server from your configuration"),
        ("auth", "Log in to a server"),
    ],
)];

/// Subcommands of `/plugin`.
pub(crate) const PLUGIN_CHOICES: &[(&str, &str)] = &[
    ("list", "List the installed plugins"),
    ("install", "Install a plugin: NAME@MARKETPLACE, OWNER/REPO, a URL or a directory"),
    ("update", "Update a plugin, or all with --all"),
    ("uninstall", "Remove a plugin"),
    ("enable", "Enable a plugin"),
    ("disable", "Disable a plugin"),
    ("marketplace", "Add, list, browse, update or remove marketplaces"),
];

/// Request after which the session has what a subcommand changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reload {
    Nothing,
    Plugins,
    Servers,
}

impl State {
    pub(crate) fn run_program_command(&mut self, command: ProgramCommand, argument: &str) {
        match (command, argument) {
            (ProgramCommand::Diagnose, _) => self.run_program(vec!["doctor".to_owned()], Reload::Nothing),
            (ProgramCommand::Features, _) => self.run_program(vec!["features".to_owned()], Reload::Nothing),
            (ProgramCommand::Memory, "on" | "off" | "enable" | "disable") => self.print_text(
                "Notes about a repository are the feature `memory`: start with HANGAR_FEATURES=memory to switch it on.",
            ),
            (ProgramCommand::Memory, "" | "show" | "status") => {
                self.run_program(vec!["memory".to_owned(), "list".to_owned()], Reload::Nothing);
            }
            (ProgramCommand::Memory, argument) => self.run_words("memory", argument, Reload::Nothing),
        }
    }

    /// Runs a subcommand of `/mcp` that the session does not have. False for the others.
    pub(crate) fn run_mcp_command(&mut self, argument: &str) -> bool {
        let (word, rest) = argument.split_once(char::is_whitespace).unwrap_or((argument, ""));
        match word {
            "add" | "get" | "remove" => {
                let reload = if word == "get" { Reload::Nothing } else { Reload::Servers };
                self.run_words("mcp", argument, reload);
            }
            "delete" => self.run_words("mcp", &format!("remove {rest}"), Reload::Servers),
            "edit" => self
                .print_text("Remove the server and add it again, or edit mcp-config.json and /mcp reload."),
            "search" => {
                self.print_text("Hangar has no registry of servers; /mcp add takes a command or a URL.");
            }
            "auth" if rest.trim().is_empty() => self.print_text("Usage: /mcp auth NAME"),
            "auth" => {
                let params = json!({ "serverName": rest.trim() });
                self.call("session.mcp.oauth.login", params, Purpose::McpLogin);
            }
            _ => return false,
        }
        true
    }

    /// Runs a subcommand with the words that were typed.
    pub(crate) fn run_words(&mut self, subcommand: &str, typed: &str, reload: Reload) {
        match words(typed) {
            Some(words) => {
                self.run_program([vec![subcommand.to_owned()], words].concat(), reload);
            }
            None => self.print_error("a quotation mark is not closed"),
        }
    }

    fn run_program(&mut self, arguments: Vec<String>, reload: Reload) {
        self.say(format!("hangar {} …", arguments.join(" ")));
        if let Some(call) = self.expect(Purpose::Program(reload)) {
            self.effect(Effect::Program { call, arguments });
        }
    }

    /// Prints the output of a subcommand, and has the session read what it changed.
    pub(crate) fn program_ended(&mut self, answer: &Value, reload: Reload) {
        self.note = None;
        self.print_output(answer["output"].as_str().unwrap_or_default());
        if answer["success"] == true {
            match reload {
                Reload::Nothing => {}
                Reload::Plugins => self.call("session.plugins.reload", json!({}), Purpose::Nothing),
                Reload::Servers => {
                    let params = json!({ "name": "mcp", "input": "reload" });
                    self.call("session.commands.invoke", params, Purpose::Command);
                }
            }
        }
    }

    /// Prints text line by line, without layout.
    pub(crate) fn print_output(&mut self, text: &str) {
        let lines: Vec<&str> = gate::lines(text.trim_end()).collect();
        let mut rows: Vec<Row> =
            lines.iter().take(MAX_ROWS).map(|line| Row::plain(gate::visible(line))).collect();
        if let Some(more) = lines.len().checked_sub(MAX_ROWS).filter(|more| *more > 0) {
            rows.push(Row::styled(format!("… {more} more lines"), self.theme.dim));
        }
        self.print(rows);
    }
}

/// Words of a typed line: single and double quotes hold blanks, a backslash holds one character. `None` if a quote is open.
fn words(line: &str) -> Option<Vec<String>> {
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        match (quote, char) {
            (Some(open), char) if open == char => quote = None,
            (None, '"' | '\'') => {
                quote = Some(char);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(chars.next()),
            (None, blank) if blank.is_whitespace() => words.extend(word.take()),
            (_, char) => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn quotes_and_backslashes_hold_blanks() {
        let check = |line: &str, expected: &[&str]| assert_eq!(words(line).unwrap(), expected, "{line}");
        check("", &[]);
        check("  add files -- npx -y server ", &["add", "files", "--", "npx", "-y", "server"]);
        check(r#"add a "my dir"/b 'c d' e\ f """#, &["add", "a", "my dir/b", "c d", "e f", ""]);
        check(r#"'a\b' "a\"b""#, &[r"a\b", "a\"b"]);
        assert_eq!(words("add 'a"), None);
    }
}
