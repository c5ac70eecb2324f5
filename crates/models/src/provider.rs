//! A provider that is reached over HTTP.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;

use futures_core::stream::BoxStream;
use futures_util::StreamExt;
use hangar_agent::model::{
    Initiator, ModelError, ModelErrorKind, ModelEvent, ModelProvider, ModelRequest, ProviderFacts,
};
use hangar_protocol::data::ModelOrigin;
use reqwest::Url;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::Ways;
use crate::answer::{self, AnswerStream, Told};
use crate::config::{Auth, ProviderConfig, ProviderKind, TimeLimits, variables};
use crate::copilot::{self, Routes};
use crate::credential::{Credential, Credentials};
use crate::error;
use crate::facts::{self, ChatTools, Endpoint, HostFacts, LocalServer};
use crate::http::{self, Http};
use crate::learned::{IMAGES, Lessons, Sent};
use crate::local;
use crate::secret::{CredentialRedactor, Secret};
use crate::tokens::Counter;
use crate::wire::anthropic::binding::Binding;
use crate::wire::{Ask, Carrier, Wire, WireVariant, without_images};

const ANTHROPIC_VERSION: &str = "2023-06-01";
const BETA: &str = "anthropic-beta";
/// Headers that identify the calling agent.
const WHO: [&str; 3] = ["x-interaction-type", "x-agent-id", "x-parent-agent-id"];
/// Phrases of errors about an unknown model, where neither status nor code says so.
const UNKNOWN_MODEL: [&str; 8] = [
    "invalid model",
    "model not exist",
    "unknown model",
    "model does not exist",
    "not a valid model",
    "requested model is not supported",
    "model identifier is invalid",
    "no such model",
];
/// Adjustments of one request to refusals of the provider.
const ADJUSTMENTS: usize = 6;
/// Factor of the time limit for the first byte of an unstreamed answer, which is sent only when the answer is complete.
const PATIENCE_FOR_WHOLE: u32 = 2;

#[derive(Clone)]
pub(crate) struct Provider(Arc<Inner>);

struct Inner {
    config: ProviderConfig,
    http: Arc<Http>,
    credentials: Credentials,
    redactor: Mutex<CredentialRedactor>,
    /// For a provider with several wires: the wire of each model.
    routes: Option<Routes>,
    /// The configuration with the list of models that this provider fetched itself.
    informed: OnceLock<Box<ProviderConfig>>,
    host: HostFacts,
    lessons: Lessons,
    /// Fingerprint of the account, for items that are valid only there.
    account: String,
    /// The model that its facts describe, if it is not the configured one.
    about: Option<String>,
    /// The actual window of each model, where the server drops what does not fit.
    windows: tokio::sync::Mutex<BTreeMap<String, Option<u64>>>,
}

impl Provider {
    pub(crate) fn new(config: ProviderConfig) -> Self {
        let routes = Routes::of(&config);
        Self::with_routes(config, routes)
    }

    /// Creates a provider with its own transport and credential source.
    pub(crate) fn by(config: ProviderConfig, ways: Ways) -> Self {
        let routes = Routes::of(&config);
        Self::assemble(config, routes, ways)
    }

    /// Creates a provider whose catalogue is already known.
    pub(crate) fn with_routes(config: ProviderConfig, routes: Option<Routes>) -> Self {
        Self::assemble(config, routes, Ways::default())
    }

    fn assemble(config: ProviderConfig, routes: Option<Routes>, ways: Ways) -> Self {
        let mut redactor = CredentialRedactor::default();
        for (name, value) in &config.headers {
            if is_credential(name)
                && let Ok(value) = value.to_str()
            {
                redactor.add(Secret::new(value));
            }
        }
        // A vendor that documents how long its models may think is given that time, unless the configuration says
        // otherwise.
        let mut limits = config.limits;
        if let Some(seconds) = facts::host(&config).first_byte_seconds
            && limits.first_byte == TimeLimits::default().first_byte
        {
            limits.first_byte = Duration::from_secs(seconds);
        }
        Self(Arc::new(Inner {
            http: Arc::new(
                Http::new(config.base_url.clone(), config.proxy.clone(), limits)
                    .carried_by(ways.request_proxy),
            ),
            account: account(&config.auth, ways.tokens.is_some()),
            host: facts::host(&config),
            lessons: Lessons::remembered(config.learnt.memory.clone(), &config),
            credentials: Credentials::new(&config.name, config.auth.clone(), ways.tokens),
            redactor: Mutex::new(redactor),
            routes,
            informed: OnceLock::new(),
            about: None,
            windows: tokio::sync::Mutex::default(),
            config,
        }))
    }

