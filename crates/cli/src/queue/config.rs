//! `[limits]` and `[retry]` of `config.toml`.
//!
//! ```toml
//! [limits]
//! global = 8                              # default: four times the number of cores
//! per_runtime = { codex = 2, "*" = 4 }    # "*" is each one that is not named
//! per_provider = { anthropic = 4 }
//! weights = { "/home/me/big" = 3 }        # shares of projects; default: 1
//!
//! [retry]
//! first = 5                               # seconds before the second attempt; doubled with each further one
//! longest = 300
//! jitter = 0.2                            # random part of a delay
//! hold = 300                              # seconds after a failed login before the account is tried again
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, bail};
use hangar_scheduler::limits::{Limits, ScopeKind};
use hangar_scheduler::retry::RetryPolicy;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use crate::config::located;
use crate::runtimes::named::AgentTable;
use crate::settings::{Settings, parse_toml};

/// Slots for each core, where nothing is configured: agents mostly wait for models.
const SLOTS_PER_CORE: usize = 4;
/// Largest limit and weight.
const MOST: u32 = 100_000;
/// Longest delay.
const LONGEST: f64 = 86_400.0;

type Table = BTreeMap<String, u32>;

/// `[limits]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LimitsTable {
    /// Work that runs at once; four times the number of cores unless it is set.
    #[schemars(range(min = 1, max = 100_000))]
    global: Option<u32>,
    /// By runtime; "*" is each one that is not named.
    #[schemars(schema_with = "slots")]
    per_runtime: Table,
    /// By named agent.
    #[schemars(schema_with = "slots")]
    per_agent: Table,
    /// By provider account.
    #[schemars(schema_with = "slots")]
    per_provider: Table,
    /// By ssh target; "local" is this machine.
    #[schemars(schema_with = "slots")]
    per_host: Table,
    /// By working directory.
    #[schemars(schema_with = "slots")]
    per_project: Table,
    /// By job.
    #[schemars(schema_with = "slots")]
    per_job: Table,
    /// By label.
    #[schemars(schema_with = "slots")]
    per_label: Table,
    /// Shares of projects; 1 unless it is set.
    #[schemars(schema_with = "slots")]
    weights: Table,
}

/// Schema of numbers by name.
fn slots(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": { "type": "integer", "minimum": 1, "maximum": 100_000 },
    })
}

/// `[retry]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RetryTable {
    /// Seconds before the second attempt; doubled with each further one.
    #[schemars(range(min = 0, max = 86_400))]
    first: Option<f64>,
    /// Seconds of the longest delay.
    #[schemars(range(min = 0, max = 86_400))]
    longest: Option<f64>,
    /// Random part of a delay.
    #[schemars(range(min = 0, max = 1))]
    jitter: Option<f64>,
    /// Seconds for which an account is held after a failed login or a used-up quota.
    #[schemars(range(min = 0, max = 86_400))]
    hold: Option<f64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct File {
    limits: LimitsTable,
    retry: RetryTable,
    agents: BTreeMap<String, AgentTable>,
}

/// Limits and retry policy of the home.
pub(crate) fn load(settings: &Settings) -> Result<(Limits, RetryPolicy)> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let text = settings.config_text()?;
    let loaded = parse(&text, cores);
    let (limits, policy) = loaded.map_err(|error| located(settings, &text, &error))?;
    Ok((limits, policy.scaled(settings.retry_scale()?)))
}

/// The limits that are set, for those who count the work of several machines; `None` if none is. Budgets stay with each machine.
pub(crate) fn across_machines(settings: &Settings) -> Result<Option<Limits>> {
    let text = settings.config_text()?;
    let loaded = parse(&text, MOST as usize);
    let (limits, _) = loaded.map_err(|error| located(settings, &text, &error))?;
    Ok(Some(limits).filter(|limits| limits.global < MOST || !limits.scopes.is_empty()))
}

/// Checks the tables of a text of `config.toml`.
pub(crate) fn check(text: &str) -> Result<()> {
    parse(text, 1).map(drop)
}

fn parse(text: &str, cores: usize) -> Result<(Limits, RetryPolicy)> {
    let File { mut limits, retry, agents } = parse_toml(text)?;
    // A limit in the agent's own table is the same as one in [limits], which wins.
    for (name, agent) in agents {
        if let Some(most) = agent.max_running {
            limits.per_agent.entry(name).or_insert(most);
        }
    }
    Ok((limits_of(limits, cores)?, policy(&retry)?))
}

