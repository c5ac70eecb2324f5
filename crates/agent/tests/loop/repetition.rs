//! A model that repeats itself: it is told, then the run is stopped.

use hangar_protocol::Body;

use crate::stage::{Line, Stage, call};

#[tokio::test(start_paused = true)]
async fn the_same_call_with_the_same_result_is_told_and_then_stopped() {
    let mut stage = Stage::new(vec![call("same", "echo"); 10]);
    stage.play("go").await;
    assert_eq!(stage.requests().len(), 5);
    let told: Vec<String> = stage
        .bodies()
        .into_iter()
        .filter_map(|body| match body {
            Body::ToolComplete(complete) => Some(complete.result.unwrap().content),
            Body::SessionError(error) => Some(format!("{}: {}", error.error_type, error.message)),
            _ => None,
        })
        .collect();
    expect_test::expect![[r#"
        same ok
        same ok
        same ok

        You have called echo 3 times with the same input and got the same result each time. Calling it again will not change that. Try something else, or say what keeps you from going on.
        same ok
        same ok
        repetition: The model called echo 5 times with the same input and got the same result each time, so the run was stopped. Send another message to go on."#]]
    .assert_eq(&told.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn results_that_change_are_no_repetition() {
    // The results of the tool name the call.
    let calls = ["a", "b", "c", "d", "e", "f"].map(|id| call(id, "echo"));
    let mut stage = Stage::new(calls.into_iter().chain([Line::Say("done")]).collect());
    stage.play("go").await;
    assert_eq!((stage.requests().len(), stage.count("session.error")), (7, 0));
}

#[tokio::test(start_paused = true)]
async fn a_new_prompt_begins_the_count_again() {
    let mut lines = vec![call("same", "echo"); 2];
    lines.push(Line::Say("one"));
    let mut stage = Stage::new([lines.clone(), lines.clone(), lines].concat());
    for prompt in ["one", "two", "three"] {
        stage.play(prompt).await;
    }
    assert!(!stage.last_request().contains("same input"), "{}", stage.last_request());
}
