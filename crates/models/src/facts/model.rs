//! Facts about a model.

use hangar_agent::model::Price;
use serde::{Deserialize, Serialize};

use super::effort::Level;
use super::host::{IdRule, ReasoningBack};

/// Facts about a model, whichever host serves it. The default is for an unknown model: nothing is sent to it that it
/// might refuse.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFacts {
    /// Whether any table has the model or its family.
    pub known: bool,
    /// Vendor, by the name that models.dev has for the vendor's own API: `anthropic`, `openai`, `google`.
    pub vendor: Option<String>,
    /// Tokens of prompt and answer together.
    pub window: Option<u64>,
    /// Limit of a prompt in tokens, where the vendor has a separate one.
    pub max_input: Option<u64>,
    /// Limit of an answer in tokens, reasoning included.
    pub max_output: Option<u64>,
    /// Price at the vendor's own API.
    pub price: Option<Price>,
    /// Price of what is written to the cache, as a multiple of that of input, wherever a host does not say it.
    pub cache_write: Option<f64>,
    /// Whether it reasons before it answers, or can.
    pub reasons: bool,
    /// Efforts that it accepts, lowest first. Empty: none, or unknown.
    pub efforts: Vec<Level>,
    /// The effort that applies if none is sent, if documented.
    pub default_effort: Option<Level>,
    /// Levels that are mapped to a specific other level rather than to the nearest lower one.
    pub effort_map: Vec<(Level, Level)>,
    /// Whether it takes a thinking budget in tokens, on a wire that is not Anthropic's.
    pub thinks_by_budget: bool,
    /// Thinking parameters of a Claude model. `None` for other models.
    pub thinking: Option<Thinking>,
    /// Endpoints at its vendor's own hosts; the one that loses the least comes first.
    pub endpoints: Vec<Endpoint>,
    /// Whether chat completions accept function tools.
    pub chat_tools: ChatTools,
    /// Whether chat completions limit its answer by `max_completion_tokens` and refuse `max_tokens`.
    pub max_completion_tokens: bool,
    /// Whether sampling parameters (temperature, top_p, penalties) may be sent. They are left out otherwise.
    pub sampling: bool,
    /// Whether it sees images, if that is known.
    pub vision: Option<bool>,
    /// Whether it calls tools whose input is free text.
    pub custom_tools: bool,
    /// Whether it edits files better with patches (`apply_patch`, `rg`) than with `edit`, `create` and `grep`.
    pub patches: bool,
    /// Whether each tool call carries a signature that must be sent back.
    pub signatures: bool,
    /// The field in which its reasoning is sent back on chat completions of an unknown host.
    pub reasoning_back: Option<ReasoningBack>,
    /// Shortest prefix that the vendor caches, in tokens.
    pub cache_min: Option<u64>,
    /// Tokens of the model for a hundred tokens of OpenAI's vocabulary.
    pub token_percent: u64,
    pub images: ImageFacts,
    /// Whether its vendor offers web search for it.
    pub web_search: bool,
    /// Whether tools can be added in the middle of a conversation.
    pub late_tools: bool,
    /// Ids of tool calls that it accepts, if its vendor has a rule for them.
    pub ids: Option<IdRule>,
    /// Whether an assistant message is required between a tool message and a user message, whichever host serves it.
    pub filler: bool,
}

/// The API that a model is called with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Endpoint {
    /// OpenAI chat completions.
    Chat,
    /// OpenAI responses.
    Responses,
    /// Anthropic messages.
    Messages,
}

/// Thinking parameters of a Claude model.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thinking {
    pub mode: ThinkingMode,
    /// Values of `thinking.type` that it refuses.
    #[serde(default)]
    pub refuses: Vec<ThinkingType>,
    /// Whether it thinks by default.
    #[serde(default)]
    pub on_by_default: bool,
    /// Whether `display` has to be `summarized` for its thinking to have text.
    #[serde(default)]
    pub text_omitted: bool,
    /// Whether `tool_choice` may force a tool.
    #[serde(default = "yes")]
    pub forced_tools: bool,
    /// Whether a thinking block is valid only after exactly the prefix that it was made with.
    #[serde(default)]
    pub prefix_bound: bool,
    /// Whether it thinks between the calls of a turn only if a header asks for it.
    #[serde(default)]
    pub interleaved: bool,
}

fn yes() -> bool {
    true
}

impl Thinking {
    pub fn accepts(&self, kind: ThinkingType) -> bool {
        self.mode != ThinkingMode::None && !self.refuses.contains(&kind)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThinkingMode {
    /// It does not think.
    None,
    /// A budget in tokens: `{"type": "enabled", "budget_tokens": n}`.
    Budget,
    /// The model decides, guided by an effort: `{"type": "adaptive"}`.
    Adaptive,
}

/// A value of `thinking.type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingType {
    Adaptive,
    Enabled,
    Disabled,
}

/// Whether the vendor's chat completions accept function tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatTools {
    #[default]
    Always,
    /// Only with the effort `none`.
    WithoutEffort,
    Never,
}

/// Limits of images for a model. `None` is "unknown".
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ImageFacts {
    /// Longer edge in pixels from which the vendor scales an image down, so that more pixels are wasted.
    pub max_edge: Option<u32>,
    /// Images of one request.
    pub max_count: Option<u32>,
    /// Bytes of one image in a request, as base64.
    pub max_bytes: Option<u64>,
    /// Longer edge in pixels from which an image is refused.
    pub hard_edge: Option<u32>,
    /// With more images than this, `many_edge` replaces `hard_edge`.
    pub many: Option<u32>,
    pub many_edge: Option<u32>,
    /// Tokens of an image of the largest size.
    pub tokens: Option<u64>,
}

impl Default for ModelFacts {
    fn default() -> Self {
        Self {
            known: false,
            vendor: None,
            window: None,
            max_input: None,
            max_output: None,
            price: None,
            cache_write: None,
            reasons: false,
            efforts: Vec::new(),
            default_effort: None,
            effort_map: Vec::new(),
            thinks_by_budget: false,
            thinking: None,
            endpoints: Vec::new(),
            chat_tools: ChatTools::Always,
            max_completion_tokens: false,
            sampling: false,
            vision: None,
            custom_tools: false,
            patches: false,
            signatures: false,
            reasoning_back: None,
            cache_min: None,
            token_percent: 100,
            images: ImageFacts::default(),
            web_search: false,
            late_tools: false,
            ids: None,
            filler: false,
        }
    }
}

impl ModelFacts {
    pub fn is_claude(&self) -> bool {
        self.thinking.is_some()
    }

    /// Output limit to send if none is configured: the model's own, but at most about a sixth of a small window, which
    /// prompt and answer share.
    pub fn answer_limit(&self) -> Option<u64> {
        let output = self.max_output?;
        Some(match (self.max_input, self.window) {
            (None, Some(window)) => output.min(window / 25 * 4),
            (Some(_), _) | (None, None) => output,
        })
    }

    /// Longest prompt in tokens that leaves room for the longest answer.
    pub fn prompt_limit(&self) -> Option<u64> {
        let rest = || {
            let window = self.window?;
            Some(window.saturating_sub(self.answer_limit().unwrap_or(window / 25 * 4)))
        };
        self.max_input.or_else(rest).filter(|limit| *limit > 0)
    }
}