    /// The same provider, with facts about this model.
    pub(crate) fn about(self, model: &str) -> Self {
        match Arc::try_unwrap(self.0) {
            Ok(inner) => Self(Arc::new(Inner { about: Some(model.to_owned()), ..inner })),
            // It is already shared, and keeps its facts.
            Err(shared) => Self(shared),
        }
    }

    pub(crate) fn config(&self) -> &ProviderConfig {
        &self.0.config
    }

    /// The configuration, with the list of models as far as it has been fetched.
    fn informed(&self) -> &ProviderConfig {
        self.0.informed.get().map_or(&self.0.config, |informed| informed)
    }

    /// Takes limits, prices and efforts from the list that was fetched for the endpoints. A list that the configuration
    /// came with is as good.
    fn inform(&self, routes: &Routes) {
        let Inner { config, informed, .. } = &*self.0;
        if config.learnt.listed.is_none()
            && informed.get().is_none()
            && let Some(models) = routes.models().filter(|models| !models.is_empty())
        {
            let mut known = config.clone();
            known.learnt.listed = Some(models.into());
            let _ = informed.set(Box::new(known));
        }
    }

    /// Requests a document, such as the list of models.
    pub(crate) async fn get(&self, url: Url) -> Result<String, ModelError> {
        let result = async {
            let mut headers = self.headers().await?;
            headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
            let wait = self.0.http.limits().stall;
            let mut response = self.0.http.get(url, headers, wait).await?;
            self.0.http.read_body(&mut response, http::BODY, wait).await
        };
        self.clean(result.await).await
    }

    /// Requests a path of the server behind the API, outside `/v1`.
    pub(crate) async fn ask_server(&self, path: &[&str], body: Option<Value>) -> Result<Value, ModelError> {
        let base = &self.0.config.base_url;
        let api = base.segments().filter(|segment| *segment != "v1").count();
        let url = base.join_behind(api, path);
        let result = async {
            let mut headers = self.headers().await?;
            headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
            let wait = self.0.http.limits().first_byte;
            let mut response = match body {
                None => self.0.http.get(url, headers, wait).await?,
                Some(body) => {
                    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                    self.0.http.post(url, headers, body.to_string().into_bytes(), wait).await?
                }
            };
            self.0.http.read_body(&mut response, http::BODY, wait).await
        };
        let text = self.clean(result.await).await?;
        serde_json::from_str(&text)
            .map_err(|error| error::protocol(format!("the model server's answer is not JSON: {error}")))
    }

    /// Refuses a request that a server would truncate silently because it exceeds the model's window.
    async fn check_window(&self, request: &ModelRequest) -> Result<(), ModelError> {
        if !facts::host(&self.0.config).drops_overflow {
            return Ok(());
        }
        let Some(window) = self.window(&request.model).await else { return Ok(()) };
        let tokens = Counter::new(&request.model).request(request);
        if tokens <= window {
            return Ok(());
        }
        Err(error::bare(
            ModelErrorKind::ContextLength,
            format!(
                "the request has about {tokens} tokens and `{}` has a window of {window}, of which the server would \
                 silently drop the beginning; OLLAMA_CONTEXT_LENGTH sets a larger one",
                request.model
            ),
        ))
    }

    /// The window of a model in Ollama. A model that is not loaded is loaded, as the request would do. A server that
    /// does not answer is not asked again.
    async fn window(&self, model: &str) -> Option<u64> {
        let mut windows = self.0.windows.lock().await;
        if let Some(window) = windows.get(model) {
            return *window;
        }
        let loaded = local::window(self, LocalServer::Ollama, model).await;
        let window = match loaded {
            Ok(None) => local::load(self, model).await.ok().flatten(),
            Ok(window) => window,
            Err(_) => None,
        };
        windows.insert(model.to_owned(), window);
        window
    }

