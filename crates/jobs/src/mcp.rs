//! The job tools as an MCP server: a pure function from one message to its answer. Any owner of a stream of lines can
//! serve them; that is all an agent needs to have the tools.

use serde_json::{Value, json};

use crate::tools::JobTool;

/// The name that agents put before the tools.
pub const SERVER_NAME: &str = "jobs";
/// For a client that does not say which version it speaks.
const DEFAULT_VERSION: &str = "2025-06-18";

const PARSE_ERROR: i64 = -32700;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;

/// The configuration by which agents start the server: a program with arguments.
pub fn configuration(program: &str, args: &[&str]) -> String {
    json!({ "mcpServers": { SERVER_NAME: {
        "type": "stdio",
        "command": program,
        "args": args,
        "tools": ["*"],
    } } })
    .to_string()
}

/// The answer to one line; notifications have none.
pub fn answer(line: &str) -> Option<String> {
    let Ok(message) = serde_json::from_str::<Value>(line) else {
        return Some(failure(&Value::Null, PARSE_ERROR, "not JSON"));
    };
    let id = message.get("id").filter(|id| !id.is_null())?;
    let method = message["method"].as_str()?;
    Some(match method {
        "initialize" => {
            let version = message["params"]["protocolVersion"].as_str().unwrap_or(DEFAULT_VERSION);
            result(
                id,
                json!({
                    "protocolVersion": version,
                    "capabilities": { "tools": {} },
                    "serverInfo": { "name": SERVER_NAME, "version": env!("CARGO_PKG_VERSION") },
                }),
            )
        }
        "ping" => result(id, json!({})),
        "tools/list" => result(id, json!({ "tools": JobTool::ALL.map(described) })),
        "tools/call" => {
            let params = &message["params"];
            let known = JobTool::ALL.iter().any(|tool| params["name"] == tool.name());
            match (known, params["arguments"]["argument"].as_str()) {
                (true, Some(argument)) => {
                    result(id, json!({ "content": [{ "type": "text", "text": argument }] }))
                }
                (true, None) => {
                    let text = "The tool needs a text `argument`.";
                    result(id, json!({ "content": [{ "type": "text", "text": text }], "isError": true }))
                }
                (false, _) => failure(id, INVALID_PARAMS, "there is no such tool"),
            }
        }
        _ => failure(id, METHOD_NOT_FOUND, "there is no such method"),
    })
}

fn described(tool: JobTool) -> Value {
    json!({
        "name": tool.name(),
        "description": tool.description(),
        "inputSchema": {
            "type": "object",
            "properties": { "argument": { "type": "string" } },
            "required": ["argument"],
        },
    })
}

fn result(id: &Value, result: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()
}

fn failure(id: &Value, code: i64, message: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(request: Value, expected: Value) {
        let answer: Value = serde_json::from_str(&answer(&request.to_string()).unwrap()).unwrap();
        let part = if answer.get("error").is_some() { &answer["error"]["code"] } else { &answer["result"] };
        assert_eq!((&answer["id"], part), (&request["id"], &expected));
    }

    fn call(name: &str, arguments: Value) -> Value {
        json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": { "name": name, "arguments": arguments } })
    }

    #[test]
    fn a_call_is_answered_with_its_argument() {
        let expected = json!({ "content": [{ "type": "text", "text": "done" }] });
        check(call("job_boolean_true", json!({ "argument": "done" })), expected);
    }

    #[test]
    fn a_call_without_an_argument_is_an_answer_for_the_model() {
        let content = json!([{ "type": "text", "text": "The tool needs a text `argument`." }]);
        check(call("job_boolean_true", json!({})), json!({ "content": content, "isError": true }));
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        check(call("bash", json!({ "argument": "" })), json!(INVALID_PARAMS));
        check(json!({ "id": 1, "method": "resources/list" }), json!(METHOD_NOT_FOUND));
    }

    #[test]
    fn all_tools_are_listed() {
        let list = answer(r#"{"id":1,"method":"tools/list"}"#).unwrap();
        for tool in JobTool::ALL {
            assert!(list.contains(tool.name()));
        }
    }

    #[test]
    fn notifications_and_noise_are_no_questions() {
        assert_eq!(answer(r#"{"method":"notifications/initialized"}"#), None);
        assert!(answer("noise").unwrap().contains("-32700"));
    }
}
