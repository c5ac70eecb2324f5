//! Every event that Hangar emits is one that the published SDK can read.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::captures::case::Captures;
use crate::captures::run::{Subject, run_all};

const SCHEMA: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../e2e/node_modules/@github/copilot-sdk-linux-x64/schemas/session-events.schema.json"
);

/// Types that the reference emits and the SDK's schema does not know yet.
const UNPUBLISHED: [&str; 4] =
    ["model.call_final_result", "tool.shell_output", "session.autopilot_stopped", "session.usage_record"];

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

/// One validator per event type: an error of the whole schema would only say that none of 150 types fits. Each is made
/// when the first event of its type comes, because making them takes longer than using them.
pub(crate) struct Schema {
    definitions: Value,
    /// The definition of each type.
    names: BTreeMap<String, String>,
    validators: RefCell<BTreeMap<String, Validator>>,
}

impl Schema {
    pub(crate) fn load() -> Self {
        let text = std::fs::read_to_string(Path::new(SCHEMA)).unwrap_or_else(|error| {
            panic!("the SDK's event schema is not installed ({SCHEMA}: {error}); run `cargo xtask test` once")
        });
        let mut schema: Value = serde_json::from_str(&text).expect("the schema is JSON");
        let definitions = schema["definitions"].take();
        let mut names = BTreeMap::new();
        for (name, definition) in definitions.as_object().expect("the schema has definitions") {
            let kind = &definition["properties"]["type"]["const"];
            if let (Some(kind), true) = (kind.as_str(), definition["properties"]["data"].is_object()) {
                names.insert(kind.to_owned(), name.clone());
            }
        }
        Self { definitions, names, validators: RefCell::default() }
    }

    pub(crate) fn problems(&self, event: &Value) -> Vec<String> {
        let kind = event["type"].as_str().unwrap_or_default();
        match self.names.get(kind) {
            Some(_) if UNPUBLISHED.contains(&kind) => {
                vec!["is published now: take it off the list".to_owned()]
            }
            None if UNPUBLISHED.contains(&kind) => Vec::new(),
            None => vec!["is not a type of the SDK".to_owned()],
            Some(name) => {
                let mut validators = self.validators.borrow_mut();
                let validator = validators.entry(kind.to_owned()).or_insert_with(|| {
                    let root =
                        json!({ "$ref": format!("#/definitions/{name}"), "definitions": self.definitions });
                    jsonschema::validator_for(&root).expect("the schema is valid")
                });
                let problems = validator.iter_errors(event);
                problems.map(|error| format!("{error} at {}", error.instance_path())).collect()
            }
        }
    }
}
