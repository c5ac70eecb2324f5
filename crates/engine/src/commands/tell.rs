//! Replies of the slash commands that describe a session.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use hangar_agent::agents::AgentSource;
use hangar_agent::permissions::Policy;
use hangar_agent::session::Session;
use hangar_custom::skills::Skills;
use hangar_files::FileError;
use hangar_mcp::{McpHost, ServerReport};
use hangar_protocol::Totals;
use hangar_protocol::data::PermissionMode;
use hangar_store::checkpoints;

use super::{CommandOutcome, CommandRefusal, CommandReply, McpCommand, SessionQuery};
use crate::engine::Engine;
use crate::parts::SessionRecord;

pub const NO_PLAN: &str = "The session has no plan.";

pub(super) fn context(session: &Session) -> String {
    let Some(count) = session.measure() else {
        return format!("Nobody counts the tokens of {}.", session.state().model);
    };
    let (system, tools, conversation) = (count.system, count.tools, count.conversation);
    format!(
        "{} tokens: {system} of the system prompt, {tools} of the tools, {conversation} of the conversation.",
        system + tools + conversation
    )
}

pub(super) fn usage(totals: &Totals) -> String {
    let mut text = format!(
        "Changes: +{} -{}\nRequests: {} ({} s with the model)",
        totals.changes.lines_added,
        totals.changes.lines_removed,
        totals.requests,
        totals.api_ms.div_ceil(1000),
    );
    for (model, metric) in &totals.models {
        let usage = &metric.usage;
        let _ = write!(
            text,
            "\n{model}: {} tokens in, {} of them cached, {} out",
            usage.input_tokens, usage.cache_read_tokens, usage.output_tokens
        );
    }
    text
}

pub(super) fn files(session: &Session) -> String {
    let files = &session.state().totals.changes.files_modified;
    match files.is_empty() {
        true => "The session has changed no files.".to_owned(),
        false => files.join("\n"),
    }
}

pub(super) fn directories(policy: &Policy) -> String {
    let mut text = String::from("The session may use the files of:\n\n");
    for (at, root) in policy.roots.iter().enumerate() {
        let _ = writeln!(text, "{}. {}", at + 1, root.display());
    }
    let _ = write!(text, "\nTotal: {} directories", policy.roots.len());
    if policy.allow_all_paths {
        text.push_str("\n\nAll others are allowed too.");
    }
    text
}

pub(super) fn permissions(mode: PermissionMode) -> &'static str {
    match mode {
        PermissionMode::AllowAll => "Permissions: everything is approved without a question.",
        PermissionMode::Manual | PermissionMode::Assisted => {
            "Permissions: the session asks before it does what nobody approved."
        }
    }
}

pub(super) fn sandbox(sandboxed: bool) -> &'static str {
    match sandboxed {
        true => "Commands run in a sandbox.",
        false => "Commands that somebody allowed run without a sandbox; all others are confined.",
    }
}

pub(super) fn environment(engine: &Engine, instructions: Vec<String>) -> CommandReply {
    let servers = engine.mcp().map(McpHost::reports).unwrap_or_default();
    let servers = servers.iter().map(|server| format!("{} ({})", server.name, server.status)).collect();
    let skills = engine.skills().list().into_iter().filter(|skill| skill.enabled);
    let agents = engine.session().config().agent_config.as_deref();
    let agents = agents.into_iter().flat_map(|config| &config.definitions);
    let agents = agents.filter(|agent| agent.source != AgentSource::Builtin);
    let parts: [(&str, Vec<String>); 4] = [
        ("Instructions", instructions),
        ("MCP servers", servers),
        ("Skills", skills.map(|skill| skill.name).collect()),
        ("Agents of your own", agents.map(|agent| agent.name.clone()).collect()),
    ];
    let told = parts.map(|(title, names)| match names.is_empty() {
        true => format!("**{title}**\n\nnone"),
        false => format!("**{title}**\n\n- {}", names.join("\n- ")),
    });
    CommandReply::Markdown(told.join("\n\n"))
}

/// Answers a question from the files of the session.
pub(super) async fn query(
    query: SessionQuery,
    record: SessionRecord,
    directory: PathBuf,
) -> Result<CommandReply, CommandRefusal> {
    let files = &*record.files;
    let failed = |error: FileError| CommandRefusal(format!("the session's files cannot be read: {error}"));
    Ok(match query {
        SessionQuery::Info => {
            let checkpoints = checkpoints::list(files).await.map_err(failed)?.len();
            about(&record.id, record.name.as_deref(), &directory, checkpoints)
        }
        SessionQuery::Checkpoints => checkpoint_list(&checkpoints::list(files).await.map_err(failed)?),
        SessionQuery::Checkpoint(number) => {
            let content = checkpoints::read(files, checkpoint_number(&number)?).await.map_err(failed)?;
            checkpoint(&number, content)?
        }
        SessionQuery::Plan => {
            files.plan().map_or_else(|| CommandReply::Text(NO_PLAN.to_owned()), CommandReply::Markdown)
        }
    })
}

