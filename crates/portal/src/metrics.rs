//! `/metrics` in the text format of Prometheus, `/livez` and `/readyz`.
//!
//! Names of metrics are an interface: `docs/metrics.md` has all of them, and a test holds that file and the dashboard of
//! `deploy/grafana.json` against the table here.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use hangar_registry::queue::{QueueMode, QueueView};
use jiff::Timestamp;

use crate::api::App;
use crate::fleet::{FleetView, FleetWorker};
use crate::problem::Problem;

/// Series of one metric that are written. More would be names that somebody makes up.
const MOST_SERIES: usize = 1000;

/// Name, type and meaning of each metric.
const METRICS: [(&str, &str, &str); 30] = [
    ("hangar_build_info", "gauge", "Version of the program; the value is 1."),
    ("hangar_sessions_open", "gauge", "Sessions that are open in this portal, by state."),
    ("hangar_approvals_open", "gauge", "Questions of agents that wait for a person."),
    ("hangar_queue_mode", "gauge", "1 for the current mode of the queue: open, paused or draining."),
    ("hangar_queue_slots_used", "gauge", "Slots that are taken."),
    ("hangar_queue_slots_limit", "gauge", "Slots in all."),
    ("hangar_queue_waiting", "gauge", "Items that wait."),
    ("hangar_queue_oldest_wait_seconds", "gauge", "Age of the oldest item that waits."),
    ("hangar_queue_scope_used", "gauge", "Slots taken of a limit, by kind and name."),
    ("hangar_queue_scope_limit", "gauge", "Slots of a limit, by kind and name."),
    ("hangar_account_held", "gauge", "1 for each provider account that is held."),
    ("hangar_budget_limit_dollars", "gauge", "Budget with its raises, by kind and name."),
    ("hangar_budget_spent_dollars", "gauge", "Known cost of a budget's work."),
    ("hangar_budget_reserved_dollars", "gauge", "Reservations of work that runs."),
    ("hangar_budget_held", "gauge", "1 if a budget holds work, else 0."),
    ("hangar_model_calls_total", "counter", "Model calls, by agent and model."),
    (
        "hangar_model_tokens_total",
        "counter",
        "Tokens, by agent, model and type: input, output, cache_read, cache_write, reasoning.",
    ),
    ("hangar_model_cost_dollars_total", "counter", "Known cost of model calls, by agent and model."),
    (
        "hangar_model_unpriced_calls_total",
        "counter",
        "Model calls whose cost is not known, by agent and model.",
    ),
    ("hangar_fleet_connected", "gauge", "1 if the portal is connected to the servers of its fleet, else 0."),
    ("hangar_fleet_orders_waiting", "gauge", "Sessions whose orders wait for a worker."),
    ("hangar_fleet_oldest_order_seconds", "gauge", "Age of the order that waits longest."),
    ("hangar_fleet_leases", "gauge", "Sessions that workers have, each with a lease."),
    ("hangar_fleet_parked", "gauge", "Sessions whose orders were given up."),
    ("hangar_fleet_workers", "gauge", "Workers, by state."),
    ("hangar_fleet_worker_slots", "gauge", "Slots of a worker."),
    ("hangar_fleet_worker_busy", "gauge", "Slots of a worker that are taken."),
    ("hangar_fleet_worker_heartbeat_age_seconds", "gauge", "Time since the last heartbeat of a worker."),
    ("hangar_fleet_takeovers_total", "counter", "Sessions that a worker took over from lost ones."),
    ("hangar_fleet_append_seconds", "gauge", "Time of the last append of a worker to a log."),
];

/// Text of one scrape.
struct Text {
    out: String,
}

