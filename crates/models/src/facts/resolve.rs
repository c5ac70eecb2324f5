//! Effective facts about a model at a provider: from the configuration, then the provider's own list, then the user's
//! catalogue, then the embedded tables, then a default. All limits and prices are looked up here.

use std::path::PathBuf;
use std::sync::Arc;

use hangar_agent::model::{Price, Rates};
use serde::Serialize;

use super::effort::Level;
use super::host::{EffortField, HostFacts, WebSearch};
use super::model::ModelFacts;
use super::models_dev::{self, Catalogue, ModelOffer};
use super::name::{fits, is_same, key, nearest, spelled};
use super::{DEFAULT_PROMPT_TOKENS, table};
use crate::catalogue::ModelInfo;
use crate::config::{ProviderConfig, ProviderKind, variables};

/// Quarters of a window that are used with a server that silently drops what does not fit: our token counts use another
/// vocabulary than its own.
const SAFE_QUARTERS: u64 = 3;

/// Tokens of a prompt and of an answer for comparing prices.
const TRIED: u64 = 1000;

/// Facts about models that are known only at run time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Learnt {
    /// The provider's own list, as it was read last.
    pub listed: Option<Arc<[ModelInfo]>>,
    /// The user's own catalogue.
    pub user: Option<Arc<Catalogue>>,
    /// Directory that remembers what providers refused.
    pub memory: Option<PathBuf>,
}

/// Origin of a fact.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FactSource {
    Config,
    Provider,
    UserFile,
    Embedded,
    #[default]
    Default,
}

impl FactSource {
    pub fn name(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Provider => "provider",
            Self::UserFile => "user file",
            Self::Embedded => "embedded",
            Self::Default => "default",
        }
    }
}

/// Origins of a model's numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sources {
    pub window: FactSource,
    pub prompt: FactSource,
    pub output: FactSource,
    pub price: FactSource,
    pub efforts: FactSource,
    pub vision: FactSource,
}

/// Effective facts about a model at a provider.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedModel {
    /// Facts of the model. The price is that of this provider.
    pub facts: ModelFacts,
    pub host: HostFacts,
    pub sources: Sources,
    /// Limit of a prompt in tokens. It is below the first step of the price, unless the configuration says otherwise.
    pub prompt_limit: u64,
    /// The model's own limit, if `prompt_limit` is lower because of the price.
    pub full_prompt_limit: Option<u64>,
}

/// Resolves the facts about a model at a provider.
pub fn resolve(config: &ProviderConfig, model: &str) -> ResolvedModel {
    let table = table::embedded();
    let host = table.host(config);
    let model = config.bare(model);
    let (mut facts, mut sources) = embedded(&host, model);
    if let Some(user) = &config.learnt.user {
        let newer = user.date.as_str() >= table.date.as_str();
        if let Some(offer) = user.find(&places(&host, &facts), model) {
            layer(&mut facts, &mut sources, offer, FactSource::UserFile, |had| {
                newer || had == FactSource::Default
            });
        }
    }
    if host.billed_by_request {
        facts.price = None;
        sources.price = FactSource::Default;
    }
    if let Some(info) = listed(config, model) {
        layer(&mut facts, &mut sources, &ModelOffer::from(info), FactSource::Provider, |_| true);
        let images = info.max_images.and_then(|images| u32::try_from(images).ok());
        facts.images.max_count = images.or(facts.images.max_count);
        // Lists report the size of the file; base64 is a third larger.
        let bytes = info.max_image_bytes.map(|bytes| bytes / 3 * 4);
        facts.images.max_bytes = bytes.or(facts.images.max_bytes);
    }
    budget_by_host(&mut facts, &host);
    if let (Some(times), Some(price)) = (facts.cache_write, &mut facts.price) {
        price.fill_cache_write(times);
    }
    if host.local.is_some() {
        facts.price =
            Some(Price::flat(Rates { input: 0.0, output: 0.0, cache_read: None, cache_write: None }));
        sources.price = FactSource::Embedded;
    }
    let about = config.is_about(model);
    if let Some(limit) = config.max_output_tokens.filter(|_| about) {
        facts.max_output = Some(limit);
        sources.output = FactSource::Config;
    }
    if let Some(price) = config.price.as_ref().filter(|_| about) {
        facts.price = Some(price.clone());
        sources.price = FactSource::Config;
    }
    if let (Some(price), Some(search)) = (&mut facts.price, host.web_search.as_ref()) {
        price.searches = search.price.filter(|_| config.web_search);
    }
    sources.prompt = match (facts.max_input, facts.window) {
        (None, None) => FactSource::Default,
        _ => sources.window,
    };
    let (prompt_limit, full_prompt_limit) = match config.max_prompt_tokens.filter(|_| about) {
        Some(limit) => {
            sources.prompt = FactSource::Config;
            (limit, None)
        }
        None => prompt_limits(&facts, &host, config.full_window),
    };
    ResolvedModel { facts, host, sources, prompt_limit, full_prompt_limit }
}

