//! Agents that people describe in files: front matter for what they may use, the rest for how they behave.

use std::path::{Path, PathBuf};

use hangar_agent::agents::{AgentDefinition, AgentFile, AgentOwner, AgentSource, AgentTools};
use hangar_front_matter as front_matter;
use serde_json::Map;

use crate::plugins::Plugin;
use crate::{CustomPaths, Tree, files_below, read};

/// Maximum length of an agent's prompt, in characters.
const PROMPT_LIMIT: usize = 128 << 10;
/// Agents of one session.
const MAX_AGENTS: usize = 200;
/// Directories of a project that hold agents, in order of precedence.
const PROJECT_DIRS: [&str; 2] = [".github/agents", ".claude/agents"];

/// All agents of the project, the user and the plugins; of two with the same name the nearer one. With what was wrong.
pub fn find_agents(places: &CustomPaths, plugins: &[Plugin]) -> (Vec<AgentDefinition>, Vec<String>) {
    let mut found = AgentSearch::default();
    found.project(places);
    found.host(places, plugins);
    (found.agents, found.warnings)
}

/// Agents of the plugins alone. With what was wrong.
pub fn of_plugins(plugins: &[Plugin]) -> (Vec<AgentDefinition>, Vec<String>) {
    let mut found = AgentSearch::default();
    found.plugins(plugins);
    (found.agents, found.warnings)
}

/// Agents of a project, independent of the user.
pub fn of_project(places: &CustomPaths) -> Vec<AgentDefinition> {
    let mut found = AgentSearch::default();
    found.project(places);
    found.agents
}

/// Agents of the user, which exist in every project.
pub fn of_host(places: &CustomPaths, plugins: &[Plugin]) -> Vec<AgentDefinition> {
    let mut found = AgentSearch::default();
    found.host(places, plugins);
    found.agents
}

/// The directories for the agents of a project, in order; new ones belong in the first. They need not be there.
pub fn project_directories(places: &CustomPaths) -> [PathBuf; 2] {
    PROJECT_DIRS.map(|name| places.root().join(name))
}

/// The directory for the agents of the user.
pub fn user_directory(places: &CustomPaths) -> PathBuf {
    places.home.join("agents")
}

#[derive(Default)]
struct AgentSearch {
    agents: Vec<AgentDefinition>,
    warnings: Vec<String>,
}

impl AgentSearch {
    fn project(&mut self, places: &CustomPaths) {
        for dir in places.upwards() {
            for name in PROJECT_DIRS {
                self.directory(&dir.join(name), &Tree::below(places.root()), AgentOwner::Project, None);
            }
        }
    }

    fn host(&mut self, places: &CustomPaths, plugins: &[Plugin]) {
        self.directory(&user_directory(places), &Tree::Any, AgentOwner::User, None);
        self.plugins(plugins);
    }

    /// Agents of plugins have the names of both, so that two plugins may have one of the same name.
    fn plugins(&mut self, plugins: &[Plugin]) {
        for plugin in plugins {
            for dir in &plugin.agent_dirs {
                let tree = Tree::below(&plugin.root);
                self.directory(dir, &tree, AgentOwner::Plugin, Some(&plugin.name));
            }
        }
    }

    fn directory(&mut self, dir: &Path, tree: &Tree, owner: AgentOwner, plugin: Option<&str>) {
        for path in files_below(dir, &[".md"]) {
            if self.agents.len() >= MAX_AGENTS {
                return;
            }
            let found = agent(&path, id_of(dir, &path), tree, owner).map(|mut agent| {
                if let Some(plugin) = plugin {
                    agent.id = format!("{plugin}:{}", agent.id);
                    agent.name = format!("{plugin}:{}", agent.name);
                }
                agent
            });
            match found {
                Ok(agent) if self.agents.iter().any(|known| known.id == agent.id) => {}
                Ok(agent) => self.agents.push(agent),
                Err(problem) => {
                    self.warnings.push(format!("The agent {} is not loaded: {problem}.", path.display()));
                }
            }
        }
    }
}

/// Name of an agent: the path of its file below the directory of agents.
fn id_of(dir: &Path, path: &Path) -> String {
    let inside = path.strip_prefix(dir).unwrap_or(path);
    let names: Vec<_> = inside.iter().map(|name| name.to_string_lossy()).collect();
    let file = names.join("--");
    let id = file.strip_suffix(".agent.md").or_else(|| file.strip_suffix(".md"));
    id.unwrap_or(&file).to_owned()
}

