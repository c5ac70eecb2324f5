//! The session that carries a claimed order out: opened, run turn by turn with the code of `hangar run`, kept, and released.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Result, anyhow};
use hangar_fleet::claim::LogClaim;
use hangar_fleet::control::{Answer, CommandReader, ControlCommand, ControlRequest};
use hangar_fleet::facts::{FleetSessionState, SessionFact};
use hangar_fleet::fold::{SessionFold, TurnProgress, Waiting};
use hangar_fleet::lease::LeaseKeeper;
use hangar_fleet::log::{LogEntry, LogItem};
use hangar_fleet::order::Order;
use hangar_fleet::queue::Settled;
use hangar_fleet::record::{FleetRecord, FleetTurnEnd, OrderEnd};
use hangar_protocol::data::{ElicitationAction, RunAssigned};
use hangar_protocol::{Body, Event};
use hangar_registry::approvals::{QuestionChange, asking};
use hangar_registry::queue::Slot;
use hangar_runtimes::agents::merged_mcp_config;
use hangar_runtimes::outcome::{ErrorKind, TurnResult};
use hangar_runtimes::runtime::{
    AgentAnswer, AgentSession, Consent, PermissionReply, SessionCommand, SessionNews, TurnEnded,
};
use hangar_runtimes::usage::AgentUsage;
use hangar_store::SessionId;
use jiff::Timestamp;
use parking_lot::Mutex;

use super::attempt::{AFTER_TROUBLE, Carried, item};
use super::flags;
use super::worker::Worker;
use super::workspace::ReadyWorkspace;
use crate::runtimes::AgentRuntimes;
use crate::runtimes::plan::SessionPlan;
use crate::runtimes::record::SessionRecorder;
use crate::selection::SessionSelection;

/// Messages that wait for a session, at most.
const MOST_WAITING: usize = 1000;
/// Questions of a session that wait for people, at most. Further ones are denied.
const MOST_ASKED: usize = 100;
/// Bytes of the past that an agent is told that begins anew.
const DIGEST: usize = 32 << 10;
/// Prompt of a turn whose worker was lost.
const CONTINUE: &str = "The machine that was working on this was lost, and you continue on another one. Commands that were \
running were interrupted; the files are as they were after the last completed turn. Check what is done, and finish the task.";

/// An order whose log is claimed.
pub(super) struct Carrying<'a> {
    pub(super) worker: &'a Arc<Worker>,
    pub(super) order: &'a Order,
    pub(super) id: SessionId,
    pub(super) claim: LogClaim,
    pub(super) keeper: &'a LeaseKeeper,
    /// What lists show.
    pub(super) fact: Mutex<SessionFact>,
}

/// Why the agent was stopped before its turns had ended.
enum Interrupted {
    /// The lease or the claim is gone.
    Lost,
    HandOver,
}

