//! The commands that a session carries out itself, for clients: how lists have them, and what becomes of them.

use std::path::{Path, PathBuf};

use hangar_agent::session::NOTHING_TO_COMPACT;
use hangar_engine::commands::{
    self, ArgumentNeed, CommandArgument, CommandOutcome, CommandRefusal, CommandReply, ComposerRequest,
    NO_PLAN, Proposal, SessionQuery, SkillsCommand, SlashCommand, SlashCommandSpec,
};
use hangar_protocol::data::CompactionTrigger;
use hangar_store::SessionName;
use serde_json::{Value, json};

use crate::methods::model::{Chooser, RequestedModel, SwitchTime, choose};
use crate::methods::workspace::PLAN;
use crate::methods::{Call, Failure, history, mcp, metadata, skills};
use crate::recompose;

/// A command as lists have it.
pub(super) fn entry(command: &SlashCommandSpec) -> Value {
    let mut entry = json!({
        "name": command.name,
        "description": command.description,
        "kind": "builtin",
        "allowDuringAgentExecution": command.meanwhile,
    });
    if !command.aliases.is_empty() {
        entry["aliases"] = json!(command.aliases);
    }
    let hint = command.takes.hint();
    match &command.takes {
        CommandArgument::Nothing => {}
        CommandArgument::Text(_) => entry["input"] = json!({ "hint": hint, "preserveMultilineInput": true }),
        CommandArgument::Directory(need) => {
            entry["input"] = json!({ "hint": hint, "completion": "directory" });
            if *need == ArgumentNeed::Must {
                entry["input"]["required"] = json!(true);
            }
        }
        CommandArgument::Choice(choices) => {
            let choices: Vec<Value> = choices
                .iter()
                .map(|(name, description)| json!({ "name": name, "description": description }))
                .collect();
            entry["input"] = json!({ "hint": hint, "choices": choices });
        }
    }
    entry
}

/// Carries a command out. What is a prompt or a mode is the client's to send.
pub(super) async fn carry_out(call: Call, command: SlashCommand) -> Result<Value, Failure> {
    let live = call.live()?;
    if command == SlashCommand::Skills(SkillsCommand::Reload) {
        let warnings = skills::read_again(&call).await?;
        let told = live.ask(move |task| commands::reloaded(task.engine.skills(), &warnings)).await?;
        return Ok(reply_json(CommandReply::Text(told)));
    }
    Ok(match live.ask(move |task| task.carry_out(command)).await?? {
        CommandOutcome::Replied(reply) => reply_json(reply),
        CommandOutcome::Later(reply) => reply_json(reply.await?),
        CommandOutcome::Send(mut prompt) => {
            prompt.message_id = Some(uuid::Uuid::new_v4().to_string());
            live.ask(move |task| task.deliver(*prompt)).await?;
            reply_json(CommandReply::Done(None))
        }
        CommandOutcome::Propose(proposal) => proposed(proposal),
        CommandOutcome::Compact(focus) => {
            let trigger = Some(CompactionTrigger::Manual);
            reply_json(match history::sum_up(&call, focus, trigger).await {
                Ok(complete) => commands::summarized(&complete),
                Err(failure) if failure.message() == NOTHING_TO_COMPACT => {
                    CommandReply::Text(NOTHING_TO_COMPACT.to_owned())
                }
                Err(failure) => return Err(failure),
            })
        }
        CommandOutcome::Compose(request) => reply_json(compose(&call, request).await?),
    })
}

/// Commands that need the composer, not only the session.
async fn compose(call: &Call, request: ComposerRequest) -> Result<CommandReply, Failure> {
    let live = call.live()?;
    Ok(match request {
        ComposerRequest::Move(directory) => {
            let told = format!("The session works in {} now.", directory.display());
            call.hub.reopen(&live, recompose::move_to(directory)).await?;
            CommandReply::Done(Some(told))
        }
        ComposerRequest::SwitchModel(model) => {
            // A name is checked against the lists of the providers as far as they are known. What cannot be listed may be right.
            let token = live.ask(|task| task.spec.identity.github_token.clone()).await?;
            if let Err(error) = call.hub.config().account.models(token).await {
                tracing::debug!(%error, "models cannot be listed before one is chosen");
            }
            let choice = RequestedModel { model, ..RequestedModel::default() };
            let when = SwitchTime::InTurn { behind_choices: true };
            CommandReply::Text(choose(&live, choice, Chooser::Client, when).await?.message)
        }
        ComposerRequest::ReloadServers => {
            // A session that was opened without servers has nothing that could load one.
            match mcp::host(call).await?.is_some() {
                true => mcp::read_again(call).await?,
                false => {
                    let cwd = live.ask(|task| task.cwd()).await?;
                    call.hub.reopen(&live, recompose::move_to(PathBuf::from(cwd))).await?;
                }
            }
            commands::mcp_list(mcp::host(call).await?.as_ref())
        }
        ComposerRequest::Environment => {
            let instructions = metadata::instruction_sources(call).await?;
            let instructions = instructions.into_iter().map(|source| source.source_path).collect();
            live.ask(|task| task.engine.environment(instructions)).await?
        }
        ComposerRequest::Query(SessionQuery::Info) => {
            let cwd = live.ask(|task| task.cwd()).await?;
            let meta = live.meta().await?;
            let name = meta.as_ref().and_then(|meta| meta.name.as_ref()).map(SessionName::as_str);
            let checkpoints = live.dir.checkpoints().await?.len();
            commands::about(live.id.as_str(), name, Path::new(&cwd), checkpoints)
        }
        ComposerRequest::Query(SessionQuery::Checkpoints) => {
            commands::checkpoint_list(&live.dir.checkpoints().await?)
        }
        ComposerRequest::Query(SessionQuery::Checkpoint(number)) => {
            let content = live.dir.checkpoint(commands::checkpoint_number(&number)?).await?;
            commands::checkpoint(&number, content)?
        }
        ComposerRequest::Query(SessionQuery::Plan) => {
            let plan = live.dir.read(PLAN).await?;
            plan.map_or_else(|| CommandReply::Text(NO_PLAN.to_owned()), CommandReply::Markdown)
        }
    })
}

impl From<CommandRefusal> for Failure {
    fn from(refusal: CommandRefusal) -> Self {
        Failure::new(refusal.0)
    }
}

pub(super) fn reply_json(reply: CommandReply) -> Value {
    match reply {
        CommandReply::Text(text) => json!({ "kind": "text", "text": text }),
        CommandReply::Markdown(text) => json!({ "kind": "text", "text": text, "markdown": true }),
        CommandReply::Done(None) => json!({ "kind": "completed" }),
        CommandReply::Done(Some(message)) => json!({ "kind": "completed", "message": message }),
    }
}

pub(super) fn proposed(Proposal { prompt, shown, mode }: Proposal) -> Value {
    let mut value = match prompt {
        Some(prompt) => json!({ "kind": "agent-prompt", "prompt": prompt, "displayPrompt": shown }),
        None => json!({ "kind": "completed" }),
    };
    if let Some(mode) = mode {
        value["mode"] = json!(mode);
    }
    value
}
