//! What hooks may change, and what they may not.

use std::sync::Arc;

use expect_test::{Expect, expect};
use futures_util::future::BoxFuture;
use hangar_agent::driver::Hooks;
use hangar_agent::hook::{HookAnswer, HookRequest};
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

            Additional guidance from postToolUse hooks:
            more"#]],
    )
    .await;
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
async fn a_hook_that_fails_elsewhere_is_ignored() {
    let stage = check(vec![("agentStop", json!("!"))], vec![Line::Say("ok")], expect!["user: go"]).await;
    assert_eq!(stage.count("session.error"), 0);
}
