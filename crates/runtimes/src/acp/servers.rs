//! MCP servers of an order, in the format of the protocol.

use serde_json::{Map, Value, json};

/// The servers that an agent can reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ServerReach {
    /// Programs. The protocol wants all agents to start them and has no word for one that does not.
    pub(super) stdio: bool,
    pub(super) http: bool,
    pub(super) sse: bool,
}

impl ServerReach {
    /// From the answer to `initialize`.
    pub(super) fn of(answer: &Value) -> Self {
        let can =
            |kind: &str| answer["agentCapabilities"]["mcpCapabilities"][kind].as_bool().unwrap_or(false);
        // It passes over them, and tells its log alone.
        let stdio = answer["agentInfo"]["name"] != "Copilot";
        Self { stdio, http: can("http"), sse: can("sse") }
    }
}

/// The servers that the agent is given, and what cannot be had of what was wished for, each a sentence.
pub(super) fn offered(servers: Map<String, Value>, reach: ServerReach) -> (Vec<Value>, Vec<String>) {
    let mut given = Vec::new();
    let mut unmet = Vec::new();
    for (name, config) in servers {
        let remote = config.get("url").is_some() && config.get("command").is_none();
        let kind = config["type"].as_str().unwrap_or(if remote { "http" } else { "stdio" });
        let kind = if kind == "streamable-http" { "http" } else { kind };
        let can = match kind {
            "local" | "stdio" => reach.stdio,
            "http" => reach.http,
            "sse" => reach.sse,
            _ => false,
        };
        if !can {
            unmet.push(format!("the agent reaches no MCP servers of type `{kind}`; `{name}` is not used"));
            continue;
        }
        let all = config.get("tools").is_none_or(|tools| *tools == json!(["*"]));
        for (wish, said) in [
            (!all || config.get("excludeTools").is_some(), "all its tools are offered"),
            (
                config.get("cwd").or(config.get("workingDirectory")).is_some(),
                "it starts where the agent works",
            ),
        ] {
            if wish {
                unmet.push(format!("the protocol cannot say all that is configured for `{name}`: {said}"));
            }
        }
        given.push(if matches!(kind, "http" | "sse") {
            json!({ "type": kind, "name": name, "url": config["url"], "headers": pairs(&config["headers"]) })
        } else {
            let args = config.get("args").cloned().unwrap_or_else(|| json!([]));
            json!({ "name": name, "command": config["command"], "args": args, "env": pairs(&config["env"]) })
        });
    }
    (given, unmet)
}

fn pairs(table: &Value) -> Vec<Value> {
    let members = table.as_object().into_iter().flatten();
    members.map(|(name, value)| json!({ "name": name, "value": value })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: ServerReach = ServerReach { stdio: true, http: true, sse: true };

    #[track_caller]
    fn check(config: Value, reach: ServerReach, expected: Value, words: &[&str]) {
        let servers: Map<String, Value> = [("s".to_owned(), config)].into_iter().collect();
        let (given, unmet) = offered(servers, reach);
        assert_eq!(Value::Array(given), expected);
        assert_eq!(unmet.len(), words.len(), "{unmet:?}");
        assert!(unmet.iter().zip(words).all(|(sentence, word)| sentence.contains(word)), "{unmet:?}");
    }

    #[test]
    fn programs_are_given_to_every_agent() {
        check(
            json!({ "command": "/bin/x", "args": ["-a"], "env": { "K": "v" }, "tools": ["*"] }),
            ServerReach { http: false, sse: false, ..ALL },
            json!([{ "name": "s", "command": "/bin/x", "args": ["-a"], "env": [{ "name": "K", "value": "v" }] }]),
            &[],
        );
    }

    #[test]
    fn addresses_are_given_to_agents_that_reach_them() {
        let http = json!({ "url": "http://h/mcp", "headers": { "A": "b" } });
        let sse = json!({ "type": "sse", "url": "http://h/sse" });
        let headers = json!([{ "name": "A", "value": "b" }]);
        check(
            http.clone(),
            ALL,
            json!([{ "type": "http", "name": "s", "url": "http://h/mcp", "headers": headers }]),
            &[],
        );
        check(
            sse.clone(),
            ALL,
            json!([{ "type": "sse", "name": "s", "url": "http://h/sse", "headers": [] }]),
            &[],
        );
        check(http, ServerReach { http: false, ..ALL }, json!([]), &["type `http`; `s` is not used"]);
        check(sse, ServerReach { sse: false, ..ALL }, json!([]), &["type `sse`"]);
    }

    #[test]
    fn what_the_protocol_cannot_say_is_told() {
        check(
            json!({ "command": "x", "tools": ["a"], "cwd": "/elsewhere" }),
            ALL,
            json!([{ "name": "s", "command": "x", "args": [], "env": [] }]),
            &["all its tools", "where the agent works"],
        );
    }

    #[test]
    fn an_agent_that_passes_over_programs_is_told_of() {
        let copilot = json!({ "agentInfo": { "name": "Copilot" } });
        check(
            json!({ "command": "x" }),
            ServerReach::of(&copilot),
            json!([]),
            &["type `stdio`; `s` is not used"],
        );
    }

    #[test]
    fn what_an_agent_does_not_claim_it_cannot() {
        assert_eq!(ServerReach::of(&json!({})), ServerReach { http: false, sse: false, ..ALL });
        let answer = json!({ "agentCapabilities": { "mcpCapabilities": { "http": true } } });
        assert_eq!(ServerReach::of(&answer), ServerReach { sse: false, ..ALL });
    }
}
