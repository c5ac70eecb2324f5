//! The environment of commands: what the session was given, without its secrets, and set so that nothing asks questions
//! of a terminal that is not there.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::registry::ShellOptions;

pub(super) type EnvironmentVariables = BTreeMap<OsString, OsString>;

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

/// Substrings of the names of variables that hold secrets.
const SECRET_SUBSTRINGS: [&str; 9] =
    ["TOKEN", "SECRET", "PASS", "CREDENTIAL", "APIKEY", "COOKIE", "AUTH", "KUBECONFIG_", "WEBHOOK"];
/// Words between underscores in such names: `DEPLOY_KEY`, `SIGNING_KEY_B64`, `MYSQL_PWD`, `OP_SESSION_x`, `VAULT_UNSEAL`.
const SECRET_WORDS: [&str; 9] = ["KEY", "PAT", "PWD", "SESSION", "VAULT", "DSN", "JWT", "CREDS", "PIN"];
/// Names that have such a word and hold no secret.
const NO_SECRETS: [&str; 6] =
    ["PWD", "OLDPWD", "DESKTOP_SESSION", "XDG_SESSION_ID", "XDG_SESSION_TYPE", "XDG_SESSION_CLASS"];
/// Beginnings of values that only secrets have: tokens of GitHub, GitLab, npm, PyPI, model vendors, Slack, AWS, Google, and JSON Web Tokens.
const SECRET_PREFIXES: [&str; 17] = [
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "npm_",
    "pypi-",
    "sk-",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "AKIA",
    "ASIA",
    "AIza",
    "hf_",
    "eyJ",
];
/// Parts of values that only secrets have, in lower case: keys in PEM, connection strings, addresses that are a secret.
const SECRET_PARTS: [&str; 7] =
    ["-----begin ", "accountkey=", "password=", "passwd=", "pwd=", "secret=", "hooks.slack.com/services/"];

pub(super) fn of(options: &ShellOptions) -> EnvironmentVariables {
    let is_secret = |name: &OsStr| options.secrets.iter().any(|secret| name == secret.as_str());
    let mut env: EnvironmentVariables = options
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
pub(super) fn reading(env: &EnvironmentVariables, scratch: &Path) -> EnvironmentVariables {
    let is_kept = |(name, value): &(&OsString, &OsString)| {
        !may_be_secret(&name.to_string_lossy(), &value.to_string_lossy())
            && !name.to_string_lossy().starts_with("GIT_CONFIG")
    };
    let kept = env.iter().filter(is_kept).map(|(name, value)| (name.clone(), value.clone()));
    let mut env: EnvironmentVariables = kept.collect();
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
    if NO_SECRETS.contains(&name.as_str()) {
        return false;
    }
    hangar_process::credentials::is_credential(&name)
        || SECRET_SUBSTRINGS.iter().any(|part| name.contains(part))
        || name.split('_').any(|word| SECRET_WORDS.contains(&word))
        || is_secret_value(value)
}

fn is_secret_value(value: &str) -> bool {
    // `https://user:password@host`, `user:password@host:3128` and the key of a DSN, `https://key@host/1`.
    let (scheme, rest) = value.split_once("://").map_or(("", value), |(scheme, rest)| (scheme, rest));
    let authority = rest.split(['/', '?', '#', ' ']).next().unwrap_or_default();
    let has_user = authority.rsplit_once('@').is_some_and(|(user, host)| {
        !host.is_empty() && (user.contains(':') || (scheme.starts_with("http") && !user.is_empty()))
    });
    let lower = value.to_ascii_lowercase();
    has_user
        || SECRET_PREFIXES.iter().any(|prefix| value.starts_with(prefix))
        || SECRET_PARTS.iter().any(|part| lower.contains(part))
}

fn set_git(env: &mut EnvironmentVariables, settings: &[(&str, &str)]) {
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
            ("MYSQL_PWD", "x"),
            ("DB_PASS", "x"),
            ("SSHPASS", "x"),
            ("SIGNING_KEY_B64", "x"),
            ("OP_SESSION_me", "x"),
            ("VAULT_UNSEAL", "x"),
            ("KUBECONFIG_DATA", "x"),
            ("A", "ghp_0123456789"),
            ("A", "sk-ant-0123"),
            ("A", "-----BEGIN PRIVATE KEY-----"),
            ("A", "DefaultEndpointsProtocol=https;AccountKey=abc"),
            ("A", "jdbc:mysql://db/x?user=me&password=secret"),
            ("HTTP_PROXY", "me:secret@proxy:3128"),
            ("A", "https://0123456789abcdef@sentry.example/1"),
            ("A", "https://hooks.slack.com/services/T0/B0/x"),
        ] {
            assert!(may_be_secret(name, value), "{name}");
        }
        for (name, value) in [
            ("PATH", "/bin"),
            ("HOME", "/home/me"),
            ("LANG", "C"),
            ("DOCS", "https://host/@scope/page"),
            ("KEYMAP", "de"),
            ("PWD", "/home/me"),
            ("XDG_SESSION_TYPE", "tty"),
            ("EMAIL", "me@host"),
            ("SSH_CONNECTION", "10.0.0.1 22 10.0.0.2 22"),
        ] {
            assert!(!may_be_secret(name, value), "{name}");
        }
    }
}
