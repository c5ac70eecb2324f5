//! Requests to models that a client makes in the server's place, and tokens that only a client knows.

use futures_util::FutureExt;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use hangar_agent::request_proxy::{ProxiedRequest, ProxiedResponse, RequestProxy, TokenSource, Transport};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::audience::Audience;
use crate::client::Client;
use crate::opener::ModelTransport;
use hangar_spec::SessionSpec;

/// Pieces of an answer that may wait for the session. The client is told to wait by its unanswered request.
const PIECES: usize = 64;

/// The status of a socket that is open.
const SWITCHING_PROTOCOLS: u16 = 101;

/// Transport of a session's model requests.
pub(crate) fn transport(audience: &Arc<Audience>, spec: &SessionSpec, carried: bool) -> ModelTransport {
    let mut providers = spec.model.provider.iter().chain(spec.model.providers.iter().flatten());
    let asks = providers.any(|provider| provider.has_bearer_token_provider == Some(true));
    ModelTransport {
        request_proxy: carried.then(|| Arc::new(ClientProxy(Arc::clone(audience))) as Arc<dyn RequestProxy>),
        tokens: asks.then(|| Arc::new(ClientTokens(Arc::clone(audience))) as Arc<dyn TokenSource>),
    }
}

/// Requests that a client is making.
#[derive(Default)]
pub(crate) struct Exchanges(Mutex<HashMap<String, Exchange>>);

struct Exchange {
    head: Option<oneshot::Sender<ResponseHead>>,
    pieces: mpsc::Sender<Result<Vec<u8>, String>>,
}

