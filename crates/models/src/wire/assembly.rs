//! Assembly of an answer from its pieces, the same for every wire.

use std::sync::Arc;

use hangar_agent::model::{
    AssistantTurn, Finish, Message, ModelEvent, ModelRequest, NativeTurn, ReasoningText, Reply, TokenUsage,
    ToolCall,
};
use hangar_agent::tool::{ToolSchema, ToolSpec};
use hangar_protocol::data::{ModelOrigin, ToolType};
use serde_json::Value;

use super::INPUT;

/// Number of cited pages that are listed below an answer.
const MAX_SOURCES: usize = 20;

pub(super) struct Assembly {
    pub(super) id: Option<String>,
    pub(super) usage: TokenUsage,
    text: String,
    thoughts: String,
    calls: Vec<Call>,
    /// Web pages that the answer cites.
    sources: Vec<CitedPage>,
    origin: ModelOrigin,
    tools: Arc<[Arc<ToolSpec>]>,
    history: Vec<Arc<Message>>,
}

struct CitedPage {
    url: String,
    title: String,
}

struct Call {
    call: ToolCall,
    form: Form,
}

#[derive(PartialEq)]
enum Form {
    AsWritten,
    /// A custom tool that was offered as a function: its text has to be extracted from the arguments, so its pieces are
    /// held back until they are complete.
    Disguised,
    /// Extracted and emitted.
    Unwrapped,
}

impl Assembly {
    pub(super) fn new(request: &ModelRequest, origin: ModelOrigin) -> Self {
        Self {
            origin,
            id: None,
            usage: TokenUsage::default(),
            text: String::new(),
            thoughts: String::new(),
            calls: Vec::new(),
            sources: Vec::new(),
            tools: Arc::clone(&request.tools),
            history: request.messages.clone(),
        }
    }

    /// The first id that the answer generates itself.
    pub(super) fn identify(&mut self, id: &str) {
        if self.id.is_none() && !id.is_empty() {
            self.id = Some(id.to_owned());
        }
    }

    pub(super) fn has_text(&self) -> bool {
        !self.text.is_empty()
    }

    pub(super) fn has_thoughts(&self) -> bool {
        !self.thoughts.is_empty()
    }

    pub(super) fn thoughts(&self) -> &str {
        &self.thoughts
    }

    pub(super) fn text(&mut self, delta: &str, out: &mut Vec<ModelEvent>) {
        if !delta.is_empty() {
            self.text.push_str(delta);
            out.push(ModelEvent::Text(delta.to_owned()));
        }
    }

    pub(super) fn thought(&mut self, delta: &str, out: &mut Vec<ModelEvent>) {
        if !delta.is_empty() {
            self.thoughts.push_str(delta);
            out.push(ModelEvent::Reasoning(delta.to_owned()));
        }
    }

    /// Adds a citation. Cited web pages are listed below the text.
    pub(super) fn cite(&mut self, citation: &Value) {
        let text = |name: &str| citation.get(name).and_then(Value::as_str).unwrap_or_default().trim();
        let (url, title) = (text("url"), text("title"));
        let is_new = self.sources.iter().all(|source| source.url != url);
        if !url.is_empty() && is_new && self.sources.len() < MAX_SOURCES {
            self.sources.push(CitedPage { url: url.to_owned(), title: title.to_owned() });
        }
    }

    /// Adds a search that the provider ran itself, or a page that it opened. It is shown in the reasoning, where the
    /// model decided on it.
    pub(super) fn searched(&mut self, action: &Value, out: &mut Vec<ModelEvent>) {
        let text = |name: &str| action.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let queries = action.get("queries").and_then(Value::as_array).into_iter().flatten();
        let query = || text("query").or_else(|| queries.filter_map(Value::as_str).next());
        let told = match (query(), text("url")) {
            (Some(query), _) => format!("Searched the web for \u{201c}{query}\u{201d}."),
            (None, Some(url)) => format!("Opened {url}."),
            (None, None) => "Searched the web.".to_owned(),
        };
        let apart = if self.has_thoughts() { "\n\n" } else { "" };
        self.thought(&format!("{apart}{told}"), out);
    }

