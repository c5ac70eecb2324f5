//! Folds the events of one session into spans: an invocation of the agent per prompt, with the calls to the model and
//! to tools as its children. Knows no clock: events say when they happened.

use std::collections::HashMap;

use hangar_agent::model::ProviderFacts;
use hangar_protocol::data::{
    AssistantMessage, AssistantUsage, CallOutcome, Delivery, ModelCallStart, ToolComplete, ToolStart,
    UserMessage,
};
use hangar_protocol::{Body, Event};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::span::{Attributes, ChatFigures, Kind, Span, SpanEvent, SpanWork, span_id, trace_id};

/// Span events that one invocation keeps; more of them say nothing new.
const MAX_SPAN_EVENTS: usize = 128;

/// Trace and span of the caller, from a `traceparent` of the W3C. One that is not valid has none.
fn caller(traceparent: &str) -> Option<(String, String)> {
    let mut parts = traceparent.split('-');
    let (version, trace, span) = (parts.next()?, parts.next()?, parts.next()?);
    let is_hex = |text: &str, length: usize| {
        text.len() == length
            && text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
            && text.bytes().any(|digit| digit != b'0')
    };
    let is_version = version.len() == 2 && version != "ff";
    (is_version && is_hex(trace, 32) && is_hex(span, 16)).then(|| (trace.to_owned(), span.to_owned()))
}

/// Facts about a session that do not change.
#[derive(Debug, Clone)]
pub struct SessionAttributes {
    pub conversation: String,
    pub provider: ProviderFacts,
    /// Whether spans carry message contents.
    pub content: bool,
}

pub(crate) struct SpanRecorder {
    session: SessionAttributes,
    invocation: Option<AgentInvocation>,
    /// Calls to the model under output, by the agent that makes them.
    chats: HashMap<Agent, Chat>,
    /// Calls of tools under output, with the agent that made them.
    tools: HashMap<String, (Agent, Open, ToolStart)>,
    /// Messages to each agent, if spans carry contents.
    transcripts: HashMap<Agent, Transcript>,
}

/// An agent by its id; the session's own has none.
type Agent = Option<String>;

#[derive(Default)]
struct Transcript {
    system: Option<String>,
    /// Input since the last call to the model.
    input: Vec<Value>,
}

struct Open {
    trace: String,
    id: String,
    parent: Option<String>,
    start: Timestamp,
}

struct AgentInvocation {
    open: Open,
    events: Vec<SpanEvent>,
    calls: u64,
    tools: u64,
    figures: (u64, u64),
    finish: Option<String>,
    error: Option<String>,
    first_input: Vec<Value>,
    last_output: Option<Value>,
}

struct Chat {
    open: Open,
    model: String,
    turn: String,
    usage: Option<AssistantUsage>,
    outcome: Option<CallOutcome>,
    interaction: Option<String>,
    input: Vec<Value>,
}

impl SpanRecorder {
    pub(crate) fn new(session: SessionAttributes) -> Self {
        Self {
            session,
            invocation: None,
            chats: HashMap::new(),
            tools: HashMap::new(),
            transcripts: HashMap::new(),
        }
    }

