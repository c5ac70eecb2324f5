//! Session of a portal behind the requests of the SDK protocol: events by its stream, everything else by its HTTP API. What the
//! API does not offer is answered with a sentence.

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::StreamExt;
use hangar_protocol::Event;
use hangar_store::SessionId;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::link::LinkNews;
use crate::endpoint::ProcessEndpoint;
use crate::portal::client::PortalClient;

/// Attempts to go on with a stream that broke off, and the pause before each.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(500);
/// Largest message of the stream. Events are smaller; a portal that sends more is not read on.
const MAX_MESSAGE: usize = 64 << 20;

/// Connection to one session of a portal.
pub(super) struct PortalWire {
    client: PortalClient,
    session_id: String,
    news: mpsc::Sender<LinkNews>,
    closed: CancellationToken,
}

impl PortalWire {
    pub(super) fn new(
        endpoint: &ProcessEndpoint,
        session_id: &str,
        news: mpsc::Sender<LinkNews>,
    ) -> Result<Self, String> {
        let client = PortalClient::new(endpoint)?;
        Ok(Self { client, session_id: session_id.to_owned(), news, closed: CancellationToken::new() })
    }

    pub(super) fn close(&self) {
        self.closed.cancel();
    }

    /// Answers a request of the view with what the portal offers.
    pub(super) async fn request(&self, method: &'static str, params: Value) -> Result<Value, String> {
        let id = &self.session_id;
        let path = |rest: &str| format!("/api/v1/sessions/{id}{rest}");
        match method {
            "session.resume" => self.join().await,
            "session.send" => {
                if params["attachments"].as_array().is_some_and(|attached| !attached.is_empty()) {
                    return Err("a portal takes no attachments; name the file in the prompt".to_owned());
                }
                let mode = params["mode"].as_str().unwrap_or("enqueue");
                let body = json!({ "text": params["prompt"], "mode": mode });
                self.client.post(&path("/messages"), Some(body)).await
            }
            "session.abort" => self.client.post(&path("/abort"), None).await,
            "session.name.set" => self.client.rename(id, &params["name"]).await,
            // The portal has neither commands of its own nor a queue that it shows.
            "session.commands.list" => Ok(json!({ "commands": [] })),
            "session.queue.pendingItems" => Ok(json!({ "items": [] })),
            "session.eventLog.read" => self.questions().await,
            _ => match answer(method, &params) {
                Some((request_id, reply)) => {
                    self.client.post(&format!("/api/v1/approvals/{request_id}"), Some(reply)).await
                }
                None => Err(format!(
                    "the session runs in a portal, which does not offer `{method}`; it takes prompts, answers, names and \
                     interruptions"
                )),
            },
        }
    }

    /// Looks the session up and begins to hear its events.
    async fn join(&self) -> Result<Value, String> {
        let id: SessionId = self.session_id.parse().map_err(|_| "the session has no valid id".to_owned())?;
        let session = self.client.session(&id).await?;
        let after = session["events"].as_u64().unwrap_or(0);
        let stream = EventStream {
            client: self.client.clone(),
            id,
            after,
            news: self.news.clone(),
            closed: self.closed.clone(),
        };
        let first = stream.client.stream(&stream.id, after).await?;
        tokio::spawn(FutureExt::boxed(stream.follow(first)));
        Ok(json!({
            "modelState": { "modelId": session["model"], "reasoningEffort": session["effort"] },
            "mode": "interactive",
            "agent": session["runtime"],
        }))
    }

    /// Events of the questions that wait for an answer.
    async fn questions(&self) -> Result<Value, String> {
        let answer = self.client.get("/api/v1/approvals").await?;
        let all = answer["approvals"].as_array().into_iter().flatten();
        let ours = all.filter(|asked| asked["sessionId"] == self.session_id.as_str());
        let events: Vec<Value> = ours.map(|asked| asked["event"].clone()).collect();
        Ok(json!({ "events": events }))
    }
}

