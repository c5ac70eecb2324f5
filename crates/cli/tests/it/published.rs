//! Shapes that the SDK publishes: of events and of what methods answer. They come with its package and are no part of this
//! repository.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use jsonschema::{Keyword, ValidationError, Validator};
use serde_json::{Map, Value, json};

const FOLDER: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../e2e/node_modules/@github/copilot-sdk-linux-x64/schemas");

/// How a document refers to its own definitions.
pub(crate) const LOCAL: &str = "#/definitions/";

pub(crate) const EVENTS: &str = "session-events.schema.json";

/// Events are held against the schema of their own type, and some types are not published.
const ANY_EVENT: &str = "SessionEvent";

/// A mark that we put beside `"type": "integer"`.
const WHOLE: &str = "wholeNumber";

/// A document of the package.
pub(crate) fn document(name: &str) -> Value {
    let path = Path::new(FOLDER).join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| {
        panic!("the SDK's schema is not installed ({}: {error}); run `cargo xtask test` once", path.display())
    });
    serde_json::from_str(&text).expect("the schema is JSON")
}

/// Names of the methods that the package of Python calls.
pub(crate) fn methods_of_python() -> Vec<String> {
    const LIBRARY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../e2e/sdk-python/.venv/lib");
    const CALL: &str = ".request(\"";
    let pythons = std::fs::read_dir(LIBRARY).into_iter().flatten().flatten();
    let module = |python: std::fs::DirEntry| python.path().join("site-packages/copilot/generated/rpc.py");
    let Some(text) = pythons.map(module).find_map(|module| std::fs::read_to_string(module).ok()) else {
        panic!("the Python SDK is not installed below {LIBRARY}; run `cargo xtask test` once")
    };
    let names = text.split(CALL).skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned()));
    names.collect()
}

/// One validator per shape, made when the first value of that shape comes, of no more than it refers to: making them takes
/// longer than using them.
pub(crate) struct Shapes {
    pub(crate) definitions: Map<String, Value>,
    validators: RefCell<BTreeMap<String, Validator>>,
}

impl Shapes {
    /// The definitions of a document, which are taken out of it.
    pub(crate) fn of(document: &mut Value) -> Self {
        let Value::Object(definitions) = document["definitions"].take() else { panic!("no definitions") };
        Self { definitions, validators: RefCell::default() }
    }

    /// Adds the definitions of the document about events, which others refer to.
    pub(crate) fn know_events(&mut self) {
        let Value::Object(events) = document(EVENTS)["definitions"].take() else { panic!("no definitions") };
        for (name, mut definition) in events {
            abroad(&mut definition);
            self.definitions.insert(of_events(&name), definition);
        }
    }

    /// Where a value is not as its schema says. A schema is known by its name from the second time on.
    pub(crate) fn problems(&self, name: &str, schema: &Value, value: &Value) -> Vec<String> {
        let mut validators = self.validators.borrow_mut();
        let validator = validators.entry(name.to_owned()).or_insert_with(|| self.validator(schema));
        validator.iter_errors(value).map(|error| format!("{error} at {}", error.instance_path())).collect()
    }

    fn validator(&self, schema: &Value) -> Validator {
        let mut root = schema.clone();
        let mut needed = BTreeMap::new();
        self.gather(&mut root, &mut needed);
        root["definitions"] = json!(needed);
        // Ids are read as UUIDs and times as times, in languages that have types for them.
        let options = jsonschema::options().should_validate_formats(true);
        let options = options.with_keyword(WHOLE, |_, _, _| Ok(Box::new(Whole)));
        options.build(&root).expect("the schema is valid")
    }

    /// The definitions that a schema refers to.
    fn gather(&self, schema: &mut Value, needed: &mut BTreeMap<String, Value>) {
        match schema {
            Value::Object(members) => {
                if let Some(reference) = members.get("$ref").and_then(Value::as_str).map(str::to_owned) {
                    let name = match reference.split_once(LOCAL) {
                        Some(("", name)) => name.to_owned(),
                        Some((_, name)) => of_events(name),
                        None => panic!("{reference} is no definition"),
                    };
                    if name == of_events(ANY_EVENT) || !self.definitions.contains_key(&name) {
                        *members = Map::new();
                    } else {
                        members.insert("$ref".to_owned(), json!(format!("{LOCAL}{name}")));
                        if !needed.contains_key(&name) {
                            let mut definition = self.definitions[&name].clone();
                            needed.insert(name.clone(), Value::Null);
                            self.gather(&mut definition, needed);
                            needed.insert(name, definition);
                        }
                    }
                }
                members.values_mut().for_each(|member| self.gather(member, needed));
                if members.get("type").is_some_and(|kind| kind == "integer") {
                    members.insert(WHOLE.to_owned(), json!(true));
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.gather(item, needed)),
            _ => {}
        }
    }
}

/// The name of a definition of the events among those of another document.
fn of_events(name: &str) -> String {
    format!("events.{name}")
}

/// Makes the references of a definition those of a definition in another document.
fn abroad(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get_mut("$ref") {
                *reference = format!("{EVENTS}{reference}");
            }
            members.values_mut().for_each(abroad);
        }
        Value::Array(items) => items.iter_mut().for_each(abroad),
        _ => {}
    }
}

/// `1.0` is an integer by the rules of JSON Schema, and none for Go and .NET.
struct Whole;

impl<'i> Keyword<'i> for Whole {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.is_valid(instance) {
            Ok(())
        } else {
            Err(ValidationError::custom("a fraction, not a whole number"))
        }
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        !instance.is_f64()
    }
}
