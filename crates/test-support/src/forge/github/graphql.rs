//! GraphQL of the simulated GitHub, as far as review threads go. Queries are parsed and executed: a field that the type lacks
//! is refused, and so is a connection without `first`.

use serde_json::{Map, Value, json};

use crate::forge::http::{Answer, Request};
use crate::forge::{Note, Repository};

pub(crate) struct Field {
    /// Type that a fragment is for.
    on: Option<String>,
    pub(crate) name: String,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) fields: Vec<Field>,
}

pub(in crate::forge) fn answer(repository: &mut Repository, request: &Request) -> Answer {
    let (query, variables) = (request.body["query"].as_str().unwrap_or_default(), &request.body["variables"]);
    let tokens = tokens(query);
    let result = parsed(&tokens, variables).and_then(|fields| {
        let mut data = Map::new();
        for field in &fields {
            data.insert(field.name.clone(), root(repository, field)?);
        }
        Ok(data)
    });
    // As on the real one, a refused query is answered with 200.
    Answer::new(
        200,
        match result {
            Ok(data) => json!({ "data": data }),
            Err(message) => json!({ "data": null, "errors": [{ "message": message }] }),
        },
    )
}

fn root(repository: &mut Repository, field: &Field) -> Result<Value, String> {
    match field.name.as_str() {
        "repository" => {
            if field.arguments.get("owner") != Some(&json!("octo"))
                || field.arguments.get("name") != Some(&json!("app"))
            {
                return Err("Could not resolve to a Repository".to_owned());
            }
            let mut found = Map::new();
            for inner in &field.fields {
                let number = inner.arguments.get("number").and_then(Value::as_u64).unwrap_or(0);
                let node = match inner.name.as_str() {
                    "issue" => repository.issue_node(number)?,
                    "pullRequest" if repository.pulls.contains_key(&number) => pull(repository, number),
                    _ => return Err("Could not resolve to a PullRequest".to_owned()),
                };
                found.insert(inner.name.clone(), selected(&node, inner)?);
            }
            Ok(Value::Object(found))
        }
        "repositoryOwner" if field.arguments.get("login") == Some(&json!("octo")) => {
            repository.owner_json(field)
        }
        "repositoryOwner" => Ok(Value::Null),
        "addProjectV2ItemById" => repository.add_item(field),
        "updateProjectV2ItemFieldValue" => repository.set_item(field),
        "resolveReviewThread" => {
            let id = field.arguments.get("input").map(|input| input["threadId"].clone()).unwrap_or_default();
            let mut threads = repository.pulls.values_mut().flat_map(|pull| &mut pull.threads);
            let thread = threads.find(|thread| id == node_id(thread.id).as_str());
            let thread = thread.ok_or("Could not resolve to a node with the global id")?;
            thread.resolved = true;
            let shown = json!({
                "__typename": "ResolveReviewThreadPayload",
                "thread": { "__typename": "PullRequestReviewThread", "id": node_id(thread.id), "isResolved": true },
            });
            selected(&shown, field)
        }
        other => Err(format!("Field '{other}' doesn't exist on type 'Query'")),
    }
}

fn pull(repository: &Repository, number: u64) -> Value {
    let pull = &repository.pulls[&number];
    let threads = pull.threads.iter().map(|thread| {
        json!({
            "__typename": "PullRequestReviewThread", "id": node_id(thread.id), "isResolved": thread.resolved,
            "isOutdated": repository.is_outdated(pull, thread), "path": thread.path, "line": thread.line,
            "startLine": null, "comments": thread.comments.iter().map(comment).collect::<Vec<_>>(),
        })
    });
    json!({ "__typename": "PullRequest", "number": number, "reviewThreads": threads.collect::<Vec<_>>() })
}

/// Id of a thread, which is not a number here.
fn node_id(id: u64) -> String {
    format!("PRRT_{id}")
}

fn comment(note: &Note) -> Value {
    json!({
        "__typename": "PullRequestReviewComment", "databaseId": note.id, "id": format!("PRRC_{}", note.id),
        "body": note.body, "createdAt": note.at,
        "author": { "__typename": if note.is_bot { "Bot" } else { "User" }, "login": note.author },
    })
}

