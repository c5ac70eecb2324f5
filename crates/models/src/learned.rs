//! Facts learned from a provider's refusals: that a model needs another endpoint, that a field is not accepted, or how long an
//! answer may be. The tables have most of them already; this is for unknown servers, and for rules that have changed since.

mod memory;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::SystemTime;

use hangar_agent::model::{ModelError, ModelErrorKind};
use memory::Memory;
use parking_lot::Mutex;

use crate::config::ProviderConfig;
use crate::facts::Level;
use crate::wire::Wire;

/// Number of adjustments for one model before a refusal is taken to have another reason.
const MOST: usize = 4;

/// Fields that a request can do without, and the names that a refusal may use for them.
const OPTIONAL: &[(&str, &str)] = &[
    (INLINE_TOOLS, "inline-tools-2026-09-15"),
    (INLINE_TOOLS, "tool_addition"),
    (INLINE_TOOLS, "tool_definition"),
    (INLINE_TOOLS, "additional_tools"),
    ("temperature", "temperature"),
    ("top_p", "top_p"),
    (EFFORT, "reasoning_effort"),
    (EFFORT, "reasoningEffort"),
    (EFFORT, "reasoning.effort"),
    (EFFORT, "output_config.effort"),
    (EFFORT, "enable_thinking"),
    (EFFORT, "thinking_budget"),
    (EFFORT, "budget_tokens"),
    (EFFORT, "effort"),
    ("reasoning.summary", "reasoning.summary"),
    ("reasoning.summary", "reasoning summaries"),
    ("reasoning_content", "reasoning_content"),
    ("reasoning_details", "reasoning_details"),
    (INTERLEAVED, "interleaved-thinking-2025-05-14"),
    ("thinking.block_binding", "block_binding"),
    ("thinking.block_binding", "anthropic-beta"),
    ("thinking.block_binding", "beta flag"),
    ("thinking.display", "display"),
    ("thinking", "thinking"),
    ("output_config", "output_config"),
    ("stream_options", "stream_options"),
    (MAX_TOKENS, MAX_TOKENS),
    (MAX_COMPLETION_TOKENS, MAX_COMPLETION_TOKENS),
    ("prompt_cache_key", "prompt_cache_key"),
    ("cache_control", "cache_control"),
    ("verbosity", "verbosity"),
    ("parallel_tool_calls", "parallel_tool_calls"),
    ("include", "include"),
    ("store", "store"),
    ("reasoning", "reasoning"),
];

/// Name of the refused part for a model that takes no effort, or none of the form that its host has.
pub(crate) const EFFORT: &str = "effort";

/// Name of the refused part for a model that takes tools only while it does not reason.
pub(crate) const EFFORT_WITH_TOOLS: &str = "effort_with_tools";

/// The two names of the output limit on chat completions. A host that refuses one takes the other.
pub(crate) const MAX_TOKENS: &str = "max_tokens";
pub(crate) const MAX_COMPLETION_TOKENS: &str = "max_completion_tokens";

/// Names of the output limit in refusals of one that is too high.
const OUTPUT_LIMITS: &[&str] =
    &[MAX_TOKENS, MAX_COMPLETION_TOKENS, "max_output_tokens", "output tokens", "completion tokens"];

/// Phrases before the efforts that a model takes.
const EFFORT_LISTS: &[&str] = &[
    "supported values",
    "supported levels",
    "supported efforts",
    "allowed values",
    "valid values",
    "must be one of",
    "should be one of",
    "one of the following",
    "input should be",
    "must be either",
    "choose from",
    "expected one of",
];

/// Phrases of refusals of an effort, beside those about any field.
const BAD_EFFORT: &[&str] = &[
    "invalid",
    "not enabled",
    "not allowed",
    "not available",
    "not accepted",
    "must be",
    "should be",
    "must not",
    "cannot",
    "can't",
    "out of range",
];

/// Shortest answer that a refusal may allow; a lower number in it means something else.
const LEAST_OUTPUT: u64 = 256;

/// Name of the refused part for a server that takes tools only in their list.
pub(crate) const INLINE_TOOLS: &str = "inline_tools";

/// Name of the refused part for a server that does not let a model think between calls.
pub(crate) const INTERLEAVED: &str = "interleaved_thinking";

/// Name of the refused part for a model without vision.
pub(crate) const IMAGES: &str = "images";

/// Phrases of refusals by models without vision. Some servers report it as an internal error.
const BLIND: &[&str] = &[
    "not support image",
    "not support vision",
    "image input is not supported",
    "required for image input",
    "that support image input",
    "not a multimodal model",
];

