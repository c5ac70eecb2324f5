//! Task of one session of Hangar's own agent: runs its turns one after the other, and takes commands meanwhile.

use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Result;
use futures_util::future::BoxFuture;
use hangar_agent::agents::fleet;
use hangar_agent::budget::{Budget, Cap};
use hangar_agent::driver::EventSink;
use hangar_agent::log::ListedFact;
use hangar_agent::permissions::SessionApproval;
use hangar_agent::prompt::notices;
use hangar_agent::session::{self, ConversationState, Origin, Prompt, Session, Timing};
use hangar_engine::{Engine, EngineProgress, FrontEndTask, SubmissionEnd};
use hangar_mcp::ElicitationAnswer;
use hangar_protocol::data::{Attachment, Mode, PlanDecision, SessionError, SessionWarning};
use hangar_protocol::permission::PermissionOutcome;
use hangar_protocol::{Body, Event};
use hangar_runtimes::outcome::{
    AgentVerdict, ErrorKind, ReportedError, Stopped, TurnFacts, TurnFailure, TurnOutcome, TurnResult, decide,
};
use hangar_runtimes::prompt_queue::PromptQueue;
use hangar_runtimes::runtime::{
    AgentAnswer, PermissionReply, SessionCommand, SessionNews, TurnEnded, TurnLimits,
};
use hangar_runtimes::usage::{AgentUsage, UsageMeter};
use hangar_runtimes::watch::{TreeProbe, TurnWatch, WatchNews};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::engine::NativeEngine;
use super::refusal;

/// Usage of the session over all its turns.
pub(super) fn used(session: &Session) -> AgentUsage {
    AgentUsage::from(&session.state().totals)
}

/// Events of the session since the last read.
#[derive(Clone, Default)]
pub(super) struct EventBuffer(Arc<Mutex<Vec<Event>>>);

impl EventBuffer {
    fn take(&self) -> Vec<Event> {
        std::mem::take(&mut self.0.lock())
    }
}

impl EventSink for EventBuffer {
    fn publish(&mut self, event: &Event) {
        self.0.lock().push(event.clone());
    }
}

/// First prompt of a session, with its options.
#[derive(Debug, Default)]
pub(super) struct FirstPrompt {
    pub(super) attachments: Vec<Attachment>,
    /// Whether the prompt starts a fleet of agents.
    pub(super) fleet: bool,
    /// Whether the resulting plan is implemented at once.
    pub(super) implements_plan: bool,
}

/// The one owner of a session.
pub(super) struct NativeTask {
    pub(super) engine: NativeEngine,
    pub(super) events: EventBuffer,
    pub(super) inbox: mpsc::Receiver<SessionCommand>,
    pub(super) outbox: mpsc::Sender<SessionNews>,
    pub(super) limits: TurnLimits,
    /// Working tree of the session, whose changes are progress.
    pub(super) tree: TreeProbe,
    pub(super) meter: UsageMeter,
    pub(super) first: FirstPrompt,
    /// Warnings for the user that were not emitted yet.
    pub(super) warnings: Vec<String>,
    /// Sends the final state of the session.
    pub(super) last: oneshot::Sender<ConversationState>,
    pub(super) progress: TaskProgress,
}

/// Progress of the task.
#[derive(Default)]
pub(super) struct TaskProgress {
    waiting: PromptQueue,
    /// Whether a turn is running.
    in_turn: bool,
    /// Why the last turn failed, if it did.
    failure: Option<String>,
}

/// Marker: the session takes no more prompts.
struct SessionOver;

/// Turn in progress.
struct NativeTurn {
    facts: TurnFacts,
    model: Option<String>,
    deadline: Option<Instant>,
    watch: TurnWatch,
    /// Whether a plan is implemented when the session is idle.
    implements_plan: bool,
}

impl FrontEndTask for NativeTask {
    fn engine(&mut self) -> &mut Engine {
        &mut self.engine
    }

    fn run(&mut self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async {
            match self.drive().await {
                Ok(()) => self.progress.failure.take(),
                Err(error) => {
                    let message = format!("{error:#}");
                    self.progress.failure = Some(message.clone());
                    Some(message)
                }
            }
        })
    }
}

