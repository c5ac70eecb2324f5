//! The embedded table: `facts.toml`, which `build.rs` turns into JSON, and queries of it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use hangar_agent::model::{Price, PriceStep, Rates};
use serde::Deserialize;

use super::effort::Level;
use super::host::{
    CacheKey, EffortField, HostFacts, IdRule, LocalServer, MaxTokensField, ReasoningBack, Spelling, WebSearch,
};
use super::model::{ChatTools, Endpoint, ImageFacts, ModelFacts, Thinking};
use super::name::{fits, key};
use crate::config::{ProviderConfig, ProviderKind};

pub(super) const FACTS: &str = include_str!(concat!(env!("OUT_DIR"), "/facts.json"));

/// The table. It is embedded, and a test parses it, so the fallback to an empty one is never used.
static EMBEDDED: LazyLock<FactsTable> = LazyLock::new(|| FactsTable::parse(FACTS).unwrap_or_default());

pub(super) fn embedded() -> &'static FactsTable {
    &EMBEDDED
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FactsTable {
    /// Day of the numbers: `2026-11-17`.
    pub(super) date: String,
    /// Current models, in the vendors' spelling.
    pub(super) ids: Vec<String>,
    models: Vec<ModelEntry>,
    /// Cheap models of each vendor, best first.
    pub(super) small: BTreeMap<String, Vec<String>>,
    pub(super) hosts: BTreeMap<String, HostEntry>,
}

/// Facts of all models with matching names. Later entries override earlier ones, field by field.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ModelEntry {
    #[serde(rename = "match")]
    patterns: Vec<String>,
    vendor: Option<String>,
    window: Option<u64>,
    input: Option<u64>,
    output: Option<u64>,
    /// Input, output, cache read. Empty removes the price.
    price: Option<Vec<f64>>,
    /// Price of cache writes, as a multiple of the price of input.
    cache_write: Option<f64>,
    step: Option<StepRates>,
    reasons: Option<bool>,
    efforts: Option<Vec<Level>>,
    default_effort: Option<Level>,
    effort_map: Option<BTreeMap<Level, Level>>,
    budgets: Option<bool>,
    thinking: Option<Thinking>,
    endpoints: Option<Vec<Endpoint>>,
    chat_tools: Option<ChatTools>,
    max_completion_tokens: Option<bool>,
    sampling: Option<bool>,
    vision: Option<bool>,
    custom_tools: Option<bool>,
    patches: Option<bool>,
    signatures: Option<bool>,
    reasoning_back: Option<ReasoningBack>,
    cache_min: Option<u64>,
    token_percent: Option<u64>,
    images: Option<ImageFacts>,
    web_search: Option<bool>,
    late_tools: Option<bool>,
    ids: Option<IdRule>,
    filler: Option<bool>,
}

/// A price step, with multiples of the price below it.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct StepRates {
    /// Zero removes a step.
    above: u64,
    input: f64,
    output: f64,
}

/// A host, and the configuration of a provider of which only the name is given.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct HostEntry {
    /// Host names; a leading dot stands for all subdomains.
    urls: Vec<String>,
    /// Ports on this machine.
    ports: Vec<u16>,
    pub(super) wire: PresetKind,
    pub(super) base_url: Option<String>,
    pub(super) api_key_env: Option<String>,
    pub(super) api_key_command: Option<String>,
    /// Whether a key is sent in `Authorization`, whatever the wire.
    bearer: bool,
    catalogue: Option<String>,
    endpoints: Vec<Endpoint>,
    wires: BTreeMap<String, Endpoint>,
    first: Option<Endpoint>,
    reasoning_back: Option<ReasoningBack>,
    effort_field: EffortField,
    ids: Option<IdRule>,
    max_tokens: MaxTokensField,
    cache_key: Option<CacheKey>,
    session_header: Option<String>,
    cache_marks: bool,
    filler: bool,
    plain_content: bool,
    strict_schemas: bool,
    single_types: bool,
    custom_tools: bool,
    reasons_without_tools: bool,
    verified_summaries: bool,
    wants_reasoning: bool,
    keeps_thinking: bool,
    spelling: Spelling,
    drops_overflow: bool,
    billed_by_request: bool,
    families: Vec<String>,
    late_tools: bool,
    local: Option<LocalServer>,
    first_byte_seconds: Option<u64>,
    streams_only: bool,
    /// Absent is true.
    stream_options: Option<bool>,
    web_search: Option<WebSearch>,
}

