//! The logs of the web page's tests, and what both folds make of them.

use std::path::{Path, PathBuf};

use expect_test::expect_file;
use hangar_protocol::{Body, Event};
use hangar_transcript::{Transcript, tool_words};
use serde_json::Value;

use crate::outline::outline;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/src/session/fixtures")
}

/// Every log by its name, in the order of the names.
pub(crate) fn logs() -> Vec<(String, Vec<Event>)> {
    let paths = std::fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect();
    paths.sort();
    let log = |path: PathBuf| {
        let lines = std::fs::read_to_string(&path).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        (name, lines.lines().map(|line| Event::parse(line).unwrap()).collect())
    };
    paths.into_iter().map(log).collect()
}

pub(crate) fn fold<'a>(events: impl IntoIterator<Item = &'a Event>) -> Transcript {
    let mut transcript = Transcript::new();
    for event in events {
        transcript.apply(event);
    }
    transcript
}

#[test]
fn every_log_has_the_outline_that_the_web_page_gives_it() {
    let logs = logs();
    assert!(logs.len() >= 18, "{} logs", logs.len());
    for (name, events) in logs {
        let live = outline(&fold(&events));
        let logged = outline(&fold(events.iter().filter(|event| !event.is_ephemeral())));
        expect_file![directory().join(format!("{name}.outline.txt"))]
            .assert_eq(&format!("followed live:\n{live}\nread from the log:\n{logged}"));
    }
}

/// The same event, as if its data could not be parsed.
pub(crate) fn unparsed(event: &Event) -> Event {
    let data = serde_json::to_value(event).unwrap()["data"].take();
    let data = serde_json::value::to_raw_value(&data).unwrap();
    let body = Body::Unknown { kind: event.kind().to_owned(), data };
    let timestamp = event.timestamp().to_owned();
    Event::new(event.id().clone(), timestamp, event.parent_id().cloned(), event.agent_id().cloned(), body)
}

#[test]
fn events_that_could_be_parsed_tell_what_their_json_tells() {
    for (name, events) in logs() {
        let unparsed: Vec<_> = events.iter().map(unparsed).collect();
        assert_eq!(outline(&fold(&events)), outline(&fold(&unparsed)), "{name}");
    }
}

#[test]
fn calls_have_the_words_that_the_web_page_gives_them() {
    let cases = std::fs::read_to_string(directory().join("toolWords.json")).unwrap();
    let cases: Vec<(String, Value, String, bool)> = serde_json::from_str(&cases).unwrap();
    for (name, args, expected, is_code) in cases {
        let words = tool_words(&name, &args);
        assert_eq!((format!("{} {}", words.verb, words.object), words.is_code), (expected, is_code));
    }
    let long = tool_words("bash", &serde_json::json!({ "command": "x".repeat(300) }));
    assert_eq!(long.object, format!("{}…", "x".repeat(200)));
}
