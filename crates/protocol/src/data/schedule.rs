//! Prompts that a session sends itself later.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// A prompt was scheduled. One with an interval is sent once or again and again; other programs have further kinds, whose
/// times are in members that are not read here.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleCreated {
    /// Number in the session, from 1.
    pub id: u64,
    pub interval_ms: Option<u64>,
    pub prompt: String,
    /// Whether it is sent again and again; so if absent.
    pub recurring: Option<bool>,
    /// What is shown in place of the prompt.
    pub display_prompt: Option<String>,
}

/// A scheduled prompt was stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleCancelled {
    pub id: u64,
}

/// `source` of the user's message that a schedule has sent.
pub fn schedule_source(id: u64) -> String {
    format!("schedule-{id}")
}

/// The schedule that a user's message with this `source` comes from.
pub fn schedule_of_source(source: &str) -> Option<u64> {
    source.strip_prefix("schedule-")?.parse().ok()
}
