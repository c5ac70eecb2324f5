//! Installed plugins and the marketplaces that they come from. `hangar-custom` reads the folder of a plugin; this crate knows
//! which folders there are, fetches them and keeps the list.
//!
//! A plugin of a marketplace on this machine is loaded from there. Every other one is a copy in the home folder, which changes
//! only by an update.

mod fetch;
mod marketplace;
mod source;
mod state;

use std::path::{Path, PathBuf};

use hangar_custom::plugins::{self, Plugin};
use hangar_git::Git;
use jiff::Timestamp;
use serde_json::Value;

use fetch::{Fetched, fetch};
use marketplace::Marketplace;
pub use marketplace::Offer;
pub use source::Source;
pub use state::Installed;
use state::{MAX_ENTRIES, PluginState, Registered, StateFiles};

/// Warning for a plugin that does not come from a marketplace, in the words of Copilot CLI.
pub const DIRECT_WARNING: &str = "Direct plugin installs (repos, URLs, local paths) are deprecated. Only plugin@marketplace \
                                  installs will be supported in a future release.";

/// Marketplaces that everybody has: name, repository and branch.
const DEFAULTS: [(&str, &str, &str); 1] = [("awesome-copilot", "github/awesome-copilot", "marketplace")];

/// A sentence for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PluginError(pub String);

/// A marketplace in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub name: String,
    pub source: Source,
    /// Whether it comes with the program and cannot be removed.
    pub is_default: bool,
}

/// A plugin that was just installed or updated.
#[derive(Debug, Clone, PartialEq)]
pub struct Installation {
    pub plugin: Installed,
    /// Number of its skills.
    pub skills: usize,
    /// Version before an update.
    pub previous_version: Option<String>,
}

/// Outcome of removing a marketplace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Removal {
    Removed {
        uninstalled: Vec<String>,
    },
    /// Plugins of it are installed.
    InUse {
        plugins: Vec<String>,
    },
}

/// The plugins of a home folder.
#[derive(Debug, Clone)]
pub struct Plugins {
    files: StateFiles,
    git: Git,
    now: fn() -> Timestamp,
}

/// The enabled plugins of a home folder, with sentences about those that cannot be loaded.
pub fn enabled(home: &Path) -> (Vec<Plugin>, Vec<String>) {
    let files = StateFiles { home: home.to_owned() };
    let state = match files.read() {
        Ok(state) => state,
        Err(error) => return (Vec::new(), vec![format!("No installed plugin is loaded: {error}.")]),
    };
    let (mut loaded, mut warnings) = (Vec::new(), Vec::new());
    for installed in state.plugins.iter().filter(|installed| installed.enabled) {
        match plugins::read(&installed.path, &installed.entry) {
            Ok(plugin) => loaded.push(named(plugin, installed)),
            Err(problem) => {
                warnings.push(format!("The plugin {} is not loaded: {problem}.", installed.spec()));
            }
        }
    }
    (loaded, warnings)
}

fn named(plugin: Plugin, installed: &Installed) -> Plugin {
    Plugin { name: installed.name.clone(), marketplace: installed.marketplace.clone(), ..plugin }
}

impl Plugins {
    pub fn new(home: &Path, git: Git, now: fn() -> Timestamp) -> Self {
        Self { files: StateFiles { home: home.to_owned() }, git, now }
    }

    /// The installed plugins, sorted by name.
    pub fn list(&self) -> Result<Vec<Installed>, PluginError> {
        let mut plugins = self.files.read()?.plugins;
        plugins.sort_by_key(Installed::spec);
        Ok(plugins)
    }

    /// Installs `plugin@marketplace`, or a plugin directly from its source.
    pub async fn install(&self, source: &str, cwd: &Path) -> Result<Installation, PluginError> {
        match source.rsplit_once('@') {
            Some((name, marketplace))
                if !name.contains(['/', ':', '@']) && !marketplace.contains(['/', ':']) =>
            {
                self.install_offer(name, marketplace).await
            }
            _ => self.install_direct(Source::parse(source, cwd)?).await,
        }
    }

