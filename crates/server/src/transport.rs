//! How clients reach the server: one over standard input and output, or many over TCP on this machine.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;

use crate::client::Client;
use crate::hub::Hub;
use crate::peer;

/// Connections that may be open at once. Each costs two tasks and its buffers.
const MAX_CONNECTIONS: usize = 256;
/// How long to wait after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves the one client on standard input and output until it closes its end.
pub async fn serve_stdio(hub: &Arc<Hub>) {
    // Standard output as Rust knows it looks for line ends and writes up to each; frames go out whole.
    match std::io::stdout().as_fd().try_clone_to_owned() {
        Ok(stdout) => {
            serve(hub, tokio::io::stdin(), tokio::fs::File::from(std::fs::File::from(stdout))).await;
        }
        Err(error) => {
            tracing::debug!(%error, "standard output cannot be had a second time");
            serve(hub, tokio::io::stdin(), tokio::io::stdout()).await;
        }
    }
}

/// Serves whoever connects, until the server is told to stop.
pub async fn serve_tcp(hub: &Arc<Hub>, listener: TcpListener) {
    let places = Arc::new(tokio::sync::Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                // Answers are small and wanted at once.
                let _ = stream.set_nodelay(true);
                let hub = Arc::clone(hub);
                tokio::spawn(async move {
                    let (reader, writer) = stream.into_split();
                    serve(&hub, reader, writer).await;
                    drop(place);
                });
            }
            // Out of descriptors, or a client that left before it was greeted. The first lasts: asking again at once
            // would only fill the log.
            Err(error) => {
                tracing::warn!(%error, "accepting a connection failed");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Serves one connection to its end.
pub(crate) async fn serve(hub: &Arc<Hub>, reader: impl AsyncRead + Unpin, writer: impl AsyncWrite + Unpin) {
    let (peer, outgoing) = peer::connect();
    let client = Arc::new(Client::new(hub, peer.clone()));
    hub.joined(&client);
    let settled = client.settled();
    peer::run(&peer, reader, writer, outgoing, |said| client.hear(said), settled).await;
    hub.left(&client);
}
