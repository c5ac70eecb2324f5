//! A provider as configured: by a `[providers.NAME]` table of `config.toml`, or by Copilot's own variables
//! (see [`variables`]).

pub mod table;
#[cfg(test)]
mod tests;
pub mod variables;

use std::time::Duration;

use hangar_agent::model::Price;
use hangar_protocol::data::{ReasoningSummary, Verbosity};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::base_url::{BadUrl, BaseUrl};
use crate::facts::{self, Learnt};
use crate::provider::is_credential;
use crate::secret::Secret;

#[derive(Debug, Clone, PartialEq)]
pub struct ProviderConfig {
    /// Prefix of a model id `name/model`.
    pub name: String,
    pub kind: ProviderKind,
    /// Name of the host in the table of hosts, if the configuration names it. Otherwise it follows from the URL.
    pub preset: Option<String>,
    pub base_url: BaseUrl,
    pub auth: Auth,
    /// Sent with every request. They override headers that the provider sets itself.
    pub headers: HeaderMap,
    /// The model that `wire_model` and the limits apply to. If absent, they apply to every model.
    pub model: Option<String>,
    /// The provider's name for that model, where the name itself says nothing (a deployment, a fine-tuned variant).
    pub wire_model: Option<String>,
    pub max_prompt_tokens: Option<u64>,
    pub max_output_tokens: Option<u64>,
    /// Price of the model, which overrides the tables.
    pub price: Option<Price>,
    /// Whether a prompt may exceed the length from which the provider charges more.
    pub full_window: bool,
    /// Facts about its models from its list and the user's catalogue.
    pub learnt: Learnt,
    /// Whether documents are sent with a request for citations, where the wire supports it.
    pub citations: bool,
    pub style: AnswerStyle,
    /// Whether models are offered the vendor's own web search.
    pub web_search: bool,
    /// Whether a model that supports WebSockets is called over one. Only request proxies can do that.
    pub websockets: bool,
    pub proxy: Proxy,
    pub limits: TimeLimits,
}

/// Style of the answers, where the API has parameters for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AnswerStyle {
    pub summary: Option<ReasoningSummary>,
    pub verbosity: Option<Verbosity>,
}

impl ProviderConfig {
    /// All secrets of the configuration, so that they can be redacted.
    pub fn secrets(&self) -> Vec<String> {
        let auth = match &self.auth {
            Auth::ApiKey(secret) | Auth::Bearer(secret) => Some(secret.reveal().to_owned()),
            Auth::None | Auth::Command(_) => None,
        };
        let headers = self.headers.iter().filter(|(name, _)| is_credential(name));
        // A value may start with the name of a scheme, which may be missing where the value is shown.
        let values = headers.filter_map(|(_, value)| value.to_str().ok()?.split_whitespace().last());
        auth.into_iter().chain(values.map(str::to_owned)).collect()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderKind {
    /// OpenAI, and every server that implements its API.
    OpenAi {
        wire: WireApi,
    },
    /// Without a version the API is the one under `/openai/v1`.
    Azure {
        wire: WireApi,
        api_version: Option<String>,
    },
    Anthropic,
    /// GitHub's own API, whose catalogue lists the wires of each model.
    Copilot,
}

impl ProviderKind {
    /// Whether the wire is configured, rather than chosen per model.
    pub(crate) fn has_wire(&self) -> bool {
        match self {
            Self::OpenAi { wire } | Self::Azure { wire, .. } => *wire != WireApi::PerModel,
            Self::Anthropic | Self::Copilot => false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireApi {
    /// The best wire for host and model, by the tables. This is the default.
    PerModel,
    Completions,
    Responses,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Auth {
    None,
    /// Sent in the header that the kind of provider expects.
    ApiKey(Secret),
    /// Sent in `Authorization`, whatever the kind.
    Bearer(Secret),
    /// A command that prints an API key.
    Command(String),
}

/// Proxy for remote providers. A provider on this machine is always reached directly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proxy {
    None,
    /// The proxy settings of the machine, such as `HTTPS_PROXY`.
    System,
}

/// Time limits for silence during a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeLimits {
    pub connect: Duration,
    /// Until the first byte of an answer: a model may think for long, and a local server may have to load it.
    pub first_byte: Duration,
    /// Between two pieces of an answer.
    pub stall: Duration,
}

impl Default for TimeLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(300),
            stall: Duration::from_secs(120),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("{setting} is \"{value}\"; it must be one of: {allowed}")]
    Choice { setting: String, value: String, allowed: String },
    #[error("{setting} is \"{value}\"; it must be a positive whole number")]
    Number { setting: String, value: String },
    #[error("{setting} is not usable: {why}")]
    Url { setting: String, why: BadUrl },
    /// The value is not shown: it may be a credential.
    #[error("{setting} holds a header that is not of the form `Name: Value`")]
    Header { setting: String },
    #[error("{setting} holds characters that cannot be sent in a header")]
    Credential { setting: String },
    #[error("{setting} is `{path}`, which cannot be read: {source}")]
    KeyFile { setting: String, path: String, source: std::io::Error },
    #[error("{setting} has a rate that is not a number of US dollars, from 0 on, for a million tokens")]
    Price { setting: String },
    #[error(
        "{setting} is true, but only {known} are known to search the web; `host` names the one behind a gateway"
    )]
    NoSearch { setting: String, known: String },
    #[error("{setting} needs {needs}")]
    Missing { setting: String, needs: &'static str },
    /// Names the position and the problem, but unlike its cause not the value: it may be a credential.
    #[error("config.toml:{line}: {message}")]
    Toml { line: usize, message: String },
}

impl ProviderConfig {
    /// A provider with the defaults of its kind. Azure has no default URL, so a URL is always passed.
    pub fn new(name: impl Into<String>, kind: ProviderKind, base_url: BaseUrl) -> Self {
        Self {
            name: name.into(),
            kind,
            preset: None,
            base_url,
            auth: Auth::None,
            headers: HeaderMap::new(),
            model: None,
            wire_model: None,
            max_prompt_tokens: None,
            max_output_tokens: None,
            price: None,
            full_window: false,
            learnt: Learnt::default(),
            citations: false,
            style: AnswerStyle::default(),
            web_search: false,
            websockets: false,
            proxy: Proxy::System,
            limits: TimeLimits::default(),
        }
    }

