//! The three wires: encoding of requests and decoding of answers. No I/O.

pub(crate) mod anthropic;
mod assembly;
mod body;
pub(crate) mod chat;
#[cfg(test)]
mod ends;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod hosted;
mod native;
pub(crate) mod responses;
mod schema;
#[cfg(test)]
pub(crate) mod testing;

use std::sync::Arc;

use hangar_agent::model::{AnswerSchema, Message, ModelError, ModelEvent, ModelRequest, Part, Reply};
use hangar_agent::schema::Schema;
use hangar_agent::tool::{ToolSchema, ToolSpec};
use hangar_protocol::data::{ModelOrigin, ToolType};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use self::anthropic::binding::Binding;
use self::assembly::Assembly;
use self::body::write_body;
use self::native::{call_id, native_to};
use crate::config::AnswerStyle;
use crate::facts::{CacheKey, Endpoint, HostFacts, IdRule, Level, ModelFacts, Reasoning, WebSearch};
use crate::learned::{EFFORT, INLINE_TOOLS, INTERLEAVED, Learned};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    Chat,
    Responses,
    Messages,
}

/// A request, with the provider's additions.
pub(crate) struct Ask<'a> {
    pub(crate) request: &'a ModelRequest,
    /// The provider's name for the model.
    pub(crate) model: &'a str,
    pub(crate) facts: &'a ModelFacts,
    pub(crate) host: &'a HostFacts,
    /// The origin of the answer. Items of earlier answers are sent back only to the origin that they came from.
    pub(crate) origin: &'a ModelOrigin,
    /// The fields that the provider has refused so far.
    pub(crate) learned: &'a Learned,
    /// A configured limit; wires that require one fall back on the facts about the model.
    pub(crate) max_output_tokens: Option<u64>,
    pub(crate) dialect: WireVariant,
    pub(crate) carrier: Carrier,
    /// Whether the model is asked to cite documents.
    pub(crate) citations: bool,
    pub(crate) style: AnswerStyle,
    /// The vendor's own web search, if it is enabled.
    pub(crate) search: Option<&'a WebSearch>,
    /// Which thinking of earlier answers does not fit this request.
    pub(crate) binding: Binding,
}

/// Longer cache keys are refused.
const CACHE_KEY: usize = 64;
/// Bytes of a digest that are a cache key.
const KEY_BYTES: usize = 16;
/// Searches of the web in one answer.
const MAX_SEARCHES: u32 = 8;

