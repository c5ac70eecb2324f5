//! Hooks that people configured in files: who is asked, in which order, and what an exit code means.

mod command;
mod config;
mod http;
mod payload;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use hangar_agent::driver::Hooks;
use hangar_agent::hook::{HookAnswer, HookFailure, HookKind, HookRequest, HookSet, MergedAnswers};
use hangar_agent::session::{Command, SessionInput};
use hangar_protocol::data::{HookProgress, SessionWarning};
use serde_json::{Value, json};
use tokio::sync::mpsc;

pub use config::{HookFiles, HookOrigin, ListedHook};

use command::CommandExit;
use config::{HookAction, HookEntry};
use http::Unanswered;

/// Environment that hooks run in.
#[derive(Debug, Clone)]
pub struct HookEnvironment {
    /// Shell that runs the text of a command.
    pub shell: PathBuf,
    /// The variables of the process, without those that are secret.
    pub env: BTreeMap<String, String>,
    /// Whether HTTP hooks may use plain HTTP to this machine.
    pub allow_localhost: bool,
}

/// The configured hooks of a session.
pub struct ConfiguredHooks {
    entries: Vec<Arc<HookEntry>>,
    environment: Arc<HookEnvironment>,
    /// Receives progress while a hook runs.
    news: mpsc::Sender<Box<SessionInput>>,
}

impl ConfiguredHooks {
    /// `None` if nothing is configured.
    pub fn new(
        files: HookFiles,
        mut environment: HookEnvironment,
        news: mpsc::Sender<Box<SessionInput>>,
    ) -> Option<Self> {
        let project = files.root.display().to_string();
        for name in ["COPILOT_PROJECT_DIR", "CLAUDE_PROJECT_DIR"] {
            environment.env.insert(name.to_owned(), project.clone());
        }
        environment.env.insert("COPILOT_CLI".to_owned(), "1".to_owned());
        let entries: Vec<Arc<HookEntry>> = files.entries.into_iter().map(Arc::new).collect();
        (!entries.is_empty()).then(|| Self { entries, environment: Arc::new(environment), news })
    }

    /// Kinds of hooks that are configured.
    pub fn kinds(&self) -> HookSet {
        self.entries.iter().map(|entry| entry.kind).collect()
    }
}

impl Hooks for ConfiguredHooks {
    fn ask(&self, request: &HookRequest) -> BoxFuture<'static, HookAnswer> {
        let entries: Vec<Arc<HookEntry>> =
            self.entries.iter().filter(|entry| entry.is_about(request)).cloned().collect();
        let mut request = request.clone();
        let environment = Arc::clone(&self.environment);
        let news = self.news.clone();
        Box::pin(async move {
            let mut answers = MergedAnswers::default();
            for entry in entries {
                if answers.settled(request.kind) {
                    break;
                }
                let answer = entry.ask(&request, &environment, &news).await;
                request.follow(&answer);
                answers.add(answer);
            }
            answers.into_answer(request.kind)
        })
    }
}

impl HookEntry {
    async fn ask(
        &self,
        request: &HookRequest,
        environment: &HookEnvironment,
        news: &mpsc::Sender<Box<SessionInput>>,
    ) -> HookAnswer {
        let payload = payload::of(request, self.style).to_string();
        let cwd = request.input["cwd"].as_str().unwrap_or(".");
        match &self.action {
            HookAction::Command(command) => {
                let progress = |message: String| {
                    let progress = HookProgress { message, temporary: None };
                    // Progress is dropped if the queue is full.
                    let _ = news.try_send(Box::new(SessionInput::Command(Command::Record(progress.into()))));
                };
                let ended = command
                    .run(&request.id, &payload, cwd.as_ref(), self.timeout, environment, progress)
                    .await;
                self.judge(ended, request.kind, news)
            }
            HookAction::Http(http) => {
                match http.post(payload, self.timeout, environment).await {
                    Ok(body) => Ok(document(&body)),
                    Err(problem) => {
                        self.warn(&problem.to_string(), news);
                        match problem {
                            // As with a command: who takes too long, or may not be asked, has no say.
                            Unanswered::Late(_) | Unanswered::NotAsked => Ok(None),
                            Unanswered::Failed(message) => {
                                Err(HookFailure { message, file: Some(self.file.clone()) })
                            }
                        }
                    }
                }
            }
        }
    }

