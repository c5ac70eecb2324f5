//! What is known of well-known models by their names, for when neither the configuration nor a catalogue says it.

use crate::facts::{self, ThinkingMode};

pub use crate::facts::DEFAULT_PROMPT_TOKENS;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub max_prompt_tokens: u64,
    pub max_output_tokens: u64,
}

/// Models that want the same requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// GPT-5 and later: they reason, and refuse parameters for sampling.
    Gpt5,
    /// o1, o3, ...: like GPT-5, but without custom tools.
    OSeries,
    /// GPT models that do not reason.
    OldGpt,
    Claude(Thinking),
    Other,
}

/// How a Claude model is asked to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinking {
    Never,
    /// By a number of tokens.
    Budget,
    /// As it sees fit, guided by an effort.
    Adaptive,
}

/// Models whose limits and habits are known here by name, whoever serves them.
pub const CATALOGUE: &[&str] = &[
    "claude-fable-5",
    "claude-fable-5.1",
    "claude-haiku-4.5",
    "claude-haiku-5.5",
    "claude-opus-4.5",
    "claude-opus-4.6",
    "claude-opus-4.6-fast",
    "claude-opus-4.7",
    "claude-opus-4.8",
    "claude-opus-4.8-fast",
    "claude-opus-5",
    "claude-opus-5.5",
    "claude-sonnet-4",
    "claude-sonnet-4.5",
    "claude-sonnet-4.6",
    "claude-sonnet-5",
    "claude-sonnet-5.5",
    "gemini-2.5-pro",
    "gemini-3-pro-preview",
    "gemini-3.1-pro-preview",
    "gemini-3.5-flash",
    "gemini-3.6-flash",
    "gemini-3.7-flash",
    "gemini-3.8-flash",
    "gpt-4.1",
    "gpt-4.1-2025-04-14",
    "gpt-4o",
    "gpt-4o-mini",
    "gpt-5",
    "gpt-5-codex",
    "gpt-5-mini",
    "gpt-5.1",
    "gpt-5.1-codex",
    "gpt-5.1-codex-max",
    "gpt-5.1-codex-mini",
    "gpt-5.2",
    "gpt-5.2-codex",
    "gpt-5.3-codex",
    "gpt-5.4",
    "gpt-5.4-mini",
    "gpt-5.4-nano",
    "gpt-5.5",
    "gpt-5.6-luna",
    "gpt-5.6-sol",
    "gpt-5.6-sol-fast",
    "gpt-5.6-terra",
    "gpt-6-astra",
    "gpt-6-luna",
    "gpt-6-sol",
    "gpt-6.1-sol",
];

pub fn family(model: &str) -> Family {
    let facts = facts::of(model);
    match (&facts.thinking, facts.vendor.as_deref()) {
        (Some(rule), _) => Family::Claude(match rule.mode {
            ThinkingMode::None => Thinking::Never,
            ThinkingMode::Budget => Thinking::Budget,
            ThinkingMode::Adaptive => Thinking::Adaptive,
        }),
        (None, Some("openai")) if facts.custom_tools => Family::Gpt5,
        (None, Some("openai")) if facts.max_completion_tokens => Family::OSeries,
        (None, Some("openai")) if facts.sampling => Family::OldGpt,
        (None, _) => Family::Other,
    }
}

/// Limits that the vendors publish. The window that they share is split so that a full answer always fits.
pub fn limits(model: &str) -> Option<Limits> {
    let facts = facts::of(model);
    Some(Limits { max_prompt_tokens: facts.prompt_limit()?, max_output_tokens: facts.answer_limit()? })
}

/// Whether the model edits files best by patches (`apply_patch` and `rg` instead of `create`, `edit` and `grep`).
pub fn edits_by_patch(model: &str) -> bool {
    facts::of(model).patches
}

/// How many percent of the tokens counted with OpenAI's vocabulary the model's own would give.
pub fn token_percent(model: &str) -> u64 {
    facts::of(model).token_percent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_of_every_model_of_the_catalogue_are_known() {
        let unknown: Vec<&&str> = CATALOGUE.iter().filter(|model| limits(model).is_none()).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    #[test]
    fn families_are_known_by_name_however_it_is_written() {
        for (model, expected) in [
            ("gpt-5", Family::Gpt5),
            ("gpt-5.2-codex", Family::Gpt5),
            ("openai/gpt-5-mini-2025-08-07", Family::Gpt5),
            ("gpt-5-chat-latest", Family::OldGpt),
            ("gpt-4.1", Family::OldGpt),
            ("gpt-4o", Family::OldGpt),
            ("gpt-oss:20b", Family::Other),
            ("o3", Family::OSeries),
            ("o4-mini", Family::OSeries),
            ("olmo-2", Family::Other),
            ("claude-sonnet-4.5", Family::Claude(Thinking::Budget)),
            ("claude-sonnet-4-5-20250929", Family::Claude(Thinking::Budget)),
            ("claude-sonnet-4-20250514", Family::Claude(Thinking::Budget)),
            ("us.anthropic.claude-opus-4-6-v1:0", Family::Claude(Thinking::Adaptive)),
            ("claude-opus-5", Family::Claude(Thinking::Adaptive)),
            ("claude-next", Family::Claude(Thinking::Adaptive)),
            ("claude-3-5-sonnet-20241022", Family::Claude(Thinking::Never)),
            ("claude-3.7-sonnet", Family::Claude(Thinking::Budget)),
            ("mock-model", Family::Other),
            ("", Family::Other),
        ] {
            assert_eq!(family(model), expected, "{model}");
        }
    }

    #[test]
    fn limits_leave_room_for_a_full_answer() {
        let pair = |model| limits(model).map(|limits| (limits.max_prompt_tokens, limits.max_output_tokens));
        assert_eq!(pair("claude-sonnet-4.5"), Some((168_000, 32_000)));
        assert_eq!(pair("claude-haiku-4.5"), Some((168_000, 32_000)));
        assert_eq!(pair("claude-opus-4-7"), Some((872_000, 128_000)));
        assert_eq!(pair("gpt-5.4"), Some((922_000, 128_000)));
        assert_eq!(pair("gpt-5.2"), Some((272_000, 128_000)));
        assert_eq!(pair("claude-next"), None);
        assert_eq!(pair("qwen3-coder"), None);
    }

    #[test]
    fn patches_are_for_the_models_trained_on_them() {
        for model in ["gpt-5.1-codex", "gpt-5.2-codex", "gpt-5.4", "gpt-5.4-mini", "gpt-4o"] {
            assert!(edits_by_patch(model), "{model}");
        }
        for model in
            ["gpt-5", "gpt-5-mini-2025-08-07", "gpt-5.2", "gpt-4.1", "gpt-oss:20b", "o3", "claude-opus-5"]
        {
            assert!(!edits_by_patch(model), "{model}");
        }
    }

    #[test]
    fn claude_counts_more_tokens_than_the_vocabulary() {
        assert_eq!(token_percent("claude-sonnet-4"), 100);
        assert_eq!(token_percent("claude-haiku-4.5"), 100);
        assert_eq!(token_percent("claude-sonnet-4-5-20250929"), 110);
        assert_eq!(token_percent("claude-opus-4.5"), 115);
        assert_eq!(token_percent("claude-sonnet-4.6"), 117);
        assert_eq!(token_percent("claude-opus-5"), 150);
        assert_eq!(token_percent("gpt-5"), 100);
    }
}
