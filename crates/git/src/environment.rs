//! The environment of git: an allow-list of variables, plus variables that disable prompts, fetches and locks.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Variables that git needs to find itself, the user's configuration and a language.
const ALLOWED: [&str; 10] =
    ["PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TMPDIR", "TZ", "XDG_CONFIG_HOME", "SYSTEMROOT"];
const ALLOWED_PREFIX: &str = "LC_";
/// Variables that a clone over the network needs beside them. Other calls do not see them: a proxy's URL may hold a password.
const NETWORK: [&str; 13] = [
    "SSH_AUTH_SOCK",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
];

/// Disables prompts, network access and optional locks, which could block a user's own git command.
const SWITCHES: [(&str, &str); 8] = [
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", ""),
    ("SSH_ASKPASS", ""),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_PAGER", "cat"),
    ("GIT_SSH_COMMAND", "false"),
];

/// The variables that git sees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    common: Vec<(OsString, OsString)>,
    /// Variables for clones only.
    network: Vec<(OsString, OsString)>,
    /// Whether the network is not to be used.
    pub(crate) is_offline: bool,
}

/// Variable that forbids the use of the network.
const OFFLINE: &str = "COPILOT_OFFLINE";

impl Environment {
    /// Filters these variables by the allow-list. No variable that names a program or a repository passes, nor one that holds a
    /// secret of ours.
    pub fn of(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let allowed = |name: &OsStr| {
            name.to_str().is_some_and(|name| ALLOWED.contains(&name) || name.starts_with(ALLOWED_PREFIX))
        };
        let mut environment = Self::default();
        for (name, value) in variables {
            if name == OFFLINE {
                environment.is_offline = value == "true" || value == "1";
            } else if allowed(&name) {
                let value = if name == "PATH" { absolute(&value) } else { value };
                environment.common.push((name, value));
            } else if name.to_str().is_some_and(|name| NETWORK.contains(&name)) {
                environment.network.push((name, value));
            }
        }
        environment
    }

    /// Variables for a call that uses the network, beside those of every call.
    pub(crate) fn network(&self) -> &[(OsString, OsString)] {
        &self.network
    }

    /// The variables of a git call in a repository. Directories of the repository are not on its search path: a program
    /// in them is somebody's, whatever it is called.
    pub(crate) fn variables_in(&self, repository: &Path) -> impl Iterator<Item = (&OsStr, OsString)> {
        let real = repository.canonicalize().unwrap_or_else(|_| repository.to_owned());
        let given = self.common.iter().map(move |(name, value)| {
            let value = if name == "PATH" { outside(value, &[repository, &real]) } else { value.clone() };
            (name.as_os_str(), value)
        });
        given.chain(SWITCHES.iter().map(|(name, value)| (OsStr::new(*name), OsString::from(*value))))
    }
}

/// Removes relative directories from a search path, so that a program of the repository is never run as git.
fn absolute(path: &OsStr) -> OsString {
    let dirs = std::env::split_paths(path).filter(|dir| dir.is_absolute());
    std::env::join_paths(dirs).unwrap_or_default()
}

/// Removes directories at or below these ones from a search path, by whichever way they lead there.
fn outside(path: &OsStr, repository: &[&Path]) -> OsString {
    let is_within = |dir: &Path| repository.iter().any(|root| dir.starts_with(root));
    let is_outside =
        |dir: &PathBuf| !is_within(dir) && !dir.canonicalize().is_ok_and(|real| is_within(&real));
    std::env::join_paths(std::env::split_paths(path).filter(is_outside)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_the_repository_are_not_on_the_search_path() {
        let home = tempfile::tempdir().unwrap();
        let repository = home.path().join("repository");
        std::fs::create_dir_all(repository.join("bin")).unwrap();
        std::os::unix::fs::symlink(repository.join("bin"), home.path().join("link")).unwrap();
        let path =
            std::env::join_paths([&repository.join("bin"), &home.path().join("link"), Path::new("/usr/bin")]);
        let environment = Environment::of([("PATH".into(), path.unwrap())]);
        let (_, path) = environment.variables_in(&repository).next().unwrap();
        assert_eq!(path, "/usr/bin");
    }

    #[test]
    fn secrets_and_variables_of_git_are_left_out_and_so_are_relative_directories() {
        let given = [
            ("PATH", "/bin:.:rel/bin:/usr/bin"),
            ("HOME", "/u"),
            ("LC_ALL", "C"),
            ("GIT_DIR", "/evil"),
            ("GIT_CONFIG_PARAMETERS", "'core.fsmonitor=evil'"),
            ("COPILOT_PROVIDER_API_KEY", "k"),
            ("LD_PRELOAD", "/evil.so"),
        ];
        let environment = Environment::of(given.map(|(name, value)| (name.into(), value.into())));
        let kept = [("PATH", "/bin:/usr/bin"), ("HOME", "/u"), ("LC_ALL", "C")];
        assert_eq!(environment.common, kept.map(|(name, value)| (name.into(), value.into())));
    }
}
