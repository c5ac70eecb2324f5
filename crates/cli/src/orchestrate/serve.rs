//! The HTTP server of the orchestrator: its state, metrics, webhooks of the forge, and the tools of agents.
//!
//! What a request is about is asked of the loop, which owns the state; an answer that takes too long is one that says so.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use hangar_orchestrator::record::IssueFact;
use hangar_workflow::config::{PORT, StateServerConfig};
use parking_lot::Mutex;
use ring::hmac;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::board::{FoundIssue, WorkflowBoard};
use super::tools::Tools;
use crate::output::remark;

/// Questions that wait for the loop.
const QUEUE: usize = 64;
/// Time that the loop has to answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// Largest request.
const MAX_BODY: usize = 25 << 20;
/// Deliveries that are remembered, so that none counts twice.
const MAX_DELIVERIES: usize = 1024;

/// A question to the loop.
pub(super) enum Ask {
    State(oneshot::Sender<Value>),
    Issue(String, oneshot::Sender<Option<Value>>),
    Metrics(oneshot::Sender<String>),
    /// The tracker is read now. The answer says whether that was asked for already.
    Refresh(oneshot::Sender<bool>),
    /// The forge told of something.
    Webhook,
    /// All issues, with at most so many of each column.
    Board(usize, oneshot::Sender<WorkflowBoard>),
    /// One issue, by its id or identifier.
    Details(String, oneshot::Sender<Option<FoundIssue>>),
    /// A person asks for something.
    Person(IssueFact, oneshot::Sender<()>),
}

/// Servers of a loop. They end with it.
pub(super) struct Served {
    pub(super) tools: Tools,
    pub(super) asks: mpsc::Sender<Ask>,
    pub(super) questions: mpsc::Receiver<Ask>,
    pub(super) serving: DropGuard,
}

#[derive(Clone)]
struct Desk {
    asks: mpsc::Sender<Ask>,
    tools: Tools,
    secret: Option<Arc<WebhookSecret>>,
    deliveries: Arc<Mutex<VecDeque<String>>>,
}

/// The secret of webhooks: the key of signatures, or itself where a forge sends it as a token.
struct WebhookSecret {
    key: hmac::Key,
    token: String,
}

impl WebhookSecret {
    fn new(token: &str) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, token.as_bytes()), token: token.to_owned() }
    }

    fn is_signed(&self, body: &[u8], signature: &str) -> bool {
        bytes(signature).is_some_and(|signature| hmac::verify(&self.key, body, &signature).is_ok())
    }

    /// Compares in a time that says nothing about the secret.
    fn is_token(&self, token: &str) -> bool {
        let given = hmac::sign(&self.key, token.as_bytes());
        hmac::verify(&self.key, self.token.as_bytes(), given.as_ref()).is_ok()
    }
}

/// Starts the servers. The tools have one of their own on loopback, so that they work wherever the other is switched off.
pub(super) async fn start(config: &StateServerConfig) -> anyhow::Result<Served> {
    let (asks, questions) = mpsc::channel(QUEUE);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let tools = Tools::at(format!("http://{}/mcp", listener.local_addr()?));
    let secret = config.webhook_secret.0.as_str();
    let secret = (!secret.is_empty()).then(|| Arc::new(WebhookSecret::new(secret)));
    let desk = Desk { asks: asks.clone(), tools: tools.clone(), secret, deliveries: Arc::default() };
    let own = Router::new().route("/mcp", post(mcp)).with_state(desk.clone());
    let stopping = CancellationToken::new();
    let own = own.layer(DefaultBodyLimit::max(MAX_BODY));
    tokio::spawn(hangar_portal::serve::serve(listener, own, stopping.clone()));
    let served = Served { tools, asks, questions, serving: stopping.clone().drop_guard() };
    let Some(port) = config.port else { return Ok(served) };
    let address = SocketAddr::from((config.host, port));
    match TcpListener::bind(address).await {
        Ok(listener) => {
            tokio::spawn(hangar_portal::serve::serve(listener, router(desk), stopping));
        }
        // Several workflows on one machine have the same default.
        Err(_) if port == PORT && !config.is_named => {
            remark(&format!(
                "{address} is in use; the state is not served. `server.port` picks another port"
            ));
        }
        Err(error) => anyhow::bail!("cannot listen on {address}: {error}; `server.port` picks another port"),
    }
    Ok(served)
}

