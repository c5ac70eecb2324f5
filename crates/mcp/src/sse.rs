//! The older transport over HTTP: the server's messages come as one stream of events, ours are posts to the address that
//! the first event names.

use std::io;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::StreamExt;
use reqwest::header::HeaderMap;
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::http::Authorized;

/// Capacity of the queue of received messages.
const QUEUE: usize = 32;

pub(crate) struct Sse {
    post: Arc<Post>,
    incoming: mpsc::Receiver<RxJsonRpcMessage<RoleClient>>,
    _reading: DropGuard,
}

struct Post {
    client: Authorized,
    url: String,
    headers: HeaderMap,
}

impl Sse {
    /// Opens the stream and waits for the address of the posts.
    pub(crate) async fn open(client: Authorized, url: &str, headers: HeaderMap) -> Result<Self, String> {
        let base = reqwest::Url::parse(url).map_err(|error| format!("`{url}` is not an address: {error}"))?;
        let mut events = client.events(url, &headers).await.map_err(|error| error.to_string())?;
        let endpoint = loop {
            let event = events
                .next()
                .await
                .ok_or("the stream of events ended before it began")?
                .map_err(|error| format!("the stream of events broke: {error}"))?;
            if event.event.as_deref() == Some("endpoint") {
                break event.data.unwrap_or_default();
            }
        };
        let target =
            base.join(endpoint.trim()).map_err(|error| format!("`{endpoint}` is not an address: {error}"))?;
        if target.origin() != base.origin() {
            // A server must not send our credentials elsewhere.
            return Err("the server names an address at another host".to_owned());
        }
        let (sender, incoming) = mpsc::channel(QUEUE);
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        tokio::spawn(FutureExt::boxed(async move {
            loop {
                let event = tokio::select! {
                    () = stopped.cancelled() => return,
                    event = events.next() => event,
                };
                let Some(Ok(event)) = event else { return };
                if let Some(data) = event.data
                    && let Ok(message) = serde_json::from_str(&data)
                    && sender.send(message).await.is_err()
                {
                    return;
                }
            }
        }));
        let post = Arc::new(Post { client, url: target.to_string(), headers });
        Ok(Self { post, incoming, _reading: stop.drop_guard() })
    }
}

impl Transport<RoleClient> for Sse {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let post = Arc::clone(&self.post);
        async move { post.client.post(&post.url, &post.headers, item).await.map_err(io::Error::other) }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.incoming.recv().await
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.incoming.close();
        Ok(())
    }
}
