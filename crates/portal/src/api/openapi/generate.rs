//! Generates the description of the API from the table of routes and the types that they take and give.

use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::api::Endpoint;
use crate::api::described::Answered;
use crate::problem::Problem;

/// The description by OpenAPI 3.1, for a portal that wants its token shown or has none.
fn describe(endpoints: &[Endpoint], needs_token: bool) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
    });
    // Request and response schemas differ in their required members.
    let mut taken = settings.clone().for_deserialize().into_generator();
    let mut given = settings.for_serialize().into_generator();
    let problem = given.subschema_for::<Problem>().to_value();
    let refusal = json!({
        "description": "Refused, with the reason",
        "content": { "application/problem+json": { "schema": problem } },
    });
    let mut paths = Map::new();
    for endpoint in endpoints {
        let mut operation =
            json!({ "summary": endpoint.described.summary, "operationId": operation_id(endpoint) });
        let mut parameters = path_parameters(endpoint.path);
        if let Some(query) = endpoint.described.query {
            let schema = query(&mut taken).to_value();
            parameters.extend(query_parameters(&schema, taken.definitions()));
        }
        if !parameters.is_empty() {
            operation["parameters"] = Value::Array(parameters);
        }
        if let Some(body) = endpoint.described.body {
            let schema = body(&mut taken).to_value();
            operation["requestBody"] =
                json!({ "required": true, "content": { "application/json": { "schema": schema } } });
        }
        let (status, answer) = match &endpoint.described.answer {
            Answered::Json(status, schema) => {
                let schema = schema(&mut given).to_value();
                (
                    *status,
                    json!({ "description": "Done", "content": { "application/json": { "schema": schema } } }),
                )
            }
            Answered::Empty(status) => (*status, json!({ "description": "Done" })),
            Answered::Stream(what) => (
                200,
                json!({ "description": what, "content": { "text/event-stream": { "schema": { "type": "string" } } } }),
            ),
        };
        if needs_token && endpoint.described.open {
            operation["security"] = json!([]);
        }
        operation["responses"] = json!({ status.to_string(): answer, "default": refusal });
        let path = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        path[endpoint.method] = operation;
    }
    let mut schemas = taken.take_definitions(true);
    schemas.extend(given.take_definitions(true));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Hangar portal",
            "version": "1",
            "description": "Sessions, runs, agents and approvals. With a token: `Authorization: Bearer TOKEN`.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
        "security": if needs_token { json!([{ "token": [] }]) } else { json!([]) },
    })
}

fn operation_id(endpoint: &Endpoint) -> String {
    let words = endpoint.path.trim_start_matches("/api/v1/").split(['/', '.']);
    let words = words.map(|word| word.trim_matches(['{', '}']));
    std::iter::once(endpoint.method).chain(words).collect::<Vec<_>>().join("_")
}

fn path_parameters(path: &str) -> Vec<Value> {
    let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    names
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
        .collect()
}

/// The members of a type, each as a parameter.
fn query_parameters(schema: &Value, definitions: &Map<String, Value>) -> Vec<Value> {
    let name = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next());
    let shape = name.and_then(|name| definitions.get(name)).unwrap_or(schema);
    let members = shape["properties"].as_object().into_iter().flatten();
    members
        .map(|(name, schema)| {
            let schema = as_typed(schema.clone());
            let mut parameter = json!({ "name": name, "in": "query", "required": false, "schema": schema });
            if let Some(description) = schema["description"].as_str() {
                parameter["description"] = description.into();
            }
            parameter
        })
        .collect()
}

/// Schema of a query parameter: it is omitted where a body could have `null`, and a number is bounded.
fn as_typed(mut schema: Value) -> Value {
    if let Some(kinds) = schema["type"].as_array() {
        let mut kinds: Vec<Value> = kinds.iter().filter(|kind| **kind != "null").cloned().collect();
        schema["type"] = if kinds.len() == 1 { kinds.remove(0) } else { kinds.into() };
    }
    if let Some(choices) = schema.get_mut("anyOf").and_then(Value::as_array_mut) {
        choices.retain(|choice| choice["type"] != "null");
    }
    if schema["format"].as_str().is_some_and(|format| format.starts_with("uint")) {
        schema["maximum"] = u64::MAX.into();
    }
    schema
}

/// `cargo xtask types` writes it again, with the types of the pages.
#[test]
fn the_committed_document_is_the_one_that_is_served() {
    let document = describe(&crate::api::endpoints(), true);
    let text = serde_json::to_string_pretty(&document).unwrap_or_default() + "\n";
    expect_test::expect_file!["../../../../../docs/openapi.json"].assert_eq(&text);
}

#[test]
fn a_name_means_one_shape_whether_it_is_taken_or_given() {
    let settings = SchemaSettings::draft2020_12();
    let mut taken = settings.clone().for_deserialize().into_generator();
    let mut given = settings.for_serialize().into_generator();
    for endpoint in crate::api::endpoints() {
        endpoint
            .described
            .query
            .into_iter()
            .chain(endpoint.described.body)
            .for_each(|schema| drop(schema(&mut taken)));
        if let Answered::Json(_, schema) = endpoint.described.answer {
            schema(&mut given);
        }
    }
    let taken: BTreeMap<_, _> = taken.take_definitions(true).into_iter().collect();
    for (name, shape) in given.take_definitions(true) {
        assert!(taken.get(&name).is_none_or(|other| *other == shape), "{name} has two shapes");
        assert!(!name.ends_with(char::is_numeric), "{name}: two types have the same name");
    }
}

#[test]
fn the_served_document_is_that_of_the_routes() {
    for needs_token in [true, false] {
        let generated = describe(&crate::api::endpoints(), needs_token);
        assert!(super::served(needs_token).is_some_and(|served| served == generated), "{needs_token}");
    }
}
