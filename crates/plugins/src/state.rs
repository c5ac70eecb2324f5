//! `plugins.json` of the home folder: the registered marketplaces and the installed plugins.
//!
//! The file is replaced as a whole, and directories never change once it names them: an update writes a new directory, then
//! the file, then deletes the old one. A reader sees the plugin before or after an update, never in between.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;

use crate::PluginError;
use crate::source::Source;

/// Largest state file that is read.
const MAX_STATE: u64 = 4 << 20;
/// Folder in the home for clones and copies.
pub(crate) const FOLDER: &str = "plugins";
/// Most plugins and marketplaces.
pub(crate) const MAX_ENTRIES: usize = 500;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PluginState {
    pub(crate) marketplaces: BTreeMap<String, Registered>,
    pub(crate) plugins: Vec<Installed>,
    /// Members of a newer program.
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// A registered marketplace.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Registered {
    pub(crate) source: Source,
    /// Its clone; absent for a directory of this machine.
    pub(crate) clone: Option<PathBuf>,
}

/// An installed plugin.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Installed {
    pub name: String,
    /// Name of its marketplace; empty for a plugin that was installed directly.
    pub marketplace: String,
    pub version: Option<String>,
    pub installed_at: String,
    pub enabled: bool,
    /// Folder of the plugin.
    pub path: PathBuf,
    pub source: Source,
    /// Its entry in the marketplace, for what its own manifest leaves out.
    #[serde(default)]
    pub entry: Value,
}

impl Installed {
    /// `name@marketplace`, or the name of a plugin that was installed directly.
    pub fn spec(&self) -> String {
        match self.marketplace.as_str() {
            "" => self.name.clone(),
            marketplace => format!("{}@{marketplace}", self.name),
        }
    }

    /// Id of the source of a plugin that was installed directly.
    pub fn direct_source_id(&self) -> Option<String> {
        self.marketplace.is_empty().then(|| self.source.id())
    }

    /// A name that no other plugin has.
    pub(crate) fn handle(&self) -> String {
        match self.direct_source_id() {
            Some(id) => format!("{id} ({})", self.source.describe()),
            None => self.spec(),
        }
    }

    /// Whether the plugin is loaded from the user's own directory instead of a copy.
    pub fn is_live(&self) -> bool {
        matches!(&self.source, Source::Local { path } if *path == self.path)
    }

    /// Whether a name means this plugin.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.name == name || self.spec() == name || self.direct_source_id().as_deref() == Some(name)
    }
}

/// The files of the state.
#[derive(Debug, Clone)]
pub(crate) struct StateFiles {
    pub(crate) home: PathBuf,
}

impl StateFiles {
    fn path(&self) -> PathBuf {
        self.home.join("plugins.json")
    }

    /// Folder for clones and copies.
    pub(crate) fn folder(&self) -> PathBuf {
        self.home.join(FOLDER)
    }

    pub(crate) fn read(&self) -> Result<PluginState, PluginError> {
        let path = self.path();
        let text = match hangar_disk::read_text(&path, MAX_STATE) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(PluginState::default()),
            Err(error) => return Err(PluginError(format!("{} cannot be read: {error}", path.display()))),
        };
        serde_json::from_str(&text).map_err(|error| {
            PluginError(format!(
                "{} is damaged ({error}); repair it, or delete it to start without plugins",
                path.display()
            ))
        })
    }

    /// Changes the state. Other processes wait meanwhile.
    pub(crate) fn change<T>(
        &self,
        change: impl FnOnce(&mut PluginState) -> Result<T, PluginError>,
    ) -> Result<T, PluginError> {
        let unwritten =
            |error: io::Error| PluginError(format!("{} cannot be written: {error}", self.path().display()));
        let _lock = self.lock().map_err(unwritten)?;
        let mut state = self.read()?;
        let changed = change(&mut state)?;
        let text = serde_json::to_string_pretty(&state).map_err(io::Error::from).map_err(unwritten)?;
        hangar_disk::keep(&self.path(), format!("{text}\n")).map_err(unwritten)?;
        Ok(changed)
    }

    fn lock(&self) -> io::Result<File> {
        hangar_disk::ensure_dir(&self.folder())?;
        let file = hangar_disk::private()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.folder().join("lock"))?;
        file.lock()?;
        Ok(file)
    }

    /// Deletes a folder of ours that nothing names any more. A folder that stays costs space and nothing else.
    pub(crate) fn discard(&self, path: &Path) {
        if path.starts_with(self.folder()) && path != self.folder() {
            let _ = std::fs::remove_dir_all(path);
        }
    }
}
