//! Autopilot: explicit completion, the nudge, its cap.

use expect_test::expect;
use hangar_agent::model::ModelErrorKind;
use hangar_agent::session::Command;
use hangar_protocol::Body;
use hangar_protocol::data::{AutopilotStop, Mode};
use serde_json::json;

use crate::stage::{Line, Setting, Stage};

fn autopilot(cap: u32, lines: Vec<Line>) -> Stage {
    Stage::set(Setting { mode: Mode::Autopilot, cap, ..Default::default() }, lines)
}

fn stops(stage: &Stage) -> Vec<AutopilotStop> {
    let stops = stage.bodies().into_iter().filter_map(|body| match body {
        Body::AutopilotStopped(stopped) => Some(stopped.reason),
        _ => None,
    });
    stops.collect()
}

fn offers(stage: &Stage, tool: &str) -> bool {
    stage.requests()[0].tools.iter().any(|spec| spec.name == tool)
}

#[tokio::test(start_paused = true)]
async fn task_complete_exists_only_where_nobody_watches() {
    let mut watched = Stage::new(vec![]);
    watched.play("go").await;
    assert!(!offers(&watched, "task_complete"));
    let mut alone = autopilot(0, vec![]);
    alone.play("go").await;
    assert!(offers(&alone, "task_complete"));
}

#[tokio::test(start_paused = true)]
async fn task_complete_ends_the_run_without_another_call() {
    let mut stage =
        autopilot(5, vec![Line::Call(vec![("a", "task_complete", json!({"summary": "did it"}))])]);
    stage.play("go").await;
    assert_eq!(stage.requests().len(), 1);
    assert_eq!(stops(&stage), [AutopilotStop::TaskComplete]);
    let complete = stage.bodies().into_iter().find_map(|body| match body {
        Body::TaskComplete(complete) => Some((complete.summary, complete.success)),
        _ => None,
    });
    assert_eq!(complete, Some((Some("did it".to_owned()), Some(true))));
    expect![[r#"
        user.message
        session.mode_notice_delivered
        assistant.turn_start
        model.call_start
        model.call_finished
        assistant.message
        tool.execution_start
        model.call_final_result
        tool.execution_complete
        session.task_complete
        assistant.turn_end
        session.autopilot_stopped
        assistant.idle
        session.idle"#]]
    .assert_eq(&stage.story());
}

#[tokio::test(start_paused = true)]
async fn a_failure_and_an_abort_stop_the_autopilot() {
    let mut failed = autopilot(5, vec![Line::Fail(ModelErrorKind::Refused, Some(400))]);
    failed.play("go").await;
    assert_eq!(stops(&failed), [AutopilotStop::Error]);
    let story = failed.story();
    assert!(
        story.ends_with("session.error\nsession.autopilot_stopped\nassistant.idle\nsession.idle"),
        "{story}"
    );

    let mut aborted = autopilot(5, vec![Line::Call(vec![("a", "slow", json!({}))])]);
    aborted.send("go");
    aborted.until("tool.execution_start").await;
    aborted.command(Command::Abort { reason: "user_initiated".to_owned() });
    aborted.until_idle().await;
    assert_eq!(stops(&aborted), [AutopilotStop::Aborted]);
    let story = aborted.story();
    assert!(
        story.ends_with("assistant.turn_end\nsession.autopilot_stopped\nassistant.idle\nsession.idle"),
        "{story}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_mode_is_told_again_after_a_resume() {
    let mut stage = autopilot(0, vec![]);
    stage.play("one").await;
    let setting = Setting { mode: Mode::Autopilot, cap: 0, log: stage.log(), ..Default::default() };
    let mut resumed = Stage::set(setting, vec![]);
    resumed.play("two").await;
    assert_eq!(resumed.count("session.mode_notice_delivered"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_early_stop_is_nudged_up_to_the_cap() {
    let mut stage = autopilot(2, vec![]);
    stage.play("go").await;
    assert_eq!(stage.requests().len(), 3);
    assert_eq!(stops(&stage), [AutopilotStop::CapReached]);
    let nudge = stage.last_request();
    for duty in ["task_complete", "stop planning and start implementing", "Do not call task_complete while"] {
        assert!(nudge.contains(duty), "{nudge}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_nudge_is_marked_and_its_content_is_empty() {
    let mut stage = autopilot(1, vec![]);
    stage.play("go").await;
    let nudges: Vec<_> = stage
        .bodies()
        .into_iter()
        .filter_map(|body| match body {
            Body::UserMessage(message) if message.is_autopilot_continuation == Some(true) => Some(message),
            _ => None,
        })
        .collect();
    assert_eq!(nudges.len(), 1);
    assert_eq!((nudges[0].content.as_str(), nudges[0].source.as_deref()), ("", Some("autopilot")));
}

#[tokio::test(start_paused = true)]
async fn an_interactive_session_is_never_nudged() {
    let mut stage = Stage::new(vec![]);
    stage.play("go").await;
    assert_eq!(stage.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_mode_is_told_once() {
    let mut stage = autopilot(0, vec![]);
    stage.play("one").await;
    stage.play("two").await;
    assert_eq!(stage.count("session.mode_notice_delivered"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_question_in_autopilot_is_answered_at_once() {
    let mut stage = autopilot(
        0,
        vec![Line::Call(vec![("a", "ask_user", json!({"question": "Which?"}))]), Line::Say("ok")],
    );
    stage.play("go").await;
    assert!(stage.last_request().contains("tool a: User responded: The user is not available"));
}

#[tokio::test(start_paused = true)]
async fn plan_mode_refuses_to_change_anything() {
    let setting = Setting { mode: Mode::Plan, ..Default::default() };
    let mut stage = Stage::set(setting, vec![Line::Call(vec![("a", "write", json!({}))]), Line::Say("ok")]);
    stage.play("go").await;
    assert!(stage.last_request().contains("tool a: Plan mode changes nothing"), "{}", stage.last_request());
}
