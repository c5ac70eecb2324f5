//! The task of one session of our own agent: turns, one after the other, and what may be said to it meanwhile.

use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Result;
use futures_util::future::BoxFuture;
use hangar_agent::agents::fleet;
use hangar_agent::budget::{Budget, Cap};
use hangar_agent::driver::EventSink;
use hangar_agent::log::Fact;
use hangar_agent::permissions::Approval;
use hangar_agent::prompt::notices;
use hangar_agent::session::{self, Origin, Prompt, Session, State, Timing};
use hangar_engine::{Ended, Engine, Progress, SessionTask};
use hangar_mcp::ElicitationAnswer;
use hangar_protocol::data::{Attachment, Mode, PlanDecision, SessionError, SessionWarning};
use hangar_protocol::permission::PermissionOutcome;
use hangar_protocol::{Body, Event};
use hangar_runtimes::outcome::{
    Complaint, ErrorKind, Failure, Stopped, TurnEnd, TurnFacts, TurnOutcome, Verdict, decide,
};
use hangar_runtimes::runtime::{Answer, Command, Limits, News, PermissionAnswer, TurnEnded};
use hangar_runtimes::usage::{Meter, Usage};
use hangar_runtimes::waiting::Waiting;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::refusal;

/// What the session has used so far, over all its turns.
pub(super) fn used(session: &Session) -> Usage {
    Usage::from(&session.state().totals)
}

/// What the session said since somebody looked.
#[derive(Clone, Default)]
pub(super) struct Heard(Arc<Mutex<Vec<Event>>>);

impl Heard {
    fn take(&self) -> Vec<Event> {
        std::mem::take(&mut self.0.lock())
    }
}

impl EventSink for Heard {
    fn publish(&mut self, event: &Event) {
        self.0.lock().push(event.clone());
    }
}

/// What comes with the first prompt of a session, beside its text.
#[derive(Debug, Default)]
pub(super) struct FirstPrompt {
    pub(super) attachments: Vec<Attachment>,
    /// Whether many agents are to work on it side by side.
    pub(super) fleet: bool,
    /// Whether the plan that comes of it is carried out at once.
    pub(super) implements_plan: bool,
}

/// The one owner of a session.
pub(super) struct Task {
    pub(super) engine: Engine,
    pub(super) events: Heard,
    pub(super) inbox: mpsc::Receiver<Command>,
    pub(super) outbox: mpsc::Sender<News>,
    pub(super) limits: Limits,
    pub(super) meter: Meter,
    pub(super) first: FirstPrompt,
    /// What whoever gave the order should know, until it is told.
    pub(super) warnings: Vec<String>,
    /// Takes the state in which the session ended.
    pub(super) last: oneshot::Sender<State>,
    pub(super) progress: TaskProgress,
}

/// How far the task is.
#[derive(Default)]
pub(super) struct TaskProgress {
    waiting: Waiting,
    /// Whether somebody waits for a turn to end.
    in_turn: bool,
    /// Why the last turn failed, if it did.
    failure: Option<String>,
}

/// Why a session does not wait for more.
struct Over;

/// A turn under way.
struct Turn {
    facts: TurnFacts,
    model: Option<String>,
    deadline: Option<Instant>,
    heard: Instant,
    /// Questions to a person that are open.
    asked: BTreeSet<String>,
    /// Calls of tools that run.
    tools: BTreeSet<String>,
    /// Whether a plan is to be carried out when the session is idle.
    implements_plan: bool,
}

impl SessionTask for Task {
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

impl Task {
    async fn drive(&mut self) -> Result<()> {
        self.engine.begin().await?;
        for warning in std::mem::take(&mut self.warnings) {
            self.engine.record(SessionWarning::new("agent", warning))?;
        }
        self.pass_on(None).await;
        loop {
            let prompt = match self.progress.waiting.pop() {
                Some(prompt) => prompt,
                None => match self.inbox.recv().await {
                    Some(Command::Send(prompt) | Command::Steer(prompt)) => prompt,
                    Some(Command::Stop) | None => return Ok(()),
                    Some(Command::Rename(name)) => {
                        self.engine.keep_name(Fact::GivenName(name))?;
                        continue;
                    }
                    // Nothing is under way that these could be about.
                    Some(Command::Abort | Command::Answer { .. }) => continue,
                },
            };
            if let Some(Over) = self.turn(prompt).await? {
                return Ok(());
            }
        }
    }

    /// Says what the session said at its end. Whoever waits for a turn hears why there is none.
    pub(super) async fn finish(mut self) {
        let mut message = self.progress.failure.take();
        for event in self.events.take() {
            if let Body::SessionError(error) = event.body() {
                message.get_or_insert_with(|| error.message.clone());
            }
            let _ = self.outbox.send(News::Event(Box::new(event))).await;
        }
        if self.progress.in_turn {
            let message = message.unwrap_or_else(|| "the session could not go on".to_owned());
            let end = TurnEnd::Failed(refusal(ErrorKind::TurnFailed, message));
            let outcome = TurnOutcome { end, usage: Usage::default(), total: self.meter.total() };
            let ended = TurnEnded { outcome, model: None, unknown: BTreeSet::new() };
            let _ = self.outbox.send(News::TurnEnded(Box::new(ended))).await;
        }
        let _ = self.last.send(self.engine.session().state().clone());
    }

