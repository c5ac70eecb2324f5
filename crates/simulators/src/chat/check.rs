//! The check of a request by the rules of its host. It is pure: from a body and the earlier turns it computes a
//! refusal, or the facts that the answer needs.

mod effort;
mod fields;
mod limits;
mod messages;
mod order;
mod reasoning;
mod rules;
mod schema;
mod tools;

use serde_json::Value;

use super::model::ChatModel;
use super::rulebook::Rulebook;
use super::template::Vars;
use super::wording::Wording;
use crate::{AnswerHistory, ModelInput, Refusal, Strictness};

/// A request that its host accepts.
#[derive(Debug)]
pub(crate) struct Passed<'a> {
    pub(crate) model: &'a ChatModel,
    /// Input of the model.
    pub(crate) prompt: ModelInput,
    /// Whether the model reasons for this request.
    pub(crate) reasons: bool,
    /// Unknown fields that the host ignored.
    pub(crate) foreign: Vec<String>,
    /// Rules of the simulator that the request breaks although the host would not notice.
    pub(crate) violations: Vec<String>,
}

pub(crate) fn check<'a>(
    book: &'a Rulebook,
    body: &Value,
    history: &AnswerHistory,
    strictness: Strictness,
) -> Result<Passed<'a>, Refusal> {
    let model = fields::model(book, body)?;
    let checked = Checked { book, model, body, messages: fields::messages(book, body)?, history };
    let foreign = checked.unknown_fields(strictness)?;
    checked.rules()?;
    checked.messages()?;
    checked.order()?;
    checked.tools()?;
    checked.effort()?;
    let mut violations = checked.reasoning()?;
    let (prompt, too_long) = checked.limits()?;
    violations.extend(too_long);
    Ok(Passed { model, prompt, reasons: checked.reasons(), foreign, violations })
}

/// Input of the parts of the check.
struct Checked<'a> {
    book: &'a Rulebook,
    model: &'a ChatModel,
    body: &'a Value,
    messages: &'a [Value],
    history: &'a AnswerHistory,
}

impl Checked<'_> {
    /// The refusal, if the host has one for this.
    fn refuse(&self, wording: Option<&Wording>, vars: Vars) -> Result<(), Refusal> {
        wording.map_or(Ok(()), |wording| Err(self.refusal(wording, vars)))
    }

    fn refusal(&self, wording: &Wording, mut vars: Vars) -> Refusal {
        vars.set("model", self.model.id.clone());
        wording.refusal(self.book, vars)
    }
}

/// The calls of a message of the assistant.
fn calls(message: &Value) -> &[Value] {
    message["tool_calls"].as_array().map_or(&[], Vec::as_slice)
}

fn role(message: &Value) -> &str {
    message["role"].as_str().unwrap_or_default()
}
