//! Trust in a directory: whether its configuration may start programs, such as MCP servers and hooks.

use std::path::{Path, PathBuf};

use crate::settings::Settings;

/// Trust in the directory, as the run was started with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Earlier decisions apply.
    AsDecided,
    /// The directory is trusted for this run.
    Given,
}

/// Whether a directory is trusted: for this run, by a setting of the environment, or because the user once confirmed
/// it.
pub(crate) fn is_trusted(settings: &Settings, trust: Trust, directory: &Path) -> bool {
    trust == Trust::Given
        || settings.var("COPILOT_ALLOW_ALL") == Some("true")
        || trusted_folders(&settings.home).iter().any(|folder| directory.starts_with(folder))
}

/// `trustedFolders` of `config.json`.
fn trusted_folders(home: &Path) -> Vec<PathBuf> {
    let Ok(text) = std::fs::read_to_string(home.join("config.json")) else { return Vec::new() };
    // The file begins with comments, which JSON does not have.
    let json: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let document: serde_json::Value = serde_json::from_str(&json).unwrap_or_default();
    let folders = document["trustedFolders"].as_array().into_iter().flatten();
    folders.filter_map(|folder| folder.as_str().map(PathBuf::from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(config: &str, directory: &str, trusted: bool) {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("config.json"), config).unwrap();
        let folders = trusted_folders(home.path());
        assert_eq!(folders.iter().any(|folder| Path::new(directory).starts_with(folder)), trusted);
    }

    #[test]
    fn a_folder_is_trusted_with_all_that_is_in_it() {
        let config = "// remarks\n{\n \"trustedFolders\": [\"/a/b\"]\n}";
        check(config, "/a/b", true);
        check(config, "/a/b/c", true);
        check(config, "/a/bc", false);
        check(config, "/a", false);
    }

    #[test]
    fn a_file_that_makes_no_sense_trusts_nothing() {
        check("{", "/a", false);
        check(r#"{"trustedFolders": "/"}"#, "/a", false);
    }
}
