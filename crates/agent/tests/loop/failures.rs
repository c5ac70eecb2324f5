//! Model calls that fail: which are tried again, what is said, what is never doubled.

use std::time::Duration;

use expect_test::{Expect, expect};
use hangar_agent::model::ModelErrorKind;
use hangar_protocol::Body;

use crate::stage::{Line, Stage};

/// Fails for ever in one way; prints requests, retries and the final word.
async fn check(kind: ModelErrorKind, status: Option<u16>, expect: Expect) {
    let mut stage = Stage::new(vec![Line::Fail(kind, status); 10]);
    stage.play("go").await;
    let error = stage.bodies().into_iter().find_map(|body| match body {
        Body::SessionError(error) => Some(error),
        _ => None,
    });
    let error = error.unwrap();
    let told = format!(
        "{} requests, {} failures, {} retries: {} {:?} {}",
        stage.requests().len(),
        stage.count("model.call_failure"),
        stage.count("assistant.turn_retry"),
        error.error_type,
        error.status_code,
        error.message,
    );
    expect.assert_eq(&told);
    assert_eq!(stage.count("assistant.turn_start"), 1, "retries share the turn");
}

#[tokio::test(start_paused = true)]
async fn each_failure_is_an_event_and_has_its_number_of_retries() {
    use ModelErrorKind::*;
    check(
        RateLimit,
        Some(429),
        expect!["6 requests, 6 failures, 5 retries: rate_limit Some(429) RateLimit (retried 5 times)"],
    )
    .await;
    check(
        Server,
        Some(503),
        expect!["6 requests, 6 failures, 5 retries: query Some(503) Server (retried 5 times)"],
    )
    .await;
    check(Connect, None, expect!["6 requests, 6 failures, 5 retries: query None Connect (retried 5 times)"])
        .await;
    check(
        Authentication,
        Some(401),
        expect![
            "3 requests, 3 failures, 2 retries: authentication Some(401) Authentication (retried 2 times)"
        ],
    )
    .await;
    check(
        AccessDenied,
        Some(403),
        expect!["1 requests, 1 failures, 0 retries: authentication Some(403) AccessDenied"],
    )
    .await;
    check(Refused, Some(400), expect!["1 requests, 1 failures, 0 retries: query Some(400) Refused"]).await;
    check(Refused, Some(404), expect!["1 requests, 1 failures, 0 retries: query Some(404) Refused"]).await;
    check(Quota, Some(429), expect!["1 requests, 1 failures, 0 retries: quota Some(429) Quota"]).await;
    check(Stalled, None, expect!["6 requests, 6 failures, 5 retries: query None Stalled (retried 5 times)"])
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_cut_stream_is_tried_again_and_yields_one_message() {
    let mut stage = Stage::new(vec![Line::Cut("half an "), Line::Say("half an answer")]);
    stage.play("go").await;
    let messages: Vec<String> = stage
        .bodies()
        .into_iter()
        .filter_map(|body| match body {
            Body::AssistantMessage(message) => Some(message.content),
            _ => None,
        })
        .collect();
    assert_eq!(messages, ["half an answer"]);
    let ids: std::collections::BTreeSet<String> = stage
        .bodies()
        .into_iter()
        .filter_map(|body| match body {
            Body::MessageDelta(delta) => Some(delta.message_id),
            _ => None,
        })
        .collect();
    assert_eq!(ids.len(), 2, "the failed attempt's pieces have an id of their own");
}

#[tokio::test(start_paused = true)]
async fn the_servers_wait_is_honoured() {
    let mut stage = Stage::new(vec![
        Line::FailAfter(ModelErrorKind::RateLimit, Duration::from_secs(17)),
        Line::Say("recovered"),
    ]);
    let before = tokio::time::Instant::now();
    stage.play("go").await;
    let waited = before.elapsed();
    assert!(waited >= Duration::from_secs(17) && waited < Duration::from_secs(20), "{waited:?}");
    assert_eq!(stage.count("session.error"), 0);
}

#[tokio::test(start_paused = true)]
async fn the_story_of_a_retry() {
    let mut stage = Stage::new(vec![Line::Fail(ModelErrorKind::Server, Some(500)), Line::Say("ok")]);
    stage.play("go").await;
    expect![[r#"
        user.message
        assistant.turn_start
        model.call_start
        model.call_failure
        model.call_finished
        assistant.turn_retry
        session.info
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
async fn a_failed_run_does_not_take_the_session_with_it() {
    let mut stage = Stage::new(vec![Line::Fail(ModelErrorKind::Refused, Some(400)), Line::Say("fine")]);
    stage.play("first").await;
    stage.play("second").await;
    expect![[r#"
        user: first
        user: second"#]]
    .assert_eq(&stage.last_request());
}
