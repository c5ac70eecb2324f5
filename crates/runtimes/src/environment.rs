//! Environment of the adapters. It is handed in, so that nothing here reads the process environment.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use hangar_git::Git;
use hangar_process::credentials::{Child, is_withheld};

use crate::host::Host;
use crate::runtime::{Lookup, OfferedModel};

#[derive(Debug, Clone)]
pub struct RuntimeEnvironment {
    pub vars: BTreeMap<String, String>,
    /// Variables among them that we have secrets in, beside those that are known as credentials. No agent sees them.
    pub ours: Vec<String>,
    /// The user's home directory.
    pub home: PathBuf,
    /// Settings of agents, by name.
    pub agents: BTreeMap<String, RuntimeSettings>,
    pub now: fn() -> jiff::Timestamp,
    /// Directory of the cache of resolutions.
    pub cache: Option<PathBuf>,
    /// Git, which computes changes in a working tree.
    pub git: Git,
    /// Asks for the models that GitHub, or the provider in its place, offers to Copilot.
    pub catalogue: ModelLister,
    /// Receives unknown types of output.
    pub drift: Drift,
}

/// Settings of one agent.
#[derive(Debug, Clone, Default)]
pub struct RuntimeSettings {
    /// Path of its program, or its name on `PATH`.
    pub program: Option<String>,
    /// Variables that it sees beside ours.
    pub env: Vec<(String, String)>,
    /// Arguments that it is given beside ours.
    pub args: Vec<String>,
    /// Host that it runs on.
    pub host: Host,
}

/// Callback that records unknown types of output of an agent.
#[derive(Clone)]
pub struct Drift(pub Arc<Remember>);

/// Takes the name of the agent, and the types.
pub type Remember = dyn Fn(&str, &BTreeSet<String>) + Send + Sync;

impl Default for Drift {
    fn default() -> Self {
        Self(Arc::new(|_, _| {}))
    }
}

impl std::fmt::Debug for Drift {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Drift")
    }
}

/// Lists models; `None` if they cannot be listed.
#[derive(Clone)]
pub struct ModelLister(pub Arc<ListModels>);

/// Takes how old the list may be, and the variables that are configured for the agent.
pub type ListModels =
    dyn Fn(Lookup, &[(String, String)]) -> BoxFuture<'static, Option<Vec<OfferedModel>>> + Send + Sync;

impl Default for ModelLister {
    fn default() -> Self {
        Self(Arc::new(|_, _| Box::pin(std::future::ready(None))))
    }
}

impl std::fmt::Debug for ModelLister {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Catalogue")
    }
}

impl RuntimeEnvironment {
    /// A machine of which nothing is known but the user's home.
    pub fn bare(home: &Path) -> Self {
        Self {
            vars: BTreeMap::new(),
            ours: Vec::new(),
            home: home.to_owned(),
            agents: BTreeMap::new(),
            now: jiff::Timestamp::now,
            cache: None,
            git: Git::default(),
            catalogue: ModelLister::default(),
            drift: Drift::default(),
        }
    }

    /// Directory of programs that work on no project: the home, if it exists. They must not leave files where Hangar happened
    /// to be started.
    pub(crate) fn home_or_root(&self) -> &Path {
        if self.home.is_dir() { &self.home } else { Path::new("/") }
    }

    /// Settings of an agent; the defaults if there are none.
    pub(crate) fn settings(&self, agent: &str) -> RuntimeSettings {
        self.agents.get(agent).cloned().unwrap_or_default()
    }

    pub fn var(&self, name: &str) -> Option<&str> {
        self.vars.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The same with the variables alone that a child may see.
    pub(crate) fn seen_by(&self, child: Child<'_>) -> Self {
        Self { vars: self.environment(child), ..self.clone() }
    }

    /// The environment of a child.
    pub(crate) fn environment(&self, child: Child<'_>) -> BTreeMap<String, String> {
        let seen = self.vars.iter().filter(|(name, _)| !is_withheld(name, child, &self.ours));
        seen.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// The same with more variables, which win.
    pub(crate) fn with(&self, env: &[(String, String)]) -> Self {
        let mut with = self.clone();
        with.vars.extend(env.iter().cloned());
        with
    }

    /// The first of the variables that is set.
    pub(crate) fn first_var(&self, names: &[&'static str]) -> Option<(&'static str, &str)> {
        names.iter().find_map(|name| self.var(name).map(|value| (*name, value)))
    }

    /// A program by its name on the path, or by where it is.
    pub(crate) fn find(&self, program: &str) -> Option<PathBuf> {
        if program.contains('/') {
            let path = expand_home(program, &self.home);
            return is_program(&path).then_some(path);
        }
        self.on_path(program)
    }

    pub(crate) fn on_path(&self, name: &str) -> Option<PathBuf> {
        let path = OsString::from(self.var("PATH")?);
        std::env::split_paths(&path).map(|dir| dir.join(name)).find(|candidate| is_program(candidate))
    }
}

fn expand_home(path: &str, home: &Path) -> PathBuf {
    path.strip_prefix("~/").map_or_else(|| PathBuf::from(path), |rest| home.join(rest))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
