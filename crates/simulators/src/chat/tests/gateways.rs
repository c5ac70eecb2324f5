//! Hosts with several wires, Copilot first of all.

use serde_json::json;

use super::requests::{BEARER, posted, reply};
use super::*;
use crate::chat::Gateway;
use crate::chat::gateway::{GPT, GROK};
use crate::packed;
use crate::{Accepted, AnswerPiece, ScenarioEnd, Vendor, VendorResponse};

const INTEGRATION: &str = "copilot-integration-id: copilot-developer-cli";
const EDITOR: &str = "editor-version: hangar/0";
const USER: &[&str] = &[BEARER, INTEGRATION, EDITOR, "x-initiator: user", "anthropic-version: 2023-06-01"];
const AGENT: &[&str] = &[BEARER, INTEGRATION, EDITOR, "x-initiator: agent", "anthropic-version: 2023-06-01"];

fn copilot(path: &str, headers: &[&str], body: Value) -> Result<Accepted, String> {
    let checked = Gateway::copilot().unwrap().check(&posted(path, headers, body), &AnswerHistory::default());
    checked.map_err(|refusal| format!("{refusal}, {}", refusal.body["error"]["code"]))
}

fn input(model: &str) -> Value {
    json!({"model": model, "store": false, "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
    ]})
}

