//! Telemetry of the real binary: spans and metrics in a file or at a collector, and nothing where nobody asked.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;

use hangar_test_support::{Invocation, ModelServer, Scratch};
use serde_json::{Value, json};

use crate::hangar;

/// Far above what anything needs on a loaded machine; reaching it is a failure, never a measurement.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);
const PROMPT: &str = "TOOL:bash:{\"command\":\"echo hi\"}\nTOOL:nosuch:{\"x\":1}\nSAY:done";

fn run(scratch: &Scratch, model: &ModelServer) -> Invocation {
    hangar(scratch, model).args(["--allow-all-tools", "-p", PROMPT])
}

/// The lines of a telemetry file, spans apart from metrics.
fn read(scratch: &Scratch) -> (Vec<Value>, Vec<Value>) {
    let text = std::fs::read_to_string(scratch.work().join("otel.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.partition(|line| line["type"] == "span")
}

fn named<'a>(lines: &'a [Value], name: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["name"] == name).collect()
}

#[test]
fn a_file_has_one_tree_of_spans_per_prompt_and_the_figures() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let file = run(&scratch, &model).env("COPILOT_OTEL_FILE_EXPORTER_PATH", "otel.jsonl");
    assert_eq!(file.env("COPILOT_OTEL_SOURCE_NAME", "test").finish().exit, 0);
    let (spans, metrics) = read(&scratch);

    let agent = named(&spans, "invoke_agent")[0];
    assert!(agent.get("parentSpanId").is_none());
    assert_eq!(agent["attributes"]["gen_ai.conversation.id"], scratch.sessions()[0]);
    assert_eq!(agent["attributes"]["github.copilot.turn_count"], 3);
    for span in &spans {
        assert_eq!(span["traceId"], agent["traceId"]);
        assert_eq!(span["traceId"].as_str().unwrap().len(), 32);
        assert_eq!(span["spanId"].as_str().unwrap().len(), 16);
        assert_eq!(span["instrumentationScope"]["name"], "test");
        assert!(span == agent || span["parentSpanId"] == agent["spanId"], "{span}");
        assert!(!span.to_string().contains("echo hi"), "content was not asked for: {span}");
    }
    let chats = named(&spans, "chat mock-model");
    assert_eq!(chats.len(), 3);
    let attributes = &chats[0]["attributes"];
    assert_eq!(attributes["gen_ai.operation.name"], "chat");
    assert_eq!(attributes["gen_ai.provider.name"], "openai");
    assert_eq!(attributes["server.address"], "127.0.0.1");
    assert_eq!(attributes["gen_ai.response.finish_reasons"], json!(["tool_calls"]));
    assert!(attributes["gen_ai.usage.input_tokens"].as_u64().unwrap() > 0);
    assert_eq!(chats[0]["kind"], 2);
    assert_eq!(named(&spans, "execute_tool bash")[0]["attributes"]["process.exit.code"], 0);
    let failed = named(&spans, "execute_tool nosuch")[0];
    assert_eq!(failed["status"]["code"], 2);
    assert_eq!(failed["attributes"]["error.type"], "ToolError");

    let calls = named(&metrics, "gen_ai.client.inference.duration")[0];
    assert_eq!(calls["dataPoints"][0]["value"]["count"], 3);
    let tools = named(&metrics, "github.copilot.tool.call.count")[0];
    assert_eq!(tools["dataPoints"].as_array().unwrap().len(), 2);
}

#[test]
fn what_was_said_is_there_only_when_asked_for() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    run(&scratch, &model)
        .env("COPILOT_OTEL_FILE_EXPORTER_PATH", "otel.jsonl")
        .env("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
        .finish();
    let (spans, _) = read(&scratch);
    let chats = named(&spans, "chat mock-model");
    let text = |at: usize, key: &str| chats[at]["attributes"][key].as_str().unwrap().to_owned();
    assert!(text(0, "gen_ai.input.messages").contains("SAY:done"));
    assert!(text(1, "gen_ai.input.messages").contains("tool_call_response"));
    assert!(text(2, "gen_ai.output.messages").contains("done"));
    let bash = &named(&spans, "execute_tool bash")[0]["attributes"];
    assert_eq!(bash["gen_ai.tool.call.arguments"], "{\"command\":\"echo hi\"}");
    assert!(bash["gen_ai.tool.call.result"].as_str().unwrap().contains("hi"));
}