impl NativeTask {
    async fn drive(&mut self) -> Result<()> {
        self.engine.begin().await?;
        for warning in std::mem::take(&mut self.warnings) {
            self.engine.record(SessionWarning::new("agent", warning))?;
        }
        self.engine.start_extensions();
        self.pass_on(None).await;
        loop {
            let prompt = match self.progress.waiting.pop() {
                Some(prompt) => prompt,
                None => match self.next_command().await? {
                    Some(SessionCommand::Send(prompt) | SessionCommand::Steer(prompt)) => prompt,
                    Some(SessionCommand::Stop) | None => return Ok(()),
                    Some(SessionCommand::Rename(name)) => {
                        self.engine.keep_name(ListedFact::GivenName(name))?;
                        continue;
                    }
                    // An extension may have asked between two turns.
                    Some(SessionCommand::Answer { request_id, answer }) => {
                        self.answer(request_id, answer)?;
                        continue;
                    }
                    // No turn is running that it could refer to.
                    Some(SessionCommand::Abort) => continue,
                },
            };
            if let Some(SessionOver) = self.turn(prompt).await? {
                return Ok(());
            }
        }
    }

    /// Waits for a command. Extensions may use the session meanwhile.
    async fn next_command(&mut self) -> Result<Option<SessionCommand>> {
        loop {
            tokio::select! {
                biased;
                command = self.inbox.recv() => return Ok(command),
                progress = self.engine.next_between_turns() => match progress? {
                    EngineProgress::Moved | EngineProgress::Ended(_) => {}
                    EngineProgress::Closed => return Ok(None),
                },
            }
            self.pass_on(None).await;
        }
    }

    /// Waits for the extensions that the prompt may need. False if the turn was stopped meanwhile.
    async fn extensions_ready(
        &mut self,
        turn: &mut NativeTurn,
        over: &mut Option<SessionOver>,
    ) -> Result<bool> {
        let Some(mut ready) = self.engine.extensions_ready() else { return Ok(true) };
        loop {
            self.pass_on(Some(turn)).await;
            tokio::select! {
                biased;
                command = self.inbox.recv() => *over = self.hear(command, turn)?,
                progress = self.engine.next() => match progress? {
                    EngineProgress::Moved | EngineProgress::Ended(_) => {}
                    EngineProgress::Closed => return Ok(false),
                },
                () = &mut ready => return Ok(true),
            }
            if turn.facts.stopped.is_some() {
                return Ok(false);
            }
        }
    }

    /// Emits the last events of the session. A caller that waits for a turn receives the reason why there is none.
    pub(super) async fn finish(mut self) {
        let mut message = self.progress.failure.take();
        for event in self.events.take() {
            if let Body::SessionError(error) = event.body() {
                message.get_or_insert_with(|| error.message.clone());
            }
            let _ = self.outbox.send(SessionNews::Event(Box::new(event))).await;
        }
        if self.progress.in_turn {
            let message = message.unwrap_or_else(|| "the session could not go on".to_owned());
            let end = TurnResult::Failed(refusal(ErrorKind::TurnFailed, message));
            let outcome = TurnOutcome { end, usage: AgentUsage::default(), total: self.meter.total() };
            let ended = TurnEnded { outcome, model: None, unknown: BTreeSet::new() };
            let _ = self.outbox.send(SessionNews::TurnEnded(Box::new(ended))).await;
        }
        let _ = self.last.send(self.engine.session().state().clone());
    }

