//! Slash commands: a few of our own, the skills that people may call, and those that clients bring.

use std::time::Duration;

use hangar_agent::session::Command;
use hangar_protocol::data::CommandExecute;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Failure, Method, Reply};
use crate::task::SessionTask;

/// How long a client may take over a command.
const PATIENCE: Duration = Duration::from_secs(600);

/// Commands that the session itself carries out.
const BUILTIN: [(&str, &str); 3] = [
    ("help", "Lists the commands"),
    ("model", "Says which model answers"),
    ("compact", "Sums the conversation up to make room"),
];

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
        #[serde(default)]
        include_builtins: Option<bool>,
        #[serde(default)]
        include_client_commands: Option<bool>,
        #[serde(default)]
        include_skills: Option<bool>,
    }
    let params: Params = call.params()?;
    let commands = call
        .live()?
        .ask(move |task| {
            let mut commands: Vec<Value> = Vec::new();
            if params.include_builtins.unwrap_or(true) {
                let told = |(name, description): &(&str, &str)| entry(name, description, "builtin");
                commands.extend(BUILTIN.iter().map(told));
            }
            if params.include_skills.unwrap_or(true) {
                let skills =
                    task.skills.list().into_iter().filter(|skill| skill.enabled && skill.user_invocable);
                commands.extend(skills.map(|skill| {
                    let mut command = entry(&skill.name, &skill.description, "skill");
                    if let Some(hint) = skill.argument_hint {
                        command["input"] = json!({ "hint": hint });
                    }
                    command
                }));
            }
            if params.include_client_commands.unwrap_or(true) {
                commands.extend(task.client_commands().iter().map(|command| {
                    entry(&command.name, command.description.as_deref().unwrap_or_default(), "client")
                }));
            }
            commands
        })
        .await?;
    Reply::of(json!({ "commands": commands }))
}

/// The commands that every session has, for clients that ask before there is one.
async fn list_builtin() -> Result<Reply, Failure> {
    let commands: Vec<Value> =
        BUILTIN.iter().map(|(name, description)| entry(name, description, "builtin")).collect();
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
        #[serde(default)]
        input: Option<String>,
    }
    let Params { name, input } = call.params()?;
    let name = name.trim_start_matches('/').to_lowercase();
    let result =
        call.live()?.ask(move |task| invoked(task, &name, input.as_deref().unwrap_or_default())).await?;
    result.map_or_else(|name| Err(Failure::new(format!("Unknown command: /{name}"))), Reply::of)
}

fn invoked(task: &mut SessionTask, name: &str, input: &str) -> Result<Value, String> {
    match name {
        "help" => {
            let mut text = String::from("Commands:\n");
            for (name, description) in BUILTIN {
                text.push_str(&format!("/{name}  {description}\n"));
            }
            for skill in task.skills.list().iter().filter(|skill| skill.enabled && skill.user_invocable) {
                text.push_str(&format!("/{}  {}\n", skill.name, skill.description));
            }
            Ok(json!({ "kind": "text", "text": text }))
        }
        "model" => {
            let model = &task.session().state().model;
            Ok(json!({ "kind": "text", "text": format!("Model: {model}") }))
        }
        "compact" => {
            let instructions = Some(input.to_owned()).filter(|input| !input.is_empty());
            task.command(Command::Compact { instructions });
            Ok(json!({ "kind": "completed" }))
        }
        _ => {
            let known = task.skills.list();
            let skill =
                known.iter().find(|skill| skill.name == name && skill.enabled && skill.user_invocable);
            let prompt = format!("/{name} {input}").trim_end().to_owned();
            skill
                .map(|_| json!({ "kind": "agent-prompt", "prompt": prompt, "displayPrompt": prompt }))
                .ok_or_else(|| name.to_owned())
        }
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
    let command_name = command_name.trim_start_matches('/').to_owned();
    let request_id = uuid::Uuid::new_v4().to_string();
    let answered = live.executing.begin(&request_id);
    let command = format!("/{command_name} {args}").trim_end().to_owned();
    let unknown = format!("Unknown command: {command_name}");
    let execute = CommandExecute { request_id: request_id.clone(), command, command_name, args };
    if !live.audience.dispatch(execute) {
        live.executing.finish(&request_id, None);
        return Reply::of(json!({ "error": unknown }));
    }
    match tokio::time::timeout(PATIENCE, answered).await {
        Ok(Ok(None)) => Reply::of(json!({})),
        Ok(Ok(Some(error))) => Reply::of(json!({ "error": error })),
        Ok(Err(_)) | Err(_) => {
            live.executing.finish(&request_id, None);
            Reply::of(json!({ "error": "the client did not carry the command out" }))
        }
    }
}

/// Every client of the session may answer, and only the first one is waited for: the others have done nothing wrong.
async fn handled(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        request_id: String,
        #[serde(default)]
        error: Option<String>,
    }
    let Params { request_id, error } = call.params()?;
    call.live()?.executing.finish(&request_id, error);
    Reply::success()
}