/// Phrases of refusals that are about a field.
const UNSUPPORTED: &[&str] = &[
    "unsupported",
    "not supported",
    "does not support",
    "unrecognized",
    "unknown",
    "extra inputs are not permitted",
    "additional properties",
    "not permitted",
    "must be verified",
    "unexpected",
    "invalid beta",
    "is mandatory",
    "cannot be disabled",
];

/// Facts learned about one model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Learned {
    wire: Option<Wire>,
    refused: BTreeSet<&'static str>,
    /// Efforts that the model takes, as a refusal of another one listed them.
    efforts: Option<Vec<Level>>,
    /// Longest answer, as a refusal of a longer one stated it.
    max_output: Option<u64>,
}

/// Parts of a request that decide what its refusal means.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    pub(crate) wire: Wire,
    /// Output limit of the request, if it had one.
    pub(crate) max_output: Option<u64>,
    /// Whether the effort was `none` only because the endpoint takes tools with no other.
    pub(crate) unreasoned: bool,
}

impl Learned {
    pub(crate) fn wire(&self) -> Option<Wire> {
        self.wire
    }

    pub(crate) fn has_refused(&self, field: &str) -> bool {
        self.refused.contains(field)
    }

    /// Efforts that the model takes, if a refusal said so.
    pub(crate) fn efforts(&self) -> Option<&[Level]> {
        self.efforts.as_deref()
    }

    /// Longest answer that the provider allows, if a refusal said so.
    pub(crate) fn max_output(&self) -> Option<u64> {
        self.max_output
    }

    /// Takes a refusal to heart. Says what is done about it, or nothing if there is nothing new to do.
    fn learn(&mut self, error: &ModelError, sent: Sent) -> Option<String> {
        let is_refusal = matches!(error.kind, ModelErrorKind::Refused | ModelErrorKind::Server);
        if !is_refusal || self.refused.len() >= MOST {
            return None;
        }
        let text = format!("{} {}", error.message, error.body.as_deref().unwrap_or_default());
        let said = text.to_lowercase();
        if BLIND.iter().any(|phrase| said.contains(phrase)) && self.refused.insert(IMAGES) {
            return Some("This model sees no images; they are left out from now on.".to_owned());
        }
        if error.kind == ModelErrorKind::Server {
            return None;
        }
        let efforts = supported_efforts(&text);
        // A model without `none` takes no tools at an endpoint that takes them only with it.
        let never_here = sent.unreasoned && !efforts.is_empty() && !efforts.contains(&Level::None);
        let named = other_endpoint(&text, error.code.as_deref(), sent.wire);
        if let Some(wire) = named.or(never_here.then_some(Wire::Responses))
            && self.wire.is_none()
        {
            self.wire = Some(wire);
            return Some(format!(
                "The provider wants this model to be asked at {}; it is from now on.",
                wire.endpoint()
            ));
        }
        // The message begins with the status, and the body may have codes.
        let status = error.status.map(|status| format!("{status} ")).unwrap_or_default();
        let message = error.message.strip_prefix(&status).unwrap_or(&error.message);
        if let Some(limit) = allowed_output(message, sent.max_output)
            && self.max_output.is_none_or(|known| limit < known)
        {
            self.max_output = Some(limit);
            return Some(format!(
                "The provider allows answers of at most {limit} tokens for this model; no longer ones are asked for from \
                 now on."
            ));
        }
        if efforts.iter().any(|level| *level != Level::None) && self.efforts.is_none() {
            let names: Vec<&str> = efforts.iter().map(|level| level.name()).collect();
            let told = format!(
                "The provider takes the efforts {} for this model; it gets the nearest one from now on.",
                names.join(", ")
            );
            self.efforts = Some(efforts);
            return Some(told);
        }
        self.leave_out(&said)
    }

