//! Providers in `config.toml`: any number of `[providers.NAME]` tables.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::time::Duration;

use hangar_agent::model::{Price, Rates};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Auth, ConfigError, ProviderConfig, ProviderKind, Proxy, TimeLimits};
use super::{add_header, base_url, secret, wire_api};
use crate::base_url::BaseUrl;
use crate::facts::{self, Preset, PresetKind};
use crate::secret::Secret;

/// Presets that are APIs, implemented by many hosts, rather than hosts.
const GENERIC: [&str; 4] = ["openai", "azure", "anthropic", "copilot"];

/// The part of the file about providers. Other modules read the other tables.
#[derive(Deserialize)]
struct File {
    #[serde(default)]
    providers: BTreeMap<String, Table>,
}

/// Schema of the tables `[providers.NAME]`.
pub fn schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    generator.subschema_for::<BTreeMap<String, Table>>()
}

/// Names of the presets, as the schema allows them.
fn known_types(schema: &mut schemars::Schema) {
    schema.insert("enum".to_owned(), facts::presets().collect::<Vec<_>>().into());
}

/// A model provider.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ProviderTable")]
struct Table {
    /// The API, or the host that serves it.
    #[serde(rename = "type")]
    #[schemars(transform = known_types)]
    kind: Option<String>,
    /// The host whose rules apply although the URL is different: for gateways that pass requests on unchanged.
    host: Option<String>,
    /// URL of the API.
    base_url: Option<String>,
    /// OpenAI's API to use.
    #[schemars(extend("enum" = ["completions", "responses"]))]
    wire_api: Option<String>,
    /// The key itself; a reference to it is better.
    #[schemars(with = "Option<String>")]
    api_key: Option<Secret>,
    /// The variable that holds the key.
    api_key_env: Option<String>,
    /// The command that prints the key.
    api_key_command: Option<String>,
    /// The file that holds the key and nothing else.
    api_key_file: Option<String>,
    /// The name of the key in the keychain of the system.
    api_key_keychain: Option<String>,
    /// The bearer token itself.
    #[schemars(with = "Option<String>")]
    bearer_token: Option<Secret>,
    /// Version of Azure's API.
    azure_api_version: Option<String>,
    /// Additional headers.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// Default model of the provider.
    model: Option<String>,
    /// Name of the model to send, if it differs.
    wire_model: Option<String>,
    /// Tokens of the longest prompt.
    max_prompt_tokens: Option<NonZeroU64>,
    /// Tokens of the longest answer.
    max_output_tokens: Option<NonZeroU64>,
    /// US dollars for a million tokens.
    price: Option<PriceTable>,
    /// Whether models may use the vendor's own web search.
    #[serde(default)]
    web_search: bool,
    /// False reaches the provider directly, regardless of the machine's proxy settings.
    proxy: Option<bool>,
    /// Seconds without a further piece of an answer after which a call fails.
    stall_seconds: Option<NonZeroU64>,
    /// Seconds until the first byte of an answer.
    first_byte_seconds: Option<NonZeroU64>,
}

/// US dollars for a million tokens.
#[derive(Deserialize, JsonSchema)]
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

/// The keys that a configuration refers to.
pub trait KeySources {
    /// The variable that `api_key_env` names.
    fn variable(&self, name: &str) -> Option<String>;
    /// The text of the file that `api_key_file` names.
    fn file(&self, path: &str) -> std::io::Result<String>;
}

/// Variables alone.
impl<F: Fn(&str) -> Option<String>> KeySources for F {
    fn variable(&self, name: &str) -> Option<String> {
        self(name)
    }

    fn file(&self, _path: &str) -> std::io::Result<String> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}

/// The providers of a configuration file, by name.
pub fn providers(toml: &str, keys: impl KeySources) -> Result<Vec<ProviderConfig>, ConfigError> {
    let file: File = toml::from_str(toml).map_err(|error| {
        let before = error.span().and_then(|span| toml.get(..span.start)).unwrap_or_default();
        ConfigError::Toml { line: before.matches('\n').count() + 1, message: error.message().to_owned() }
    })?;
    file.providers.into_iter().map(|(name, table)| table.resolve(name, &keys)).collect()
}

/// The variables that hold keys according to a configuration file: those that `api_key_env` names, and the usual ones
/// of presets. Empty if the file cannot be read.
pub fn key_variables(toml: &str) -> Vec<String> {
    let file: Result<File, _> = toml::from_str(toml);
    let tables = file.map(|file| file.providers).unwrap_or_default();
    let variable = |table: Table| {
        let usual = || facts::preset(table.kind.as_deref()?)?.api_key_env.map(str::to_owned);
        table.api_key_env.clone().or_else(usual)
    };
    tables.into_values().filter_map(variable).collect()
}