/// The vendor's own web search, if it is configured and the vendor has it for the model. An unknown model is assumed to
/// have it.
pub fn web_search(config: &ProviderConfig, model: &str) -> Option<WebSearch> {
    let ResolvedModel { facts, host, .. } = resolve(config, model);
    host.web_search.filter(|_| config.web_search && (facts.web_search || !facts.known))
}

/// Turns efforts into budgets at a host that takes only those, whatever levels a catalogue lists for its models.
fn budget_by_host(facts: &mut ModelFacts, host: &HostFacts) {
    if host.effort_field == EffortField::EnableThinking && facts.reasons {
        facts.thinks_by_budget = true;
        facts.efforts.clear();
        facts.default_effort = None;
        facts.effort_map.clear();
    }
}

/// Facts of the embedded tables about a model at a host.
pub(super) fn embedded(host: &HostFacts, model: &str) -> (ModelFacts, Sources) {
    let table = table::embedded();
    let (mut facts, exact) = table.model(model);
    let mut sources = Sources::default();
    let mark = |has: bool| if has { FactSource::Embedded } else { FactSource::Default };
    sources.window = mark(facts.window.is_some());
    sources.output = mark(facts.max_output.is_some());
    sources.price = mark(facts.price.is_some());
    sources.efforts = mark(!facts.efforts.is_empty() || facts.budgets());
    sources.vision = mark(facts.vision.is_some());
    // The table's entry for exactly this model is newer than the catalogue, unless a new one was embedded.
    let table_wins = table.date.as_str() >= models_dev::embedded_date();
    if let Some(vendor) = facts.vendor.clone()
        && let Some(mut offer) = models_dev::embedded(&[&vendor], model)
    {
        if table_wins && exact.limits {
            (offer.window, offer.max_input, offer.max_output) = (None, None, None);
        }
        offer.price = offer.price.filter(|_| !(table_wins && exact.price));
        offer.efforts = offer.efforts.filter(|_| !(table_wins && exact.efforts));
        offer.vision = offer.vision.filter(|_| !(table_wins && exact.vision));
        layer(&mut facts, &mut sources, &offer, FactSource::Embedded, |_| true);
        facts.known = true;
    }
    if let Some(own) = host.catalogue.as_deref().filter(|own| facts.vendor.as_deref() != Some(own))
        && let Some(offer) = models_dev::embedded(&[own], model)
    {
        layer(&mut facts, &mut sources, &offer, FactSource::Embedded, |_| true);
        facts.known = true;
    }
    (facts, sources)
}

/// The names under which a catalogue of models.dev may have the model: its host's, then its vendor's.
fn places<'a>(host: &'a HostFacts, facts: &'a ModelFacts) -> Vec<&'a str> {
    [host.catalogue.as_deref(), host.name.as_deref(), facts.vendor.as_deref()].into_iter().flatten().collect()
}

/// Overrides facts with those of one source, where `may` allows it for the previous source of the fact.
fn layer(
    facts: &mut ModelFacts,
    sources: &mut Sources,
    offer: &ModelOffer,
    source: FactSource,
    may: impl Fn(FactSource) -> bool,
) {
    if (offer.window.is_some() || offer.max_input.is_some()) && may(sources.window) {
        // An input limit belongs to the window that it was listed with.
        facts.window = offer.window.or(facts.window);
        facts.max_input = offer.max_input;
        sources.window = source;
    }
    if offer.max_output.is_some() && may(sources.output) {
        facts.max_output = offer.max_output;
        sources.output = source;
    }
    if offer.price.is_some() && may(sources.price) {
        facts.price.clone_from(&offer.price);
        sources.price = source;
    }
    if let Some(efforts) = &offer.efforts
        && may(sources.efforts)
    {
        facts.default_effort = facts.default_effort.filter(|level| efforts.contains(level));
        facts.efforts.clone_from(efforts);
        facts.efforts.sort_unstable();
        facts.effort_map.retain(|(_, to)| efforts.contains(to));
        sources.efforts = source;
    }
    if offer.vision.is_some() && may(sources.vision) {
        facts.vision = offer.vision;
        sources.vision = source;
    }
    facts.reasons = offer.reasons.unwrap_or(facts.reasons);
}

