//! Issues: the board, one issue, what people do with it, and the workflow files.

use axum::Json as Answer;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::input::{self, Json, Name, Query};
use super::settings::parts;
use super::{Endpoint, Of, get, post, put};
use crate::issues::{
    BoardQuery, CandidateDiff, IssueBoard, IssueDetails, IssueOrder, IssueRefusal, WorkflowCheck,
    WorkflowDraft, WorkflowText,
};
use crate::problem::Problem;

/// Issues of a column, unless the client asks for another number.
const USUAL: u64 = 100;
const MOST: u64 = 1000;
/// Longest workflow and longest answer.
const MAX_BODY: usize = 512 << 10;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        get("/api/v1/issues", "List issues of all workflows, each with its column and why", board)
            .query::<Asked>()
            .answers::<IssueBoard>(200),
        get("/api/v1/issues/{workflow}/{issue}", "Get an issue with its pull request", issue)
            .answers::<IssueDetails>(200),
        get(
            "/api/v1/issues/{workflow}/{issue}/candidates/{candidate}/diff",
            "Get the changes of a candidate",
            diff,
        )
        .answers::<CandidateDiff>(200),
        post(
            "/api/v1/issues/{workflow}/{issue}/actions",
            "Start, stop, park, retry, move, answer, promote",
            act,
        )
        .body::<IssueOrder>()
        .answers::<IssueDetails>(200)
        .limit(MAX_BODY),
        get("/api/v1/workflows/{workflow}", "Get a workflow file", read).answers::<WorkflowText>(200),
        post("/api/v1/workflows/{workflow}/check", "Check a text, and render the prompt of an issue", check)
            .body::<WorkflowDraft>()
            .answers::<WorkflowCheck>(200)
            .limit(MAX_BODY),
        put("/api/v1/workflows/{workflow}", "Replace a workflow file", save)
            .body::<NewText>()
            .answers::<WorkflowText>(200)
            .limit(MAX_BODY),
    ]
}

fn refused(refusal: IssueRefusal) -> Problem {
    let (status, code, why) = match refusal {
        IssueRefusal::Missing(why) => (StatusCode::NOT_FOUND, "issue_not_found", why),
        IssueRefusal::Invalid(why) => (StatusCode::UNPROCESSABLE_ENTITY, "not_possible", why),
        IssueRefusal::Changed(why) => (StatusCode::CONFLICT, "changed_meanwhile", why),
        IssueRefusal::Unavailable(why) => (StatusCode::SERVICE_UNAVAILABLE, "tracker_unavailable", why),
    };
    Problem::new(status, code, why)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "IssuesQuery")]
struct Asked {
    /// Name of one workflow. Default: all.
    workflow: Option<String>,
    /// Maximum number of issues of a column. Default: 100.
    limit: Option<u64>,
}

async fn board(State(app): Of, Query(asked): Query<Asked>) -> Result<Answer<IssueBoard>, Problem> {
    let limit = usize::try_from(input::count(asked.limit, USUAL, MOST)?).unwrap_or(usize::MAX);
    let query = BoardQuery { workflow: asked.workflow, limit };
    Ok(Answer(parts(&app)?.issues.board(query).await.map_err(refused)?))
}

async fn issue(
    State(app): Of,
    Path((workflow, issue)): Path<(String, String)>,
) -> Result<Answer<IssueDetails>, Problem> {
    Ok(Answer(parts(&app)?.issues.issue(workflow, issue).await.map_err(refused)?))
}

async fn diff(
    State(app): Of,
    Path((workflow, issue, candidate)): Path<(String, String, String)>,
) -> Result<Answer<CandidateDiff>, Problem> {
    let number = candidate.parse::<u32>();
    let candidate = number.map_err(|_| {
        Problem::invalid(format!("`{candidate}` is not the number of a candidate; the first one is 1"))
    })?;
    Ok(Answer(parts(&app)?.issues.diff(workflow, issue, candidate).await.map_err(refused)?))
}

async fn act(
    State(app): Of,
    Path((workflow, issue)): Path<(String, String)>,
    Json(order): Json<IssueOrder>,
) -> Result<Answer<IssueDetails>, Problem> {
    Ok(Answer(parts(&app)?.issues.act(workflow, issue, order).await.map_err(refused)?))
}

async fn read(State(app): Of, Name(workflow): Name) -> Result<Answer<WorkflowText>, Problem> {
    Ok(Answer(parts(&app)?.workflows.read(workflow).await.map_err(refused)?))
}

async fn check(
    State(app): Of,
    Name(workflow): Name,
    Json(draft): Json<WorkflowDraft>,
) -> Result<Answer<WorkflowCheck>, Problem> {
    Ok(Answer(parts(&app)?.workflows.check(workflow, draft).await.map_err(refused)?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewWorkflowText")]
struct NewText {
    text: String,
    /// The version that the text is based on.
    revision: String,
}

async fn save(
    State(app): Of,
    Name(workflow): Name,
    Json(new): Json<NewText>,
) -> Result<Answer<WorkflowText>, Problem> {
    Ok(Answer(parts(&app)?.workflows.save(workflow, new.text, new.revision).await.map_err(refused)?))
}
