//! Transports of the server: one client over standard input and output, or many over TCP on this machine.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use hangar_peer::{Outgoing, PendingConnection, PendingConnections};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;

use crate::client::Client;
use crate::handshake::{AdmissionState, ConnectionToken, ServerAccess};
use crate::hub::ServerHub;
use crate::peer;

/// Connections that may be open without having been admitted. The oldest makes room for a new one.
const MAX_PENDING: usize = 64;
/// Timeout of a connection's authentication.
const ADMISSION_TIME: Duration = Duration::from_secs(10);

/// Serves the one client on standard input and output until it closes its end.
pub async fn serve_stdio(hub: &Arc<ServerHub>) {
    // Standard output as Rust knows it looks for line ends and writes up to each; frames go out whole.
    match std::io::stdout().as_fd().try_clone_to_owned() {
        Ok(stdout) => {
            serve_owner(hub, tokio::io::stdin(), tokio::fs::File::from(std::fs::File::from(stdout))).await;
        }
        Err(error) => {
            tracing::debug!(%error, "standard output cannot be had a second time");
            serve_owner(hub, tokio::io::stdin(), tokio::io::stdout()).await;
        }
    }
}

/// Serves connections until the server stops.
pub async fn serve_tcp(hub: &Arc<ServerHub>, listener: TcpListener) {
    let access = hub.config().access.clone();
    accept(hub, listener, &access, false).await;
}

/// Serves portals that remote control lets in. They have a token of their own.
pub async fn serve_guests(hub: &Arc<ServerHub>, listener: TcpListener, token: ConnectionToken) {
    accept(hub, listener, &ServerAccess::Token(token), true).await;
}

async fn accept(hub: &Arc<ServerHub>, listener: TcpListener, access: &ServerAccess, are_guests: bool) {
    let pending = PendingConnections::new(MAX_PENDING);
    loop {
        let stream = hangar_peer::accept(&listener).await;
        let (hub, place, access) = (Arc::clone(hub), pending.register(), access.clone());
        tokio::spawn(FutureExt::boxed(async move {
            let (reader, writer) = stream.into_split();
            let (peer, outgoing) = peer::connect();
            let client = Arc::new(Client::with_access(&hub, peer, access, are_guests));
            serve_stranger(&hub, &client, outgoing, (reader, writer), &place).await;
        }));
    }
}

/// Serves the connection of the server's owner to its end.
pub async fn serve_owner(
    hub: &Arc<ServerHub>,
    reader: impl AsyncRead + Unpin,
    writer: impl AsyncWrite + Unpin,
) {
    let (peer, outgoing) = peer::connect();
    let client = Arc::new(Client::new(hub, peer));
    if let Err(error) = client.admit(hub) {
        tracing::error!(error = error.message, "the client on standard input is not served");
        return;
    }
    converse(&client, reader, writer, outgoing).await;
    hub.left(&client);
}

/// Serves a connection to its end, which comes soon unless it is admitted.
async fn serve_stranger(
    hub: &Arc<ServerHub>,
    client: &Arc<Client>,
    outgoing: Outgoing,
    (reader, writer): (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
    place: &PendingConnection,
) {
    tokio::select! {
        // A client that is admitted at the last moment is served.
        biased;
        () = converse(client, reader, writer, outgoing) => {}
        () = given_up(&client.gate, place) => {
            tracing::warn!("a connection was not admitted in time; closing it");
            client.peer.close();
        }
    }
    hub.left(client);
}

/// Waits until a connection that is not admitted has had its time. Never ends for one that is.
async fn given_up(gate: &AdmissionState, place: &PendingConnection) {
    tokio::select! {
        biased;
        () = gate.opened() => {
            place.admit();
            std::future::pending::<()>().await;
        }
        () = place.evicted() => {}
        () = tokio::time::sleep(ADMISSION_TIME) => {}
    }
}

pub(crate) async fn converse(
    client: &Arc<Client>,
    reader: impl AsyncRead + Unpin,
    writer: impl AsyncWrite + Unpin,
    outgoing: Outgoing,
) {
    let (peer, settled) = (&client.peer, client.settled());
    peer::run(peer, &client.gate, reader, writer, outgoing, |said| client.hear(said), settled).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Longer than any timeout here. The clock is virtual.
    const HOUR: Duration = Duration::from_secs(3600);

    /// Whether a connection is closed within an hour of virtual time.
    async fn is_given_up(gate: &AdmissionState, place: &PendingConnection) -> bool {
        tokio::time::timeout(HOUR, given_up(gate, place)).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_given_up_unless_it_is_admitted() {
        let registry = PendingConnections::new(1);
        let gate = AdmissionState::new(&ServerAccess::Token(ConnectionToken::new("secret")));
        let idle = registry.register();
        let began = tokio::time::Instant::now();
        assert!(is_given_up(&gate, &idle).await);
        assert_eq!(began.elapsed(), ADMISSION_TIME);
        let _newer = registry.register();
        assert!(is_given_up(&gate, &idle).await);
        assert_eq!(began.elapsed(), ADMISSION_TIME, "one that has to make room is given up at once");
        gate.open();
        assert!(!is_given_up(&gate, &registry.register()).await);
    }
}
