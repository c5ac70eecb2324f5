//! Permissions: answers to questions, and the rules by which there are questions at all.

use hangar_agent::permissions::Approval;
use hangar_agent::session::Command;
use hangar_protocol::permission::{PermissionOutcome, PermissionRequest};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Failure, Method, Reply};

pub(super) const METHODS: &[Method] = &[
    Method {
        name: "session.permissions.handlePendingPermissionRequest",
        run: |call| Box::pin(handle_pending(call)),
    },
    Method { name: "session.permissions.pendingRequests", run: |call| Box::pin(pending(call)) },
    Method { name: "session.permissions.setApproveAll", run: |call| Box::pin(set_approve_all(call)) },
    Method { name: "session.permissions.resetSessionApprovals", run: |call| Box::pin(reset(call)) },
    Method { name: "session.permissions.notifyPromptShown", run: |call| Box::pin(acknowledge(call)) },
    Method { name: "session.permissions.setRequired", run: |call| Box::pin(acknowledge(call)) },
    Method { name: "session.permissions.getMode", run: |call| Box::pin(get_mode(call)) },
    Method { name: "session.permissions.setMode", run: |call| Box::pin(set_mode(call)) },
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnswerParams {
    request_id: String,
    result: Value,
}

async fn handle_pending(call: Call) -> Result<Reply, Failure> {
    let params: AnswerParams = call.params()?;
    let live = call.live()?;
    let answered = live
        .ask(move |task| {
            let pending = task.driver.pending_permissions();
            let Some(asked) = pending.into_iter().find(|asked| asked.request_id == params.request_id) else {
                return Ok(false);
            };
            let mut answer = outcome(&params.result, &asked.request)?;
            if let Some(approval) = sampling(&answer) {
                // The published events know no approval of sampling: the call is approved, and the rest is ours to keep.
                task.driver.session_mut().policy_mut().approvals.push(approval);
                answer = PermissionOutcome::Approved {};
            }
            if params.result["kind"] == "approve-permanently"
                && let Some(domain) = params.result["domain"].as_str()
            {
                let approval = Approval::Url { domain: domain.to_owned() };
                task.driver.session_mut().policy_mut().approvals.push(approval);
            }
            task.command(Command::AnswerPermission { request_id: asked.request_id, answer });
            Ok(true)
        })
        .await?
        .map_err(Failure::Params)?;
    Reply::did(answered)
}

/// The approval of a server's wish to ask the model, if an answer gives one.
fn sampling(answer: &PermissionOutcome) -> Option<Approval> {
    let (PermissionOutcome::ApprovedForSession { approval }
    | PermissionOutcome::ApprovedForLocation { approval, .. }) = answer
    else {
        return None;
    };
    Approval::parse(approval).filter(|approval| matches!(approval, Approval::McpSampling { .. }))
}

/// What an answer means for the request it answers.
fn outcome(result: &Value, request: &PermissionRequest) -> Result<PermissionOutcome, String> {
    let kind = result["kind"].as_str().ok_or("the result has no `kind`")?;
    Ok(match kind {
        "approve-once" | "approve-permanently" => PermissionOutcome::Approved {},
        "approve-for-session" => PermissionOutcome::ApprovedForSession {
            approval: match (&result["approval"], &result["domain"]) {
                (approval @ Value::Object(_), _) => approval.clone(),
                (_, Value::String(domain)) => json!({ "kind": "url", "domain": domain }),
                _ => Approval::covering(request),
            },
        },
        "approve-for-location" => PermissionOutcome::ApprovedForLocation {
            approval: match &result["approval"] {
                approval @ Value::Object(_) => approval.clone(),
                _ => Approval::covering(request),
            },
            location_key: result["locationKey"].as_str().unwrap_or_default().to_owned(),
        },
        "reject" => PermissionOutcome::DeniedInteractivelyByUser {
            feedback: result["feedback"].as_str().map(str::to_owned),
            // A refusal that says nothing leaves the model nothing to go on with.
            force_reject: result["forceReject"]
                .as_bool()
                .or_else(|| result["feedback"].is_null().then_some(true)),
        },
        "user-not-available" => PermissionOutcome::DeniedNoApprovalRuleAndCouldNotRequestFromUser {},
        // The names of what a decision leads to are taken for the decision.
        _ => serde_json::from_value(result.clone()).map_err(|_| format!("`{kind}` is not a decision"))?,
    })
}

async fn pending(call: Call) -> Result<Reply, Failure> {
    let live = call.live()?;
    let pending = live.ask(|task| task.driver.pending_permissions()).await?;
    let items: Vec<Value> = pending
        .iter()
        .map(|asked| json!({ "requestId": asked.request_id, "request": asked.request.prompt() }))
        .collect();
    Reply::of(json!({ "items": items }))
}

async fn set_approve_all(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        enabled: bool,
    }
    let params: Params = call.params()?;
    let live = call.live()?;
    live.ask(move |task| approve_all(task, params.enabled)).await?;
    Reply::success()
}

async fn reset(call: Call) -> Result<Reply, Failure> {
    let live = call.live()?;
    live.ask(|task| task.driver.session_mut().policy_mut().approvals.clear()).await?;
    Reply::success()
}

async fn acknowledge(call: Call) -> Result<Reply, Failure> {
    call.live()?;
    Reply::success()
}

async fn get_mode(call: Call) -> Result<Reply, Failure> {
    let live = call.live()?;
    let all = live.ask(|task| task.session().config().policy.allow_all_tools).await?;
    Reply::of(json!({ "mode": if all { "allow-all" } else { "manual" } }))
}

async fn set_mode(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        mode: String,
    }
    let params: Params = call.params()?;
    let all = match params.mode.as_str() {
        "allow-all" => true,
        "manual" => false,
        other => return Err(Failure::new(format!("`{other}` is not a permission mode that is there"))),
    };
    let live = call.live()?;
    live.ask(move |task| approve_all(task, all)).await?;
    Reply::of(json!({ "success": true, "mode": params.mode }))
}

fn approve_all(task: &mut crate::task::SessionTask, all: bool) {
    let policy = task.driver.session_mut().policy_mut();
    policy.allow_all_tools = all;
    policy.allow_all_paths = all;
    policy.allow_all_urls = all;
}
