//! Facts about a host: its APIs, and the formats that it accepts.

use serde::{Deserialize, Serialize};

use super::model::{Endpoint, ModelFacts};

/// Facts about the host of a provider's models. The default is for an unknown server.
#[derive(Debug, Clone, PartialEq)]
pub struct HostFacts {
    /// Name in the table: `openai`, `openrouter`, `ollama`. `None` for an unknown server.
    pub name: Option<String>,
    /// Name of its models in the catalogue of models.dev.
    pub catalogue: Option<String>,
    /// The APIs that it has, best first.
    pub endpoints: Vec<Endpoint>,
    /// Endpoints for the models of a vendor at this host.
    pub wires: Vec<(String, Endpoint)>,
    /// The endpoint of all other models, if it is not chosen by the order of the model's own endpoints.
    pub first: Option<Endpoint>,
    /// Format of reasoning that is sent back on chat completions.
    pub reasoning_back: ReasoningBack,
    /// Format of an effort on chat completions.
    pub effort_field: EffortField,
    pub ids: IdRule,
    pub max_tokens: MaxTokensField,
    /// Conversations that have the same `prompt_cache_key`. `None` if it takes none.
    pub cache_key: Option<CacheKey>,
    /// Header with the session, by which a gateway asks the same vendor again.
    pub session_header: Option<String>,
    /// Whether it takes `cache_control` marks.
    pub cache_marks: bool,
    /// Whether an assistant message is required between a tool message and a user message.
    pub filler: bool,
    /// Whether content that is only text has to be a string, not a list of parts.
    pub plain_content: bool,
    /// Whether schemas of tools are limited to a small subset: no `null` unions, no siblings of `$ref`.
    pub strict_schemas: bool,
    /// Whether a value in a schema has one type, not a list of them.
    pub single_types: bool,
    /// Whether custom tools are accepted, for models that call them.
    pub custom_tools: bool,
    /// Whether chat completions refuse functions while a model reasons, for models with that limit in [`ChatTools`].
    ///
    /// [`ChatTools`]: super::ChatTools
    pub reasons_without_tools: bool,
    /// Whether summaries of reasoning are refused to unverified organisations.
    pub verified_summaries: bool,
    /// Whether it refuses a turn with calls of a reasoning model without its reasoning, even if another model made the
    /// turn.
    pub wants_reasoning: bool,
    /// Whether thinking of earlier turns is dropped unless the request asks to keep it.
    pub keeps_thinking: bool,
    /// Format of version numbers in names of models.
    pub spelling: Spelling,
    /// Whether it drops the oldest messages silently when a prompt is too long.
    pub drops_overflow: bool,
    /// Whether requests are billed rather than tokens, so that the vendor's price does not apply.
    pub billed_by_request: bool,
    /// The local server that it is, if any. Its tokens cost nothing.
    pub local: Option<LocalServer>,
    /// Whether tools can be added in the middle of a conversation, for models that take them there: in `system` messages of the
    /// messages wire, as `additional_tools` of the responses wire.
    pub late_tools: bool,
    /// Names of all its models, as patterns. Empty if it may have any.
    pub families: Vec<String>,
    /// Whether a key is sent in `Authorization`, whatever the wire.
    pub bearer: bool,
    /// Seconds until the first byte of an answer, where the vendor documents a long time.
    pub first_byte_seconds: Option<u64>,
    /// Whether long answers, or those of reasoning models, are refused unless they are streamed.
    pub streams_only: bool,
    /// Whether chat completions take `stream_options`. Hosts that refuse it report usage without being asked.
    pub stream_options: bool,
    /// The vendor's own web search, if it has one.
    pub web_search: Option<WebSearch>,
}

/// A web search that a vendor runs itself while a model answers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebSearch {
    /// The API that has it.
    pub endpoint: Endpoint,
    /// The `type` of the tool there.
    pub tool: String,
    /// US dollars for a thousand searches, if answers do not report their cost.
    pub price: Option<f64>,
    /// Whether `max_tool_calls` limits the searches of an answer.
    #[serde(default)]
    pub max_tool_calls: bool,
}

/// Format of earlier reasoning that is sent back on chat completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningBack {
    /// Not sent: the field would be refused or ignored.
    None,
    /// As text in `reasoning_content`.
    ReasoningContent,
    /// As the list `reasoning_details`, unchanged.
    ReasoningDetails,
    /// As `extra_content.google.thought_signature` of each call.
    ThoughtSignatures,
    /// As parts of the content, before its text.
    ThinkingParts,
}

/// Which requests have the same `prompt_cache_key`. Hosts route requests with the same key to the same cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheKey {
    /// Those with the same model, system prompt and tools, so that the sessions of a repository share these.
    Prefix,
    /// Those of one conversation.
    Conversation,
}

