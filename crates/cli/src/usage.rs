//! The figures at the end of a run, for files, for stderr and for the `result` line.

use hangar_agent::session::State;
use hangar_protocol::Totals;
use hangar_protocol::result::RunUsage;
use serde_json::{Value, json};

pub(crate) fn of_run(state: &State, duration_ms: u64) -> RunUsage {
    RunUsage {
        premium_requests: 0,
        total_api_duration_ms: state.totals.api_ms,
        session_duration_ms: duration_ms,
        code_changes: state.totals.changes.clone(),
        input_tokens: state.totals.input_tokens,
        output_tokens: state.totals.output_tokens,
        cost_usd: state.totals.cost,
        unpriced_calls: Some(state.totals.unpriced).filter(|calls| *calls > 0),
    }
}

/// The document that `--usage-output-file` asks for.
pub(crate) fn document(state: &State) -> Value {
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
pub(crate) fn summary(state: &State, duration_ms: u64, program: &str) -> String {
    let totals = &state.totals;
    let tokens = match (totals.input_tokens, totals.output_tokens) {
        (None, None) => String::new(),
        (input, output) => {
            let count = |tokens: Option<u64>| tokens.map_or_else(|| "?".to_owned(), short);
            format!("Tokens     \u{2191} {} \u{2022} \u{2193} {}\n", count(input), count(output))
        }
    };
    let cost = cost(totals).map(|cost| format!("Cost       {cost}\n")).unwrap_or_default();
    format!(
        "\nChanges    +{} -{}\nDuration   {}s\n{tokens}{cost}Resume     {program} --resume={}",
        totals.changes.lines_added,
        totals.changes.lines_removed,
        duration_ms / 1000,
        state.session_id,
    )
}

/// The known cost for people. It is a lower bound where some calls have none; nothing is known of a session without any.
pub(crate) fn cost(totals: &Totals) -> Option<String> {
    let cost = totals.cost?;
    Some(match totals.unpriced {
        0 => format!("${cost:.4}"),
        1 => format!("at least ${cost:.4} (the price of 1 call is not known)"),
        calls => format!("at least ${cost:.4} (the prices of {calls} calls are not known)"),
    })
}

fn short(count: u64) -> String {
    match count {
        0..1000 => count.to_string(),
        1000..1_000_000 => format!("{:.1}k", count as f64 / 1000.0),
        _ => format!("{:.1}m", count as f64 / 1_000_000.0),
    }
}