/// The kind of provider that a host is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PresetKind {
    #[default]
    OpenAi,
    Azure,
    Anthropic,
    Copilot,
}

impl FactsTable {
    pub(super) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Merged entries for a name, and which of the numbers came from an entry for exactly that model.
    pub(super) fn model(&self, model: &str) -> (ModelFacts, Exact) {
        let key = key(model);
        let mut facts = ModelFacts::default();
        let mut price = RawPrice::default();
        let mut exact = Exact::default();
        for entry in &self.models {
            let fitting = || entry.patterns.iter().filter(|pattern| fits(pattern, &key));
            if fitting().next().is_none() {
                continue;
            }
            facts.known = true;
            entry.apply(&mut facts);
            price.apply(entry);
            if fitting().any(|pattern| pattern.trim_end_matches('*') == key) {
                exact.note(entry);
            }
        }
        facts.price = price.price();
        facts.cache_write = price.cache_write;
        (facts, exact)
    }

    /// Whether a provider is at its host's own URL, rather than at a gateway to it.
    pub(super) fn is_at_home(&self, config: &ProviderConfig) -> bool {
        self.hosts.values().any(|entry| entry.is_at(config))
    }

    /// Names of the hosts with a web search.
    pub(super) fn searching(&self) -> impl Iterator<Item = &str> {
        self.hosts.iter().filter(|(_, entry)| entry.web_search.is_some()).map(|(name, _)| name.as_str())
    }

    pub(super) fn host(&self, config: &ProviderConfig) -> HostFacts {
        let named = |name: &str| self.hosts.get_key_value(name);
        let by_kind = || match config.kind {
            ProviderKind::Anthropic => named("anthropic"),
            ProviderKind::Azure { .. } => named("azure"),
            ProviderKind::Copilot => named("copilot"),
            ProviderKind::OpenAi { .. } => None,
        };
        let found = config
            .preset
            .as_deref()
            .and_then(named)
            .or_else(|| self.hosts.iter().find(|(_, entry)| entry.is_at(config)))
            .or_else(by_kind);
        found.map_or_else(HostFacts::default, |(name, entry)| entry.facts(name))
    }
}

/// Which numbers come from an entry for the model itself, rather than for its family.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Exact {
    pub(super) limits: bool,
    pub(super) price: bool,
    pub(super) efforts: bool,
    pub(super) vision: bool,
}

impl Exact {
    fn note(&mut self, entry: &ModelEntry) {
        self.limits |= entry.window.is_some();
        self.price |= entry.price.is_some();
        self.efforts |= entry.efforts.is_some();
        self.vision |= entry.vision.is_some();
    }
}

impl ModelEntry {
    fn apply(&self, facts: &mut ModelFacts) {
        fn set<T: Clone>(to: &mut T, from: &Option<T>) {
            if let Some(value) = from {
                *to = value.clone();
            }
        }
        fn add<T: Clone>(to: &mut Option<T>, from: &Option<T>) {
            if from.is_some() {
                to.clone_from(from);
            }
        }
        add(&mut facts.vendor, &self.vendor);
        add(&mut facts.window, &self.window);
        add(&mut facts.max_input, &self.input);
        add(&mut facts.max_output, &self.output);
        // The default of another entry does not apply to these efforts.
        if self.efforts.is_some() {
            facts.default_effort = None;
        }
        set(&mut facts.reasons, &self.reasons);
        set(&mut facts.efforts, &self.efforts);
        add(&mut facts.default_effort, &self.default_effort);
        if let Some(map) = &self.effort_map {
            facts.effort_map = map.iter().map(|(from, to)| (*from, *to)).collect();
        }
        set(&mut facts.thinks_by_budget, &self.budgets);
        add(&mut facts.thinking, &self.thinking);
        set(&mut facts.endpoints, &self.endpoints);
        set(&mut facts.chat_tools, &self.chat_tools);
        set(&mut facts.max_completion_tokens, &self.max_completion_tokens);
        set(&mut facts.sampling, &self.sampling);
        add(&mut facts.vision, &self.vision);
        set(&mut facts.custom_tools, &self.custom_tools);
        set(&mut facts.patches, &self.patches);
        set(&mut facts.signatures, &self.signatures);
        add(&mut facts.reasoning_back, &self.reasoning_back);
        add(&mut facts.cache_min, &self.cache_min);
        set(&mut facts.token_percent, &self.token_percent);
        set(&mut facts.images, &self.images);
        set(&mut facts.web_search, &self.web_search);
        set(&mut facts.late_tools, &self.late_tools);
        add(&mut facts.ids, &self.ids);
        set(&mut facts.filler, &self.filler);
    }
}

