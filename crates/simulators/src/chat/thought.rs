//! The reasoning of an answer, in the form of its host.

use serde_json::{Map, Value, json};

use super::answer::fragments;
use super::forms::ReasoningForm;
use super::rulebook::Rulebook;
use crate::signature::digest;
use crate::{Accepted, AnswerPiece, Seal};

/// Characters of a piece of reasoning in a stream.
const FRAGMENT: usize = 40;

pub(crate) struct Thought {
    form: ReasoningForm,
    /// The visible text.
    text: String,
    /// The hidden text.
    hidden: String,
    signature: String,
    /// The vendor of the items, as OpenRouter names it.
    format: Value,
}

impl Thought {
    /// `None` if there is no reasoning.
    pub(crate) fn of(
        form: ReasoningForm,
        book: &Rulebook,
        accepted: &Accepted,
        pieces: &[AnswerPiece],
    ) -> Option<Self> {
        let (mut text, mut hidden) = (String::new(), String::new());
        for piece in pieces {
            match piece {
                AnswerPiece::Thinking(more) => text.push_str(more),
                AnswerPiece::Redacted(more) => hidden.push_str(more),
                AnswerPiece::Text { .. }
                | AnswerPiece::Call { .. }
                | AnswerPiece::Search { .. }
                | AnswerPiece::Wait(_)
                | AnswerPiece::Ping => {}
            }
        }
        // Google signs calls whether or not the reasoning is shown.
        if text.is_empty() && hidden.is_empty() && form != ReasoningForm::ThoughtSignature {
            return None;
        }
        let seal = Seal {
            vendor: book.name.clone(),
            account: accepted.account.clone(),
            model: accepted.model.clone(),
            prefix: accepted.prompt.hash(),
            content: digest(&[&text, &hidden]),
            tokens: 0,
        };
        let format = book.model(&accepted.model).and_then(|model| model.rules.more.get("format").cloned());
        let format = format.unwrap_or_else(|| json!("unknown"));
        Some(Self { form, text, hidden, signature: seal.close().0, format })
    }

    /// The signature for the first call of the turn.
    pub(crate) fn of_first_call(self) -> Option<String> {
        (self.form == ReasoningForm::ThoughtSignature).then_some(self.signature)
    }

    pub(crate) fn add_to_message(&self, message: &mut Map<String, Value>) {
        match self.form {
            ReasoningForm::Hidden | ReasoningForm::ThoughtSignature => {}
            ReasoningForm::ReasoningContent => {
                message.insert("reasoning_content".into(), json!(self.text));
            }
            ReasoningForm::Reasoning => {
                message.insert("reasoning".into(), json!(self.text));
            }
            ReasoningForm::ReasoningDetails => {
                message.insert("reasoning".into(), json!(self.text));
                message.insert("reasoning_details".into(), self.details());
            }
            ReasoningForm::ThinkingParts => {
                let thinking = self.thinking_part(&self.text);
                let parts =
                    match message.get("content").and_then(Value::as_str).filter(|text| !text.is_empty()) {
                        Some(text) => json!([thinking, {"type": "text", "text": text}]),
                        None => json!([thinking]),
                    };
                message.insert("content".into(), parts);
            }
            ReasoningForm::ReasoningText => {
                message.insert("reasoning_text".into(), json!(self.text));
                message.insert("reasoning_opaque".into(), json!(self.signature));
            }
        }
    }

    /// The deltas of a stream.
    pub(crate) fn deltas(&self) -> Vec<Value> {
        let pieces = || fragments(&self.text, FRAGMENT);
        match self.form {
            ReasoningForm::Hidden | ReasoningForm::ThoughtSignature => Vec::new(),
            ReasoningForm::ReasoningContent => {
                pieces().map(|piece| json!({"reasoning_content": piece})).collect()
            }
            ReasoningForm::Reasoning => pieces().map(|piece| json!({"reasoning": piece})).collect(),
            ReasoningForm::ReasoningDetails => {
                let item = |piece| {
                    let format = &self.format;
                    let item = json!({"type": "reasoning.text", "text": piece, "format": format, "index": 0});
                    json!({"reasoning": piece, "reasoning_details": [item]})
                };
                let mut deltas: Vec<Value> = pieces().map(item).collect();
                deltas.push(json!({"reasoning_details": self.closing()}));
                deltas
            }
            ReasoningForm::ThinkingParts => {
                pieces().map(|piece| json!({"content": [self.thinking_part(piece)]})).collect()
            }
            ReasoningForm::ReasoningText => {
                let text = pieces().map(|piece| json!({"reasoning_text": piece}));
                text.chain([json!({"reasoning_opaque": self.signature})]).collect()
            }
        }
    }

    fn thinking_part(&self, text: &str) -> Value {
        json!({"type": "thinking", "thinking": [{"type": "text", "text": text}]})
    }

    /// The signature of the text, and what is encrypted, as the last items of a stream.
    fn closing(&self) -> Vec<Value> {
        let mut items = Vec::new();
        if !self.text.is_empty() {
            let (signature, format) = (&self.signature, &self.format);
            items.push(
                json!({"type": "reasoning.text", "signature": signature, "format": format, "index": 0}),
            );
        }
        if !self.hidden.is_empty() {
            let index = items.len();
            let data = digest(&[&self.hidden, &self.signature]);
            items.push(
                json!({"type": "reasoning.encrypted", "data": data, "format": self.format, "index": index}),
            );
        }
        items
    }

    fn details(&self) -> Value {
        let mut items = self.closing();
        if let Some(first) = items.first_mut().filter(|_| !self.text.is_empty()) {
            first["text"] = json!(self.text);
        }
        json!(items)
    }
}
