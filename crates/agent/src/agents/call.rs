//! The tools for agents (`task`, `read_agent`, `write_agent`, `list_agents`): their schemas and parsed calls.

use std::time::Duration;

use hangar_protocol::data::ExecutionMode;
use serde_json::{Value, json};

use super::config::AgentConfig;
use crate::tool::{ToolOutcome, ToolSchema, ToolSpec};

/// Default and longest wait of `read_agent`.
const WAIT: Duration = Duration::from_secs(30);
const LONGEST_WAIT: Duration = Duration::from_secs(180);
/// Number of agents that one message may be sent to by name.
const MOST_ADDRESSEES: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentTool {
    Task,
    Read,
    List,
    Write,
}

#[derive(Debug, Clone, PartialEq)]
pub enum AgentCall {
    Start(StartAgent),
    Read { agent_id: String, wait: Option<Duration>, since_turn: Option<usize> },
    List { finished: bool, scope: Option<MessageScope> },
    Write { to: Recipients, message: String },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartAgent {
    pub agent_type: String,
    pub name: String,
    pub description: String,
    pub prompt: String,
    pub mode: ExecutionMode,
    pub model: Option<String>,
    pub effort: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recipients {
    Named(Vec<String>),
    All(MessageScope),
}

/// Group of agents that a message goes to, relative to the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageScope {
    Siblings,
    Children,
    All,
}

impl AgentTool {
    pub const ALL: [AgentTool; 4] = [AgentTool::Read, AgentTool::List, AgentTool::Write, AgentTool::Task];

    pub fn name(self) -> &'static str {
        match self {
            AgentTool::Task => "task",
            AgentTool::Read => "read_agent",
            AgentTool::List => "list_agents",
            AgentTool::Write => "write_agent",
        }
    }

    pub fn spec(self, agent_config: &AgentConfig) -> ToolSpec {
        let (title, description, schema) = match self {
            AgentTool::Task => ("Running agent", task_description(agent_config), task_schema(agent_config)),
            AgentTool::Read => (
                "Reading agent",
                "Look at an agent: whether it still runs, and the answers it has given.".to_owned(),
                json!({
                    "type": "object",
                    "properties": {
                        "agent_id": { "type": "string", "description": "The id from the result of task or from a notification." },
                        "wait": { "type": "boolean", "description": "Wait until the agent is done; false returns at once." },
                        "timeout": { "type": "number", "description": "Seconds to wait at most: 30 unless given, up to 180." },
                        "since_turn": { "type": "integer", "minimum": 0, "description": "Only answers from this one on, counted from 0." }
                    },
                    "required": ["agent_id"]
                }),
            ),
            AgentTool::List => (
                "Listing agents",
                "List the agents of this session and how they are doing.".to_owned(),
                json!({
                    "type": "object",
                    "properties": {
                        "include_completed": { "type": "boolean", "description": "Also those that are over; true unless given." },
                        "scope": {
                            "type": "string",
                            "enum": ["siblings", "children", "all"],
                            "description": "Which agents: those started beside you, those started by you, or all."
                        }
                    }
                }),
            ),
            AgentTool::Write => (
                "Writing to agent",
                "Send a message to an agent. One that runs takes it into its work; one that is idle goes on with it, \
                 remembering what it did. Use it for more of the same task; for other work start a new agent."
                    .to_owned(),
                json!({
                    "type": "object",
                    "properties": {
                        "agent_id": { "type": "string", "description": "One agent." },
                        "agent_ids": {
                            "type": "array",
                            "items": { "type": "string" },
                            "description": "Several agents, by their ids."
                        },
                        "scope": {
                            "type": "string",
                            "enum": ["siblings", "children"],
                            "description": "All agents of a group."
                        },
                        "message": { "type": "string", "description": "What to tell them." }
                    },
                    "required": ["message"]
                }),
            ),
        };
        ToolSpec {
            name: self.name().to_owned(),
            title: Some(title.to_owned()),
            description,
            input: ToolSchema::function(schema),
        }
    }

