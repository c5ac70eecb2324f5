//! Session of an agent that works on an issue, in a slot of the queue.

use hangar_jobs::retry::attempt_failure;
use hangar_orchestrator::record::{Tokens, WorkFailure, WorkTurnEnd};
use hangar_orchestrator::timing::Overdue;
use hangar_protocol::Body;
use hangar_registry::queue::Slot;
use hangar_runtimes::outcome::{TurnFailure, TurnOutcome, TurnResult};
use hangar_runtimes::runtime::{AgentSession, PermissionReply, SessionCommand, SessionNews, TurnLimits};
use hangar_runtimes::watch::{TreeProbe, TurnWatch, WatchNews};
use hangar_scheduler::retry::{AttemptFailure, AttemptFailureKind};
use hangar_trackers::Issue;
use hangar_workflow::config::WorkflowAgent;
use std::path::PathBuf;
use tokio::time::Instant;

use super::tools::Access;

pub(super) struct LiveSession {
    pub(super) agent: AgentSession,
    pub(super) slot: Slot,
    pub(super) workspace: PathBuf,
    /// The issue as it was last read.
    pub(super) issue: Issue,
    /// The failure that ended its last turn.
    pub(super) failure: Option<AttemptFailure>,
    /// Access to the tools for the issue.
    pub(super) access: Access,
}

impl LiveSession {
    /// One turn, within the limits of the workflow.
    pub(super) async fn turn(&mut self, prompt: String, limits: &WorkflowAgent) -> (WorkTurnEnd, Tokens) {
        let gone = || {
            let message = "the session has ended".to_owned();
            (
                WorkTurnEnd::Failed(WorkFailure { kind: "port_exit".to_owned(), message, retryable: true }),
                Tokens::default(),
            )
        };
        if self.agent.commands.send(SessionCommand::Send(prompt)).await.is_err() {
            return gone();
        }
        let started = Instant::now();
        let deadline = started + limits.turn_timeout;
        let silence =
            TurnLimits { stall: limits.stall_timeout, tool: None, progress: None, ..TurnLimits::default() };
        let mut watch = TurnWatch::new(silence, started);
        loop {
            let due = watch.due().map_or(deadline, |due| due.min(deadline));
            match tokio::time::timeout_at(due, self.agent.news.recv()).await {
                Ok(Some(SessionNews::Event(event))) => {
                    watch.note(event.body(), Instant::now());
                    if matches!(event.body(), Body::AssistantMessage(_)) {
                        self.slot.answered();
                    }
                    // The permissions were set when the agent was configured.
                    self.agent.answer_unattended(&event, PermissionReply::Once).await;
                }
                Ok(Some(SessionNews::TurnEnded(ended))) => return self.ended(&ended.outcome),
                Ok(None) => return gone(),
                Err(_) if Instant::now() >= deadline => {
                    return (self.overdue(Overdue::Turn(limits.turn_timeout)), Tokens::default());
                }
                Err(_) => {
                    if let (Some(WatchNews::Stop(_)), Some(limit)) =
                        (watch.check(&mut TreeProbe::default()).await, limits.stall_timeout)
                    {
                        return (self.overdue(Overdue::Stall(limit)), Tokens::default());
                    }
                }
            }
        }
    }

    fn overdue(&mut self, overdue: Overdue) -> WorkTurnEnd {
        let message = overdue.sentence();
        self.failure = Some(AttemptFailure::new(AttemptFailureKind::Transient, &message));
        WorkTurnEnd::Failed(WorkFailure { kind: overdue.kind().to_owned(), message, retryable: true })
    }

    fn ended(&mut self, outcome: &TurnOutcome) -> (WorkTurnEnd, Tokens) {
        let count = |figure: hangar_runtimes::usage::Figure| figure.count().unwrap_or_default();
        let usage = &outcome.usage;
        let tokens = Tokens {
            input: count(usage.input_tokens),
            output: count(usage.output_tokens),
            cache_read: count(usage.cache_read_tokens),
        };
        let end = match &outcome.end {
            TurnResult::Completed => {
                self.failure = None;
                WorkTurnEnd::Completed
            }
            TurnResult::Failed(failed) => {
                self.failure = Some(attempt_failure(failed));
                WorkTurnEnd::Failed(failure(failed))
            }
        };
        (end, tokens)
    }

    /// Ends the agent in order, then gives its slot back.
    pub(super) async fn leave(self) {
        let Self { mut agent, slot, failure, .. } = self;
        agent.stop(|_| {}).await;
        drop(agent);
        match failure {
            Some(failure) => slot.fail(&failure),
            None => slot.finish(),
        }
    }
}

/// A failure of an agent as the records have it.
pub(super) fn failure(failed: &TurnFailure) -> WorkFailure {
    WorkFailure {
        kind: failed.kind.as_str().to_owned(),
        message: failed.message.clone(),
        retryable: failed.kind.is_retryable(),
    }
}
