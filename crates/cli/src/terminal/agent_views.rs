//! Listener for `hangar attach` to sessions of other agents: TCP connections on this machine that authenticate with a token.

use std::time::Duration;

use futures_util::FutureExt;
use hangar_peer::{Framing, Peer, PendingConnection, PendingConnections, raw};
use hangar_protocol::rpc::{ErrorObject, RpcMessage, codes};
use hangar_server::ConnectionToken;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tokio::sync::mpsc;

use super::frames::Frames;
use super::host::Listening;

/// Maximum number of connections that have not authenticated yet.
const MAX_PENDING: usize = 16;
/// Timeout for authentication.
const ADMISSION_TIME: Duration = Duration::from_secs(10);

/// JSON-RPC message of an attached view.
pub(super) struct ViewMessage {
    pub(super) peer: Peer,
    pub(super) body: Vec<u8>,
}

/// Accepts connections and forwards their messages. Returns at once if there is no socket.
pub(super) async fn listen(listening: Option<Listening>, messages: mpsc::Sender<ViewMessage>) {
    let Some((listener, Some(token))) = listening.map(Listening::into_parts) else { return };
    let listener = listener.set_nonblocking(true).and_then(|()| tokio::net::TcpListener::from_std(listener));
    let listener = match listener {
        Ok(listener) => listener,
        Err(error) => return tracing::warn!(%error, "no other view can join the sessions"),
    };
    let pending = PendingConnections::new(MAX_PENDING);
    loop {
        let stream = hangar_peer::accept(&listener).await;
        let (place, token, messages) = (pending.register(), token.clone(), messages.clone());
        tokio::spawn(FutureExt::boxed(async move {
            serve(stream, &place, &ConnectionToken::new(token), &messages).await;
        }));
    }
}

/// Serves one connection until it closes.
async fn serve(
    stream: TcpStream,
    place: &PendingConnection,
    token: &ConnectionToken,
    messages: &mpsc::Sender<ViewMessage>,
) {
    let (reader, mut writer) = stream.into_split();
    let (peer, mut outgoing) = Peer::new(Framing::Length);
    let writing = peer.clone();
    tokio::spawn(FutureExt::boxed(async move {
        tokio::select! {
            () = writing.write(&mut writer, &mut outgoing) => {}
            () = writing.closed() => writing.finish(&mut writer, &mut outgoing).await,
        }
        writing.close();
    }));
    let mut frames = Frames::new(reader);
    let admitted = tokio::select! {
        admitted = tokio::time::timeout(ADMISSION_TIME, admit(&peer, &mut frames, token)) => admitted.unwrap_or(false),
        () = place.evicted() => false,
    };
    place.admit();
    if admitted {
        pass(&peer, &mut frames, messages).await;
    }
    peer.close();
}

/// Answers the first message. Returns whether it has the right token.
async fn admit(peer: &Peer, frames: &mut Frames<OwnedReadHalf>, token: &ConnectionToken) -> bool {
    let Some(body) = frames.next().await else { return false };
    let Ok(RpcMessage::Request { id, method, params }) = RpcMessage::parse(&body) else { return false };
    let params: Value = params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default();
    let is_admitted = method == "connect" && token.is(params["token"].as_str().unwrap_or_default());
    let refusal = || ErrorObject {
        code: codes::INVALID_REQUEST,
        message: "the token is not the one of this terminal".to_owned(),
        data: None,
    };
    let answer = if is_admitted { raw(&json!({ "ok": true })).ok_or_else(refusal) } else { Err(refusal()) };
    peer.respond(id, answer);
    is_admitted
}

/// Forwards messages until the connection or the terminal closes.
async fn pass(peer: &Peer, frames: &mut Frames<OwnedReadHalf>, messages: &mpsc::Sender<ViewMessage>) {
    loop {
        tokio::select! {
            body = frames.next() => match body {
                Some(body) => {
                    if messages.send(ViewMessage { peer: peer.clone(), body }).await.is_err() {
                        return;
                    }
                }
                None => return,
            },
            () = peer.closed() => return,
        }
    }
}
