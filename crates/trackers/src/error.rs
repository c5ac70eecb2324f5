//! Errors of trackers, with the names that orchestrators know.

use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TrackerErrorKind {
    /// The connection or the file failed.
    Transport,
    /// The service answered with an error.
    Api,
    RateLimited,
    Auth,
    NotFound,
    /// The answer has no valid issues.
    Payload,
    /// A page announces a next one without its cursor.
    MissingEndCursor,
    UnsupportedKind,
    MissingApiKey,
    MissingProject,
    InvalidConfig,
    /// A branch has no commits that its base lacks.
    NothingToMerge,
    /// The pull request cannot be merged as it is.
    NotMergeable,
}

impl TrackerErrorKind {
    pub fn as_str(self) -> &'static str {
        match self {
            TrackerErrorKind::Transport => "tracker_transport_error",
            TrackerErrorKind::Api => "tracker_api_error",
            TrackerErrorKind::RateLimited => "tracker_rate_limited",
            TrackerErrorKind::Auth => "tracker_auth_error",
            TrackerErrorKind::NotFound => "tracker_not_found",
            TrackerErrorKind::Payload => "tracker_payload_error",
            TrackerErrorKind::MissingEndCursor => "tracker_missing_end_cursor",
            TrackerErrorKind::UnsupportedKind => "unsupported_tracker_kind",
            TrackerErrorKind::MissingApiKey => "missing_tracker_api_key",
            TrackerErrorKind::MissingProject => "missing_tracker_project",
            TrackerErrorKind::InvalidConfig => "invalid_tracker_config",
            TrackerErrorKind::NothingToMerge => "scm_nothing_to_merge",
            TrackerErrorKind::NotMergeable => "scm_not_mergeable",
        }
    }

    /// Whether the same request may succeed later.
    pub fn is_retryable(self) -> bool {
        match self {
            TrackerErrorKind::Transport
            | TrackerErrorKind::Api
            | TrackerErrorKind::RateLimited
            | TrackerErrorKind::MissingEndCursor => true,
            TrackerErrorKind::Auth
            | TrackerErrorKind::NotFound
            | TrackerErrorKind::Payload
            | TrackerErrorKind::UnsupportedKind
            | TrackerErrorKind::MissingApiKey
            | TrackerErrorKind::MissingProject
            | TrackerErrorKind::InvalidConfig
            | TrackerErrorKind::NothingToMerge
            | TrackerErrorKind::NotMergeable => false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TrackerError {
    pub kind: TrackerErrorKind,
    /// One sentence.
    pub message: String,
    /// How long the service asks to wait.
    pub retry_after: Option<Duration>,
}

impl TrackerError {
    pub fn new(kind: TrackerErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None }
    }
}