    /// Adds the names of known models to an error about an unknown one.
    fn suggest(&self, model: &str, mut error: ModelError) -> ModelError {
        let said = error.message.to_lowercase();
        let code = error.code.as_deref();
        let unknown = matches!(code, Some("model_not_found" | "model_not_supported" | "DeploymentNotFound"))
            || (error.status == Some(404) && said.contains("model") && !said.contains("only supported in"))
            || UNKNOWN_MODEL.iter().any(|phrase| said.contains(phrase));
        if error.kind == ModelErrorKind::Refused && unknown {
            let nearest = facts::suggestions(self.informed(), model);
            if !nearest.is_empty() {
                error.message = format!("{}; the nearest models are {}", error.message, nearest.join(", "));
            }
        }
        error
    }

    /// Starts an answer. A refusal that names an adjustment is followed by a request with it, and reported before the
    /// answer.
    async fn open(&self, mut request: ModelRequest) -> Result<AnswerStream, ModelError> {
        request.model = self.0.config.bare(&request.model).to_owned();
        // A caller that wants an unstreamed answer waits for its end in any case.
        request.stream |= self.0.host.streams_only;
        self.check_window(&request).await?;
        let mut told = Vec::new();
        let mut first = None;
        loop {
            let wire = self.wire(&request).await?;
            let mut sent = Sent { wire, max_output: None, unreasoned: false };
            let error = match self.ask(&request, &mut sent).await {
                Ok(answer) => return Ok(answer.preceded_by(told)),
                Err(error) => error,
            };
            // The endpoint that a refusal named does not exist: its other advice is followed, or else the refusal itself is the
            // better error.
            let first = first.get_or_insert((wire, error.clone()));
            if first.0 != wire && error.status == Some(404) {
                self.0.lessons.forget_wire(&request.model);
                let advice = self.0.lessons.go_without_reasoning(&request.model, &first.1);
                told = vec![advice.ok_or_else(|| first.1.clone())?];
                continue;
            }
            // Each adjustment is learned only once; the bound is for a server that finds ever new ones.
            match self.0.lessons.learn(&request.model, &error, sent) {
                Some(lesson) if told.len() < ADJUSTMENTS => told.push(lesson),
                Some(_) | None => return Err(error),
            }
        }
    }

    /// Sends a request, and notes in `sent` what decides about the meaning of a refusal.
    async fn ask(&self, request: &ModelRequest, sent: &mut Sent) -> Result<AnswerStream, ModelError> {
        let inner = &*self.0;
        let wire = sent.wire;
        let carrier = match self.speaks_on_socket(wire, &request.model) {
            true => Carrier::Socket,
            false => Carrier::Http,
        };
        let config = self.informed();
        let model = facts::wire_name(config, &request.model);
        let origin = ModelOrigin {
            provider: inner.config.base_url.to_string(),
            wire: wire.endpoint().to_owned(),
            model: model.clone(),
            account: inner.account.clone(),
        };
        let facts = facts::resolve(config, &request.model).facts;
        let learned = inner.lessons.of(&request.model);
        let is_blind = facts.vision == Some(false) || learned.has_refused(IMAGES);
        let request = &*if is_blind { Cow::Owned(without_images(request)) } else { Cow::Borrowed(request) };
        let search = facts::web_search(config, &request.model);
        let configured = inner.config.max_output_tokens.filter(|_| inner.config.is_about(&request.model));
        let wanted = request.max_output_tokens.or(configured);
        let mut ask = Ask {
            request,
            model: &model,
            facts: &facts,
            host: &inner.host,
            origin: &origin,
            learned: &learned,
            max_output_tokens: wanted.map(|limit| limit.min(learned.max_output().unwrap_or(limit))),
            dialect: if inner.routes.is_some() { WireVariant::Copilot } else { WireVariant::Vendor },
            carrier,
            citations: inner.config.citations,
            style: inner.config.style,
            search: search.as_ref(),
            binding: Binding::default(),
        };
        if wire == Wire::Messages {
            ask.binding = Binding::of(&ask);
        }
        let unreasoned = if wire == Wire::Chat { ask.unreasoned() } else { None };
        sent.unreasoned = wire == Wire::Chat && ask.refuses_tools_with_effort();
        sent.max_output = wire.max_output(&ask);
        let notices = ask.binding.notice().into_iter().chain(unreasoned).collect();
        let url = url(&inner.config, wire, ask.model);
        let turn = inner.http.turn().await;
        let headers = self.request_headers(&ask, wire).await?;
        let (told, patience) =
            if request.stream { (Told::InPieces, 1) } else { (Told::AtOnce, PATIENCE_FOR_WHOLE) };
        let limit = inner.http.limits().first_byte * patience;
        // Only the serialised text is kept during the call: the structures that it is made from are several times as
        // large.
        let body = wire.body(&ask);
        let response = match carrier {
            Carrier::Socket => inner.http.converse(url, headers, body, limit).await?,
            Carrier::Http => inner.http.post(url, headers, body, limit).await?,
        };
        let binding = std::mem::take(&mut ask.binding);
        let decoder = wire.decoder(request, origin);
        let answer = AnswerStream::new(Arc::clone(&inner.http), response, decoder, told, turn);
        Ok(answer.bound_to(binding.prefix).preceded_by(notices))
    }

