//! MCP configurations in the form that agents receive.

use anyhow::{Context, Result};
use hangar_runtimes::host::Host;

/// MCP configuration in the form that any agent can receive: JSON, or the absolute path of a file of this machine. A file
/// keeps its secrets out of command lines, but an agent on another machine cannot read it.
pub(super) fn mcp_config(config: &str, host: &Host) -> Result<String> {
    let is_json = config.trim_start().starts_with('{');
    let path = std::path::absolute(config.strip_prefix('@').unwrap_or(config))?;
    let text = match is_json {
        true => config.to_owned(),
        false => std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read the MCP configuration {}", path.display()))?,
    };
    let source = if is_json { "the MCP configuration".to_owned() } else { path.display().to_string() };
    let parsed: serde_json::Value =
        serde_json::from_str(&text).with_context(|| format!("{source} is not JSON"))?;
    Ok(match (is_json, host) {
        (false, Host::Local) => format!("@{}", path.display()),
        (true, _) | (false, Host::Ssh(_)) => parsed.to_string(),
    })
}