/// The fields of a value that were asked for.
pub(crate) fn selected(value: &Value, field: &Field) -> Result<Value, String> {
    match value {
        Value::Array(items) => connection(items, field),
        // A list that is no connection.
        Value::Object(map) if map.contains_key("__list") => {
            let items = map["__list"].as_array().into_iter().flatten();
            items.map(|item| selected(item, field)).collect::<Result<Vec<_>, _>>().map(Value::Array)
        }
        Value::Object(map) => {
            let name = map.get("__typename").and_then(Value::as_str).unwrap_or("Object");
            if field.fields.is_empty() {
                return Err(format!("Field must have selections (field '{}' returns {name})", field.name));
            }
            let mut found = Map::new();
            for inner in fields_on(&field.fields, name) {
                let value = map.get(&inner.name);
                let value =
                    value.ok_or_else(|| format!("Field '{}' doesn't exist on type '{name}'", inner.name))?;
                found.insert(inner.name.clone(), selected(value, inner)?);
            }
            Ok(Value::Object(found))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(value.clone()),
    }
}

/// Fields that are asked for of a type: its own, and those of fragments that are for it.
fn fields_on<'a>(fields: &'a [Field], name: &str) -> Vec<&'a Field> {
    let is_owner = ["Organization", "User"].contains(&name);
    let mut found = Vec::new();
    for field in fields {
        match field.on.as_deref() {
            None => found.push(field),
            Some(on) if on == name || (on == "ProjectV2Owner" && is_owner) => {
                found.extend(fields_on(&field.fields, name));
            }
            Some(_) => {}
        }
    }
    found
}

fn connection(items: &[Value], field: &Field) -> Result<Value, String> {
    let first = field.arguments.get("first").and_then(Value::as_u64);
    let Some(first) = first.filter(|first| (1..=100).contains(first)) else {
        return Err(format!(
            "You must provide a `first` or `last` value to properly paginate the `{}` connection.",
            field.name
        ));
    };
    let after =
        field.arguments.get("after").and_then(Value::as_str).and_then(|after| after.parse::<usize>().ok());
    let start = after.unwrap_or(0).min(items.len());
    let end = (start + first as usize).min(items.len());
    let mut found = Map::new();
    for inner in &field.fields {
        let value = match inner.name.as_str() {
            "totalCount" => json!(items.len()),
            "pageInfo" => {
                let info = json!({
                    "__typename": "PageInfo", "hasNextPage": end < items.len(), "endCursor": end.to_string(),
                });
                selected(&info, inner)?
            }
            "nodes" => {
                let nodes: Result<Vec<Value>, String> =
                    items[start..end].iter().map(|item| selected(item, inner)).collect();
                Value::Array(nodes?)
            }
            other => return Err(format!("Field '{other}' doesn't exist on a connection")),
        };
        found.insert(inner.name.clone(), value);
    }
    Ok(Value::Object(found))
}

pub(crate) fn tokens(query: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut word = String::new();
    for c in query.chars() {
        if c.is_alphanumeric() || c == '_' {
            word.push(c);
            continue;
        }
        if !word.is_empty() {
            all.push(std::mem::take(&mut word));
        }
        if !c.is_whitespace() && c != ',' {
            all.push(c.to_string());
        }
    }
    all
}

pub(crate) fn parsed(tokens: &[String], variables: &Value) -> Result<Vec<Field>, String> {
    let start = tokens.iter().position(|token| token == "{").ok_or("Parse error: no selection")?;
    let mut at = start + 1;
    let fields = fields(tokens, &mut at, variables)?;
    if at < tokens.len() { Err("Parse error: unexpected end".to_owned()) } else { Ok(fields) }
}

/// Fields up to the closing brace.
fn fields(tokens: &[String], at: &mut usize, variables: &Value) -> Result<Vec<Field>, String> {
    let mut all = Vec::new();
    loop {
        let name = tokens.get(*at).ok_or("Parse error: a brace is open")?.clone();
        *at += 1;
        if name == "}" {
            return Ok(all);
        }
        let mut field = Field { on: None, name, arguments: Map::new(), fields: Vec::new() };
        if field.name == "." {
            // `... on Type {`
            let is_fragment = tokens[*at..].starts_with(&[".".to_owned(), ".".to_owned(), "on".to_owned()]);
            field.on = tokens.get(*at + 3).cloned().filter(|_| is_fragment);
            field.on.as_ref().ok_or("Parse error on \".\"")?;
            *at += 4;
        }
        if tokens.get(*at).is_some_and(|token| token == "(") {
            *at += 1;
            field.arguments = arguments(tokens, at, variables, ")")?;
        }
        if tokens.get(*at).is_some_and(|token| token == "{") {
            *at += 1;
            field.fields = fields(tokens, at, variables)?;
        }
        all.push(field);
    }
}

/// `name: value` up to a closing sign. Values are variables, numbers and objects of them.
fn arguments(
    tokens: &[String],
    at: &mut usize,
    variables: &Value,
    end: &str,
) -> Result<Map<String, Value>, String> {
    let mut all = Map::new();
    loop {
        let name = tokens.get(*at).ok_or("Parse error: a parenthesis is open")?.clone();
        *at += 1;
        if name == end {
            return Ok(all);
        }
        *at += 1;
        let first = tokens.get(*at).cloned().unwrap_or_default();
        *at += 1;
        let value = match first.as_str() {
            "$" => {
                let variable = tokens.get(*at).cloned().unwrap_or_default();
                *at += 1;
                variables[variable.as_str()].clone()
            }
            "{" => Value::Object(arguments(tokens, at, variables, "}")?),
            number => json!(number.parse::<u64>().map_err(|_| format!("Parse error on \"{number}\""))?),
        };
        all.insert(name, value);
    }
}
