//! The scripted model on a socket, for programs that need a provider: chat completions, responses and messages,
//! streamed or not, with the small endpoints that clients call before or beside them.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use hangar_agent::model::Finish;
use http_body_util::{Either, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Method, Request, Response, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::dialect::{AnswerFinish, AnswerHead, AnswerWriter, Dialect, SseEvent, encode};
use super::request_log::{RequestEntry, RequestLog, RequestOutcome};
use super::script::{Script, ScriptedFailure};
use super::turn::{Beat, Beats, Pace, Playbook, tokens};
use crate::loopback::{self, Cut, ResponseBody, Service, Unread};

/// Number of different paths that are counted; requests to further ones count only in the sum.
const MAX_PATHS: usize = 256;

#[derive(Debug)]
pub struct ServeOptions {
    pub script: Script,
    /// The models that `GET …/models` lists. Requests may name any.
    pub models: Vec<String>,
    /// Gets a line of JSON for each request.
    pub log: Option<File>,
    pub clock: fn() -> SystemTime,
}

impl ServeOptions {
    pub fn new(script: Script, clock: fn() -> SystemTime) -> Self {
        let models = ["mock-model", "gpt-5", "claude-sonnet-4"].map(str::to_owned).to_vec();
        Self { script, models, log: None, clock }
    }
}

/// Serves until `shutdown`, then cuts the open connections.
pub async fn serve(
    listener: TcpListener,
    options: ServeOptions,
    shutdown: CancellationToken,
) -> io::Result<()> {
    loopback::serve(listener, Arc::new(ServedModel::new(options)), shutdown).await
}

struct ServedModel {
    playbook: Playbook,
    models: Vec<String>,
    log: Option<Arc<RequestLog>>,
    clock: fn() -> SystemTime,
    counters: Mutex<Counters>,
}

#[derive(Debug, Default)]
struct Counters {
    requests: u64,
    paths: BTreeMap<String, u64>,
}

impl Counters {
    fn count(&mut self, path: &str) -> u64 {
        self.requests += 1;
        if let Some(count) = self.paths.get_mut(path) {
            *count += 1;
        } else if self.paths.len() < MAX_PATHS {
            self.paths.insert(path.to_owned(), 1);
        }
        self.requests
    }
}

impl ServedModel {
    fn new(options: ServeOptions) -> Self {
        Self {
            playbook: Playbook::new(options.script),
            models: options.models,
            log: options.log.map(|file| Arc::new(RequestLog::new(file))),
            clock: options.clock,
            counters: Mutex::default(),
        }
    }

    fn get(&self, path: &str) -> Answered {
        Answered::Now(if path.ends_with("/models") {
            let models = self.models.iter().map(|model| {
                json!({
                    "id": model, "object": "model", "type": "model", "display_name": model, "created": 0,
                    "created_at": "2025-01-01T00:00:00Z", "owned_by": "mock",
                })
            });
            ok(&json!({"object": "list", "data": models.collect::<Value>(), "has_more": false}))
        } else if path == "/__stats" {
            let counters = self.counters.lock();
            ok(&json!({"requests": counters.requests, "paths": counters.paths}))
        } else if path.is_empty() {
            ok(&json!({"ok": true}))
        } else {
            refuse(404, &format!("nothing is served at {path}")).response(path)
        })
    }

    async fn post(
        &self,
        path: &str,
        raw: &[u8],
        moment: Moment,
        entry: &mut RequestEntry,
    ) -> Result<Answered, Cut> {
        if path == "/__reset" {
            *self.counters.lock() = Counters::default();
            self.playbook.reset();
            return Ok(Answered::Now(ok(&json!({"ok": true}))));
        }
        let Some(body) = read_body(raw, entry.is_kept()) else {
            return Ok(Answered::Now(refuse(400, "the body is not a JSON object").response(path)));
        };
        entry.body(&body);
        if path.ends_with("/count_tokens") {
            return Ok(Answered::Now(ok(&json!({"input_tokens": raw.len() / 4}))));
        }
        let Some(dialect) = Dialect::of_path(path) else {
            return Ok(Answered::Now(refuse(404, &format!("nothing is served at {path}")).response(path)));
        };

        let turn = self.playbook.turn(&dialect.asked(&body));
        entry.plan(&turn.steps);
        if let Some(failure) = turn.failure {
            let message = failure.message();
            return Ok(Answered::Now(Refusal { failure, message }.response(path)));
        }
        let id = format!("{:x}{:04x}", moment.now.as_millis() as u32, moment.number as u16);
        let head = AnswerHead {
            id,
            model: body["model"].as_str().unwrap_or("mock").to_owned(),
            created: moment.now.as_secs(),
            input_tokens: tokens(raw.len()),
        };
        let performance = Performance {
            finish: turn.finish(),
            beats: turn.beats(&head.id),
            pace: Pace::new(),
            answer: dialect.answer(head, &body),
            said_bytes: 0,
        };
        if body["stream"] == true {
            Ok(Answered::Streamed(performance))
        } else {
            performance.whole().await.map(|whole| Answered::Now(ok(&whole)))
        }
    }
}

impl Service for ServedModel {
    async fn respond(&self, request: Request<Incoming>) -> Result<Response<ResponseBody>, Cut> {
        let (head, body) = request.into_parts();
        let path = head.uri.path().trim_end_matches('/').to_owned();
        let number = self.counters.lock().count(&path);
        let now = (self.clock)().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut entry = RequestEntry::new(self.log.clone(), number, now.as_secs_f64(), &head);
        let answered = match head.method {
            Method::GET | Method::HEAD => Ok(self.get(&path)),
            Method::POST => match loopback::read_body(&head, body).await {
                Ok(raw) => self.post(&path, &raw, Moment { number, now }, &mut entry).await,
                Err(Unread { status, message }) => {
                    Ok(Answered::Now(refuse(status, &message).response(&path)))
                }
            },
            _ => Ok(Answered::Now(refuse(405, &format!("{} is not served", head.method)).response(&path))),
        };
        match answered {
            Ok(Answered::Now(response)) => {
                entry.outcome = RequestOutcome::Status(response.status().as_u16());
                Ok(response.map(|whole| Either::Left(Full::new(whole))))
            }
            Ok(Answered::Streamed(performance)) => Ok(stream_response(performance, entry)),
            Err(cut) => {
                entry.outcome = RequestOutcome::Cut;
                Err(cut)
            }
        }
    }
}

/// The body of a request, if it is an object. Schemas of tools are left out unless it is read `whole`: there may be
/// hundreds, and they are not used here.
fn read_body(raw: &[u8], whole: bool) -> Option<Value> {
    /// The parts that the answer may depend on.
    #[derive(Serialize, Deserialize)]
    struct Tool {
        #[serde(rename = "type", default)]
        kind: Value,
        #[serde(default)]
        name: Value,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tools: Vec<Tool>,
    }

    if whole {
        return serde_json::from_slice(raw).ok().map(Value::Object);
    }
    let fields: BTreeMap<String, &RawValue> = serde_json::from_slice(raw).ok()?;
    let fields = fields.into_iter().map(|(name, text)| {
        let tools = if name == "tools" { serde_json::from_str::<Vec<Tool>>(text.get()).ok() } else { None };
        let value = tools.map_or_else(|| serde_json::from_str(text.get()), |tools| Ok(json!(tools)));
        value.ok().map(|value| (name, value))
    });
    fields.collect::<Option<Map<_, _>>>().map(Value::Object)
}

/// Time of arrival of a request.
#[derive(Clone, Copy)]
struct Moment {
    number: u64,
    now: Duration,
}

enum Answered {
    Now(Response<Bytes>),
    Streamed(Performance),
}

/// An answer in progress: the turn, and the dialect that it is written in.
struct Performance {
    beats: Beats,
    pace: Pace,
    answer: Box<dyn AnswerWriter>,
    finish: Finish,
    said_bytes: usize,
}

enum Moved {
    Said(Vec<SseEvent>),
    Ended(Vec<SseEvent>),
}

impl Performance {
    /// Plays until there is something to send.
    async fn advance(&mut self) -> Result<Moved, Cut> {
        loop {
            tokio::task::consume_budget().await;
            match self.beats.next() {
                Some(Beat::Wait(delay)) => self.pace.wait(delay).await,
                Some(Beat::Say(said)) => {
                    self.said_bytes += said.bytes();
                    return Ok(Moved::Said(self.answer.say(said)));
                }
                Some(Beat::Cut) => {
                    // Being pending once lets the connection flush the previous output.
                    tokio::task::yield_now().await;
                    return Err(Cut);
                }
                None => {
                    let end = self.end();
                    return Ok(Moved::Ended(self.answer.finish(&end)));
                }
            }
        }
    }

    fn end(&self) -> AnswerFinish {
        AnswerFinish { finish: self.finish.clone(), output_tokens: tokens(self.said_bytes) }
    }

    async fn whole(mut self) -> Result<Value, Cut> {
        self.answer.start();
        while let Moved::Said(_) = self.advance().await? {}
        Ok(self.answer.whole(&self.end()))
    }
}

/// The answer as the connection pulls it: a slow reader slows the script down, and a disconnect ends it.
fn stream_response(mut performance: Performance, entry: RequestEntry) -> Response<ResponseBody> {
    let first = encode(&performance.answer.start());
    let rest = stream::unfold(Some((performance, entry)), |playing| async {
        let (mut performance, mut entry) = playing?;
        match performance.advance().await {
            Ok(Moved::Said(events)) => Some((Ok(encode(&events)), Some((performance, entry)))),
            Ok(Moved::Ended(events)) => {
                entry.outcome = RequestOutcome::Status(200);
                Some((Ok(encode(&events)), None))
            }
            Err(cut) => {
                entry.outcome = RequestOutcome::Cut;
                Some((Err(cut), None))
            }
        }
    });
    let frames = stream::iter([Ok(first)]).chain(rest).map(|bytes| bytes.map(Frame::data));
    let mut response = Response::new(Either::Right(StreamBody::new(frames.boxed())));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// An error in a provider's format.
struct Refusal {
    failure: ScriptedFailure,
    message: String,
}

fn refuse(status: u16, message: &str) -> Refusal {
    Refusal {
        failure: ScriptedFailure { status, times: None, retry_after: None },
        message: message.to_owned(),
    }
}

impl Refusal {
    fn response(&self, path: &str) -> Response<Bytes> {
        let dialect = Dialect::of_path(path).unwrap_or(Dialect::Chat);
        let mut response = ok(&dialect.error(&self.failure, &self.message));
        *response.status_mut() =
            StatusCode::from_u16(self.failure.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        if let Some(seconds) = self.failure.retry_after() {
            response.headers_mut().insert(RETRY_AFTER, seconds);
        }
        response
    }
}

fn ok(body: &Value) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(body.to_string()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests;
