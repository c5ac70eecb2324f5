//! Transports of the agent: one client over standard input and output, or many over TCP on this machine.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use hangar_peer::{Framing, LineReader, Peer, PendingConnection, PendingConnections, ReadLine, accept};
use hangar_protocol::rpc::{RpcMessage, codes};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::agent::{EditorAgent, EditorAgentConfig};
use crate::answers::error;

/// Longest message that is read: a prompt with its images.
const MAX_LINE: usize = 64 << 20;
/// Connections that may be open at once.
const MAX_CONNECTIONS: usize = 256;
/// Maximum number of open connections that have not sent anything. The oldest is closed for a new one.
const MAX_PENDING: usize = 64;
/// Timeout of a connection's first byte.
const FIRST_TIME: Duration = Duration::from_secs(10);

/// Serves the one client on standard input and output until it closes its end or `stop` comes.
pub async fn serve_stdio(config: &Arc<EditorAgentConfig>, stop: &CancellationToken) {
    serve(config, tokio::io::stdin(), tokio::io::stdout(), stop).await;
}

/// Serves connections until `stop` and the end of all sessions.
pub async fn serve_tcp(config: &Arc<EditorAgentConfig>, listener: TcpListener, stop: &CancellationToken) {
    let places = Arc::new(tokio::sync::Semaphore::new(MAX_CONNECTIONS));
    let pending = PendingConnections::new(MAX_PENDING);
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let stream = tokio::select! {
            stream = accept(&listener) => stream,
            _ = connections.join_next(), if !connections.is_empty() => continue,
            () = stop.cancelled() => break,
        };
        let (config, stop, places) = (Arc::clone(config), stop.clone(), Arc::clone(&places));
        let waiting = pending.register();
        connections.spawn(FutureExt::boxed(async move {
            let begins = tokio::select! {
                begins = begins_with_message(&stream, &waiting) => begins,
                () = stop.cancelled() => false,
            };
            let Some(_place) = places.try_acquire().ok().filter(|_| begins) else { return };
            waiting.admit();
            let (reader, writer) = stream.into_split();
            serve(&config, reader, writer, &stop).await;
        }));
    }
    while connections.join_next().await.is_some() {}
}

/// Whether the first byte of a connection can begin a message. An HTTP request, which a web page can have a browser
/// send here, begins with the name of a method, and the messages in its body must not be read.
async fn begins_with_message(stream: &TcpStream, waiting: &PendingConnection) -> bool {
    let mut first = [0];
    let read = tokio::select! {
        read = stream.peek(&mut first) => read,
        () = waiting.evicted() => return false,
        () = tokio::time::sleep(FIRST_TIME) => return false,
    };
    matches!(read, Ok(1)) && (first[0] == b'{' || first[0].is_ascii_whitespace())
}

/// Serves one connection to its end. The sessions of a client end with it.
pub(crate) async fn serve(
    config: &Arc<EditorAgentConfig>,
    reader: impl AsyncRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
    stop: &CancellationToken,
) {
    let (peer, mut outgoing) = Peer::new(Framing::Line);
    let mut agent = EditorAgent::new(Arc::clone(config), peer.clone());
    tokio::select! {
        () = read(&peer, &mut agent, reader) => {}
        () = peer.write(&mut writer, &mut outgoing) => {}
        () = peer.closed() => {}
        () = stop.cancelled() => {}
    }
    // Questions to the client have no answer any more; sessions must not wait for one.
    peer.close();
    agent.close().await;
    peer.finish(&mut writer, &mut outgoing).await;
}

async fn read(peer: &Peer, agent: &mut EditorAgent, reader: impl AsyncRead + Unpin) {
    let mut lines = LineReader::new(reader, MAX_LINE);
    loop {
        let line = match lines.next().await {
            Ok(Some(ReadLine::Text(line))) => line,
            Ok(Some(ReadLine::TooLong)) => {
                peer.refuse(None, error(codes::INVALID_REQUEST, "the message is too long"));
                continue;
            }
            Ok(None) => return,
            Err(error) => {
                tracing::debug!(%error, "reading from the client failed");
                return;
            }
        };
        match RpcMessage::parse(&line) {
            Ok(RpcMessage::Request { id, method, params }) => {
                agent.request(id, &method, params.as_deref()).await;
            }
            Ok(RpcMessage::Notification { method, params }) => {
                agent.notified(&method, params.as_deref()).await;
            }
            Ok(RpcMessage::Response { id, result }) => peer.answered(id, result),
            Err(malformed) => peer.refuse(malformed.id, error(malformed.code, malformed.reason)),
        }
    }
}
