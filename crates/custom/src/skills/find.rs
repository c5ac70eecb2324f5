//! Search for skills, and precedence among those with the same name.

use std::io::Read;
use std::path::{Path, PathBuf};

use hangar_front_matter::{self as front_matter, Head};

use super::{Skill, SkillSource};
use crate::plugins::Plugin;
use crate::{CustomPaths, Tree, files_in};

/// Skills of one session.
const MAX_SKILLS: usize = 500;
/// Maximum number of entries that are read of a directory.
const MAX_ENTRIES: usize = 2000;
/// Maximum number of grouping directories above a skill.
const GROUP_DEPTH: usize = 1;
/// Number of bytes that are read for the front matter of a file.
const HEAD_LIMIT: u64 = 16 << 10;
const NAME_LIMIT: usize = 64;
const DESCRIPTION_LIMIT: usize = 1024;
/// Directories of a project that hold skills, in order of precedence.
const PROJECT_DIRS: [&str; 3] = [".github/skills", ".agents/skills", ".claude/skills"];
const COMMANDS_DIR: &str = ".claude/commands";

/// Directories that are searched for skills.
#[derive(Debug, Clone, Default)]
pub struct SkillPlaces {
    pub places: CustomPaths,
    pub plugins: Vec<Plugin>,
    /// Directories that the user or a client named.
    pub extra: Vec<PathBuf>,
    /// Whether the skills of the user and of the project are included.
    pub discovered: bool,
}

/// A directory in which a skill would be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscoveryPath {
    pub path: PathBuf,
    pub source: SkillSource,
    /// Whether new skills of that kind should be created there.
    pub preferred: bool,
}

/// The directories for the skills of a project, those first whose skills count more. They need not be there.
pub fn project_directories(places: &CustomPaths) -> Vec<DiscoveryPath> {
    let root = places.root();
    let directory = |(which, name): (usize, &&str)| DiscoveryPath {
        path: root.join(name),
        source: SkillSource::Project,
        preferred: which == 0,
    };
    PROJECT_DIRS.iter().enumerate().map(directory).collect()
}

/// The directories for the skills of the user.
pub fn personal_directories(places: &CustomPaths) -> Vec<DiscoveryPath> {
    let own = DiscoveryPath {
        path: places.home.join("skills"),
        source: SkillSource::PersonalCopilot,
        preferred: true,
    };
    let shared = places.user_home.as_ref().map(|home| DiscoveryPath {
        path: home.join(".agents/skills"),
        source: SkillSource::PersonalAgents,
        preferred: false,
    });
    std::iter::once(own).chain(shared).collect()
}

/// The skills of a session. Of two with the same name the one that is found first counts.
pub(super) fn find(wanted: &SkillPlaces) -> (Vec<Skill>, Vec<String>) {
    let mut found = SkillSearch::default();
    if wanted.discovered {
        found.project_skills(&wanted.places);
        found.personal_skills(&wanted.places);
    }
    found.plugin_skills(&wanted.plugins);
    found.named(wanted.extra.iter().map(|dir| wanted.places.cwd.join(dir)));
    if wanted.discovered {
        found.project_commands(&wanted.places);
    }
    found.plugin_commands(&wanted.plugins);
    if !wanted.places.trusted {
        // An untrusted project may instruct the model, but not allow it tools.
        for skill in found.skills.iter_mut().filter(|skill| skill.source.is_of_project()) {
            skill.allowed_tools = None;
        }
    }
    (found.skills, found.warnings)
}

/// Skills of a project, independent of the user, with warnings.
pub fn of_project(places: &CustomPaths) -> (Vec<Skill>, Vec<String>) {
    let mut found = SkillSearch::default();
    found.project_skills(places);
    found.project_commands(places);
    (found.skills, found.warnings)
}

/// The skills that are there wherever the user works. With what was wrong.
pub fn of_host(wanted: &SkillPlaces) -> (Vec<Skill>, Vec<String>) {
    let mut found = SkillSearch::default();
    found.personal_skills(&wanted.places);
    found.plugin_skills(&wanted.plugins);
    found.named(wanted.extra.iter().map(|dir| wanted.places.cwd.join(dir)));
    found.plugin_commands(&wanted.plugins);
    (found.skills, found.warnings)
}

/// The skills in some directories. With what was wrong.
pub fn in_directories(dirs: &[PathBuf]) -> (Vec<Skill>, Vec<String>) {
    let mut found = SkillSearch::default();
    found.named(dirs.iter().cloned());
    (found.skills, found.warnings)
}

/// Origin of the skills in a directory.
struct SkillOrigin<'a> {
    source: SkillSource,
    plugin: Option<&'a str>,
    tree: &'a Tree,
}

