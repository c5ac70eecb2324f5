//! `/worktree` and `/move`: the session continues in a new working tree of its repository, without or with the changes that
//! are not committed.

use serde_json::{Value, json};

use crate::calls::Purpose;
use crate::effect::Effect;
use crate::state::State;

/// Longest name that is made from a task, in bytes.
const MAX_NAME: usize = 40;

/// What happens to changes that are not committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uncommitted {
    /// They stay in the old working tree.
    Stay,
    Move,
}

impl Uncommitted {
    /// Name of the command.
    fn command(self) -> &'static str {
        match self {
            Self::Stay => "worktree",
            Self::Move => "move",
        }
    }
}

impl State {
    /// Has a working tree made. One word is the name of its branch; more words are a task, which is sent there.
    pub(crate) fn make_worktree(&mut self, uncommitted: Uncommitted, argument: &str) {
        let command = uncommitted.command();
        if self.is_working() {
            self.composer.set(format!("/{command} {argument}").trim_end());
            return self.say(format!("/{command} waits until the agent is done: press enter then"));
        }
        // The commands of a session that is being opened are not known yet.
        if self.is_opening() {
            return self.defer(format!("/{command} {argument}").trim_end().to_owned());
        }
        let Some(facts) = &self.facts else { return self.say("no session is open") };
        if facts.remote || !self.known.session_commands.iter().any(|entry| entry.name == "cwd") {
            return self.print_error(&format!(
                "/{command} needs a session of Hangar's own agent in this terminal: the directory of this one cannot be changed"
            ));
        }
        // Copilot's older form.
        let argument = match uncommitted {
            Uncommitted::Stay => argument.strip_prefix("new ").unwrap_or(argument).trim(),
            Uncommitted::Move => argument,
        };
        let task = Some(argument).filter(|words| words.contains(char::is_whitespace)).map(str::to_owned);
        let branch = match &task {
            Some(task) => Some(name_of(task)).filter(|name| !name.is_empty()),
            None => Some(argument.to_owned()).filter(|name| !name.is_empty()),
        };
        self.say("making a working tree …");
        if let Some(call) = self.expect(Purpose::Worktree { task }) {
            self.effect(Effect::Worktree { call, branch, uncommitted });
        }
    }

    /// Moves the session to the working tree that was made.
    pub(crate) fn enter_worktree(&mut self, answer: &Value, task: Option<String>) {
        self.note = None;
        let text = |name: &str| answer[name].as_str().unwrap_or_default();
        let mut told = format!("The working tree {} has the branch {}.", text("path"), text("branch"));
        match (answer["isDirty"] == true, answer["isMoved"] == true) {
            (true, true) => told.push_str(" Your uncommitted changes are there."),
            (true, false) => {
                told.push_str(&format!(" Your uncommitted changes stayed in {}.", text("source")));
            }
            (false, _) => {}
        }
        let params = json!({ "name": "cwd", "input": text("path") });
        self.print_text(&told);
        self.call("session.commands.invoke", params, Purpose::Entered { task });
    }

    /// Sends the task once the session is in the new working tree.
    pub(crate) fn entered_worktree(&mut self, task: Option<String>) {
        if let Some(task) = task {
            self.submit_prompt(&task, Vec::new(), false);
        }
    }
}

/// Name of a branch for a task: its words in lower case.
fn name_of(task: &str) -> String {
    let mut name = String::new();
    for word in task.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()) {
        if name.len() + 1 + word.len() > MAX_NAME && !name.is_empty() {
            break;
        }
        if !name.is_empty() {
            name.push('-');
        }
        name.push_str(&word.to_ascii_lowercase());
    }
    name.truncate(MAX_NAME);
    name
}

#[cfg(test)]
mod tests {
    use super::name_of;

    #[test]
    fn a_task_names_its_branch() {
        assert_eq!(name_of("Fix the thing, please!"), "fix-the-thing-please");
        assert_eq!(name_of("führe das Über-Ding aus"), "f-hre-das-ber-ding-aus");
        assert_eq!(name_of("日本 語"), "");
        assert_eq!(name_of(&"word ".repeat(20)), "word-word-word-word-word-word-word-word");
        assert_eq!(name_of(&"x".repeat(99)).len(), 40);
    }
}
