//! Redaction at the boundaries of a session: tools, models, the log and listeners.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use hangar_agent::agents::config::{ModelChoice, Models};
use hangar_agent::driver::EventSink;
use hangar_agent::log::{ListedFact, LogError, Seq, SessionLog, SessionNotes};
use hangar_agent::model::{
    AssistantTurn, Message, ModelError, ModelEvent, ModelProvider, ModelRequest, Part, ProviderFacts, Reply,
};
use hangar_agent::session::Checkpoint;
use hangar_agent::tool::{Access, Tool, ToolContext, ToolInput, ToolOutcome, ToolSpec};
use hangar_protocol::data::{ToolShellOutput, ToolType};
use hangar_protocol::{Body, Event, LogPosition};

use super::Redactor;
use super::stream::Held;

/// Capacity of the queue of output between a tool and the loop.
const RELAY_BUFFER: usize = 16;

impl Redactor {
    /// Wraps a tool so that all its output is redacted.
    pub(crate) fn tool(&self, tool: Arc<dyn Tool>) -> Arc<dyn Tool> {
        if self.0.is_none() { tool } else { Arc::new(GuardedTool { tool, redactor: self.clone() }) }
    }

    /// Wraps a provider so that neither its requests nor its answers contain secrets.
    pub(crate) fn provider(&self, provider: Arc<dyn ModelProvider>) -> Arc<dyn ModelProvider> {
        if self.0.is_none() {
            provider
        } else {
            Arc::new(GuardedProvider { provider, redactor: self.clone() })
        }
    }

    /// Wraps the models of sub-agents in the same way.
    pub(crate) fn models(&self, models: Arc<dyn Models>) -> Arc<dyn Models> {
        if self.0.is_none() { models } else { Arc::new(GuardedModels { models, redactor: self.clone() }) }
    }

    pub(crate) fn log(&self, log: Box<dyn SessionLog>) -> Box<dyn SessionLog> {
        if self.0.is_none() { log } else { Box::new(GuardedLog { log, redactor: self.clone() }) }
    }

    pub(crate) fn sink(&self, sink: Box<dyn EventSink>) -> Box<dyn EventSink> {
        if self.0.is_none() { sink } else { Box::new(GuardedSink { sink, redactor: self.clone() }) }
    }

    /// Redacts the result of a tool.
    pub(crate) fn outcome(&self, mut outcome: ToolOutcome) -> ToolOutcome {
        outcome.text = self.text(outcome.text);
        outcome.detailed = outcome.detailed.map(|text| self.text(text));
        outcome.error = outcome.error.map(|text| self.text(text));
        // The event has them as JSON in a string, in which a secret could be escaped.
        for path in &mut outcome.changes.files_modified {
            *path = self.text(std::mem::take(path));
        }
        outcome
    }

    pub(super) fn turn(&self, turn: AssistantTurn) -> AssistantTurn {
        let mut reasoning = turn.reasoning;
        if let Some(reasoning) = &mut reasoning {
            reasoning.text = self.text(std::mem::take(&mut reasoning.text));
        }
        // Items that a vendor has signed go back to it unchanged. They are its own words, and nobody else gets them: neither the
        // log nor listeners receive them.
        AssistantTurn {
            text: self.text(turn.text),
            reasoning,
            tool_calls: turn.tool_calls,
            native: turn.native,
        }
    }

    fn error(&self, error: ModelError) -> ModelError {
        ModelError {
            message: self.text(error.message),
            body: error.body.map(|body| self.text(body)),
            code: error.code.map(|code| self.text(code)),
            ..error
        }
    }

    fn request(&self, mut request: ModelRequest) -> ModelRequest {
        if self.finds(&request.system) {
            request.system = self.text(request.system.to_string()).into();
        }
        for message in &mut request.messages {
            if self.finds_in(message) {
                *message = Arc::new(self.message(Message::clone(message)));
            }
        }
        request
    }

    fn finds_in(&self, message: &Message) -> bool {
        let in_part = |part: &Part| matches!(part, Part::Text(text) if self.finds(text));
        match message {
            Message::User(parts) | Message::Tool { parts, .. } => parts.iter().any(in_part),
            Message::Assistant(turn) => {
                self.finds(&turn.text)
                    || turn.reasoning.as_ref().is_some_and(|reasoning| self.finds(&reasoning.text))
                    || turn.tool_calls.iter().any(|call| self.finds(&call.input))
            }
        }
    }

    fn message(&self, message: Message) -> Message {
        let parts = |parts: Vec<Part>| {
            let clean = |part| match part {
                Part::Text(text) => Part::Text(self.text(text)),
                seen @ (Part::Image { .. } | Part::Document { .. }) => seen,
            };
            parts.into_iter().map(clean).collect()
        };
        match message {
            Message::User(said) => Message::User(parts(said)),
            Message::Tool { call_id, kind, parts: said, is_error } => {
                Message::Tool { call_id, kind, parts: parts(said), is_error }
            }
            Message::Assistant(turn) => {
                let mut turn = self.turn(turn);
                for call in &mut turn.tool_calls {
                    call.input = self.text(std::mem::take(&mut call.input));
                }
                Message::Assistant(turn)
            }
        }
    }
}

