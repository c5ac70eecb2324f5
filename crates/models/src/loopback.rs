//! HTTP/1 on loopback for stand-ins of a provider: the scripted model and the simulators of vendors.
//!
//! It accepts, bounds and cuts connections and reads bodies. A [`Service`] provides the responses.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_core::stream::BoxStream;
use futures_util::FutureExt;
use http_body_util::{BodyExt, Either, Full, LengthLimitError, Limited, StreamBody};
use hyper::body::{Body as _, Frame, Incoming};
use hyper::header::CONTENT_ENCODING;
use hyper::http::request::Parts;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const MAX_CONNECTIONS: usize = 1024;
/// The longest body that is read.
pub const MAX_BODY: usize = 64 * 1024 * 1024;
const BODY_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a connection may stay without a request.
const IDLE_TIMEOUT: Duration = Duration::from_secs(300);
/// Pause after a failed accept: without file descriptors, the next one would fail at once too.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A response body, whole or in pieces.
pub type ResponseBody = Either<Full<Bytes>, StreamBody<BoxStream<'static, Result<Frame<Bytes>, Cut>>>>;

/// Cuts the connection in the middle of a response.
#[derive(Debug, thiserror::Error)]
#[error("the script cut the connection")]
pub struct Cut;

/// Answers requests.
pub trait Service: Send + Sync + 'static {
    fn respond(
        &self,
        request: Request<Incoming>,
    ) -> impl Future<Output = Result<Response<ResponseBody>, Cut>> + Send;
}

/// Serves until `shutdown`, then cuts the open connections.
pub async fn serve<S: Service>(
    listener: TcpListener,
    service: Arc<S>,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let address = listener.local_addr()?;
    if !address.ip().is_loopback() {
        return Err(not_loopback(address));
    }
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(FutureExt::boxed(converse(stream, Arc::clone(&service))));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection on loopback was not accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
    connections.shutdown().await;
    Ok(())
}

fn not_loopback(address: SocketAddr) -> io::Error {
    let message = format!("models are served on loopback only, not on {address}");
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

async fn converse<S: Service>(stream: TcpStream, service: Arc<S>) {
    // Small events must not wait for each other. If this fails, they are only delayed.
    let _ = stream.set_nodelay(true);
    let answer = hyper::service::service_fn(move |request| {
        let service = Arc::clone(&service);
        async move { service.respond(request).await }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_TIMEOUT)
        .serve_connection(TokioIo::new(stream), answer)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection on loopback ended early");
    }
}

/// Reason why a body was not read, as an HTTP status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    pub status: u16,
    pub message: String,
}

/// Reads the body of a request, within bounds of size and time.
pub async fn read_body(head: &Parts, body: Incoming) -> Result<Bytes, Unread> {
    let unread = |status, message: &str| Unread { status, message: message.to_owned() };
    if let Some(encoding) = head.headers.get(CONTENT_ENCODING).filter(|encoding| *encoding != "identity") {
        let encoding = String::from_utf8_lossy(encoding.as_bytes());
        return Err(unread(415, &format!("bodies in the encoding `{encoding}` are not read")));
    }
    let too_long = || unread(413, &format!("the body has more than {MAX_BODY} bytes"));
    if body.size_hint().lower() > MAX_BODY as u64 {
        return Err(too_long());
    }
    match tokio::time::timeout(BODY_TIMEOUT, Limited::new(body, MAX_BODY).collect()).await {
        Err(_) => Err(unread(408, "the body did not arrive in time")),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_long()),
        Ok(Err(_)) => Err(unread(400, "the body broke off")),
        Ok(Ok(body)) => Ok(body.to_bytes()),
    }
}
