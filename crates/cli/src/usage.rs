//! The figures at the end of a run, for files, for stderr and for the `result` line.

use hangar_agent::session::ConversationState;
use hangar_protocol::Totals;
use hangar_protocol::data::CodeChanges;
use hangar_protocol::result::RunUsage;
use hangar_runtimes::usage::AgentUsage;
use hangar_store::{SessionId, Store};
use serde_json::{Value, json};

use crate::providers::is_scripted;

/// Figures of a session whose calls are on record one by one.
pub(crate) fn of_totals(totals: &Totals, duration_ms: u64) -> RunUsage {
    RunUsage {
        premium_requests: 0,
        total_api_duration_ms: totals.api_ms,
        session_duration_ms: duration_ms,
        code_changes: totals.changes.clone(),
        input_tokens: totals.input_tokens,
        output_tokens: totals.output_tokens,
        cost_usd: totals.cost,
        unpriced_calls: Some(unpriced(totals)).filter(|calls| *calls > 0),
    }
}

/// Calls of unknown cost. Those of the scripted model cost nothing.
fn unpriced(totals: &Totals) -> u64 {
    let is_rehearsal = !totals.models.is_empty() && totals.models.keys().all(|model| is_scripted(model));
    if is_rehearsal { 0 } else { totals.unpriced }
}

/// Figures that an agent reported.
pub(crate) fn of_agent(usage: &AgentUsage, code_changes: CodeChanges, duration_ms: u64) -> RunUsage {
    RunUsage {
        premium_requests: usage.premium_requests.count().unwrap_or(0),
        total_api_duration_ms: usage.api_ms.count().unwrap_or(0),
        session_duration_ms: duration_ms,
        code_changes,
        input_tokens: usage.input_tokens.count(),
        output_tokens: usage.output_tokens.count(),
        cost_usd: usage.cost_usd.value(),
        unpriced_calls: None,
    }
}

/// Totals of a session by its log. `None` if the log cannot be read.
pub(crate) fn logged(store: &Store, id: &SessionId) -> Option<Totals> {
    let mut totals = Totals::default();
    for event in store.read_kinds(id, Totals::wants).ok()? {
        totals.apply(&event.ok()?);
    }
    Some(totals)
}

/// The document that `--usage-output-file` asks for.
pub(crate) fn document(state: &ConversationState) -> Value {
    let totals = &state.totals;
    let changes = &totals.changes;
    json!({
        "totalPremiumRequestCost": 0,
        "totalCostUsd": totals.cost,
        "unpricedCalls": totals.unpriced,
        "totalUserRequests": totals.prompts,
        "totalApiDurationMs": totals.api_ms,
        "sessionStartTime": state.started,
        "codeChanges": {
            "linesAdded": changes.lines_added,
            "linesRemoved": changes.lines_removed,
            "filesModifiedCount": changes.files_modified.len(),
            "filesModified": changes.files_modified,
        },
        "modelMetrics": totals.models,
        "agentMetrics": { "main": { "totalApiDurationMs": totals.api_ms, "modelMetrics": totals.models } },
        "currentModel": state.model,
        "lastCallInputTokens": totals.last.0,
        "lastCallOutputTokens": totals.last.1,
    })
}

/// The lines on stderr after a run in text mode.
pub(crate) struct Footer<'a> {
    pub(crate) usage: &'a RunUsage,
    /// Whether the code changes are known. Nobody counts those of another agent outside a repository.
    pub(crate) counts_changes: bool,
    /// The command that continues the session.
    pub(crate) resume: String,
}

impl std::fmt::Display for Footer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { usage, counts_changes, resume } = self;
        writeln!(f)?;
        if *counts_changes {
            let changes = &usage.code_changes;
            writeln!(f, "Changes    +{} -{}", changes.lines_added, changes.lines_removed)?;
        }
        writeln!(f, "Duration   {}s", usage.session_duration_ms / 1000)?;
        if usage.input_tokens.is_some() || usage.output_tokens.is_some() {
            let count = |tokens: Option<u64>| tokens.map_or_else(|| "?".to_owned(), short);
            let (input, output) = (count(usage.input_tokens), count(usage.output_tokens));
            writeln!(f, "Tokens     \u{2191} {input} \u{2022} \u{2193} {output}")?;
        }
        if let Some(cost) = cost(usage.cost_usd, usage.unpriced_calls.unwrap_or(0)) {
            writeln!(f, "Cost       {cost}")?;
        }
        write!(f, "Resume     {resume}")
    }
}

/// The cost for people: a lower bound where that of some calls is unknown, and no number where that of all is. `None` without
/// calls.
pub(crate) fn cost(cost: Option<f64>, unpriced: u64) -> Option<String> {
    let why = match unpriced {
        0 => return cost.map(|cost| format!("${cost:.4}")),
        1 => "the price of 1 call is not known".to_owned(),
        calls => format!("the prices of {calls} calls are not known"),
    };
    Some(match cost {
        Some(cost) => format!("at least ${cost:.4} ({why})"),
        None => format!("unknown ({why})"),
    })
}

/// The same of a session's log. Calls without an end were under way when their process was killed: the provider may have charged them.
pub(crate) fn logged_cost(totals: &Totals) -> Option<String> {
    let calls = totals.reserved.len() as u64;
    if calls == 0 {
        return cost(totals.cost, unpriced(totals));
    }
    let known = totals.cost.unwrap_or(0.0);
    let bounds: Option<f64> = totals.reserved.values().map(|bound| bound.cost).sum();
    match bounds.filter(|_| totals.unpriced == 0) {
        Some(bounds) => Some(format!(
            "at least ${known:.4}, at most ${:.4} ({calls} call(s) were interrupted)",
            known + bounds
        )),
        None => cost(totals.cost, totals.unpriced + calls),
    }
}

fn short(count: u64) -> String {
    match count {
        0..1000 => count.to_string(),
        1000..1_000_000 => format!("{:.1}k", count as f64 / 1000.0),
        _ => format!("{:.1}m", count as f64 / 1_000_000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_of_an_interrupted_call_is_told_as_a_bound() {
        let check = |cost: Option<f64>, unpriced: u64, reserved: &[Option<f64>], expected: Option<&str>| {
            let reserved = reserved.iter().zip(1..).map(|(cost, call)| {
                (call, hangar_protocol::data::AssistantUsage { cost: *cost, ..Default::default() })
            });
            let mut totals = Totals::default();
            totals.reserved.extend(reserved);
            (totals.cost, totals.unpriced) = (cost, unpriced);
            assert_eq!(logged_cost(&totals).as_deref(), expected);
        };
        check(None, 0, &[], None);
        check(Some(0.5), 0, &[], Some("$0.5000"));
        check(
            Some(0.5),
            0,
            &[Some(0.25)],
            Some("at least $0.5000, at most $0.7500 (1 call(s) were interrupted)"),
        );
        check(None, 0, &[Some(0.25)], Some("at least $0.0000, at most $0.2500 (1 call(s) were interrupted)"));
        check(None, 0, &[None], Some("unknown (the price of 1 call is not known)"));
        check(None, 2, &[], Some("unknown (the prices of 2 calls are not known)"));
        check(Some(0.5), 1, &[Some(0.25)], Some("at least $0.5000 (the prices of 2 calls are not known)"));
    }
}
