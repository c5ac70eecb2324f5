//! One call of a tool for a client, outside of any turn. The same rules hold as for the model's calls.

use std::sync::Arc;
use std::time::Duration;

use hangar_agent::hook::{HookAnswer, HookKind};
use hangar_agent::permissions::{Grant, Verdict, ask_without_limits, texts};
use hangar_agent::tool::{
    Access, AccessRequest, Tool, ToolContext, ToolInput, ToolOutcome, ToolSchema, ToolStatus,
};
use hangar_agent::tool_hooks::{self, HookDecision, PermissionHookAnswer, PreToolUseAnswer};
use hangar_protocol::data::{PermissionRequested, ToolType};
use hangar_protocol::permission::{PermissionOutcome, PermissionRequest};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::{Call, Failure, Method, Reply};
use crate::hub::ServedSession;
use crate::task::SessionTask;

/// Timeout of a permission question, and of a tool.
const PATIENCE: Duration = Duration::from_secs(600);
/// Events of a tool that may wait to be recorded.
const PROGRESS: usize = 64;

pub(super) const METHODS: &[Method] =
    &[Method { name: "session.tools.execute", run: |call| Box::pin(execute(call)) }];

/// Decision about a call before it runs.
enum Decision {
    Open(Admitted),
    Shut(Box<ToolOutcome>),
    /// The hooks about permissions are asked first.
    Hooks(Box<AccessRequest>, Value),
    /// A client was asked and has not answered yet.
    PendingPermissions(oneshot::Receiver<PermissionOutcome>),
}

impl Decision {
    fn shut(outcome: ToolOutcome) -> Self {
        Self::Shut(Box::new(outcome))
    }
}

/// Approval that a call already has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PriorDecision {
    Nobody,
    /// The hooks about permissions, which had no opinion.
    PermissionHooks,
    /// Approved, unless a rule denies it.
    Approval,
}

async fn execute(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        name: String,
        #[serde(default)]
        arguments: Value,
        tool_call_id: Option<String>,
    }
    let Params { name, arguments, tool_call_id } = call.params()?;
    let live = call.live()?;
    if let Some(mcp) = live.ask(|task| task.mcp().cloned()).await? {
        mcp.ready().await;
    }
    let call_id = tool_call_id.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
    let arguments = if arguments.is_null() { json!({}) } else { arguments };
    let fields = tool_hooks::before(&name, &arguments);
    let before = match ask_hooks(&live, HookKind::PreToolUse, fields).await? {
        Some(answer) => PreToolUseAnswer::read(answer),
        None => PreToolUseAnswer::read(Ok(None)),
    };
    let arguments = before.arguments.unwrap_or(arguments);
    let prior = match before.decision {
        HookDecision::Open => PriorDecision::Nobody,
        HookDecision::Allow => PriorDecision::Approval,
        HookDecision::Deny(outcome) => return Reply::of(told(&outcome)),
        HookDecision::Ask { reason } => match confirm(&live, &name, &arguments, &call_id, reason).await? {
            Some(refused) => return Reply::of(told(&refused)),
            None => PriorDecision::Nobody,
        },
    };
    let (wanted, given) = (name.clone(), arguments.clone());
    let found = live
        .ask(move |task| {
            task.catch_up();
            let Some(tool) = task.tool(&wanted) else { return Err(missing(task, &wanted)) };
            let kind = match &tool.spec().input {
                ToolSchema::Function(_) | ToolSchema::Hosted => ToolType::Function,
                ToolSchema::Custom { .. } => ToolType::Custom,
            };
            Ok((tool, ToolInput { call_id, kind, arguments: given }))
        })
        .await?;
    let mut outcome = match found {
        Err(missing) => missing,
        Ok((tool, input)) => match admit(&live, &tool, &input, prior).await? {
            Err(refused) => return Reply::of(told(&refused)),
            Ok(admitted) => carry_out(&live, &tool, input, admitted).await?,
        },
    };
    if let Some(kind) = tool_hooks::after_kind(&outcome)
        && let Some(answer) =
            ask_hooks(&live, kind, tool_hooks::after(kind, &name, &arguments, &outcome)).await?
    {
        // No model is there to be told more than the result.
        tool_hooks::amend(&mut outcome, &name, kind, answer.ok().flatten());
    }
    Reply::of(told(&outcome))
}

/// Asks the hooks, and logs it. `None` if there are no hooks.
async fn ask_hooks(
    live: &ServedSession,
    kind: HookKind,
    fields: Value,
) -> Result<Option<HookAnswer>, Failure> {
    let asked = live.ask(move |task| task.attempt(|driver| driver.ask_hooks(kind, fields))).await?;
    let Some((request, answer)) = asked.flatten() else { return Ok(None) };
    let answer = tokio::select! {
        answer = answer => answer,
        () = live.ended() => return Err(ended()),
    };
    let said = answer.clone();
    live.ask(move |task| task.attempt(|driver| driver.hooks_answered(&request, &said))).await?;
    Ok(Some(answer))
}