    async fn turn(&mut self, text: String) -> Result<Option<SessionOver>> {
        self.progress.in_turn = true;
        let FirstPrompt { attachments, fleet, implements_plan } = std::mem::take(&mut self.first);
        let now = Instant::now();
        let mut turn = NativeTurn {
            facts: TurnFacts::default(),
            model: None,
            deadline: self.limits.turn.map(|limit| now + limit),
            watch: TurnWatch::new(self.limits, now),
            implements_plan,
        };
        let mut over = None;
        let ledger = self.engine.driver().ledger();
        let max_cost = self.limits.budget_usd.map(|budget| ledger.spent().cost + budget);
        ledger.set(Cap::Turn, Budget { max_cost, ..Budget::default() });
        let mut goes_on = self.extensions_ready(&mut turn, &mut over).await?;
        match fleet {
            _ if !goes_on => {}
            true => self.engine.send(Prompt { attachments, ..fleet::prompt(Some(&text)) })?,
            false => self.engine.submit_typed(Prompt { attachments, ..Prompt::user(text) })?,
        }
        while goes_on {
            self.pass_on(Some(&mut turn)).await;
            let at_work = !self.engine.session().is_idle();
            tokio::select! {
                biased;
                command = self.inbox.recv(), if over.is_none() => {
                    over = self.hear(command, &mut turn)?;
                }
                progress = self.engine.next() => match progress? {
                    EngineProgress::Moved => {}
                    EngineProgress::Ended(SubmissionEnd::Idle) if self.goes_on(&mut turn).await? => {}
                    EngineProgress::Ended(_) | EngineProgress::Closed => goes_on = false,
                },
                () = until(turn.deadline), if !turn.watch.is_asking() => {
                    let seconds = self.limits.turn.unwrap_or_default().as_secs();
                    self.stop(&mut turn, Stopped::TimedOut { seconds })?;
                }
                // A session that waits for its background work does not stall.
                () = until(turn.watch.due()), if at_work => match turn.watch.check(&mut self.tree).await {
                    Some(WatchNews::Stop(why)) => self.stop(&mut turn, why)?,
                    Some(WatchNews::Warn(warning)) => self.engine.record(*warning)?,
                    None => {}
                },
            }
        }
        self.pass_on(Some(&mut turn)).await;
        let ended = self.outcome(turn);
        self.report(&ended)?;
        self.pass_on(None).await;
        self.progress.in_turn = false;
        let _ = self.outbox.send(SessionNews::TurnEnded(Box::new(ended))).await;
        Ok(over)
    }

    /// Takes a command during a turn.
    fn hear(
        &mut self,
        command: Option<SessionCommand>,
        turn: &mut NativeTurn,
    ) -> Result<Option<SessionOver>> {
        match command {
            Some(SessionCommand::Send(prompt)) => {
                if let Err(error) = self.progress.waiting.push(prompt) {
                    self.engine.record(SessionWarning::new("queue_full", error.to_string()))?;
                }
            }
            Some(SessionCommand::Abort) => self.stop(turn, Stopped::Cancelled)?,
            Some(SessionCommand::Stop) | None => {
                self.stop(turn, Stopped::Cancelled)?;
                return Ok(Some(SessionOver));
            }
            Some(SessionCommand::Steer(prompt)) => {
                self.engine.send(Prompt { timing: Timing::Steer, ..Prompt::user(prompt) })?;
            }
            Some(SessionCommand::Rename(name)) => self.engine.keep_name(ListedFact::GivenName(name))?,
            Some(SessionCommand::Answer { request_id, answer }) => self.answer(request_id, answer)?,
        }
        Ok(None)
    }

    /// Starts the implementation of a plan, if that was requested and planning did not fail.
    async fn goes_on(&mut self, turn: &mut NativeTurn) -> Result<bool> {
        self.pass_on(Some(turn)).await;
        let failed = turn.facts.reported_error.is_some() || turn.facts.stopped.is_some();
        if failed || !std::mem::take(&mut turn.implements_plan) {
            return Ok(false);
        }
        self.command(session::Command::SetMode(Mode::Autopilot))?;
        let origin = Origin::Source("plan".to_owned());
        self.engine.send(Prompt { origin, ..Prompt::user(notices::IMPLEMENT_PLAN) })?;
        Ok(true)
    }