    /// Leaves out a field that a refusal names.
    fn leave_out(&mut self, said: &str) -> Option<String> {
        let is_about_a_field = UNSUPPORTED.iter().any(|words| said.contains(words));
        let is_about_an_effort = BAD_EFFORT.iter().any(|words| said.contains(words));
        // `Invalid value: 'additional_tools'. Supported values are: 'message', …`
        // What is supported is listed behind it, and may be what other models take.
        let is_about_an_item = |field: &str, name: &str| {
            let refused = said.split("supported values").next().unwrap_or_default();
            field == INLINE_TOOLS && refused.contains("invalid value") && names(refused, name)
        };
        let is_refused = |field: &str, name: &str| {
            let may = is_about_a_field || (field == EFFORT && is_about_an_effort);
            (may && names(said, name)) || is_about_an_item(field, name)
        };
        let &(mut field, _) =
            OPTIONAL.iter().find(|(field, name)| is_refused(field, &name.to_lowercase()))?;
        // `'max_completion_tokens' is not supported with this model. Use 'max_tokens' instead.`
        if field == MAX_TOKENS
            && said.find(MAX_COMPLETION_TOKENS) < said.find(MAX_TOKENS)
            && names(said, MAX_COMPLETION_TOKENS)
        {
            field = MAX_COMPLETION_TOKENS;
        }
        if !self.refused.insert(field) {
            return None;
        }
        Some(match field {
            EFFORT => {
                "The provider does not take this effort for this model; it decides itself how much it thinks from now on."
                    .to_owned()
            }
            MAX_TOKENS => instead_of(MAX_TOKENS, MAX_COMPLETION_TOKENS),
            MAX_COMPLETION_TOKENS => instead_of(MAX_COMPLETION_TOKENS, MAX_TOKENS),
            INLINE_TOOLS => {
                "The provider does not take tools in the middle of a conversation of this model; they are listed at its beginning \
                 from now on, which loses its cache when some are added."
                    .to_owned()
            }
            INTERLEAVED => {
                "The provider does not let this model think between its calls; it thinks before the first from now on.".to_owned()
            }
            field => format!("The provider does not take `{field}` for this model; it is left out from now on."),
        })
    }
}

fn instead_of(field: &str, other: &str) -> String {
    format!("The provider does not take `{field}` for this model; it gets `{other}` from now on.")
}

/// The output limit that a refusal of a higher one states: the largest number in it that is below the one that was sent.
/// `max_tokens: 200000 > 64000, which is the maximum allowed number of output tokens`, `the valid range of max_tokens is [1, 8192]`.
fn allowed_output(text: &str, sent: Option<u64>) -> Option<u64> {
    let sent = sent?;
    let said = text.to_lowercase();
    if !OUTPUT_LIMITS.iter().any(|name| said.contains(name)) {
        return None;
    }
    let numbers = text.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, ',' | '_' | '-' | '.'));
    // `16,384` and `16_384`, but not the numbers in the name of a model.
    let plain = |word: &str| word.trim_matches([',', '.']).replace([',', '_'], "").parse::<u64>().ok();
    numbers.filter_map(plain).filter(|number| (LEAST_OUTPUT..sent).contains(number)).max()
}

/// Whether a text has a word, rather than a part of a longer one.
fn names(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(part) && !text[at + word.len()..].starts_with(part))
}

/// The efforts that a refusal of an effort lists: `Supported values are: 'low', 'medium', and 'high'.`
fn supported_efforts(text: &str) -> Vec<Level> {
    let said = text.to_lowercase();
    let list = EFFORT_LISTS.iter().filter_map(|words| Some(said.find(words)? + words.len())).min();
    let Some(list) = list.filter(|_| said.contains("effort")) else { return Vec::new() };
    let words = said[list..].split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut levels: Vec<Level> = Vec::new();
    for word in words {
        match Level::parse(word) {
            Some(level) => levels.push(level),
            // Behind the list the body of the answer may repeat the sentence.
            None if !levels.is_empty() && !matches!(word, "and" | "or") => break,
            None => {}
        }
    }
    levels.sort_unstable();
    levels.dedup();
    levels
}

/// The endpoint that a refusal names, if it is another one.
fn other_endpoint(text: &str, code: Option<&str>, spoken: Wire) -> Option<Wire> {
    let elsewhere = code == Some("unsupported_api_for_model") || text.contains("unsupported_api_for_model");
    let wire = match spoken {
        Wire::Chat if text.contains("v1/responses") || text.contains("Responses API") => Wire::Responses,
        Wire::Responses if text.contains("v1/chat/completions") => Wire::Chat,
        Wire::Chat if elsewhere => Wire::Responses,
        Wire::Responses | Wire::Messages if elsewhere => Wire::Chat,
        Wire::Chat | Wire::Responses | Wire::Messages => return None,
    };
    Some(wire)
}

/// Facts learned about the models of a provider, in this process and, as far as they are remembered, in earlier ones.
#[derive(Default)]
pub(crate) struct Lessons {
    models: Mutex<BTreeMap<String, Learned>>,
    memory: Option<Memory>,
}

impl Lessons {
    /// Lessons that are kept in a directory, if there is one.
    pub(crate) fn remembered(dir: Option<PathBuf>, config: &ProviderConfig) -> Self {
        let memory = dir.map(|dir| Memory::of(&dir, config));
        let models = memory.as_ref().map(|memory| memory.read(SystemTime::now())).unwrap_or_default();
        Self { models: Mutex::new(models), memory }
    }

