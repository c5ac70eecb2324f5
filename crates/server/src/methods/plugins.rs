//! The user's plugins and marketplaces, and those that a client brings to the sessions of this server.

use std::path::PathBuf;

use futures_util::future::BoxFuture;
use hangar_plugins::{DIRECT_WARNING, Installation, Installed, PluginError, Plugins, Removal};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Failure, Method, Reply};

/// Most directories of plugins that clients bring to all sessions.
const MAX_DIRS: usize = 64;

pub(super) const METHODS: &[Method] = &[
    Method { name: "plugins.list", run: |call| Box::pin(list(call)) },
    Method { name: "plugins.install", run: |call| Box::pin(install(call)) },
    Method { name: "plugins.uninstall", run: |call| Box::pin(uninstall(call)) },
    Method { name: "plugins.update", run: |call| Box::pin(update(call)) },
    Method { name: "plugins.updateAll", run: |call| Box::pin(update_all(call)) },
    Method { name: "plugins.enable", run: |call| Box::pin(switch(call, true)) },
    Method { name: "plugins.disable", run: |call| Box::pin(switch(call, false)) },
    Method { name: "plugins.builtin.set", run: |call| Box::pin(set_builtin(call)) },
    Method { name: "plugins.marketplaces.list", run: |call| Box::pin(marketplaces(call)) },
    Method { name: "plugins.marketplaces.add", run: |call| Box::pin(add_marketplace(call)) },
    Method { name: "plugins.marketplaces.remove", run: |call| Box::pin(remove_marketplace(call)) },
    Method { name: "plugins.marketplaces.browse", run: |call| Box::pin(browse(call)) },
    Method { name: "plugins.marketplaces.refresh", run: |call| Box::pin(refresh(call)) },
    Method { name: "sessions.setAdditionalPlugins", run: |call| Box::pin(set_additional(call)) },
    Method { name: "session.plugins.reload", run: |call| Box::pin(reload(call)) },
    // The same for a client that has a session: relative paths start at its directory.
    Method { name: "session.plugins.install", run: |call| Box::pin(install(call)) },
    Method {
        name: "session.plugins.uninstall",
        run: |call| of_session(call, |call| Box::pin(uninstall(call))),
    },
    Method { name: "session.plugins.update", run: |call| of_session(call, |call| Box::pin(update(call))) },
    Method {
        name: "session.plugins.enable",
        run: |call| of_session(call, |call| Box::pin(switch(call, true))),
    },
    Method {
        name: "session.plugins.disable",
        run: |call| of_session(call, |call| Box::pin(switch(call, false))),
    },
    Method { name: "session.plugins.marketplaces.add", run: |call| Box::pin(add_marketplace(call)) },
    Method {
        name: "session.plugins.marketplaces.list",
        run: |call| of_session(call, |call| Box::pin(marketplaces(call))),
    },
    Method {
        name: "session.plugins.marketplaces.remove",
        run: |call| of_session(call, |call| Box::pin(remove_marketplace(call))),
    },
    Method {
        name: "session.plugins.marketplaces.browse",
        run: |call| of_session(call, |call| Box::pin(browse(call))),
    },
    Method {
        name: "session.plugins.marketplaces.refresh",
        run: |call| of_session(call, |call| Box::pin(refresh(call))),
    },
];

impl From<PluginError> for Failure {
    fn from(error: PluginError) -> Self {
        Failure::Failed(error.0)
    }
}

/// Directories of plugins that clients bring to the sessions that are opened from now on.
#[derive(Debug, Default)]
pub(crate) struct ClientPlugins {
    pub(crate) builtin: Vec<PathBuf>,
    pub(crate) additional: Vec<PathBuf>,
}

impl ClientPlugins {
    pub(crate) fn dirs(&self) -> impl Iterator<Item = &PathBuf> {
        self.builtin.iter().chain(&self.additional)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FromSource {
    source: String,
    working_directory: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    name: String,
    direct_source_id: Option<String>,
    #[serde(default)]
    force: bool,
}

fn plugins(call: &Call) -> Plugins {
    let config = call.hub.config();
    Plugins::new(&call.hub.home(), config.git.clone(), config.now)
}

/// Carries a request out if its session is open.
fn of_session(
    call: Call,
    run: fn(Call) -> BoxFuture<'static, Result<Reply, Failure>>,
) -> BoxFuture<'static, Result<Reply, Failure>> {
    match call.live() {
        Ok(_) => run(call),
        Err(failure) => Box::pin(std::future::ready(Err(failure))),
    }
}

/// The directory that relative paths of a request start at: that of its session, or of the server.
async fn directory(call: &Call, named: Option<PathBuf>) -> Result<PathBuf, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct About {
        session_id: Option<String>,
    }
    let About { session_id } = call.params()?;
    let own = match session_id {
        Some(id) => call.hub.live(&id)?.ask(|task| PathBuf::from(task.cwd())).await?,
        None => call.hub.config().directory.clone(),
    };
    Ok(named.map_or_else(|| own.clone(), |named| own.join(named)))
}

fn tell(plugin: &Installed) -> Value {
    let mut told =
        json!({ "name": plugin.name, "marketplace": plugin.marketplace, "enabled": plugin.enabled });
    if let Some(version) = &plugin.version {
        told["version"] = json!(version);
    }
    if let Some(id) = plugin.direct_source_id() {
        told["directSourceId"] = json!(id);
    }
    told
}

async fn list(call: Call) -> Result<Reply, Failure> {
    let installed = plugins(&call).list()?;
    Reply::of(json!({ "plugins": installed.iter().map(tell).collect::<Vec<_>>() }))
}

