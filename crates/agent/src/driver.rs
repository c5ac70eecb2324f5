//! Carries a session's decisions out: logs events, publishes them, then performs effects and feeds back what comes of
//! them. One task owns the session, so its state has one writer and needs no lock.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_core::stream::BoxStream;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use hangar_protocol::data::{self, Commitments};
use hangar_protocol::{Body, Event, EventId};
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::time::Sleep;
use tokio_util::sync::CancellationToken;

use crate::entropy::Entropy;
use crate::log::{Fact, LogError, SessionLog};
use crate::model::{ModelError, ModelEvent, ModelProvider};
use crate::session::{
    CallSeq, Command, Context, Effect, HookRequest, Input, Inspection, Reminder, Session, Step, iso,
};
use crate::tool::{ToolContext, ToolInput, ToolOutcome, Toolset};

/// Events of running tools that may wait for the loop before the tools have to.
const PROGRESS_BUFFER: usize = 64;
/// How long tools that were told to stop may take to do so when the session closes.
const CLOSING_GRACE: Duration = Duration::from_secs(5);

/// Takes each event, in order, right after it is logged. Must not fail and should not wait long: the session does.
pub trait EventSink: Send {
    fn publish(&mut self, event: &Event);
}

/// Finds instructions about files that tools touched. Each is reported once per session.
pub trait Discovery: Send {
    fn discover(&mut self, touched: Vec<(PathBuf, String)>) -> Vec<Reminder>;
}

/// What a session asks about the place where it works.
pub trait Surroundings: Send {
    /// The plan and the open todos, as they are now.
    fn commitments(&mut self) -> Commitments;

    /// Whether nothing has changed since the work began. `false` where that cannot be told.
    fn unchanged(&self) -> BoxFuture<'static, bool>;
}

/// Someone else's code that is asked at fixed points of a session.
pub trait Hooks: Send + Sync {
    /// Asks, and waits for the answer no longer than is sensible. `None` is "no opinion".
    fn ask(&self, request: &HookRequest) -> BoxFuture<'static, Result<Option<serde_json::Value>, String>>;
}

/// What a session runs on.
pub struct Host {
    pub provider: Arc<dyn ModelProvider>,
    pub tools: Toolset,
    pub log: Box<dyn SessionLog>,
    pub sink: Box<dyn EventSink>,
    pub discovery: Option<Box<dyn Discovery>>,
    pub hooks: Option<Arc<dyn Hooks>>,
    pub surroundings: Option<Box<dyn Surroundings>>,
    pub now: Box<dyn Fn() -> Timestamp + Send>,
    pub entropy: Entropy,
    /// Multiplies the waits before retries; 1 outside tests.
    pub retry_scale: f64,
}

