//! OpenAI responses, with function tools and custom ones.

use std::collections::{HashMap, HashSet};

use hangar_agent::model::Finish;
use serde_json::{Value, json};

use super::{AnswerFinish, AnswerHead, AnswerWriter, SseEvent, list, offer, text};
use crate::scripted::turn::{Asked, ScriptedCall, TurnPiece};

pub(super) fn asked(body: &Value) -> Asked {
    let mut asked = Asked::new(offer(&tools(body).all, &body["tool_choice"]));
    if let Value::String(prompt) = &body["input"] {
        asked.user(prompt.clone());
    }
    for item in list(&body["input"]) {
        match item["type"].as_str() {
            None | Some("message") if item["role"] == "user" => asked.user(text(&item["content"])),
            None | Some("message") if item["role"] == "assistant" => asked.assistant(),
            Some("function_call_output" | "custom_tool_call_output" | "local_shell_call_output") => {
                asked.result(text(&item["output"]));
            }
            _ => {}
        }
    }
    asked
}

/// Facts about the offered tools that the answer depends on.
struct Tools {
    all: Vec<Value>,
    /// Tools whose input is free text.
    custom: HashSet<String>,
    /// The namespaces of the tools that have one.
    namespaces: HashMap<String, String>,
}

/// Tools stand in `tools`, in items of the input that add more, and in namespaces in either.
fn tools(body: &Value) -> Tools {
    let added = list(&body["input"]).iter().filter(|item| item["type"] == "additional_tools");
    let offered = list(&body["tools"]).iter().chain(added.flat_map(|item| list(&item["tools"])));
    let mut tools = Tools { all: Vec::new(), custom: HashSet::new(), namespaces: HashMap::new() };
    for tool in offered {
        if tool["type"] == "namespace" {
            for member in list(&tool["tools"]) {
                tools.add(member, tool["name"].as_str());
            }
        } else {
            tools.add(tool, None);
        }
    }
    tools
}

impl Tools {
    fn add(&mut self, tool: &Value, namespace: Option<&str>) {
        if let Some(name) = tool["name"].as_str() {
            if tool["type"] == "custom" {
                self.custom.insert(name.to_owned());
            }
            if let Some(namespace) = namespace {
                self.namespaces.insert(name.to_owned(), namespace.to_owned());
            }
        }
        self.all.push(tool.clone());
    }
}

pub(super) struct ResponsesAnswer {
    head: AnswerHead,
    tools: Tools,
    sequence: u64,
    /// The finished items.
    items: Vec<Value>,
    /// The item that is still growing.
    open: Option<Open>,
}

enum Open {
    Message(String),
    Reasoning(String),
}

impl ResponsesAnswer {
    pub(super) fn new(head: AnswerHead, body: &Value) -> Self {
        Self { head, tools: tools(body), sequence: 0, items: Vec::new(), open: None }
    }

    fn event(&mut self, name: &'static str, fields: Value) -> SseEvent {
        let mut data = json!({"type": name, "sequence_number": self.sequence});
        self.sequence += 1;
        if let (Value::Object(data), Value::Object(fields)) = (&mut data, fields) {
            data.extend(fields);
        }
        SseEvent::named(name, &data)
    }

    fn response(&self, status: &str, end: Option<&AnswerFinish>) -> Value {
        let input = self.head.input_tokens;
        let usage = end.map(|AnswerFinish { output_tokens: output, .. }| {
            json!({
                "input_tokens": input, "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": output, "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": input + output,
            })
        });
        let incomplete = end.and_then(|end| incomplete(&end.finish)).map(|reason| json!({"reason": reason}));
        json!({
            "id": format!("resp_{}", self.head.id), "object": "response", "created_at": self.head.created,
            "status": status, "model": self.head.model, "output": end.map_or(&[][..], |_| &self.items),
            "error": null, "incomplete_details": incomplete, "parallel_tool_calls": true, "tools": [],
            "tool_choice": "auto", "metadata": {}, "usage": usage,
        })
    }

    /// The id of the current or next item.
    fn item_id(&self, prefix: &str) -> String {
        format!("{prefix}_{}_{}", self.head.id, self.items.len())
    }

    fn text(&mut self, delta: &str) -> Vec<SseEvent> {
        let mut events = Vec::new();
        if !matches!(self.open, Some(Open::Message(_))) {
            events = self.close();
            let (id, index) = (self.item_id("msg"), self.items.len());
            let item = json!({
                "id": id, "type": "message", "role": "assistant", "status": "in_progress", "content": [],
            });
            events
                .push(self.event("response.output_item.added", json!({"output_index": index, "item": item})));
            events.push(self.event(
                "response.content_part.added",
                json!({"item_id": id, "output_index": index, "content_index": 0, "part": output_text("")}),
            ));
            self.open = Some(Open::Message(String::new()));
        }
        if let Some(Open::Message(text)) = &mut self.open {
            text.push_str(delta);
        }
        let (id, index) = (self.item_id("msg"), self.items.len());
        events.push(self.event(
            "response.output_text.delta",
            json!({"item_id": id, "output_index": index, "content_index": 0, "delta": delta, "logprobs": []}),
        ));
        events
    }

