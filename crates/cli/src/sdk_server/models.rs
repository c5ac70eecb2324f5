//! The models that the server has, as clients are told of them.

use std::time::{Duration, SystemTime};

use anyhow::{Result, bail};
use hangar_models::catalogue::{Cache, ModelInfo};
use hangar_models::known;
use serde_json::{Value, json};

use crate::providers;
use crate::settings::Settings;

/// Catalogues change by the week, not by the minute.
const TIME_TO_LIVE: Duration = Duration::from_secs(3600);

/// Models of the configured providers, in the form that clients receive.
pub(super) async fn list(settings: &Settings) -> Result<Vec<Value>> {
    let configured = providers::configured(settings)?;
    if configured.is_empty() {
        bail!("Not authenticated: no model provider is configured");
    }
    let cache = Cache { dir: settings.home.join("cache"), ttl: TIME_TO_LIVE };
    let mut models = Vec::new();
    for provider in &configured {
        let found = cache.refresh(provider, SystemTime::now()).await?;
        models.extend(found.iter().map(describe));
    }
    Ok(models)
}

fn describe(model: &ModelInfo) -> Value {
    let mut limits = json!({
        "max_context_window_tokens": model.max_context_tokens.unwrap_or(known::DEFAULT_PROMPT_TOKENS),
    });
    if let Some(limit) = model.max_prompt_tokens {
        limits["max_prompt_tokens"] = json!(limit);
    }
    if let Some(limit) = model.max_output_tokens {
        limits["max_output_tokens"] = json!(limit);
    }
    let efforts = model.efforts.as_deref().unwrap_or_default();
    let mut value = json!({
        "id": model.id,
        "name": model.name.as_ref().unwrap_or(&model.id),
        "capabilities": {
            "supports": { "vision": model.vision.unwrap_or(false), "reasoningEffort": !efforts.is_empty() },
            "limits": limits,
        },
        "policy": { "state": "enabled", "terms": "" },
    });
    if !efforts.is_empty() {
        value["supportedReasoningEfforts"] = json!(efforts);
    }
    if let Some(multiplier) = model.multiplier.as_deref().and_then(|text| text.parse::<f64>().ok()) {
        value["billing"] = json!({ "multiplier": multiplier });
    }
    value
}
