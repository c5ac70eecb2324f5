//! One streamed answer: from the bytes of a response to the events of a model.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use futures_core::stream::BoxStream;
use futures_util::future::BoxFuture;
use futures_util::stream;
use hangar_agent::model::{ModelError, ModelErrorKind, ModelEvent, Reply};
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use tokio::time::Instant;

use crate::error;
use crate::http::{BODY, CallPermit, Http};
use crate::sse::{SseError, SseParser};
use crate::wire::{Decode, Progress};

/// Time limit of a whole answer, for servers that keep a stream alive with empty events.
const LONGEST: Duration = Duration::from_secs(3600);
/// Header in which LiteLLM reports what a call cost, in US dollars.
const COST: &str = "x-litellm-response-cost";
/// Time to wait for facts about a complete answer (its usage).
const LINGER: Duration = Duration::from_secs(5);
/// Time to wait for the end of the response after the end of the answer. Usually it is there already, and a connection
/// whose response was read to its end can be reused.
const DRAIN: Duration = Duration::from_millis(20);

pub(crate) struct AnswerStream {
    /// Digest of the request, if the vendor binds reasoning to it.
    prefix: Option<NonZeroU64>,
    http: Arc<Http>,
    response: Response,
    decoder: Box<dyn Decode>,
    sse: SseParser,
    told: Told,
    /// Decoded events that are not returned yet.
    pending: VecDeque<Result<ModelEvent, ModelError>>,
    read: usize,
    until: Instant,
    /// Held as long as the answer is read, since the call is in flight that long.
    _turn: Option<CallPermit>,
}

/// The parts of an answer that are emitted before it is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    InPieces,
    AtOnce,
}

/// Dropping the stream drops the response, which closes its connection.
pub(crate) fn events(
    open: BoxFuture<'static, Result<AnswerStream, ModelError>>,
) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
    enum State {
        Opening(BoxFuture<'static, Result<AnswerStream, ModelError>>),
        Reading(Box<AnswerStream>),
        Over,
    }
    Box::pin(stream::unfold(State::Opening(open), |state| async move {
        let mut answer = match state {
            State::Opening(open) => match open.await {
                Ok(answer) => Box::new(answer),
                Err(error) => return Some((Err(error), State::Over)),
            },
            State::Reading(answer) => answer,
            State::Over => return None,
        };
        let event = answer.next().await;
        let last = !matches!(
            event,
            Ok(ModelEvent::Notice(_)
                | ModelEvent::Text(_)
                | ModelEvent::Reasoning(_)
                | ModelEvent::ToolInput { .. })
        );
        Some((event, if last { State::Over } else { State::Reading(answer) }))
    }))
}

impl AnswerStream {
    pub(crate) fn new(
        http: Arc<Http>,
        response: Response,
        decoder: Box<dyn Decode>,
        told: Told,
        turn: Option<CallPermit>,
    ) -> Self {
        Self {
            http,
            response,
            decoder,
            told,
            sse: SseParser::default(),
            pending: VecDeque::new(),
            prefix: None,
            read: 0,
            until: Instant::now() + LONGEST,
            _turn: turn,
        }
    }

    /// The same answer, whose reasoning is bound to the request with this digest.
    pub(crate) fn bound_to(mut self, prefix: Option<NonZeroU64>) -> Self {
        self.prefix = prefix;
        self
    }

    /// The same answer, with notices about how it came to be before it.
    pub(crate) fn preceded_by(mut self, notices: Vec<String>) -> Self {
        self.pending.extend(notices.into_iter().map(|notice| Ok(ModelEvent::Notice(notice))));
        self
    }

    /// Whether the response is not a stream. Some servers do not stream although they were asked to.
    fn is_whole(&self) -> bool {
        let kind = self.response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        kind.is_some_and(|kind| kind.starts_with("application/json"))
    }

    async fn next(&mut self) -> Result<ModelEvent, ModelError> {
        if self.read == 0 && self.is_whole() {
            self.read_whole().await?;
        }
        loop {
            if let Some(event) = self.pending.pop_front() {
                return event;
            }
            self.read_some().await;
        }
    }

    async fn read_whole(&mut self) -> Result<(), ModelError> {
        let body = self.http.read_body(&mut self.response, BODY, self.http.limits().first_byte).await?;
        self.read = body.len().max(1);
        self.decoder.whole(&body)?;
        let mut events = Vec::new();
        let reply = self.decoder.finish(&mut events).ok_or_else(|| self.http.cut())?;
        let reply = self.completed(reply);
        self.pending.extend(events.into_iter().filter(is_notice).map(Ok));
        self.pending.push_back(Ok(ModelEvent::Finished(Box::new(reply))));
        Ok(())
    }

