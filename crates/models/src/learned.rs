//! Facts learned from a provider's refusals: that a model needs another endpoint, or that a field is not accepted. The
//! tables have most of them already; this is for unknown servers, and for rules that have changed since.

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
    ("temperature", "temperature"),
    ("top_p", "top_p"),
    ("reasoning_effort", "reasoning_effort"),
    ("reasoning_effort", "reasoningEffort"),
    ("reasoning.summary", "reasoning.summary"),
    ("reasoning.summary", "reasoning summaries"),
    ("reasoning_content", "reasoning_content"),
    ("reasoning_details", "reasoning_details"),
    ("thinking.block_binding", "block_binding"),
    ("thinking.block_binding", "anthropic-beta"),
    ("thinking.block_binding", "beta flag"),
    ("thinking.display", "display"),
    ("thinking", "thinking"),
    ("output_config", "output_config"),
    ("output_config", "effort"),
    ("stream_options", "stream_options"),
    ("prompt_cache_key", "prompt_cache_key"),
    ("cache_control", "cache_control"),
    ("verbosity", "verbosity"),
    ("parallel_tool_calls", "parallel_tool_calls"),
    ("include", "include"),
    ("store", "store"),
    ("reasoning", "reasoning"),
];

/// Name of the refused part for a server that takes tools only in their list.
pub(crate) const INLINE_TOOLS: &str = "inline_tools";

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
];

/// Facts learned about one model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Learned {
    wire: Option<Wire>,
    refused: BTreeSet<&'static str>,
    /// Efforts that the model takes, as a refusal of another one listed them.
    efforts: Option<Vec<Level>>,
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

    /// Takes a refusal to heart. Says what is done about it, or nothing if there is nothing new to do.
    fn learn(&mut self, error: &ModelError, spoken: Wire) -> Option<String> {
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
        if let Some(wire) = other_endpoint(&text, error.code.as_deref(), spoken)
            && self.wire.is_none()
        {
            self.wire = Some(wire);
            return Some(format!(
                "The provider wants this model to be asked at {}; it is from now on.",
                wire.endpoint()
            ));
        }
        if !UNSUPPORTED.iter().any(|word| said.contains(word)) {
            return None;
        }
        let efforts = supported_efforts(&text);
        if !efforts.is_empty() && self.efforts.is_none() {
            let names: Vec<&str> = efforts.iter().map(|level| level.name()).collect();
            let told = format!(
                "The provider takes the efforts {} for this model; it gets the nearest one from now on.",
                names.join(", ")
            );
            self.efforts = Some(efforts);
            return Some(told);
        }
        let (field, _) = OPTIONAL.iter().find(|(_, name)| names(&text, name))?;
        if self.refused.contains(field) {
            return None;
        }
        self.refused.insert(field);
        Some(format!("The provider does not take `{field}` for this model; it is left out from now on."))
    }
}

/// Whether a text has a word, rather than a part of a longer one.
fn names(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(part) && !text[at + word.len()..].starts_with(part))
}

/// The efforts that a refusal of an effort lists: `Supported values are: 'low', 'medium', and 'high'.`
fn supported_efforts(text: &str) -> Vec<Level> {
    let listed = text.split_once("Supported values are").filter(|_| text.contains("effort"));
    let quoted = listed.into_iter().flat_map(|(_, list)| list.split('\'').skip(1).step_by(2));
    let mut levels: Vec<Level> = quoted.map_while(Level::parse).collect();
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

    /// Learns from a refusal. Returns the adjustment as a text, or `None` if the request would be the same.
    pub(crate) fn learn(&self, model: &str, error: &ModelError, spoken: Wire) -> Option<String> {
        let mut models = self.models.lock();
        let learned = models.entry(model.to_owned()).or_default();
        let told = learned.learn(error, spoken)?;
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

    #[track_caller]
    fn check(message: &str, spoken: Wire, expected: Option<(&str, Option<Wire>)>) {
        let mut learned = Learned::default();
        let error = error::bare(ModelErrorKind::Refused, message.to_owned());
        let said = learned.learn(&error, spoken);
        match expected {
            None => assert_eq!((said, learned), (None, Learned::default()), "{message}"),
            Some((field, wire)) => {
                assert!(said.is_some(), "{message}");
                assert_eq!((learned.has_refused(field), learned.wire), (wire.is_none(), wire), "{message}");
                let again = learned.learn(&error, wire.unwrap_or(spoken));
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
        assert!(learned.learn(&error, Wire::Chat).is_some());
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
            ("Model grok-3 does not support parameter reasoningEffort.", "reasoning_effort"),
            ("Your organization must be verified to generate reasoning summaries.", "reasoning.summary"),
            ("thinking.block_binding: Extra inputs are not permitted", "thinking.block_binding"),
            (
                "Unexpected value(s) `thinking-binding-controls-2026-08-01` for the `anthropic-beta` header",
                "thinking.block_binding",
            ),
            ("invalid beta flag", "thinking.block_binding"),
            ("thinking.adaptive.display: Extra inputs are not permitted", "thinking.display"),
            ("Unrecognized request argument supplied: stream_options", "stream_options"),
            ("Model does not support images. Please use a model that does.", IMAGES),
        ] {
            check(message, Wire::Chat, Some((field, None)));
        }
    }

    #[test]
    fn the_efforts_that_a_refusal_lists_are_those_that_the_model_takes() {
        for message in [
            "Unsupported value: 'reasoning_effort' does not support 'max' with this model. Supported values are: 'low', \
             'medium', and 'high'.",
            r#"Unsupported value: 'max' is not supported with the 'm' model. Supported values are: 'low', 'medium', and 'high'. {"param":"reasoning.effort"}"#,
        ] {
            let mut learned = Learned::default();
            let error = error::bare(ModelErrorKind::Refused, message.to_owned());
            let told = learned.learn(&error, Wire::Responses).unwrap();
            assert!(told.contains("the efforts low, medium, high"), "{told}");
            assert_eq!(learned.efforts(), Some(&[Level::Low, Level::Medium, Level::High][..]));
            assert!(learned.refused.is_empty(), "the effort is sent, another one");
        }
    }

    #[test]
    fn other_refusals_teach_nothing() {
        check("The model `gpt-9` does not exist.", Wire::Chat, None);
        check("messages.1: the temperature of the room is fine", Wire::Messages, None);
        check("Unsupported parameter: 'messages'", Wire::Chat, None);
    }
}
