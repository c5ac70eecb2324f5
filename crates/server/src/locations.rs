//! What was approved for a place rather than a session, and which folders are trusted. Kept in the home folder, in the
//! files and forms that Copilot CLI has for them, so that both see the same.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// A larger file is not one that any program writes here.
const MAX_BYTES: u64 = 4 << 20;

/// The place that approvals are about: the repository around a directory, or the directory.
pub(crate) struct Location {
    pub(crate) key: String,
    pub(crate) kind: &'static str,
}

impl Location {
    pub(crate) fn of(directory: &Path) -> Self {
        let real = directory.canonicalize().unwrap_or_else(|_| directory.to_path_buf());
        match real.ancestors().find(|ancestor| ancestor.join(".git").exists()) {
            Some(root) => Self { key: root.display().to_string(), kind: "repo" },
            None => Self { key: real.display().to_string(), kind: "dir" },
        }
    }
}

/// One JSON file of the home folder.
struct Document {
    path: PathBuf,
    value: Value,
}

impl Document {
    /// A file that is missing, too large or no JSON object is as good as an empty one.
    fn open(path: PathBuf) -> Self {
        let small = std::fs::metadata(&path).is_ok_and(|metadata| metadata.len() <= MAX_BYTES);
        let text = if small { std::fs::read_to_string(&path).unwrap_or_default() } else { String::new() };
        let value = serde_json::from_str(&text).ok().filter(Value::is_object).unwrap_or_else(|| json!({}));
        Self { path, value }
    }

    /// Replaces the file in one step, so that a reader never sees half of it.
    fn save(&self) -> std::io::Result<()> {
        if let Some(parent) = self.path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let next = self.path.with_extension(format!("json.{}", std::process::id()));
        std::fs::write(&next, format!("{:#}\n", self.value))?;
        std::fs::rename(&next, &self.path)
    }
}

fn approvals_file(home: &Path) -> PathBuf {
    home.join("permissions-config.json")
}

pub(crate) fn approvals(home: &Path, key: &str) -> Vec<Value> {
    let document = Document::open(approvals_file(home));
    document.value["locations"][key]["tool_approvals"].as_array().cloned().unwrap_or_default()
}

pub(crate) fn add_approval(home: &Path, key: &str, approval: Value) -> std::io::Result<()> {
    let mut document = Document::open(approvals_file(home));
    let list = &mut document.value["locations"][key]["tool_approvals"];
    match list {
        Value::Array(known) if known.contains(&approval) => return Ok(()),
        Value::Array(known) => known.push(approval),
        _ => *list = json!([approval]),
    }
    document.save()
}

pub(crate) fn is_trusted(home: &Path, folder: &Path) -> bool {
    let document = Document::open(home.join("config.json"));
    let trusted = document.value["trustedFolders"].as_array().cloned().unwrap_or_default();
    trusted.iter().filter_map(Value::as_str).any(|known| folder.starts_with(known))
}

pub(crate) fn trust(home: &Path, folder: &Path) -> std::io::Result<()> {
    if is_trusted(home, folder) {
        return Ok(());
    }
    let mut document = Document::open(home.join("config.json"));
    let folder = json!(folder.display().to_string());
    match &mut document.value["trustedFolders"] {
        Value::Array(known) => known.push(folder),
        other => *other = json!([folder]),
    }
    document.save()
}
