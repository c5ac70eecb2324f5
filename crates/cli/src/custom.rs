//! Configuration that applies to the working directory of a session: settings, plugins, hooks, skills.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hangar_agent::agents::AgentDefinition;
use hangar_agent::driver::Hooks;
use hangar_agent::hook::{Chain, HookSet};
use hangar_agent::permissions::{Policy, Rule};
use hangar_agent::session::SessionInput;
use hangar_agent::tool::ToolSource;
use hangar_custom::CustomPaths;
use hangar_custom::hooks::{self, ConfiguredHooks, HookFiles, HookOrigin, ListedHook};
use hangar_custom::plugins::Plugin;
use hangar_custom::settings::Preferences;
use hangar_custom::skills::{SkillPlaces, Skills};
use hangar_spec::{CustomizationOptions, ToolOptions};
use tokio::sync::mpsc;

use crate::compose::Extensions;
use crate::credentials;
use crate::settings::Settings;
use crate::workspace::git::Repository;
use crate::workspace::trust::is_trusted;

/// Hooks of the machine's administrator.
const POLICY_DIR: &str = "/etc/github-copilot/policy.d";
/// Shell that runs the commands of hooks.
const SHELL: &str = "/bin/bash";

/// Places that are searched for configuration.
pub(crate) struct ConfigSources<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) extensions: &'a Extensions,
    pub(crate) options: &'a CustomizationOptions,
    pub(crate) cwd: &'a Path,
    pub(crate) repository: Option<&'a Repository>,
}

impl ConfigSources<'_> {
    /// The top of the project.
    pub(crate) fn project(&self) -> &Path {
        self.repository.map_or(self.cwd, |repository| &repository.root)
    }

    fn places(&self) -> CustomPaths {
        CustomPaths {
            home: self.settings.home.clone(),
            user_home: self.settings.var("HOME").map(PathBuf::from),
            cwd: self.cwd.to_owned(),
            git_root: self.repository.map(|repository| repository.root.clone()),
            trusted: is_trusted(self.settings, self.extensions.trust, self.cwd)
                || self.settings.var("GITHUB_COPILOT_PROMPT_MODE_REPO_HOOKS") == Some("true"),
        }
    }

    /// The plugins, and sentences about those that cannot be loaded. The installed ones belong to the configuration of the user.
    pub(crate) fn plugins(&self) -> (Vec<Plugin>, Vec<String>) {
        let given = self.extensions.plugin_dirs.iter().chain(self.options.plugin_dirs.iter().flatten());
        let dirs: Vec<PathBuf> = given.map(|dir| self.cwd.join(dir)).collect();
        match self.options.discovers() {
            true => load_plugins(self.settings, &dirs),
            false => hangar_custom::plugins::load(&dirs),
        }
    }

    /// Directories of skills from the options, and, where the configuration is read, from the environment and the settings.
    fn skill_dirs(&self, preferences: &Preferences) -> Vec<PathBuf> {
        let given = self.options.skill_dirs.iter().flatten().cloned();
        if !self.options.discovers() {
            return given.collect();
        }
        let named = self.settings.var("COPILOT_SKILLS_DIRS").into_iter().flat_map(|dirs| dirs.split(','));
        let named = named.map(|dir| PathBuf::from(dir.trim()));
        named.chain(given).chain(preferences.skill_directories.iter().cloned()).collect()
    }

    fn has_file_hooks(&self) -> bool {
        self.options.file_hooks.unwrap_or(true)
    }

    /// Places that are searched for skills.
    pub(crate) fn skill_places(&self) -> SkillPlaces {
        SkillPlaces {
            places: self.places(),
            plugins: self.plugins().0,
            extra: self.skill_dirs(&Preferences::of_user(&self.settings.home)),
            discovered: self.options.discovers(),
        }
    }

    /// The hooks of files, whether all but the machine's own are disabled, and those of a project that is not trusted.
    pub(crate) fn hook_files(&self) -> (HookFiles, bool, Vec<ListedHook>) {
        let places = self.places();
        let preferences = Preferences::of_user(&self.settings.home).with_project(&places);
        let found = HookFiles::find(Some(Path::new(POLICY_DIR)), &places, &self.plugins().0, false);
        let untrusted = match places.trusted {
            true => Vec::new(),
            false => {
                let places = CustomPaths { trusted: true, ..places };
                let mut listed = HookFiles::find(None, &places, &[], false).list();
                listed.retain(|hook| hook.origin == HookOrigin::Project);
                listed
            }
        };
        (found, preferences.disable_all_hooks || !self.has_file_hooks(), untrusted)
    }

    /// Agents of files: those of plugins, and of the user and the project where their configuration is read. Problems of plugins are
    /// reported where the rest of them is loaded.
    pub(crate) fn agents(&self) -> (Vec<AgentDefinition>, Vec<String>) {
        let plugins = self.plugins().0;
        match self.options.discovers() {
            true => hangar_custom::agents::find_agents(&self.places(), &plugins),
            false => hangar_custom::agents::of_plugins(&plugins),
        }
    }
}

