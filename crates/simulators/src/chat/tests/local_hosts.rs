//! Local servers, and hosts that forward requests.

use serde_json::json;

use super::*;

#[test]
fn openrouter_takes_reasoning_as_an_object_of_its_own() {
    let claude = "anthropic/claude-sonnet-4.6";
    passes(
        "openrouter",
        [
            request(claude, &json!({"reasoning": {"effort": "xhigh"}, "session_id": "s"})),
            request(claude, &json!({"reasoning": {"max_tokens": 4000}})),
            answered(claude, "toolu_1", &json!({}), &json!({})),
        ],
    );
    let mandatory = "Reasoning is mandatory for this endpoint and cannot be disabled.";
    refuses(
        "openrouter",
        [
            (
                request(claude, &json!({"reasoning": {"effort": "low", "max_tokens": 1}})),
                400,
                "Only one of \"reasoning.effort\" and \"reasoning.max_tokens\" can be specified",
            ),
            (request("openai/gpt-6-astra", &json!({"reasoning": {"effort": "none"}})), 400, mandatory),
            (request("google/gemini-3.8-flash", &json!({"reasoning": {"enabled": false}})), 400, mandatory),
            (request("claude-sonnet-4-6", &json!({})), 400, "claude-sonnet-4-6 is not a valid model ID"),
        ],
    );
    assert_eq!(
        refusal_body("openrouter", &request("x", &json!({}))),
        json!({"error": {"message": "x is not a valid model ID", "code": 400}, "user_id": "user_simulated"})
    );
}

#[test]
fn litellm_refuses_parameters_that_the_model_behind_it_lacks() {
    let unsupported = |provider: &str, name: &str, model: &str| {
        format!(
            "litellm.UnsupportedParamsError: {provider} does not support parameters: ['{name}'], for model={model}. To drop these, set `litellm.drop_params=True` or for proxy:\n\n`litellm_settings:\n drop_params: true`\n. \n If you want to use these params dynamically send allowed_openai_params=['{name}'] in your request.. Received Model Group={model}\nAvailable Model Group Fallbacks=None"
        )
    };
    passes("litellm", [request("claude-sonnet-4-6", &json!({"reasoning_effort": "high"}))]);
    refuses(
        "litellm",
        [
            (
                request("gpt-4.1", &json!({"reasoning_effort": "low"})),
                400,
                &*unsupported("openai", "reasoning_effort", "gpt-4.1"),
            ),
            (
                request("claude-sonnet-4-6", &json!({"presence_penalty": 0})),
                400,
                &unsupported("anthropic", "presence_penalty", "claude-sonnet-4-6"),
            ),
            (
                answered("claude-sonnet-4-6", "a", &json!({}), &json!({"tools": null})),
                400,
                "litellm.UnsupportedParamsError: Anthropic expects the `tools=` param to be passed in. Pass `tools=` param OR set `litellm.modify_params = True` // `litellm_settings::modify_params: True` to add dummy tool to the request.. Received Model Group=claude-sonnet-4-6\nAvailable Model Group Fallbacks=None",
            ),
        ],
    );
}

#[test]
fn ollama_refuses_tools_for_a_model_without_and_images_that_are_addresses() {
    passes("ollama", [request("gemma3:4b", &json!({"messages": image(PNG)}))]);
    refuses(
        "ollama",
        [
            (
                request("gemma3:4b", &json!({"tools": [tool("view", view_schema())]})),
                400,
                "registry.ollama.ai/library/gemma3:4b does not support tools",
            ),
            (
                request("gemma3:4b", &json!({"messages": image("https://example.com/a.png")})),
                400,
                "invalid image input",
            ),
            (
                request("qwen3-coder:30b", &json!({"reasoning_effort": "high"})),
                400,
                "\"qwen3-coder:30b\" does not support thinking",
            ),
        ],
    );
}

#[test]
fn ollama_answers_what_it_cuts_and_the_simulator_tells() {
    let long = |words: usize| "word ".repeat(words);
    let messages = |system: usize, old: usize| {
        request(
            "gemma3:4b",
            &json!({"messages": [
                {"role": "system", "content": long(system)},
                {"role": "user", "content": long(old)},
                {"role": "assistant", "content": "so"},
                {"role": "user", "content": "new"},
            ]}),
        )
    };
    passes("ollama", [messages(10, 2000)]);
    let cut = outcome("ollama", &messages(10, 5000)).unwrap();
    assert_eq!(cut.len(), 1, "{cut:?}");
    assert!(
        cut[0].ends_with("were sent to a window of 4096: the host dropped the 1 oldest messages"),
        "{cut:?}"
    );
    let lost = outcome("ollama", &messages(5000, 10)).unwrap();
    assert!(lost[0].starts_with("system and tools alone have 50"), "{lost:?}");
}

#[test]
fn local_servers_word_a_full_window_each_in_its_way() {
    let long = |model: &str| {
        request(
            model,
            &json!({"max_tokens": 100, "messages": [{"role": "user", "content": "word ".repeat(140_000)}]}),
        )
    };
    for (host, model, status, begin) in [
        ("llama-cpp", "qwen3-coder-30b", 400, "request (14"),
        (
            "vllm",
            "Qwen/Qwen3-Coder-30B-A3B-Instruct",
            400,
            "This model's maximum context length is 131072 tokens. However, you requested 100 output tokens and your prompt contains at least 14",
        ),
        (
            "lm-studio",
            "qwen/qwen3-coder-30b",
            400,
            "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 14",
        ),
        ("mistral", "devstral-2512", 0, ""),
    ] {
        match outcome(host, &long(model)) {
            Err((found, words)) => {
                assert!(found == status && words.starts_with(begin), "{host}: {found} {words}");
            }
            Ok(violations) => assert!(status == 0 && violations.is_empty(), "{host} accepts it"),
        }
    }
    let error = refusal_body("llama-cpp", &long("qwen3-coder-30b"));
    assert_eq!(
        (&error["error"]["type"], &error["error"]["n_ctx"]),
        (&json!("exceed_context_size_error"), &json!(65536))
    );
}

#[test]
fn local_servers_that_were_started_without_tools_say_so() {
    let tools = |model: &str| request(model, &json!({"tools": [tool("view", view_schema())]}));
    refuses("llama-cpp", [(tools("tinyllama-1.1b"), 500, "tools param requires --jinja flag")]);
    refuses(
        "vllm",
        [
            (
                tools("meta-llama/Llama-3.1-8B-Instruct"),
                400,
                "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set",
            ),
            (
                request(
                    "Qwen/Qwen3-Coder-30B-A3B-Instruct",
                    &json!({"messages": [{"role": "user", "content": "a"}, {"role": "system", "content": "b"}]}),
                ),
                400,
                "System message must be at the beginning.",
            ),
        ],
    );
    refuses(
        "lm-studio",
        [(
            request("qwen/qwen3-coder-30b", &json!({"messages": image(PNG)})),
            400,
            "Model does not support images. Please use a model that does.",
        )],
    );
}
