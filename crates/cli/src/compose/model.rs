//! The choice of a model: from a provider of the client, or from a configured one.

use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use hangar_agent::agents::config::{ModelChoice, Models};
use hangar_agent::model::{
    ModelError, ModelErrorKind, ModelEvent, ModelProvider, ModelRequest, ProviderFacts,
};
use hangar_models::base_url::BaseUrl;
use hangar_models::config::{self, Auth, ProviderConfig, ProviderKind, Style, WireApi};
use hangar_models::facts::{DEFAULT_PROMPT_TOKENS, Level, ModelFacts, is_same};
use hangar_models::{Secret, Ways};
use hangar_spec::{ModelOptions, ModelSpec, ProviderSpec};

use super::checked::redactor;
use super::{Host, ModelSource};
use crate::providers::{self, Chosen, ProviderRequest};
use crate::settings::Settings;

/// Chooses the model of a session; `before` is the model of a resumed one.
pub(super) fn choose(
    settings: &Settings,
    source: &ModelSource,
    options: &ModelOptions,
    before: Option<&str>,
) -> Result<Chosen> {
    let before = before.filter(|_| source.keeps_model);
    let name = options.name.as_deref().or(before).or(source.usual.as_deref());
    let request = ProviderRequest {
        model: name,
        ways: source.ways.clone(),
        record: source.record.as_deref(),
        replay: source.replay.as_deref(),
    };
    match find(settings, options, request) {
        Err(error) if source.may_be_missing => Ok(missing(name, &error)),
        found => found,
    }
}

/// Checks that an effort is one, and says which ones the model takes otherwise.
pub(super) fn check_effort(chosen: &Chosen, effort: Option<&str>) -> Result<()> {
    let Some(effort) = effort else { return Ok(()) };
    if Level::parse(effort).is_some() {
        return Ok(());
    }
    let accepted = chosen.facts.accepted_efforts();
    let levels: &[Level] = if accepted.is_empty() { &Level::ALL } else { &accepted };
    let names: Vec<&str> = levels.iter().map(|level| level.name()).collect();
    let whose =
        if accepted.is_empty() { "efforts are".to_owned() } else { format!("`{}` takes", chosen.model) };
    bail!("`{effort}` is not a reasoning effort; {whose} {}", names.join(", "))
}

/// What people are told if the model gets another effort than they asked for.
pub(super) fn effort_warning(chosen: &Chosen, effort: Option<&str>) -> Option<String> {
    let sent = chosen.facts.effort(effort);
    let asked = sent.instead_of?;
    Some(format!("`{}` does not take the effort {}; it gets {}", chosen.model, asked.name(), sent.value()?))
}

/// The provider of the requested model, redacted.
pub(crate) fn provider(
    settings: &Settings,
    host: &Host,
    options: &ModelOptions,
) -> Result<Arc<dyn ModelProvider>> {
    let chosen = choose(settings, &host.models, options, None)?;
    Ok(redactor(settings, host, &chosen).provider(chosen.provider))
}

fn find(settings: &Settings, options: &ModelOptions, request: ProviderRequest<'_>) -> Result<Chosen> {
    let mut chosen = match of_client(settings, options, request.model, &request.ways)? {
        Some(chosen) => chosen,
        None => {
            // Client tokens are for client providers only.
            let ways = Ways { tokens: None, ..request.ways.clone() };
            providers::choose(settings, ProviderRequest { ways, ..request })?
        }
    };
    let limits = options.capabilities.as_ref().and_then(|overrides| overrides.limits.as_ref());
    if let Some(limit) =
        limits.and_then(|limits| limits.max_prompt_tokens.or(limits.max_context_window_tokens))
    {
        chosen.max_prompt_tokens = limit;
    }
    Ok(chosen)
}

/// Lookup of models for agents of the session.
pub(super) fn for_agents(
    settings: &Settings,
    source: &ModelSource,
    options: &ModelOptions,
) -> Arc<dyn Models> {
    Arc::new(AgentModels {
        settings: settings.clone(),
        options: options.clone(),
        ways: source.ways.clone(),
        checks_list: source.checks_list,
    })
}

struct AgentModels {
    settings: Settings,
    options: ModelOptions,
    ways: Ways,
    checks_list: bool,
}