fn agent(path: &Path, id: String, tree: &Tree, owner: AgentOwner) -> Result<AgentDefinition, String> {
    let text = read(path, tree)?.ok_or("it is gone")?;
    let (head, body) = front_matter::parse(&text)?;
    let description = head.text("description").ok_or("it has no `description`")?;
    if body.chars().count() > PROMPT_LIMIT {
        return Err(format!("its text is longer than {PROMPT_LIMIT} characters"));
    }
    let tools = match head.list("tools") {
        None => AgentTools::Inherited,
        Some(tools) if tools.iter().any(|tool| tool == "*") => AgentTools::Inherited,
        Some(tools) => AgentTools::Only(tools),
    };
    let models = match head.list("model") {
        // Other programs' value for "the caller's model".
        Some(models) => models.into_iter().filter(|model| model != "inherit").collect(),
        None => Vec::new(),
    };
    let mcp_servers = match head.get("mcp-servers") {
        Some(serde_json::Value::Object(servers)) => servers.clone(),
        _ => Map::new(),
    };
    let model_invocable = match (head.flag("disable-model-invocation"), head.flag("infer")) {
        (Some(disabled), _) => !disabled,
        (None, Some(infer)) => infer,
        (None, None) => true,
    };
    let name = head.text("name").unwrap_or_else(|| id.clone());
    Ok(AgentDefinition {
        id,
        display_name: name.clone(),
        name,
        description,
        prompt: body.trim().to_owned(),
        tools,
        models,
        effort: head.text("reasoning-effort"),
        mcp_servers,
        skills: head.list("skills").unwrap_or_default(),
        briefing: String::new(),
        model_invocable,
        user_invocable: head.flag("user-invocable").unwrap_or(true),
        source: AgentSource::File(AgentFile { path: path.to_owned(), owner }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        dir
    }

    fn find(dir: &tempfile::TempDir, cwd: &str) -> (Vec<AgentDefinition>, Vec<String>) {
        let root = dir.path().to_path_buf();
        let places = CustomPaths {
            home: root.join("home"),
            cwd: root.join(cwd),
            git_root: Some(root),
            ..CustomPaths::default()
        };
        find_agents(&places, &[])
    }

    #[test]
    fn the_nearest_agent_of_a_name_counts() {
        let dir = tree(&[
            ("sub/.claude/agents/a.md", "---\ndescription: near\n---\nNear."),
            (".github/agents/a.agent.md", "---\ndescription: far\n---\nFar."),
            (".github/agents/b.agent.md", "---\ndescription: b\nname: Bee\n---\nB."),
            ("home/agents/b.md", "---\ndescription: mine\n---\n"),
        ]);
        let (agents, warnings) = find(&dir, "sub");
        assert_eq!(warnings, [""; 0]);
        let told: Vec<(&str, &str, &str)> = agents
            .iter()
            .map(|agent| (agent.id.as_str(), agent.name.as_str(), agent.description.as_str()))
            .collect();
        assert_eq!(told, [("a", "a", "near"), ("b", "Bee", "b")]);
    }

    #[test]
    fn an_agent_that_is_a_link_out_of_the_project_is_not_loaded() {
        let dir = tree(&[("repo/x", ""), ("outside.md", "---\ndescription: outside\n---\nSecret.")]);
        let at = dir.path().join("repo/.github/agents/a.md");
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(dir.path().join("outside.md"), at).unwrap();
        let places = CustomPaths { cwd: dir.path().join("repo"), ..CustomPaths::default() };
        let (agents, warnings) = find_agents(&places, &[]);
        assert_eq!(agents.len(), 0);
        assert!(warnings[0].contains("is a link to a file outside of"), "{warnings:?}");
    }

    #[test]
    fn agents_in_folders_are_known_by_where_they_are() {
        let dir = tree(&[(".github/agents/team/deep/c.agent.md", "---\ndescription: c\n---\n")]);
        let (agents, _) = find(&dir, "");
        assert_eq!((agents[0].id.as_str(), agents[0].name.as_str()), ("team--deep--c", "team--deep--c"));
    }

    #[test]
    fn tools_are_a_list_or_text_and_a_star_is_all() {
        let check = |tools: &str, expected: AgentTools| {
            let dir = tree(&[("agents/a.md", &format!("---\ndescription: d\n{tools}\n---\nx"))]);
            assert_eq!(
                agent(&dir.path().join("agents/a.md"), "a".to_owned(), &Tree::Any, AgentOwner::User)
                    .unwrap()
                    .tools,
                expected
            );
        };
        check("", AgentTools::Inherited);
        check("tools: ['*']", AgentTools::Inherited);
        check("tools: []", AgentTools::Only(vec![]));
        check("tools: Read, Bash", AgentTools::Only(vec!["Read".into(), "Bash".into()]));
    }

    #[test]
    fn broken_agents_are_named_and_left_out() {
        let long = format!("---\ndescription: d\n---\n{}", "x".repeat(PROMPT_LIMIT + 1));
        let dir = tree(&[
            (".github/agents/none.md", "no head"),
            (".github/agents/long.md", &long),
            (".github/agents/ok.md", "---\ndescription: d\nmodel: inherit\ninfer: false\n---\nx"),
        ]);
        let (agents, warnings) = find(&dir, "");
        assert_eq!(agents.len(), 1);
        assert!(agents[0].models.is_empty() && !agents[0].model_invocable);
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings.iter().all(|warning| warning.contains(".md is not loaded: ")), "{warnings:?}");
    }
}
