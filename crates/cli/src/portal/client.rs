//! Client of a portal of this machine, for terminals that attach to its sessions or hand theirs over.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use hangar_store::SessionId;
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};

use crate::endpoint::ProcessEndpoint;

/// Time that a portal of this machine gets to accept a connection.
const CONNECT_TIME: Duration = Duration::from_secs(2);
/// Time for a whole answer. Opening an agent is the slowest.
const ANSWER_TIME: Duration = Duration::from_secs(125);

#[derive(Clone)]
pub(crate) struct PortalClient {
    http: reqwest::Client,
    base: String,
    token: Option<String>,
}

/// Tries to have a session taken over, and the pause after each: a portal that shows the session hears of its end a moment later.
const TAKE_OVER_TRIES: u32 = 50;
const TAKE_OVER_PAUSE: Duration = Duration::from_millis(100);

impl PortalClient {
    pub(crate) fn new(endpoint: &ProcessEndpoint) -> Result<Self, String> {
        // Set already if anything else has spoken TLS before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIME)
            .build()
            .map_err(|error| format!("no HTTP client: {error}"))?;
        let base = format!("http://{}", reachable(endpoint.address));
        Ok(Self { http, base, token: endpoint.token.clone() })
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value, String> {
        answered(self.request(Method::GET, path).timeout(ANSWER_TIME)).await
    }

    pub(crate) async fn post(&self, path: &str, body: Option<Value>) -> Result<Value, String> {
        let request = self.request(Method::POST, path).timeout(ANSWER_TIME);
        answered(match body {
            Some(body) => request.json(&body),
            None => request,
        })
        .await
    }

    pub(crate) async fn session(&self, id: &SessionId) -> Result<Value, String> {
        self.get(&format!("/api/v1/sessions/{id}")).await
    }

    /// Whether the portal's own process has the session open.
    pub(crate) async fn has_open(&self, id: &SessionId) -> bool {
        self.session(id).await.is_ok_and(|session| session["open"] == "portal")
    }

    /// Has the portal open a session, so that it is live there.
    pub(crate) async fn open(&self, id: &SessionId) -> Result<(), String> {
        self.post(&format!("/api/v1/sessions/{id}/open"), None).await.map(drop)
    }

    /// Has the portal open a session that was closed elsewhere just now, and returns once it is live in the portal.
    pub(crate) async fn take_over(&self, id: &SessionId) -> Result<(), String> {
        let mut refusal = "it does not see yet that the session was closed here".to_owned();
        for _ in 0..TAKE_OVER_TRIES {
            match self.open(id).await {
                Ok(()) if self.has_open(id).await => return Ok(()),
                Ok(()) => {}
                Err(reason) => refusal = reason,
            }
            tokio::time::sleep(TAKE_OVER_PAUSE).await;
        }
        Err(refusal)
    }

    pub(crate) async fn rename(&self, id: &str, name: &Value) -> Result<Value, String> {
        let request = self.request(Method::PATCH, &format!("/api/v1/sessions/{id}")).timeout(ANSWER_TIME);
        answered(request.json(&json!({ "name": name }))).await
    }

    /// Events of a session after a number.
    pub(crate) async fn stream(&self, id: &SessionId, after: u64) -> Result<Response, String> {
        let request = self.request(Method::GET, &format!("/api/v1/sessions/{id}/stream?after={after}"));
        let response = request.send().await.map_err(|error| unreachable_portal(&error))?;
        match response.status().is_success() {
            true => Ok(response),
            false => Err(refusal(response).await),
        }
    }
}

/// Address at which a portal of this machine that listens on all addresses is reached.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

async fn answered(request: RequestBuilder) -> Result<Value, String> {
    let response = request.send().await.map_err(|error| unreachable_portal(&error))?;
    if !response.status().is_success() {
        return Err(refusal(response).await);
    }
    let body = response.bytes().await.map_err(|error| unreachable_portal(&error))?;
    if body.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(&body).map_err(|error| format!("the portal's answer is no JSON: {error}"))
}

/// The sentence with which the portal refuses.
async fn refusal(response: Response) -> String {
    let status = response.status();
    let problem: Option<Value> =
        response.bytes().await.ok().and_then(|body| serde_json::from_slice(&body).ok());
    let detail = problem.and_then(|problem| problem["detail"].as_str().map(str::to_owned));
    detail.unwrap_or_else(|| format!("the portal answered {status}"))
}

fn unreachable_portal(error: &reqwest::Error) -> String {
    // The address says nothing to a person, and the reason is in the source.
    let reason = std::error::Error::source(error).map_or_else(String::new, |source| format!(": {source}"));
    format!("the portal cannot be reached{reason}")
}