impl Table {
    fn resolve(self, name: String, keys: &dyn KeySources) -> Result<ProviderConfig, ConfigError> {
        let setting = |key: &str| format!("providers.{name}.{key}");
        let preset = self.preset(&setting("type"))?;
        let wire = wire_api(&setting("wire_api"), self.wire_api.as_deref())?;
        let kind = match preset.kind {
            PresetKind::OpenAi => ProviderKind::OpenAi { wire },
            PresetKind::Azure => ProviderKind::Azure { wire, api_version: self.azure_api_version.clone() },
            PresetKind::Anthropic => ProviderKind::Anthropic,
            PresetKind::Copilot => ProviderKind::Copilot,
        };
        let missing = || ConfigError::Missing { setting: format!("providers.{name}"), needs: "a base_url" };
        let url = self.base_url.as_deref().or(preset.base_url).ok_or_else(missing)?;
        let url: BaseUrl = base_url(&setting("base_url"), url)?;
        let mut config = ProviderConfig::new(name.clone(), kind, url);
        // A server of unknown make gets the rules for unknown servers, whatever API it implements.
        let named = self.kind.is_some() && !GENERIC.contains(&preset.name);
        let host = self.host.as_deref().map(|host| known_host(&setting("host"), host)).transpose()?;
        config.preset = host.or(named.then_some(preset.name)).map(str::to_owned);
        config.auth = self.auth(&preset, &setting, keys)?;
        for (header, value) in &self.headers {
            add_header(&mut config.headers, &setting("headers"), header, value)?;
        }
        config.model = self.model;
        config.wire_model = self.wire_model;
        config.max_prompt_tokens = self.max_prompt_tokens.map(NonZeroU64::get);
        config.max_output_tokens = self.max_output_tokens.map(NonZeroU64::get);
        config.price = self.price.map(|price| price.resolve(&setting("price"))).transpose()?;
        config.proxy = if self.proxy == Some(false) { Proxy::None } else { Proxy::System };
        config.web_search = self.web_search;
        if config.web_search && facts::host(&config).web_search.is_none() {
            let known = facts::searching_hosts().collect::<Vec<_>>().join(", ");
            return Err(ConfigError::NoSearch { setting: setting("web_search"), known });
        }
        let limits = TimeLimits::default();
        let seconds = |value: Option<NonZeroU64>| value.map(|seconds| Duration::from_secs(seconds.get()));
        config.limits = TimeLimits {
            connect: limits.connect,
            first_byte: seconds(self.first_byte_seconds).unwrap_or(limits.first_byte),
            stall: seconds(self.stall_seconds).unwrap_or(limits.stall),
        };
        Ok(config)
    }

    fn preset(&self, setting: &str) -> Result<Preset, ConfigError> {
        known_preset(setting, self.kind.as_deref().unwrap_or("openai"))
    }

    fn auth(
        &self,
        preset: &Preset,
        setting: &dyn Fn(&str) -> String,
        keys: &dyn KeySources,
    ) -> Result<Auth, ConfigError> {
        if let Some(token) = &self.bearer_token {
            return Ok(Auth::Bearer(secret(&setting("bearer_token"), token.reveal())?));
        }
        if let Some(command) = &self.api_key_command {
            return Ok(Auth::Command(command.clone()));
        }
        if let Some(name) = &self.api_key_keychain {
            return Ok(Auth::Command(keychain_command(name)));
        }
        if let Some(key) = &self.api_key {
            return Ok(Auth::ApiKey(secret(&setting("api_key"), key.reveal())?));
        }
        if let Some(path) = &self.api_key_file {
            let setting = setting("api_key_file");
            let key = match keys.file(path) {
                Ok(key) => key,
                Err(source) => return Err(ConfigError::KeyFile { setting, path: path.clone(), source }),
            };
            return Ok(Auth::ApiKey(secret(&setting, &key)?));
        }
        // An unset variable means no key: the server says whether it needs one. The usual variable is used only for the
        // usual URL, so that the key is not sent to other servers with the same API.
        let usual = preset.api_key_env.filter(|_| self.base_url.is_none() && self.kind.is_some());
        let variable = self.api_key_env.as_deref().or(usual);
        let key = variable.and_then(|name| keys.variable(name)).filter(|key| !key.trim().is_empty());
        if let Some(key) = key {
            return Ok(Auth::ApiKey(secret(&setting("api_key_env"), &key)?));
        }
        Ok(preset.api_key_command.map_or(Auth::None, |command| Auth::Command(command.to_owned())))
    }
}

/// The command that prints a key of the system's keychain. The name is quoted for the shell.
fn keychain_command(name: &str) -> String {
    let quoted = name.replace('\'', "'\\''");
    match cfg!(target_os = "macos") {
        true => format!("security find-generic-password -w -s '{quoted}'"),
        false => format!("secret-tool lookup service '{quoted}'"),
    }
}

fn known_preset(setting: &str, wanted: &str) -> Result<Preset, ConfigError> {
    facts::preset(wanted).ok_or_else(|| ConfigError::Choice {
        setting: setting.to_owned(),
        value: wanted.to_owned(),
        allowed: facts::presets().collect::<Vec<_>>().join(", "),
    })
}

fn known_host(setting: &str, wanted: &str) -> Result<&'static str, ConfigError> {
    known_preset(setting, wanted).map(|preset| preset.name)
}
