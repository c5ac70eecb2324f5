//! The machines of a fleet.

use std::sync::Arc;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::input::{Json, Name};
use super::{App, Endpoint, Of, get, post};
use crate::fleet::{FleetHost, FleetView, WorkerMode};
use crate::problem::Problem;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        get("/api/v1/fleet", "Get the fleet: its servers, its workers, its orders", view)
            .answers::<FleetView>(200),
        post("/api/v1/fleet/workers/{name}/mode", "Cordon, uncordon or drain a worker", set_mode)
            .body::<NewMode>()
            .empty(202),
    ]
}

fn fleet(app: &App) -> Result<Arc<dyn FleetHost>, Problem> {
    app.fleet.clone().ok_or_else(|| {
        Problem::new(
            StatusCode::NOT_FOUND,
            "no_fleet",
            "this portal has no fleet; start one with: hangar up --fleet URL",
        )
    })
}

async fn view(State(app): Of) -> Result<Answer<FleetView>, Problem> {
    Ok(Answer(fleet(&app)?.view()))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewWorkerMode")]
struct NewMode {
    mode: WorkerMode,
}

async fn set_mode(
    State(app): Of,
    Name(name): Name,
    Json(NewMode { mode }): Json<NewMode>,
) -> Result<StatusCode, Problem> {
    let set = fleet(&app)?.set_mode(&name, mode).await;
    let failed = |why| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "fleet_unavailable", why);
    match set.map_err(failed)? {
        true => Ok(StatusCode::ACCEPTED),
        false => Err(Problem::new(
            StatusCode::NOT_FOUND,
            "worker_not_found",
            format!("there is no worker `{name}`; GET /api/v1/fleet lists those that there are"),
        )),
    }
}