struct GuardedTool {
    tool: Arc<dyn Tool>,
    redactor: Redactor,
}

impl Tool for GuardedTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        self.tool.spec()
    }

    fn inspect(&self, call: &ToolInput) -> Result<Access, ToolOutcome> {
        self.tool.inspect(call).map_err(|outcome| self.redactor.outcome(outcome))
    }

    fn inspect_apart(&self, call: &ToolInput) -> Option<BoxFuture<'static, Result<Access, ToolOutcome>>> {
        let access = self.tool.inspect_apart(call)?;
        let redactor = self.redactor.clone();
        Some(Box::pin(async move { access.await.map_err(|outcome| redactor.outcome(outcome)) }))
    }

    fn run(&self, call: ToolInput, context: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        let (relay, mut relayed) = tokio::sync::mpsc::channel(RELAY_BUFFER);
        let run = self.tool.run(call, ToolContext { progress: relay, ..context.clone() });
        let redactor = self.redactor.clone();
        Box::pin(async move {
            let forward = async {
                let mut printed = Printed::default();
                // The loop ends only with the session; no receiver is left.
                while let Some(body) = relayed.recv().await {
                    let _ = context.progress.send(Box::new(printed.redact(&redactor, *body))).await;
                }
                for body in printed.rest(&redactor) {
                    let _ = context.progress.send(Box::new(body)).await;
                }
            };
            let (outcome, ()) = tokio::join!(run, forward);
            redactor.outcome(outcome)
        })
    }
}

/// Output of a command, by stream: a secret may begin in one delta and end in the next of the same stream.
#[derive(Default)]
struct Printed(BTreeMap<String, (Held, ToolShellOutput)>);

impl Printed {
    fn redact(&mut self, redactor: &Redactor, body: Body) -> Body {
        match body {
            Body::ToolShellOutput(mut output) => {
                let (held, last) = self.0.entry(output.stream.clone()).or_insert_with(|| {
                    (Held::default(), ToolShellOutput { text: String::new(), ..output.clone() })
                });
                last.sequence = output.sequence;
                output.text = held.push(redactor, &output.text);
                output.into()
            }
            Body::ToolPartialResult(mut partial) => {
                // It is all output so far, so its end may be the beginning of a secret; the next event shows it.
                partial.partial_output = Held::default().push(redactor, &partial.partial_output);
                partial.into()
            }
            // The guards of the log and of listeners redact these.
            other => other,
        }
    }

    /// Text that was still held back at the end.
    fn rest(self, redactor: &Redactor) -> Vec<Body> {
        let mut next = self.0.values().map(|(_, last)| last.sequence + 1).max().unwrap_or_default();
        let mut rest = Vec::new();
        for (mut held, last) in self.0.into_values() {
            let text = held.finish(redactor);
            if !text.is_empty() {
                rest.push(ToolShellOutput { text, sequence: next, ..last }.into());
                next += 1;
            }
        }
        rest
    }
}

struct GuardedProvider {
    provider: Arc<dyn ModelProvider>,
    redactor: Redactor,
}

impl ModelProvider for GuardedProvider {
    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        let redactor = self.redactor.clone();
        let answer = self.provider.stream(redactor.request(request));
        let pieces = answer.scan(GuardedAnswer::default(), move |said, event| {
            std::future::ready(Some(stream::iter(said.redact(&redactor, event))))
        });
        pieces.flatten().boxed()
    }

    fn facts(&self) -> ProviderFacts {
        self.provider.facts()
    }
}

struct GuardedModels {
    models: Arc<dyn Models>,
    redactor: Redactor,
}

impl Models for GuardedModels {
    fn find(&self, name: &str) -> Option<ModelChoice> {
        let found = self.models.find(name)?;
        Some(ModelChoice { provider: self.redactor.provider(found.provider), ..found })
    }
}

/// Received part of an answer. Inputs of several calls may alternate; any other text ends when the next one begins.
#[derive(Default)]
pub(super) struct GuardedAnswer(Vec<(Spoken, Held)>);

/// Text of an answer that a delta belongs to.
#[derive(Clone, PartialEq)]
enum Spoken {
    Text,
    Reasoning,
    ToolInput { call_id: String, name: String, kind: ToolType },
}

impl Spoken {
    fn piece(self, text: String) -> ModelEvent {
        match self {
            Self::Text => ModelEvent::Text(text),
            Self::Reasoning => ModelEvent::Reasoning(text),
            Self::ToolInput { call_id, name, kind } => {
                ModelEvent::ToolInput { call_id, name, kind, delta: text }
            }
        }
    }
}

