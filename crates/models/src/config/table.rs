//! Providers as `config.toml` has them: any number of `[providers.NAME]` tables.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::time::Duration;

use hangar_agent::model::{Price, Rates};
use serde::Deserialize;

use super::{Auth, ConfigError, ProviderConfig, ProviderKind, Proxy, TimeLimits};
use super::{add_header, base_url, choose, secret, wire_api};
use crate::base_url::BaseUrl;
use crate::secret::Secret;

const OPENAI_URL: &str = "https://api.openai.com/v1";
const ANTHROPIC_URL: &str = "https://api.anthropic.com";
pub(crate) const COPILOT_URL: &str = "https://api.githubcopilot.com";

/// The part of the file that is about providers. Other tables are somebody else's.
#[derive(Deserialize)]
struct File {
    #[serde(default)]
    providers: BTreeMap<String, Table>,
}

/// One `[providers.NAME]` table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(rename = "type")]
    kind: Option<String>,
    base_url: Option<String>,
    wire_api: Option<String>,
    api_key: Option<Secret>,
    /// The variable that holds the key.
    api_key_env: Option<String>,
    api_key_command: Option<String>,
    bearer_token: Option<Secret>,
    azure_api_version: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    model: Option<String>,
    wire_model: Option<String>,
    max_prompt_tokens: Option<NonZeroU64>,
    max_output_tokens: Option<NonZeroU64>,
    /// US dollars for a million tokens.
    price: Option<PriceTable>,
    /// False reaches the provider directly, whatever the machine's proxy settings say.
    proxy: Option<bool>,
    stall_seconds: Option<NonZeroU64>,
    first_byte_seconds: Option<NonZeroU64>,
}

/// US dollars for a million tokens.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceTable {
    input: f64,
    output: f64,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
}

impl PriceTable {
    fn resolve(self, setting: &str) -> Result<Price, ConfigError> {
        let Self { input, output, cache_read, cache_write } = self;
        let rates = [Some(input), Some(output), cache_read, cache_write];
        if rates.into_iter().flatten().any(|rate| !rate.is_finite() || rate < 0.0) {
            return Err(ConfigError::Price { setting: setting.to_owned() });
        }
        Ok(Price::flat(Rates { input, output, cache_read, cache_write }))
    }
}

/// The providers of a configuration file, by name. `lookup` finds the variables that `api_key_env` names.
pub fn providers(
    toml: &str,
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<Vec<ProviderConfig>, ConfigError> {
    let file: File = toml::from_str(toml).map_err(|error| {
        let before = error.span().and_then(|span| toml.get(..span.start)).unwrap_or_default();
        ConfigError::Toml { line: before.matches('\n').count() + 1, message: error.message().to_owned() }
    })?;
    file.providers.into_iter().map(|(name, table)| table.resolve(name, &lookup)).collect()
}

/// The variables that a configuration file names with `api_key_env`. None where it cannot be read.
pub fn key_variables(toml: &str) -> Vec<String> {
    let file: Result<File, _> = toml::from_str(toml);
    let tables = file.map(|file| file.providers).unwrap_or_default();
    tables.into_values().filter_map(|table| table.api_key_env).collect()
}

#[derive(Clone, Copy)]
enum Type {
    OpenAi,
    Azure,
    Anthropic,
    Copilot,
}

impl Table {
    fn resolve(
        self,
        name: String,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<ProviderConfig, ConfigError> {
        let setting = |key: &str| format!("providers.{name}.{key}");
        let types = &[
            ("openai", Type::OpenAi),
            ("azure", Type::Azure),
            ("anthropic", Type::Anthropic),
            ("copilot", Type::Copilot),
        ];
        let allowed = "openai, azure, anthropic, copilot";
        let kind = self
            .kind
            .as_deref()
            .map(|value| choose(&setting("type"), value, types, allowed))
            .transpose()?
            .unwrap_or(Type::OpenAi);
        let wire = wire_api(&setting("wire_api"), self.wire_api.as_deref())?;
        let url = match (&self.base_url, kind) {
            (Some(url), _) => url.as_str(),
            (None, Type::OpenAi) => OPENAI_URL,
            (None, Type::Anthropic) => ANTHROPIC_URL,
            (None, Type::Copilot) => COPILOT_URL,
            (None, Type::Azure) => {
                return Err(ConfigError::Missing {
                    setting: format!("providers.{name}"),
                    needs: "a base_url",
                });
            }
        };
        let url: BaseUrl = base_url(&setting("base_url"), url)?;
        let kind = match kind {
            Type::OpenAi => ProviderKind::OpenAi { wire },
            Type::Azure => ProviderKind::Azure { wire, api_version: self.azure_api_version.clone() },
            Type::Anthropic => ProviderKind::Anthropic,
            Type::Copilot => ProviderKind::Copilot,
        };
        let mut config = ProviderConfig::new(name.clone(), kind, url);
        config.auth = self.auth(&setting, lookup)?;
        for (header, value) in &self.headers {
            add_header(&mut config.headers, &setting("headers"), header, value)?;
        }
        config.model = self.model;
        config.wire_model = self.wire_model;
        config.max_prompt_tokens = self.max_prompt_tokens.map(NonZeroU64::get);
        config.max_output_tokens = self.max_output_tokens.map(NonZeroU64::get);
        config.price = self.price.map(|price| price.resolve(&setting("price"))).transpose()?;
        config.proxy = if self.proxy == Some(false) { Proxy::None } else { Proxy::System };
        let limits = TimeLimits::default();
        let seconds = |value: Option<NonZeroU64>| value.map(|seconds| Duration::from_secs(seconds.get()));
        config.limits = TimeLimits {
            connect: limits.connect,
            first_byte: seconds(self.first_byte_seconds).unwrap_or(limits.first_byte),
            stall: seconds(self.stall_seconds).unwrap_or(limits.stall),
        };
        Ok(config)
    }

    fn auth(
        &self,
        setting: &dyn Fn(&str) -> String,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Auth, ConfigError> {
        if let Some(token) = &self.bearer_token {
            return Ok(Auth::Bearer(secret(&setting("bearer_token"), token.reveal())?));
        }
        if let Some(command) = &self.api_key_command {
            return Ok(Auth::Command(command.clone()));
        }
        if let Some(key) = &self.api_key {
            return Ok(Auth::ApiKey(secret(&setting("api_key"), key.reveal())?));
        }
        // A variable that is not set is no key: the server says whether it needs one.
        let key = self.api_key_env.as_deref().and_then(lookup).filter(|key| !key.trim().is_empty());
        key.map_or(Ok(Auth::None), |key| Ok(Auth::ApiKey(secret(&setting("api_key_env"), &key)?)))
    }
}
