//! Answers from a recording.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use futures_core::stream::BoxStream;
use futures_util::stream::{self, StreamExt};
use hangar_agent::model::{
    ModelError, ModelErrorKind, ModelEvent, ModelProvider, ModelRequest, ProviderFacts,
};

use super::{Exchange, RecordedNames, RequestPosition, VERSION};
use crate::error;

/// A recording is held in memory.
const MAX_RECORDING: u64 = 256 * 1024 * 1024;
/// Characters of a prompt that an error quotes.
const QUOTED_PROMPT: usize = 120;

/// Answers each request as the same conversation was answered when it was recorded. Equal requests get their answers in
/// recorded order, each once.
pub struct Replay {
    exchanges: HashMap<RequestPosition, Takes>,
    names: RecordedNames,
}

struct Takes {
    recorded: Vec<Exchange>,
    played: Mutex<usize>,
}

#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error("reading the recording")]
    Read(#[from] io::Error),
    #[error("the recording has more than {MAX_RECORDING} bytes")]
    TooLarge,
    #[error("line {line} of the recording is not an exchange")]
    Line { line: usize, source: serde_json::Error },
    #[error("line {line} of the recording has version {version}, not {VERSION}")]
    Version { line: usize, version: u32 },
}

impl Replay {
    /// Reads the file. `names` restores the values that were replaced with the same names.
    pub fn open(path: &Path, names: RecordedNames) -> Result<Self, ReplayError> {
        let file = File::open(path)?;
        if file.metadata()?.len() > MAX_RECORDING {
            return Err(ReplayError::TooLarge);
        }
        let mut exchanges: HashMap<RequestPosition, Takes> = HashMap::new();
        for (index, line) in BufReader::new(file).lines().enumerate() {
            let (line, number) = (line?, index + 1);
            let exchange: Exchange =
                serde_json::from_str(&line).map_err(|source| ReplayError::Line { line: number, source })?;
            if exchange.version != VERSION {
                return Err(ReplayError::Version { line: number, version: exchange.version });
            }
            match exchanges.entry(exchange.place.clone()) {
                Entry::Occupied(mut takes) => takes.get_mut().recorded.push(exchange),
                Entry::Vacant(place) => {
                    place.insert(Takes { recorded: vec![exchange], played: Mutex::new(0) });
                }
            }
        }
        Ok(Self { exchanges, names })
    }

    fn find(&self, request: &ModelRequest) -> Result<&Exchange, ModelError> {
        let place = RequestPosition::of(request.messages.iter().map(|message| &**message), &self.names);
        let prompt = quoted(place.prompt());
        let Some(takes) = self.exchanges.get(&place) else {
            let elsewhere = self.exchanges.keys().any(|other| other.asks_as(&place));
            return Err(miss(if elsewhere {
                format!("the recording has the prompt `{prompt}` only after another conversation")
            } else {
                format!("the prompt `{prompt}` is not in the recording")
            }));
        };
        let mut played = takes.played.lock();
        let Some(exchange) = takes.recorded.get(*played) else {
            return Err(miss(format!("the recording has no further answer to the prompt `{prompt}`")));
        };
        *played += 1;
        Ok(exchange)
    }
}

impl ModelProvider for Replay {
    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        let exchange = match self.find(&request) {
            Ok(exchange) => exchange,
            Err(error) => return stream::iter([Err(error)]).boxed(),
        };
        let wanted = |event: &&ModelEvent| request.stream || matches!(event, ModelEvent::Finished(_));
        let events = exchange.events.iter().filter(wanted);
        let mut events: Vec<_> = events.map(|event| Ok(self.names.show_event(event.clone()))).collect();
        events.extend(exchange.error.clone().map(|error| Err(self.names.show_error(error))));
        stream::iter(events).boxed()
    }

    fn facts(&self) -> ProviderFacts {
        ProviderFacts {
            endpoint: "/chat/completions",
            is_byok: true,
            base_url: "recording:".to_owned(),
            name: None,
            max_prompt_tokens: None,
            max_output_tokens: None,
            price: None,
        }
    }
}

fn quoted(prompt: &str) -> String {
    match prompt.char_indices().nth(QUOTED_PROMPT) {
        Some((end, _)) => format!("{}…", &prompt[..end]),
        None => prompt.to_owned(),
    }
}

fn miss(message: String) -> ModelError {
    error::bare(ModelErrorKind::Refused, message)
}