    /// Parses the arguments of a call; `Err` is the answer to invalid ones.
    pub fn parse(self, arguments: &Value) -> Result<AgentCall, ToolOutcome> {
        let text =
            |key: &str| arguments[key].as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned);
        let required = |keys: &[&str]| {
            let missing: Vec<String> = keys
                .iter()
                .filter(|key| text(key).is_none())
                .map(|key| format!("\"{key}\": Required"))
                .collect();
            if missing.is_empty() { Ok(()) } else { Err(invalid(&missing)) }
        };
        match self {
            AgentTool::Task => {
                required(&["description", "prompt", "agent_type"])?;
                let agent_type = text("agent_type").unwrap_or_default();
                let mode = match arguments["mode"].as_str() {
                    None | Some("sync") => ExecutionMode::Sync,
                    Some("background") => ExecutionMode::Background,
                    Some(_) => return Err(invalid(&["\"mode\": must be sync or background".to_owned()])),
                };
                Ok(AgentCall::Start(StartAgent {
                    name: text("name").unwrap_or_else(|| agent_type.clone()),
                    agent_type,
                    description: text("description").unwrap_or_default(),
                    prompt: text("prompt").unwrap_or_default(),
                    mode,
                    model: text("model"),
                    effort: text("reasoning_effort"),
                }))
            }
            AgentTool::Read => {
                required(&["agent_id"])?;
                let seconds =
                    arguments["timeout"].as_f64().filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
                let timeout = seconds
                    .map_or(WAIT, |seconds| Duration::from_secs_f64(seconds.min(LONGEST_WAIT.as_secs_f64())));
                Ok(AgentCall::Read {
                    agent_id: text("agent_id").unwrap_or_default(),
                    wait: (arguments["wait"] == true).then_some(timeout),
                    since_turn: arguments["since_turn"].as_u64().and_then(|turn| usize::try_from(turn).ok()),
                })
            }
            AgentTool::List => Ok(AgentCall::List {
                finished: arguments["include_completed"] != false,
                scope: scope(&arguments["scope"]),
            }),
            AgentTool::Write => {
                required(&["message"])?;
                let named = match (text("agent_id"), arguments["agent_ids"].as_array()) {
                    (Some(id), _) => Some(vec![id]),
                    (None, Some(ids)) => {
                        Some(ids.iter().filter_map(Value::as_str).map(str::to_owned).collect())
                    }
                    (None, None) => None,
                };
                let to = match (named, scope(&arguments["scope"])) {
                    (Some(ids), _) if ids.len() <= MOST_ADDRESSEES => Recipients::Named(ids),
                    (None, Some(scope @ (MessageScope::Siblings | MessageScope::Children))) => {
                        Recipients::All(scope)
                    }
                    _ => {
                        let problem =
                            "name one agent_id, up to 16 agent_ids, or the scope siblings or children";
                        return Err(invalid(&[problem.to_owned()]));
                    }
                };
                Ok(AgentCall::Write { to, message: text("message").unwrap_or_default() })
            }
        }
    }
}

fn scope(value: &Value) -> Option<MessageScope> {
    match value.as_str()? {
        "siblings" => Some(MessageScope::Siblings),
        "children" => Some(MessageScope::Children),
        "all" => Some(MessageScope::All),
        _ => None,
    }
}

fn invalid(problems: &[String]) -> ToolOutcome {
    let short = match problems {
        [one] => one.clone(),
        several => format!("Multiple validation errors:\n- {}", several.join("\n- ")),
    };
    ToolOutcome { error: Some(short.clone()), ..ToolOutcome::failure(format!("Invalid input: {short}")) }
}

fn task_description(agent_config: &AgentConfig) -> String {
    let mut text = "Hand a task to an agent with a context of its own. It sees nothing of this conversation, so its \
                    prompt must hold everything it needs; its answer comes back as the result. Start agents for \
                    independent work together in one answer and they run side by side. Agents:\n"
        .to_owned();
    for agent in agent_config.callable() {
        text.push_str(&format!("- {}: {}\n", agent.name, agent.description.trim()));
    }
    text.push_str(
        "\nIn mode sync the call waits for the answer. In mode background it returns an id at once and you are notified \
         when the agent is done; do not poll, and do not do its work yourself meanwhile.",
    );
    text
}

fn task_schema(agent_config: &AgentConfig) -> Value {
    let names: Vec<&str> = agent_config.callable().map(|agent| agent.name.as_str()).collect();
    json!({
        "type": "object",
        "properties": {
            "description": { "type": "string", "description": "The task in three to five words, for people." },
            "prompt": { "type": "string", "description": "The whole task, with all context." },
            "agent_type": { "type": "string", "enum": names, "description": "Which agent." },
            "name": { "type": "string", "description": "A short name for this one." },
            "model": { "type": "string", "description": "Another model. Only if the user asked for it." },
            "reasoning_effort": { "type": "string", "description": "Another effort. Only if the user asked for it." },
            "mode": { "type": "string", "enum": ["sync", "background"], "description": "Wait for the answer, or be notified." }
        },
        "required": ["name", "prompt", "agent_type", "description"]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(tool: AgentTool, arguments: Value, expected: Result<AgentCall, &str>) {
        let got = tool.parse(&arguments).map_err(|outcome| outcome.text);
        assert_eq!(got, expected.map_err(str::to_owned), "{arguments}");
    }

    #[test]
    fn what_is_missing_is_named() {
        check(
            AgentTool::Task,
            json!({"description": "d"}),
            Err(
                "Invalid input: Multiple validation errors:\n- \"prompt\": Required\n- \"agent_type\": Required",
            ),
        );
        check(AgentTool::Read, json!({}), Err("Invalid input: \"agent_id\": Required"));
        check(
            AgentTool::Write,
            json!({"message": "m"}),
            Err("Invalid input: name one agent_id, up to 16 agent_ids, or the scope siblings or children"),
        );
    }

    #[test]
    fn waits_are_bounded() {
        let read = |wait| Ok(AgentCall::Read { agent_id: "a".to_owned(), wait, since_turn: None });
        check(AgentTool::Read, json!({"agent_id": "a"}), read(None));
        check(AgentTool::Read, json!({"agent_id": "a", "wait": true}), read(Some(WAIT)));
        check(
            AgentTool::Read,
            json!({"agent_id": "a", "wait": true, "timeout": 9e9}),
            read(Some(LONGEST_WAIT)),
        );
        check(AgentTool::Read, json!({"agent_id": "a", "wait": true, "timeout": -1}), read(Some(WAIT)));
    }
}
