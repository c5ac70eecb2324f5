//! Other agents behind the redactor: all their output passes it first.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use hangar_protocol::{AgentId, Body, Event, EventId};
use hangar_runtimes::outcome::{TurnFailure, TurnResult};
use hangar_runtimes::runtime::{
    AgentCard, AgentOrder, AgentSession, Lookup, NewsFilter, OfferedModel, Preflight, RehearsalStage,
    Runtime, SessionNews, TurnEnded,
};
use serde_json::Value;

use super::stream::Held;
use super::{Redactor, is_placeholder};
use crate::credentials::is_secret_name;
use crate::settings::Settings;

/// Maximum number of streaming texts. Beyond it, the oldest counts as ended.
const MAX_TEXTS: usize = 256;
/// Flag that names variables that hold secrets.
const SECRET_VARIABLES: &str = "--secret-env-vars";

/// Agent whose output is redacted: secrets that the redactor knows, and those of its own configuration.
pub(crate) fn runtime(agent: Arc<dyn Runtime>, settings: &Settings, redactor: Redactor) -> Arc<dyn Runtime> {
    Arc::new(GuardedRuntime { agent, settings: settings.clone(), redactor })
}

struct GuardedRuntime {
    agent: Arc<dyn Runtime>,
    settings: Settings,
    redactor: Redactor,
}

impl Runtime for GuardedRuntime {
    fn card(&self) -> &AgentCard {
        self.agent.card()
    }

    fn preflight(&self) -> BoxFuture<'static, Preflight> {
        let (found, redactor) = (self.agent.preflight(), self.redactor.clone());
        Box::pin(async move {
            let found = found.await;
            let texts = |texts: Vec<String>| texts.into_iter().map(|text| redactor.text(text)).collect();
            Preflight {
                version: found.version.map(|version| redactor.text(version)),
                problems: texts(found.problems),
                warnings: texts(found.warnings),
                ..found
            }
        })
    }

    fn models(&self, lookup: Lookup) -> BoxFuture<'static, Option<Vec<OfferedModel>>> {
        self.agent.models(lookup)
    }

    fn open(&self, order: AgentOrder) -> BoxFuture<'static, Result<AgentSession, TurnFailure>> {
        let redactor = self.redactor.with(secrets_of(&order, &self.settings));
        let opened = self.agent.open(order);
        Box::pin(async move {
            match opened.await {
                Ok(live) => Ok(live.filtered(Voice { redactor, texts: Vec::new() })),
                Err(failure) => Err(redactor.failure(failure)),
            }
        })
    }

    fn rehearse(&self, order: &mut AgentOrder, stage: &RehearsalStage) {
        self.agent.rehearse(order, stage);
    }
}

/// Secrets in an order: in its variables, in arguments about secrets, and in MCP servers.
fn secrets_of(order: &AgentOrder, settings: &Settings) -> Vec<String> {
    let mut secrets: Vec<String> = Vec::new();
    let variables = order.env.iter().filter(|(name, _)| is_secret_name(name));
    secrets.extend(variables.map(|(_, value)| value.clone()));
    let named = order.secret_variables.iter().filter_map(|name| settings.var(name.trim()));
    secrets.extend(named.map(str::to_owned));
    let mut arguments = order.extra.iter();
    while let Some(argument) = arguments.next() {
        let names = match argument.strip_prefix(SECRET_VARIABLES) {
            Some("") => arguments.next().map(String::as_str),
            Some(rest) => rest.strip_prefix('='),
            None => None,
        };
        let names = names.into_iter().flat_map(|names| names.split(','));
        secrets.extend(names.filter_map(|name| settings.var(name.trim())).map(str::to_owned));
    }
    let servers = order.mcp_config.as_deref().and_then(|config| {
        let text = match config.trim_start().starts_with('{') {
            true => config.to_owned(),
            false => std::fs::read_to_string(config.strip_prefix('@').unwrap_or(config)).ok()?,
        };
        serde_json::from_str::<Value>(&text).ok()
    });
    servers.iter().for_each(|servers| named_secrets(servers, &mut secrets));
    secrets.retain(|secret| !is_placeholder(secret));
    secrets
}