pub struct Driver {
    session: Session,
    host: Host,
    commands: mpsc::Receiver<Input>,
    progress: (mpsc::Sender<Body>, mpsc::Receiver<Body>),
    model: Option<(CallSeq, BoxStream<'static, Result<ModelEvent, ModelError>>)>,
    /// The call that sums the session up.
    summary: Option<(CallSeq, BoxStream<'static, Result<ModelEvent, ModelError>>)>,
    retry: Option<(CallSeq, Pin<Box<Sleep>>)>,
    running: FuturesUnordered<BoxFuture<'static, (String, ToolOutcome)>>,
    hooks: FuturesUnordered<BoxFuture<'static, Input>>,
    cancel_tools: CancellationToken,
    parent: Option<EventId>,
}

impl Driver {
    /// `commands` carries what comes from outside: commands and news of background work.
    pub fn new(session: Session, host: Host, commands: mpsc::Receiver<Input>) -> Self {
        let parent = session.state().last_event.clone();
        Self {
            session,
            host,
            commands,
            progress: mpsc::channel(PROGRESS_BUFFER),
            model: None,
            summary: None,
            retry: None,
            running: FuturesUnordered::new(),
            hooks: FuturesUnordered::new(),
            cancel_tools: CancellationToken::new(),
            parent,
        }
    }

    pub fn session(&self) -> &Session {
        &self.session
    }

    pub fn session_mut(&mut self) -> &mut Session {
        &mut self.session
    }

    /// Puts other tools in the place of those outside the session's own. Calls under way keep theirs.
    pub fn set_tools(&mut self, tools: Toolset) -> Result<(), LogError> {
        let specs = tools.iter().map(|tool| tool.spec().clone()).collect();
        self.host.tools = tools;
        self.advance(Input::Command(Command::SetTools(specs)))
    }

    /// Lets another process take the session over while nothing happens in it.
    pub fn rest(&mut self) {
        self.host.log.rest();
    }

    /// Keeps something that lists show of the session.
    pub fn note(&mut self, fact: Fact) -> Result<(), LogError> {
        self.host.log.note(fact)
    }

    pub fn set_provider(&mut self, provider: Arc<dyn ModelProvider>) {
        self.host.provider = provider;
    }

    /// Takes one input and all that follows from it at once.
    pub fn advance(&mut self, input: Input) -> Result<(), LogError> {
        // An effect may have an answer at once, and one step may have several such effects.
        let mut next = VecDeque::from([input]);
        while let Some(input) = next.pop_front() {
            let mut context = Context { now: (self.host.now)(), entropy: &mut self.host.entropy };
            let Step { events, effects } = self.session.step(input, &mut context);
            self.record(events)?;
            for effect in effects {
                next.extend(self.perform(effect)?);
            }
        }
        Ok(())
    }

    /// Waits for the next thing to happen and takes it. Returns false when the command channel is closed and nothing is
    /// under way.
    pub async fn turn(&mut self) -> Result<bool, LogError> {
        let input = tokio::select! {
            // Commands first: an abort must not wait behind a flood of pieces.
            biased;
            command = self.commands.recv() => match command {
                Some(input) => input,
                None if self.is_quiet() => return Ok(false),
                None => self.happening().await,
            },
            input = happening(
                &mut self.model,
                &mut self.summary,
                &mut self.retry,
                &mut self.running,
                &mut self.hooks,
                &mut self.progress.1,
            ) => input,
        };
        self.take(input)?;
        Ok(true)
    }

    async fn happening(&mut self) -> Input {
        happening(
            &mut self.model,
            &mut self.summary,
            &mut self.retry,
            &mut self.running,
            &mut self.hooks,
            &mut self.progress.1,
        )
        .await
    }

    fn take(&mut self, input: Input) -> Result<(), LogError> {
        if matches!(input, Input::ToolDone { .. }) {
            // What a tool said before it ended belongs before its end.
            while let Ok(body) = self.progress.1.try_recv() {
                self.advance(Input::Progress(body))?;
            }
        }
        self.advance(input)
    }

    fn is_quiet(&self) -> bool {
        self.model.is_none()
            && self.summary.is_none()
            && self.retry.is_none()
            && self.running.is_empty()
            && self.hooks.is_empty()
    }

    /// Ends the session: stops what runs, waits for it, and writes the closing event.
    pub async fn close(&mut self, error: Option<String>) -> Result<(), LogError> {
        self.advance(Input::Command(Command::Shutdown { error }))?;
        self.model = None;
        self.summary = None;
        self.retry = None;
        self.cancel_tools.cancel();
        let progress = &mut self.progress.1;
        let running = &mut self.running;
        let hooks = &mut self.hooks;
        let stopped = async {
            while !running.is_empty() || !hooks.is_empty() {
                tokio::select! {
                    _ = running.next(), if !running.is_empty() => {}
                    _ = hooks.next(), if !hooks.is_empty() => {}
                    _ = progress.recv() => {}
                }
            }
        };
        // A tool that does not stop in time loses its future here, and with it its children.
        let _ = tokio::time::timeout(CLOSING_GRACE, stopped).await;
        self.host.log.sync()
    }

    /// Logs, then publishes. Events of the moment have no place in the log.
    fn record(&mut self, bodies: Vec<Body>) -> Result<(), LogError> {
        if bodies.is_empty() {
            return Ok(());
        }
        let timestamp = iso((self.host.now)());
        let mut events = Vec::with_capacity(bodies.len());
        let mut logged = Vec::new();
        for body in bodies {
            let id = EventId(self.host.entropy.uuid());
            let event = Event::new(id.clone(), timestamp.clone(), self.parent.clone(), None, body);
            if !event.is_ephemeral() {
                self.parent = Some(id);
                logged.push(event.clone());
            }
            events.push(event);
        }
        if !logged.is_empty() {
            let end = self.session.state().end;
            let end = self.host.log.append(end, &logged)?;
            let state = self.session.state_mut();
            state.end = end;
            state.last_event.clone_from(&self.parent);
        }
        for event in &events {
            self.host.sink.publish(event);
        }
        Ok(())
    }

    fn perform(&mut self, effect: Effect) -> Result<Option<Input>, LogError> {
        match effect {
            Effect::CallModel(seq, request) => self.model = Some((seq, self.host.provider.stream(*request))),
            Effect::Summarize(seq, request) => {
                self.summary = Some((seq, self.host.provider.stream(*request)));
            }
            Effect::CancelModel => {
                self.model = None;
                self.retry = None;
            }
            Effect::RetryAfter(seq, delay) => {
                self.model = None;
                let delay = delay.mul_f64(self.host.retry_scale);
                self.retry = Some((seq, Box::pin(tokio::time::sleep(delay))));
            }
            Effect::Inspect(calls) => return Ok(Some(Input::Inspected(self.inspect(calls)))),
            Effect::RunTool(name, input) => self.run_tool(&name, input),
            Effect::CancelTools => {
                self.cancel_tools.cancel();
                self.cancel_tools = CancellationToken::new();
                self.hooks.clear();
            }
            Effect::Hook(request) => {
                let Some(hooks) = &self.host.hooks else { return Ok(Some(request.done(Ok(None)))) };
                let answer = hooks.ask(&request);
                self.hooks.push(Box::pin(async move { request.done(answer.await) }));
            }
            Effect::Discover(touched) => {
                let reminders = self.host.discovery.as_mut().map(|d| d.discover(touched)).unwrap_or_default();
                return Ok(Some(Input::Discovered(reminders)));
            }
            Effect::Gather => {
                let surroundings = self.host.surroundings.as_mut();
                let commitments = surroundings.map(|place| place.commitments()).unwrap_or_default();
                return Ok(Some(Input::Gathered(commitments)));
            }
            Effect::AskUnchanged => {
                let Some(place) = &self.host.surroundings else { return Ok(Some(Input::Unchanged(false))) };
                let answer = place.unchanged();
                self.hooks.push(Box::pin(async move { Input::Unchanged(answer.await) }));
            }
            Effect::Checkpoint(checkpoint) => {
                // The summary is in the log; without its file the session is poorer, not broken.
                if let Err(error) = self.host.log.note(Fact::Checkpoint(checkpoint)) {
                    let warning = data::SessionWarning::new("checkpoint", error.to_string());
                    return Ok(Some(Input::Command(Command::Record(warning.into()))));
                }
            }
            Effect::Sync => {
                self.host.log.sync()?;
                self.host.log.rest();
            }
        }
        Ok(None)
    }

    fn inspect(&self, calls: Vec<(String, ToolInput)>) -> Vec<Inspection> {
        calls
            .into_iter()
            .map(|(name, input)| Inspection {
                access: match self.host.tools.find(&name) {
                    Some(tool) => tool.inspect(&input),
                    None => Err(ToolOutcome::failure(format!("Tool '{name}' is not there."))),
                },
                call_id: input.call_id,
            })
            .collect()
    }

    fn run_tool(&mut self, name: &str, input: ToolInput) {
        let call_id = input.call_id.clone();
        let Some(tool) = self.host.tools.find(name) else {
            let outcome = ToolOutcome::failure(format!("Tool '{name}' is not there."));
            self.running.push(Box::pin(std::future::ready((call_id, outcome))));
            return;
        };
        let context =
            ToolContext { cancel: self.cancel_tools.child_token(), progress: self.progress.0.clone() };
        let run = tool.run(input, context);
        self.running.push(Box::pin(async move { (call_id, run.await) }));
    }
}

/// The next piece of an answer, end of a wait, or word from a tool. Pending for ever when nothing is under way.
async fn happening(
    model: &mut Option<(CallSeq, BoxStream<'static, Result<ModelEvent, ModelError>>)>,
    summary: &mut Option<(CallSeq, BoxStream<'static, Result<ModelEvent, ModelError>>)>,
    retry: &mut Option<(CallSeq, Pin<Box<Sleep>>)>,
    running: &mut FuturesUnordered<BoxFuture<'static, (String, ToolOutcome)>>,
    hooks: &mut FuturesUnordered<BoxFuture<'static, Input>>,
    progress: &mut mpsc::Receiver<Body>,
) -> Input {
    tokio::select! {
        (seq, event) = next_piece(model) => {
            let over = !matches!(event, Ok(ref piece) if !matches!(piece, ModelEvent::Finished(_)));
            if over {
                *model = None;
            }
            Input::Model(seq, event)
        }
        (seq, event) = next_piece(summary) => {
            let over = !matches!(event, Ok(ref piece) if !matches!(piece, ModelEvent::Finished(_)));
            if over {
                *summary = None;
            }
            Input::Summary(seq, event)
        }
        seq = retry_due(retry) => {
            *retry = None;
            Input::RetryDue(seq)
        }
        Some((call_id, outcome)) = running.next(), if !running.is_empty() => Input::ToolDone { call_id, outcome },
        Some(input) = hooks.next(), if !hooks.is_empty() => input,
        Some(body) = progress.recv() => Input::Progress(body),
    }
}

async fn next_piece(
    model: &mut Option<(CallSeq, BoxStream<'static, Result<ModelEvent, ModelError>>)>,
) -> (CallSeq, Result<ModelEvent, ModelError>) {
    let Some((seq, stream)) = model else { return std::future::pending().await };
    let event = stream.next().await.unwrap_or_else(|| {
        Err(ModelError {
            kind: crate::model::ModelErrorKind::Cut,
            status: None,
            message: "the answer broke off before its end".to_owned(),
            body: None,
            code: None,
            retry_after: None,
        })
    });
    (*seq, event)
}

async fn retry_due(retry: &mut Option<(CallSeq, Pin<Box<Sleep>>)>) -> CallSeq {
    let Some((seq, sleep)) = retry else { return std::future::pending().await };
    sleep.as_mut().await;
    *seq
}
