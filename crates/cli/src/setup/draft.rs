//! A provider as far as it has been described, and how `config.toml` says it.

use hangar_models::config::ProviderConfig;
use hangar_models::config::table::{self, KeySources};
use toml_edit::{Item, Table, value};

use crate::providers::{HomeKeys, learn};
use crate::settings::Settings;

/// Directory below the home with keys that were typed.
pub(super) const KEYS_DIR: &str = "keys";
/// Keys of a provider's table that say which credential it has.
pub(super) const CREDENTIALS: [&str; 5] =
    ["api_key", "api_key_env", "api_key_file", "api_key_command", "bearer_token"];
/// Headers that hold a credential.
const CREDENTIAL_HEADERS: [&str; 4] = ["authorization", "x-api-key", "api-key", "x-goog-api-key"];

/// A key that was typed. Nothing prints it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct TypedKey(pub(super) String);

impl std::fmt::Debug for TypedKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TypedKey")
    }
}

/// Location of a provider's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyKind {
    /// It needs none, or the preset says where it is.
    Usual,
    /// It was typed, and goes into a file of the home.
    Typed(TypedKey),
    Variable(String),
    File(String),
    Command(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Draft {
    /// Name of its table, and the start of its models' names.
    pub(crate) name: String,
    /// Name for people.
    pub(crate) label: String,
    /// Name of the preset; any compatible server has none.
    pub(super) preset: Option<&'static str>,
    pub(super) base_url: Option<String>,
    pub(crate) key: KeyKind,
    /// Whether it needs no table: GitHub's login is found without one.
    pub(super) is_built_in: bool,
}

impl Draft {
    /// Path of the file for a key that was typed, relative to the home.
    pub(crate) fn key_file(&self) -> String {
        format!("{KEYS_DIR}/{}", self.name)
    }

    /// Writes what is known into a table, and removes every other credential from it.
    pub(super) fn fill(&self, table: &mut Table) {
        for name in CREDENTIALS {
            table.remove(name);
        }
        if let Some(headers) = table.get_mut("headers").and_then(Item::as_table_like_mut) {
            let is_credential =
                |name: &str| CREDENTIAL_HEADERS.iter().any(|known| name.eq_ignore_ascii_case(known));
            let names: Vec<String> =
                headers.iter().map(|(name, _)| name.to_owned()).filter(|name| is_credential(name)).collect();
            for name in names {
                headers.remove(&name);
            }
        }
        if let Some(preset) = self.preset {
            set(table, "type", preset);
        }
        if let Some(url) = &self.base_url {
            set(table, "base_url", url);
        }
        match &self.key {
            KeyKind::Usual => {}
            KeyKind::Typed(_) => set(table, "api_key_file", &self.key_file()),
            KeyKind::Variable(name) => set(table, "api_key_env", name),
            KeyKind::File(path) => set(table, "api_key_file", path),
            KeyKind::Command(command) => set(table, "api_key_command", command),
        }
    }

    /// Whether a table of this preset and this address is about the same provider.
    pub(super) fn is_at(&self, preset: Option<&str>, base_url: Option<&str>) -> bool {
        preset == self.preset && is_same_address(self.preset, base_url, self.base_url.as_deref())
    }

    /// The provider as the configuration will describe it, with everything that its table has already.
    pub(super) fn provider(&self, settings: &Settings) -> anyhow::Result<ProviderConfig> {
        if self.is_built_in {
            let found = crate::providers::configured(settings)?.into_iter();
            let mut found = found.filter(|provider| provider.name == self.name);
            return found.next().ok_or_else(|| anyhow::anyhow!("the GitHub login is gone"));
        }
        self.resolved(settings, super::config_file::table(&settings.config_text()?, self)?)
    }

    /// The provider by itself, as if there were no table of it.
    pub(super) fn usual_provider(&self, settings: &Settings) -> anyhow::Result<ProviderConfig> {
        let mut table = Table::new();
        self.fill(&mut table);
        self.resolved(settings, table)
    }

    fn resolved(&self, settings: &Settings, table: Table) -> anyhow::Result<ProviderConfig> {
        let mut document = toml_edit::DocumentMut::new();
        let mut tables = Table::new();
        tables.insert(&self.name, Item::Table(table));
        document.insert("providers", Item::Table(tables));
        let keys = DraftKeys { draft: self, home: HomeKeys(settings) };
        let mut providers = table::providers(&document.to_string(), keys)?;
        learn(settings, &mut providers)?;
        providers.pop().ok_or_else(|| anyhow::anyhow!("the provider has no table"))
    }
}

/// Whether two addresses are the same, if the usual one of a preset stands for one that is not given.
pub(super) fn is_same_address(preset: Option<&str>, one: Option<&str>, other: Option<&str>) -> bool {
    let usual = preset.and_then(|name| super::offers::preset(name)?.base_url);
    let address = |given: Option<&str>| given.or(usual).map(|url| url.trim_end_matches('/').to_owned());
    address(one) == address(other)
}

/// Sets a text in a table. What is written around an old value stays.
pub(super) fn set(table: &mut Table, key: &str, text: &str) {
    let mut item = value(text);
    if let (Some(new), Some(old)) = (item.as_value_mut(), table.get(key).and_then(Item::as_value)) {
        *new.decor_mut() = old.decor().clone();
    }
    table.insert(key, item);
}

/// Keys of the machine, and the one that was typed and is not stored yet.
struct DraftKeys<'a> {
    draft: &'a Draft,
    home: HomeKeys<'a>,
}

impl KeySources for DraftKeys<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        self.home.variable(name)
    }

    fn file(&self, path: &str) -> std::io::Result<String> {
        match &self.draft.key {
            KeyKind::Typed(key) if path == self.draft.key_file() => Ok(key.0.clone()),
            _ => self.home.file(path),
        }
    }
}
