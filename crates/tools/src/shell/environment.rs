//! The environment of commands: what the session was given, without its secrets, and set so that nothing asks questions
//! of a terminal that is not there.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use super::registry::ShellOptions;

/// Files that a shell would run before the command.
const STARTUP_FILES: [&str; 2] = ["BASH_ENV", "ENV"];

const QUIET: [(&str, &str); 10] = [
    ("TERM", "dumb"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GH_PAGER", "cat"),
    ("MANPAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", ""),
    ("SSH_ASKPASS", ""),
    ("GCM_INTERACTIVE", "Never"),
    // Looking at a repository must not take locks that a real command waits for.
    ("GIT_OPTIONAL_LOCKS", "0"),
];

/// Settings that keep git from running programs named by a repository that was merely looked into.
const GIT_SETTINGS: [(&str, &str); 3] =
    [("safe.bareRepository", "explicit"), ("credential.interactive", "never"), ("core.fsmonitor", "false")];

pub(super) fn of(options: &ShellOptions) -> BTreeMap<OsString, OsString> {
    let is_secret = |name: &OsStr| options.secrets.iter().any(|secret| name == secret.as_str());
    let mut env: BTreeMap<OsString, OsString> = options
        .env
        .iter()
        .filter(|(name, _)| !is_secret(name) && !STARTUP_FILES.iter().any(|startup| name == startup))
        .cloned()
        .collect();
    for (name, value) in QUIET {
        env.insert(name.into(), value.into());
    }
    // Settings that came with the environment are a numbered list, which must not be cut short.
    if !env.contains_key(OsStr::new("GIT_CONFIG_COUNT")) {
        env.insert("GIT_CONFIG_COUNT".into(), GIT_SETTINGS.len().to_string().into());
        for (number, (name, value)) in GIT_SETTINGS.into_iter().enumerate() {
            env.insert(format!("GIT_CONFIG_KEY_{number}").into(), name.into());
            env.insert(format!("GIT_CONFIG_VALUE_{number}").into(), value.into());
        }
    }
    env
}
