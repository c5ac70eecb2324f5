//! MCP servers of a client: conversion from the protocol's format to that of configuration files.

use serde_json::{Map, Value, json};

use crate::schema::{McpServer, Pair};

/// The servers by their names, and what is wrong with those that are left out: a session is not refused because of
/// them.
pub(crate) fn configured(servers: Vec<Value>) -> (Map<String, Value>, Vec<String>) {
    let mut configured = Map::new();
    let mut problems = Vec::new();
    for server in servers {
        let name = server["name"].as_str().unwrap_or_default().to_owned();
        let read = serde_json::from_value(server).map_err(|error| error.to_string());
        match read.and_then(config) {
            Ok(_) if name.is_empty() || name.chars().any(char::is_control) => {
                problems
                    .push(format!("MCP server `{}` is left out: its name is not one", name.escape_debug()));
            }
            Ok(_) if configured.contains_key(&name) => {
                problems.push(format!("MCP server `{name}` is there twice; the first counts"));
            }
            Ok(config) => {
                configured.insert(name, config);
            }
            Err(problem) => problems.push(format!("MCP server `{name}` is left out: {problem}")),
        }
    }
    (configured, problems)
}

fn config(server: McpServer) -> Result<Value, String> {
    let given = |value: Option<String>, field: &str| {
        value.filter(|value| !value.is_empty()).ok_or_else(|| format!("it has no `{field}`"))
    };
    Ok(match server.kind.as_deref() {
        None | Some("stdio") => {
            let command = given(server.command, "command")?;
            json!({ "type": "stdio", "command": command, "args": server.args, "env": table(server.env) })
        }
        Some(kind @ ("http" | "sse")) => {
            json!({ "type": kind, "url": given(server.url, "url")?, "headers": table(server.headers) })
        }
        Some(other) => return Err(format!("`{other}` is not a type of server")),
    })
}

fn table(pairs: Vec<Pair>) -> Map<String, Value> {
    pairs.into_iter().map(|Pair { name, value }| (name, Value::String(value))).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(servers: Value, expected: Expect) {
        let (configured, problems) = configured(servers.as_array().unwrap().clone());
        expected.assert_eq(&format!("{}\n{}", Value::Object(configured), problems.join("\n")));
    }

    #[test]
    fn each_kind_is_written_as_in_files() {
        check(
            json!([
                { "name": "a", "command": "/bin/a", "args": ["-x"], "env": [{ "name": "K", "value": "v" }] },
                { "name": "b", "type": "http", "url": "http://h/mcp", "headers": [{ "name": "H", "value": "1" }] },
                { "name": "c", "type": "sse", "url": "http://h/sse", "headers": [], "_meta": {} },
            ]),
            expect![[r#"
                {"a":{"type":"stdio","command":"/bin/a","args":["-x"],"env":{"K":"v"}},"b":{"type":"http","url":"http://h/mcp","headers":{"H":"1"}},"c":{"type":"sse","url":"http://h/sse","headers":{}}}
            "#]],
        );
    }

    #[test]
    fn one_that_makes_no_sense_is_named_and_the_others_stay() {
        check(
            json!([
                { "name": "a" },
                { "name": "b", "type": "http" },
                { "name": "c", "type": "carrier-pigeon" },
                { "name": "", "command": "x" },
                { "name": "d", "command": ["x"] },
                { "name": "e", "command": "x" },
                { "name": "e", "command": "y" },
                7,
            ]),
            expect![[r#"
                {"e":{"type":"stdio","command":"x","args":[],"env":{}}}
                MCP server `a` is left out: it has no `command`
                MCP server `b` is left out: it has no `url`
                MCP server `c` is left out: `carrier-pigeon` is not a type of server
                MCP server `` is left out: its name is not one
                MCP server `d` is left out: invalid type: sequence, expected a string
                MCP server `e` is there twice; the first counts
                MCP server `` is left out: invalid type: integer `7`, expected struct McpServer"#]],
        );
    }
}
