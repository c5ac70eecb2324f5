//! Hosts of one vendor's models, most of which require their reasoning to be sent back.

use serde_json::json;

use super::*;
use crate::Seal;

const MISSING_SIGNATURE: &str = "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:view` , position 2. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.";

fn signed(signature: &str) -> Value {
    json!({"tool_calls": [{
        "id": "a", "type": "function", "function": {"name": "view", "arguments": "{}"},
        "extra_content": {"google": {"thought_signature": signature}},
    }]})
}

fn seal(vendor: &str, model: &str) -> String {
    Seal { vendor: vendor.into(), model: model.into(), ..Seal::default() }.close().0
}

#[test]
fn gemini_wants_the_signature_that_it_gave() {
    let model = "gemini-3.8-flash";
    let turn = |assistant: Value| answered(model, "a", &assistant, &json!({}));
    passes(
        "gemini",
        [
            turn(signed(&seal("gemini", model))),
            turn(signed("skip_thought_signature_validator")),
            answered("gemini-2.5-flash", "a", &json!({}), &json!({})),
        ],
    );
    refuses(
        "gemini",
        [
            (turn(json!({})), 400, MISSING_SIGNATURE),
            (turn(signed(&seal("gemini", "gemini-3.1-pro-preview"))), 400, "Corrupted thought signature."),
            (turn(signed("made up")), 400, "Corrupted thought signature."),
        ],
    );
}

#[test]
fn gemini_checks_the_signatures_of_the_newest_prompt_only() {
    let mut body = answered("gemini-3.8-flash", "a", &json!({}), &json!({}));
    let more =
        [json!({"role": "assistant", "content": "done"}), json!({"role": "user", "content": "thanks"})];
    body["messages"].as_array_mut().unwrap().extend(more);
    passes("gemini", [body]);
}

#[test]
fn gemini_takes_a_subset_of_schemas() {
    let tools = |schema: Value| request("gemini-3.8-flash", &json!({"tools": [tool("view", schema)]}));
    let properties = |properties: Value| tools(json!({"type": "object", "properties": properties}));
    passes("gemini", [properties(json!({"a": {"type": "string", "enum": ["x"]}}))]);
    refuses(
        "gemini",
        [
            (
                properties(json!({"a": {"type": "string"}, "b": {"type": "integer", "enum": [1, 2]}})),
                400,
                "Invalid value at 'tools[0].function_declarations[0].parameters.properties[1].value.enum[0]' (TYPE_STRING), 1",
            ),
            (
                properties(json!({"a": {"type": ["string", "null"]}})),
                400,
                "Invalid JSON payload received. Unknown name \"type\" at 'tools[0].function_declarations[0].parameters.properties[0].value': Proto field is not repeating, cannot start list.",
            ),
            (
                properties(json!({"a": {"type": "object"}})),
                400,
                "* GenerateContentRequest.tools[0].function_declarations[0].parameters.properties[a].properties: should be non-empty for OBJECT type",
            ),
            (
                tools(json!({"type": "object", "properties": {}})),
                400,
                "* GenerateContentRequest.tools[0].function_declarations[0].parameters.properties: should be non-empty for OBJECT type",
            ),
        ],
    );
}

#[test]
fn gemini_refuses_in_a_list_and_long_answers_unless_streamed() {
    assert_eq!(
        refusal_body("gemini", &request("gemini-3.8-flash", &json!({"verbosity": "low"}))),
        json!([{"error": {
            "code": 400, "message": "Invalid JSON payload received. Unknown name \"verbosity\": Cannot find field.",
            "status": "INVALID_ARGUMENT",
        }}])
    );
    passes("gemini", [request("gemini-4-argon", &json!({"max_tokens": 65536, "stream": true}))]);
    refuses(
        "gemini",
        [(
            request("gemini-4-argon", &json!({"max_tokens": 65536})),
            400,
            "max_tokens above 32768 is only supported for streaming requests.",
        )],
    );
}

#[test]
fn xai_names_the_parameter_that_a_model_lacks() {
    passes(
        "xai",
        [
            request(
                "grok-4.6",
                &json!({"reasoning_effort": "high", "temperature": 1, "prompt_cache_key": "k"}),
            ),
            answered("grok-4.3", "a", &json!({}), &json!({})),
        ],
    );
    let lacks = |model: &str, name: &str| format!("Model {model} does not support parameter {name}.");
    refuses(
        "xai",
        [
            (
                request("grok-4.6", &json!({"presence_penalty": 0})),
                400,
                &*lacks("grok-4.6", "presencePenalty"),
            ),
            (
                request("grok-4.6", &json!({"frequency_penalty": 0})),
                400,
                &lacks("grok-4.6", "frequencyPenalty"),
            ),
            (request("grok-4.5", &json!({"stop": ["x"]})), 400, &lacks("grok-4.5", "stop")),
            (
                request("grok-4.20-non-reasoning", &json!({"reasoning_effort": "low"})),
                400,
                &lacks("grok-4.20-non-reasoning", "reasoningEffort"),
            ),
            (
                request("grok-4.5", &json!({"reasoning_effort": "none"})),
                400,
                "Invalid reasoning effort: none. Supported values are 'low', 'medium', and 'high'.",
            ),
        ],
    );
    assert_eq!(
        refusal_body("xai", &request("grok-4.6", &json!({"stop": []}))),
        json!({"code": "Client specified an invalid argument", "error": "Model grok-4.6 does not support parameter stop."})
    );
}

