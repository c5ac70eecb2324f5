//! Skills, agents and instructions of projects and of the user, listed without a session.

use std::path::{Path, PathBuf};

use hangar_agent::agents::{AgentDefinition, AgentSource};
use hangar_custom::agents;
use hangar_custom::hooks::HookOrigin;
use hangar_custom::plugins::Plugin;
use hangar_custom::settings::Preferences;
use hangar_custom::skills::{self, DiscoveryPath, Skill};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Failure, Method, Reply};
use crate::finder::FoundHooks;
use crate::task::SessionTask;
use crate::user_settings::UserSettings;

/// Projects of one request. Each costs a look at a dozen directories.
const MAX_PROJECTS: usize = 100;

pub(super) const METHODS: &[Method] = &[
    Method { name: "skills.discover", run: |call| Box::pin(discover_skills(call)) },
    Method { name: "skills.getDiscoveryPaths", run: |call| Box::pin(skill_paths(call)) },
    Method { name: "skills.config.setDisabledSkills", run: |call| Box::pin(set_disabled_skills(call)) },
    Method { name: "skills.config.setSkillDisabled", run: |call| Box::pin(switch_skill(call)) },
    Method { name: "agents.discover", run: |call| Box::pin(discover_agents(call)) },
    Method { name: "agents.getDiscoveryPaths", run: |call| Box::pin(agent_paths(call)) },
    Method { name: "session.plugins.list", run: |call| Box::pin(list_plugins(call)) },
    Method { name: "hooks.discover", run: |call| Box::pin(discover_hooks(call)) },
    Method { name: "instructions.discover", run: |call| Box::pin(discover_instructions(call)) },
    Method { name: "instructions.getDiscoveryPaths", run: |call| Box::pin(instruction_paths(call)) },
];

/// Projects and sources that a client asks about.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DiscoveryScope {
    project_paths: Vec<PathBuf>,
    /// Further directories of skills.
    skill_directories: Vec<PathBuf>,
    /// Leaves out what is not the project's: the client does not speak for the one whose machine this is.
    #[serde(
        alias = "excludeHostSkills",
        alias = "excludeHostAgents",
        alias = "excludeHostHooks",
        alias = "excludeHostInstructions"
    )]
    exclude_host: bool,
    /// Asks about the hooks of a session in its directory, with what they run.
    session_id: Option<String>,
}

fn scope(call: &Call) -> Result<DiscoveryScope, Failure> {
    let scope: DiscoveryScope = call.params()?;
    match scope.project_paths.len() {
        0..=MAX_PROJECTS => Ok(scope),
        many => {
            Err(Failure::Params(format!("{many} projects are more than the {MAX_PROJECTS} of one request")))
        }
    }
}

async fn discover_skills(call: Call) -> Result<Reply, Failure> {
    let scope = scope(&call)?;
    let finder = &call.hub.config().finder;
    let disabled = Preferences::of_user(&call.hub.home()).disabled_skills;
    let (mut host, mut errors) = match scope.exclude_host {
        true => (Vec::new(), Vec::new()),
        false => skills::of_host(&finder.places(None)),
    };
    let (named, problems) = skills::in_directories(&scope.skill_directories);
    errors.extend(problems);
    for skill in named {
        if host.iter().all(|known| known.name != skill.name) {
            host.push(skill);
        }
    }
    let mut told: Vec<Value> = host.iter().map(|skill| tell_skill(skill, &disabled)).collect();
    for project in &scope.project_paths {
        let (found, problems) = skills::of_project(&finder.places(Some(project)).places);
        errors.extend(problems);
        told.extend(found.iter().map(|skill| of_project(tell_skill(skill, &disabled), project)));
    }
    // Sentences about what is wrong name files of the host.
    if scope.exclude_host {
        errors.clear();
    }
    Reply::of(json!({ "skills": told, "errors": errors }))
}

