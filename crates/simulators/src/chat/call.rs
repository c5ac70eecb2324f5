//! A tool call in an answer, with the quirks of streamed calls.

use serde_json::{Value, json};

use super::answer::fragments;
use super::forms::CallForm;
use crate::{Fault, InputKind};

/// Characters of a piece of arguments in a stream.
const FRAGMENT: usize = 8;
/// The id of all calls of an answer with that fault.
const SAME_ID: &str = "call12345";

#[derive(Debug, Clone)]
pub(crate) struct StreamedCall {
    pub(crate) index: usize,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
    pub(crate) kind: InputKind,
    /// Google's signature on the first call of a turn.
    pub(crate) signature: Option<String>,
}

impl StreamedCall {
    /// The call as a message has it.
    pub(crate) fn whole(&self, faults: &[Fault]) -> Value {
        let mut call = self.head(faults);
        call[self.field()] = json!({"name": self.name, self.input(): self.spelled(faults)});
        call
    }

    /// The elements of `tool_calls` in a stream.
    pub(crate) fn deltas(&self, form: CallForm, faults: &[Fault]) -> Vec<Value> {
        let has = |fault| faults.contains(&fault);
        let index = if has(Fault::IndexZero) { 0 } else { self.index };
        let at_once = has(Fault::ArgumentsAsObject) || (form == CallForm::Whole && !has(Fault::Fragments));
        if at_once {
            let mut call = self.whole(faults);
            call["index"] = json!(index);
            return vec![call];
        }
        let mut first = self.head(faults);
        first["index"] = json!(index);
        first[self.field()] = json!({"name": self.name, self.input(): ""});
        let mut deltas = vec![first];
        let size = if has(Fault::Fragments) { 1 } else { FRAGMENT };
        let doubled = has(Fault::DoubleArguments).then_some("{}");
        for piece in doubled.into_iter().chain(fragments(&self.arguments, size)) {
            let mut delta = json!({"index": index, self.field(): {self.input(): piece}});
            if has(Fault::NameTwice) {
                delta[self.field()]["name"] = json!(self.name);
            }
            deltas.push(delta);
        }
        deltas
    }

    fn head(&self, faults: &[Fault]) -> Value {
        let mut call = json!({"type": self.field()});
        if faults.contains(&Fault::SameCallId) {
            call["id"] = json!(SAME_ID);
        } else if !faults.contains(&Fault::NoCallId) {
            call["id"] = json!(self.id);
        }
        if let Some(signature) = &self.signature {
            call["extra_content"] = json!({"google": {"thought_signature": signature}});
        }
        call
    }

    fn spelled(&self, faults: &[Fault]) -> Value {
        let object =
            faults.contains(&Fault::ArgumentsAsObject).then(|| serde_json::from_str(&self.arguments).ok());
        match object.flatten() {
            Some(object @ Value::Object(_)) => object,
            _ if faults.contains(&Fault::DoubleArguments) => json!(format!("{{}}{}", self.arguments)),
            _ => json!(self.arguments),
        }
    }

    fn field(&self) -> &'static str {
        match self.kind {
            InputKind::Function => "function",
            InputKind::Custom => "custom",
        }
    }

    fn input(&self) -> &'static str {
        match self.kind {
            InputKind::Function => "arguments",
            InputKind::Custom => "input",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(form: CallForm, faults: &[Fault], expected: &Value) {
        let call = StreamedCall {
            index: 1,
            id: "call_1".to_owned(),
            name: "view".to_owned(),
            arguments: r#"{"a":"é"}"#.to_owned(),
            kind: InputKind::Function,
            signature: None,
        };
        assert_eq!(&json!(call.deltas(form, faults)), expected, "{form:?} {faults:?}");
    }

    #[test]
    fn a_call_is_told_whole_or_in_fragments() {
        let first = json!({"type": "function", "id": "call_1", "index": 1, "function": {"name": "view", "arguments": ""}});
        check(
            CallForm::Fragments,
            &[],
            &json!([first, {"index": 1, "function": {"arguments": "{\"a\":\"é\""}}, {"index": 1, "function": {"arguments": "}"}}]),
        );
        let whole = json!({"name": "view", "arguments": "{\"a\":\"é\"}"});
        check(
            CallForm::Whole,
            &[],
            &json!([{"type": "function", "id": "call_1", "function": whole, "index": 1}]),
        );
    }

    #[test]
    fn each_fault_changes_what_it_says() {
        let deltas = |faults: &[Fault]| {
            let call = StreamedCall {
                index: 1,
                id: "call_1".to_owned(),
                name: "view".to_owned(),
                arguments: r#"{"a":1}"#.to_owned(),
                kind: InputKind::Function,
                signature: None,
            };
            call.deltas(CallForm::Fragments, faults)
        };
        assert_eq!(deltas(&[Fault::Fragments]).len(), 8);
        assert!(deltas(&[Fault::IndexZero]).iter().all(|delta| delta["index"] == 0));
        assert!(deltas(&[Fault::NoCallId]).iter().all(|delta| delta.get("id").is_none()));
        assert_eq!(deltas(&[Fault::SameCallId])[0]["id"], SAME_ID);
        assert!(deltas(&[Fault::NameTwice]).iter().all(|delta| delta["function"]["name"] == "view"));
        assert_eq!(deltas(&[Fault::ArgumentsAsObject])[0]["function"]["arguments"], json!({"a": 1}));
        let doubled: String = deltas(&[Fault::DoubleArguments])
            .iter()
            .filter_map(|delta| delta["function"]["arguments"].as_str())
            .collect();
        assert_eq!(doubled, r#"{}{"a":1}"#);
    }

    #[test]
    fn a_call_that_is_cut_stays_text() {
        let cut = StreamedCall {
            index: 0,
            id: "c".to_owned(),
            name: "view".to_owned(),
            arguments: r#"{"a"#.to_owned(),
            kind: InputKind::Function,
            signature: None,
        };
        assert_eq!(cut.whole(&[Fault::ArgumentsAsObject])["function"]["arguments"], r#"{"a"#);
    }
}
