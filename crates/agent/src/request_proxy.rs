//! Request proxies: hosts that make a provider's requests, or provide its credential, in its place.

use futures_core::stream::BoxStream;
use futures_util::future::BoxFuture;

/// An outgoing request.
#[derive(Debug, Clone)]
pub struct ProxiedRequest {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub transport: Transport,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Http,
    /// The body is the one message that is sent; the response's pieces are the messages that come back.
    WebSocket,
}

/// An incoming response. An `Err` in the body is a connection that broke.
pub struct ProxiedResponse {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: BoxStream<'static, Result<Vec<u8>, String>>,
}

/// Transport for requests in place of the network. Dropping the returned future cancels the request.
pub trait RequestProxy: Send + Sync {
    fn carry(&self, request: ProxiedRequest) -> BoxFuture<'static, Result<ProxiedResponse, String>>;
}

/// Source of current credentials, by the provider's name.
pub trait TokenSource: Send + Sync {
    fn token(&self, provider: &str) -> BoxFuture<'static, Result<String, String>>;
}