/// Lists the configured hooks, for each project with the global ones. With a session instead of projects, those in its directory.
async fn discover_hooks(call: Call) -> Result<Reply, Failure> {
    let mut scope = scope(&call)?;
    let of_session = scope.session_id.is_some() && scope.project_paths.is_empty();
    if of_session {
        scope.project_paths.push(call.live()?.ask(|task| PathBuf::from(task.cwd())).await?);
    }
    let (mut told, mut errors) = (Vec::new(), Vec::new());
    let projects: Vec<Option<&PathBuf>> = match scope.project_paths.as_slice() {
        [] => vec![None],
        projects => projects.iter().map(Some).collect(),
    };
    for project in projects {
        let at = project.map(|project| format!("[project: {}] ", project.display())).unwrap_or_default();
        if project.is_some_and(|project| !project.is_dir()) {
            errors.push(format!("{at}it is no directory"));
            continue;
        }
        let FoundHooks { files, disabled, untrusted } =
            call.hub.config().finder.hooks(project.map(PathBuf::as_path));
        // Sentences about what is wrong name files of the host.
        if !scope.exclude_host {
            errors.extend(files.warnings.iter().map(|problem| format!("{at}{problem}")));
        }
        let trusted = files.list().into_iter().map(|hook| (hook, true));
        let untrusted = untrusted.into_iter().filter(|_| of_session).map(|hook| (hook, false));
        for (hook, is_trusted) in trusted.chain(untrusted) {
            let hidden = match hook.origin {
                HookOrigin::Policy => false,
                HookOrigin::User | HookOrigin::Plugin => scope.exclude_host,
                // The folder of the user's own things is no project.
                HookOrigin::Project => project.is_none(),
            };
            if !hidden {
                let mut row = json!({
                    "id": hook.id,
                    "hookType": hook.kind.as_str(),
                    "origin": hook.origin.as_str(),
                    "source": hook.source,
                    "enabled": is_trusted && (!disabled || hook.origin == HookOrigin::Policy),
                });
                if of_session {
                    row["action"] = json!(hook.action);
                    row["matcher"] = json!(hook.matcher);
                    row["trusted"] = json!(is_trusted);
                }
                told.push(match project {
                    Some(project) => of_project(row, project),
                    None => row,
                });
            }
        }
    }
    Reply::of(json!({ "hooks": told, "warnings": [], "errors": errors }))
}

fn tell_skill(skill: &Skill, disabled: &[String]) -> Value {
    let mut told = json!({
        "name": skill.name,
        "commandName": skill.name,
        "description": skill.description,
        "source": skill.source.as_str(),
        "userInvocable": skill.user_invocable,
        "enabled": !disabled.contains(&skill.name),
        "path": skill.path,
    });
    if let Some(hint) = &skill.argument_hint {
        told["argumentHint"] = json!(hint);
    }
    told
}

/// Adds the project to a result, with the path as the client wrote it.
fn of_project(mut told: Value, project: &Path) -> Value {
    told["projectPath"] = json!(project);
    told
}

async fn skill_paths(call: Call) -> Result<Reply, Failure> {
    let scope = scope(&call)?;
    let finder = &call.hub.config().finder;
    let tell = |directory: DiscoveryPath| {
        json!({
            "path": directory.path,
            "scope": directory.source.as_str(),
            "preferredForCreation": directory.preferred,
        })
    };
    let mut paths = Vec::new();
    for project in &scope.project_paths {
        let directories = skills::project_directories(&finder.places(Some(project)).places);
        paths.extend(directories.into_iter().map(|directory| of_project(tell(directory), project)));
    }
    if !scope.exclude_host {
        let host = finder.places(None);
        paths.extend(skills::personal_directories(&host.places).into_iter().map(tell));
        let named = |dir: &PathBuf| DiscoveryPath {
            path: host.places.cwd.join(dir),
            source: skills::SkillSource::Custom,
            preferred: false,
        };
        paths.extend(host.extra.iter().map(named).map(tell));
    }
    Reply::of(json!({ "paths": paths }))
}

async fn set_disabled_skills(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        disabled_skills: Vec<String>,
    }
    let params: Params = call.params()?;
    UserSettings::of(&call.hub.home()).set_disabled_skills(&params.disabled_skills).map_err(Failure::new)?;
    Reply::null()
}

async fn switch_skill(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        name: String,
        disabled: bool,
    }
    let Params { name, disabled } = call.params()?;
    UserSettings::of(&call.hub.home()).switch_skill(&name, disabled).map_err(Failure::new)?;
    Reply::null()
}