fn ended() -> Failure {
    Failure::new("the session ended before the tool did")
}

/// Asks a person about a call, because a hook wants that. What comes back is the refusal, if it is one.
async fn confirm(
    live: &ServedSession,
    name: &str,
    arguments: &Value,
    call_id: &str,
    reason: Option<String>,
) -> Result<Option<ToolOutcome>, Failure> {
    let request = PermissionRequest::Hook {
        tool_call_id: Some(call_id.to_owned()),
        tool_name: name.to_owned(),
        tool_args: Some(arguments.clone()),
        hook_message: reason.clone(),
    };
    let asked = live
        .ask(move |task| task.session().config().clients.permissions.then(|| ask_somebody(task, request)))
        .await?;
    match asked {
        None => Ok(Some(tool_hooks::unconfirmed(reason.as_deref()))),
        Some(answer) => Ok(answered(answer).await),
    }
}

/// Grant of a call, and its inspected needs if it runs with limits.
struct Admitted {
    grant: Grant,
    limited: Option<PermissionRequest>,
}

impl Admitted {
    fn fully() -> Self {
        Self { grant: Grant::Full, limited: None }
    }
}

/// Asks for the permissions that a call needs; an error is the result of a refused call.
async fn admit(
    live: &ServedSession,
    tool: &Arc<dyn Tool>,
    input: &ToolInput,
    prior: PriorDecision,
) -> Result<Result<Admitted, ToolOutcome>, Failure> {
    let inspected = match tool.inspect_apart(input) {
        Some(apart) => apart.await,
        None => tool.inspect(input),
    };
    let access = match inspected {
        Err(outcome) => return Ok(Err(outcome)),
        Ok(Access::None) => return Ok(Ok(Admitted::fully())),
        Ok(Access::Needs(access)) => access,
    };
    decide(live, access, prior).await
}

/// Asks for a permission that is about no call.
pub(crate) async fn permit(
    live: &ServedSession,
    request: PermissionRequest,
) -> Result<Result<(), ToolOutcome>, Failure> {
    let access = Box::new(AccessRequest { request, reads: Vec::new(), writes: Vec::new() });
    Ok(decide(live, access, PriorDecision::Nobody).await?.map(|_| ()))
}

async fn decide(
    live: &ServedSession,
    mut access: Box<AccessRequest>,
    mut prior: PriorDecision,
) -> Result<Result<Admitted, ToolOutcome>, Failure> {
    loop {
        match live.ask(move |task| gate(task, access, prior)).await? {
            Decision::Open(admitted) => return Ok(Ok(admitted)),
            Decision::Shut(outcome) => return Ok(Err(*outcome)),
            Decision::PendingPermissions(answer) => {
                return Ok(answered(answer).await.map_or(Ok(Admitted::fully()), Err));
            }
            Decision::Hooks(asked_for, fields) => {
                let answer = ask_hooks(live, HookKind::PermissionRequest, fields).await?;
                prior = match PermissionHookAnswer::read(answer.unwrap_or(Ok(None))) {
                    PermissionHookAnswer::Open => PriorDecision::PermissionHooks,
                    PermissionHookAnswer::Allow => PriorDecision::Approval,
                    PermissionHookAnswer::Deny { message, .. } => {
                        let text = texts::denied_by_hook(Some(&message));
                        return Ok(Err(ToolOutcome::of(ToolStatus::Denied, text)));
                    }
                };
                access = asked_for;
            }
        }
    }
}

/// Waits for an answer; returns the refusal, if it is one.
async fn answered(answer: oneshot::Receiver<PermissionOutcome>) -> Option<ToolOutcome> {
    match tokio::time::timeout(PATIENCE, answer).await {
        Ok(Ok(
            PermissionOutcome::Approved {}
            | PermissionOutcome::ApprovedForSession { .. }
            | PermissionOutcome::ApprovedForLocation { .. },
        )) => None,
        Ok(Ok(PermissionOutcome::DeniedInteractivelyByUser { feedback, .. })) => {
            let text = texts::rejected_by_user(feedback.as_deref());
            Some(ToolOutcome::of(ToolStatus::Rejected, text))
        }
        _ => Some(ToolOutcome::of(ToolStatus::Denied, texts::NO_USER)),
    }
}

