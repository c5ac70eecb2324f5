//! `/refine`: a rough prompt is rewritten by the model, aside, and comes back as the draft.

use serde_json::{Value, json};

use crate::calls::Purpose;
use crate::composer::Stashed;
use crate::state::State;

/// Longest prompt that is rewritten, in bytes.
const MAX_PROMPT: usize = 32 * 1024;

const TASK: &str = "Rewrite the prompt below, which a person typed in a hurry, so that it is clear to a coding agent: keep every \
                    wish, name, path and number in it, add none, order it, and keep its language. Do not carry it out and do not \
                    answer it. Reply with the rewritten prompt alone, without a heading, quotes or remarks.";

impl State {
    /// Has the model rewrite a prompt: the argument, or the draft that was put away for the command.
    pub(crate) fn refine(&mut self, argument: &str) {
        let prompt = match argument {
            "" if self.composer.stash() == Stashed::BroughtBack => self.composer.take().text,
            argument => argument.to_owned(),
        };
        if prompt.trim().is_empty() {
            return self.print_text("Usage: /refine PROMPT, or ctrl+x / and /refine while a draft is typed");
        }
        if prompt.len() > MAX_PROMPT {
            self.composer.set(&prompt);
            return self.say("the prompt is too long to be rewritten");
        }
        self.say("rewriting the prompt …");
        let question = format!("{TASK}\n\n<prompt>\n{}\n</prompt>", prompt.trim());
        self.call("session.ui.ephemeralQuery", json!({ "question": question }), Purpose::Refine(prompt));
    }

    /// Puts the rewritten prompt into the composer. What was typed meanwhile stays, put away.
    pub(crate) fn refined(&mut self, answer: &Value, typed: &str) {
        self.note = None;
        let text = crate::calls::aside(answer).unwrap_or_default().trim();
        if !self.composer.is_empty() {
            self.composer.stash();
        }
        if text.is_empty() {
            self.composer.set(typed);
            return self.say("the model did not rewrite it");
        }
        // The prompt as it was typed is one undo away.
        self.composer.set(typed);
        self.composer.set(text);
        self.say("enter sends it; ctrl+_ brings back what you typed");
    }
}
