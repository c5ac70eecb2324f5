//! Skills: instructions that are listed by a line and shown in full when they are needed.

mod find;
mod tool;

use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hangar_agent::agents::AgentDefinition;
use hangar_agent::tool::{InvokedSkill, Tool};
use hangar_front_matter as front_matter;
use hangar_protocol::data::{LoadedSkill, SkillContextDelivered, SkillInvoked, SkillTrigger};

pub use find::{
    DiscoveryPath, SkillPlaces, in_directories, of_host, of_project, personal_directories,
    project_directories,
};

use crate::{Tree, files_below, read};

/// Files of a skill that are named to the model.
const MAX_RESOURCES: usize = 50;

/// Source of a skill, with its name on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkillSource {
    Project,
    Inherited,
    PersonalCopilot,
    PersonalAgents,
    Plugin,
    Custom,
}

impl SkillSource {
    fn is_of_project(self) -> bool {
        matches!(self, SkillSource::Project | SkillSource::Inherited)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            SkillSource::Project => "project",
            SkillSource::Inherited => "inherited",
            SkillSource::PersonalCopilot => "personal-copilot",
            SkillSource::PersonalAgents => "personal-agents",
            SkillSource::Plugin => "plugin",
            SkillSource::Custom => "custom",
        }
    }
}

/// A skill by its front matter. The rest is read when it is invoked.
#[derive(Debug, Clone)]
pub struct Skill {
    pub name: String,
    pub description: String,
    pub argument_hint: Option<String>,
    pub allowed_tools: Option<Vec<String>>,
    /// Whether the user may call it by `/name`.
    pub user_invocable: bool,
    /// Whether the model may call it.
    pub model_invocable: bool,
    pub source: SkillSource,
    pub path: PathBuf,
    pub plugin: Option<String>,
    /// Directory that must contain its file.
    pub(crate) tree: Tree,
}

/// The skills of a session.
pub struct Skills {
    /// Directories that are searched; `None` for a session without skills.
    places: Option<SkillPlaces>,
    shelf: Mutex<LoadedSkills>,
}

#[derive(Default)]
struct LoadedSkills {
    skills: Vec<Skill>,
    disabled: BTreeSet<String>,
    warnings: Vec<String>,
}

/// Reason why a skill was not returned.
#[derive(Debug, PartialEq, Eq)]
enum SkillUnavailable {
    Unknown,
    Unreadable(String),
}

impl Skills {
    pub fn load(places: SkillPlaces, disabled: impl IntoIterator<Item = String>) -> Arc<Self> {
        let (skills, warnings) = find::find(&places);
        let shelf = LoadedSkills { skills, warnings, disabled: disabled.into_iter().collect() };
        Arc::new(Self { places: Some(places), shelf: Mutex::new(shelf) })
    }

    /// No skills, now and later.
    pub fn none() -> Arc<Self> {
        Arc::new(Self { places: None, shelf: Mutex::default() })
    }

    pub fn warnings(&self) -> Vec<String> {
        self.shelf.lock().warnings.clone()
    }

    pub fn is_empty(&self) -> bool {
        self.shelf.lock().skills.is_empty()
    }

    /// All skills, as clients receive them.
    pub fn list(&self) -> Vec<LoadedSkill> {
        let shelf = self.shelf.lock();
        shelf
            .skills
            .iter()
            .map(|skill| LoadedSkill {
                name: skill.name.clone(),
                command_name: Some(skill.name.clone()),
                description: skill.description.clone(),
                source: skill.source.as_str().to_owned(),
                user_invocable: skill.user_invocable,
                enabled: !shelf.disabled.contains(&skill.name),
                path: Some(skill.path.display().to_string()),
                argument_hint: skill.argument_hint.clone(),
            })
            .collect()
    }

    /// Enables or disables a skill; false if there is none of that name.
    pub fn set_enabled(&self, name: &str, enabled: bool) -> bool {
        let mut shelf = self.shelf.lock();
        if enabled {
            shelf.disabled.remove(name);
        } else {
            shelf.disabled.insert(name.to_owned());
        }
        shelf.skills.iter().any(|skill| skill.name == name)
    }

    /// Reloads the skills. Returns warnings.
    pub fn reload(&self) -> Vec<String> {
        let Some(places) = &self.places else { return Vec::new() };
        let (skills, warnings) = find::find(places);
        let mut shelf = self.shelf.lock();
        shelf.skills = skills;
        shelf.warnings.clone_from(&warnings);
        warnings
    }

