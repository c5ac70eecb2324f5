//! Permissions: answers to questions, and the rules by which there are questions at all.

use std::path::Path;

use hangar_agent::permissions::SessionApproval;
use hangar_agent::session::{Command, PendingPermission};
use hangar_protocol::data::{PermissionCompleted, PermissionMode};
use hangar_protocol::permission::{PermissionOutcome, PermissionRequest};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Failure, Method, Reply};
use crate::locations::{self, PermissionLocation};
use crate::task::SessionTask;

pub(super) const METHODS: &[Method] = &[
    Method {
        name: "session.permissions.handlePendingPermissionRequest",
        run: |call| Box::pin(handle_pending(call)),
    },
    Method { name: "session.permissions.pendingRequests", run: |call| Box::pin(pending(call)) },
    Method { name: "session.permissions.setApproveAll", run: |call| Box::pin(set_approve_all(call)) },
    Method { name: "session.permissions.resetSessionApprovals", run: |call| Box::pin(reset(call)) },
    Method { name: "session.permissions.notifyPromptShown", run: |call| Box::pin(acknowledge(call)) },
    Method { name: "session.permissions.setRequired", run: |call| Box::pin(set_required(call)) },
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
            let own = task.asked.pending().find(|asked| asked.request_id == params.request_id).cloned();
            let pending = task.engine.driver().pending_permissions();
            let of_turn = pending.into_iter().find(|asked| asked.request_id == params.request_id);
            let outside = own.is_some();
            let Some(asked) = own.or(of_turn) else { return Ok(false) };
            let mut answer = outcome(&params.result, &asked.request)?;
            if let Some(approval) = sampling(&answer) {
                // The published events know no approval of sampling: the call is approved, and the rest is ours to keep.
                task.engine.driver_mut().session_mut().policy_mut().approvals.push(approval);
                answer = PermissionOutcome::Approved {};
            }
            if params.result["kind"] == "approve-permanently"
                && let Some(domain) = params.result["domain"].as_str()
            {
                let approval = SessionApproval::Url { domain: domain.to_owned() };
                task.engine.driver_mut().session_mut().policy_mut().approvals.push(approval);
            }
            if outside {
                return Ok(answer_outside(task, &asked, answer));
            }
            task.command(Command::AnswerPermission { request_id: asked.request_id, answer });
            Ok(true)
        })
        .await?
        .map_err(Failure::Params)?;
    Reply::did(answered)
}

/// Approval of sampling, if an answer contains one.
fn sampling(answer: &PermissionOutcome) -> Option<SessionApproval> {
    let (PermissionOutcome::ApprovedForSession { approval }
    | PermissionOutcome::ApprovedForLocation { approval, .. }) = answer
    else {
        return None;
    };
    SessionApproval::parse(approval)
        .filter(|approval| matches!(approval, SessionApproval::McpSampling { .. }))
}

/// Answers a question about a call that is part of no turn.
pub(crate) fn answer_outside(
    task: &mut SessionTask,
    asked: &PendingPermission,
    answer: PermissionOutcome,
) -> bool {
    if let PermissionOutcome::ApprovedForSession { approval }
    | PermissionOutcome::ApprovedForLocation { approval, .. } = &answer
    {
        task.engine
            .driver_mut()
            .session_mut()
            .policy_mut()
            .approvals
            .extend(SessionApproval::parse(approval));
    }
    task.record(PermissionCompleted {
        request_id: asked.request_id.clone(),
        tool_call_id: asked.request.tool_call_id().map(str::to_owned),
        result: answer.clone(),
    });
    task.asked.answer(&asked.request_id, answer)
}

/// Outcome of a permission request, parsed from a client's answer.
fn outcome(result: &Value, request: &PermissionRequest) -> Result<PermissionOutcome, String> {
    let kind = result["kind"].as_str().ok_or("the result has no `kind`")?;
    Ok(match kind {
        "approve-once" | "approve-permanently" => PermissionOutcome::Approved {},
        "approve-for-session" => PermissionOutcome::ApprovedForSession {
            approval: match (&result["approval"], &result["domain"]) {
                (approval @ Value::Object(_), _) => approval.clone(),
                (_, Value::String(domain)) => json!({ "kind": "url", "domain": domain }),
                _ => SessionApproval::covering(request),
            },
        },
        "approve-for-location" => PermissionOutcome::ApprovedForLocation {
            approval: match &result["approval"] {
                approval @ Value::Object(_) => approval.clone(),
                _ => SessionApproval::covering(request),
            },
            location_key: result["locationKey"].as_str().unwrap_or_default().to_owned(),
        },
        "reject" => PermissionOutcome::DeniedInteractivelyByUser {
            feedback: result["feedback"].as_str().map(str::to_owned),
            // A refusal without a reason does not help the model.
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
    let pending = live
        .ask(|task| {
            let mut pending = task.engine.driver().pending_permissions();
            pending.extend(task.asked.pending().cloned());
            pending
        })
        .await?;
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
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        /// Whether approvals for the directory are removed too.
        include_location: Option<bool>,
    }
    let params: Params = call.params()?;
    let live = call.live()?;
    let home = call.hub.home();
    live.ask(move |task| {
        let kept: Vec<SessionApproval> = match params.include_location {
            Some(false) => {
                let location = PermissionLocation::of(Path::new(&task.cwd()));
                locations::approvals(&home, &location.key).iter().filter_map(SessionApproval::parse).collect()
            }
            Some(true) | None => Vec::new(),
        };
        let approvals = &mut task.engine.driver_mut().session_mut().policy_mut().approvals;
        approvals.retain(|approval| kept.contains(approval));
    })
    .await?;
    Reply::success()
}

/// Sets whether this client is asked for permissions.
async fn set_required(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        required: bool,
    }
    let params: Params = call.params()?;
    let live = call.live()?;
    live.audience.ask_for_permissions(call.client.id, params.required);
    live.ask(SessionTask::refresh).await?;
    Reply::success()
}

async fn acknowledge(call: Call) -> Result<Reply, Failure> {
    call.live()?;
    Reply::success()
}

async fn get_mode(call: Call) -> Result<Reply, Failure> {
    Reply::of(json!({ "mode": call.live()?.ask(|task| mode_of(task)).await? }))
}

pub(super) fn mode_of(task: &SessionTask) -> PermissionMode {
    task.engine.permission_mode()
}

async fn set_mode(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        mode: String,
    }
    let params: Params = call.params()?;
    let Ok(mode) = serde_json::from_value::<PermissionMode>(json!(params.mode)) else {
        return Err(Failure::new(format!("Unsupported permission mode `{}`.", params.mode)));
    };
    let (done, mode) = call.live()?.ask(move |task| (change_mode(task, mode), mode_of(task))).await?;
    Reply::of(json!({ "success": done, "mode": mode }))
}

/// Sets the permission mode and publishes it. False for an unknown mode.
pub(super) fn change_mode(task: &mut SessionTask, mode: PermissionMode) -> bool {
    let changed = task.engine.set_permission_mode(mode);
    task.attempt(|_| changed).unwrap_or(false)
}

fn approve_all(task: &mut SessionTask, all: bool) {
    task.engine.policy_mut().set_allow_all(all);
}
