//! Consequences of the end of a session: writes to the tracker, then one decision about the claim.

use hangar_workflow::Config;
use jiff::{SignedDuration, Timestamp};

use crate::record::{Fact, ParkReason, Release, RetryCause, SessionEnd, Write};
use crate::state::Claim;
use crate::timing;

/// Consequences of the end of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Settlement {
    /// Made first, each once.
    pub writes: Vec<Write>,
    pub then: Fact,
}

/// The decision about a claim whose session has ended, by the first rule that fits.
pub fn settlement(config: &Config, claim: &Claim, end: &SessionEnd, now: Timestamp) -> Settlement {
    let issue = || claim.issue.clone();
    let is_active = config.tracker.is_active(&claim.state);
    match end {
        SessionEnd::Gone => released(Fact::Released { issue: issue(), release: Release::Gone }),
        SessionEnd::Inactive { state } => {
            released(Fact::Released { issue: issue(), release: Release::Inactive { state: state.clone() } })
        }
        SessionEnd::Stopped => park(config, claim, ParkReason::Stopped),
        SessionEnd::Interrupted => {
            let cause = RetryCause::Interrupted;
            released(Fact::RetryAt { issue: issue(), due: now, cause, error: claim.error.clone() })
        }
        SessionEnd::Failed(failure) if failure.retryable => match out_of_sessions(config, claim) {
            Some(limit) => park(config, claim, ParkReason::MaxSessions { limit }),
            None => {
                let delay = timing::backoff(claim.failures, config.agent.max_retry_backoff);
                let due = now + SignedDuration::try_from(delay).unwrap_or(SignedDuration::MAX);
                let error = Some(failure.message.clone());
                let then = Fact::RetryAt { issue: issue(), due, cause: RetryCause::Failure, error };
                let comment = format!("The agent failed: {}. It is tried again.", failure.message);
                Settlement {
                    writes: comments(config.tracker.comments.on_failure, claim, "failure", comment),
                    then,
                }
            }
        },
        SessionEnd::Failed(failure) => {
            let reason = ParkReason::Failed { kind: failure.kind.clone(), message: failure.message.clone() };
            park(config, claim, reason)
        }
        SessionEnd::SoftStop { word } if word == "blocked" => park(config, claim, ParkReason::Blocked),
        SessionEnd::SoftStop { .. } | SessionEnd::MaxTurns if !is_active => {
            let release = Release::Inactive { state: claim.state.clone() };
            released(Fact::Released { issue: issue(), release })
        }
        SessionEnd::SoftStop { .. } | SessionEnd::MaxTurns if config.tracker.handoff_state.is_some() => {
            hand_off(config, claim)
        }
        SessionEnd::SoftStop { word } => park(config, claim, ParkReason::NeedsReview { word: word.clone() }),
        SessionEnd::MaxTurns => match out_of_sessions(config, claim) {
            Some(limit) => park(config, claim, ParkReason::MaxSessions { limit }),
            None => {
                let due = now + SignedDuration::try_from(timing::CONTINUATION).unwrap_or(SignedDuration::MAX);
                released(Fact::RetryAt { issue: issue(), due, cause: RetryCause::Continuation, error: None })
            }
        },
    }
}

fn released(then: Fact) -> Settlement {
    Settlement { writes: Vec::new(), then }
}

fn out_of_sessions(config: &Config, claim: &Claim) -> Option<u32> {
    config.agent.max_sessions.filter(|limit| claim.sessions >= *limit)
}

fn hand_off(config: &Config, claim: &Claim) -> Settlement {
    let state = config.tracker.handoff_state.clone().unwrap_or_default();
    let done = format!("The agent is done after {}. The issue is handed over.", turns(claim));
    let mut writes = comments(config.tracker.comments.on_completion, claim, "completion", done);
    let transition = Write::Transition { to: state.clone() };
    if claim.refused.contains(&transition) {
        let message = format!("the tracker refuses the state `{state}`");
        return park(config, claim, ParkReason::Failed { kind: "handoff_refused".to_owned(), message });
    }
    writes.push(transition);
    let then = Fact::Released { issue: claim.issue.clone(), release: Release::HandedOff { state } };
    Settlement { writes, then }
}

fn turns(claim: &Claim) -> String {
    match claim.turns {
        1 => "1 turn".to_owned(),
        turns => format!("{turns} turns"),
    }
}

/// An issue that waits for a person has a label, and a comment that says why.
fn park(config: &Config, claim: &Claim, reason: ParkReason) -> Settlement {
    let label = config.tracker.escalation_label.clone();
    let body = format!(
        "This issue waits for a person: {}. Remove the label `{label}` or change the state to go on.",
        reason.sentence()
    );
    let mut writes = comments(config.tracker.comments.on_failure, claim, "parked", body);
    writes.push(Write::Label { label });
    Settlement { writes, then: Fact::Parked { issue: claim.issue.clone(), reason } }
}

/// A comment, if the workflow wants it. Its marker is that of the session, so that it is written once.
fn comments(wanted: bool, claim: &Claim, what: &str, body: String) -> Vec<Write> {
    let marker = format!("{what}-{}-{}", claim.number, claim.sessions.max(claim.failures));
    if wanted { vec![Write::Comment { marker, body }] } else { Vec::new() }
}

/// Writes at the beginning of a claim.
pub fn opening(config: &Config, claim: &Claim) -> Vec<Write> {
    let mut writes = Vec::new();
    if let Some(to) = &config.tracker.in_progress_state
        && to.to_lowercase() != claim.state.to_lowercase()
    {
        writes.push(Write::Transition { to: to.clone() });
    }
    if config.tracker.comments.on_dispatch {
        let marker = format!("dispatch-{}", claim.number);
        writes.push(Write::Comment {
            marker,
            body: format!("The agent `{}` works on this issue.", claim.agent),
        });
    }
    writes
}