/// The limit of a prompt, and the model's own limit if that is higher.
fn prompt_limits(facts: &ModelFacts, host: &HostFacts, full_window: bool) -> (u64, Option<u64>) {
    let own = facts.prompt_limit().unwrap_or(DEFAULT_PROMPT_TOKENS);
    let own = if host.drops_overflow { own / 4 * SAFE_QUARTERS } else { own };
    match facts.price.as_ref().and_then(Price::first_step) {
        Some(step) if step < own && !full_window => (step, Some(own)),
        _ => (own, None),
    }
}

/// The entry of a model in the provider's own list, however its name is written.
fn listed<'a>(config: &'a ProviderConfig, model: &str) -> Option<&'a ModelInfo> {
    let list = config.learnt.listed.as_deref()?;
    let wire = config.wire_name(model);
    let exact = list.iter().find(|info| info.id == model || info.id == wire);
    exact.or_else(|| {
        let wanted = key(model);
        list.iter().find(|info| key(&info.id) == wanted)
    })
}

impl From<&ModelInfo> for ModelOffer {
    fn from(info: &ModelInfo) -> Self {
        let efforts =
            info.efforts.as_ref().map(|names| names.iter().filter_map(|name| Level::parse(name)).collect());
        Self {
            window: info.max_context_tokens,
            max_input: info.max_prompt_tokens,
            max_output: info.max_output_tokens,
            price: info.price.clone(),
            efforts: efforts.filter(|levels: &Vec<Level>| !levels.is_empty()),
            vision: info.vision,
            reasons: None,
        }
    }
}

/// The provider's name for the model: the configured one, else that of its list, else by the rule of its host.
pub fn wire_name(config: &ProviderConfig, model: &str) -> String {
    let model = config.bare(model);
    let configured = config.wire_name(model);
    if configured != model {
        return configured.to_owned();
    }
    let listed: Vec<&str> =
        config.learnt.listed.iter().flat_map(|list| list.iter()).map(|info| info.id.as_str()).collect();
    spelled(model, table::embedded().host(config).spelling, &listed).unwrap_or_else(|| model.to_owned())
}

/// A cheap model of the same provider for side requests: a model of the same vendor that the provider lists, or, at the
/// vendor's own host, one of the table. `None` if there is none, or if it is the model itself.
pub fn small_model(config: &ProviderConfig, model: &str) -> Option<String> {
    let table = table::embedded();
    let host = table.host(config);
    let vendor = embedded(&host, config.bare(model)).0.vendor?;
    let candidates = table.small.get(&vendor)?;
    let found = match config.learnt.listed.as_deref() {
        Some(list) => {
            let usable = |info: &&ModelInfo| info.entitled != Some(false) && info.tools != Some(false);
            candidates.iter().find_map(|small| {
                let wanted = key(small);
                list.iter().filter(usable).find(|info| key(&info.id) == wanted).map(|info| info.id.clone())
            })
        }
        None if !table.is_at_home(config) => None,
        None if host.catalogue.as_deref() == Some(vendor.as_str()) => candidates.first().cloned(),
        // A host of several vendors has those that the catalogue has of it, in its own spelling.
        None => {
            let served: Vec<&str> =
                host.catalogue.iter().flat_map(|host| models_dev::embedded_models(host)).collect();
            let named = |small: &String| served.iter().find(|id| key(id) == key(small));
            candidates.iter().find_map(named).map(|id| (*id).to_owned())
        }
    };
    found.filter(|small| key(small) != key(model))
}

/// A cheap model for trying a provider: a small one of its vendor, else the cheapest with a price, else any. `None` if
/// neither its list nor the tables have one.
pub fn cheapest_model(config: &ProviderConfig) -> Option<String> {
    let table = table::embedded();
    let host = table.host(config);
    let small = host.catalogue.as_ref().and_then(|vendor| table.small.get(vendor));
    let small = small.map(Vec::as_slice).unwrap_or_default();
    let offered: Vec<String> = match config.learnt.listed.as_deref() {
        Some(list) => {
            let usable = |info: &&ModelInfo| info.entitled != Some(false) && info.tools != Some(false);
            list.iter().filter(usable).map(|info| info.id.clone()).collect()
        }
        None if table.is_at_home(config) => small.iter().cloned().chain(known_models(config)).collect(),
        None => Vec::new(),
    };
    // Free models have limits of their own, except on the user's own machine.
    let price = |model: &&String| {
        let cost = resolve(config, model).facts.price?.at_most(TRIED, TRIED);
        (cost > 0.0).then_some(cost)
    };
    let listed = small.iter().find_map(|small| offered.iter().find(|model| key(model) == key(small)));
    let priced = || {
        let priced = offered.iter().filter_map(|model| Some((price(&model)?, model)));
        priced.min_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, model)| model)
    };
    listed.or_else(priced).or_else(|| offered.first()).cloned()
}

