//! The fields of a request and of its messages.

use serde_json::{Map, Value, json};

use super::{Checked, calls, role};
use crate::chat::model::ChatModel;
use crate::chat::rulebook::Rulebook;
use crate::chat::template::Vars;
use crate::chat::wording::Wording;
use crate::{Refusal, Strictness};

/// The model that a request names, if the host has it.
pub(super) fn model<'a>(book: &'a Rulebook, body: &Value) -> Result<&'a ChatModel, Refusal> {
    let Some(id) = body["model"].as_str() else {
        return Err(book.fields.missing.refusal(book, Vars::default().with("field", "model")));
    };
    book.model(id)
        .ok_or_else(|| book.unknown_model.refusal(book, Vars::default().with("model", id.to_owned())))
}

pub(super) fn messages<'a>(book: &Rulebook, body: &'a Value) -> Result<&'a [Value], Refusal> {
    match body["messages"].as_array() {
        Some(messages) if !messages.is_empty() => Ok(messages),
        _ => Err(book.fields.missing.refusal(book, Vars::default().with("field", "messages"))),
    }
}

/// An unknown field, and the host's wording for it.
struct Unknown<'a> {
    path: String,
    wording: &'a Wording,
    vars: Vars,
}

impl Checked<'_> {
    /// The unknown fields, if they are ignored; otherwise the refusal of the first one.
    pub(super) fn unknown_fields(&self, strictness: Strictness) -> Result<Vec<String>, Refusal> {
        let mut unknown = Vec::new();
        self.of_the_request(&mut unknown);
        for (index, message) in self.messages.iter().enumerate() {
            self.of_a_message(index, message, &mut unknown);
        }
        match (strictness, unknown.into_iter()) {
            (Strictness::Lenient, unknown) => Ok(unknown.map(|unknown| unknown.path).collect()),
            (Strictness::Strict, mut unknown) => match unknown.next() {
                Some(Unknown { wording, vars, .. }) => Err(self.refusal(wording, vars)),
                None => Ok(Vec::new()),
            },
        }
    }

    fn of_the_request<'a>(&'a self, unknown: &mut Vec<Unknown<'a>>) {
        let Some(wording) = &self.book.fields.unknown else { return };
        for (field, input) in strangers(self.body, &self.book.fields.accepted) {
            let vars = Vars::default()
                .with("field", field.clone())
                .with("input", input.clone())
                .with("loc", json!(["body", field]));
            unknown.push(Unknown { path: field.clone(), wording, vars });
        }
    }

    fn of_a_message<'a>(&'a self, index: usize, message: &Value, unknown: &mut Vec<Unknown<'a>>) {
        let rules = &self.book.messages;
        let role = role(message);
        let place = Vars::default().with("index", index).with("role", role);
        if let (Some(wording), Some(accepted)) = (&rules.unknown_field, rules.fields.get(role)) {
            for (field, input) in strangers(message, accepted) {
                let vars = place
                    .clone()
                    .with("field", field.clone())
                    .with("input", input.clone())
                    .with("loc", json!(["body", "messages", index, role, field]));
                unknown.push(Unknown { path: format!("messages[{index}].{field}"), wording, vars });
            }
        }
        let Some(wording) = &rules.unknown_call_field else { return };
        for (at, call) in calls(message).iter().enumerate() {
            for (field, input) in strangers(call, &rules.call) {
                let path = format!("messages[{index}].tool_calls[{at}].{field}");
                let vars = place
                    .clone()
                    .with("call", at)
                    .with("field", field.clone())
                    .with("input", input.clone())
                    .with("loc", json!(["body", "messages", index, role, "tool_calls", at, field]));
                unknown.push(Unknown { path, wording, vars });
            }
        }
    }
}

fn strangers<'a>(value: &'a Value, accepted: &'a [String]) -> impl Iterator<Item = (&'a String, &'a Value)> {
    let fields = value.as_object().into_iter().flat_map(Map::iter);
    fields.filter(move |(field, _)| !accepted.contains(field))
}