    /// Sends a header with every request.
    pub fn set_header(&mut self, name: &str, value: &str) -> Result<(), ConfigError> {
        add_header(&mut self.headers, "headers", name, value)
    }

    /// A model id without the provider's name in front.
    pub fn bare<'a>(&self, id: &'a str) -> &'a str {
        id.strip_prefix(self.name.as_str()).and_then(|rest| rest.strip_prefix('/')).unwrap_or(id)
    }

    /// The provider's name for the model.
    pub(crate) fn wire_name<'a>(&'a self, model: &'a str) -> &'a str {
        match &self.wire_model {
            Some(wire) if self.is_about(model) => wire,
            _ => model,
        }
    }

    /// Whether the configured limits and wire name apply to `model`.
    pub(crate) fn is_about(&self, model: &str) -> bool {
        self.model.as_deref().is_none_or(|about| self.bare(about) == model)
    }
}

/// The provider that a model id names, and the model's own name. Ids that name none belong to the first provider: many
/// models have a `/` of their own.
pub fn find<'a>(providers: &'a [ProviderConfig], id: &'a str) -> Option<(&'a ProviderConfig, &'a str)> {
    let named = id.split_once('/').and_then(|(name, model)| {
        providers.iter().find(|provider| provider.name == name).map(|provider| (provider, model))
    });
    named.or_else(|| providers.first().map(|provider| (provider, id)))
}

/// Name in front of a model id that is neither that of a provider nor one that the first provider's own models have: it would
/// be sent to a provider that nobody meant. Servers of unknown make, those on one's own machine and that of the environment may
/// have any names.
pub fn unknown_provider<'a>(providers: &[ProviderConfig], id: &'a str) -> Option<&'a str> {
    let (name, _) = id.split_once('/')?;
    let first = providers.first().filter(|first| first.name != variables::NAME)?;
    if providers.iter().any(|provider| provider.name == name) {
        return None;
    }
    let host = facts::host(first);
    let own = facts::known_models(first);
    let is_own = |model: &String| model.split_once('/').is_some_and(|(vendor, _)| vendor == name);
    let tells = host.name.is_some() && host.local.is_none() && !own.is_empty();
    (tells && !own.iter().any(is_own)).then_some(name)
}

fn choose<T: Copy>(
    setting: &str,
    value: &str,
    choices: &[(&str, T)],
    allowed: &'static str,
) -> Result<T, ConfigError> {
    let found = choices.iter().find(|(name, _)| name.eq_ignore_ascii_case(value.trim()));
    found.map(|(_, choice)| *choice).ok_or_else(|| ConfigError::Choice {
        setting: setting.into(),
        value: value.into(),
        allowed: allowed.to_owned(),
    })
}

fn wire_api(setting: &str, value: Option<&str>) -> Result<WireApi, ConfigError> {
    const CHOICES: &[(&str, WireApi)] =
        &[("completions", WireApi::Completions), ("responses", WireApi::Responses)];
    value.map_or(Ok(WireApi::PerModel), |value| choose(setting, value, CHOICES, "completions, responses"))
}

fn base_url(setting: &str, value: &str) -> Result<BaseUrl, ConfigError> {
    BaseUrl::parse(value).map_err(|why| ConfigError::Url { setting: setting.into(), why })
}

/// A credential that fits into a header.
fn secret(setting: &str, value: &str) -> Result<Secret, ConfigError> {
    match HeaderValue::from_str(value.trim()) {
        Ok(_) => Ok(Secret::new(value.trim())),
        Err(_) => Err(ConfigError::Credential { setting: setting.into() }),
    }
}

fn add_header(headers: &mut HeaderMap, setting: &str, name: &str, value: &str) -> Result<(), ConfigError> {
    let bad = || ConfigError::Header { setting: setting.into() };
    let name = HeaderName::from_bytes(name.trim().as_bytes()).map_err(|_| bad())?;
    let mut value = HeaderValue::from_str(value.trim()).map_err(|_| bad())?;
    // Gateways take keys in headers of any name; this keeps all of them out of debug output.
    value.set_sensitive(true);
    headers.insert(name, value);
    Ok(())
}
