//! The published schema of the methods: what each takes and what it answers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::published::{LOCAL, Shapes, document};

/// How deep an example goes where a schema contains itself.
const DEPTH: usize = 6;

/// The words of its schema say that its agent may be null, and so does the reference; the schema itself does not.
const NULL_BY_ITS_WORDS: &str = "session.agent.getCurrent";

pub(crate) struct Api {
    shapes: Shapes,
    methods: BTreeMap<String, Value>,
    /// Requests to clients.
    questions: BTreeMap<String, Value>,
}

impl Api {
    pub(crate) fn load() -> Self {
        let mut schema = document("api.schema.json");
        let mut methods = BTreeMap::new();
        collect(&schema["server"], &mut methods);
        collect(&schema["session"], &mut methods);
        let mut questions = BTreeMap::new();
        collect(&schema["clientSession"], &mut questions);
        collect(&schema["clientGlobal"], &mut questions);
        let mut shapes = Shapes::of(&mut schema);
        shapes.know_events();
        Self { shapes, methods, questions }
    }

    /// Where a result is not as published; nothing if nothing is published about it.
    pub(crate) fn problems(&self, method: &str, result: &Value) -> Vec<String> {
        let published = self.methods.get(method).and_then(|method| method.get("result"));
        let Some(schema) = published.filter(|schema| !schema.is_null()) else { return Vec::new() };
        if method == NULL_BY_ITS_WORDS && result["agent"].is_null() {
            return Vec::new();
        }
        self.shapes.problems(method, schema, result)
    }

    /// Where a question to a client is not as published.
    pub(crate) fn question_problems(&self, method: &str, params: &Value) -> Vec<String> {
        let published = self.questions.get(method).and_then(|method| method.get("params"));
        let Some(schema) = published.filter(|schema| !schema.is_null()) else { return Vec::new() };
        self.shapes.problems(&format!("to {method}"), schema, params)
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
            Some(name) => self.resolve(&self.shapes.definitions[name]),
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
