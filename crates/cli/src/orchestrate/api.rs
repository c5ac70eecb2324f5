//! The state of the orchestrator for others: JSON and metrics, with the names that Sortie has for them.

use std::fmt::Write as _;
use std::time::Duration;

use hangar_orchestrator::hold;
use hangar_orchestrator::record::Tokens;
use hangar_orchestrator::state::{IssueClaim, OrchestratorState, Phase};
use hangar_workflow::Config;
use jiff::Timestamp;
use serde_json::{Value, json};

/// Counts of this process that no record has.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) polls: u64,
    pub(super) failed_polls: u64,
    pub(super) looks: u64,
    pub(super) failed_looks: u64,
    pub(super) webhooks: u64,
    /// Decisions what to do next.
    pub(super) plans: Timing,
    /// Ticks of the loop: decisions with what they write down, until only effects are waited for.
    pub(super) ticks: Timing,
}

/// How long something takes that is done again and again.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Timing {
    count: u64,
    total: Duration,
    longest: Duration,
}

impl Timing {
    pub(super) fn add(&mut self, time: Duration) {
        self.count += 1;
        self.total += time;
        self.longest = self.longest.max(time);
    }

    /// A summary, and the longest time as a gauge, in the text format of Prometheus.
    fn write(&self, text: &mut String, name: &str, help: &str) {
        let (total, longest) = (self.total.as_secs_f64(), self.longest.as_secs_f64());
        let _ = writeln!(
            text,
            "# HELP {name}_seconds {help}\n# TYPE {name}_seconds summary\n{name}_seconds_sum {total}\n\
             {name}_seconds_count {}\n# HELP {name}_longest_seconds The longest of them.\n\
             # TYPE {name}_longest_seconds gauge\n{name}_longest_seconds {longest}",
            self.count
        );
    }
}

fn tokens(tokens: Tokens) -> Value {
    json!({
        "input_tokens": tokens.input, "output_tokens": tokens.output, "total_tokens": tokens.total(),
        "cache_read_tokens": tokens.cache_read,
    })
}

fn running(claim: &IssueClaim) -> Value {
    json!({
        "issue_id": claim.tracked(), "issue_identifier": claim.identifier, "display_identifier": claim.identifier,
        "candidate": claim.role.as_ref().map(|role| role.number),
        "state": claim.state, "session_id": claim.session, "turn_count": claim.turn, "agent": claim.agent,
        "started_at": format!("{:.3}", claim.since), "workspace_path": claim.workspace,
        "tokens": tokens(claim.tokens), "pull": claim.pull,
    })
}

fn retrying(claim: &IssueClaim) -> Option<Value> {
    let Phase::Retrying { due, .. } = &claim.phase else { return None };
    Some(json!({
        "issue_id": claim.tracked(), "issue_identifier": claim.identifier, "attempt": claim.failures,
        "candidate": claim.role.as_ref().map(|role| role.number),
        "due_at": format!("{due:.3}"), "error": claim.error,
    }))
}

fn held(claim: &IssueClaim) -> Value {
    let hold = hold::of_claim(claim);
    json!({
        "issue_id": claim.issue, "issue_identifier": claim.identifier, "code": hold.code(),
        "reason": hold.sentence(), "pull": claim.pull,
    })
}

/// `GET /api/v1/state`.
pub(super) fn state(state: &OrchestratorState, now: Timestamp) -> Value {
    let all = |phase: fn(&Phase) -> bool| state.claims.values().filter(move |claim| phase(&claim.phase));
    let running: Vec<Value> = state.running().map(running).collect();
    let retrying: Vec<Value> =
        state.claims.values().chain(state.rivals.values()).filter_map(retrying).collect();
    let waiting: Vec<Value> = all(|phase| matches!(phase, Phase::Waiting { .. })).map(held).collect();
    let parked: Vec<Value> = all(|phase| matches!(phase, Phase::Parked { .. })).map(held).collect();
    json!({
        "generated_at": format!("{now:.3}"),
        "counts": {
            "running": running.len(), "retrying": retrying.len(), "waiting": waiting.len(),
            "parked": parked.len(),
        },
        "running": running, "retrying": retrying, "waiting": waiting, "parked": parked,
        "agent_totals": tokens(state.totals.tokens), "rate_limits": null,
    })
}

