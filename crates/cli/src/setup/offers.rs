//! Providers that are offered, and what of them is found on this machine.

use std::collections::{BTreeMap, BTreeSet};

use hangar_models::facts::{self, Preset};
use hangar_server::Accounts;

use super::config_file::configured_providers;
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

/// What is known of this machine before anything is asked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Offers {
    /// Variables that are set, by name.
    pub(super) variables: BTreeSet<String>,
    /// Providers of the configuration, each with its preset.
    pub(super) existing: BTreeMap<String, Option<String>>,
    /// Where a GitHub login was found.
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
            existing: existing.map(|provider| (provider.name, provider.preset)).collect(),
            github,
            home: settings.home.display().to_string(),
            program: settings.program.clone(),
        }
    }

    /// The variable with the key of a preset, if it is set.
    pub(super) fn found(&self, preset: &Preset) -> Option<&'static str> {
        preset.api_key_env.filter(|name| self.variables.contains(*name))
    }

    /// Name for the table of a preset: its own, unless another provider has that.
    pub(super) fn name_for(&self, preset: Option<&str>) -> String {
        let wanted = preset.unwrap_or("server");
        let is_free = |name: &str| self.existing.get(name).is_none_or(|known| known.as_deref() == preset);
        let numbered = (2..100).map(|number| format!("{wanted}-{number}"));
        std::iter::once(wanted.to_owned()).chain(numbered).find(|name| is_free(name)).unwrap_or_default()
    }
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
    fn a_table_of_another_kind_is_left_alone() {
        let mut offers = Offers::default();
        assert_eq!(offers.name_for(Some("openai")), "openai");
        offers.existing.insert("openai".to_owned(), Some("openai".to_owned()));
        assert_eq!(offers.name_for(Some("openai")), "openai");
        offers.existing.insert("openai".to_owned(), Some("azure".to_owned()));
        assert_eq!(offers.name_for(Some("openai")), "openai-2");
    }
}