impl Models for AgentModels {
    fn find(&self, name: &str) -> Option<ModelChoice> {
        if self.checks_list && !is_listed(&self.settings, name) {
            return None;
        }
        let request =
            ProviderRequest { model: Some(name), ways: self.ways.clone(), ..ProviderRequest::default() };
        let chosen = find(&self.settings, &self.options, request).ok()?;
        Some(ModelChoice {
            provider: chosen.provider,
            model: chosen.model,
            max_prompt_tokens: chosen.max_prompt_tokens,
        })
    }
}

/// Whether the provider's list, if there is one, has the model. Without a list every name may be right.
fn is_listed(settings: &Settings, name: &str) -> bool {
    let Ok(providers) = providers::configured(settings) else { return false };
    let Some((provider, model)) = config::find(&providers, name) else { return true };
    let list = provider.learnt.listed.as_deref();
    list.is_none_or(|list| list.iter().any(|listed| is_same(&listed.id, model)))
}

/// A provider that the client brought, if the model is one of its own.
fn of_client(
    settings: &Settings,
    options: &ModelOptions,
    model: Option<&str>,
    ways: &Ways,
) -> Result<Option<Chosen>> {
    if let Some(provider) = &options.provider {
        let model = model.or(provider.model_id.as_deref());
        let model = model.ok_or_else(|| anyhow!("a session with a provider of its own needs a model"))?;
        let config = learnt(settings, configure(provider, None, options)?)?;
        return Ok(Some(Chosen::of(config, model, ways_of(provider, ways))));
    }
    let Some(providers) = &options.providers else { return Ok(None) };
    let Some(model) = model else { return Ok(None) };
    let qualified = |model: &ModelSpec| format!("{}/{}", model.provider, model.id);
    let listed =
        options.models.iter().flatten().find(|listed| qualified(listed) == model || listed.id == model);
    let Some(listed) = listed else { return Ok(None) };
    let named = |provider: &&ProviderSpec| provider.name.as_deref() == Some(listed.provider.as_str());
    let Some(provider) = providers.iter().find(named) else {
        bail!("the model `{model}` names the provider `{}`, which is not there", listed.provider);
    };
    let config = learnt(settings, configure(provider, Some(listed), options)?)?;
    Ok(Some(Chosen::of(config, model, ways_of(provider, ways))))
}

/// A provider with what this machine knows of its models.
fn learnt(settings: &Settings, mut config: ProviderConfig) -> Result<ProviderConfig> {
    providers::learn(settings, std::slice::from_mut(&mut config))?;
    Ok(config)
}

/// A provider whose token the client knows asks for it; others have theirs.
fn ways_of(provider: &ProviderSpec, ways: &Ways) -> Ways {
    let asks = provider.has_bearer_token_provider.unwrap_or(false);
    Ways { tokens: ways.tokens.clone().filter(|_| asks), request_proxy: ways.request_proxy.clone() }
}

fn configure(
    spec: &ProviderSpec,
    model: Option<&ModelSpec>,
    options: &ModelOptions,
) -> Result<ProviderConfig> {
    let wire = match spec.wire_api.as_deref() {
        None => WireApi::PerModel,
        Some("completions") => WireApi::Completions,
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
    config.citations = options.citations.unwrap_or(false);
    config.style = Style { summary: options.summary, verbosity: options.verbosity };
    config.websockets = spec.transport.as_deref() == Some("websockets");
    Ok(config)
}

/// A placeholder whose calls fail with the error. A session without a provider can still be opened and configured.
fn missing(model: Option<&str>, error: &anyhow::Error) -> Chosen {
    Chosen {
        provider: Arc::new(NoProvider(format!("{error:#}"))),
        model: model.unwrap_or_default().to_owned(),
        max_prompt_tokens: DEFAULT_PROMPT_TOKENS,
        facts: ModelFacts::default(),
        small: None,
        scripted: false,
        secrets: Vec::new(),
    }
}

/// Fails every call with a message.
struct NoProvider(String);

impl ModelProvider for NoProvider {
    fn stream(
        &self,
        _request: ModelRequest,
    ) -> futures_util::stream::BoxStream<'static, Result<ModelEvent, ModelError>> {
        let error = ModelError::new(ModelErrorKind::Configuration, &*self.0);
        Box::pin(futures_util::stream::iter([Err(error)]))
    }

    fn facts(&self) -> ProviderFacts {
        ProviderFacts {
            endpoint: "/chat/completions",
            is_byok: false,
            base_url: String::new(),
            max_prompt_tokens: None,
            max_output_tokens: None,
            price: None,
        }
    }
}
