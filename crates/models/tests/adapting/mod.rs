//! Requests that follow what the provider says of its models: in its list, and in refusals.

use hangar_agent::tool::{ToolSchema, ToolSpec};
use serde_json::{Value, json};

use super::*;

/// The lines of all requests that a server has got.
fn lines(server: &mut Server) -> Vec<String> {
    std::iter::from_fn(|| server.requests.try_recv().ok()).map(|request| request.line).collect()
}

/// The bodies of all requests that a server has got, without those that had none.
fn bodies(server: &mut Server) -> Vec<Value> {
    std::iter::from_fn(|| server.requests.try_recv().ok())
        .filter_map(|request| serde_json::from_str(&request.body).ok())
        .collect()
}

/// The notices before an answer.
fn notices(events: &[Result<ModelEvent, ModelError>]) -> Vec<&str> {
    let told = events.iter().filter_map(|event| match event {
        Ok(ModelEvent::Notice(text)) => Some(text.as_str()),
        _ => None,
    });
    told.collect()
}

fn refusal(message: &str) -> Vec<Act> {
    let body = json!({ "error": { "message": message, "type": "invalid_request_error" } }).to_string();
    response("400 Bad Request", "content-type: application/json\r\n", &body)
}

fn message_events() -> Vec<Act> {
    stream(&[
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"pong"}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
        r#"{"type":"message_stop"}"#,
    ])
}

#[tokio::test]
async fn the_list_that_github_was_asked_for_gives_the_limits_of_the_first_request() {
    let list = r#"{"data":[{"id":"claude-sonnet-4.6","supported_endpoints":["/v1/messages"],
        "billing":{"token_prices":{"batch_size":1000000,"default":{"input_price":300,"output_price":1500,"cache_price":30}}},
        "capabilities":{"type":"chat","limits":{"max_context_window_tokens":200000,"max_prompt_tokens":128000,"max_output_tokens":16000},
        "supports":{"reasoning_effort":["low","medium"]}}}]}"#;
    let mut server = serve(vec![server::json(list), message_events()]).await;
    let mut config = config(ProviderKind::Copilot, &server.url);
    config.auth = Auth::Bearer(Secret::new("gho_1"));
    config.model = Some("claude-sonnet-4.6".to_owned());
    let provider = build(config);
    let mut request = ModelRequest { model: "claude-sonnet-4.6".into(), ..request() };
    request.effort = Some("high".to_owned());
    let _: Vec<_> = provider.stream(request).collect().await;
    let sent = bodies(&mut server).pop().unwrap();
    assert_eq!((&sent["max_tokens"], &sent["output_config"]["effort"]), (&json!(16_000), &json!("medium")));
    let facts = provider.facts();
    assert_eq!(facts.endpoint, "/v1/messages");
    assert_eq!((facts.max_prompt_tokens, facts.max_output_tokens), (Some(128_000), Some(16_000)));
    assert_eq!(facts.price.map(|price| price.rates.input), Some(3.0));
}

