//! Answers as responses, whole or as a stream of events.

use serde_json::{Value, json};

use super::ItemIds;
use super::error::{failed, request_id};
use super::items::{message_key, search_key};
use super::reasoning::{identity, reasoning_key, summary_hash};
use crate::history::AnswerHistory;
use crate::scenario::{AnswerPiece, Fault, ScenarioEnd, TextPhase, WebPage};
use crate::signature::{Seal, Signature};
use crate::stream::{SseEvent, StreamFrame, VendorResponse};
use crate::tokens::TokenCounter;
use crate::vendor::{Accepted, InputKind, PlannedAnswer};

/// Characters of a delta.
const DELTA: usize = 40;

pub(super) fn answer(
    accepted: &Accepted,
    reply: &PlannedAnswer,
    ids: ItemIds,
    history: &mut AnswerHistory,
) -> VendorResponse {
    if let ScenarioEnd::Failed(failure) = &reply.end
        && !accepted.stream
    {
        return failed(failure).into();
    }
    let changing = ids == ItemIds::Changing || reply.has(Fault::ChangingItemIds);
    let mut writer = Writer {
        accepted,
        reply,
        changing,
        sequence: 0,
        items: Vec::new(),
        frames: Vec::new(),
        found: Vec::new(),
    };
    writer.write();
    remember(&writer.items, history);
    let cut =
        writer.items.last().filter(|item| item["call_id"].is_string() && item["status"] == "incomplete");
    if let Some(call) = cut {
        history.remember(format!("cut:{}", call["call_id"].as_str().unwrap_or_default()), json!(true));
    }
    let answer = if accepted.stream {
        VendorResponse::stream(writer.frames)
    } else {
        VendorResponse::ok(writer.response(status(&reply.end)))
    };
    answer.with_header("x-request-id", request_id(&reply.id)).with_header("openai-processing-ms", "10")
}

/// Records which item follows which, for requests that send them back.
fn remember(items: &[Value], history: &mut AnswerHistory) {
    for (index, item) in items.iter().enumerate() {
        if let Some(id) = item["id"].as_str().filter(|_| item["type"] == "web_search_call") {
            history.remember(search_key(id), item.clone());
        }
        let before = index.checked_sub(1).map(|before| &items[before]);
        let reasoning = before.filter(|before| before["type"] == "reasoning");
        if item["type"] == "reasoning" {
            let next = items.get(index + 1).map(identity);
            history.remember(reasoning_key(item), json!({"id": item["id"], "next": next}));
        } else if let (Some(id), Some(reasoning)) = (item["id"].as_str(), reasoning) {
            let fact = json!({"before": identity(reasoning), "reasoning": reasoning["id"]});
            history.remember(format!("item:{id}"), fact);
        }
        if !item["phase"].is_null() {
            let key = message_key(item);
            let mut phases = history.recall(&key).and_then(Value::as_array).cloned().unwrap_or_default();
            phases.push(item["phase"].clone());
            history.remember(key, Value::Array(phases));
        }
    }
}

fn status(end: &ScenarioEnd) -> &'static str {
    match end {
        ScenarioEnd::Natural | ScenarioEnd::Pause | ScenarioEnd::Refusal | ScenarioEnd::Cut => "completed",
        ScenarioEnd::Length
        | ScenarioEnd::ContentFilter
        | ScenarioEnd::ContextWindow
        | ScenarioEnd::Other(_) => "incomplete",
        ScenarioEnd::Failed(_) => "failed",
    }
}

/// Writes items, and the events that announce them.
struct Writer<'a> {
    accepted: &'a Accepted,
    reply: &'a PlannedAnswer,
    changing: bool,
    sequence: u64,
    items: Vec<Value>,
    frames: Vec<StreamFrame>,
    /// Pages that the next message cites.
    found: Vec<WebPage>,
}