    fn thinking(&mut self, delta: &str) -> Vec<SseEvent> {
        let mut events = Vec::new();
        if !matches!(self.open, Some(Open::Reasoning(_))) {
            events = self.close();
            let (id, index) = (self.item_id("rs"), self.items.len());
            let item = json!({"id": id, "type": "reasoning", "summary": []});
            events
                .push(self.event("response.output_item.added", json!({"output_index": index, "item": item})));
            events.push(self.event(
                "response.reasoning_summary_part.added",
                json!({"item_id": id, "output_index": index, "summary_index": 0, "part": summary_text("")}),
            ));
            self.open = Some(Open::Reasoning(String::new()));
        }
        if let Some(Open::Reasoning(text)) = &mut self.open {
            text.push_str(delta);
        }
        let (id, index) = (self.item_id("rs"), self.items.len());
        events.push(self.event(
            "response.reasoning_summary_text.delta",
            json!({"item_id": id, "output_index": index, "summary_index": 0, "delta": delta}),
        ));
        events
    }

    fn close(&mut self) -> Vec<SseEvent> {
        let index = self.items.len();
        let (item, mut events) = match self.open.take() {
            None => return Vec::new(),
            Some(Open::Message(text)) => {
                let (id, part) = (self.item_id("msg"), output_text(&text));
                let events = vec![
                    self.event(
                        "response.output_text.done",
                        json!({"text": text, "logprobs": [], "item_id": id, "output_index": index, "content_index": 0}),
                    ),
                    self.event(
                        "response.content_part.done",
                        json!({"part": part, "item_id": id, "output_index": index, "content_index": 0}),
                    ),
                ];
                let item = json!({
                    "id": id, "type": "message", "role": "assistant", "status": "completed", "content": [part],
                });
                (item, events)
            }
            Some(Open::Reasoning(text)) => {
                let (id, part) = (self.item_id("rs"), summary_text(&text));
                let events = vec![
                    self.event(
                        "response.reasoning_summary_text.done",
                        json!({"text": text, "item_id": id, "output_index": index, "summary_index": 0}),
                    ),
                    self.event(
                        "response.reasoning_summary_part.done",
                        json!({"part": part, "item_id": id, "output_index": index, "summary_index": 0}),
                    ),
                ];
                (json!({"id": id, "type": "reasoning", "summary": [part]}), events)
            }
        };
        events.push(self.event("response.output_item.done", json!({"output_index": index, "item": item})));
        self.items.push(item);
        events
    }

    fn call(&mut self, call: &ScriptedCall) -> Vec<SseEvent> {
        let mut events = self.close();
        let index = self.items.len();
        let wire = if self.tools.custom.contains(&call.tool) { &CUSTOM } else { &FUNCTION };
        let input = if wire.free_text { call.free_text() } else { call.input.clone() };
        let id = format!("{}_{}", wire.prefix, call.id);
        let mut item = json!({
            "id": id, "type": wire.item, "status": "in_progress", "call_id": call.id, "name": call.tool,
        });
        item[wire.field] = json!("");
        if let Some(namespace) = self.tools.namespaces.get(&call.tool) {
            item["namespace"] = json!(namespace);
        }
        events.push(self.event("response.output_item.added", json!({"output_index": index, "item": item})));
        events.push(self.event(wire.delta, json!({"item_id": id, "output_index": index, "delta": input})));
        events.push(self.event(wire.done, json!({"item_id": id, "output_index": index, wire.field: input})));
        item["status"] = json!("completed");
        item[wire.field] = json!(input);
        events.push(self.event("response.output_item.done", json!({"output_index": index, "item": item})));
        self.items.push(item);
        events
    }
}

/// Format of the calls of one kind of tool.
struct CallWire {
    free_text: bool,
    prefix: &'static str,
    item: &'static str,
    field: &'static str,
    delta: &'static str,
    done: &'static str,
}

const FUNCTION: CallWire = CallWire {
    free_text: false,
    prefix: "fc",
    item: "function_call",
    field: "arguments",
    delta: "response.function_call_arguments.delta",
    done: "response.function_call_arguments.done",
};

const CUSTOM: CallWire = CallWire {
    free_text: true,
    prefix: "ctc",
    item: "custom_tool_call",
    field: "input",
    delta: "response.custom_tool_call_input.delta",
    done: "response.custom_tool_call_input.done",
};

impl AnswerWriter for ResponsesAnswer {
    fn start(&mut self) -> Vec<SseEvent> {
        let response = self.response("in_progress", None);
        vec![
            self.event("response.created", json!({"response": response})),
            self.event("response.in_progress", json!({"response": response})),
        ]
    }

    fn say(&mut self, said: TurnPiece) -> Vec<SseEvent> {
        match said {
            TurnPiece::Text(delta) => self.text(&delta),
            TurnPiece::Thinking(delta) => self.thinking(&delta),
            TurnPiece::Call(call) => self.call(&call),
        }
    }

    fn finish(&mut self, end: &AnswerFinish) -> Vec<SseEvent> {
        let mut events = self.close();
        let name = match incomplete(&end.finish) {
            Some(_) => "response.incomplete",
            None => "response.completed",
        };
        let response = self.whole(end);
        events.push(self.event(name, json!({"response": response})));
        events
    }

    fn whole(&self, end: &AnswerFinish) -> Value {
        let status = if incomplete(&end.finish).is_some() { "incomplete" } else { "completed" };
        self.response(status, Some(end))
    }
}

fn output_text(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": []})
}

fn summary_text(text: &str) -> Value {
    json!({"type": "summary_text", "text": text})
}

/// The reason why an answer is incomplete. Other ends have no reason in this dialect.
fn incomplete(finish: &Finish) -> Option<&'static str> {
    match finish {
        Finish::Length => Some("max_output_tokens"),
        Finish::ContentFilter | Finish::Refusal(_) => Some("content_filter"),
        Finish::Stop
        | Finish::ToolCalls
        | Finish::ContextFull
        | Finish::Paused
        | Finish::Broken(_)
        | Finish::Other(_) => None,
    }
}
