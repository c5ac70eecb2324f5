//! Models: requests, streamed answers and errors, independent of the wire format.

mod price;

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use futures_core::stream::BoxStream;
use hangar_protocol::data::{ModelOrigin, ToolType};
use serde::{Deserialize, Serialize};

pub use price::{Price, PriceStep, Rates};

use crate::tool::ToolSpec;

/// Streams one answer. Dropping the stream cancels the call.
///
/// A stream ends with exactly one of `Ok(ModelEvent::Finished)` or `Err`; nothing follows either. A provider does not
/// retry: the loop does, so that every failure is an event.
pub trait ModelProvider: Send + Sync {
    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>>;

    fn facts(&self) -> ProviderFacts;
}

/// Facts about a provider, and about the model that it is configured for.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderFacts {
    /// `/chat/completions`, `/responses` or `/v1/messages`.
    pub endpoint: &'static str,
    /// Whether it is the user's own provider, rather than GitHub's.
    pub is_byok: bool,
    /// Base URL for errors; carries no credentials.
    pub base_url: String,
    /// Its name in the configuration, if it is configured. Two providers may have the same base URL and different accounts.
    pub name: Option<String>,
    pub max_prompt_tokens: Option<u64>,
    pub max_output_tokens: Option<u64>,
    /// Price of the model, if it is known. An unknown price is not a price of zero.
    pub price: Option<Price>,
}

/// Token counter for the parts of a request, by the model's own tokenizer.
pub trait TokenMeter: Send + Sync {
    fn system(&self, text: &str) -> u64;
    fn message(&self, message: &Message) -> u64;
    fn tools(&self, tools: &[Arc<ToolSpec>]) -> u64;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenCount {
    pub system: u64,
    pub conversation: u64,
    pub tools: u64,
}

impl TokenCount {
    pub fn total(self) -> u64 {
        self.system + self.conversation + self.tools
    }
}

#[derive(Debug, Clone)]
pub struct ModelRequest {
    pub model: String,
    pub system: Arc<str>,
    pub messages: Vec<Arc<Message>>,
    /// Tools, in the order in which they were first offered.
    pub tools: Arc<[Arc<ToolSpec>]>,
    /// Tools that the conversation did not begin with, in order.
    pub late_tools: Vec<LateTools>,
    pub tool_choice: ToolChoice,
    pub effort: Option<String>,
    /// Whether the answer is streamed in pieces.
    pub stream: bool,
    pub initiator: Initiator,
    /// Cache key: a provider keeps the calls of one session in one cache.
    pub session_id: String,
    /// Additional HTTP headers that the sender of the prompt asked for.
    pub headers: Vec<(String, String)>,
    pub answer: Option<Arc<AnswerSchema>>,
    /// Limit of the answer; the configured one, or the model's own, if absent.
    pub max_output_tokens: Option<u64>,
}

/// Tools that were added in the middle of the conversation. A vendor that takes them there keeps its cache, and reasoning that
/// is bound to the tools; for others they are the end of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LateTools {
    /// Place of the first of them in the list of tools. The next entry, or the end of the list, ends them.
    pub first: usize,
    /// Number of messages that were sent before they were offered.
    pub behind: usize,
}

impl ModelRequest {
    /// Tools that the conversation began with.
    pub fn first_tools(&self) -> &[Arc<ToolSpec>] {
        let end = self.late_tools.first().map_or(self.tools.len(), |late| late.first);
        self.tools.get(..end).unwrap_or(&self.tools)
    }

    /// Tools that were added later, each group with the number of messages before it.
    pub fn later_tools(&self) -> impl Iterator<Item = (usize, &[Arc<ToolSpec>])> {
        let ends = self.late_tools.iter().skip(1).map(|next| next.first).chain([self.tools.len()]);
        let groups = self.late_tools.iter().zip(ends);
        groups.filter_map(|(late, end)| Some((late.behind, self.tools.get(late.first..end)?)))
    }
}

/// Response format that the sender of the prompt asked for. Enforcing it is up to the provider.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerSchema {
    pub name: String,
    pub schema: serde_json::Value,
    pub description: Option<String>,
    pub strict: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolChoice {
    Auto,
    /// Tools stay in the request, for the prefix cache, but must not be called.
    None,
}

/// Initiator of a call. Some providers bill only user requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Initiator {
    /// First call for a user message.
    User,
    /// Later call of the same run.
    Agent,
    /// Call of a sub-agent.
    Subagent,
    /// Call that makes a summary.
    Compaction,
    /// Call beside the conversation that somebody asked for.
    Aside,
    /// Call beside the conversation that nobody asked for: a title.
    Background,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    User(Vec<Part>),
    Assistant(AssistantTurn),
    /// Result of one tool call. It follows the assistant message that made the call.
    Tool {
        call_id: String,
        kind: ToolType,
        parts: Vec<Part>,
        /// Whether the call failed or did not run.
        is_error: bool,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    Text(String),
    /// `data` is base64.
    Image {
        mime_type: String,
        data: String,
    },
    /// A document that the model reads itself: a PDF. `data` is base64.
    Document {
        title: String,
        mime_type: String,
        data: String,
    },
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AssistantTurn {
    pub text: String,
    pub reasoning: Option<ReasoningText>,
    pub tool_calls: Vec<ToolCall>,
    /// The same turn in the vendor's own items, if text and calls do not cover all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native: Option<NativeTurn>,
}

/// A turn in the items of the vendor that sent it. It is sent back to that vendor unchanged, and to no other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NativeTurn {
    pub origin: ModelOrigin,
    /// JSON on one line, in the form of the wire: content blocks, output items, or a message.
    pub items: Arc<str>,
    /// Whether a call's arguments were changed afterwards, so that those of `tool_calls` hold.
    #[serde(default)]
    pub rewritten: bool,
    /// Whether the vendor paused the turn, so that the conversation continues from it without a message of ours.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// Digest of the request that was answered, where the vendor binds reasoning to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<NonZeroU64>,
}

