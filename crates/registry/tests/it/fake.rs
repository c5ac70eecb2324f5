//! An agent that does what its prompt says, and a machine that has it.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use hangar_protocol::data::CodeChanges;
use hangar_protocol::data::{AssistantMessage, ModelItems, PermissionRequested, UserMessage};
use hangar_protocol::{Body, Event, EventId, LogPosition};
use hangar_registry::host::{
    AgentHost, JoinedSession, LogWriter, LogWriterError, OtherProcesses, PastSession, Placement, SessionLogs,
    SessionRequest,
};
use hangar_runtimes::host::Host;
use hangar_runtimes::outcome::{ErrorKind, Evidence, TurnFailure, TurnOutcome, TurnResult};
use hangar_runtimes::runtime::{
    AgentAnswer, AgentCard, AgentOrder, AgentSession, Lookup, OfferedModel, PermissionReply, Preflight,
    RehearsalStage, Resume, Runtime, SessionCommand, SessionNews, TurnEnded,
};
use hangar_runtimes::usage::AgentUsage;
use hangar_store::{OpenSession, SessionId, SessionMeta, Store};
use serde_json::json;
use tokio::sync::mpsc;

pub(crate) const NAME: &str = "fake";
/// Capacity of the queues to the agent and its listeners: small, so that one soon waits for the other.
const QUEUE: usize = 4;

pub(crate) struct Fake(AgentCard);

impl Fake {
    pub(crate) fn new() -> Self {
        let capabilities = json!({
            "streaming": false, "resume": true, "sessionIdGiven": true, "sessionIdEarly": true, "cost": false,
            "inputTokens": false, "effortLevels": [], "budgetCap": false, "systemPrompt": false,
            "modelDiscovery": false, "permissionCallbacks": true, "promptByStdin": false, "mcpConfig": true,
            "toolRules": false, "sharedProcess": true, "remote": false, "toolEvents": true, "ownLog": false,
        });
        let capabilities = serde_json::from_value(capabilities).unwrap();
        let (label, install) = ("Fake".into(), "nothing to do".into());
        Self(AgentCard { name: NAME.into(), label, runtime: None, capabilities, install, shell_tool: None })
    }
}

impl Runtime for Fake {
    fn card(&self) -> &AgentCard {
        &self.0
    }

    fn preflight(&self) -> BoxFuture<'static, Preflight> {
        Box::pin(std::future::ready(Preflight::default()))
    }

    fn models(&self, _: Lookup) -> BoxFuture<'static, Option<Vec<OfferedModel>>> {
        Box::pin(std::future::ready(None))
    }

    fn rehearse(&self, _: &mut AgentOrder, _: &RehearsalStage) {}

    fn open(&self, _: AgentOrder) -> BoxFuture<'static, Result<AgentSession, TurnFailure>> {
        let (commands, mut inbox) = mpsc::channel(QUEUE);
        let (outbox, news) = mpsc::channel(QUEUE);
        let owner = tokio::spawn(async move {
            while let Some(command) = inbox.recv().await {
                match command {
                    SessionCommand::Send(prompt) => {
                        let Some(end) = turn(&prompt, &outbox, &mut inbox).await else { return };
                        if outbox.send(ended(end)).await.is_err() {
                            return;
                        }
                    }
                    SessionCommand::Stop => return,
                    SessionCommand::Steer(_)
                    | SessionCommand::Rename(_)
                    | SessionCommand::Abort
                    | SessionCommand::Answer { .. } => {}
                }
            }
        });
        Box::pin(std::future::ready(Ok(AgentSession::new(commands, news, owner.abort_handle()))))
    }
}

fn ended(end: TurnResult) -> SessionNews {
    let outcome = TurnOutcome { end, usage: AgentUsage::default(), total: AgentUsage::default() };
    SessionNews::TurnEnded(Box::new(TurnEnded { outcome, model: None, unknown: Default::default() }))
}

/// `say TEXT`, `think TEXT` with items of a vendor, `wait` until somebody ends the turn, `ask N` permissions before any answer is looked at. `None` once the session
/// is to end.
async fn turn(
    prompt: &str,
    outbox: &mpsc::Sender<SessionNews>,
    inbox: &mut mpsc::Receiver<SessionCommand>,
) -> Option<TurnResult> {
    say(outbox, UserMessage { content: prompt.to_owned(), ..UserMessage::default() }.into()).await;
    // Before it may stand that a session crashed.
    let order = prompt.lines().last().unwrap_or_default();
    let (word, argument) = order.split_once(' ').unwrap_or((order, ""));
    match word {
        "wait" => loop {
            match inbox.recv().await {
                Some(SessionCommand::Abort) => {
                    let message = "the turn was cancelled".to_owned();
                    let evidence = Evidence::default();
                    return Some(TurnResult::Failed(TurnFailure {
                        kind: ErrorKind::TurnCancelled,
                        message,
                        evidence,
                    }));
                }
                Some(SessionCommand::Stop) | None => return None,
                Some(_) => {}
            }
        },
        "ask" => {
            let questions: usize = argument.parse().unwrap();
            for number in 0..questions {
                let write = json!({
                    "kind": "write", "intention": "", "fileName": "a", "diff": "", "canOfferSessionApproval": false,
                });
                let request = json!({ "requestId": format!("r{number}"), "permissionRequest": write });
                let asked: PermissionRequested = serde_json::from_value(request).unwrap();
                say(outbox, asked.into()).await;
            }
            for number in 0..questions {
                let answer = inbox.recv().await;
                let Some(SessionCommand::Answer { request_id, answer }) = answer else {
                    panic!("{answer:?}")
                };
                assert_eq!(request_id, format!("r{number}"));
                assert_eq!(answer, AgentAnswer::Permission(PermissionReply::Once));
            }
        }
        _ => {
            if word == "think" {
                let origin = json!({ "provider": "", "wire": "", "model": "", "account": "" });
                let items = json!({ "messageId": "m", "origin": origin, "items": [argument] });
                let items: ModelItems = serde_json::from_str(&items.to_string()).unwrap();
                say(outbox, items.into()).await;
            }
            let message = json!({ "messageId": "m", "content": argument });
            let message: AssistantMessage = serde_json::from_value(message).unwrap();
            say(outbox, message.into()).await;
        }
    }
    Some(TurnResult::Completed)
}

