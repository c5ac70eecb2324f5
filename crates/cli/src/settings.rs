//! Settings of the process: the one place where variables, the home folder and `config.toml` are read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use hangar_agent::features::Features;
use hangar_store::{LogReplica, Store};

/// Largest factor of the delays before retries.
const MAX_RETRY_SCALE: f64 = 1000.0;

#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// Name by which the program was started, for hints: `hangar`, or `copilot` through a symlink.
    pub(crate) program: String,
    /// Home folder, with all state.
    pub(crate) home: PathBuf,
    env: BTreeMap<String, String>,
    /// GitHub login that was passed explicitly. It takes precedence over all others.
    pub(crate) login: Option<GitHubLogin>,
    pub(crate) logins: LoginPlaces,
    /// Secrets of this process that no table knows.
    secrets: Vec<OwnSecret>,
    /// Copies of the logs of sessions on other machines.
    replica: Option<Arc<dyn LogReplica>>,
    /// Text of `config.toml` that is used whatever the file says.
    config: Option<Arc<str>>,
}

/// Secret that was named to us.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OwnSecret {
    /// The variable that it came in.
    variable: Option<String>,
    value: String,
}

/// A login to GitHub.
#[derive(Debug, Clone)]
pub(crate) struct GitHubLogin {
    pub(crate) token: String,
    pub(crate) from: LoginSource,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoginSource {
    /// It was passed to the server or to the session.
    Given,
    /// It was stored by a login.
    Account,
    Variable(&'static str),
    GhCli,
}

/// Places that are searched for a GitHub login if none was passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoginPlaces {
    /// In the environment, then that of the GitHub CLI.
    Any,
    /// In the environment only: no program is started for it.
    Variables,
    Nowhere,
}

impl Settings {
    pub(crate) fn from_process() -> Result<Self> {
        let program = std::env::args_os()
            .next()
            .and_then(|arg| Path::new(&arg).file_stem().map(|stem| stem.to_string_lossy().into_owned()))
            .unwrap_or_else(|| "hangar".to_owned());
        let env: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Self::new(program, env)
    }

    /// The same settings with another home.
    pub(crate) fn in_home(&self, home: &Path) -> Result<Self> {
        let home = std::path::absolute(home)
            .with_context(|| format!("invalid home directory {}", home.display()))?;
        Ok(self.with_home(&home))
    }

    /// The same settings with a home that was checked before. It has a configuration of its own.
    pub(crate) fn with_home(&self, home: &Path) -> Self {
        Self { home: home.to_owned(), config: None, ..self.clone() }
    }

    /// The same settings with a text of `config.toml`, whatever the file says later.
    pub(crate) fn with_config(&self, text: Arc<str>) -> Self {
        Self { config: Some(text), ..self.clone() }
    }

    fn new(program: String, env: BTreeMap<String, String>) -> Result<Self> {
        let program = if program == "copilot" { program } else { "hangar".to_owned() };
        let home = home(&program, &env)?;
        Ok(Self {
            program,
            home,
            env,
            login: None,
            logins: LoginPlaces::Any,
            secrets: Vec::new(),
            replica: None,
            config: None,
        })
    }

    /// The same settings with one variable set, as if the environment said so.
    pub(crate) fn with_var(&self, name: &str, value: &str) -> Self {
        let mut settings = self.clone();
        settings.env.insert(name.to_owned(), value.to_owned());
        settings
    }

    /// The same settings with copies of the logs of sessions elsewhere.
    pub(crate) fn with_replica(&self, replica: Arc<dyn LogReplica>) -> Self {
        Self { replica: Some(replica), ..self.clone() }
    }

    /// The sessions of the home.
    pub(crate) fn store(&self) -> Store {
        Store::new(&self.home).with_replica(self.replica.clone())
    }

    /// The same settings with a login of its own.
    pub(crate) fn with_login(&self, token: &str, from: LoginSource) -> Self {
        Self { login: Some(GitHubLogin { token: token.to_owned(), from }), ..self.clone() }
    }

    /// The same settings with a secret that no child may see and no output show.
    pub(crate) fn with_secret(&self, variable: Option<&str>, value: &str) -> Self {
        let mut settings = self.clone();
        let secret = OwnSecret { variable: variable.map(str::to_owned), value: value.to_owned() };
        if !settings.secrets.contains(&secret) {
            settings.secrets.push(secret);
        }
        settings
    }

    /// The variables that hold such secrets.
    pub(crate) fn secret_variables(&self) -> impl Iterator<Item = &str> {
        self.secrets.iter().filter_map(|secret| secret.variable.as_deref())
    }

    pub(crate) fn secret_values(&self) -> impl Iterator<Item = &str> {
        self.secrets.iter().map(|secret| secret.value.as_str())
    }

    /// All variables.
    pub(crate) fn vars(&self) -> &BTreeMap<String, String> {
        &self.env
    }