#[test]
fn mistral_refuses_every_field_that_its_schema_lacks() {
    let model = "mistral-medium-3-5";
    passes(
        "mistral",
        [
            request(model, &json!({"reasoning_effort": "high", "temperature": 0.7, "prompt_cache_key": "k"})),
            request(model, &json!({"tools": [tool("view", view_schema())], "tool_choice": "any"})),
            answered(model, "aB3dE5gH9", &json!({}), &json!({})),
        ],
    );
    refuses(
        "mistral",
        [
            (
                request(model, &json!({"max_completion_tokens": 1})),
                422,
                "Extra inputs are not permitted: max_completion_tokens",
            ),
            (
                answered(model, "aB3dE5gH9", &json!({"reasoning_content": "r"}), &json!({})),
                422,
                "Extra inputs are not permitted: messages[2].reasoning_content",
            ),
            (request(model, &json!({"reasoning_effort": "medium"})), 422, "Input should be 'high' or 'none'"),
            (
                request("devstral-2512", &json!({"reasoning_effort": "high"})),
                400,
                "reasoning_effort is not enabled for this model",
            ),
            (request(model, &json!({"temperature": 1.5})), 422, "Input should be less than or equal to 1"),
        ],
    );
    assert_eq!(
        refusal_body("mistral", &request(model, &json!({"user": "u"}))),
        json!({
            "object": "error",
            "message": {"detail": [{"type": "extra_forbidden", "loc": ["body", "user"], "msg": "Extra inputs are not permitted", "input": "u"}]},
            "type": "invalid_request_error", "param": null, "code": null,
        })
    );
}

#[test]
fn mistral_is_strict_about_ids_and_the_order_of_messages() {
    let model = "devstral-2512";
    let after = |message: Value| {
        let mut body = answered(model, "aB3dE5gH9", &json!({}), &json!({}));
        body["messages"].as_array_mut().unwrap().push(message);
        body
    };
    refuses(
        "mistral",
        [
            (
                answered(model, "call_1", &json!({}), &json!({})),
                400,
                "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.",
            ),
            (
                after(json!({"role": "user", "content": "and"})),
                400,
                "Unexpected role 'user' after role 'tool'",
            ),
            (
                after(json!({"role": "assistant", "content": "so"})),
                400,
                "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant",
            ),
            (
                after(json!({"role": "assistant", "content": ""})),
                400,
                "Assistant message must have either content or tool_calls, but not none.",
            ),
        ],
    );
    passes("mistral", [after(json!({"role": "assistant", "content": "so", "prefix": true}))]);
}

#[test]
fn groq_refuses_reasoning_that_comes_back_and_efforts_of_other_models() {
    let oss = "openai/gpt-oss-120b";
    passes(
        "groq",
        [
            request(oss, &json!({"reasoning_effort": "medium", "max_completion_tokens": 100})),
            request("qwen/qwen3-32b", &json!({"reasoning_effort": "none"})),
            answered(oss, "fc_1", &json!({}), &json!({})),
        ],
    );
    let unsupported = |field: &str| {
        format!(
            "'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property '{field}' is unsupported)]"
        )
    };
    refuses(
        "groq",
        [
            (
                answered(oss, "a", &json!({"reasoning_content": "r"}), &json!({})),
                400,
                &*unsupported("reasoning_content"),
            ),
            (answered(oss, "a", &json!({"reasoning": "r"}), &json!({})), 400, &unsupported("reasoning")),
            (
                request(oss, &json!({"prompt_cache_key": "k"})),
                400,
                "property 'prompt_cache_key' is unsupported",
            ),
            (
                request("llama-3.3-70b-versatile", &json!({"reasoning_effort": "low"})),
                400,
                "`reasoning_effort` is not supported with this model",
            ),
            (
                request(oss, &json!({"reasoning_effort": "none"})),
                400,
                "`reasoning_effort` must be one of `low`, `medium`, or `high`",
            ),
            (
                request("qwen/qwen3-32b", &json!({"reasoning_effort": "low"})),
                400,
                "`reasoning_effort` must be one of `none` or `default`",
            ),
            (
                request(
                    "llama-3.1-8b-instant",
                    &json!({"max_tokens": 8000, "messages": [{"role": "user", "content": "a"}]}),
                ),
                413,
                "Request too large for model `llama-3.1-8b-instant` in organization `org_simulated` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 8005, please reduce your message size and try again. Need more tokens? Upgrade to Dev Tier today at https://console.groq.com/settings/billing",
            ),
        ],
    );
}

