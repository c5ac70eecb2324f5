//! OpenAI and Azure.

use serde_json::json;

use super::*;

const TOOLS_WITH_EFFORT: &str = "Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.";

#[test]
fn openai_takes_what_it_documents() {
    let tools = json!([tool("view", view_schema())]);
    passes(
        "openai",
        [
            request(
                "gpt-4.1",
                &json!({"temperature": 0, "top_p": 0.95, "max_tokens": 100, "stop": ["x"], "presence_penalty": 0}),
            ),
            request(
                "gpt-5",
                &json!({"reasoning_effort": "minimal", "max_completion_tokens": 1000, "tools": tools}),
            ),
            request(
                "gpt-5.2",
                &json!({"temperature": 0, "reasoning_effort": "none", "tools": tools, "verbosity": "low"}),
            ),
            request("gpt-5.4", &json!({"reasoning_effort": "none", "tools": tools})),
            request("gpt-5.4", &json!({"reasoning_effort": "high"})),
            request(
                "gpt-5.4",
                &json!({"tools": [{"type": "custom", "custom": {"name": "apply_patch", "description": "d"}}]}),
            ),
            request("gpt-5-chat-latest", &json!({"temperature": 0, "max_tokens": 10})),
            request(
                "gpt-4.1",
                &json!({"messages": image(PNG), "prompt_cache_key": "k", "stream_options": {"include_usage": true}}),
            ),
            answered("gpt-4.1", "call_1", &json!({}), &json!({})),
        ],
    );
}

#[test]
fn openai_refuses_tools_with_effort_and_models_of_the_other_endpoint() {
    let tools = json!([tool("view", view_schema())]);
    let endpoint = "This model is only supported in v1/responses and not in v1/chat/completions.";
    refuses(
        "openai",
        [
            (request("gpt-5.4", &json!({"tools": tools})), 400, TOOLS_WITH_EFFORT),
            (request("gpt-5.4", &json!({"tools": tools, "reasoning_effort": "low"})), 400, TOOLS_WITH_EFFORT),
            (
                request("gpt-6.1-sol", &json!({"reasoning_effort": "none"})),
                400,
                "Unsupported value: 'reasoning_effort' does not support 'none' with this model. Supported values are: 'low', 'medium', 'high', 'xhigh', and 'max'.",
            ),
            (request("gpt-5.3-codex", &json!({})), 404, endpoint),
            (request("gpt-5.5-pro", &json!({})), 404, endpoint),
        ],
    );
}

#[test]
fn openai_refuses_parameters_that_a_model_does_not_take() {
    let temperature = "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported.";
    let unsupported =
        |name: &str| format!("Unsupported parameter: '{name}' is not supported with this model.");
    let max_tokens = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
    refuses(
        "openai",
        [
            (request("gpt-5", &json!({"max_tokens": 10})), 400, max_tokens),
            (request("gpt-5.3-chat-latest", &json!({"max_tokens": 10})), 400, max_tokens),
            (request("gpt-5", &json!({"temperature": 0})), 400, temperature),
            (request("gpt-5.4", &json!({"temperature": 0})), 400, temperature),
            (request("gpt-5.2", &json!({"temperature": 0, "reasoning_effort": "low"})), 400, temperature),
            (request("gpt-5", &json!({"top_p": 0.9})), 400, &unsupported("top_p")),
            (request("gpt-5", &json!({"stop": ["x"]})), 400, &unsupported("stop")),
            (
                request("gpt-5.3-chat-latest", &json!({"presence_penalty": 0})),
                400,
                &unsupported("presence_penalty"),
            ),
            (request("gpt-5", &json!({"frequency_penalty": 0})), 400, &unsupported("frequency_penalty")),
            (request("gpt-5", &json!({"logit_bias": {}})), 400, &unsupported("logit_bias")),
            (
                request("gpt-4.1", &json!({"reasoning_effort": "low"})),
                400,
                "Unrecognized request argument supplied: reasoning_effort",
            ),
            (
                request("gpt-4.1", &json!({"thinking": {}})),
                400,
                "Unrecognized request argument supplied: thinking",
            ),
            (
                request("gpt-4.1", &json!({"max_tokens": 40000})),
                400,
                "max_tokens is too large: 40000. This model supports at most 32768 completion tokens, whereas you provided 40000.",
            ),
        ],
    );
}

