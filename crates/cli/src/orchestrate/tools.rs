//! Tools of an agent for its own issue, as an MCP server: read it, comment, set its state, create follow-ups, ask a person.
//!
//! They run in this process with the tracker's credentials, which the agent never has. A session has a token for them, which ends
//! with it, and reaches its own issue alone.

use std::collections::HashMap;
use std::sync::Arc;

use hangar_orchestrator::record::ASK;
use hangar_trackers::{Issue, IssueId, NewComment, NewIssue, Tracker, TrackerError};
use hangar_workflow::config::TrackerConfig;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::source::hash;

/// Name that agents put before the tools.
const SERVER: &str = "issue";
/// For a client that does not say which version it speaks.
const DEFAULT_VERSION: &str = "2025-06-18";
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
/// Most writes of one session.
const MAX_WRITES: u32 = 50;
/// Longest text of one write.
const MAX_TEXT: usize = 32 << 10;

/// The sessions that have tools, by their tokens.
#[derive(Clone)]
pub(super) struct Tools {
    sessions: Arc<Mutex<HashMap<String, Arc<Desk>>>>,
    /// Address of the server.
    address: String,
}

/// The tools of one session.
pub(super) struct Desk {
    issue: IssueId,
    /// Prefix of the markers of its comments.
    marker: String,
    tracker: Arc<dyn Tracker>,
    states: Vec<String>,
    writes: Mutex<u32>,
    question: Mutex<Option<String>>,
}

/// Access of a session to its tools. It ends when this is dropped.
pub(super) struct Access {
    tools: Tools,
    token: String,
    desk: Arc<Desk>,
}

impl Drop for Access {
    fn drop(&mut self) {
        self.tools.sessions.lock().remove(&self.token);
    }
}

impl Access {
    /// The question that the agent has asked in this turn, as the word that ends its session.
    pub(super) fn question(&self) -> Option<String> {
        self.desk.question.lock().take().map(|question| format!("{ASK}{question}"))
    }

    /// Configuration by which an agent finds the tools.
    pub(super) fn configuration(&self) -> String {
        let url = &self.tools.address;
        json!({ "mcpServers": { SERVER: {
            "type": "http", "url": url, "tools": ["*"],
            "headers": { "Authorization": format!("Bearer {}", self.token) },
        } } })
        .to_string()
    }
}

impl Tools {
    /// Tools that are served at an address.
    pub(super) fn at(address: String) -> Self {
        Self { sessions: Arc::default(), address }
    }

    /// Opens the tools of a session.
    pub(super) fn open(
        &self,
        issue: &IssueId,
        marker: String,
        tracker: &Arc<dyn Tracker>,
        config: &TrackerConfig,
    ) -> Access {
        let states = config.active_states.iter().chain(&config.handoff_state).chain(&config.terminal_states);
        let desk = Arc::new(Desk {
            issue: issue.clone(),
            marker,
            tracker: Arc::clone(tracker),
            states: states.cloned().collect(),
            writes: Mutex::new(0),
            question: Mutex::new(None),
        });
        let token = format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
        self.sessions.lock().insert(token.clone(), Arc::clone(&desk));
        Access { tools: self.clone(), token, desk }
    }

    /// The tools that a header gives access to.
    pub(super) fn of(&self, authorization: Option<&str>) -> Option<Arc<Desk>> {
        let token = authorization?.strip_prefix("Bearer ")?;
        self.sessions.lock().get(token).cloned()
    }
}