    /// The spans that end with an event.
    pub(crate) fn observe(&mut self, event: &Event) -> Vec<Span> {
        let Ok(now) = event.timestamp().parse::<Timestamp>() else { return Vec::new() };
        let agent = event.agent_id().map(|agent| agent.0.clone());
        match event.body() {
            Body::UserMessage(message) => {
                // A prompt that waited begins where the run before it ends.
                let begins = agent.is_none() && message.delivery == Some(Delivery::Queued);
                let ended = if begins { self.ended(now) } else { Vec::new() };
                self.prompted(event, &agent, message, now);
                return ended;
            }
            Body::SystemMessage(message) if self.session.content => {
                self.transcripts.entry(agent).or_default().system = Some(message.content.clone());
            }
            Body::ModelCallStart(call) => return self.chat_started(event, agent, call, now),
            Body::AssistantUsage(usage) => {
                if let Some(chat) = self.chats.get_mut(&agent) {
                    chat.usage = Some(usage.clone());
                }
            }
            Body::ModelCallFinished(finished) => {
                if let Some(chat) = self.chats.get_mut(&agent) {
                    chat.outcome = Some(finished.outcome);
                    chat.interaction.clone_from(&finished.interaction_id);
                    if finished.outcome != CallOutcome::Success
                        && let Some(chat) = self.chats.remove(&agent)
                    {
                        return vec![self.chat(&agent, chat, None, now)];
                    }
                }
            }
            Body::AssistantMessage(message) => {
                if let Some(chat) = self.chats.remove(&agent) {
                    return vec![self.chat(&agent, chat, Some(message), now)];
                }
            }
            Body::ToolStart(start) => {
                if let Some(open) = self.child(event, now) {
                    self.tools.insert(start.tool_call_id.clone(), (agent, open, start.clone()));
                }
            }
            Body::ToolComplete(complete) => {
                if let Some((agent, open, start)) = self.tools.remove(&complete.tool_call_id) {
                    return vec![self.tool(agent, open, &start, complete, now)];
                }
            }
            Body::SessionError(error) => {
                if let Some(invocation) = &mut self.invocation {
                    invocation.error = Some(error.error_type.clone());
                    let attributes = object(json!({ "exception.type": error.error_type }));
                    invocation.note("gen_ai.client.operation.exception", now, attributes);
                }
            }
            Body::UsageInfo(usage) => self.note(
                "github.copilot.session.usage_info",
                now,
                json!({
                    "github.copilot.token_limit": usage.token_limit,
                    "github.copilot.current_tokens": usage.current_tokens,
                    "github.copilot.messages_length": usage.messages_length,
                }),
            ),
            Body::CompactionStart(_) => self.note("github.copilot.session.compaction_start", now, json!({})),
            Body::CompactionComplete(complete) => self.note(
                "github.copilot.session.compaction_complete",
                now,
                json!({ "github.copilot.success": complete.success }),
            ),
            Body::Truncation(_) => self.note("github.copilot.session.truncation", now, json!({})),
            Body::HookStart(_) => self.note("github.copilot.hook.start", now, json!({})),
            Body::HookEnd(_) => self.note("github.copilot.hook.end", now, json!({})),
            Body::Abort(abort) => {
                self.note(
                    "github.copilot.abort",
                    now,
                    json!({ "github.copilot.abort.reason": abort.reason }),
                );
            }
            Body::AssistantIdle(_) if agent.is_none() => return self.ended(now),
            Body::SessionShutdown(_) => return self.ended(now),
            _ => {}
        }
        Vec::new()
    }

    /// Opens the span of a call to the model. A call before it that never ended was given up.
    fn chat_started(
        &mut self,
        event: &Event,
        agent: Agent,
        call: &ModelCallStart,
        now: Timestamp,
    ) -> Vec<Span> {
        let Some(open) = self.child(event, now) else { return Vec::new() };
        let input = self.transcripts.get_mut(&agent).map(|transcript| std::mem::take(&mut transcript.input));
        let chat = Chat {
            open,
            model: call.model.clone().unwrap_or_default(),
            turn: call.turn_id.clone(),
            usage: None,
            outcome: None,
            interaction: None,
            input: input.unwrap_or_default(),
        };
        let old = self.chats.insert(agent.clone(), chat);
        old.into_iter().map(|chat| self.chat(&agent, chat, None, now)).collect()
    }

    fn note(&mut self, name: &'static str, now: Timestamp, attributes: Value) {
        if let Some(invocation) = &mut self.invocation {
            invocation.note(name, now, object(attributes));
        }
    }

    fn child(&self, event: &Event, now: Timestamp) -> Option<Open> {
        let parent = &self.invocation.as_ref()?.open;
        Some(Open {
            trace: parent.trace.clone(),
            id: span_id(event.id()),
            parent: Some(parent.id.clone()),
            start: now,
        })
    }

    fn prompted(&mut self, event: &Event, agent: &Agent, message: &UserMessage, now: Timestamp) {
        let input = if self.session.content {
            let text = message.transformed_content.as_ref().unwrap_or(&message.content);
            vec![json!({ "role": "user", "parts": [{ "type": "text", "content": text }] })]
        } else {
            Vec::new()
        };
        if self.session.content {
            self.transcripts.entry(agent.clone()).or_default().input.extend(input.iter().cloned());
        }
        if agent.is_some() {
            return;
        }
        let invocation = self.invocation.get_or_insert_with(|| AgentInvocation {
            open: {
                let (trace, parent) = match message.traceparent.as_deref().and_then(caller) {
                    Some((trace, parent)) => (trace, Some(parent)),
                    None => (trace_id(event.id()), None),
                };
                Open { trace, id: span_id(event.id()), parent, start: now }
            },
            events: Vec::new(),
            calls: 0,
            tools: 0,
            figures: (0, 0),
            finish: None,
            error: None,
            first_input: input,
            last_output: None,
        });
        let mut attributes = object(json!({
            "github.copilot.user.message.source": message.source.as_deref().unwrap_or("user"),
        }));
        insert(&mut attributes, "github.copilot.user.message.interaction_id", message.interaction_id.clone());
        insert(&mut attributes, "github.copilot.user.message.turn_id", message.turn_id.clone());
        invocation.note("github.copilot.user.message", now, attributes);
    }

    /// The attributes that every span of the session has.
    fn common(&self, operation: &str) -> Attributes {
        object(json!({
            "gen_ai.operation.name": operation,
            "gen_ai.provider.name": provider(&self.session.provider),
            "gen_ai.conversation.id": self.session.conversation,
        }))
    }