/// Whether a session with a model needs the provider's own list: GitHub's, because limits and prices depend on the account, and that
/// of a gateway, also one to a known vendor, because only it tells which small models of the vendor are there. Azure's has models
/// that nobody deployed.
pub fn needs_list(config: &ProviderConfig, model: &str) -> bool {
    let table = table::embedded();
    let is_gateway = || {
        let is_vendor =
            matches!(config.kind, ProviderKind::Azure { .. }) || table.host(config).local.is_some();
        !is_vendor && !table.is_at_home(config) && config.name != variables::NAME
    };
    let has_small =
        || table.model(config.bare(model)).0.vendor.is_some_and(|vendor| table.small.contains_key(&vendor));
    config.learnt.listed.is_none() && (config.kind == ProviderKind::Copilot || (is_gateway() && has_small()))
}

/// Models that are nearest to a name that the provider does not have: of its list, else of the catalogue of its host, else of
/// all current ones, else of all hosts.
pub fn suggestions(config: &ProviderConfig, model: &str) -> Vec<String> {
    let table = table::embedded();
    let host = table.host(config);
    let listed: Vec<&str> =
        config.learnt.listed.iter().flat_map(|list| list.iter()).map(|info| info.id.as_str()).collect();
    // The table may be newer than the catalogue.
    let is_own = |id: &&String| host.catalogue.is_some() && table.model(id).0.vendor == host.catalogue;
    let served = host.catalogue.iter().flat_map(|host| models_dev::embedded_models(host));
    let served = served.chain(table.ids.iter().filter(is_own).map(String::as_str)).collect();
    let current = table.ids.iter().map(String::as_str).collect();
    // An unknown server with a list has no other models than those.
    let fallbacks: [Vec<&str>; 3] = match listed.is_empty() {
        true if host.catalogue.is_some() => [served, current, Vec::new()],
        true => [served, current, models_dev::all_embedded_models().collect()],
        false => [Vec::new(), Vec::new(), Vec::new()],
    };
    let near = std::iter::once(listed)
        .chain(fallbacks)
        .map(|known| nearest(model, known.into_iter().filter(|name| *name != model)));
    near.into_iter()
        .find(|near| !near.is_empty())
        .unwrap_or_default()
        .into_iter()
        .map(str::to_owned)
        .collect()
}

/// Whether the provider cannot have a model: its list lacks the name, or without a list its host has only families of models
/// that the name is not of. A gateway may serve more than it lists: one of unknown make is asked for every name, one to a known
/// host for those that the host's catalogue has.
pub fn is_missing(config: &ProviderConfig, model: &str) -> bool {
    let table = table::embedded();
    let host = table.host(config);
    match config.learnt.listed.as_deref() {
        Some(list) => {
            let is_gateway =
                || config.kind != ProviderKind::Copilot && host.local.is_none() && !table.is_at_home(config);
            let may_have = list.is_empty()
                || list.iter().any(|listed| is_same(&listed.id, model))
                || (is_gateway() && is_catalogued(config, model));
            host.name.is_some() && !may_have
        }
        None => {
            let name = key(model);
            table.is_at_home(config)
                && !host.families.is_empty()
                && !host.families.iter().any(|family| fits(family, &name))
        }
    }
}

/// Whether the provider cannot have a model even after its list has changed. GitHub's list is that of one account at one moment, as
/// its plan and policies allow; a running session may try whatever GitHub's catalogue has, as in the reference.
pub fn is_unheard_of(config: &ProviderConfig, model: &str) -> bool {
    is_missing(config, model) && !(config.kind == ProviderKind::Copilot && is_catalogued(config, model))
}

fn is_catalogued(config: &ProviderConfig, model: &str) -> bool {
    let host = table::embedded().host(config);
    host.catalogue.iter().flat_map(|host| models_dev::embedded_models(host)).any(|id| is_same(id, model))
}

/// Whether the provider is known to have a model: by its list, or the catalogue of its host.
pub fn is_served(config: &ProviderConfig, model: &str) -> bool {
    known_models(config).iter().any(|known| is_same(known, model))
}

/// The models that the provider lists, or those of its host in the tables.
pub fn known_models(config: &ProviderConfig) -> Vec<String> {
    let host = table::embedded().host(config);
    let listed = config.learnt.listed.iter().flat_map(|list| list.iter()).map(|info| info.id.clone());
    let embedded =
        host.catalogue.iter().flat_map(|host| models_dev::embedded_models(host)).map(str::to_owned);
    let mut names: Vec<String> =
        if config.learnt.listed.is_some() { listed.collect() } else { embedded.collect() };
    names.sort_unstable();
    names.dedup();
    names
}
