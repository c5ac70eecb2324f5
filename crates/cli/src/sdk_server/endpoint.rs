//! Endpoint of a session's model, for clients that call it themselves. It includes credentials, so it has to be
//! allowed.

use anyhow::{Result, bail};
use hangar_spec::ModelOptions;
use serde_json::{Value, json};

use crate::providers::github_login;
use crate::settings::{GitHubLogin, Settings};

const ALLOW: &str = "COPILOT_ALLOW_GET_PROVIDER_ENDPOINT";
const COPILOT_URL: &str = "https://api.githubcopilot.com";

pub(super) fn describe(settings: &Settings, options: &ModelOptions, model: &str) -> Result<Value> {
    if !settings.flag(ALLOW) {
        bail!("the endpoint carries credentials; {ALLOW}=true allows it");
    }
    let named = |name: &str| {
        options.providers.iter().flatten().find(|provider| provider.name.as_deref() == Some(name))
    };
    let listed = options.models.iter().flatten();
    let mut listed =
        listed.filter(|known| format!("{}/{}", known.provider, known.id) == model || known.id == model);
    let provider =
        options.provider.as_ref().or_else(|| listed.next().and_then(|known| named(&known.provider)));
    let Some(provider) = provider else { return copilot(settings) };
    let kind = provider.kind.as_deref().unwrap_or("openai");
    let mut value = json!({
        "type": kind,
        "baseUrl": provider.base_url,
        "headers": provider.headers.clone().unwrap_or_default(),
    });
    if kind != "anthropic" {
        value["wireApi"] = json!(provider.wire_api.as_deref().unwrap_or("completions"));
    }
    if let Some(transport) = &provider.transport {
        value["transport"] = json!(transport);
    }
    if let Some(key) = provider.api_key.as_ref().or(provider.bearer_token.as_ref()) {
        value["apiKey"] = json!(key);
    }
    Ok(value)
}

fn copilot(settings: &Settings) -> Result<Value> {
    let Some(GitHubLogin { token, .. }) = github_login(settings, true) else {
        bail!("Not authenticated: there is no endpoint without a login");
    };
    let mut headers: serde_json::Map<String, Value> =
        hangar_models::COPILOT_HEADERS.iter().map(|(name, value)| (as_written(name), json!(value))).collect();
    headers.insert(
        "User-Agent".to_owned(),
        json!(concat!("hangar/", env!("CARGO_PKG_VERSION"), " (Copilot API)")),
    );
    headers.insert("X-Interaction-Id".to_owned(), json!(uuid::Uuid::new_v4().to_string()));
    headers.insert("Authorization".to_owned(), json!(format!("Bearer {token}")));
    Ok(json!({
        "type": "openai",
        "wireApi": "completions",
        "baseUrl": settings.var("COPILOT_API_URL").unwrap_or(COPILOT_URL),
        "apiKey": token,
        "headers": headers,
    }))
}

/// `copilot-integration-id` as people write it.
fn as_written(name: &str) -> String {
    let word = |word: &str| match word {
        "github" => "GitHub".to_owned(),
        "openai" => "OpenAI".to_owned(),
        word => {
            let mut letters = word.chars();
            letters
                .next()
                .map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
        }
    };
    name.split('-').map(word).collect::<Vec<_>>().join("-")
}