/// `GET /api/v1/<identifier>`. `None` for an issue that nothing is known of.
pub(super) fn issue(state: &OrchestratorState, name: &str) -> Option<Value> {
    if let Some(claim) = state.find(name) {
        let is_running = claim.phase.is_running();
        return Some(json!({
            "issue_identifier": claim.identifier, "issue_id": claim.issue,
            "status": hold::of_claim(claim).code(), "reason": hold::of_claim(claim).sentence(),
            "workspace": { "path": claim.workspace },
            "attempts": { "restart_count": claim.sessions, "current_retry_attempt": claim.failures },
            "running": is_running.then(|| running(claim)), "retry": retrying(claim), "recent_events": [],
            "last_error": claim.error, "tracked": {}, "pull": claim.pull,
        }));
    }
    let mut known = state.history.iter();
    let (id, history) = known.find(|(id, history)| id.0 == name || history.identifier == name)?;
    Some(json!({
        "issue_identifier": history.identifier, "issue_id": id, "status": "released",
        "release": history.release, "attempts": { "restart_count": history.sessions },
        "tokens": tokens(history.tokens), "running": null, "retry": null, "recent_events": [],
        "last_error": null, "pull": history.pull,
    }))
}

/// `GET /metrics`, in the text format of Prometheus.
pub(super) fn metrics(config: &Config, state: &OrchestratorState, counts: Counts) -> String {
    let totals = &state.totals;
    let running = state.running().count() as u64;
    let retrying =
        state.claims.values().filter(|claim| matches!(claim.phase, Phase::Retrying { .. })).count() as u64;
    let slots = u64::from(config.agent.max_concurrent).saturating_sub(running);
    let mut text = String::new();
    let mut family = |name: &str, kind: &str, help: &str, values: &[(&str, u64)]| {
        let _ = writeln!(text, "# HELP sortie_{name} {help}\n# TYPE sortie_{name} {kind}");
        for (labels, value) in values {
            let _ = writeln!(text, "sortie_{name}{labels} {value}");
        }
    };
    family("sessions_running", "gauge", "Sessions that hold a slot.", &[("", running)]);
    family("sessions_retrying", "gauge", "Issues that wait for a retry.", &[("", retrying)]);
    family("slots_available", "gauge", "Free slots of the workflow.", &[("", slots)]);
    family(
        "tokens_total",
        "counter",
        "Tokens of all sessions.",
        &[
            ("{type=\"input\"}", totals.tokens.input),
            ("{type=\"output\"}", totals.tokens.output),
            ("{type=\"cache_read\"}", totals.tokens.cache_read),
        ],
    );
    family(
        "dispatches_total",
        "counter",
        "Issues that were claimed.",
        &[("{outcome=\"success\"}", totals.dispatches)],
    );
    family(
        "worker_exits_total",
        "counter",
        "Sessions that ended.",
        &[
            ("{exit_type=\"normal\"}", totals.sessions_completed),
            ("{exit_type=\"error\"}", totals.sessions_failed),
            ("{exit_type=\"cancelled\"}", totals.sessions_cancelled),
            ("{exit_type=\"soft_stop\"}", totals.soft_stops),
        ],
    );
    family(
        "retries_total",
        "counter",
        "Retries that were scheduled.",
        &[
            ("{trigger=\"continuation\"}", totals.retries_continuation),
            ("{trigger=\"error\"}", totals.retries_error),
            ("{trigger=\"reaction\"}", totals.reactions),
        ],
    );
    let succeeded = counts.polls.saturating_sub(counts.failed_polls);
    family(
        "poll_cycles_total",
        "counter",
        "Reads of the tracker.",
        &[("{result=\"success\"}", succeeded), ("{result=\"error\"}", counts.failed_polls)],
    );
    family(
        "review_checks_total",
        "counter",
        "Reads of pull requests.",
        &[
            ("{result=\"success\"}", counts.looks.saturating_sub(counts.failed_looks)),
            ("{result=\"error\"}", counts.failed_looks),
        ],
    );
    family(
        "handoff_transitions_total",
        "counter",
        "Issues that were handed over.",
        &[("{result=\"success\"}", totals.hand_offs)],
    );
    family("pulls_merged_total", "counter", "Pull requests that were merged.", &[("", totals.merged)]);
    family("parked_total", "counter", "Issues that were parked.", &[("", totals.parked)]);
    family("webhooks_total", "counter", "Signed deliveries that were accepted.", &[("", counts.webhooks)]);
    let build = format!("{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"));
    family("build_info", "gauge", "Version of the program.", &[(&build, 1)]);
    counts.plans.write(&mut text, "hangar_orchestrator_plan", "Decisions what to do next.");
    counts.ticks.write(&mut text, "hangar_orchestrator_tick", "Decisions with what they write down.");
    text
}