fn router(desk: Desk) -> Router {
    Router::new()
        .route("/api/v1/state", get(state))
        .route("/api/v1/refresh", post(refresh))
        .route("/api/v1/{issue}", get(issue))
        .route("/metrics", get(metrics))
        .route("/livez", get(async || "ok"))
        .route("/readyz", get(ready))
        .route("/webhooks/{forge}", post(webhook))
        .method_not_allowed_fallback(async || problem(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed"))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(desk)
}

fn problem(status: StatusCode, code: &str) -> Response {
    let message = code.replace('_', " ");
    (status, axum::Json(json!({ "error": { "code": code, "message": message } }))).into_response()
}

/// Asks the loop.
async fn asked<T>(desk: &Desk, ask: impl FnOnce(oneshot::Sender<T>) -> Ask) -> Result<T, Response> {
    let unavailable = || problem(StatusCode::SERVICE_UNAVAILABLE, "snapshot_unavailable");
    let (reply, answer) = oneshot::channel();
    let answered = async {
        desk.asks.send(ask(reply)).await.ok()?;
        answer.await.ok()
    };
    tokio::time::timeout(PATIENCE, answered).await.ok().flatten().ok_or_else(unavailable)
}

async fn state(State(desk): State<Desk>) -> Result<Response, Response> {
    Ok(axum::Json(asked(&desk, Ask::State).await?).into_response())
}

async fn issue(State(desk): State<Desk>, Path(name): Path<String>) -> Result<Response, Response> {
    match asked(&desk, |reply| Ask::Issue(name, reply)).await? {
        Some(found) => Ok(axum::Json(found).into_response()),
        None => Ok(problem(StatusCode::NOT_FOUND, "issue_not_found")),
    }
}

async fn refresh(State(desk): State<Desk>) -> Result<Response, Response> {
    let coalesced = asked(&desk, Ask::Refresh).await?;
    let at = format!("{:.3}", jiff::Timestamp::now());
    let answer = json!({
        "queued": true, "coalesced": coalesced, "requested_at": at, "operations": ["poll", "reconcile"],
    });
    Ok((StatusCode::ACCEPTED, axum::Json(answer)).into_response())
}

async fn metrics(State(desk): State<Desk>) -> Result<Response, Response> {
    let text = asked(&desk, Ask::Metrics).await?;
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response())
}

async fn ready(State(desk): State<Desk>) -> Result<Response, Response> {
    asked(&desk, Ask::State).await?;
    Ok(axum::Json(json!({ "status": "ok", "version": env!("CARGO_PKG_VERSION") })).into_response())
}

async fn mcp(State(desk): State<Desk>, headers: HeaderMap, body: Bytes) -> Response {
    let authorization = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let Some(tools) = desk.tools.of(authorization) else {
        return problem(StatusCode::UNAUTHORIZED, "unauthorized");
    };
    let Ok(message) = serde_json::from_slice::<Value>(&body) else {
        return problem(StatusCode::BAD_REQUEST, "invalid_json");
    };
    match tools.answer(&message).await {
        Some(answer) => axum::Json(answer).into_response(),
        None => StatusCode::ACCEPTED.into_response(),
    }
}

/// A delivery of the forge: signed, and counted once. What it says is read from the forge itself.
async fn webhook(
    State(desk): State<Desk>,
    Path(forge): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let Some(secret) = &desk.secret else { return problem(StatusCode::NOT_FOUND, "webhooks_are_off") };
    let (is_genuine, delivery) = match forge.as_str() {
        "github" => {
            let signature = text("x-hub-signature-256").strip_prefix("sha256=");
            let is_signed = signature.is_some_and(|signature| secret.is_signed(&body, signature));
            (is_signed, text("x-github-delivery"))
        }
        "gitlab" => {
            let names = ["idempotency-key", "x-gitlab-event-uuid"].map(text);
            let delivery = names.into_iter().find(|name| !name.is_empty());
            (secret.is_token(text("x-gitlab-token")), delivery.unwrap_or_default())
        }
        // Forgejo sends the same headers.
        "gitea" | "forgejo" => (secret.is_signed(&body, text("x-gitea-signature")), text("x-gitea-delivery")),
        _ => return problem(StatusCode::NOT_FOUND, "unknown_forge"),
    };
    if !is_genuine {
        return problem(StatusCode::UNAUTHORIZED, "invalid_signature");
    }
    let delivery = format!("{forge} {delivery}");
    {
        let mut known = desk.deliveries.lock();
        if delivery.ends_with(' ') || known.contains(&delivery) {
            return StatusCode::OK.into_response();
        }
        if known.len() >= MAX_DELIVERIES {
            known.pop_front();
        }
        known.push_back(delivery);
    }
    match desk.asks.try_send(Ask::Webhook) {
        Ok(()) => StatusCode::ACCEPTED.into_response(),
        Err(_) => problem(StatusCode::SERVICE_UNAVAILABLE, "busy"),
    }
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    if hex.is_empty() {
        return None;
    }
    let pairs = hex.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