/// Reasoning as it is shown and logged.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReasoningText {
    pub text: String,
    /// Anthropic's signature, or the id of a reasoning item of OpenAI responses. Only for the log: [`NativeTurn`] has
    /// what is sent back.
    pub opaque: Option<String>,
    /// Content that only the provider can read (redacted thinking, encrypted reasoning). Only for the log, too.
    pub encrypted: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    pub kind: ToolType,
    /// As the model wrote it: JSON text for a function, free text for a custom tool. May be invalid.
    pub input: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelEvent {
    /// A change of the request format, because the provider refused the previous one.
    Notice(String),
    Text(String),
    Reasoning(String),
    /// A piece of a call's input. The first piece of a call may be empty.
    ToolInput {
        call_id: String,
        name: String,
        kind: ToolType,
        delta: String,
    },
    Finished(Box<Reply>),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The provider's id of the call.
    pub id: Option<String>,
    #[serde(default, skip_serializing_if = "RequestIds::is_empty")]
    pub request_ids: RequestIds,
    /// Part of the answer that its text is, if the model says: `commentary` or `final_answer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    pub turn: AssistantTurn,
    pub finish: Finish,
    pub usage: TokenUsage,
}

impl Reply {
    /// An answer of which nothing but its contents is known.
    pub fn new(turn: AssistantTurn, finish: Finish, usage: TokenUsage) -> Self {
        Self { id: None, request_ids: RequestIds::default(), phase: None, turn, finish, usage }
    }
}

/// Ids by which a provider finds a request in its logs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestIds {
    /// Of GitHub.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub github: Option<String>,
    /// Of Copilot's service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
}

impl RequestIds {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    Stop,
    ToolCalls,
    /// The answer reached the output limit.
    Length,
    /// The conversation and the answer filled the context window.
    ContextFull,
    /// The provider paused a long turn, which goes on when its content is sent back.
    Paused,
    /// The provider withheld the answer or the rest of it.
    ContentFilter,
    /// The model refused to answer, with the provider's explanation if it gave one.
    Refusal(Option<String>),
    /// The provider reports that the answer is not usable, with its own reason: a malformed call, an internal error.
    Broken(String),
    /// An unknown reason.
    Other(String),
}

impl Finish {
    /// Its name in the chat completions API, which events use too.
    pub fn name(&self) -> &str {
        match self {
            Self::Stop => "stop",
            Self::ToolCalls => "tool_calls",
            Self::Length => "length",
            Self::ContextFull => "model_context_window_exceeded",
            Self::Paused => "pause_turn",
            Self::ContentFilter | Self::Refusal(_) => "content_filter",
            Self::Broken(name) | Self::Other(name) => name,
        }
    }
}

/// Usage that the provider reported. `None` is "not reported", which is not zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct TokenUsage {
    /// All input, cached or not.
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub cache_read_tokens: Option<u64>,
    pub cache_write_tokens: Option<u64>,
    pub reasoning_tokens: Option<u64>,
    /// Searches of the web that the provider made for the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web_searches: Option<u64>,
    /// Cost of the call in USD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

/// Failure of a model call. The session decides by `kind` whether to retry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    pub kind: ModelErrorKind,
    pub status: Option<u16>,
    /// Text for people; holds no credentials.
    pub message: String,
    /// The provider's error object or body as it came, cut to a few KB.
    pub body: Option<String>,
    pub code: Option<String>,
    pub retry_after: Option<Duration>,
    /// Whether the provider wants the request to be made again, if it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub should_retry: Option<bool>,
    #[serde(default, skip_serializing_if = "RequestIds::is_empty")]
    pub request_ids: RequestIds,
}

impl ModelError {
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            status: None,
            message: message.into(),
            body: None,
            code: None,
            retry_after: None,
            should_retry: None,
            request_ids: RequestIds::default(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelErrorKind {
    /// 401.
    Authentication,
    /// 403, or no provider at all: a retry with the same credentials does not help.
    AccessDenied,
    /// 429.
    RateLimit,
    /// 402, or a code that says that the account has no credit left: no retry helps.
    Quota,
    /// 408, 409, 500, 502, 503, 504, 529, and errors inside a stream that say so.
    Server,
    /// 400, 404, 422 and other refusals that the same request would meet again.
    Refused,
    /// 413, or an error that says the context is too long.
    ContextLength,
    /// A refusal of an image in the request: it cannot be read, or is too large. The request would meet it again.
    Image,
    /// A refusal of the reasoning of earlier answers: the provider does not accept its signature. The request would meet it
    /// again.
    Reasoning,
    /// No connection: refused, unknown host, TLS.
    Connect,
    /// The stream broke off before its end.
    Cut,
    /// Nothing came for longer than the limit.
    Stalled,
    /// The answer was not in the provider's own protocol.
    Protocol,
    /// The call could exceed a cap of the session's budget, so it was not made.
    Budget,
    /// The provider cannot be used as configured (a key command without output, an invalid host name).
    Configuration,
}
