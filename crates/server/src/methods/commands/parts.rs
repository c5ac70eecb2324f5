//! Commands about what a session is put together from: MCP servers and skills.

use hangar_mcp::{McpHost, ServerReport};

use super::{Answer, builtin, first_word};
use crate::methods::{Call, Failure};
use crate::methods::{mcp as servers, skills as known};

pub(super) async fn mcp(call: Call, input: String) -> Result<Answer, Failure> {
    let (what, name) = first_word(&input);
    match (what, name) {
        ("" | "list" | "show", "") => Ok(Answer::Text(list(servers::host(&call).await?.as_ref()))),
        ("show", name) => show(&servers::host_or(&call, servers::NO_HOST).await?, name).await,
        ("enable", name) if !name.is_empty() => {
            servers::host_or(&call, servers::NO_HOST).await?.enable(name).await?;
            Ok(Answer::Text(format!("The MCP server {name} is on.")))
        }
        ("disable", name) if !name.is_empty() => {
            servers::host_or(&call, servers::NO_HOST).await?.disable(name).await?;
            Ok(Answer::Text(format!("The MCP server {name} is off.")))
        }
        ("reload", "") => {
            servers::read_again(&call).await?;
            Ok(Answer::Text(list(servers::host(&call).await?.as_ref())))
        }
        _ => Err(builtin::usage("mcp")),
    }
}

fn list(host: Option<&McpHost>) -> String {
    let reports = host.map(McpHost::reports).unwrap_or_default();
    if reports.is_empty() {
        return "No MCP servers are configured.".to_owned();
    }
    reports.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn line(report: &ServerReport) -> String {
    match &report.error {
        Some(error) => format!("{}: {}, {error}", report.name, report.status),
        None => format!("{}: {}", report.name, report.status),
    }
}

async fn show(host: &McpHost, name: &str) -> Result<Answer, Failure> {
    let Some(report) = host.reports().into_iter().find(|report| report.name == name) else {
        return Err(Failure::new(format!("there is no MCP server {name}; /mcp list says which there are")));
    };
    let mut text = line(&report);
    if report.status == "connected" {
        for (tool, _) in host.list_tools(name).await? {
            text.push_str("\n- ");
            text.push_str(&tool);
        }
    }
    Ok(Answer::Text(text))
}

pub(super) async fn skills(call: Call, input: String) -> Result<Answer, Failure> {
    let (what, name) = first_word(&input);
    let live = call.live()?;
    let skills = match (what, name) {
        ("" | "list", "") => live.ask(|task| task.skills.list()).await?,
        ("info", name) if !name.is_empty() => {
            let skills = live.ask(|task| task.skills.list()).await?;
            let Some(skill) = skills.iter().find(|skill| skill.name == name) else {
                let told = format!("there is no skill {name}; /skills list says which there are");
                return Err(Failure::new(told));
            };
            let path = skill.path.as_deref().unwrap_or("not in a file");
            let state = if skill.enabled { "on" } else { "off" };
            return Ok(Answer::Text(format!(
                "{name} ({}, {state})\n{path}\n\n{}",
                skill.source, skill.description
            )));
        }
        ("reload", "") => {
            let warnings = known::read_again(&call).await?;
            if !warnings.is_empty() {
                return Ok(Answer::Text(format!("The skills are read again.\n\n{}", warnings.join("\n"))));
            }
            live.ask(|task| task.skills.list()).await?
        }
        _ => return Err(builtin::usage("skills")),
    };
    if skills.is_empty() {
        return Ok(Answer::Text("There are no skills.".to_owned()));
    }
    let lines: Vec<String> = skills
        .iter()
        .map(|skill| {
            let off = if skill.enabled { "" } else { " (off)" };
            format!("{}{off}: {}", skill.name, skill.description)
        })
        .collect();
    Ok(Answer::Text(lines.join("\n")))
}
