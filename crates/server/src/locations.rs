//! Approvals that apply to a directory rather than a session, and trusted folders. They are kept in the home directory,
//! in the files and formats of Copilot CLI, so that both programs share them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::document::JsonDocument;

/// The place that approvals are about: the repository around a directory, or the directory.
pub(crate) struct PermissionLocation {
    pub(crate) key: String,
    pub(crate) kind: &'static str,
}

impl PermissionLocation {
    pub(crate) fn of(directory: &Path) -> Self {
        let real = directory.canonicalize().unwrap_or_else(|_| directory.to_path_buf());
        match real.ancestors().find(|ancestor| ancestor.join(".git").exists()) {
            Some(root) => Self { key: root.display().to_string(), kind: "repo" },
            None => Self { key: real.display().to_string(), kind: "dir" },
        }
    }
}

fn approvals_file(home: &Path) -> PathBuf {
    home.join("permissions-config.json")
}

pub(crate) fn approvals(home: &Path, key: &str) -> Vec<Value> {
    let document = JsonDocument::open(approvals_file(home));
    document.value["locations"][key]["tool_approvals"].as_array().cloned().unwrap_or_default()
}

pub(crate) fn add_approval(home: &Path, key: &str, approval: Value) -> std::io::Result<()> {
    let mut document = JsonDocument::open(approvals_file(home));
    let list = &mut document.value["locations"][key]["tool_approvals"];
    match list {
        Value::Array(known) if known.contains(&approval) => return Ok(()),
        Value::Array(known) => known.push(approval),
        _ => *list = json!([approval]),
    }
    document.save()
}

pub(crate) fn is_trusted(home: &Path, folder: &Path) -> bool {
    let document = JsonDocument::open(home.join("config.json"));
    let trusted = document.value["trustedFolders"].as_array().cloned().unwrap_or_default();
    trusted.iter().filter_map(Value::as_str).any(|known| folder.starts_with(known))
}

/// Records that a person trusts a folder.
pub fn trust(home: &Path, folder: &Path) -> std::io::Result<()> {
    if is_trusted(home, folder) {
        return Ok(());
    }
    let mut document = JsonDocument::open(home.join("config.json"));
    let folder = json!(folder.display().to_string());
    match &mut document.value["trustedFolders"] {
        Value::Array(known) => known.push(folder),
        other => *other = json!([folder]),
    }
    document.save()
}
