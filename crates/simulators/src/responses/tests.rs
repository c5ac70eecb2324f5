use serde_json::{Value, json};

use super::tools::list;
use super::*;
use crate::scenario::{
    AnswerPiece, FailureKind, Fault, Scenario, ScenarioEnd, ScenarioTurn, TextPhase, VendorFailure, WebPage,
};
use crate::simulator::Simulator;
use crate::testing::{check_refusals, events, post, whole};

const HEADERS: [(&str, &str); 1] = [("authorization", "Bearer sk-1")];

fn simulator() -> Simulator {
    PROFILE.simulator().unwrap()
}

fn base() -> Value {
    json!({
        "model": "gpt-5.6-sol", "store": false, "input": [{"role": "user", "content": "SAY:hi"}],
        "include": [],
        "tools": [
            {"type": "function", "name": "bash", "parameters": {"type": "object", "properties": {}}},
            {"type": "custom", "name": "apply_patch"},
        ],
    })
}

#[test]
fn tables_name_only_shapes_that_exist() {
    let vendor = Responses::new().unwrap();
    assert_eq!(vendor.shapes.undefined(), [""; 0]);
    for model in &vendor.models.models {
        let default = model.default_effort.as_ref();
        assert!(default.is_none_or(|default| model.efforts.contains(default)), "{}", model.id);
    }
}

#[test]
fn each_rule_refuses_in_the_words_of_the_vendor() {
    check_refusals(include_str!("cases.toml"), "/v1/responses", &HEADERS, &base(), simulator);
}

#[test]
fn a_prompt_longer_than_what_the_window_leaves_is_refused() {
    let mut body = base();
    body["model"] = json!("gpt-5");
    body["instructions"] = json!("a b ".repeat(140_000));
    let (status, told) = whole(simulator().answer(&post("/v1/responses", &HEADERS, &body)));
    assert_eq!((status, told["error"]["code"].as_str()), (400, Some("context_length_exceeded")));
}

/// A conversation with tools, by a client that does everything right.
struct Client {
    simulator: Simulator,
    body: Value,
    headers: Vec<(&'static str, &'static str)>,
}

impl Client {
    fn new(turns: Vec<ScenarioTurn>) -> Self {
        let mut body = base();
        body["include"] = json!(["reasoning.encrypted_content"]);
        body["reasoning"] = json!({"summary": "auto"});
        let simulator = simulator().with_scenario(Scenario::of(turns));
        Self { simulator, body, headers: HEADERS.to_vec() }
    }

    fn send(&self) -> (u16, Value) {
        whole(self.simulator.answer(&post("/v1/responses", &self.headers, &self.body)))
    }

    /// Sends, and appends the answer with outputs for its calls.
    fn turn(&mut self) -> Value {
        let (status, answer) = self.send();
        assert_eq!(status, 200, "{answer}");
        let input = self.body["input"].as_array_mut().unwrap();
        input.extend(list(&answer["output"]).iter().cloned());
        for call in list(&answer["output"]).iter().filter(|item| item["call_id"].is_string()) {
            let kind = format!("{}_output", call["type"].as_str().unwrap());
            input.push(json!({"type": kind, "call_id": call["call_id"], "output": "done"}));
        }
        answer
    }

    fn items(&mut self) -> &mut Vec<Value> {
        self.body["input"].as_array_mut().unwrap()
    }

    fn refused(&self) -> String {
        let (status, answer) = self.send();
        assert_eq!(status, 400, "{answer}");
        answer["error"]["message"].as_str().unwrap().to_owned()
    }
}

fn pairs() -> ScenarioTurn {
    ScenarioTurn::say([
        AnswerPiece::thinking("One."),
        AnswerPiece::call("bash", &json!({"n": 1})),
        AnswerPiece::thinking("Two."),
        AnswerPiece::call("apply_patch", &json!("*** Begin")),
    ])
}

#[test]
fn items_that_come_back_as_they_came_pass_with_ids_and_without() {
    for with_ids in [true, false] {
        let mut client = Client::new(vec![pairs(), pairs()]);
        for _ in 0..3 {
            client.turn();
            if !with_ids {
                for item in client.items() {
                    item.as_object_mut().unwrap().remove("id");
                }
            }
        }
        assert_eq!(client.simulator.finish().unwrap().answers, 3);
    }
}

#[test]
fn custom_tools_get_free_text() {
    let answer = Client::new(vec![pairs()]).turn();
    assert_eq!(answer["output"][1]["arguments"], "{\"n\":1}");
    assert_eq!(answer["output"][3]["type"], "custom_tool_call");
    assert_eq!(answer["output"][3]["input"], "*** Begin");
}

