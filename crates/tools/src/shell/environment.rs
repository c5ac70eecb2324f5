//! The environment of commands: what the session was given, without its secrets, and set so that nothing asks questions
//! of a terminal that is not there.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::registry::ShellOptions;

pub(super) type Variables = BTreeMap<OsString, OsString>;

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

/// Settings that go before all that a repository says, for commands that only read. The sandbox keeps what is missing.
const GIT_READING: [(&str, &str); 15] = [
    // The settings of the user, where this stands otherwise, cannot be read.
    ("safe.directory", "*"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.editor", "true"),
    ("core.sshCommand", "false"),
    ("core.alternateRefsCommand", "true"),
    ("credential.helper", ""),
    ("diff.ignoreSubmodules", "dirty"),
    ("gpg.program", "false"),
    ("gpg.ssh.program", "false"),
    ("gpg.x509.program", "false"),
    ("log.showSignature", "false"),
    ("protocol.allow", "never"),
    ("status.submoduleSummary", "false"),
    ("submodule.recurse", "false"),
];

/// Other variables for commands that only read.
const READING: [(&str, &str); 7] = [
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("HISTFILE", "/dev/null"),
    // npm reads settings in the home, whatever it is asked for.
    ("NPM_CONFIG_USERCONFIG", "/dev/null"),
    ("NPM_CONFIG_UPDATE_NOTIFIER", "false"),
];

/// Words in the names of variables that hold secrets.
const SECRET_WORDS: [&str; 12] = [
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "APIKEY",
    "API_KEY",
    "ACCESS_KEY",
    "PRIVATE_KEY",
    "COOKIE",
    "AUTH",
];

pub(super) fn of(options: &ShellOptions) -> Variables {
    let is_secret = |name: &OsStr| options.secrets.iter().any(|secret| name == secret.as_str());
    let mut env: Variables = options
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
        set_git(&mut env, &GIT_SETTINGS);
    }
    env
}

/// The environment of a command that only reads: nothing that looks like a secret, and Git's settings are ours alone.
pub(super) fn reading(env: &Variables, scratch: &Path) -> Variables {
    let is_kept = |(name, value): &(&OsString, &OsString)| {
        !may_be_secret(&name.to_string_lossy(), &value.to_string_lossy())
            && !name.to_string_lossy().starts_with("GIT_CONFIG")
    };
    let kept = env.iter().filter(is_kept).map(|(name, value)| (name.clone(), value.clone()));
    let mut env: Variables = kept.collect();
    for (name, value) in READING {
        env.insert(name.into(), value.into());
    }
    let settings: Vec<(&str, &str)> = GIT_SETTINGS.iter().chain(&GIT_READING).copied().collect();
    set_git(&mut env, &settings);
    for name in ["TMPDIR", "NPM_CONFIG_CACHE"] {
        env.insert(name.into(), scratch.into());
    }
    env
}

fn may_be_secret(name: &str, value: &str) -> bool {
    let name = name.to_ascii_uppercase();
    // `https://user:password@host`
    let has_password = value.split_once("://").is_some_and(|(_, rest)| {
        rest.split('/')
            .next()
            .and_then(|host| host.rsplit_once('@'))
            .is_some_and(|(user, _)| user.contains(':'))
    });
    hangar_process::credentials::is_credential(&name)
        || SECRET_WORDS.iter().any(|word| name.contains(word))
        || name.ends_with("_KEY")
        || name.ends_with("_PAT")
        || has_password
}

fn set_git(env: &mut Variables, settings: &[(&str, &str)]) {
    env.insert("GIT_CONFIG_COUNT".into(), settings.len().to_string().into());
    for (number, (name, value)) in settings.iter().enumerate() {
        env.insert(format!("GIT_CONFIG_KEY_{number}").into(), (*name).into());
        env.insert(format!("GIT_CONFIG_VALUE_{number}").into(), (*value).into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_their_names_or_by_a_password_in_an_address() {
        for (name, value) in [
            ("NPM_TOKEN", "x"),
            ("OPENAI_API_KEY", "x"),
            ("AWS_SECRET_ACCESS_KEY", "x"),
            ("DATABASE_URL", "postgres://me:secret@db/x"),
            ("HTTPS_PROXY", "http://me:secret@proxy:3128"),
            ("SSH_AUTH_SOCK", "/run/agent"),
        ] {
            assert!(may_be_secret(name, value), "{name}");
        }
        for (name, value) in [
            ("PATH", "/bin"),
            ("HOME", "/home/me"),
            ("LANG", "C"),
            ("DOCS", "https://host/@scope/page"),
            ("KEYMAP", "de"),
        ] {
            assert!(!may_be_secret(name, value), "{name}");
        }
    }
}
