//! Changes that hooks may make, and those that they may not.

use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

use expect_test::{Expect, expect};
use futures_util::future::BoxFuture;
use hangar_agent::driver::Hooks;
use hangar_agent::hook::{HookAnswer, HookKind, HookRequest};
use hangar_agent::model::ModelErrorKind;
use hangar_protocol::Body;
use hangar_protocol::data::{Delivery, Mode};
use serde_json::{Value, json};

use crate::stage::{Line, Setting, Stage, call};

/// Answers each kind of question always the same way; `!` as the answer is a hook that fails.
pub(crate) struct Scripted(pub(crate) Vec<(&'static str, Value)>);

impl Hooks for Scripted {
    fn ask(&self, request: &HookRequest) -> BoxFuture<'static, HookAnswer> {
        let said =
            self.0.iter().find(|(kind, _)| *kind == request.kind.as_str()).map(|(_, answer)| answer.clone());
        Box::pin(async move {
            match said {
                Some(Value::String(failure)) if failure == "!" => Err("it broke".to_owned().into()),
                said => Ok(said),
            }
        })
    }
}

/// Plays one prompt with these hooks and looks at the last thing that the model was asked.
async fn check(hooks: Vec<(&'static str, Value)>, lines: Vec<Line>, expect: Expect) -> Stage {
    let setting = Setting { hooks: Some(Arc::new(Scripted(hooks))), ..Default::default() };
    let mut stage = Stage::set(setting, lines);
    stage.send("go");
    stage.until_idle().await;
    expect.assert_eq(&stage.last_request());
    stage
}

#[tokio::test(start_paused = true)]
async fn hooks_without_an_opinion_change_nothing() {
    let stage = check(
        vec![],
        vec![call("a", "echo"), Line::Say("ok")],
        expect![[r#"
            user: go
            assistant: ["a"]
            tool a: a ok"#]],
    )
    .await;
    assert_eq!(stage.count("hook.start"), stage.count("hook.end"));
}

#[tokio::test(start_paused = true)]
async fn a_hook_may_forbid_a_call() {
    check(
        vec![("preToolUse", json!({ "permissionDecision": "deny" }))],
        vec![call("a", "echo"), Line::Say("ok")],
        expect![[r#"
            user: go
            assistant: ["a"]
            tool a: Denied by preToolUse hook: No reason provided"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_fails_before_a_call_forbids_it() {
    check(
        vec![("preToolUse", json!("!"))],
        vec![call("a", "echo"), Line::Say("ok")],
        expect![[r#"
            user: go
            assistant: ["a"]
            tool a: Denied by preToolUse hook (hook errored): it broke"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn changed_arguments_are_inspected_again() {
    check(
        vec![("preToolUse", json!({ "modifiedArgs": { "bad": true } }))],
        vec![call("a", "echo"), Line::Say("ok")],
        expect![[r#"
            user: go
            assistant: ["a"]
            tool a: "path": Required"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_hook_may_change_a_result() {
    check(
        vec![(
            "postToolUse",
            json!({ "modifiedResult": { "textResultForLlm": "other" }, "additionalContext": "more" }),
        )],
        vec![call("a", "echo"), Line::Say("ok")],
        expect![[r#"
            user: go
            assistant: ["a"]
            tool a: other

            Tool "echo" succeeded. Additional guidance from postToolUse hooks:
            more"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_hook_may_make_a_failure_of_a_success() {
    let stage = check(
        vec![(
            "postToolUse",
            json!({ "modifiedResult": { "textResultForLlm": "bad", "resultType": "failure" } }),
        )],
        vec![call("a", "echo"), Line::Say("ok")],
        expect![[r#"
            user: go
            assistant: ["a"]
            tool a: bad"#]],
    )
    .await;
    let failed =
        stage.bodies().into_iter().any(|body| matches!(body, Body::ToolComplete(done) if !done.success));
    assert!(failed);
}

#[tokio::test(start_paused = true)]
async fn hooks_are_told_of_calls_that_no_tool_can_take_and_guide_the_model_after_them() {
    check(
        vec![("postToolUseFailure", json!({ "additionalContext": "try echo" }))],
        vec![call("a", "nosuch"), Line::Say("ok")],
        expect![[r#"
            user: go
            assistant: ["a"]
            tool a: Tool 'nosuch' does not exist. Available tools that can be called are echo, slow, hang, write.
            user: Tool "nosuch" failed. Additional guidance from postToolUseFailure hooks:
            try echo"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn work_that_is_called_complete_is_judged_by_the_same_hooks() {
    let block = json!({ "decision": "block", "reason": "the tests fail" });
    let setting = Setting {
        hooks: Some(Arc::new(Scripted(vec![("agentStop", block)]))),
        mode: Mode::Autopilot,
        ..Default::default()
    };
    let complete = |id| Line::Call(vec![(id, "task_complete", json!({ "summary": "all done" }))]);
    let ids = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
    let mut stage = Stage::set(setting, ids.into_iter().map(complete).collect());
    stage.send("go");
    stage.until_idle().await;
    assert_eq!(stage.requests().len(), 9, "the first, and eight that the hook wanted");
    assert!(stage.last_request().contains("the tests fail"));
    assert_eq!(stage.count("session.autopilot_stopped"), 1);
}

#[tokio::test(start_paused = true)]
async fn what_the_session_says_to_itself_goes_through_the_hooks_too() {
    let hooks = vec![("userPromptSubmitted", json!({ "additionalContext": "mind the gap" }))];
    let setting = Setting {
        hooks: Some(Arc::new(Scripted(hooks))),
        mode: Mode::Autopilot,
        cap: 1,
        ..Default::default()
    };
    let mut stage = Stage::set(setting, vec![Line::Say("one"), Line::Say("two")]);
    stage.send("go");
    stage.until_idle().await;
    assert_eq!(stage.last_request().matches("mind the gap").count(), 2, "the prompt, and the nudge");
}

#[tokio::test(start_paused = true)]
async fn every_failed_call_of_the_model_is_told() {
    let hooks = vec![("errorOccurred", json!({}))];
    let setting = Setting { hooks: Some(Arc::new(Scripted(hooks))), ..Default::default() };
    let fail = || Line::Fail(ModelErrorKind::Server, Some(500));
    let lines = vec![fail(), fail(), Line::Say("ok")];
    let mut stage = Stage::set(setting, lines);
    stage.send("go");
    stage.until_idle().await;
    let told = stage
        .bodies()
        .into_iter()
        .filter(|body| matches!(body, Body::HookStart(start) if start.hook_type == "errorOccurred"));
    assert_eq!(told.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_hook_may_reword_the_prompt_and_speak_before_it() {
    check(
        vec![
            ("sessionStart", json!({ "additionalContext": "first this" })),
            ("userPromptTransformed", json!({ "modifiedTransformedPrompt": "other words" })),
        ],
        vec![Line::Say("ok")],
        expect![[r#"
            user: first this
            user: other words"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn hooks_that_never_let_a_run_end_are_overruled() {
    let setting = Setting {
        hooks: Some(Arc::new(Scripted(vec![(
            "agentStop",
            json!({ "decision": "block", "reason": "go on" }),
        )]))),
        ..Default::default()
    };
    let mut stage = Stage::set(setting, vec![]);
    stage.send("go");
    stage.until_idle().await;
    assert_eq!(stage.requests().len(), 9);
}

#[tokio::test(start_paused = true)]
async fn what_a_stop_hook_wants_is_a_run_of_its_own_that_answers_the_first_prompt() {
    let block = vec![("agentStop", json!({ "decision": "block", "reason": "go on" }))];
    let setting = Setting { hooks: Some(Arc::new(Scripted(block))), ..Default::default() };
    let mut stage = Stage::set(setting, vec![]);
    stage.send("go");
    stage.until_idle().await;
    let mut said = Vec::new();
    let mut answered = std::collections::BTreeSet::new();
    for body in stage.bodies() {
        match body {
            Body::UserMessage(message) => {
                said.push((message.content, message.delivery, message.turn_id, message.interaction_id));
            }
            Body::AssistantMessage(message) => answered.extend(message.originating_message_id),
            _ => {}
        }
    }
    let runs: std::collections::BTreeSet<_> = said.iter().map(|(.., run)| run.clone()).collect();
    assert_eq!((said.len(), runs.len(), answered.len()), (9, 9, 1));
    for (content, delivery, turn, _) in &said[1..] {
        assert_eq!(
            (content.as_str(), *delivery, turn.as_deref()),
            ("go on", Some(Delivery::Queued), Some("0"))
        );
    }
    assert_eq!((stage.count("assistant.idle"), stage.count("session.idle")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn hooks_and_nudges_together_come_to_an_end() {
    let block = vec![("agentStop", json!({ "decision": "block", "reason": "go on" }))];
    let hooks = Some(Arc::new(Scripted(block)) as Arc<dyn Hooks>);
    let setting = Setting { hooks, mode: Mode::Autopilot, cap: 2, ..Default::default() };
    let mut stage = Stage::set(setting, vec![]);
    stage.send("go");
    stage.until_idle().await;
    assert_eq!(stage.requests().len(), 27, "nine for the prompt and for each of the two nudges");
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_fails_elsewhere_is_ignored() {
    let stage = check(vec![("agentStop", json!("!"))], vec![Line::Say("ok")], expect!["user: go"]).await;
    assert_eq!(stage.count("session.error"), 0);
}

/// Takes its time over the end of a session, and over everything before it.
struct Slow(Arc<Mutex<Vec<HookKind>>>);

impl Hooks for Slow {
    fn ask(&self, request: &HookRequest) -> BoxFuture<'static, HookAnswer> {
        let (done, kind) = (Arc::clone(&self.0), request.kind);
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(20)).await;
            done.lock().push(kind);
            Ok(None)
        })
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_is_told_after_what_came_before_it_and_waited_for() {
    let done = Arc::new(Mutex::new(Vec::new()));
    let hooks = Some(Arc::new(Slow(Arc::clone(&done))) as Arc<dyn Hooks>);
    let setting = Setting { hooks, ..Default::default() };
    let mut stage = Stage::set(setting, vec![Line::Fail(ModelErrorKind::Refused, Some(400))]);
    stage.send("go");
    stage.until_idle().await;
    stage.driver.close(None).await.unwrap();
    let last_two = done.lock().iter().rev().take(2).copied().collect::<Vec<_>>();
    assert_eq!(last_two, [HookKind::SessionEnd, HookKind::ErrorOccurred]);
    assert_eq!(stage.count("hook.start"), stage.count("hook.end"), "nothing is left open in the log");
}