async fn say(outbox: &mpsc::Sender<SessionNews>, body: Body) {
    // Nobody hears an agent that was told to stop.
    let _ = outbox.send(SessionNews::Event(Box::new(event(body)))).await;
}

fn event(body: Body) -> Event {
    let id = EventId(uuid::Uuid::new_v4().to_string());
    Event::new(id, "2026-01-01T00:00:00.000Z".to_owned(), None, None, body)
}

/// A machine with that one agent, whose logs are kept for it.
pub(crate) struct Machine {
    pub(crate) store: Store,
    pub(crate) runtimes: Vec<Arc<dyn Runtime>>,
}

impl AgentHost for Machine {
    fn runtimes(&self) -> Arc<[Arc<dyn Runtime>]> {
        self.runtimes.clone().into()
    }

    fn order(&self, wanted: SessionRequest) -> Result<AgentOrder, String> {
        Ok(AgentOrder { consent: wanted.consent, ..AgentOrder::new(wanted.id.to_string(), wanted.workspace) })
    }

    fn placement(&self, _: &str) -> Placement {
        Placement { host: Host::Local, pool: Vec::new(), labels: BTreeSet::new() }
    }

    fn account(&self, runtime: &str, _: Option<&str>) -> String {
        runtime.to_owned()
    }

    fn context_limit(&self, _: &str) -> Option<u64> {
        None
    }
}

impl SessionLogs for Machine {
    fn begin(
        &self,
        id: &SessionId,
        order: &AgentOrder,
        _: &str,
    ) -> Result<Box<dyn LogWriter>, LogWriterError> {
        let context = serde_json::from_value(json!({ "cwd": order.workspace })).unwrap();
        let meta = SessionMeta::new(context, jiff::Timestamp::UNIX_EPOCH);
        Ok(Log::of(self.store.create(id, meta)?))
    }

    fn take_up(&self, id: &SessionId) -> Result<Box<dyn LogWriter>, LogWriterError> {
        Ok(Log::of(self.store.open(id)?))
    }

    fn past(&self, _: &SessionId) -> Result<PastSession, LogWriterError> {
        Ok(PastSession {
            runtime: NAME.to_owned(),
            agent: None,
            host: None,
            agent_session: None,
            workspace: Some("/".into()),
        })
    }
}

impl OtherProcesses for Machine {
    fn open_elsewhere(&self) -> Vec<SessionId> {
        Vec::new()
    }

    fn join(&self, _: &SessionId) -> BoxFuture<'static, Result<Option<JoinedSession>, String>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

/// A log that is written line by line.
struct Log {
    open: OpenSession,
    end: LogPosition,
}

impl Log {
    fn of(open: OpenSession) -> Box<dyn LogWriter> {
        let end = LogPosition { seq: open.end().0, offset: open.log_bytes() };
        Box::new(Self { open, end })
    }
}

impl LogWriter for Log {
    fn append(&mut self, event: &Event) -> Result<Option<LogPosition>, LogWriterError> {
        if event.is_ephemeral() {
            return Ok(None);
        }
        let line = serde_json::to_string(event).unwrap();
        let mut file = std::fs::OpenOptions::new().append(true).open(self.open.log_path()).unwrap();
        writeln!(file, "{line}").unwrap();
        self.end.seq += 1;
        self.end.offset += line.len() as u64 + 1;
        Ok(Some(self.end))
    }

    fn rename(&mut self, _: String) -> Result<(), LogWriterError> {
        Ok(())
    }

    fn resume(&self, _: Option<String>) -> Resume {
        Resume::default()
    }

    fn close(
        &mut self,
        _: Option<String>,
        _: &AgentUsage,
        _: CodeChanges,
        _: Option<String>,
    ) -> Result<Event, LogWriterError> {
        let mut event = event(Body::Abort(serde_json::from_value(json!({ "reason": "closed" })).unwrap()));
        self.append(&event)?.into_iter().for_each(|position| event.set_position(position));
        Ok(event)
    }
}
