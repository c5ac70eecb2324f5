//! Files that configure hooks. What is wrong in one costs the entry or the file, never the others.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hangar_agent::hook::{HookKind, HookRequest};
use regex::Regex;
use serde_json::Value;

use super::command::CommandHook;
use super::http::HttpHook;
use super::payload::{self, PayloadStyle};
use crate::plugins::Plugin;
use crate::settings::PROJECT_SETTINGS;
use crate::{CustomPaths, Tree, files_below, files_in, jsonc, read};

/// Timeout of a hook that sets none.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest that a hook may allow itself.
const MAX_TIMEOUT: Duration = Duration::from_secs(600);
/// Hooks of one session.
const MAX_ENTRIES: usize = 256;

/// One configured hook.
#[derive(Debug)]
pub(super) struct HookEntry {
    pub(super) kind: HookKind,
    pub(super) style: PayloadStyle,
    matcher: Option<Regex>,
    pub(super) timeout: Duration,
    pub(super) action: HookAction,
    /// Name of its configuration file, for messages.
    pub(super) file: String,
    origin: HookOrigin,
}

#[derive(Debug)]
pub(super) enum HookAction {
    Command(CommandHook),
    Http(HttpHook),
}

impl HookEntry {
    pub(super) fn is_about(&self, request: &HookRequest) -> bool {
        self.kind == request.kind
            && self.matcher.as_ref().is_none_or(|matcher| {
                let subjects = payload::matched(request, self.style);
                subjects.is_none_or(|subjects| subjects.iter().any(|subject| matcher.is_match(subject)))
            })
    }
}

/// Origin of a configuration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum HookOrigin {
    /// Of the machine; users cannot disable it.
    #[default]
    Policy,
    User,
    Project,
    Plugin,
}

impl HookOrigin {
    pub fn as_str(self) -> &'static str {
        match self {
            HookOrigin::Policy => "policy",
            HookOrigin::User => "user",
            HookOrigin::Project => "repository",
            HookOrigin::Plugin => "plugin",
        }
    }
}

/// A hook as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedHook {
    /// The same as long as the hook is, and where it is configured. Of two that are alike each has its own.
    pub id: String,
    pub kind: HookKind,
    pub origin: HookOrigin,
    /// Name of its configuration file, for messages.
    pub source: String,
    /// Command that is run, or address that is asked.
    pub action: String,
    /// Pattern of the tools that it is about; all if it has none.
    pub matcher: Option<String>,
}

/// All hooks that were found, in the order in which they are asked, and what was wrong.
#[derive(Debug, Default)]
pub struct HookFiles {
    pub(super) entries: Vec<HookEntry>,
    pub warnings: Vec<String>,
    /// The top of the project.
    pub(super) root: PathBuf,
    home: PathBuf,
    /// Of what is being read.
    origin: HookOrigin,
}

/// Members that a file must have besides hooks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// A file of hooks, with its version.
    Hooks,
    /// Settings, of which hooks are one.
    Settings,
}

impl HookFiles {
    /// Reads every documented path. `disabled` disables all but the machine's own.
    pub fn find(policy_dir: Option<&Path>, places: &CustomPaths, plugins: &[Plugin], disabled: bool) -> Self {
        let mut found = Self { root: places.root().to_owned(), home: places.home.clone(), ..Self::default() };
        for path in policy_dir.map(|dir| files_in(dir, &[".json"])).unwrap_or_default() {
            found.file(&path, Shape::Hooks, None);
        }
        if disabled {
            return found;
        }
        found.origin = HookOrigin::User;
        for path in files_below(&places.home.join("hooks"), &[".json"]) {
            found.file(&path, Shape::Hooks, None);
        }
        found.file(&places.home.join("settings.json"), Shape::Settings, None);
        found.origin = HookOrigin::Project;
        // Hooks of the whole project run before those of its parts.
        let mut dirs: Vec<&Path> = places.upwards().filter(|_| places.trusted).collect();
        dirs.reverse();
        for dir in dirs {
            for path in files_below(&dir.join(".github/hooks"), &[".json"]) {
                found.file(&path, Shape::Hooks, None);
            }
            for settings in PROJECT_SETTINGS {
                found.file(&dir.join(settings), Shape::Settings, None);
            }
        }
        found.origin = HookOrigin::Plugin;
        for plugin in plugins {
            for path in &plugin.hook_files {
                found.file(path, Shape::Settings, Some(&plugin.root));
            }
            if let Some(hooks) = &plugin.hooks {
                let name = plugin.root.display().to_string();
                found.document(hooks, &name, Some(&plugin.root));
            }
        }
        found
    }