    /// A variable that is set and not empty.
    pub(crate) fn var(&self, name: &str) -> Option<&str> {
        self.env.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// All variables that are set.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.env.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// A switch: `true`, `1`, `yes` or `on`.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.var(name)
            .is_some_and(|value| ["true", "1", "yes", "on"].iter().any(|yes| value.eq_ignore_ascii_case(yes)))
    }

    pub(crate) fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>> {
        match self.var(name) {
            None => Ok(None),
            Some(text) => match text.parse() {
                Ok(number) => Ok(Some(number)),
                Err(_) => bail!("{name} is `{text}`, which is not a number"),
            },
        }
    }

    /// Factor of every delay before a retry, of model calls, MCP servers, jobs, issues and notifications alike. It exists for
    /// tests, which do not wait for a minute.
    pub(crate) fn retry_scale(&self) -> Result<f64> {
        let scale: Option<f64> = self.number("HANGAR_RETRY_SCALE")?;
        // Delays cannot be multiplied by a negative number or by one without end.
        Ok(scale.filter(|scale| scale.is_finite()).unwrap_or(1.0).clamp(0.0, MAX_RETRY_SCALE))
    }

    /// Enabled features: the defaults, as changed by `HANGAR_FEATURES`.
    pub(crate) fn features(&self) -> Result<Features> {
        let mut features = Features::default();
        // Copilot's variable mostly names features that do not exist here; those are ignored.
        for name in self.var("COPILOT_CLI_ENABLED_FEATURE_FLAGS").unwrap_or_default().split(',') {
            let _ = features.switch(name.trim_start_matches('-'));
        }
        if self.var("COPILOT_EXP_COPILOT_CLI_WEBSOCKET_RESPONSES") == Some("false") {
            features.switch("-websockets")?;
        }
        features.switch(self.var("HANGAR_FEATURES").unwrap_or_default()).context("HANGAR_FEATURES")?;
        Ok(features)
    }

    pub(crate) fn config_path(&self) -> PathBuf {
        self.home.join("config.toml")
    }

    /// `config.toml` as text; absent is empty.
    pub(crate) fn config_text(&self) -> Result<String> {
        if let Some(text) = &self.config {
            return Ok(text.as_ref().to_owned());
        }
        let path = self.config_path();
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// Parses the text of `config.toml`.
    pub(crate) fn parse_config<T: serde::de::DeserializeOwned>(&self, text: &str) -> Result<T> {
        parse_toml(text).map_err(|error| anyhow!("cannot use {}: {error}", self.config_path().display()))
    }
}

/// Reads a configuration. The error names the line and does not show it: there may be a key on it.
pub(crate) fn parse_toml<T: serde::de::DeserializeOwned>(text: &str) -> Result<T> {
    toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        anyhow!("config.toml:{line}: {}", error.message())
    })
}

fn home(program: &str, env: &BTreeMap<String, String>) -> Result<PathBuf> {
    let given = |name: &str| env.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // An explicit Hangar home is never overridden. Copilot's is honoured so that Hangar can replace it.
    if let Some(home) = given("HANGAR_HOME").or_else(|| given("COPILOT_HOME")) {
        return std::path::absolute(&home)
            .with_context(|| format!("invalid home directory {}", home.display()));
    }
    let Some(user) = given("HOME") else {
        bail!("neither HANGAR_HOME nor HOME is set, so there is nowhere to keep sessions");
    };
    Ok(user.join(if program == "copilot" { ".copilot" } else { ".hangar" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(program: &str, env: &[(&str, &str)], home: &str) {
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let settings = Settings::new(program.to_owned(), env).unwrap();
        assert_eq!(settings.home, Path::new(home));
    }

    #[test]
    fn the_home_folder_follows_the_name_and_the_variables() {
        check("hangar", &[("HOME", "/u")], "/u/.hangar");
        check("copilot", &[("HOME", "/u")], "/u/.copilot");
        check("hangar", &[("HOME", "/u"), ("COPILOT_HOME", "/c")], "/c");
        check("copilot", &[("HOME", "/u"), ("COPILOT_HOME", "/c"), ("HANGAR_HOME", "/h")], "/h");
        check("hangar", &[("HOME", "/u"), ("HANGAR_HOME", "")], "/u/.hangar");
    }

    #[test]
    fn delays_are_never_multiplied_by_what_they_cannot_be() {
        let scale = |text: &str| {
            let env = [("HOME", "/u"), ("HANGAR_RETRY_SCALE", text)];
            let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            Settings::new("hangar".to_owned(), env).unwrap().retry_scale()
        };
        for (text, expected) in [("0.5", 0.5), ("-1", 0.0), ("1e30", 1000.0), ("NaN", 1.0), ("inf", 1.0)] {
            assert_eq!(scale(text).unwrap(), expected, "{text}");
        }
        assert_eq!(scale("x").unwrap_err().to_string(), "HANGAR_RETRY_SCALE is `x`, which is not a number");
    }

    #[test]
    fn without_any_home_there_is_a_sentence() {
        let error = Settings::new("hangar".to_owned(), BTreeMap::new()).unwrap_err();
        assert!(error.to_string().contains("HANGAR_HOME"), "{error}");
    }
}
