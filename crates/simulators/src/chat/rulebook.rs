//! A host of chat completions, read from its profile. The profile defines what the simulator accepts, refuses and
//! answers; the code only applies it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::Error as _;
use toml::Table;

use super::billing::Billing;
use super::condition::Pattern;
use super::forms::{AnswerForm, ErrorForm, ServedDocument, UsageForm};
use super::model::{CachingForm, ChatModel};
use super::rules::{
    ContextRules, CredentialRule, EffortRules, Fields, HeaderRule, MessageRules, OrderRule, OutputRules,
    ReasoningRules, RefusalRule, ToolRules,
};
use super::wording::Wording;
use crate::FactsError;
use crate::packed;

/// Every host. Each has a file below `profiles`.
const HOSTS: &[&str] = &[
    "azure",
    "copilot",
    "deepseek",
    "gemini",
    "glm",
    "groq",
    "kimi",
    "litellm",
    "llama-cpp",
    "lm-studio",
    "mistral",
    "ollama",
    "openai",
    "openrouter",
    "qwen",
    "vllm",
    "xai",
];

/// Profiles that hosts share, by `like`.
const COMMON: &[&str] = &["compatible"];

/// Profile of one host.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rulebook {
    pub(crate) name: String,
    /// The path of chat completions. A group in it is the name of the model.
    pub(crate) path: Pattern,
    pub(crate) unknown_path: Wording,
    #[serde(default)]
    pub(crate) credential: Option<CredentialRule>,
    /// Headers that a request must have.
    #[serde(default)]
    pub(crate) header: Vec<HeaderRule>,
    pub(crate) fields: Fields,
    pub(crate) messages: MessageRules,
    /// Refusals that follow from the request alone.
    #[serde(default)]
    pub(crate) refuse: Vec<RefusalRule>,
    #[serde(default)]
    pub(crate) order: BTreeMap<OrderRule, Wording>,
    #[serde(default)]
    pub(crate) tools: ToolRules,
    #[serde(default)]
    pub(crate) effort: EffortRules,
    #[serde(default)]
    pub(crate) reasoning: ReasoningRules,
    #[serde(default)]
    pub(crate) context: ContextRules,
    #[serde(default)]
    pub(crate) output: OutputRules,
    #[serde(default)]
    pub(crate) caching: CachingForm,
    /// Refusal of more tokens than the account may send per minute, for models that have `tpm`.
    pub(crate) tokens_per_minute: Option<Wording>,
    /// The answer to an unknown model.
    pub(crate) unknown_model: Wording,
    /// The answer to a model that is served at another endpoint only.
    pub(crate) wrong_endpoint: Option<Wording>,
    pub(crate) billing: Option<Billing>,
    pub(crate) error: ErrorForm,
    /// Failures, by their names in scenarios.
    #[serde(default)]
    pub(crate) failures: BTreeMap<String, Wording>,
    pub(crate) answer: AnswerForm,
    pub(crate) usage: UsageForm,
    /// Documents beside the chat itself: catalogues and information endpoints of local servers.
    #[serde(default)]
    pub(crate) document: Vec<ServedDocument>,
    pub(crate) model: Vec<ChatModel>,
}

impl Rulebook {
    /// The rulebook of a host that has a file here.
    pub(crate) fn named(name: &str) -> Result<Self, FactsError> {
        Ok(table(name)?.try_into()?)
    }

    pub(crate) fn model(&self, id: &str) -> Option<&ChatModel> {
        self.model.iter().find(|model| model.id == id || model.aliases.iter().any(|alias| alias == id))
    }
}

/// The table of a host, on top of the one that it is `like`.
fn table(name: &str) -> Result<Table, toml::de::Error> {
    if !HOSTS.iter().chain(COMMON).any(|known| *known == name) {
        return Err(toml::de::Error::custom(format!("there is no chat host `{name}`")));
    }
    let mut own: Table = packed::text(&format!("chat/profiles/{name}.toml")).parse()?;
    match own.remove("like") {
        Some(toml::Value::String(other)) => Ok(merged(table(&other)?, own)),
        _ => Ok(own),
    }
}

/// Tables are merged, refusals are added, everything else is replaced.
fn merged(mut base: Table, own: Table) -> Table {
    for (name, value) in own {
        let value = match (base.remove(&name), value) {
            (Some(toml::Value::Table(below)), toml::Value::Table(above)) if !is_wording(&above) => {
                toml::Value::Table(merged(below, above))
            }
            (Some(toml::Value::Array(mut below)), toml::Value::Array(above)) if name == "refuse" => {
                below.extend(above);
                toml::Value::Array(below)
            }
            (_, value) => value,
        };
        base.insert(name, value);
    }
    base
}

/// A wording is replaced as a whole, never mixed from two hosts.
fn is_wording(table: &Table) -> bool {
    table.contains_key("message") || table.contains_key("status")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rulebook_can_be_read_and_has_models_and_a_catalogue() {
        for name in HOSTS {
            let book = Rulebook::named(name).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(book.name, *name);
            assert!(!book.model.is_empty(), "{name} has no models");
            assert!(book.document.iter().any(|document| document.entry.is_some()), "{name} has no catalogue");
        }
    }

    #[test]
    fn a_rulebook_adds_refusals_to_those_of_the_one_it_is_like() {
        let (openai, azure) = (Rulebook::named("openai").unwrap(), Rulebook::named("azure").unwrap());
        assert!(azure.refuse.len() >= openai.refuse.len());
        assert_eq!(azure.fields.accepted, openai.fields.accepted);
    }
}