#[test]
fn deepseek_wants_the_reasoning_of_turns_with_calls() {
    let model = "deepseek-v4-pro";
    passes(
        "deepseek",
        [
            answered(model, "a", &json!({"reasoning_content": "r"}), &json!({"reasoning_effort": "medium"})),
            answered(model, "a", &json!({}), &json!({"thinking": {"type": "disabled"}})),
            request("deepseek-flash", &json!({"messages": image(PNG), "temperature": 0})),
        ],
    );
    refuses(
        "deepseek",
        [
            (
                answered(model, "a", &json!({}), &json!({})),
                400,
                "The `reasoning_content` in the thinking mode must be passed back to the API.",
            ),
            (
                request(model, &json!({"tools": [{"type": "custom", "custom": {"name": "x"}}]})),
                400,
                "Failed to deserialize the JSON body into the target type: tools[0].type: unknown variant `custom`, expected `function` at line 1 column 100",
            ),
            (
                request(
                    model,
                    &json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]}),
                ),
                400,
                "Failed to deserialize the JSON body into the target type: messages[0]: invalid type: sequence, expected a string at line 1 column 100",
            ),
            (
                request(model, &json!({"reasoning_effort": "minimal"})),
                400,
                "Failed to deserialize the JSON body into the target type: reasoning_effort: unknown variant `minimal`, expected one of `none`, `low`, `high`, or `max`",
            ),
        ],
    );
}

#[test]
fn kimi_fixes_sampling_and_reads_its_own_flavour_of_schemas() {
    let model = "kimi-k3";
    let flavour = |details: &str| {
        format!(
            "tools.function.parameters is not a valid moonshot flavored json schema, details: <{details}>"
        )
    };
    let tools = |schema: Value| request(model, &json!({"tools": [tool("view", schema)]}));
    passes(
        "kimi",
        [
            request(model, &json!({"temperature": 1.0, "top_p": 0.95, "n": 1})),
            answered(model, "a", &json!({"reasoning_content": "r"}), &json!({"reasoning_effort": "xhigh"})),
            tools(
                json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "string"}}}),
            ),
        ],
    );
    refuses(
        "kimi",
        [
            (
                request(model, &json!({"temperature": 0})),
                400,
                "invalid temperature: only 1 is allowed for this model",
            ),
            (request(model, &json!({"top_p": 1})), 400, "invalid top_p: only 0.95 is allowed for this model"),
            (
                request(model, &json!({"thinking": {"type": "disabled"}})),
                400,
                "invalid thinking: only type=enabled is allowed for this model",
            ),
            (
                answered(model, "a", &json!({}), &json!({})),
                400,
                "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
            ),
            (
                tools(
                    json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a", "description": "d"}}}),
                ),
                400,
                &flavour(
                    "At path 'properties.a': conflicting keywords found after $ref expansion: description",
                ),
            ),
            (
                tools(
                    json!({"type": "object", "properties": {"a": {"type": "array", "items": [{"type": "string"}]}}}),
                ),
                400,
                &flavour("At path 'properties.a.items': items must be an object"),
            ),
            (
                tools(json!({"type": "object", "anyOf": [{"properties": {}}]})),
                400,
                &flavour(
                    "At path 'root': when using anyOf, type should be defined in anyOf items instead of the parent schema",
                ),
            ),
            (
                request(
                    model,
                    &json!({"messages": [{"role": "assistant", "content": ""}, {"role": "user", "content": "x"}]}),
                ),
                400,
                "Invalid request: the message at position 0 with role 'assistant' must not be empty",
            ),
        ],
    );
}

#[test]
fn qwen_thinks_in_streams_only() {
    let model = "qwen3.8-max";
    passes(
        "qwen",
        [
            request(model, &json!({"enable_thinking": true, "thinking_budget": 1000, "stream": true})),
            request(model, &json!({"enable_thinking": false})),
        ],
    );
    let words = "parameter.enable_thinking must be set to false for non-streaming calls";
    refuses("qwen", [(request(model, &json!({"enable_thinking": true})), 400, words)]);
    assert_eq!(
        refusal_body("qwen", &request(model, &json!({"enable_thinking": true})))["error"],
        json!({"code": "invalid_parameter_error", "param": null, "message": words, "type": "invalid_request_error"})
    );
}

#[test]
fn glm_always_thinks_and_takes_overlong_prompts_silently() {
    let range =
        "Invalid API parameter, please check the documentation.max_tokens: the valid range is [1, 131072]";
    passes(
        "glm",
        [request(
            "glm-5.3",
            &json!({"thinking": {"type": "enabled", "clear_thinking": false}, "reasoning_effort": "max"}),
        )],
    );
    refuses(
        "glm",
        [
            (
                request("glm-5.3", &json!({"thinking": {"type": "disabled"}})),
                400,
                "Invalid API parameter, please check the documentation.thinking.type: disabled",
            ),
            (request("glm-5.3", &json!({"max_tokens": 0})), 400, range),
            (request("glm-5.3", &json!({"max_tokens": 131073})), 400, range),
        ],
    );
    let long =
        request("glm-4.6", &json!({"messages": [{"role": "user", "content": "word ".repeat(210_000)}]}));
    let violations = outcome("glm", &long).unwrap();
    assert!(
        violations[0].ends_with("tokens were sent to a window of 200000, which the host does not say"),
        "{violations:?}"
    );
}
