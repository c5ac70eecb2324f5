//! `hangar mcp`: the configured MCP servers, and their sources.

use std::fmt::Write as _;

use anyhow::{Result, anyhow, bail};
use clap::{Args, Subcommand, ValueEnum};
use hangar_mcp::files::{self, UserFile};
use hangar_mcp::{ConfigSource, ServerConfig};
use serde_json::{Map, Value, json};

use super::print_line;
use crate::exit::Exit;
use crate::output::remark;
use crate::settings::Settings;
use crate::workspace::git::Repository;

/// Placeholder for a value that may be a secret.
const MASK: &str = "***";

#[derive(Debug, Subcommand)]
pub(crate) enum McpSubcommand {
    /// List the configured MCP servers by source
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the configuration of a server
    Get {
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Show the values of variables and headers
        #[arg(long)]
        show_secrets: bool,
    },
    /// Add a server to the user's configuration: a command after `--`, or a URL with --transport
    Add(AddArgs),
    /// Remove a server from the user's configuration
    Remove { name: String },
    /// Enable a server
    Enable { name: String },
    /// Disable a server
    Disable { name: String },
}

#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// Name of the server
    name: String,
    /// URL of a remote server, or command of a local one
    #[arg(value_name = "URL-OR-COMMAND")]
    target: Vec<String>,
    /// Transport of the server
    #[arg(long, value_enum, default_value = "stdio")]
    transport: Transport,
    /// Environment variable of a local server; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    env: Vec<String>,
    /// Header for requests to a remote server; may be repeated
    #[arg(long, value_name = "NAME: VALUE")]
    header: Vec<String>,
    /// Tools to offer: all (`*`), a comma-separated list, or none
    #[arg(long, default_value = "*")]
    tools: String,
    /// Time limit of a call in milliseconds
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(1..))]
    timeout: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Show the values of variables and headers
    #[arg(long)]
    show_secrets: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Transport {
    Stdio,
    Http,
    Sse,
}

/// Configured server, with its source.
struct Written {
    name: String,
    config: Value,
    source: ConfigSource,
    enabled: bool,
}

pub(crate) fn run(settings: &Settings, command: McpSubcommand) -> Result<Exit> {
    let file = UserFile::new(&settings.home);
    match command {
        McpSubcommand::List { json } => list(&all(&file)?, json)?,
        McpSubcommand::Get { name, json, show_secrets } => {
            let known = all(&file)?;
            let Some(server) = known.iter().find(|server| server.name == name) else {
                let names: Vec<&str> = known.iter().map(|server| server.name.as_str()).collect();
                bail!("there is no server `{name}`; there are: {}", names.join(", "));
            };
            match json {
                true => print_line(&pretty(&json!({ server.name.clone(): server.document() }))?)?,
                false => print_line(&server.describe(Shows::Status, show_secrets))?,
            }
        }
        McpSubcommand::Add(args) => add(settings, &file, args)?,
        McpSubcommand::Remove { name } => {
            if !file.servers()?.contains_key(&name) {
                let elsewhere = all(&file)?.into_iter().find(|server| server.name == name);
                match elsewhere {
                    Some(server) => bail!(
                        "`{name}` is not in {} but a {} server; remove it where it is configured",
                        file.path().display(),
                        word(server.source).to_lowercase()
                    ),
                    None => bail!("there is no server `{name}` in {}", file.path().display()),
                }
            }
            file.put(&name, None)?;
            print_line(&format!("Removed server \"{name}\""))?;
        }
        McpSubcommand::Enable { name } => switch(&file, name, false)?,
        McpSubcommand::Disable { name } => switch(&file, name, true)?,
    }
    Ok(Exit::Done)
}

/// All servers that are configured here; of two with one name the one that takes precedence.
fn all(file: &UserFile) -> Result<Vec<Written>> {
    let cwd = std::env::current_dir()?;
    let root = Repository::find(&cwd).map(|repository| repository.root);
    let (workspace, problems) = files::workspace(&cwd, root.as_deref());
    for problem in problems {
        remark(&format!("note: {problem}"));
    }
    let disabled = file.disabled();
    let mut found: Vec<Written> = Vec::new();
    for layer in file.layer()?.into_iter().chain(workspace) {
        for (name, config) in layer.servers {
            found.retain(|known| known.name != name);
            let enabled = !disabled.contains(&name);
            found.push(Written { name, config, source: layer.source, enabled });
        }
    }
    Ok(found)
}

fn list(servers: &[Written], as_json: bool) -> Result<()> {
    if as_json {
        let servers: Map<String, Value> =
            servers.iter().map(|server| (server.name.clone(), server.document())).collect();
        return print_line(&pretty(&json!({ "mcpServers": servers }))?);
    }
    if servers.is_empty() {
        return print_line("No MCP servers yet. Add one with: hangar mcp add NAME -- COMMAND");
    }
    for source in [ConfigSource::User, ConfigSource::Workspace] {
        let mut of_source = servers.iter().filter(|server| server.source == source).peekable();
        if of_source.peek().is_none() {
            continue;
        }
        print_line(&format!("{} servers:", word(source)))?;
        for server in of_source {
            let off = if server.enabled { "" } else { ", disabled" };
            print_line(&format!("  {} ({}{off})", server.name, server.kind()))?;
        }
        print_line("")?;
    }
    Ok(())
}

