//! Records the requests to another provider and its answers.

use parking_lot::Mutex;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use futures_core::stream::BoxStream;
use futures_util::StreamExt;
use hangar_agent::model::{ModelError, ModelEvent, ModelProvider, ModelRequest, ProviderFacts};

use super::{Exchange, RecordedNames, RequestPosition, VERSION};

/// Bytes of an answer's pieces that are kept. Beyond that only its end is recorded, which has the whole text again.
const MAX_PIECES: usize = 8 * 1024 * 1024;

/// Passes everything through, and appends each exchange to a file when it has ended. Calls that are cancelled have no
/// end and are not recorded.
pub struct Recorder {
    provider: Arc<dyn ModelProvider>,
    tape: Arc<Tape>,
}

struct Tape {
    file: Mutex<File>,
    names: RecordedNames,
}

impl Recorder {
    /// Opens the file for appending. Conversations are private: others on the machine may not read a new one.
    pub fn open(provider: Arc<dyn ModelProvider>, path: &Path, names: RecordedNames) -> io::Result<Self> {
        let mut options = File::options();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = Mutex::new(options.open(path)?);
        Ok(Self { provider, tape: Arc::new(Tape { file, names }) })
    }
}

impl ModelProvider for Recorder {
    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        let tape = Arc::clone(&self.tape);
        let mut exchange = Exchange {
            version: VERSION,
            model: request.model.clone(),
            place: RequestPosition::of(request.messages.iter().map(|message| &**message), &tape.names),
            tools: request.tools.iter().map(|tool| tool.name.clone()).collect(),
            events: Vec::new(),
            error: None,
        };
        let mut kept = 0;
        let events = self.provider.stream(request);
        let recorded = events.inspect(move |event| match event {
            Ok(end @ ModelEvent::Finished(_)) => {
                exchange.events.push(end.clone());
                tape.append(&mut exchange);
            }
            Ok(piece) => {
                kept += size_of::<ModelEvent>() + bytes(piece);
                if kept <= MAX_PIECES {
                    exchange.events.push(piece.clone());
                }
            }
            Err(error) => {
                exchange.error = Some(error.clone());
                tape.append(&mut exchange);
            }
        });
        recorded.boxed()
    }

    fn facts(&self) -> ProviderFacts {
        self.provider.facts()
    }
}

fn bytes(piece: &ModelEvent) -> usize {
    match piece {
        ModelEvent::Text(delta) | ModelEvent::Reasoning(delta) | ModelEvent::ToolInput { delta, .. } => {
            delta.len()
        }
        ModelEvent::Notice(_) | ModelEvent::Finished(_) => 0,
    }
}

impl Tape {
    fn append(&self, exchange: &mut Exchange) {
        exchange.events = self.names.hide_events(std::mem::take(&mut exchange.events));
        exchange.error = exchange.error.take().map(|error| self.names.hide_error(error));
        let written = serde_json::to_string(exchange).map_err(io::Error::from).and_then(|line| {
            // One write per line, so that recorders of several processes do not mix theirs.
            let mut file = self.file.lock();
            file.write_all((line + "\n").as_bytes())
        });
        // A failed write must not fail the session; a replay reports the missing exchange.
        if let Err(error) = written {
            tracing::warn!(%error, "an exchange with the model was not recorded");
        }
    }
}
