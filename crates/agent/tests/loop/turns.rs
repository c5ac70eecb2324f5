//! The inner loop: turns until the model has nothing left to call.

use expect_test::expect;
use hangar_agent::model::Finish;
use serde_json::json;

use crate::stage::{Line, Stage, call};

#[tokio::test(start_paused = true)]
async fn a_plain_answer_is_one_turn_and_then_idle() {
    let mut stage = Stage::new(vec![Line::Say("pong")]);
    stage.play("ping").await;
    expect![[r#"
        user.message
        assistant.turn_start
        model.call_start
        model.call_finished
        assistant.message
        model.call_final_result
        assistant.turn_end
        assistant.idle
        session.idle"#]]
    .assert_eq(&stage.story());
}

#[tokio::test(start_paused = true)]
async fn the_loop_ends_only_on_an_answer_without_calls() {
    let mut stage = Stage::new(vec![call("a", "echo"), call("b", "echo"), Line::Say("done")]);
    stage.play("go").await;
    assert_eq!(stage.requests().len(), 3);
    assert_eq!((stage.count("assistant.turn_start"), stage.count("assistant.turn_end")), (3, 3));
    assert_eq!(stage.kinds().last().unwrap(), "session.idle");
}

#[tokio::test(start_paused = true)]
async fn all_starts_precede_the_verdict_on_the_call_and_the_tools() {
    let mut stage = Stage::new(vec![
        Line::Call(vec![("a", "echo", json!({})), ("b", "echo", json!({}))]),
        Line::Say("done"),
    ]);
    stage.play("go").await;
    expect![[r#"
        user.message
        assistant.turn_start
        model.call_start
        model.call_finished
        assistant.message
        tool.execution_start
        tool.execution_start
        model.call_final_result
        tool.execution_complete
        tool.execution_complete
        assistant.turn_end
        assistant.turn_start
        model.call_start
        model.call_finished
        assistant.message
        model.call_final_result
        assistant.turn_end
        assistant.idle
        session.idle"#]]
    .assert_eq(&stage.story());
}

#[tokio::test(start_paused = true)]
async fn calls_of_one_answer_run_side_by_side_and_answer_in_call_order() {
    let mut stage = Stage::new(vec![
        Line::Call(vec![("a", "slow", json!({})), ("b", "echo", json!({})), ("c", "slow", json!({}))]),
        Line::Say("done"),
    ]);
    let before = tokio::time::Instant::now();
    stage.play("go").await;
    // The clock is paused: it moves only when everything waits, so this is exact.
    assert_eq!(before.elapsed().as_secs(), 2);
    expect![[r#"
        user: go
        assistant: ["a", "b", "c"]
        tool a: a done
        tool b: b ok
        tool c: c done"#]]
    .assert_eq(&stage.last_request());
}

#[tokio::test(start_paused = true)]
async fn unknown_tools_and_bad_arguments_are_answered_and_the_loop_goes_on() {
    let mut stage = Stage::new(vec![
        Line::Call(vec![
            ("a", "nosuch", json!({})),
            ("b", "echo", json!({"bad": 1})),
            ("c", "echo", json!("{not json")),
            ("d", "echo", json!("[1]")),
        ]),
        Line::Say("done"),
    ]);
    stage.play("go").await;
    expect![[r#"
        user: go
        assistant: ["a", "b", "c", "d"]
        tool a: Tool 'nosuch' does not exist. Available tools that can be called are echo, slow, hang, write.
        tool b: "path": Required
        tool c: The arguments of 'echo' are not a JSON object (key must be a string at line 1 column 2).
        tool d: The arguments of 'echo' are not a JSON object."#]]
    .assert_eq(&stage.last_request());
    assert_eq!(stage.count("session.error"), 0);
    let codes = stage.bodies().into_iter().filter_map(|body| match body {
        hangar_protocol::Body::ToolComplete(complete) => Some((complete.success, complete.error?.code?)),
        _ => None,
    });
    assert_eq!(codes.collect::<Vec<_>>(), vec![(false, "failure".to_owned()); 4]);
}

#[tokio::test(start_paused = true)]
async fn requests_share_their_prefix_byte_for_byte() {
    let mut stage =
        Stage::new(vec![call("a", "echo"), call("b", "echo"), Line::Say("done"), Line::Say("again")]);
    stage.play("go").await;
    stage.play("and more").await;
    let requests = stage.requests();
    assert_eq!(requests.len(), 4);
    for pair in requests.windows(2) {
        assert_eq!(pair[0].system, pair[1].system);
        assert_eq!(pair[0].tools, pair[1].tools);
        assert_eq!(pair[0].messages[..], pair[1].messages[..pair[0].messages.len()]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_model_sees_the_time_and_the_log_keeps_the_raw_prompt() {
    let mut stage = Stage::new(vec![]);
    stage.play("ping").await;
    let message = stage.bodies().into_iter().find_map(|body| match body {
        hangar_protocol::Body::UserMessage(message) => Some(message),
        _ => None,
    });
    let message = message.unwrap();
    assert_eq!(message.content, "ping");
    expect!["<current_datetime>2027-01-15T08:00:00.000Z</current_datetime>\n\nping"]
        .assert_eq(&message.transformed_content.unwrap());
}

#[tokio::test(start_paused = true)]
async fn an_answer_cut_by_the_output_limit_is_asked_to_go_on_but_not_for_ever() {
    let cut = || Line::Finish("half", Finish::Length);
    let mut stage = Stage::new(vec![cut(), cut(), cut(), cut(), Line::Say("never asked for")]);
    stage.play("go").await;
    assert_eq!(stage.requests().len(), 4);
    assert!(stage.last_request().ends_with("continue from where you left off."), "{}", stage.last_request());
    assert_eq!(stage.count("session.error"), 1, "an answer that stays incomplete is no success");
}

#[tokio::test(start_paused = true)]
async fn an_empty_answer_is_an_error() {
    let mut stage = Stage::new(vec![Line::Finish("", Finish::Stop)]);
    stage.play("go").await;
    assert_eq!(stage.count("session.error"), 1);
    assert_eq!(stage.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_is_dropped_from_the_front_and_said() {
    let setting = crate::stage::Setting { max_prompt_tokens: 100, ..Default::default() };
    let mut stage = Stage::set(setting, vec![]);
    for n in 0..8 {
        stage.play(&format!("{n} {}", "x".repeat(60))).await;
    }
    assert!(stage.count("session.truncation") > 0);
    let seen = stage.last_request();
    assert!(!seen.contains("user: 0 ") && seen.contains("user: 7 "), "{seen}");
    let bytes: usize = seen.len();
    assert!(bytes < 800, "{bytes}");
}
