//! Questions of agents.

use axum::Json as Answer;
use axum::extract::State;
use hangar_registry::approvals::{Approval, ApprovalReply};
use schemars::JsonSchema;
use serde::Serialize;

use super::input::{Json, Name};
use super::{Endpoint, Of, get, post};
use crate::problem::Problem;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        get("/api/v1/approvals", "List unanswered questions", list).answers::<Open>(200),
        post("/api/v1/approvals/{id}", "Answer a question, once", answer)
            .body::<ApprovalReply>()
            .answers::<Approval>(200),
    ]
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ApprovalList")]
struct Open {
    approvals: Vec<Approval>,
}

async fn list(State(app): Of) -> Answer<Open> {
    Answer(Open { approvals: app.hub.approvals() })
}

async fn answer(
    State(app): Of,
    Name(id): Name,
    Json(reply): Json<ApprovalReply>,
) -> Result<Answer<Approval>, Problem> {
    Ok(Answer(app.hub.answer(&id, reply).await?))
}
