//! Plugins: a folder that brings agents, skills, commands, hooks and MCP servers along.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::{Tree, jsonc};

/// Paths of a plugin's manifest, in order of precedence.
const MANIFESTS: [&str; 4] =
    ["plugin.json", ".plugin/plugin.json", ".github/plugin/plugin.json", ".claude-plugin/plugin.json"];

/// Members of a manifest that the entry of a marketplace may have instead.
const FROM_ENTRY: &[&str] =
    &["name", "version", "description", "agents", "skills", "commands", "hooks", "mcpServers", "extensions"];

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plugin {
    pub name: String,
    /// Whether no manifest names it, so that it is called by its folder.
    pub is_unnamed: bool,
    /// Marketplace that it was installed from; empty for any other folder.
    pub marketplace: String,
    pub version: Option<String>,
    pub root: PathBuf,
    pub agent_dirs: Vec<PathBuf>,
    pub skill_dirs: Vec<PathBuf>,
    pub command_dirs: Vec<PathBuf>,
    pub extension_dirs: Vec<PathBuf>,
    pub hook_files: Vec<PathBuf>,
    /// Hooks that its description holds itself.
    pub hooks: Option<Value>,
    /// MCP servers by name, as they are configured.
    pub mcp_servers: Map<String, Value>,
}

/// Contents of a plugin, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PluginContents {
    pub agents: Vec<String>,
    pub skills: Vec<String>,
    pub commands: Vec<String>,
    pub servers: Vec<String>,
    pub extensions: Vec<String>,
    /// Whether it has hooks.
    pub hooks: bool,
}

/// Names of one kind that are listed.
const MAX_LISTED: usize = 200;

impl Plugin {
    /// Lists what the plugin brings.
    pub fn contents(&self) -> PluginContents {
        let is_document = |path: &Path| path.extension().is_some_and(|end| end == "md");
        PluginContents {
            agents: names(&self.agent_dirs, is_document),
            skills: {
                // A folder of skills, or one skill itself.
                let (own, groups): (Vec<PathBuf>, Vec<PathBuf>) =
                    self.skill_dirs.iter().cloned().partition(|dir| dir.join("SKILL.md").is_file());
                let own = own.iter().filter_map(|dir| dir.file_name()?.to_str().map(str::to_owned));
                own.chain(names(&groups, |path| path.join("SKILL.md").is_file())).collect()
            },
            commands: names(&self.command_dirs, is_document),
            servers: self.mcp_servers.keys().cloned().collect(),
            extensions: names(&self.extension_dirs, |path| path.join(crate::extensions::ENTRY).is_file()),
            hooks: self.hooks.is_some() || self.hook_files.iter().any(|file| file.is_file()),
        }
    }
}

/// Names of the entries of directories that are of a kind, without their endings.
fn names(dirs: &[PathBuf], is_kind: impl Fn(&Path) -> bool) -> Vec<String> {
    let entries = dirs.iter().filter_map(|dir| std::fs::read_dir(dir).ok()).flatten().flatten();
    let of_kind = entries.map(|entry| entry.path()).filter(|path| is_kind(path)).take(MAX_LISTED);
    let mut names: Vec<String> = of_kind
        .filter_map(|path| {
            let name = path.file_stem()?.to_str()?;
            Some(name.strip_suffix(".agent").unwrap_or(name).to_owned())
        })
        .collect();
    names.sort();
    names
}

/// The plugins of these folders, and a sentence about each that is none.
pub fn load(dirs: &[PathBuf]) -> (Vec<Plugin>, Vec<String>) {
    let mut plugins = Vec::new();
    let mut warnings = Vec::new();
    for dir in dirs {
        match read(dir, &Value::Null) {
            Ok(plugin) => plugins.push(plugin),
            Err(problem) => warnings.push(format!("The plugin {} is not loaded: {problem}.", dir.display())),
        }
    }
    (plugins, warnings)
}

