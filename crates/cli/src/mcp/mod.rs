//! The MCP servers of a session: from files, flags and clients to a host that can start them.

mod github;
mod guard;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use hangar_agent::agents::{AgentDefinition, AgentSource};
use hangar_agent::driver::Hooks;
use hangar_agent::model::ModelProvider;
use hangar_mcp::config::merge;
use hangar_mcp::files::{self, UserFile};
use hangar_mcp::{ConfigSource, HostOptions, Layer, McpHost, News, Sampler, Sandboxes};
use hangar_process::credentials::Child;
use hangar_spec::SessionSpec;
use hangar_tools::spill::Spill;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

pub(crate) use github::GitHubServer;
pub(crate) use guard::fitted;

use crate::compose::Extensions;
use crate::credentials;
use crate::output::remark;
use crate::redact::Redactor;
use crate::settings::Settings;
use crate::workspace::git::Repository;
use crate::workspace::trust::{Trust, is_trusted};

/// The sources of a session's servers.
#[derive(Debug, Clone)]
pub(crate) struct ServerSources {
    /// Whether the files of the user and of the project are read.
    discover: bool,
    trust: Trust,
    /// Documents, or `@` and the path of one. They take precedence.
    additional: Vec<String>,
    /// Servers of the client. Their values are not expanded.
    client: Map<String, Value>,
    /// Servers of the active agent, from its file.
    role: Map<String, Value>,
    plugin_dirs: Vec<PathBuf>,
    disabled: Vec<String>,
    /// Servers that the settings disable and this run enables.
    enabled: Vec<String>,
    github: Option<GitHubServer>,
}

impl ServerSources {
    pub(crate) fn of(
        extensions: &Extensions,
        spec: &SessionSpec,
        active_role: Option<&AgentDefinition>,
    ) -> Self {
        let SessionSpec { customization, servers, .. } = spec;
        let mut client = servers.configs.clone().unwrap_or_default();
        let mut role = Map::new();
        // The session also has the servers of the agent whose role it plays.
        if let Some(agent) = active_role {
            let theirs = match agent.source {
                AgentSource::File(_) => &mut role,
                AgentSource::Client | AgentSource::Builtin => &mut client,
            };
            theirs.extend(agent.mcp_servers.clone());
        }
        let github = servers.github.clone().filter(|_| customization.discovers());
        let github = github.map(|config| serde_json::from_value(config).unwrap_or_default());
        let with = |given: &[PathBuf], more: &Option<Vec<PathBuf>>| -> Vec<PathBuf> {
            given.iter().chain(more.iter().flatten()).cloned().collect()
        };
        Self {
            discover: customization.discovers(),
            trust: extensions.server_trust,
            additional: extensions.servers.clone(),
            client,
            role,
            plugin_dirs: with(&extensions.plugin_dirs, &customization.plugin_dirs),
            disabled: extensions
                .disabled_servers
                .iter()
                .chain(servers.disabled.iter().flatten())
                .cloned()
                .collect(),
            enabled: extensions.enabled_servers.clone(),
            github: github.or_else(|| extensions.github.clone()),
        }
    }
}

/// The configured servers of a session.
#[derive(Debug, Default)]
pub(crate) struct ConfiguredServers {
    pub(crate) configs: Vec<hangar_mcp::ServerConfig>,
    /// Names of servers that are not started.
    pub(crate) disabled: Vec<String>,
}

/// State that the servers of a session share.
pub(crate) struct ServerContext<'a> {
    pub(crate) session_id: String,
    pub(crate) cwd: &'a Path,
    pub(crate) provider: Arc<dyn ModelProvider>,
    pub(crate) model: String,
    pub(crate) secrets: &'a [String],
    pub(crate) redactor: Redactor,
    /// Sandboxes of the servers' programs.
    pub(crate) sandboxes: Sandboxes,
    pub(crate) spill: Spill,
    pub(crate) hooks: Option<Arc<dyn Hooks>>,
    pub(crate) retry_scale: f64,
}