/// The parts of a price, which come from several entries.
#[derive(Default)]
struct RawPrice {
    rates: Vec<f64>,
    cache_write: Option<f64>,
    step: Option<StepRates>,
}

impl RawPrice {
    fn apply(&mut self, entry: &ModelEntry) {
        if let Some(rates) = &entry.price {
            self.rates.clone_from(rates);
        }
        self.cache_write = entry.cache_write.or(self.cache_write);
        self.step = entry.step.or(self.step);
    }

    fn price(&self) -> Option<Price> {
        let [input, output, rest @ ..] = self.rates.as_slice() else { return None };
        let rates = Rates {
            input: *input,
            output: *output,
            cache_read: rest.first().copied(),
            cache_write: self.cache_write.map(|times| times * input),
        };
        let step = self.step.filter(|step| step.above > 0).map(|step| PriceStep {
            above: step.above,
            rates: Rates {
                input: rates.input * step.input,
                output: rates.output * step.output,
                cache_read: rates.cache_read.map(|rate| rate * step.input),
                cache_write: rates.cache_write.map(|rate| rate * step.input),
            },
        });
        Some(Price { rates, steps: step.into_iter().collect(), searches: None })
    }
}

impl HostEntry {
    fn is_at(&self, config: &ProviderConfig) -> bool {
        let host = config.base_url.host();
        let named = |url: &String| match url.strip_prefix('.') {
            Some(_) => host.ends_with(url.as_str()),
            None => host == url,
        };
        let here = || {
            config.base_url.is_loopback()
                && self.ports.iter().any(|port| config.base_url.port() == Some(*port))
        };
        self.urls.iter().any(named) || here()
    }

    fn facts(&self, name: &str) -> HostFacts {
        let usual = HostFacts::default();
        HostFacts {
            name: Some(name.to_owned()),
            catalogue: self.catalogue.clone(),
            endpoints: if self.endpoints.is_empty() { usual.endpoints } else { self.endpoints.clone() },
            wires: self.wires.iter().map(|(vendor, endpoint)| (vendor.clone(), *endpoint)).collect(),
            first: self.first,
            reasoning_back: self.reasoning_back.unwrap_or(usual.reasoning_back),
            effort_field: self.effort_field,
            ids: self.ids.unwrap_or(usual.ids),
            max_tokens: self.max_tokens,
            cache_key: self.cache_key,
            session_header: self.session_header.clone(),
            cache_marks: self.cache_marks,
            filler: self.filler,
            plain_content: self.plain_content,
            strict_schemas: self.strict_schemas,
            single_types: self.single_types,
            custom_tools: self.custom_tools,
            reasons_without_tools: self.reasons_without_tools,
            verified_summaries: self.verified_summaries,
            wants_reasoning: self.wants_reasoning,
            keeps_thinking: self.keeps_thinking,
            spelling: self.spelling,
            drops_overflow: self.drops_overflow,
            billed_by_request: self.billed_by_request,
            families: self.families.clone(),
            late_tools: self.late_tools,
            local: self.local,
            bearer: self.bearer,
            first_byte_seconds: self.first_byte_seconds,
            streams_only: self.streams_only,
            stream_options: self.stream_options.unwrap_or(usual.stream_options),
            web_search: self.web_search.clone(),
        }
    }
}
