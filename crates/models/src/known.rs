//! What is known of well-known models by their names, for when neither the configuration nor a catalogue says it.

/// Prompt tokens of a model of which nothing is known.
pub const DEFAULT_PROMPT_TOKENS: u64 = 128_000;

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

/// A version number in a model's name.
type Version = (u32, u32);

/// The name without what stands before its last `/`, in lower case, without a date at its end.
fn plain(model: &str) -> String {
    let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    let is_number = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = name.split('-').collect();
    let date = match parts.as_slice() {
        [.., year, month, day] if [year, month, day].into_iter().all(is_number) && year.len() == 4 => 3,
        [.., date] if is_number(date) && date.len() == 8 => 1,
        _ => 0,
    };
    parts[..parts.len() - date].join("-")
}

/// The first number of a name, and the number behind a dot or dash, if it is a short one.
fn version(name: &str) -> Option<Version> {
    let mut numbers = name.split(['-', '.', ':', '@']).skip_while(|part| part.parse::<u32>().is_err());
    let short = |part: &str| part.parse::<u32>().ok().filter(|number| *number < 100);
    let major = short(numbers.next()?)?;
    Some((major, numbers.next().and_then(short).unwrap_or(0)))
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
    let name = plain(model);
    if let Some(rest) = name.strip_prefix("gpt-").filter(|rest| !rest.starts_with("oss")) {
        let reasons = version(rest).is_some_and(|version| version >= (5, 0));
        return if reasons && !rest.contains("chat") { Family::Gpt5 } else { Family::OldGpt };
    }
    if name.strip_prefix('o').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
        return Family::OSeries;
    }
    match claude_version(&name) {
        None => Family::Other,
        Some(None) => Family::Claude(Thinking::Adaptive),
        Some(Some(version)) if version >= (4, 6) => Family::Claude(Thinking::Adaptive),
        Some(Some(version)) if version >= (3, 7) => Family::Claude(Thinking::Budget),
        Some(Some(_)) => Family::Claude(Thinking::Never),
    }
}

/// `None` for what is no Claude, `Some(None)` for a Claude of unknown version.
fn claude_version(name: &str) -> Option<Option<Version>> {
    // Gateways put a vendor before the name: `anthropic.claude-sonnet-4-5`.
    let start = name.find("claude")?;
    Some(version(&name[start..]))
}

/// Limits that the vendors publish. The window that they share is split so that a full answer always fits.
pub fn limits(model: &str) -> Option<Limits> {
    let name = plain(model);
    let limits = |max_prompt_tokens, max_output_tokens| Some(Limits { max_prompt_tokens, max_output_tokens });
    match family(model) {
        Family::Gpt5 if version(&name) >= Some((5, 4)) => limits(922_000, 128_000),
        Family::Gpt5 => limits(272_000, 128_000),
        Family::OSeries if name == "o1-mini" || name == "o1-preview" => limits(62_000, 65_536),
        Family::OSeries => limits(100_000, 100_000),
        Family::OldGpt if name.starts_with("gpt-4.1") => limits(1_014_000, 32_768),
        Family::OldGpt if name.starts_with("gpt-4o") => limits(111_616, 16_384),
        Family::OldGpt => None,
        Family::Claude(Thinking::Adaptive) => claude_version(&name)?.and_then(|_| limits(936_000, 64_000)),
        Family::Claude(Thinking::Budget)
            if name.contains("haiku") || name.contains("3-7") || name.contains("3.7") =>
        {
            limits(136_000, 64_000)
        }
        Family::Claude(Thinking::Budget) => limits(168_000, 32_000),
        Family::Claude(Thinking::Never) if name.contains("3-5") || name.contains("3.5") => {
            limits(191_000, 8_192)
        }
        Family::Claude(Thinking::Never) => limits(195_000, 4_096),
        Family::Other if name.starts_with("gemini-2.5") || name.starts_with("gemini-3") => {
            limits(983_000, 65_536)
        }
        Family::Other => None,
    }
}

/// Whether the model edits files best by patches (`apply_patch` and `rg` instead of `create`, `edit` and `grep`).
pub fn edits_by_patch(model: &str) -> bool {
    let name = plain(model);
    name.strip_prefix("gpt-").is_some_and(|rest| !rest.starts_with("oss"))
        && !["gpt-4.1", "gpt-5", "gpt-5-mini", "gpt-5.1", "gpt-5.2"].contains(&name.as_str())
}

/// How many percent of the tokens counted with OpenAI's vocabulary the model's own would give.
pub fn token_percent(model: &str) -> u64 {
    let name = plain(model);
    match claude_version(&name) {
        Some(Some(version)) if version >= (4, 7) => 120,
        Some(Some((4, 6))) => 117,
        Some(Some((4, 5))) if name.contains("opus") => 115,
        Some(Some((4, 5))) if name.contains("sonnet") => 110,
        _ => 100,
    }
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
        assert_eq!(pair("claude-haiku-4.5"), Some((136_000, 64_000)));
        assert_eq!(pair("claude-opus-4-7"), Some((936_000, 64_000)));
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
        assert_eq!(token_percent("claude-opus-5"), 120);
        assert_eq!(token_percent("gpt-5"), 100);
    }
}