impl Text {
    /// Writes all series of a metric. Labels are pairs of name and value.
    fn metric(&mut self, name: &str, series: impl IntoIterator<Item = (Vec<(&'static str, String)>, f64)>) {
        let Some((_, kind, help)) = METRICS.iter().find(|(known, _, _)| *known == name) else { return };
        // Writing to a string does not fail.
        let _ = writeln!(self.out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in series.into_iter().take(MOST_SERIES) {
            let labels: Vec<String> =
                labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
            let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            let _ = writeln!(self.out, "{name}{labels} {value}");
        }
    }

    fn one(&mut self, name: &str, value: f64) {
        self.metric(name, [(Vec::new(), value)]);
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

pub(crate) async fn metrics(State(app): State<App>) -> Response {
    let scraped = tokio::task::spawn_blocking(move || scrape(&app)).await;
    match scraped {
        Ok(Ok(text)) => {
            ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
        }
        Ok(Err(error)) => unready(error),
        Err(error) => unready(error.to_string()),
    }
}

fn unready(why: String) -> Response {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", why).into_response()
}

fn scrape(app: &App) -> Result<String, String> {
    let queue = app.hub.scheduler().view_of(1).map_err(|error| error.to_string())?;
    let mut text = Text { out: String::new() };
    text.metric("hangar_build_info", [(vec![("version", app.about.version.clone())], 1.0)]);
    let states = app.hub.open_states().into_iter();
    text.metric("hangar_sessions_open", states.map(|(state, count)| (vec![("state", state)], count as f64)));
    text.one("hangar_approvals_open", app.hub.approvals().len() as f64);
    of_queue(&mut text, &queue, app.hub.now());
    of_ledger(&mut text, app);
    if let Some(fleet) = &app.fleet {
        of_fleet(&mut text, &fleet.view());
    }
    Ok(text.out)
}

fn of_fleet(text: &mut Text, fleet: &FleetView) {
    text.one("hangar_fleet_connected", f64::from(u8::from(fleet.connected)));
    text.one("hangar_fleet_orders_waiting", fleet.orders_waiting as f64);
    text.one("hangar_fleet_oldest_order_seconds", fleet.oldest_order_seconds.unwrap_or_default());
    text.one("hangar_fleet_leases", fleet.sessions_running as f64);
    text.one("hangar_fleet_parked", fleet.sessions_parked as f64);
    let mut states: BTreeMap<&str, u32> = BTreeMap::new();
    fleet.workers.iter().for_each(|worker| *states.entry(&worker.state).or_default() += 1);
    let states =
        states.into_iter().map(|(state, count)| (vec![("state", state.to_owned())], f64::from(count)));
    text.metric("hangar_fleet_workers", states);
    // Those that have gone say nothing about the fleet as it is.
    let there = || fleet.workers.iter().filter(|worker| worker.state != "gone");
    let of = |worker: &FleetWorker| vec![("worker", worker.name.clone())];
    text.metric("hangar_fleet_worker_slots", there().map(|worker| (of(worker), f64::from(worker.slots))));
    text.metric("hangar_fleet_worker_busy", there().map(|worker| (of(worker), f64::from(worker.busy))));
    text.metric(
        "hangar_fleet_worker_heartbeat_age_seconds",
        there().map(|worker| (of(worker), worker.seconds_since_heartbeat as f64)),
    );
    text.metric("hangar_fleet_takeovers_total", there().map(|worker| (of(worker), worker.takeovers as f64)));
    let appends = there().filter_map(|worker| Some((of(worker), worker.append_ms? / 1000.0)));
    text.metric("hangar_fleet_append_seconds", appends);
}

fn of_queue(text: &mut Text, queue: &QueueView, now: Timestamp) {
    let modes = [("open", QueueMode::Open), ("paused", QueueMode::Paused), ("draining", QueueMode::Draining)];
    let current = |mode: QueueMode| f64::from(u8::from(queue.mode == mode));
    text.metric(
        "hangar_queue_mode",
        modes.map(|(name, mode)| (vec![("mode", name.to_owned())], current(mode))),
    );
    text.one("hangar_queue_slots_used", f64::from(queue.slots.used));
    text.one("hangar_queue_slots_limit", f64::from(queue.slots.limit));
    text.one("hangar_queue_waiting", queue.waiting_count as f64);
    let oldest = queue.waiting.first().and_then(|item| item.enqueued_at.parse::<Timestamp>().ok());
    let age = oldest.map_or(0.0, |since| now.duration_since(since).as_secs_f64().max(0.0));
    text.one("hangar_queue_oldest_wait_seconds", age);
    let scope = |kind: &str, name: &str| vec![("kind", kind.to_owned()), ("name", name.to_owned())];
    let limits = || queue.limits.iter().map(|limit| (scope(&limit.kind, &limit.name), limit));
    text.metric("hangar_queue_scope_used", limits().map(|(labels, limit)| (labels, f64::from(limit.used))));
    text.metric("hangar_queue_scope_limit", limits().map(|(labels, limit)| (labels, f64::from(limit.limit))));
    let held = queue.held.iter().map(|held| (vec![("account", held.account.clone())], 1.0));
    text.metric("hangar_account_held", held);
    let budgets = || queue.budgets.iter().map(|budget| (scope(&budget.kind, &budget.name), budget));
    text.metric("hangar_budget_limit_dollars", budgets().map(|(labels, budget)| (labels, budget.limit_usd)));
    text.metric("hangar_budget_spent_dollars", budgets().map(|(labels, budget)| (labels, budget.spent_usd)));
    text.metric(
        "hangar_budget_reserved_dollars",
        budgets().map(|(labels, budget)| (labels, budget.reserved_usd)),
    );
    let is_held = |held: bool| f64::from(u8::from(held));
    text.metric(
        "hangar_budget_held",
        budgets().map(|(labels, budget)| (labels, is_held(budget.held.is_some()))),
    );
}

fn of_ledger(text: &mut Text, app: &App) {
    let total = app.hub.ledger().total();
    let labels = |agent: &String, model: &String| vec![("agent", agent.clone()), ("model", model.clone())];
    let series = |value: fn(&hangar_registry::ledger::Figures) -> f64| {
        total
            .iter()
            .map(move |(agent, model, figures)| (labels(agent, model), value(figures)))
            .collect::<Vec<_>>()
    };
    text.metric("hangar_model_calls_total", series(|figures| figures.calls as f64));
    let tokens = total.iter().flat_map(|(agent, model, figures)| {
        let types = [
            ("input", figures.input_tokens),
            ("output", figures.output_tokens),
            ("cache_read", figures.cache_read_tokens),
            ("cache_write", figures.cache_write_tokens),
            ("reasoning", figures.reasoning_tokens),
        ];
        types.map(|(kind, tokens)| {
            let mut labels = labels(agent, model);
            labels.push(("type", kind.to_owned()));
            (labels, tokens as f64)
        })
    });
    text.metric("hangar_model_tokens_total", tokens);
    text.metric("hangar_model_cost_dollars_total", series(|figures| figures.cost));
    text.metric("hangar_model_unpriced_calls_total", series(|figures| figures.unpriced as f64));
}

/// The process answers.
pub(crate) async fn livez() -> &'static str {
    "ok\n"
}

/// The queue and the store can be read, and nothing shuts down.
pub(crate) async fn readyz(State(app): State<App>) -> Response {
    if app.hub.stopping().is_cancelled() {
        return unready("the portal is shutting down".to_owned());
    }
    let looked = tokio::task::spawn_blocking(move || {
        app.hub.scheduler().view_of(0).map_err(|_| "the queue cannot be read")?;
        app.hub.store().ids().map_err(|_| "the sessions cannot be listed").map(drop)
    });
    match looked.await {
        Ok(Ok(())) => "ok\n".into_response(),
        Ok(Err(why)) => unready(why.to_owned()),
        Err(_) => unready("the portal is overloaded".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = include_str!("../../../docs/metrics.md");
    const DASHBOARD: &str = include_str!("../../../deploy/grafana.json");

    /// Names of metrics in a text.
    fn named(text: &str) -> std::collections::BTreeSet<&str> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.filter(|word| word.starts_with("hangar_")).collect()
    }

    #[test]
    fn the_document_has_every_metric_and_no_other() {
        let names: std::collections::BTreeSet<&str> = METRICS.iter().map(|(name, _, _)| *name).collect();
        assert_eq!(named(DOCUMENT), names);
    }

    #[test]
    fn the_dashboard_uses_metrics_that_there_are() {
        let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).unwrap();
        let used = named(DASHBOARD);
        let missing: Vec<&&str> =
            used.iter().filter(|used| !METRICS.iter().any(|(name, _, _)| name == *used)).collect();
        assert!(missing.is_empty(), "{missing:?}");
        let panels = dashboard["panels"].as_array().unwrap();
        assert!(panels.len() >= 6);
        for panel in panels {
            let expression = panel["targets"][0]["expr"].as_str().unwrap_or_default();
            assert!(expression.contains("hangar_"), "{panel}");
        }
    }

    #[test]
    fn labels_are_escaped() {
        assert_eq!(escaped("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }
}
