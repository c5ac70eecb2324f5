//! Streamable HTTP, with the current token on every request.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::stream::BoxStream;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
    StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;

use crate::config::Remote;
use crate::oauth::{Authority, Rejection};

/// The largest event of a stream that is taken.
const MAX_EVENT: usize = 16 << 20;
/// Retries of one request with another token.
const ATTEMPTS: usize = 4;

type Failure = StreamableHttpError<reqwest::Error>;

#[derive(Clone)]
pub(crate) struct Authorized {
    http: reqwest::Client,
    authority: Arc<Authority>,
}

pub(crate) fn transport(
    client: Authorized,
    remote: &Remote,
    headers: &HeaderMap,
) -> StreamableHttpClientTransport<Authorized> {
    let config = StreamableHttpClientTransportConfig::with_uri(remote.url.clone())
        .custom_headers(listed(headers))
        .max_sse_event_size(MAX_EVENT);
    StreamableHttpClientTransport::with_client(client, config)
}

fn listed(headers: &HeaderMap) -> HashMap<HeaderName, HeaderValue> {
    headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
}

impl Authorized {
    pub(crate) fn new(http: reqwest::Client, authority: Arc<Authority>) -> Self {
        Self { http, authority }
    }

    /// A stream of events, none larger than the bound.
    pub(crate) async fn events(
        &self,
        url: &str,
        headers: &HeaderMap,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        self.get_stream(url.into(), None, None, None, listed(headers)).await
    }

    /// Posts a message to an address of the same server.
    pub(crate) async fn post(
        &self,
        url: &str,
        headers: &HeaderMap,
        message: ClientJsonRpcMessage,
    ) -> Result<(), Failure> {
        self.post_message(url.into(), message, None, None, listed(headers)).await.map(drop)
    }

    /// Makes a request with the current token, and repeats it with a new one while the server rejects the token.
    async fn with_token<T, F>(&self, request: impl Fn(Option<String>) -> F + Send) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>> + Send,
    {
        for _ in 1..ATTEMPTS {
            let token = self.authority.bearer().await;
            match request(token.clone()).await {
                Err(failure) => self.renew(token.as_deref(), failure).await?,
                answer => return answer,
            }
        }
        request(self.authority.bearer().await).await
    }

    /// Gets a new token if the server rejected the current one.
    async fn renew(&self, token: Option<&str>, failure: Failure) -> Result<(), Failure> {
        let rejection = match &failure {
            StreamableHttpError::AuthRequired(error) => {
                Rejection::unauthorized(&error.www_authenticate_header)
            }
            StreamableHttpError::InsufficientScope(error) => {
                Rejection::forbidden(&error.www_authenticate_header)
            }
            _ => return Err(failure),
        };
        self.authority.renew(token, &rejection).await.map_err(|_| failure)
    }
}

impl StreamableHttpClient for Authorized {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.with_token(|token| {
            self.http.post_message_with_max_sse_event_size(
                Arc::clone(&uri),
                message.clone(),
                session_id.clone(),
                token,
                custom_headers.clone(),
                MAX_EVENT,
            )
        })
        .await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        let token = self.authority.bearer().await;
        self.http.delete_session(uri, session_id, token, custom_headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        self.with_token(|token| {
            self.http.get_stream_with_max_sse_event_size(
                Arc::clone(&uri),
                session_id.clone(),
                last_event_id.clone(),
                token,
                custom_headers.clone(),
                MAX_EVENT,
            )
        })
        .await
    }
}