    pub(crate) fn of(&self, model: &str) -> Learned {
        self.models.lock().get(model).cloned().unwrap_or_default()
    }

    /// Forgets that a model needs another endpoint, because the server does not have it.
    pub(crate) fn forget_wire(&self, model: &str) {
        let mut models = self.models.lock();
        if let Some(learned) = models.get_mut(model) {
            learned.wire = None;
            self.keep(model, learned);
        }
    }

    /// Follows the other advice of a refusal that named an endpoint which the server does not have: tools without reasoning.
    /// Returns the adjustment as a text, or `None` if there is no such advice, or it was followed already.
    pub(crate) fn go_without_reasoning(&self, model: &str, refusal: &ModelError) -> Option<String> {
        let said = refusal.message.to_lowercase();
        if !said.contains("tools") || !said.contains("reasoning_effort to 'none'") {
            return None;
        }
        let mut models = self.models.lock();
        let learned = models.entry(model.to_owned()).or_default();
        if !learned.refused.insert(EFFORT_WITH_TOOLS) {
            return None;
        }
        self.keep(model, learned);
        Some(
            "The provider takes tools of this model only without reasoning; it does not reason from now on."
                .to_owned(),
        )
    }

    /// Learns from a refusal. Returns the adjustment as a text, or `None` if the request would be the same.
    pub(crate) fn learn(&self, model: &str, error: &ModelError, sent: Sent) -> Option<String> {
        let mut models = self.models.lock();
        let learned = models.entry(model.to_owned()).or_default();
        let told = learned.learn(error, sent)?;
        self.keep(model, learned);
        Some(told)
    }

