//! A session taken up again, wherever it was cut.

use expect_test::expect;
use hangar_protocol::{Body, Event};

use crate::stage::{Line, Setting, Stage, call};

/// A finished session with tools, as its log tells it.
async fn finished() -> Vec<Event> {
    let mut stage = Stage::new(vec![
        call("a", "echo"),
        Line::Call(vec![("b", "slow", serde_json::json!({})), ("c", "echo", serde_json::json!({}))]),
        Line::Say("done"),
    ]);
    stage.play("first").await;
    stage.driver.close(None).await.unwrap();
    stage.log()
}

fn resumed(log: Vec<Event>) -> Stage {
    Stage::set(Setting { log, ..Default::default() }, vec![Line::Say("back")])
}

#[tokio::test(start_paused = true)]
async fn a_resumed_session_sees_what_it_saw() {
    let mut stage = resumed(finished().await);
    stage.play("second").await;
    expect![[r#"
        user: first
        assistant: ["a"]
        tool a: a ok
        assistant: ["b", "c"]
        tool b: b done
        tool c: c ok
        assistant: done[]
        user: second"#]]
    .assert_eq(&stage.last_request());
    assert_eq!(stage.count("session.warning"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_session_cut_at_any_event_resumes_without_a_dangling_call() {
    let log = finished().await;
    for end in 1..=log.len() {
        let mut stage = resumed(log[..end].to_vec());
        stage.play("go on").await;
        let seen = stage.last_request();
        let calls = seen.lines().filter(|line| line.starts_with("assistant: [")).flat_map(ids).count();
        let results = seen.lines().filter(|line| line.starts_with("tool ")).count();
        assert_eq!(calls, results, "cut at {end}:\n{seen}");
        assert!(seen.ends_with("user: go on"), "cut at {end}:\n{seen}");
        assert_eq!(stage.requests().len(), 1, "cut at {end}");
    }
}

fn ids(line: &str) -> impl Iterator<Item = &str> {
    line.split('"').skip(1).step_by(2)
}

#[tokio::test(start_paused = true)]
async fn totals_are_those_of_the_whole_session() {
    let write = || vec![call("a", "write"), Line::Say("done")];
    let setting = |log| Setting { log, allow_all: true, ..Default::default() };
    let mut stage = Stage::set(setting(Vec::new()), write());
    stage.play("first").await;
    stage.driver.close(None).await.unwrap();
    let mut stage = Stage::set(setting(stage.log()), write());
    stage.play("second").await;
    stage.driver.close(None).await.unwrap();
    let log = stage.log();
    let Some(Body::SessionShutdown(shutdown)) = log.last().map(Event::body) else { panic!("{log:?}") };
    let changes = &shutdown.code_changes;
    assert_eq!((changes.lines_added, changes.lines_removed), (4, 2));
    assert_eq!(changes.files_modified, ["/w/a"]);
    let totals = &stage.driver.session().state().totals;
    assert_eq!((totals.prompts, totals.requests, totals.tool_calls), (2, 4, 2));
}

#[tokio::test(start_paused = true)]
async fn interrupted_tools_are_closed_and_reported_once() {
    let log = finished().await;
    let cut = log.iter().position(|event| event.kind() == "tool.execution_start").unwrap() + 1;
    let mut stage = resumed(log[..cut].to_vec());
    assert_eq!(stage.count("tool.execution_complete"), 1);
    assert_eq!(stage.count("session.warning"), 1);
    stage.play("go on").await;
    let again = resumed(stage.log());
    assert_eq!(again.count("session.warning"), 0);
}
