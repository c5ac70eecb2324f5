//! Families of models that want the same requests, by the table of [`crate::facts`].

use crate::facts::{self, ThinkingMode};

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
