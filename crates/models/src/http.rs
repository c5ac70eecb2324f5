//! HTTP requests, by clients that are built when first needed and then shared.

use parking_lot::Mutex;
use std::error::Error as _;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use hangar_agent::model::{ModelError, ModelErrorKind};
use hangar_agent::request_proxy::{ProxiedRequest, ProxiedResponse, RequestProxy, Transport};
use http_body_util::Full;
use reqwest::header::HeaderMap;
use reqwest::redirect::Policy;
use reqwest::{Client, Response, Url};
use rustls::{ClientConfig, RootCertStore};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::base_url::BaseUrl;
use crate::config::{Proxy, TimeLimits};
use crate::error;

/// Bytes of an error body that are read.
const ERROR_BODY: usize = 64 * 1024;
/// Bytes of any other body that are read.
pub(crate) const BODY: usize = 64 * 1024 * 1024;

/// Response of a server that switches to a WebSocket.
const SWITCHING_PROTOCOLS: u16 = 101;
/// Kinds of client that are shared; there are a handful.
const MAX_CLIENTS: usize = 16;
/// Idle connections to one host that are kept. A thousand sessions may have opened more.
const IDLE_CONNECTIONS: usize = 32;

/// Limit of concurrent calls of this process; the others wait. Each holds a connection, and a process may have only so
/// many of those: 1,024 files is a usual limit.
const CALLS: usize = 256;

static TURNS: Semaphore = Semaphore::const_new(CALLS);

/// Permit for a call in flight, released when it is dropped.
pub(crate) type CallPermit = SemaphorePermit<'static>;

pub(crate) struct Http {
    base_url: BaseUrl,
    proxy: Proxy,
    limits: TimeLimits,
    client: OnceLock<Client>,
    request_proxy: Option<Arc<dyn RequestProxy>>,
}

impl Http {
    pub(crate) fn new(base_url: BaseUrl, proxy: Proxy, limits: TimeLimits) -> Self {
        Self { base_url, proxy, limits, client: OnceLock::new(), request_proxy: None }
    }

    /// Makes all requests through a request proxy.
    pub(crate) fn carried_by(self, request_proxy: Option<Arc<dyn RequestProxy>>) -> Self {
        Self { request_proxy, ..self }
    }

    pub(crate) fn limits(&self) -> TimeLimits {
        self.limits
    }

    /// Waits until one more call may be made. Calls through a request proxy are not bounded here.
    pub(crate) async fn turn(&self) -> Option<CallPermit> {
        match &self.request_proxy {
            Some(_) => None,
            // The semaphore is never closed.
            None => TURNS.acquire().await.ok(),
        }
    }

    /// `limit` is for the head of the response.
    pub(crate) async fn post(
        &self,
        url: Url,
        headers: HeaderMap,
        body: Vec<u8>,
        limit: Duration,
    ) -> Result<Response, ModelError> {
        let body = match &self.request_proxy {
            Some(_) => body.into(),
            // The body is freed once it is written. The client would keep one that it could resend until the response
            // begins, and a thousand sessions may be waiting for theirs.
            None => reqwest::Body::wrap(Full::<Bytes>::new(body.into())),
        };
        self.send(self.client()?.post(url).headers(headers).body(body), limit).await
    }

    pub(crate) async fn get(
        &self,
        url: Url,
        headers: HeaderMap,
        limit: Duration,
    ) -> Result<Response, ModelError> {
        self.send(self.client()?.get(url).headers(headers), limit).await
    }

    /// Whether a request proxy makes the requests.
    pub(crate) fn is_carried(&self) -> bool {
        self.request_proxy.is_some()
    }