    /// The hooks, in the order in which they are asked.
    pub fn list(&self) -> Vec<ListedHook> {
        let mut ids = BTreeSet::new();
        let listed = self.entries.iter().map(|entry| {
            let content = format!("{:?}", (&entry.matcher, entry.timeout, &entry.action));
            let mut numbered = (0..).map(|ordinal: u32| {
                let mut hasher = DefaultHasher::new();
                (&self.root, entry.origin, &entry.file, entry.kind.as_str(), &content, ordinal)
                    .hash(&mut hasher);
                format!("{:016x}", hasher.finish())
            });
            let id = numbered.find(|id| ids.insert(id.clone())).unwrap_or_default();
            let action = match &entry.action {
                HookAction::Command(command) => command.script.clone(),
                HookAction::Http(http) => http.url.clone(),
            };
            let pattern = |matcher: &Regex| {
                let whole = matcher.as_str();
                let inner = whole.strip_prefix("^(?:").and_then(|inner| inner.strip_suffix(")$"));
                inner.unwrap_or(whole).to_owned()
            };
            let matcher = entry.matcher.as_ref().map(pattern);
            let (kind, origin, source) = (entry.kind, entry.origin, entry.file.clone());
            ListedHook { id, kind, origin, source, action, matcher }
        });
        listed.collect()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Display name of a file: relative to the project for files in it.
    fn name(&self, path: &Path) -> String {
        if path == self.home.join("settings.json") {
            return "global settings".to_owned();
        }
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }

    fn file(&mut self, path: &Path, shape: Shape, plugin: Option<&Path>) {
        let name = self.name(path);
        let tree = match (plugin, self.origin) {
            (Some(root), _) => Tree::below(root),
            (None, HookOrigin::Project) => Tree::below(&self.root),
            (None, HookOrigin::Policy | HookOrigin::User | HookOrigin::Plugin) => Tree::Any,
        };
        let text = match read(path, &tree) {
            Ok(Some(text)) => text,
            Ok(None) => return,
            Err(problem) => return self.warnings.push(problem),
        };
        // Invalid settings are reported where settings are read.
        let document = match jsonc::parse(&text) {
            Ok(document) => document,
            Err(_) if shape == Shape::Settings && plugin.is_none() => return,
            Err(error) => {
                return self.warnings.push(format!("The hooks of {name} are not loaded: {error}."));
            }
        };
        if shape == Shape::Hooks {
            match document.get("version") {
                None => {}
                Some(version) if version.as_u64() == Some(1) => {}
                Some(version) => {
                    let problem = format!("its version is {version}, and only 1 is known here");
                    return self.warnings.push(format!("The hooks of {name} are not loaded: {problem}."));
                }
            }
            if document["disableAllHooks"] == true {
                return;
            }
        }
        let before = self.entries.len();
        self.document(&document, &name, plugin);
        for entry in &mut self.entries[before..] {
            if let HookAction::Command(command) = &mut entry.action {
                let dir = path.parent().unwrap_or(path).display().to_string();
                command.env.entry("COPILOT_HOOK_DIR".to_owned()).or_insert(dir);
            }
        }
    }

    fn document(&mut self, document: &Value, name: &str, plugin: Option<&Path>) {
        let hooks = document.get("hooks").unwrap_or(document);
        let Some(events) = hooks.as_object().filter(|_| document.get("hooks").is_some() || plugin.is_some())
        else {
            return;
        };
        for (event, entries) in events {
            let Some((kind, style)) = payload::event(event) else {
                self.warnings.push(format!("{name} has hooks for `{event}`, which nothing ever asks."));
                continue;
            };
            for entry in entries.as_array().into_iter().flatten() {
                self.entry(entry, entry.get("matcher"), (kind, style), name, plugin);
            }
        }
    }

    /// An entry, or several that share a matcher.
    fn entry(
        &mut self,
        entry: &Value,
        matcher: Option<&Value>,
        event: (HookKind, PayloadStyle),
        name: &str,
        plugin: Option<&Path>,
    ) {
        if let Some(inner) = entry.get("hooks").and_then(Value::as_array) {
            for entry in inner {
                self.entry(entry, entry.get("matcher").or(matcher), event, name, plugin);
            }
            return;
        }
        match parse(entry, matcher, event, (name, self.origin), plugin) {
            Ok(Some(entry)) if self.entries.len() < MAX_ENTRIES => self.entries.push(entry),
            Ok(Some(_)) => {
                self.warnings.push(format!("{name} has more hooks than the {MAX_ENTRIES} that are asked."));
            }
            Ok(None) => {}
            Err(problem) => {
                let event = event.0.as_str();
                self.warnings.push(format!("A {event} hook of {name} is left out: {problem}."));
            }
        }
    }
}

fn parse(
    entry: &Value,
    matcher: Option<&Value>,
    (kind, style): (HookKind, PayloadStyle),
    (name, origin): (&str, HookOrigin),
    plugin: Option<&Path>,
) -> Result<Option<HookEntry>, String> {
    let text = |key: &str| {
        entry
            .get(key)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
            .map(|text| rooted(text, plugin))
    };
    let strings = |key: &str| -> BTreeMap<String, String> {
        let members = entry.get(key).and_then(Value::as_object).into_iter().flatten();
        members.filter_map(|(key, value)| Some((key.clone(), rooted(value.as_str()?, plugin)))).collect()
    };
    let action = match entry.get("type").and_then(Value::as_str).unwrap_or("command") {
        "command" => {
            let script = text("bash").or_else(|| text("command"));
            let Some(script) = script else {
                return match text("powershell") {
                    // Meant for other systems.
                    Some(_) => Ok(None),
                    None => Err("it has no `bash` or `command`".to_owned()),
                };
            };
            let mut env = strings("env");
            if let Some(root) = plugin {
                env.insert("PLUGIN_ROOT".to_owned(), root.display().to_string());
                env.insert("CLAUDE_PLUGIN_ROOT".to_owned(), root.display().to_string());
            }
            HookAction::Command(CommandHook { script, cwd: text("cwd").map(PathBuf::from), env })
        }
        "http" => {
            let url = text("url").ok_or("it has no `url`")?;
            let allowed = entry.get("allowedEnvVars").and_then(Value::as_array).into_iter().flatten();
            let allowed = allowed.filter_map(|name| name.as_str().map(str::to_owned)).collect();
            HookAction::Http(HttpHook { url, headers: strings("headers"), allowed_env_vars: allowed })
        }
        // Speaks for a person who begins a session by hand, and there is none.
        "prompt" if kind == HookKind::SessionStart && text("prompt").is_some() => return Ok(None),
        other => return Err(format!("its type `{other}` is unknown here")),
    };
    let matcher = match matcher.and_then(Value::as_str) {
        None | Some("" | "*") => None,
        Some(pattern) => Some(
            Regex::new(&format!("^(?:{pattern})$"))
                .map_err(|_| format!("its matcher `{pattern}` is not a regular expression"))?,
        ),
    };
    let seconds = entry.get("timeoutSec").or_else(|| entry.get("timeout")).and_then(Value::as_f64);
    let timeout = seconds
        .filter(|seconds| *seconds > 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .map_or(DEFAULT_TIMEOUT, |timeout| timeout.min(MAX_TIMEOUT));
    Ok(Some(HookEntry { kind, style, matcher, timeout, action, file: name.to_owned(), origin }))
}

/// Text in which a plugin may have named its own folder.
fn rooted(text: &str, plugin: Option<&Path>) -> String {
    match plugin {
        Some(root) => crate::plugins::rooted(text, root),
        None => text.to_owned(),
    }
}
