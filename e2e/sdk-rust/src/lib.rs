//! What every test of the Rust SDK stands on: a client on the program under test, and what the model was asked.
//!
//! The tests are started by `crates/cli/tests/it/clients.rs`, which names the program, the scripted model and the file
//! that the model writes its requests to.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use github_copilot_sdk::handler::ApproveAllHandler;
use github_copilot_sdk::session::Session;
use github_copilot_sdk::subscription::EventSubscription;
use github_copilot_sdk::tool::ToolHandler;
use github_copilot_sdk::types::{
    MessageOptions, ResumeSessionConfig, SessionConfig, SessionEvent, SessionId, Tool, ToolInvocation,
    ToolResult,
};
use github_copilot_sdk::{Client, ClientOptions, Error};
use serde_json::{Value, json};

/// Far above what anything needs on a loaded machine; reaching it is a failure, never a measurement.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub fn required(name: &str) -> String {
    std::env::var(name)
        .unwrap_or_else(|_| panic!("{name} is not set: these tests are started by `cargo xtask test`"))
}

pub fn program() -> PathBuf {
    required("HANGAR_E2E_PROGRAM").into()
}

pub fn model_url() -> String {
    required("HANGAR_E2E_MODEL")
}

pub fn options() -> ClientOptions {
    ClientOptions::new()
        .with_program(program())
        .with_cwd(std::env::current_dir().expect("a directory to work in"))
}

/// A client on a server of its own. Dropping it ends the server.
pub async fn client() -> Client {
    Client::start(options()).await.expect("the server starts")
}

/// A session that permits everything.
pub fn config() -> SessionConfig {
    SessionConfig::default().with_permission_handler(Arc::new(ApproveAllHandler))
}

pub fn resume(id: &SessionId) -> ResumeSessionConfig {
    ResumeSessionConfig::new(id.clone()).with_permission_handler(Arc::new(ApproveAllHandler))
}

pub fn call(tool: &str, arguments: &Value) -> String {
    format!("TOOL:{tool}:{arguments}")
}

/// A word that finds the requests of one test again.
pub fn mark() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("mark-{}-{}-", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The last request that the model has answered and whose text holds the word.
pub fn asked(word: &str) -> Value {
    let log = std::fs::read_to_string(required("HANGAR_E2E_REQUESTS")).expect("the log of requests");
    let line = log.lines().rfind(|line| line.contains(word)).expect("the model was asked");
    serde_json::from_str(line).expect("the log has one JSON object per line")
}

/// All that the model was told in that request.
pub fn told(word: &str) -> String {
    asked(word)["body"]["messages"].to_string()
}

/// A directory that no other test knows.
pub fn directory() -> PathBuf {
    let path = std::env::temp_dir().join(format!("sdk-rust-{}", mark()));
    std::fs::create_dir_all(&path).expect("a directory of one's own");
    path
}

/// The events up to the next one of a type, with it.
pub async fn until(events: &mut EventSubscription, kind: &str) -> Vec<SessionEvent> {
    let mut seen = Vec::new();
    let waiting = async {
        loop {
            let event = events.recv().await.expect("the session goes on");
            let found = event.event_type == kind;
            seen.push(event);
            if found {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("no {kind}"));
    seen
}

/// Sends a message and gives back all events until the session is idle again.
pub async fn run(session: &Session, message: impl Into<MessageOptions>) -> Vec<SessionEvent> {
    let mut events = session.subscribe();
    session.send(message).await.expect("the message is taken");
    until(&mut events, "session.idle").await
}

/// The data of all events of a type.
pub fn data<'a>(events: &'a [SessionEvent], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event.event_type == kind).map(|event| &event.data).collect()
}

/// The text of the last answer.
pub fn answer(events: &[SessionEvent]) -> &str {
    data(events, "assistant.message")
        .last()
        .and_then(|message| message["content"].as_str())
        .unwrap_or_default()
}

/// A tool that answers with a function of its arguments.
pub fn tool(name: &str, answer: impl Fn(Value) -> Result<ToolResult, Error> + Send + Sync + 'static) -> Tool {
    struct Handler<F>(F);

    #[async_trait]
    impl<F: Fn(Value) -> Result<ToolResult, Error> + Send + Sync + 'static> ToolHandler for Handler<F> {
        async fn call(&self, invocation: ToolInvocation) -> Result<ToolResult, Error> {
            (self.0)(invocation.arguments)
        }
    }

    Tool::new(name)
        .with_description("A tool of the test.")
        .with_parameters(json!({ "type": "object" }))
        .with_skip_permission(true)
        .with_handler(Arc::new(Handler(answer)))
}

/// A tool that says when it was called and never answers.
pub fn stuck_tool(name: &str) -> (Tool, Arc<tokio::sync::Notify>) {
    struct Handler(Arc<tokio::sync::Notify>);

    #[async_trait]
    impl ToolHandler for Handler {
        async fn call(&self, _: ToolInvocation) -> Result<ToolResult, Error> {
            self.0.notify_one();
            std::future::pending().await
        }
    }

    let called = Arc::new(tokio::sync::Notify::new());
    let tool = Tool::new(name)
        .with_parameters(json!({ "type": "object" }))
        .with_skip_permission(true)
        .with_handler(Arc::new(Handler(Arc::clone(&called))));
    (tool, called)
}