impl GuardedAnswer {
    pub(super) fn redact(
        &mut self,
        redactor: &Redactor,
        event: Result<ModelEvent, ModelError>,
    ) -> Vec<Result<ModelEvent, ModelError>> {
        let (spoken, text) = match event {
            Ok(ModelEvent::Text(text)) => (Spoken::Text, text),
            Ok(ModelEvent::Reasoning(text)) => (Spoken::Reasoning, text),
            Ok(ModelEvent::ToolInput { call_id, name, kind, delta }) => {
                (Spoken::ToolInput { call_id, name, kind }, delta)
            }
            notice @ Ok(ModelEvent::Notice(_)) => return vec![notice],
            Ok(ModelEvent::Finished(reply)) => {
                // Calls stay unchanged: they run as the model wrote them, and other guards redact what is shown of them.
                let reply = Reply { turn: redactor.turn(reply.turn), ..*reply };
                let rest = self.rest(redactor, |_| true).into_iter().map(Ok);
                return rest.chain([Ok(ModelEvent::Finished(Box::new(reply)))]).collect();
            }
            Err(error) => {
                let rest = self.rest(redactor, |_| true).into_iter().map(Ok);
                return rest.chain([Err(redactor.error(error))]).collect();
            }
        };
        let is_over = |other: &Spoken| !matches!(other, Spoken::ToolInput { .. }) && *other != spoken;
        let mut said: Vec<_> = self.rest(redactor, is_over).into_iter().map(Ok).collect();
        let at = self.0.iter().position(|(other, _)| *other == spoken).unwrap_or_else(|| {
            self.0.push((spoken.clone(), Held::default()));
            self.0.len() - 1
        });
        let shown = self.0[at].1.push(redactor, &text);
        // An empty delta begins a call.
        if text.is_empty() || !shown.is_empty() {
            said.push(Ok(spoken.piece(shown)));
        }
        said
    }

    /// Remaining text of streams that have ended.
    fn rest(&mut self, redactor: &Redactor, is_over: impl Fn(&Spoken) -> bool) -> Vec<ModelEvent> {
        let over = self.0.extract_if(.., |(spoken, _)| is_over(spoken));
        let rest = over.map(|(spoken, mut held)| (spoken, held.finish(redactor)));
        rest.filter(|(_, rest)| !rest.is_empty()).map(|(spoken, rest)| spoken.piece(rest)).collect()
    }
}

struct GuardedLog {
    log: Box<dyn SessionLog>,
    redactor: Redactor,
}

impl SessionLog for GuardedLog {
    fn append(&mut self, expected: Seq, events: &[Event]) -> Result<Seq, LogError> {
        let clean = |event: &Event| self.redactor.event(event).unwrap_or_else(|| event.clone());
        let events: Vec<Event> = events.iter().map(clean).collect();
        self.log.append(expected, &events)
    }

    fn appended(&self) -> &[LogPosition] {
        self.log.appended()
    }

    fn sync(&mut self) -> Result<(), LogError> {
        self.log.sync()
    }

    fn settle(&mut self) -> Option<BoxFuture<'static, Result<(), LogError>>> {
        self.log.settle()
    }

    fn rest(&mut self) {
        self.log.rest();
    }
}

impl SessionNotes for GuardedLog {
    fn keep_unfinished(&mut self, events: &[Event]) {
        let clean = |event: &Event| self.redactor.event(event).unwrap_or_else(|| event.clone());
        self.log.keep_unfinished(&events.iter().map(clean).collect::<Vec<_>>());
    }

    fn plan(&mut self) -> Option<String> {
        self.log.plan().map(|plan| self.redactor.text(plan))
    }

    fn note(&mut self, fact: ListedFact) -> Result<(), LogError> {
        self.log.note(match fact {
            ListedFact::GivenName(name) => ListedFact::GivenName(self.redactor.text(name)),
            ListedFact::DerivedName(name) => ListedFact::DerivedName(self.redactor.text(name)),
            ListedFact::FirstPrompt(prompt) => ListedFact::FirstPrompt(self.redactor.text(prompt)),
            ListedFact::Checkpoint(Checkpoint { number, title, content }) => {
                ListedFact::Checkpoint(Checkpoint {
                    number,
                    title: self.redactor.text(title),
                    content: self.redactor.text(content),
                })
            }
            fact @ (ListedFact::Context(_) | ListedFact::ModelProvider(_)) => fact,
        })
    }
}

struct GuardedSink {
    sink: Box<dyn EventSink>,
    redactor: Redactor,
}

impl EventSink for GuardedSink {
    fn publish(&mut self, event: &Event) {
        match self.redactor.event(event) {
            Some(redacted) => self.sink.publish(&redacted),
            None => self.sink.publish(event),
        }
    }
}
