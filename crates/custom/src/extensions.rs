//! Extensions: folders with an `extension.mjs`, which runs as a program of its own and joins a session. This file finds them;
//! it starts none.

use std::path::{Path, PathBuf};

use hangar_protocol::data::ExtensionSource;

use crate::plugins::Plugin;
use crate::{Tree, entries, name_of};

/// The file that makes a folder an extension.
pub const ENTRY: &str = "extension.mjs";
/// Folder of a project's extensions, below its root.
pub const PROJECT_DIR: &str = ".github/extensions";
/// Folder of extensions in the home and in the folder of a session.
pub const DIR: &str = "extensions";

/// Extensions of one session, at most.
const MAX_EXTENSIONS: usize = 64;
/// Longest name of an extension.
const MAX_NAME: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extension {
    /// Name with its source: `project:lint`, `plugin:tools:lint`.
    pub id: String,
    /// Name of its folder.
    pub name: String,
    pub source: ExtensionSource,
    /// Name of the plugin that brings it.
    pub plugin: Option<String>,
    /// Path of its `extension.mjs`.
    pub path: PathBuf,
}

/// Folders that are searched for extensions.
#[derive(Debug, Clone, Default)]
pub struct ExtensionPlaces {
    pub home: PathBuf,
    /// Root of the project, if its programs may run.
    pub project: Option<PathBuf>,
    pub plugins: Vec<Plugin>,
    /// Folder of the session, if this machine keeps it.
    pub session: Option<PathBuf>,
}

impl ExtensionPlaces {
    /// Finds the extensions, and says which of them are not loaded and why. A project's extension replaces the user's of the
    /// same name, and one of the session replaces both.
    pub fn find(&self) -> (Vec<Extension>, Vec<String>) {
        let mut found = Vec::new();
        let mut problems = Vec::new();
        let mut add = |dir: &Path, source, plugin: Option<&str>, tree: &Tree| {
            for folder in entries(dir) {
                match read(&folder, source, plugin, tree) {
                    Ok(Some(extension)) => found.push(extension),
                    Ok(None) => {}
                    Err(problem) => problems.push(format!("The extension is not loaded: {problem}.")),
                }
            }
        };
        add(&self.home.join(DIR), ExtensionSource::User, None, &Tree::Any);
        if let Some(root) = &self.project {
            add(&root.join(PROJECT_DIR), ExtensionSource::Project, None, &Tree::below(root));
        }
        for plugin in &self.plugins {
            for dir in &plugin.extension_dirs {
                add(dir, ExtensionSource::Plugin, Some(&plugin.name), &Tree::below(&plugin.root));
            }
        }
        if let Some(session) = &self.session {
            add(&session.join(DIR), ExtensionSource::Session, None, &Tree::below(session));
        }
        let mut kept: Vec<Extension> = Vec::new();
        for extension in found {
            match kept.iter_mut().find(|known| known.plugin.is_none() && known.name == extension.name) {
                Some(known) if extension.plugin.is_none() => *known = extension,
                _ => kept.push(extension),
            }
        }
        if kept.len() > MAX_EXTENSIONS {
            problems
                .push(format!("There are {} extensions; {MAX_EXTENSIONS} of them are loaded.", kept.len()));
            kept.truncate(MAX_EXTENSIONS);
        }
        (kept, problems)
    }
}

/// Reads a folder. `None` if it is no extension.
fn read(
    folder: &Path,
    source: ExtensionSource,
    plugin: Option<&str>,
    tree: &Tree,
) -> Result<Option<Extension>, String> {
    let path = folder.join(ENTRY);
    if !path.is_file() {
        return Ok(None);
    }
    let name = name_of(folder);
    if !is_name(&name) {
        return Err(format!(
            "{} has a name that is not one of letters, digits, `.`, `-` and `_`",
            folder.display()
        ));
    }
    tree.check(&path)?;
    let id = match plugin {
        Some(plugin) => format!("{}:{plugin}:{name}", source.as_str()),
        None => format!("{}:{name}", source.as_str()),
    };
    Ok(Some(Extension { id, name, source, plugin: plugin.map(str::to_owned), path }))
}

/// Returns whether a folder of an extension may have this name.
pub fn is_name(name: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || ".-_".contains(letter);
    !name.is_empty() && name.len() <= MAX_NAME && !name.starts_with('.') && name.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(root: &Path, path: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }

    fn ids(places: &ExtensionPlaces) -> Vec<String> {
        places.find().0.into_iter().map(|extension| extension.id).collect()
    }

    #[test]
    fn extensions_are_found_at_their_four_places() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for path in [
            "home/extensions/own/extension.mjs",
            "home/extensions/shared/extension.mjs",
            "home/extensions/none/index.mjs",
            "project/.github/extensions/shared/extension.mjs",
            "plugin/extensions/x/extension.mjs",
            "session/extensions/now/extension.mjs",
        ] {
            put(dir.path(), path);
        }
        let plugin = crate::plugins::read(&at("plugin"), &serde_json::json!({ "name": "p" })).unwrap();
        let mut places = ExtensionPlaces {
            home: at("home"),
            project: Some(at("project")),
            plugins: vec![plugin],
            session: Some(at("session")),
        };
        assert_eq!(ids(&places), ["user:own", "project:shared", "plugin:p:x", "session:now"]);
        places.project = None;
        assert_eq!(ids(&places), ["user:own", "user:shared", "plugin:p:x", "session:now"]);
    }

    #[test]
    fn a_link_out_of_the_project_is_not_loaded() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), "elsewhere/extension.mjs");
        let folder = dir.path().join("project/.github/extensions");
        std::fs::create_dir_all(&folder).unwrap();
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), folder.join("x")).unwrap();
        let places =
            ExtensionPlaces { project: Some(dir.path().join("project")), ..ExtensionPlaces::default() };
        let (found, problems) = places.find();
        assert!(found.is_empty());
        assert!(problems[0].contains("outside of"), "{problems:?}");
    }
}