    fn server(&self, attributes: &mut Attributes) {
        if let Some((address, port)) = address(&self.session.provider.base_url) {
            attributes.insert("server.address".to_owned(), json!(address));
            attributes.insert("server.port".to_owned(), json!(port));
        }
    }

    fn chat(
        &mut self,
        agent: &Agent,
        chat: Chat,
        message: Option<&AssistantMessage>,
        now: Timestamp,
    ) -> Span {
        let mut attributes = self.common("chat");
        attributes.insert("gen_ai.request.model".to_owned(), json!(chat.model));
        self.server(&mut attributes);
        let usage = chat.usage.unwrap_or_default();
        let figures = ChatFigures {
            input: usage.input_tokens.unwrap_or(0),
            output: usage.output_tokens.unwrap_or(0),
            cache_read: usage.cache_read_tokens.unwrap_or(0),
            cache_write: usage.cache_write_tokens.unwrap_or(0),
            reasoning: usage.reasoning_tokens.unwrap_or(0),
            first_chunk_ms: usage.time_to_first_token_ms,
        };
        if let Some(reason) = &usage.finish_reason {
            attributes.insert("gen_ai.response.finish_reasons".to_owned(), json!([reason]));
        }
        attributes.insert("gen_ai.usage.input_tokens".to_owned(), json!(figures.input));
        attributes.insert("gen_ai.usage.output_tokens".to_owned(), json!(figures.output));
        attributes.insert("gen_ai.response.model".to_owned(), json!(chat.model));
        insert(&mut attributes, "gen_ai.response.id", usage.api_call_id);
        insert(&mut attributes, "github.copilot.initiator", usage.initiator);
        // An unknown cost is absent: it is not a cost of zero.
        insert(&mut attributes, "github.copilot.cost", usage.cost);
        attributes.insert("github.copilot.turn_id".to_owned(), json!(chat.turn));
        insert(&mut attributes, "github.copilot.interaction_id", chat.interaction);
        insert(
            &mut attributes,
            "gen_ai.response.time_to_first_chunk",
            figures.first_chunk_ms.map(|ms| ms / 1000.0),
        );
        let answer = message.filter(|_| self.session.content).map(output);
        if self.session.content {
            attributes.insert("gen_ai.input.messages".to_owned(), text(&chat.input));
            if let Some(answer) = &answer {
                attributes.insert("gen_ai.output.messages".to_owned(), text(std::slice::from_ref(answer)));
            }
            if let Some(system) =
                self.transcripts.get(agent).and_then(|transcript| transcript.system.as_ref())
            {
                let parts = [json!({ "type": "text", "content": system })];
                attributes.insert("gen_ai.system_instructions".to_owned(), text(&parts));
            }
        }
        let error = match chat.outcome {
            Some(CallOutcome::Error) => Some("model_call_error"),
            Some(CallOutcome::Rejected) => Some("model_call_rejected"),
            Some(CallOutcome::Success | CallOutcome::Cancelled) | None => None,
        };
        insert(&mut attributes, "error.type", error);
        if let Some(invocation) = &mut self.invocation {
            invocation.calls += 1;
            invocation.figures.0 += figures.input;
            invocation.figures.1 += figures.output;
            // The last word is the session's own, whatever its agents say after it.
            if agent.is_none() {
                invocation.finish = usage.finish_reason;
                invocation.last_output = answer;
            }
        }
        let work = SpanWork::Chat(Box::new(figures));
        span(chat.open, format!("chat {}", chat.model), Kind::Client, now, attributes, error, work)
    }

