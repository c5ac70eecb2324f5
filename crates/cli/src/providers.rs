//! Choice of the model: from the flags, the environment, `config.toml` and the GitHub login, in that order.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail};
use hangar_agent::agents::config::{AgentSetting, AgentSettings};
use hangar_agent::model::ModelProvider;
use hangar_models::base_url::BaseUrl;
use hangar_models::catalogue::Cache;
use hangar_models::config::table::KeySources;
use hangar_models::config::{self, Auth, ProviderConfig, ProviderKind};
use hangar_models::facts::{self, Catalogue, DEFAULT_PROMPT_TOKENS, FactSource, ModelFacts};
use hangar_models::scripted::{RecordedNames, Recorder, Replay, Script, ScriptedModel};
use hangar_models::{Secret, Ways};
use hangar_process::credentials::Child;

use crate::config::located;
use crate::credentials;
use crate::runtimes::named::AgentTable;
use crate::settings::{GitHubLogin, LoginPlaces, LoginSource, Settings};

/// Name of the scripted model. It is used only if this name is given.
pub(crate) const SCRIPTED: &str = "scripted";
/// Name of the provider that the GitHub login makes.
pub(crate) const GITHUB: &str = "github";
pub(crate) const COPILOT_URL: &str = "https://api.githubcopilot.com";
/// Variables that may hold a GitHub login, in the order of Copilot CLI.
pub(crate) const GITHUB_TOKENS: [&str; 3] = ["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"];
const GH_PATIENCE: Duration = Duration::from_secs(2);
/// Maximum age of a cached model list that is trusted to be complete.
const LIST_AGE: Duration = Duration::from_secs(24 * 3600);
/// Time that a provider has to list its models before a session begins without the list.
const LIST_PATIENCE: Duration = Duration::from_secs(3);
/// The user's own catalogue of models, below the home folder.
const CATALOGUE: &str = "models.json";
/// Bytes of the largest catalogue that is read. That of models.dev has a tenth of it.
const CATALOGUE_BYTES: u64 = 64 << 20;
/// Bytes of the largest key that is read from a file.
const KEY_BYTES: u64 = 16 << 10;

pub(crate) struct SelectedModel {
    pub(crate) provider: Arc<dyn ModelProvider>,
    /// The model's own name, without its provider's.
    pub(crate) model: String,
    pub(crate) max_prompt_tokens: u64,
    /// Known facts about the model.
    pub(crate) facts: ModelFacts,
    /// A small model of the same provider, if there is one.
    pub(crate) small: Option<String>,
    pub(crate) scripted: bool,
    /// Whether the provider searches the web for the model.
    pub(crate) web_search: bool,
    /// Credentials for the provider, which are redacted everywhere else.
    pub(crate) secrets: Vec<String>,
}

/// The user's request, before anything is looked up.
#[derive(Default, Clone)]
pub(crate) struct ProviderRequest<'a> {
    /// Connection of the provider, if it is not the usual one.
    pub(crate) ways: Ways,
    pub(crate) model: Option<&'a str>,
    pub(crate) record: Option<&'a Path>,
    pub(crate) replay: Option<&'a Path>,
}

/// Settings of the file. Its providers are read by `hangar_models`.
#[derive(Debug, Default, serde::Deserialize)]
pub(crate) struct FilePreferences {
    model: Option<String>,
    /// Model of explore and task agents.
    pub(crate) small_model: Option<String>,
    #[serde(default)]
    models: ModelPreferences,
    /// The tables `[agents.NAME]`.
    #[serde(default)]
    agents: BTreeMap<String, AgentTable>,
}

