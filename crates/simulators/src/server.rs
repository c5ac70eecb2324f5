//! Simulators on loopback: one of them at the root, several each below its name.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use hangar_models::loopback::{self, Cut, ResponseBody, Service, Unread};
use http_body_util::{Either, Full, StreamBody};
use hyper::body::{Frame as BodyFrame, Incoming};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{HeaderMap, Response, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::record::{Failures, UsageTotals};
use crate::refusal::Refusal;
use crate::request::Request;
use crate::simulator::Simulator;
use crate::stream::{StreamFrame, VendorResponse};

/// Simulators on a port of their own, in a thread of their own, until dropped.
pub struct Server {
    address: SocketAddr,
    simulators: Arc<Simulators>,
    shutdown: CancellationToken,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Server {
    pub fn start(simulators: Vec<Simulator>) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let simulators = Arc::new(Simulators(simulators));
        let shutdown = CancellationToken::new();
        let (served, stopped) = (Arc::clone(&simulators), shutdown.clone());
        let thread = std::thread::Builder::new().name("simulators".to_owned()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime
                .block_on(async { loopback::serve(TcpListener::from_std(listener)?, served, stopped).await })
        })?;
        Ok(Self { address, simulators, shutdown, thread: Some(thread) })
    }

    /// One simulator at the root.
    pub fn of(simulator: Simulator) -> io::Result<Self> {
        Self::start(vec![simulator])
    }

    /// `http://127.0.0.1:PORT`, and the name behind it if there are several simulators.
    pub fn url(&self, name: &str) -> String {
        match &*self.simulators.0 {
            [_] => format!("http://{}", self.address),
            _ => format!("http://{}/{name}", self.address),
        }
    }

    /// The simulator of this name.
    pub fn simulator(&self, name: &str) -> Option<&Simulator> {
        self.simulators.0.iter().find(|simulator| simulator.name() == name)
    }

    /// Refusals that no scenario expected, of all simulators.
    pub fn refusals(&self) -> Vec<Refusal> {
        self.simulators.0.iter().flat_map(Simulator::refusals).collect()
    }

    /// Fails with the errors of any simulator; otherwise returns the totals of all, by name.
    pub fn finish(&self) -> Result<Vec<(String, UsageTotals)>, Failures> {
        let mut totals = Vec::new();
        let mut problems = Vec::new();
        for simulator in &self.simulators.0 {
            let name = simulator.name();
            match simulator.finish() {
                Ok(counted) => totals.push((name.to_owned(), counted)),
                Err(Failures(told)) => {
                    problems.extend(told.iter().map(|problem| format!("{name}: {problem}")));
                }
            }
        }
        if problems.is_empty() { Ok(totals) } else { Err(Failures(problems)) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shutdown.cancel();
        if let Some(thread) = self.thread.take() {
            // The thread's panic has been printed; a second one while a test unwinds would hide the first.
            let _ = thread.join();
        }
    }
}

/// Serves simulators until `shutdown`.
pub async fn serve(
    listener: TcpListener,
    simulators: Vec<Simulator>,
    shutdown: CancellationToken,
) -> io::Result<()> {
    loopback::serve(listener, Arc::new(Simulators(simulators)), shutdown).await
}

struct Simulators(Vec<Simulator>);

impl Simulators {
    /// The simulator that a path is for, with the rest of the path.
    fn route<'p>(&self, path: &'p str) -> Option<(&Simulator, &'p str)> {
        let named = self.0.iter().find_map(|simulator| {
            let rest = path.strip_prefix('/')?.strip_prefix(simulator.name())?;
            (rest.is_empty() || rest.starts_with('/')).then_some((simulator, rest))
        });
        match &*self.0 {
            [only] => named.or(Some((only, path))),
            _ => named,
        }
    }

    /// Endpoints of the server itself: totals, and a health check.
    fn own(&self, path: &str) -> Option<Value> {
        match path {
            "" => Some(json!({"ok": true})),
            "/__stats" => Some(self.0.iter().map(Simulator::stats).collect()),
            _ => None,
        }
    }
}

impl Service for Simulators {
    async fn respond(&self, request: hyper::Request<Incoming>) -> Result<Response<ResponseBody>, Cut> {
        let (head, body) = request.into_parts();
        let path = head.uri.path().trim_end_matches('/').to_owned();
        if let Some(own) = self.own(&path) {
            return Ok(respond(VendorResponse::ok(own)));
        }
        let Some((simulator, rest)) = self.route(&path) else {
            let names: Vec<_> = self.0.iter().map(Simulator::name).collect();
            let message = format!("no simulator is served at {path}; there are {}", names.join(", "));
            return Ok(respond(VendorResponse::Whole {
                status: 404,
                headers: Vec::new(),
                body: json!({"error": message}),
            }));
        };
        if rest.is_empty() && head.method != hyper::Method::POST {
            return Ok(respond(VendorResponse::ok(json!({"ok": true, "vendor": simulator.name()}))));
        }
        let raw = match loopback::read_body(&head, body).await {
            Ok(raw) => raw,
            Err(Unread { status, message }) => {
                let body = json!({"error": {"type": "invalid_request_error", "message": message}});
                return Ok(respond(VendorResponse::Whole { status, headers: Vec::new(), body }));
            }
        };
        let request = Request {
            method: head.method.as_str().to_owned(),
            path: rest.to_owned(),
            query: head.uri.query().unwrap_or_default().to_owned(),
            headers: head.headers,
            size: raw.len(),
            body: serde_json::from_slice(&raw).unwrap_or(Value::Null),
            strictness: simulator.strictness(),
        };
        Ok(respond(simulator.answer(&request)))
    }
}

fn respond(answer: VendorResponse) -> Response<ResponseBody> {
    match answer {
        VendorResponse::Whole { status, headers, body } => {
            let mut response = Response::new(Either::Left(Full::new(Bytes::from(body.to_string()))));
            *response.status_mut() =
                StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            extend(response.headers_mut(), headers);
            response
        }
        VendorResponse::Stream { headers, frames } => {
            let frames = stream::iter(frames).filter_map(play);
            let mut response = Response::new(Either::Right(StreamBody::new(frames.boxed())));
            let own = response.headers_mut();
            own.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
            own.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
            extend(own, headers);
            response
        }
    }
}

/// The connection pulls the frames: a slow reader slows the stream down, and a disconnect ends it.
async fn play(frame: StreamFrame) -> Option<Result<BodyFrame<Bytes>, Cut>> {
    match frame {
        StreamFrame::Data(bytes) => Some(Ok(BodyFrame::data(bytes))),
        StreamFrame::Wait(delay) => {
            tokio::time::sleep(delay).await;
            None
        }
        StreamFrame::Cut => {
            // Being pending once lets the connection flush the previous output.
            tokio::task::yield_now().await;
            Some(Err(Cut))
        }
    }
}

fn extend(headers: &mut HeaderMap, more: Vec<(String, String)>) {
    for (name, value) in more {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.insert(name, value);
        }
    }
}

#[cfg(test)]
mod tests;