    async fn install_offer(&self, name: &str, marketplace: &str) -> Result<Installation, PluginError> {
        let (root, catalogue, is_local) = self.catalogue(marketplace).await?;
        let offer = catalogue.offer(name)?;
        let source = Source::of_entry(&offer.entry["source"], &root, &catalogue.base)?;
        // A folder of the user's own marketplace is used as it is; one of a clone moves with the next refresh.
        let fetched = match &source {
            Source::Local { path } if is_local => Fetched::at(path.clone()),
            source => fetch(&self.files, &self.git, source).await?,
        };
        self.put(fetched, source, marketplace, offer.entry.clone(), Some(name))
    }

    async fn install_direct(&self, source: Source) -> Result<Installation, PluginError> {
        let fetched = fetch(&self.files, &self.git, &source).await?;
        self.put(fetched, source, "", Value::Null, None)
    }

    /// Writes a fetched plugin into the list, in the place of an earlier one.
    fn put(
        &self,
        fetched: Fetched,
        source: Source,
        marketplace: &str,
        entry: Value,
        name: Option<&str>,
    ) -> Result<Installation, PluginError> {
        let plugin = plugins::read(&fetched.folder, &entry)
            .map_err(|problem| PluginError(format!("{} is not a plugin: {problem}", source.describe())))?;
        let name = match name {
            Some(name) => name.to_owned(),
            // A copy is called by a number, its source by a name.
            None if plugin.is_unnamed => folder_name(&source),
            None => plugin.name.clone(),
        };
        marketplace::check_name(&name)?;
        let mut installed = Installed {
            name,
            marketplace: marketplace.to_owned(),
            version: plugin.version.clone(),
            installed_at: (self.now)().to_string(),
            enabled: true,
            path: fetched.folder.clone(),
            source,
            entry,
        };
        let skills = plugin.contents().skills.len();
        let old = self.files.change(|state| {
            let same = |known: &Installed| {
                known.spec() == installed.spec() && known.direct_source_id() == installed.direct_source_id()
            };
            let old = state.plugins.iter().position(same).map(|index| state.plugins.remove(index));
            if state.plugins.len() >= MAX_ENTRIES {
                return Err(PluginError(format!("there are {MAX_ENTRIES} plugins already")));
            }
            if let Some(old) = &old {
                installed.enabled = old.enabled;
            }
            state.plugins.push(installed.clone());
            Ok(old)
        })?;
        fetched.keep();
        if let Some(old) = &old {
            self.discard(old, &installed.path);
        }
        let previous_version = old.and_then(|old| old.version);
        Ok(Installation { plugin: installed, skills, previous_version })
    }

    /// Deletes the copy of a plugin, unless it is in use.
    fn discard(&self, old: &Installed, used: &Path) {
        let folder = self.files.folder();
        let copy = old.path.strip_prefix(&folder).ok().and_then(|path| path.components().next());
        let Some(copy) = copy.map(|name| folder.join(name)) else { return };
        if !used.starts_with(&copy) {
            self.files.discard(&copy);
        }
    }

    /// Removes a plugin from the list and deletes its copy.
    pub fn uninstall(&self, name: &str, direct_source: Option<&str>) -> Result<(), PluginError> {
        let old = self.files.change(|state| {
            let index = find(state, name, direct_source)?;
            Ok(state.plugins.remove(index))
        })?;
        self.discard(&old, Path::new(""));
        Ok(())
    }

    /// Fetches a plugin anew, from where it came.
    pub async fn update(&self, name: &str) -> Result<Installation, PluginError> {
        let state = self.files.read()?;
        let installed = state.plugins[find(&state, name, None)?].clone();
        self.update_one(installed).await
    }

    async fn update_one(&self, installed: Installed) -> Result<Installation, PluginError> {
        if installed.marketplace.is_empty() {
            return self.install_direct(installed.source).await;
        }
        self.refresh_one(&installed.marketplace).await?;
        self.install_offer(&installed.name, &installed.marketplace).await
    }

    /// Updates all plugins, each on its own.
    pub async fn update_all(
        &self,
    ) -> Result<Vec<(Installed, Result<Installation, PluginError>)>, PluginError> {
        let mut results = Vec::new();
        for installed in self.list()? {
            let updated = self.update_one(installed.clone()).await;
            results.push((installed, updated));
        }
        Ok(results)
    }