    /// Answer of a hook, from the exit of its command and the kind of the hook.
    fn judge(
        &self,
        ended: CommandExit,
        kind: HookKind,
        news: &mpsc::Sender<Box<SessionInput>>,
    ) -> HookAnswer {
        let failed = |message: String| {
            tracing::warn!(file = %self.file, "{} hook: {message}", kind.as_str());
            Err(HookFailure { message, file: Some(self.file.clone()) })
        };
        match ended {
            CommandExit::Exited { code: Some(0), stdout, .. } => match document(&stdout) {
                // A hook that may refuse a permission and gave an invalid answer might have refused it.
                None if kind == HookKind::PermissionRequest && !is_document(&stdout) => {
                    failed("hook printed something that is not JSON".to_owned())
                }
                said => Ok(said),
            },
            CommandExit::Exited { code: Some(2), stdout, stderr } => match kind {
                HookKind::PreToolUse => {
                    let refusal = document(&stdout).filter(|said| said["permissionDecision"] == "deny");
                    Ok(refusal.or_else(|| {
                        Some(json!({
                            "permissionDecision": "deny",
                            "permissionDecisionReason": "hook exited with code 2",
                        }))
                    }))
                }
                HookKind::PermissionRequest => {
                    let refusal = document(&stdout).filter(|said| said["behavior"] == "deny");
                    Ok(refusal.or_else(|| Some(json!({ "behavior": "deny" }))))
                }
                HookKind::PostToolUseFailure => {
                    let guidance = stderr.trim();
                    Ok((!guidance.is_empty()).then(|| json!({ "additionalContext": guidance })))
                }
                _ => {
                    self.warn(&format!("exited with code 2: {}", first_line(&stderr)), news);
                    Ok(None)
                }
            },
            CommandExit::Exited { code: Some(code), stderr, .. } => {
                failed(format!("hook exited with code {code}: {}", first_line(&stderr)))
            }
            CommandExit::Exited { code: None, .. } => failed("hook was ended by a signal".to_owned()),
            CommandExit::NotStarted(problem) => failed(format!("hook could not be started: {problem}")),
            CommandExit::TimedOut => {
                self.warn(
                    &format!("took longer than {} s and was stopped", self.timeout.as_secs_f64()),
                    news,
                );
                Ok(None)
            }
            CommandExit::TooLoud => {
                self.warn("printed more than 10 MB and was stopped", news);
                Ok(None)
            }
        }
    }

    fn warn(&self, problem: &str, news: &mpsc::Sender<Box<SessionInput>>) {
        let message = format!("The {} hook of {} {problem}.", self.kind.as_str(), self.file);
        let warning = SessionWarning::new("hook", message);
        // A session that is too busy to be warned goes on without.
        let _ = news.try_send(Box::new(SessionInput::Command(Command::Record(warning.into()))));
    }
}

/// The one document on a hook's output. Anything else is not an answer.
fn document(text: &str) -> Option<Value> {
    let said: Value = serde_json::from_str(text.trim_start_matches('\u{feff}').trim()).ok()?;
    Some(payload::plain_answer(said)).filter(Value::is_object)
}

/// Whether the output is empty or valid JSON.
fn is_document(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}').trim();
    text.is_empty() || serde_json::from_str::<Value>(text).is_ok()
}

fn first_line(text: &str) -> &str {
    text.trim().lines().next().unwrap_or("no reason given")
}

#[cfg(test)]
mod tests;