impl Writer<'_> {
    fn event(&mut self, kind: &str, fields: Value) {
        let mut data = json!({"type": kind, "sequence_number": self.sequence});
        if let (Value::Object(data), Value::Object(fields)) = (&mut data, fields) {
            data.extend(fields);
        }
        if self.changing {
            let suffix = format!("_{}", self.sequence);
            for pointer in ["/item_id", "/item/id"] {
                if let Some(Value::String(id)) = data.pointer_mut(pointer) {
                    id.push_str(&suffix);
                }
            }
        }
        self.sequence += 1;
        self.frames.push(SseEvent::typed(&data).into());
    }

    /// An event about the item that is being written.
    fn item_event(&mut self, kind: &str, item: &Value, fields: Value) {
        let mut all = json!({"item_id": item["id"], "output_index": self.items.len()});
        if let (Value::Object(all), Value::Object(fields)) = (&mut all, fields) {
            all.extend(fields);
        }
        self.event(kind, all);
    }

    fn add(&mut self, item: &Value) {
        self.event("response.output_item.added", json!({"output_index": self.items.len(), "item": item}));
    }

    fn done(&mut self, item: Value) {
        self.event("response.output_item.done", json!({"output_index": self.items.len(), "item": item}));
        self.items.push(item);
    }

    fn write(&mut self) {
        let begun = self.response("in_progress");
        self.event("response.created", json!({"response": begun}));
        self.event("response.in_progress", json!({"response": begun}));
        let pieces = &self.reply.pieces;
        for (index, piece) in pieces.iter().enumerate() {
            let last = index + 1 == pieces.len();
            match piece {
                AnswerPiece::Thinking(text) => {
                    let shown = self.accepted.context["summary"] == true;
                    self.reasoning(text, if shown { text } else { "" });
                }
                AnswerPiece::Redacted(text) => self.reasoning(text, ""),
                AnswerPiece::Text { text, phase } => {
                    let calls_follow =
                        pieces[index..].iter().any(|piece| matches!(piece, AnswerPiece::Call { .. }));
                    let usual = if calls_follow { TextPhase::Commentary } else { TextPhase::FinalAnswer };
                    self.message(text, phase.unwrap_or(usual), last);
                }
                AnswerPiece::Call { tool, arguments } => {
                    let cut = last && matches!(self.reply.end, ScenarioEnd::Length | ScenarioEnd::Cut);
                    self.call(tool, arguments, cut);
                }
                AnswerPiece::Search { query, found } => self.search(query, found),
                AnswerPiece::Wait(delay) => self.frames.push(StreamFrame::Wait(*delay)),
                AnswerPiece::Ping => self.event("keepalive", json!({})),
            }
        }
        self.end();
    }

    fn end(&mut self) {
        if self.reply.end == ScenarioEnd::Cut {
            self.frames.push(StreamFrame::Cut);
            return;
        }
        let status = status(&self.reply.end);
        let response = self.response(status);
        self.event(&format!("response.{status}"), json!({"response": response}));
    }

    fn response(&self, status: &str) -> Value {
        let (accepted, reply) = (self.accepted, self.reply);
        let over = status != "in_progress";
        let error = match (&reply.end, over) {
            (ScenarioEnd::Failed(failure), true) => {
                let refusal = failed(failure);
                json!({"code": refusal.body["error"]["code"], "message": refusal.message})
            }
            _ => Value::Null,
        };
        let incomplete = match (&reply.end, over) {
            (ScenarioEnd::Length | ScenarioEnd::ContextWindow, true) => {
                json!({"reason": "max_output_tokens"})
            }
            (ScenarioEnd::ContentFilter, true) => json!({"reason": "content_filter"}),
            (ScenarioEnd::Other(reason), true) => json!({"reason": reason}),
            _ => Value::Null,
        };
        let usage = &reply.usage;
        let usage = json!({
            "input_tokens": usage.input,
            "input_tokens_details": {
                "cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write,
            },
            "output_tokens": usage.output, "output_tokens_details": {"reasoning_tokens": usage.reasoning},
            "total_tokens": usage.input + usage.output,
        });
        let counted = over && !reply.has(Fault::NoUsage) && status != "failed";
        json!({
            "id": format!("resp_{}", reply.id), "object": "response", "created_at": reply.created,
            "status": status, "model": accepted.model, "output": if over { &self.items[..] } else { &[] },
            "error": error, "incomplete_details": incomplete, "instructions": null, "store": false,
            "parallel_tool_calls": true, "tool_choice": "auto", "tools": [], "metadata": {},
            "usage": counted.then_some(usage),
        })
    }

    fn id(&self, prefix: &str) -> String {
        self.reply.call_id(prefix, self.items.len())
    }

    fn reasoning(&mut self, text: &str, shown: &str) {
        let part = json!({"type": "summary_text", "text": shown});
        let summary = if shown.is_empty() { json!([]) } else { json!([part]) };
        let id = self.id("rs_");
        let mut item = json!({"id": id, "type": "reasoning", "summary": summary});
        let counter = TokenCounter::new(self.accepted.token_percent);
        let seal = Seal {
            vendor: "openai".to_owned(),
            account: self.accepted.account.clone(),
            model: self.accepted.model.clone(),
            // Two items may have the same content.
            prefix: id.clone(),
            content: summary_hash(&item),
            tokens: counter.text(text),
        };
        if self.accepted.context["encrypted"] == true {
            let Signature(signature) = seal.close();
            item["encrypted_content"] = json!(signature);
        }
        let mut begun = item.clone();
        begun["summary"] = json!([]);
        self.add(&begun);
        if !shown.is_empty() {
            let empty = json!({"summary_index": 0, "part": {"type": "summary_text", "text": ""}});
            self.item_event("response.reasoning_summary_part.added", &item, empty);
            for delta in parts(shown, DELTA) {
                let fields = json!({"summary_index": 0, "delta": delta});
                self.item_event("response.reasoning_summary_text.delta", &item, fields);
            }
            let fields = json!({"summary_index": 0, "text": shown});
            self.item_event("response.reasoning_summary_text.done", &item, fields);
            let fields = json!({"summary_index": 0, "part": part});
            self.item_event("response.reasoning_summary_part.done", &item, fields);
        }
        self.done(item);
    }

    /// A web search of the vendor. Its results stay with the vendor.
    fn search(&mut self, query: &str, found: &[WebPage]) {
        let mut item = json!({"id": self.id("ws_"), "type": "web_search_call", "status": "in_progress"});
        self.add(&item);
        for step in ["in_progress", "searching", "completed"] {
            self.item_event(&format!("response.web_search_call.{step}"), &item, json!({}));
        }
        item["status"] = json!("completed");
        item["action"] = json!({"type": "search", "query": query});
        self.done(item);
        self.found.extend_from_slice(found);
    }

    /// The last message of a refused answer is a refusal.
    fn message(&mut self, text: &str, phase: TextPhase, last: bool) {
        let refused = last && self.reply.end == ScenarioEnd::Refusal;
        let (kind, field, word) =
            if refused { ("refusal", "refusal", "refusal") } else { ("output_text", "text", "output_text") };
        let end = text.chars().count();
        let cite = |page: WebPage| json!({"type": "url_citation", "url": page.url, "title": page.title, "start_index": 0, "end_index": end});
        let cited: Vec<Value> = self.found.drain(..).map(cite).collect();
        let part = |text: &str| {
            let mut part = json!({"type": kind});
            part[field] = json!(text);
            if !refused {
                part["annotations"] = if text.is_empty() { json!([]) } else { json!(cited) };
            }
            part
        };
        let mut item = json!({
            "id": self.id("msg_"), "type": "message", "role": "assistant", "status": "in_progress", "content": [],
        });
        if self.accepted.context["phase"] == true {
            item["phase"] = json!(phase.name());
        }
        self.add(&item);
        let opened = json!({"content_index": 0, "part": part("")});
        self.item_event("response.content_part.added", &item, opened);
        for delta in parts(text, DELTA) {
            let fields = json!({"content_index": 0, "delta": delta, "logprobs": []});
            self.item_event(&format!("response.{word}.delta"), &item, fields);
        }
        for (index, annotation) in cited.iter().enumerate() {
            let fields = json!({"content_index": 0, "annotation_index": index, "annotation": annotation});
            self.item_event("response.output_text.annotation.added", &item, fields);
        }
        let mut said = json!({"content_index": 0});
        said[field] = json!(text);
        self.item_event(&format!("response.{word}.done"), &item, said);
        let whole = json!({"content_index": 0, "part": part(text)});
        self.item_event("response.content_part.done", &item, whole);
        let incomplete = last && self.reply.end == ScenarioEnd::Length;
        item["status"] = json!(if incomplete { "incomplete" } else { "completed" });
        item["content"] = json!([part(text)]);
        self.done(item);
    }

    /// A call that is cut has no `done` in a broken stream, and an incomplete one otherwise.
    fn call(&mut self, tool: &str, arguments: &str, cut: bool) {
        let custom = self.accepted.tools.get(tool) == Some(&InputKind::Custom);
        let (kind, field, prefix, event) = if custom {
            ("custom_tool_call", "input", "ctc_", "response.custom_tool_call_input")
        } else {
            ("function_call", "arguments", "fc_", "response.function_call_arguments")
        };
        // A scenario for all vendors writes free text as a JSON string.
        let free = || serde_json::from_str(arguments).unwrap_or_else(|_| arguments.to_owned());
        let input = if custom { free() } else { arguments.to_owned() };
        let mut item = json!({
            "id": self.id(prefix), "type": kind, "status": "in_progress", "call_id": self.id("call_"), "name": tool,
        });
        item[field] = json!("");
        if let Some(namespace) = self.accepted.context["namespaces"][tool].as_str() {
            item["namespace"] = json!(namespace);
        }
        self.add(&item);
        let size = if self.reply.has(Fault::Fragments) { 1 } else { DELTA };
        for delta in parts(&input, size) {
            self.item_event(&format!("{event}.delta"), &item, json!({"delta": delta}));
        }
        if cut && self.reply.end == ScenarioEnd::Cut {
            return;
        }
        let mut whole = json!({});
        whole[field] = json!(input);
        self.item_event(&format!("{event}.done"), &item, whole);
        item[field] = json!(input);
        item["status"] = json!(if cut { "incomplete" } else { "completed" });
        self.done(item);
    }
}

/// A text in parts of so many characters.
fn parts(text: &str, size: usize) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(size).map(|part| part.iter().collect()).collect()
}
