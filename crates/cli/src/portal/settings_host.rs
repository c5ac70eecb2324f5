//! Settings for the portal: the same functions as `hangar config`, and the schedules and hooks.

use futures_util::future::BoxFuture;
use hangar_portal::settings::{
    Appearance, AutomationHost, FiredHook, HookDelivery, ProviderTest, SchedulesView, SettingsChange,
    SettingsHost, SettingsProblem, SettingsView,
};
use serde_json::{Value, json};

use crate::appearance;
use crate::automation::Automation;
use crate::commands::doctor;
use crate::config::{ConfigEdit, EditError, KeyPath, Problem, Schema, apply, problems, shown};
use crate::providers;
use crate::redact;
use crate::runtimes::AgentRuntimes;
use crate::settings::Settings;

pub(super) struct PortalSettings(pub(super) Settings);

fn told(problem: Problem) -> SettingsProblem {
    SettingsProblem { line: problem.line, key: problem.key, message: problem.message }
}

fn sentence(message: String) -> SettingsProblem {
    SettingsProblem { line: 0, key: String::new(), message }
}

impl SettingsHost for PortalSettings {
    fn view(&self) -> SettingsView {
        let text = self.0.config_text().unwrap_or_default();
        let values = shown(&text, &[]).ok().flatten().unwrap_or_else(|| json!({}));
        let runtimes = AgentRuntimes::assemble(&self.0);
        let runtimes =
            runtimes.map(|runtimes| runtimes.iter().map(|runtime| runtime.card().name.to_string()).collect());
        SettingsView {
            path: self.0.config_path().display().to_string(),
            values,
            schema: Schema::of_config().as_value().clone(),
            problems: problems(&self.0, &text).into_iter().map(told).collect(),
            runtimes: runtimes.unwrap_or_default(),
            under_way: "New sessions use a change. Sessions under way keep what they began with.".to_owned(),
        }
    }

    fn change(&self, changes: Vec<SettingsChange>) -> Result<(), Vec<SettingsProblem>> {
        let edit = |change: SettingsChange| match change.value {
            None | Some(Value::Null) => ConfigEdit::Unset(KeyPath(change.path)),
            Some(value) => ConfigEdit::SetJson(KeyPath(change.path), value),
        };
        let edits: Vec<ConfigEdit> = changes.into_iter().map(edit).collect();
        apply(&self.0, &edits).map_err(|error| match error {
            EditError::Invalid(problems) => problems.into_iter().map(told).collect(),
            EditError::Refused(why) | EditError::File(why) => vec![sentence(why)],
        })
    }

    fn appearance(&self) -> Appearance {
        appearance::load(&self.0)
    }

    fn test_provider(&self, name: String) -> BoxFuture<'static, ProviderTest> {
        let settings = self.0.clone();
        Box::pin(async move {
            let configured = match providers::configured(&settings) {
                Ok(configured) => configured,
                Err(error) => return ProviderTest { ok: false, says: format!("{error:#}") },
            };
            match configured.iter().find(|provider| provider.name == name) {
                None => ProviderTest { ok: false, says: format!("there is no provider `{name}`") },
                Some(provider) => {
                    let (ok, says) = doctor::ask_provider(provider).await;
                    ProviderTest { ok, says: redact::of_machine(&settings).text(says) }
                }
            }
        })
    }
}

impl AutomationHost for Automation {
    fn schedules(&self) -> SchedulesView {
        SchedulesView { schedules: Automation::schedules(self), hooks: self.hooks() }
    }

    fn run_schedule(&self, name: &str) -> Result<String, String> {
        self.run_now(name).map_err(|error| format!("{error:#}"))
    }

    fn hook_secret(&self, name: &str) -> Option<Vec<u8>> {
        Automation::hook_secret(self, name)
    }

    fn fire(&self, request: HookDelivery) -> Result<FiredHook, String> {
        Automation::fire(self, &request).map_err(|error| format!("{error:#}"))
    }
}
