//! The agents of others that are a process per turn. Each file knows one: its flags, its login, its words.

pub mod claude;
pub mod codex;
pub mod copilot;
pub mod opencode;

use std::sync::Arc;

use serde_json::Value;

use crate::cli_runtime::CliRuntime;
use crate::environment::RuntimeEnvironment;
use crate::host::Host;
use crate::runtime::{AgentOrder, Runtime};

/// All of them, in the order in which people are shown them.
pub fn all(runtime_env: &RuntimeEnvironment) -> Vec<Arc<dyn Runtime>> {
    vec![
        Arc::new(CliRuntime::new(copilot::profile(), copilot::Copilot, runtime_env)),
        Arc::new(CliRuntime::new(claude::profile(), claude::Claude, runtime_env)),
        Arc::new(CliRuntime::new(codex::profile(), codex::Codex, runtime_env)),
        Arc::new(CliRuntime::new(opencode::profile(), opencode::Opencode::new(runtime_env), runtime_env)),
    ]
}

/// The session's id where it has the form that agents accept from outside.
fn uuid_of(order: &AgentOrder) -> Option<&str> {
    uuid::Uuid::parse_str(&order.session_id).is_ok().then_some(order.session_id.as_str())
}

fn levels(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// A prompt with the host's instructions before it, for agents that have no other way to be given them. Once per session:
/// what was said in an earlier turn is still there.
pub(crate) fn with_system(prompt: &str, order: &AgentOrder, resumed: bool) -> String {
    match order.system.as_deref().filter(|system| !system.is_empty() && !resumed) {
        Some(system) => system_before(system, prompt),
        None => prompt.to_owned(),
    }
}

/// Whether turns of the order can use temporary files: in the scratch directory, or on the other host.
pub(crate) fn has_files(order: &AgentOrder) -> bool {
    order.scratch.is_some() || matches!(order.host, Host::Ssh(_))
}

/// Whether an MCP configuration is inline JSON, not the path of a file.
pub(crate) fn is_json(config: &str) -> bool {
    config.trim_start().starts_with('{')
}

/// The MCP servers of a configuration by their names, for agents that take them one by one: it is JSON, or a file here.
pub(crate) fn mcp_servers(config: Option<&str>) -> serde_json::Map<String, Value> {
    let text = match config {
        None => return serde_json::Map::new(),
        Some(inline) if is_json(inline) => inline.to_owned(),
        Some(file) => std::fs::read_to_string(file.strip_prefix('@').unwrap_or(file)).unwrap_or_default(),
    };
    let mut config: Value = serde_json::from_str(&text).unwrap_or_default();
    let servers = config.get_mut("mcpServers").map(Value::take).unwrap_or(config);
    match servers {
        Value::Object(servers) => servers,
        _ => serde_json::Map::new(),
    }
}

/// Two MCP configurations in one. A server that both have is the one of `second`.
pub fn merged_mcp_config(first: Option<String>, second: Option<String>) -> Option<String> {
    match (first, second) {
        (Some(first), Some(second)) => {
            let mut servers = mcp_servers(Some(&first));
            servers.extend(mcp_servers(Some(&second)));
            Some(serde_json::json!({ "mcpServers": servers }).to_string())
        }
        (first, second) => first.or(second),
    }
}

/// Instructions of the host and a prompt in one text.
pub fn system_before(system: &str, prompt: &str) -> String {
    format!("<system>\n{system}\n</system>\n\n{prompt}")
}