/// Reads the plugin of a folder. The entry of a marketplace describes what the manifest of the folder leaves out.
pub fn read(root: &Path, entry: &Value) -> Result<Plugin, String> {
    let manifest = MANIFESTS.iter().map(|name| root.join(name)).find(|path| path.is_file());
    let mut manifest = match manifest {
        Some(path) => {
            let text = crate::read(&path, &Tree::below(root))?.unwrap_or_default();
            jsonc::parse(&text).map_err(|error| format!("{}: {error}", path.display()))?
        }
        // A folder with the usual content needs no description.
        None if ["skills", "agents", "commands", "hooks", "extensions", ".mcp.json", "SKILL.md"]
            .iter()
            .any(|name| root.join(name).exists())
            || (entry.is_object() && root.is_dir()) =>
        {
            Value::Object(Map::new())
        }
        None => return Err("it has no plugin.json".to_owned()),
    };
    for member in FROM_ENTRY {
        if manifest[*member].is_null() && !entry[*member].is_null() && manifest.is_object() {
            manifest[*member] = entry[*member].clone();
        }
    }
    let fallback = || root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut hook_files: Vec<PathBuf> =
        ["hooks.json", "hooks/hooks.json"].iter().map(|name| root.join(name)).collect();
    let mut hooks = None;
    match &manifest["hooks"] {
        Value::String(path) => hook_files = within(root, path).into_iter().collect(),
        Value::Object(_) => hooks = Some(serde_json::json!({ "hooks": inner(&manifest["hooks"]) })),
        _ => {}
    }
    let mut skill_dirs = dirs(root, &manifest["skills"], "skills");
    // A folder that is one skill.
    if root.join("SKILL.md").is_file() {
        skill_dirs.push(root.to_owned());
    }
    let text = |name: &str| manifest[name].as_str().map(str::to_owned);
    Ok(Plugin {
        is_unnamed: text("name").is_none(),
        name: text("name").unwrap_or_else(fallback),
        marketplace: String::new(),
        version: text("version"),
        agent_dirs: dirs(root, &manifest["agents"], "agents"),
        skill_dirs,
        command_dirs: dirs(root, &manifest["commands"], "commands"),
        extension_dirs: dirs(root, &manifest["extensions"], "extensions"),
        hook_files,
        hooks,
        mcp_servers: mcp_servers(root, &manifest["mcpServers"])?,
        root: root.to_owned(),
    })
}

/// Hooks with or without the member that usually holds them.
fn inner(hooks: &Value) -> &Value {
    hooks.get("hooks").unwrap_or(hooks)
}

/// The folders that a member names, or the usual one.
fn dirs(root: &Path, named: &Value, usual: &str) -> Vec<PathBuf> {
    match named {
        Value::String(path) => within(root, path).into_iter().collect(),
        Value::Array(paths) => paths.iter().filter_map(|path| within(root, path.as_str()?)).collect(),
        _ => vec![root.join(usual)],
    }
}

fn mcp_servers(root: &Path, named: &Value) -> Result<Map<String, Value>, String> {
    let servers = match named {
        Value::Object(_) => named.clone(),
        _ => {
            let path = match named.as_str() {
                Some(path) => within(root, path),
                None => Some(root.join(".mcp.json")),
            };
            let text = path.map(|path| crate::read(&path, &Tree::below(root))).transpose()?.flatten();
            text.map_or(Ok(Value::Null), |text| jsonc::parse(&text))
                .map_err(|error| format!(".mcp.json: {error}"))?
        }
    };
    let servers = servers.get("mcpServers").cloned().unwrap_or(servers);
    let Value::Object(mut servers) = servers else { return Ok(Map::new()) };
    servers.values_mut().for_each(|server| root_all(server, root));
    Ok(servers)
}

fn root_all(value: &mut Value, root: &Path) {
    match value {
        Value::String(text) => *text = rooted(text, root),
        Value::Array(items) => items.iter_mut().for_each(|item| root_all(item, root)),
        Value::Object(members) => members.values_mut().for_each(|member| root_all(member, root)),
        _ => {}
    }
}

/// A path of the plugin. One that leads out of it is not the plugin's.
fn within(root: &Path, path: &str) -> Option<PathBuf> {
    let path = Path::new(path);
    let leads_out =
        path.is_absolute() || path.components().any(|part| part == std::path::Component::ParentDir);
    (!leads_out).then(|| root.join(path))
}

