//! Connection to the server of the session: requests out; answers, events and the end of the connection in. The server is in
//! this process, in another terminal, or a portal.

use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use hangar_peer::{Framing, Peer, PeerError};
use hangar_protocol::Event;
use hangar_protocol::rpc::{ErrorObject, RpcMessage, codes};
use hangar_terminal::effect::CallId;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use super::frames::Frames;
use super::portal_link::PortalWire;
use crate::endpoint::ProcessEndpoint;

/// Capacity of the queue of news; the server waits beyond it.
const NEWS: usize = 1024;
/// Time that a server gets to answer. Turns are reported by events, so only answers to side questions take long.
const PATIENCE: Duration = Duration::from_secs(600);

/// Time that a terminal of this machine gets to accept a connection.
const DIAL_TIME: Duration = Duration::from_secs(2);

/// Requests that repeat what an event asks.
const QUESTIONS: &[&str] = &["userInput.request", "exitPlanMode.request", "autoModeSwitch.request"];

/// Message of the server for the terminal.
#[derive(Debug)]
pub(crate) enum LinkNews {
    Event {
        session_id: String,
        event: Box<Event>,
    },
    Reply {
        call: CallId,
        result: Result<Value, String>,
    },
    /// The connection is gone.
    Closed,
}

/// The terminal's end of the connection. Its tasks end with it.
pub(crate) struct Link {
    wire: Wire,
    sender: mpsc::Sender<LinkNews>,
    pub(crate) news: mpsc::Receiver<LinkNews>,
}

/// Way to the server.
#[derive(Clone)]
enum Wire {
    Rpc(Peer),
    Portal(Arc<PortalWire>),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SessionEvent {
    session_id: String,
    event: Box<RawValue>,
}

impl Link {
    /// Starts reading and writing. Has to be called in a runtime.
    pub(super) fn over(
        reader: impl AsyncRead + Unpin + Send + 'static,
        mut writer: impl AsyncWrite + Unpin + Send + 'static,
    ) -> Self {
        let (peer, mut outgoing) = Peer::new(Framing::Length);
        let (sender, news) = mpsc::channel(NEWS);
        let reading = (peer.clone(), sender.clone());
        tokio::spawn(FutureExt::boxed(async move {
            let (peer, sender) = reading;
            read(&peer, reader, &sender).await;
            peer.close();
            // A terminal that is gone needs no news.
            let _ = sender.send(LinkNews::Closed).await;
        }));
        let writing = peer.clone();
        tokio::spawn(FutureExt::boxed(async move {
            tokio::select! {
                () = writing.write(&mut writer, &mut outgoing) => {}
                () = writing.closed() => writing.finish(&mut writer, &mut outgoing).await,
            }
        }));
        Self { wire: Wire::Rpc(peer), sender, news }
    }

    /// Connects to another terminal. The first request has to be [`greet`](Self::greet).
    pub(crate) fn dial(endpoint: &ProcessEndpoint) -> Result<Self, String> {
        let failed = |error: std::io::Error| {
            format!("the terminal that has the session (process {}) cannot be reached: {error}", endpoint.pid)
        };
        let stream = TcpStream::connect_timeout(&endpoint.address, DIAL_TIME).map_err(failed)?;
        stream.set_nonblocking(true).map_err(failed)?;
        // Keys are wanted at once; a socket that refuses works all the same.
        let _ = stream.set_nodelay(true);
        let (reader, writer) = tokio::net::TcpStream::from_std(stream).map_err(failed)?.into_split();
        Ok(Self::over(reader, writer))
    }

    /// Connects to a session of a portal.
    pub(super) fn to_portal(endpoint: &ProcessEndpoint, session_id: &str) -> Result<Self, String> {
        let (sender, news) = mpsc::channel(NEWS);
        let wire = Arc::new(PortalWire::new(endpoint, session_id, sender.clone())?);
        Ok(Self { wire: Wire::Portal(wire), sender, news })
    }

    /// Shows the token of the endpoint.
    pub(crate) async fn greet(&self, endpoint: &ProcessEndpoint) -> Result<(), String> {
        self.request("connect", greeting(endpoint)).await.map(drop)
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn request(&self, method: &'static str, params: Value) -> Result<Value, String> {
        self.wire.request(method, params).await
    }

    /// Sends a request. Its answer is news.
    pub(crate) fn call(&self, call: CallId, method: &'static str, params: Value) {
        let (wire, sender) = (self.wire.clone(), self.sender.clone());
        tokio::spawn(FutureExt::boxed(async move {
            let result = wire.request(method, params).await;
            let _ = sender.send(LinkNews::Reply { call, result }).await;
        }));
    }
}

impl Wire {
    async fn request(&self, method: &'static str, params: Value) -> Result<Value, String> {
        let asked = async {
            match self {
                Wire::Rpc(peer) => {
                    peer.request::<Value>(method, &params).await.map_err(|error| refusal(method, &error))
                }
                Wire::Portal(portal) => portal.request(method, params).await,
            }
        };
        let late = |_| format!("{method} was not answered within {} s", PATIENCE.as_secs());
        tokio::time::timeout(PATIENCE, asked).await.map_err(late)?
    }
}

/// Parameters of `connect` for an endpoint.
pub(super) fn greeting(endpoint: &ProcessEndpoint) -> Value {
    match &endpoint.token {
        Some(token) => json!({ "token": token }),
        None => json!({}),
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        match &self.wire {
            Wire::Rpc(peer) => peer.close(),
            Wire::Portal(portal) => portal.close(),
        }
    }
}

/// The error as a person reads it, without the frame that servers put around it.
fn refusal(method: &str, error: &PeerError) -> String {
    let text = error.to_string();
    let frame = format!("Request {method} failed with message: ");
    text.strip_prefix(&frame).map_or(text.clone(), str::to_owned)
}

async fn read(peer: &Peer, reader: impl AsyncRead + Unpin, sender: &mpsc::Sender<LinkNews>) {
    let mut frames = Frames::new(reader);
    while let Some(body) = frames.next().await {
        if !take(peer, &body, sender).await {
            return;
        }
    }
}

/// Takes one message. False if nobody listens any more.
async fn take(peer: &Peer, body: &[u8], sender: &mpsc::Sender<LinkNews>) -> bool {
    match RpcMessage::parse(body) {
        Ok(RpcMessage::Notification { method, params: Some(params) }) if method == "session.event" => {
            let Ok(SessionEvent { session_id, event }) = serde_json::from_str(params.get()) else {
                return true;
            };
            let Ok(event) = Event::parse(event.get()) else { return true };
            sender.send(LinkNews::Event { session_id, event: Box::new(event) }).await.is_ok()
        }
        Ok(RpcMessage::Response { id, result }) => {
            peer.answered(id, result);
            true
        }
        // Questions are asked by events too, and answered by requests of ours.
        Ok(RpcMessage::Request { method, .. }) if QUESTIONS.contains(&method.as_str()) => true,
        Ok(RpcMessage::Request { id, method, .. }) => {
            let message = format!("a terminal does not answer {method}");
            peer.respond(id, Err(ErrorObject { code: codes::METHOD_NOT_FOUND, message, data: None }));
            true
        }
        Ok(RpcMessage::Notification { .. }) | Err(_) => true,
    }
}

/// Parameters of a request about a session, with its id.
pub(crate) fn of_session(session_id: &str, mut params: Value) -> Value {
    if params.is_null() {
        params = json!({});
    }
    params["sessionId"] = json!(session_id);
    params
}