/// Answer to a question in the words of the portal, with the id of the question.
fn answer(method: &str, params: &Value) -> Option<(String, Value)> {
    let id = params["requestId"].as_str()?.to_owned();
    let decided = |approved: bool, feedback: &Value| {
        let mut reply = json!({ "decision": if approved { "approve" } else { "deny" } });
        if !approved && feedback.is_string() {
            reply["feedback"] = feedback.clone();
        }
        reply
    };
    let reply = match method {
        "session.permissions.handlePendingPermissionRequest" => match params["result"]["kind"].as_str()? {
            "approve-for-session" => json!({ "decision": "approve-for-session" }),
            kind => decided(kind == "approve-once", &params["result"]["feedback"]),
        },
        "session.ui.handlePendingExitPlanMode" => {
            let response = &params["response"];
            decided(response["approved"].as_bool()?, &response["feedback"])
        }
        "session.ui.handlePendingUserInput" => json!({ "answer": params["response"]["answer"] }),
        "session.ui.handlePendingElicitation" => {
            let mut reply = json!({ "action": params["result"]["action"] });
            if params["result"]["content"].is_object() {
                reply["content"] = params["result"]["content"].clone();
            }
            reply
        }
        _ => return None,
    };
    Some((id, reply))
}

/// Events of a session, from a position on.
struct EventStream {
    client: PortalClient,
    id: SessionId,
    /// Number of the last event that was heard.
    after: u64,
    news: mpsc::Sender<LinkNews>,
    closed: CancellationToken,
}

/// Why a stream is not read on.
#[derive(Debug, PartialEq, Eq)]
enum StreamEnd {
    /// The connection broke off.
    Broken,
    /// The session was deleted, or nobody listens any more.
    Over,
}

impl EventStream {
    async fn follow(mut self, mut response: reqwest::Response) {
        let closed = self.closed.clone();
        let reading = async {
            loop {
                if self.read(response).await == StreamEnd::Over {
                    return;
                }
                match self.again().await {
                    Some(next) => response = next,
                    None => return,
                }
            }
        };
        tokio::select! {
            () = reading => {}
            () = closed.cancelled() => return,
        }
        // A terminal that is gone needs no news.
        let _ = self.news.send(LinkNews::Closed).await;
    }

    /// Opens the stream again where it broke off.
    async fn again(&self) -> Option<reqwest::Response> {
        for _ in 0..ATTEMPTS {
            tokio::time::sleep(PAUSE).await;
            if let Ok(response) = self.client.stream(&self.id, self.after).await {
                return Some(response);
            }
        }
        None
    }

    async fn read(&mut self, response: reqwest::Response) -> StreamEnd {
        let mut pieces = response.bytes_stream();
        let mut messages = Messages::default();
        while let Some(Ok(piece)) = pieces.next().await {
            messages.feed(&piece);
            while let Some(message) = messages.next() {
                if !self.take(&message).await {
                    return StreamEnd::Over;
                }
            }
            if messages.buffer.len() > MAX_MESSAGE {
                tracing::warn!("the portal sent a message that is too long");
                return StreamEnd::Over;
            }
        }
        StreamEnd::Broken
    }

    /// Takes one message. False if it is the last one.
    async fn take(&mut self, message: &StreamMessage) -> bool {
        match message.name.as_deref() {
            None => {
                if let Some(number) = message.number {
                    self.after = number;
                }
                let Ok(event) = Event::parse(&message.data) else { return true };
                let session_id = self.id.to_string();
                self.news.send(LinkNews::Event { session_id, event: Box::new(event) }).await.is_ok()
            }
            Some("end") => false,
            Some(_) => true,
        }
    }
}

/// One message of a stream of server-sent events.
#[derive(Debug, Default, PartialEq, Eq)]
struct StreamMessage {
    name: Option<String>,
    number: Option<u64>,
    data: String,
}