/// How an effort is written on chat completions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffortField {
    /// `"reasoning_effort": "high"`.
    #[default]
    ReasoningEffort,
    /// `"reasoning": {"effort": "high"}` or `{"max_tokens": n}`.
    Reasoning,
    /// `"thinking": {"type": "enabled" | "disabled"}` beside `reasoning_effort`.
    Thinking,
    /// `"enable_thinking": true` with `thinking_budget`.
    EnableThinking,
}

/// Ids of tool calls that a host accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdRule {
    /// Length of the longest id.
    pub max: usize,
    #[serde(default)]
    pub characters: Characters,
    /// Whether every id must have exactly `max` characters.
    #[serde(default)]
    pub exact: bool,
}

impl IdRule {
    pub fn accepts(&self, id: &str) -> bool {
        let length = if self.exact { id.len() == self.max } else { (1..=self.max).contains(&id.len()) };
        length && id.chars().all(|character| self.characters.contain(character))
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Characters {
    #[default]
    Any,
    /// Letters, digits, `_` and `-`.
    Word,
    Alphanumeric,
}

impl Characters {
    pub fn contain(self, character: char) -> bool {
        match self {
            Self::Any => true,
            Self::Word => character.is_ascii_alphanumeric() || character == '_' || character == '-',
            Self::Alphanumeric => character.is_ascii_alphanumeric(),
        }
    }
}

/// Name of the output limit on chat completions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MaxTokensField {
    /// `max_completion_tokens` for reasoning models of OpenAI, which refuse the older name; `max_tokens` for others,
    /// which compatible servers know.
    #[default]
    ByModel,
    MaxCompletionTokens,
}

/// Format of version numbers in the names of Claude models.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Spelling {
    /// As in the host's own list, else as typed.
    #[default]
    Listed,
    /// `claude-sonnet-4-5`.
    Dashes,
    /// `claude-sonnet-4.5`.
    Dots,
}

/// A server for models on the user's own machine, with a context window that was set when it was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LocalServer {
    Ollama,
    LmStudio,
    LlamaCpp,
    Vllm,
}

impl Default for HostFacts {
    fn default() -> Self {
        Self {
            name: None,
            catalogue: None,
            endpoints: vec![Endpoint::Chat],
            wires: Vec::new(),
            first: None,
            reasoning_back: ReasoningBack::ReasoningContent,
            effort_field: EffortField::ReasoningEffort,
            ids: IdRule { max: 64, characters: Characters::Any, exact: false },
            max_tokens: MaxTokensField::ByModel,
            cache_key: None,
            session_header: None,
            cache_marks: false,
            filler: false,
            plain_content: false,
            strict_schemas: false,
            single_types: false,
            custom_tools: false,
            reasons_without_tools: false,
            verified_summaries: false,
            wants_reasoning: false,
            keeps_thinking: false,
            spelling: Spelling::Listed,
            drops_overflow: false,
            billed_by_request: false,
            local: None,
            late_tools: false,
            families: Vec::new(),
            bearer: false,
            first_byte_seconds: None,
            streams_only: false,
            stream_options: true,
            web_search: None,
        }
    }
}

impl HostFacts {
    /// The endpoint of a model at this host.
    pub fn endpoint(&self, model: &ModelFacts) -> Endpoint {
        let speaks = |endpoint: &Endpoint| self.endpoints.contains(endpoint);
        let by_vendor = self.wires.iter().find(|(vendor, _)| model.vendor.as_ref() == Some(vendor));
        by_vendor
            .map(|(_, endpoint)| *endpoint)
            .or(self.first)
            .or_else(|| model.endpoints.iter().copied().find(speaks))
            .or_else(|| self.endpoints.first().copied())
            .unwrap_or(Endpoint::Chat)
    }

    /// Name of the output limit on chat completions.
    pub fn max_tokens_field(&self, model: &ModelFacts) -> &'static str {
        match self.max_tokens {
            MaxTokensField::MaxCompletionTokens => "max_completion_tokens",
            MaxTokensField::ByModel if model.max_completion_tokens => "max_completion_tokens",
            MaxTokensField::ByModel => "max_tokens",
        }
    }

    /// Format of a model's reasoning that is sent back on chat completions at this host.
    pub fn reasoning_back(&self, model: &ModelFacts) -> ReasoningBack {
        match (self.name.is_some(), model.reasoning_back, model.vendor.as_deref()) {
            (true, ..) => self.reasoning_back,
            (false, Some(back), _) => back,
            (false, None, Some("openai")) => ReasoningBack::None,
            (false, None, Some("google")) => ReasoningBack::ThoughtSignatures,
            (false, None, _) => self.reasoning_back,
        }
    }
}