#[test]
fn reasoning_stays_before_its_item_and_unchanged() {
    let change = |edit: fn(&mut Vec<Value>)| {
        let mut client = Client::new(vec![pairs()]);
        client.turn();
        edit(client.items());
        client.refused()
    };
    // The prompt is item 0, then reasoning, call, reasoning, call, output, output.
    let follower = "of type 'reasoning' was provided without its required following item.";
    assert!(change(|items| items.swap(2, 3)).contains(follower));
    assert!(
        change(|items| items.retain(|item| item["type"] != "function_call" && item["output"] != "done"
            || item["type"] == "custom_tool_call_output"))
        .contains(follower)
    );
    let reasoning = "was provided without its required 'reasoning' item: 'rs_";
    assert!(change(|items| drop(items.remove(1))).contains(reasoning));
    let unverified = "could not be verified";
    assert!(change(|items| items[1]["summary"][0]["text"] = json!("Other.")).contains(unverified));
    assert!(change(|items| items[1]["encrypted_content"] = json!("AAAA")).contains(unverified));
}

#[test]
fn reasoning_of_another_model_goes_without_ids_and_of_another_account_not_at_all() {
    let mut client = Client::new(vec![pairs()]);
    client.turn();
    client.body["model"] = json!("gpt-6.1-terra");
    assert!(client.refused().contains("belongs to an item of another model"));
    for item in client.items() {
        item.as_object_mut().unwrap().remove("id");
    }
    client.turn();
    let mut client = Client::new(vec![pairs()]);
    client.turn();
    client.headers = vec![("authorization", "Bearer other")];
    assert!(client.refused().contains("organization_id did not match"));
}

#[test]
fn reasoning_is_encrypted_and_summarised_only_if_asked() {
    let mut client = Client::new(vec![pairs()]);
    client.body["include"] = json!([]);
    client.body["reasoning"] = json!({});
    let (_, answer) = client.send();
    assert_eq!(answer["output"][0]["summary"], json!([]));
    assert_eq!(answer["output"][0].get("encrypted_content"), None);
    assert!(answer["usage"]["output_tokens_details"]["reasoning_tokens"].as_u64().unwrap() > 0);
}

#[test]
fn a_phase_that_was_given_must_come_back() {
    let said = ScenarioTurn::say([
        AnswerPiece::Text { text: "I look.".into(), phase: Some(TextPhase::Commentary) },
        AnswerPiece::text("Here it is."),
    ]);
    let mut client = Client::new(vec![said]);
    let answer = client.turn();
    let phases: Vec<_> = list(&answer["output"]).iter().map(|item| &item["phase"]).collect();
    assert_eq!(phases, ["commentary", "final_answer"]);
    client.items().push(json!({"role": "user", "content": "SAY:next"}));
    client.turn();
    client.simulator.finish().unwrap();
    client.items()[1].as_object_mut().unwrap().remove("phase");
    client.turn();
    let failures = client.simulator.finish().unwrap_err().to_string();
    assert!(failures.contains("input[1].phase is null and was given as \"commentary\""), "{failures}");
}

#[test]
fn a_call_that_was_cut_must_not_come_back() {
    let cut = AnswerPiece::Call { tool: "bash".into(), arguments: "{\"n".into() };
    let mut client = Client::new(vec![ScenarioTurn::ending([cut], ScenarioEnd::Length)]);
    client.turn();
    client.turn();
    let failures = client.simulator.finish().unwrap_err().to_string();
    assert!(failures.contains("was cut inside its input: it must be dropped"), "{failures}");
}

#[test]
fn prefixes_are_cached_by_key_and_writes_are_told() {
    let mut client = Client::new(vec![pairs(), pairs()]);
    client.body["instructions"] = json!("word ".repeat(3000));
    client.body["prompt_cache_key"] = json!("k");
    let usage = |answer: &Value| {
        let details = &answer["usage"]["input_tokens_details"];
        (details["cached_tokens"].as_u64().unwrap(), details["cache_write_tokens"].as_u64().unwrap())
    };
    let (read, written) = usage(&client.turn());
    assert!(read == 0 && written >= 2944, "{written}");
    let (read, _) = usage(&client.turn());
    assert_eq!(read, written);
    client.body["prompt_cache_key"] = json!("other");
    assert_eq!(usage(&client.turn()).0, 0);
}

#[test]
fn another_effort_loses_the_cache_of_some_models() {
    for (model, kept) in [("gpt-5.6-sol", true), ("gpt-6.1-terra", false)] {
        let mut client = Client::new(vec![]);
        client.body["model"] = json!(model);
        client.body["instructions"] = json!("word ".repeat(3000));
        client.send();
        client.body["reasoning"]["effort"] = json!("high");
        let cached = client.send().1["usage"]["input_tokens_details"]["cached_tokens"].as_u64().unwrap();
        assert_eq!(cached > 0, kept, "{model}");
    }
}

fn streamed(turn: ScenarioTurn) -> Vec<Value> {
    let mut client = Client::new(vec![turn]);
    client.body["stream"] = json!(true);
    events(client.simulator.answer(&post("/v1/responses", &client.headers, &client.body)))
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap_or_else(|| event.as_str().unwrap())).collect()
}

#[test]
fn a_stream_tells_items_by_events() {
    let events = streamed(ScenarioTurn::say([
        AnswerPiece::thinking("t"),
        AnswerPiece::Ping,
        AnswerPiece::call("bash", &json!({})),
    ]));
    assert_eq!(
        kinds(&events),
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.reasoning_summary_part.added",
            "response.reasoning_summary_text.delta",
            "response.reasoning_summary_text.done",
            "response.reasoning_summary_part.done",
            "response.output_item.done",
            "keepalive",
            "response.output_item.added",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    let numbers: Vec<_> = events.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());
}