    /// Enables or disables plugins for later sessions, and returns those that are known.
    pub fn switch(&self, names: &[String], enabled: bool) -> Result<Vec<Installed>, PluginError> {
        self.files.change(|state| {
            let called = |plugin: &&mut Installed| names.iter().any(|name| plugin.is_called(name));
            let named = state.plugins.iter_mut().filter(called).map(|plugin| {
                plugin.enabled = enabled;
                plugin.clone()
            });
            Ok(named.collect())
        })
    }

    /// The marketplaces that come with the program, then those of the user.
    pub fn marketplaces(&self) -> Result<Vec<Listed>, PluginError> {
        let state = self.files.read()?;
        let defaults = DEFAULTS.iter().map(|(name, ..)| Listed {
            name: (*name).to_owned(),
            source: default_source(name).unwrap_or(Source::Local { path: PathBuf::new() }),
            is_default: true,
        });
        let added = state.marketplaces.into_iter().filter(|(name, _)| default_source(name).is_none());
        let added = added.map(|(name, known)| Listed { name, source: known.source, is_default: false });
        Ok(defaults.chain(added).collect())
    }

    /// Registers a marketplace by the name in its file, which is returned.
    pub async fn add_marketplace(&self, source: &str, cwd: &Path) -> Result<String, PluginError> {
        let source = Source::parse(source, cwd)?;
        let fetched = match &source {
            Source::Local { path } => Fetched::at(path.clone()),
            remote => fetch(&self.files, &self.git, remote).await?,
        };
        let name = Marketplace::read(&fetched.folder)?.name;
        let registered = Registered { source, clone: fetched.copy.clone() };
        self.files.change(|state| {
            if state.marketplaces.contains_key(&name) || default_source(&name).is_some() {
                return Err(PluginError(format!("Marketplace \"{name}\" already registered")));
            }
            if state.marketplaces.len() >= MAX_ENTRIES {
                return Err(PluginError(format!("there are {MAX_ENTRIES} marketplaces already")));
            }
            state.marketplaces.insert(name.clone(), registered);
            Ok(())
        })?;
        fetched.keep();
        Ok(name)
    }

    /// Removes a marketplace, and with `force` the plugins that came from it.
    pub fn remove_marketplace(&self, name: &str, force: bool) -> Result<Removal, PluginError> {
        if default_source(name).is_some() {
            return Err(PluginError(format!(
                "Marketplace \"{name}\" is a default marketplace and cannot be removed"
            )));
        }
        let (known, gone) = self.files.change(|state| {
            let known = state.marketplaces.get(name).cloned();
            let known =
                known.ok_or_else(|| PluginError(format!("Marketplace \"{name}\" is not registered")))?;
            let of_it = |plugin: &Installed| plugin.marketplace == name;
            // A folder that is not copied ends with its marketplace: nothing of the user is lost.
            let copied = |plugin: &Installed| of_it(plugin) && !plugin.is_live();
            if !force && state.plugins.iter().any(copied) {
                return Ok((None, state.plugins.iter().filter(|plugin| of_it(plugin)).cloned().collect()));
            }
            state.marketplaces.remove(name);
            let (gone, kept): (Vec<Installed>, Vec<Installed>) =
                std::mem::take(&mut state.plugins).into_iter().partition(of_it);
            state.plugins = kept;
            Ok((Some(known), gone))
        })?;
        let specs: Vec<String> = gone.iter().map(Installed::spec).collect();
        let Some(known) = known else { return Ok(Removal::InUse { plugins: specs }) };
        gone.iter().for_each(|old| self.discard(old, Path::new("")));
        if let Some(clone) = known.clone {
            self.files.discard(&clone);
        }
        Ok(Removal::Removed { uninstalled: specs })
    }

    /// The plugins that a marketplace offers.
    pub async fn browse(&self, name: &str) -> Result<Vec<Offer>, PluginError> {
        Ok(self.catalogue(name).await?.1.offers)
    }

