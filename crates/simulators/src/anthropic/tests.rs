use serde_json::{Value, json};

use super::*;
use crate::request::Strictness;
use crate::scenario::{AnswerPiece, FailureKind, Scenario, ScenarioEnd, ScenarioTurn, WebPage};
use crate::simulator::Simulator;
use crate::testing::{check_refusals, events, post, whole};

const HEADERS: [(&str, &str); 2] = [("x-api-key", "k"), ("anthropic-version", "2023-06-01")];

fn simulator() -> Simulator {
    PROFILE.simulator().unwrap()
}

fn base() -> Value {
    json!({
        "model": "claude-opus-5-5", "max_tokens": 1024, "messages": [{"role": "user", "content": "SAY:hi"}],
        "tools": [{"name": "bash", "description": "Runs.", "input_schema": {"type": "object"}}],
    })
}

#[test]
fn tables_name_only_shapes_that_exist() {
    let vendor = Anthropic::new().unwrap();
    assert_eq!(vendor.shapes.undefined(), [""; 0]);
    for model in &vendor.models.models {
        let default = model.default_effort.as_ref();
        assert_eq!(default.is_some(), !model.efforts.is_empty(), "{}", model.id);
        assert!(default.is_none_or(|default| model.efforts.contains(default)), "{}", model.id);
    }
}

#[test]
fn each_rule_refuses_in_the_words_of_the_vendor() {
    check_refusals(include_str!("cases.toml"), "/v1/messages", &HEADERS, &base(), simulator);
}

#[test]
fn long_prompts_and_bodies_are_refused() {
    let mut body = base();
    body["model"] = json!("claude-haiku-4-5");
    body["messages"][0]["content"] = json!("a b ".repeat(110_000));
    let (status, told) = whole(simulator().answer(&post("/v1/messages", &HEADERS, &body)));
    let message = told["error"]["message"].as_str().unwrap();
    assert_eq!(status, 400);
    assert!(message.starts_with("prompt is too long: 2") && message.ends_with("tokens > 200000 maximum"));
    let mut request = post("/v1/messages", &HEADERS, &base());
    request.size = 33 * 1024 * 1024;
    let (status, told) = whole(simulator().answer(&request));
    assert_eq!((status, told["error"]["type"].as_str()), (413, Some("request_too_large")));
}

#[test]
fn foreign_fields_are_only_recorded_if_the_simulator_is_lenient() {
    let mut body = base();
    body["novelty"] = json!(1);
    let mut request = post("/v1/messages", &HEADERS, &body);
    request.strictness = Strictness::Lenient;
    let simulator = simulator();
    assert_eq!(whole(simulator.answer(&request)).0, 200);
    assert_eq!(simulator.stats()["exchanges"][0]["foreign"], json!(["novelty"]));
}

/// A conversation with tools, by a client that does everything right.
struct Client {
    simulator: Simulator,
    body: Value,
    headers: Vec<(&'static str, &'static str)>,
}

impl Client {
    fn new(model: &str, turns: Vec<ScenarioTurn>) -> Self {
        let mut body = base();
        body["model"] = json!(model);
        body["thinking"] = json!({"type": "adaptive", "display": "summarized"});
        Self { simulator: simulator().with_scenario(Scenario::of(turns)), body, headers: HEADERS.to_vec() }
    }

    fn send(&self) -> (u16, Value) {
        whole(self.simulator.answer(&post("/v1/messages", &self.headers, &self.body)))
    }

    /// Sends, and appends the answer with results for its calls.
    fn turn(&mut self) -> Value {
        let (status, answer) = self.send();
        assert_eq!(status, 200, "{answer}");
        let results: Vec<Value> = messages::list(&answer["content"])
            .iter()
            .filter(|block| block["type"] == "tool_use")
            .map(|call| json!({"type": "tool_result", "tool_use_id": call["id"], "content": "done"}))
            .collect();
        let next = if results.is_empty() { json!("SAY:go on") } else { json!(results) };
        let messages = self.body["messages"].as_array_mut().unwrap();
        messages.push(json!({"role": "assistant", "content": answer["content"]}));
        messages.push(json!({"role": "user", "content": next}));
        answer
    }

    fn refused(&self) -> String {
        let (status, answer) = self.send();
        assert_eq!(status, 400, "{answer}");
        answer["error"]["message"].as_str().unwrap().to_owned()
    }

