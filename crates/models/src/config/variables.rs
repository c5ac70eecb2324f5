//! The environment variables with which Copilot CLI configures a custom provider.

use super::{Auth, ConfigError, ProviderConfig, ProviderKind, WireApi};
use super::{add_header, base_url, choose, secret, wire_api};

/// The name of the provider that the variables describe.
pub const NAME: &str = "custom";

const BASE_URL: &str = "COPILOT_PROVIDER_BASE_URL";
const TYPE: &str = "COPILOT_PROVIDER_TYPE";
const API_KEY: &str = "COPILOT_PROVIDER_API_KEY";
const API_KEY_COMMAND: &str = "COPILOT_PROVIDER_API_KEY_COMMAND";
const BEARER_TOKEN: &str = "COPILOT_PROVIDER_BEARER_TOKEN";
const WIRE_API: &str = "COPILOT_PROVIDER_WIRE_API";
const TRANSPORT: &str = "COPILOT_PROVIDER_TRANSPORT";
const AZURE_API_VERSION: &str = "COPILOT_PROVIDER_AZURE_API_VERSION";
const MODEL: &str = "COPILOT_MODEL";
const MODEL_ID: &str = "COPILOT_PROVIDER_MODEL_ID";
const WIRE_MODEL: &str = "COPILOT_PROVIDER_WIRE_MODEL";
const MAX_PROMPT_TOKENS: &str = "COPILOT_PROVIDER_MAX_PROMPT_TOKENS";
const MAX_OUTPUT_TOKENS: &str = "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS";
const HEADERS: &str = "COPILOT_PROVIDER_HEADERS";

#[derive(Clone, Copy, PartialEq)]
enum Transport {
    Http,
    WebSockets,
}

#[derive(Clone, Copy)]
enum Type {
    OpenAi,
    Azure,
    Anthropic,
}

/// The provider that the variables describe, if `COPILOT_PROVIDER_BASE_URL` is set.
pub fn provider(lookup: impl Fn(&str) -> Option<String>) -> Result<Option<ProviderConfig>, ConfigError> {
    let get = |name: &str| lookup(name).filter(|value| !value.trim().is_empty());
    let Some(url) = get(BASE_URL) else { return Ok(None) };

    let wire = wire_api(WIRE_API, get(WIRE_API).as_deref())?;
    let transports = &[("http", Transport::Http), ("websockets", Transport::WebSockets)];
    let transport = get(TRANSPORT)
        .map(|value| choose(TRANSPORT, &value, transports, "http, websockets"))
        .transpose()?
        .unwrap_or(Transport::Http);
    // Both transports carry the same answers; without a request proxy that has WebSockets, HTTP is used.
    if transport == Transport::WebSockets && wire != WireApi::Responses {
        return Err(ConfigError::Missing {
            setting: format!("{TRANSPORT}=websockets"),
            needs: "COPILOT_PROVIDER_WIRE_API=responses",
        });
    }
    let types = &[("openai", Type::OpenAi), ("azure", Type::Azure), ("anthropic", Type::Anthropic)];
    let kind = get(TYPE)
        .map(|value| choose(TYPE, &value, types, "openai, azure, anthropic"))
        .transpose()?
        .unwrap_or(Type::OpenAi);
    let kind = match kind {
        Type::OpenAi => ProviderKind::OpenAi { wire },
        Type::Azure => ProviderKind::Azure { wire, api_version: get(AZURE_API_VERSION) },
        Type::Anthropic => ProviderKind::Anthropic,
    };

    let mut config = ProviderConfig::new(NAME, kind, base_url(BASE_URL, &url)?);
    config.auth = auth(get)?;
    // In a double-quoted shell string `\n` stays two characters.
    for line in
        get(HEADERS).unwrap_or_default().replace("\\n", "\n").lines().filter(|line| !line.trim().is_empty())
    {
        let (name, value) =
            line.split_once(':').ok_or_else(|| ConfigError::Header { setting: HEADERS.into() })?;
        add_header(&mut config.headers, HEADERS, name, value)?;
    }
    config.model = get(MODEL_ID).or_else(|| get(MODEL));
    config.wire_model =
        get(WIRE_MODEL).or_else(|| get(MODEL)).filter(|wire| config.model.as_ref() != Some(wire));
    config.max_prompt_tokens = tokens(MAX_PROMPT_TOKENS, get(MAX_PROMPT_TOKENS))?;
    config.max_output_tokens = tokens(MAX_OUTPUT_TOKENS, get(MAX_OUTPUT_TOKENS))?;
    config.websockets = transport == Transport::WebSockets;
    Ok(Some(config))
}

fn auth(get: impl Fn(&str) -> Option<String>) -> Result<Auth, ConfigError> {
    if let Some(token) = get(BEARER_TOKEN) {
        return Ok(Auth::Bearer(secret(BEARER_TOKEN, &token)?));
    }
    if let Some(command) = get(API_KEY_COMMAND) {
        return Ok(Auth::Command(command));
    }
    get(API_KEY).map_or(Ok(Auth::None), |key| Ok(Auth::ApiKey(secret(API_KEY, &key)?)))
}

fn tokens(setting: &str, value: Option<String>) -> Result<Option<u64>, ConfigError> {
    let Some(value) = value else { return Ok(None) };
    match value.trim().parse() {
        Ok(tokens) if tokens > 0 => Ok(Some(tokens)),
        _ => Err(ConfigError::Number { setting: setting.into(), value }),
    }
}
