//! How answers end: what is kept, what runs, who is asked again, and what is an error.

use expect_test::{Expect, expect};
use hangar_agent::model::Finish;
use hangar_agent::session::Compaction;
use hangar_protocol::Body;
use hangar_protocol::data::Mode;

use crate::stage::{Line, Setting, Stage, call};

/// Plays a prompt; prints what the model was shown in each request after the first, what was answered, and the error.
async fn check_setting(setting: Setting, lines: Vec<Line>, expect: Expect) -> Stage {
    let mut stage = Stage::set(setting, lines);
    stage.play("go").await;
    let mut told = vec![format!("{} requests", stage.requests().len())];
    told.push(stage.last_request());
    for body in stage.bodies() {
        match body {
            Body::AssistantMessage(message) => {
                let calls: Vec<String> =
                    message.tool_requests.iter().map(|call| call.tool_call_id.clone()).collect();
                told.push(format!("answer {:?} {calls:?}", message.content));
            }
            Body::ToolStart(start) => told.push(format!("runs {}", start.tool_call_id)),
            Body::TurnRetry(retry) => told.push(format!("retry {}", retry.reason.unwrap())),
            Body::SessionError(error) => told.push(format!("error {}: {}", error.error_type, error.message)),
            _ => {}
        }
    }
    expect.assert_eq(&told.join("\n"));
    stage
}

async fn check(lines: Vec<Line>, expect: Expect) -> Stage {
    check_setting(Setting::default(), lines, expect).await
}