impl FilePreferences {
    /// Settings of sub-agents.
    pub(crate) fn agent_settings(&self) -> AgentSettings {
        let setting = |(name, agent): (&String, &AgentTable)| {
            (
                name.clone(),
                AgentSetting { model: agent.turn.model.clone(), effort: agent.turn.effort.clone() },
            )
        };
        // A named agent is no sub-agent: its model is one of its runtime.
        let subs = || self.agents.iter().filter(|(_, agent)| agent.runtime.is_none());
        let disabled = subs().filter(|(_, agent)| agent.disabled).map(|(name, _)| name.clone());
        AgentSettings {
            agents: subs().map(setting).collect(),
            disabled: disabled.collect(),
            ..AgentSettings::default()
        }
    }
}

/// The table `[models]`.
#[derive(Debug, Default, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ModelPreferences {
    /// Whether prompts may be so long that a provider charges more for them.
    use_full_window: bool,
}

pub(crate) fn choose(settings: &Settings, request: ProviderRequest<'_>) -> Result<SelectedModel> {
    let preferred = preferred(settings, request.model)?;
    let mut chosen = match preferred.as_deref() {
        Some(model) if is_scripted(model) => scripted(settings)?,
        preferred => real(settings, preferred, request.replay.is_some(), request.ways)?,
    };
    if let Some(path) = request.replay {
        let replay = Replay::open(path, RecordedNames::default())
            .with_context(|| format!("cannot replay {}", path.display()))?;
        chosen.provider = Arc::new(replay);
    }
    if let Some(path) = request.record {
        let recorder = Recorder::open(chosen.provider, path, RecordedNames::default())
            .with_context(|| format!("cannot record to {}", path.display()))?;
        chosen.provider = Arc::new(recorder);
    }
    Ok(chosen)
}

pub(crate) fn preferred(settings: &Settings, wanted: Option<&str>) -> Result<Option<String>> {
    Ok(match wanted.or(settings.var("COPILOT_MODEL")) {
        Some(model) => Some(model.to_owned()),
        None => preferences(settings)?
            .model
            .or(settings.var("COPILOT_PROVIDER_MODEL_ID").map(str::to_owned))
            .or_else(|| hangar_custom::settings::Preferences::of_user(&settings.home).model),
    })
}

/// Whether a session can be opened with a model: one is chosen, and a provider is configured. A configuration that cannot be used
/// counts as one, since opening the session tells why.
pub(crate) fn is_ready(settings: &Settings, wanted: Option<&str>) -> bool {
    let Ok(model) = preferred(settings, wanted) else { return true };
    if model.as_deref().is_some_and(is_scripted) {
        return true;
    }
    let Ok(providers) = configured(settings) else { return true };
    !providers.is_empty() && model.or_else(|| default_model(&providers)).is_some()
}

/// Whether the scripted model is the default.
pub(crate) fn prefers_script(settings: &Settings) -> bool {
    preferred(settings, None).is_ok_and(|model| model.is_some_and(|model| is_scripted(&model)))
}

pub(crate) fn is_scripted(model: &str) -> bool {
    model == SCRIPTED || model.strip_prefix(SCRIPTED).is_some_and(|rest| rest.starts_with('/'))
}

fn scripted(settings: &Settings) -> Result<SelectedModel> {
    let script = match settings.var("HANGAR_SCRIPT") {
        None => Script::default(),
        Some(path) => read_script(Path::new(path))?,
    };
    Ok(SelectedModel {
        provider: Arc::new(ScriptedModel::new(script, std::process::id())),
        model: SCRIPTED.to_owned(),
        max_prompt_tokens: DEFAULT_PROMPT_TOKENS,
        facts: ModelFacts::default(),
        small: None,
        scripted: true,
        web_search: false,
        secrets: Vec::new(),
    })
}

pub(crate) fn read_script(path: &Path) -> Result<Script> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the script {}", path.display()))?;
    Script::parse(&text).with_context(|| format!("{} is not a script", path.display()))
}

/// No provider or no model is configured. Programs get the error of a missing login.
#[derive(Debug)]
pub(crate) struct NotSetUp(String);

impl fmt::Display for NotSetUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotSetUp {}

