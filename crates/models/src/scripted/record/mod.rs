//! Recordings: exchanges with a real model, one JSON object per line, looked up by the conversation before them.
//!
//! A line holds the new part of the request (the messages after the last answer) and a digest of what preceded, so a
//! long session is recorded in linear space. System prompt, tool descriptions and the ids of calls are not compared:
//! they change without changing the conversation.

use hangar_agent::model::{ModelError, ModelEvent};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

mod names;
mod place;
mod recorder;
mod replay;

pub use names::RecordedNames;
pub use recorder::Recorder;
pub use replay::{Replay, ReplayError};

use place::RequestPosition;

/// Readers refuse other versions. It changes with the meaning of a line or of the model types within.
const VERSION: u32 = 1;

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Exchange {
    version: u32,
    model: String,
    #[serde(flatten)]
    place: RequestPosition,
    /// The names of the tools that were offered, for people.
    tools: Vec<String>,
    /// The last event is the reply, unless there was an error.
    events: Vec<ModelEvent>,
    error: Option<ModelError>,
}

#[cfg(test)]
mod tests;
