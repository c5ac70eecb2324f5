//! Settings and schedules.

use std::sync::Arc;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::input::{Json, Name};
use super::{App, Endpoint, Of, SettingsParts, get, patch, post};
use crate::problem::Problem;
use crate::settings::{
    AutomationHost, ProviderTest, SchedulesView, SettingsChange, SettingsHost, SettingsView,
};

/// Changes of one request.
const MOST_CHANGES: usize = 200;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        get("/api/v1/settings", "Get the settings; secrets are never shown", look)
            .answers::<SettingsView>(200),
        patch("/api/v1/settings", "Change settings, all or none", change)
            .body::<Changes>()
            .answers::<SettingsView>(200),
        post("/api/v1/settings/providers/{name}/test", "Ask a provider for its models", test)
            .answers::<ProviderTest>(200),
        get("/api/v1/schedules", "List schedules and hooks", schedules).answers::<SchedulesView>(200),
        post("/api/v1/schedules/{name}/run", "Start a schedule now", run_now).answers::<StartedRun>(202),
    ]
}

fn host(app: &App) -> Result<Arc<dyn SettingsHost>, Problem> {
    Ok(parts(app)?.settings)
}

pub(super) fn automation(app: &App) -> Result<Arc<dyn AutomationHost>, Problem> {
    Ok(parts(app)?.automation)
}

pub(super) fn parts(app: &App) -> Result<SettingsParts, Problem> {
    app.settings.clone().ok_or_else(|| {
        Problem::new(
            StatusCode::NOT_FOUND,
            "no_settings",
            "this server has no settings; `hangar up` serves them",
        )
    })
}

/// Reads and writes files, which must not hold others up.
pub(super) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "store_failed", error.to_string()))
}

async fn look(State(app): Of) -> Result<Answer<SettingsView>, Problem> {
    let host = host(&app)?;
    Ok(Answer(aside(move || host.view()).await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SettingsChanges")]
struct Changes {
    changes: Vec<SettingsChange>,
}

async fn change(
    State(app): Of,
    Json(Changes { changes }): Json<Changes>,
) -> Result<Answer<SettingsView>, Problem> {
    if changes.len() > MOST_CHANGES {
        return Err(Problem::invalid(format!("there are more than {MOST_CHANGES} changes")));
    }
    let host = host(&app)?;
    let done = aside(move || host.change(changes).map(|()| host.view())).await?;
    done.map(Answer).map_err(|problems| {
        let told = problems.into_iter().map(|problem| match problem.line {
            0 => problem.message,
            line => format!("config.toml:{line}: {}", problem.message),
        });
        let told: Vec<String> = told.collect();
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_settings", told.join("\n"))
    })
}

async fn test(State(app): Of, Name(name): Name) -> Result<Answer<ProviderTest>, Problem> {
    Ok(Answer(host(&app)?.test_provider(name).await))
}

async fn schedules(State(app): Of) -> Result<Answer<SchedulesView>, Problem> {
    let automation = automation(&app)?;
    Ok(Answer(aside(move || automation.schedules()).await?))
}

#[derive(Serialize, JsonSchema)]
struct StartedRun {
    run: String,
}

async fn run_now(State(app): Of, Name(name): Name) -> Result<(StatusCode, Answer<StartedRun>), Problem> {
    let started = automation(&app)?.run_schedule(&name);
    let refused = |why| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "not_started", why);
    Ok((StatusCode::ACCEPTED, Answer(StartedRun { run: started.map_err(refused)? })))
}
