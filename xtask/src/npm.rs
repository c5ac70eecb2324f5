//! npm packages that tests and benchmarks need. They are installed, never committed.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::shell;

/// Installs what `directory/package.json` pins, unless it is there already.
pub(crate) fn install(directory: &Path) -> Result<()> {
    let manifest = directory.join("package.json");
    let text =
        std::fs::read_to_string(&manifest).with_context(|| format!("reading {}", manifest.display()))?;
    let manifest: Value =
        serde_json::from_str(&text).with_context(|| format!("reading {}", manifest.display()))?;
    let pinned = manifest["dependencies"].as_object().context("package.json has no dependencies")?;
    if pinned
        .iter()
        .all(|(name, pin)| installed_version(directory, name).is_some_and(|version| is_pinned(&version, pin)))
    {
        return Ok(());
    }
    if !shell::is_installed("npm", &["--version"]) {
        bail!(
            "npm is not installed; the tests need the packages in {}",
            directory.join("package.json").display()
        );
    }
    // Not `npm ci`: it wants every optional package of every platform in the lock file, also those that a registry does
    // not have. What the lock file names is installed as it says.
    let flags = ["--no-save", "--no-audit", "--no-fund", "--ignore-scripts"];
    shell::run(shell::program("npm").arg("install").args(flags).current_dir(directory))
}

/// A pin is a version, or `npm:NAME@VERSION` for a package under another name.
fn is_pinned(version: &str, pin: &Value) -> bool {
    let pin = pin.as_str().unwrap_or_default();
    version == pin
        || pin
            .strip_prefix("npm:")
            .and_then(|pin| pin.rsplit_once('@'))
            .is_some_and(|(_, pin)| pin == version)
}

fn installed_version(directory: &Path, package: &str) -> Option<String> {
    let manifest = directory.join("node_modules").join(package).join("package.json");
    let manifest: Value = serde_json::from_str(&std::fs::read_to_string(manifest).ok()?).ok()?;
    manifest["version"].as_str().map(str::to_owned)
}