    fn tool(
        &mut self,
        agent: Agent,
        open: Open,
        start: &ToolStart,
        complete: &ToolComplete,
        now: Timestamp,
    ) -> Span {
        let mut attributes = self.common("execute_tool");
        attributes.insert("gen_ai.tool.name".to_owned(), json!(start.tool_name));
        attributes.insert("gen_ai.tool.call.id".to_owned(), json!(start.tool_call_id));
        attributes.insert("gen_ai.tool.type".to_owned(), json!("function"));
        let exit = complete.shell_execution.as_ref().map(|shell| shell.exit_code);
        insert(&mut attributes, "process.exit.code", exit);
        let result = complete.result.as_ref().map(|result| result.content.clone());
        let result = result.or_else(|| complete.error.as_ref().map(|error| error.message.clone()));
        if self.session.content {
            let arguments = match &start.arguments {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            attributes.insert("gen_ai.tool.call.arguments".to_owned(), json!(arguments));
            insert(&mut attributes, "gen_ai.tool.call.result", result.clone());
            let part = json!({ "type": "tool_call_response", "id": start.tool_call_id, "response": result });
            let input = &mut self.transcripts.entry(agent).or_default().input;
            input.push(json!({ "role": "tool", "parts": [part] }));
        }
        let error = (!complete.success).then_some("ToolError");
        insert(&mut attributes, "error.type", error);
        if let Some(invocation) = &mut self.invocation {
            invocation.tools += 1;
        }
        let name = format!("execute_tool {}", start.tool_name);
        let work = SpanWork::Tool { name: start.tool_name.clone() };
        let mut span = span(open, name, Kind::Internal, now, attributes, error, work);
        if let Some(error) = &complete.error {
            let code = error.code.clone().unwrap_or_default();
            let attributes =
                object(json!({ "exception.type": "ToolError", "github.copilot.error_code": code }));
            let name = "gen_ai.client.operation.exception";
            span.events.push(SpanEvent { name, time: now, attributes });
        }
        span
    }

    /// The agent rests: what was under output ends here.
    fn ended(&mut self, now: Timestamp) -> Vec<Span> {
        let mut spans = Vec::new();
        for (agent, chat) in std::mem::take(&mut self.chats) {
            spans.push(self.chat(&agent, chat, None, now));
        }
        for (agent, open, start) in std::mem::take(&mut self.tools).into_values() {
            let given_up = ToolComplete { tool_call_id: start.tool_call_id.clone(), ..Default::default() };
            spans.push(self.tool(agent, open, &start, &given_up, now));
        }
        let Some(invocation) = self.invocation.take() else { return spans };
        let mut attributes = self.common("invoke_agent");
        self.server(&mut attributes);
        attributes.insert("github.copilot.agent.type".to_owned(), json!("builtin"));
        if let Some(reason) = &invocation.finish {
            attributes.insert("gen_ai.response.finish_reasons".to_owned(), json!([reason]));
        }
        attributes.insert("gen_ai.usage.input_tokens".to_owned(), json!(invocation.figures.0));
        attributes.insert("gen_ai.usage.output_tokens".to_owned(), json!(invocation.figures.1));
        attributes.insert("github.copilot.turn_count".to_owned(), json!(invocation.calls));
        if self.session.content {
            attributes.insert("gen_ai.input.messages".to_owned(), text(&invocation.first_input));
            if let Some(answer) = invocation.last_output {
                attributes.insert("gen_ai.output.messages".to_owned(), text(&[answer]));
            }
        }
        insert(&mut attributes, "error.type", invocation.error.clone());
        let work = SpanWork::Invocation { calls: invocation.calls, tools: invocation.tools };
        let error = invocation.error.as_deref();
        let mut span =
            span(invocation.open, "invoke_agent".to_owned(), Kind::Internal, now, attributes, error, work);
        span.events = invocation.events;
        spans.push(span);
        spans
    }
}

impl AgentInvocation {
    fn note(&mut self, name: &'static str, time: Timestamp, attributes: Attributes) {
        if self.events.len() < MAX_SPAN_EVENTS {
            self.events.push(SpanEvent { name, time, attributes });
        }
    }
}

fn span(
    open: Open,
    name: String,
    kind: Kind,
    end: Timestamp,
    attributes: Attributes,
    error: Option<&str>,
    work: SpanWork,
) -> Span {
    let Open { trace, id, parent, start } = open;
    let error = error.map(str::to_owned);
    Span { trace, id, parent, name, kind, start, end, attributes, error, events: Vec::new(), work }
}

fn output(message: &AssistantMessage) -> Value {
    let mut parts = Vec::new();
    if !message.content.is_empty() {
        parts.push(json!({ "type": "text", "content": message.content }));
    }
    parts.extend(message.tool_requests.iter().map(|request| {
        json!({ "type": "tool_call", "id": request.tool_call_id, "name": request.name, "arguments": request.arguments })
    }));
    json!({ "role": "assistant", "parts": parts })
}

fn text(messages: &[Value]) -> Value {
    Value::String(Value::Array(messages.to_vec()).to_string())
}

fn object(value: Value) -> Attributes {
    match value {
        Value::Object(map) => map,
        _ => Attributes::new(),
    }
}

fn insert(attributes: &mut Attributes, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        attributes.insert(key.to_owned(), value.into());
    }
}

fn provider(facts: &ProviderFacts) -> &'static str {
    match (facts.is_byok, facts.endpoint.ends_with("/messages")) {
        (true, true) => "anthropic",
        (true, false) => "openai",
        (false, _) => "github",
    }
}

/// Host and port of an address.
fn address(url: &str) -> Option<(String, u16)> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let usual = if scheme == "https" { 443 } else { 80 };
    match host.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => Some((host.to_owned(), port.parse().ok()?)),
        _ if host.is_empty() => None,
        _ => Some((host.to_owned(), usual)),
    }
}