fn claude() -> Value {
    json!({"model": "claude-sonnet-4.6", "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]})
}

#[test]
fn copilot_passes_each_wire_on_to_the_vendor_of_the_model() {
    for (path, body, model) in [
        ("/chat/completions", super::request("gpt-4.1", &json!({})), "gpt-4.1"),
        ("/responses", input("gpt-5.6-terra"), "gpt-5.6-terra"),
        ("/v1/messages", claude(), "claude-sonnet-4-6"),
    ] {
        assert_eq!(copilot(path, USER, body).map(|accepted| accepted.model), Ok(model.to_owned()), "{path}");
    }
}

#[test]
fn copilot_refuses_a_model_at_an_endpoint_that_does_not_serve_it() {
    for (path, body, words) in [
        (
            "/chat/completions",
            super::request("gpt-5.6-terra", &json!({})),
            "400 model \"gpt-5.6-terra\" is not accessible via the /chat/completions endpoint, \"unsupported_api_for_model\"",
        ),
        (
            "/responses",
            input("claude-sonnet-4.6"),
            "400 model \"claude-sonnet-4.6\" is not accessible via the /responses endpoint, \"unsupported_api_for_model\"",
        ),
        (
            "/v1/messages",
            json!({"model": "x"}),
            "400 The requested model is not supported., \"model_not_supported\"",
        ),
    ] {
        assert_eq!(copilot(path, USER, body).map(|accepted| accepted.model), Err(words.to_owned()));
    }
}

#[test]
fn copilot_wants_to_know_who_asks_and_whether_there_are_images() {
    let body = || super::request("gpt-4.1", &json!({}));
    let images = || super::request("gpt-4.1", &json!({"messages": image(PNG)}));
    let vision = "400 missing required Copilot-Vision-Request header for vision requests, \"\"";
    for (headers, body, words) in [
        (vec![INTEGRATION, EDITOR], body(), "401 unauthorized: token is missing, \"unauthorized\""),
        (vec![BEARER, EDITOR], body(), "403 unknown Copilot-Integration-Id, \"forbidden\""),
        (
            vec![BEARER, INTEGRATION],
            body(),
            "400 bad request: missing Editor-Version header for IDE auth, \"bad_request\"",
        ),
        (vec![BEARER, INTEGRATION, EDITOR], images(), vision),
    ] {
        assert_eq!(
            copilot("/chat/completions", &headers, body).map(|accepted| accepted.model),
            Err(words.to_owned())
        );
    }
    let shown = [BEARER, INTEGRATION, EDITOR, "copilot-vision-request: true"];
    assert!(copilot("/chat/completions", &shown, images()).is_ok());
}

#[test]
fn a_turn_of_tools_that_is_billed_breaks_a_rule_of_the_simulator() {
    let body = || answered("gpt-4.1", "a", &json!({}), &json!({}));
    let violations = |headers: &[&str]| copilot("/chat/completions", headers, body()).unwrap().violations;
    let billed = "`x-initiator` is not `agent` though the request has results of tools: it is billed";
    assert_eq!(violations(USER), [billed]);
    assert_eq!(violations(AGENT), [""; 0]);
}

#[test]
fn billed_requests_are_counted_in_the_quota_that_every_answer_tells() {
    let gateway = Gateway::copilot().unwrap();
    let mut history = AnswerHistory::default();
    let mut quota = |headers: &[&str], path: &str, body: Value| {
        let accepted = gateway.check(&posted(path, headers, body), &history).unwrap();
        let answer = gateway.encode(
            &accepted,
            &reply(vec![AnswerPiece::text("hi")], ScenarioEnd::Natural, vec![]),
            &mut history,
        );
        let (VendorResponse::Whole { headers, .. } | VendorResponse::Stream { headers, .. }) = answer;
        let told = headers.into_iter().find(|(name, _)| name == "x-quota-snapshot-premium_interactions");
        told.unwrap().1
    };
    assert_eq!(
        quota(USER, "/chat/completions", super::request("gpt-4.1", &json!({}))),
        "ent=300&used=1&ov=0.0&ovPerm=false&rem=99.7"
    );
    assert!(quota(AGENT, "/v1/messages", claude()).contains("used=1"));
    assert!(quota(USER, "/responses", input("gpt-5.6-terra")).contains("used=2"));
}

#[test]
fn copilot_has_smaller_windows_than_the_vendor_of_the_model() {
    let long = json!({
        "model": "claude-sonnet-4.6", "max_tokens": 100,
        "messages": [{"role": "user", "content": "word ".repeat(210_000)}],
    });
    let words = copilot("/v1/messages", USER, long).map(|accepted| accepted.model).unwrap_err();
    assert!(words.starts_with("400 prompt token count of 2"), "{words}");
    assert!(words.ends_with("exceeds the limit of 200000, \"model_max_prompt_tokens_exceeded\""), "{words}");
}

#[test]
fn other_hosts_serve_their_second_wire_at_the_same_address() {
    let checked = |gateway: Gateway, path: &str, header: &str, body: Value| {
        let checked = gateway.check(
            &posted(path, &[header, "anthropic-version: 2023-06-01"], body),
            &AnswerHistory::default(),
        );
        checked.map(|accepted| accepted.model).map_err(|refusal| refusal.to_string())
    };
    let ok = |model: &str| Ok(model.to_owned());
    assert_eq!(checked(Gateway::openai().unwrap(), "/v1/responses", BEARER, input("gpt-5.4")), ok("gpt-5.4"));
    assert_eq!(
        checked(Gateway::azure().unwrap(), "/openai/v1/responses", "api-key: k", input("gpt-5.4")),
        ok("gpt-5.4")
    );
    assert_eq!(checked(Gateway::xai().unwrap(), "/v1/responses", BEARER, input("grok-4.6")), ok("grok-4.6"));
    let mut body = claude();
    body["model"] = json!("anthropic/claude-sonnet-4.6");
    assert_eq!(
        checked(Gateway::openrouter().unwrap(), "/api/v1/messages", BEARER, body),
        ok("claude-sonnet-4-6")
    );
    assert_eq!(
        checked(Gateway::openai().unwrap(), "/v1/messages", BEARER, claude()),
        Err("404 Invalid URL (POST /v1/messages)".to_owned())
    );
}

/// The models of a table of another wire.
fn models(table: &str) -> Vec<toml::Table> {
    let table: toml::Table = table.parse().unwrap();
    let models = table["model"].as_array().unwrap().iter();
    models.map(|model| model.as_table().unwrap().clone()).collect()
}

#[test]
fn the_wires_of_one_host_agree_on_its_models() {
    for (host, table) in [("openai", GPT), ("azure", GPT), ("xai", GROK)] {
        let book = Rulebook::named(host).unwrap();
        for other in models(packed::text(table)) {
            let id = other["id"].as_str().unwrap();
            let model = book.model(id).unwrap_or_else(|| panic!("{host} has no {id} on chat completions"));
            let limits = (other["window"].as_integer(), other["output"].as_integer());
            assert_eq!(limits, (Some(model.window as i64), Some(model.output as i64)), "{host} {id}");
            let efforts = other.get("efforts").and_then(toml::Value::as_array).map_or(0, Vec::len);
            assert_eq!(efforts, model.efforts.len(), "{host} {id}");
        }
    }
}

#[test]
fn every_model_that_is_passed_on_exists_at_its_vendor() {
    let claude = include_str!("../../anthropic/models.toml");
    let known: Vec<String> = [models(packed::text(GPT)), models(claude)]
        .concat()
        .iter()
        .map(|model| model["id"].as_str().unwrap().to_owned())
        .collect();
    for host in ["copilot", "openrouter", "litellm"] {
        for model in Rulebook::named(host).unwrap().model {
            let upstream = model.rules.upstream;
            assert!(
                upstream.as_ref().is_none_or(|upstream| known.contains(upstream)),
                "{host}: {upstream:?}"
            );
        }
    }
}

#[test]
fn a_model_that_chat_refuses_tools_for_is_served_by_the_wire_that_the_refusal_names() {
    let gateway = Gateway::openai().unwrap();
    let tools = super::request("gpt-5.6-sol", &json!({"tools": [tool("view", view_schema())]}));
    let refusal = gateway
        .check(&posted("/v1/chat/completions", &[BEARER], tools), &AnswerHistory::default())
        .unwrap_err();
    assert!(refusal.message.contains("To use function tools, use /v1/responses"), "{refusal}");
    let mut body = input("gpt-5.6-sol");
    body["tools"] =
        json!([{"type": "function", "name": "view", "parameters": view_schema(), "strict": false}]);
    let accepted = gateway.check(&posted("/v1/responses", &[BEARER], body), &AnswerHistory::default());
    assert_eq!(
        accepted.map(|accepted| accepted.model).map_err(|refusal| refusal.message),
        Ok("gpt-5.6-sol".to_owned())
    );
}
