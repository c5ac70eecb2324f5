//! Providers that are offered, and what of them is found on this machine.

use std::collections::{BTreeMap, BTreeSet};

use hangar_models::facts::{self, Preset};
use hangar_server::Accounts;

use super::config_file::{ConfiguredProvider, configured_providers};
use super::draft::{KEYS_DIR, is_same_address};
use crate::providers;
use crate::settings::{LoginSource, Settings};

/// Presets with a key, in the order in which they are offered, with their names for people.
pub(super) const HOSTED: [(&str, &str); 15] = [
    ("anthropic", "Anthropic"),
    ("openai", "OpenAI"),
    ("openrouter", "OpenRouter"),
    ("gemini", "Google Gemini"),
    ("xai", "xAI"),
    ("mistral", "Mistral"),
    ("groq", "Groq"),
    ("deepseek", "DeepSeek"),
    ("kimi", "Kimi (Moonshot)"),
    ("qwen", "Qwen (DashScope)"),
    ("glm", "GLM (Z.ai)"),
    ("minimax", "MiniMax"),
    ("azure", "Azure OpenAI"),
    ("bedrock", "Amazon Bedrock"),
    ("vertex", "Google Vertex AI"),
];
/// Servers of one's own machine.
pub(super) const LOCAL: [(&str, &str); 4] =
    [("ollama", "Ollama"), ("lmstudio", "LM Studio"), ("llamacpp", "llama.cpp"), ("vllm", "vLLM")];
pub(super) const COPILOT: &str = "copilot";
/// Name of a server whose address gives none.
const SERVER: &str = "server";
/// Bytes of a name that is made from an address.
const MAX_NAME: usize = 60;

/// Facts about this machine that are known before anything is asked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Offers {
    /// Variables that are set, by name.
    pub(super) variables: BTreeSet<String>,
    /// Providers of the configuration, by name.
    pub(super) existing: BTreeMap<String, ConfiguredProvider>,
    /// Names of the keys that are kept in the home.
    pub(super) keys: BTreeSet<String>,
    /// Source of a GitHub login.
    pub(super) github: Option<String>,
    /// The home folder, for people.
    pub(super) home: String,
    pub(super) program: String,
}

impl Offers {
    /// Looks around. It may start `gh`, so it can take two seconds.
    pub(crate) fn look(settings: &Settings) -> Self {
        let existing = configured_providers(settings).into_iter();
        let offline = settings.flag("COPILOT_OFFLINE");
        let login = (!offline).then(|| providers::github_login(settings, true)).flatten();
        let github = match login.map(|login| login.from) {
            Some(LoginSource::Variable(name)) => Some(format!("{name} is set")),
            Some(LoginSource::GhCli) => Some("the GitHub CLI is logged in".to_owned()),
            Some(LoginSource::Given | LoginSource::Account) => Some("a login is stored".to_owned()),
            None => None,
        };
        Self {
            variables: settings
                .variables()
                .filter(|(_, value)| !value.is_empty())
                .map(|(name, _)| name.to_owned())
                .collect(),
            existing: existing.map(|provider| (provider.name.clone(), provider)).collect(),
            keys: names_in(&settings.home.join(KEYS_DIR)),
            github,
            home: settings.home.display().to_string(),
            program: settings.program.clone(),
        }
    }

    /// The variable with the key of a preset, if it is set.
    pub(super) fn found(&self, preset: &Preset) -> Option<&'static str> {
        preset.api_key_env.filter(|name| self.variables.contains(*name))
    }

    /// Name for the table of a provider: that of its preset or of its host. The name of another provider is not taken, nor that
    /// of a key that is kept.
    pub(super) fn name_for(&self, preset: Option<&str>, base_url: Option<&str>) -> String {
        let wanted = preset.map(str::to_owned).or_else(|| host_name(base_url?));
        let wanted = wanted.unwrap_or_else(|| SERVER.to_owned());
        let is_same = |known: &ConfiguredProvider| {
            known.preset.as_deref() == preset && is_same_address(preset, known.base_url.as_deref(), base_url)
        };
        let is_free = |name: &str| match self.existing.get(name) {
            Some(known) => is_same(known),
            None => name != providers::GITHUB && !self.keys.contains(name),
        };
        let numbered = (2..).map(|number| format!("{wanted}-{number}"));
        let mut names = std::iter::once(wanted.clone()).chain(numbered);
        // A provider that is there already keeps its name.
        let before = [wanted.as_str(), SERVER].into_iter();
        let mut before = before.filter(|name| self.existing.get(*name).is_some_and(is_same));
        before.next().map(str::to_owned).or_else(|| names.find(|name| is_free(name))).unwrap_or_default()
    }
}