    /// The content of the assistant's newest message.
    fn content(&mut self) -> &mut Vec<Value> {
        let messages = self.body["messages"].as_array_mut().unwrap();
        let last = messages.iter().rposition(|message| message["role"] == "assistant").unwrap();
        messages[last]["content"].as_array_mut().unwrap()
    }
}

fn interleaved() -> ScenarioTurn {
    ScenarioTurn::say([
        AnswerPiece::thinking("First this."),
        AnswerPiece::text("I look."),
        AnswerPiece::thinking("Then that."),
        AnswerPiece::call("bash", &json!({"command": "ls"})),
    ])
}

#[test]
fn thinking_that_comes_back_unchanged_passes() {
    for model in ["claude-opus-5-5", "claude-opus-5", "claude-opus-4-6", "claude-sonnet-5-5"] {
        let mut client = Client::new(model, vec![interleaved(), interleaved()]);
        for _ in 0..3 {
            client.turn();
        }
        assert_eq!(client.simulator.finish().unwrap().answers, 3, "{model}");
    }
}

#[test]
fn a_model_with_a_budget_thinks_between_calls_only_if_it_is_asked_to() {
    for (beta, thinks) in [(None, false), (Some("interleaved-thinking-2025-05-14"), true)] {
        let mut client = Client::new("claude-haiku-4-5", vec![interleaved(), interleaved()]);
        client.body["thinking"] = json!({"type": "enabled", "budget_tokens": 1024});
        client.body["max_tokens"] = json!(2048);
        client.headers.extend(beta.map(|beta| ("anthropic-beta", beta)));
        let mut begins = || client.turn()["content"][0]["type"].as_str().unwrap().to_owned();
        assert_eq!(begins(), "thinking");
        assert_eq!(begins() == "thinking", thinks, "{beta:?}");
    }
}

#[test]
fn thinking_of_the_same_turn_may_not_be_left_out_moved_or_changed() {
    let change = |edit: fn(&mut Vec<Value>)| {
        let mut client = Client::new("claude-opus-4-6", vec![interleaved()]);
        client.turn();
        edit(client.content());
        client.refused()
    };
    let modified = "blocks in the latest assistant message cannot be modified";
    let gone = "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`.";
    assert!(change(|content| content.retain(|block| block["type"] != "thinking")).contains(gone));
    assert!(change(|content| content.swap(1, 2)).contains(modified));
    assert!(change(|content| drop(content.remove(2))).contains(modified));
    assert!(change(|content| content[0]["thinking"] = json!("Other.")).contains(modified));
    let signature = change(|content| content[0]["signature"] = json!(""));
    assert!(signature.contains(modified), "{signature}");
}

#[test]
fn thinking_of_earlier_turns_may_be_left_out_where_it_is_not_preserved() {
    let done = || ScenarioTurn::say([AnswerPiece::text("Done.")]);
    let mut client = Client::new("claude-opus-4-6", vec![interleaved(), done()]);
    client.turn();
    client.turn();
    client.body["messages"][1]["content"].as_array_mut().unwrap().retain(|block| block["type"] != "thinking");
    client.turn();
    let mut changed = Client::new("claude-opus-4-6", vec![interleaved(), done()]);
    changed.turn();
    changed.turn();
    changed.body["system"] = json!("Other.");
    changed.turn();
}

#[test]
fn preserved_thinking_is_bound_to_everything_before_it() {
    let bound = "Invalid `signature` in `thinking` block. The block is bound to a different conversation";
    let change = |edit: fn(&mut Value)| {
        let mut client = Client::new("claude-opus-5-5", vec![interleaved(), interleaved()]);
        client.turn();
        client.turn();
        edit(&mut client.body);
        client.send()
    };
    let refusals: [fn(&mut Value); 4] = [
        |body| body["system"] = json!("Other."),
        |body| body["tools"][0]["description"] = json!("Other."),
        |body| body["messages"][0]["content"] = json!("Other."),
        |body| body["messages"][2]["content"][0]["content"] = json!("[withheld]"),
    ];
    for (index, edit) in refusals.into_iter().enumerate() {
        let (status, told) = change(edit);
        assert!(status == 400 && told.to_string().contains(bound), "{index}: {told}");
    }
    let passes: [fn(&mut Value); 2] = [
        |body| body["system"] = json!([]),
        |body| {
            body["messages"][0]["content"] =
                json!([{"type": "text", "text": "SAY:hi", "cache_control": {"type": "ephemeral"}}]);
        },
    ];
    for (index, edit) in passes.into_iter().enumerate() {
        assert_eq!(change(edit).0, 200, "{index}");
    }
}