    /// Sends a request over a WebSocket, which only request proxies have. Each message of the response becomes an event
    /// of a stream, so that it is read like any other.
    pub(crate) async fn converse(
        &self,
        mut url: Url,
        headers: HeaderMap,
        body: Vec<u8>,
        limit: Duration,
    ) -> Result<Response, ModelError> {
        let Some(request_proxy) = &self.request_proxy else {
            return Err(error::bare(
                ModelErrorKind::Connect,
                "no request proxy supports WebSockets".to_owned(),
            ));
        };
        let scheme = if url.scheme() == "https" { "wss" } else { "ws" };
        // Both schemes are of the same kind, so the change always succeeds.
        let _ = url.set_scheme(scheme);
        let request = ProxiedRequest {
            method: "GET".to_owned(),
            url: url.to_string(),
            headers: pairs(&headers),
            body,
            transport: Transport::WebSocket,
        };
        let carried = tokio::time::timeout(limit, request_proxy.carry(request)).await;
        let inbound = carried.map_err(|_| self.silent(limit))?;
        let inbound = inbound.map_err(|message| error::bare(ModelErrorKind::Connect, message))?;
        let inbound = if inbound.status == SWITCHING_PROTOCOLS {
            let messages = inbound
                .body
                .map(|message| message.map(|bytes| [b"data: ".as_slice(), &bytes, b"\n\n"].concat()));
            ProxiedResponse { status: 200, headers: Vec::new(), body: messages.boxed() }
        } else {
            inbound
        };
        self.accepted(received(inbound).map_err(|message| error::bare(ModelErrorKind::Connect, message))?)
            .await
    }

    /// Waits for the head of the response; an error status is an error.
    async fn send(&self, request: reqwest::RequestBuilder, limit: Duration) -> Result<Response, ModelError> {
        let response = match &self.request_proxy {
            Some(request_proxy) => {
                let proxied = proxied(request.build().map_err(|error| self.unsent(&error))?);
                let carried = tokio::time::timeout(limit, request_proxy.carry(proxied)).await;
                let inbound = carried.map_err(|_| self.silent(limit))?;
                let received = inbound.and_then(received);
                received.map_err(|message| error::bare(ModelErrorKind::Connect, message))?
            }
            None => {
                let sent =
                    tokio::time::timeout(limit, request.send()).await.map_err(|_| self.silent(limit))?;
                sent.map_err(|error| self.unsent(&error))?
            }
        };
        self.accepted(response).await
    }

    /// The response if its status is a success; otherwise its error.
    async fn accepted(&self, mut response: Response) -> Result<Response, ModelError> {
        if response.status().is_success() {
            return Ok(response);
        }
        let body = self.read_body(&mut response, ERROR_BODY, self.limits.stall).await.unwrap_or_default();
        Err(error::refused(response.status(), response.headers(), &body))
    }

    /// The body up to `limit` bytes, as text. `wait` is for its first byte.
    pub(crate) async fn read_body(
        &self,
        response: &mut Response,
        limit: usize,
        mut wait: Duration,
    ) -> Result<String, ModelError> {
        let mut body = Vec::new();
        while body.len() < limit {
            let chunk = tokio::time::timeout(wait, response.chunk()).await.map_err(|_| self.silent(wait))?;
            match chunk {
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => break,
                Err(error) => return Err(self.broken(&error)),
            }
            wait = self.limits.stall;
        }
        body.truncate(limit);
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    pub(crate) fn silent(&self, limit: Duration) -> ModelError {
        error::bare(
            ModelErrorKind::Stalled,
            format!("the model provider at {} sent nothing for {} s", self.base_url, limit.as_secs_f32()),
        )
    }

    /// Error of a connection that broke during an answer.
    pub(crate) fn broken(&self, cause: &reqwest::Error) -> ModelError {
        let why = root(cause);
        error::bare(
            ModelErrorKind::Cut,
            format!("the answer of the model provider at {} broke off: {why}", self.base_url),
        )
    }

    /// Error of an answer that ended without its end marker.
    pub(crate) fn cut(&self) -> ModelError {
        let message =
            format!("the answer of the model provider at {} broke off before its end", self.base_url);
        error::bare(ModelErrorKind::Cut, message)
    }

    fn unsent(&self, cause: &reqwest::Error) -> ModelError {
        if cause.is_connect() || cause.is_timeout() {
            let why = if cause.is_timeout() {
                format!("no connection within {} s", self.limits.connect.as_secs_f32())
            } else {
                root(cause)
            };
            let message = format!("could not connect to the model provider at {}: {why}", self.base_url);
            return error::bare(ModelErrorKind::Connect, message);
        }
        if cause.is_builder() {
            let message = format!("the request to {} could not be built: {}", self.base_url, root(cause));
            return error::bare(ModelErrorKind::Configuration, message);
        }
        let message =
            format!("the connection to the model provider at {} broke: {}", self.base_url, root(cause));
        error::bare(ModelErrorKind::Cut, message)
    }

    fn client(&self) -> Result<&Client, ModelError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let kind = Kind {
            plain: self.base_url.is_plain(),
            direct: self.proxy == Proxy::None || self.base_url.is_loopback(),
            connect: self.limits.connect,
        };
        let client = kind.client().map_err(|cause| {
            let message = format!("cannot create an HTTP client for {}: {}", self.base_url, root(&cause));
            error::bare(ModelErrorKind::Configuration, message)
        })?;
        Ok(self.client.get_or_init(|| client))
    }
}

