//! An agent that follows a script. A prompt names its scene as `@name`; each time the scene is played it takes the next of
//! its replies, and stays with the last.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use hangar_protocol::data::{PermissionRequested, ToolStart, UserMessage};
use hangar_protocol::{Body, Event, EventId};
use hangar_runtimes::outcome::{ErrorKind, Evidence, TurnFailure, TurnOutcome, TurnResult};
use hangar_runtimes::runtime::{
    AgentAnswer, AgentCard, AgentOrder, AgentSession, Lookup, OfferedModel, PermissionReply, Preflight,
    RehearsalStage, Runtime, SessionCommand, SessionNews, TurnEnded,
};
use hangar_runtimes::usage::{AgentUsage, Figure};
use serde_json::json;
use tokio::sync::mpsc;

/// `yes`, `no`, `yes(reason)`, `doc(path)`, `unable`, `ok`, `crash`, `crash(kind)`, `hang`, `asks`; `+` joins several. The scene `open` is
/// about opening sessions.
#[derive(Default)]
pub(crate) struct Script {
    scenes: Mutex<HashMap<String, (Vec<String>, usize)>>,
}

impl Script {
    /// Lines of `scene: reply reply`.
    pub(crate) fn parse(text: &str) -> Self {
        let scene = |line: &str| {
            let (name, replies) = line.split_once(':')?;
            let replies = replies.split_whitespace().map(str::to_owned).collect();
            Some((name.trim().to_owned(), (replies, 0)))
        };
        Self { scenes: Mutex::new(text.lines().filter_map(scene).collect()) }
    }

    fn play(&self, scene: &str) -> String {
        let mut scenes = self.scenes.lock();
        let Some((replies, played)) = scenes.get_mut(scene) else { return "ok".to_owned() };
        let reply = replies[(*played).min(replies.len() - 1)].clone();
        *played += 1;
        reply
    }
}

pub(crate) struct Fake {
    card: AgentCard,
    script: Arc<Script>,
}

impl Fake {
    pub(crate) fn new(name: &'static str, script: Arc<Script>) -> Self {
        let capabilities = json!({
            "streaming": false, "resume": false, "sessionIdGiven": true, "sessionIdEarly": true, "cost": false,
            "inputTokens": true, "effortLevels": [], "budgetCap": false, "systemPrompt": false,
            "modelDiscovery": false, "permissionCallbacks": true, "promptByStdin": false, "mcpConfig": name != "toolless",
            "toolRules": false, "sharedProcess": true, "remote": false, "toolEvents": true, "ownLog": false,
        });
        let capabilities = serde_json::from_value(capabilities).unwrap();
        let (label, install) = ("Fake".into(), "nothing to do".into());
        Self {
            card: AgentCard {
                name: name.into(),
                label,
                runtime: None,
                capabilities,
                install,
                shell_tool: None,
            },
            script,
        }
    }
}

impl Runtime for Fake {
    fn card(&self) -> &AgentCard {
        &self.card
    }

    fn preflight(&self) -> BoxFuture<'static, Preflight> {
        Box::pin(std::future::ready(Preflight::default()))
    }

    fn models(&self, _: Lookup) -> BoxFuture<'static, Option<Vec<OfferedModel>>> {
        Box::pin(std::future::ready(None))
    }

    fn rehearse(&self, _: &mut AgentOrder, _: &RehearsalStage) {}

    fn open(&self, order: AgentOrder) -> BoxFuture<'static, Result<AgentSession, TurnFailure>> {
        let script = Arc::clone(&self.script);
        Box::pin(async move {
            assert!(order.workspace.is_absolute() && order.mcp_config.is_some());
            match script.play("open").as_str() {
                "refused" => Err(failure(ErrorKind::Auth, "no login")),
                _ => Ok(live(script)),
            }
        })
    }
}

/// A session that follows a script.
pub(crate) fn live(script: Arc<Script>) -> AgentSession {
    watched(script).0
}

/// A session with the sender of its news, which is closed once whoever has the session lets go of it.
pub(crate) fn watched(script: Arc<Script>) -> (AgentSession, mpsc::Sender<SessionNews>) {
    let (commands, mut inbox) = mpsc::channel(8);
    let (outbox, news) = mpsc::channel(8);
    let watch = outbox.clone();
    let owner = tokio::spawn(async move {
        while let Some(command) = inbox.recv().await {
            match command {
                SessionCommand::Send(prompt) => turn(&script, &prompt, &outbox, &mut inbox).await,
                SessionCommand::Stop => return,
                SessionCommand::Steer(_)
                | SessionCommand::Rename(_)
                | SessionCommand::Abort
                | SessionCommand::Answer { .. } => {}
            }
        }
    });
    (AgentSession::new(commands, news, owner.abort_handle()), watch)
}

fn failure(kind: ErrorKind, message: &str) -> TurnFailure {
    TurnFailure { kind, message: message.to_owned(), evidence: Evidence::default() }
}

fn event(body: Body) -> SessionNews {
    let id = EventId(uuid::Uuid::new_v4().to_string());
    SessionNews::Event(Box::new(Event::new(id, "2026-01-01T00:00:00.000Z".to_owned(), None, None, body)))
}

async fn turn(
    script: &Script,
    prompt: &str,
    outbox: &mpsc::Sender<SessionNews>,
    inbox: &mut mpsc::Receiver<SessionCommand>,
) {
    let scene = prompt.split('@').nth(1).unwrap_or_default();
    let scene: String = scene.chars().take_while(|c| c.is_alphanumeric()).collect();
    let said = UserMessage { content: prompt.to_owned(), ..UserMessage::default() };
    outbox.send(event(said.into())).await.unwrap();
    let mut end = TurnResult::Completed;
    for word in script.play(&scene).split('+') {
        let (word, argument) = word.trim_end_matches(')').split_once('(').unwrap_or((word, ""));
        let tool = match word {
            "yes" => "job_boolean_true",
            "no" => "jobs-job_boolean_false",
            "doc" => "mcp__jobs__job_prepare_document",
            "unable" => "job_prerequisite_failed",
            "crash" => {
                let kind = ErrorKind::ALL.iter().find(|kind| kind.as_str() == argument);
                end = TurnResult::Failed(failure(*kind.unwrap_or(&ErrorKind::TurnFailed), "it broke"));
                continue;
            }
            "hang" => std::future::pending().await,
            "asks" => {
                let write = json!({
                    "kind": "write", "intention": "", "fileName": "a", "diff": "", "canOfferSessionApproval": false,
                });
                let request = json!({ "requestId": "r", "permissionRequest": write });
                let asked: PermissionRequested = serde_json::from_value(request).unwrap();
                outbox.send(event(asked.into())).await.unwrap();
                let answer = inbox.recv().await;
                assert!(matches!(
                    answer,
                    Some(SessionCommand::Answer {
                        answer: AgentAnswer::Permission(PermissionReply::Once),
                        ..
                    })
                ));
                continue;
            }
            _ => continue,
        };
        let start = json!({ "toolCallId": "t", "toolName": tool, "arguments": { "argument": argument } });
        let start: ToolStart = serde_json::from_value(start).unwrap();
        outbox.send(event(start.into())).await.unwrap();
    }
    let usage = AgentUsage { input_tokens: Figure::Reported(100.0), ..AgentUsage::default() };
    let outcome = TurnOutcome { end, usage, total: usage };
    let ended = TurnEnded { outcome, model: None, unknown: Default::default() };
    let _ = outbox.send(SessionNews::TurnEnded(Box::new(ended))).await;
}