/// Text with the plugin's folder put in where it is named.
pub(crate) fn rooted(text: &str, root: &Path) -> String {
    let root = root.display().to_string();
    text.replace("${PLUGIN_ROOT}", &root).replace("${CLAUDE_PLUGIN_ROOT}", &root)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)], expect: impl Fn(&Plugin, &Path)) {
        let dir = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        expect(&read(dir.path(), &Value::Null).unwrap(), dir.path());
    }

    #[test]
    fn a_plugin_is_described_in_any_of_four_places() {
        for place in MANIFESTS {
            check(&[(place, r#"{"name": "p"}"#)], |plugin, root| {
                assert_eq!(plugin.name, "p");
                assert_eq!(plugin.skill_dirs, [root.join("skills")]);
            });
        }
    }

    #[test]
    fn members_name_other_folders_but_none_outside() {
        let text = r#"{"name": "p", "skills": ["a", "../b"], "agents": "./c"}"#;
        check(&[("plugin.json", text)], |plugin, root| {
            assert_eq!(plugin.skill_dirs, [root.join("a")]);
            assert_eq!(plugin.agent_dirs, [root.join("./c")]);
        });
    }

    #[test]
    fn servers_know_where_the_plugin_is() {
        let text =
            r#"{"name": "p", "mcpServers": {"s": {"command": "node", "args": ["${PLUGIN_ROOT}/s.js"]}}}"#;
        check(&[("plugin.json", text)], |plugin, root| {
            assert_eq!(plugin.mcp_servers["s"]["args"][0], format!("{}/s.js", root.display()));
        });
        check(
            &[("plugin.json", "{}"), (".mcp.json", r#"{"mcpServers": {"t": {"url": "u"}}}"#)],
            |plugin, _| {
                assert_eq!(plugin.mcp_servers["t"]["url"], "u");
            },
        );
    }

    #[test]
    fn servers_are_in_a_file_that_is_named_or_stand_alone() {
        let servers = r#"{"mcpServers": {"s": {"command": "x"}}}"#;
        for files in [
            &[("plugin.json", r#"{"mcpServers": "servers.json"}"#), ("servers.json", servers)][..],
            &[(".mcp.json", servers)],
        ] {
            check(files, |plugin, _| assert_eq!(plugin.mcp_servers["s"]["command"], "x"));
        }
    }

    #[test]
    fn a_plugin_says_what_it_brings() {
        let files = [
            ("plugin.json", r#"{"name": "p", "mcpServers": {"s": {"command": "x"}}}"#),
            ("agents/reviewer.agent.md", "x"),
            ("skills/release/SKILL.md", "x"),
            ("skills/notes.txt", "x"),
            ("extensions/lint/extension.mjs", ""),
            ("commands/tidy.md", "x"),
            ("hooks/hooks.json", "{}"),
        ];
        check(&files, |plugin, _| {
            let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
            let expected = PluginContents {
                agents: names(&["reviewer"]),
                skills: names(&["release"]),
                commands: names(&["tidy"]),
                servers: names(&["s"]),
                extensions: names(&["lint"]),
                hooks: true,
            };
            assert_eq!(plugin.contents(), expected);
        });
    }

    #[test]
    fn the_entry_of_a_marketplace_fills_in_the_manifest() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("SKILL.md"), "x").unwrap();
        let entry =
            serde_json::json!({ "name": "p", "version": "1.2.3", "mcpServers": { "s": { "command": "x" } } });
        let plugin = read(dir.path(), &entry).unwrap();
        assert_eq!((plugin.name.as_str(), plugin.version.as_deref()), ("p", Some("1.2.3")));
        assert_eq!(plugin.contents().skills.len(), 1);
        assert_eq!(plugin.contents().servers, ["s"]);
    }

    #[test]
    fn a_folder_that_is_no_plugin_is_named() {
        let (plugins, warnings) = load(&[PathBuf::from("/nowhere")]);
        assert!(plugins.is_empty());
        assert_eq!(warnings, ["The plugin /nowhere is not loaded: it has no plugin.json."]);
    }
}
