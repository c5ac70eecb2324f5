//! Every event that Hangar emits is one that the published SDK can read.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::captures::case::Captures;
use crate::captures::run::{Subject, run_all};
use crate::published::{EVENTS, Shapes, document};

/// Types that the reference emits and the SDK's schema does not know yet.
const UNPUBLISHED: [&str; 7] = [
    "hangar.answer_cut",
    "hangar.model_items",
    "hangar.tools_offered",
    "model.call_final_result",
    "tool.shell_output",
    "session.autopilot_stopped",
    "session.usage_record",
];

/// Problems of one type that are shown; the rest are more of the same.
const SHOWN: usize = 3;

#[test]
fn every_event_on_stdout_and_on_disk_is_valid() {
    let schema = Schema::load();
    let captures = Captures::load();
    let mut invalid: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut checked = 0;
    for chain in run_all(&captures, &Subject::Hangar, &["--all-events"]) {
        let mut events: Vec<Value> = Vec::new();
        for (case, outcome) in &chain.outcomes {
            if let (true, Ok(outcome)) = (case.prints_json(), outcome) {
                events.extend(outcome.finished.events());
            }
        }
        for session in chain.scratch.sessions() {
            let log = chain.scratch.log(&session);
            events.extend(
                log.lines().map(|line| serde_json::from_str::<Value>(line).expect("a log holds JSON")),
            );
        }
        for event in events.iter().filter(|event| event["type"] != "result") {
            checked += 1;
            for problem in schema.problems(event) {
                invalid.entry(event["type"].to_string()).or_default().insert(problem);
            }
        }
    }
    let report: String = invalid
        .iter()
        .flat_map(|(kind, problems)| {
            problems.iter().take(SHOWN).map(move |problem| format!("{kind}: {problem}\n"))
        })
        .collect();
    assert!(report.is_empty(), "\n{report}");
    assert!(checked > 1000, "only {checked} events were seen");
}

/// The events, each by its type: an error of the whole schema would only say that none of 150 types fits.
pub(crate) struct Schema {
    shapes: Shapes,
    /// The definition of each type.
    names: BTreeMap<String, String>,
}

impl Schema {
    pub(crate) fn load() -> Self {
        let shapes = Shapes::of(&mut document(EVENTS));
        let mut names = BTreeMap::new();
        for (name, definition) in &shapes.definitions {
            let kind = &definition["properties"]["type"]["const"];
            if let (Some(kind), true) = (kind.as_str(), definition["properties"]["data"].is_object()) {
                names.insert(kind.to_owned(), name.clone());
            }
        }
        Self { shapes, names }
    }

    pub(crate) fn problems(&self, event: &Value) -> Vec<String> {
        let kind = event["type"].as_str().unwrap_or_default();
        match self.names.get(kind) {
            Some(_) if UNPUBLISHED.contains(&kind) => {
                vec!["is published now: take it off the list".to_owned()]
            }
            None if UNPUBLISHED.contains(&kind) => Vec::new(),
            None => vec!["is not a type of the SDK".to_owned()],
            Some(name) => self.shapes.problems(kind, &self.shapes.definitions[name], event),
        }
    }
}
