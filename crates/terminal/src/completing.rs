//! Completion of the draft: which candidates the word at the cursor has.

use crate::commands::{self, CommandEntry};
use crate::completion::{
    CompletionOutcome, Filtered, Suggestion, Trigger, TriggerKind, filter, filter_paths,
};
use crate::effect::Effect;
use crate::keymap::Action;
use crate::state::State;

impl State {
    /// Refreshes the popup after the draft has changed.
    pub(crate) fn complete(&mut self) {
        if let Some(trigger) = self.completions.refresh(&self.composer) {
            self.offer(trigger);
        }
    }

    /// Opens the popup on request.
    pub(crate) fn request_completion(&mut self) {
        if let Some(trigger) = self.completions.request(&self.composer) {
            self.offer(trigger);
        }
    }

    /// Runs an action of the popup. True if the draft is to be sent.
    pub(crate) fn popup(&mut self, action: Action) -> bool {
        // A name that was typed in full is taken literally, whatever else matches.
        if action == Action::SubmitCompletion && self.is_command(self.composer.text()) {
            return true;
        }
        match self.completions.apply(action, &mut self.composer) {
            CompletionOutcome::Submitted => true,
            CompletionOutcome::Accepted => {
                self.complete();
                false
            }
            CompletionOutcome::Moved | CompletionOutcome::Closed | CompletionOutcome::Pass => false,
        }
    }

    fn offer(&mut self, trigger: Trigger) {
        let found = match &trigger.kind {
            TriggerKind::Command => self.command_choices(&trigger.query),
            TriggerKind::Argument { command, before } if before.is_empty() => {
                self.argument_choices(command, &trigger.query)
            }
            TriggerKind::Argument { .. } | TriggerKind::Issue => Filtered::default(),
            TriggerKind::File => match &self.known.files {
                Some(files) => filter_paths(&trigger.query, files),
                None => {
                    // They are listed once per session, when the first file is named.
                    self.known.files = Some(Vec::new());
                    self.effect(Effect::ListFiles);
                    Filtered::default()
                }
            },
        };
        self.completions.offer(trigger, found);
    }

    fn command_choices(&self, query: &str) -> Filtered {
        let mut choices: Vec<Suggestion> = self
            .known
            .commands
            .iter()
            .map(|entry| Suggestion::command(&entry.name, &entry.description))
            .collect();
        // Another name of a command is offered to those who type it.
        let begins = |name: &str| !query.is_empty() && name.starts_with(&query.to_lowercase());
        for entry in self.known.commands.iter().filter(|entry| !begins(&entry.name)) {
            let aliases = entry.aliases.iter().filter(|alias| begins(alias));
            choices.extend(aliases.map(|alias| Suggestion::command(alias, &entry.description)));
        }
        filter(query, &choices)
    }

    /// Whether a draft is the name of a command and nothing else.
    fn is_command(&self, draft: &str) -> bool {
        let Some((name, "")) = commands::parse(draft) else { return false };
        let listed =
            |entry: &CommandEntry| entry.name == name || entry.aliases.iter().any(|alias| alias == name);
        commands::find(name).is_some() || self.known.session_commands.iter().any(listed)
    }

    fn argument_choices(&self, command: &str, query: &str) -> Filtered {
        let entry = self
            .known
            .commands
            .iter()
            .find(|entry| entry.name == command || entry.aliases.iter().any(|a| a == command));
        let choices: Vec<Suggestion> = entry
            .into_iter()
            .flat_map(|entry| &entry.choices)
            .map(|(name, description)| Suggestion::argument(name, description))
            .collect();
        filter(query, &choices)
    }
}
