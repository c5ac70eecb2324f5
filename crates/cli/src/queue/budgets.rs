//! `[budgets]` of `config.toml`.
//!
//! ```toml
//! [budgets]
//! per_run = 5.0                            # US dollars of one run of a job
//! per_day = 50.0                           # of everything, in a day
//! per_agent = { codex = 10.0, "*" = 20.0 } # in a day; "*" is each one that is not named
//! per_project = { "/home/me/big" = 30.0 }  # in a day
//! reserve = 0.5                            # what work reserves before it begins; default: a tenth of each budget
//! time_zone = "Europe/Berlin"              # in which a day begins; default: UTC
//! ```

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use hangar_scheduler::budget::Budgets;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::located;
use crate::runtimes::named::AgentTable;
use crate::settings::{Settings, parse_toml};

/// Largest budget.
const MOST: f64 = 1e9;

/// `[budgets]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct BudgetsTable {
    /// US dollars of one run of a job.
    per_run: Option<f64>,
    /// US dollars of all work in a day.
    per_day: Option<f64>,
    /// US dollars of an agent in a day; `*` is each agent that is not named.
    per_agent: BTreeMap<String, f64>,
    /// US dollars of a project in a day, by its directory.
    per_project: BTreeMap<String, f64>,
    /// US dollars that work reserves before it begins; a tenth of each budget by default.
    reserve: Option<f64>,
    /// Time zone in which a day begins, such as Europe/Berlin; UTC by default.
    time_zone: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct File {
    budgets: BudgetsTable,
    agents: BTreeMap<String, AgentTable>,
}

/// Budgets of the home.
pub(crate) fn load(settings: &Settings) -> Result<Budgets> {
    let text = settings.config_text()?;
    parse(&text).map_err(|error| located(settings, &text, &error))
}

pub(crate) fn parse(text: &str) -> Result<Budgets> {
    let File { budgets, agents } = parse_toml(text)?;
    let BudgetsTable { per_run, per_day, mut per_agent, per_project, reserve, time_zone } = budgets;
    // One in the agent's own table is the same as one in [budgets], which wins.
    for (name, agent) in agents {
        if let Some(day) = agent.budget.day {
            per_agent.entry(name).or_insert(day);
        }
    }
    let sum = |key: &str, sum: f64| match sum.is_finite() && sum > 0.0 && sum <= MOST {
        true => Ok(()),
        false => bail!("`{key}` in [budgets] is {sum}; it must be a number of US dollars above 0"),
    };
    for (key, given) in [("per_run", per_run), ("per_day", per_day), ("reserve", reserve)] {
        given.map_or(Ok(()), |given| sum(key, given))?;
    }
    for (table, named) in [("per_agent", &per_agent), ("per_project", &per_project)] {
        named.iter().try_for_each(|(name, given)| sum(&format!("{table}.{name}"), *given))?;
    }
    let zone = match time_zone.as_deref() {
        None => TimeZone::UTC,
        Some(name) => TimeZone::get(name).map_err(|_| {
            anyhow::anyhow!(
                "`time_zone` in [budgets] is `{name}`, which is not a time zone such as Europe/Berlin"
            )
        })?,
    };
    Ok(Budgets { run: per_run, day: per_day, agents: per_agent, projects: per_project, reserve, zone })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let parsed = match parse(text) {
            Ok(budgets) => format!("{budgets:?}"),
            Err(error) => format!("{error:#}"),
        };
        assert!(parsed.contains(expected), "{parsed}");
    }

    #[test]
    fn budgets_are_read() {
        check("", "run: None, day: None, agents: {}, projects: {}, reserve: None");
        check(
            "[budgets]\nper_run = 1.5\nper_agent = { codex = 2 }",
            "run: Some(1.5), day: None, agents: {\"codex\": 2.0}",
        );
        check("[agents.a]\nruntime = \"codex\"\nbudget = { day = 3.0 }", "agents: {\"a\": 3.0}");
        check("[budgets]\ntime_zone = \"Europe/Berlin\"", "Europe/Berlin");
    }

    #[test]
    fn invalid_budgets_are_sentences() {
        check(
            "[budgets]\nper_day = 0",
            "`per_day` in [budgets] is 0; it must be a number of US dollars above 0",
        );
        check("[budgets]\nper_agent = { a = -1 }", "`per_agent.a` in [budgets] is -1");
        check("[budgets]\ntime_zone = \"Mars\"", "`time_zone` in [budgets] is `Mars`");
        check("\n[budgets]\nper_week = 1", "config.toml:3: unknown field `per_week`");
    }
}
