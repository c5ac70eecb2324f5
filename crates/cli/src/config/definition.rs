//! The one definition of the settings: the tables of `config.toml`, each defined where it is used. The JSON Schema for editors, the
//! checks, `hangar config` and the settings page are made from it.

use std::collections::BTreeMap;

use hangar_models::config::table;
use hangar_portal::settings::Appearance;
use hangar_sandbox::SandboxConfig;
use schemars::JsonSchema;

use crate::automation::tables::{HookTable, ScheduleTable};
use crate::budget::BudgetTable;
use crate::fleet::config::FleetTable;
use crate::just_in_time;
use crate::notify::config::RuleTable;
use crate::orchestrate::config::OrchestratorTable;
use crate::providers::ModelPreferences;
use crate::queue::budgets::BudgetsTable;
use crate::queue::config::{LimitsTable, RetryTable};
use crate::runtimes::config::RuntimesConfig;
use crate::runtimes::named::AgentTable;

/// Settings of Hangar.
#[derive(JsonSchema)]
#[schemars(title = "Hangar configuration", deny_unknown_fields)]
#[expect(dead_code, reason = "describes the file; each table is read where it is used")]
pub(super) struct ConfigFile {
    /// Default model, as PROVIDER/MODEL.
    model: Option<String>,
    /// Model for titles, summaries and agents that only explore.
    small_model: Option<String>,
    /// Preferences about models.
    #[schemars(default)]
    models: ModelPreferences,
    /// Model providers.
    #[schemars(default, schema_with = "table::schema")]
    providers: BTreeMap<String, ()>,
    /// Named agents, and the models of built-in sub-agents.
    #[schemars(default)]
    agents: BTreeMap<String, AgentTable>,
    /// Caps on cost, tokens and turns of a session.
    #[schemars(default)]
    budget: BudgetTable,
    /// Instructions that appear when a budget runs low.
    #[schemars(default)]
    just_in_time: Vec<just_in_time::Table>,
    /// Other agents and their settings.
    #[schemars(default)]
    runtimes: RuntimesConfig,
    /// The sandbox of commands.
    #[schemars(default)]
    sandbox: SandboxConfig,
    /// Work that may run at once.
    #[schemars(default)]
    limits: LimitsTable,
    /// Money that may be spent.
    #[schemars(default)]
    budgets: BudgetsTable,
    /// Notices to people.
    #[schemars(default)]
    notifications: Vec<RuleTable>,
    /// Delays before failed work is tried again.
    #[schemars(default)]
    retry: RetryTable,
    /// Look of the portal and of the terminal.
    #[schemars(default)]
    appearance: Appearance,
    /// Work that starts at fixed times.
    #[schemars(default)]
    schedules: Vec<ScheduleTable>,
    /// Several machines with one queue.
    #[schemars(default)]
    fleet: FleetTable,
    /// Workflows whose issues `hangar up` works on.
    #[schemars(default)]
    orchestrator: Vec<OrchestratorTable>,
    /// Work that a signed HTTP request starts.
    #[schemars(default)]
    hooks: BTreeMap<String, HookTable>,
}