#[test]
fn a_changed_prefix_drops_thinking_if_the_client_asks_for_it() {
    let mut client = Client::new("claude-opus-5-5", vec![interleaved()]);
    client.turn();
    client.body["system"] = json!("Other.");
    client.body["thinking"]["block_binding"] = json!({"prefix_mismatch_behavior": "drop_block"});
    client.headers.push(("anthropic-beta", "thinking-binding-controls-2026-08-01"));
    let answer = client.turn();
    let dropped: Vec<_> =
        messages::list(&answer["input_transformations"]).iter().map(|drop| &drop["path"]).collect();
    assert_eq!(dropped, ["messages.1.content.0", "messages.1.content.1", "messages.1.content.2"]);
}

#[test]
fn tools_may_change_in_a_conversation_with_a_header() {
    let mut client = Client::new("claude-opus-5-5", vec![interleaved()]);
    client.turn();
    let late = json!({"name": "late", "input_schema": {"type": "object"}});
    client.body["tools"].as_array_mut().unwrap().push(late);
    assert!(client.refused().contains("bound to a different conversation"));
    client.headers.push(("anthropic-beta", "mid-conversation-tool-changes-2026-07-01"));
    client.turn();
}

#[test]
fn a_tool_that_is_defined_in_the_conversation_changes_neither_its_thinking_nor_its_cache() {
    let mut client = Client::new("claude-opus-5-5", vec![interleaved()]);
    client.turn();
    let definition = json!({"name": "late", "input_schema": {"type": "object"}});
    let added =
        json!({"type": "tool_addition", "tool": {"type": "tool_definition", "definition": definition}});
    client.body["messages"].as_array_mut().unwrap().push(json!({"role": "system", "content": [added]}));
    assert!(client.refused().contains("inline-tools-2026-09-15"));
    client.headers.push(("anthropic-beta", "inline-tools-2026-09-15"));
    client.turn();
}

#[test]
fn thinking_of_another_model_is_dropped_and_of_another_account_refused() {
    let mut client = Client::new("claude-opus-5-5", vec![interleaved()]);
    client.turn();
    client.body["model"] = json!("claude-sonnet-5");
    let answer = client.turn();
    assert_eq!(answer["input_transformations"].as_array().unwrap().len(), 3);
    let mut client = Client::new("claude-sonnet-5-5", vec![interleaved()]);
    client.turn();
    client.headers[0] = ("x-api-key", "other");
    assert!(client.refused().contains("bound to a different conversation"));
}

#[test]
fn a_budget_wants_turns_with_calls_to_begin_with_thinking() {
    let mut client = Client::new("claude-haiku-4-5", vec![interleaved()]);
    client.body["max_tokens"] = json!(4096);
    client.body["thinking"] = json!({"type": "disabled"});
    client.turn();
    client.body["thinking"] = json!({"type": "enabled", "budget_tokens": 1024});
    assert!(client.refused().contains("Expected `thinking` or `redacted_thinking`, but found `text`"));
}

#[test]
fn the_display_of_thinking_is_omitted_by_default_and_its_tokens_count() {
    let mut client = Client::new("claude-opus-5-5", vec![interleaved()]);
    client.body["thinking"] = json!({"type": "adaptive"});
    let answer = client.turn();
    assert_eq!(answer["content"][0]["thinking"], "");
    assert!(!answer["content"][0]["signature"].as_str().unwrap().is_empty());
    assert!(answer["usage"]["output_tokens_details"]["thinking_tokens"].as_u64().unwrap() > 0);
    let input = |client: &Client| client.simulator.totals().usage.input;
    let first = input(&client);
    client.turn();
    let with_thinking = input(&client) - first;
    assert!(with_thinking > first + answer["usage"]["output_tokens"].as_u64().unwrap());
}

#[test]
fn text_before_a_call_is_thinking_on_some_models() {
    let mut client = Client::new("claude-opus-5-5", vec![interleaved()]);
    let answer = client.turn();
    let kinds: Vec<_> = messages::list(&answer["content"]).iter().map(|block| &block["type"]).collect();
    assert_eq!(kinds, ["thinking", "thinking", "thinking", "tool_use"]);
}

