//! One session of an agent of the Agent Client Protocol, owned by one task.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hangar_peer::PeerError;
use hangar_protocol::data::{PermissionCompleted, PermissionRequested};
use hangar_protocol::permission::PermissionOutcome;
use hangar_protocol::rpc::Id;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::connection::AgentMessage;
use super::{AgentProcess, permission, reported_error};
use crate::agents::with_system;
use crate::event_emitter::{AgentRecord, EventEmitter};
use crate::outcome::{AgentVerdict, ReportedError, Stopped, TurnFacts, TurnOutcome, TurnResult, decide};
use crate::prompt_queue::PromptQueue;
use crate::runtime::{AgentAnswer, AgentOrder, Consent, PermissionReply, SessionCommand, TurnEnded};
use crate::translate::acp::{self, Acp};
use crate::translate::{TranslatedEvent, Translation};
use crate::turn::until;
use crate::usage::{Counting, UsageMeter};
use crate::watch::{TreeProbe, TurnWatch, WatchNews};

/// Grace period of an agent to confirm a cancelled prompt.
const CANCEL_GRACE: Duration = Duration::from_secs(5);

pub(super) struct AcpSession {
    agent: Arc<AgentProcess>,
    agent_session: String,
    order: AgentOrder,
    emitter: EventEmitter,
    incoming: mpsc::Receiver<AgentMessage>,
    meter: UsageMeter,
    /// Permissions that the agent waits for: how to answer, and what was asked.
    asked: HashMap<String, (Id, Value)>,
    turns: u32,
    /// Whether a prompt is unanswered.
    working: bool,
    /// Working tree of the agent, whose changes are progress.
    tree: TreeProbe,
}

/// Turn in progress.
struct AcpTurn {
    translator: Acp,
    said: Translation,
    facts: TurnFacts,
    watch: TurnWatch,
    /// Deadline of a turn that was told to stop.
    given_up: Option<Instant>,
    /// Whether the session ends with this turn.
    last: bool,
}

impl AcpSession {
    pub(super) fn new(
        agent: Arc<AgentProcess>,
        agent_session: String,
        order: AgentOrder,
        emitter: EventEmitter,
        incoming: mpsc::Receiver<AgentMessage>,
        tree: TreeProbe,
    ) -> Self {
        let meter = UsageMeter::new(Counting::SinceOpened, order.resume.as_ref().map(|resume| resume.used));
        Self {
            agent,
            agent_session,
            order,
            emitter,
            incoming,
            meter,
            asked: HashMap::new(),
            turns: 0,
            working: false,
            tree,
        }
    }

    pub(super) async fn run(mut self, mut inbox: mpsc::Receiver<SessionCommand>, warnings: Vec<String>) {
        self.emitter.begin(&self.order).await;
        self.emitter.warn(warnings).await;
        let name = self.agent_session.clone();
        self.emitter.named(&name).await;
        let mut waiting = PromptQueue::default();
        loop {
            let prompt = match waiting.pop() {
                Some(prompt) => prompt,
                None => tokio::select! {
                    command = inbox.recv() => match command {
                        Some(SessionCommand::Send(prompt) | SessionCommand::Steer(prompt)) => prompt,
                        // Nothing is under way that these could be about.
                        Some(SessionCommand::Abort | SessionCommand::Answer { .. } | SessionCommand::Rename(_)) => continue,
                        Some(SessionCommand::Stop) | None => return,
                    },
                    // Messages between turns belong to no prompt.
                    incoming = self.incoming.recv() => match incoming {
                        Some(AgentMessage::Update(_)) => continue,
                        Some(AgentMessage::Permission { id, params }) => {
                            self.agent.connection.respond(id, &permission::answer(&params, false));
                            continue;
                        }
                        None => return,
                    },
                },
            };
            if self.turn(prompt, &mut inbox, &mut waiting).await {
                return;
            }
        }
    }