    /// The pages that an answer cites without naming them, as a list below it.
    fn list_sources(&mut self, out: &mut Vec<ModelEvent>) {
        let unnamed = self.sources.iter().filter(|source| !self.text.contains(&source.url));
        let lines: Vec<String> = unnamed.map(CitedPage::line).collect();
        if !lines.is_empty() && self.has_text() {
            self.text(&format!("\n\nSources:\n{}", lines.join("\n")), out);
        }
    }

    /// Begins a call and returns its index. `kind` is the wire's.
    pub(super) fn open_call(&mut self, id: &str, name: &str, kind: ToolType) -> usize {
        let id = if id.is_empty() { self.new_id() } else { self.distinct(id) };
        let mut call = Call {
            call: ToolCall { id, name: name.to_owned(), kind, input: String::new() },
            form: Form::AsWritten,
        };
        call.disguise(&self.tools);
        self.calls.push(call);
        self.calls.len() - 1
    }

    /// Sets a name that came later than its call.
    pub(super) fn name_call(&mut self, call: usize, name: &str) {
        let call = &mut self.calls[call];
        if call.call.name.is_empty() {
            call.call.name = name.to_owned();
            call.disguise(&self.tools);
        }
    }

    pub(super) fn call_input(&self, call: usize) -> &str {
        &self.calls[call].call.input
    }

    pub(super) fn has_whole_calls(&self, finish: &Finish) -> bool {
        (0..self.calls.len()).any(|call| !self.is_cut(call, finish))
    }

    /// Whether a call broke off. It does not run and is not sent back. Free text has no visible end.
    pub(super) fn is_cut(&self, call: usize, finish: &Finish) -> bool {
        let ToolCall { kind, input, .. } = &self.calls[call].call;
        let is_whole = *kind == ToolType::Function
            && serde_json::from_str::<serde_json::Map<String, Value>>(input).is_ok();
        let is_last = call + 1 == self.calls.len();
        matches!(finish, Finish::Length | Finish::ContextFull) && is_last && !is_whole
    }

    pub(super) fn call_id(&self, call: usize) -> &str {
        &self.calls[call].call.id
    }

    pub(super) fn extend_call(&mut self, call: usize, delta: &str, out: &mut Vec<ModelEvent>) {
        let call = &mut self.calls[call];
        if delta.is_empty() {
            return;
        }
        call.call.input.push_str(delta);
        if call.form == Form::AsWritten {
            out.push(call.piece(delta));
        }
    }

    /// The input of the call is complete.
    pub(super) fn close_call(&mut self, call: usize, out: &mut Vec<ModelEvent>) {
        self.calls[call].unwrap_input(out);
    }

    /// Finishes the answer. `reasoning` gets the text of the reasoning and adds the signatures of its wire; `items` is
    /// the answer as JSON of its wire, if text and calls do not cover all of it.
    pub(super) fn finish(
        &mut self,
        finish: Finish,
        reasoning: impl FnOnce(String) -> ReasoningText,
        items: Option<String>,
        out: &mut Vec<ModelEvent>,
    ) -> Reply {
        self.list_sources(out);
        // An answer that was cut may end in a call without its arguments, which is not a call without arguments.
        let cut = matches!(finish, Finish::Length | Finish::ContextFull);
        let calls: Vec<ToolCall> = std::mem::take(&mut self.calls)
            .into_iter()
            .map(|mut call| {
                call.unwrap_input(out);
                if !cut && call.call.kind == ToolType::Function && call.call.input.is_empty() {
                    call.call.input.push_str("{}");
                }
                call.call
            })
            .collect();
        // Some servers end a turn of calls with `stop`.
        let finish = if finish == Finish::Stop && !calls.is_empty() { Finish::ToolCalls } else { finish };
        let reasoning = reasoning(std::mem::take(&mut self.thoughts));
        // A line of the log has to hold it.
        let items = items.map(|items| if items.contains(['\n', '\r']) { compact(&items) } else { items });
        let origin = std::mem::take(&mut self.origin);
        let turn = AssistantTurn {
            text: std::mem::take(&mut self.text),
            reasoning: (reasoning != ReasoningText::default()).then_some(reasoning),
            tool_calls: calls,
            native: items.map(|items| NativeTurn {
                origin,
                items: items.into(),
                rewritten: false,
                paused: finish == Finish::Paused,
                prefix: None,
            }),
        };
        Reply { id: self.id.take(), ..Reply::new(turn, finish, self.usage) }
    }

