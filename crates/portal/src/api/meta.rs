//! Description of the portal, and the login with its token.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::input::Json;
use super::settings::aside;
use super::{Endpoint, Of, get, post};
use crate::problem::Problem;
use crate::settings::Appearance;

/// Largest body of a login, which comes from anyone: the longest token, escaped.
const LOGIN_BODY: usize = 32 << 10;
/// Delay of the answer to a wrong token, which slows guessing.
const WRONG_TOKEN_TIME: Duration = Duration::from_millis(500);

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        get("/api/v1/meta", "Describe the portal", meta).answers::<Meta>(200).open(),
        post("/api/v1/login", "Log in with the token and get a cookie", login)
            .body::<Login>()
            .empty(204)
            .limit(LOGIN_BODY)
            .open(),
        post("/api/v1/logout", "Log out", logout).empty(204),
    ]
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Meta {
    version: String,
    token_required: bool,
    authenticated: bool,
    /// Look of the pages, for browsers that have not chosen one.
    appearance: Appearance,
    /// The rest is for those who may see it.
    #[serde(flatten)]
    inside: Option<Inside>,
}

#[skip_serializing_none]
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Inside {
    home: String,
    repo_root: String,
    /// Default working directory of sessions.
    workspace: String,
    test: bool,
    /// Whether it shows the sessions of a fleet.
    fleet: bool,
    entry: Option<Entry>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "InstalledEntry")]
struct Entry {
    path: String,
}

async fn meta(State(app): Of, headers: HeaderMap) -> axum::Json<Meta> {
    let authenticated = app.guard.is_authenticated(&headers);
    let about = &app.about;
    let inside = authenticated.then(|| Inside {
        home: about.home.display().to_string(),
        repo_root: about.repo_root.display().to_string(),
        workspace: about.workspace.display().to_string(),
        test: about.test,
        fleet: app.fleet.is_some(),
        entry: app.runs.entry_path().map(|path| Entry { path: path.display().to_string() }),
    });
    let appearance = match app.settings.as_ref().map(|parts| Arc::clone(&parts.settings)) {
        // A page in the usual look is better than none.
        Some(host) => aside(move || host.appearance()).await.unwrap_or_default(),
        None => Appearance::default(),
    };
    axum::Json(Meta {
        appearance,
        version: about.version.clone(),
        token_required: app.guard.needs_token(),
        authenticated,
        inside,
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Login {
    token: String,
}

async fn login(State(app): Of, Json(Login { token }): Json<Login>) -> Result<Response, Problem> {
    let Some(cookie) = app.guard.cookie() else { return Ok(StatusCode::NO_CONTENT.into_response()) };
    if !app.guard.is_token(&token) {
        tokio::time::sleep(WRONG_TOKEN_TIME).await;
        return Err(Problem::new(
            StatusCode::UNAUTHORIZED,
            "wrong_token",
            "this is not the token that the portal was started with",
        ));
    }
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response())
}

async fn logout(State(app): Of) -> Response {
    (StatusCode::NO_CONTENT, [(header::SET_COOKIE, app.guard.no_cookie())]).into_response()
}
