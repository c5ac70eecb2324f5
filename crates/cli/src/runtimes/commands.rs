//! `hangar runtimes`: the agents, their capabilities, and their drift since the last probe.

use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use futures_util::future::{BoxFuture, join_all};
use hangar_models::catalogue::{Cache, ModelInfo};
use hangar_models::config::{self, ProviderConfig, ProviderKind};
use hangar_runtimes::capabilities::Capabilities;
use hangar_runtimes::runtime::{AgentCard, LoginState, Lookup, OfferedModel, Preflight};
use serde_json::{Value, json};

use super::args::{RuntimesArgs, RuntimesCommand};
use super::drift::ProbeRecord;
use super::{AgentRuntimes, probe};
use crate::commands::print_line;
use crate::exit::Exit;
use crate::output::remark;
use crate::providers;
use crate::settings::Settings;

/// Catalogues change by the week, not by the minute.
const TIME_TO_LIVE: Duration = Duration::from_secs(3600);

pub(crate) fn run(settings: &Settings, args: RuntimesArgs) -> Result<Exit> {
    let runtimes = AgentRuntimes::assemble(settings)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    match args.command {
        None => {
            let looks = runtime.block_on(look(settings, &runtimes));
            show(&runtimes, &looks, args.json)?;
            Ok(Exit::Done)
        }
        Some(RuntimesCommand::Probe { name }) => {
            runtime.block_on(probe::run(settings, &runtimes, name.as_deref(), args.json))
        }
    }
}

/// Preflight of one agent, with its drift since the last probe.
pub(crate) struct Look {
    pub(crate) card: AgentCard,
    pub(crate) preflight: Preflight,
    pub(crate) drift: Vec<String>,
    probed_at: Option<String>,
}

impl Look {
    pub(crate) fn is_installed(&self) -> bool {
        self.preflight.program.is_some()
    }

    /// Capabilities of the installed version.
    fn capabilities(&self) -> &Capabilities {
        self.preflight.capabilities.as_ref().unwrap_or(&self.card.capabilities)
    }
}

/// Checks all agents concurrently: each takes its time to report its version.
pub(crate) async fn look(settings: &Settings, runtimes: &AgentRuntimes) -> Vec<Look> {
    let looks = runtimes.iter().map(|runtime| async {
        let card = runtime.card().clone();
        let preflight = runtime.preflight().await;
        let known = ProbeRecord::load(&settings.home, &card.name);
        Look { drift: known.drift(&preflight), probed_at: known.probed_at, card, preflight }
    });
    join_all(looks).await
}

fn show(runtimes: &AgentRuntimes, looks: &[Look], as_json: bool) -> Result<()> {
    let default = runtimes.config.default.as_deref().unwrap_or(super::choice::NATIVE);
    if as_json {
        let rows: Vec<Value> = looks
            .iter()
            .map(|look| {
                json!({
                    "name": look.card.name,
                    "label": look.card.label,
                    "default": look.card.name == default,
                    "installed": look.is_installed(),
                    "program": look.preflight.program,
                    "host": look.preflight.host,
                    "version": look.preflight.version,
                    "bestEffort": look.preflight.best_effort,
                    "auth": look.preflight.auth,
                    "capabilities": look.capabilities(),
                    "shellTool": look.card.shell_tool,
                    "problems": look.preflight.problems,
                    "warnings": look.preflight.warnings,
                    "drift": look.drift,
                    "probedAt": look.probed_at,
                    "install": look.card.install,
                })
            })
            .collect();
        return print_line(&serde_json::to_string_pretty(&rows)?);
    }
    print_line(&format!("  {:<10} {:<10} {:<14} {:<28} can", "name", "installed", "version", "login"))?;
    for look in looks {
        let mark = if look.card.name == default { "*" } else { " " };
        let installed = if look.is_installed() { "yes" } else { "no" };
        let version = look.preflight.version.as_deref().unwrap_or("-");
        let auth = match &look.preflight.auth {
            LoginState::Found(source) => source.as_str(),
            LoginState::Missing => "missing",
            LoginState::Unknown => "unknown",
        };
        let line = format!(
            "{mark} {:<10} {installed:<10} {version:<14} {auth:<28} {}",
            look.card.name,
            abilities(look.capabilities()).join(", ")
        );
        print_line(line.trim_end())?;
        if let Some(host) = &look.preflight.host {
            print_line(&format!("    on {host}"))?;
        }
        for drift in &look.drift {
            print_line(&format!("    drift: {drift}"))?;
        }
        if look.is_installed() {
            for warning in look.preflight.problems.iter().chain(&look.preflight.warnings) {
                print_line(&format!("    note: {warning}"))?;
            }
        } else if look.preflight.host.is_some() {
            look.preflight
                .problems
                .iter()
                .try_for_each(|problem| print_line(&format!("    note: {problem}")))?;
        } else {
            print_line(&format!("    to install: {}", look.card.install))?;
        }
    }
    for agent in runtimes.named() {
        let card = agent.card();
        let model = runtimes.config.model(&card.name).unwrap_or_else(|| "its default model".to_owned());
        let mark = if card.name == default { "*" } else { " " };
        print_line(&format!("{mark} {:<10} agent of {} with {model}", card.name, card.base()))?;
    }
    Ok(())
}