    /// Fetches the lists of one marketplace or of all anew.
    pub async fn refresh(
        &self,
        name: Option<&str>,
    ) -> Result<Vec<(String, Result<(), PluginError>)>, PluginError> {
        let names = match name {
            Some(name) => vec![name.to_owned()],
            None => self.marketplaces()?.into_iter().map(|known| known.name).collect(),
        };
        let mut results = Vec::new();
        for name in names {
            let refreshed = self.refresh_one(&name).await;
            results.push((name, refreshed));
        }
        Ok(results)
    }

    async fn refresh_one(&self, name: &str) -> Result<(), PluginError> {
        let registered = self.registered(name)?;
        match &registered.source {
            Source::Local { path } => Marketplace::read(path).map(|_| ()),
            remote => self.clone_marketplace(name, remote).await.map(|_| ()),
        }
    }

    fn registered(&self, name: &str) -> Result<Registered, PluginError> {
        let known = self.files.read()?.marketplaces.get(name).cloned();
        let default = || Some(Registered { source: default_source(name)?, clone: None });
        known.or_else(default).ok_or_else(|| unknown(name))
    }

    /// Folder and list of a marketplace, cloned if it is not there yet, and whether the folder is the user's own.
    async fn catalogue(&self, name: &str) -> Result<(PathBuf, Marketplace, bool), PluginError> {
        let registered = self.registered(name)?;
        if let Source::Local { path } = &registered.source {
            return Ok((path.clone(), Marketplace::read(path)?, true));
        }
        let root = match registered.clone.filter(|clone| clone.is_dir()) {
            Some(clone) => clone,
            None => self.clone_marketplace(name, &registered.source).await?,
        };
        let catalogue = Marketplace::read(&root)?;
        Ok((root, catalogue, false))
    }

    async fn clone_marketplace(&self, name: &str, source: &Source) -> Result<PathBuf, PluginError> {
        let fetched = fetch(&self.files, &self.git, source).await?;
        let found = Marketplace::read(&fetched.folder)?.name;
        if found != name && default_source(name).is_none() {
            return Err(PluginError(format!(
                "Marketplace \"{name}\" is now called \"{found}\"; add it again"
            )));
        }
        let clone = fetched.folder.clone();
        let registered = Registered { source: source.clone(), clone: Some(clone.clone()) };
        let old = self.files.change(|state| Ok(state.marketplaces.insert(name.to_owned(), registered)))?;
        fetched.keep();
        if let Some(old) = old.and_then(|old| old.clone) {
            self.files.discard(&old);
        }
        Ok(clone)
    }
}

fn unknown(marketplace: &str) -> PluginError {
    PluginError(format!("Marketplace \"{marketplace}\" not found"))
}

fn default_source(name: &str) -> Option<Source> {
    let (_, repo, branch) = DEFAULTS.iter().find(|(known, ..)| *known == name)?;
    let reference = Some((*branch).to_owned());
    Some(Source::GitHub { repo: (*repo).to_owned(), reference, sha: None, path: None })
}

/// Index of the one plugin that is meant.
fn find(state: &PluginState, name: &str, direct_source: Option<&str>) -> Result<usize, PluginError> {
    let is_meant = |plugin: &Installed| match direct_source {
        Some(id) => plugin.direct_source_id().as_deref() == Some(id) && plugin.name == name,
        None => plugin.is_called(name),
    };
    let mut found = state.plugins.iter().enumerate().filter(|(_, plugin)| is_meant(plugin));
    match (found.next(), found.next()) {
        (Some((index, _)), None) => Ok(index),
        (None, _) => Err(PluginError(format!("Plugin \"{name}\" is not installed"))),
        (Some((_, one)), Some((_, other))) => Err(PluginError(format!(
            "Plugin \"{name}\" is ambiguous; name one of {}, {}",
            one.handle(),
            other.handle()
        ))),
    }
}

/// Name of a plugin without a manifest: that of its folder or repository.
fn folder_name(source: &Source) -> String {
    let (whole, path) = match source {
        Source::GitHub { repo, path, .. } => (repo.clone(), path.clone()),
        Source::Url { url, path, .. } => (url.clone(), path.clone()),
        Source::Local { path } => (path.display().to_string(), None),
    };
    let path = path.unwrap_or(whole);
    let last = path.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default();
    last.strip_suffix(".git").unwrap_or(last).to_owned()
}

#[cfg(test)]
mod tests;
