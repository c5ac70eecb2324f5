//! Answers as messages, whole or as a stream of events.

use serde_json::{Value, json};

use super::error::{body as error_body, failed, request_id};
use super::parameters::RequestThinking;
use super::prefix::{PrefixHash, canonical};
use super::search;
use super::thinking::content_hash;
use crate::history::AnswerHistory;
use crate::scenario::{AnswerPiece, Fault, ScenarioEnd, WebPage};
use crate::signature::{Seal, Signature};
use crate::stream::{SseEvent, StreamFrame, VendorResponse};
use crate::tokens::TokenCounter;
use crate::usage::Usage;
use crate::vendor::{Accepted, PlannedAnswer};

/// Characters of a delta.
const DELTA: usize = 40;

pub(super) fn answer(
    accepted: &Accepted,
    reply: &PlannedAnswer,
    history: &mut AnswerHistory,
) -> VendorResponse {
    if let ScenarioEnd::Failed(failure) = &reply.end
        && !accepted.stream
    {
        return failed(failure).into();
    }
    let mut writer = Writer::new(accepted, reply);
    writer.write();
    let content: Vec<Value> = writer.blocks.clone();
    for call in content.iter().filter(|block| block["type"] == "tool_use") {
        let id = call["id"].as_str().unwrap_or_default();
        history.remember(format!("call:{id}"), json!({"model": accepted.model, "content": content}));
    }
    let cut = matches!(reply.end, ScenarioEnd::Length | ScenarioEnd::Cut);
    if cut && let (Some(AnswerPiece::Call { .. }), Some(call)) = (reply.pieces.last(), content.last()) {
        history.remember(format!("cut:{}", call["id"].as_str().unwrap_or_default()), json!(true));
    }
    for block in &content {
        search::remember(block, history);
    }
    if let (ScenarioEnd::Pause, Some(AnswerPiece::Search { found, .. }), Some(block)) =
        (&reply.end, reply.pieces.last(), content.last())
    {
        let id = block["id"].as_str().unwrap_or_default();
        history.remember(format!("pending:{id}"), json!(found));
    }
    if reply.end == ScenarioEnd::Pause
        && let Some(last) = content.last()
    {
        history.remember(format!("paused:{}", canonical(last)), json!(true));
    }
    let answer = if accepted.stream {
        VendorResponse::stream(writer.frames)
    } else {
        let mut message = message(accepted, reply, &content, &reply.usage);
        message["stop_reason"] = json!(stop_reason(reply));
        message["stop_details"] = stop_details(reply);
        VendorResponse::ok(message)
    };
    answer.with_header("request-id", request_id(&reply.id))
}

fn message(accepted: &Accepted, reply: &PlannedAnswer, content: &[Value], usage: &Usage) -> Value {
    let mut message = json!({
        "id": format!("msg_{}", reply.id), "type": "message", "role": "assistant", "model": accepted.model,
        "content": content, "stop_reason": null, "stop_sequence": null, "usage": told(usage),
    });
    if let Some(dropped) = accepted.context["dropped"].as_array().filter(|dropped| !dropped.is_empty()) {
        let drop = |path: &Value| json!({"type": "thinking_block_dropped", "path": path});
        message["input_transformations"] = dropped.iter().map(drop).collect();
    }
    message
}

fn told(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.uncached(), "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_write - usage.cache_write_hour,
            "ephemeral_1h_input_tokens": usage.cache_write_hour,
        },
        "output_tokens": usage.output, "output_tokens_details": {"thinking_tokens": usage.reasoning},
        "server_tool_use": (usage.searches > 0).then(|| json!({"web_search_requests": usage.searches})),
        "service_tier": "standard",
    })
}

fn stop_reason(reply: &PlannedAnswer) -> &str {
    match &reply.end {
        ScenarioEnd::Natural | ScenarioEnd::Cut | ScenarioEnd::Failed(_) => {
            let calls = reply.pieces.iter().any(|piece| matches!(piece, AnswerPiece::Call { .. }));
            if calls { "tool_use" } else { "end_turn" }
        }
        ScenarioEnd::Length => "max_tokens",
        ScenarioEnd::Pause => "pause_turn",
        ScenarioEnd::Refusal | ScenarioEnd::ContentFilter => "refusal",
        ScenarioEnd::ContextWindow => "model_context_window_exceeded",
        ScenarioEnd::Other(reason) => reason,
    }
}