/// Key of a shared client. All sessions with the same needs share one: the machine's certificates are read once, and
/// connections are reused by any session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kind {
    plain: bool,
    /// Bypasses all proxies.
    direct: bool,
    connect: Duration,
}

static CLIENTS: Mutex<Vec<(Kind, Client)>> = Mutex::new(Vec::new());

impl Kind {
    fn client(self) -> Result<Client, reqwest::Error> {
        let mut clients = CLIENTS.lock();
        if let Some((_, client)) = clients.iter().find(|(kind, _)| *kind == self) {
            return Ok(client.clone());
        }
        let client = self.build()?;
        if clients.len() < MAX_CLIENTS {
            clients.push((self, client.clone()));
        }
        Ok(client)
    }

    fn build(self) -> Result<Client, reqwest::Error> {
        let provider = rustls::crypto::ring::default_provider();
        let mut builder = Client::builder()
            .user_agent(concat!("hangar/", env!("CARGO_PKG_VERSION")))
            // A key must not follow a redirect to another host.
            .redirect(Policy::none())
            // The loop decides on every retry.
            .retry(reqwest::retry::never())
            .http1_only()
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .connect_timeout(self.connect);
        if self.direct {
            builder = builder.no_proxy();
        }
        if self.plain {
            // Reading the machine's certificates takes longer than a whole local call.
            let versions =
                ClientConfig::builder_with_provider(Arc::new(provider)).with_safe_default_protocol_versions();
            if let Ok(versions) = versions {
                let tls = versions.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
                builder = builder.tls_backend_preconfigured(tls);
            }
        } else {
            // Fails if one is installed already, which is fine.
            let _ = provider.install_default();
        }
        builder.build()
    }
}

fn proxied(request: reqwest::Request) -> ProxiedRequest {
    ProxiedRequest {
        method: request.method().to_string(),
        url: request.url().to_string(),
        headers: pairs(request.headers()),
        body: request.body().and_then(reqwest::Body::as_bytes).unwrap_or_default().to_vec(),
        transport: Transport::Http,
    }
}

fn pairs(headers: &HeaderMap) -> Vec<(String, String)> {
    headers
        .iter()
        .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect()
}

fn received(inbound: ProxiedResponse) -> Result<Response, String> {
    let mut response = hyper::http::Response::builder().status(inbound.status);
    for (name, value) in &inbound.headers {
        response = response.header(name, value);
    }
    let body = reqwest::Body::wrap_stream(inbound.body.map(|piece| piece.map_err(std::io::Error::other)));
    response.body(body).map(Response::from).map_err(|error| format!("the answer is not HTTP: {error}"))
}

/// The innermost cause: the outer ones only say that a request failed, and contain the URL.
fn root(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    if error.source().is_none() { "the request failed".to_owned() } else { cause.to_string() }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_call_beyond_the_bound_waits_for_its_turn() {
        let url = BaseUrl::parse("http://127.0.0.1:1").unwrap();
        let http = Http::new(url, Proxy::None, TimeLimits::default());
        let mut under_way = Vec::new();
        for _ in 0..CALLS {
            under_way.push(http.turn().await);
        }
        assert!(tokio::task::unconstrained(http.turn()).now_or_never().is_none());
        under_way.pop();
        assert!(tokio::task::unconstrained(http.turn()).now_or_never().is_some());
    }
}
