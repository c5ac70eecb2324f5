//! Connections: how many, how long they may take to say something, and how they end.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::middleware::{self, Next};
use futures_util::FutureExt;
use futures_util::StreamExt;
use futures_util::stream::unfold;
use hangar_peer::{PendingConnection, PendingConnections};
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Connections at once. Each reader of a stream has one.
const MOST_CONNECTIONS: usize = 2048;
/// Connections among them without a request that the guard admitted. The oldest makes room for a new one.
const MOST_PENDING: usize = 256;
/// Timeout of a request's head.
const HEAD_TIME: Duration = Duration::from_secs(15);
/// Longest pause within a body.
pub(crate) const BODY_TIME: Duration = Duration::from_secs(30);
/// Maximum size of a request's head, and number of its headers.
const HEAD_BYTES: usize = 64 << 10;
const HEADERS: usize = 100;
/// Longest time that a client may accept no bytes.
const WRITE_TIME: Duration = Duration::from_secs(30);
/// Time that requests have to end once the portal stops.
const DRAIN: Duration = Duration::from_secs(5);

/// Serves until stopped, then lets requests in progress end.
pub async fn serve(listener: TcpListener, router: Router, stopping: CancellationToken) {
    hangar_process::allow_many_files();
    let router = patient(router);
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let pending = PendingConnections::new(MOST_PENDING);
    let connections = TaskTracker::new();
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { break };
        let stream = tokio::select! {
            stream = hangar_peer::accept(&listener) => stream,
            () = stopping.cancelled() => break,
        };
        let (router, stopping, place) = (router.clone(), stopping.clone(), AdmissionSlot::new(&pending));
        connections.spawn(FutureExt::boxed(async move {
            let _permit = permit;
            connection(stream, router, stopping, place).await;
        }));
    }
    drop(listener);
    connections.close();
    let _ = tokio::time::timeout(DRAIN, connections.wait()).await;
}

/// A connection's place among those that are not admitted. Every request of the connection has it.
#[derive(Clone)]
pub(crate) struct AdmissionSlot(Arc<PendingConnection>);

impl AdmissionSlot {
    fn new(pending: &PendingConnections) -> Self {
        Self(Arc::new(pending.register()))
    }

    /// Keeps the connection: one of its requests was admitted.
    pub(crate) fn admit(&self) {
        self.0.admit();
    }
}

/// A body that stopped coming.
#[derive(Debug, thiserror::Error)]
#[error("no data of the body arrived for {} s", BODY_TIME.as_secs())]
pub(crate) struct Stalled;

impl Stalled {
    /// Whether a body could not be read for this reason.
    pub(crate) fn caused(error: &(dyn std::error::Error + 'static)) -> bool {
        error.is::<Stalled>() || error.source().is_some_and(Self::caused)
    }
}

/// Times out bodies that stall.
fn patient(router: Router) -> Router {
    router.layer(middleware::from_fn(|request: Request, next: Next| {
        next.run(request.map(|body| {
            let pieces = unfold(Some(body.into_data_stream()), |pieces| async {
                let mut pieces = pieces?;
                Some(match tokio::time::timeout(BODY_TIME, pieces.next()).await {
                    Ok(piece) => (piece?.map_err(axum::BoxError::from), Some(pieces)),
                    Err(_) => (Err(Stalled.into()), None),
                })
            });
            Body::from_stream(pieces)
        }))
    }))
}

async fn connection<S>(stream: S, router: Router, stopping: CancellationToken, place: AdmissionSlot)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let service = TowerToHyperService::new(router);
    let of_requests = place.clone();
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(of_requests.clone());
        service.call(request)
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD_BYTES)
        .max_headers(HEADERS)
        .serve_connection(TokioIo::new(Patient::new(stream)), service);
    tokio::pin!(served);
    // Errors of connections are about clients that went away or say no HTTP.
    tokio::select! {
        _ = served.as_mut() => {}
        () = place.0.evicted() => {}
        () = stopping.cancelled() => {
            served.as_mut().graceful_shutdown();
            let _ = served.await;
        }
    }
}

/// A connection that is given up when the other side takes nothing for too long.
struct Patient<S> {
    stream: S,
    deadline: Pin<Box<Sleep>>,
    waiting: bool,
}

impl<S> Patient<S> {
    fn new(stream: S) -> Self {
        Self { stream, deadline: Box::pin(tokio::time::sleep(WRITE_TIME)), waiting: false }
    }

