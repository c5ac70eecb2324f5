//! Session of a terminal in the portal: joined over the terminal's endpoint, as one more client of its server.

use std::collections::BTreeSet;
use std::path::Path;

use futures_util::FutureExt;
use hangar_protocol::{Body, Event};
use hangar_registry::host::JoinedSession;
use hangar_runtimes::outcome::{ErrorKind, Evidence, TurnFailure, TurnOutcome, TurnResult};
use hangar_runtimes::runtime::{
    AgentAnswer, AgentSession, PermissionReply, SessionCommand, SessionNews, TurnEnded,
};
use hangar_runtimes::usage::AgentUsage;
use hangar_store::SessionId;
use hangar_terminal::effect::CallId;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::endpoint;
use crate::terminal::link::{Link, LinkNews, of_session};
use crate::terminal::questions::Joining;

/// Capacity of the queues between the portal and the session.
const COMMAND_QUEUE: usize = 64;
const NEWS_QUEUE: usize = 256;

/// Requests whose answers differ in what they mean.
const PROMPT: CallId = CallId(0);
const OTHER: CallId = CallId(1);

/// Joins a session that a terminal has open. `None` if none has.
pub(crate) async fn join(home: &Path, id: &SessionId) -> Result<Option<JoinedSession>, String> {
    let Some(endpoint) = endpoint::of_session(home, id).filter(|endpoint| !endpoint.is_own()) else {
        return Ok(None);
    };
    let link = Link::dial(&endpoint)?;
    link.greet(&endpoint).await?;
    let ask = |method, params| link.request(method, of_session(id.as_str(), params));
    let abilities = json!({
        "clientName": "hangar",
        "requestPermission": true,
        "requestUserInput": true,
        "requestElicitation": true,
        "requestExitPlanMode": true,
        "includeSubAgentStreamingEvents": true,
        "streaming": true,
        "continuePendingWork": true,
        "disableResume": true,
    });
    let resumed = ask("session.resume", abilities).await?;
    let canvases = resumed.get("openCanvases").cloned().unwrap_or_default();
    let activity = ask("session.metadata.isProcessing", Value::Null).await?;
    let recent = ask("session.eventLog.read", Joining::request()).await?;
    let questions = Joining::default().open_questions(&recent);
    let (commands, inbox) = mpsc::channel(COMMAND_QUEUE);
    let (outbox, news) = mpsc::channel(NEWS_QUEUE);
    let relay = Relay { id: id.to_string(), link, inbox, outbox, error: None };
    let owner = tokio::spawn(FutureExt::boxed(relay.run()));
    Ok(Some(JoinedSession {
        agent: AgentSession::new(commands, news, owner.abort_handle()),
        working: activity["processing"].as_bool().unwrap_or(false),
        questions,
        // A list that cannot be read is none; events tell of later ones.
        canvases: serde_json::from_value(canvases).unwrap_or_default(),
    }))
}

/// Passes commands to the terminal, and its news to the portal.
struct Relay {
    id: String,
    link: Link,
    inbox: mpsc::Receiver<SessionCommand>,
    outbox: mpsc::Sender<SessionNews>,
    /// Error of the current turn.
    error: Option<String>,
}

impl Relay {
    async fn run(mut self) {
        loop {
            let goes_on = tokio::select! {
                command = self.inbox.recv() => match command {
                    // The session goes on in its terminal.
                    Some(SessionCommand::Stop) | None => false,
                    Some(command) => {
                        self.pass(command);
                        true
                    }
                },
                news = self.link.news.recv() => match news {
                    Some(news) => self.hear(news).await,
                    None => false,
                },
            };
            if !goes_on {
                return;
            }
        }
    }

    fn pass(&self, command: SessionCommand) {
        if let Some((call, method, params)) = request(command) {
            self.link.call(call, method, of_session(&self.id, params));
        }
    }

