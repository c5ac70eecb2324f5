use serde_json::json;

use super::*;
use crate::anthropic;
use crate::testing::{post, whole};

/// Sends prompts, one request each, and prints the answers or refusals.
fn check(scenario: &str, prompts: &[&str], answers: &[&str], finished: Result<usize, &[&str]>) {
    let scenario = Scenario::parse(scenario).unwrap();
    let simulator = anthropic::PROFILE.simulator().unwrap().with_scenario(scenario);
    let headers = [("x-api-key", "k"), ("anthropic-version", "2023-06-01")];
    for (prompt, expected) in prompts.iter().zip(answers) {
        let mut body = json!({
            "model": "claude-haiku-4-5", "max_tokens": 100, "messages": [{"role": "user", "content": prompt}],
        });
        if *prompt == "wrong" {
            body["wrong"] = json!(true);
        }
        let (status, told) = whole(simulator.answer(&post("/v1/messages", &headers, &body)));
        let text = told["content"][0]["text"].as_str().or(told["error"]["message"].as_str());
        assert_eq!(format!("{status} {}", text.unwrap_or_default()), **expected, "{prompt}");
    }
    let told = simulator.finish().map(|totals| totals.answers);
    let told = told.map_err(|Failures(problems)| problems);
    assert_eq!(told, finished.map_err(|problems| problems.iter().map(|p| (*p).to_owned()).collect()));
}

#[test]
fn turns_answer_in_their_order_and_then_markers_do() {
    check(
        "[[turn]]\nsay = [{ text = 'one' }]\n[[turn]]\nsay = [{ text = 'two' }]",
        &["a", "b", "SAY:three", "d"],
        &["200 one", "200 two", "200 three", "200 pong"],
        Ok(4),
    );
}

#[test]
fn a_turn_that_waits_for_a_prompt_goes_before_the_others() {
    check(
        "[[turn]]\nsay = [{ text = 'one' }]\n[[turn]]\nwhen = { prompt = 'explore' }\nsay = [{ text = 'sub' }]",
        &["please explore", "a"],
        &["200 sub", "200 one"],
        Ok(2),
    );
}

#[test]
fn a_refusal_that_nobody_expected_fails_the_test() {
    let refused = "400 wrong: Extra inputs are not permitted";
    check(
        "",
        &["wrong"],
        &[refused],
        Err(&["request 1 to /v1/messages was refused: 400 wrong: Extra inputs are not permitted"]),
    );
    check("[[turn]]\nrefuse = 'Extra inputs'", &["wrong", "SAY:x"], &[refused, "200 x"], Ok(1));
    check(
        "[[turn]]\nrefuse = 'Extra inputs'",
        &["SAY:x"],
        &["200 x"],
        Err(&["request 1 should have been refused with `Extra inputs`"]),
    );
}

#[test]
fn expectations_that_do_not_hold_and_turns_that_are_left_fail_the_test() {
    check(
        "calls = 1\n[[turn]]\nsay = []\nexpect = { absent = ['/max_tokens'], cached = 0.5 }\n[[turn]]\nsay = []\n\
         [[turn]]\nsay = []",
        &["a", "b"],
        &["200 ", "200 "],
        Err(&[
            "request 1: `/max_tokens` is 100 and should be absent",
            "request 1: 0 of 5 tokens came from the cache, less than 0.5",
            "no request came for turn 3 of the scenario",
            "2 requests were answered, more than 1",
        ]),
    );
    check(
        "cached = 0.8\ncached_from = 1",
        &["SAY:x"],
        &["200 x"],
        Err(&["0 of 7 tokens came from the cache from answer 1 on, less than 0.8"]),
    );
}

#[test]
fn failures_are_not_refusals() {
    check(
        "[[turn]]\nfail = { kind = 'overloaded' }\n[[turn]]\nfail = { kind = 'other', status = 418, message = 'tea' }",
        &["a", "b", "SAY:c"],
        &["529 Overloaded", "418 tea", "200 c"],
        Ok(1),
    );
}
