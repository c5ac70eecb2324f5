//! Calls of the shell tools.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hangar_agent::permissions::{self, Grant};
use hangar_agent::tool::{Blocked, ToolContext, ToolOutcome};
use serde_json::json;

use super::arguments::{Bash, Read, Write};
use super::denial;
use super::registry::{Registry, ShellLookup, StartRefusal, StartRequest};
use super::texts;
use super::tracked::{CommandMode, CommandPhase, CommandSnapshot, ShellInput, Tracked};
use crate::answer;
use crate::spill::Spill;

pub(super) async fn bash(
    registry: Arc<Registry>,
    call_id: String,
    arguments: Bash,
    context: ToolContext,
) -> ToolOutcome {
    let Bash { command, description, shell_id, mode, wait } = arguments;
    if mode == CommandMode::Detached && context.grant != Grant::Full {
        let from = "outliving the session, which takes somebody's yes".to_owned();
        let refused = ToolOutcome::failure("The command was not started.");
        return ToolOutcome { blocked: Some(Box::new(Blocked { from })), ..refused };
    }
    let order = StartRequest { call_id, command, description, shell_id, mode, grant: context.grant };
    let started = registry.start(order, context.progress);
    let shell = match started {
        Ok(shell) => shell,
        Err(refusal) => return refused(&registry, refusal),
    };
    let telemetry = telemetry(mode, wait);
    let outcome = match mode {
        CommandMode::Async | CommandMode::Detached => ToolOutcome::success(texts::started(&shell.id, mode)),
        CommandMode::Sync => {
            let limit = wait.unwrap_or(DEFAULT_WAIT);
            // From here on the command ends with its call, unless the call leaves it alone.
            let leash = StopOnDrop(&shell);
            let ended = tokio::select! {
                // The end of a command is reported even if its call was cancelled at the same moment.
                biased;
                phase = shell.ended_within(limit, shell.first_wait()) => phase,
                () = context.cancel.cancelled() => {
                    shell.stop.cancel();
                    shell.ended().await;
                    return answer::interrupted();
                }
                () = context.hurry.cancelled() => {
                    shell.left_alone.cancel();
                    leash.release();
                    let moved = ToolOutcome::success(texts::moved(&shell.id));
                    return ToolOutcome { telemetry: Some(telemetry), ..moved };
                }
            };
            if ended == CommandPhase::Running {
                shell.left_alone.cancel();
            }
            leash.release();
            tell(&registry.options.spill, &registry.options.cwd, &shell, limit)
        }
    };
    ToolOutcome { telemetry: Some(telemetry), ..outcome }
}

/// Default time that a call waits for its command.
pub(super) const DEFAULT_WAIT: Duration = Duration::from_secs(30);

/// Drop guard that stops a command whose call is dropped while it waits.
struct StopOnDrop<'a>(&'a Tracked);

impl StopOnDrop<'_> {
    fn release(self) {
        std::mem::forget(self);
    }
}

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.stop.cancel();
    }
}

pub(super) async fn read(registry: Arc<Registry>, arguments: Read, context: ToolContext) -> ToolOutcome {
    let shell = match find(&registry, &arguments.shell_id) {
        Ok(shell) => shell,
        Err(outcome) => return outcome,
    };
    wait_and_tell(&registry, &shell, arguments.delay, &context).await
}

pub(super) async fn write(registry: Arc<Registry>, arguments: Write, context: ToolContext) -> ToolOutcome {
    let Write { shell_id, inputs, delay } = arguments;
    let shell = match find(&registry, &shell_id) {
        Ok(shell) => shell,
        Err(outcome) => return outcome,
    };
    let Some(sender) = shell.input() else {
        let why = if shell.is_running() {
            "takes no input: only commands started with mode \"async\" do, and not when detached"
        } else {
            "has ended"
        };
        return ToolOutcome::failure(format!("The command with shellId: {shell_id} {why}."));
    };
    let sent = async {
        for input in inputs {
            if sender.send(input).await.is_err() {
                return false;
            }
        }
        true
    };
    let sent = tokio::select! {
        sent = sent => sent,
        () = context.cancel.cancelled() => return answer::interrupted(),
    };
    if !sent && shell.is_running() {
        return ToolOutcome::failure(format!(
            "The command with shellId: {shell_id} no longer reads its input."
        ));
    }
    wait_and_tell(&registry, &shell, delay, &context).await
}

pub(super) async fn stop(registry: Arc<Registry>, shell_id: String) -> ToolOutcome {
    // An id that is not there is as stopped as can be.
    if let Some(shell) = registry.remove(&shell_id) {
        shell.stop.cancel();
        shell.ended().await;
    }
    ToolOutcome::success(texts::stopped(&shell_id))
}

