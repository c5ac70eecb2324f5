//! Requests over HTTP: one client for each provider, built when it is first needed.

use std::error::Error as _;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::StreamExt;
use hangar_agent::courier::{Courier, Inbound, Outbound};
use hangar_agent::model::{ModelError, ModelErrorKind};
use reqwest::header::HeaderMap;
use reqwest::redirect::Policy;
use reqwest::{Client, Response, Url};
use rustls::{ClientConfig, RootCertStore};

use crate::base_url::BaseUrl;
use crate::config::{Proxy, TimeLimits};
use crate::error;

/// What of the body of an error is read.
const ERROR_BODY: usize = 64 * 1024;
/// What of any other body is read.
pub(crate) const BODY: usize = 64 * 1024 * 1024;

pub(crate) struct Http {
    base_url: BaseUrl,
    proxy: Proxy,
    limits: TimeLimits,
    client: OnceLock<Client>,
    courier: Option<Arc<dyn Courier>>,
}

impl Http {
    pub(crate) fn new(base_url: BaseUrl, proxy: Proxy, limits: TimeLimits) -> Self {
        Self { base_url, proxy, limits, client: OnceLock::new(), courier: None }
    }

    /// Has someone else make the requests.
    pub(crate) fn carried_by(self, courier: Option<Arc<dyn Courier>>) -> Self {
        Self { courier, ..self }
    }

    pub(crate) fn limits(&self) -> TimeLimits {
        self.limits
    }

    /// `limit` is for the head of the answer.
    pub(crate) async fn post(
        &self,
        url: Url,
        headers: HeaderMap,
        body: Vec<u8>,
        limit: Duration,
    ) -> Result<Response, ModelError> {
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

    /// The answer, once its head is there, unless it says no.
    async fn send(&self, request: reqwest::RequestBuilder, limit: Duration) -> Result<Response, ModelError> {
        let mut response = match &self.courier {
            Some(courier) => {
                let outbound = outbound(request.build().map_err(|error| self.unsent(&error))?);
                let carried = tokio::time::timeout(limit, courier.carry(outbound)).await;
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

    /// The connection broke while an answer was on its way.
    pub(crate) fn broken(&self, cause: &reqwest::Error) -> ModelError {
        let why = root(cause);
        error::bare(
            ModelErrorKind::Cut,
            format!("the answer of the model provider at {} broke off: {why}", self.base_url),
        )
    }

    /// The answer ended, but not with the mark that ends an answer.
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
        let client = self.build().map_err(|cause| {
            let message = format!("no connection to {} can be made: {}", self.base_url, root(&cause));
            error::bare(ModelErrorKind::Configuration, message)
        })?;
        Ok(self.client.get_or_init(|| client))
    }

    fn build(&self) -> Result<Client, reqwest::Error> {
        let provider = rustls::crypto::ring::default_provider();
        let mut builder = Client::builder()
            .user_agent(concat!("hangar/", env!("CARGO_PKG_VERSION")))
            // A key must not follow a redirect to another host.
            .redirect(Policy::none())
            // The loop decides on every retry.
            .retry(reqwest::retry::never())
            .http1_only()
            .connect_timeout(self.limits.connect);
        if self.proxy == Proxy::None || self.base_url.is_loopback() {
            builder = builder.no_proxy();
        }
        if self.base_url.is_plain() {
            // Reading the machine's certificates takes longer than a whole local call.
            let versions =
                ClientConfig::builder_with_provider(Arc::new(provider)).with_safe_default_protocol_versions();
            if let Ok(versions) = versions {
                let tls = versions.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
                builder = builder.tls_backend_preconfigured(tls);
            }
        } else {
            // Fails if one is installed already, which serves as well.
            let _ = provider.install_default();
        }
        builder.build()
    }
}

fn outbound(request: reqwest::Request) -> Outbound {
    let headers = request.headers().iter();
    Outbound {
        method: request.method().to_string(),
        url: request.url().to_string(),
        headers: headers
            .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
            .collect(),
        body: request.body().and_then(reqwest::Body::as_bytes).unwrap_or_default().to_vec(),
    }
}

fn received(inbound: Inbound) -> Result<Response, String> {
    let mut response = hyper::http::Response::builder().status(inbound.status);
    for (name, value) in &inbound.headers {
        response = response.header(name, value);
    }
    let body = reqwest::Body::wrap_stream(inbound.body.map(|piece| piece.map_err(std::io::Error::other)));
    response.body(body).map(Response::from).map_err(|error| format!("the answer is not HTTP: {error}"))
}

/// The innermost cause: the outer ones only say that a request failed, and name the URL.
fn root(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    if error.source().is_none() { "the request failed".to_owned() } else { cause.to_string() }
}
