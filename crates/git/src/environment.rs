//! The environment of git: an allow-list of variables, plus variables that disable prompts, fetches and locks.

use std::ffi::{OsStr, OsString};

/// Variables that git needs to find itself, the user's configuration and a language.
const ALLOWED: [&str; 10] =
    ["PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TMPDIR", "TZ", "XDG_CONFIG_HOME", "SYSTEMROOT"];
const ALLOWED_PREFIX: &str = "LC_";

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
pub struct Environment(Vec<(OsString, OsString)>);

impl Environment {
    /// Filters these variables by the allow-list. No variable of git itself passes, nor one that holds a secret.
    pub fn of(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let allowed = |name: &OsStr| {
            name.to_str().is_some_and(|name| ALLOWED.contains(&name) || name.starts_with(ALLOWED_PREFIX))
        };
        let kept = variables.into_iter().filter(|(name, _)| allowed(name)).map(|(name, value)| {
            let value = if name == "PATH" { absolute(&value) } else { value };
            (name, value)
        });
        Self(kept.collect())
    }

    pub(crate) fn variables(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        let given = self.0.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()));
        given.chain(SWITCHES.iter().map(|(name, value)| (OsStr::new(*name), OsStr::new(*value))))
    }
}

/// Removes relative directories from a search path, so that a program of the repository is never run as git.
fn absolute(path: &OsStr) -> OsString {
    let dirs = std::env::split_paths(path).filter(|dir| dir.is_absolute());
    std::env::join_paths(dirs).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(environment.0, kept.map(|(name, value)| (name.into(), value.into())));
    }
}
