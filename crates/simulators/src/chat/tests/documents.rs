//! Catalogues, and information endpoints of local servers.

use serde_json::json;

use super::requests::posted;
use super::*;
use crate::chat::Chat;
use crate::{Vendor, VendorResponse};

/// The value at `pointer` of the document that a host has at a path.
fn check(host: &str, path: &str, pointer: &str, expected: Value) {
    let mut request = posted(path, &[], Value::Null);
    request.method = "GET".to_owned();
    told(host, &request, pointer, &expected);
}

fn told(host: &str, request: &crate::Request, pointer: &str, expected: &Value) {
    let Some(VendorResponse::Whole { body, .. }) = Chat::named(host).unwrap().aside(request) else {
        panic!("{host} has no {}", request.path)
    };
    assert_eq!(body.pointer(pointer), Some(expected), "{host} {}: {body}", request.path);
}

#[test]
fn catalogues_tell_windows_and_prices_under_the_names_of_their_host() {
    check("openai", "/v1/models", "/data/0/id", json!("gpt-4.1"));
    check("openai", "/v1/models/gpt-5.2", "/id", json!("gpt-5.2"));
    check("openai", "/v1/models/gpt-9", "/error/code", json!("model_not_found"));
    check("azure", "/openai/v1/models", "/data/0/capabilities/chat_completion", json!(true));
    check("gemini", "/v1beta/models", "/models/0/inputTokenLimit", json!(1_048_576));
    check("gemini", "/v1beta/openai/models", "/data/0/id", json!("models/gemini-3.8-flash"));
    check("xai", "/v1/language-models", "/models/0/prompt_text_token_price", json!(20000));
    check("mistral", "/v1/models", "/data/0/max_context_length", json!(262_144));
    check("mistral", "/v1/models", "/data/2/capabilities/vision", json!(false));
    check("groq", "/openai/v1/models", "/data/0/context_window", json!(131_072));
    check("deepseek", "/models", "/data/0/id", json!("deepseek-v4-pro"));
    check("kimi", "/v1/models", "/data/0/context_length", json!(1_048_576));
    check("qwen", "/compatible-mode/v1/models", "/data/0/id", json!("qwen3.8-max"));
    check("glm", "/api/paas/v4/models", "/data/0/id", json!("glm-5.3"));
    check("litellm", "/v1/model/info", "/data/1/model_info/max_input_tokens", json!(1_000_000));
    check("litellm", "/v1/model/info", "/data/1/model_info/input_cost_per_token", json!(3e-6));
}

#[test]
fn openrouter_tells_efforts_and_prices() {
    check("openrouter", "/api/v1/models", "/data/0/pricing/prompt", json!("0.000003"));
    check(
        "openrouter",
        "/api/v1/models",
        "/data/0/reasoning/supported_efforts",
        json!(["low", "medium", "high", "max"]),
    );
    check("openrouter", "/api/v1/models", "/data/1/reasoning/mandatory", json!(true));
    check("openrouter", "/api/v1/models", "/data/3/architecture/input_modalities", json!(["text"]));
}

#[test]
fn copilot_tells_endpoints_limits_and_prices() {
    check("copilot", "/models", "/data/0/supported_endpoints", json!(["/chat/completions"]));
    check("copilot", "/models", "/data/2/supported_endpoints/0", json!("/responses"));
    check("copilot", "/models", "/data/0/capabilities/limits/max_prompt_tokens", json!(111_616));
    check("copilot", "/models", "/data/3/capabilities/supports/max_thinking_budget", json!(32000));
    check("copilot", "/models", "/data/3/billing/token_prices/default/cache_price", json!(0.3));
    check("copilot", "/models", "/data/0/capabilities/limits/vision/max_prompt_images", json!(5));
}

#[test]
fn local_servers_tell_the_window_that_a_model_was_loaded_with() {
    check("ollama", "/api/tags", "/models/0/name", json!("qwen3-coder:30b"));
    check("ollama", "/api/ps", "/models/0/context_length", json!(32768));
    check("llama-cpp", "/props", "/default_generation_settings/n_ctx", json!(65536));
    check("llama-cpp", "/v1/models", "/data/0/meta/n_ctx_train", json!(262_144));
    check("vllm", "/v1/models", "/data/0/max_model_len", json!(131_072));
    check("lm-studio", "/api/v0/models", "/data/0/max_context_length", json!(262_144));
    check("lm-studio", "/api/v0/models", "/data/0/loaded_context_length", json!(32768));
    check("lm-studio", "/api/v1/models", "/models/0/loaded_instances/0/config/context_length", json!(32768));
}

#[test]
fn ollama_shows_what_one_model_can_do() {
    let show = |model: &str| posted("/api/show", &[], json!({"model": model}));
    told("ollama", &show("gemma3:4b"), "/capabilities", &json!(["completion", "vision"]));
    told("ollama", &show("gemma3:4b"), "/model_info/gemma3.context_length", &json!(131_072));
    told("ollama", &show("x"), "/error/message", &json!("model \"x\" not found, try pulling it first"));
}