async fn install(call: Call) -> Result<Reply, Failure> {
    let FromSource { source, working_directory } = call.params()?;
    let directory = directory(&call, working_directory).await?;
    let Installation { plugin, skills, .. } = plugins(&call).install(&source, &directory).await?;
    let mut result = json!({ "plugin": tell(&plugin), "skillsInstalled": skills });
    if plugin.marketplace.is_empty() {
        result["deprecationWarning"] = json!(DIRECT_WARNING);
    }
    Reply::of(result)
}

async fn uninstall(call: Call) -> Result<Reply, Failure> {
    let Named { name, direct_source_id, .. } = call.params()?;
    plugins(&call).uninstall(&name, direct_source_id.as_deref())?;
    Reply::null()
}

/// The versions and skills of an update, as both methods answer them.
fn tell_update(result: &mut Value, update: &Installation) {
    result["skillsInstalled"] = json!(update.skills);
    if let Some(version) = &update.previous_version {
        result["previousVersion"] = json!(version);
    }
    if let Some(version) = &update.plugin.version {
        result["newVersion"] = json!(version);
    }
}

async fn update(call: Call) -> Result<Reply, Failure> {
    let Named { name, .. } = call.params()?;
    let update = plugins(&call).update(&name).await?;
    let mut result = json!({});
    tell_update(&mut result, &update);
    Reply::of(result)
}

async fn update_all(call: Call) -> Result<Reply, Failure> {
    let updated = plugins(&call).update_all().await?;
    let told = updated.into_iter().map(|(plugin, outcome)| {
        let mut told = json!({
            "name": plugin.name,
            "marketplace": plugin.marketplace,
            "success": outcome.is_ok(),
        });
        match outcome {
            Ok(update) => tell_update(&mut told, &update),
            Err(error) => told["error"] = json!(error.0),
        }
        told
    });
    Reply::of(json!({ "results": told.collect::<Vec<_>>() }))
}

async fn switch(call: Call, enabled: bool) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Names {
        names: Vec<String>,
    }
    let Names { names } = call.params()?;
    plugins(&call).switch(&names, enabled)?;
    Reply::null()
}

async fn marketplaces(call: Call) -> Result<Reply, Failure> {
    let known = plugins(&call).marketplaces()?.into_iter().map(|known| {
        json!({ "name": known.name, "source": known.source.describe(), "isDefault": known.is_default })
    });
    Reply::of(json!({ "marketplaces": known.collect::<Vec<_>>() }))
}

async fn add_marketplace(call: Call) -> Result<Reply, Failure> {
    let FromSource { source, working_directory } = call.params()?;
    let directory = directory(&call, working_directory).await?;
    let name = plugins(&call).add_marketplace(&source, &directory).await?;
    Reply::of(json!({ "name": name }))
}

async fn remove_marketplace(call: Call) -> Result<Reply, Failure> {
    let Named { name, force, .. } = call.params()?;
    Reply::of(match plugins(&call).remove_marketplace(&name, force)? {
        Removal::Removed { .. } => json!({ "removed": true }),
        Removal::InUse { plugins } => json!({ "removed": false, "dependentPlugins": plugins }),
    })
}

async fn browse(call: Call) -> Result<Reply, Failure> {
    let Named { name, .. } = call.params()?;
    let offers = plugins(&call).browse(&name).await?.into_iter().map(|offer| match offer.description {
        Some(description) => json!({ "name": offer.name, "description": description }),
        None => json!({ "name": offer.name }),
    });
    Reply::of(json!({ "plugins": offers.collect::<Vec<_>>() }))
}

async fn refresh(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        name: Option<String>,
    }
    let Params { name } = call.params()?;
    let refreshed = plugins(&call).refresh(name.as_deref()).await?.into_iter();
    let told = refreshed.map(|(name, outcome)| match outcome {
        Ok(()) => json!({ "name": name, "success": true }),
        Err(error) => json!({ "name": name, "success": false, "error": error.0 }),
    });
    Reply::of(json!({ "results": told.collect::<Vec<_>>() }))
}

/// Absolute directories, few enough.
fn checked(dirs: Vec<PathBuf>) -> Result<Vec<PathBuf>, Failure> {
    if dirs.len() > MAX_DIRS {
        return Err(Failure::Params(format!("there are more than {MAX_DIRS} plugins")));
    }
    match dirs.iter().find(|dir| !dir.is_absolute()) {
        Some(dir) => Err(Failure::Params(format!("{} is not an absolute path", dir.display()))),
        None => Ok(dirs),
    }
}

async fn set_builtin(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        paths: Vec<PathBuf>,
    }
    let Params { paths } = call.params()?;
    call.hub.client_plugins.lock().builtin = checked(paths)?;
    Reply::null()
}

async fn set_additional(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        plugins: Vec<Given>,
    }
    #[derive(Deserialize)]
    struct Given {
        #[serde(default = "yes")]
        enabled: bool,
        cache_path: Option<PathBuf>,
    }
    fn yes() -> bool {
        true
    }
    let Params { plugins } = call.params()?;
    let dirs = plugins.into_iter().filter(|given| given.enabled).filter_map(|given| given.cache_path);
    call.hub.client_plugins.lock().additional = checked(dirs.collect())?;
    Reply::of(json!({}))
}

/// Reads the skills and MCP servers of plugins again. Their agents and hooks are those of the start of the session.
async fn reload(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        reload_mcp: Option<bool>,
    }
    let Params { reload_mcp } = call.params()?;
    super::skills::read_again(&call).await?;
    let has_servers = call.live()?.ask(|task| task.mcp().is_some()).await?;
    if has_servers && reload_mcp.unwrap_or(true) {
        super::mcp::read_again(&call).await?;
    }
    Reply::null()
}