struct ResponseHead {
    status: u16,
    headers: Vec<(String, String)>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResponseStart {
    request_id: String,
    status: u16,
    #[serde(default)]
    headers: HashMap<String, Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResponseChunk {
    request_id: String,
    #[serde(default)]
    data: String,
    #[serde(default)]
    binary: bool,
    #[serde(default)]
    end: bool,
    error: Option<ChunkError>,
}

#[derive(Deserialize)]
struct ChunkError {
    message: String,
}

impl Exchanges {
    /// Delivers the head of a response; false if no caller waits for it.
    pub(crate) fn start(&self, start: ResponseStart) -> bool {
        let mut exchanges = self.0.lock();
        let Some(head) = exchanges.get_mut(&start.request_id).and_then(|exchange| exchange.head.take())
        else {
            return false;
        };
        let headers = start.headers.into_iter();
        let headers =
            headers.flat_map(|(name, values)| values.into_iter().map(move |value| (name.clone(), value)));
        head.send(ResponseHead { status: start.status, headers: headers.collect() }).is_ok()
    }

    /// Delivers a chunk of a response; false if no caller waits for it. Waits while the session is behind.
    pub(crate) async fn chunk(&self, chunk: ResponseChunk) -> bool {
        let Some(pieces) = self.0.lock().get(&chunk.request_id).map(|exchange| exchange.pieces.clone())
        else {
            return false;
        };
        let mut accepted = true;
        if let Some(error) = chunk.error {
            accepted = pieces.send(Err(error.message)).await.is_ok();
        } else if !chunk.data.is_empty() {
            let piece = if chunk.binary {
                BASE64.decode(&chunk.data).map_err(|error| format!("a piece that is no base64: {error}"))
            } else {
                Ok(chunk.data.into_bytes())
            };
            accepted = pieces.send(piece).await.is_ok();
        }
        if chunk.end {
            self.0.lock().remove(&chunk.request_id);
        }
        accepted
    }
}

struct ClientProxy(Arc<Audience>);

impl RequestProxy for ClientProxy {
    fn carry(&self, request: ProxiedRequest) -> BoxFuture<'static, Result<ProxiedResponse, String>> {
        let client = self.0.request_proxy();
        let session_id = self.0.session_id.clone();
        Box::pin(async move {
            let client = client.ok_or("the client that makes the requests is gone")?;
            let request_id = uuid::Uuid::new_v4().to_string();
            let (head, started) = oneshot::channel();
            let (pieces, mut body) = mpsc::channel(PIECES);
            client.exchanges.0.lock().insert(request_id.clone(), Exchange { head: Some(head), pieces });
            let socket = request.transport == Transport::WebSocket;
            let cancel =
                CancelRequest { client: Arc::clone(&client), request_id: request_id.clone(), socket };
            let mut headers: HashMap<&str, Vec<&str>> = HashMap::new();
            for (name, value) in &request.headers {
                headers.entry(name).or_default().push(value);
            }
            let mut start = json!({
                "requestId": request_id,
                "method": request.method,
                "url": request.url,
                "headers": headers,
                "transport": if socket { "websocket" } else { "http" },
            });
            // Catalogues are asked for outside any turn.
            if request.method == "POST" || socket {
                let interaction = headers.get("x-interaction-type").and_then(|values| values.first());
                start["interactionType"] = json!(interaction.unwrap_or(&"conversation-agent"));
                let of = |name: &str| headers.get(name).and_then(|values| values.first());
                // The session's main agent has the session's own id.
                start["agentId"] = json!(of("x-agent-id").copied().unwrap_or(&session_id));
                if let Some(parent) = of("x-parent-agent-id") {
                    start["parentAgentId"] = json!(parent);
                }
                start["sessionId"] = json!(session_id);
            }
            let text = String::from_utf8(request.body);
            let (data, binary) = match text {
                Ok(text) => (text, false),
                Err(bytes) => (BASE64.encode(bytes.as_bytes()), true),
            };
            // A socket stays open for the answer.
            let chunk = json!({ "requestId": request_id, "data": data, "binary": binary, "end": !socket });
            let failed =
                |error: hangar_peer::PeerError| format!("the client did not take the request: {error}");
            client.peer.request::<Value>("llmInference.httpRequestStart", &start).await.map_err(failed)?;
            if !socket {
                client
                    .peer
                    .request::<Value>("llmInference.httpRequestChunk", &chunk)
                    .await
                    .map_err(failed)?;
            }
            let head = tokio::select! {
                head = started => head.map_err(|_| "the client gave no answer".to_owned())?,
                () = client.peer.closed() => return Err("the client that makes the requests is gone".to_owned()),
            };
            if socket && head.status == SWITCHING_PROTOCOLS {
                // Nothing may be said before the socket is open.
                client
                    .peer
                    .request::<Value>("llmInference.httpRequestChunk", &chunk)
                    .await
                    .map_err(failed)?;
            }
            let pieces = futures_util::stream::poll_fn(move |context| {
                // Kept with the body: dropping the body cancels the request.
                let _kept = &cancel;
                body.poll_recv(context)
            });
            Ok(ProxiedResponse { status: head.status, headers: head.headers, body: pieces.boxed() })
        })
    }
}

/// Drop guard that cancels the client's request, unless the response is complete.
struct CancelRequest {
    client: Arc<Client>,
    request_id: String,
    /// Whether the request is a WebSocket, which ends by closing it, whatever the result.
    socket: bool,
}

impl Drop for CancelRequest {
    fn drop(&mut self) {
        let Some(_unfinished) = self.client.exchanges.0.lock().remove(&self.request_id) else { return };
        let (client, request_id) = (Arc::clone(&self.client), self.request_id.clone());
        let cancel = if self.socket {
            json!({ "requestId": request_id, "data": "", "end": true })
        } else {
            json!({ "requestId": request_id, "data": "", "cancel": true, "cancelReason": "aborted" })
        };
        tokio::spawn(FutureExt::boxed(async move {
            // Whether it still cares does not matter.
            let _ = client.peer.request::<Value>("llmInference.httpRequestChunk", &cancel).await;
        }));
    }
}

struct ClientTokens(Arc<Audience>);

impl TokenSource for ClientTokens {
    fn token(&self, provider: &str) -> BoxFuture<'static, Result<String, String>> {
        #[derive(Deserialize)]
        struct TokenAnswer {
            token: String,
        }
        let clients: Vec<Arc<Client>> =
            self.0.members().iter().map(|member| Arc::clone(&member.client)).collect();
        let params = json!({ "sessionId": self.0.session_id, "providerName": provider });
        Box::pin(async move {
            let mut problem = "nobody is there to ask".to_owned();
            for client in clients {
                match client.peer.request::<TokenAnswer>("providerToken.getToken", &params).await {
                    Ok(answer) => return Ok(answer.token),
                    Err(error) => problem = error.to_string(),
                }
            }
            Err(problem)
        })
    }
}
