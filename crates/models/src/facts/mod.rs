//! Facts about models and hosts, as data: limits, prices, efforts, wires, and the formats that each host accepts.
//!
//! `facts.toml` has rules by name and the numbers of current models, `models-dev.jsonl` those of many more (from
//! models.dev, see `LICENSE-models.dev`). [`of`] and [`host`] never fail: unknown models and hosts get conservative
//! values. [`resolve`] combines them with the provider's own list and the configuration.

mod effort;
mod host;
mod model;
mod models_dev;
mod name;
mod resolve;
mod table;
#[cfg(test)]
mod tests;

pub use effort::{Effort, Level, Reasoning};
pub use host::{
    CacheKey, Characters, EffortField, HostFacts, IdRule, LocalServer, MaxTokensField, ReasoningBack,
    Spelling, WebSearch,
};
pub use model::{ChatTools, Endpoint, ImageFacts, ModelFacts, Thinking, ThinkingMode, ThinkingType};
pub use models_dev::{BadCatalogue, Catalogue};
pub use name::{is_same, nearest, spelled};
pub use resolve::{
    FactSource, Learnt, ResolvedModel, Sources, cheapest_model, is_missing, is_served, is_unheard_of,
    known_models, needs_list, resolve, small_model, suggestions, web_search, wire_name,
};
pub use table::PresetKind;

use std::sync::LazyLock;

use crate::config::{ProviderConfig, ProviderKind, WireApi};

/// Prompt limit of an unknown model, in tokens.
pub const DEFAULT_PROMPT_TOKENS: u64 = 128_000;

/// Facts of the embedded tables about a model, however its name is written: `claude-sonnet-4.5`,
/// `us.anthropic.claude-sonnet-4-5-20250929-v1:0`.
pub fn of(model: &str) -> ModelFacts {
    resolve::embedded(&HostFacts::default(), model).0
}

/// Facts about a provider's host: by its preset, else by its URL, else by its kind.
pub fn host(config: &ProviderConfig) -> HostFacts {
    table::embedded().host(config)
}

/// Configuration of a provider of which only the host is named: `type = "openrouter"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// The name of the host in the table.
    pub name: &'static str,
    pub kind: PresetKind,
    /// The URL, where it does not depend on the account.
    pub base_url: Option<&'static str>,
    /// The variable that usually holds the key.
    pub api_key_env: Option<&'static str>,
    /// A command that prints the key, for hosts with short-lived keys.
    pub api_key_command: Option<&'static str>,
}

/// The preset of a host.
pub fn preset(name: &str) -> Option<Preset> {
    let (name, host) = table::embedded().hosts.get_key_value(&name.trim().to_ascii_lowercase())?;
    Some(Preset {
        name,
        kind: host.wire,
        base_url: host.base_url.as_deref(),
        api_key_env: host.api_key_env.as_deref(),
        api_key_command: host.api_key_command.as_deref(),
    })
}

/// The names of all presets.
pub fn presets() -> impl Iterator<Item = &'static str> {
    table::embedded().hosts.keys().map(String::as_str)
}

/// The names of the hosts with a web search of their own.
pub fn searching_hosts() -> impl Iterator<Item = &'static str> {
    table::embedded().searching()
}

/// Current models of all vendors, in the vendors' spelling.
pub fn ids() -> &'static [&'static str] {
    static IDS: LazyLock<Vec<&str>> =
        LazyLock::new(|| table::embedded().ids.iter().map(String::as_str).collect());
    &IDS
}

/// The endpoint of a model at this provider, by configuration and tables. An unknown host gets chat completions, and so
/// does Azure with an API version. GitHub's list of models takes precedence over this.
pub fn endpoint(config: &ProviderConfig, model: &str) -> Endpoint {
    match &config.kind {
        ProviderKind::Anthropic => Endpoint::Messages,
        ProviderKind::OpenAi { wire: WireApi::Completions }
        | ProviderKind::Azure { wire: WireApi::Completions, .. }
        | ProviderKind::Azure { wire: WireApi::PerModel, api_version: Some(_) } => Endpoint::Chat,
        ProviderKind::OpenAi { wire: WireApi::Responses }
        | ProviderKind::Azure { wire: WireApi::Responses, .. } => Endpoint::Responses,
        ProviderKind::OpenAi { wire: WireApi::PerModel }
        | ProviderKind::Azure { wire: WireApi::PerModel, api_version: None }
        | ProviderKind::Copilot => host(config).endpoint(&of(model)),
    }
}