fn real(settings: &Settings, model: Option<&str>, replaying: bool, ways: Ways) -> Result<SelectedModel> {
    let providers = configured(settings)?;
    if providers.is_empty() {
        if replaying {
            return scripted(settings);
        }
        bail!(NotSetUp(format!(
            "no model provider is configured: `{}` in a terminal sets one up; or set COPILOT_PROVIDER_BASE_URL and \
             COPILOT_MODEL, add a [providers.NAME] table to {}, or log in to GitHub (GH_TOKEN); `--model {SCRIPTED}` \
             rehearses without one",
            settings.program,
            settings.config_path().display()
        )));
    }
    let Some(model) = model.map(str::to_owned).or_else(|| default_model(&providers)) else {
        bail!(NotSetUp(format!(
            "no model is chosen: set COPILOT_MODEL, pass --model, or set `model` in {}",
            settings.config_path().display()
        )));
    };
    check_provider(&providers, &model)?;
    let Some((provider, name)) = config::find(&providers, &model) else {
        bail!("no provider offers the model `{model}`");
    };
    let mut provider = provider.clone();
    if ways.request_proxy.is_none() && ways.tokens.is_none() && !replaying {
        ask_for_list(settings, &mut provider, name);
    }
    // Its name includes the provider, so that no other provider is asked for it.
    let small = facts::small_model(&provider, name).map(|small| format!("{}/{small}", provider.name));
    Ok(SelectedModel { small, ..SelectedModel::of(provider, name, ways) })
}

/// Asks a provider for its models where nothing else tells their limits, and keeps the list for the next sessions. A provider that
/// has none, or does not answer soon, is not asked again by this process.
fn ask_for_list(settings: &Settings, provider: &mut ProviderConfig, model: &str) {
    static SILENT: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let url = provider.base_url.to_string();
    if !facts::needs_list(provider, model) || SILENT.lock().is_ok_and(|silent| silent.contains(&url)) {
        return;
    }
    let cache = Cache { dir: settings.home.join("cache"), ttl: LIST_AGE };
    let asked = aside(async {
        tokio::time::timeout(LIST_PATIENCE, cache.refresh(provider, SystemTime::now())).await.ok()?.ok()
    });
    match asked {
        Some(listed) => provider.learnt.listed = Some(listed.into()),
        None => drop(SILENT.lock().map(|mut silent| silent.insert(url))),
    }
}

/// Waits for an answer on a thread of its own, because sessions are composed inside and outside of async runtimes.
fn aside<T: Send>(question: impl Future<Output = Option<T>> + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let ask = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
            runtime.block_on(question)
        };
        scope.spawn(ask).join().ok().flatten()
    })
}

/// Refuses a model whose name has an unknown provider in front.
pub(crate) fn check_provider(providers: &[ProviderConfig], model: &str) -> Result<()> {
    let Some(name) = config::unknown_provider(providers, model) else { return Ok(()) };
    let known: Vec<&str> = providers.iter().map(|provider| provider.name.as_str()).collect();
    bail!(
        "no provider is called `{name}`; the configured ones are {}, and `{}/{model}` asks the first one for a model of that name",
        known.join(", "),
        known.first().copied().unwrap_or_default()
    )
}

impl SelectedModel {
    /// Model of a provider, with its limits there.
    pub(crate) fn of(mut config: ProviderConfig, model: &str, ways: Ways) -> Self {
        if ways.request_proxy.is_none() {
            ask_local_server(&mut config, model);
        }
        let resolved = facts::resolve(&config, model);
        Self {
            secrets: config.secrets(),
            model: model.to_owned(),
            max_prompt_tokens: resolved.prompt_limit,
            facts: resolved.facts,
            small: None,
            web_search: searches(&config, model),
            provider: hangar_models::build_for(config, model, ways),
            scripted: false,
        }
    }
}