pub(super) fn list(registry: &Registry) -> ToolOutcome {
    ToolOutcome::success(texts::list(&registry.list()))
}

fn find(registry: &Registry, id: &str) -> Result<Arc<Tracked>, ToolOutcome> {
    match registry.find(id) {
        ShellLookup::Here(shell) => Ok(shell),
        ShellLookup::Stopped => Err(ToolOutcome::failure(texts::was_stopped(id, &registry.list()))),
        ShellLookup::Never => Err(ToolOutcome::failure(texts::not_found(id, &registry.list()))),
    }
}

async fn wait_and_tell(
    registry: &Registry,
    shell: &Tracked,
    delay: Duration,
    context: &ToolContext,
) -> ToolOutcome {
    tokio::select! {
        biased;
        _ = shell.ended_within(delay, shell.wait()) => tell(&registry.options.spill, &registry.options.cwd, shell, delay),
        // The command is not this call's: it goes on.
        () = context.cancel.cancelled() => answer::interrupted(),
    }
}

/// Answer of a call of `read_bash` that does not wait.
pub(super) fn told(spill: &Spill, cwd: &Path, shell: &Tracked) -> ToolOutcome {
    let mut outcome = tell(spill, cwd, shell, Duration::ZERO);
    // There is no waiting caller that could be asked.
    if let Some(blocked) = outcome.blocked.take() {
        outcome.text = permissions::texts::kept_from(&blocked.from, &outcome.text);
    }
    outcome
}

/// The output and where the command stands, after having waited for it.
fn tell(spill: &Spill, cwd: &Path, shell: &Tracked, waited: Duration) -> ToolOutcome {
    let CommandSnapshot { text, phase } = shell.read();
    let has_output = !text.trim().is_empty();
    let ended = matches!(phase, CommandPhase::Ended { .. });
    let confined = shell.confined.as_ref().filter(|_| ended);
    let blocked = confined.and_then(|confined| denial::find(&text, cwd, confined));
    let output = spill.fit(text, "bash");
    match phase {
        // It did without, which is no reason to ask, but to know.
        CommandPhase::Ended { code: 0, .. } => {
            let output = match blocked {
                Some(from) => texts::with_marker(&output, &texts::kept_from(&from)),
                None => output,
            };
            ToolOutcome {
                exit_code: Some(0),
                ..ToolOutcome::success(texts::with_marker(&output, &texts::exited(0)))
            }
        }
        CommandPhase::Ended { code, .. } => ToolOutcome {
            exit_code: Some(code),
            blocked: blocked.map(|from| Box::new(Blocked { from })),
            ..ToolOutcome::success(texts::with_marker(&output, &texts::exited(code)))
        },
        CommandPhase::Running => {
            let marker = texts::still_running(&shell.id, waited, has_output);
            ToolOutcome::success(if has_output { texts::with_marker(&output, &marker) } else { marker })
        }
        CommandPhase::Stopped { .. } => {
            ToolOutcome::success(texts::with_marker(&output, &texts::stopped(&shell.id)))
        }
    }
}

fn refused(registry: &Registry, refusal: StartRefusal) -> ToolOutcome {
    ToolOutcome::failure(match refusal {
        StartRefusal::InUse(id) => texts::in_use(&id),
        StartRefusal::TooMany => {
            format!(
                "Too many commands are running. Stop one with stop_bash.\n\n{}",
                texts::list(&registry.list())
            )
        }
        StartRefusal::Start(error) => format!(
            "The command could not be started by {} in {}: {error}",
            registry.options.program.display(),
            registry.options.cwd.display()
        ),
    })
}

fn telemetry(mode: CommandMode, wait: Option<Duration>) -> serde_json::Value {
    let word = |flag: bool| if flag { "true" } else { "false" };
    let properties = json!({
        "customTimeout": word(wait.is_some()),
        "executionMode": if mode == CommandMode::Sync { "sync" } else { "async" },
        "detached": word(mode == CommandMode::Detached),
    });
    match mode {
        CommandMode::Sync => {
            let milliseconds = u64::try_from(wait.unwrap_or(DEFAULT_WAIT).as_millis()).unwrap_or(u64::MAX);
            json!({"properties": properties, "metrics": {"commandTimeout": milliseconds}})
        }
        CommandMode::Async | CommandMode::Detached => json!({"properties": properties}),
    }
}

/// Splits what is to be written at the names of keys.
pub(super) fn parse_input(text: &str) -> Vec<ShellInput> {
    let mut inputs = Vec::new();
    let (text, ends) = match text.strip_suffix("{ctrl+d}") {
        Some(text) => (text, true),
        None => (text, false),
    };
    let text = text.replace("{enter}", "\n");
    if !text.is_empty() {
        inputs.push(ShellInput::Text(text));
    }
    if ends {
        inputs.push(ShellInput::End);
    }
    inputs
}