#[test]
fn ids_of_items_can_differ_in_each_event() {
    let mut turn = ScenarioTurn::say([AnswerPiece::text("a")]);
    if let crate::scenario::Act::Say { faults, .. } = &mut turn.act {
        faults.push(Fault::ChangingItemIds);
    }
    let events = streamed(turn);
    let mut ids: Vec<_> = events
        .iter()
        .filter_map(|event| event["item_id"].as_str().or(event["item"]["id"].as_str()))
        .collect();
    let all = ids.len();
    ids.dedup();
    assert!(all > 3 && ids.len() == all);
}

#[test]
fn a_stream_ends_as_the_vendor_ends_it() {
    let last = |end: ScenarioEnd| {
        let call = AnswerPiece::Call { tool: "bash".into(), arguments: "{\"n".into() };
        streamed(ScenarioTurn::ending([call], end)).pop().unwrap()
    };
    let failed = |code: &str| {
        ScenarioEnd::Failed(VendorFailure {
            code: Some(code.to_owned()),
            ..VendorFailure::new(FailureKind::Policy)
        })
    };
    assert_eq!(last(ScenarioEnd::Length)["response"]["incomplete_details"]["reason"], "max_output_tokens");
    assert_eq!(last(ScenarioEnd::Length)["response"]["output"][0]["status"], "incomplete");
    assert_eq!(
        last(ScenarioEnd::ContentFilter)["response"]["incomplete_details"]["reason"],
        "content_filter"
    );
    for code in ["server_error", "rate_limit_exceeded", "invalid_prompt", "bio_policy", "cyber_policy"] {
        let event = last(failed(code));
        assert_eq!(
            (event["type"].as_str(), event["response"]["error"]["code"].as_str()),
            (Some("response.failed"), Some(code))
        );
    }
    assert_eq!(last(ScenarioEnd::Cut), "cut");
}

#[test]
fn failures_have_their_codes() {
    for (kind, status, code) in [
        (FailureKind::RateLimited, 429, "rate_limit_exceeded"),
        (FailureKind::SlowDown, 429, "slow_down"),
        (FailureKind::Quota, 429, "insufficient_quota"),
        (FailureKind::Overloaded, 503, "server_is_overloaded"),
        (FailureKind::ContextLength, 400, "context_length_exceeded"),
    ] {
        let (found, answer) = Client::new(vec![ScenarioTurn::fail(kind)]).send();
        assert_eq!((found, answer["error"]["code"].as_str()), (status, Some(code)));
    }
}

#[test]
fn a_refusal_is_a_part_of_its_own() {
    let answer =
        Client::new(vec![ScenarioTurn::ending([AnswerPiece::text("No.")], ScenarioEnd::Refusal)]).turn();
    assert_eq!(answer["output"][0]["content"][0], json!({"type": "refusal", "refusal": "No."}));
}

#[test]
fn counts_beside_responses_are_those_that_are_reported() {
    let simulator = simulator();
    let (_, counted) = whole(simulator.answer(&post("/v1/responses/input_tokens", &HEADERS, &base())));
    whole(simulator.answer(&post("/v1/responses", &HEADERS, &base())));
    assert_eq!(counted["input_tokens"], simulator.totals().usage.input);
}

#[test]
fn a_search_is_an_item_that_goes_back_as_it_came_behind_its_reasoning() {
    let found = vec![WebPage { title: "A".into(), url: "https://a.example".into() }];
    let search = AnswerPiece::Search { query: "rust".into(), found };
    let turn =
        || ScenarioTurn::say([AnswerPiece::thinking("Hm."), search.clone(), AnswerPiece::text("It is out.")]);
    let searching = |edit: fn(&mut Vec<Value>)| {
        let mut client = Client::new(vec![turn()]);
        client.body["tools"].as_array_mut().unwrap().push(json!({"type": "web_search"}));
        let answer = client.turn();
        edit(client.items());
        client.items().push(json!({"role": "user", "content": "SAY:bye"}));
        (client, answer)
    };
    let (client, answer) = searching(|_| {});
    let kinds: Vec<_> = list(&answer["output"]).iter().map(|item| &item["type"]).collect();
    assert_eq!(kinds, ["reasoning", "web_search_call", "message"]);
    assert_eq!(answer["output"][2]["content"][0]["annotations"][0]["url"], "https://a.example");
    assert_eq!(client.send().0, 200);
    let totals = client.simulator.finish().unwrap();
    assert!(totals.usage.searches == 1 && totals.cost > 0.01, "{totals:?}");
    let (client, _) = searching(|items| drop(items.remove(2)));
    assert!(client.refused().contains("without its required following item"));
    let (client, _) = searching(|items| items[2]["action"]["query"] = json!("other"));
    client.send();
    let failures = client.simulator.finish().unwrap_err().to_string();
    assert!(failures.contains("is not the search"), "{failures}");
}