    fn answer(&mut self, request_id: String, answer: AgentAnswer) -> Result<()> {
        match answer {
            AgentAnswer::Permission(answer) => {
                let pending = self.engine.pending_permissions();
                let Some(asked) = pending.into_iter().find(|asked| asked.request_id == request_id) else {
                    return Ok(());
                };
                let answer = match answer {
                    PermissionReply::Once => PermissionOutcome::Approved {},
                    PermissionReply::ForSession => PermissionOutcome::ApprovedForSession {
                        approval: SessionApproval::covering(&asked.request),
                    },
                    PermissionReply::Denied { feedback } => {
                        PermissionOutcome::DeniedInteractivelyByUser { feedback, force_reject: None }
                    }
                };
                if let Some(answer) = self.engine.answer_outside(&asked, answer) {
                    self.command(session::Command::AnswerPermission { request_id, answer })?;
                }
                Ok(())
            }
            AgentAnswer::Question(answer) => {
                self.command(session::Command::AnswerQuestion { request_id, answer, was_freeform: true })
            }
            AgentAnswer::Plan { approved, feedback } => {
                let decision = PlanDecision { approved, feedback, ..PlanDecision::default() };
                self.command(session::Command::ReviewPlan { request_id, decision })
            }
            AgentAnswer::Elicitation { action, content } => {
                if let Some(host) = self.engine.mcp() {
                    // A question that was already answered stays answered.
                    let _ = host.answer_elicitation(&request_id, ElicitationAnswer { action, content });
                }
                Ok(())
            }
        }
    }

    /// Records that a limit ended the turn; other failures are recorded by the session itself.
    fn report(&mut self, ended: &TurnEnded) -> Result<()> {
        match &ended.outcome.end {
            TurnResult::Failed(TurnFailure {
                kind:
                    kind @ (ErrorKind::Stalled
                    | ErrorKind::TurnTimeout
                    | ErrorKind::ToolTimeout
                    | ErrorKind::NoProgress),
                message,
                ..
            }) => {
                let error = SessionError {
                    error_type: kind.as_str().to_owned(),
                    message: message.clone(),
                    ..SessionError::default()
                };
                self.command(session::Command::Record(error.into()))
            }
            TurnResult::Completed | TurnResult::Failed(_) => Ok(()),
        }
    }

    fn command(&mut self, command: session::Command) -> Result<()> {
        Ok(self.engine.command(command)?)
    }

    fn stop(&mut self, turn: &mut NativeTurn, why: Stopped) -> Result<()> {
        turn.facts.stopped.get_or_insert(why);
        Ok(self.engine.abort("user_initiated")?)
    }

    async fn pass_on(&mut self, mut turn: Option<&mut NativeTurn>) {
        for event in self.events.take() {
            if let Some(turn) = turn.as_deref_mut() {
                turn.note(&event);
            }
            // The listener is gone: the session is about to be stopped.
            let _ = self.outbox.send(SessionNews::Event(Box::new(event))).await;
        }
    }

    fn outcome(&mut self, mut turn: NativeTurn) -> TurnEnded {
        let failed = turn.facts.reported_error.is_some();
        turn.facts.verdict = Some(if failed { AgentVerdict::Failure } else { AgentVerdict::Success });
        let usage = self.meter.turn_ended(used(self.engine.session()));
        let outcome = TurnOutcome { end: decide(&turn.facts), usage, total: self.meter.total() };
        self.progress.failure = match &outcome.end {
            TurnResult::Failed(failure) if failure.kind != ErrorKind::TurnCancelled => {
                Some(failure.message.clone())
            }
            TurnResult::Completed | TurnResult::Failed(_) => None,
        };
        TurnEnded { outcome, model: turn.model, unknown: BTreeSet::new() }
    }
}

impl NativeTurn {
    fn note(&mut self, event: &Event) {
        self.watch.note(event.body(), Instant::now());
        match event.body() {
            Body::AssistantMessage(message) if event.agent_id().is_none() => {
                self.facts.worked = true;
                if !(message.content.is_empty() && message.tool_requests.is_empty()) {
                    self.facts.reported_error = None;
                }
                if message.model.is_some() {
                    self.model.clone_from(&message.model);
                }
            }
            Body::ToolComplete(_) => self.facts.worked = true,
            // A prompt that hooks refused was not processed.
            Body::SessionWarning(warning)
                if event.agent_id().is_none() && warning.warning_type == "policy_blocked" =>
            {
                self.facts.reported_error = Some(ReportedError {
                    message: warning.message.clone(),
                    status_code: None,
                    code: Some(warning.warning_type.clone()),
                });
            }
            // The caller of a sub-agent handles its errors.
            Body::SessionError(error) if event.agent_id().is_none() => {
                self.facts.reported_error = Some(ReportedError {
                    message: error.message.clone(),
                    status_code: error.status_code,
                    code: Some(error.error_type.clone()),
                });
            }
            _ => {}
        }
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
