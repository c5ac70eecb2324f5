//! A turn of the assistant: as the host gave it, and as it is sent back.

use serde_json::{Map, Value, json};

use crate::AnswerHistory;

/// A turn that the simulator answered.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Given {
    pub(crate) model: String,
    /// The message in an unstreamed answer.
    pub(crate) message: Value,
}

impl Given {
    /// The turn whose calls `message` has, if it was answered here.
    pub(crate) fn recall(history: &AnswerHistory, message: &Value) -> Option<Self> {
        let calls = message["tool_calls"].as_array()?;
        let fact = calls.iter().find_map(|call| history.recall(&key(call["id"].as_str()?)))?;
        Some(Self { model: fact["model"].as_str()?.to_owned(), message: fact["message"].clone() })
    }

    /// Remembers the turn by the ids of its calls.
    pub(crate) fn remember(&self, history: &mut AnswerHistory) {
        for call in self.message["tool_calls"].as_array().into_iter().flatten() {
            if let Some(id) = call["id"].as_str() {
                history.remember(key(id), json!({"model": self.model, "message": self.message}));
            }
        }
    }
}

fn key(id: &str) -> String {
    format!("call {id}")
}

/// Google's signature on the first call of a turn.
pub(crate) fn thought_signature(message: &Value) -> Option<&str> {
    message
        .pointer("/tool_calls/0/extra_content/google/thought_signature")?
        .as_str()
        .filter(|text| !text.is_empty())
}

/// The thinking parts of a content.
pub(crate) fn thinking(message: &Value) -> Vec<&Value> {
    let parts = message["content"].as_array().into_iter().flatten();
    parts.filter(|part| part["type"] == "thinking").collect()
}

/// The items of `reasoning_details`, with the streamed pieces of one item joined.
pub(crate) fn joined_details(message: &Value) -> Vec<Value> {
    let mut items: Vec<Map<String, Value>> = Vec::new();
    for piece in message["reasoning_details"].as_array().into_iter().flatten() {
        let Some(piece) = piece.as_object() else { continue };
        match items.last_mut() {
            Some(item)
                if item.get("index") == piece.get("index") && item.get("type") == piece.get("type") =>
            {
                join(item, piece);
            }
            _ => items.push(piece.clone()),
        }
    }
    for item in &mut items {
        item.retain(|_, value| !value.is_null());
    }
    items.into_iter().map(Value::Object).collect()
}

fn join(item: &mut Map<String, Value>, piece: &Map<String, Value>) {
    for (name, value) in piece.iter().filter(|(_, value)| !value.is_null()) {
        let joined = match (item.get(name).and_then(Value::as_str), value.as_str()) {
            (Some(before), Some(more)) if matches!(name.as_str(), "text" | "summary" | "data") => {
                Value::String(format!("{before}{more}"))
            }
            _ => value.clone(),
        };
        item.insert(name.clone(), joined);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_recalled_by_any_of_its_calls() {
        let message = json!({"role": "assistant", "tool_calls": [{"id": "a"}, {"id": "b"}]});
        let given = Given { model: "m".to_owned(), message };
        let mut history = AnswerHistory::default();
        given.remember(&mut history);
        for (id, expected) in [("a", Some(given.clone())), ("b", Some(given)), ("c", None)] {
            assert_eq!(Given::recall(&history, &json!({"tool_calls": [{"id": id}]})), expected);
        }
    }

    #[test]
    fn pieces_of_reasoning_details_are_joined_by_their_index() {
        let streamed = json!({"reasoning_details": [
            {"type": "reasoning.text", "text": "one ", "index": 0},
            {"type": "reasoning.text", "text": "two", "index": 0, "signature": null},
            {"type": "reasoning.text", "signature": "s", "index": 0},
            {"type": "reasoning.encrypted", "data": "d", "index": 1},
        ]});
        let whole = json!({"reasoning_details": [
            {"type": "reasoning.text", "text": "one two", "signature": "s", "index": 0},
            {"type": "reasoning.encrypted", "data": "d", "index": 1},
        ]});
        assert_eq!(joined_details(&streamed), joined_details(&whole));
        let changed = json!({"reasoning_details": [{"type": "reasoning.text", "text": "one", "index": 0}]});
        assert_ne!(joined_details(&streamed), joined_details(&changed));
    }
}
