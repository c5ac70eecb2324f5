//! Why a session with an agent did not begin.

use hangar_agent::session::iso;
use hangar_protocol::data::SessionError;
use hangar_protocol::{Event, EventId};
use hangar_runtimes::outcome::{ErrorKind, TurnFailure};

/// An error with a name that programs know it by.
#[derive(Debug)]
pub(super) struct NamedError {
    kind: ErrorKind,
    message: String,
}

impl std::fmt::Display for NamedError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for NamedError {}

impl From<TurnFailure> for NamedError {
    fn from(failure: TurnFailure) -> Self {
        Self { kind: failure.kind, message: failure.message }
    }
}

impl NamedError {
    pub(super) fn because(kind: ErrorKind, error: &anyhow::Error) -> anyhow::Error {
        Self { kind, message: format!("{error:#}") }.into()
    }

    /// Event that reports the error to programs.
    pub(super) fn event(error: &anyhow::Error) -> Event {
        let kind = error.downcast_ref::<Self>().map_or(ErrorKind::InvalidRequest, |refused| refused.kind);
        let body = SessionError {
            error_type: kind.as_str().to_owned(),
            message: format!("{error:#}"),
            ..SessionError::default()
        };
        let id = EventId(uuid::Uuid::new_v4().to_string());
        Event::new(id, iso(jiff::Timestamp::now()), None, None, body.into())
    }
}
