//! Costs, and budgets that a person raises.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use hangar_registry::error::RegistryError;
use hangar_registry::ledger::{Costs, CostsBy, CostsQuery};
use hangar_registry::queue::{BudgetKind, BudgetScope, QueueView};
use schemars::JsonSchema;
use serde::Deserialize;

use super::input::{Json, Query};
use super::{App, Endpoint, Of, get, post};
use crate::problem::Problem;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        get("/api/v1/costs", "Sum up what all agents used and cost", costs)
            .query::<Asked>()
            .answers::<Costs>(200),
        post("/api/v1/budgets/raise", "Raise a budget of today or of a run", raise)
            .body::<Raise>()
            .answers::<QueueView>(200),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "CostsQuery")]
struct Asked {
    /// Default: day.
    by: Option<CostsBy>,
    /// First day, such as `2026-11-01`.
    since: Option<String>,
    /// Last day.
    until: Option<String>,
}

/// Does something with files, which must not hold others up.
async fn aside<T: Send + 'static>(
    app: &App,
    work: impl FnOnce(&App) -> Result<T, String> + Send + 'static,
) -> Result<T, Problem> {
    let app = app.clone();
    let done = tokio::task::spawn_blocking(move || work(&app)).await;
    let done = done.map_err(|error| RegistryError::Store(error.to_string()))?;
    Ok(done.map_err(RegistryError::Store)?)
}

async fn costs(State(app): Of, Query(asked): Query<Asked>) -> Result<Answer<Costs>, Problem> {
    for day in [&asked.since, &asked.until].into_iter().flatten() {
        if day.parse::<jiff::civil::Date>().is_err() {
            return Err(Problem::invalid(format!("`{day}` is not a day such as 2026-11-01")));
        }
    }
    let query = CostsQuery { by: asked.by.unwrap_or_default(), since: asked.since, until: asked.until };
    let found = aside(&app, move |app| {
        app.hub.ledger().collect().map_err(|error| error.to_string())?;
        Ok(app.hub.ledger().costs(&query))
    });
    Ok(Answer(found.await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "BudgetRaise")]
struct Raise {
    /// `run`, `agent`, `project` or `day`.
    kind: String,
    /// Run, agent or project; empty for the day.
    #[serde(default)]
    name: String,
    #[schemars(range(min = 0))]
    usd: f64,
}

async fn raise(State(app): Of, Json(wanted): Json<Raise>) -> Result<Answer<QueueView>, Problem> {
    let kind: BudgetKind = wanted.kind.parse().map_err(Problem::invalid)?;
    if !wanted.usd.is_finite() || wanted.usd <= 0.0 {
        return Err(Problem::invalid("`usd` must be a number of US dollars above 0"));
    }
    let scope = BudgetScope::new(kind, &wanted.name);
    let raised = aside(&app, move |app| {
        let scheduler = app.hub.scheduler();
        let raised = scheduler.raise(&scope, wanted.usd).map_err(|error| error.to_string())?;
        Ok((raised, scheduler.view().map_err(|error| error.to_string())?))
    });
    match raised.await? {
        (true, view) => Ok(Answer(view)),
        (false, _) => Err(Problem::new(
            StatusCode::NOT_FOUND,
            "budget_not_found",
            "there is no such budget; [budgets] in config.toml sets one",
        )),
    }
}
