//! Documented facts about a vendor's models: a table in TOML, with the rules that only this vendor has.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::usage::VendorPrice;

/// A model, with the facts that the vendor's own rules need.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VendorModel<R> {
    pub id: String,
    /// Other names that the vendor accepts.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Tokens of request and answer together.
    pub window: u64,
    /// Tokens of the longest answer.
    pub output: u64,
    /// In the vendor's words, lowest first. Empty: the model accepts none.
    #[serde(default)]
    pub efforts: Vec<String>,
    pub default_effort: Option<String>,
    /// Shortest prompt that is cached.
    #[serde(default)]
    pub cache_minimum: u64,
    #[serde(default = "hundred")]
    pub token_percent: u64,
    pub price: VendorPrice,
    pub rules: R,
}

fn hundred() -> u64 {
    100
}

/// The models of a vendor.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VendorModels<R> {
    #[serde(rename = "model")]
    pub models: Vec<VendorModel<R>>,
}

#[derive(Debug, thiserror::Error)]
#[error("a table of models is not valid: {0}")]
pub struct FactsError(#[from] toml::de::Error);

impl<R: DeserializeOwned> VendorModels<R> {
    pub fn parse(text: &str) -> Result<Self, FactsError> {
        Ok(toml::from_str(text)?)
    }
}

impl<R> VendorModels<R> {
    /// A model by its id or an alias, matched exactly.
    pub fn find(&self, id: &str) -> Option<&VendorModel<R>> {
        self.models.iter().find(|model| model.id == id || model.aliases.iter().any(|alias| alias == id))
    }
}
