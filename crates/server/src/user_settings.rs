//! Settings of the user that clients may see and change: `settings.json` in the home folder.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::document::JsonDocument;

/// Name of a setting and its default.
type Setting = (&'static str, fn() -> Value);

/// All settings with their defaults.
const TABLE: &[Setting] = &[
    // Asks the user questions in the middle of work.
    ("askUser", || json!(true)),
    // Reads the instructions of repositories and of the home folder.
    ("customInstructions", || json!(true)),
    // Turns every feature on that is marked experimental.
    ("experimental", || json!(false)),
    // The model of sessions that name none.
    ("model", || Value::Null),
];

/// The key of the settings about extensions, and its members.
const EXTENSIONS: &str = "extensions";
const DISABLED_EXTENSIONS: &str = "disabledExtensions";
const EXTENSION_MODE: &str = "mode";

/// Extent to which extensions are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExtensionMode {
    Disabled,
    /// They are loaded, but the model cannot manage them.
    LoadOnly,
    LoadAndAugment,
}

impl ExtensionMode {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::LoadOnly => "load_only",
            Self::LoadAndAugment => "load_and_augment",
        }
    }
}

/// The key of the settings that names skills which no session has.
const DISABLED_SKILLS: &str = "disabledSkills";

pub struct UserSettings(PathBuf);

impl UserSettings {
    pub fn of(home: &Path) -> Self {
        Self(home.join("settings.json"))
    }

    /// The value of a switch.
    pub fn is_on(&self, name: &str) -> bool {
        let chosen = JsonDocument::open(self.0.clone()).value[name].as_bool();
        chosen.or_else(|| default_of(name).as_bool()).unwrap_or(false)
    }

    pub fn text(&self, name: &str) -> Option<String> {
        JsonDocument::open(self.0.clone()).value[name].as_str().map(str::to_owned)
    }

    /// Sets the skills that are disabled in all sessions, replacing the earlier list.
    pub(crate) fn set_disabled_skills(&self, names: &[String]) -> Result<(), String> {
        let mut document = JsonDocument::open(self.0.clone());
        document.value[DISABLED_SKILLS] = json!(names);
        self.save(&document)
    }

    /// Switches one skill off for all sessions, or on again.
    pub(crate) fn switch_skill(&self, name: &str, disabled: bool) -> Result<(), String> {
        let document = JsonDocument::open(self.0.clone());
        let known = document.value[DISABLED_SKILLS].as_array().into_iter().flatten();
        let mut names: Vec<String> =
            known.filter_map(Value::as_str).filter(|known| *known != name).map(str::to_owned).collect();
        if disabled {
            names.push(name.to_owned());
        }
        self.set_disabled_skills(&names)
    }

    /// Extensions that no session starts by itself.
    pub(crate) fn disabled_extensions(&self) -> Vec<String> {
        let document = JsonDocument::open(self.0.clone());
        let named = document.value[EXTENSIONS][DISABLED_EXTENSIONS].as_array().cloned().unwrap_or_default();
        named.into_iter().filter_map(|id| id.as_str().map(str::to_owned)).collect()
    }

    pub(crate) fn extension_mode(&self) -> ExtensionMode {
        let document = JsonDocument::open(self.0.clone());
        match document.value[EXTENSIONS][EXTENSION_MODE].as_str() {
            Some("disabled") => ExtensionMode::Disabled,
            Some("load_only") => ExtensionMode::LoadOnly,
            _ => ExtensionMode::LoadAndAugment,
        }
    }

    /// Switches extensions off for all later sessions, or on again.
    pub(crate) fn switch_extensions(&self, ids: &[String], disabled: bool) -> Result<(), String> {
        let mut named = self.disabled_extensions();
        named.retain(|known| !ids.contains(known));
        if disabled {
            named.extend(ids.iter().cloned());
        }
        let mut document = JsonDocument::open(self.0.clone());
        if !document.value[EXTENSIONS].is_object() {
            document.value[EXTENSIONS] = json!({});
        }
        document.value[EXTENSIONS][DISABLED_EXTENSIONS] = json!(named);
        self.save(&document)
    }

    pub(crate) fn all(&self) -> Value {
        let document = JsonDocument::open(self.0.clone());
        let described = TABLE.iter().map(|(name, default)| {
            let chosen = document.value.get(*name).filter(|value| !value.is_null());
            let value = chosen.cloned().unwrap_or_else(default);
            let setting = json!({ "value": value, "default": default(), "isDefault": chosen.is_none() });
            ((*name).to_owned(), setting)
        });
        Value::Object(described.collect())
    }

    /// Changes settings; `null` takes a choice back. A name that means nothing here is refused before anything changes.
    pub(crate) fn change(&self, changes: Map<String, Value>) -> Result<(), String> {
        for (name, value) in &changes {
            let Some((_, default)) = TABLE.iter().find(|(known, _)| known == name) else {
                return Err(format!("`{name}` is not a setting"));
            };
            let fits = value.is_null()
                || if default().is_boolean() { value.is_boolean() } else { value.is_string() };
            if !fits {
                return Err(format!("`{name}` cannot be {value}"));
            }
        }
        let mut document = JsonDocument::open(self.0.clone());
        for (name, value) in changes {
            match value {
                Value::Null => {
                    if let Some(object) = document.value.as_object_mut() {
                        object.remove(&name);
                    }
                }
                value => document.value[&name] = value,
            }
        }
        self.save(&document)
    }

    fn save(&self, document: &JsonDocument) -> Result<(), String> {
        document.save().map_err(|error| format!("writing {}: {error}", self.0.display()))
    }
}

fn default_of(name: &str) -> Value {
    TABLE.iter().find(|(known, _)| *known == name).map_or(Value::Null, |(_, default)| default())
}
