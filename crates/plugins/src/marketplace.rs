//! Marketplaces: a folder with a `marketplace.json` that lists plugins and their sources.

use std::path::Path;

use hangar_custom::jsonc;
use serde_json::Value;

use crate::PluginError;

/// Paths of a marketplace's list, in order of precedence.
const MANIFESTS: [&str; 4] = [
    "marketplace.json",
    ".plugin/marketplace.json",
    ".github/plugin/marketplace.json",
    ".claude-plugin/marketplace.json",
];
/// Largest list that is read.
const MAX_MANIFEST: u64 = 4 << 20;
/// Most plugins of a marketplace.
const MAX_OFFERS: usize = 5000;
/// Longest name.
const MAX_NAME: usize = 128;

/// A marketplace as its file describes it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Marketplace {
    pub(crate) name: String,
    /// Folder that the paths of plugins may be relative to.
    pub(crate) base: String,
    pub(crate) offers: Vec<Offer>,
}

/// A plugin that a marketplace offers.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    pub name: String,
    pub description: Option<String>,
    pub version: Option<String>,
    /// The whole entry.
    pub(crate) entry: Value,
}

impl Marketplace {
    pub(crate) fn read(root: &Path) -> Result<Self, PluginError> {
        let path = MANIFESTS.iter().map(|name| root.join(name)).find(|path| path.is_file());
        let Some(path) = path else {
            return Err(PluginError(format!("{} has no marketplace.json", root.display())));
        };
        let broken = |problem: String| PluginError(format!("{}: {problem}", path.display()));
        let inside = |path: &Path| Some(path.canonicalize().ok()?.starts_with(root.canonicalize().ok()?));
        if inside(&path) != Some(true) {
            return Err(broken("it is a link to a file outside of its folder".to_owned()));
        }
        let text = hangar_disk::read_text(&path, MAX_MANIFEST).map_err(|error| broken(error.to_string()))?;
        let manifest = jsonc::parse(&text).map_err(|error| broken(error.to_string()))?;
        let name = manifest["name"].as_str().unwrap_or_default();
        check_name(name).map_err(|error| broken(error.0))?;
        let offers = manifest["plugins"].as_array().into_iter().flatten().filter_map(offer);
        Ok(Self {
            name: name.to_owned(),
            base: manifest["metadata"]["pluginRoot"].as_str().unwrap_or_default().to_owned(),
            offers: offers.take(MAX_OFFERS).collect(),
        })
    }

    pub(crate) fn offer(&self, name: &str) -> Result<&Offer, PluginError> {
        self.offers.iter().find(|offer| offer.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.offers.iter().map(|offer| offer.name.as_str()).collect();
            PluginError(format!(
                "Plugin \"{name}\" not found in marketplace \"{}\". Available plugins: {}",
                self.name,
                names.join(", ")
            ))
        })
    }
}

fn offer(entry: &Value) -> Option<Offer> {
    let text = |name: &str| entry[name].as_str().map(str::to_owned);
    let name = text("name").filter(|name| check_name(name).is_ok())?;
    Some(Offer { name, description: text("description"), version: text("version"), entry: entry.clone() })
}

/// Refuses a name that would not be one word of a specification or of a path.
pub(crate) fn check_name(name: &str) -> Result<(), PluginError> {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_. ".contains(letter);
    match !name.trim().is_empty()
        && name.len() <= MAX_NAME
        && !name.starts_with('.')
        && name.chars().all(is_plain)
    {
        true => Ok(()),
        false => Err(PluginError(format!("`{name}` is not a name of a plugin or a marketplace"))),
    }
}
