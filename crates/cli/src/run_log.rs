//! Logs of runs: `logs/runs/RUN.jsonl` in the home has one JSON object per line for everything that Hangar says about a run.
//! Warnings and errors about nothing in particular go to `logs/hangar.jsonl`.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

use crate::redact::Redactor;

/// Size at which a log is put aside, in place of the one that was put aside before.
const MOST_BYTES: u64 = 4 << 20;
/// Longest text of a field.
const MOST_TEXT: usize = 4096;

/// Writes the logs.
pub(crate) struct RunLogs {
    dir: PathBuf,
    redactor: Redactor,
}

impl RunLogs {
    pub(crate) fn new(dir: PathBuf, redactor: Redactor) -> Self {
        Self { dir, redactor }
    }

    /// File for an event, if it is to be logged.
    fn file(&self, fields: &Map<String, Value>, level: Level) -> Option<PathBuf> {
        match fields.get("run").and_then(Value::as_str) {
            Some(run) if is_file_name(run) => Some(self.dir.join("runs").join(format!("{run}.jsonl"))),
            Some(_) => None,
            None => (level <= Level::WARN).then(|| self.dir.join("hangar.jsonl")),
        }
    }
}

impl<S: Subscriber> Layer<S> for RunLogs {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let level = *event.metadata().level();
        if level > Level::INFO || !event.metadata().target().starts_with("hangar") {
            return;
        }
        let mut fields = Fields(Map::new());
        event.record(&mut fields);
        let Some(path) = self.file(&fields.0, level) else { return };
        let mut line = Map::new();
        line.insert("at".to_owned(), format!("{:.3}", jiff::Timestamp::now()).into());
        line.insert("level".to_owned(), level.as_str().to_lowercase().into());
        line.extend(fields.0);
        let line = self.redactor.text(Value::Object(line).to_string());
        // A log that cannot be written is no reason to end the work.
        let _ = append(&path, &line);
    }
}

/// Ids of runs come from requests, too.
fn is_file_name(run: &str) -> bool {
    !run.is_empty() && run.len() <= 128 && run.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
}

fn append(path: &Path, line: &str) -> std::io::Result<()> {
    if let Some(dir) = path.parent() {
        hangar_disk::ensure_dir(dir)?;
    }
    if path.metadata().is_ok_and(|data| data.len() >= MOST_BYTES) {
        std::fs::rename(path, path.with_extension("old.jsonl"))?;
    }
    let mut file: File = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    file.write_all(format!("{line}\n").as_bytes())
}

/// Fields of an event as JSON.
struct Fields(Map<String, Value>);

impl Fields {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, &value[..value.floor_char_boundary(MOST_TEXT)]);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[test]
    fn a_line_goes_to_the_log_of_its_run() {
        let dir = tempfile::tempdir().expect("a directory");
        let logs = RunLogs::new(dir.path().to_owned(), Redactor::default());
        let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(logs));
        tracing::info!(run = "r-1", attempt = 2, "work has a slot");
        tracing::info!("nothing in particular");
        tracing::warn!(run = "../../x", "not a name");
        tracing::error!(error = "full", "the ledger cannot be written");
        let read = |name: &str| {
            let text = std::fs::read_to_string(dir.path().join(name)).expect("a log");
            let line: Value = serde_json::from_str(text.trim()).expect("one line of JSON");
            line
        };
        let line = read("runs/r-1.jsonl");
        assert_eq!(
            (&line["message"], &line["attempt"], &line["level"]),
            (&"work has a slot".into(), &2.into(), &"info".into())
        );
        assert_eq!(read("hangar.jsonl")["error"], "full");
        assert_eq!(std::fs::read_dir(dir.path().join("runs")).expect("runs").count(), 1);
    }
}