/// Messages of a stream, from pieces that end anywhere.
#[derive(Default)]
struct Messages {
    buffer: Vec<u8>,
    /// Bytes that were searched for the end of a message.
    searched: usize,
}

impl Messages {
    fn feed(&mut self, piece: &[u8]) {
        self.buffer.extend_from_slice(piece);
    }

    /// The next whole message with data.
    fn next(&mut self) -> Option<StreamMessage> {
        loop {
            let from = self.searched.saturating_sub(1);
            let Some(found) = self.buffer[from..].windows(2).position(|pair| pair == b"\n\n") else {
                self.searched = self.buffer.len();
                return None;
            };
            let text: Vec<u8> = self.buffer.drain(..from + found + 2).collect();
            self.searched = 0;
            let message = parse(&String::from_utf8_lossy(&text));
            if !message.data.is_empty() {
                return Some(message);
            }
        }
    }
}

fn parse(text: &str) -> StreamMessage {
    let mut message = StreamMessage::default();
    for line in text.lines() {
        match line.split_once(": ") {
            Some(("event", name)) => message.name = Some(name.to_owned()),
            Some(("id", number)) => message.number = number.parse().ok(),
            Some(("data", data)) => message.data.push_str(data),
            // A heartbeat.
            _ => {}
        }
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_whole_wherever_the_pieces_end() {
        let text =
            ": \n\nid: 3\ndata: {\"a\":1}\n\ndata: {}\n\nevent: session\ndata: {\"id\":\"x\"}\n\ndata: {";
        for size in 1..text.len() {
            let mut messages = Messages::default();
            let mut heard = Vec::new();
            for piece in text.as_bytes().chunks(size) {
                messages.feed(piece);
                heard.extend(std::iter::from_fn(|| messages.next()));
            }
            let shown: Vec<(Option<&str>, Option<u64>, &str)> = heard
                .iter()
                .map(|message| (message.name.as_deref(), message.number, &*message.data))
                .collect();
            let expected =
                [(None, Some(3), "{\"a\":1}"), (None, None, "{}"), (Some("session"), None, "{\"id\":\"x\"}")];
            assert_eq!(shown, expected, "in pieces of {size}");
        }
    }

    #[track_caller]
    fn check(method: &str, params: Value, expected: Option<Value>) {
        let mut params = params;
        params["requestId"] = json!("q");
        let expected = expected.map(|reply| ("q".to_owned(), reply));
        assert_eq!(answer(method, &params), expected);
    }

    #[test]
    fn answers_of_the_view_are_said_in_the_words_of_the_portal() {
        let permission = "session.permissions.handlePendingPermissionRequest";
        let approve = Some(json!({ "decision": "approve" }));
        check(permission, json!({ "result": { "kind": "approve-once" } }), approve.clone());
        let session = Some(json!({ "decision": "approve-for-session" }));
        check(permission, json!({ "result": { "kind": "approve-for-session" } }), session);
        let refusal = Some(json!({ "decision": "deny", "feedback": "no" }));
        check(permission, json!({ "result": { "kind": "reject", "feedback": "no" } }), refusal);
        // An unknown approval approves nothing.
        check(permission, json!({ "result": { "kind": "else" } }), Some(json!({ "decision": "deny" })));
        check("session.ui.handlePendingExitPlanMode", json!({ "response": { "approved": true } }), approve);
        let said = json!({ "response": { "answer": "blue", "wasFreeform": true } });
        check("session.ui.handlePendingUserInput", said, Some(json!({ "answer": "blue" })));
        let form = json!({ "result": { "action": "accept", "content": { "a": 1 } } });
        let sent = Some(json!({ "action": "accept", "content": { "a": 1 } }));
        check("session.ui.handlePendingElicitation", form, sent);
        check("session.mode.set", json!({ "mode": "plan" }), None);
    }
}