    /// The id of a call, or another one if a server gave it to an earlier call, of this answer or of another one: each needs a
    /// result of its own, and stricter servers refuse a conversation with two.
    fn distinct(&self, id: &str) -> String {
        if !self.is_taken(id) {
            return id.to_owned();
        }
        (2..).map(|n| format!("{id}_{n}")).find(|id| !self.is_taken(id)).unwrap_or_default()
    }

    /// An id for a call of a server that gives none: deterministic for the same conversation, and unique in it.
    fn new_id(&self) -> String {
        let first = self.past_calls().count() + self.calls.len();
        // Of one more name than there are calls, at least one is free.
        (first..).map(|n| format!("call_{n}")).find(|id| !self.is_taken(id)).unwrap_or_default()
    }

    fn is_taken(&self, id: &str) -> bool {
        self.past_calls().any(|call| call.id == id) || self.calls.iter().any(|call| call.call.id == id)
    }

    /// The calls of earlier answers.
    fn past_calls(&self) -> impl Iterator<Item = &ToolCall> {
        let turns = self.history.iter().filter_map(|message| match &**message {
            Message::Assistant(turn) => Some(&turn.tool_calls),
            Message::User(_) | Message::Tool { .. } => None,
        });
        turns.flatten()
    }
}

/// JSON without the line breaks between its values.
fn compact(json: &str) -> String {
    let value: Result<Value, _> = serde_json::from_str(json);
    value.map_or_else(|_| json.to_owned(), |value| value.to_string())
}

impl CitedPage {
    /// A line of a list, as Markdown.
    fn line(&self) -> String {
        let Self { url, title } = self;
        let title = title.replace(['[', ']', '\n', '\r'], " ");
        let title = title.trim();
        if title.is_empty() { format!("- <{url}>") } else { format!("- [{title}]({url})") }
    }
}

impl Call {
    fn disguise(&mut self, tools: &[Arc<ToolSpec>]) {
        let is_custom = |tool: &ToolSpec| matches!(tool.input, ToolSchema::Custom { .. });
        if self.call.kind == ToolType::Function
            && tools.iter().any(|tool| tool.name == self.call.name && is_custom(tool))
        {
            self.call.kind = ToolType::Custom;
            self.form = Form::Disguised;
        }
    }

    fn unwrap_input(&mut self, out: &mut Vec<ModelEvent>) {
        if self.form != Form::Disguised {
            return;
        }
        self.form = Form::Unwrapped;
        // Some servers write the plain text in place of the arguments; then it is kept unchanged.
        if let Ok(Value::Object(arguments)) = serde_json::from_str(&self.call.input)
            && let Some(Value::String(text)) = arguments.get(INPUT)
        {
            self.call.input = text.clone();
        }
        if !self.call.input.is_empty() {
            out.push(self.piece(&self.call.input));
        }
    }

    fn piece(&self, delta: &str) -> ModelEvent {
        ModelEvent::ToolInput {
            call_id: self.call.id.clone(),
            name: self.call.name.clone(),
            kind: self.call.kind,
            delta: delta.to_owned(),
        }
    }
}
