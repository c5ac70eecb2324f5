use std::io::Read;
use std::net::SocketAddr;

use expect_test::{Expect, expect};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use super::*;
use crate::loopback::MAX_BODY;

struct Server {
    address: SocketAddr,
    _task: AbortOnDropHandle<io::Result<()>>,
}

/// A received response.
struct Received {
    status: u16,
    head: String,
    body: String,
    /// Whether the body ended where HTTP says it does.
    complete: bool,
}

impl Server {
    async fn start() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(set: impl FnOnce(&mut ServeOptions)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut options = ServeOptions::new(Script::default(), || UNIX_EPOCH + Duration::from_secs(1));
        set(&mut options);
        let task = tokio::spawn(serve(listener, options, CancellationToken::new()));
        Self { address, _task: AbortOnDropHandle::new(task) }
    }

    async fn send(&self, head: &str, body: &[u8]) -> Received {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let head =
            format!("{head}\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body).await.unwrap();
        let mut raw = Vec::new();
        stream.read_to_end(&mut raw).await.unwrap();
        Received::parse(&String::from_utf8(raw).unwrap())
    }

    async fn post(&self, path: &str, body: &Value) -> Received {
        self.send(&format!("POST {path} HTTP/1.1"), body.to_string().as_bytes()).await
    }

    async fn get(&self, path: &str) -> Received {
        self.send(&format!("GET {path} HTTP/1.1"), b"").await
    }
}

impl Received {
    fn parse(raw: &str) -> Self {
        let Some((head, mut rest)) = raw.split_once("\r\n\r\n") else {
            return Self { status: 0, head: raw.to_owned(), body: String::new(), complete: false };
        };
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let head = head.to_lowercase();
        let (mut body, mut complete) = (String::new(), true);
        if head.contains("transfer-encoding: chunked") {
            loop {
                let Some((size, after)) = rest.split_once("\r\n") else {
                    complete = false;
                    break;
                };
                let size = usize::from_str_radix(size, 16).unwrap();
                body.push_str(&after[..size]);
                rest = &after[size + 2..];
                if size == 0 {
                    break;
                }
            }
        } else {
            body = rest.to_owned();
        }
        Self { status, head, body, complete }
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The events of a stream, one per line, each without the fields that all have in common.
    fn events(&self) -> String {
        let mut lines = String::new();
        for event in self.body.split_terminator("\n\n") {
            let (name, data) = match event.strip_prefix("event: ").and_then(|event| event.split_once('\n')) {
                Some((name, data)) => (name, data),
                None => ("", event),
            };
            let data = data.strip_prefix("data: ").unwrap();
            let data = match serde_json::from_str::<Value>(data) {
                Ok(mut data) => {
                    if let Some(kind) = data.get("type") {
                        assert_eq!(kind, name);
                    }
                    let fields = data.as_object_mut().unwrap();
                    for field in ["id", "object", "created", "model", "type"] {
                        fields.shift_remove(field);
                    }
                    data.to_string()
                }
                Err(_) => data.to_owned(),
            };
            lines.push_str(format!("{name} {data}").trim_start());
            lines.push('\n');
        }
        lines
    }
}

const SCRIPT: &str = "THINK:hm\nSTREAM:2\nPTOOL:bash:{\"command\": \"ls\"}\nTOOL:patch:\"a\\nb\"";

fn chat(prompt: &str) -> Value {
    json!({
        "model": "m", "messages": [{"role": "user", "content": prompt}], "tools": [{"type": "function"}],
    })
}

fn responses(prompt: &str) -> Value {
    json!({
        "model": "m", "input": [{"role": "user", "content": prompt}],
        "tools": [{"type": "custom", "name": "patch"}, {"type": "namespace", "name": "n", "tools": [{"name": "bash"}]}],
    })
}

fn anthropic(prompt: &str) -> Value {
    json!({"model": "m", "messages": [{"role": "user", "content": prompt}], "tools": [{"name": "bash"}]})
}

fn streamed(mut body: Value) -> Value {
    body["stream"] = json!(true);
    body
}

async fn check_stream(path: &str, body: Value, expected: Expect) {
    let received = Server::start().await.post(path, &streamed(body)).await;
    assert_eq!((received.status, received.complete), (200, true));
    assert!(received.head.contains("content-type: text/event-stream"), "{}", received.head);
    expected.assert_eq(&received.events());
}

async fn check_whole(path: &str, body: Value, expected: Expect) {
    let received = Server::start().await.post(path, &body).await;
    assert_eq!((received.status, received.complete), (200, true));
    assert!(received.head.contains("content-type: application/json"), "{}", received.head);
    expected.assert_eq(&received.body);
}

#[tokio::test]
async fn chat_is_streamed() {
    let mut body = chat(SCRIPT);
    body["stream_options"] = json!({"include_usage": true});
    check_stream("/v1/chat/completions", body, expect![[r#"
        {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}
        {"choices":[{"index":0,"delta":{"reasoning_content":"hm"},"finish_reason":null}]}
        {"choices":[{"index":0,"delta":{"content":"tok0 "},"finish_reason":null}]}
        {"choices":[{"index":0,"delta":{"content":"tok1 "},"finish_reason":null}]}
        {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_3e80001_0","type":"function","function":{"name":"bash","arguments":""}}]},"finish_reason":null}]}
        {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"command\": \"ls\"}"}}]},"finish_reason":null}]}
        {"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_3e80001_1","type":"function","function":{"name":"patch","arguments":""}}]},"finish_reason":null}]}
        {"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"\"a\\nb\""}}]},"finish_reason":null}]}
        {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}
        {"choices":[],"usage":{"prompt_tokens":53,"completion_tokens":8,"total_tokens":61}}
        [DONE]
    "#]]).await;
}

