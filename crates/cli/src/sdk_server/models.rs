//! Models of the server, in the form that clients receive.

use std::time::{Duration, SystemTime};

use anyhow::{Result, bail};
use hangar_agent::model::Rates;
use hangar_models::catalogue::{Cache, ModelInfo};
use hangar_models::config::ProviderConfig;
use hangar_models::facts::{self, DEFAULT_PROMPT_TOKENS, Level};
use serde_json::{Value, json};

use crate::providers;
use crate::settings::Settings;

/// Catalogues change by the week, not by the minute.
const TIME_TO_LIVE: Duration = Duration::from_secs(3600);

/// Models of the configured providers.
pub(super) async fn list(settings: &Settings) -> Result<Vec<Value>> {
    let mut configured = providers::configured(settings)?;
    if configured.is_empty() {
        bail!("Not authenticated: no model provider is configured");
    }
    let cache = Cache { dir: settings.home.join("cache"), ttl: TIME_TO_LIVE };
    let mut models = Vec::new();
    for provider in &mut configured {
        let found = cache.refresh(provider, SystemTime::now()).await?;
        provider.learnt.listed = Some(found.clone().into());
        models.extend(found.iter().map(|model| describe(provider, model)));
    }
    Ok(models)
}

/// Facts of one model. Those of the provider itself take precedence.
fn describe(provider: &ProviderConfig, model: &ModelInfo) -> Value {
    let facts = facts::resolve(provider, &model.id).facts;
    let mut limits = json!({ "max_context_window_tokens": facts.window.unwrap_or(DEFAULT_PROMPT_TOKENS) });
    if let Some(limit) = facts.max_input {
        limits["max_prompt_tokens"] = json!(limit);
    }
    if let Some(limit) = facts.max_output {
        limits["max_output_tokens"] = json!(limit);
    }
    let efforts: Vec<&str> = match &model.efforts {
        Some(listed) => listed.iter().map(String::as_str).collect(),
        None => facts.accepted_efforts().into_iter().map(Level::name).collect(),
    };
    let mut value = json!({
        "id": model.id,
        "name": model.name.as_ref().unwrap_or(&model.id),
        "capabilities": {
            "supports": { "vision": facts.vision.unwrap_or(false), "reasoningEffort": !efforts.is_empty() },
            "limits": limits,
        },
        "policy": { "state": "enabled", "terms": "" },
    });
    if !efforts.is_empty() {
        value["supportedReasoningEfforts"] = json!(efforts);
    }
    if let Some(default) = facts.default_effort {
        value["defaultReasoningEffort"] = json!(default);
    }
    if let Some(multiplier) = model.multiplier.as_deref().and_then(|text| text.parse::<f64>().ok()) {
        value["billing"] = json!({ "multiplier": multiplier });
    }
    if let Some(price) = &facts.price {
        value["billing"]["tokenPrices"] = token_prices(&price.rates);
    }
    value
}

/// Prices of a million tokens in AI credits of one cent, the unit of Copilot's own list.
fn token_prices(rates: &Rates) -> Value {
    let mut prices = json!({ "batchSize": 1_000_000 });
    let named = [
        ("inputPrice", Some(rates.input)),
        ("outputPrice", Some(rates.output)),
        ("cacheReadPrice", rates.cache_read),
        ("cacheWritePrice", rates.cache_write),
    ];
    for (name, dollars) in named {
        if let Some(dollars) = dollars {
            prices[name] = json!(dollars * 100.0);
        }
    }
    prices
}

#[cfg(test)]
mod tests {
    use hangar_models::base_url::BaseUrl;
    use hangar_models::config::{ProviderKind, WireApi};

    use super::*;

    /// Description of a model of an own provider that lists nothing but its name.
    fn described(url: &str, model: &str) -> Value {
        let kind = ProviderKind::OpenAi { wire: WireApi::PerModel };
        let provider = ProviderConfig::new("p", kind, BaseUrl::parse(url).expect("an address"));
        let listed = serde_json::from_value(json!({ "id": model, "provider": "p" })).expect("a model");
        describe(&provider, &listed)
    }

    #[test]
    fn models_have_the_facts_of_the_table() {
        let known = described("https://api.openai.com/v1", "gpt-5.4");
        let (supports, limits) = (&known["capabilities"]["supports"], &known["capabilities"]["limits"]);
        assert_eq!((&supports["vision"], &supports["reasoningEffort"]), (&json!(true), &json!(true)));
        assert!(limits["max_context_window_tokens"].as_u64() > Some(200_000), "{known}");
        let efforts = known["supportedReasoningEfforts"].as_array().expect("efforts");
        assert!(efforts.contains(&json!("low")) && efforts.contains(&json!("high")), "{known}");
        let prices = &known["billing"]["tokenPrices"];
        assert_eq!(prices["batchSize"], json!(1_000_000));
        assert_eq!(prices["inputPrice"], json!(250.0), "2.50 dollars are 250 credits: {known}");
        let unknown = described("http://127.0.0.1:1/v1", "nobody-knows-it");
        assert_eq!(unknown["capabilities"]["supports"], json!({ "vision": false, "reasoningEffort": false }));
        assert_eq!(unknown["capabilities"]["limits"], json!({ "max_context_window_tokens": 128_000 }));
        assert_eq!(unknown.get("supportedReasoningEfforts"), None);
        assert_eq!(unknown.get("billing"), None);
    }
}
