//! Settings in files: the user's, then the project's, then the project's that are not shared. Later ones win; lists add up.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{CustomPaths, Tree, jsonc, read};

/// Settings of a project in the order in which they count, with those of Claude Code.
pub(crate) const PROJECT_SETTINGS: [&str; 4] = [
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".github/copilot/settings.json",
    ".github/copilot/settings.local.json",
];

/// Settings of the settings files that matter here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preferences {
    pub model: Option<String>,
    pub allowed_urls: Vec<String>,
    pub denied_urls: Vec<String>,
    pub disable_all_hooks: bool,
    pub disabled_mcp_servers: Vec<String>,
    pub disabled_skills: Vec<String>,
    pub skill_directories: Vec<PathBuf>,
    /// Folders whose own configuration may run. Only the user says so.
    pub trusted_folders: Vec<PathBuf>,
    /// Problems in the files.
    pub warnings: Vec<String>,
}

impl Preferences {
    /// The user's own settings, wherever a session is.
    pub fn of_user(home: &Path) -> Self {
        let mut preferences = Self::default();
        for name in ["config.json", "settings.json"] {
            if let Some(settings) = preferences.read(&home.join(name), &Tree::Any) {
                preferences.add(&settings, home);
                preferences.trusted_folders.extend(paths(&settings["trustedFolders"], home));
            }
        }
        preferences
    }

    /// The user's settings with those of the project added. A project that is not trusted may restrict, not permit.
    pub fn with_project(mut self, places: &CustomPaths) -> Self {
        let root = places.root();
        for file in PROJECT_SETTINGS {
            let Some(mut settings) = self.read(&root.join(file), &Tree::below(root)) else { continue };
            // Models and rules of Claude Code have names of their own; that nobody wants hooks is said alike.
            let foreign = file.starts_with(".claude");
            if let Some(members) = settings.as_object_mut() {
                members.retain(|name, _| match name.as_str() {
                    "disableAllHooks" => places.trusted,
                    "deniedUrls" | "disabledSkills" => !foreign,
                    _ => places.trusted && !foreign,
                });
            }
            self.add(&settings, root);
        }
        self
    }

    fn add(&mut self, settings: &Value, base: &Path) {
        if let Some(model) = settings["model"].as_str() {
            self.model = Some(model.to_owned());
        }
        if let Some(disabled) = settings["disableAllHooks"].as_bool() {
            self.disable_all_hooks = disabled;
        }
        self.allowed_urls.extend(strings(&settings["allowedUrls"]));
        self.denied_urls.extend(strings(&settings["deniedUrls"]));
        self.disabled_mcp_servers.extend(strings(&settings["disabledMcpServers"]));
        self.disabled_skills.extend(strings(&settings["disabledSkills"]));
        self.skill_directories.extend(paths(&settings["skillDirectories"], base));
    }

    fn read(&mut self, path: &Path, tree: &Tree) -> Option<Value> {
        let text = match read(path, tree) {
            Ok(text) => text?,
            Err(problem) => {
                self.warnings.push(format!("{problem}."));
                return None;
            }
        };
        match jsonc::parse(&text) {
            Ok(settings @ Value::Object(_)) => Some(settings),
            Ok(_) => {
                self.warnings.push(format!("The settings in {} are not a JSON object.", path.display()));
                None
            }
            Err(error) => {
                self.warnings.push(format!("The settings in {} are not read: {error}.", path.display()));
                None
            }
        }
    }
}

fn strings(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

fn paths(list: &Value, base: &Path) -> Vec<PathBuf> {
    strings(list).into_iter().map(|path| base.join(path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)], trusted: bool) -> Preferences {
        let dir = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let places = CustomPaths { cwd: dir.path().join("p"), trusted, ..CustomPaths::default() };
        Preferences::of_user(&dir.path().join("home")).with_project(&places)
    }

    const FILES: &[(&str, &str)] = &[
        ("home/settings.json", "{ \"model\": \"a\", // mine\n \"deniedUrls\": [\"x.com\"], }"),
        (
            "p/.github/copilot/settings.json",
            r#"{"model": "b", "allowedUrls": ["y.com"], "deniedUrls": ["z.com"]}"#,
        ),
        ("p/.github/copilot/settings.local.json", r#"{"model": "c", "disableAllHooks": true}"#),
    ];

    #[test]
    fn the_nearest_setting_wins_and_lists_add_up() {
        let preferences = check(FILES, true);
        assert_eq!(preferences.model.as_deref(), Some("c"));
        assert_eq!(preferences.denied_urls, ["x.com", "z.com"]);
        assert_eq!(preferences.allowed_urls, ["y.com"]);
        assert!(preferences.disable_all_hooks);
    }

    #[test]
    fn hooks_are_switched_off_by_either_programs_settings_and_nothing_else_is_taken_from_the_other() {
        let off = r#"{"disableAllHooks": true, "model": "opus", "deniedUrls": ["x.com"]}"#;
        let files = [("p/.claude/settings.json", off)];
        let preferences = check(&files, true);
        assert!(preferences.disable_all_hooks);
        assert_eq!((preferences.model, preferences.denied_urls), (None, vec![]));
        assert!(!check(&files, false).disable_all_hooks);
    }

    #[test]
    fn a_project_that_is_not_trusted_permits_nothing() {
        let preferences = check(FILES, false);
        assert_eq!(preferences.model.as_deref(), Some("a"));
        assert_eq!(preferences.allowed_urls, [""; 0]);
        assert_eq!(preferences.denied_urls, ["x.com", "z.com"]);
    }

    #[test]
    fn broken_settings_are_one_sentence() {
        let preferences = check(&[("home/settings.json", "{nope")], false);
        assert_eq!(preferences.warnings.len(), 1);
    }
}