async fn discover_agents(call: Call) -> Result<Reply, Failure> {
    let scope = scope(&call)?;
    let finder = &call.hub.config().finder;
    let mut told = Vec::new();
    if !scope.exclude_host {
        let host = finder.places(None);
        let found = agents::of_host(&host.places, &host.plugins);
        told.extend(found.iter().map(super::agents::describe));
    }
    for project in &scope.project_paths {
        let places = finder.places(Some(project)).places;
        told.extend(agents::of_project(&places).iter().map(|agent| tell_project_agent(agent, &places.cwd)));
    }
    Reply::of(json!({ "agents": told }))
}

/// Plugins of a session: those of the host and those of its own settings, each with what it brings.
async fn list_plugins(call: Call) -> Result<Reply, Failure> {
    let asked = |task: &mut SessionTask| {
        (PathBuf::from(task.cwd()), task.spec.customization.plugin_dirs.clone().unwrap_or_default())
    };
    let (cwd, dirs) = call.live()?.ask(asked).await?;
    let dirs: Vec<PathBuf> = dirs.iter().map(|dir| cwd.join(dir)).collect();
    let mut found = call.hub.config().finder.places(Some(&cwd)).plugins;
    found.extend(hangar_custom::plugins::load(&dirs).0);
    found.dedup_by(|one, other| one.root == other.root);
    // A view beside the server shows what each plugin brings; the published form has no room for it.
    let is_detailed = call.hub.foreground.has_view();
    let told: Vec<Value> = found.iter().map(|plugin| tell_plugin(plugin, is_detailed)).collect();
    Reply::of(json!({ "plugins": told }))
}

fn tell_plugin(plugin: &Plugin, is_detailed: bool) -> Value {
    let mut told = json!({ "name": plugin.name, "marketplace": plugin.marketplace, "enabled": true });
    if let Some(version) = &plugin.version {
        told["version"] = json!(version);
    }
    if is_detailed {
        let contents = plugin.contents();
        told["path"] = json!(plugin.root);
        told["agents"] = json!(contents.agents);
        told["skills"] = json!(contents.skills);
        told["commands"] = json!(contents.commands);
        told["mcpServers"] = json!(contents.servers);
        told["hooks"] = json!(contents.hooks);
    }
    told
}

/// An agent of a project or of a directory above it, which it inherits from.
fn tell_project_agent(agent: &AgentDefinition, cwd: &Path) -> Value {
    let mut told = super::agents::describe(agent);
    if matches!(&agent.source, AgentSource::File(file) if !file.path.starts_with(cwd)) {
        told["source"] = json!("inherited");
    }
    told
}

async fn agent_paths(call: Call) -> Result<Reply, Failure> {
    let scope = scope(&call)?;
    let finder = &call.hub.config().finder;
    let tell = |path: PathBuf, scope: &str, preferred: bool| json!({ "path": path, "scope": scope, "preferredForCreation": preferred });
    let mut paths = Vec::new();
    if !scope.exclude_host {
        paths.push(tell(agents::user_directory(&finder.places(None).places), "user", true));
    }
    for project in &scope.project_paths {
        let directories = agents::project_directories(&finder.places(Some(project)).places);
        let told = directories.into_iter().enumerate().map(|(index, path)| tell(path, "project", index == 0));
        paths.extend(told.map(|told| of_project(told, project)));
    }
    Reply::of(json!({ "paths": paths }))
}

async fn discover_instructions(call: Call) -> Result<Reply, Failure> {
    let scope = scope(&call)?;
    let finder = &call.hub.config().finder;
    let mut sources = Vec::new();
    if !scope.exclude_host {
        sources.extend(finder.instructions(None)?.iter().map(|source| json!(source)));
    }
    for project in &scope.project_paths {
        let found = finder.instructions(Some(project))?;
        sources.extend(found.iter().map(|source| of_project(json!(source), project)));
    }
    Reply::of(json!({ "sources": sources }))
}

async fn instruction_paths(call: Call) -> Result<Reply, Failure> {
    let scope = scope(&call)?;
    let finder = &call.hub.config().finder;
    let mut paths = Vec::new();
    if !scope.exclude_host {
        paths.extend(finder.instruction_targets(None).iter().map(|target| json!(target)));
    }
    for project in &scope.project_paths {
        let targets = finder.instruction_targets(Some(project));
        paths.extend(targets.iter().map(|target| of_project(json!(target), project)));
    }
    Reply::of(json!({ "paths": paths }))
}
