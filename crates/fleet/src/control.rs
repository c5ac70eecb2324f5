//! Commands to sessions (requests to the worker that owns one), and ephemeral events.

use async_nats::client::RequestErrorKind;
use async_nats::{HeaderMap, Subscriber};
use futures_util::StreamExt;
use hangar_store::SessionId;
use serde::{Deserialize, Serialize};

use crate::{Broker, FleetError, VERSION};

/// Header of an ephemeral event: the number of lines of the log before it.
const AFTER: &str = "Hangar-After";

/// A command to a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "do")]
pub enum ControlCommand {
    /// A message with an id: repeated, it is the same message.
    Send { id: String, text: String },
    /// Text for the current turn.
    Steer { text: String },
    /// Ends the current turn.
    Abort,
    /// Answers a question.
    Answer { request: String, answer: Answer },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
pub enum Answer {
    Once,
    ForSession,
    Denied {
        feedback: Option<String>,
    },
    Text {
        text: String,
    },
    Plan {
        approved: bool,
        feedback: Option<String>,
    },
    /// `action` is accept, decline or cancel.
    Elicitation {
        action: String,
        content: Option<serde_json::Value>,
    },
}

#[derive(Serialize, Deserialize)]
struct Envelope<T> {
    v: u32,
    #[serde(flatten)]
    body: T,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "result")]
enum Reply {
    Ok,
    Refused { why: String },
}

fn control_subject(broker: &Broker, id: &SessionId) -> String {
    broker.subject(&format!("ctl.{id}"))
}

fn live_subject(broker: &Broker, id: &SessionId) -> String {
    broker.subject(&format!("live.{id}"))
}

impl Broker {
    /// Asks the owner of a session to do something.
    pub async fn command(&self, id: &SessionId, command: ControlCommand) -> Result<(), FleetError> {
        let payload = serde_json::to_vec(&Envelope { v: VERSION, body: command })
            .map_err(|error| FleetError::failed("encoding a command", &error))?;
        let answer = self.client().request(control_subject(self, id), payload.into()).await;
        let answer = answer.map_err(|error| match error.kind() {
            RequestErrorKind::NoResponders => FleetError::NoOwner(id.to_string()),
            _ => FleetError::failed(format!("asking the owner of session {id}"), &error),
        })?;
        let reply = serde_json::from_slice::<Envelope<Reply>>(&answer.payload);
        match reply.map_err(|error| FleetError::failed("reading an answer", &error))?.body {
            Reply::Ok => Ok(()),
            Reply::Refused { why } => Err(FleetError::Invalid(why)),
        }
    }

    /// Subscribes to the commands of a session, as its owner.
    pub async fn commands(&self, id: &SessionId) -> Result<CommandReader, FleetError> {
        let subject = control_subject(self, id);
        let requests = self.client().subscribe(subject).await;
        let requests = requests.map_err(|error| FleetError::failed("listening to commands", &error))?;
        Ok(CommandReader { broker: self.clone(), requests })
    }

    /// Publishes an event that is in no log. It may be lost.
    pub async fn publish_live(&self, id: &SessionId, after: u64, event: Vec<u8>) {
        let mut headers = HeaderMap::new();
        headers.insert(AFTER, after.to_string());
        let _ = self.client().publish_with_headers(live_subject(self, id), headers, event.into()).await;
    }

    /// Ephemeral events, from now on.
    pub async fn live(&self, id: &SessionId) -> Result<LiveReader, FleetError> {
        let events = self.client().subscribe(live_subject(self, id)).await;
        Ok(LiveReader(events.map_err(|error| FleetError::failed("listening to events", &error))?))
    }
}

/// Commands to one session.
pub struct CommandReader {
    broker: Broker,
    requests: Subscriber,
}

impl CommandReader {
    /// The next command. `None` when the connection is closed.
    pub async fn next(&mut self) -> Option<ControlRequest> {
        loop {
            let message = self.requests.next().await?;
            let Some(reply) = message.reply else { continue };
            let request = ControlRequest {
                broker: self.broker.clone(),
                reply: reply.to_string(),
                command: ControlCommand::Abort,
            };
            match serde_json::from_slice::<Envelope<ControlCommand>>(&message.payload) {
                Ok(envelope) if envelope.v <= VERSION => {
                    return Some(ControlRequest { command: envelope.body, ..request });
                }
                Ok(envelope) => request.refuse(FleetError::Newer { found: envelope.v }.to_string()).await,
                Err(error) => request.refuse(format!("the command cannot be read: {error}")).await,
            }
        }
    }
}

/// A command that waits for an answer.
pub struct ControlRequest {
    broker: Broker,
    reply: String,
    pub command: ControlCommand,
}

impl ControlRequest {
    pub async fn accept(self) {
        self.answer(Reply::Ok).await;
    }

    pub async fn refuse(self, why: String) {
        self.answer(Reply::Refused { why }).await;
    }

    async fn answer(self, reply: Reply) {
        if let Ok(payload) = serde_json::to_vec(&Envelope { v: VERSION, body: reply }) {
            // Whoever asked has a time limit.
            let _ = self.broker.client().publish(self.reply, payload.into()).await;
        }
    }
}

/// Ephemeral events of one session.
pub struct LiveReader(Subscriber);

impl LiveReader {
    /// The next event, with the number of lines of the log that are before it.
    pub async fn next(&mut self) -> Option<(u64, Vec<u8>)> {
        let message = self.0.next().await?;
        let after = message.headers.as_ref().and_then(|headers| headers.get(AFTER));
        let after = after.and_then(|after| after.as_str().parse().ok()).unwrap_or_default();
        Some((after, message.payload.to_vec()))
    }
}