    fn keep(&self, model: &str, learned: &Learned) {
        if let Some(memory) = &self.memory {
            memory.keep(model, learned, SystemTime::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error;

    const CHAT: Sent = Sent { wire: Wire::Chat, max_output: None, unreasoned: false };

    #[track_caller]
    fn check(message: &str, spoken: Wire, expected: Option<(&str, Option<Wire>)>) {
        let mut learned = Learned::default();
        let error = error::bare(ModelErrorKind::Refused, message.to_owned());
        let sent = |wire| Sent { wire, max_output: None, unreasoned: false };
        let said = learned.learn(&error, sent(spoken));
        match expected {
            None => assert_eq!((said, learned), (None, Learned::default()), "{message}"),
            Some((field, wire)) => {
                assert!(said.is_some(), "{message}");
                assert_eq!((learned.has_refused(field), learned.wire), (wire.is_none(), wire), "{message}");
                let again = learned.learn(&error, sent(wire.unwrap_or(spoken)));
                assert_eq!(again, None, "learned once: {message}");
            }
        }
    }

    #[test]
    fn a_refusal_that_names_the_other_endpoint_switches_to_it_once() {
        let tools = "Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions. To use \
                     function tools, use /v1/responses or set reasoning_effort to 'none'.";
        let mut learned = Learned::default();
        let error = error::bare(ModelErrorKind::Refused, tools.to_owned());
        assert!(learned.learn(&error, CHAT).is_some());
        assert_eq!((learned.wire, learned.refused.len()), (Some(Wire::Responses), 0));
        check(
            "This model is only supported in v1/chat/completions and not in v1/responses.",
            Wire::Responses,
            Some(("", Some(Wire::Chat))),
        );
        check(
            "This model is only supported in v1/responses and not in v1/chat/completions.",
            Wire::Chat,
            Some(("", Some(Wire::Responses))),
        );
    }

    #[test]
    fn a_field_that_a_refusal_names_is_left_out() {
        for (message, field) in [
            ("Unsupported parameter: 'temperature' is not supported with this model.", "temperature"),
            ("property 'reasoning_content' is unsupported", "reasoning_content"),
            ("Model grok-3 does not support parameter reasoningEffort.", EFFORT),
            ("This model does not support the effort parameter.", EFFORT),
            ("reasoning_effort is not enabled for this model", EFFORT),
            ("Invalid 'reasoning.effort': this model does not reason.", EFFORT),
            ("`reasoning_effort` must be one of `none` or `default`", EFFORT),
            ("Reasoning is mandatory for this endpoint and cannot be disabled.", "reasoning"),
            (
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
                MAX_TOKENS,
            ),
            (
                "Unsupported parameter: 'max_completion_tokens'. Use 'max_tokens' instead.",
                MAX_COMPLETION_TOKENS,
            ),
            ("Your organization must be verified to generate reasoning summaries.", "reasoning.summary"),
            ("thinking.block_binding: Extra inputs are not permitted", "thinking.block_binding"),
            (
                "Unexpected value(s) `thinking-binding-controls-2026-08-01` for the `anthropic-beta` header",
                "thinking.block_binding",
            ),
            ("invalid beta flag", "thinking.block_binding"),
            (
                "Unexpected value(s) `interleaved-thinking-2025-05-14` for the `anthropic-beta` header",
                INTERLEAVED,
            ),
            ("thinking.adaptive.display: Extra inputs are not permitted", "thinking.display"),
            ("Unrecognized request argument supplied: stream_options", "stream_options"),
            (
                "Invalid value: 'additional_tools'. Supported values are: 'message', 'reasoning', and 'function_call'.",
                INLINE_TOOLS,
            ),
            ("Model does not support images. Please use a model that does.", IMAGES),
        ] {
            check(message, Wire::Chat, Some((field, None)));
        }
    }

    #[test]
    fn what_a_refusal_lists_as_supported_is_not_refused() {
        check(
            "Invalid value: 'web_search_call'. Supported values are: 'message', 'additional_tools', and 'reasoning'.",
            Wire::Responses,
            None,
        );
    }

    #[test]
    fn the_efforts_that_a_refusal_lists_are_those_that_the_model_takes() {
        for message in [
            "Unsupported value: 'reasoning_effort' does not support 'max' with this model. Supported values are: 'low', \
             'medium', and 'high'.",
            "Invalid value: 'xhigh'. Supported values are: 'low', 'medium', and 'high'. (reasoning.effort)",
            "output_config.effort: Input should be 'low', 'medium' or 'high'",
            "`reasoning_effort` must be one of `low`, `medium`, or `high`",
            r#"Unsupported value: 'max' is not supported with the 'm' model. Supported values are: 'low', 'medium', and 'high'. {"param":"reasoning.effort"}"#,
        ] {
            let mut learned = Learned::default();
            let error = error::bare(ModelErrorKind::Refused, message.to_owned());
            let told = learned.learn(&error, Sent { wire: Wire::Responses, ..CHAT }).unwrap();
            assert!(told.contains("the efforts low, medium, high"), "{told}");
            assert_eq!(learned.efforts(), Some(&[Level::Low, Level::Medium, Level::High][..]));
            assert!(learned.refused.is_empty(), "the effort is sent, another one");
        }
    }

    #[test]
    fn the_longest_answer_that_a_refusal_states_is_asked_for() {
        for (message, sent, allowed) in [
            (
                "max_tokens: 200000 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4-5-20250929",
                200_000,
                Some(64_000),
            ),
            (
                "max_tokens is too large: 32000. This model supports at most 16,384 completion tokens, whereas you provided 32000.",
                32_000,
                Some(16_384),
            ),
            ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 32_000, Some(8192)),
            ("`max_completion_tokens` must be less than or equal to `32768`", 64_000, Some(32_768)),
            (
                "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16.",
                32_000,
                None,
            ),
            ("max_tokens: Field required", 32_000, None),
            ("The model `m-4096` does not exist", 32_000, None),
        ] {
            let mut learned = Learned::default();
            let mut error = error::bare(ModelErrorKind::Refused, format!("400 {message}"));
            (error.status, error.body) = (Some(400), Some(r#"{"code":3051}"#.to_owned()));
            let sent = Sent { max_output: Some(sent), ..CHAT };
            let told = learned.learn(&error, sent);
            assert_eq!((learned.max_output(), told.is_some()), (allowed, allowed.is_some()), "{message}");
            assert_eq!(learned.learn(&error, sent), None, "learned once: {message}");
        }
    }

    #[test]
    fn a_model_that_cannot_do_without_reasoning_is_asked_elsewhere_at_once() {
        let message = "Unsupported value: 'reasoning_effort' does not support 'none' with this model. Supported values are: \
                       'low', 'medium', and 'high'.";
        let error = error::bare(ModelErrorKind::Refused, message.to_owned());
        let mut learned = Learned::default();
        assert!(learned.learn(&error, Sent { unreasoned: true, ..CHAT }).is_some());
        assert_eq!((learned.wire, learned.efforts), (Some(Wire::Responses), None));
    }

    #[test]
    fn other_refusals_teach_nothing() {
        check("The model `gpt-9` does not exist.", Wire::Chat, None);
        check("messages.1: the temperature of the room is fine", Wire::Messages, None);
        check("Unsupported parameter: 'messages'", Wire::Chat, None);
        check("messages.1: Invalid `signature` in `thinking` block", Wire::Messages, None);
        check(
            "The `reasoning_content` in the thinking mode must be passed back to the API.",
            Wire::Chat,
            None,
        );
    }
}