fn add(settings: &Settings, file: &UserFile, args: AddArgs) -> Result<()> {
    let name = args.name.clone();
    if file.servers()?.contains_key(&name) {
        bail!(
            "there is a server `{name}` already; to change it, remove it first: {} mcp remove {name}",
            settings.program
        );
    }
    let shows_secrets = args.show_secrets;
    let as_json = args.json;
    let config = configuration(args)?;
    // An invalid configuration is refused now, not when a session uses it.
    ServerConfig::parse(&name, &config, ConfigSource::User, &|_| None)?;
    file.put(&name, Some(config.clone()))?;
    let server = Written { name, config, source: ConfigSource::User, enabled: true };
    if as_json {
        return print_line(&pretty(&json!({ server.name.clone(): server.document() }))?);
    }
    print_line(&format!("Added server \"{}\"\n", server.name))?;
    print_line(&server.describe(Shows::Configuration, shows_secrets))
}

fn configuration(args: AddArgs) -> Result<Value> {
    let tools: Vec<&str> = args.tools.split(',').map(str::trim).filter(|tool| !tool.is_empty()).collect();
    let mut config = json!({ "tools": tools });
    let mut target = args.target.into_iter();
    match args.transport {
        Transport::Stdio => {
            let Some(command) = target.next() else {
                bail!(
                    "which command starts `{0}`? Give it after --: hangar mcp add {0} -- COMMAND",
                    args.name
                );
            };
            if !args.header.is_empty() {
                bail!("--header is for remote servers; a local one takes --env");
            }
            config["type"] = json!("local");
            config["command"] = json!(command);
            config["args"] = json!(target.collect::<Vec<_>>());
            if !args.env.is_empty() {
                config["env"] = pairs(&args.env, '=', "--env", "KEY=VALUE")?;
            }
        }
        Transport::Http | Transport::Sse => {
            let (Some(url), None) = (target.next(), target.next()) else {
                bail!("a remote server has one address: hangar mcp add --transport http {} URL", args.name);
            };
            if !args.env.is_empty() {
                bail!("--env is for local servers; a remote one takes --header");
            }
            config["type"] = json!(if args.transport == Transport::Http { "http" } else { "sse" });
            config["url"] = json!(url);
            if !args.header.is_empty() {
                config["headers"] = pairs(&args.header, ':', "--header", "\"Name: value\"")?;
            }
        }
    }
    if let Some(timeout) = args.timeout {
        config["timeout"] = json!(timeout);
    }
    Ok(config)
}

fn pairs(given: &[String], between: char, flag: &str, form: &str) -> Result<Value> {
    let pair = |text: &String| match text.split_once(between) {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().to_owned(), json!(value.trim_start())))
        }
        // The value may be a secret, so it is not repeated.
        _ => Err(anyhow!("{flag} takes {form}")),
    };
    Ok(Value::Object(given.iter().map(pair).collect::<Result<Map<_, _>>>()?))
}

fn switch(file: &UserFile, name: String, off: bool) -> Result<()> {
    if !all(file)?.iter().any(|server| server.name == name) {
        bail!("there is no server `{name}`; `hangar mcp list` shows them");
    }
    file.set_disabled(std::slice::from_ref(&name), off)?;
    print_line(&format!("{} server \"{name}\"", if off { "Disabled" } else { "Enabled" }))
}

fn word(source: ConfigSource) -> &'static str {
    match source {
        ConfigSource::User => "User",
        ConfigSource::Workspace => "Workspace",
        ConfigSource::Plugin => "Plugin",
        ConfigSource::Builtin => "Builtin",
    }
}

fn pretty(value: &Value) -> Result<String> {
    Ok(serde_json::to_string_pretty(value)?)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shows {
    Configuration,
    Status,
}

impl Written {
    fn kind(&self) -> String {
        match (self.config["type"].as_str(), self.config.get("url")) {
            (Some("stdio"), _) | (None, None) => "local".to_owned(),
            (Some(kind), _) => kind.to_owned(),
            (None, Some(_)) => "http".to_owned(),
        }
    }

    fn document(&self) -> Value {
        let mut document = self.config.clone();
        if document.is_object() {
            document["source"] = json!(self.source);
            document["enabled"] = json!(self.enabled);
        }
        document
    }

    fn describe(&self, shows: Shows, secrets: bool) -> String {
        let mut text = self.name.clone();
        let mut line = |name: &str, value: &str| {
            let _ = write!(text, "\n  {name}: {value}");
        };
        if shows == Shows::Status {
            line("Status", if self.enabled { "Enabled" } else { "Disabled" });
        }
        line("Type", &self.kind());
        if let Some(command) = self.config["command"].as_str() {
            let args = self.config["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
            line("Command", &std::iter::once(command).chain(args).collect::<Vec<_>>().join(" "));
        }
        if let Some(url) = self.config["url"].as_str() {
            line("URL", url);
        }
        for (title, key) in [("Environment", "env"), ("Headers", "headers")] {
            let values = self.config[key].as_object().into_iter().flatten();
            let shown: Vec<String> = values
                .map(|(name, value)| {
                    let value = if secrets { value.as_str().unwrap_or_default() } else { MASK };
                    format!("\n    {name}: {value}")
                })
                .collect();
            if !shown.is_empty() {
                let _ = write!(text, "\n  {title}:{}", shown.concat());
            }
        }
        let tools = self.config["tools"].as_array().map(|tools| {
            let names: Vec<&str> = tools.iter().filter_map(Value::as_str).collect();
            match names.as_slice() {
                ["*"] => "* (all)".to_owned(),
                [] => "(none)".to_owned(),
                names => names.join(", "),
            }
        });
        let _ = write!(text, "\n  Tools: {}", tools.unwrap_or_else(|| "* (all)".to_owned()));
        let _ = write!(text, "\n  Source: {}", word(self.source));
        text
    }
}