/// A host for the servers. None is started.
pub(crate) fn host(
    settings: &Settings,
    servers: ConfiguredServers,
    context: ServerContext<'_>,
) -> (McpHost, mpsc::Receiver<News>) {
    let secrets = context.secrets.to_vec();
    let ServerContext {
        session_id,
        cwd,
        provider,
        model,
        redactor,
        sandboxes,
        spill,
        hooks,
        retry_scale,
        ..
    } = context;
    let spill = Arc::new(spill);
    let sampler = Sampler { provider, model, session_id: session_id.clone() };
    McpHost::new(HostOptions {
        servers: servers.configs,
        disabled: servers.disabled,
        env: credentials::environment(settings, Child::Command, &secrets),
        secrets,
        cwd: cwd.to_path_buf(),
        session_id,
        cache_dir: settings.home.join("mcp-cache"),
        tokens_dir: settings.home.join("mcp-oauth"),
        now: jiff::Timestamp::now,
        sandboxes,
        sampler: Some(sampler),
        retry_scale,
        hooks,
        fresh_id: || uuid::Uuid::new_v4().to_string(),
        guard: Arc::new(move |tool| redactor.tool(guard::fitted(tool, &spill))),
    })
}

/// Reads the configuration of the servers.
pub(crate) fn configured(
    settings: &Settings,
    sources: &ServerSources,
    cwd: &Path,
) -> Result<ConfiguredServers> {
    let mut layers = Vec::new();
    let mut errors = Vec::new();
    let mut disabled = sources.disabled.clone();
    if let Some(github) = &sources.github {
        layers.extend(github.layer(settings));
    }
    // Problems of plugins are reported where all of them is loaded.
    let dirs: Vec<PathBuf> = sources.plugin_dirs.iter().map(|dir| cwd.join(dir)).collect();
    let (plugins, _) = match sources.discover {
        true => crate::custom::load_plugins(settings, &dirs),
        false => hangar_custom::plugins::load(&dirs),
    };
    layers.extend(
        plugins.into_iter().map(|plugin| Layer { source: ConfigSource::Plugin, servers: plugin.mcp_servers }),
    );
    if sources.discover {
        let user = UserFile::new(&settings.home);
        disabled.extend(user.disabled().into_iter().filter(|name| !sources.enabled.contains(name)));
        match user.layer() {
            Ok(layer) => layers.extend(layer),
            Err(error) => errors.push(error),
        }
        let (workspace, problems) = workspace(settings, sources.trust, cwd);
        layers.extend(workspace);
        errors.extend(problems);
    }
    let lookup = |name: &str| settings.var(name).map(str::to_owned);
    for text in &sources.additional {
        let layer = additional(text, cwd)?;
        // A server that a flag requests is an error if it cannot be used, not a warning.
        if let Some(problem) = merge(std::slice::from_ref(&layer), &lookup).1.into_iter().next() {
            return Err(anyhow!(problem).context("cannot use --additional-mcp-config"));
        }
        layers.push(layer);
    }
    layers.push(Layer { source: ConfigSource::User, servers: sources.role.clone() });
    let (mut servers, problems) = merge(&layers, &lookup);
    errors.extend(problems);
    let client = Layer { source: ConfigSource::User, servers: sources.client.clone() };
    // Not expanded: a client's values are literal.
    let (theirs, problems) = merge(&[client], &|_| None);
    servers.retain(|server| theirs.iter().all(|their| their.name != server.name));
    servers.extend(theirs);
    errors.extend(problems);
    for server in &mut servers {
        server.off &= !sources.enabled.contains(&server.name);
    }
    for error in errors {
        remark(&format!("note: {error}"));
    }
    Ok(ConfiguredServers { configs: servers, disabled })
}

/// Servers that a trusted project configures.
fn workspace(settings: &Settings, trust: Trust, cwd: &Path) -> (Vec<Layer>, Vec<hangar_mcp::McpConfigError>) {
    let root = Repository::find(cwd).map(|repository| repository.root);
    if !may_configure(settings, trust, root.as_deref().unwrap_or(cwd)) {
        return (Vec::new(), Vec::new());
    }
    files::workspace(cwd, root.as_deref())
}

/// Whether the files of a project may configure servers.
pub(crate) fn may_configure(settings: &Settings, trust: Trust, project: &Path) -> bool {
    settings.flag("GITHUB_COPILOT_PROMPT_MODE_WORKSPACE_MCP") || is_trusted(settings, trust, project)
}

fn additional(text: &str, cwd: &Path) -> Result<Layer> {
    let parse = |text: &str| Layer::parse(ConfigSource::User, text).map_err(|error| anyhow!("{error}"));
    let Some(path) = text.strip_prefix('@') else {
        return parse(text).context("cannot use --additional-mcp-config");
    };
    let path = match (path.strip_prefix("~/"), std::env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => cwd.join(path),
    };
    let content = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read --additional-mcp-config {}", path.display()))?;
    parse(&content).with_context(|| format!("cannot use --additional-mcp-config {}", path.display()))
}