impl<'a> SkillOrigin<'a> {
    fn of_plugin(plugin: &'a Plugin, tree: &'a Tree) -> Self {
        Self { source: SkillSource::Plugin, plugin: Some(&plugin.name), tree }
    }
}

#[derive(Default)]
struct SkillSearch {
    skills: Vec<Skill>,
    warnings: Vec<String>,
}

impl SkillSearch {
    fn project_skills(&mut self, places: &CustomPaths) {
        let tree = Tree::below(places.root());
        for (dir, source) in project(places) {
            for name in PROJECT_DIRS {
                self.directory(&dir.join(name), &SkillOrigin { source, plugin: None, tree: &tree });
            }
        }
    }

    fn personal_skills(&mut self, places: &CustomPaths) {
        for DiscoveryPath { path, source, .. } in personal_directories(places) {
            self.directory(&path, &SkillOrigin { source, plugin: None, tree: &Tree::Any });
        }
    }

    fn plugin_skills(&mut self, plugins: &[Plugin]) {
        for plugin in plugins {
            for dir in &plugin.skill_dirs {
                self.directory(dir, &SkillOrigin::of_plugin(plugin, &Tree::below(&plugin.root)));
            }
        }
    }

    fn named(&mut self, dirs: impl Iterator<Item = PathBuf>) {
        for dir in dirs {
            let tree = Tree::below(&dir);
            self.directory(&dir, &SkillOrigin { source: SkillSource::Custom, plugin: None, tree: &tree });
        }
    }

    fn project_commands(&mut self, places: &CustomPaths) {
        let tree = Tree::below(places.root());
        for (dir, source) in project(places) {
            self.commands(&dir.join(COMMANDS_DIR), &SkillOrigin { source, plugin: None, tree: &tree });
        }
    }

    fn plugin_commands(&mut self, plugins: &[Plugin]) {
        for plugin in plugins {
            for dir in &plugin.command_dirs {
                self.commands(dir, &SkillOrigin::of_plugin(plugin, &Tree::below(&plugin.root)));
            }
        }
    }

    /// A directory of skills, each a directory with a SKILL.md; or one such directory itself.
    fn directory(&mut self, dir: &Path, origin: &SkillOrigin<'_>) {
        let own = dir.join("SKILL.md");
        if own.is_file() {
            return self.skill(&own, name_of(dir), origin);
        }
        self.groups(dir, GROUP_DEPTH, origin);
    }

    /// The skills of a directory, and those of the directories in it that only hold skills together.
    fn groups(&mut self, dir: &Path, depth: usize, origin: &SkillOrigin<'_>) {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten().take(MAX_ENTRIES);
        let mut dirs: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        dirs.sort();
        for dir in dirs {
            let path = dir.join("SKILL.md");
            if path.is_file() {
                self.skill(&path, name_of(&dir), origin);
            } else if depth > 0 {
                self.groups(&dir, depth - 1, origin);
            }
        }
    }

    fn commands(&mut self, dir: &Path, origin: &SkillOrigin<'_>) {
        for path in files_in(dir, &[".md"]) {
            let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            self.skill(&path, name, origin);
        }
    }

    fn skill(&mut self, path: &Path, fallback: String, origin: &SkillOrigin<'_>) {
        if self.skills.len() >= MAX_SKILLS {
            return;
        }
        let (head, first_line) = match head_of(path, origin.tree) {
            Ok(head) => head,
            Err(problem) => {
                return self.warnings.push(format!("The skill {} is not loaded: {problem}.", path.display()));
            }
        };
        // A name is one word, since it is called by `/name`.
        let name = head.text("name").unwrap_or(fallback).split_whitespace().collect::<Vec<_>>().join("-");
        let odd = |character: char| character.is_control() || character == '/';
        if name.is_empty() || name.chars().count() > NAME_LIMIT || name.contains(odd) {
            let problem = format!("its name must be at most {NAME_LIMIT} letters without slashes");
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
            source: origin.source,
            path: path.to_owned(),
            plugin: origin.plugin.map(str::to_owned),
            tree: origin.tree.clone(),
            name,
        });
    }
}

/// The directories of a project, with what skills in them are to the current one.
fn project(places: &CustomPaths) -> impl Iterator<Item = (&Path, SkillSource)> {
    let source = |index| if index == 0 { SkillSource::Project } else { SkillSource::Inherited };
    places.upwards().enumerate().map(move |(index, dir)| (dir, source(index)))
}

/// The front matter of a file and the first line of its text, without reading all of it.
fn head_of(path: &Path, tree: &Tree) -> Result<(Head, String), String> {
    tree.check(path)?;
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.take(HEAD_LIMIT).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = front_matter::parse(&text)?;
    let first = body.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    Ok((head, first.trim_start_matches('#').trim().to_owned()))
}

fn name_of(dir: &Path) -> String {
    dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