/// Whether the provider searches the web for a model, at the API that it is asked by.
fn searches(config: &ProviderConfig, model: &str) -> bool {
    let endpoint = facts::endpoint(config, config.bare(model));
    facts::web_search(config, model).is_some_and(|search| search.endpoint == endpoint)
}

/// Asks a server on this machine for the real window of the model, which no table can know. Other providers are not asked.
fn ask_local_server(config: &mut ProviderConfig, model: &str) {
    if facts::host(config).local.is_none() || config.max_prompt_tokens.is_some() {
        return;
    }
    if let Some(info) = aside(hangar_models::local::look(config, model)) {
        let others = config.learnt.listed.iter().flat_map(|list| list.iter());
        let others: Vec<_> = others.filter(|other| other.id != info.id).cloned().collect();
        config.learnt.listed = Some(std::iter::once(info).chain(others).collect());
    }
}

/// Prompt limit of a model, from whichever of these providers offers it.
pub(crate) fn prompt_limit(providers: &[ProviderConfig], model: &str) -> u64 {
    match config::find(providers, model) {
        Some((provider, name)) => facts::resolve(provider, name).prompt_limit,
        None => facts::of(model).prompt_limit().unwrap_or(DEFAULT_PROMPT_TOKENS),
    }
}

fn default_model(providers: &[ProviderConfig]) -> Option<String> {
    let first = providers.first()?;
    match (&first.model, &first.kind) {
        (Some(model), _) => Some(model.clone()),
        (None, ProviderKind::Copilot) => Some("claude-sonnet-4.5".to_owned()),
        (None, _) => None,
    }
}

/// Keys in the environment, and in files whose paths are relative to the home folder.
pub(crate) struct HomeKeys<'a>(pub(crate) &'a Settings);

impl KeySources for HomeKeys<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        self.0.var(name).map(str::to_owned)
    }

    fn file(&self, path: &str) -> std::io::Result<String> {
        let user = self.0.var("HOME").map(Path::new);
        let path = match (path.strip_prefix("~/"), user) {
            (Some(rest), Some(user)) => user.join(rest),
            _ => self.0.home.join(path),
        };
        hangar_disk::read_text(&path, KEY_BYTES)
    }
}

/// Checks the providers of a text of `config.toml`.
pub(crate) fn check(settings: &Settings, text: &str) -> Result<()> {
    Ok(config::table::providers(text, HomeKeys(settings)).map(drop)?)
}

/// Every provider that could be asked, the preferred one first.
pub(crate) fn configured(settings: &Settings) -> Result<Vec<ProviderConfig>> {
    let lookup = |name: &str| settings.var(name).map(str::to_owned);
    let mut providers: Vec<ProviderConfig> = config::variables::provider(lookup)?.into_iter().collect();
    let file = settings.config_text()?;
    let listed = config::table::providers(&file, HomeKeys(settings))
        .map_err(|error| located(settings, &file, &error.into()))?;
    providers.extend(listed);
    // `gh` is asked only if there is no other login: it costs a process.
    if !settings.flag("COPILOT_OFFLINE")
        && let Some(token) = github_login(settings, providers.is_empty()).map(|login| login.token)
    {
        let url = settings.var("COPILOT_API_URL").unwrap_or(COPILOT_URL);
        let url = BaseUrl::parse(url).with_context(|| format!("COPILOT_API_URL is `{url}`"))?;
        let mut github = ProviderConfig::new(GITHUB, ProviderKind::Copilot, url);
        github.auth = Auth::Bearer(Secret::new(token));
        github.websockets = settings.features()?.is_on("websockets");
        providers.push(github);
    }
    learn(settings, &mut providers)?;
    Ok(providers)
}