/// Failure of a call, as a kind and a sentence.
struct Refused(&'static str, String);

impl From<TrackerError> for Refused {
    fn from(error: TrackerError) -> Self {
        Self(error.kind.as_str(), error.message)
    }
}

impl Desk {
    /// The answer to one message; notifications have none.
    pub(super) async fn answer(&self, message: &Value) -> Option<Value> {
        let id = message.get("id").filter(|id| !id.is_null())?;
        let params = &message["params"];
        let failure = |code: i64, message: &str| {
            Some(json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }))
        };
        let result = match message["method"].as_str()? {
            "initialize" => json!({
                "protocolVersion": params["protocolVersion"].as_str().unwrap_or(DEFAULT_VERSION),
                "capabilities": { "tools": {} },
                "serverInfo": { "name": SERVER, "version": env!("CARGO_PKG_VERSION") },
            }),
            "ping" => json!({}),
            "tools/list" => json!({ "tools": self.described() }),
            "tools/call" => match self.call(params["name"].as_str()?, &params["arguments"]).await {
                None => return failure(INVALID_PARAMS, "there is no such tool"),
                Some(Ok(data)) => content(&json!({ "success": true, "data": data }), false),
                Some(Err(Refused(kind, message))) => {
                    content(&json!({ "success": false, "error": { "kind": kind, "message": message } }), true)
                }
            },
            _ => return failure(METHOD_NOT_FOUND, "there is no such method"),
        };
        Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
    }

    fn described(&self) -> Value {
        let text = |about: &str| json!({ "type": "string", "description": about });
        let tool = |name: &str, about: &str, properties: Value, required: &[&str]| {
            let schema = json!({ "type": "object", "properties": properties, "required": required });
            json!({ "name": name, "description": about, "inputSchema": schema })
        };
        json!([
            tool("read", "Read the issue that you work on, with its comments.", json!({}), &[]),
            tool(
                "comment",
                "Write a comment on the issue that you work on.",
                json!({ "body": text("Markdown") }),
                &["body"]
            ),
            tool(
                "set_status",
                "Move the issue that you work on to another state.",
                json!({ "state": { "type": "string", "enum": self.states } }),
                &["state"]
            ),
            tool(
                "create_follow_up",
                "Create an issue for work that you found and that is not part of your issue. Nobody works on it before a person has looked at it.",
                json!({ "title": text("One line"), "description": text("Markdown") }),
                &["title"]
            ),
            tool(
                "ask_person",
                "Ask a person a question that you cannot go on without. End your turn afterwards; you are continued when the question is answered.",
                json!({ "question": text("The question, with what you know already") }),
                &["question"]
            ),
        ])
    }

    /// `None` if there is no such tool.
    async fn call(&self, name: &str, arguments: &Value) -> Option<Result<Value, Refused>> {
        let text = |field: &str| {
            let text = arguments[field].as_str().map(str::trim).filter(|text| !text.is_empty());
            let text = text.ok_or_else(|| Refused("invalid_input", format!("`{field}` must be a text")))?;
            match text.len() <= MAX_TEXT {
                true => Ok(text.to_owned()),
                false => Err(Refused("invalid_input", format!("`{field}` is longer than {MAX_TEXT} bytes"))),
            }
        };
        Some(match name {
            "read" => self.read().await,
            "comment" => match text("body") {
                Ok(body) => self.comment(body).await,
                Err(refused) => Err(refused),
            },
            "set_status" => match text("state") {
                Ok(state) => self.set_status(&state).await,
                Err(refused) => Err(refused),
            },
            "create_follow_up" => match text("title") {
                Ok(title) => self.create(title, text("description").unwrap_or_default()).await,
                Err(refused) => Err(refused),
            },
            "ask_person" => text("question").map(|question| {
                *self.question.lock() = Some(question);
                json!({ "next": "End your turn now. You are continued when a person has answered." })
            }),
            _ => return None,
        })
    }

    fn count(&self) -> Result<(), Refused> {
        let mut writes = self.writes.lock();
        *writes += 1;
        match *writes <= MAX_WRITES {
            true => Ok(()),
            false => Err(Refused("limit", format!("a session may write {MAX_WRITES} times"))),
        }
    }

    async fn issue(&self) -> Result<Issue, Refused> {
        let found = self.tracker.by_ids(std::slice::from_ref(&self.issue)).await?;
        found.into_iter().next().ok_or_else(|| Refused("tracker_not_found", "the issue is gone".to_owned()))
    }

    async fn read(&self) -> Result<Value, Refused> {
        Ok(json!(self.issue().await?))
    }

    async fn comment(&self, body: String) -> Result<Value, Refused> {
        self.count()?;
        // A call that is repeated writes nothing new.
        let marker = format!("{}-{}", self.marker, hash(&body));
        let comment = NewComment { marker, body, at: Timestamp::now() };
        self.tracker.comment(&self.issue, comment).await?;
        Ok(json!({}))
    }

    async fn set_status(&self, state: &str) -> Result<Value, Refused> {
        let known = self.states.iter().find(|known| known.to_lowercase() == state.to_lowercase());
        let Some(known) = known else {
            let message = format!("the states are: {}", self.states.join(", "));
            return Err(Refused("invalid_input", message));
        };
        self.count()?;
        self.tracker.transition(&self.issue, known).await?;
        Ok(json!({ "state": known }))
    }

    async fn create(&self, title: String, description: String) -> Result<Value, Refused> {
        self.count()?;
        let from = self.issue().await?.display_id;
        let description = format!("{description}\n\nFound while working on {from}.").trim().to_owned();
        let marker = format!("{}-{}", self.marker, hash(&title));
        let made = self.tracker.create(NewIssue { marker, title, description }).await?;
        Ok(json!({ "id": made }))
    }
}

fn content(data: &Value, is_error: bool) -> Value {
    json!({ "content": [{ "type": "text", "text": data.to_string() }], "isError": is_error })
}