#[test]
fn what_is_said_to_an_agent_is_in_the_spans_of_its_own_calls() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let task = json!({ "description": "d", "prompt": "SAY:found it", "agent_type": "general-purpose", "name": "n", "mode": "sync" });
    hangar(&scratch, &model)
        .args(["--allow-all-tools", "-p", &format!("TOOL:task:{task}\nSAY:the last word")])
        .env("COPILOT_OTEL_FILE_EXPORTER_PATH", "otel.jsonl")
        .env("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
        .finish();
    let (spans, _) = read(&scratch);
    let chats = named(&spans, "chat mock-model");
    let roles = |at: usize| -> Vec<String> {
        let text = chats[at]["attributes"]["gen_ai.input.messages"].as_str().unwrap();
        let messages: Vec<Value> = serde_json::from_str(text).unwrap();
        messages.iter().map(|message| message["role"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!([roles(0), roles(1), roles(2)], [["user"], ["user"], ["tool"]]);
    let system = |at: usize| chats[at]["attributes"]["gen_ai.system_instructions"].as_str().unwrap();
    assert_eq!(system(0), system(2));
    assert_ne!(system(0), system(1));
    let said = named(&spans, "invoke_agent")[0]["attributes"]["gen_ai.output.messages"].as_str().unwrap();
    assert!(said.contains("the last word"), "{said}");
}

#[test]
fn a_model_that_fails_marks_its_spans() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let file = hangar(&scratch, &model).env("COPILOT_OTEL_FILE_EXPORTER_PATH", "otel.jsonl");
    file.args(["-p", "FAIL:400"]).finish();
    let (spans, _) = read(&scratch);
    assert_eq!(named(&spans, "invoke_agent")[0]["status"]["code"], 2);
    assert_eq!(named(&spans, "chat mock-model")[0]["status"]["code"], 2);
}

#[test]
fn a_collector_is_sent_spans_and_metrics() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}/", collector.local_addr().unwrap());
    let taken = std::thread::spawn(move || [take(&collector), take(&collector)]);
    let finished = run(&scratch, &model)
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        .env("OTEL_EXPORTER_OTLP_HEADERS", "x-key=secret,x-other = 2")
        .finish();
    assert_eq!(finished.exit, 0);
    let [(traces_head, traces), (metrics_head, metrics)] = taken.join().unwrap();
    assert!(traces_head.starts_with("POST /v1/traces "), "{traces_head}");
    assert!(traces_head.contains("x-key: secret") && traces_head.contains("x-other: 2"), "{traces_head}");
    let spans = traces["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    assert_eq!(spans.len(), 6);
    let agent = spans.iter().find(|span| span["name"] == "invoke_agent").unwrap();
    let chat = spans.iter().find(|span| span["name"] == "chat mock-model").unwrap();
    assert_eq!((&agent["parentSpanId"], &chat["parentSpanId"]), (&json!(""), &agent["spanId"]));
    assert_eq!(chat["kind"], 3);
    let operation = json!({ "key": "gen_ai.operation.name", "value": { "stringValue": "chat" } });
    assert!(chat["attributes"].as_array().unwrap().contains(&operation));
    assert!(metrics_head.starts_with("POST /v1/metrics "), "{metrics_head}");
    let metrics = metrics["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
    assert!(metrics.iter().any(|metric| metric["name"] == "gen_ai.client.inference.usage.input_tokens"));
}

/// One request to a collector, answered: its head and its body.
fn take(listener: &TcpListener) -> (String, Value) {
    let deadline = std::time::Instant::now() + PATIENCE;
    listener.set_nonblocking(true).unwrap();
    let mut stream = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(error) => assert!(std::time::Instant::now() < deadline, "nobody came: {error}"),
        }
        std::thread::yield_now();
    };
    stream.set_nonblocking(false).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0, "the request ended in its head: {head}");
    }
    let lower = head.to_ascii_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.trim().parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}").unwrap();
    (head, serde_json::from_slice(&body).unwrap())
}

