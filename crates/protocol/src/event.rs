//! The event envelope, which is one line of a session's log.

use serde::de::Error as _;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::body::{Body, EventKind};

/// A UUID in text form. Kept as text because foreign logs may carry ids of another shape.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventId(pub String);

/// The sub-agent that an event belongs to; absent for the session's main agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AgentId(pub String);

/// A place between two lines of a log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogPosition {
    /// Lines before it, which is the number of the last of them: the first line is 1.
    pub seq: u64,
    /// Bytes before it.
    pub offset: u64,
}

/// One event of a session.
///
/// An event is immutable. One that was read from text keeps that text for its `data`, so that writing it again
/// yields the same bytes, including fields that this version does not know.
#[derive(Debug, Clone)]
pub struct Event {
    id: EventId,
    timestamp: String,
    parent_id: Option<EventId>,
    ephemeral: bool,
    agent_id: Option<AgentId>,
    body: Body,
    original: Option<Box<RawValue>>,
    position: Option<LogPosition>,
}

#[derive(Debug)]
pub struct ParseError(serde_json::Error);

impl std::fmt::Display for ParseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "not an event: {}", self.0)
    }
}

impl std::error::Error for ParseError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

impl Event {
    pub fn new(
        id: EventId,
        timestamp: String,
        parent_id: Option<EventId>,
        agent_id: Option<AgentId>,
        body: Body,
    ) -> Self {
        let ephemeral = body.is_ephemeral();
        Self { id, timestamp, parent_id, ephemeral, agent_id, body, original: None, position: None }
    }

    /// Reads one line of a log or a stream.
    pub fn parse(line: &str) -> Result<Self, ParseError> {
        serde_json::from_str(line).map_err(ParseError)
    }

    /// Returns the event with another parent, for events that come from elsewhere and join the log of a session.
    pub fn under(self, parent_id: Option<EventId>) -> Self {
        Self { parent_id, ..self }
    }

    /// Notes where it ends in its log, once it is there.
    pub fn set_position(&mut self, position: LogPosition) {
        self.position = Some(position);
    }

    /// Its end in the log, if the writer reported it. It is not serialised with the event.
    pub fn position(&self) -> Option<LogPosition> {
        self.position
    }

    pub fn id(&self) -> &EventId {
        &self.id
    }

    /// Time of the event: ISO 8601 in UTC with milliseconds.
    pub fn timestamp(&self) -> &str {
        &self.timestamp
    }

    /// Id of the last logged event before this one.
    pub fn parent_id(&self) -> Option<&EventId> {
        self.parent_id.as_ref()
    }

    /// Whether the event is ephemeral: published, but never logged and never a parent.
    pub fn is_ephemeral(&self) -> bool {
        self.ephemeral
    }

    pub fn agent_id(&self) -> Option<&AgentId> {
        self.agent_id.as_ref()
    }

    pub fn body(&self) -> &Body {
        &self.body
    }

    /// Type of the event as the wire has it.
    pub fn kind(&self) -> &str {
        self.body.kind()
    }

    /// Kind of the event, if its type is in the table.
    pub fn event_kind(&self) -> Option<EventKind> {
        self.body.event_kind()
    }
}

/// The `type` of an event whose line starts with it, as all that we and Copilot write do. Nothing else of the line is
/// read, so that readers can pass over what they do not want.
pub fn type_at_start(line: &[u8]) -> Option<&str> {
    let rest = line.trim_ascii_start().strip_prefix(b"{")?;
    let rest = rest.trim_ascii_start().strip_prefix(b"\"type\"")?;
    let rest = rest.trim_ascii_start().strip_prefix(b":")?;
    let rest = rest.trim_ascii_start().strip_prefix(b"\"")?;
    let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
    // An escape is legal JSON, if odd; the general parser knows what it means.
    (rest[end] == b'"').then(|| std::str::from_utf8(&rest[..end]).ok()).flatten()
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = 5 + usize::from(self.ephemeral) + usize::from(self.agent_id.is_some());
        let mut out = serializer.serialize_struct("Event", fields)?;
        out.serialize_field("type", self.body.kind())?;
        match &self.original {
            Some(text) => out.serialize_field("data", text)?,
            None => {
                let data = self.body.data_text().map_err(<S::Error as serde::ser::Error>::custom)?;
                out.serialize_field("data", &data)?;
            }
        }
        if self.ephemeral {
            out.serialize_field("ephemeral", &true)?;
        }
        if let Some(agent_id) = &self.agent_id {
            out.serialize_field("agentId", agent_id)?;
        }
        out.serialize_field("id", &self.id)?;
        out.serialize_field("timestamp", &self.timestamp)?;
        out.serialize_field("parentId", &self.parent_id)?;
        out.end()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    #[serde(rename = "type")]
    kind: std::borrow::Cow<'a, str>,
    data: Option<Box<RawValue>>,
    #[serde(default)]
    ephemeral: bool,
    agent_id: Option<AgentId>,
    id: EventId,
    timestamp: String,
    parent_id: Option<EventId>,
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let envelope = Envelope::deserialize(deserializer)?;
        let original = match envelope.data {
            Some(data) => data,
            None => RawValue::from_string("{}".to_owned()).map_err(D::Error::custom)?,
        };
        Ok(Self {
            id: envelope.id,
            timestamp: envelope.timestamp,
            parent_id: envelope.parent_id,
            ephemeral: envelope.ephemeral,
            agent_id: envelope.agent_id,
            body: Body::parse(&envelope.kind, &original),
            original: Some(original),
            position: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = r#""id":"a","timestamp":"2026-01-01T00:00:00.000Z","parentId":null"#;

    fn check_round_trip(line: &str) -> Event {
        let event = Event::parse(line).unwrap();
        assert_eq!(serde_json::to_string(&event).unwrap(), line);
        event
    }

    #[test]
    fn an_unknown_type_survives_a_round_trip() {
        let event = check_round_trip(&format!(r#"{{"type":"moon.phase","data":{{"b":1,"a":[ ]}},{HEAD}}}"#));
        assert_eq!(event.kind(), "moon.phase");
    }

    #[test]
    fn unknown_fields_of_a_known_type_survive_a_round_trip() {
        let event = check_round_trip(&format!(
            r#"{{"type":"abort","data":{{"reason":"user_abort","later":1.50}},{HEAD}}}"#
        ));
        assert!(matches!(event.body(), Body::Abort(_)));
    }

    #[test]
    fn a_known_type_with_data_we_cannot_read_is_kept_as_unknown() {
        let event = check_round_trip(&format!(r#"{{"type":"abort","data":{{"reason":7}},{HEAD}}}"#));
        assert!(matches!(event.body(), Body::Unknown { .. }));
    }

    #[test]
    fn ephemeral_and_agent_id_survive() {
        let event = check_round_trip(
            r#"{"type":"assistant.idle","data":{},"ephemeral":true,"agentId":"x","id":"a","timestamp":"t","parentId":"p"}"#,
        );
        assert!(event.is_ephemeral());
        assert_eq!(event.agent_id(), Some(&AgentId("x".to_owned())));
    }
}
