//! Slash commands: a few of our own, the skills that people may call, and those that clients bring.

use std::time::Duration;

use hangar_agent::session::Command;
use hangar_protocol::data::{CommandCompleted, CommandExecute, CompactionTrigger};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Failure, Method, Reply};
use crate::hub::Live;
use crate::task::SessionTask;

/// How long a client may take over a command.
const PATIENCE: Duration = Duration::from_secs(600);

/// Commands that the session itself carries out.
const BUILTIN: [(&str, &str); 4] = [
    ("help", "Lists the commands"),
    ("model", "Says which model answers"),
    ("context", "Says what the model's context is filled with"),
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
    let name = name.trim_start_matches('/').to_owned();
    let input = input.unwrap_or_default();
    let live = call.live()?;
    let (own, given) = (name.to_lowercase(), input.clone());
    if let Some(result) = live.ask(move |task| invoked(task, &own, &given)).await? {
        return Reply::of(result);
    }
    match carry_out(&live, &name, input).await? {
        Outcome::Done => Reply::of(json!({ "kind": "completed" })),
        Outcome::Failed(error) => Err(Failure::new(format!("Command /{name} failed: {error}"))),
        Outcome::NobodyHasIt => Err(Failure::new(format!("Unknown slash command: /{name}"))),
    }
}

/// What the session itself makes of a command. `None` if it is none of its own.
fn invoked(task: &mut SessionTask, name: &str, input: &str) -> Option<Value> {
    match name {
        "help" => {
            let mut text = String::from("Commands:\n");
            for (name, description) in BUILTIN {
                text.push_str(&format!("/{name}  {description}\n"));
            }
            for skill in task.skills.list().iter().filter(|skill| skill.enabled && skill.user_invocable) {
                text.push_str(&format!("/{}  {}\n", skill.name, skill.description));
            }
            Some(json!({ "kind": "text", "text": text }))
        }
        "model" => {
            let model = &task.session().state().model;
            Some(json!({ "kind": "text", "text": format!("Model: {model}") }))
        }
        "context" => Some(json!({ "kind": "text", "text": context(task) })),
        "compact" => {
            let instructions = Some(input.to_owned()).filter(|input| !input.is_empty());
            let trigger = Some(CompactionTrigger::Manual);
            task.command(Command::Compact { instructions, trigger });
            Some(json!({ "kind": "completed" }))
        }
        _ => {
            let known = task.skills.list();
            let skill =
                known.iter().find(|skill| skill.name == name && skill.enabled && skill.user_invocable);
            let prompt = format!("/{name} {input}").trim_end().to_owned();
            skill.map(|_| json!({ "kind": "agent-prompt", "prompt": prompt, "displayPrompt": prompt }))
        }
    }
}

fn context(task: &SessionTask) -> String {
    let session = task.session();
    let Some(count) = session.measure() else {
        return format!("Nobody counts the tokens of {}.", session.state().model);
    };
    let (system, tools, conversation) = (count.system, count.tools, count.conversation);
    format!(
        "{} tokens: {system} of the system prompt, {tools} of the tools, {conversation} of the conversation.",
        system + tools + conversation
    )
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
        Outcome::Done => Reply::of(json!({})),
        Outcome::Failed(error) => Reply::of(json!({ "error": error })),
        Outcome::NobodyHasIt => Reply::of(json!({ "error": format!("Unknown command: {name}") })),
    }
}

enum Outcome {
    Done,
    Failed(String),
    NobodyHasIt,
}

/// Has the client that brought a command carry it out.
async fn carry_out(live: &Live, name: &str, args: String) -> Result<Outcome, Failure> {
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
        return Ok(Outcome::NobodyHasIt);
    }
    let outcome = match tokio::time::timeout(PATIENCE, answered).await {
        Ok(Ok(None)) => Outcome::Done,
        Ok(Ok(Some(error))) => Outcome::Failed(error),
        Ok(Err(_)) | Err(_) => {
            live.executing.finish(&request_id, None);
            Outcome::Failed("the client did not carry the command out".to_owned())
        }
    };
    live.ask(move |task| task.record(CommandCompleted { request_id })).await?;
    Ok(outcome)
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
