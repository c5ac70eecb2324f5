//! Someone who makes a provider's requests in its place: a host that has its own way to the models, or its own way to a
//! credential.

use futures_core::stream::BoxStream;
use futures_util::future::BoxFuture;

/// A request on its way out.
#[derive(Debug, Clone)]
pub struct Outbound {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub transport: Transport,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Http,
    /// The body is the one message that is sent; the pieces of the answer are the messages that come back.
    WebSocket,
}

/// The answer on its way in. An `Err` in the body is a connection that broke.
pub struct Inbound {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: BoxStream<'static, Result<Vec<u8>, String>>,
}

/// Carries requests in place of the network. Dropping what it returned cancels the request.
pub trait Courier: Send + Sync {
    fn carry(&self, request: Outbound) -> BoxFuture<'static, Result<Inbound, String>>;
}

/// Knows the credential of the moment, by the provider's name.
pub trait TokenSource: Send + Sync {
    fn token(&self, provider: &str) -> BoxFuture<'static, Result<String, String>>;
}