impl Carrying<'_> {
    /// Carries the order out. An agent that is left in `opened`, also when this is dropped, is to be killed.
    pub(super) async fn run(
        &mut self,
        entries: &[LogEntry],
        fold: SessionFold,
        opened: &mut Option<OpenedSession>,
    ) -> Result<Carried> {
        let mut commands = self.worker.broker.commands(&self.id).await?;
        self.fact.lock().events = fold.events;
        self.publish(FleetSessionState::Running, None).await;
        let mut inbox = Inbox {
            waiting: fold.waiting.iter().cloned().collect(),
            ended: fold.ended.keys().cloned().collect(),
            asked: BTreeSet::new(),
        };
        let (id, text) = (self.order.id.0.clone(), self.order.prompt.clone());
        let redactor = crate::redact::of_machine(&self.worker.settings);
        self.accept(&mut inbox, id, redactor.text(text)).await?;
        // A limit of this machine that is full is waited for: the lease is kept meanwhile.
        let slot = tokio::select! {
            slot = self.worker.scheduler.acquire(item(self.worker, self.order, &self.id)) => slot?,
            end = self.interrupted() => return self.leave(end, opened).await,
        };
        let ready = tokio::select! {
            ready = self.open(entries, &fold) => ready,
            end = self.interrupted() => return self.leave(end, opened).await,
        };
        let session = match ready {
            Ok(session) => opened.insert(session),
            Err(error) => {
                let why = format!("{error:#}");
                self.claim.append(&FleetRecord::Trouble { why: why.clone() }).await?;
                slot.finish();
                *self.worker.trouble.lock() = Some(format!("session {}: {why}", self.id));
                return Ok(Carried::Over(Settled::GiveBack(self.worker.scaled(AFTER_TROUBLE))));
            }
        };
        let mut failure = None;
        while let Some(next) = inbox.waiting.front().cloned() {
            match self.turn(session, &next, &mut inbox, &mut commands, &slot).await? {
                Ok(outcome) => {
                    failure = match &outcome {
                        FleetTurnEnd::Failed { message } => Some(message.clone()),
                        FleetTurnEnd::Completed | FleetTurnEnd::Cancelled => None,
                    };
                    inbox.waiting.pop_front();
                    inbox.ended.insert(next.id);
                    if !std::mem::take(&mut inbox.asked).is_empty() {
                        self.show_asked(&inbox).await;
                    }
                }
                Err(end) => return self.leave(end, opened).await,
            }
        }
        session.close(failure.clone()).await;
        self.keep(&session.workspace).await?;
        if let Some(session) = opened.take() {
            session.workspace.remove().await;
        }
        slot.finish();
        self.release(OrderEnd::Done).await?;
        let state = if failure.is_some() { FleetSessionState::Failed } else { FleetSessionState::Idle };
        self.publish(state, failure).await;
        Ok(Carried::Over(Settled::Done))
    }

    /// Accepts a message: it is stored before anybody is told so.
    async fn accept(&self, inbox: &mut Inbox, id: String, text: String) -> Result<()> {
        if inbox.knows(&id) {
            return Ok(());
        }
        let message = FleetRecord::Message { id: id.clone(), text: text.clone(), at: Timestamp::now() };
        self.claim.append(&message).await?;
        inbox.waiting.push_back(Waiting { id, text, progress: TurnProgress::Queued });
        Ok(())
    }

    /// Opens the session: the local log becomes that of the servers, the workspace the one that was kept.
    async fn open(&self, entries: &[LogEntry], fold: &SessionFold) -> Result<OpenedSession> {
        let (worker, id) = (self.worker, &self.id);
        let settings = worker.config.settings();
        let store = settings.store();
        store.restore(id, &lines(entries))?;
        let session = self.id.to_string();
        let workspace = worker.workspaces.prepare(&session, &self.order.workspace).await;
        let workspace = workspace.map_err(|why| anyhow!("the workspace is not ready: {why}"))?;
        let runtimes = AgentRuntimes::assemble(&settings)?;
        let mut args = flags::args(&self.order.settings);
        args.input.directory = Some(workspace.path().to_owned());
        let selection = match fold.events {
            0 => SessionSelection::New { id: id.clone(), name: self.order.settings.name.clone() },
            _ => SessionSelection::Resume(id.clone()),
        };
        let plan = SessionPlan::make(&runtimes, &store, &args, selection)?;
        let mut record = plan.take_up(&store)?;
        let mut order = plan.order(&runtimes, &store, &args, record.as_ref())?;
        if self.order.settings.asks {
            order.consent = Consent::Asked;
        }
        if let Some(run) = &self.order.settings.run
            && fold.events == 0
        {
            let assigned: RunAssigned = serde_json::from_value(run.clone())?;
            order.opening.push(assigned.into());
        }
        if self.order.settings.job_tools {
            // Those of this machine: the ones of the order's are another program.
            order.mcp_config = merged_mcp_config(order.mcp_config, Some(crate::jobs::job_tools()?));
        }
        let mut digest = None;
        let moved = fold.last_worker.as_deref().is_some_and(|last| last != worker.name);
        if let Some(resume) = &mut order.resume
            && !plan.own_log()
            && moved
        {
            resume.agent_session = None;
            digest = Some(digest_of(&store, id));
            let why = "the agent's own state is on another machine".to_owned();
            self.claim.append(&FleetRecord::BegunAnew { why }).await?;
        }
        let agent = plan.open(order).await?;
        if record.is_none() && !plan.own_log() {
            let name = self.order.settings.name.as_deref();
            record =
                Some(plan.begin_record(&runtimes, &store, workspace.path(), name, &self.order.prompt)?);
        }
        let events = fold.events;
        Ok(OpenedSession {
            agent,
            record,
            workspace,
            digest,
            events,
            model: None,
            used: AgentUsage::default(),
        })
    }

    /// Carries one message out. The error is why the turn was not finished here.
    async fn turn(
        &self,
        session: &mut OpenedSession,
        message: &Waiting,
        inbox: &mut Inbox,
        commands: &mut CommandReader,
        slot: &Slot,
    ) -> Result<Result<FleetTurnEnd, Interrupted>> {
        let text = match message.progress {
            TurnProgress::Queued | TurnProgress::Begun => message.text.clone(),
            TurnProgress::Told => CONTINUE.to_owned(),
        };
        let text = match session.digest.take() {
            Some(past) => {
                format!("{past}\n\n{}\n\n{text}", "Above is what happened so far. Go on with this:")
            }
            None => text,
        };
        self.claim.append(&FleetRecord::TurnBegan { message: message.id.clone() }).await?;
        if session.agent.commands.send(SessionCommand::Send(text)).await.is_err() {
            return Err(anyhow!("the agent ended before its turn began"));
        }
        let mut cancelled = false;
        let ended = loop {
            tokio::select! {
                biased;
                end = self.interrupted() => return Ok(Err(end)),
                request = commands.next() => match request {
                    Some(request) => self.obey(session, inbox, request, &mut cancelled).await?,
                    None => return Ok(Err(Interrupted::Lost)),
                },
                news = session.agent.news.recv() => match news {
                    Some(SessionNews::Event(event)) => {
                        if matches!(event.body(), Body::AssistantMessage(_)) {
                            slot.answered();
                        }
                        self.hear(session, inbox, &event).await?;
                    }
                    Some(SessionNews::TurnEnded(ended)) => break ended,
                    None => break Box::new(gone()),
                },
            }
        };
        // An agent whose log is not its own may be ahead of the servers.
        if let Some(settled) = self.claim.settled()
            && settled.await.is_err()
        {
            return Ok(Err(Interrupted::Lost));
        }
        session.model.clone_from(&ended.model);
        session.used = ended.outcome.total;
        {
            let mut fact = self.fact.lock();
            fact.events = session.events;
            if ended.model.is_some() {
                fact.model.clone_from(&ended.model);
            }
        }
        self.keep(&session.workspace).await?;
        let outcome = outcome(&ended, cancelled);
        let record = FleetRecord::TurnEnded {
            message: message.id.clone(),
            outcome: outcome.clone(),
            at: Timestamp::now(),
        };
        self.claim.append(&record).await?;
        let micros = u64::try_from(self.claim.latency().as_micros()).unwrap_or(u64::MAX);
        self.worker.append_micros.store(micros, Ordering::Relaxed);
        Ok(Ok(outcome))
    }

    /// Resolves when the session must be left.
    async fn interrupted(&self) -> Interrupted {
        tokio::select! {
            () = self.keeper.over().cancelled() => Interrupted::Lost,
            () = self.claim.over().cancelled() => Interrupted::Lost,
            () = self.worker.hand_over.cancelled() => Interrupted::HandOver,
        }
    }

    async fn hear(&self, session: &mut OpenedSession, inbox: &mut Inbox, event: &Event) -> Result<()> {
        if let Some(record) = &mut session.record {
            record.append(event)?;
        }
        if !event.is_ephemeral() {
            session.events = event.position().map_or(session.events + 1, |position| position.seq);
        } else if !(self.order.settings.asks && matches!(asking(event), Some(QuestionChange::Asks(..))))
            && let Ok(json) = serde_json::to_vec(event)
        {
            // Questions are recorded instead, because nobody may miss one.
            self.worker.broker.publish_live(&self.id, session.events, json).await;
        }
        if !self.order.settings.asks {
            session.agent.answer_unattended(event, PermissionReply::Denied { feedback: None }).await;
            return Ok(());
        }
        match asking(event) {
            Some(QuestionChange::Asks(_, id)) if inbox.asked.len() < MOST_ASKED => {
                // In the log, so that whoever looks later finds it too.
                let asked = FleetRecord::Asked { id: id.to_owned(), event: serde_json::to_value(event)? };
                self.claim.append(&asked).await?;
                inbox.asked.insert(id.to_owned());
                self.show_asked(inbox).await;
            }
            Some(QuestionChange::Asks(..)) => {
                session.agent.answer_unattended(event, PermissionReply::Denied { feedback: None }).await;
            }
            Some(QuestionChange::Settles(id)) if inbox.asked.remove(id) => {
                self.claim.append(&FleetRecord::Settled { id: id.to_owned() }).await?;
                self.show_asked(inbox).await;
            }
            Some(QuestionChange::Settles(_)) | None => {}
        }
        Ok(())
    }

    /// Publishes how many questions wait.
    async fn show_asked(&self, inbox: &Inbox) {
        self.fact.lock().asked = u32::try_from(inbox.asked.len()).unwrap_or(u32::MAX);
        self.publish(FleetSessionState::Running, None).await;
    }

    async fn obey(
        &self,
        session: &mut OpenedSession,
        inbox: &mut Inbox,
        request: ControlRequest,
        cancelled: &mut bool,
    ) -> Result<()> {
        // A request that waited while this process was stopped is for the next owner.
        self.claim.check()?;
        let command = match request.command.clone() {
            ControlCommand::Send { id, text } => {
                let redactor = crate::redact::of_machine(&self.worker.settings);
                if inbox.waiting.len() >= MOST_WAITING && !inbox.knows(&id) {
                    request
                        .refuse(format!("{MOST_WAITING} messages wait; send more when some are done"))
                        .await;
                    return Ok(());
                }
                self.accept(inbox, id, redactor.text(text)).await?;
                request.accept().await;
                return Ok(());
            }
            ControlCommand::Steer { text } => SessionCommand::Steer(text),
            ControlCommand::Abort => {
                *cancelled = true;
                SessionCommand::Abort
            }
            ControlCommand::Answer { request: request_id, answer } => {
                // The first answer counts.
                if !inbox.asked.remove(&request_id) {
                    request.refuse("the question is not open".to_owned()).await;
                    return Ok(());
                }
                self.claim.append(&FleetRecord::Settled { id: request_id.clone() }).await?;
                self.show_asked(inbox).await;
                SessionCommand::Answer { request_id, answer: agent_answer(answer) }
            }
        };
        match session.agent.commands.send(command).await {
            Ok(()) => request.accept().await,
            Err(_) => request.refuse("the agent has ended".to_owned()).await,
        }
        Ok(())
    }

    /// Keeps the work on the remote, and records that.
    async fn keep(&self, workspace: &ReadyWorkspace) -> Result<()> {
        let record = match workspace.keep(self.id.as_str()).await {
            Ok(Some(kept)) => {
                self.fact.lock().kept = Some(kept.reference.clone());
                FleetRecord::Kept { reference: kept.reference, commit: kept.commit }
            }
            Ok(None) => return Ok(()),
            Err(why) => {
                tracing::warn!(session = %self.id, why, "the work could not be pushed");
                FleetRecord::NotKept { why }
            }
        };
        Ok(self.claim.append(&record).await?)
    }

    /// Leaves a session that goes on elsewhere.
    async fn leave(&self, end: Interrupted, opened: &mut Option<OpenedSession>) -> Result<Carried> {
        match end {
            Interrupted::Lost => {
                // Before anything else: the lease ends soon, and the next worker begins then.
                self.claim.give_up("the lease has ended");
                tracing::warn!(session = %self.id, "the session goes on elsewhere: the lease could not be kept");
                Ok(Carried::Lost)
            }
            Interrupted::HandOver => {
                if let Some(session) = opened {
                    session.close(None).await;
                    self.keep(&session.workspace).await?;
                }
                *opened = None;
                self.release(OrderEnd::HandedOver).await?;
                self.publish(FleetSessionState::Queued, None).await;
                Ok(Carried::Over(Settled::GiveBack(Duration::ZERO)))
            }
        }
    }

    pub(super) async fn release(&self, end: OrderEnd) -> Result<()> {
        let released = FleetRecord::Released { order: self.order.id.clone(), end, at: Timestamp::now() };
        Ok(self.claim.append(&released).await?)
    }

    /// Publishes what lists show. A list that is behind is no reason to stop.
    pub(super) async fn publish(&self, state: FleetSessionState, why: Option<String>) {
        let running = state == FleetSessionState::Running;
        let fact = {
            let mut fact = self.fact.lock();
            fact.state = state;
            fact.worker = running.then(|| self.worker.name.clone());
            fact.at = Timestamp::now();
            fact.why = why;
            if !running {
                fact.asked = 0;
            }
            fact.clone()
        };
        if let Err(error) = self.worker.broker.put_fact(&fact).await {
            tracing::warn!(%error, session = %self.id, "the state of a session could not be published");
        }
    }
}