/// Values of members whose name says that they hold a secret, at any depth.
fn named_secrets(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member.as_str().filter(|_| is_secret_name(name)) {
                    // It may start with the name of a scheme, and be shown without it.
                    Some(text) => found.extend(text.split_whitespace().last().map(str::to_owned)),
                    None => named_secrets(member, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| named_secrets(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

impl Redactor {
    fn failure(&self, mut failure: TurnFailure) -> TurnFailure {
        failure.message = self.text(failure.message);
        failure.evidence.code = failure.evidence.code.map(|code| self.text(code));
        failure.evidence.stderr = self.text(failure.evidence.stderr);
        failure
    }
}

/// Output of an agent in one session.
struct Voice {
    redactor: Redactor,
    texts: Vec<Text>,
}

/// A text that comes in pieces, each in an event of its own.
struct Text {
    stream: Stream,
    held: Held,
    /// The last piece, as a pattern for what was held back.
    last: Event,
}

/// Text that a delta belongs to.
#[derive(Clone, PartialEq, Eq)]
struct Stream {
    agent: Option<AgentId>,
    kind: &'static str,
    id: String,
}

/// The piece of a text that an event brings.
fn piece(body: &mut Body) -> Option<(&'static str, String, &mut String)> {
    match body {
        Body::MessageDelta(delta) => Some(("message", delta.message_id.clone(), &mut delta.delta_content)),
        Body::ReasoningDelta(delta) => {
            Some(("reasoning", delta.reasoning_id.clone(), &mut delta.delta_content))
        }
        Body::ToolCallDelta(delta) => Some(("call", delta.tool_call_id.clone(), &mut delta.input_delta)),
        Body::ToolShellOutput(output) => {
            Some(("output", format!("{} {}", output.tool_call_id, output.stream), &mut output.text))
        }
        _ => None,
    }
}

/// Texts that end with this event: their kind and the prefix of their id.
fn ends(body: &Body) -> Vec<(&'static str, &str)> {
    match body {
        Body::AssistantMessage(message) => {
            vec![("message", &message.message_id)]
        }
        Body::Reasoning(reasoning) => vec![("reasoning", &reasoning.reasoning_id)],
        Body::ToolStart(start) => vec![("call", &start.tool_call_id)],
        Body::ToolComplete(complete) => {
            vec![("call", &complete.tool_call_id), ("output", &complete.tool_call_id)]
        }
        _ => Vec::new(),
    }
}

impl NewsFilter for Voice {
    fn pass(&mut self, news: SessionNews) -> Vec<SessionNews> {
        match news {
            SessionNews::Event(event) => self.event(*event),
            SessionNews::TurnEnded(ended) => {
                let mut said = self.finish(|_| true);
                let TurnEnded { mut outcome, model, unknown } = *ended;
                outcome.end = match outcome.end {
                    TurnResult::Completed => TurnResult::Completed,
                    TurnResult::Failed(failure) => TurnResult::Failed(self.redactor.failure(failure)),
                };
                let model = model.map(|model| self.redactor.text(model));
                let unknown = unknown.into_iter().map(|kind| self.redactor.text(kind)).collect();
                said.push(SessionNews::TurnEnded(Box::new(TurnEnded { outcome, model, unknown })));
                said
            }
        }
    }
}

impl Voice {
    fn event(&mut self, event: Event) -> Vec<SessionNews> {
        let mut body = event.body().clone();
        if let Body::ToolPartialResult(partial) = &mut body {
            // It is all output so far, so its end may be the beginning of a secret; the next event shows it.
            partial.partial_output = Held::default().push(&self.redactor, &partial.partial_output);
            return vec![SessionNews::Event(Box::new(like(&event, event.id().clone(), body)))];
        }
        if let Some((kind, id, text)) = piece(&mut body) {
            let stream = Stream { agent: event.agent_id().cloned(), kind, id };
            let mut said = Vec::new();
            let at = match self.texts.iter().position(|text| text.stream == stream) {
                Some(at) => at,
                None => {
                    if self.texts.len() == MAX_TEXTS {
                        let oldest = self.texts[0].stream.clone();
                        said.extend(self.finish(|stream| *stream == oldest));
                    }
                    self.texts.push(Text { stream, held: Held::default(), last: event.clone() });
                    self.texts.len() - 1
                }
            };
            *text = self.texts[at].held.push(&self.redactor, text);
            let told = like(&event, event.id().clone(), body);
            self.texts[at].last = told.clone();
            said.push(SessionNews::Event(Box::new(told)));
            return said;
        }
        let over = ends(&body);
        let mut said = self.finish(|stream| {
            let is = |(kind, id): &(&str, &str)| {
                stream.kind == *kind && (stream.id == *id || stream.id.starts_with(&format!("{id} ")))
            };
            over.iter().any(is)
        });
        said.push(SessionNews::Event(Box::new(self.redactor.event(&event).unwrap_or(event))));
        said
    }

    /// Remaining text of streams that have ended.
    fn finish(&mut self, is_over: impl Fn(&Stream) -> bool) -> Vec<SessionNews> {
        let mut said = Vec::new();
        for mut text in self.texts.extract_if(.., |text| is_over(&text.stream)) {
            let rest = text.held.finish(&self.redactor);
            let mut body = text.last.body().clone();
            if let Body::ToolShellOutput(output) = &mut body {
                output.sequence += 1;
            }
            if let (false, Some((_, _, last))) = (rest.is_empty(), piece(&mut body)) {
                *last = rest;
                let id = EventId(uuid::Uuid::new_v4().to_string());
                said.push(SessionNews::Event(Box::new(like(&text.last, id, body))));
            }
        }
        said
    }
}

/// Event that replaces another.
fn like(event: &Event, id: EventId, body: Body) -> Event {
    let (parent, agent) = (event.parent_id().cloned(), event.agent_id().cloned());
    Event::new(id, event.timestamp().to_owned(), parent, agent, body)
}

#[cfg(test)]
mod tests {
    use hangar_protocol::data::{AssistantMessage, MessageDelta, ToolComplete, ToolShellOutput};

    use super::*;

    fn told(bodies: Vec<Body>) -> Vec<String> {
        let redactor = Redactor::new(["tok-3n-secret".to_owned()]);
        let mut voice = Voice { redactor, texts: Vec::new() };
        let said = bodies.into_iter().enumerate().flat_map(|(n, body)| {
            let event = Event::new(EventId(format!("e{n}")), "t".to_owned(), None, None, body);
            voice.pass(SessionNews::Event(Box::new(event)))
        });
        let words = |body: &Body| match body {
            Body::MessageDelta(delta) => format!("{} {}", delta.message_id, delta.delta_content),
            Body::ToolShellOutput(output) => format!("{} {}", output.sequence, output.text),
            Body::AssistantMessage(message) => format!("message {}", message.content),
            other => other.data().map(|data| data.to_string()).unwrap_or_default(),
        };
        said.map(|news| match news {
            SessionNews::Event(event) => words(event.body()),
            SessionNews::TurnEnded(_) => "ended".to_owned(),
        })
        .collect()
    }

    fn delta(id: &str, text: &str) -> Body {
        let (message_id, delta_content) = (id.to_owned(), text.to_owned());
        MessageDelta { message_id, delta_content, parent_tool_call_id: None }.into()
    }

    #[test]
    fn a_secret_in_pieces_is_masked_though_other_things_are_said_between_them() {
        let message = AssistantMessage {
            message_id: "m".to_owned(),
            content: "a tok-3n-secret tok".to_owned(),
            ..AssistantMessage::default()
        };
        let noise = hangar_protocol::data::SessionInfo::new("x", "noise".to_owned());
        assert_eq!(
            told(vec![
                delta("m", "a tok"),
                noise.into(),
                delta("n", "b"),
                delta("m", "-3n-secret"),
                delta("m", " tok"),
                message.into(),
            ]),
            [
                "m a ",
                r#"{"infoType":"x","message":"noise"}"#,
                "n b",
                "m [redacted]",
                "m  ",
                "m tok",
                "message a [redacted] tok"
            ]
        );
    }

    #[test]
    fn the_output_of_a_command_is_told_to_its_end() {
        let output = |sequence: u64, text: &str| -> Body {
            let (tool_call_id, stream) = ("c".to_owned(), "stdout".to_owned());
            ToolShellOutput { tool_call_id, stream, text: text.to_owned(), sequence }.into()
        };
        let complete = ToolComplete { tool_call_id: "c".to_owned(), ..ToolComplete::default() };
        let said = told(vec![output(0, "tok-3n-sec"), output(1, "ret tok"), complete.into()]);
        assert_eq!(said[..3], ["0 ", "1 [redacted] ", "2 tok"]);
    }
}