    /// The headers of a request to a model.
    async fn request_headers(&self, ask: &Ask<'_>, wire: Wire) -> Result<HeaderMap, ModelError> {
        let request = ask.request;
        let mut headers = self.headers().await?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let accept = if request.stream { "text/event-stream" } else { "application/json" };
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        let is_copilot = ask.dialect == WireVariant::Copilot;
        // Only GitHub, and a client that makes the requests itself, are told which agent asks.
        let is_told = is_copilot || self.0.http.is_carried();
        if is_told {
            add_initiator(&mut headers, request.initiator, is_copilot);
        }
        // A configured header goes before it.
        if let Some(name) = &ask.host.session_header
            && let (Ok(name), Ok(id)) =
                (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(&request.session_id))
        {
            headers.entry(name).or_insert(id);
        }
        let wanted = request.headers.iter().filter(|(name, _)| is_told || !WHO.contains(&name.as_str()));
        for (name, value) in wanted {
            // A header that cannot be sent is left out: its sender cannot be told any more.
            if let (Ok(name), Ok(value)) =
                (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value))
            {
                headers.insert(name, value);
            }
        }
        if is_copilot {
            copilot::add_request_headers(&mut headers, request);
        }
        if wire == Wire::Messages {
            headers.entry("anthropic-version").or_insert(HeaderValue::from_static(ANTHROPIC_VERSION));
            for beta in ask.betas() {
                add_beta(&mut headers, beta);
            }
        }
        Ok(headers)
    }

    /// The wire of the request's model.
    async fn wire(&self, request: &ModelRequest) -> Result<Wire, ModelError> {
        let model = request.model.as_str();
        if let Some(wire) = self.0.lessons.of(model).wire() {
            return Ok(wire);
        }
        let wire = match &self.0.routes {
            Some(routes) => {
                let wire = routes.wire(self, model).await?;
                self.inform(routes);
                wire
            }
            None => facts::endpoint(&self.0.config, model).into(),
        };
        Ok(if wire == Wire::Chat && self.needs_responses(request) { Wire::Responses } else { wire })
    }

    /// Whether the host's chat completions refuse the tools of the request, whatever the effort. A configured wire takes
    /// precedence: if the host names the other one in its refusal, that is learned as for any model.
    fn needs_responses(&self, request: &ModelRequest) -> bool {
        let Inner { config, host, .. } = &*self.0;
        !config.kind.has_wire()
            && host.reasons_without_tools
            && host.endpoints.contains(&Endpoint::Responses)
            && !request.tools.is_empty()
            && facts::of(&request.model).chat_tools == ChatTools::Never
    }

    /// Whether a call uses a WebSocket: it is requested, and both the transport and the model support it.
    fn speaks_on_socket(&self, wire: Wire, model: &str) -> bool {
        let Inner { config, http, routes, .. } = &*self.0;
        config.websockets
            && wire == Wire::Responses
            && http.is_carried()
            && routes.as_ref().is_none_or(|routes| routes.listens_on_socket(model))
    }

    /// The headers of any request: credential, custom ones, and those of GitHub's API.
    async fn headers(&self) -> Result<HeaderMap, ModelError> {
        let inner = &*self.0;
        let mut headers = HeaderMap::new();
        if inner.config.kind == ProviderKind::Copilot {
            copilot::add_headers(&mut headers);
        }
        let credential = inner.credentials.current().await?;
        let credential = match credential {
            Credential::None => None,
            Credential::Key(key) => Some(match inner.config.kind {
                ProviderKind::Azure { .. } => (HeaderName::from_static("api-key"), key.clone(), key),
                ProviderKind::Anthropic if !facts::host(&inner.config).bearer => {
                    (HeaderName::from_static("x-api-key"), key.clone(), key)
                }
                ProviderKind::Anthropic | ProviderKind::OpenAi { .. } | ProviderKind::Copilot => {
                    (AUTHORIZATION, bearer(&key), key)
                }
            }),
            Credential::Bearer(token) => Some((AUTHORIZATION, bearer(&token), token)),
        };
        let mut custom = inner.config.headers.clone();
        if let Some((name, value, secret)) = credential {
            inner.redactor.lock().add(secret);
            let mut value = HeaderValue::from_str(value.reveal()).map_err(|_| {
                let name = &inner.config.name;
                let message = format!("the credential of provider `{name}` cannot be sent in a header");
                ModelError::new(ModelErrorKind::Configuration, message)
            })?;
            value.set_sensitive(true);
            // A printed key is always newer than a configured header.
            if inner.credentials.is_command() {
                custom.remove(&name);
            }
            headers.insert(name, value);
        }
        headers.extend(custom);
        Ok(headers)
    }

    /// Redacts an error. After an authentication error, the next call asks for a new credential.
    async fn clean<T>(&self, result: Result<T, ModelError>) -> Result<T, ModelError> {
        let Err(error) = result else { return result };
        if matches!(error.kind, ModelErrorKind::Authentication | ModelErrorKind::AccessDenied) {
            self.0.credentials.refused().await;
        }
        Err(self.redact(error))
    }

    fn redact(&self, error: ModelError) -> ModelError {
        self.0.redactor.lock().clean(error)
    }
}

