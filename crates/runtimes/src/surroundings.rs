//! What adapters know of the machine. Handed in, so that nothing here reads the environment by itself.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone)]
pub struct Surroundings {
    pub vars: BTreeMap<String, String>,
    /// The user's home directory.
    pub home: PathBuf,
    /// Programs that configuration names, by runtime.
    pub programs: BTreeMap<String, String>,
    pub now: fn() -> jiff::Timestamp,
}

impl Surroundings {
    pub fn var(&self, name: &str) -> Option<&str> {
        self.vars.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The first of the variables that is set.
    pub(crate) fn first_var(&self, names: &[&'static str]) -> Option<(&'static str, &str)> {
        names.iter().find_map(|name| self.var(name).map(|value| (*name, value)))
    }

    /// Where a program is: what configuration says for this runtime, else on the path.
    pub(crate) fn program(&self, runtime: &str, name: &str) -> Option<PathBuf> {
        match self.programs.get(runtime) {
            Some(configured) if configured.contains('/') => {
                let path = expand_home(configured, &self.home);
                is_program(&path).then_some(path)
            }
            Some(configured) => self.on_path(configured),
            None => self.on_path(name),
        }
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
