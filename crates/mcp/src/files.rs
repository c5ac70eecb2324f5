//! The files that servers are configured in: the user's own and those of a project.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::config::{ConfigSource, Layer, McpConfigError};

/// The key of the settings that names servers which are not to be started.
const DISABLED: &str = "disabledMcpServers";

/// The user's configuration for all projects.
#[derive(Debug, Clone)]
pub struct UserFile {
    config: PathBuf,
    settings: PathBuf,
}

impl UserFile {
    pub fn new(home: &Path) -> Self {
        Self { config: home.join("mcp-config.json"), settings: home.join("settings.json") }
    }

    pub fn path(&self) -> &Path {
        &self.config
    }

    pub fn layer(&self) -> Result<Option<Layer>, McpConfigError> {
        read(&self.config, ConfigSource::User)
    }

    pub fn servers(&self) -> Result<Map<String, Value>, McpConfigError> {
        Ok(self.layer()?.map(|layer| layer.servers).unwrap_or_default())
    }

    /// Sets a server, or removes it.
    pub fn put(&self, name: &str, config: Option<Value>) -> Result<(), McpConfigError> {
        let mut servers = self.servers()?;
        match config {
            Some(config) => servers.insert(name.to_owned(), config),
            None => servers.remove(name),
        };
        write(&self.config, &json!({ "mcpServers": servers }))
    }

    /// Names of servers that are not to be started.
    pub fn disabled(&self) -> Vec<String> {
        let document = read_json(&self.settings).ok().flatten().unwrap_or_default();
        let names = document[DISABLED].as_array().into_iter().flatten();
        names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
    }

    pub fn set_disabled(&self, names: &[String], disabled: bool) -> Result<(), McpConfigError> {
        let mut document = read_json(&self.settings)?.unwrap_or_else(|| json!({}));
        let mut all = self.disabled();
        all.retain(|known| !names.contains(known));
        if disabled {
            all.extend_from_slice(names);
        }
        document[DISABLED] = json!(all);
        write(&self.settings, &document)
    }
}

/// Configuration of the directories from the root of a project down to `cwd`; the deepest wins.
pub fn workspace(cwd: &Path, root: Option<&Path>) -> (Vec<Layer>, Vec<McpConfigError>) {
    let mut dirs: Vec<&Path> = match root {
        Some(root) => cwd.ancestors().take_while(|dir| dir.starts_with(root)).collect(),
        None => vec![cwd],
    };
    dirs.reverse();
    let paths = dirs.iter().flat_map(|dir| [dir.join(".github/mcp.json"), dir.join(".mcp.json")]);
    collect(paths.map(|path| read(&path, ConfigSource::Workspace)))
}

fn collect(
    found: impl Iterator<Item = Result<Option<Layer>, McpConfigError>>,
) -> (Vec<Layer>, Vec<McpConfigError>) {
    let mut layers = Vec::new();
    let mut errors = Vec::new();
    for layer in found {
        match layer {
            Ok(layer) => layers.extend(layer),
            Err(error) => errors.push(error),
        }
    }
    (layers, errors)
}

/// One file; absent is nothing.
pub fn read(path: &Path, source: ConfigSource) -> Result<Option<Layer>, McpConfigError> {
    let Some(text) = read_text(path)? else { return Ok(None) };
    let layer = Layer::parse(source, &text)
        .map_err(|error| McpConfigError::Document(format!("{}: {error}", path.display())))?;
    Ok(Some(layer))
}

fn read_text(path: &Path) -> Result<Option<String>, McpConfigError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(McpConfigError::Document(format!("cannot read {}: {error}", path.display()))),
    }
}

fn read_json(path: &Path) -> Result<Option<Value>, McpConfigError> {
    let Some(text) = read_text(path)? else { return Ok(None) };
    let bad = |error| McpConfigError::Document(format!("{} is not JSON: {error}", path.display()));
    serde_json::from_str(&text).map(Some).map_err(bad)
}

fn write(path: &Path, document: &Value) -> Result<(), McpConfigError> {
    let failed =
        |error: String| McpConfigError::Document(format!("cannot write {}: {error}", path.display()));
    let text = serde_json::to_string_pretty(document).map_err(|error| failed(error.to_string()))?;
    hangar_disk::keep(path, text + "\n").map_err(|error| failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(layers: &[Layer]) -> Vec<Vec<&str>> {
        layers.iter().map(|layer| layer.servers.keys().map(String::as_str).collect()).collect()
    }

    #[test]
    fn the_users_servers_are_set_and_removed() {
        let home = tempfile::tempdir().unwrap();
        let file = UserFile::new(home.path());
        assert!(file.servers().unwrap().is_empty());
        file.put("a", Some(json!({ "command": "x" }))).unwrap();
        file.put("b", Some(json!({ "url": "http://h" }))).unwrap();
        file.put("a", None).unwrap();
        assert_eq!(file.servers().unwrap().keys().collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn switching_off_keeps_the_other_settings() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("settings.json"), r#"{"model": "m"}"#).unwrap();
        let file = UserFile::new(home.path());
        file.set_disabled(&["a".to_owned(), "b".to_owned()], true).unwrap();
        file.set_disabled(&["a".to_owned()], false).unwrap();
        assert_eq!(file.disabled(), ["b"]);
        let text = fs::read_to_string(home.path().join("settings.json")).unwrap();
        assert!(text.contains(r#""model": "m""#), "{text}");
    }

    #[test]
    fn a_project_is_read_from_its_root_to_where_one_is() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("a/b");
        fs::create_dir_all(deep.join(".github")).unwrap();
        let server = |name: &str| format!(r#"{{"mcpServers": {{"{name}": {{"command": "x"}}}}}}"#);
        fs::write(root.path().join(".mcp.json"), server("outer")).unwrap();
        fs::write(deep.join(".github/mcp.json"), server("github")).unwrap();
        fs::write(deep.join(".mcp.json"), server("inner")).unwrap();
        fs::write(root.path().join("a/.mcp.json"), "{").unwrap();
        let (layers, errors) = workspace(&deep, Some(root.path()));
        assert_eq!(names(&layers), [["outer"], ["github"], ["inner"]]);
        assert_eq!(errors.len(), 1);
        assert_eq!(names(&workspace(&deep, None).0), [["github"], ["inner"]]);
    }
}