#[test]
fn a_server_that_is_killed_behind_its_last_answer_has_written_its_spans() {
    let (scratch, model) = crate::sdk::stage();
    let file = scratch.work().join("otel.jsonl");
    let server = hangar(&scratch, &model).env("COPILOT_OTEL_FILE_EXPORTER_PATH", &file);
    let mut client = crate::sdk::Client::of(server);
    client.create(json!({}));
    client.send("SAY:done");
    client.event("session.idle");
    client.call("runtime.shutdown", json!({}));
    client.kill();
    let (spans, _) = read(&scratch);
    assert!(!spans.is_empty());
}

#[test]
fn spans_join_the_trace_of_the_client() {
    let (scratch, model) = crate::sdk::stage();
    let file = scratch.work().join("otel.jsonl");
    let server = hangar(&scratch, &model).env("COPILOT_OTEL_FILE_EXPORTER_PATH", &file);
    let mut client = crate::sdk::Client::of(server);
    let (trace, span) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    client.create(json!({ "traceparent": format!("00-{trace}-{span}-01") }));
    client.send("SAY:done");
    client.event("session.idle");
    client.call("runtime.shutdown", json!({}));
    client.kill();
    let (spans, _) = read(&scratch);
    let agent = named(&spans, "invoke_agent")[0];
    assert_eq!((&agent["traceId"], &agent["parentSpanId"]), (&json!(trace), &json!(span)));
    assert!(spans.iter().all(|span| span["traceId"] == trace), "{spans:?}");
}

#[test]
fn a_collector_that_is_not_there_changes_nothing_about_the_run() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let finished = run(&scratch, &model).env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9").finish();
    assert_eq!(finished.exit, 0);
    assert!(finished.stdout.contains("done"));
    assert!(!finished.stderr.contains("panicked"), "{}", finished.stderr);
}

#[test]
fn a_file_that_cannot_be_opened_is_one_remark() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let finished = run(&scratch, &model).env("COPILOT_OTEL_FILE_EXPORTER_PATH", "no/such/dir/x").finish();
    assert_eq!(finished.exit, 0);
    assert!(finished.stderr.contains("no telemetry: opening the telemetry file"), "{}", finished.stderr);
}

#[test]
fn without_a_word_about_telemetry_there_is_no_file_and_no_thread() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let count = "TOOL:bash:{\"command\":\"cat /proc/$PPID/task/*/comm | sort -u > threads\"}\nSAY:done";
    let threads = |run: Invocation| {
        run.args(["--allow-all-tools", "-p", count]).finish();
        std::fs::read_to_string(scratch.work().join("threads")).unwrap()
    };
    assert!(!threads(hangar(&scratch, &model)).contains("telemetry"));
    let on = hangar(&scratch, &model).env("COPILOT_OTEL_FILE_EXPORTER_PATH", "otel.jsonl");
    assert!(threads(on).contains("telemetry"), "the test would see the thread");
}

#[test]
fn queued_work_has_spans_of_its_wait_and_its_run() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    scratch.file(
        "jobs.yaml",
        "models: { driving: mock-model }\ntasks:\n  say: { model: { category: driving }, prompt: 'SAY:x', requireUserInput: false }\njobs:\n  say: { work: { kind: Ref, taskId: say } }\n",
    );
    let path = scratch.root().join("spans.jsonl");
    let run = crate::hangar(&scratch, &model).env("COPILOT_OTEL_FILE_EXPORTER_PATH", &path);
    run.args(["job", "run", "jobs.yaml", "say"]).finish().expect_exit(0);
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let named =
        |name: &str| lines.iter().find(|line| line["name"] == name).unwrap_or_else(|| panic!("{text}"));
    let (wait, work) = (named("queue.wait"), named("queue.run"));
    assert_eq!(wait["traceId"], work["traceId"]);
    assert_ne!(wait["spanId"], work["spanId"]);
    assert_eq!(work["attributes"]["hangar.job"], "say", "{work}");
}