fn limits_of(table: LimitsTable, cores: usize) -> Result<Limits> {
    let usual = u32::try_from(cores * SLOTS_PER_CORE).unwrap_or(MOST).min(MOST);
    let global = table.global.unwrap_or(usual);
    if global == 0 || global > MOST {
        bail!("`global` in [limits] is {global}; it must be from 1 to {MOST}");
    }
    let scopes = [
        (ScopeKind::Runtime, "per_runtime", table.per_runtime),
        (ScopeKind::Agent, "per_agent", table.per_agent),
        (ScopeKind::Provider, "per_provider", table.per_provider),
        (ScopeKind::Host, "per_host", table.per_host),
        (ScopeKind::Project, "per_project", table.per_project),
        (ScopeKind::Job, "per_job", table.per_job),
        (ScopeKind::Label, "per_label", table.per_label),
    ];
    for (_, key, named) in &scopes {
        check_numbers(key, named)?;
    }
    check_numbers("weights", &table.weights)?;
    let scopes = scopes.into_iter().filter(|(_, _, named)| !named.is_empty());
    let scopes = scopes.map(|(kind, _, named)| (kind, named)).collect();
    Ok(Limits { scopes, weights: table.weights, ..Limits::global(global) })
}

fn check_numbers(key: &str, named: &Table) -> Result<()> {
    match named.iter().find(|(_, limit)| !(1..=MOST).contains(*limit)) {
        Some((name, limit)) => bail!("`{key}.{name}` in [limits] is {limit}; it must be from 1 to {MOST}"),
        None => Ok(()),
    }
}

fn policy(table: &RetryTable) -> Result<RetryPolicy> {
    let usual = RetryPolicy::default();
    let seconds = |key: &str, given: Option<f64>, usual: Duration| match given {
        None => Ok(usual),
        Some(seconds) if (0.0..=LONGEST).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        Some(seconds) => bail!("`{key}` in [retry] is {seconds}; it must be from 0 to {LONGEST} seconds"),
    };
    let jitter = table.jitter.unwrap_or(usual.jitter);
    if !(0.0..=1.0).contains(&jitter) {
        bail!("`jitter` in [retry] is {jitter}; it must be from 0 to 1");
    }
    let first = seconds("first", table.first, usual.first)?;
    let longest = seconds("longest", table.longest, usual.longest)?;
    if first > longest {
        bail!("`first` in [retry] is longer than `longest`");
    }
    Ok(RetryPolicy { first, longest, jitter, hold: seconds("hold", table.hold, usual.hold)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_parsed(text: &str, expected: &str) {
        let parsed = match parse(text, 2) {
            Ok((limits, policy)) => format!("{limits:?} {policy:?}"),
            Err(error) => format!("{error:#}"),
        };
        assert!(parsed.contains(expected), "{parsed}");
    }

    #[test]
    fn limits_are_read_and_default_to_the_cores() {
        check_parsed("", "global: 8, scopes: {}");
        check_parsed(
            "[limits]\nglobal = 3\nper_runtime = { codex = 2 }",
            "global: 3, scopes: {Runtime: {\"codex\": 2}}",
        );
        check_parsed("[limits.weights]\n\"/a\" = 3", "weights: {\"/a\": 3}");
    }

    #[test]
    fn invalid_limits_are_sentences() {
        check_parsed("[limits]\nglobal = 0", "`global` in [limits] is 0; it must be from 1 to 100000");
        check_parsed("[limits]\nper_job = { a = 0 }", "`per_job.a` in [limits] is 0");
        check_parsed(
            "\n[limits]\nper_runtimes = { a = 1 }",
            "config.toml:3: unknown field `per_runtimes`, expected one of `global`",
        );
    }

    #[test]
    fn retries_are_read_and_checked() {
        check_parsed(
            "[retry]\nfirst = 0.5\njitter = 0",
            "first: 500ms, longest: 300s, jitter: 0.0, hold: 300s",
        );
        check_parsed("[retry]\nfirst = -1", "`first` in [retry] is -1; it must be from 0 to 86400 seconds");
        check_parsed("[retry]\nfirst = 9\nlongest = 5", "`first` in [retry] is longer than `longest`");
        check_parsed("[retry]\njitter = 2", "`jitter` in [retry] is 2; it must be from 0 to 1");
    }
}