    /// Takes news of the terminal. False if they are the last, or nobody hears them.
    async fn hear(&mut self, news: LinkNews) -> bool {
        match news {
            LinkNews::Event { session_id, event } if session_id == self.id => self.publish(event).await,
            LinkNews::Event { .. } | LinkNews::Reply { result: Ok(_), .. } => true,
            LinkNews::Reply { call: PROMPT, result: Err(reason) } => self.end_turn(Some(reason)).await,
            LinkNews::Reply { result: Err(reason), .. } => {
                tracing::warn!(session = self.id, reason, "the terminal refused a command");
                true
            }
            LinkNews::Closed => false,
        }
    }

    async fn publish(&mut self, event: Box<Event>) -> bool {
        let is_main = event.agent_id().is_none();
        let (mut is_idle, mut is_over) = (false, false);
        match event.body() {
            Body::UserMessage(_) if is_main => self.error = None,
            Body::SessionError(error) if is_main => self.error = Some(error.message.clone()),
            Body::SessionIdle(_) if is_main => is_idle = true,
            // The terminal may go on without it, and the session elsewhere.
            Body::SessionShutdown(_) if is_main => is_over = true,
            _ => {}
        }
        if self.outbox.send(SessionNews::Event(event)).await.is_err() {
            return false;
        }
        if !is_idle {
            return !is_over;
        }
        let error = self.error.take();
        self.end_turn(error).await
    }

    async fn end_turn(&self, error: Option<String>) -> bool {
        let end = match error {
            Some(message) => TurnResult::Failed(TurnFailure {
                kind: ErrorKind::TurnFailed,
                message,
                evidence: Evidence::default(),
            }),
            None => TurnResult::Completed,
        };
        // The usage is in the log.
        let outcome = TurnOutcome { end, usage: AgentUsage::default(), total: AgentUsage::default() };
        let ended = TurnEnded { outcome, model: None, unknown: BTreeSet::new() };
        self.outbox.send(SessionNews::TurnEnded(Box::new(ended))).await.is_ok()
    }
}

/// Request for a command, with its parameters. A session that runs elsewhere is not stopped.
fn request(command: SessionCommand) -> Option<(CallId, &'static str, Value)> {
    let prompt =
        |text: String, mode: &str| Some((PROMPT, "session.send", json!({ "prompt": text, "mode": mode })));
    let (method, params) = match command {
        SessionCommand::Send(text) => return prompt(text, "enqueue"),
        SessionCommand::Steer(text) => return prompt(text, "immediate"),
        SessionCommand::Abort => ("session.abort", json!({ "reason": "user_initiated" })),
        SessionCommand::Rename(name) => ("session.name.set", json!({ "name": name })),
        SessionCommand::Answer { request_id, answer } => answered(&request_id, answer),
        SessionCommand::Stop => return None,
    };
    Some((OTHER, method, params))
}

fn answered(request_id: &str, answer: AgentAnswer) -> (&'static str, Value) {
    match answer {
        AgentAnswer::Permission(reply) => {
            let result = match reply {
                PermissionReply::Once => json!({ "kind": "approve-once" }),
                PermissionReply::ForSession => json!({ "kind": "approve-for-session" }),
                PermissionReply::Denied { feedback: Some(feedback) } => {
                    json!({ "kind": "reject", "feedback": feedback })
                }
                PermissionReply::Denied { feedback: None } => json!({ "kind": "reject" }),
            };
            let params = json!({ "requestId": request_id, "result": result });
            ("session.permissions.handlePendingPermissionRequest", params)
        }
        AgentAnswer::Question(answer) => {
            let response = json!({ "answer": answer, "wasFreeform": true });
            ("session.ui.handlePendingUserInput", json!({ "requestId": request_id, "response": response }))
        }
        AgentAnswer::Plan { approved, feedback } => {
            let mut response = json!({ "approved": approved });
            if let Some(feedback) = feedback {
                response["feedback"] = json!(feedback);
            }
            ("session.ui.handlePendingExitPlanMode", json!({ "requestId": request_id, "response": response }))
        }
        AgentAnswer::Elicitation { action, content } => {
            let mut result = json!({ "action": action });
            if let Some(content) = content {
                result["content"] = content;
            }
            ("session.ui.handlePendingElicitation", json!({ "requestId": request_id, "result": result }))
        }
    }
}
