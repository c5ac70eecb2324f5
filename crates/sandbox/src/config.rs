//! The settings of a sandbox as people and clients write them, and the policy that they come to.
//!
//! The shape is the one of Copilot CLI's settings and of its SDK's `sandboxConfig`. What is asked for and cannot be kept
//! is an error: a sandbox that is weaker than its settings say would be trusted for nothing.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{Network, SandboxPolicy};

#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SandboxConfig {
    /// Whether all commands run in the sandbox.
    pub enabled: bool,
    pub add_current_working_directory: Option<bool>,
    /// Whether MCP servers are confined too (default: yes).
    pub sandbox_mcp_servers: Option<bool>,
    /// Whether MCP servers that a project configures are confined even where the sandbox is off.
    #[serde(default)]
    pub sandbox_project_mcp_servers: bool,
    #[serde(default)]
    pub user_policy: UserPolicy,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct UserPolicy {
    pub filesystem: Filesystem,
    pub network: NetworkRules,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Filesystem {
    pub readwrite_paths: Vec<PathBuf>,
    /// All that is not denied may be read, so these only lift what is denied by default.
    pub readonly_paths: Vec<PathBuf>,
    pub denied_paths: Vec<PathBuf>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkRules {
    pub allow_outbound: Option<bool>,
    pub allow_local_network: Option<bool>,
    pub allowed_hosts: Vec<String>,
    pub blocked_hosts: Vec<String>,
    pub proxy: Option<serde_json::Value>,
}

/// Where a session is.
#[derive(Debug, Clone)]
pub struct Places {
    pub cwd: PathBuf,
    /// Directories that commands may write to besides.
    pub writable: Vec<PathBuf>,
    pub protected: Vec<PathBuf>,
    /// The user's home directory, for `~` and for what is denied in it by default.
    pub home: Option<PathBuf>,
    /// More that is denied by default.
    pub private: Vec<PathBuf>,
}

/// Settings that cannot be kept.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unenforceable {
    #[error("the sandbox cannot filter by host; leave out allowedHosts, blockedHosts and proxy")]
    Hosts,
    #[error("the sandbox cannot allow the network without the local one; leave out allowLocalNetwork")]
    LocalNetwork,
    #[error(
        "the sandbox cannot deny {} inside of {}, where commands may write",
        denied.display(),
        writable.display()
    )]
    Denied { denied: PathBuf, writable: PathBuf },
}

/// Where programs keep credentials, below the home directory.
const CREDENTIALS: [&str; 27] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".netrc",
    ".git-credentials",
    ".pypirc",
    ".docker/config.json",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".password-store",
    ".local/share/keyrings",
    ".copilot",
    ".codex",
    ".claude",
    ".claude.json",
    ".npmrc",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
    ".terraform.d/credentials.tfrc.json",
    ".config/op",
    ".local/share/opencode/auth.json",
    ".vault-token",
];

/// Where programs keep credentials.
pub fn credentials(home: &Path) -> impl Iterator<Item = PathBuf> {
    CREDENTIALS.iter().map(|path| home.join(path))
}

impl SandboxConfig {
    /// A sandbox with nothing said about it.
    pub fn enabled() -> Self {
        Self { enabled: true, ..Self::default() }
    }

    pub fn confines_mcp_servers(&self) -> bool {
        self.enabled && self.sandbox_mcp_servers != Some(false)
    }

    /// The sandbox for MCP servers of a project, if the setting asks for one and the session has none.
    pub fn for_project_servers(&self) -> Option<Self> {
        let wanted = self.sandbox_project_mcp_servers && !self.confines_mcp_servers();
        wanted.then(|| Self { enabled: true, ..self.clone() })
    }

    pub fn policy(&self, places: Places) -> Result<SandboxPolicy, Unenforceable> {
        let Filesystem { readwrite_paths, readonly_paths, denied_paths } = &self.user_policy.filesystem;
        let real = |path: &PathBuf| expand(path, &places.cwd, places.home.as_deref());
        let mut writable: Vec<PathBuf> = readwrite_paths.iter().map(real).collect();
        if self.add_current_working_directory != Some(false) {
            writable.push(real(&places.cwd));
        }
        writable.extend(places.writable.iter().map(real));
        let denied: Vec<PathBuf> = denied_paths.iter().map(real).collect();
        let network = self.user_policy.network.network()?;
        let mut policy = SandboxPolicy {
            writable,
            protected: places.protected.iter().map(real).collect(),
            denied,
            network,
            ..SandboxPolicy::default()
        };
        if let Some((denied, writable)) = policy.contradiction() {
            return Err(Unenforceable::Denied { denied: denied.to_owned(), writable: writable.to_owned() });
        }
        // A path that is allowed by name overrides a default denial.
        let allowed: Vec<PathBuf> = readonly_paths.iter().map(real).chain(policy.writable.clone()).collect();
        let credentials = places.home.iter().flat_map(|home| credentials(home));
        let private = credentials.chain(places.private.iter().cloned()).map(|path| real(&path));
        policy.denied.extend(private.filter(|path| !allowed.iter().any(|allowed| path.starts_with(allowed))));
        Ok(policy)
    }
}