    async fn turn(&mut self, text: String) -> Result<Option<Over>> {
        self.progress.in_turn = true;
        let FirstPrompt { attachments, fleet, implements_plan } = std::mem::take(&mut self.first);
        let now = Instant::now();
        let mut turn = Turn {
            facts: TurnFacts::default(),
            model: None,
            deadline: self.limits.turn.map(|limit| now + limit),
            heard: now,
            asked: BTreeSet::new(),
            tools: BTreeSet::new(),
            implements_plan,
        };
        let mut over = None;
        let ledger = self.engine.driver().ledger();
        let max_cost = self.limits.budget_usd.map(|budget| ledger.spent().cost + budget);
        ledger.set(Cap::Turn, Budget { max_cost, ..Budget::default() });
        match fleet {
            true => self.engine.send(Prompt { attachments, ..fleet::prompt(Some(&text)) })?,
            false => self.engine.submit(Prompt { attachments, ..Prompt::user(text) })?,
        }
        loop {
            self.pass_on(Some(&mut turn)).await;
            let stall = self.limits.stall.map(|limit| turn.heard + limit);
            let at_work = !self.engine.session().is_idle();
            tokio::select! {
                biased;
                command = self.inbox.recv(), if over.is_none() => {
                    over = self.hear(command, &mut turn)?;
                }
                progress = self.engine.next() => match progress? {
                    Progress::Moved => {}
                    Progress::Ended(Ended::Idle) if self.goes_on(&mut turn).await? => {}
                    Progress::Ended(_) | Progress::Closed => break,
                },
                () = until(turn.deadline), if turn.asked.is_empty() => {
                    let seconds = self.limits.turn.unwrap_or_default().as_secs();
                    self.stop(&mut turn, Stopped::TimedOut { seconds })?;
                }
                // A session that waits for a person, a tool or its background work does not stall.
                () = until(stall), if turn.asked.is_empty() && turn.tools.is_empty() && at_work => {
                    let seconds = self.limits.stall.unwrap_or_default().as_secs();
                    self.stop(&mut turn, Stopped::Stalled { seconds })?;
                }
            }
        }
        self.pass_on(Some(&mut turn)).await;
        let ended = self.outcome(turn);
        self.report(&ended)?;
        self.pass_on(None).await;
        self.progress.in_turn = false;
        let _ = self.outbox.send(News::TurnEnded(Box::new(ended))).await;
        Ok(over)
    }

    /// Takes what somebody says while a turn is under way.
    fn hear(&mut self, command: Option<Command>, turn: &mut Turn) -> Result<Option<Over>> {
        match command {
            Some(Command::Send(prompt)) => {
                if let Err(error) = self.progress.waiting.push(prompt) {
                    self.engine.record(SessionWarning::new("queue_full", error.to_string()))?;
                }
            }
            Some(Command::Abort) => self.stop(turn, Stopped::Cancelled)?,
            Some(Command::Stop) | None => {
                self.stop(turn, Stopped::Cancelled)?;
                return Ok(Some(Over));
            }
            Some(Command::Steer(prompt)) => {
                self.engine.send(Prompt { timing: Timing::Steer, ..Prompt::user(prompt) })?;
            }
            Some(Command::Rename(name)) => self.engine.keep_name(Fact::GivenName(name))?,
            Some(Command::Answer { request_id, answer }) => self.answer(request_id, answer)?,
        }
        Ok(None)
    }

    /// Begins to carry out a plan that was made without a failure, if that is wanted.
    async fn goes_on(&mut self, turn: &mut Turn) -> Result<bool> {
        self.pass_on(Some(turn)).await;
        let failed = turn.facts.complaint.is_some() || turn.facts.stopped.is_some();
        if failed || !std::mem::take(&mut turn.implements_plan) {
            return Ok(false);
        }
        self.command(session::Command::SetMode(Mode::Autopilot))?;
        let origin = Origin::Source("plan".to_owned());
        self.engine.send(Prompt { origin, ..Prompt::user(notices::IMPLEMENT_PLAN) })?;
        Ok(true)
    }

