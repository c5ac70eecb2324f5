//! What people configured for the place that a session works in: settings, plugins, hooks, skills.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hangar_agent::agents::AgentDefinition;
use hangar_agent::driver::Hooks;
use hangar_agent::hook::{Chain, HookSet};
use hangar_agent::permissions::{Policy, Rule};
use hangar_agent::session::Input;
use hangar_agent::tool::{ToolFilter, ToolSource};
use hangar_custom::Places;
use hangar_custom::hooks::{ConfiguredHooks, HookFiles, Surroundings};
use hangar_custom::plugins::Plugin;
use hangar_custom::settings::Preferences;
use hangar_custom::skills::{SkillPlaces, Skills};
use tokio::sync::mpsc;

use crate::credentials;
use crate::settings::Settings;
use crate::workspace::git::Repository;
use crate::workspace::trust::{Trust, is_trusted};

/// Hooks that whoever runs the machine wants asked.
const POLICY_DIR: &str = "/etc/github-copilot/policy.d";
/// What runs the commands of hooks.
const SHELL: &str = "/bin/bash";

/// What the one who opens a session adds to what is configured.
#[derive(Debug, Clone)]
pub(crate) struct Customs {
    pub(crate) trust: Trust,
    pub(crate) plugin_dirs: Vec<PathBuf>,
    pub(crate) skill_dirs: Vec<PathBuf>,
    /// Whether the project's own skills count.
    pub(crate) project_skills: bool,
    pub(crate) disabled_skills: Vec<String>,
    /// Whether there are skills at all.
    pub(crate) skills: bool,
    /// Whether the hooks of files are asked.
    pub(crate) hooks: bool,
}

/// All of it, loaded.
pub(crate) struct Configured {
    pub(crate) skills: Arc<Skills>,
    pub(crate) warnings: Vec<String>,
    hooks: HookFiles,
    preferences: Preferences,
}

impl Configured {
    pub(crate) fn load(
        settings: &Settings,
        customs: &Customs,
        cwd: &Path,
        repository: Option<&Repository>,
    ) -> Self {
        let places = places(settings, customs, cwd, repository);
        let mut preferences = Preferences::of_user(&settings.home).with_project(&places);
        let mut warnings = std::mem::take(&mut preferences.warnings);
        let (plugins, problems) = plugins(customs, cwd);
        warnings.extend(problems);
        let mut hooks = HookFiles::find(
            Some(Path::new(POLICY_DIR)),
            &places,
            &plugins,
            preferences.disable_all_hooks || !customs.hooks,
        );
        warnings.append(&mut hooks.warnings);
        let extra = skill_dirs(settings, customs, &preferences);
        let disabled: Vec<String> =
            preferences.disabled_skills.iter().chain(&customs.disabled_skills).cloned().collect();
        let wanted = SkillPlaces { places, plugins, extra, of_project: customs.project_skills };
        let skills = if customs.skills { Skills::load(wanted, disabled) } else { Skills::none() };
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

    /// Whether the model is offered the tool for skills: where there are some, or where it was asked for by name.
    pub(crate) fn offers_skills(&self, filter: &ToolFilter) -> bool {
        let named = |names: &Vec<String>| names.iter().any(|name| name == "skill" || name == "builtin:skill");
        !self.skills.is_empty()
            || (filter.available.as_ref().is_some_and(named) && filter.admits(ToolSource::Builtin, "skill"))
    }

    /// The configured hooks before the client's, and what the configured ones want to be asked.
    pub(crate) fn hooks(
        self,
        settings: &Settings,
        secrets: &[String],
        client: Option<Arc<dyn Hooks>>,
        inbox: mpsc::Sender<Box<Input>>,
    ) -> (Option<Arc<dyn Hooks>>, HookSet) {
        if self.hooks.is_empty() {
            return (client, HookSet::NONE);
        }
        let withheld = credentials::withheld_from_commands(settings, secrets);
        let surroundings = Surroundings {
            shell: PathBuf::from(SHELL),
            env: settings
                .variables()
                .filter(|(name, _)| !withheld.iter().any(|known| known == name))
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            allow_localhost: settings.var("COPILOT_HOOK_ALLOW_LOCALHOST") == Some("1"),
        };
        match ConfiguredHooks::new(self.hooks, surroundings, inbox) {
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

/// The hooks of files, and whether all but the machine's own are switched off.
pub(crate) fn hook_files(
    settings: &Settings,
    customs: &Customs,
    cwd: &Path,
    repository: Option<&Repository>,
) -> (HookFiles, bool) {
    let places = places(settings, customs, cwd, repository);
    let preferences = Preferences::of_user(&settings.home).with_project(&places);
    let (plugins, _) = plugins(customs, cwd);
    let found = HookFiles::find(Some(Path::new(POLICY_DIR)), &places, &plugins, false);
    (found, preferences.disable_all_hooks || !customs.hooks)
}

/// Where skills are looked for.
pub(crate) fn skill_places(
    settings: &Settings,
    customs: &Customs,
    cwd: &Path,
    repository: Option<&Repository>,
) -> SkillPlaces {
    let extra = skill_dirs(settings, customs, &Preferences::of_user(&settings.home));
    SkillPlaces {
        places: places(settings, customs, cwd, repository),
        plugins: plugins(customs, cwd).0,
        extra,
        of_project: customs.project_skills,
    }
}

/// The directories of skills that somebody named.
fn skill_dirs(settings: &Settings, customs: &Customs, preferences: &Preferences) -> Vec<PathBuf> {
    let named = settings.var("COPILOT_SKILLS_DIRS").into_iter().flat_map(|dirs| dirs.split(','));
    let mut dirs: Vec<PathBuf> = named.map(|dir| PathBuf::from(dir.trim())).collect();
    dirs.extend(customs.skill_dirs.iter().cloned());
    dirs.extend(preferences.skill_directories.iter().cloned());
    dirs
}

/// The agents that files describe. What is wrong with a plugin is said where the rest of it is loaded.
pub(crate) fn agents(
    settings: &Settings,
    customs: &Customs,
    cwd: &Path,
    repository: Option<&Repository>,
) -> (Vec<AgentDefinition>, Vec<String>) {
    hangar_custom::agents::find_agents(&places(settings, customs, cwd, repository), &plugins(customs, cwd).0)
}

fn places(settings: &Settings, customs: &Customs, cwd: &Path, repository: Option<&Repository>) -> Places {
    Places {
        home: settings.home.clone(),
        user_home: settings.var("HOME").map(PathBuf::from),
        cwd: cwd.to_owned(),
        git_root: repository.map(|repository| repository.root.clone()),
        trusted: is_trusted(settings, customs.trust, cwd)
            || settings.var("GITHUB_COPILOT_PROMPT_MODE_REPO_HOOKS") == Some("true"),
    }
}

fn plugins(customs: &Customs, cwd: &Path) -> (Vec<Plugin>, Vec<String>) {
    let dirs: Vec<PathBuf> = customs.plugin_dirs.iter().map(|dir| cwd.join(dir)).collect();
    hangar_custom::plugins::load(&dirs)
}