impl Ask<'_> {
    /// Effort to send. An unknown model gets the requested one.
    fn effort(&self) -> Reasoning {
        let asked = self.request.effort.as_deref();
        if self.is_forgotten(EFFORT) {
            return Reasoning::Unset;
        }
        if let Some(efforts) = self.learned.efforts() {
            let facts = ModelFacts { efforts: efforts.to_vec(), ..self.facts.clone() };
            return facts.effort(asked).reasoning;
        }
        match asked.and_then(Level::parse) {
            Some(level) if !self.facts.known => Reasoning::Level(level),
            _ => self.facts.effort(asked).reasoning,
        }
    }

    /// Key by which the host finds the cache of the request, if it takes one.
    fn cache_key(&self) -> Option<String> {
        // A server of unknown make that speaks responses takes what OpenAI takes.
        let rule = self.host.cache_key.or(self.host.name.is_none().then_some(CacheKey::Prefix))?;
        let mut digest = Sha256::new();
        match rule {
            CacheKey::Conversation if (1..=CACHE_KEY).contains(&self.request.session_id.len()) => {
                return Some(self.request.session_id.clone());
            }
            CacheKey::Conversation => digest.update(self.request.session_id.as_bytes()),
            CacheKey::Prefix => {
                digest.update(self.model.as_bytes());
                digest.update(self.request.system.as_bytes());
                // Tools that come later do not lose the cache of those before them.
                for tool in self.request.first_tools() {
                    digest.update(tool.name.as_bytes());
                    digest.update(tool.description.as_bytes());
                }
            }
        }
        let bytes = digest.finalize();
        Some(bytes.iter().take(KEY_BYTES).map(|byte| format!("{byte:02x}")).collect())
    }

    /// Whether parts of the request are marked for the provider's cache: Claude caches nothing by itself, whoever serves it.
    fn marks_cache(&self) -> bool {
        (self.host.cache_marks || self.facts.is_claude()) && !self.is_forgotten("cache_control")
    }

    /// Whether the vendor is told how to handle thinking that does not fit its conversation any more.
    fn binds_thinking(&self) -> bool {
        self.host.name.as_deref() == Some("anthropic") && !self.is_forgotten("thinking.block_binding")
    }

    /// Features of the messages wire that a header has to enable.
    pub(crate) fn betas(&self) -> Vec<&'static str> {
        let binds =
            self.facts.thinking.as_ref().is_some_and(|rule| rule.prefix_bound) && self.binds_thinking();
        let adds = self.adds_tools() && !self.request.late_tools.is_empty();
        let interleaves = self.facts.thinking.as_ref().is_some_and(|rule| rule.interleaved)
            && self.host.name.as_deref() == Some("anthropic")
            && !self.is_forgotten(INTERLEAVED);
        let betas = [
            interleaves.then_some("interleaved-thinking-2025-05-14"),
            binds.then_some("thinking-binding-controls-2026-08-01"),
            adds.then_some("inline-tools-2026-09-15"),
        ];
        betas.into_iter().flatten().collect()
    }

    /// The id of a call as the host accepts it. An id that came from the very same origin goes back as it came: some gateways
    /// keep data in it, such as the signature of a call, and others look for it in the reasoning beside it.
    fn call_id(&self, id: &str) -> String {
        let rule = self.id_rule();
        let is_own = || {
            self.request.messages.iter().any(|message| match &**message {
                Message::Assistant(turn) => {
                    turn.tool_calls.iter().any(|call| call.id == id) && native_to(turn, self.origin).is_some()
                }
                Message::User(_) | Message::Tool { .. } => false,
            })
        };
        if rule.accepts(id) || (!rule.exact && !id.is_empty() && is_own()) {
            id.to_owned()
        } else {
            call_id(id, rule)
        }
    }

    /// The rule for ids of calls. An exact form is that of the model's template, whichever host applies it; behind an unknown host
    /// the model's vendor decides.
    fn id_rule(&self) -> &IdRule {
        let model = self.facts.ids.as_ref();
        model.filter(|rule| rule.exact || self.host.name.is_none()).unwrap_or(&self.host.ids)
    }

    /// Whether an assistant message is required between a tool message and a user message.
    fn needs_filler(&self) -> bool {
        self.host.filler || self.facts.filler
    }

    /// Whether the wire takes tools in the middle of the conversation.
    fn adds_tools(&self) -> bool {
        self.facts.late_tools && self.host.late_tools && !self.is_forgotten(INLINE_TOOLS)
    }

    /// The tools of the list, where others are added in the conversation.
    fn listed_tools(&self) -> &[Arc<ToolSpec>] {
        if self.adds_tools() { self.request.first_tools() } else { &self.request.tools }
    }

    /// Whether tools whose input is free text can be offered as such.
    fn takes_custom(&self) -> bool {
        self.facts.custom_tools && (self.host.custom_tools || self.host.name.is_none())
    }

    /// The vendor's web search, if the request offers it and the API has it. Answers with a response format have no
    /// room for its citations, and a model at a minimal effort is refused it.
    fn search(&self, endpoint: Endpoint) -> Option<&WebSearch> {
        let thinks = self.effort() != Reasoning::Level(Level::Minimal);
        self.search
            .filter(|search| search.endpoint == endpoint && thinks && self.request.answer.is_none())
            .filter(|_| self.request.tools.iter().any(|tool| tool.input == ToolSchema::Hosted))
    }

    /// The tools that are offered, without the vendor's own.
    fn own_tools(&self) -> impl Iterator<Item = &ToolSpec> {
        self.request.tools.iter().map(|tool| &**tool).filter(|tool| tool.input != ToolSchema::Hosted)
    }

    /// Whether the provider has refused a field.
    fn is_forgotten(&self, field: &str) -> bool {
        self.learned.has_refused(field)
    }

    /// Takes out the fields that the provider has refused.
    fn forget(&self, body: &mut Map<String, Value>) {
        body.retain(|field, _| !self.is_forgotten(field));
    }
}