    /// One turn. Says whether the session ends with it.
    async fn turn(
        &mut self,
        prompt: String,
        inbox: &mut mpsc::Receiver<SessionCommand>,
        waiting: &mut PromptQueue,
    ) -> bool {
        self.emitter.prompted(&prompt).await;
        let known = self.turns > 0 || self.order.resume.is_some();
        self.turns += 1;
        let text = with_system(&prompt, &self.order, known);
        let params = json!({ "sessionId": self.agent_session, "prompt": [{ "type": "text", "text": text }] });
        let now = Instant::now();
        let mut turn = AcpTurn {
            translator: Acp::default(),
            said: Translation::default(),
            facts: TurnFacts::default(),
            watch: TurnWatch::new(self.order.limits, now),
            given_up: None,
            last: false,
        };
        let deadline = self.order.limits.turn.map(|limit| now + limit);
        let agent = Arc::clone(&self.agent);
        self.working = true;
        let answer = agent.connection.request("session/prompt", &params);
        tokio::pin!(answer);
        let answered = loop {
            let stopping = turn.given_up.is_some();
            tokio::select! {
                biased;
                Some(incoming) = self.incoming.recv() => self.hear(incoming, &mut turn).await,
                command = inbox.recv(), if !turn.last => self.command(command, &mut turn, waiting).await,
                answer = &mut answer => break Some(answer),
                () = until(deadline), if !stopping && self.asked.is_empty() => {
                    let seconds = self.order.limits.turn.unwrap_or_default().as_secs();
                    self.stop(&mut turn, Stopped::TimedOut { seconds }).await;
                }
                () = until(turn.watch.due()), if !stopping => match turn.watch.check(&mut self.tree).await {
                    Some(WatchNews::Stop(why)) => self.stop(&mut turn, why).await,
                    Some(WatchNews::Warn(warning)) => {
                        let body = (*warning).into();
                        self.emitter.hear(vec![TranslatedEvent::Body { agent: None, body }]).await;
                    }
                    None => {}
                },
                () = until(turn.given_up) => break None,
            }
        };
        // All that it said came before its answer.
        while let Ok(incoming) = self.incoming.try_recv() {
            self.hear(incoming, &mut turn).await;
        }
        self.asked.clear();
        self.working = answered.is_none();
        self.conclude(turn, answered).await
    }

    async fn conclude(&mut self, mut turn: AcpTurn, answered: Option<Result<Value, PeerError>>) -> bool {
        turn.translator.end(&mut turn.said);
        self.emitter.hear(std::mem::take(&mut turn.said.events)).await;
        let facts = &mut turn.facts;
        facts.worked = turn.said.facts.worked;
        match answered {
            Some(Ok(answer)) => {
                turn.said.facts.usage = acp::usage(&answer);
                match answer["stopReason"].as_str() {
                    Some("cancelled") => facts.aborted = true,
                    Some("end_turn") | None => facts.verdict = Some(AgentVerdict::Success),
                    Some(other) => {
                        facts.verdict = Some(AgentVerdict::Failure);
                        facts.reported_error = Some(ReportedError {
                            message: format!("the agent stopped: {}", other.replace('_', " ")),
                            ..ReportedError::default()
                        });
                    }
                }
            }
            Some(Err(PeerError::Refused(error))) => {
                facts.verdict = Some(AgentVerdict::Failure);
                facts.reported_error = Some(reported_error(&error));
            }
            Some(Err(PeerError::Gone | PeerError::Unexpected(_))) => {
                facts.unreadable = Some("the agent ended".to_owned());
                facts.stderr = self.agent.connection.stderr();
            }
            None => {}
        }
        let usage = self.meter.turn_ended(turn.said.facts.usage);
        // A count of zero, or none at all: what was said may not be the model's.
        if facts.reported_error.is_none() && usage.output_tokens.count().unwrap_or(0) == 0 {
            facts.reported_error = turn.translator.error_in_answer();
            facts.verdict = facts.reported_error.as_ref().map(|_| AgentVerdict::Failure).or(facts.verdict);
        }
        let end = decide(facts);
        if let TurnResult::Failed(failure) = &end {
            self.emitter.report(failure, AgentRecord::default()).await;
        }
        let outcome = TurnOutcome { end, usage, total: self.meter.total() };
        let unknown = turn.said.facts.unknown;
        self.emitter.ended(TurnEnded { outcome, model: turn.said.facts.model, unknown }).await;
        turn.last
    }