#[test]
fn a_model_that_does_not_think_leaves_thinking_out() {
    let mut client = Client::new("claude-opus-4-8", vec![interleaved()]);
    client.body.as_object_mut().unwrap().remove("thinking");
    let answer = client.turn();
    let kinds: Vec<_> = messages::list(&answer["content"]).iter().map(|block| &block["type"]).collect();
    assert_eq!(kinds, ["text", "tool_use"]);
    assert_eq!(answer["usage"]["output_tokens_details"]["thinking_tokens"], 0);
}

#[test]
fn a_paused_turn_goes_on_from_its_own_words_and_no_other_does() {
    let pause = ScenarioTurn::ending([AnswerPiece::text("Searching.")], ScenarioEnd::Pause);
    let mut client =
        Client::new("claude-opus-5-5", vec![pause, ScenarioTurn::say([AnswerPiece::text("Found.")])]);
    let (_, answer) = client.send();
    assert_eq!(answer["stop_reason"], "pause_turn");
    let paused = json!({"role": "assistant", "content": answer["content"]});
    client.body["messages"].as_array_mut().unwrap().push(paused);
    assert_eq!(client.send().1["content"][0]["text"], "Found.");
    client.body["messages"][1]["content"][0]["text"] = json!("Other.");
    assert!(client.refused().contains("does not support assistant message prefill"));
}