    /// Tool that returns skills, with the current list.
    pub fn tool(self: &Arc<Self>) -> Arc<dyn Tool> {
        let shelf = self.shelf.lock();
        let listed = shelf
            .skills
            .iter()
            .filter(|skill| skill.model_invocable && !shelf.disabled.contains(&skill.name));
        let spec = tool::spec(listed);
        drop(shelf);
        Arc::new(tool::SkillTool::new(Arc::clone(self), spec))
    }

    /// The skill that a prompt like `/name arguments` calls, if it does.
    pub fn called_by(&self, prompt: &str) -> Option<InvokedSkill> {
        let call = prompt.strip_prefix('/')?;
        let (name, arguments) = call.split_once(char::is_whitespace).unwrap_or((call, ""));
        let skill = self.enabled(name).filter(|skill| skill.user_invocable)?;
        tell(&skill, SkillTrigger::UserInvoked, Some(arguments.trim())).ok()
    }

    /// Reads the skills that an agent has from the start. One that is not there, or off, is left out.
    pub fn brief(&self, agent: &mut AgentDefinition) {
        let told = agent.skills.iter().filter_map(|name| self.enabled(name));
        let texts = told.filter_map(|skill| tell(&skill, SkillTrigger::AgentInvoked, None).ok());
        let texts: Vec<String> = texts.map(|told| told.context.content).collect();
        agent.briefing = texts.join("\n\n");
    }

    fn called_by_model(&self, name: &str) -> Result<InvokedSkill, SkillUnavailable> {
        let skill =
            self.enabled(name).filter(|skill| skill.model_invocable).ok_or(SkillUnavailable::Unknown)?;
        tell(&skill, SkillTrigger::AgentInvoked, None).map_err(SkillUnavailable::Unreadable)
    }

    fn enabled(&self, name: &str) -> Option<Skill> {
        let shelf = self.shelf.lock();
        shelf.skills.iter().find(|skill| skill.name == name && !shelf.disabled.contains(name)).cloned()
    }

    /// Names of the skills that the model may call.
    fn names(&self) -> Vec<String> {
        let shelf = self.shelf.lock();
        let callable = |skill: &&Skill| skill.model_invocable && !shelf.disabled.contains(&skill.name);
        let enabled = shelf.skills.iter().filter(callable);
        enabled.map(|skill| skill.name.clone()).collect()
    }
}

/// The files that a skill brings besides its text, by name. A command is one file among others that are not its own.
fn resources(skill: &Skill, base: &Path) -> String {
    // A folder that is a link out of the tree holds files that are not the project's.
    if skill.path.file_name().is_none_or(|name| name != "SKILL.md") || skill.tree.check(base).is_err() {
        return String::new();
    }
    let files = files_below(base, &[""]).into_iter().filter(|path| *path != skill.path);
    let mut lines: Vec<String> = files.map(|path| format!("  - {}", path.display())).collect();
    if lines.is_empty() {
        return String::new();
    }
    let more = lines.len().saturating_sub(MAX_RESOURCES);
    lines.truncate(MAX_RESOURCES);
    if more > 0 {
        lines.push(format!("  - and {more} more"));
    }
    format!("Files of this skill, to be viewed when they are needed:\n{}\n\n", lines.join("\n"))
}

fn tell(skill: &Skill, trigger: SkillTrigger, arguments: Option<&str>) -> Result<InvokedSkill, String> {
    let text = read(&skill.path, &skill.tree)?.ok_or_else(|| format!("{} is gone", skill.path.display()))?;
    let (_, body) = front_matter::parse(&text)?;
    let content = match arguments {
        Some(arguments) => body.replace("$ARGUMENTS", arguments),
        None => body.to_owned(),
    };
    let base = skill.path.parent().unwrap_or(&skill.path);
    let name = &skill.name;
    let context = format!(
        "<skill-context name=\"{name}\">\nBase directory for this skill: {}\n\n{}{content}\n</skill-context>",
        base.display(),
        resources(skill, base),
    );
    Ok(InvokedSkill {
        invoked: SkillInvoked {
            name: name.clone(),
            path: skill.path.display().to_string(),
            content,
            allowed_tools: skill.allowed_tools.clone(),
            disable_model_invocation: (!skill.model_invocable).then_some(true),
            source: Some(skill.source.as_str().to_owned()),
            plugin_name: skill.plugin.clone(),
            description: Some(skill.description.clone()),
            trigger: Some(trigger),
        },
        context: SkillContextDelivered { content: context, source: format!("skill-{name}") },
    })
}

#[cfg(test)]
mod tests;
