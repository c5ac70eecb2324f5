//! Commands that change how the session works.

use std::path::Path;

use hangar_agent::agents::fleet;
use hangar_agent::log::Fact;
use hangar_agent::session::{Command, Prompt};
use hangar_protocol::data::{CompactionTrigger, Mode, PermissionMode};

use super::{Answer, builtin};
use crate::methods::model::{Choice, Chooser, When, choose};
use crate::methods::permissions::{change_mode, mode_of};
use crate::methods::rules::add_root;
use crate::methods::{Call, Failure, history};
use crate::recompose;

pub(super) async fn add_directory(call: Call, input: String) -> Result<Answer, Failure> {
    if input.is_empty() {
        return Err(builtin::usage("add-dir"));
    }
    let live = call.live()?;
    let wanted = Path::new(&live.ask(|task| task.cwd()).await?).join(&input);
    let directory = tokio::fs::canonicalize(&wanted).await.ok().filter(|real| real.is_dir());
    let Some(directory) = directory else {
        return Err(Failure::new(format!("there is no directory {}", wanted.display())));
    };
    let told = format!("The session may use the files of {}.", directory.display());
    live.ask(move |task| add_root(task.driver.session_mut().policy_mut(), directory)).await?;
    Ok(Answer::Text(told))
}

pub(super) async fn allow_all(call: Call, input: String) -> Result<Answer, Failure> {
    match input.as_str() {
        "" | "on" => approve(call, PermissionMode::AllowAll).await,
        "off" => approve(call, PermissionMode::Manual).await,
        "show" => approvals(call).await,
        _ => Err(builtin::usage("allow-all")),
    }
}

pub(super) async fn permissions(call: Call, input: String) -> Result<Answer, Failure> {
    match input.as_str() {
        "allow-all" => approve(call, PermissionMode::AllowAll).await,
        "default" => approve(call, PermissionMode::Manual).await,
        "" | "show" => approvals(call).await,
        _ => Err(builtin::usage("permissions")),
    }
}

async fn approve(call: Call, mode: PermissionMode) -> Result<Answer, Failure> {
    call.live()?.ask(move |task| change_mode(task, mode)).await?;
    approvals(call).await
}

async fn approvals(call: Call) -> Result<Answer, Failure> {
    let mode = call.live()?.ask(|task| mode_of(task)).await?;
    Ok(Answer::Text(match mode {
        PermissionMode::AllowAll => "Permissions: everything is approved without a question.".to_owned(),
        PermissionMode::Manual | PermissionMode::Assisted => {
            "Permissions: the session asks before it does what nobody approved.".to_owned()
        }
    }))
}

pub(super) async fn reset_approvals(call: Call) -> Result<Answer, Failure> {
    call.live()?
        .ask(|task| {
            task.driver.session_mut().policy_mut().approvals.clear();
            change_mode(task, PermissionMode::Manual);
        })
        .await?;
    Ok(Answer::Text("What was approved for this session is taken back.".to_owned()))
}

pub(super) async fn autopilot(call: Call, input: String) -> Result<Answer, Failure> {
    let live = call.live()?;
    let mode = match input.as_str() {
        "on" => Mode::Autopilot,
        "off" => Mode::Interactive,
        "" => match live.ask(|task| task.session().state().mode).await? {
            Mode::Autopilot => Mode::Interactive,
            Mode::Interactive | Mode::Plan => Mode::Autopilot,
        },
        _ => return Err(builtin::usage("autopilot")),
    };
    call.hub.admits(mode)?;
    live.ask(move |task| task.command(Command::SetMode(mode))).await?;
    let state = if mode == Mode::Autopilot { "on" } else { "off" };
    Ok(Answer::Done(Some(format!("The autopilot is {state}."))))
}

pub(super) async fn compact(call: Call, input: String) -> Result<Answer, Failure> {
    let instructions = Some(input).filter(|input| !input.is_empty());
    let done = history::sum_up(&call, instructions, Some(CompactionTrigger::Manual)).await?;
    Ok(Answer::Text(format!(
        "The conversation is summed up: {} messages and {} tokens less.",
        done.messages_removed.unwrap_or(0),
        done.tokens_removed.unwrap_or(0)
    )))
}

pub(super) async fn directory(call: Call, input: String) -> Result<Answer, Failure> {
    let live = call.live()?;
    let current = live.ask(|task| task.cwd()).await?;
    if input.is_empty() {
        return Ok(Answer::Text(format!("The session works in {current}.")));
    }
    let directory = Path::new(&current).join(&input);
    let told = format!("The session works in {} now.", directory.display());
    call.hub.reopen(&live, recompose::move_to(directory)).await?;
    Ok(Answer::Done(Some(told)))
}

pub(super) async fn fleet(call: Call, input: String) -> Result<Answer, Failure> {
    let prompt = Prompt { message_id: Some(uuid::Uuid::new_v4().to_string()), ..fleet::prompt(Some(&input)) };
    call.live()?.command(Command::Send(prompt)).await?;
    Ok(Answer::Done(None))
}

pub(super) async fn model(call: Call, input: String) -> Result<Answer, Failure> {
    let live = call.live()?;
    if input.is_empty() {
        let model = live.ask(|task| task.session().state().model.clone()).await?;
        return Ok(Answer::Text(format!("Model: {model}")));
    }
    let choice = Choice { model: input, ..Choice::default() };
    let chosen = choose(&live, choice, Chooser::Client, When::InTurn { behind_choices: true }).await?;
    Ok(Answer::Text(chosen.message))
}

pub(super) async fn rename(call: Call, input: String) -> Result<Answer, Failure> {
    if input.is_empty() {
        return Err(builtin::usage("rename"));
    }
    let told = format!("The session is called {input} now.");
    call.live()?
        .ask(move |task| task.set_name(Fact::GivenName(input.clone()), input))
        .await?
        .map_err(|error| Failure::new(error.to_string()))?;
    Ok(Answer::Text(told))
}