#[test]
fn openai_refuses_messages_and_tools_of_another_form() {
    let long = "x".repeat(64);
    let too_long = "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 64 instead.";
    let unanswered = "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: a";
    let name = "Invalid 'tools[0].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.";
    let call = json!([{"id": "a", "type": "function", "function": {"name": "view", "arguments": "{}"}}]);
    let tools = |schema: Value| request("gpt-4.1", &json!({"tools": [tool("view", schema)]}));
    refuses(
        "openai",
        [
            (
                answered("gpt-4.1", "a", &json!({"reasoning_content": "r"}), &json!({})),
                400,
                "Unknown parameter: 'messages[2].reasoning_content'.",
            ),
            (answered("gpt-4.1", &long, &json!({}), &json!({})), 400, too_long),
            (
                request(
                    "gpt-4.1",
                    &json!({"messages": [{"role": "assistant", "tool_calls": call}, {"role": "user", "content": "go on"}]}),
                ),
                400,
                unanswered,
            ),
            (
                request(
                    "gpt-4.1",
                    &json!({"messages": [{"role": "tool", "tool_call_id": "a", "content": ""}]}),
                ),
                400,
                "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
            ),
            (request("gpt-4.1", &json!({"tools": [tool("a.b", view_schema())]})), 400, name),
            (request("gpt-4.1", &json!({"tools": [tool(&"a".repeat(65), view_schema())]})), 400, name),
            (
                tools(json!({})),
                400,
                "Invalid schema for function 'view': schema must be a JSON Schema of 'type: \"object\"', got 'type: \"None\"'.",
            ),
            (
                tools(json!({"type": "object", "properties": {"a": true}})),
                400,
                "Invalid schema for function 'view': true is not of type 'object'.",
            ),
            (
                tools(json!({"type": "object"})),
                400,
                "Invalid schema for function 'view': In context=(), object schema missing properties.",
            ),
            (
                tools(json!({"type": "object", "properties": {}, "oneOf": [{"required": ["a"]}]})),
                400,
                "Invalid schema for function 'view': schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.",
            ),
            (
                tools(json!({"type": "object", "properties": {"a": {"type": "array"}}})),
                400,
                "Invalid schema for function 'view': In context=(properties.a), array schema missing items.",
            ),
            (
                tools(json!({"type": "object", "properties": {"a": {"type": "any"}}})),
                400,
                "Invalid schema for function 'view': 'any' is not valid under any of the given schemas.",
            ),
            (
                request(
                    "gpt-4.1",
                    &json!({"messages": [{"role": "user", "content": [{"type": "thinking"}]}]}),
                ),
                400,
                "Invalid value: 'thinking'. Supported values are: 'text', 'image_url', 'input_audio', 'refusal', 'audio', and 'file'.",
            ),
        ],
    );
}

#[test]
fn openai_tells_the_limit_that_was_passed() {
    let long = "word ".repeat(280_000);
    let body = request("gpt-5", &json!({"messages": [{"role": "user", "content": long}]}));
    let Err((400, words)) = outcome("openai", &body) else { panic!() };
    assert!(
        words.starts_with(
            "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 28"
        ),
        "{words}"
    );
}

#[test]
fn errors_of_openai_name_type_parameter_and_code() {
    assert_eq!(
        refusal_body("openai", &request("gpt-5", &json!({"max_tokens": 1}))),
        json!({"error": {
            "message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            "type": "invalid_request_error", "param": "max_tokens", "code": "unsupported_parameter",
        }})
    );
}

#[test]
fn azure_refuses_as_openai_does_and_knows_deployments_only() {
    let tools = json!([tool("view", view_schema())]);
    refuses(
        "azure",
        [
            (request("gpt-5.4", &json!({"tools": tools})), 400, TOOLS_WITH_EFFORT),
            (
                request("my-deployment", &json!({})),
                404,
                "The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes, please wait a moment and try again.",
            ),
        ],
    );
    assert_eq!(refusal_body("azure", &request("x", &json!({})))["error"]["code"], "DeploymentNotFound");
}
