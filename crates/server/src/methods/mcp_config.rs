//! The MCP servers that the user configured for all sessions.

use std::path::PathBuf;

use hangar_mcp::files::UserFile;
use hangar_mcp::{ConfigSource, McpConfigError, ServerConfig};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Failure, Method, Reply};

pub(super) const METHODS: &[Method] = &[
    Method { name: "mcp.config.list", run: |call| Box::pin(list(call)) },
    Method { name: "mcp.config.add", run: |call| Box::pin(add(call)) },
    Method { name: "mcp.config.update", run: |call| Box::pin(update(call)) },
    Method { name: "mcp.config.remove", run: |call| Box::pin(remove(call)) },
    Method { name: "mcp.config.enable", run: |call| Box::pin(enable(call)) },
    Method { name: "mcp.config.disable", run: |call| Box::pin(disable(call)) },
    Method { name: "mcp.config.reload", run: |call| Box::pin(reload(call)) },
    Method { name: "mcp.discover", run: |call| Box::pin(discover(call)) },
];

impl From<McpConfigError> for Failure {
    fn from(error: McpConfigError) -> Self {
        Failure::Failed(error.to_string())
    }
}

#[derive(Deserialize)]
struct Named {
    name: String,
    #[serde(default)]
    config: Value,
}

#[derive(Deserialize)]
struct Names {
    names: Vec<String>,
}

fn file(call: &Call) -> UserFile {
    UserFile::new(&call.hub.home())
}

async fn list(call: Call) -> Result<Reply, Failure> {
    Reply::of(json!({ "servers": file(&call).servers()? }))
}

async fn add(call: Call) -> Result<Reply, Failure> {
    let Named { name, config } = call.params()?;
    if file(&call).servers()?.contains_key(&name) {
        return Err(Failure::new(format!("MCP server \"{name}\" already exists")));
    }
    put(&call, &name, config)
}

async fn update(call: Call) -> Result<Reply, Failure> {
    let Named { name, config } = call.params()?;
    known(&call, &name)?;
    put(&call, &name, config)
}

async fn remove(call: Call) -> Result<Reply, Failure> {
    let Named { name, .. } = call.params()?;
    known(&call, &name)?;
    file(&call).put(&name, None)?;
    Reply::null()
}

fn known(call: &Call, name: &str) -> Result<(), Failure> {
    match file(call).servers()?.contains_key(name) {
        true => Ok(()),
        false => Err(Failure::new(format!("MCP server \"{name}\" not found"))),
    }
}

fn put(call: &Call, name: &str, config: Value) -> Result<Reply, Failure> {
    // An invalid configuration is refused now, not when a session uses it.
    ServerConfig::parse(name, &config, ConfigSource::User, &|_| None)?;
    file(call).put(name, Some(config))?;
    Reply::null()
}

async fn enable(call: Call) -> Result<Reply, Failure> {
    let Names { names } = call.params()?;
    file(&call).set_disabled(&names, false)?;
    Reply::null()
}

async fn disable(call: Call) -> Result<Reply, Failure> {
    let Names { names } = call.params()?;
    file(&call).set_disabled(&names, true)?;
    Reply::null()
}

/// The file is read whenever it is needed.
async fn reload(call: Call) -> Result<Reply, Failure> {
    file(&call).servers()?;
    Reply::null()
}

async fn discover(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        working_directory: Option<PathBuf>,
    }
    let params: Params = call.params()?;
    let servers = call.hub.config().opener.discover_mcp(params.working_directory.as_deref())?;
    Reply::of(json!({ "servers": servers }))
}
