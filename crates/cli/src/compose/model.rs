//! The choice of a model: from a provider of the client, or from a configured one.

use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use hangar_agent::agents::config::{ModelChoice, Models};
use hangar_agent::log::ListedProvider;
use hangar_agent::model::{
    ModelError, ModelErrorKind, ModelEvent, ModelProvider, ModelRequest, ProviderFacts,
};
use hangar_engine::SwitchedModel;
use hangar_images::{ImageLimits, ScaledImages};
use hangar_models::base_url::BaseUrl;
use hangar_models::config::{self, AnswerStyle, Auth, ProviderConfig, ProviderKind, WireApi};
use hangar_models::facts::{self, DEFAULT_PROMPT_TOKENS, ImageFacts, Level, ModelFacts, Reasoning, is_same};
use hangar_models::{Secret, Ways};
use hangar_spec::{ModelOptions, ModelSpec, ProviderSpec};

use super::checked::redactor;
use super::{HostSettings, ModelSource};
use crate::providers::{self, ProviderRequest, SelectedModel};
use crate::settings::Settings;

/// Name that leaves the choice of the model to the provider.
const AUTO: &str = "auto";

/// The model of a session that is resumed.
pub(super) struct Before {
    pub(super) model: String,
    /// Its provider, if that was noted.
    pub(super) provider: Option<ListedProvider>,
}

impl Before {
    /// Its name with that of its provider, so that no other provider is asked for it. Fails if its provider is not configured
    /// any more.
    fn qualified(&self, settings: &Settings) -> Result<String> {
        let Some(before) = self.provider.as_ref().filter(|_| !providers::is_scripted(&self.model)) else {
            return Ok(self.model.clone());
        };
        // A provider in the environment is asked for as explicitly as one can: it may be the same one at another port.
        if settings.var("COPILOT_PROVIDER_BASE_URL").is_some() {
            return Ok(self.model.clone());
        }
        let configured = providers::configured(settings)?;
        // The same base URL may be that of another account. It decides only where no name was noted.
        let is_own = |provider: &ProviderConfig| match &before.name {
            Some(name) => provider.name == *name,
            None => provider.base_url.to_string() == before.base_url,
        };
        if config::find(&configured, &self.model).is_some_and(|(found, _)| is_own(found)) {
            return Ok(self.model.clone());
        }
        let Some(own) = configured.iter().find(|provider| is_own(provider)) else {
            let name = before.name.as_ref().map_or_else(String::new, |name| format!(" `{name}`"));
            bail!(
                "this session has the model `{}` of the provider{name} at {}, which is not configured any more; add its \
                 [providers.{}] table to {}, or pass --model to go on with another model",
                self.model,
                before.base_url,
                before.name.as_deref().unwrap_or("NAME"),
                settings.config_path().display()
            );
        };
        Ok(format!("{}/{}", own.name, self.model))
    }

    /// Whether a client brings the provider of the model. Such a provider knows the model by its own name only.
    fn is_of_client(&self, options: &ModelOptions) -> bool {
        options.provider.is_some() || listed(options, &self.model).is_some()
    }
}

