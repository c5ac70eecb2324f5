use hangar_agent::model::{AssistantTurn, Message, Part};
use hangar_protocol::data::ToolType;

use super::*;
use crate::wire::testing::{call, image, request, tools, user};

#[test]
fn a_message_is_its_text_and_four() {
    let counter = Counter::new("gpt-5");
    assert_eq!(counter.text("hello world"), 2);
    assert_eq!(counter.message(&user("hello world")), 2 + 4);
    assert_eq!(counter.system("hello world"), 2 + 4);
    assert_eq!(counter.message(&Message::User(vec![])), 4);
}

#[test]
fn a_call_is_its_name_its_arguments_and_three() {
    let turn = AssistantTurn {
        text: "hello world".into(),
        reasoning: None,
        native: None,
        tool_calls: vec![call("long-id-that-does-not-count", "view", ToolType::Function, "hello world")],
    };
    assert_eq!(Counter::new("gpt-5").message(&Message::Assistant(turn)), 2 + (1 + 2 + 3) + 4);
}

#[test]
fn an_image_has_a_price_of_its_own() {
    let parts = vec![Part::Text("hello world".into()), image()];
    assert_eq!(Counter::new("gpt-5").message(&Message::User(parts)), 2 + 765 + 4);
}

#[test]
fn a_request_is_the_sum_and_three() {
    let mut request = request("gpt-5", vec![user("hello world")]);
    let counter = Counter::new("gpt-5");
    let without_tools = counter.request(&request);
    assert_eq!(without_tools, 3 + counter.system("Be brief.") + 6);
    request.tools = tools();
    let definitions = [
        r#"{"name":"view","description":"The tool view.","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]},"type":"function"}"#,
        r#"{"name":"apply_patch","description":"The tool apply_patch.","format":"start: LINE+","type":"custom"}"#,
    ];
    let tools: u64 = definitions.iter().map(|definition| counter.text(definition)).sum();
    assert_eq!(counter.request(&request), without_tools + tools);
}

#[test]
fn claude_is_counted_higher() {
    // 29 tokens and 10 percent, rounded up.
    let text = "hello world".repeat(29);
    let tokens = Counter::new("gpt-5").text(&text);
    assert_eq!(Counter::new("claude-sonnet-4.5").text(&text), (tokens * 110).div_ceil(100));
}