impl ModelProvider for Provider {
    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        let opening = self.clone();
        let reading = self.clone();
        let open = Box::pin(async move {
            let model = opening.config().bare(&request.model).to_owned();
            let opened = opening.open(request).await.map_err(|error| opening.suggest(&model, error));
            opening.clean(opened).await
        });
        Box::pin(answer::events(open).map(move |event| event.map_err(|error| reading.redact(error))))
    }

    fn facts(&self) -> ProviderFacts {
        let config = &self.0.config;
        let model = self.0.about.as_ref().or(config.model.as_ref()).map(|model| config.bare(model));
        let wire = match &self.0.routes {
            Some(routes) => model.and_then(|model| routes.known_wire(model)).unwrap_or_else(|| routes.last()),
            None => facts::endpoint(config, model.unwrap_or_default()).into(),
        };
        let resolved = model.map(|model| facts::resolve(self.informed(), model));
        ProviderFacts {
            endpoint: wire.endpoint(),
            is_byok: config.kind != ProviderKind::Copilot,
            base_url: config.base_url.to_string(),
            // The provider of the environment is whatever the environment says now.
            name: Some(config.name.clone()).filter(|name| name != variables::NAME),
            max_prompt_tokens: resolved.as_ref().map(|resolved| resolved.prompt_limit),
            max_output_tokens: resolved.as_ref().and_then(|resolved| resolved.facts.answer_limit()),
            price: resolved.and_then(|resolved| resolved.facts.price),
        }
    }
}

/// Fingerprint of the account that a credential belongs to. It distinguishes accounts without revealing the credential.
pub(crate) fn account(auth: &Auth, asks_client: bool) -> String {
    /// Bytes of the digest that are kept.
    const LENGTH: usize = 6;
    let (kind, text) = match auth {
        _ if asks_client => ("client", ""),
        Auth::None => return String::new(),
        Auth::ApiKey(secret) | Auth::Bearer(secret) => ("key", secret.reveal()),
        // The printed key changes by the hour; its account does not.
        Auth::Command(command) => ("command", command.as_str()),
    };
    let digest = Sha256::digest(format!("hangar account {kind} {text}").as_bytes());
    digest.iter().take(LENGTH).map(|byte| format!("{byte:02x}")).collect()
}