/// Messages and questions of a session at work.
struct Inbox {
    /// Messages whose turns have not ended, the current one first.
    waiting: VecDeque<Waiting>,
    /// Messages whose turns have ended.
    ended: BTreeSet<String>,
    /// Questions that wait for an answer.
    asked: BTreeSet<String>,
}

impl Inbox {
    fn knows(&self, message: &str) -> bool {
        self.ended.contains(message) || self.waiting.iter().any(|known| known.id == message)
    }
}

/// A session at work here.
pub(super) struct OpenedSession {
    agent: AgentSession,
    /// The log, where the agent keeps none itself.
    record: Option<SessionRecorder>,
    workspace: ReadyWorkspace,
    /// The past, for an agent that does not know it.
    digest: Option<String>,
    /// Lines of the log that were heard.
    events: u64,
    model: Option<String>,
    used: AgentUsage,
}

impl OpenedSession {
    /// Ends the agent of a session that is left, if there is one, and waits for a short while until its processes are gone: the next
    /// attempt works in the same worktree.
    pub(super) async fn kill(opened: &mut Option<Self>) {
        if let Some(session) = opened.take() {
            session.agent.kill().await;
        }
    }

    /// Ends the agent and closes its log.
    async fn close(&mut self, failure: Option<String>) {
        let changes = self.agent.code_changes().await.unwrap_or_default();
        self.agent.stop(|_| {}).await;
        if let Some(mut record) = self.record.take() {
            let changes = record.changes(changes);
            let _ = record.close(self.model.take(), &self.used, changes, failure);
        }
    }
}

