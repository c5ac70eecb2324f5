//! Translation of other agents' output into our events. Pure: a line goes in, events and facts come out.
//!
//! No line is lost: an unknown one becomes an event that holds it, and its type is counted as drift.

pub(crate) mod acp;
mod bookkeeping;
pub mod claude;
pub mod codex;
pub mod copilot;
mod copilot_usage;
mod json;
pub mod opencode;

use std::collections::BTreeSet;

use hangar_protocol::{AgentId, Body, Event, data};

pub use bookkeeping::Bookkeeping;

use crate::outcome::{AgentVerdict, Halt, ReportedError, excerpt};
use crate::usage::AgentUsage;

/// Maximum number of unknown line types in the drift report.
const MAX_UNKNOWN_TYPES: usize = 64;
/// Maximum length that is kept of a line of an unknown type.
const MAX_KEPT_LINE: usize = 64 << 10;

/// Reads the output of one process of one agent.
pub trait Translator: Send {
    /// One line, without its line feed.
    fn line(&mut self, line: &str, said: &mut Translation);

    /// Reads the report that the agent was told to leave in a file.
    fn report(&mut self, text: &str, said: &mut Translation) {
        let _ = (text, said);
    }

    /// The output has ended.
    fn end(&mut self, said: &mut Translation);
}

/// Translation of a line.
#[derive(Debug, Default)]
pub struct Translation {
    pub events: Vec<TranslatedEvent>,
    pub facts: OutputFacts,
}

/// An event, before it has a place in the session.
#[derive(Debug)]
pub enum TranslatedEvent {
    /// A body that needs an envelope.
    Body { agent: Option<AgentId>, body: Body },
    /// An event with its own envelope.
    Whole(Event),
}

impl TranslatedEvent {
    pub(crate) fn body(&self) -> &Body {
        match self {
            TranslatedEvent::Body { body, .. } => body,
            TranslatedEvent::Whole(event) => event.body(),
        }
    }
}

/// Facts about a turn from the agent's output.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OutputFacts {
    /// Name of the session in the agent; needed to resume it.
    pub session_id: Option<String>,
    pub model: Option<String>,
    pub verdict: Option<AgentVerdict>,
    pub reported_error: Option<ReportedError>,
    /// Whether the agent produced text or a tool call.
    pub worked: bool,
    /// Whether the agent reported that it was aborted.
    pub aborted: bool,
    /// Why it stopped in the middle of its work, if nothing more comes.
    pub halted: Option<Halt>,
    pub usage: AgentUsage,
    /// Lines that were not in the agent's format.
    pub malformed: u64,
    /// Types of lines that this version of the translator does not know.
    pub unknown: BTreeSet<String>,
}

impl OutputFacts {
    fn note_unknown(&mut self, kind: &str) {
        if self.unknown.len() < MAX_UNKNOWN_TYPES {
            self.unknown.insert(kind.to_owned());
        }
    }
}

impl Translation {
    pub(crate) fn push(&mut self, body: impl Into<Body>) {
        self.events.push(TranslatedEvent::Body { agent: None, body: body.into() });
    }

    pub(crate) fn push_from(&mut self, agent: Option<AgentId>, body: impl Into<Body>) {
        self.events.push(TranslatedEvent::Body { agent, body: body.into() });
    }

    /// A line in no format.
    pub(crate) fn malformed(&mut self, line: &str) {
        self.facts.malformed += 1;
        self.keep("malformed", excerpt(line));
    }

    /// A line of a type that is not known.
    pub(crate) fn unknown(&mut self, kind: &str, line: &str) {
        self.facts.note_unknown(kind);
        self.keep(kind, line);
    }

    fn keep(&mut self, kind: &str, line: &str) {
        let end = line.floor_char_boundary(MAX_KEPT_LINE);
        self.push(data::SessionInfo::new(UNRECOGNIZED, format!("{kind}: {}", &line[..end])));
    }
}

/// The kind of information that holds what no translator understood.
pub const UNRECOGNIZED: &str = "unrecognized";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: usize) {
        let mut said = Translation::default();
        codex::CodexTranslator::default().line(line, &mut said);
        let [TranslatedEvent::Body { body: Body::SessionInfo(info), .. }] = &said.events[..] else {
            panic!("{:?}", said.events)
        };
        assert_eq!(info.message.chars().count(), expected);
    }

    #[test]
    fn a_malformed_line_is_kept_by_its_beginning_and_one_of_an_unknown_type_whole() {
        check(&"ä".repeat(70_000), "malformed: ".len() + 500);
        let unknown = format!(r#"{{"type":"x","y":"{}"}}"#, "z".repeat(2_000));
        check(&unknown, "x: ".len() + unknown.len());
    }
}