    async fn hear(&mut self, incoming: AgentMessage, turn: &mut AcpTurn) {
        let now = Instant::now();
        turn.watch.heard(now);
        match incoming {
            AgentMessage::Update(update) => {
                turn.translator.update(&update, &mut turn.said);
                turn.said.events.iter().for_each(|event| turn.watch.note(event.body(), now));
                self.emitter.hear(std::mem::take(&mut turn.said.events)).await;
            }
            // Without any rule everything may run.
            AgentMessage::Permission { id, params }
                if self.order.tools == Default::default() && self.order.consent != Consent::Asked =>
            {
                self.agent.connection.respond(id, &permission::answer(&params, true));
            }
            AgentMessage::Permission { id, params } => {
                let request_id = uuid::Uuid::new_v4().to_string();
                let asked = PermissionRequested::new(request_id.clone(), permission::request(&params));
                turn.watch.asked(&request_id);
                self.asked.insert(request_id, (id, params));
                self.emitter.tell(None, asked.into()).await;
            }
        }
        turn.watch.heard(Instant::now());
    }

    async fn command(
        &mut self,
        command: Option<SessionCommand>,
        turn: &mut AcpTurn,
        waiting: &mut PromptQueue,
    ) {
        match command {
            Some(SessionCommand::Send(prompt) | SessionCommand::Steer(prompt)) => {
                if let Err(error) = waiting.push(prompt) {
                    self.emitter.warn(vec![error.to_string()]).await;
                }
            }
            Some(SessionCommand::Rename(_)) => {}
            Some(SessionCommand::Abort) => self.stop(turn, Stopped::Cancelled).await,
            Some(SessionCommand::Stop) | None => {
                turn.last = true;
                self.stop(turn, Stopped::Cancelled).await;
            }
            Some(SessionCommand::Answer { request_id, answer: AgentAnswer::Permission(answer) }) => {
                if let Some((id, params)) = self.asked.remove(&request_id) {
                    turn.watch.answered(&request_id, Instant::now());
                    self.agent.connection.respond(id, &permission::answer(&params, answer.allows()));
                    let tool_call_id = params["toolCall"]["toolCallId"].as_str().map(str::to_owned);
                    let result = match answer {
                        PermissionReply::Once | PermissionReply::ForSession => PermissionOutcome::Approved {},
                        PermissionReply::Denied { feedback } => {
                            PermissionOutcome::DeniedInteractivelyByUser { feedback, force_reject: None }
                        }
                    };
                    self.emitter
                        .tell(None, PermissionCompleted { request_id, tool_call_id, result }.into())
                        .await;
                }
            }
            // It asks nothing else.
            Some(SessionCommand::Answer { .. }) => {}
        }
    }

    async fn stop(&mut self, turn: &mut AcpTurn, why: Stopped) {
        if turn.given_up.is_some() {
            return;
        }
        turn.facts.stopped = Some(why);
        turn.given_up = Some(Instant::now() + CANCEL_GRACE);
        // The protocol requires that a client that cancels also answers the open questions.
        for (_, (id, _)) in self.asked.drain() {
            let cancelled = json!({ "outcome": { "outcome": "cancelled" } });
            self.agent.connection.respond(id, &cancelled);
        }
        self.agent.connection.notify("session/cancel", &json!({ "sessionId": self.agent_session }));
    }
}

impl Drop for AcpSession {
    fn drop(&mut self) {
        // The process may go on for other sessions; what it does for this one must not.
        if self.working {
            self.agent.connection.notify("session/cancel", &json!({ "sessionId": self.agent_session }));
        }
        self.agent.connection.unsubscribe(&self.agent_session);
    }
}
