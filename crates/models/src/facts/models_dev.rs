//! The catalogue of models.dev: limits, prices and efforts of models at many hosts.
//!
//! A selection of it is embedded, a line of JSON for each model (`models-dev.jsonl`, written by `cargo xtask
//! catalogue`, compressed by `build.rs`), and only the lines that are looked up are parsed. The user's own file is an unchanged `api.json` of
//! models.dev.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::LazyLock;

use flate2::read::GzDecoder;
use hangar_agent::model::{Price, PriceStep, Rates};
use serde::Deserialize;

use super::effort::Level;
use super::name::key;

/// The embedded selection, unpacked by the first look at it. A test reads it to its end.
static EMBEDDED: LazyLock<String> = LazyLock::new(|| {
    let packed: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/models-dev.gz"));
    let mut text = String::new();
    let _ = GzDecoder::new(packed).read_to_string(&mut text);
    text
});
/// The threshold that `"context_over_200k"` names.
const OLD_STEP: u64 = 200_000;

/// Entry of the catalogue for a model at a host. `None` is "not listed".
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelOffer {
    pub window: Option<u64>,
    pub max_input: Option<u64>,
    pub max_output: Option<u64>,
    pub price: Option<Price>,
    pub efforts: Option<Vec<Level>>,
    pub vision: Option<bool>,
    pub reasons: Option<bool>,
}

/// A catalogue that the user provides.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Catalogue {
    /// Day of the file: `2026-11-17`.
    pub date: String,
    hosts: BTreeMap<String, BTreeMap<String, ModelOffer>>,
}

#[derive(Debug, thiserror::Error)]
#[error("it is not a catalogue of models.dev (`api.json`): {0}")]
pub struct BadCatalogue(String);

impl Catalogue {
    /// Reads an `api.json`. Entries without useful data are left out.
    pub fn parse(text: &str, date: impl Into<String>) -> Result<Self, BadCatalogue> {
        let file: BTreeMap<String, HostEntry> =
            serde_json::from_str(text).map_err(|error| BadCatalogue(error.to_string()))?;
        let hosts: BTreeMap<String, BTreeMap<String, ModelOffer>> = file
            .into_iter()
            .map(|(name, host)| {
                let offers = host.models.into_iter().map(|(id, entry)| (key(&id), ModelOffer::from(entry)));
                (name, offers.collect())
            })
            .collect();
        if hosts.values().all(BTreeMap::is_empty) {
            return Err(BadCatalogue("it lists no models".to_owned()));
        }
        Ok(Self { date: date.into(), hosts })
    }

    /// Entry of a model at the first of these hosts that has it.
    pub fn find(&self, hosts: &[&str], model: &str) -> Option<&ModelOffer> {
        let key = key(model);
        hosts.iter().find_map(|host| self.hosts.get(*host)?.get(&key))
    }
}

/// Day of the embedded selection.
pub(super) fn embedded_date() -> &'static str {
    env!("CATALOGUE_DATE")
}

/// Entry of the embedded selection for a model at the first of these hosts that has it.
pub(super) fn embedded(hosts: &[&str], model: &str) -> Option<ModelOffer> {
    let wanted = key(model);
    hosts.iter().find_map(|host| {
        let of_host = lines().filter(|(id, _)| id.split_once('/').is_some_and(|(name, _)| name == *host));
        let mut found =
            of_host.filter(|(id, _)| id.split_once('/').is_some_and(|(_, model)| key(model) == wanted));
        let (_, line) = found.next()?;
        serde_json::from_str::<CatalogueEntry>(line).ok().map(ModelOffer::from)
    })
}

/// The models of a host in the embedded selection.
pub(super) fn embedded_models(host: &str) -> impl Iterator<Item = &'static str> {
    lines().filter_map(move |(id, _)| id.strip_prefix(host)?.strip_prefix('/'))
}

/// The models of all hosts in the embedded selection, as their vendors name them.
pub(super) fn all_embedded_models() -> impl Iterator<Item = &'static str> {
    lines().filter_map(|(id, _)| id.rsplit('/').next())
}

/// The lines of models, each with its id: `HOST/MODEL`.
fn lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    EMBEDDED.lines().filter_map(|line| {
        let id = line.strip_prefix(r#"{"id":""#)?;
        Some((&id[..id.find('"')?], line))
    })
}

#[derive(Deserialize)]
struct HostEntry {
    #[serde(default)]
    models: BTreeMap<String, CatalogueEntry>,
}

/// A model as models.dev describes it; fields that are not used are not read.
#[derive(Deserialize)]
struct CatalogueEntry {
    reasoning: Option<bool>,
    #[serde(default)]
    reasoning_options: Vec<ReasoningOption>,
    #[serde(default)]
    modalities: Modalities,
    #[serde(default)]
    limit: Limit,
    cost: Option<Cost>,
}

#[derive(Deserialize)]
struct ReasoningOption {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    values: Vec<Option<String>>,
}

#[derive(Deserialize, Default)]
struct Modalities {
    #[serde(default)]
    input: Vec<String>,
}

#[derive(Deserialize, Default)]
struct Limit {
    context: Option<u64>,
    input: Option<u64>,
    output: Option<u64>,
}

