//! Errors of the fleet, as far as callers act on them.

/// Error of an operation on the servers.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    #[error("{0}")]
    Invalid(String),
    #[error("no NATS server answers at {servers}: {why}")]
    Unreachable { servers: String, why: String },
    #[error("the NATS server at {servers} refuses the credentials")]
    Refused { servers: String },
    #[error("the NATS server at {servers} has no JetStream for this account; start it with `-js`")]
    NoJetStream { servers: String },
    #[error(
        "the stream {stream} is not the one that Hangar made: {why}; choose another `prefix` in [fleet], or remove the stream"
    )]
    Shape { stream: String, why: String },
    #[error("the stream {stream} is full: {why}")]
    Full { stream: &'static str, why: String },
    /// The log has another writer now.
    #[error("another worker has taken the log {subject} over")]
    Moved { subject: String },
    #[error("a message of version {found} needs a newer Hangar; this one reads version {}", crate::VERSION)]
    Newer { found: u32 },
    #[error("{doing}: {why}")]
    Failed { doing: String, why: String },
    #[error("nobody has the session {0} open")]
    NoOwner(String),
}

impl FleetError {
    /// An error of the client library, with what was being done.
    pub(crate) fn of(
        doing: impl Into<String>,
    ) -> impl FnOnce(Box<dyn std::error::Error + Send + Sync>) -> Self {
        let doing = doing.into();
        move |error| Self::Failed { doing, why: sentence(&*error) }
    }

    pub(crate) fn failed(doing: impl Into<String>, error: &(dyn std::error::Error + 'static)) -> Self {
        Self::Failed { doing: doing.into(), why: sentence(error) }
    }
}

/// An error with its causes, in one line.
fn sentence(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let more = next.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = next.source();
    }
    text
}
