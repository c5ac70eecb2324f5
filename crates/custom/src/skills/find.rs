//! Where skills are, and which of two with the same name counts.

use std::path::{Path, PathBuf};

use super::{Skill, SkillSource};
use crate::plugins::Plugin;
use crate::{Places, files_in, frontmatter};

/// Skills of one session.
const MAX_SKILLS: usize = 500;
/// Names of a directory that are looked at.
const MAX_ENTRIES: usize = 2000;
const NAME_LIMIT: usize = 64;
const DESCRIPTION_LIMIT: usize = 1024;
/// Where a project keeps skills, in order.
const PROJECT_DIRS: [&str; 3] = [".github/skills", ".agents/skills", ".claude/skills"];
const COMMANDS_DIR: &str = ".claude/commands";

/// Where to look.
#[derive(Debug, Clone, Default)]
pub struct SkillPlaces {
    pub places: Places,
    pub plugins: Vec<Plugin>,
    /// Directories that the user or a client named.
    pub extra: Vec<PathBuf>,
}

/// A directory in which a skill would be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscoveryPath {
    pub path: PathBuf,
    pub source: SkillSource,
    pub preferred: bool,
}

/// The directories of skills, those first whose skills count more.
pub fn discovery_paths(places: &Places) -> Vec<DiscoveryPath> {
    let mut paths = Vec::new();
    for (index, dir) in places.upwards().enumerate() {
        let source = if index == 0 { SkillSource::Project } else { SkillSource::Inherited };
        for (which, name) in PROJECT_DIRS.iter().enumerate() {
            paths.push(DiscoveryPath { path: dir.join(name), source, preferred: index == 0 && which == 0 });
        }
    }
    let own = DiscoveryPath {
        path: places.home.join("skills"),
        source: SkillSource::PersonalCopilot,
        preferred: true,
    };
    paths.push(own);
    if let Some(home) = &places.user_home {
        let path = home.join(".agents/skills");
        paths.push(DiscoveryPath { path, source: SkillSource::PersonalAgents, preferred: false });
    }
    paths
}

pub(super) fn find(wanted: &SkillPlaces) -> (Vec<Skill>, Vec<String>) {
    let mut found = Found::default();
    for DiscoveryPath { path, source, .. } in discovery_paths(&wanted.places) {
        found.directory(&path, source, None);
    }
    for plugin in &wanted.plugins {
        for dir in &plugin.skill_dirs {
            found.directory(dir, SkillSource::Plugin, Some(&plugin.name));
        }
    }
    for dir in &wanted.extra {
        found.directory(&wanted.places.cwd.join(dir), SkillSource::Custom, None);
    }
    for (index, dir) in wanted.places.upwards().enumerate() {
        let source = if index == 0 { SkillSource::Project } else { SkillSource::Inherited };
        found.commands(&dir.join(COMMANDS_DIR), source, None);
    }
    for plugin in &wanted.plugins {
        for dir in &plugin.command_dirs {
            found.commands(dir, SkillSource::Plugin, Some(&plugin.name));
        }
    }
    (found.skills, found.warnings)
}

#[derive(Default)]
struct Found {
    skills: Vec<Skill>,
    warnings: Vec<String>,
}

impl Found {
    /// A directory of skills, each a directory with a SKILL.md; or one such directory itself.
    fn directory(&mut self, dir: &Path, source: SkillSource, plugin: Option<&str>) {
        let own = dir.join("SKILL.md");
        if own.is_file() {
            return self.skill(&own, name_of(dir), source, plugin);
        }
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten().take(MAX_ENTRIES);
        let mut dirs: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        dirs.sort();
        for dir in dirs {
            let path = dir.join("SKILL.md");
            if path.is_file() {
                self.skill(&path, name_of(&dir), source, plugin);
            }
        }
    }

    fn commands(&mut self, dir: &Path, source: SkillSource, plugin: Option<&str>) {
        for path in files_in(dir, &[".md"]) {
            let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            self.skill(&path, name, source, plugin);
        }
    }

    fn skill(&mut self, path: &Path, fallback: String, source: SkillSource, plugin: Option<&str>) {
        if self.skills.len() >= MAX_SKILLS {
            return;
        }
        let (head, first_line) = match frontmatter::head_of(path) {
            Ok(head) => head,
            Err(problem) => {
                return self.warnings.push(format!("The skill {} is not loaded: {problem}.", path.display()));
            }
        };
        let name = head.text("name").unwrap_or(fallback);
        let odd = |character: char| character.is_whitespace() || character.is_control() || character == '/';
        if name.is_empty() || name.chars().count() > NAME_LIMIT || name.contains(odd) {
            let problem = format!("its name must be at most {NAME_LIMIT} letters without blanks or slashes");
            return self.warnings.push(format!("The skill {} is not loaded: {problem}.", path.display()));
        }
        if self.skills.iter().any(|known| known.name == name) {
            return;
        }
        let mut description = head.text("description").unwrap_or(first_line);
        if let Some((end, _)) = description.char_indices().nth(DESCRIPTION_LIMIT) {
            description.truncate(end);
        }
        self.skills.push(Skill {
            description,
            argument_hint: head.text("argument-hint"),
            allowed_tools: head.list("allowed-tools"),
            user_invocable: head.flag("user-invocable").unwrap_or(true),
            model_invocable: !head.flag("disable-model-invocation").unwrap_or(false),
            source,
            path: path.to_owned(),
            plugin: plugin.map(str::to_owned),
            name,
        });
    }
}

fn name_of(dir: &Path) -> String {
    dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