#[derive(Deserialize)]
struct Cost {
    input: Option<f64>,
    output: Option<f64>,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
    #[serde(default)]
    tiers: Vec<Tier>,
    context_over_200k: Option<Card>,
}

#[derive(Deserialize)]
struct Tier {
    tier: Threshold,
    #[serde(flatten)]
    card: Card,
}

#[derive(Deserialize)]
struct Threshold {
    #[serde(rename = "type")]
    kind: String,
    size: Option<u64>,
}

#[derive(Deserialize)]
struct Card {
    input: Option<f64>,
    output: Option<f64>,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
}

impl Card {
    fn rates(&self) -> Option<Rates> {
        Some(Rates {
            input: self.input?,
            output: self.output?,
            cache_read: self.cache_read,
            cache_write: self.cache_write,
        })
    }
}

impl Cost {
    /// `None` if it is not a price for input and output tokens.
    fn price(&self) -> Option<Price> {
        let card = Card {
            input: self.input,
            output: self.output,
            cache_read: self.cache_read,
            cache_write: self.cache_write,
        };
        let tiers = self.tiers.iter().filter(|tier| tier.tier.kind == "context");
        let mut steps: Vec<PriceStep> = tiers
            .filter_map(|tier| Some(PriceStep { above: tier.tier.size?, rates: tier.card.rates()? }))
            .collect();
        if self.tiers.is_empty() {
            let old = self.context_over_200k.as_ref().and_then(Card::rates);
            steps.extend(old.map(|rates| PriceStep { above: OLD_STEP, rates }));
        }
        steps.sort_by_key(|step| step.above);
        Some(Price { rates: card.rates()?, steps, searches: None })
    }
}

impl From<CatalogueEntry> for ModelOffer {
    fn from(entry: CatalogueEntry) -> Self {
        // Zero means an unknown limit.
        let some = |limit: Option<u64>| limit.filter(|limit| *limit > 0);
        let levels = entry.reasoning_options.iter().find(|option| option.kind == "effort").map(|option| {
            option.values.iter().flatten().filter_map(|name| Level::parse(name)).collect::<Vec<_>>()
        });
        let inputs = &entry.modalities.input;
        Self {
            window: some(entry.limit.context),
            max_input: some(entry.limit.input),
            max_output: some(entry.limit.output),
            price: entry.cost.as_ref().and_then(Cost::price),
            efforts: levels.filter(|levels| !levels.is_empty()),
            vision: (!inputs.is_empty()).then(|| inputs.iter().any(|input| input == "image")),
            reasons: entry.reasoning,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small file of our own in the format of models.dev.
    const SMALL: &str = include_str!("testdata/api.json");

    #[test]
    fn a_file_of_models_dev_is_read() {
        let catalogue = Catalogue::parse(SMALL, "2027-01-01").unwrap();
        let offer = catalogue.find(&["acme"], "acme/Rocket-1.5").unwrap();
        assert_eq!(
            (offer.window, offer.max_input, offer.max_output),
            (Some(500_000), Some(400_000), Some(32_000))
        );
        assert_eq!(offer.efforts, Some(vec![Level::Low, Level::High]));
        assert_eq!((offer.vision, offer.reasons), (Some(true), Some(true)));
        let price = offer.price.as_ref().unwrap();
        assert_eq!(
            (price.rates.input, price.rates.cache_read, price.first_step()),
            (1.5, Some(0.15), Some(256_000))
        );
    }

    #[test]
    fn older_steps_and_missing_prices_are_read_as_such() {
        let catalogue = Catalogue::parse(SMALL, "2027-01-01").unwrap();
        let old = catalogue.find(&["nowhere", "acme"], "rocket-1").unwrap();
        assert_eq!(old.price.as_ref().unwrap().first_step(), Some(200_000));
        let bare = catalogue.find(&["acme"], "sparkler").unwrap();
        assert_eq!(*bare, ModelOffer { window: Some(8192), ..ModelOffer::default() });
        assert_eq!(catalogue.find(&["acme"], "squib"), None);
        assert_eq!(catalogue.find(&["nowhere"], "rocket-1"), None);
    }

    #[test]
    fn what_is_no_catalogue_says_so() {
        for text in [
            "",
            "[]",
            "{}",
            r#"{"acme":{"models":{}}}"#,
            r#"{"acme":{"models":{"a":{"limit":{"context":"x"}}}}}"#,
        ] {
            let error = Catalogue::parse(text, "").unwrap_err().to_string();
            assert!(error.starts_with("it is not a catalogue of models.dev"), "{text}: {error}");
        }
    }

    #[test]
    fn every_embedded_line_is_a_model() {
        let bad: Vec<&str> = lines()
            .filter(|(id, line)| !id.contains('/') || serde_json::from_str::<CatalogueEntry>(line).is_err())
            .map(|(id, _)| id)
            .collect();
        assert!(bad.is_empty(), "{bad:?}");
        assert_eq!(EMBEDDED.lines().count(), lines().count() + 1, "one line is the head");
        assert_eq!(embedded_date().len(), "2026-11-17".len());
        assert!(embedded(&["anthropic"], "claude-sonnet-4.5").unwrap().price.is_some());
    }
}
