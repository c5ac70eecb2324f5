//! Configuration of servers: how they are reached and which of their tools are wanted.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::expand::expand;

/// Servers that one file, flag or client configured, as they are written.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    pub source: ConfigSource,
    pub servers: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ConfigSource {
    User,
    Workspace,
    Plugin,
    Builtin,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ServerConfig {
    pub name: String,
    pub display_name: Option<String>,
    pub reach: Reach,
    /// Names of the tools that are wanted; `*` is all of them.
    pub tools: Vec<String>,
    pub excluded_tools: Vec<String>,
    /// Timeout of a call without progress.
    pub timeout: Option<Duration>,
    /// Whether the list of tools may be cached between runs.
    pub cached: bool,
    /// Whether it is started on request only.
    pub off: bool,
    pub source: ConfigSource,
}

/// Transport of a server.
#[derive(Debug, Clone, PartialEq)]
pub enum Reach {
    Stdio(Program),
    Http(Remote),
    /// The older transport over HTTP: one stream of events and posts beside it.
    Sse(Remote),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    pub command: String,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub cwd: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Remote {
    pub url: String,
    pub headers: BTreeMap<String, String>,
    pub oauth: OAuthClient,
}

/// Preregistered OAuth client, if there is one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OAuthClient {
    pub id: Option<String>,
    pub public: Option<bool>,
    pub machine: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum McpConfigError {
    #[error("MCP server `{server}`: {problem}")]
    Server { server: String, problem: String },
    #[error("{0}")]
    Document(String),
}

impl Layer {
    /// Reads a document: an object with `mcpServers`, or the servers themselves.
    pub fn parse(source: ConfigSource, text: &str) -> Result<Self, McpConfigError> {
        let document: Value = serde_json::from_str(text)
            .map_err(|error| McpConfigError::Document(format!("not JSON: {error}")))?;
        let Value::Object(mut document) = document else {
            return Err(McpConfigError::Document("not a JSON object".to_owned()));
        };
        let servers = match document.remove("mcpServers") {
            Some(Value::Object(servers)) => servers,
            Some(_) => return Err(McpConfigError::Document("`mcpServers` is not an object".to_owned())),
            // A bare map, told from other documents by what its members look like.
            None => document.into_iter().filter(|(_, value)| is_server(value)).collect(),
        };
        Ok(Self { source, servers })
    }
}

fn is_server(value: &Value) -> bool {
    value.get("command").is_some() || value.get("url").is_some()
}

/// The servers of several layers; the later layer has the say over a name.
///
/// An invalid server is reported and left out; the others are used.
pub fn merge(
    layers: &[Layer],
    lookup: &dyn Fn(&str) -> Option<String>,
) -> (Vec<ServerConfig>, Vec<McpConfigError>) {
    let mut merged: BTreeMap<&str, (ConfigSource, &Value)> = BTreeMap::new();
    for layer in layers {
        for (name, value) in &layer.servers {
            merged.insert(name, (layer.source, value));
        }
    }
    let mut servers = Vec::new();
    let mut errors = Vec::new();
    for (name, (source, value)) in merged {
        match ServerConfig::parse(name, value, source, lookup) {
            Ok(server) => servers.push(server),
            Err(error) => errors.push(error),
        }
    }
    (servers, errors)
}

impl ServerConfig {
    pub fn parse(
        name: &str,
        value: &Value,
        source: ConfigSource,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, McpConfigError> {
        let bad =
            |problem: &str| McpConfigError::Server { server: name.to_owned(), problem: problem.to_owned() };
        if name.is_empty() || name.chars().any(char::is_control) {
            return Err(bad("its name is not one"));
        }
        let fields = value.as_object().ok_or_else(|| bad("its configuration is not an object"))?;
        let text = |key: &str| -> Result<Option<String>, McpConfigError> {
            match fields.get(key) {
                None | Some(Value::Null) => Ok(None),
                Some(Value::String(text)) => Ok(Some(expand(text, lookup))),
                Some(_) => Err(bad(&format!("`{key}` is not a string"))),
            }
        };
        let list = |key: &str| -> Result<Option<Vec<String>>, McpConfigError> {
            let Some(value) = fields.get(key).filter(|value| !value.is_null()) else { return Ok(None) };
            let items = value.as_array().ok_or_else(|| bad(&format!("`{key}` is not a list")))?;
            items
                .iter()
                .map(|item| item.as_str().map(|item| expand(item, lookup)))
                .collect::<Option<_>>()
                .map(Some)
                .ok_or_else(|| bad(&format!("`{key}` is not a list of strings")))
        };
        let table = |key: &str| -> Result<BTreeMap<String, String>, McpConfigError> {
            let Some(value) = fields.get(key).filter(|value| !value.is_null()) else {
                return Ok(BTreeMap::new());
            };
            let members = value.as_object().ok_or_else(|| bad(&format!("`{key}` is not an object")))?;
            members
                .iter()
                .map(|(name, value)| Some((name.clone(), expand(value.as_str()?, lookup))))
                .collect::<Option<_>>()
                .ok_or_else(|| bad(&format!("`{key}` is not an object of strings")))
        };
        let remote = || -> Result<Remote, McpConfigError> {
            let url = text("url")?.ok_or_else(|| bad("it has no `url`"))?;
            let address = reqwest::Url::parse(&url).ok();
            if !address.is_some_and(|address| matches!(address.scheme(), "http" | "https")) {
                return Err(bad("`url` is not an address of the web"));
            }
            Ok(Remote {
                url,
                headers: table("headers")?,
                oauth: OAuthClient {
                    id: text("oauthClientId")?,
                    public: fields.get("oauthPublicClient").and_then(Value::as_bool),
                    machine: text("oauthGrantType")?.as_deref() == Some("client_credentials"),
                },
            })
        };
        let kind = match text("type")? {
            Some(kind) => kind,
            None if fields.contains_key("url") && !fields.contains_key("command") => "http".to_owned(),
            None => "stdio".to_owned(),
        };
        let reach = match kind.as_str() {
            "local" | "stdio" => Reach::Stdio(Program {
                command: text("command")?
                    .filter(|command| !command.is_empty())
                    .ok_or_else(|| bad("it has no `command`"))?,
                args: list("args")?.unwrap_or_default(),
                env: table("env")?,
                cwd: text("cwd")?.or(text("workingDirectory")?).map(PathBuf::from),
            }),
            "http" | "streamable-http" => Reach::Http(remote()?),
            "sse" => Reach::Sse(remote()?),
            other => return Err(bad(&format!("`{other}` is not a type of server"))),
        };
        let timeout = match fields.get("timeout") {
            None | Some(Value::Null) => None,
            Some(value) => match value.as_u64() {
                Some(ms) if ms > 0 => Some(Duration::from_millis(ms)),
                _ => return Err(bad("`timeout` is not a number of milliseconds")),
            },
        };
        Ok(Self {
            name: name.to_owned(),
            display_name: text("displayName")?,
            reach,
            tools: list("tools")?.unwrap_or_else(|| vec!["*".to_owned()]),
            excluded_tools: list("excludeTools")?.unwrap_or_default(),
            timeout,
            cached: !fields.get("disableToolCache").and_then(Value::as_bool).unwrap_or(false),
            off: fields.get("disabled").and_then(Value::as_bool).unwrap_or(false),
            source,
        })
    }

    pub(crate) fn wants(&self, tool: &str) -> bool {
        self.tools.iter().any(|wanted| wanted == "*" || wanted == tool)
            && !self.excluded_tools.iter().any(|excluded| excluded == tool)
    }

    /// The name of the transport in events.
    pub fn transport(&self) -> &'static str {
        match &self.reach {
            Reach::Stdio(_) => "stdio",
            Reach::Http(_) => "http",
            Reach::Sse(_) => "sse",
        }
    }

    pub(crate) fn remote(&self) -> Option<&Remote> {
        match &self.reach {
            Reach::Stdio(_) => None,
            Reach::Http(remote) | Reach::Sse(remote) => Some(remote),
        }
    }
}

#[cfg(test)]
mod tests;