/// Describes a session.
pub fn about(id: &str, name: Option<&str>, directory: &Path, checkpoints: usize) -> CommandReply {
    CommandReply::Text(format!(
        "ID: {id}\nName: {}\nWorking directory: {}\nCheckpoints: {checkpoints}",
        name.unwrap_or("none yet"),
        directory.display(),
    ))
}

pub fn checkpoint_list(entries: &[checkpoints::CheckpointEntry]) -> CommandReply {
    if entries.is_empty() {
        return CommandReply::Text("There are no checkpoints: nothing was summed up yet.".to_owned());
    }
    let lines: Vec<String> =
        entries.iter().map(|entry| format!("{}. {}", entry.number, entry.title)).collect();
    CommandReply::Text(lines.join("\n"))
}

pub fn checkpoint_number(number: &str) -> Result<u64, CommandRefusal> {
    number.parse().map_err(|_| CommandRefusal(format!("{number} is not a number")))
}

pub fn checkpoint(number: &str, content: Option<String>) -> Result<CommandReply, CommandRefusal> {
    content
        .map(CommandReply::Markdown)
        .ok_or_else(|| CommandRefusal(format!("there is no checkpoint {number}")))
}

pub(super) fn mcp(host: Option<&McpHost>, command: McpCommand) -> Result<CommandOutcome, CommandRefusal> {
    if command == McpCommand::List {
        return Ok(CommandOutcome::Replied(mcp_list(host)));
    }
    let host = host.cloned().ok_or_else(|| CommandRefusal::new("No MCP host initialized"))?;
    Ok(CommandOutcome::Later(Box::pin(async move {
        let failed = |error: hangar_mcp::HostError| CommandRefusal(error.to_string());
        Ok(match command {
            McpCommand::List | McpCommand::Reload => mcp_list(Some(&host)),
            McpCommand::Show(name) => show(&host, &name).await?,
            McpCommand::Enable(name) => {
                host.enable(&name).await.map_err(failed)?;
                CommandReply::Text(format!("The MCP server {name} is on."))
            }
            McpCommand::Disable(name) => {
                host.disable(&name).await.map_err(failed)?;
                CommandReply::Text(format!("The MCP server {name} is off."))
            }
        })
    })))
}

pub fn mcp_list(host: Option<&McpHost>) -> CommandReply {
    let reports = host.map(McpHost::reports).unwrap_or_default();
    CommandReply::Text(match reports.is_empty() {
        true => "No MCP servers are configured.".to_owned(),
        false => reports.iter().map(line).collect::<Vec<_>>().join("\n"),
    })
}

fn line(report: &ServerReport) -> String {
    match &report.error {
        Some(error) => format!("{}: {}, {error}", report.name, report.status),
        None => format!("{}: {}", report.name, report.status),
    }
}

async fn show(host: &McpHost, name: &str) -> Result<CommandReply, CommandRefusal> {
    let Some(report) = host.reports().into_iter().find(|report| report.name == name) else {
        return Err(CommandRefusal(format!("there is no MCP server {name}; /mcp list says which there are")));
    };
    let mut text = line(&report);
    if report.status == "connected" {
        let tools = host.list_tools(name).await.map_err(|error| CommandRefusal(error.to_string()))?;
        for (tool, _) in tools {
            text.push_str("\n- ");
            text.push_str(&tool);
        }
    }
    Ok(CommandReply::Text(text))
}

pub(super) fn skills(skills: &Skills) -> String {
    let skills = skills.list();
    if skills.is_empty() {
        return "There are no skills.".to_owned();
    }
    let line = |skill: &hangar_protocol::data::LoadedSkill| {
        let off = if skill.enabled { "" } else { " (off)" };
        format!("{}{off}: {}", skill.name, skill.description)
    };
    skills.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Reply after skills were reloaded.
pub fn reloaded(known: &Skills, warnings: &[String]) -> String {
    match warnings.is_empty() {
        true => skills(known),
        false => format!("The skills are read again.\n\n{}", warnings.join("\n")),
    }
}

pub(super) fn skill(skills: &Skills, name: &str) -> Result<String, CommandRefusal> {
    let skills = skills.list();
    let Some(skill) = skills.iter().find(|skill| skill.name == name) else {
        return Err(CommandRefusal(format!("there is no skill {name}; /skills list says which there are")));
    };
    let path = skill.path.as_deref().unwrap_or("not in a file");
    let state = if skill.enabled { "on" } else { "off" };
    Ok(format!("{name} ({}, {state})\n{path}\n\n{}", skill.source, skill.description))
}