fn stop_details(reply: &PlannedAnswer) -> Value {
    match reply.end {
        ScenarioEnd::Refusal | ScenarioEnd::ContentFilter => json!({
            "type": "refusal", "category": "cyber", "explanation": "This request was declined by a safety classifier.",
        }),
        ScenarioEnd::Natural
        | ScenarioEnd::Length
        | ScenarioEnd::Pause
        | ScenarioEnd::ContextWindow
        | ScenarioEnd::Failed(_)
        | ScenarioEnd::Cut
        | ScenarioEnd::Other(_) => Value::Null,
    }
}

/// Writes blocks, and the events that announce them.
struct Writer<'a> {
    accepted: &'a Accepted,
    reply: &'a PlannedAnswer,
    mode: Option<RequestThinking>,
    prefix: PrefixHash,
    blocks: Vec<Value>,
    frames: Vec<StreamFrame>,
    /// Pages that the next text cites.
    found: Vec<WebPage>,
}

impl<'a> Writer<'a> {
    fn new(accepted: &'a Accepted, reply: &'a PlannedAnswer) -> Self {
        let prefix = &accepted.context["prefix"];
        let (hash, role) = (prefix["hash"].as_str(), prefix["role"].as_str());
        let mut prefix = PrefixHash::resume(hash.unwrap_or_default(), role.unwrap_or_default());
        prefix.role("assistant");
        let mode = serde_json::from_value(accepted.context["mode"].clone()).ok();
        Self { accepted, reply, mode, prefix, blocks: Vec::new(), frames: Vec::new(), found: Vec::new() }
    }

    fn event(&mut self, data: &Value) {
        self.frames.push(SseEvent::typed(data).into());
    }

    fn write(&mut self) {
        let (accepted, reply) = (self.accepted, self.reply);
        let started = message(accepted, reply, &[], &Usage { output: 1, reasoning: 0, ..reply.usage });
        self.event(&json!({"type": "message_start", "message": started}));
        let last_call = reply.pieces.iter().rposition(|piece| matches!(piece, AnswerPiece::Call { .. }));
        let half = reply.end == ScenarioEnd::Length || reply.end == ScenarioEnd::Cut;
        // The results of a paused search come with the continuing answer.
        if let Some(id) = accepted.context["pending"]["id"].as_str() {
            let found = serde_json::from_value(accepted.context["pending"]["found"].clone());
            self.result(id, found.unwrap_or_default());
        }
        for (index, piece) in reply.pieces.iter().enumerate() {
            let before_call = last_call.is_some_and(|call| index < call);
            let prose = before_call && accepted.context["prose_is_thinking"] == true;
            let is_last = index + 1 == reply.pieces.len();
            match piece {
                AnswerPiece::Text { text, .. } if prose => self.thinking(text),
                AnswerPiece::Text { text, .. } => self.text(text),
                AnswerPiece::Thinking(text) => self.thinking(text),
                AnswerPiece::Redacted(text) => self.redacted(text),
                AnswerPiece::Call { tool, arguments } => self.call(tool, arguments, !(half && is_last)),
                AnswerPiece::Search { query, found } => {
                    let id = self.search(query);
                    if !(is_last && reply.end == ScenarioEnd::Pause) {
                        self.result(&id, found.clone());
                    }
                }
                AnswerPiece::Wait(delay) => self.frames.push(StreamFrame::Wait(*delay)),
                AnswerPiece::Ping => self.event(&json!({"type": "ping"})),
            }
        }
        self.end();
    }

    fn end(&mut self) {
        match &self.reply.end {
            ScenarioEnd::Cut => self.frames.push(StreamFrame::Cut),
            ScenarioEnd::Failed(failure) => {
                let refusal = failed(failure);
                let kind = refusal.body["error"]["type"].as_str().unwrap_or_default();
                let body = error_body(kind, &refusal.message);
                self.event(&body);
            }
            ScenarioEnd::Natural
            | ScenarioEnd::Length
            | ScenarioEnd::Pause
            | ScenarioEnd::Refusal
            | ScenarioEnd::ContentFilter
            | ScenarioEnd::ContextWindow
            | ScenarioEnd::Other(_) => {
                let delta = json!({
                    "stop_reason": stop_reason(self.reply), "stop_sequence": null,
                    "stop_details": stop_details(self.reply),
                });
                self.event(
                    &json!({"type": "message_delta", "delta": delta, "usage": told(&self.reply.usage)}),
                );
                self.event(&json!({"type": "message_stop"}));
            }
        }
    }

