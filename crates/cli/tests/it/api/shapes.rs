//! The published schema of the methods: what each takes and what it answers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Map, Value, json};

const SCHEMA: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../e2e/node_modules/@github/copilot-sdk-linux-x64/schemas/api.schema.json"
);

const LOCAL: &str = "#/definitions/";

/// How deep an example goes where a schema contains itself.
const DEPTH: usize = 6;

pub(super) struct Api {
    definitions: Map<String, Value>,
    methods: BTreeMap<String, Value>,
}

impl Api {
    pub(super) fn load() -> Self {
        let text = std::fs::read_to_string(Path::new(SCHEMA)).unwrap_or_else(|error| {
            panic!("the SDK's schema is not installed ({SCHEMA}: {error}); run `cargo xtask test` once")
        });
        let mut schema: Value = serde_json::from_str(&text).expect("the schema is JSON");
        let mut methods = BTreeMap::new();
        collect(&schema["server"], &mut methods);
        collect(&schema["session"], &mut methods);
        let Value::Object(definitions) = schema["definitions"].take() else { panic!("no definitions") };
        Self { definitions, methods }
    }

    /// Where a result is not as published; `None` if nothing is published about it.
    pub(super) fn problems(&self, method: &str, result: &Value) -> Option<Vec<String>> {
        let published = self.methods.get(method)?.get("result").filter(|schema| !schema.is_null())?;
        let mut root = published.clone();
        let mut needed = BTreeMap::new();
        self.gather(&mut root, &mut needed);
        root["definitions"] = json!(needed);
        let validator = jsonschema::validator_for(&root).expect("the schema is valid");
        let problems = validator.iter_errors(result);
        Some(problems.map(|error| format!("{error} at {}", error.instance_path())).collect())
    }

    /// The definitions that a schema refers to. Compiling all of them for every method would take minutes.
    fn gather(&self, schema: &mut Value, needed: &mut BTreeMap<String, Value>) {
        match schema {
            Value::Object(members) => {
                match members.get("$ref").and_then(Value::as_str).map(str::to_owned) {
                    Some(name) if name.starts_with(LOCAL) => {
                        let name = &name[LOCAL.len()..];
                        if !needed.contains_key(name) {
                            let mut definition = self.definitions[name].clone();
                            needed.insert(name.to_owned(), Value::Null);
                            self.gather(&mut definition, needed);
                            needed.insert(name.to_owned(), definition);
                        }
                    }
                    // Events have a schema of their own, and a test of their own.
                    Some(_) => *members = Map::new(),
                    None => {}
                }
                members.values_mut().for_each(|member| self.gather(member, needed));
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.gather(item, needed)),
            _ => {}
        }
    }

    /// The parameters of a method that have a name, each with an example of it.
    pub(super) fn parameters(&self, method: &str) -> BTreeMap<String, Value> {
        let Some(params) = self.methods.get(method).map(|method| self.resolve(&method["params"])) else {
            return BTreeMap::new();
        };
        let properties = params["properties"].as_object().into_iter().flatten();
        properties.map(|(name, schema)| (name.clone(), self.example(schema, DEPTH))).collect()
    }

    /// Those parameters that a method cannot do without.
    pub(super) fn required(&self, method: &str) -> BTreeSet<String> {
        let params = self.methods.get(method).map(|method| self.resolve(&method["params"]));
        let names = params.and_then(|params| params["required"].as_array()).into_iter().flatten();
        names.filter_map(Value::as_str).map(str::to_owned).collect()
    }

    fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str().and_then(|name| name.strip_prefix(LOCAL)) {
            Some(name) => self.resolve(&self.definitions[name]),
            None => schema,
        }
    }

    fn example(&self, schema: &Value, depth: usize) -> Value {
        let schema = self.resolve(schema);
        let first = |list: &Value| list.as_array().and_then(|list| list.first()).cloned();
        if depth == 0 {
            return Value::Null;
        }
        if let Some(value) = schema.get("const").cloned().or_else(|| first(&schema["enum"])) {
            return value;
        }
        if let Some(either) = first(&schema["anyOf"]).or_else(|| first(&schema["oneOf"])) {
            return self.example(&either, depth - 1);
        }
        match schema["type"].as_str() {
            Some("string") => json!("x"),
            Some("integer" | "number") => json!(1),
            Some("boolean") => json!(true),
            Some("array") => json!([self.example(&schema["items"], depth - 1)]),
            Some("object") => {
                let wanted = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
                wanted
                    .map(|name| (name.to_owned(), self.example(&schema["properties"][name], depth - 1)))
                    .collect()
            }
            _ => Value::Null,
        }
    }
}

fn collect(schema: &Value, methods: &mut BTreeMap<String, Value>) {
    let Some(members) = schema.as_object() else { return };
    match members.get("rpcMethod").and_then(Value::as_str) {
        Some(name) => {
            methods.insert(name.to_owned(), schema.clone());
        }
        None => members.values().for_each(|member| collect(member, methods)),
    }
}
