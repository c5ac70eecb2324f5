//! Settings, schedules and hooks of the machine, as the portal shows and changes them. The host hands them in.

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Configuration of the machine.
pub trait SettingsHost: Send + Sync {
    fn view(&self) -> SettingsView;

    /// Makes all changes in one step, or none.
    fn change(&self, changes: Vec<SettingsChange>) -> Result<(), Vec<SettingsProblem>>;

    /// Look of the pages, for browsers that have not chosen one.
    fn appearance(&self) -> Appearance;

    /// Asks a configured provider for its models.
    fn test_provider(&self, name: String) -> BoxFuture<'static, ProviderTest>;
}

/// Work that a time or a request from outside starts.
pub trait AutomationHost: Send + Sync {
    fn schedules(&self) -> SchedulesView;

    /// Starts a schedule now. The error is a sentence.
    fn run_schedule(&self, name: &str) -> Result<String, String>;

    /// Secret that requests to a hook are signed with. `None` if there is no such hook.
    fn hook_secret(&self, name: &str) -> Option<Vec<u8>>;

    /// Starts the work of a hook whose signature was verified. The error is a sentence.
    fn fire(&self, request: HookDelivery) -> Result<FiredHook, String>;
}

/// Look of the portal and of the terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Appearance {
    /// Colours of the portal and of the terminal.
    pub theme: ThemeChoice,
    /// Space between the lines of lists and tables in the portal.
    pub density: Density,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ThemeChoice {
    #[default]
    System,
    Light,
    Dark,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Density {
    #[default]
    Comfortable,
    Compact,
}

/// Settings of the machine. Secrets are never in it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Settings")]
pub struct SettingsView {
    /// Path of `config.toml`.
    pub path: String,
    /// The settings of the file; secrets are replaced.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub values: serde_json::Value,
    /// JSON Schema of the settings.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub schema: serde_json::Value,
    pub problems: Vec<SettingsProblem>,
    /// Names of the runtimes that agents can be based on.
    pub runtimes: Vec<String>,
    /// What a change means for sessions that are open.
    pub under_way: String,
}

/// A problem in the settings.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SettingsProblem {
    /// Line in `config.toml`; 0 if it is none of the file.
    pub line: usize,
    /// The setting, with dots between its keys.
    pub key: String,
    pub message: String,
}

/// A change of one setting.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SettingsChange {
    /// Keys of the setting, from the outermost on; an item of a list is named by its number.
    pub path: Vec<String>,
    /// The new value; `null` removes the setting.
    pub value: Option<serde_json::Value>,
}

/// Result of asking a provider.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ProviderTest {
    pub ok: bool,
    /// The result in a sentence.
    pub says: String,
}

/// Schedules and hooks.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "Schedules")]
pub struct SchedulesView {
    pub schedules: Vec<ScheduleView>,
    pub hooks: Vec<HookView>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Schedule")]
pub struct ScheduleView {
    pub name: String,
    pub cron: String,
    pub time_zone: String,
    pub enabled: bool,
    /// When it runs next.
    pub next: Option<String>,
    /// The time of its last run.
    pub last: Option<String>,
    /// The run that it started last.
    pub run: Option<String>,
    /// Times at which nothing was started, when that happened last.
    pub missed: u32,
    pub missed_reason: Option<String>,
    /// Why the last run could not be started.
    pub error: Option<String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "Hook")]
pub struct HookView {
    pub name: String,
    pub path: String,
    pub enabled: bool,
    /// Where its secret is kept.
    pub secret: String,
    /// When it was called last.
    pub last: Option<String>,
    pub run: Option<String>,
}

/// Request to a hook, with a valid signature.
#[derive(Debug, Clone)]
pub struct HookDelivery {
    pub name: String,
    /// Id of the delivery, which a repeated request has again.
    pub delivery: String,
    pub event: Option<String>,
    pub body: String,
}

/// Result of a request to a hook.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FiredHook {
    /// The run that was started; absent for an event that the hook does not run for.
    pub run: Option<String>,
    /// Whether the delivery was taken before, so that nothing was started.
    pub duplicate: bool,
}