/// Vendor's variant of a wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WireVariant {
    Vendor,
    /// GitHub's API: its own marks for caching, no cache key.
    Copilot,
}

/// Transport of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carrier {
    Http,
    /// A WebSocket, which only the responses wire has. Its answers are always streamed.
    Socket,
}

impl Wire {
    /// The API that it is the format of.
    pub(crate) fn api(self) -> Endpoint {
        match self {
            Self::Chat => Endpoint::Chat,
            Self::Responses => Endpoint::Responses,
            Self::Messages => Endpoint::Messages,
        }
    }
}

impl From<Endpoint> for Wire {
    fn from(endpoint: Endpoint) -> Self {
        match endpoint {
            Endpoint::Chat => Self::Chat,
            Endpoint::Responses => Self::Responses,
            Endpoint::Messages => Self::Messages,
        }
    }
}

impl Wire {
    pub(crate) fn endpoint(self) -> &'static str {
        match self {
            Self::Chat => "/chat/completions",
            Self::Responses => "/responses",
            Self::Messages => "/v1/messages",
        }
    }

    /// Output limit of the request, if it has one.
    pub(crate) fn max_output(self, ask: &Ask<'_>) -> Option<u64> {
        match self {
            Self::Chat | Self::Responses => ask.max_output_tokens,
            Self::Messages => Some(anthropic::request::max_tokens(ask)),
        }
    }

    /// The body of the request. The same request gives the same bytes, and a longer conversation the same beginning, so
    /// that a provider's prefix cache works.
    pub(crate) fn body(self, ask: &Ask<'_>) -> Vec<u8> {
        match self {
            Self::Chat => chat::request::body(ask),
            Self::Responses => responses::request::body(ask),
            Self::Messages => anthropic::request::body(ask),
        }
    }

    /// The decoder of an answer that comes from `origin`.
    pub(crate) fn decoder(self, request: &ModelRequest, origin: ModelOrigin) -> Box<dyn Decode> {
        let assembly = Assembly::new(request, origin);
        match self {
            Self::Chat => Box::new(chat::decode::Decoder::new(assembly)),
            Self::Responses => Box::new(responses::decode::Decoder::new(assembly)),
            Self::Messages => Box::new(anthropic::decode::Decoder::new(assembly)),
        }
    }
}

/// Decodes one answer. Its pieces add up to the text of its reply.
pub(crate) trait Decode: Send {
    /// Takes the data of one event of a stream.
    fn event(&mut self, data: &str, out: &mut Vec<ModelEvent>) -> Result<(), ModelError>;

    /// Takes an answer that came in one piece.
    fn whole(&mut self, body: &str) -> Result<(), ModelError>;

    fn progress(&self) -> Progress;

    /// The reply, once nothing more is read; `None` if the answer broke off before its end.
    fn finish(&mut self, out: &mut Vec<ModelEvent>) -> Option<Reply>;
}

/// Progress of a decoded answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    Going,
    /// The model has finished. Facts about the answer may follow.
    Complete,
    /// The answer is complete; nothing more is read.
    Over,
}

