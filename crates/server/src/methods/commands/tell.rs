//! Commands that say something about the session and leave it as it is.

use std::fmt::Write;

use hangar_agent::agents::AgentSource;

use super::{Answer, builtin, change};
use crate::methods::workspace::PLAN;
use crate::methods::{Call, Failure, metadata};

pub(super) async fn context(call: Call) -> Result<Answer, Failure> {
    let (count, model) =
        call.live()?.ask(|task| (task.session().measure(), task.session().state().model.clone())).await?;
    let Some(count) = count else { return Ok(Answer::Text(format!("Nobody counts the tokens of {model}."))) };
    let (system, tools, conversation) = (count.system, count.tools, count.conversation);
    Ok(Answer::Text(format!(
        "{} tokens: {system} of the system prompt, {tools} of the tools, {conversation} of the conversation.",
        system + tools + conversation
    )))
}

pub(super) async fn usage(call: Call) -> Result<Answer, Failure> {
    let totals = call.live()?.ask(|task| task.session().state().totals.clone()).await?;
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
    Ok(Answer::Text(text))
}

pub(super) async fn directories(call: Call) -> Result<Answer, Failure> {
    let policy = call.live()?.ask(|task| task.session().config().policy.clone()).await?;
    let mut text = String::from("The session may use the files of:\n\n");
    for (at, root) in policy.roots.iter().enumerate() {
        let _ = writeln!(text, "{}. {}", at + 1, root.display());
    }
    let _ = write!(text, "\nTotal: {} directories", policy.roots.len());
    if policy.allow_all_paths {
        text.push_str("\n\nAll others are allowed too.");
    }
    Ok(Answer::Text(text))
}

pub(super) async fn sandbox(call: Call, input: String) -> Result<Answer, Failure> {
    if !matches!(input.as_str(), "" | "status") {
        return Err(builtin::usage("sandbox"));
    }
    let confined = call.live()?.ask(|task| task.sandbox().is_some()).await?;
    Ok(Answer::Text(match confined {
        true => "Commands run in a sandbox.".to_owned(),
        false => "Commands that somebody allowed run without a sandbox; all others are confined.".to_owned(),
    }))
}

pub(super) async fn environment(call: Call) -> Result<Answer, Failure> {
    let live = call.live()?;
    let instructions = metadata::instruction_sources(&call).await?;
    let instructions = instructions.into_iter().map(|source| source.source_path).collect();
    let (servers, skills, agents) = live
        .ask(|task| {
            let servers = task.mcp().map(hangar_mcp::McpHost::reports).unwrap_or_default();
            let servers =
                servers.iter().map(|server| format!("{} ({})", server.name, server.status)).collect();
            let skills = task.skills.list().into_iter().filter(|skill| skill.enabled);
            let skills = skills.map(|skill| skill.name).collect();
            let agent_config = task.session().config().agent_config.as_deref();
            let agents = agent_config.into_iter().flat_map(|agent_config| &agent_config.definitions);
            let agents = agents.filter(|agent| agent.source != AgentSource::Builtin);
            (servers, skills, agents.map(|agent| agent.name.clone()).collect())
        })
        .await?;
    let parts: [(&str, Vec<String>); 4] = [
        ("Instructions", instructions),
        ("MCP servers", servers),
        ("Skills", skills),
        ("Agents of your own", agents),
    ];
    let told = parts.map(|(title, names)| match names.is_empty() {
        true => format!("**{title}**\n\nnone"),
        false => format!("**{title}**\n\n- {}", names.join("\n- ")),
    });
    Ok(Answer::Markdown(told.join("\n\n")))
}

pub(super) async fn session(call: Call, input: String) -> Result<Answer, Failure> {
    let (what, rest) = super::first_word(&input);
    let rest = rest.to_owned();
    match what {
        "" | "info" => about(call).await,
        "checkpoints" => checkpoints(call, &rest).await,
        "files" => files(call).await,
        "plan" => plan(call).await,
        "rename" => change::rename(call, rest).await,
        _ => Err(builtin::usage("session")),
    }
}

async fn about(call: Call) -> Result<Answer, Failure> {
    let live = call.live()?;
    let cwd = live.ask(|task| task.cwd()).await?;
    let meta = live.meta().await?;
    let name = meta.as_ref().and_then(|meta| meta.name.as_ref()).map_or("none yet", |name| name.as_str());
    let checkpoints = live.place.checkpoints().await?.len();
    Ok(Answer::Text(format!(
        "ID: {}\nName: {name}\nWorking directory: {cwd}\nCheckpoints: {checkpoints}",
        live.id,
    )))
}

async fn checkpoints(call: Call, number: &str) -> Result<Answer, Failure> {
    let live = call.live()?;
    if !number.is_empty() {
        let wanted = number.parse().map_err(|_| Failure::new(format!("{number} is not a number")))?;
        let content = live.place.checkpoint(wanted).await?;
        return content
            .map(Answer::Markdown)
            .ok_or_else(|| Failure::new(format!("there is no checkpoint {number}")));
    }
    let entries = live.place.checkpoints().await?;
    if entries.is_empty() {
        return Ok(Answer::Text("There are no checkpoints: nothing was summed up yet.".to_owned()));
    }
    let lines: Vec<String> =
        entries.iter().map(|entry| format!("{}. {}", entry.number, entry.title)).collect();
    Ok(Answer::Text(lines.join("\n")))
}

async fn files(call: Call) -> Result<Answer, Failure> {
    let files = call.live()?.ask(|task| task.session().state().totals.changes.files_modified.clone()).await?;
    Ok(Answer::Text(match files.is_empty() {
        true => "The session has changed no files.".to_owned(),
        false => files.join("\n"),
    }))
}

async fn plan(call: Call) -> Result<Answer, Failure> {
    let plan = call.live()?.place.read(PLAN).await?;
    Ok(plan.map_or_else(|| Answer::Text("The session has no plan.".to_owned()), Answer::Markdown))
}