#[tokio::test]
async fn chat_gives_usage_in_a_stream_only_when_asked() {
    check_stream(
        "/v1/chat/completions",
        chat("SAY:hi\nSTOP:max_tokens"),
        expect![[r#"
        {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}
        {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null}]}
        {"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}
        [DONE]
    "#]],
    )
    .await;
}

#[tokio::test]
async fn chat_is_answered_whole() {
    check_whole("/chat/completions", chat(SCRIPT), expect![[r#"{"id":"chatcmpl-3e80001","object":"chat.completion","created":1,"model":"m","usage":{"prompt_tokens":39,"completion_tokens":8,"total_tokens":47},"choices":[{"index":0,"message":{"role":"assistant","content":"tok0 tok1 ","reasoning_content":"hm","tool_calls":[{"id":"call_3e80001_0","type":"function","function":{"name":"bash","arguments":"{\"command\": \"ls\"}"}},{"id":"call_3e80001_1","type":"function","function":{"name":"patch","arguments":"\"a\\nb\""}}]},"finish_reason":"tool_calls"}]}"#]]).await;
    check_whole("/chat/completions", chat("x"), expect![[r#"{"id":"chatcmpl-3e80001","object":"chat.completion","created":1,"model":"m","usage":{"prompt_tokens":21,"completion_tokens":1,"total_tokens":22},"choices":[{"index":0,"message":{"role":"assistant","content":"pong"},"finish_reason":"stop"}]}"#]]).await;
}

#[tokio::test]
async fn responses_are_streamed() {
    check_stream("/v1/responses", responses(SCRIPT), expect![[r#"
        response.created {"sequence_number":0,"response":{"id":"resp_3e80001","object":"response","created_at":1,"status":"in_progress","model":"m","output":[],"error":null,"incomplete_details":null,"parallel_tool_calls":true,"tools":[],"tool_choice":"auto","metadata":{},"usage":null}}
        response.in_progress {"sequence_number":1,"response":{"id":"resp_3e80001","object":"response","created_at":1,"status":"in_progress","model":"m","output":[],"error":null,"incomplete_details":null,"parallel_tool_calls":true,"tools":[],"tool_choice":"auto","metadata":{},"usage":null}}
        response.output_item.added {"sequence_number":2,"output_index":0,"item":{"id":"rs_3e80001_0","type":"reasoning","summary":[]}}
        response.reasoning_summary_part.added {"sequence_number":3,"item_id":"rs_3e80001_0","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}
        response.reasoning_summary_text.delta {"sequence_number":4,"item_id":"rs_3e80001_0","output_index":0,"summary_index":0,"delta":"hm"}
        response.reasoning_summary_text.done {"sequence_number":5,"text":"hm","item_id":"rs_3e80001_0","output_index":0,"summary_index":0}
        response.reasoning_summary_part.done {"sequence_number":6,"part":{"type":"summary_text","text":"hm"},"item_id":"rs_3e80001_0","output_index":0,"summary_index":0}
        response.output_item.done {"sequence_number":7,"output_index":0,"item":{"id":"rs_3e80001_0","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]}}
        response.output_item.added {"sequence_number":8,"output_index":1,"item":{"id":"msg_3e80001_1","type":"message","role":"assistant","status":"in_progress","content":[]}}
        response.content_part.added {"sequence_number":9,"item_id":"msg_3e80001_1","output_index":1,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}
        response.output_text.delta {"sequence_number":10,"item_id":"msg_3e80001_1","output_index":1,"content_index":0,"delta":"tok0 ","logprobs":[]}
        response.output_text.delta {"sequence_number":11,"item_id":"msg_3e80001_1","output_index":1,"content_index":0,"delta":"tok1 ","logprobs":[]}
        response.output_text.done {"sequence_number":12,"text":"tok0 tok1 ","logprobs":[],"item_id":"msg_3e80001_1","output_index":1,"content_index":0}
        response.content_part.done {"sequence_number":13,"part":{"type":"output_text","text":"tok0 tok1 ","annotations":[]},"item_id":"msg_3e80001_1","output_index":1,"content_index":0}
        response.output_item.done {"sequence_number":14,"output_index":1,"item":{"id":"msg_3e80001_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"tok0 tok1 ","annotations":[]}]}}
        response.output_item.added {"sequence_number":15,"output_index":2,"item":{"id":"fc_call_3e80001_0","type":"function_call","status":"in_progress","call_id":"call_3e80001_0","name":"bash","arguments":"","namespace":"n"}}
        response.function_call_arguments.delta {"sequence_number":16,"item_id":"fc_call_3e80001_0","output_index":2,"delta":"{\"command\": \"ls\"}"}
        response.function_call_arguments.done {"sequence_number":17,"item_id":"fc_call_3e80001_0","output_index":2,"arguments":"{\"command\": \"ls\"}"}
        response.output_item.done {"sequence_number":18,"output_index":2,"item":{"id":"fc_call_3e80001_0","type":"function_call","status":"completed","call_id":"call_3e80001_0","name":"bash","arguments":"{\"command\": \"ls\"}","namespace":"n"}}
        response.output_item.added {"sequence_number":19,"output_index":3,"item":{"id":"ctc_call_3e80001_1","type":"custom_tool_call","status":"in_progress","call_id":"call_3e80001_1","name":"patch","input":""}}
        response.custom_tool_call_input.delta {"sequence_number":20,"item_id":"ctc_call_3e80001_1","output_index":3,"delta":"a\nb"}
        response.custom_tool_call_input.done {"sequence_number":21,"item_id":"ctc_call_3e80001_1","output_index":3,"input":"a\nb"}
        response.output_item.done {"sequence_number":22,"output_index":3,"item":{"id":"ctc_call_3e80001_1","type":"custom_tool_call","status":"completed","call_id":"call_3e80001_1","name":"patch","input":"a\nb"}}
        response.completed {"sequence_number":23,"response":{"id":"resp_3e80001","object":"response","created_at":1,"status":"completed","model":"m","output":[{"id":"rs_3e80001_0","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},{"id":"msg_3e80001_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"tok0 tok1 ","annotations":[]}]},{"id":"fc_call_3e80001_0","type":"function_call","status":"completed","call_id":"call_3e80001_0","name":"bash","arguments":"{\"command\": \"ls\"}","namespace":"n"},{"id":"ctc_call_3e80001_1","type":"custom_tool_call","status":"completed","call_id":"call_3e80001_1","name":"patch","input":"a\nb"}],"error":null,"incomplete_details":null,"parallel_tool_calls":true,"tools":[],"tool_choice":"auto","metadata":{},"usage":{"input_tokens":60,"input_tokens_details":{"cached_tokens":0},"output_tokens":8,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":68}}}
    "#]]).await;
}

#[tokio::test]
async fn responses_that_are_cut_short_are_incomplete() {
    check_stream("/v1/responses", responses("SAY:hi\nSTOP:length"), expect![[r#"
        response.created {"sequence_number":0,"response":{"id":"resp_3e80001","object":"response","created_at":1,"status":"in_progress","model":"m","output":[],"error":null,"incomplete_details":null,"parallel_tool_calls":true,"tools":[],"tool_choice":"auto","metadata":{},"usage":null}}
        response.in_progress {"sequence_number":1,"response":{"id":"resp_3e80001","object":"response","created_at":1,"status":"in_progress","model":"m","output":[],"error":null,"incomplete_details":null,"parallel_tool_calls":true,"tools":[],"tool_choice":"auto","metadata":{},"usage":null}}
        response.output_item.added {"sequence_number":2,"output_index":0,"item":{"id":"msg_3e80001_0","type":"message","role":"assistant","status":"in_progress","content":[]}}
        response.content_part.added {"sequence_number":3,"item_id":"msg_3e80001_0","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}
        response.output_text.delta {"sequence_number":4,"item_id":"msg_3e80001_0","output_index":0,"content_index":0,"delta":"hi","logprobs":[]}
        response.output_text.done {"sequence_number":5,"text":"hi","logprobs":[],"item_id":"msg_3e80001_0","output_index":0,"content_index":0}
        response.content_part.done {"sequence_number":6,"part":{"type":"output_text","text":"hi","annotations":[]},"item_id":"msg_3e80001_0","output_index":0,"content_index":0}
        response.output_item.done {"sequence_number":7,"output_index":0,"item":{"id":"msg_3e80001_0","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"hi","annotations":[]}]}}
        response.incomplete {"sequence_number":8,"response":{"id":"resp_3e80001","object":"response","created_at":1,"status":"incomplete","model":"m","output":[{"id":"msg_3e80001_0","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"hi","annotations":[]}]}],"error":null,"incomplete_details":{"reason":"max_output_tokens"},"parallel_tool_calls":true,"tools":[],"tool_choice":"auto","metadata":{},"usage":{"input_tokens":46,"input_tokens_details":{"cached_tokens":0},"output_tokens":1,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":47}}}
    "#]]).await;
}

#[tokio::test]
async fn responses_are_answered_whole() {
    check_whole("/responses", responses(SCRIPT), expect![[r#"{"id":"resp_3e80001","object":"response","created_at":1,"status":"completed","model":"m","output":[{"id":"rs_3e80001_0","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},{"id":"msg_3e80001_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"tok0 tok1 ","annotations":[]}]},{"id":"fc_call_3e80001_0","type":"function_call","status":"completed","call_id":"call_3e80001_0","name":"bash","arguments":"{\"command\": \"ls\"}","namespace":"n"},{"id":"ctc_call_3e80001_1","type":"custom_tool_call","status":"completed","call_id":"call_3e80001_1","name":"patch","input":"a\nb"}],"error":null,"incomplete_details":null,"parallel_tool_calls":true,"tools":[],"tool_choice":"auto","metadata":{},"usage":{"input_tokens":56,"input_tokens_details":{"cached_tokens":0},"output_tokens":8,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":64}}"#]]).await;
}

#[tokio::test]
async fn messages_are_streamed() {
    check_stream("/v1/messages?beta=true", anthropic(SCRIPT), expect![[r#"
        message_start {"message":{"id":"msg_3e80001","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":42,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}}
        content_block_start {"index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}
        content_block_delta {"index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}
        content_block_delta {"index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}
        content_block_stop {"index":0}
        content_block_start {"index":1,"content_block":{"type":"text","text":""}}
        content_block_delta {"index":1,"delta":{"type":"text_delta","text":"tok0 "}}
        content_block_delta {"index":1,"delta":{"type":"text_delta","text":"tok1 "}}
        content_block_stop {"index":1}
        content_block_start {"index":2,"content_block":{"type":"tool_use","id":"toolu_call_3e80001_0","name":"bash","input":{}}}
        content_block_delta {"index":2,"delta":{"type":"input_json_delta","partial_json":"{\"command\": \"ls\"}"}}
        content_block_stop {"index":2}
        content_block_start {"index":3,"content_block":{"type":"tool_use","id":"toolu_call_3e80001_1","name":"patch","input":{}}}
        content_block_delta {"index":3,"delta":{"type":"input_json_delta","partial_json":"\"a\\nb\""}}
        content_block_stop {"index":3}
        message_delta {"delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"input_tokens":42,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":8}}
        message_stop {}
    "#]]).await;
}

#[tokio::test]
async fn messages_are_answered_whole() {
    check_whole("/v1/messages", anthropic(SCRIPT), expect![[r#"{"id":"msg_3e80001","type":"message","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"text","text":"tok0 tok1 "},{"type":"tool_use","id":"toolu_call_3e80001_0","name":"bash","input":{"command":"ls"}},{"type":"tool_use","id":"toolu_call_3e80001_1","name":"patch","input":"a\nb"}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":38,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":8}}"#]]).await;
    check_whole("/v1/messages", anthropic("SAY:a\nTHINK:b\nSAY:c\nTOOL:bash:oops"), expect![[r#"{"id":"msg_3e80001","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"a"},{"type":"thinking","thinking":"b","signature":"c2ln"},{"type":"text","text":"c"},{"type":"tool_use","id":"toolu_call_3e80001_0","name":"bash","input":"oops"}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":29,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}"#]]).await;
}

#[tokio::test]
async fn failures_are_in_the_words_of_the_dialect() {
    let server = Server::start().await;
    for (path, body, expected) in [
        (
            "/chat/completions",
            chat("FAIL:429:1:2"),
            expect![[
                r#"429 retry-after: 2 {"error":{"type":"rate_limit_error","message":"mock failure 429","code":"rate_limit_exceeded","param":null}}"#
            ]],
        ),
        (
            "/responses",
            responses("FAIL:401"),
            expect![[
                r#"401 no retry-after {"error":{"type":"authentication_error","message":"mock failure 401","code":"invalid_api_key","param":null}}"#
            ]],
        ),
        (
            "/v1/messages",
            anthropic("FAIL:529"),
            expect![[
                r#"529 no retry-after {"type":"error","error":{"type":"overloaded_error","message":"mock failure 529"}}"#
            ]],
        ),
    ] {
        let received = server.post(path, &body).await;
        let retry_after =
            received.head.lines().find(|line| line.starts_with("retry-after")).unwrap_or("no retry-after");
        expected.assert_eq(&format!("{} {retry_after} {}", received.status, received.body));
    }
}

#[tokio::test]
async fn a_failure_is_spent_and_can_be_renewed() {
    let server = Server::start().await;
    let body = streamed(chat("FAIL:503:1\nSAY:ok"));
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(server.post("/chat/completions", &body).await.status);
    }
    server.post("/__reset", &json!({})).await;
    statuses.push(server.post("/chat/completions", &body).await.status);
    assert_eq!(statuses, [503, 200, 200, 503]);
}

#[tokio::test]
async fn a_cut_stream_ends_behind_what_was_said() {
    let server = Server::start().await;
    for (path, body) in [
        ("/chat/completions", chat("STREAM:50\nDROP:\nSAY:never")),
        ("/responses", responses("STREAM:50\nDROP:\nSAY:never")),
        ("/v1/messages", anthropic("STREAM:50\nDROP:\nSAY:never")),
    ] {
        let received = server.post(path, &streamed(body)).await;
        assert_eq!((received.status, received.complete), (200, false));
        assert!(received.body.contains("tok49 ") && !received.body.contains("never"), "{}", received.body);
    }
}

#[tokio::test]
async fn a_cut_answer_in_one_piece_is_no_answer() {
    let received = Server::start().await.post("/chat/completions", &chat("SAY:x\nDROP:")).await;
    assert_eq!((received.status, received.head.as_str()), (0, ""));
}

#[tokio::test]
async fn results_lead_to_the_next_turn() {
    let mut body = chat("TOOL:bash:{}");
    body["messages"].as_array_mut().unwrap().push(json!({"role": "tool", "content": "listing"}));
    let received = Server::start().await.post("/chat/completions", &body).await;
    assert_eq!(received.json()["choices"][0]["message"]["content"], "done: listing");
}

#[tokio::test]
async fn an_event_arrives_before_the_next_is_due() {
    let server = Server::start().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    // The wait is far longer than a test may take: output that arrives was sent before its end.
    let body = streamed(chat("SAY:early\nDELAY:3000000\nSAY:late")).to_string();
    let head =
        format!("POST /chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all((head + &body).as_bytes()).await.unwrap();
    let mut seen = String::new();
    while !seen.contains("early") {
        let mut buffer = [0; 1024];
        let read = stream.read(&mut buffer).await.unwrap();
        assert_ne!(read, 0, "the stream ended: {seen}");
        seen.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
    }
}

#[tokio::test]
async fn many_are_answered_at_once() {
    let server = Arc::new(Server::start().await);
    let mut tasks = JoinSet::new();
    for number in 0..100 {
        let server = Arc::clone(&server);
        tasks.spawn(async move {
            let body = streamed(chat(&format!("STREAM:20:1\nSAY:end{number}")));
            let received = server.post("/chat/completions", &body).await;
            received.complete && received.body.contains(&format!("\"end{number}\""))
        });
    }
    assert_eq!(tasks.join_all().await, [true; 100]);
}

#[tokio::test]
async fn a_connection_serves_many_requests_and_chunked_bodies() {
    let server = Server::start().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let body = chat("SAY:hi").to_string();
    let (first, second) = body.split_at(20);
    let chunks = format!("{:x}\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n", first.len(), second.len());
    let head = "POST /chat/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n";
    stream.write_all(format!("{head}\r\n{chunks}").as_bytes()).await.unwrap();
    stream.write_all(format!("{head}connection: close\r\n\r\n{chunks}").as_bytes()).await.unwrap();
    let mut raw = String::new();
    stream.read_to_string(&mut raw).await.unwrap();
    assert_eq!(raw.matches("\"content\":\"hi\"").count(), 2, "{raw}");
}

#[tokio::test]
async fn the_small_endpoints_answer() {
    let server = Server::with(|options| options.models = vec!["m".to_owned()]).await;
    expect![[r#"{"object":"list","data":[{"id":"m","object":"model","type":"model","display_name":"m","created":0,"created_at":"2025-01-01T00:00:00Z","owned_by":"mock"}],"has_more":false}"#]].assert_eq(&server.get("/v1/models").await.body);
    expect![[r#"{"ok":true}"#]].assert_eq(&server.get("/").await.body);
    expect![[r#"{"input_tokens":20}"#]]
        .assert_eq(&server.post("/v1/messages/count_tokens?beta=true", &anthropic("hi")).await.body);
    expect![[r#"{"requests":4,"paths":{"":1,"/__stats":1,"/v1/messages/count_tokens":1,"/v1/models":1}}"#]]
        .assert_eq(&server.get("/__stats").await.body);
    let head = server.send("HEAD / HTTP/1.1", b"").await;
    assert_eq!((head.status, head.body.as_str()), (200, ""));
}

#[tokio::test]
async fn what_is_not_served_is_refused() {
    let server = Server::start().await;
    let cases: [(&str, &[u8], Expect); 5] = [
        (
            "GET /nothing HTTP/1.1",
            b"",
            expect![[
                r#"404 {"error":{"type":"not_found_error","message":"nothing is served at /nothing","code":null,"param":null}}"#
            ]],
        ),
        (
            "POST /v1/completions HTTP/1.1",
            b"{}",
            expect![[
                r#"404 {"error":{"type":"not_found_error","message":"nothing is served at /v1/completions","code":null,"param":null}}"#
            ]],
        ),
        (
            "POST /v1/messages HTTP/1.1",
            b"not json",
            expect![[
                r#"400 {"type":"error","error":{"type":"invalid_request_error","message":"the body is not a JSON object"}}"#
            ]],
        ),
        (
            "PUT /v1/models HTTP/1.1",
            b"",
            expect![[
                r#"405 {"error":{"type":"api_error","message":"PUT is not served","code":null,"param":null}}"#
            ]],
        ),
        (
            "POST /chat/completions HTTP/1.1\r\ncontent-encoding: zstd",
            b"x",
            expect![[
                r#"415 {"error":{"type":"api_error","message":"bodies in the encoding `zstd` are not read","code":null,"param":null}}"#
            ]],
        ),
    ];
    for (head, body, expected) in cases {
        let received = server.send(head, body).await;
        expected.assert_eq(&format!("{} {}", received.status, received.body));
    }
}

#[tokio::test]
async fn a_body_that_is_too_long_is_refused() {
    let server = Server::start().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = format!("POST /responses HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", MAX_BODY + 1);
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut start = [0; 12];
    stream.read_exact(&mut start).await.unwrap();
    assert_eq!(&start, b"HTTP/1.1 413");
}

#[tokio::test]
async fn requests_are_logged_without_secrets() {
    let mut file = tempfile::tempfile().unwrap();
    let log = file.try_clone().unwrap();
    let server = Server::with(|options| options.log = Some(log)).await;
    let head = "POST /chat/completions HTTP/1.1\r\nAuthorization: Bearer s3cret\r\nx-api-key: s3cret\r\nuser-agent: test";
    server.send(head, chat("SAY:hi").to_string().as_bytes()).await;
    server.send(head, streamed(chat("DROP:")).to_string().as_bytes()).await;
    server.get("/nothing").await;

    let mut text = String::new();
    io::Seek::rewind(&mut file).unwrap();
    file.read_to_string(&mut text).unwrap();
    assert!(!text.contains("s3cret"), "{text}");
    let shown = text.lines().map(|line| {
        let mut record: Value = serde_json::from_str(line).unwrap();
        assert!(record.as_object_mut().unwrap().shift_remove("ms").is_some());
        format!("{record}\n")
    });
    expect![[r#"
        {"n":1,"t":1.0,"method":"POST","path":"/chat/completions","headers":{"authorization":"***","x-api-key":"***","user-agent":"test","host":"x","connection":"close","content-length":"91"},"body":{"model":"m","messages":[{"role":"user","content":"SAY:hi"}],"tools":[{"type":"function"}]},"plan":["SAY:hi"],"status":200}
        {"n":2,"t":1.0,"method":"POST","path":"/chat/completions","headers":{"authorization":"***","x-api-key":"***","user-agent":"test","host":"x","connection":"close","content-length":"104"},"body":{"model":"m","messages":[{"role":"user","content":"DROP:"}],"tools":[{"type":"function"}],"stream":true},"plan":["DROP:"],"status":0}
        {"n":3,"t":1.0,"method":"GET","path":"/nothing","headers":{"host":"x","connection":"close","content-length":"0"},"body":null,"plan":[],"status":404}
    "#]].assert_eq(&shown.collect::<String>());
}

#[tokio::test]
async fn shutdown_ends_the_server_and_its_streams() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let options = ServeOptions::new(Script::default(), || UNIX_EPOCH);
    let task = tokio::spawn(serve(listener, options, shutdown.clone()));
    let mut stream = TcpStream::connect(address).await.unwrap();
    let body = streamed(chat("SAY:x\nDELAY:3000000")).to_string();
    let head =
        format!("POST /chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all((head + &body).as_bytes()).await.unwrap();
    stream.read_u8().await.unwrap();
    shutdown.cancel();
    task.await.unwrap().unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
}

#[tokio::test]
async fn only_loopback_is_served() {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let options = ServeOptions::new(Script::default(), || UNIX_EPOCH);
    let error = serve(listener, options, CancellationToken::new()).await.unwrap_err();
    assert_eq!(error.to_string(), format!("models are served on loopback only, not on 0.0.0.0:{port}"));
}
