use expect_test::{Expect, expect};
use tokio::time::Instant;

use super::super::conversation::{answer, assistant, call, lines, request, result, user};
use super::*;

fn model() -> ScriptedModel {
    ScriptedModel::new(Script::default(), 0xa)
}

async fn check(prompt: &str, expected: Expect) {
    expected.assert_eq(&lines(&answer(&model(), &request(vec![user(prompt)])).await));
}

async fn check_whole(prompt: &str, expected: Expect) {
    let request = ModelRequest { stream: false, ..request(vec![user(prompt)]) };
    expected.assert_eq(&lines(&answer(&model(), &request).await));
}

#[tokio::test]
async fn a_plain_prompt_is_answered_with_pong() {
    check(
        "hello",
        expect![[r#"
        text "pong"
        Stop: "pong"
    "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn thinking_pieces_and_calls_come_in_order() {
    check(
        "THINK:hm\nSTREAM:2:10\nPTOOL:bash:{\"command\": \"ls\"}\nTOOL:nosuch:oops",
        expect![[r#"
        reasoning "hm"
        text "tok0 "
        text "tok1 "
        input of Function bash call_a0001_0: ""
        input of Function bash call_a0001_0: "{\"command\": \"ls\"}"
        input of Function nosuch call_a0001_1: ""
        input of Function nosuch call_a0001_1: "oops"
        ToolCalls: "tok0 tok1 " reasoning "hm" Function bash({"command": "ls"}) Function nosuch(oops)
    "#]],
    )
    .await;
}

#[tokio::test]
async fn a_custom_tool_gets_free_text() {
    check(
        r#"TOOL:apply_patch:"*** Begin\n*** End""#,
        expect![[r#"
        input of Custom apply_patch call_a0001_0: ""
        input of Custom apply_patch call_a0001_0: "*** Begin\n*** End"
        ToolCalls: "" Custom apply_patch(*** Begin
        *** End)
    "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_one_piece_has_no_pieces() {
    check_whole(
        "THINK:hm\nSTREAM:2:10\nTOOL:bash:{}",
        expect![[r#"
        ToolCalls: "tok0 tok1 " reasoning "hm" Function bash({})
    "#]],
    )
    .await;
    check_whole(
        "SAY:lost\nDROP:",
        expect![[r#"
        Cut: the script broke off the answer
    "#]],
    )
    .await;
}

#[tokio::test]
async fn an_empty_answer_is_an_answer() {
    check(
        "SAY:",
        expect![[r#"
        Stop: ""
    "#]],
    )
    .await;
}

#[tokio::test]
async fn a_reason_to_stop_is_passed_on() {
    check(
        "SAY:ab\nSTOP:max_tokens",
        expect![[r#"
        text "ab"
        Length: "ab"
    "#]],
    )
    .await;
    check(
        "SAY:ab\nSTOP:pause",
        expect![[r#"
        text "ab"
        Other("pause"): "ab"
    "#]],
    )
    .await;
}

#[tokio::test]
async fn a_cut_comes_behind_what_was_said() {
    check(
        "STREAM:2\nDROP:\nSAY:never",
        expect![[r#"
        text "tok0 "
        text "tok1 "
        Cut: the script broke off the answer
    "#]],
    )
    .await;
}

#[tokio::test]
async fn a_failure_is_the_error_of_its_status() {
    for (status, kind) in [
        (400, ModelErrorKind::Refused),
        (401, ModelErrorKind::Authentication),
        (403, ModelErrorKind::AccessDenied),
        (404, ModelErrorKind::Refused),
        (413, ModelErrorKind::ContextLength),
        (422, ModelErrorKind::Refused),
        (429, ModelErrorKind::RateLimit),
        (500, ModelErrorKind::Server),
        (503, ModelErrorKind::Server),
        (529, ModelErrorKind::Server),
    ] {
        let events = answer(&model(), &request(vec![user(&format!("SAY:x\nFAIL:{status}"))])).await;
        let [Err(error)] = events.as_slice() else { panic!("{status} gave {events:?}") };
        assert_eq!((error.kind, error.status), (kind, Some(status)));
    }
}

#[tokio::test]
async fn a_failure_says_what_a_provider_would() {
    let events = answer(&model(), &request(vec![user("FAIL:429:1:2")])).await;
    let [Err(error)] = events.as_slice() else { panic!("{events:?}") };
    expect![[r#"
        ModelError {
            kind: RateLimit,
            status: Some(
                429,
            ),
            message: "429 mock failure 429",
            body: Some(
                "{\"type\":\"rate_limit_error\",\"message\":\"mock failure 429\",\"code\":\"rate_limit_exceeded\",\"param\":null}",
            ),
            code: Some(
                "rate_limit_exceeded",
            ),
            retry_after: Some(
                2s,
            ),
            should_retry: None,
            request_ids: RequestIds {
                github: None,
                service: None,
            },
        }
    "#]]
    .assert_debug_eq(error);
}

#[tokio::test]
async fn a_retried_request_succeeds_when_the_failures_are_spent() {
    let model = model();
    let request = request(vec![user("FAIL:500:1\nSAY:recovered")]);
    expect![[r#"
        Server: 500 mock failure 500
        text "recovered"
        Stop: "recovered"
    "#]]
    .assert_eq(&(lines(&answer(&model, &request).await) + &lines(&answer(&model, &request).await)));
}

#[tokio::test]
async fn results_lead_to_the_next_turn() {
    let prompt = "TOOL:bash:{}\nTOOL:bash:{\"again\": 1}";
    let (one, two) = (call("1", "bash", "{}"), call("2", "bash", "{\"again\": 1}"));
    let mut messages = vec![user("SAY:earlier"), assistant("earlier", &[]), user(prompt)];
    messages.extend([assistant("", std::slice::from_ref(&one)), result(&one, "first")]);
    expect![[r#"
        input of Function bash call_a0001_0: ""
        input of Function bash call_a0001_0: "{\"again\": 1}"
        ToolCalls: "" Function bash({"again": 1})
    "#]]
    .assert_eq(&lines(&answer(&model(), &request(messages.clone())).await));
    messages.extend([assistant("", std::slice::from_ref(&two)), result(&two, "second")]);
    expect![[r#"
        text "done: second"
        Stop: "done: second"
    "#]]
    .assert_eq(&lines(&answer(&model(), &request(messages)).await));
}

#[tokio::test]
async fn no_call_is_made_when_none_may_be() {
    let forbidden = ModelRequest { tool_choice: ToolChoice::None, ..request(vec![user("TOOL:bash:{}")]) };
    let offered_none = ModelRequest { tools: [].into(), ..request(vec![user("TOOL:bash:{}")]) };
    for request in [forbidden, offered_none] {
        expect![[r#"
            text "pong"
            Stop: "pong"
        "#]]
        .assert_eq(&lines(&answer(&model(), &request).await));
    }
}

#[tokio::test(start_paused = true)]
async fn delays_pass_before_what_follows_them() {
    let begin = Instant::now();
    let mut events = model().stream(request(vec![user("DELAY:500\nSTREAM:3:100")]));
    let mut times = Vec::new();
    while let Some(event) = events.next().await {
        event.unwrap();
        times.push(begin.elapsed().as_millis());
    }
    assert_eq!(times, [500, 600, 700, 700]);
}

#[tokio::test]
async fn ids_differ_between_requests() {
    let model = model();
    let request = request(vec![user("TOOL:bash:{}")]);
    let mut ids = Vec::new();
    for _ in 0..2 {
        let events = answer(&model, &request).await;
        let Some(Ok(ModelEvent::Finished(reply))) = events.last() else { panic!("{events:?}") };
        ids.extend([reply.id.clone().unwrap(), reply.turn.tool_calls[0].id.clone()]);
    }
    assert_eq!(ids, ["scripted-a0001", "call_a0001_0", "scripted-a0002", "call_a0002_0"]);
}

#[tokio::test]
async fn usage_is_a_quarter_of_the_bytes() {
    let mut request = request(vec![user("SAY:12345678")]);
    request.tools = [].into();
    request.system = "x".repeat(400).into();
    let events = answer(&model(), &request).await;
    let Some(Ok(ModelEvent::Finished(reply))) = events.last() else { panic!("{events:?}") };
    assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens), (Some(103), Some(2)));
    assert_eq!((reply.usage.cache_read_tokens, reply.usage.reasoning_tokens), (None, None));
}