/// User message for a request whose conversation ends with an answer.
const GO_ON: &str = "Continue.";
/// Argument with the text of a custom tool, where it has to be offered as a function.
const INPUT: &str = "input";

/// The schema of a custom tool that is offered as a function.
fn input_schema() -> Schema {
    let text = json!({ "type": "string", "description": "The whole input of the tool, as plain text." });
    json!({ "type": "object", "properties": { INPUT: text }, "required": [INPUT] }).into()
}

/// The schema of a tool where all are functions.
fn function_schema(spec: &ToolSpec) -> Schema {
    match &spec.input {
        ToolSchema::Function(schema) => schema.clone(),
        ToolSchema::Custom { .. } => input_schema(),
        // Never written as a function.
        ToolSchema::Hosted => json!({ "type": "object" }).into(),
    }
}

/// The response format, as OpenAI's wires name it.
fn answer_schema(answer: &AnswerSchema) -> Map<String, Value> {
    let mut format = Map::new();
    format.insert("name".to_owned(), json!(answer.name));
    format.insert("schema".to_owned(), answer.schema.clone());
    if let Some(description) = &answer.description {
        format.insert("description".to_owned(), json!(description));
    }
    if let Some(strict) = answer.strict {
        format.insert("strict".to_owned(), json!(strict));
    }
    format
}

/// The arguments of a call of a custom tool that was offered as a function.
fn wrap_input(text: &str) -> Value {
    json!({ INPUT: text })
}

/// The argument object of a call in the history. The model may not have written an object, which providers refuse.
fn arguments(kind: ToolType, input: &str) -> Value {
    match kind {
        ToolType::Custom => wrap_input(input),
        ToolType::Function if input.trim().is_empty() => json!({}),
        ToolType::Function => match serde_json::from_str(input) {
            Ok(object @ Value::Object(_)) => object,
            _ => json!({ "invalid_arguments": input }),
        },
    }
}

/// The text parts, joined.
fn text_of(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        Part::Image { .. } | Part::Document { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn has_images(parts: &[Part]) -> bool {
    parts.iter().any(|part| matches!(part, Part::Image { .. }))
}

/// Whether there is more than text.
fn has_media(parts: &[Part]) -> bool {
    parts.iter().any(|part| !matches!(part, Part::Text(_)))
}

/// Placeholder of an image for a model without vision.
const UNSEEN: &str = "[An image is here, which this model cannot see.]";

/// The request for a model that sees no images.
pub(crate) fn without_images(request: &ModelRequest) -> ModelRequest {
    let mut request = request.clone();
    for message in &mut request.messages {
        let shows =
            matches!(&**message, Message::User(parts) | Message::Tool { parts, .. } if has_images(parts));
        if shows && let Message::User(parts) | Message::Tool { parts, .. } = Arc::make_mut(message) {
            let images = parts.iter_mut().filter(|part| matches!(part, Part::Image { .. }));
            images.for_each(|part| *part = Part::Text(UNSEEN.to_owned()));
        }
    }
    request
}

/// Whether a request shows the model an image.
pub(crate) fn shows_images(request: &ModelRequest) -> bool {
    request.messages.iter().any(|message| match &**message {
        Message::User(parts) | Message::Tool { parts, .. } => has_images(parts),
        Message::Assistant(_) => false,
    })
}

fn data_url(mime_type: &str, data: &str) -> String {
    format!("data:{mime_type};base64,{data}")
}

/// Cost of a call in USD, as OpenRouter and other gateways report it, and xAI in its own unit.
fn cost(usage: &Value) -> Option<f64> {
    const TICKS: f64 = 1e10;
    let number = |name: &str| usage.get(name).and_then(Value::as_f64);
    let cost = number("cost").or_else(|| Some(number("cost_in_usd_ticks")? / TICKS));
    cost.filter(|cost| *cost >= 0.0)
}

/// A number that a provider may omit, or write as `null`.
fn count(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer).and_then(Value::as_u64)
}
