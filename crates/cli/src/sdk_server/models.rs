//! The models of a session: the client's own provider, one of several that it brought, or what the server has.

use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, anyhow, bail};
use hangar_models::base_url::BaseUrl;
use hangar_models::catalogue::{Cache, ModelInfo};
use hangar_models::config::{Auth, ProviderConfig, ProviderKind, Style, WireApi};
use hangar_models::{Secret, known};
use hangar_server::{ModelSpec, ProviderSpec, SessionSpec, Ways};
use serde_json::{Value, json};

use crate::providers::{self, Chosen, Wanted};
use crate::settings::Settings;

/// Catalogues change by the week, not by the minute.
const TIME_TO_LIVE: Duration = Duration::from_secs(3600);

pub(super) fn choose(
    settings: &Settings,
    spec: &SessionSpec,
    model: Option<&str>,
    ways: &Ways,
) -> Result<Chosen> {
    let ways = hangar_models::Ways { request_proxy: ways.request_proxy.clone(), tokens: ways.tokens.clone() };
    let mut chosen = match own(spec, model, &ways)? {
        Some(chosen) => chosen,
        None => providers::choose(
            settings,
            Wanted { model, ways: hangar_models::Ways { tokens: None, ..ways }, ..Wanted::default() },
        )?,
    };
    let limits = spec.model_capabilities.as_ref().and_then(|overrides| overrides.limits.as_ref());
    if let Some(limit) =
        limits.and_then(|limits| limits.max_prompt_tokens.or(limits.max_context_window_tokens))
    {
        chosen.max_prompt_tokens = limit;
    }
    Ok(chosen)
}

/// A provider that the client brought, if the model is one of its own.
fn own(spec: &SessionSpec, model: Option<&str>, ways: &hangar_models::Ways) -> Result<Option<Chosen>> {
    if let Some(provider) = &spec.provider {
        let model = model.or(provider.model_id.as_deref());
        let model = model.ok_or_else(|| anyhow!("a session with a provider of its own needs a model"))?;
        let config = config(provider, None, spec)?;
        return Ok(Some(chosen(config, model, ways_of(provider, ways))));
    }
    let Some(providers) = &spec.providers else { return Ok(None) };
    let Some(model) = model else { return Ok(None) };
    let qualified = |model: &ModelSpec| format!("{}/{}", model.provider, model.id);
    let listed = spec.models.iter().flatten().find(|listed| qualified(listed) == model || listed.id == model);
    let Some(listed) = listed else { return Ok(None) };
    let named = |provider: &&ProviderSpec| provider.name.as_deref() == Some(listed.provider.as_str());
    let Some(provider) = providers.iter().find(named) else {
        bail!("the model `{model}` names the provider `{}`, which is not there", listed.provider);
    };
    let config = config(provider, Some(listed), spec)?;
    Ok(Some(chosen(config, model, ways_of(provider, ways))))
}

/// A provider whose token the client knows asks for it; others have theirs.
fn ways_of(provider: &ProviderSpec, ways: &hangar_models::Ways) -> hangar_models::Ways {
    let asks = provider.has_bearer_token_provider.unwrap_or(false);
    hangar_models::Ways {
        tokens: ways.tokens.clone().filter(|_| asks),
        request_proxy: ways.request_proxy.clone(),
    }
}

fn chosen(config: ProviderConfig, model: &str, ways: hangar_models::Ways) -> Chosen {
    let limit = config
        .max_prompt_tokens
        .or_else(|| known::limits(model).map(|limits| limits.max_prompt_tokens))
        .unwrap_or(known::DEFAULT_PROMPT_TOKENS);
    Chosen {
        secrets: config.secrets(),
        model: model.to_owned(),
        max_prompt_tokens: limit,
        provider: hangar_models::build_by(config, ways),
        scripted: false,
    }
}

fn config(spec: &ProviderSpec, model: Option<&ModelSpec>, session: &SessionSpec) -> Result<ProviderConfig> {
    let wire = match spec.wire_api.as_deref() {
        None | Some("completions") => WireApi::Completions,
        Some("responses") => WireApi::Responses,
        Some(other) => bail!("wireApi is `{other}`; it must be completions or responses"),
    };
    let kind = match spec.kind.as_deref() {
        None | Some("openai") => ProviderKind::OpenAi { wire },
        Some("azure") => {
            let api_version = spec.azure.as_ref().and_then(|azure| azure.api_version.clone());
            ProviderKind::Azure { wire, api_version }
        }
        Some("anthropic") => ProviderKind::Anthropic,
        Some(other) => bail!("the provider's type is `{other}`; it must be openai, azure or anthropic"),
    };
    let url = BaseUrl::parse(&spec.base_url).with_context(|| format!("baseUrl is `{}`", spec.base_url))?;
    let mut config =
        ProviderConfig::new(spec.name.clone().unwrap_or_else(|| "default".to_owned()), kind, url);
    config.auth = match (&spec.bearer_token, &spec.api_key) {
        (Some(token), _) => Auth::Bearer(Secret::new(token.clone())),
        (None, Some(key)) => Auth::ApiKey(Secret::new(key.clone())),
        (None, None) => Auth::None,
    };
    for (name, value) in spec.headers.iter().flatten() {
        config.set_header(name, value)?;
    }
    let wire_model = model.and_then(|model| model.wire_model.clone().or_else(|| model.model_id.clone()));
    config.wire_model =
        wire_model.or_else(|| model.map(|model| model.id.clone())).or_else(|| spec.wire_model.clone());
    config.max_prompt_tokens = model.and_then(|model| model.max_prompt_tokens).or(spec.max_prompt_tokens);
    config.max_output_tokens = model.and_then(|model| model.max_output_tokens).or(spec.max_output_tokens);
    config.citations = session.enable_citations.unwrap_or(false);
    config.style = Style { summary: session.reasoning_summary, verbosity: session.verbosity };
    config.websockets = spec.transport.as_deref() == Some("websockets");
    Ok(config)
}

/// What the configured providers offer, as clients are told of it.
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
