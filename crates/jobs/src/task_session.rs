//! Session in which a task works: prompts go in, events come out, and a turn ends with a report.

use std::sync::Arc;

use hangar_protocol::{Body, Event};
use hangar_runtimes::outcome::{TurnOutcome, TurnResult};
use hangar_runtimes::runtime::{AgentSession, PermissionReply, SessionCommand, SessionNews};
use hangar_runtimes::watch::ProgressRemark;
use hangar_scheduler::retry::AttemptFailure;

use crate::driver::{RunListener, RunNotice};
use crate::record::{CrashError, RunId, TaskId, TaskSessionId, TurnReport};
use crate::retry;
use crate::slots::TaskSlot;
use crate::tools::Round;

pub(crate) struct TaskSession {
    pub(crate) run: RunId,
    pub(crate) task: TaskId,
    pub(crate) session: TaskSessionId,
    pub(crate) live: AgentSession,
    pub(crate) audience: Arc<dyn RunListener>,
    pub(crate) owner: LogOwner,
    /// Slot of a session of its own.
    pub(crate) slot: Option<Box<dyn TaskSlot>>,
    /// The failure that ended its last turn.
    pub(crate) failure: Option<AttemptFailure>,
}

/// Owner of a session, who has its log, its audience and its questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogOwner {
    Run,
    SomebodyElse,
}

impl TaskSession {
    /// One turn. Gives its report and the tokens that it used, as far as the agent tells.
    pub(crate) async fn ask(&mut self, prompt: String) -> (TurnReport, u64) {
        let (report, tokens) = self.turn(prompt).await;
        self.failure = match &report {
            TurnReport::Completed { .. } => None,
            TurnReport::Crashed { error } => Some(retry::failure(error)),
        };
        (report, tokens)
    }

    async fn turn(&mut self, prompt: String) -> (TurnReport, u64) {
        let gone = || TurnReport::Crashed { error: CrashError::new("port_exit", "the session has ended") };
        if self.live.commands.send(SessionCommand::Send(prompt)).await.is_err() {
            return (gone(), 0);
        }
        let mut round = Round::default();
        let mut progress = ProgressRemark::default();
        loop {
            match self.live.news.recv().await {
                Some(SessionNews::Event(event)) => {
                    self.answer(&event).await;
                    match (event.body(), &self.slot) {
                        (Body::ToolStart(start), _) => round.note(start),
                        (Body::AssistantMessage(_), Some(slot)) => slot.answered(),
                        _ => {}
                    }
                    if progress.note(event.body()) {
                        self.remark(progress.sentence());
                    }
                    self.heard(&event);
                }
                Some(SessionNews::TurnEnded(ended)) => {
                    if progress.sentence().is_some() {
                        self.remark(None);
                    }
                    return report(&ended.outcome, round);
                }
                None => return (gone(), 0),
            }
        }
    }

    fn remark(&self, remark: Option<&String>) {
        if let Some(slot) = &self.slot {
            slot.remark(remark.map(String::as_str));
        }
    }

    fn heard(&self, event: &Event) {
        if self.owner == LogOwner::SomebodyElse {
            return;
        }
        let notice = RunNotice::Event { task: self.task, session: &self.session, event };
        self.audience.hear(&self.run, notice);
    }

    /// Answers a question: a job has nobody to ask, and its permissions were set when it was started.
    async fn answer(&mut self, event: &Event) {
        if self.owner == LogOwner::SomebodyElse {
            return;
        }
        self.live.answer_unattended(event, PermissionReply::Once).await;
    }

    /// Ends the session in order and reads its last events.
    pub(crate) async fn leave(self) {
        let Self { run, task, session, mut live, audience, owner, slot, failure } = self;
        live.stop(|event| {
            if owner == LogOwner::Run {
                audience.hear(&run, RunNotice::Event { task, session: &session, event });
            }
        })
        .await;
        // The slot is free when the agent is gone.
        drop(live);
        if let Some(slot) = slot {
            slot.end(failure);
        }
    }
}

fn report(outcome: &TurnOutcome, round: Round) -> (TurnReport, u64) {
    let count = |figure: hangar_runtimes::usage::Figure| figure.count().unwrap_or_default();
    let tokens = count(outcome.usage.input_tokens) + count(outcome.usage.output_tokens);
    let report = match &outcome.end {
        TurnResult::Completed => TurnReport::Completed { round },
        TurnResult::Failed(failure) => TurnReport::Crashed { error: failure.into() },
    };
    (report, tokens)
}