#[tokio::test(start_paused = true)]
async fn a_paused_answer_is_sent_back_without_a_message() {
    check(
        vec![Line::Finish("Searching.", Finish::Paused), Line::Say("Found.")],
        expect![[r#"
        2 requests
        user: go
        assistant: Searching.[]
        answer "Searching." []
        answer "Found." []"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_paused_answer_is_sent_back_five_times_at_most() {
    let stage = check(
        vec![Line::Finish("more", Finish::Paused); 9],
        expect![[r#"
        6 requests
        user: go
        assistant: more[]
        assistant: more[]
        assistant: more[]
        assistant: more[]
        assistant: more[]
        answer "more" []
        answer "more" []
        answer "more" []
        answer "more" []
        answer "more" []
        answer "more" []
        error query: The provider paused the model's answer again and again, so the run was stopped before the answer was complete. Send a message to go on."#]],
    )
    .await;
    assert_eq!(stage.requests().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn pauses_and_cuts_in_turns_come_to_an_end() {
    let turn = [Line::Finish("more", Finish::Paused), Line::Finish("more", Finish::Length)];
    let mut stage = Stage::new(turn.into_iter().cycle().take(40).collect());
    stage.play("go").await;
    assert_eq!(stage.requests().len(), 8, "five pauses and three cuts in a row at most");
}

#[tokio::test(start_paused = true)]
async fn what_was_streamed_before_a_refusal_is_discarded_and_accounted() {
    let refusal = Finish::Refusal(Some("cyber: not allowed".to_owned()));
    let stage = check(
        vec![Line::Ends("Here is how", vec![("a", "echo", "{}")], refusal), Line::Say("never asked for")],
        expect![[r#"
            1 requests
            user: go
            answer "" []
            error query: The model refused to answer (cyber: not allowed)."#]],
    )
    .await;
    let totals = &stage.driver.session().state().totals;
    assert_eq!((totals.requests, totals.output_tokens), (1, Some(1)));
}

#[tokio::test(start_paused = true)]
async fn a_content_filter_ends_the_run_too() {
    check(
        vec![Line::Finish("half", Finish::ContentFilter)],
        expect![[r#"
        1 requests
        user: go
        answer "" []
        error query: The provider's content filter withheld the answer."#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_answer_is_not_part_of_the_conversation() {
    let mut stage = Stage::new(vec![Line::Finish("half", Finish::Refusal(None)), Line::Say("ok")]);
    stage.play("first").await;
    stage.play("second").await;
    expect![[r#"
        user: first
        user: second"#]]
    .assert_eq(&stage.last_request());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_the_output_limit_cut_never_runs() {
    check(
        vec![
            Line::Ends("Writing.", vec![("a", "write", r#"{"path": "/w/a", "te"#)], Finish::Length),
            Line::Say("Smaller."),
        ],
        expect![[r#"
            2 requests
            user: go
            assistant: Writing.[]
            user: Your answer reached the output limit inside a call of write, so that call was not made. Make it again with less input, for example in several smaller steps.
            answer "Writing." []
            answer "Smaller." []"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_cut_before_its_input_never_runs() {
    check(
        vec![Line::Ends("", vec![("a", "write", "")], Finish::Length), Line::Say("Smaller.")],
        expect![[r#"
            2 requests
            user: go
            user: Your answer reached the output limit inside a call of write, so that call was not made. Make it again with less input, for example in several smaller steps.
            answer "" []
            answer "Smaller." []"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn reasoning_that_fills_the_output_limit_is_told_to_the_model() {
    check(
        vec![call("a", "write"), Line::Finish("", Finish::Length), Line::Say("Shorter.")],
        expect![[r#"
            3 requests
            user: go
            assistant: ["a"]
            tool a: a ok
            user: Your reasoning reached the output limit before you answered, and none of it was kept. Reason less this time: answer, or make the next call, as soon as you know it.
            answer "" ["a"]
            runs a
            answer "" []
            answer "Shorter." []"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn reasoning_that_fills_the_output_limit_each_time_ends_the_run() {
    let cut = || Line::Finish("", Finish::Length);
    let mut stage =
        Stage::new(vec![call("a", "write"), cut(), cut(), cut(), cut(), Line::Say("never asked for")]);
    stage.play("go").await;
    assert_eq!((stage.requests().len(), stage.count("session.error")), (5, 1));
}

#[tokio::test(start_paused = true)]
async fn the_whole_calls_of_an_answer_that_was_cut_run() {
    check(
        vec![
            Line::Ends("", vec![("a", "echo", "{}"), ("b", "write", r#"{"path"#)], Finish::Length),
            Line::Say("Smaller."),
        ],
        expect![[r#"
            2 requests
            user: go
            assistant: ["a"]
            tool a: a ok
            user: Your answer reached the output limit inside a call of write, so that call was not made. Make it again with less input, for example in several smaller steps.
            answer "" ["a"]
            runs a
            answer "Smaller." []"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn calls_that_are_cut_again_and_again_end_the_run() {
    let cut = || Line::Ends("", vec![("a", "write", "{")], Finish::Length);
    let stage = check(vec![cut(), cut(), cut(), cut(), cut()], expect![[r#"
        4 requests
        user: go
        user: Your answer reached the output limit inside a call of write, so that call was not made. Make it again with less input, for example in several smaller steps.
        user: Your answer reached the output limit inside a call of write, so that call was not made. Make it again with less input, for example in several smaller steps.
        user: Your answer reached the output limit inside a call of write, so that call was not made. Make it again with less input, for example in several smaller steps.
        answer "" []
        answer "" []
        answer "" []
        answer "" []
        error query: The model's call of write reached the output limit again and again, so the run was stopped. Ask for smaller steps, or raise `max_output_tokens` of the model."#]]).await;
    assert_eq!(stage.requests().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_full_context_window_is_summarised_before_the_model_goes_on() {
    let setting = Setting { compaction: Some(Compaction::default()), ..Setting::default() };
    let stage = check_setting(
        setting,
        vec![
            call("a", "echo"),
            Line::Finish("half", Finish::ContextFull),
            Line::Say("<overview>All of it.</overview>"),
            Line::Say("the rest"),
        ],
        expect![[r#"
            4 requests
            user: Some of the conversation history has been summarized to free up context.

            You were originally given instructions from a user over one or more turns. Here were the user messages:
            <user_message>
            go
            </user_message>

            Here is a summary of the prior context:
            <summary>
            <overview>All of it.</overview>
            </summary>

            <system_reminder>The session folder is /s.</system_reminder>
            answer "" ["a"]
            runs a
            answer "half" []
            answer "the rest" []"#]],
    )
    .await;
    assert_eq!(stage.count("session.compaction_complete"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_full_context_window_is_cut_where_nothing_is_summarised() {
    let setting = Setting { log: Vec::new(), ..Setting::default() };
    let mut stage = Stage::set(
        setting,
        vec![Line::Say("one"), Line::Finish("half", Finish::ContextFull), Line::Say("rest")],
    );
    stage.play(&"x".repeat(400)).await;
    stage.play("go").await;
    assert_eq!(stage.count("session.truncation"), 1);
    assert_eq!(stage.count("session.error"), 0);
}

#[tokio::test(start_paused = true)]
async fn answers_that_fill_the_window_again_and_again_are_an_error_and_no_matter_of_the_output_limit() {
    let mut stage = Stage::new(vec![Line::Finish("half", Finish::ContextFull); 9]);
    stage.play("go").await;
    let errors: Vec<String> = stage
        .bodies()
        .into_iter()
        .filter_map(|body| if let Body::SessionError(error) = body { Some(error.message) } else { None })
        .collect();
    assert!(matches!(&errors[..], [error] if error.contains("context window")), "{errors:?}");
    let told: Vec<String> = stage
        .bodies()
        .into_iter()
        .filter_map(|body| if let Body::UserMessage(told) = body { told.transformed_content } else { None })
        .collect();
    assert!(told.iter().any(|text| text.contains("filled the context window")), "{told:?}");
    assert!(!told.iter().any(|text| text.contains("output limit")), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn an_unusable_answer_is_asked_for_once_more() {
    check(
        vec![Line::Finish("", Finish::Broken("malformed_function_call".to_owned())), Line::Say("ok")],
        expect![[r#"
            2 requests
            user: go
            retry unusable_answer
            answer "ok" []"#]],
    )
    .await;
    check(
        vec![Line::Finish("", Finish::Other(String::new())), Line::Say("ok")],
        expect![[r#"
        2 requests
        user: go
        retry unusable_answer
        answer "ok" []"#]],
    )
    .await;
    check(vec![Line::Finish("", Finish::Broken("malformed_function_call".to_owned())); 3], expect![[r#"
        2 requests
        user: go
        retry unusable_answer
        answer "" []
        error query: The model's answer was not usable, twice: the provider ended it with `malformed_function_call`."#]])
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_reason_that_nobody_knows_is_no_reason_to_doubt_an_answer() {
    check(
        vec![Line::Finish("Fine.", Finish::Other("eos".to_owned()))],
        expect![[r#"
        1 requests
        user: go
        answer "Fine." []"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_empty_end_behind_work_is_an_end() {
    check(
        vec![call("a", "write"), Line::Finish("", Finish::Stop)],
        expect![[r#"
        2 requests
        user: go
        assistant: ["a"]
        tool a: a ok
        answer "" ["a"]
        runs a
        answer "" []"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_empty_end_behind_tools_that_only_looked_is_asked_about_once() {
    check(
        vec![call("a", "echo"), Line::Finish("", Finish::Stop), Line::Say("Three files.")],
        expect![[r#"
            3 requests
            user: go
            assistant: ["a"]
            tool a: a ok
            user: Your last answer was empty. If you have what you need, answer the request now; otherwise go on with the work.
            answer "" ["a"]
            runs a
            answer "" []
            answer "Three files." []"#]],
    )
    .await;
    check(
        vec![call("a", "echo"), Line::Finish("", Finish::Stop), Line::Finish("", Finish::Stop)],
        expect![[r#"
            3 requests
            user: go
            assistant: ["a"]
            tool a: a ok
            user: Your last answer was empty. If you have what you need, answer the request now; otherwise go on with the work.
            answer "" ["a"]
            runs a
            answer "" []
            answer "" []
            error query: The model returned an empty answer. Send the message again to retry."#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_autopilot_does_not_go_on_after_a_refusal() {
    let setting = Setting { mode: Mode::Autopilot, ..Setting::default() };
    let mut stage = Stage::set(setting, vec![Line::Finish("", Finish::Refusal(None))]);
    stage.play("go").await;
    assert_eq!(stage.requests().len(), 1);
}