    /// A block: its start, its deltas, and its final form.
    fn block(&mut self, opening: &Value, deltas: Vec<Value>, whole: Value) {
        let index = self.blocks.len();
        self.event(&json!({"type": "content_block_start", "index": index, "content_block": opening}));
        if index == 0 {
            self.event(&json!({"type": "ping"}));
        }
        for delta in deltas {
            self.event(&json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        self.event(&json!({"type": "content_block_stop", "index": index}));
        self.prefix.block(&whole);
        self.blocks.push(whole);
    }

    fn text(&mut self, text: &str) {
        let deltas = pieces(text, DELTA).map(|part| json!({"type": "text_delta", "text": part}));
        let cited: Vec<Value> = self.found.drain(..).map(|page| search::citation(&page)).collect();
        let (mut opening, mut whole) =
            (json!({"type": "text", "text": ""}), json!({"type": "text", "text": text}));
        if !cited.is_empty() {
            opening["citations"] = json!([]);
            whole["citations"] = json!(cited);
        }
        let cited = cited.iter().map(|citation| json!({"type": "citations_delta", "citation": citation}));
        self.block(&opening, deltas.chain(cited).collect(), whole);
    }

    /// A web search of the vendor, and its id.
    fn search(&mut self, query: &str) -> String {
        let id = self.reply.call_id("srvtoolu_", self.blocks.len());
        let block =
            |input: Value| json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": input});
        let input = json!({"query": query});
        let text = input.to_string();
        let deltas =
            pieces(&text, DELTA).map(|part| json!({"type": "input_json_delta", "partial_json": part}));
        self.block(&block(json!({})), deltas.collect(), block(input));
        id
    }

    /// Results of a search. They come in one piece.
    fn result(&mut self, id: &str, found: Vec<WebPage>) {
        let block = search::result(id, &found);
        self.block(&block, Vec::new(), block.clone());
        self.found.extend(found);
    }

    fn seal(&self, visible: &str, text: &str) -> String {
        let tools = self.accepted.context["tools"].as_str().unwrap_or_default();
        let counter = TokenCounter::new(self.accepted.token_percent);
        let seal = Seal {
            vendor: "anthropic".to_owned(),
            account: self.accepted.account.clone(),
            model: self.accepted.model.clone(),
            prefix: format!("{tools}:{}", self.prefix.hash()),
            content: content_hash(&json!({"thinking": visible})),
            tokens: counter.text(text),
        };
        let Signature(signature) = seal.close();
        signature
    }

    fn thinking(&mut self, text: &str) {
        let visible = if self.mode.is_some_and(|mode| mode.omitted) { "" } else { text };
        let signature = self.seal(visible, text);
        let deltas = pieces(visible, DELTA).map(|part| json!({"type": "thinking_delta", "thinking": part}));
        let sealed = json!({"type": "signature_delta", "signature": signature});
        let deltas = deltas.chain([sealed]).collect();
        let whole = json!({"type": "thinking", "thinking": visible, "signature": signature});
        self.block(&json!({"type": "thinking", "thinking": "", "signature": ""}), deltas, whole);
    }

    fn redacted(&mut self, text: &str) {
        let block = json!({"type": "redacted_thinking", "data": self.seal("", text)});
        self.block(&block, Vec::new(), block.clone());
    }

    /// A call that is cut has no end, and its input is not JSON.
    fn call(&mut self, tool: &str, arguments: &str, complete: bool) {
        let id = self.reply.call_id("toolu_", self.blocks.len());
        let size = if self.reply.has(Fault::Fragments) { 1 } else { DELTA };
        let deltas = [String::new()].into_iter().chain(pieces(arguments, size).map(str::to_owned));
        let deltas = deltas.map(|part| json!({"type": "input_json_delta", "partial_json": part})).collect();
        let input = serde_json::from_str(arguments).ok().filter(Value::is_object).unwrap_or(json!({}));
        let opening = json!({"type": "tool_use", "id": id, "name": tool, "input": {}});
        let whole = json!({"type": "tool_use", "id": id, "name": tool, "input": input});
        self.block(&opening, deltas, whole);
        if !complete && self.reply.end == ScenarioEnd::Cut {
            self.frames.pop();
        }
    }
}

/// A text in parts of so many characters.
pub(super) fn pieces(text: &str, size: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.char_indices().nth(size).map_or(rest.len(), |(at, _)| at);
        let (part, after) = rest.split_at(end);
        rest = after;
        Some(part)
    })
}