    fn answer(&mut self, request_id: String, answer: Answer) -> Result<()> {
        match answer {
            Answer::Permission(answer) => {
                let pending = self.engine.driver().pending_permissions();
                let Some(asked) = pending.into_iter().find(|asked| asked.request_id == request_id) else {
                    return Ok(());
                };
                let answer = match answer {
                    PermissionAnswer::Once => PermissionOutcome::Approved {},
                    PermissionAnswer::ForSession => {
                        PermissionOutcome::ApprovedForSession { approval: Approval::covering(&asked.request) }
                    }
                    PermissionAnswer::Denied { feedback } => {
                        PermissionOutcome::DeniedInteractivelyByUser { feedback, force_reject: None }
                    }
                };
                self.command(session::Command::AnswerPermission { request_id, answer })
            }
            Answer::Question(answer) => {
                self.command(session::Command::AnswerQuestion { request_id, answer, was_freeform: true })
            }
            Answer::Plan { approved, feedback } => {
                let decision = PlanDecision { approved, feedback, ..PlanDecision::default() };
                self.command(session::Command::ReviewPlan { request_id, decision })
            }
            Answer::Elicitation { action, content } => {
                if let Some(host) = self.engine.mcp() {
                    // A question that is settled already stays so.
                    let _ = host.answer_elicitation(&request_id, ElicitationAnswer { action, content });
                }
                Ok(())
            }
        }
    }

    /// Puts on record that a limit ended the turn; what else can go wrong the session tells by itself.
    fn report(&mut self, ended: &TurnEnded) -> Result<()> {
        match &ended.outcome.end {
            TurnEnd::Failed(Failure {
                kind: kind @ (ErrorKind::Stalled | ErrorKind::TurnTimeout),
                message,
                ..
            }) => {
                let error = SessionError {
                    error_type: kind.as_str().to_owned(),
                    message: message.clone(),
                    status_code: None,
                    error_code: None,
                    transient: false,
                };
                self.command(session::Command::Record(error.into()))
            }
            TurnEnd::Completed | TurnEnd::Failed(_) => Ok(()),
        }
    }

    fn command(&mut self, command: session::Command) -> Result<()> {
        Ok(self.engine.command(command)?)
    }

    fn stop(&mut self, turn: &mut Turn, why: Stopped) -> Result<()> {
        turn.facts.stopped.get_or_insert(why);
        Ok(self.engine.abort("user_initiated")?)
    }

    async fn pass_on(&mut self, mut turn: Option<&mut Turn>) {
        for event in self.events.take() {
            if let Some(turn) = turn.as_deref_mut() {
                turn.note(&event);
            }
            // Nobody listens any more: the session is about to be stopped.
            let _ = self.outbox.send(News::Event(Box::new(event))).await;
        }
    }

    fn outcome(&mut self, mut turn: Turn) -> TurnEnded {
        let failed = turn.facts.complaint.is_some();
        turn.facts.verdict = Some(if failed { Verdict::Failure } else { Verdict::Success });
        let usage = self.meter.turn_ended(used(self.engine.session()));
        let outcome = TurnOutcome { end: decide(&turn.facts), usage, total: self.meter.total() };
        self.progress.failure = match &outcome.end {
            TurnEnd::Failed(failure) if failure.kind != ErrorKind::TurnCancelled => {
                Some(failure.message.clone())
            }
            TurnEnd::Completed | TurnEnd::Failed(_) => None,
        };
        TurnEnded { outcome, model: turn.model, unknown: BTreeSet::new() }
    }
}

impl Turn {
    fn ask(&mut self, request_id: &str) {
        self.asked.insert(request_id.to_owned());
    }

    fn settle(&mut self, request_id: &str) {
        self.asked.remove(request_id);
    }

    fn note(&mut self, event: &Event) {
        self.heard = Instant::now();
        match event.body() {
            Body::AssistantMessage(message) if event.agent_id().is_none() => {
                self.facts.worked = true;
                if !(message.content.is_empty() && message.tool_requests.is_empty()) {
                    self.facts.complaint = None;
                }
                if message.model.is_some() {
                    self.model.clone_from(&message.model);
                }
            }
            Body::ToolStart(start) => {
                self.tools.insert(start.tool_call_id.clone());
            }
            Body::ToolComplete(complete) => {
                self.tools.remove(&complete.tool_call_id);
                self.facts.worked = true;
            }
            Body::PermissionRequested(asked) => self.ask(&asked.request_id),
            Body::UserInputRequested(asked) => self.ask(&asked.request_id),
            Body::ElicitationRequested(asked) => self.ask(&asked.request_id),
            Body::ExitPlanModeRequested(asked) => self.ask(&asked.request_id),
            Body::PermissionCompleted(done) => self.settle(&done.request_id),
            Body::UserInputCompleted(done) => self.settle(&done.request_id),
            Body::ElicitationCompleted(done) => self.settle(&done.request_id),
            Body::ExitPlanModeCompleted(done) => self.settle(&done.request_id),
            // A prompt that hooks do not let through was not dealt with.
            Body::SessionWarning(warning)
                if event.agent_id().is_none() && warning.warning_type == "policy_blocked" =>
            {
                self.facts.complaint = Some(Complaint {
                    message: warning.message.clone(),
                    status_code: None,
                    code: Some(warning.warning_type.clone()),
                });
            }
            // What a sub-agent fails of is its caller's to deal with.
            Body::SessionError(error) if event.agent_id().is_none() => {
                self.facts.complaint = Some(Complaint {
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