impl NetworkRules {
    fn network(&self) -> Result<Network, Unenforceable> {
        if self.allow_outbound != Some(true) {
            return Ok(Network::Closed);
        }
        if !self.allowed_hosts.is_empty() || !self.blocked_hosts.is_empty() || self.proxy.is_some() {
            return Err(Unenforceable::Hosts);
        }
        if self.allow_local_network == Some(false) {
            return Err(Unenforceable::LocalNetwork);
        }
        Ok(Network::Open)
    }
}

/// `~` and `~/path` of a settings file.
fn under_home(path: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    }
}

/// A path of the settings: `~` is the home, and what is relative is below the working directory. Links are resolved.
pub fn expand(path: &Path, cwd: &Path, home: Option<&Path>) -> PathBuf {
    real(&cwd.join(under_home(path, home)))
}

/// With links resolved as far as the path exists.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(settings: serde_json::Value) -> Result<SandboxPolicy, Unenforceable> {
        let config: SandboxConfig = serde_json::from_value(settings).unwrap();
        config.policy(Places {
            cwd: "/p/w".into(),
            writable: vec!["/p/t".into()],
            protected: Vec::new(),
            home: Some("/p/h".into()),
            private: vec!["/p/h/.hangar".into()],
        })
    }

    fn paths(paths: &[&str]) -> Vec<PathBuf> {
        paths.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn nothing_said_means_the_places_of_the_session_no_network_and_no_credentials() {
        let policy = check(serde_json::json!({"enabled": true})).unwrap();
        assert_eq!(policy.writable, paths(&["/p/w", "/p/t"]));
        assert_eq!(policy.network, Network::Closed);
        for path in ["/p/h/.ssh", "/p/h/.hangar", "/p/h/.docker/config.json"] {
            assert!(policy.denied.contains(&PathBuf::from(path)), "{path}");
        }
    }

    #[test]
    fn settings_widen_and_narrow_and_what_is_allowed_by_name_is_not_denied_by_default() {
        let policy = check(serde_json::json!({
            "enabled": true,
            "addCurrentWorkingDirectory": false,
            "userPolicy": {
                "filesystem": {
                    "readwritePaths": ["~/cache", "sub"], "readonlyPaths": ["~/.aws"], "deniedPaths": ["/p/x"]
                },
                "network": {"allowOutbound": true}
            }
        }))
        .unwrap();
        assert_eq!(policy.writable, paths(&["/p/h/cache", "/p/w/sub", "/p/t"]));
        assert_eq!(policy.network, Network::Open);
        assert!(policy.denied.contains(&"/p/x".into()) && !policy.denied.contains(&"/p/h/.aws".into()));
    }

    #[test]
    fn what_cannot_be_kept_is_refused() {
        let network = |rules| check(serde_json::json!({"enabled": true, "userPolicy": {"network": rules}}));
        let hosts = serde_json::json!({"allowOutbound": true, "allowedHosts": ["example.com"]});
        assert_eq!(network(hosts), Err(Unenforceable::Hosts));
        let remote_only = serde_json::json!({"allowOutbound": true, "allowLocalNetwork": false});
        assert_eq!(network(remote_only), Err(Unenforceable::LocalNetwork));
        let inside = serde_json::json!({"deniedPaths": ["/p/w/secret"]});
        let denied = check(serde_json::json!({"enabled": true, "userPolicy": {"filesystem": inside}}));
        assert!(matches!(denied, Err(Unenforceable::Denied { .. })), "{denied:?}");
    }

    #[test]
    fn a_table_that_does_not_say_whether_it_is_on_is_no_setting() {
        assert!(serde_json::from_str::<SandboxConfig>("{}").is_err());
    }
}
