//! Reasoning that is sent back: whether it is present, and whether it is unchanged.

use serde_json::Value;

use super::{Checked, calls, role};
use crate::chat::condition;
use crate::chat::forms::ReasoningForm;
use crate::chat::template::Vars;
use crate::chat::turn::{self, Given};
use crate::{Refusal, Seal};

impl Checked<'_> {
    /// Rules of the simulator that the request breaks.
    pub(super) fn reasoning(&self) -> Result<Vec<String>, Refusal> {
        let mut violations = Vec::new();
        if !self.reasons() {
            return Ok(violations);
        }
        let newest_prompt = self.messages.iter().rposition(|message| role(message) == "user").unwrap_or(0);
        for (index, message) in self.messages.iter().enumerate() {
            if role(message) != "assistant" || calls(message).is_empty() {
                continue;
            }
            let turn = CallTurn {
                message,
                given: Given::recall(self.history, message),
                is_current: index > newest_prompt,
                vars: self.place(index, message),
            };
            let violation = match self.book.reasoning.form {
                ReasoningForm::Hidden | ReasoningForm::Reasoning => None,
                ReasoningForm::ReasoningContent => self.text("reasoning_content", turn)?,
                ReasoningForm::ThoughtSignature => self.thought_signature(turn)?,
                ReasoningForm::ReasoningDetails => self.details(turn)?,
                ReasoningForm::ThinkingParts => self.thinking_parts(&turn),
                ReasoningForm::ReasoningText => self.opaque(turn)?,
            };
            violations.extend(violation);
        }
        Ok(violations)
    }

    /// Whether the model reasons for this request.
    pub(in crate::chat) fn reasons(&self) -> bool {
        let rules = &self.book.reasoning;
        self.model.rules.reasons && condition::any(&rules.off, self.body).is_none()
    }

    /// How hosts name a turn: by its index, or by its position among the messages other than system ones.
    fn place(&self, index: usize, message: &Value) -> Vars {
        let system = |message: &&Value| matches!(role(message), "system" | "developer");
        let before = self.messages[..index].iter().filter(system).count();
        let name = calls(message)[0].pointer("/function/name").cloned().unwrap_or_default();
        Vars::default().with("index", index).with("position", index - before + 1).with("name", name)
    }

    /// A text that must be present, with any content: some hosts cannot tell whether it is theirs.
    fn text(&self, field: &str, turn: CallTurn<'_>) -> Result<Option<String>, Refusal> {
        let Some(text) = turn.message[field].as_str() else {
            self.refuse(self.book.reasoning.missing.as_ref(), turn.vars.clone())?;
            return Ok(turn.was_given(field).then(|| turn.violation(field, "is missing")));
        };
        let changed = turn.given.as_ref().is_some_and(|given| given.message[field] != text);
        Ok(changed.then(|| turn.violation(field, "is not what the host gave")))
    }

    /// The first call of a turn has it. The host does not check turns of earlier prompts.
    fn thought_signature(&self, turn: CallTurn<'_>) -> Result<Option<String>, Refusal> {
        let rules = &self.book.reasoning;
        let Some(signature) = turn::thought_signature(turn.message) else {
            if turn.is_current {
                self.refuse(rules.missing.as_ref(), turn.vars.clone())?;
            }
            let given =
                turn.given.as_ref().is_some_and(|given| turn::thought_signature(&given.message).is_some());
            return Ok(given.then(|| turn.violation("thought_signature", "is missing")));
        };
        if !rules.placeholders.iter().any(|placeholder| placeholder == signature) && !self.is_own(signature) {
            self.refuse(rules.changed.as_ref(), turn.vars)?;
        }
        Ok(None)
    }

    fn is_own(&self, signature: &str) -> bool {
        Seal::open(signature).is_some_and(|seal| seal.vendor == self.book.name && seal.model == self.model.id)
    }

    /// Items of a turn that this host answered must be unchanged and in order.
    fn details(&self, turn: CallTurn<'_>) -> Result<Option<String>, Refusal> {
        let rules = &self.book.reasoning;
        let Some(given) = turn.given.as_ref().filter(|given| given.model == self.model.id) else {
            return Ok(None);
        };
        let (was, is) = (turn::joined_details(&given.message), turn::joined_details(turn.message));
        if was.is_empty() || was == is {
            return Ok(None);
        }
        match (is.is_empty(), turn.is_current) {
            (true, false) => return Ok(Some(turn.violation("reasoning_details", "is missing"))),
            (true, true) => self.refuse(rules.missing.as_ref(), turn.vars)?,
            (false, _) => self.refuse(rules.changed.as_ref(), turn.vars)?,
        }
        Ok(None)
    }

    fn thinking_parts(&self, turn: &CallTurn<'_>) -> Option<String> {
        let given = turn.given.as_ref().filter(|given| given.model == self.model.id)?;
        let (was, is) = (turn::thinking(&given.message), turn::thinking(turn.message));
        (!was.is_empty() && was != is).then(|| turn.violation("thinking", "is not what the host gave"))
    }

    /// Opaque reasoning of a turn of this model must be present, and no other may be.
    fn opaque(&self, turn: CallTurn<'_>) -> Result<Option<String>, Refusal> {
        match turn.message["reasoning_opaque"].as_str() {
            Some(opaque) if !self.is_own(opaque) => {
                self.refuse(self.book.reasoning.changed.as_ref(), turn.vars)?;
                Ok(None)
            }
            Some(_) => Ok(None),
            None => {
                let same = turn.given.as_ref().is_some_and(|given| given.model == self.model.id);
                let lost = same && turn.was_given("reasoning_opaque");
                Ok(lost.then(|| turn.violation("reasoning_opaque", "is missing")))
            }
        }
    }
}

/// A turn of the assistant with calls.
struct CallTurn<'a> {
    message: &'a Value,
    /// The host's original, if it answered the turn.
    given: Option<Given>,
    /// Whether it belongs to the newest prompt.
    is_current: bool,
    vars: Vars,
}

impl CallTurn<'_> {
    fn was_given(&self, field: &str) -> bool {
        self.given.as_ref().is_some_and(|given| given.message.get(field).is_some())
    }

    fn violation(&self, what: &str, wrong: &str) -> String {
        self.vars.text(&format!("messages[{{index}}]: {what} {wrong}"))
    }
}
