//! Facts about a model.

use hangar_agent::model::Price;
use serde::{Deserialize, Serialize};

use super::effort::Level;
use super::host::ReasoningBack;

/// What is known of a model, whoever serves it. The default is what holds of a model that nobody knows: nothing is sent to
/// it that it might refuse.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFacts {
    /// Whether any table has the model, or the family that it belongs to.
    pub known: bool,
    /// Who made it, by the name that models.dev has for the vendor's own API: `anthropic`, `openai`, `google`.
    pub vendor: Option<String>,
    /// Tokens of prompt and answer together.
    pub window: Option<u64>,
    /// Tokens of a prompt, where the vendor limits them by themselves.
    pub max_input: Option<u64>,
    /// Tokens of an answer, reasoning included.
    pub max_output: Option<u64>,
    /// Price at the vendor's own API.
    pub price: Option<Price>,
    /// Price of what is written to the cache, as a multiple of that of input, wherever a host does not say it.
    pub cache_write: Option<f64>,
    /// Whether it reasons before it answers, or can.
    pub reasons: bool,
    /// Efforts that it takes, lowest first. Empty: none, or not known.
    pub efforts: Vec<Level>,
    /// The effort that counts where none is sent, if the vendor says so.
    pub default_effort: Option<Level>,
    /// Levels that are not lowered to the nearest one, but become another one.
    pub effort_map: Vec<(Level, Level)>,
    /// Whether it is told by a number of tokens how much to think, on a wire that is not Anthropic's.
    pub thinks_by_budget: bool,
    /// How a Claude model is asked to think. `None` for models of others.
    pub thinking: Option<Thinking>,
    /// What the model speaks at its vendor's own hosts, the one that loses least first.
    pub endpoints: Vec<Endpoint>,
    /// Whether chat completions take function tools.
    pub chat_tools: ChatTools,
    /// Whether chat completions limit its answer by `max_completion_tokens` and refuse `max_tokens`.
    pub max_completion_tokens: bool,
    /// Whether parameters for sampling (temperature, top_p, penalties) are good to send. They are left out otherwise.
    pub sampling: bool,
    /// Whether it sees images, if that is known.
    pub vision: Option<bool>,
    /// Whether it calls tools whose input is free text.
    pub custom_tools: bool,
    /// Whether it edits files best by patches (`apply_patch`, `rg`) rather than by `edit`, `create` and `grep`.
    pub patches: bool,
    /// Whether each call of a tool carries a signature that has to go back.
    pub signatures: bool,
    /// The field in which its reasoning goes back on chat completions of a host that is not known.
    pub reasoning_back: Option<ReasoningBack>,
    /// Tokens that a prefix needs for the vendor to cache it.
    pub cache_min: Option<u64>,
    /// Tokens of the model for a hundred tokens of OpenAI's vocabulary.
    pub token_percent: u64,
    pub images: ImageFacts,
    /// Whether its vendor searches the web for it.
    pub web_search: bool,
}

/// The API that a model is asked by.
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

/// How a Claude model is asked to think.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thinking {
    pub mode: ThinkingMode,
    /// Values of `thinking.type` that it refuses.
    #[serde(default)]
    pub refuses: Vec<ThinkingType>,
    /// Whether it thinks where the request says nothing.
    #[serde(default)]
    pub on_by_default: bool,
    /// Whether `display` has to be `summarized` for its thinking to have text.
    #[serde(default)]
    pub text_omitted: bool,
    /// Whether `tool_choice` may force a tool.
    #[serde(default = "yes")]
    pub forced_tools: bool,
    /// Whether a thinking block is valid only behind the very prefix that it was made with.
    #[serde(default)]
    pub prefix_bound: bool,
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
    /// By a number of tokens: `{"type": "enabled", "budget_tokens": n}`.
    Budget,
    /// As it sees fit, guided by an effort: `{"type": "adaptive"}`.
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

/// Whether chat completions of the vendor take function tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatTools {
    #[default]
    Always,
    /// Only with the effort `none`.
    WithoutEffort,
    Never,
}

/// Images as a model takes them. `None` is "not known".
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ImageFacts {
    /// Pixels of the longer edge beyond which the vendor scales an image down, so that more are wasted.
    pub max_edge: Option<u32>,
    /// Images of one request.
    pub max_count: Option<u32>,
    /// Bytes of one image in a request, where it is base64.
    pub max_bytes: Option<u64>,
    /// Pixels of the longer edge beyond which an image is refused.
    pub hard_edge: Option<u32>,
    /// With more images than this, `many_edge` is what `hard_edge` was.
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
        }
    }
}

impl ModelFacts {
    pub fn is_claude(&self) -> bool {
        self.thinking.is_some()
    }

    /// The longest answer to ask for where nobody sets a limit: all that the model has, but no more than about a sixth of
    /// a small window, which prompt and answer share.
    pub fn answer_limit(&self) -> Option<u64> {
        let output = self.max_output?;
        Some(match (self.max_input, self.window) {
            (None, Some(window)) => output.min(window / 25 * 4),
            (Some(_), _) | (None, None) => output,
        })
    }

    /// Tokens that a prompt may have so that the longest answer that is asked for still fits.
    pub fn prompt_limit(&self) -> Option<u64> {
        let rest = || {
            let window = self.window?;
            Some(window.saturating_sub(self.answer_limit().unwrap_or(window / 25 * 4)))
        };
        self.max_input.or_else(rest).filter(|limit| *limit > 0)
    }
}
