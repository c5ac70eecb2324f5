//! An answer in the form of its host: chunks of a stream, or whole.

use serde_json::{Map, Value, json};

use super::call::StreamedCall;
use super::forms::{ReasoningForm, UsageChunk};
use super::rulebook::Rulebook;
use super::template::Vars;
use super::thought::Thought;
use super::wording::failure;
use crate::{
    Accepted, AnswerPiece, Fault, PlannedAnswer, ScenarioEnd, SseEvent, StreamFrame, VendorResponse,
};

/// Characters of a piece of text in a stream.
const FRAGMENT: usize = 24;
/// Text of a refusal, where a host marks it as one.
const REFUSED: &str = "I'm sorry, but I can't help with that.";

/// One answer and its host.
pub(crate) struct HostAnswer<'a> {
    pub(crate) book: &'a Rulebook,
    pub(crate) accepted: &'a Accepted,
    pub(crate) reply: &'a PlannedAnswer,
}

impl HostAnswer<'_> {
    pub(crate) fn answer(&self) -> VendorResponse {
        let answer = match (self.accepted.stream, &self.reply.end) {
            (true, _) => VendorResponse::stream(self.frames()),
            (false, ScenarioEnd::Cut) => VendorResponse::stream(vec![StreamFrame::Cut]),
            (false, ScenarioEnd::Failed(failed)) => failure(self.book, failed, &self.accepted.model).into(),
            (false, _) => VendorResponse::ok(self.whole()),
        };
        let vars = self.usage_vars();
        let headers = self.book.answer.headers.iter();
        headers.fold(answer, |answer, (name, value)| answer.with_header(name, vars.text(value)))
    }

    /// The message in an unstreamed answer. Requests that send it back are compared with it.
    pub(crate) fn message(&self) -> Value {
        let mut message = Map::new();
        message.insert("role".into(), json!("assistant"));
        let mut text = String::new();
        for piece in &self.reply.pieces {
            if let AnswerPiece::Text { text: more, .. } = piece {
                text.push_str(more);
            }
        }
        let calls = self.calls();
        let silent = text.is_empty() && !calls.is_empty();
        message.insert("content".into(), if silent { Value::Null } else { json!(text) });
        if let Some(thought) = self.thought() {
            thought.add_to_message(&mut message);
        }
        if self.reply.end == ScenarioEnd::Refusal {
            message.insert("refusal".into(), json!(REFUSED));
        }
        if !calls.is_empty() {
            let calls: Value = calls.iter().map(|call| call.whole(&self.reply.faults)).collect();
            message.insert("tool_calls".into(), calls);
        }
        Value::Object(message)
    }

    fn whole(&self) -> Value {
        let mut answer = self.head("chat.completion");
        let choice = json!({"index": 0, "message": self.message(), "finish_reason": self.finish()});
        answer.insert("choices".into(), json!([self.closed(choice)]));
        let mut answer = Value::Object(answer);
        if !self.reply.has(Fault::NoUsage) {
            let at = if self.reply.has(Fault::UsageInChoice) { "/choices/0/usage" } else { "/usage" };
            put(&mut answer, at, self.usage());
        }
        answer
    }

    fn frames(&self) -> Vec<StreamFrame> {
        let mut frames: Vec<StreamFrame> =
            self.book.answer.comments.iter().map(|comment| StreamFrame::comment(comment)).collect();
        if let Some(first) = &self.book.answer.first {
            frames.push(SseEvent::data(self.vars().json(&first.0).to_string()).into());
        }
        frames.push(self.chunk(json!({"role": "assistant", "content": ""}), None));
        self.said(&mut frames);
        match &self.reply.end {
            ScenarioEnd::Cut => frames.push(StreamFrame::Cut),
            ScenarioEnd::Failed(failed) => frames.push(self.error_chunk(failed)),
            ScenarioEnd::Natural
            | ScenarioEnd::Length
            | ScenarioEnd::Pause
            | ScenarioEnd::Refusal
            | ScenarioEnd::ContentFilter
            | ScenarioEnd::ContextWindow
            | ScenarioEnd::Other(_) => self.ended(&mut frames),
        }
        frames
    }

    /// The pieces in their order. Calls are at the end of an answer, as hosts send them.
    fn said(&self, frames: &mut Vec<StreamFrame>) {
        let thought = self.thought();
        let mut thought = thought.as_ref().map(Thought::deltas).unwrap_or_default();
        for piece in &self.reply.pieces {
            match piece {
                AnswerPiece::Thinking(_) | AnswerPiece::Redacted(_) => {
                    frames.extend(
                        std::mem::take(&mut thought).into_iter().map(|delta| self.chunk(delta, None)),
                    );
                }
                AnswerPiece::Text { text, .. } => {
                    let pieces = fragments(text, FRAGMENT);
                    frames.extend(pieces.map(|piece| self.chunk(json!({"content": piece}), None)));
                }
                AnswerPiece::Call { .. } | AnswerPiece::Search { .. } => {}
                AnswerPiece::Wait(time) => frames.push(StreamFrame::Wait(*time)),
                AnswerPiece::Ping => {
                    let comment = self.book.answer.comments.first().map_or("ping", String::as_str);
                    frames.push(StreamFrame::comment(comment));
                }
            }
        }
        for call in self.calls() {
            let deltas = call.deltas(self.book.answer.calls, &self.reply.faults);
            frames.extend(deltas.into_iter().map(|delta| self.chunk(json!({"tool_calls": [delta]}), None)));
        }
        if self.reply.end == ScenarioEnd::Refusal {
            frames.push(self.chunk(json!({"refusal": REFUSED}), None));
        }
    }

    fn ended(&self, frames: &mut Vec<StreamFrame>) {
        let form = &self.book.usage;
        let asked = self.accepted.context["usage"] == true || form.always;
        let in_choice = self.reply.has(Fault::UsageInChoice);
        let told = asked && !self.reply.has(Fault::NoUsage);
        let mut last = self.chunk_value(json!({}), Some(&self.finish()));
        last["choices"][0] = self.closed(last["choices"][0].take());
        if told && in_choice {
            put(&mut last, "/choices/0/usage", self.usage());
        } else if told && form.chunk == UsageChunk::Finish {
            form.at.iter().for_each(|at| put(&mut last, at, self.usage()));
        }
        frames.push(SseEvent::data(last.to_string()).into());
        if told && !in_choice && form.chunk == UsageChunk::Own {
            let mut chunk = self.head("chat.completion.chunk");
            chunk.insert("choices".into(), json!([]));
            let mut chunk = Value::Object(chunk);
            form.at.iter().for_each(|at| put(&mut chunk, at, self.usage()));
            frames.push(SseEvent::data(chunk.to_string()).into());
        }
        if !self.reply.has(Fault::NoDone) {
            frames.push(SseEvent::data("[DONE]").into());
        }
    }

    /// The choice, with the host's additional fields for the end.
    fn closed(&self, mut choice: Value) -> Value {
        let fields = self.vars().with("finish", self.finish()).json(&self.book.answer.choice.0);
        if let (Value::Object(choice), Value::Object(fields)) = (&mut choice, fields) {
            choice.extend(fields);
        }
        choice
    }

    fn error_chunk(&self, failed: &crate::VendorFailure) -> StreamFrame {
        let chunk = super::wording::failure_chunk(self.book, failed, &self.accepted.model, self.vars());
        SseEvent::data(chunk.to_string()).into()
    }

    fn chunk(&self, delta: Value, finish: Option<&str>) -> StreamFrame {
        SseEvent::data(self.chunk_value(delta, finish).to_string()).into()
    }

    fn chunk_value(&self, delta: Value, finish: Option<&str>) -> Value {
        let mut chunk = self.head("chat.completion.chunk");
        chunk.insert("choices".into(), json!([{"index": 0, "delta": delta, "finish_reason": finish}]));
        Value::Object(chunk)
    }

    fn head(&self, object: &str) -> Map<String, Value> {
        let mut head = Map::new();
        head.insert("id".into(), json!(self.book.answer.id.make(&self.reply.id)));
        head.insert("object".into(), json!(object));
        head.insert("created".into(), json!(self.reply.created));
        head.insert("model".into(), json!(self.accepted.model));
        if let Value::Object(fields) = self.vars().json(&self.book.answer.fields.0) {
            head.extend(fields);
        }
        head
    }

    fn vars(&self) -> Vars {
        Vars::default()
            .with("id", self.book.answer.id.make(&self.reply.id))
            .with("model", self.accepted.model.clone())
            .with("created", self.reply.created)
            .with("reply", self.reply.id.clone())
    }

    fn calls(&self) -> Vec<StreamedCall> {
        let calls = self.reply.pieces.iter().filter_map(|piece| match piece {
            AnswerPiece::Call { tool, arguments } => Some((tool, arguments)),
            _ => None,
        });
        let signature = self.thought().and_then(Thought::of_first_call);
        let call = |(index, (tool, arguments)): (usize, (&String, &String))| StreamedCall {
            index,
            id: self.book.answer.call_id.make(&format!("{} {index}", self.reply.id)),
            name: tool.clone(),
            arguments: arguments.clone(),
            kind: self.accepted.tools.get(tool).copied().unwrap_or(crate::InputKind::Function),
            signature: signature.clone().filter(|_| index == 0),
        };
        calls.enumerate().map(call).collect()
    }

    /// The reasoning of this answer, if the host shows or signs any.
    fn thought(&self) -> Option<Thought> {
        let form = self.book.reasoning.form;
        if form == ReasoningForm::Hidden || !self.accepted.thinks {
            return None;
        }
        Thought::of(form, self.book, self.accepted, &self.reply.pieces)
    }

    fn finish(&self) -> String {
        let calls = self.reply.pieces.iter().any(|piece| matches!(piece, AnswerPiece::Call { .. }));
        let (name, usual) = match &self.reply.end {
            ScenarioEnd::Natural if calls => ("tool_calls", "tool_calls"),
            ScenarioEnd::Natural => ("stop", "stop"),
            ScenarioEnd::Pause => ("pause", "stop"),
            ScenarioEnd::Length => ("length", "length"),
            ScenarioEnd::Refusal => ("refusal", "stop"),
            ScenarioEnd::ContentFilter => ("content_filter", "content_filter"),
            ScenarioEnd::ContextWindow => ("context_window", "length"),
            ScenarioEnd::Failed(_) | ScenarioEnd::Cut => ("error", "error"),
            ScenarioEnd::Other(word) => return word.clone(),
        };
        self.book.answer.finish.get(name).cloned().unwrap_or_else(|| usual.to_owned())
    }

    fn usage(&self) -> Value {
        self.usage_vars().json(&self.book.usage.body.0)
    }

    fn usage_vars(&self) -> Vars {
        let usage = &self.reply.usage;
        self.vars()
            .with("prompt", usage.input)
            .with("completion", usage.output)
            .with("visible", usage.output.saturating_sub(usage.reasoning))
            .with("total", usage.input + usage.output)
            .with("cached", usage.cache_read)
            .with("written", usage.cache_write)
            .with("uncached", usage.input.saturating_sub(usage.cache_read))
            .with("reasoning", usage.reasoning)
            .with("cost", self.reply.cost)
    }
}

/// Sets the value at a pointer, making the objects on the way.
fn put(value: &mut Value, at: &str, new: Value) {
    let mut place = value;
    for step in at.split('/').skip(1) {
        place = match step.parse::<usize>() {
            Ok(index) => &mut place[index],
            Err(_) => &mut place[step],
        };
    }
    *place = new;
}

/// The text in pieces of `size` characters.
pub(crate) fn fragments(text: &str, size: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.char_indices().nth(size).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(end);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_are_the_text_and_cut_no_character() {
        for (text, pieces) in [("", vec![]), ("abc", vec!["ab", "c"]), ("äöü", vec!["äö", "ü"])] {
            assert_eq!(fragments(text, 2).collect::<Vec<_>>(), pieces);
        }
    }

    #[test]
    fn a_value_is_put_at_a_place_that_did_not_exist() {
        let mut value = json!({"choices": [{}]});
        put(&mut value, "/choices/0/usage", json!(1));
        put(&mut value, "/x_groq/usage", json!(2));
        assert_eq!(value, json!({"choices": [{"usage": 1}], "x_groq": {"usage": 2}}));
    }
}
