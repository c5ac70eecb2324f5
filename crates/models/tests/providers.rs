//! Providers against a server that behaves well, badly, or not at all.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod adapting;
mod server;

use std::time::{Duration, SystemTime};

use expect_test::{Expect, expect};
use futures_util::StreamExt;
use hangar_agent::model::{
    Initiator, Message, ModelError, ModelErrorKind, ModelEvent, ModelRequest, Part, ToolChoice,
};
use hangar_models::base_url::BaseUrl;
use hangar_models::catalogue::{Cache, list_models};
use hangar_models::config::{Auth, ProviderConfig, ProviderKind, WireApi};
use hangar_models::{Secret, build, build_with_models};
use server::{Act, Server, chunk, json, response, serve, stream, stream_head};

const CHAT: ProviderKind = ProviderKind::OpenAi { wire: WireApi::Completions };
const RESPONSES: ProviderKind = ProviderKind::OpenAi { wire: WireApi::Responses };
const PONG: &str = r#"{"id":"c1","choices":[{"index":0,"delta":{"content":"pong"},"finish_reason":null}]}"#;
const STOP: &str = r#"{"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;

fn config(kind: ProviderKind, url: &str) -> ProviderConfig {
    ProviderConfig::new("p", kind, BaseUrl::parse(url).unwrap())
}

fn request() -> ModelRequest {
    ModelRequest {
        model: "mock-model".into(),
        system: "".into(),
        messages: vec![Message::User(vec![Part::Text("hi".into())]).into()],
        tools: [].into(),
        late_tools: Vec::new(),
        tool_choice: ToolChoice::Auto,
        effort: None,
        stream: true,
        initiator: Initiator::User,
        session_id: "s1".into(),
        headers: Vec::new(),
        answer: None,
        max_output_tokens: None,
    }
}

/// Everything that a call says, to its end.
async fn call(config: ProviderConfig, request: ModelRequest) -> Vec<Result<ModelEvent, ModelError>> {
    build(config).stream(request).collect().await
}