#[test]
fn a_call_that_was_cut_must_not_come_back() {
    let cut = AnswerPiece::Call { tool: "bash".into(), arguments: r#"{"command": "l"#.into() };
    let mut client = Client::new(
        "claude-opus-5-5",
        vec![ScenarioTurn::ending([AnswerPiece::text("a"), cut], ScenarioEnd::Length)],
    );
    client.turn();
    client.turn();
    let failures = client.simulator.finish().unwrap_err().to_string();
    assert!(failures.contains("was cut inside its input: it must be dropped"), "{failures}");
}

#[test]
fn marks_are_read_again_and_what_breaks_them_is_written_anew() {
    let mut client = Client::new("claude-opus-5-5", vec![interleaved(), interleaved(), interleaved()]);
    let mark = json!({"type": "ephemeral"});
    client.body["system"] = json!([{"type": "text", "text": "word ".repeat(600), "cache_control": mark}]);
    client.body["cache_control"] = mark;
    let usage = |answer: &Value| {
        let field = |name: &str| answer["usage"][name].as_u64().unwrap();
        (field("cache_read_input_tokens"), field("cache_creation_input_tokens"), field("input_tokens"))
    };
    let (read, written, rest) = usage(&client.turn());
    assert_eq!((read, rest), (0, 0));
    let (again, appended, _) = usage(&client.turn());
    assert_eq!(again, written);
    let (more, _, _) = usage(&client.turn());
    assert_eq!(more, again + appended);
    // Another kind of thinking loses the messages, not the system prompt.
    client.body["thinking"] = json!({"type": "adaptive"});
    client.body["tool_choice"] = json!({"type": "auto"});
    let (kept, _, _) = usage(&client.turn());
    assert!(0 < kept && kept < written, "{kept} of {written}");
}

#[test]
fn ends_and_failures_are_told_as_the_vendor_tells_them() {
    let cut = AnswerPiece::Call { tool: "bash".into(), arguments: r#"{"command": "l"#.into() };
    let reasons = [
        (ScenarioTurn::say([AnswerPiece::text("a")]), "end_turn"),
        (interleaved(), "tool_use"),
        (ScenarioTurn::ending([cut], ScenarioEnd::Length), "max_tokens"),
        (ScenarioTurn::ending([], ScenarioEnd::Natural), "end_turn"),
        (ScenarioTurn::ending([AnswerPiece::text("a")], ScenarioEnd::Refusal), "refusal"),
        (
            ScenarioTurn::ending([AnswerPiece::text("a")], ScenarioEnd::ContextWindow),
            "model_context_window_exceeded",
        ),
    ];
    for (turn, reason) in reasons {
        let (_, answer) = Client::new("claude-opus-5-5", vec![turn]).send();
        assert_eq!(answer["stop_reason"], reason);
    }
    for (kind, status, name) in [
        (FailureKind::Overloaded, 529, "overloaded_error"),
        (FailureKind::RateLimited, 429, "rate_limit_error"),
        (FailureKind::Quota, 402, "billing_error"),
        (FailureKind::ServerError, 500, "api_error"),
    ] {
        let (found, answer) = Client::new("claude-opus-5-5", vec![ScenarioTurn::fail(kind)]).send();
        assert_eq!((found, answer["error"]["type"].as_str()), (status, Some(name)));
    }
}

fn streamed(turn: ScenarioTurn) -> Vec<String> {
    let mut client = Client::new("claude-opus-5-5", vec![turn]);
    client.body["stream"] = json!(true);
    let answer = client.simulator.answer(&post("/v1/messages", &client.headers, &client.body));
    let line = |event: &Value| {
        let kind = event["type"].as_str().unwrap_or(event.as_str().unwrap_or_default());
        let inner = event["delta"]["type"].as_str().or(event["content_block"]["type"].as_str());
        let reason = event["delta"]["stop_reason"].as_str().or(event["error"]["type"].as_str());
        [Some(kind), inner, reason].into_iter().flatten().collect::<Vec<_>>().join(" ")
    };
    events(answer).iter().map(line).collect()
}

#[test]
fn a_stream_tells_blocks_by_events() {
    assert_eq!(
        streamed(ScenarioTurn::say([
            AnswerPiece::thinking("t"),
            AnswerPiece::Redacted("r".into()),
            AnswerPiece::Ping,
            AnswerPiece::call("bash", &json!({})),
        ])),
        [
            "message_start",
            "content_block_start thinking",
            "ping",
            "content_block_delta thinking_delta",
            "content_block_delta signature_delta",
            "content_block_stop",
            "content_block_start redacted_thinking",
            "content_block_stop",
            "ping",
            "content_block_start tool_use",
            "content_block_delta input_json_delta",
            "content_block_delta input_json_delta",
            "content_block_stop",
            "message_delta tool_use",
            "message_stop",
        ]
    );
}

#[test]
fn a_stream_ends_in_an_error_or_breaks() {
    let failure = crate::scenario::VendorFailure::new(FailureKind::Overloaded);
    let failed = streamed(ScenarioTurn::ending([AnswerPiece::text("a")], ScenarioEnd::Failed(failure)));
    assert_eq!(failed.last().unwrap(), "error overloaded_error");
    let call = AnswerPiece::Call { tool: "bash".into(), arguments: "{\"a".into() };
    let cut = streamed(ScenarioTurn::ending([call], ScenarioEnd::Cut));
    assert_eq!(cut[cut.len() - 2..], ["content_block_delta input_json_delta", "cut"]);
}

#[test]
fn models_and_counts_are_told_beside_messages() {
    let simulator = simulator();
    let mut request = post("/v1/models", &HEADERS, &Value::Null);
    request.method = "GET".to_owned();
    let (_, list) = whole(simulator.answer(&request));
    let opus = messages::list(&list["data"]).iter().find(|model| model["id"] == "claude-opus-5-5").unwrap();
    assert_eq!(opus["max_tokens"], 128_000);
    assert_eq!(opus["capabilities"]["thinking"]["types"]["enabled"]["supported"], false);
    assert_eq!(opus["capabilities"]["effort"]["xhigh"]["supported"], true);
    let count = post("/v1/messages/count_tokens", &HEADERS, &base());
    let (_, counted) = whole(simulator.answer(&count));
    whole(simulator.answer(&post("/v1/messages", &HEADERS, &base())));
    assert_eq!(counted["input_tokens"], simulator.totals().usage.input);
}

/// Searches, reports the results, and stops there.
fn searching(end: ScenarioEnd) -> ScenarioTurn {
    let found = vec![WebPage { title: "A".into(), url: "https://a.example".into() }];
    let search = AnswerPiece::Search { query: "rust".into(), found };
    match end {
        ScenarioEnd::Pause => {
            ScenarioTurn::ending([AnswerPiece::thinking("Hm."), search], ScenarioEnd::Pause)
        }
        end => {
            ScenarioTurn::ending([AnswerPiece::thinking("Hm."), search, AnswerPiece::text("It is out.")], end)
        }
    }
}

fn with_search(turns: Vec<ScenarioTurn>) -> Client {
    let mut client = Client::new("claude-opus-5-5", turns);
    let search = json!({"type": "web_search_20250305", "name": "web_search", "max_uses": 8});
    client.body["tools"].as_array_mut().unwrap().push(search);
    client
}

#[test]
fn a_search_is_told_in_blocks_with_citations_and_has_its_price() {
    let mut client =
        with_search(vec![searching(ScenarioEnd::Natural), ScenarioTurn::say([AnswerPiece::text("Bye.")])]);
    let answer = client.turn();
    let kinds: Vec<_> = messages::list(&answer["content"]).iter().map(|block| &block["type"]).collect();
    assert_eq!(kinds, ["thinking", "server_tool_use", "web_search_tool_result", "text"]);
    assert_eq!(answer["content"][3]["citations"][0]["url"], "https://a.example");
    assert_eq!(answer["usage"]["server_tool_use"]["web_search_requests"], 1);
    client.turn();
    let totals = client.simulator.finish().unwrap();
    assert!(totals.usage.searches == 1 && totals.cost > 0.01, "{totals:?}");
}

#[test]
fn blocks_of_a_search_go_back_as_they_came() {
    let change = |edit: fn(&mut Vec<Value>)| {
        let mut client = with_search(vec![searching(ScenarioEnd::Natural)]);
        client.turn();
        edit(client.content());
        client.refused()
    };
    let encrypted = change(|content| content[2]["content"][0]["encrypted_content"] = json!("x"));
    assert!(encrypted.contains("Invalid `encrypted_content`"), "{encrypted}");
    let gone = change(|content| drop(content.remove(2)));
    assert!(gone.contains("was found without a corresponding `web_search_tool_result` block"), "{gone}");
    let alone = change(|content| drop(content.remove(1)));
    assert!(alone.contains("unexpected `tool_use_id` found in `web_search_tool_result` blocks"), "{alone}");
    let mut client = with_search(vec![searching(ScenarioEnd::Natural)]);
    client.turn();
    client.content()[1]["input"] = json!({});
    client.turn();
    let failures = client.simulator.finish().unwrap_err().to_string();
    assert!(failures.contains("messages.1.content.1 is not the search as it was made"), "{failures}");
}

#[test]
fn a_search_that_was_paused_has_its_result_in_the_answer_that_goes_on() {
    let mut client = with_search(vec![
        searching(ScenarioEnd::Pause),
        ScenarioTurn::say([AnswerPiece::text("It is out.")]),
    ]);
    let (_, paused) = client.send();
    assert_eq!(paused["content"].as_array().unwrap().last().unwrap()["type"], "server_tool_use");
    let message = json!({"role": "assistant", "content": paused["content"]});
    client.body["messages"].as_array_mut().unwrap().push(message);
    let (_, answer) = client.send();
    assert_eq!(answer["content"][0]["tool_use_id"], paused["content"][1]["id"]);
    assert_eq!(answer["content"][1]["citations"][0]["url"], "https://a.example");
    client.body["messages"].as_array_mut().unwrap().push(json!({"role": "user", "content": "Continue."}));
    assert!(client.refused().contains("without a corresponding"));
}

#[test]
fn a_search_that_is_not_offered_is_a_problem() {
    let client = Client::new("claude-opus-5-5", vec![searching(ScenarioEnd::Natural)]);
    let (_, answer) = client.send();
    assert!(!answer.to_string().contains("server_tool_use\":{") && !answer.to_string().contains("srvtoolu"));
    let failures = client.simulator.finish().unwrap_err().to_string();
    assert!(failures.contains("request 1 does not offer the search that its turn makes"), "{failures}");
}

#[test]
fn thinking_that_is_dropped_within_a_turn_is_a_problem_unless_it_is_expected() {
    for expected in [false, true] {
        let mut second = ScenarioTurn::say([AnswerPiece::text("Done.")]);
        second.expect.drops = expected;
        let mut client = Client::new("claude-opus-5-5", vec![interleaved(), second]);
        client.headers.push(("anthropic-beta", "thinking-binding-controls-2026-08-01"));
        client.body["thinking"]["block_binding"] = json!({"prefix_mismatch_behavior": "drop_block"});
        client.turn();
        client.body["system"] = json!("Another prompt.");
        client.turn();
        match client.simulator.finish() {
            Ok(_) => assert!(expected),
            Err(failures) => {
                let told = failures.to_string();
                assert!(
                    !expected && told.contains("request 2: thinking of this turn was dropped: messages.1."),
                    "{told}"
                );
            }
        }
    }
}