#[tokio::test]
async fn a_list_belongs_to_the_account_that_got_it() {
    let server = serve(vec![server::json(r#"{"data":[{"id":"m"}]}"#)]).await;
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache { dir: dir.path().to_owned(), ttl: Duration::from_secs(3600) };
    let now = SystemTime::now();
    let account = |key: &str| {
        let mut config = config(CHAT, &server.url);
        config.auth = Auth::ApiKey(Secret::new(key));
        config
    };
    cache.list_models(&account("one"), now).await.unwrap();
    assert!(cache.read(&account("one"), now).is_some());
    assert!(cache.read(&account("two"), now).is_none());
}

#[tokio::test]
async fn a_host_that_thinks_by_budget_gets_one_for_each_effort() {
    let mut server = serve(vec![stream(&[PONG, STOP, "[DONE]"])]).await;
    for model in ["qwen3.8-max", "qwen3.8-plus"] {
        for effort in ["none", "low", "high", "max"] {
            let mut config = config(CHAT, &server.url);
            config.preset = Some("qwen".to_owned());
            let _ = call(
                config,
                ModelRequest { model: model.into(), effort: Some(effort.to_owned()), ..request() },
            )
            .await;
        }
        let told: Vec<String> = bodies(&mut server)
            .iter()
            .map(|body| format!("{} {}", body["enable_thinking"], body["thinking_budget"]))
            .collect();
        assert_eq!(told, ["false null", "true 4000", "true 16000", "true 31999"], "{model}");
    }
}

/// A model whose provider refuses its first request, then answers. Returns both bodies, and that of the next process.
async fn refused_once(
    kind: ProviderKind,
    said: &str,
    answer: Vec<Act>,
    asked: &ModelRequest,
) -> (Vec<Value>, String) {
    let home = tempfile::tempdir().unwrap();
    let mut server = serve(vec![refusal(said), answer]).await;
    let mut told = String::new();
    for _ in 0..2 {
        let mut config = config(kind.clone(), &server.url);
        config.learnt.memory = Some(home.path().to_owned());
        let events = call(config, asked.clone()).await;
        assert!(matches!(events.last(), Some(Ok(ModelEvent::Finished(_)))), "{}", show(&events));
        told.push_str(&notices(&events).join("\n"));
    }
    (bodies(&mut server), told)
}

#[tokio::test]
async fn an_output_limit_that_a_refusal_states_is_taken_remembered_and_told() {
    let said =
        "max_tokens: 128000 > 8000, which is the maximum allowed number of output tokens for claude-opus-4-8";
    let asked = ModelRequest { model: "claude-opus-4-8".into(), ..request() };
    let (sent, told) = refused_once(ProviderKind::Anthropic, said, message_events(), &asked).await;
    let limits: Vec<&Value> = sent.iter().map(|body| &body["max_tokens"]).collect();
    assert_eq!(limits, [&json!(128_000), &json!(8000), &json!(8000)]);
    assert_eq!(told.matches("at most 8000 tokens").count(), 1, "{told}");
    // A refusal without a number says nothing about it.
    let said = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
    let asked = ModelRequest { max_output_tokens: Some(32_000), ..request() };
    let (sent, _) = refused_once(CHAT, said, stream(&[PONG, STOP, "[DONE]"]), &asked).await;
    assert_eq!((&sent[0]["max_tokens"], &sent[0]["max_completion_tokens"]), (&json!(32_000), &Value::Null));
    assert_eq!((&sent[2]["max_tokens"], &sent[2]["max_completion_tokens"]), (&Value::Null, &json!(32_000)));
    let said = "max_completion_tokens is too large: 32000. This model supports at most 16384 completion tokens, whereas you provided 32000.";
    let (sent, _) = refused_once(CHAT, said, stream(&[PONG, STOP, "[DONE]"]), &asked).await;
    let limits: Vec<&Value> = sent.iter().map(|body| &body["max_tokens"]).collect();
    assert_eq!(limits, [&json!(32_000), &json!(16_384), &json!(16_384)]);
}

#[tokio::test]
async fn an_effort_that_is_refused_is_lowered_or_left_out_remembered_and_told() {
    let done = r#"{"type":"response.completed","response":{"id":"r","status":"completed"}}"#;
    let asked = ModelRequest { effort: Some("high".to_owned()), ..request() };
    for (said, then) in [
        ("Unsupported parameter: 'reasoning.effort' is not supported with this model.", Value::Null),
        (
            "Invalid value: 'high'. Supported values are: 'low' and 'medium'. (reasoning.effort)",
            json!("medium"),
        ),
    ] {
        let (sent, told) = refused_once(RESPONSES, said, stream(&[done]), &asked).await;
        let efforts: Vec<&Value> = sent.iter().map(|body| &body["reasoning"]["effort"]).collect();
        assert_eq!(efforts, [&json!("high"), &then, &then], "{said}");
        assert_eq!(told.matches("effort").count(), 1, "{told}");
    }
    let said = "Invalid reasoning_effort: this model cannot think.";
    let (sent, told) = refused_once(CHAT, said, stream(&[PONG, STOP, "[DONE]"]), &asked).await;
    let efforts: Vec<&Value> = sent.iter().map(|body| &body["reasoning_effort"]).collect();
    assert_eq!(efforts, [&json!("high"), &Value::Null, &Value::Null]);
    assert_eq!(told.matches("does not take this effort").count(), 1, "{told}");
}

#[tokio::test]
async fn the_tables_know_the_nearest_names_where_the_provider_lists_none() {
    for (preset, said, asked, near) in [
        (
            Some("openrouter"),
            "anthropic/claude-sonet-4.6 is not a valid model ID",
            "anthropic/claude-sonet-4.6",
            "claude-sonnet-4.6",
        ),
        (None, "Invalid model name passed in model=gpt-5.9-sol", "gpt-5.9-sol", "gpt-5.6-sol"),
        (
            None,
            "The provided model identifier is invalid.",
            "lama-3.3-70b-instruct",
            "llama-3.3-70b-instruct",
        ),
    ] {
        let server = serve(vec![refusal(said)]).await;
        let mut config = config(CHAT, &server.url);
        config.preset = preset.map(str::to_owned);
        let events = call(config, ModelRequest { model: asked.into(), ..request() }).await;
        let error = events.last().unwrap().as_ref().unwrap_err();
        assert!(
            error.message.contains("; the nearest models are ") && error.message.contains(near),
            "{}",
            error.message
        );
    }
}

#[tokio::test]
async fn an_unknown_model_is_answered_with_the_nearest_ones() {
    let refusal = r#"{"error":{"message":"The model `gpt-5.9` does not exist","code":"model_not_found"}}"#;
    let server = serve(vec![response("404 Not Found", "", refusal)]).await;
    let list =
        serve(vec![server::json(r#"{"data":[{"id":"gpt-5.5"},{"id":"gpt-5.4"},{"id":"llama"}]}"#)]).await;
    let models = list_models(&config(CHAT, &list.url)).await.unwrap();
    let provider = build_with_models(config(CHAT, &server.url), models);
    let asked = ModelRequest { model: "gpt-5.9".into(), ..request() };
    let events: Vec<_> = provider.stream(asked).collect().await;
    let message = &events[0].as_ref().unwrap_err().message;
    assert!(message.ends_with("; the nearest models are gpt-5.5, gpt-5.4"), "{message}");
}

#[tokio::test]
async fn a_refusal_that_names_the_other_endpoint_is_paid_once_and_not_by_each_process() {
    let home = tempfile::tempdir().unwrap();
    let refusal = r#"{"error":{"message":"This model is only supported in v1/responses and not in v1/chat/completions.","type":"invalid_request_error","param":"model","code":null}}"#;
    let done = r#"{"type":"response.completed","response":{"id":"r","status":"completed"}}"#;
    let mut server = serve(vec![response("404 Not Found", "", refusal), stream(&[done])]).await;
    let (chat, responses) = ("POST /v1/chat/completions", "POST /v1/responses");
    for expected in [&[chat, responses][..], &[responses]] {
        // Each time another process.
        let mut config =
            config(ProviderKind::OpenAi { wire: WireApi::PerModel }, &format!("{}/v1", server.url));
        config.learnt.memory = Some(home.path().to_owned());
        let _ = call(config, request()).await;
        assert_eq!(lines(&mut server), expected);
    }
}

#[tokio::test]
async fn a_configured_endpoint_is_asked_even_where_the_tables_know_better() {
    let done = r#"{"type":"response.completed","response":{"id":"r","status":"completed"}}"#;
    let refusal = r#"{"error":{"message":"Function tools are not supported for this model in /v1/chat/completions. Use /v1/responses.","type":"invalid_request_error","param":"tools","code":null}}"#;
    let (chat, responses) = ("POST /chat/completions", "POST /responses");
    let schema = ToolSchema::function(serde_json::json!({ "type": "object" }));
    let tool = ToolSpec { name: "view".into(), title: None, description: String::new(), input: schema };
    let tool = std::sync::Arc::new(tool);
    let per_model = ProviderKind::OpenAi { wire: WireApi::PerModel };
    for (kind, model, expected) in [
        (&per_model, "gpt-6.1-sol", &[responses][..]),
        (&per_model, "gpt-6-astra", &[responses]),
        (&CHAT, "gpt-6.1-sol", &[chat, responses]),
        (&CHAT, "gpt-6-astra", &[chat, responses]),
    ] {
        let refused = (kind == &CHAT).then(|| response("400 Bad Request", "", refusal));
        let mut server = serve(refused.into_iter().chain([stream(&[done])]).collect()).await;
        let mut config = config(kind.clone(), &server.url);
        config.preset = Some("openai".to_owned());
        let tools = vec![tool.clone()].into();
        let events = call(config, ModelRequest { model: model.into(), tools, ..request() }).await;
        assert_eq!(lines(&mut server), expected, "{model}");
        let told = show(&events).matches("wants this model to be asked at /responses").count();
        assert_eq!(told, expected.len() - 1, "{}", show(&events));
    }
}

#[tokio::test]
async fn a_server_without_the_endpoint_that_it_names_gets_tools_without_reasoning() {
    let home = tempfile::tempdir().unwrap();
    let refusal = r#"{"error":{"message":"Function tools with reasoning_effort are not supported for m in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.","type":"invalid_request_error","param":"reasoning_effort","code":null}}"#;
    let done = r#"{"choices":[{"delta":{"content":"pong"},"finish_reason":"stop"}]}"#;
    let answers = vec![
        response("400 Bad Request", "", refusal),
        response("404 Not Found", "", "{}"),
        stream(&[done, "[DONE]"]),
    ];
    let mut server = serve(answers).await;
    let schema = ToolSchema::function(serde_json::json!({ "type": "object" }));
    let tool = ToolSpec { name: "view".into(), title: None, description: String::new(), input: schema };
    let tools: std::sync::Arc<[_]> = vec![std::sync::Arc::new(tool)].into();
    for efforts in [&[Value::Null, Value::Null, json!("none")][..], &[json!("none")]] {
        // Each time another process.
        let mut config = config(ProviderKind::OpenAi { wire: WireApi::PerModel }, &server.url);
        config.learnt.memory = Some(home.path().to_owned());
        let events = call(config, ModelRequest { tools: tools.clone(), ..request() }).await;
        assert!(events.iter().all(Result::is_ok), "{}", show(&events));
        assert_eq!(notices(&events).len(), usize::from(efforts.len() > 1), "{}", show(&events));
        let sent: Vec<Value> =
            bodies(&mut server).iter().map(|body| body["reasoning_effort"].clone()).collect();
        assert_eq!(sent, efforts);
    }
}