    /// Reads the next bytes and queues their events: at least one, unless the bytes complete none.
    async fn read_some(&mut self) {
        let limits = self.http.limits();
        let limit = match self.decoder.progress() {
            Progress::Complete => LINGER,
            Progress::Going | Progress::Over if self.read == 0 => limits.first_byte,
            Progress::Going | Progress::Over => limits.stall,
        };
        let deadline = (Instant::now() + limit).min(self.until);
        match tokio::time::timeout_at(deadline, self.response.chunk()).await {
            Ok(Ok(Some(bytes))) => self.take(&bytes).await,
            Ok(Ok(None)) => {
                // Half an event at the end means that the connection broke, not that the protocol was violated.
                let _ = self.decode(|sse, event| sse.end(event));
                self.finish(|answer| answer.http.cut());
            }
            Ok(Err(error)) => self.finish(|answer| answer.http.broken(&error)),
            Err(_) if Instant::now() >= self.until => self.finish(|_| {
                let message = format!("the model provider's answer took longer than {} s", LONGEST.as_secs());
                error::bare(ModelErrorKind::Stalled, message)
            }),
            Err(_) => self.finish(|answer| answer.http.silent(limit)),
        }
    }

    async fn take(&mut self, bytes: &[u8]) {
        self.read = self.read.saturating_add(bytes.len());
        if self.read > BODY {
            let error = error::protocol(format!("the model provider's answer is larger than {BODY} bytes"));
            self.pending.push_back(Err(error));
            return;
        }
        if let Err(error) = self.decode(|sse, event| sse.push(bytes, event)) {
            self.pending.push_back(Err(error));
            return;
        }
        if self.decoder.progress() == Progress::Over {
            self.finish(|answer| answer.http.cut());
            // Anything that follows is ignored.
            let _ = tokio::time::timeout(DRAIN, self.response.chunk()).await;
        }
    }

    fn decode(
        &mut self,
        feed: impl FnOnce(&mut SseParser, &mut dyn FnMut(&str) -> Result<(), Bad>) -> Result<(), Bad>,
    ) -> Result<(), ModelError> {
        let Self { sse, decoder, pending, told, .. } = self;
        let mut events = Vec::new();
        feed(sse, &mut |data| {
            if decoder.progress() == Progress::Over {
                return Ok(());
            }
            let decoded = decoder.event(data, &mut events);
            match told {
                Told::InPieces => pending.extend(events.drain(..).map(Ok)),
                Told::AtOnce => events.clear(),
            }
            decoded.map_err(Bad::Model)
        })
        .map_err(|bad| match bad {
            Bad::Sse(error) => error::protocol(error.to_string()),
            Bad::Model(error) => error,
        })
    }

    /// Ends the reading: the reply, or an error if there is none.
    fn finish(&mut self, wrong: impl FnOnce(&Self) -> ModelError) {
        let mut events = Vec::new();
        let last = match self.decoder.finish(&mut events) {
            Some(reply) => {
                let all = self.told == Told::InPieces;
                self.pending.extend(events.into_iter().filter(|event| all || is_notice(event)).map(Ok));
                Ok(ModelEvent::Finished(Box::new(self.completed(reply))))
            }
            None => Err(wrong(self)),
        };
        self.pending.push_back(last);
    }
}

impl AnswerStream {
    /// The reply with the digest of its request, and with the cost that a gateway reports in a header, if the answer itself does
    /// not say.
    fn completed(&self, mut reply: Reply) -> Reply {
        if let Some(native) = &mut reply.turn.native {
            native.prefix = self.prefix;
        }
        let header = self.response.headers().get(COST).and_then(|cost| cost.to_str().ok());
        let reported = header.and_then(|cost| cost.trim().parse().ok()).filter(|cost| *cost >= 0.0);
        reply.usage.cost = reply.usage.cost.or(reported);
        reply.request_ids = error::request_ids(self.response.headers());
        reply
    }
}

fn is_notice(event: &ModelEvent) -> bool {
    matches!(event, ModelEvent::Notice(_))
}

enum Bad {
    Sse(SseError),
    Model(ModelError),
}

impl From<SseError> for Bad {
    fn from(error: SseError) -> Self {
        Self::Sse(error)
    }
}
