//! Telemetry as the environment asks for it: off unless a file or a collector is named.

use std::path::PathBuf;
use std::sync::OnceLock;

use hangar_agent::driver::EventSink;
use hangar_agent::model::ProviderFacts;
use hangar_telemetry::{Destination, Exporter, Instrumentation, SessionAttributes, Tap};

use crate::output::remark;
use crate::settings::Settings;

/// Default address of collectors.
const USUAL_COLLECTOR: &str = "http://127.0.0.1:4318";

/// Exporter for all sessions of the process; `None` if telemetry is off or unavailable.
static EXPORTER: OnceLock<Option<Exporter>> = OnceLock::new();

/// Adds telemetry to the sink of a session, if it is enabled.
pub(crate) fn tap(
    settings: &Settings,
    sink: Box<dyn EventSink>,
    conversation: &str,
    provider: ProviderFacts,
) -> Box<dyn EventSink> {
    let Some(exporter) = exporter(settings) else { return sink };
    let content = settings.flag("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT");
    let subject = SessionAttributes { conversation: conversation.to_owned(), provider, content };
    Box::new(Tap::new(sink, subject, exporter))
}

/// The exporter of the process; `None` if telemetry is off.
pub(crate) fn exporter(settings: &Settings) -> Option<Exporter> {
    EXPORTER.get_or_init(|| start(settings)).clone()
}

/// Writes what is left before the program ends.
pub(crate) fn finish() {
    if let Some(Some(exporter)) = EXPORTER.get() {
        exporter.finish();
    }
}

fn start(settings: &Settings) -> Option<Exporter> {
    let destination = destination(settings)?;
    let source = Instrumentation {
        scope: settings.var("COPILOT_OTEL_SOURCE_NAME").unwrap_or("hangar").to_owned(),
        service: settings.var("OTEL_SERVICE_NAME").unwrap_or("hangar").to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let started = Exporter::start(destination, source, jiff::Timestamp::now);
    started.map_err(|error| remark(&format!("note: no telemetry: {:#}", anyhow::Error::from(error)))).ok()
}

fn destination(settings: &Settings) -> Option<Destination> {
    let file = settings.var("COPILOT_OTEL_FILE_EXPORTER_PATH").map(PathBuf::from);
    let endpoint = settings.var("OTEL_EXPORTER_OTLP_ENDPOINT");
    match (file, endpoint) {
        (Some(path), None) => Some(Destination::File(path)),
        (Some(path), Some(_)) if settings.var("COPILOT_OTEL_EXPORTER_TYPE") != Some("otlp-http") => {
            Some(Destination::File(path))
        }
        (None, None) if !settings.flag("COPILOT_OTEL_ENABLED") => None,
        (_, endpoint) => {
            let endpoint = endpoint.unwrap_or(USUAL_COLLECTOR).to_owned();
            Some(Destination::Collector { endpoint, headers: headers(settings) })
        }
    }
}

/// `name=value` pairs with commas between them.
fn headers(settings: &Settings) -> Vec<(String, String)> {
    let given = settings.var("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default();
    let pairs = given.split(',').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect()
}