/// Plugins of these folders, then the installed ones, and sentences about those that cannot be loaded. Of two with the same
/// name the first counts.
pub(crate) fn load_plugins(settings: &Settings, dirs: &[PathBuf]) -> (Vec<Plugin>, Vec<String>) {
    let (mut plugins, mut problems) = hangar_custom::plugins::load(dirs);
    let (installed, more) = hangar_plugins::enabled(&settings.home);
    problems.extend(more);
    for plugin in installed {
        if plugins.iter().all(|known| known.name != plugin.name) {
            plugins.push(plugin);
        }
    }
    (plugins, problems)
}

/// Loaded configuration.
pub(crate) struct Configured {
    pub(crate) skills: Arc<Skills>,
    pub(crate) warnings: Vec<String>,
    hooks: HookFiles,
    preferences: Preferences,
}

impl Configured {
    pub(crate) fn load(sources: &ConfigSources<'_>) -> Self {
        let places = sources.places();
        let mut preferences = Preferences::of_user(&sources.settings.home).with_project(&places);
        let mut warnings = std::mem::take(&mut preferences.warnings);
        let (plugins, problems) = sources.plugins();
        warnings.extend(problems);
        let mut hooks = HookFiles::find(
            Some(Path::new(POLICY_DIR)),
            &places,
            &plugins,
            preferences.disable_all_hooks || !sources.has_file_hooks(),
        );
        warnings.append(&mut hooks.warnings);
        let extra = sources.skill_dirs(&preferences);
        let options = sources.options;
        let disabled = preferences.disabled_skills.iter().chain(options.disabled_skills.iter().flatten());
        let disabled: Vec<String> = disabled.cloned().collect();
        let wanted = SkillPlaces { places, plugins, extra, discovered: options.discovers() };
        let skills = match options.skills {
            Some(false) => Skills::none(),
            Some(true) | None => Skills::load(wanted, disabled),
        };
        warnings.extend(skills.warnings());
        Self { skills, warnings, hooks, preferences }
    }

    /// The rules of the caller with those of the settings.
    pub(crate) fn extend(&self, mut policy: Policy) -> Policy {
        let rules = |urls: &[String]| -> Vec<Rule> {
            urls.iter().filter_map(|url| Rule::parse(&format!("url({url})")).ok()).collect()
        };
        policy.allow.extend(rules(&self.preferences.allowed_urls));
        policy.deny.extend(rules(&self.preferences.denied_urls));
        policy
    }

    /// Whether the model is offered the tool for skills: if there are skills, or if it was requested by name.
    pub(crate) fn offers_skills(&self, tools: &ToolOptions) -> bool {
        !self.skills.is_empty()
            || (tools.names_skills() && tools.filter().admits(ToolSource::Builtin, "skill"))
    }

    /// The configured hooks before the client's, and the kinds of hook that are configured.
    pub(crate) fn hooks(
        self,
        settings: &Settings,
        secrets: &[String],
        client: Option<Arc<dyn Hooks>>,
        inbox: mpsc::Sender<Box<SessionInput>>,
    ) -> (Option<Arc<dyn Hooks>>, HookSet) {
        if self.hooks.is_empty() {
            return (client, HookSet::NONE);
        }
        let withheld = credentials::withheld_from_commands(settings, secrets);
        let context = hooks::HookEnvironment {
            shell: PathBuf::from(SHELL),
            env: settings
                .variables()
                .filter(|(name, _)| !withheld.iter().any(|known| known == name))
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            allow_localhost: settings.var("COPILOT_HOOK_ALLOW_LOCALHOST") == Some("1"),
        };
        match ConfiguredHooks::new(self.hooks, context, inbox) {
            None => (client, HookSet::NONE),
            Some(configured) => {
                let kinds = configured.kinds();
                let mut chain: Vec<Arc<dyn Hooks>> = vec![Arc::new(configured)];
                chain.extend(client);
                (Some(Arc::new(Chain(chain))), kinds)
            }
        }
    }
}
