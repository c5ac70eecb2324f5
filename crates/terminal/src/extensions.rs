//! `/extensions`: those of the session, and which of them run.

use serde_json::{Value, json};

use crate::calls::Purpose;
use crate::state::State;

/// Subcommands of `/extensions`.
pub(crate) const CHOICES: &[(&str, &str)] = &[
    ("list", "List the extensions of the session"),
    ("enable", "Start an extension: ID"),
    ("disable", "Stop an extension: ID"),
    ("reload", "Find and start all of them again"),
];

const OFF: &str = "Extensions are off in this session; start with `HANGAR_FEATURES=extensions` to load them.";

const USAGE: &str = "Usage: /extensions [list], enable ID, disable ID, or reload";

impl State {
    pub(crate) fn run_extensions_command(&mut self, argument: &str) {
        let (word, id) = argument.split_once(char::is_whitespace).unwrap_or((argument, ""));
        match (word, id.trim()) {
            ("" | "list" | "manage", "") => self.list_extensions(),
            ("reload", "") => {
                self.call("session.extensions.reload", json!({}), Purpose::ExtensionsChanged);
            }
            ("enable", id) if !id.is_empty() => {
                self.call("session.extensions.enable", json!({ "id": id }), Purpose::ExtensionsChanged);
            }
            ("disable", id) if !id.is_empty() => {
                self.call("session.extensions.disable", json!({ "id": id }), Purpose::ExtensionsChanged);
            }
            _ => self.print_text(USAGE),
        }
    }

    pub(crate) fn list_extensions(&mut self) {
        self.call("session.extensions.list", json!({}), Purpose::Extensions);
    }

    pub(crate) fn show_extensions(&mut self, answer: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut lines: Vec<String> = Vec::new();
        for extension in answer["extensions"].as_array().into_iter().flatten() {
            lines.push(format!(
                "{} ({}): {}",
                text(&extension["id"]),
                text(&extension["source"]),
                text(&extension["status"])
            ));
        }
        if lines.is_empty() {
            lines.push(
                "No extension is loaded. Put one into .github/extensions/NAME or extensions/NAME of Hangar's home folder, and \
                 start with `HANGAR_FEATURES=extensions`."
                    .to_owned(),
            );
        }
        self.print_text(&lines.join("\n"));
    }

    /// Shows a refusal; one without extensions says how to have them.
    pub(crate) fn extensions_refused(&mut self, reason: &str) {
        match reason.contains("not available") {
            true => self.print_text(OFF),
            false => self.print_error(reason),
        }
    }
}