fn outcome(ended: &TurnEnded, cancelled: bool) -> FleetTurnEnd {
    match &ended.outcome.end {
        TurnResult::Completed => FleetTurnEnd::Completed,
        TurnResult::Failed(failure) if failure.kind == ErrorKind::TurnCancelled && cancelled => {
            FleetTurnEnd::Cancelled
        }
        TurnResult::Failed(failure) => FleetTurnEnd::Failed { message: failure.message.clone() },
    }
}

/// End of a turn whose agent went away.
fn gone() -> TurnEnded {
    let message = "the agent's session ended before its turn did".to_owned();
    let failure = hangar_runtimes::outcome::TurnFailure {
        kind: ErrorKind::PortExit,
        message,
        evidence: hangar_runtimes::outcome::Evidence::default(),
    };
    let outcome = hangar_runtimes::outcome::TurnOutcome {
        end: TurnResult::Failed(failure),
        usage: AgentUsage::default(),
        total: AgentUsage::default(),
    };
    TurnEnded { outcome, model: None, unknown: std::collections::BTreeSet::new() }
}

fn agent_answer(answer: Answer) -> AgentAnswer {
    match answer {
        Answer::Once => AgentAnswer::Permission(PermissionReply::Once),
        Answer::ForSession => AgentAnswer::Permission(PermissionReply::ForSession),
        Answer::Denied { feedback } => AgentAnswer::Permission(PermissionReply::Denied { feedback }),
        Answer::Text { text } => AgentAnswer::Question(text),
        Answer::Plan { approved, feedback } => AgentAnswer::Plan { approved, feedback },
        Answer::Elicitation { action, content } => AgentAnswer::Elicitation {
            action: match action.as_str() {
                "accept" => ElicitationAction::Accept,
                "decline" => ElicitationAction::Decline,
                _ => ElicitationAction::Cancel,
            },
            content,
        },
    }
}

/// The lines of the events of a log.
pub(super) fn lines(entries: &[LogEntry]) -> Vec<u8> {
    let events = entries.iter().filter_map(|entry| match &entry.item {
        LogItem::Events(lines) => Some(lines.as_ref()),
        LogItem::Record(_) => None,
    });
    events.collect::<Vec<&[u8]>>().concat()
}

/// The end of a session's transcript, for an agent that begins anew.
fn digest_of(store: &hangar_store::Store, id: &SessionId) -> String {
    let mut text = Vec::new();
    if let Ok(events) = store.read(id) {
        let _ = hangar_store::export_markdown(events, &mut text);
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    let mut start = text.len().saturating_sub(DIGEST);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text[start..].to_owned()
}
