//! The MCP servers of a session: from files, flags and clients to a host that can start them.

mod github;
mod guard;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use hangar_agent::driver::Hooks;
use hangar_agent::model::ModelProvider;
use hangar_mcp::config::merge;
use hangar_mcp::files::{self, UserFile};
use hangar_mcp::{HostOptions, Layer, McpHost, News, Sampler, Sandboxes, Source};
use hangar_process::credentials::Child;
use hangar_tools::spill::Spill;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

pub(crate) use github::GitHubServer;
pub(crate) use guard::fitted;

use crate::credentials;
use crate::output::remark;
use crate::redact::Redactor;
use crate::settings::Settings;
use crate::workspace::git::Repository;
use crate::workspace::trust::{Trust, is_trusted};

/// Which servers a session is to have.
#[derive(Debug, Clone)]
pub(crate) struct Servers {
    /// Whether the files of the user and of the project are read.
    pub(crate) discover: bool,
    pub(crate) trust: Trust,
    /// Documents, or `@` and the path of one. They have the last word.
    pub(crate) additional: Vec<String>,
    /// What a client brings; its values are meant as they are written.
    pub(crate) client: Map<String, Value>,
    /// Those of the agent whose role the session plays, from its file.
    pub(crate) role: Map<String, Value>,
    pub(crate) plugin_dirs: Vec<PathBuf>,
    pub(crate) disabled: Vec<String>,
    /// Servers that the settings switch off and this run wants.
    pub(crate) enabled: Vec<String>,
    pub(crate) github: Option<GitHubServer>,
    /// Whether there are agents with servers of their own.
    pub(crate) for_agents: bool,
}

/// What the servers of a session work with.
pub(crate) struct Surroundings<'a> {
    pub(crate) session_id: String,
    pub(crate) cwd: &'a Path,
    pub(crate) provider: Arc<dyn ModelProvider>,
    pub(crate) model: String,
    pub(crate) secrets: &'a [String],
    pub(crate) redactor: Redactor,
    /// What confines the programs of servers, if anything does.
    pub(crate) sandboxes: Sandboxes,
    pub(crate) spill: Spill,
    pub(crate) hooks: Option<Arc<dyn Hooks>>,
}

/// A host for the servers, unless there are none.
pub(crate) fn open(
    settings: &Settings,
    wanted: &Servers,
    around: Surroundings<'_>,
) -> Result<Option<(McpHost, mpsc::Receiver<News>)>> {
    let (configs, disabled) = configured(settings, wanted, around.cwd)?;
    if configs.is_empty() && !wanted.for_agents {
        return Ok(None);
    }
    let secrets = around.secrets.to_vec();
    let Surroundings { session_id, cwd, provider, model, redactor, sandboxes, spill, hooks, .. } = around;
    let spill = Arc::new(spill);
    let sampler = Sampler { provider, model, session_id: session_id.clone() };
    let options = HostOptions {
        servers: configs,
        disabled,
        env: credentials::environment(settings, Child::Command, &secrets),
        secrets,
        cwd: cwd.to_path_buf(),
        session_id,
        cache_dir: settings.home.join("mcp-cache"),
        tokens_dir: settings.home.join("mcp-oauth"),
        now: jiff::Timestamp::now,
        sandboxes,
        sampler: Some(sampler),
        retry_scale: settings.number("HANGAR_RETRY_SCALE")?.unwrap_or(1.0),
        hooks,
        fresh_id: || uuid::Uuid::new_v4().to_string(),
        guard: Arc::new(move |tool| redactor.tool(guard::fitted(tool, &spill))),
    };
    Ok(Some(McpHost::new(options)))
}

/// The servers that are configured, and the names of those that are not to be started.
pub(crate) fn configured(
    settings: &Settings,
    wanted: &Servers,
    cwd: &Path,
) -> Result<(Vec<hangar_mcp::ServerConfig>, Vec<String>)> {
    let mut layers = Vec::new();
    let mut errors = Vec::new();
    let mut disabled = wanted.disabled.clone();
    if let Some(github) = &wanted.github {
        layers.extend(github.layer(settings));
    }
    // What is wrong with a plugin is said where all of it is loaded.
    let dirs: Vec<PathBuf> = wanted.plugin_dirs.iter().map(|dir| cwd.join(dir)).collect();
    let (plugins, _) = hangar_custom::plugins::load(&dirs);
    layers.extend(
        plugins.into_iter().map(|plugin| Layer { source: Source::Plugin, servers: plugin.mcp_servers }),
    );
    if wanted.discover {
        let user = UserFile::new(&settings.home);
        disabled.extend(user.disabled().into_iter().filter(|name| !wanted.enabled.contains(name)));
        match user.layer() {
            Ok(layer) => layers.extend(layer),
            Err(error) => errors.push(error),
        }
        let (workspace, problems) = workspace(settings, wanted.trust, cwd);
        layers.extend(workspace);
        errors.extend(problems);
    }
    let lookup = |name: &str| settings.var(name).map(str::to_owned);
    for text in &wanted.additional {
        let layer = additional(text, cwd)?;
        // What somebody asks for in so many words is not left out with a note.
        if let Some(problem) = merge(std::slice::from_ref(&layer), &lookup).1.into_iter().next() {
            return Err(anyhow!(problem).context("cannot use --additional-mcp-config"));
        }
        layers.push(layer);
    }
    layers.push(Layer { source: Source::User, servers: wanted.role.clone() });
    let (mut servers, problems) = merge(&layers, &lookup);
    errors.extend(problems);
    let client = Layer { source: Source::User, servers: wanted.client.clone() };
    // Not expanded: a client says what it means.
    let (theirs, problems) = merge(&[client], &|_| None);
    servers.retain(|server| theirs.iter().all(|their| their.name != server.name));
    servers.extend(theirs);
    errors.extend(problems);
    for server in &mut servers {
        server.off &= !wanted.enabled.contains(&server.name);
    }
    for error in errors {
        remark(&format!("note: {error}"));
    }
    Ok((servers, disabled))
}

/// What a project configures, if it may.
fn workspace(settings: &Settings, trust: Trust, cwd: &Path) -> (Vec<Layer>, Vec<hangar_mcp::ConfigError>) {
    let root = Repository::find(cwd).map(|repository| repository.root);
    if !may_configure(settings, trust, root.as_deref().unwrap_or(cwd)) {
        return (Vec::new(), Vec::new());
    }
    files::workspace(cwd, root.as_deref())
}

/// Whether the files of a project may say which servers are started.
pub(crate) fn may_configure(settings: &Settings, trust: Trust, project: &Path) -> bool {
    settings.flag("GITHUB_COPILOT_PROMPT_MODE_WORKSPACE_MCP") || is_trusted(settings, trust, project)
}

fn additional(text: &str, cwd: &Path) -> Result<Layer> {
    let parse = |text: &str| Layer::parse(Source::User, text).map_err(|error| anyhow!("{error}"));
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
