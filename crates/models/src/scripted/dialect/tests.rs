#![expect(clippy::needless_pass_by_value, reason = "JSON literals are written in place")]

use serde_json::json;

use super::*;
use crate::scripted::turn::Asked;

fn check(dialect: Dialect, body: Value, offer: ToolOffer, expected: &[(&str, &str)]) {
    let mut asked = Asked::new(offer);
    for (role, text) in expected {
        match *role {
            "user" => asked.user((*text).to_owned()),
            "assistant" => asked.assistant(),
            _ => asked.result((*text).to_owned()),
        }
    }
    assert_eq!(dialect.asked(&body), asked);
}

#[test]
fn paths_have_any_prefix() {
    for (path, dialect) in [
        ("/v1/chat/completions", Some(Dialect::Chat)),
        ("/openai/deployments/x/chat/completions", Some(Dialect::Chat)),
        ("/responses", Some(Dialect::Responses)),
        ("/v1/messages", Some(Dialect::Anthropic)),
        ("/v1/completions", None),
        ("", None),
    ] {
        assert_eq!(Dialect::of_path(path), dialect, "{path}");
    }
}

#[test]
fn chat_has_a_message_for_each_result() {
    check(
        Dialect::Chat,
        json!({
            "tools": [{"type": "function"}],
            "messages": [
                {"role": "system", "content": "x"},
                {"role": "user", "content": "first"},
                {"role": "assistant", "content": "a"},
                {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url"}, {"type": "text", "text": "b"}]},
                {"role": "assistant", "content": null, "tool_calls": []},
                {"role": "tool", "content": "one"},
                {"role": "tool", "content": [{"type": "text", "text": "two"}]},
            ],
        }),
        ToolOffer::Tools,
        &[("user", "first"), ("user", "a\nb"), ("tool", "one"), ("tool", "two")],
    );
}

#[test]
fn anthropic_has_results_inside_user_messages() {
    check(
        Dialect::Anthropic,
        json!({
            "tools": [{"name": "bash"}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "hint"}, {"type": "text", "text": "prompt"}]},
                {"role": "system", "content": "aside"},
                {"role": "assistant", "content": [{"type": "tool_use"}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "content": "one"},
                    {"type": "tool_result", "content": [{"type": "text", "text": "two"}, {"type": "image"}]},
                    {"type": "text", "text": "not a prompt"},
                ]},
            ],
        }),
        ToolOffer::Tools,
        &[("user", "hint\nprompt"), ("tool", "one"), ("tool", "two")],
    );
}

#[test]
fn responses_have_items_and_hidden_places_for_tools() {
    let input = json!([
        {"role": "user", "content": "hi"},
        {"type": "message", "role": "developer", "content": "x"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "prompt"}]},
        {"type": "function_call", "name": "a"},
        {"type": "function_call_output", "output": "one"},
        {"type": "custom_tool_call_output", "output": [{"type": "input_text", "text": "two"}]},
        {"type": "additional_tools", "tools": [{"type": "namespace", "name": "n", "tools": [{"name": "a"}]}]},
    ]);
    let expected = [("user", "hi"), ("user", "prompt"), ("tool", "one"), ("tool", "two")];
    check(Dialect::Responses, json!({"input": input}), ToolOffer::Tools, &expected);
    check(Dialect::Responses, json!({"input": "plain"}), ToolOffer::TextOnly, &[("user", "plain")]);
}

#[test]
fn tools_that_must_not_be_called_are_not_offered() {
    for (dialect, choice) in [
        (Dialect::Chat, json!("none")),
        (Dialect::Responses, json!("none")),
        (Dialect::Anthropic, json!({"type": "none"})),
    ] {
        check(dialect, json!({"tools": [{"name": "a"}], "tool_choice": choice}), ToolOffer::TextOnly, &[]);
        check(dialect, json!({"tools": [{"name": "a"}], "tool_choice": "auto"}), ToolOffer::Tools, &[]);
        check(dialect, json!({"tools": []}), ToolOffer::TextOnly, &[]);
    }
}

#[test]
fn strange_bodies_are_read_as_empty_ones() {
    for dialect in [Dialect::Chat, Dialect::Responses, Dialect::Anthropic] {
        check(dialect, json!({}), ToolOffer::TextOnly, &[]);
        check(dialect, json!({"messages": 1, "input": {}, "tools": "x"}), ToolOffer::TextOnly, &[]);
        check(
            dialect,
            json!({"messages": [1, null, {}], "input": [[]], "tools": null}),
            ToolOffer::TextOnly,
            &[],
        );
    }
}