fn abilities(capabilities: &Capabilities) -> Vec<String> {
    let table = [
        ("stream", capabilities.streaming),
        ("resume", capabilities.resume),
        ("tokens", capabilities.input_tokens),
        ("cost", capabilities.cost),
        ("budget", capabilities.budget_cap),
        ("models", capabilities.model_discovery),
        ("ask", capabilities.permission_callbacks),
        ("rules", capabilities.tool_rules),
        ("mcp", capabilities.mcp_config),
        ("ssh", capabilities.remote),
    ];
    let mut names: Vec<String> =
        table.iter().filter(|(_, can)| *can).map(|(name, _)| (*name).to_owned()).collect();
    if let (Some(weakest), Some(strongest)) =
        (capabilities.effort_levels.first(), capabilities.effort_levels.last())
    {
        names.push(format!("effort {weakest}..{strongest}"));
    }
    names
}

/// `hangar models --runtime NAME`: the models that the agent offers, or that they are unknown.
pub(crate) fn models(settings: &Settings, name: &str, lookup: Lookup, as_json: bool) -> Result<Exit> {
    let runtimes = AgentRuntimes::assemble(settings)?;
    let agent = runtimes.find(name)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let models = runtime.block_on(agent.models(lookup));
    if as_json {
        print_line(&serde_json::to_string_pretty(&models)?)?;
        return Ok(Exit::Done);
    }
    match models {
        Some(models) => models.iter().try_for_each(|model| print_line(&model.id))?,
        None => remark(&format!("what {name} offers cannot be found out; it takes any name that it knows")),
    }
    Ok(Exit::Done)
}

/// Models of the providers, from the cache where it is fresh. `None` when no provider lists any.
pub(crate) async fn discover(
    settings: Settings,
    lookup: Lookup,
    only: Option<fn(&Settings) -> Option<ProviderConfig>>,
) -> Option<Vec<OfferedModel>> {
    let asked = match only {
        Some(only) => vec![only(&settings)?],
        None => providers::configured(&settings).ok()?,
    };
    let cache = Cache { dir: settings.home.join("cache"), ttl: TIME_TO_LIVE };
    let mut models = None;
    for provider in &asked {
        let now = SystemTime::now();
        let listed = match lookup {
            Lookup::Cached => cache.list_models(provider, now).await,
            Lookup::Fresh => cache.refresh(provider, now).await,
        };
        match listed {
            Ok(found) => models.get_or_insert_with(Vec::new).extend(found.into_iter().filter_map(offered)),
            Err(error) => tracing::debug!(provider = provider.name, %error, "a catalogue could not be had"),
        }
    }
    models
}

/// A model as lists show it, if the account may use it.
fn offered(model: ModelInfo) -> Option<OfferedModel> {
    (model.entitled != Some(false)).then(|| OfferedModel {
        id: model.id,
        name: model.name,
        provider: Some(model.vendor.unwrap_or(model.provider)),
        multiplier: model.multiplier.and_then(|times| times.parse().ok()),
    })
}

/// Models of Copilot CLI: those of its own provider if one is set, GitHub's otherwise.
pub(crate) fn copilot_models(
    settings: &Settings,
    lookup: Lookup,
) -> BoxFuture<'static, Option<Vec<OfferedModel>>> {
    fn provider(settings: &Settings) -> Option<ProviderConfig> {
        let lookup = |name: &str| settings.var(name).map(str::to_owned);
        let own = config::variables::provider(lookup).ok()?;
        own.or_else(|| {
            let configured = providers::configured(settings).ok()?;
            configured.into_iter().find(|provider| matches!(provider.kind, ProviderKind::Copilot))
        })
    }
    Box::pin(discover(settings.clone(), lookup, Some(provider)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(told: Value, expected: Option<&str>) {
        let mut model = json!({ "id": "m", "provider": "github" });
        for (name, value) in told.as_object().into_iter().flatten() {
            model[name] = value.clone();
        }
        let model: ModelInfo = serde_json::from_value(model).expect("a model");
        assert_eq!(offered(model).and_then(|model| model.provider).as_deref(), expected, "{told}");
    }

    #[test]
    fn models_that_the_account_may_use_are_offered_as_their_vendor_s() {
        check(json!({ "vendor": "Anthropic", "entitled": true }), Some("Anthropic"));
        check(json!({ "vendor": "Anthropic", "entitled": false }), None);
        // A provider of one's own names no vendor, and tells nothing about the account.
        check(json!({}), Some("github"));
    }
}