fn add_initiator(headers: &mut HeaderMap, initiator: Initiator, is_copilot: bool) {
    let by = match initiator {
        Initiator::User => Some("user"),
        Initiator::Agent | Initiator::Subagent | Initiator::Compaction | Initiator::Background => {
            Some("agent")
        }
        Initiator::Aside => None,
    };
    let interaction = match initiator {
        Initiator::User => Some("conversation-user"),
        Initiator::Agent if is_copilot => Some("conversation-agent"),
        Initiator::Subagent => Some("conversation-subagent"),
        Initiator::Compaction => Some("conversation-compaction"),
        Initiator::Agent | Initiator::Aside | Initiator::Background => None,
    };
    for (name, value) in [("x-initiator", by), ("x-interaction-type", interaction)] {
        if let Some(value) = value {
            headers.insert(name, HeaderValue::from_static(value));
        }
    }
}

/// Adds a name to the list of betas, which a custom header may already have.
fn add_beta(headers: &mut HeaderMap, beta: &'static str) {
    let given = headers.get(BETA).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let listed = given.split(',').any(|name| name.trim() == beta);
    let list = if given.is_empty() { beta.to_owned() } else { format!("{given},{beta}") };
    if !listed && let Ok(list) = HeaderValue::from_str(&list) {
        headers.insert(BETA, list);
    }
}

/// URL of a request.
fn url(config: &ProviderConfig, wire: Wire, model: &str) -> Url {
    let path: &[&str] = match wire {
        Wire::Chat => &["chat", "completions"],
        Wire::Responses => &["responses"],
        Wire::Messages => &["v1", "messages"],
    };
    match &config.kind {
        ProviderKind::Azure { api_version, .. } => {
            azure_url(config, api_version.as_deref(), wire, path, model)
        }
        // A URL that already has the version is accepted too.
        _ if wire == Wire::Messages && config.base_url.segments().last() == Some("v1") => {
            config.base_url.join(&path[1..])
        }
        _ => config.base_url.join(path),
    }
}

/// With an API version, chat completions have a path for each deployment; without one there is a single path.
fn azure_url(config: &ProviderConfig, version: Option<&str>, wire: Wire, path: &[&str], model: &str) -> Url {
    let given: Vec<&str> = config.base_url.segments().collect();
    // The URL of a project has a path of its own before the API's.
    let api = given.iter().position(|segment| *segment == "openai").unwrap_or(given.len());
    let (kept, between): (usize, &[&str]) = match (version, wire, &given[api..]) {
        (Some(_), Wire::Chat, [_, "deployments", _, ..]) => (api + 3, &[]),
        (Some(_), Wire::Chat, _) => (api, &["openai", "deployments", model]),
        (Some(_), Wire::Responses | Wire::Messages, _) => (api, &["openai"]),
        (None, _, _) => (api, &["openai", "v1"]),
    };
    let mut url = config.base_url.join_behind(kept, &[between, path].concat());
    if let Some(version) = version {
        url.query_pairs_mut().append_pair("api-version", version);
    }
    url
}

/// URL of a provider's list of models.
pub(crate) fn models_url(config: &ProviderConfig) -> Url {
    match &config.kind {
        ProviderKind::OpenAi { .. } | ProviderKind::Copilot => config.base_url.join(&["models"]),
        ProviderKind::Anthropic => {
            let path: &[&str] =
                if config.base_url.segments().last() == Some("v1") { &["models"] } else { &["v1", "models"] };
            let mut url = config.base_url.join(path);
            url.query_pairs_mut().append_pair("limit", "1000");
            url
        }
        ProviderKind::Azure { api_version, .. } => {
            azure_url(config, api_version.as_deref(), Wire::Responses, &["models"], "")
        }
    }
}

fn bearer(token: &Secret) -> Secret {
    Secret::new(format!("Bearer {}", token.reveal()))
}

/// Whether a custom header's value should be redacted: most are names and versions.
pub(crate) fn is_credential(name: &HeaderName) -> bool {
    ["key", "token", "auth", "secret", "cookie", "password"].iter().any(|part| name.as_str().contains(part))
}

#[cfg(test)]
mod tests;
