//! Agents and what they can be asked to use.

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json as Answer};
use hangar_runtimes::runtime::OfferedModel;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::input::{Name, Query};
use super::{App, Endpoint, Of, get};
use crate::guard::ChangePermit;
use crate::problem::Problem;
use crate::roster::RosterEntry;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        get("/api/v1/runtimes", "List agents, default first", list).query::<Check>().answers::<Listed>(200),
        get("/api/v1/runtimes/{name}/models", "List the models of an agent", models).answers::<Models>(200),
        get("/api/v1/models", "List the models of the default agent", default_models).answers::<Models>(200),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RuntimeQuery")]
struct Check {
    /// Check the agents again instead of returning the last result.
    #[serde(default)]
    check: bool,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RuntimeList")]
struct Listed {
    runtimes: Vec<RosterEntry>,
}

async fn list(
    State(app): Of,
    Extension(changes): Extension<ChangePermit>,
    Query(Check { check }): Query<Check>,
) -> Result<Answer<Listed>, Problem> {
    if check {
        may_start(changes)?;
        app.roster.look().await;
    } else if !app.roster.is_known() {
        // RunNews on the stream of resources when it is known.
        let (roster, hub) = (std::sync::Arc::clone(&app.roster), app.hub.clone());
        app.hub.spawn(async move {
            // A portal that stops does not wait for programs that were only looked at.
            tokio::select! {
                () = roster.look() => {}
                () = hub.stopping().cancelled() => {}
            }
        });
    }
    Ok(Answer(Listed { runtimes: app.roster.list() }))
}

/// Checks that a request may start the programs of agents.
fn may_start(changes: ChangePermit) -> Result<(), Problem> {
    match changes {
        ChangePermit::Admitted => Ok(()),
        ChangePermit::Refused => {
            Err(Problem::new(StatusCode::FORBIDDEN, "cross_origin", ChangePermit::REFUSAL))
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ModelList")]
struct Models {
    /// `null` if unknown: any name may work.
    #[schemars(with = "Option<Vec<ModelShape>>")]
    models: Option<Vec<OfferedModel>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

// `OfferedModel` of another crate as it is serialized.
/// A model that an agent can use.
#[skip_serializing_none]
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "OfferedModel")]
struct ModelShape {
    id: String,
    name: Option<String>,
    provider: Option<String>,
    /// Number of GitHub premium requests that one request counts for.
    multiplier: Option<f64>,
}

async fn models(
    State(app): Of,
    Extension(changes): Extension<ChangePermit>,
    Name(name): Name,
) -> Result<Answer<Models>, Problem> {
    may_start(changes)?;
    offered(&app, Some(&name)).await
}

async fn default_models(
    State(app): Of,
    Extension(changes): Extension<ChangePermit>,
) -> Result<Answer<Models>, Problem> {
    may_start(changes)?;
    offered(&app, None).await
}

async fn offered(app: &App, name: Option<&str>) -> Result<Answer<Models>, Problem> {
    let models = app.roster.models(name).await?;
    let problem = models
        .is_none()
        .then(|| "the agent does not say which models it can use; any name that it knows works".to_owned());
    Ok(Answer(Models { models, problem }))
}