/// Name for a table from the host and the port of an address.
fn host_name(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?.to_ascii_lowercase();
    let parts: Vec<&str> =
        host.split(|char: char| !char.is_ascii_alphanumeric()).filter(|part| !part.is_empty()).collect();
    let name = parts.join("-");
    (!name.is_empty() && name.len() <= MAX_NAME).then_some(name)
}

/// Names of the files in a directory, none if there is no such directory.
fn names_in(dir: &std::path::Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Settings with the stored GitHub login, where there is no other one.
pub(crate) fn with_account(settings: &Settings) -> Settings {
    match Accounts::of(&settings.home).current() {
        Some(account) if providers::github_login(settings, false).is_none() => {
            settings.with_login(&account.token, LoginSource::Account)
        }
        _ => settings.clone(),
    }
}

/// Name of a preset for people.
pub(super) fn label(preset: &str) -> &str {
    if preset == COPILOT {
        return "GitHub Copilot";
    }
    HOSTED.iter().chain(&LOCAL).find(|(name, _)| *name == preset).map_or(preset, |(_, label)| label)
}

/// A preset that is in the tables.
pub(super) fn preset(name: &str) -> Option<Preset> {
    facts::preset(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_offered() {
        let offered: BTreeSet<&str> =
            HOSTED.iter().chain(&LOCAL).map(|(name, _)| *name).chain([COPILOT]).collect();
        assert_eq!(offered, facts::presets().collect());
    }

    #[test]
    fn the_name_of_another_provider_is_not_taken() {
        let known = |name: &str, preset: Option<&str>, base_url: Option<&str>| {
            let (preset, base_url) = (preset.map(str::to_owned), base_url.map(str::to_owned));
            let provider =
                ConfiguredProvider { name: name.to_owned(), preset, base_url, credential: String::new() };
            (name.to_owned(), provider)
        };
        let existing = [
            known("openai", Some("openai"), None),
            known("groq", Some("groq"), Some("https://gateway.example/v1")),
            known("mistral", Some("azure"), None),
            known("azure", Some("azure"), Some("https://one.example")),
            known("server", None, Some("https://old.example/v1/")),
            known("localhost-8080", None, Some("http://localhost:8080/other")),
        ];
        let offers = Offers {
            existing: existing.into(),
            keys: ["localhost-9".to_owned(), "openai".to_owned()].into(),
            ..Offers::default()
        };
        for (preset, url, name) in [
            (Some("anthropic"), None, "anthropic"),
            (Some("openai"), None, "openai"),
            (Some("groq"), None, "groq-2"),
            (Some("mistral"), None, "mistral-2"),
            (Some("azure"), Some("https://one.example"), "azure"),
            (Some("azure"), Some("https://two.example"), "azure-2"),
            (None, Some("https://old.example/v1"), "server"),
            (None, Some("https://new.example/v1"), "new-example"),
            (None, Some("http://localhost:8080/v1"), "localhost-8080-2"),
            (None, Some("http://localhost:8080/other"), "localhost-8080"),
            (None, Some("http://localhost:9/v1"), "localhost-9-2"),
            (None, Some("http://me:word@[::1]:80/v1"), "1-80"),
            (None, Some("http://github/v1"), "github-2"),
            (None, Some("http:///v1"), "server-2"),
        ] {
            assert_eq!(offers.name_for(preset, url), name, "{preset:?} {url:?}");
        }
    }
}