    fn watch<T>(&mut self, polled: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.waiting = false;
            return polled;
        }
        if !self.waiting {
            self.waiting = true;
            self.deadline.as_mut().reset(Instant::now() + WRITE_TIME);
        }
        match self.deadline.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(polled, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.watch(polled, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(context);
        self.watch(polled, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use axum::Extension;
    use axum::routing::{get, post};
    use bytes::Bytes;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
    use tokio::task::JoinHandle;

    use super::*;

    /// Capacity of the connection while the other side does not read.
    const PIPE: usize = 1024;
    const LARGE: usize = 64 * PIPE;
    /// Longer than anything here may take. The clock is the test's.
    const HOUR: Duration = Duration::from_secs(3600);

    struct Client {
        stream: DuplexStream,
        served: JoinHandle<()>,
        began: Instant,
    }

    fn client() -> Client {
        client_in(&PendingConnections::new(1))
    }

    fn client_in(pending: &PendingConnections) -> Client {
        let length = |body: Bytes| async move { body.len().to_string() };
        let admit = |Extension(place): Extension<AdmissionSlot>| async move { place.admit() };
        let router = Router::new()
            .route("/", get(|| async { "x".repeat(LARGE) }))
            .route("/length", post(length))
            .route("/admit", get(admit));
        let (stream, server) = tokio::io::duplex(PIPE);
        let place = AdmissionSlot::new(pending);
        let served = tokio::spawn(connection(server, patient(router), CancellationToken::new(), place));
        Client { stream, served, began: Instant::now() }
    }

    impl Client {
        async fn say(&mut self, text: &str) {
            self.stream.write_all(text.as_bytes()).await.unwrap();
        }

        /// Bytes of the connection until it closes, and the time that it took.
        async fn hear(&mut self) -> (String, Duration) {
            let mut text = String::new();
            let end = self.stream.read_to_string(&mut text);
            tokio::time::timeout(HOUR, end).await.expect("it ends").unwrap();
            (text, self.began.elapsed())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_end_a_head_is_given_up() {
        for begun in ["", "GET / HTTP/1.1\r\nhost: x\r\n"] {
            let mut client = client();
            client.say(begun).await;
            let (_, took) = client.hear().await;
            assert!(took >= HEAD_TIME && took < HEAD_TIME + WRITE_TIME, "{begun:?}: {took:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_not_admitted_makes_room_for_others() {
        let pending = PendingConnections::new(2);
        let mut admitted = client_in(&pending);
        admitted.say("GET /admit HTTP/1.1\r\nhost: x\r\n\r\n").await;
        let mut answer = [0; PIPE];
        let count = admitted.stream.read(&mut answer).await.unwrap();
        assert!(answer[..count].starts_with(b"HTTP/1.1 200"));
        let mut others: Vec<Client> = (0..3).map(|_| client_in(&pending)).collect();
        let (_, took) = others[0].hear().await;
        assert_eq!(took, Duration::ZERO);
        for client in std::iter::once(&mut admitted).chain(&mut others[1..]) {
            let (_, took) = client.hear().await;
            assert!(took >= HEAD_TIME, "{took:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_is_kept_for_later_is_not_kept_for_long() {
        let mut client = client();
        client.say("POST /length HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\nhi").await;
        let (text, took) = client.hear().await;
        assert!(text.ends_with("\r\n\r\n2"), "{text}");
        assert!(took >= HEAD_TIME && took < HEAD_TIME + WRITE_TIME, "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_stops_in_the_middle_of_a_body_is_given_up() {
        let mut client = client();
        client.say("POST /length HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhal").await;
        let (text, took) = client.hear().await;
        assert!(text.starts_with("HTTP/1.1 4"), "{text}");
        assert!(took >= BODY_TIME && took < BODY_TIME + HEAD_TIME, "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_sends_a_body_slowly_is_heard_out() {
        let mut client = client();
        client
            .say("POST /length HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 9\r\n\r\n")
            .await;
        for piece in ["hal", "f a", " da"] {
            tokio::time::sleep(BODY_TIME - Duration::from_secs(1)).await;
            client.say(piece).await;
        }
        let (text, _) = client.hear().await;
        assert!(text.ends_with("\r\n\r\n9"), "{text}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_takes_nothing_of_an_answer_is_given_up() {
        let mut client = client();
        client.say("GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
        tokio::time::timeout(HOUR, &mut client.served).await.expect("it ends").unwrap();
        assert_eq!(client.began.elapsed(), WRITE_TIME);
    }

    #[tokio::test(start_paused = true)]
    async fn who_takes_an_answer_slowly_gets_all_of_it() {
        let mut client = client();
        client.say("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
        let mut taken = Vec::new();
        let mut piece = [0; PIPE];
        loop {
            tokio::time::sleep(WRITE_TIME - Duration::from_secs(1)).await;
            match client.stream.read(&mut piece).await.unwrap() {
                0 => break,
                length => taken.extend_from_slice(&piece[..length]),
            }
        }
        assert!(taken.ends_with(&[b'x'; LARGE]), "{}", taken.len());
    }
}