fn show(events: &[Result<ModelEvent, ModelError>]) -> String {
    let line = |event: &Result<ModelEvent, ModelError>| match event {
        Ok(ModelEvent::Text(text)) => format!("text {text:?}"),
        Ok(ModelEvent::Finished(reply)) => format!("finished {:?} {:?}", reply.turn.text, reply.finish),
        Ok(other) => format!("{other:?}"),
        Err(error) => format!("{:?} {:?}: {}", error.kind, error.status, error.message),
    };
    events.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Calls a server that answers like this.
async fn check(kind: ProviderKind, answer: Vec<Act>, expected: Expect) {
    let server = serve(vec![answer]).await;
    let events = call(config(kind, &server.url), request()).await;
    expected.assert_eq(&show(&events).replace(&server.url, "URL"));
}

async fn error(config: ProviderConfig) -> ModelError {
    call(config, request()).await.pop().unwrap().unwrap_err()
}

#[tokio::test]
async fn each_wire_streams() {
    let expected = || {
        expect![[r#"
        text "pong"
        finished "pong" Stop"#]]
    };
    check(CHAT, stream(&[PONG, STOP, "[DONE]"]), expected()).await;
    check(
        RESPONSES,
        stream(&[
            r#"{"type":"response.output_text.delta","output_index":0,"delta":"pong"}"#,
            r#"{"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}"#,
        ]),
        expected(),
    )
    .await;
    check(
        ProviderKind::Anthropic,
        stream(&[
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"pong"}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
            r#"{"type":"message_stop"}"#,
        ]),
        expected(),
    )
    .await;
}

#[tokio::test]
async fn the_cost_that_a_gateway_tells_in_a_header_is_read() {
    let cost = async |headers: &str, body: &str| {
        let head = format!("content-type: application/json\r\n{headers}");
        let server = serve(vec![response("200 OK", &head, body)]).await;
        match call(config(CHAT, &server.url), request()).await.pop() {
            Some(Ok(ModelEvent::Finished(reply))) => reply.usage.cost,
            other => panic!("{other:?}"),
        }
    };
    let plain = r#"{"choices":[{"message":{"content":"pong"},"finish_reason":"stop"}]}"#;
    let priced = plain.replace("}]}", r#"}],"usage":{"cost":0.5}}"#);
    assert_eq!(cost("x-litellm-response-cost: 0.25\r\n", plain).await, Some(0.25));
    assert_eq!(cost("x-litellm-response-cost: 0.25\r\n", &priced).await, Some(0.5));
    assert_eq!(cost("x-litellm-response-cost: None\r\n", plain).await, None);
    assert_eq!(cost("", plain).await, None);
}

#[tokio::test]
async fn bytes_may_come_one_by_one() {
    let body = format!(": hello\r\n\r\ndata: {PONG}\r\n\r\ndata: {STOP}\r\n\r\ndata: [DONE]\r\n\r\n");
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
    check(
        CHAT,
        vec![Act::Drip(head), Act::Drip(body)],
        expect![[r#"
        text "pong"
        finished "pong" Stop"#]],
    )
    .await;
}

#[tokio::test]
async fn an_answer_in_one_piece_has_no_deltas() {
    let body = r#"{"id":"c1","choices":[{"index":0,"message":{"content":"pong"},"finish_reason":"stop"}]}"#;
    // Asked for a stream, this server does not stream.
    check(CHAT, json(body), expect![[r#"finished "pong" Stop"#]]).await;

    let mut server = serve(vec![json(body)]).await;
    let mut whole = request();
    whole.stream = false;
    let events = call(config(CHAT, &server.url), whole).await;
    expect![[r#"finished "pong" Stop"#]].assert_eq(&show(&events));
    let asked = server.requests.recv().await.unwrap();
    assert!(!asked.body.contains("stream"), "{}", asked.body);

    // Asked for one piece, this one streams.
    let server = serve(vec![stream(&[PONG, STOP, "[DONE]"])]).await;
    let mut whole = request();
    whole.stream = false;
    expect![[r#"finished "pong" Stop"#]].assert_eq(&show(&call(config(CHAT, &server.url), whole).await));
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_cut() {
    let piece = format!("data: {PONG}\n\n");
    check(CHAT, vec![stream_head(), chunk(&piece), Act::Close], expect![[r#"
        text "pong"
        Cut None: the answer of the model provider at URL broke off: unexpected EOF during chunk size line"#]]).await;
    // The response ends well, but the answer does not.
    check(
        CHAT,
        stream(&[PONG]),
        expect![[r#"
        text "pong"
        Cut None: the answer of the model provider at URL broke off before its end"#]],
    )
    .await;
    check(
        CHAT,
        vec![stream_head(), chunk("data: {\"choi"), Act::Send("0\r\n\r\n".into())],
        expect!["Cut None: the answer of the model provider at URL broke off before its end"],
    )
    .await;
    check(CHAT, vec![Act::Close], expect!["Cut None: the connection to the model provider at URL broke: connection closed before message completed"]).await;
    check(CHAT, vec![Act::Send("HTTP/1.1 200 OK\r\ncontent-ty".into()), Act::Close], expect!["Cut None: the connection to the model provider at URL broke: connection closed before message completed"]).await;
}

#[tokio::test]
async fn an_answer_is_over_at_its_mark_whatever_the_connection_does() {
    let all: String = [PONG, STOP, "[DONE]"].iter().map(|data| format!("data: {data}\n\n")).collect();
    check(
        CHAT,
        vec![stream_head(), chunk(&all), Act::Hang],
        expect![[r#"
        text "pong"
        finished "pong" Stop"#]],
    )
    .await;
    let without_mark: String = [PONG, STOP].iter().map(|data| format!("data: {data}\n\n")).collect();
    check(
        CHAT,
        vec![stream_head(), chunk(&without_mark), Act::Close],
        expect![[r#"
        text "pong"
        finished "pong" Stop"#]],
    )
    .await;
}

#[tokio::test]
async fn what_came_before_an_error_is_told_before_it() {
    let pieces = format!(
        "data: {PONG}\n\ndata: {{\"error\":{{\"message\":\"overloaded\",\"code\":503}}}}\n\ndata: {PONG}\n\n"
    );
    check(
        CHAT,
        vec![stream_head(), chunk(&pieces), Act::Hang],
        expect![[r#"
        text "pong"
        Server Some(503): overloaded"#]],
    )
    .await;
    let pieces = format!("data: {PONG}\n\ndata: nonsense\n\n");
    check(CHAT, vec![stream_head(), chunk(&pieces), Act::Hang], expect![[r#"
        text "pong"
        Protocol None: the model provider sent what is not a chat completion: expected ident at line 1 column 2"#]]).await;
}

#[tokio::test]
async fn silence_ends_by_a_time_limit() {
    let server = serve(vec![vec![stream_head(), chunk(&format!("data: {PONG}\n\n")), Act::Hang]]).await;
    let mut quick = config(CHAT, &server.url);
    quick.limits.stall = Duration::from_millis(30);
    let events = call(quick, request()).await;
    expect![[r#"
        text "pong"
        Stalled None: the model provider at URL sent nothing for 0.03 s"#]]
    .assert_eq(&show(&events).replace(&server.url, "URL"));

    for answer in [vec![Act::Hang], vec![stream_head(), Act::Hang]] {
        let server = serve(vec![answer]).await;
        let mut quick = config(CHAT, &server.url);
        quick.limits.first_byte = Duration::from_millis(30);
        assert_eq!(error(quick).await.kind, ModelErrorKind::Stalled);
    }
}

#[tokio::test]
async fn nobody_there_is_said_with_the_address() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let error = error(config(CHAT, &url)).await;
    assert_eq!((error.kind, error.status), (ModelErrorKind::Connect, None));
    expect!["could not connect to the model provider at URL: Connection refused (os error 111)"]
        .assert_eq(&error.message.replace(&url, "URL"));
}

#[tokio::test]
async fn refusals_have_a_kind_each() {
    let body = r#"{"error":{"message":"mock failure","type":"t","code":"c"}}"#;
    for (status, expected) in [
        ("400 Bad Request", ModelErrorKind::Refused),
        ("401 Unauthorized", ModelErrorKind::Authentication),
        ("413 Payload Too Large", ModelErrorKind::ContextLength),
        ("429 Too Many Requests", ModelErrorKind::RateLimit),
        ("500 Internal Server Error", ModelErrorKind::Server),
    ] {
        let server = serve(vec![response(status, "retry-after: 2\r\n", body)]).await;
        let error = error(config(CHAT, &server.url)).await;
        assert_eq!(error.kind, expected);
        assert_eq!(error.message, format!("{} mock failure", &status[..3]));
        assert_eq!(error.code.as_deref(), Some("c"));
        assert_eq!(error.retry_after, Some(Duration::from_secs(2)));
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let mut elsewhere = serve(vec![json("{}")]).await;
    let location = format!("location: {}/\r\n", elsewhere.url);
    let server = serve(vec![response("307 Temporary Redirect", &location, "")]).await;
    assert_eq!(error(config(CHAT, &server.url)).await.kind, ModelErrorKind::Refused);
    assert!(elsewhere.requests.try_recv().is_err());
}

#[tokio::test]
async fn an_echoed_credential_is_not_in_the_error() {
    let body = r#"{"error":{"message":"bad key sk-123456 for gw-abcdef","code":"sk-123456"}}"#;
    let server = serve(vec![response("401 Unauthorized", "", body)]).await;
    let mut config = config(CHAT, &server.url);
    config.auth = Auth::ApiKey(Secret::new("sk-123456"));
    config.headers.insert("x-gateway-key", "gw-abcdef".parse().unwrap());
    let error = error(config).await;
    let shown = format!("{error:?}");
    assert!(!shown.contains("sk-123456") && !shown.contains("gw-abcdef"), "{shown}");
    assert_eq!(error.message, "401 bad key *** for ***");
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    let mut server = serve(vec![vec![stream_head(), chunk(&format!("data: {PONG}\n\n")), Act::Hang]]).await;
    let provider = build(config(CHAT, &server.url));
    let mut events = provider.stream(request());
    assert_eq!(events.next().await, Some(Ok(ModelEvent::Text("pong".into()))));
    drop(events);
    server.left.recv().await.unwrap();
}

#[tokio::test]
async fn dropping_a_call_that_waits_for_its_answer_closes_the_connection() {
    let mut server = serve(vec![vec![Act::Hang]]).await;
    let provider = build(config(CHAT, &server.url));
    let mut events = provider.stream(request());
    tokio::select! {
        event = events.next() => panic!("an answer from nowhere: {event:?}"),
        asked = server.requests.recv() => assert!(asked.is_some()),
    }
    drop(events);
    server.left.recv().await.unwrap();
}

#[tokio::test]
async fn calls_share_a_connection() {
    let mut server = serve(vec![stream(&[PONG, STOP, "[DONE]"])]).await;
    let provider = build(config(CHAT, &server.url));
    for _ in 0..3 {
        let events: Vec<_> = provider.stream(request()).collect().await;
        assert!(matches!(events.last(), Some(Ok(ModelEvent::Finished(_)))));
        assert_eq!(server.requests.recv().await.unwrap().connection, 0);
    }
}

/// The headers that one request carries, but for those of every HTTP request.
async fn headers(config: ProviderConfig, server: &mut Server, request: ModelRequest) -> String {
    let _ = call(config, request).await;
    let asked = server.requests.recv().await.unwrap();
    let common = ["accept", "content-length", "content-type", "host", "user-agent"];
    let headers = asked.headers.iter().filter(|(name, _)| !common.contains(&name.as_str()));
    let headers: Vec<String> = headers.map(|(name, value)| format!("{name}: {value}")).collect();
    format!("{}\n{}", asked.line, headers.join("\n"))
}

#[tokio::test]
async fn each_kind_of_provider_gets_its_credential_where_it_wants_it() {
    let mut server = serve(vec![json("{}")]).await;
    let mut check = async |kind, auth, expected: Expect| {
        let mut config = config(kind, &server.url);
        config.auth = auth;
        expected.assert_eq(&headers(config, &mut server, request()).await);
    };
    let key = || Auth::ApiKey(Secret::new("key-1"));
    let azure = ProviderKind::Azure { wire: WireApi::Completions, api_version: Some("v".into()) };
    check(
        CHAT,
        Auth::None,
        expect![[r#"
            POST /chat/completions
        "#]],
    )
    .await;
    check(
        CHAT,
        key(),
        expect![[r#"
            POST /chat/completions
            authorization: Bearer key-1"#]],
    )
    .await;
    check(
        ProviderKind::Anthropic,
        key(),
        expect![[r#"
            POST /v1/messages
            anthropic-version: 2023-06-01
            x-api-key: key-1"#]],
    )
    .await;
    check(
        ProviderKind::Anthropic,
        Auth::Bearer(Secret::new("token-1")),
        expect![[r#"
            POST /v1/messages
            anthropic-version: 2023-06-01
            authorization: Bearer token-1"#]],
    )
    .await;
    check(
        azure,
        key(),
        expect![[r#"
            POST /openai/deployments/mock-model/chat/completions?api-version=v
            api-key: key-1"#]],
    )
    .await;
    check(
        CHAT,
        Auth::Command("echo printed-key".into()),
        expect![[r#"
            POST /chat/completions
            authorization: Bearer printed-key"#]],
    )
    .await;
}

#[tokio::test]
async fn a_gateway_is_told_the_session_so_that_it_asks_the_same_vendor_again() {
    for (preset, told) in [(Some("openrouter"), true), (None, false)] {
        let mut server = serve(vec![stream(&[PONG, STOP])]).await;
        let mut config = config(CHAT, &server.url);
        config.preset = preset.map(str::to_owned);
        let sent = headers(config, &mut server, request()).await;
        assert_eq!(sent.contains("x-session-id: s1"), told, "{sent}");
    }
}

#[tokio::test]
async fn custom_headers_win_but_not_over_a_printed_key() {
    let mut server = serve(vec![json("{}")]).await;
    let mut config = config(CHAT, &server.url);
    config.auth = Auth::ApiKey(Secret::new("key-1"));
    config.headers.insert("authorization", "Custom c".parse().unwrap());
    config.headers.insert("x-team", "a".parse().unwrap());
    expect![[r#"
        POST /chat/completions
        authorization: Custom c
        x-team: a"#]]
    .assert_eq(&headers(config.clone(), &mut server, request()).await);
    config.auth = Auth::Command("echo printed-key".into());
    expect![[r#"
        POST /chat/completions
        authorization: Bearer printed-key
        x-team: a"#]]
    .assert_eq(&headers(config, &mut server, request()).await);
}

#[tokio::test]
async fn a_refused_key_is_printed_anew() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("runs");
    let mut server = serve(vec![response("401 Unauthorized", "", "{}"), json("{}")]).await;
    let mut config = config(CHAT, &server.url);
    config.auth = Auth::Command(format!("echo x >> '{0}'; wc -l < '{0}'", file.display()));
    let provider = build(config);
    for key in ["Bearer 1", "Bearer 2", "Bearer 2"] {
        let _: Vec<_> = provider.stream(request()).collect().await;
        assert_eq!(server.requests.recv().await.unwrap().headers["authorization"], key);
    }
}

const CATALOGUE: &str = r#"{"data":[
    {"id":"claude-opus-4.6","supported_endpoints":["/v1/messages","/chat/completions"],"capabilities":{"type":"chat"}},
    {"id":"gpt-5.4","supported_endpoints":["/responses"],"capabilities":{"type":"chat"}},
    {"id":"gpt-4.1","capabilities":{"type":"chat"}}]}"#;

#[tokio::test]
async fn github_s_models_speak_what_the_catalogue_says() {
    let mut server = serve(vec![json(CATALOGUE), json("{}")]).await;
    let mut config = config(ProviderKind::Copilot, &server.url);
    config.auth = Auth::Bearer(Secret::new("gho_1"));
    let provider = build(config);
    assert!(!provider.facts().is_byok);
    let mut lines = Vec::new();
    for model in ["claude-opus-4.6", "p/gpt-5.4", "gpt-4.1", "unknown"] {
        let mut request = request();
        request.model = model.into();
        let _: Vec<_> = provider.stream(request).collect().await;
        lines.push(provider.facts().endpoint.to_owned());
    }
    while let Ok(asked) = server.requests.try_recv() {
        lines.push(format!("{} {}", asked.line, asked.body.get(..26).unwrap_or_default()));
    }
    expect![[r#"
        /v1/messages
        /responses
        /chat/completions
        /chat/completions
        GET /models 
        POST /v1/messages {"model":"claude-opus-4.6"
        POST /responses {"model":"gpt-5.4","reason
        POST /chat/completions {"model":"gpt-4.1","temper
        POST /chat/completions {"model":"unknown","stream"#]]
    .assert_eq(&lines.join("\n"));
}

#[tokio::test]
async fn github_is_told_who_asks() {
    let mut server = serve(vec![json("{}")]).await;
    let mut config = config(ProviderKind::Copilot, &server.url);
    config.auth = Auth::Bearer(Secret::new("gho_1"));
    let mut request = request();
    request.initiator = Initiator::Agent;
    request
        .messages
        .push(Message::User(vec![Part::Image { mime_type: "image/png".into(), data: "AA==".into() }]).into());
    // The catalogue is known, so that the first request is the call.
    let provider = build_with_models(config, Vec::new());
    let _: Vec<_> = provider.stream(request).collect().await;
    let asked = server.requests.recv().await.unwrap();
    let own = |name: &str| name.starts_with("x-") || name.starts_with("copilot") || name == "authorization";
    let headers: Vec<String> = asked
        .headers
        .iter()
        .filter(|(name, _)| own(name))
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    expect![[r#"
        POST /chat/completions
        authorization: Bearer gho_1
        copilot-integration-id: copilot-developer-cli
        copilot-vision-request: true
        x-client-session-id: s1
        x-github-api-version: 2026-08-01
        x-initiator: agent
        x-interaction-type: conversation-agent"#]]
    .assert_eq(&format!("{}\n{}", asked.line, headers.join("\n")));
}

#[tokio::test]
async fn only_what_people_ask_for_is_told_to_be_theirs() {
    async fn check(initiator: Initiator, expected: &str) {
        let mut server = serve(vec![json("{}")]).await;
        let provider = build_with_models(config(ProviderKind::Copilot, &server.url), Vec::new());
        let _: Vec<_> = provider.stream(ModelRequest { initiator, ..request() }).collect().await;
        let asked = server.requests.recv().await.unwrap();
        let told = |wanted: &str| {
            let header = asked.headers.iter().find(|(name, _)| name.as_str() == wanted);
            header.map_or("nothing", |(_, value)| value.as_str()).to_owned()
        };
        assert_eq!(format!("{} {}", told("x-initiator"), told("x-interaction-type")), expected);
    }
    check(Initiator::User, "user conversation-user").await;
    check(Initiator::Agent, "agent conversation-agent").await;
    check(Initiator::Subagent, "agent conversation-subagent").await;
    check(Initiator::Compaction, "agent conversation-compaction").await;
    check(Initiator::Aside, "nothing nothing").await;
    check(Initiator::Background, "agent nothing").await;
}

#[tokio::test]
async fn a_listed_limit_holds_where_none_is_configured() {
    let server = serve(vec![json(r#"{"data":[{"id":"m","max_model_len":32768}]}"#)]).await;
    let mut config = config(CHAT, &server.url);
    let models = list_models(&config).await.unwrap();
    config.model = Some("p/m".into());
    assert_eq!(build_with_models(config.clone(), models.clone()).facts().max_prompt_tokens, Some(27_528));
    config.max_prompt_tokens = Some(9);
    assert_eq!(build_with_models(config, models).facts().max_prompt_tokens, Some(9));
}

#[tokio::test]
async fn a_catalogue_that_cannot_be_had_is_an_error_of_the_call() {
    let server = serve(vec![response("401 Unauthorized", "", r#"{"message":"bad token"}"#)]).await;
    let error = error(config(ProviderKind::Copilot, &server.url)).await;
    assert_eq!((error.kind, error.message.as_str()), (ModelErrorKind::Authentication, "401 bad token"));
}

#[tokio::test]
async fn a_list_of_several_pages_is_read_to_its_end() {
    let mut server = serve(vec![
        json(r#"{"data":[{"id":"a"}],"has_more":true,"last_id":"a"}"#),
        json(r#"{"data":[{"id":"b"}],"has_more":false,"last_id":"b"}"#),
    ])
    .await;
    let models = list_models(&config(ProviderKind::Anthropic, &server.url)).await.unwrap();
    let ids: Vec<&str> = models.iter().map(|model| model.id.as_str()).collect();
    assert_eq!(ids, ["a", "b"]);
    assert_eq!(server.requests.recv().await.unwrap().line, "GET /v1/models?limit=1000");
    assert_eq!(server.requests.recv().await.unwrap().line, "GET /v1/models?limit=1000&after_id=a");
}

#[tokio::test]
async fn a_fresh_list_is_not_asked_for_again() {
    let mut server = serve(vec![json(r#"{"data":[{"id":"a"}]}"#), json(r#"{"data":[{"id":"b"}]}"#)]).await;
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache { dir: dir.path().into(), ttl: Duration::from_secs(60) };
    let config = config(CHAT, &server.url);
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    let first = async |at| cache.list_models(&config, at).await.unwrap().remove(0).id;
    assert_eq!(first(now).await, "a");
    assert_eq!(first(now).await, "a");
    assert_eq!(first(now + Duration::from_secs(61)).await, "b");
    server.requests.recv().await.unwrap();
    server.requests.recv().await.unwrap();
    assert!(server.requests.try_recv().is_err());
}

#[tokio::test]
async fn ollama_is_never_sent_more_than_its_window() {
    let ps = |window: u64| {
        json(&format!(r#"{{"models":[{{"name":"mock-model:latest","context_length":{window}}}]}}"#))
    };
    let said = || stream(&[PONG, STOP, "[DONE]"]);
    let long = || {
        let text = "word ".repeat(6000);
        ModelRequest { messages: vec![Message::User(vec![Part::Text(text)]).into()], ..request() }
    };
    let ollama = |url: &str| {
        let mut config = config(CHAT, &format!("{url}/v1"));
        config.preset = Some("ollama".to_owned());
        config
    };
    let mut server = serve(vec![ps(4096)]).await;
    let events = call(ollama(&server.url), long()).await;
    let error = events[0].as_ref().unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::ContextLength, "{error}");
    assert!(error.message.contains("window of 4096"), "{error}");
    assert_eq!(server.requests.recv().await.unwrap().line, "GET /api/ps");
    assert!(server.requests.try_recv().is_err(), "nothing else was sent");

    // A model that is not loaded is loaded first, and its window is asked for once.
    let not_loaded = json(r#"{"models":[]}"#);
    let mut server = serve(vec![not_loaded, json("{}"), ps(32_768), said(), said()]).await;
    let provider = build(ollama(&server.url));
    for _ in 0..2 {
        let events: Vec<_> = provider.stream(long()).collect().await;
        assert!(events.last().unwrap().is_ok(), "{}", show(&events));
    }
    let mut lines = Vec::new();
    while let Ok(request) = server.requests.try_recv() {
        lines.push(request.line);
    }
    let chat = "POST /v1/chat/completions";
    assert_eq!(lines, ["GET /api/ps", "POST /api/generate", "GET /api/ps", chat, chat]);
}

#[tokio::test]
async fn a_model_goes_out_as_its_provider_spells_it() {
    let mut server = serve(vec![json("{}")]).await;
    let asked = ModelRequest { model: "claude-sonnet-4.5".into(), ..request() };
    let _ = call(config(ProviderKind::Anthropic, &server.url), asked).await;
    let body = server.requests.recv().await.unwrap().body;
    assert!(body.contains(r#""model":"claude-sonnet-4-5""#), "{body}");
}

#[tokio::test]
async fn a_server_on_this_machine_is_asked_for_the_window_of_a_session_and_others_are_not() {
    let props = json(r#"{"default_generation_settings":{"n_ctx":16384}}"#);
    let mut server = serve(vec![props, response("404 Not Found", "", "{}")]).await;
    let mut config = config(CHAT, &format!("{}/v1", server.url));
    assert_eq!(hangar_models::local::look(&config, "m").await, None);
    assert!(server.requests.try_recv().is_err(), "an unknown server is not asked");
    config.preset = Some("llamacpp".to_owned());
    let info = hangar_models::local::look(&config, "p/m").await.unwrap();
    assert_eq!((info.id.as_str(), info.max_context_tokens), ("m", Some(16_384)));
    assert_eq!(server.requests.recv().await.unwrap().line, "GET /props");
    config.learnt.listed = Some([info].into());
    let resolved = hangar_models::facts::resolve(&config, "m");
    assert_eq!((resolved.prompt_limit, resolved.sources.prompt.name()), (13_764, "provider"));
    assert_eq!(hangar_models::local::look(&config, "m").await, None, "a server that does not tell");
}

#[tokio::test]
async fn an_answer_in_one_piece_is_streamed_where_the_vendor_refuses_long_ones() {
    let sent = async |kind: ProviderKind, answer: Vec<Act>| {
        let mut server = serve(vec![answer]).await;
        let whole = ModelRequest { stream: false, ..request() };
        let events = call(config(kind, &server.url), whole).await;
        assert!(show(&events).ends_with("finished \"pong\" Stop"), "{}", show(&events));
        let body: serde_json::Value =
            serde_json::from_str(&server.requests.recv().await.unwrap().body).unwrap();
        body["stream"].clone()
    };
    let streamed = stream(&[
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"pong"}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
        r#"{"type":"message_stop"}"#,
    ]);
    assert_eq!(sent(ProviderKind::Anthropic, streamed).await, true);
    let whole = r#"{"choices":[{"message":{"content":"pong"},"finish_reason":"stop"}]}"#;
    assert_eq!(sent(CHAT, json(whole)).await, serde_json::Value::Null);
}