/// Runs a call. If its limits denied something, it runs again without them once a client approves that.
async fn carry_out(
    live: &ServedSession,
    tool: &Arc<dyn Tool>,
    input: ToolInput,
    admitted: Admitted,
) -> Result<ToolOutcome, Failure> {
    let mut outcome = run(live, tool, input.clone(), admitted.grant).await?;
    let (Some(blocked), Some(mut request)) = (outcome.blocked.take(), admitted.limited) else {
        return Ok(outcome);
    };
    ask_without_limits(&mut request, &blocked.from);
    let asked = live
        .ask(move |task| task.session().config().clients.permissions.then(|| ask_somebody(task, request)))
        .await?;
    match asked {
        None => {
            let text = texts::kept_from(&blocked.from, &outcome.text);
            Ok(ToolOutcome { status: ToolStatus::Denied, text, ..outcome })
        }
        Some(answer) => match answered(answer).await {
            Some(refused) => Ok(refused),
            None => run(live, tool, input, Grant::Full).await,
        },
    }
}

async fn run(
    live: &ServedSession,
    tool: &Arc<dyn Tool>,
    input: ToolInput,
    grant: Grant,
) -> Result<ToolOutcome, Failure> {
    let (progress, mut events) = mpsc::channel(PROGRESS);
    let cancel = CancellationToken::new();
    let _cancelled_when_dropped = cancel.clone().drop_guard();
    // A call outside of a turn is never hurried.
    let hurry = CancellationToken::new();
    let running = tool.run(input, ToolContext { grant, cancel, hurry, progress });
    let recording = async {
        while let Some(event) = events.recv().await {
            // A session that is over hears nothing more.
            let _ = live.ask(move |task| task.record(*event)).await;
        }
    };
    let both = async { tokio::join!(running, recording).0 };
    tokio::select! {
        outcome = tokio::time::timeout(PATIENCE, both) => Ok(outcome.unwrap_or_else(|_| {
            ToolOutcome::of(ToolStatus::Timeout, "The tool took too long and was stopped.")
        })),
        () = live.ended() => Err(ended()),
    }
}

fn missing(task: &SessionTask, name: &str) -> ToolOutcome {
    let names: Vec<&str> = task.session().config().tools.iter().map(|tool| tool.name.as_str()).collect();
    let text =
        format!("Tool '{name}' does not exist. Available tools that can be called are {}.", names.join(", "));
    let mut outcome = ToolOutcome::of(ToolStatus::Failure, text);
    outcome.error = Some(format!("Tool '{name}' does not exist."));
    outcome
}

/// Decides about a call: mode, hooks, rules and people, in this order, as for calls of the model.
fn gate(task: &mut SessionTask, access: Box<AccessRequest>, prior: PriorDecision) -> Decision {
    if let Some(refused) = task.session().refused_by_mode(&access) {
        return Decision::shut(refused);
    }
    let config = task.session().config();
    match config.policy.decide(&access) {
        Verdict::Deny { rules } => {
            Decision::shut(ToolOutcome::of(ToolStatus::Denied, texts::denied_by_rules(&rules)))
        }
        _ if prior == PriorDecision::Approval => Decision::Open(Admitted::fully()),
        verdict => {
            if prior == PriorDecision::Nobody
                && let Some(fields) = task.session().about_permission(&access.request)
            {
                return Decision::Hooks(access, fields);
            }
            match verdict {
                Verdict::Allow => match config.policy.grant(&access) {
                    Grant::Full => Decision::Open(Admitted::fully()),
                    grant => Decision::Open(Admitted { grant, limited: Some(access.request) }),
                },
                _ if config.clients.permissions => {
                    Decision::PendingPermissions(ask_somebody(task, access.request))
                }
                _ => Decision::shut(ToolOutcome::of(ToolStatus::Denied, texts::NO_USER)),
            }
        }
    }
}

/// Asks the clients that answer permissions.
fn ask_somebody(task: &mut SessionTask, request: PermissionRequest) -> oneshot::Receiver<PermissionOutcome> {
    let (answer, answered) = oneshot::channel();
    let request_id = task.asked.begin(request.clone(), answer);
    task.record(PermissionRequested::new(request_id, request));
    answered
}

/// Serialises an outcome for clients.
fn told(outcome: &ToolOutcome) -> Value {
    let kind = match outcome.status {
        ToolStatus::Success => "success",
        ToolStatus::Denied => "denied",
        ToolStatus::Rejected => "rejected",
        ToolStatus::Timeout => "timeout",
        ToolStatus::Failure | ToolStatus::Interrupted => "failure",
    };
    let mut told = json!({ "textResultForLlm": outcome.text, "resultType": kind });
    if outcome.status != ToolStatus::Success {
        told["error"] = json!(outcome.error.as_ref().unwrap_or(&outcome.text));
    }
    if let Some(detailed) = &outcome.detailed {
        told["sessionLog"] = json!(detailed);
    }
    told
}