/// Adds the facts about models that this machine has: the last lists of the providers, and the user's catalogue.
pub(crate) fn learn(settings: &Settings, providers: &mut [ProviderConfig]) -> Result<()> {
    if providers.is_empty() {
        return Ok(());
    }
    let full_window = preferences(settings)?.models.use_full_window;
    let user = catalogue(settings)?.map(Arc::new);
    let cache = Cache { dir: settings.home.join("cache"), ttl: LIST_AGE };
    let now = SystemTime::now();
    for provider in providers {
        provider.full_window = full_window;
        provider.learnt.listed = cache.read(provider, now).map(Into::into);
        provider.learnt.user.clone_from(&user);
        provider.learnt.memory = Some(cache.dir.clone());
    }
    Ok(())
}

/// The user's own catalogue, if there is one.
pub(crate) fn catalogue(settings: &Settings) -> Result<Option<Catalogue>> {
    let path = settings.home.join(CATALOGUE);
    let meta = match std::fs::metadata(&path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    if meta.len() > CATALOGUE_BYTES {
        bail!("{} is larger than {} MB", path.display(), CATALOGUE_BYTES >> 20);
    }
    let date = meta.modified().ok().and_then(|time| jiff::Timestamp::try_from(time).ok());
    let date = date.map_or_else(String::new, |time| time.strftime("%Y-%m-%d").to_string());
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Catalogue::parse(&text, date).map(Some).with_context(|| format!("cannot use {}", path.display()))
}

/// Small model for sub-agents, with its source.
pub(crate) struct SmallModel {
    /// `PROVIDER/MODEL`, or the configured spelling.
    pub(crate) id: String,
    pub(crate) source: FactSource,
}

/// Model of explore and task agents: `[agents.NAME] model`, then `small_model`, then a cheap one of the same provider.
pub(crate) fn small_model(
    settings: &Settings,
    providers: &[ProviderConfig],
    model: &str,
    agent: Option<&str>,
) -> Result<Option<SmallModel>> {
    let mut preferences = preferences(settings)?;
    let of_agent = agent.and_then(|name| preferences.agents.remove(name)?.turn.model);
    if let Some(id) = of_agent.or(preferences.small_model) {
        return Ok(Some(SmallModel { id, source: FactSource::Config }));
    }
    let Some((provider, name)) = config::find(providers, model) else { return Ok(None) };
    let source = if provider.learnt.listed.is_some() { FactSource::Provider } else { FactSource::Embedded };
    let small = facts::small_model(provider, name);
    Ok(small.map(|small| SmallModel { id: format!("{}/{small}", provider.name), source }))
}

/// The login that is used, if there is one. `ask_gh` allows starting `gh` to find one.
pub(crate) fn github_login(settings: &Settings, ask_gh: bool) -> Option<GitHubLogin> {
    if settings.login.is_some() {
        return settings.login.clone();
    }
    if settings.logins == LoginPlaces::Nowhere {
        return None;
    }
    let variable = GITHUB_TOKENS.into_iter().find_map(|name| {
        let token = settings.var(name)?.to_owned();
        Some(GitHubLogin { token, from: LoginSource::Variable(name) })
    });
    variable.or_else(|| {
        let token = (ask_gh && settings.logins == LoginPlaces::Any).then(|| gh_auth_token(settings))??;
        Some(GitHubLogin { token, from: LoginSource::GhCli })
    })
}

/// The token of the GitHub CLI's login, if it is installed and answers soon.
fn gh_auth_token(settings: &Settings) -> Option<String> {
    let mut child = std::process::Command::new("gh")
        .args(["auth", "token"])
        .env_clear()
        .envs(credentials::environment(settings, Child::Helper, &[]))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let deadline = Instant::now() + GH_PATIENCE;
    while child.try_wait().ok()?.is_none() {
        if Instant::now() > deadline {
            // An error means that it has ended already.
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output().ok().filter(|output| output.status.success())?;
    let token = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (!token.is_empty()).then_some(token)
}

pub(crate) fn preferences(settings: &Settings) -> Result<FilePreferences> {
    settings.parse_config(&settings.config_text()?)
}
