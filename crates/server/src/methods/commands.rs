//! Slash commands: those of the session itself, those of clients, and the skills that users may call. The first that
//! has a name gets it, in this order.

mod builtin;

use std::collections::HashSet;
use std::time::Duration;

use hangar_engine::commands::{CommandReply, Proposal, TABLE, find};
use hangar_protocol::data::{CommandCompleted, CommandExecute};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Failure, Method, Reply};
use crate::hub::ServedSession;

/// Timeout of a command that a client carries out.
const PATIENCE: Duration = Duration::from_secs(600);

pub(super) const METHODS: &[Method] = &[
    Method { name: "commands.list", run: |_| Box::pin(list_builtin()) },
    Method { name: "session.commands.list", run: |call| Box::pin(list(call)) },
    Method { name: "session.commands.invoke", run: |call| Box::pin(invoke(call)) },
    Method { name: "session.commands.execute", run: |call| Box::pin(execute(call)) },
    Method { name: "session.commands.handlePendingCommand", run: |call| Box::pin(handled(call)) },
];

async fn list(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        include_builtins: Option<bool>,
        include_client_commands: Option<bool>,
        include_skills: Option<bool>,
    }
    let params: Params = call.params()?;
    let commands = call
        .live()?
        .ask(move |task| {
            let mut commands: Vec<Value> = Vec::new();
            if params.include_builtins.unwrap_or(true) {
                commands.extend(TABLE.iter().map(builtin::entry));
            }
            let mut taken = HashSet::new();
            let mut free = |name: &str| find(name).is_none() && taken.insert(name.to_lowercase());
            let brought = task.client_commands().iter().filter(|command| free(&command.name));
            let brought: Vec<Value> = brought
                .map(|command| {
                    entry(&command.name, command.description.as_deref().unwrap_or_default(), "client")
                })
                .collect();
            if params.include_skills.unwrap_or(true) {
                let skills = task.engine.skills().list().into_iter();
                let skills =
                    skills.filter(|skill| skill.enabled && skill.user_invocable && free(&skill.name));
                commands.extend(skills.map(|skill| {
                    let mut command = entry(&skill.name, &skill.description, "skill");
                    if let Some(hint) = skill.argument_hint {
                        command["input"] = json!({ "hint": hint });
                    }
                    command
                }));
            }
            if params.include_client_commands.unwrap_or(true) {
                commands.extend(brought);
            }
            commands
        })
        .await?;
    Reply::of(json!({ "commands": commands }))
}

/// The commands that every session has, for clients that ask before there is one.
async fn list_builtin() -> Result<Reply, Failure> {
    let commands: Vec<Value> = TABLE.iter().map(builtin::entry).collect();
    Reply::of(json!({ "commands": commands }))
}

fn entry(name: &str, description: &str, kind: &str) -> Value {
    json!({
        "name": name,
        "description": description,
        "kind": kind,
        "allowDuringAgentExecution": kind == "client",
    })
}

async fn invoke(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        name: String,
        input: Option<String>,
    }
    let Params { name, input } = call.params()?;
    let name = name.trim_start_matches('/').to_owned();
    let input = input.unwrap_or_default();
    let live = call.live()?;
    if let Some(command) = find(&name) {
        return Reply::of(builtin::carry_out(call, command.parse(&input)?).await?);
    }
    let wanted = name.clone();
    let (brought, skill) = live
        .ask(move |task| {
            let mut brought = task.client_commands().iter().map(|command| &command.name);
            let brought = brought.find(|name| name.eq_ignore_ascii_case(&wanted)).cloned();
            let mut skills =
                task.engine.skills().list().into_iter().filter(|skill| skill.enabled && skill.user_invocable);
            (brought, skills.find(|skill| skill.name.eq_ignore_ascii_case(&wanted)).map(|skill| skill.name))
        })
        .await?;
    if let (None, Some(skill)) = (&brought, skill) {
        let prompt = format!("/{skill} {input}").trim_end().to_owned();
        let proposal = Proposal { shown: prompt.clone(), prompt: Some(prompt), mode: None };
        return Reply::of(builtin::proposed(proposal));
    }
    let name = brought.unwrap_or(name);
    match carry_out(&live, &name, input).await? {
        CommandEnd::Done => Reply::of(builtin::reply_json(CommandReply::Done(None))),
        CommandEnd::Failed(error) => Err(Failure::new(format!("Command /{name} failed: {error}"))),
        CommandEnd::Unknown => Err(Failure::new(format!("Unknown slash command: /{name}"))),
    }
}

async fn execute(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        command_name: String,
        #[serde(default)]
        args: String,
    }
    let Params { command_name, args } = call.params()?;
    let live = call.live()?;
    let name = command_name.trim_start_matches('/');
    match carry_out(&live, name, args).await? {
        CommandEnd::Done => Reply::of(json!({})),
        CommandEnd::Failed(error) => Reply::of(json!({ "error": error })),
        CommandEnd::Unknown => Reply::of(json!({ "error": format!("Unknown command: {name}") })),
    }
}

/// End of a command that a client carries out.
pub(crate) enum CommandEnd {
    Done,
    Failed(String),
    Unknown,
}

/// Has the client that brought a command carry it out.
pub(crate) async fn carry_out(live: &ServedSession, name: &str, args: String) -> Result<CommandEnd, Failure> {
    let request_id = uuid::Uuid::new_v4().to_string();
    let answered = live.executing.begin(&request_id);
    let execute = CommandExecute {
        request_id: request_id.clone(),
        command: format!("/{name} {args}").trim_end().to_owned(),
        command_name: name.to_owned(),
        args,
    };
    if !live.audience.dispatch(execute) {
        live.executing.finish(&request_id, None);
        return Ok(CommandEnd::Unknown);
    }
    let outcome = match tokio::time::timeout(PATIENCE, answered).await {
        Ok(Ok(None)) => CommandEnd::Done,
        Ok(Ok(Some(error))) => CommandEnd::Failed(error),
        Ok(Err(_)) | Err(_) => {
            live.executing.finish(&request_id, None);
            CommandEnd::Failed("the client did not carry the command out".to_owned())
        }
    };
    live.ask(move |task| task.record(CommandCompleted { request_id })).await?;
    Ok(outcome)
}

/// Completes a command. Every client of the session may answer and only the first answer counts; later ones are no
/// error.
async fn handled(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        request_id: String,
        error: Option<String>,
    }
    let Params { request_id, error } = call.params()?;
    call.live()?.executing.finish(&request_id, error);
    Reply::success()
}