/// Chooses the model of a session; `before` is the model of a resumed one.
pub(super) fn choose(
    settings: &Settings,
    source: &ModelSource,
    options: &ModelOptions,
    before: Option<&Before>,
) -> Result<SelectedModel> {
    let before = before.filter(|_| source.keeps_model && options.name.is_none());
    let before = match before {
        Some(before) if before.is_of_client(options) => Some(before.model.clone()),
        // A client brings its own providers, and may bring them later.
        Some(before) if source.may_be_missing => {
            Some(before.qualified(settings).unwrap_or_else(|_| before.model.clone()))
        }
        Some(before) => Some(before.qualified(settings)?),
        None => None,
    };
    let name = options.name.as_deref().or(before.as_deref()).or(source.usual.as_deref());
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
pub(super) fn check_effort(chosen: &SelectedModel, effort: Option<&str>) -> Result<()> {
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

/// Notice to people if the model gets another effort than they asked for.
pub(super) fn effort_warning(chosen: &SelectedModel, effort: Option<&str>) -> Option<String> {
    let sent = chosen.facts.effort(effort);
    let wanted = effort.and_then(Level::parse)?;
    // An unknown model gets the effort unchanged, and one that takes none does not think.
    if chosen.facts.known && sent.reasoning == Reasoning::Unset && wanted != Level::None {
        return Some(format!(
            "`{}` takes no effort; it is asked without the effort {}",
            chosen.model,
            wanted.name()
        ));
    }
    let asked = sent.instead_of?;
    Some(format!("`{}` does not take the effort {}; it gets {}", chosen.model, asked.name(), sent.value()?))
}

/// The provider of the requested model, redacted.
pub(crate) fn provider(
    settings: &Settings,
    host: &HostSettings,
    options: &ModelOptions,
) -> Result<SwitchedModel> {
    check_switch(settings, options)?;
    let chosen = choose(settings, &host.models, options, None)?;
    let effort_notice = effort_warning(&chosen, options.effort.as_deref());
    let provider = redactor(settings, host, &chosen).provider(chosen.provider);
    Ok(SwitchedModel { provider, effort_notice })
}

/// Refuses a model that its provider does not list, with the nearest ones that it does, and with the other providers that have
/// it. Without a list, a name is refused where the families of the host's models are known. Of a provider that the client
/// brought every name may be right.
pub(crate) fn check_listed(settings: &Settings, options: &ModelOptions) -> Result<()> {
    check(settings, options, facts::is_missing)
}

/// As [`check_listed`], for a session that runs already: a model of GitHub that the account's list lacks is tried.
pub(crate) fn check_switch(settings: &Settings, options: &ModelOptions) -> Result<()> {
    check(settings, options, facts::is_unheard_of)
}

fn check(
    settings: &Settings,
    options: &ModelOptions,
    is_refused: fn(&ProviderConfig, &str) -> bool,
) -> Result<()> {
    let Some(name) = options.name.as_deref().filter(|name| *name != AUTO && !providers::is_scripted(name))
    else {
        return Ok(());
    };
    if options.provider.is_some() || options.models.is_some() {
        return Ok(());
    }
    let Ok(providers) = providers::configured(settings) else { return Ok(()) };
    providers::check_provider(&providers, name)?;
    let Some((provider, model)) = config::find(&providers, name) else { return Ok(()) };
    if !is_refused(provider, model) {
        return Ok(());
    }
    bail!("{}", missing_model(&providers, provider, model))
}

/// Error of a model that a provider does not have.
fn missing_model(providers: &[ProviderConfig], provider: &ProviderConfig, model: &str) -> String {
    let near = match facts::suggestions(provider, model).as_slice() {
        [] => String::new(),
        names => format!("; the nearest models are {}", names.join(", ")),
    };
    let others =
        providers.iter().filter(|other| other.name != provider.name && facts::is_served(other, model));
    let others: Vec<String> = others.map(|other| format!("`{}/{model}`", other.name)).collect();
    let elsewhere = match others.as_slice() {
        [] => String::new(),
        names => format!("; another provider has {}", names.join(", ")),
    };
    format!(
        "the provider `{}` has no model `{model}`{near}{elsewhere}; `hangar models` lists them",
        provider.name
    )
}

fn find(settings: &Settings, options: &ModelOptions, request: ProviderRequest<'_>) -> Result<SelectedModel> {
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
    chosen.provider = Arc::new(ScaledImages::new(chosen.provider, image_limits(&chosen.facts.images)));
    Ok(chosen)
}

/// Limits of images by what is known of the model. What is not known of it has limits that all models keep to.
pub(super) fn image_limits(facts: &ImageFacts) -> ImageLimits {
    let usual = ImageLimits::default();
    let max_edge = facts.max_edge.unwrap_or(usual.max_edge);
    let (many, max_edge_of_many) = match (facts.many, facts.many_edge) {
        (Some(many), Some(edge)) => (many as usize, edge),
        // Of a model whose sizes are known it would be known, too.
        _ if facts.max_edge.is_some() => (usize::MAX, max_edge),
        _ => (usual.many, usual.max_edge_of_many),
    };
    ImageLimits {
        max_edge: facts.hard_edge.map_or(max_edge, |hard| max_edge.min(hard)),
        max_bytes: facts
            .max_bytes
            .map_or(usual.max_bytes, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
        max_edge_of_many,
        many,
        max_images: facts.max_count.map_or(usual.max_images, |images| images as usize),
    }
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
) -> Result<Option<SelectedModel>> {
    if let Some(provider) = &options.provider {
        let model = model.or(provider.model_id.as_deref());
        let model = model.ok_or_else(|| anyhow!("a session with a provider of its own needs a model"))?;
        let config = learnt(settings, configure(provider, None, options)?)?;
        return Ok(Some(SelectedModel::of(config, model, ways_of(provider, ways))));
    }
    let Some(providers) = &options.providers else { return Ok(None) };
    let Some(model) = model else { return Ok(None) };
    let Some(listed) = listed(options, model) else { return Ok(None) };
    let named = |provider: &&ProviderSpec| provider.name.as_deref() == Some(listed.provider.as_str());
    let Some(provider) = providers.iter().find(named) else {
        bail!("the model `{model}` names the provider `{}`, which is not there", listed.provider);
    };
    let config = learnt(settings, configure(provider, Some(listed), options)?)?;
    Ok(Some(SelectedModel::of(config, model, ways_of(provider, ways))))
}

/// The model of this name among those that the client brought.
fn listed<'a>(options: &'a ModelOptions, name: &str) -> Option<&'a ModelSpec> {
    let is_it = |model: &&ModelSpec| model.id == name || name == format!("{}/{}", model.provider, model.id);
    options.models.iter().flatten().find(is_it)
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
    config.style = AnswerStyle { summary: options.summary, verbosity: options.verbosity };
    config.websockets = spec.transport.as_deref() == Some("websockets");
    Ok(config)
}

/// A placeholder whose calls fail with the error. A session without a provider can still be opened and configured.
fn missing(model: Option<&str>, error: &anyhow::Error) -> SelectedModel {
    SelectedModel {
        provider: Arc::new(NoProvider {
            kind: match error.is::<providers::NotSetUp>() {
                true => ModelErrorKind::AccessDenied,
                false => ModelErrorKind::Configuration,
            },
            message: format!("{error:#}"),
        }),
        model: model.unwrap_or_default().to_owned(),
        max_prompt_tokens: DEFAULT_PROMPT_TOKENS,
        facts: ModelFacts::default(),
        small: None,
        scripted: false,
        web_search: false,
        secrets: Vec::new(),
    }
}

/// Fails every call with a message.
struct NoProvider {
    kind: ModelErrorKind,
    message: String,
}

impl ModelProvider for NoProvider {
    fn stream(
        &self,
        _request: ModelRequest,
    ) -> futures_util::stream::BoxStream<'static, Result<ModelEvent, ModelError>> {
        let error = ModelError::new(self.kind, &*self.message);
        Box::pin(futures_util::stream::iter([Err(error)]))
    }

    fn facts(&self) -> ProviderFacts {
        ProviderFacts {
            endpoint: "/chat/completions",
            is_byok: false,
            base_url: String::new(),
            name: None,
            max_prompt_tokens: None,
            max_output_tokens: None,
            price: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use hangar_models::facts;

    use super::*;

    fn check(model: &str, expected: Expect) {
        let ImageLimits { max_edge, max_bytes, max_edge_of_many, many, max_images } =
            image_limits(&facts::of(model).images);
        let many =
            if many == usize::MAX { "-".to_owned() } else { format!("{max_edge_of_many} above {many}") };
        expected.assert_eq(&format!("{max_edge} px, {many}, {max_bytes} bytes, {max_images} images"));
    }

    #[test]
    fn images_are_as_large_as_each_model_takes_them() {
        check("claude-opus-5-5", expect!["2576 px, 2000 above 20, 5242880 bytes, 100 images"]);
        check("claude-sonnet-4-5", expect!["1568 px, 2000 above 20, 5242880 bytes, 100 images"]);
        check("gpt-5.6-sol", expect!["2048 px, -, 20971520 bytes, 500 images"]);
        check("gemini-3.8-flash", expect!["3072 px, -, 7000000 bytes, 900 images"]);
        check("nobody-knows-it", expect!["1568 px, 2000 above 20, 5242880 bytes, 100 images"]);
    }
}
