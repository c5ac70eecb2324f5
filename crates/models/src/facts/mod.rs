//! Facts about models and hosts, as data: limits, prices, efforts, wires, and what each host accepts.
//!
//! `facts.toml` has rules by name and the numbers of current models, `models-dev.jsonl` those of many more (from
//! models.dev, see `LICENSE-models.dev`). [`of`] and [`host`] never fail: what nobody knows gets conservative values.
//! What a provider's own list, the configuration or the user say on top is put together by [`resolve`].

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
    Learnt, Resolved, Source, Sources, cheapest_model, known_models, resolve, small_model, web_search,
    wire_name,
};
pub use table::PresetKind;

use std::sync::LazyLock;

use crate::config::{ProviderConfig, ProviderKind, WireApi};

/// Prompt tokens of a model of which nothing is known.
pub const DEFAULT_PROMPT_TOKENS: u64 = 128_000;

/// What the embedded tables say of a model, however its name is written: `claude-sonnet-4.5`,
/// `us.anthropic.claude-sonnet-4-5-20250929-v1:0`.
pub fn of(model: &str) -> ModelFacts {
    resolve::embedded(&HostFacts::default(), model).0
}

/// What is known of the host that a provider is at: by its preset, else by its address, else by its kind.
pub fn host(config: &ProviderConfig) -> HostFacts {
    table::embedded().host(config)
}

/// How a provider is configured if only its host is named: `type = "openrouter"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// The name of the host in the table.
    pub name: &'static str,
    pub kind: PresetKind,
    /// The address, where it does not depend on the account.
    pub base_url: Option<&'static str>,
    /// The variable that usually holds the key.
    pub api_key_env: Option<&'static str>,
    /// A command that prints the key, of hosts whose keys are short-lived.
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

/// The names of the hosts that search the web themselves.
pub fn searching_hosts() -> impl Iterator<Item = &'static str> {
    table::embedded().searching()
}

/// Current models of all vendors, as these write them.
pub fn ids() -> &'static [&'static str] {
    static IDS: LazyLock<Vec<&str>> =
        LazyLock::new(|| table::embedded().ids.iter().map(String::as_str).collect());
    &IDS
}

/// The endpoint at which a model of this provider is asked, by configuration and tables. A host that nobody knows speaks
/// chat completions, and so does Azure with an API version. What GitHub's list says of its models goes before this.
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
