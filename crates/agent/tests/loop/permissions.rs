//! How the loop treats what the policy says.

use expect_test::expect;
use hangar_agent::session::Command;
use hangar_protocol::Body;
use hangar_protocol::permission::PermissionOutcome;
use serde_json::json;

use crate::stage::{Line, Setting, Stage, call};

fn stage(user_reachable: bool) -> Stage {
    let setting = Setting { allow_all: false, user_reachable, ..Default::default() };
    Stage::set(setting, vec![call("a", "write"), Line::Say("ok")])
}

fn request_id(stage: &Stage) -> String {
    let asked = stage.bodies().into_iter().find_map(|body| match body {
        Body::PermissionRequested(asked) => Some(asked.request_id),
        _ => None,
    });
    asked.unwrap()
}

#[tokio::test(start_paused = true)]
async fn with_nobody_to_ask_the_call_is_refused_and_the_loop_goes_on() {
    let mut stage = stage(false);
    stage.play("go").await;
    assert_eq!(stage.requests().len(), 2);
    assert_eq!(stage.count("permission.requested"), 0);
    let codes: Vec<_> = stage
        .bodies()
        .into_iter()
        .filter_map(|body| match body {
            Body::ToolComplete(complete) => complete.error.and_then(|error| error.code),
            _ => None,
        })
        .collect();
    assert_eq!(codes, ["denied"]);
}

#[tokio::test(start_paused = true)]
async fn an_approval_lets_the_call_run() {
    let mut stage = stage(true);
    stage.send("go");
    stage.until("permission.requested").await;
    let request_id = request_id(&stage);
    stage.command(Command::AnswerPermission { request_id, answer: PermissionOutcome::Approved {} });
    stage.until_idle().await;
    assert!(stage.last_request().ends_with("tool a: a ok"));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_an_answer_and_the_loop_goes_on() {
    let mut stage = stage(true);
    stage.send("go");
    stage.until("permission.requested").await;
    let request_id = request_id(&stage);
    let answer = PermissionOutcome::DeniedInteractivelyByUser {
        feedback: Some("not there".to_owned()),
        force_reject: None,
    };
    stage.command(Command::AnswerPermission { request_id, answer });
    stage.until_idle().await;
    expect![[r#"
        user: go
        assistant: ["a"]
        tool a: The user rejected this tool call. User feedback: not there"#]]
    .assert_eq(&stage.last_request());
}

#[tokio::test(start_paused = true)]
async fn a_forced_refusal_ends_the_run() {
    let mut stage = stage(true);
    stage.send("go");
    stage.until("permission.requested").await;
    let request_id = request_id(&stage);
    let answer = PermissionOutcome::DeniedInteractivelyByUser { feedback: None, force_reject: Some(true) };
    stage.command(Command::AnswerPermission { request_id, answer });
    stage.until_idle().await;
    assert_eq!(stage.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_late_or_unknown_answer_is_ignored() {
    let mut stage = stage(true);
    stage.command(Command::AnswerPermission {
        request_id: "nobody asked".to_owned(),
        answer: PermissionOutcome::Approved {},
    });
    assert_eq!(stage.count("permission.completed"), 0);
}

/// A command that seems to read only, and is kept from something when it runs.
fn limited(user_reachable: bool) -> Stage {
    let setting = Setting { allow_all: false, user_reachable, ..Default::default() };
    Stage::set(setting, vec![Line::Call(vec![("a", "echo", json!({ "look": true }))]), Line::Say("ok")])
}

#[tokio::test(start_paused = true)]
async fn what_the_kernel_refuses_is_a_denial_where_nobody_can_be_asked() {
    let mut stage = limited(false);
    stage.play("go").await;
    assert_eq!(stage.count("permission.requested"), 0);
    expect![[r#"
        user: go
        assistant: ["a"]
        tool a: Permission denied and could not request permission from user: the command was kept from reading /x

        cat: /x: Permission denied"#]]
    .assert_eq(&stage.last_request());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_the_kernel_kept_from_something_runs_again_when_somebody_says_yes() {
    let mut stage = limited(true);
    stage.send("go");
    stage.until("permission.requested").await;
    let warned = stage.bodies().into_iter().any(|body| match body {
        Body::PermissionRequested(asked) => {
            let asked = format!("{asked:?}");
            asked.contains("kept from reading /x")
                && asked.contains("without limits")
                && !asked.contains("read_only: true")
        }
        _ => false,
    });
    assert!(warned);
    let request_id = request_id(&stage);
    stage.command(Command::AnswerPermission { request_id, answer: PermissionOutcome::Approved {} });
    stage.until_idle().await;
    assert!(stage.last_request().ends_with("tool a: a ok"), "{}", stage.last_request());
    assert_eq!((stage.count("tool.execution_start"), stage.count("tool.execution_complete")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_the_kernel_kept_from_something_ends_when_somebody_says_no() {
    let mut stage = limited(true);
    stage.send("go");
    stage.until("permission.requested").await;
    let request_id = request_id(&stage);
    let answer = PermissionOutcome::DeniedInteractivelyByUser { feedback: None, force_reject: None };
    stage.command(Command::AnswerPermission { request_id, answer });
    stage.until_idle().await;
    assert!(stage.last_request().ends_with("tool a: The user rejected this tool call."));
}
