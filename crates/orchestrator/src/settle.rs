//! Consequences of the end of a session: writes to the tracker, then one decision about the claim.

use hangar_workflow::Config;
use hangar_workflow::reactions::PullMode;
use jiff::{SignedDuration, Timestamp};

use crate::plan::{IssueEffect, is_workable};
use crate::pulls::{Publication, Reaction};
use crate::record::{ASK, ClaimStage, IssueFact, ParkReason, Release, RetryCause, SessionEnd, Write};
use crate::state::IssueClaim;
use crate::timing;

/// Consequences of the end of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Settlement {
    /// Writes that come first, each once.
    pub writes: Vec<Write>,
    pub then: IssueFact,
}

/// The next step that publishes the work of a session, if the workflow has pull requests.
pub fn publishing(config: &Config, claim: &IssueClaim, end: &SessionEnd) -> Option<IssueEffect> {
    // The work of the last stage is published, with that of the others.
    if config.pulls.mode == PullMode::Off || !is_done(config, claim, end) || !claim.next_stages.is_empty() {
        return None;
    }
    let issue = claim.issue.clone();
    let is_published = match claim.publication.as_ref() {
        None => return Some(IssueEffect::Publish { issue }),
        Some(Publication::Open) => true,
        Some(Publication::Unchanged) => claim.pull.is_some(),
        Some(Publication::Absent | Publication::Diverged | Publication::Failed(_)) => false,
    };
    let reaction = claim.reaction.as_ref().filter(|_| is_published)?;
    let mut open = reaction.answers().filter(|remark| !claim.answered.contains(remark));
    open.next().map(|remark| IssueEffect::Answer { issue, remark })
}

/// Whether the work of a session is to be shown to others.
fn is_done(config: &Config, claim: &IssueClaim, end: &SessionEnd) -> bool {
    match end {
        SessionEnd::MaxTurns => is_workable(config, claim, &claim.state),
        SessionEnd::SoftStop { word } if word.starts_with(ASK) => false,
        SessionEnd::SoftStop { word } => word != "blocked" && is_workable(config, claim, &claim.state),
        // The agent itself has handed the issue over.
        SessionEnd::Inactive { state } => {
            let handoff = config.tracker.handoff_state.as_ref();
            claim.workspace.is_some()
                && claim.sessions > 0
                && handoff.is_some_and(|handoff| handoff.eq_ignore_ascii_case(state))
        }
        SessionEnd::Gone | SessionEnd::Failed(_) | SessionEnd::Interrupted | SessionEnd::Stopped => false,
    }
}

/// The decision about a claim whose work was published, or could not be.
fn published(config: &Config, claim: &IssueClaim, end: &SessionEnd) -> Option<Settlement> {
    if config.pulls.mode == PullMode::Off || !is_done(config, claim, end) {
        return None;
    }
    let conflicts = config.pulls.conflicts.max_retries.max(1);
    Some(match claim.publication.as_ref()? {
        Publication::Absent => return None,
        Publication::Open => hand_off(config, claim),
        Publication::Unchanged if claim.pull.is_some() => hand_off(config, claim),
        Publication::Unchanged => park(config, claim, ParkReason::NoChange),
        Publication::Diverged => match &claim.pull {
            Some(pull) if pull.rounds.conflicts < conflicts => {
                released(IssueFact::Reacted { issue: claim.issue.clone(), reaction: Reaction::Diverged })
            }
            _ => {
                let what = "the conflict with commits of others on the branch".to_owned();
                park(config, claim, ParkReason::PullStuck { what, limit: conflicts, label: None })
            }
        },
        Publication::Failed(failure) => {
            let reason = ParkReason::Failed { kind: failure.kind.clone(), message: failure.message.clone() };
            park(config, claim, reason)
        }
    })
}

/// The end of an issue whose pull request was merged.
pub fn merged(config: &Config, claim: &IssueClaim) -> Settlement {
    let number = claim.pull.as_ref().map_or(0, |pull| pull.number);
    let body = format!("The pull request #{number} was merged.");
    let mut writes = comments(config.tracker.comments.on_completion, claim, "merged", body);
    let state = config.pulls.merged_state.as_ref().or(config.tracker.terminal_states.first());
    writes.extend(state.map(|to| Write::Transition { to: to.clone() }));
    let release = Release::Merged { number };
    Settlement { writes, then: IssueFact::Released { issue: claim.issue.clone(), release } }
}

/// The decision about a claim whose session has ended, by the first rule that fits.
pub fn settlement(config: &Config, claim: &IssueClaim, end: &SessionEnd, now: Timestamp) -> Settlement {
    let issue = || claim.issue.clone();
    if let Some(settlement) = published(config, claim, end) {
        return settlement;
    }
    let is_active = config.tracker.is_active(&claim.state);
    if let Some(next) = claim.next_stages.first().filter(|_| is_active && is_done(config, claim, end)) {
        return staged(config, claim, next);
    }
    match end {
        SessionEnd::Gone => released(IssueFact::Released { issue: issue(), release: Release::Gone }),
        SessionEnd::Inactive { state } => released(IssueFact::Released {
            issue: issue(),
            release: Release::Inactive { state: state.clone() },
        }),
        SessionEnd::Stopped => park(config, claim, ParkReason::Stopped),
        SessionEnd::Interrupted => {
            let cause = RetryCause::Interrupted;
            released(IssueFact::RetryAt { issue: issue(), due: now, cause, error: claim.error.clone() })
        }
        SessionEnd::Failed(failure) if failure.retryable => match out_of_sessions(config, claim) {
            Some(limit) => park(config, claim, ParkReason::MaxSessions { limit }),
            None => {
                let delay = timing::backoff(claim.failures, config.agent.max_retry_backoff);
                let due = now + SignedDuration::try_from(delay).unwrap_or(SignedDuration::MAX);
                let error = Some(failure.message.clone());
                let then = IssueFact::RetryAt { issue: issue(), due, cause: RetryCause::Failure, error };
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
        SessionEnd::SoftStop { word } if word.starts_with(ASK) => {
            let question = word.trim_start_matches(ASK).to_owned();
            park(config, claim, ParkReason::Question { question })
        }
        // Our own write of the hand-off state is no move by somebody else.
        SessionEnd::SoftStop { .. } | SessionEnd::MaxTurns
            if !is_active && !is_handed_over(config, claim) =>
        {
            let release = Release::Inactive { state: claim.state.clone() };
            released(IssueFact::Released { issue: issue(), release })
        }
        SessionEnd::SoftStop { .. } | SessionEnd::MaxTurns if config.tracker.handoff_state.is_some() => {
            hand_off(config, claim)
        }
        SessionEnd::SoftStop { word } => park(config, claim, ParkReason::NeedsReview { word: word.clone() }),
        SessionEnd::MaxTurns => match out_of_sessions(config, claim) {
            Some(limit) => park(config, claim, ParkReason::MaxSessions { limit }),
            None => {
                let due = now + SignedDuration::try_from(timing::CONTINUATION).unwrap_or(SignedDuration::MAX);
                released(IssueFact::RetryAt {
                    issue: issue(),
                    due,
                    cause: RetryCause::Continuation,
                    error: None,
                })
            }
        },
    }
}

/// The next stage follows a session that is done.
fn staged(config: &Config, claim: &IssueClaim, next: &ClaimStage) -> Settlement {
    let body = format!("The agent is done after {}. `{}` follows.", turns(claim), next.name);
    let writes = comments(config.tracker.comments.on_completion, claim, "stage", body);
    Settlement { writes, then: IssueFact::StageAdvanced { issue: claim.issue.clone(), stage: next.clone() } }
}

fn released(then: IssueFact) -> Settlement {
    Settlement { writes: Vec::new(), then }
}

/// Whether the state of the hand-off was written for this end.
fn is_handed_over(config: &Config, claim: &IssueClaim) -> bool {
    let handoff = config.tracker.handoff_state.clone();
    handoff.is_some_and(|to| claim.written.contains(&Write::Transition { to }))
}

fn out_of_sessions(config: &Config, claim: &IssueClaim) -> Option<u32> {
    config.agent.max_sessions.filter(|limit| claim.sessions >= *limit)
}

/// Hands the issue over. One with a pull request stays ours until that is merged.
fn hand_off(config: &Config, claim: &IssueClaim) -> Settlement {
    let pull = claim.pull.as_ref().filter(|_| claim.publication.is_some());
    let done = match pull {
        Some(pull) => format!("The agent is done after {}: {}", turns(claim), pull.url),
        None => format!("The agent is done after {}. The issue is handed over.", turns(claim)),
    };
    let mut writes = comments(config.tracker.comments.on_completion, claim, "completion", done);
    let waits = IssueFact::Waiting { issue: claim.issue.clone() };
    let Some(state) = config.tracker.handoff_state.clone() else { return Settlement { writes, then: waits } };
    let transition = Write::Transition { to: state.clone() };
    if claim.refused.contains(&transition) {
        let message = format!("the tracker refuses the state `{state}`");
        return park(config, claim, ParkReason::Failed { kind: "handoff_refused".to_owned(), message });
    }
    writes.push(transition);
    let release = Release::HandedOff { state };
    let then =
        if pull.is_some() { waits } else { IssueFact::Released { issue: claim.issue.clone(), release } };
    Settlement { writes, then }
}

fn turns(claim: &IssueClaim) -> String {
    match claim.turns {
        1 => "1 turn".to_owned(),
        turns => format!("{turns} turns"),
    }
}

/// An issue that waits for a person has a label, and a comment that says why.
pub(crate) fn park(config: &Config, claim: &IssueClaim, reason: ParkReason) -> Settlement {
    let label = match &reason {
        ParkReason::PullStuck { label, .. } => label.clone(),
        _ => Some(config.tracker.escalation_label.clone()),
    };
    let is_question = matches!(reason, ParkReason::Question { .. });
    let advice = match &label {
        _ if matches!(reason, ParkReason::Choice { .. }) => {
            format!("Promote one with `hangar issue promote {} NUMBER` or on its page.", claim.identifier)
        }
        Some(_) if is_question => "Answer with a comment to go on.".to_owned(),
        Some(label) => format!("Remove the label `{label}` or change the state to go on."),
        None => "Change the state to go on.".to_owned(),
    };
    let body = format!("This issue waits for a person: {}. {advice}", reason.sentence());
    // Without a label, the comment is all that a person sees.
    let wanted = config.tracker.comments.on_failure || label.is_none() || is_question;
    let mut writes = comments(wanted, claim, "parked", body);
    writes.extend(label.map(|label| Write::Label { label }));
    Settlement { writes, then: IssueFact::Parked { issue: claim.issue.clone(), reason } }
}

/// A comment, if the workflow wants it. Its marker is that of the session, so that it is written once; sessions are counted
/// anew when a person lets a parked issue go on.
fn comments(wanted: bool, claim: &IssueClaim, what: &str, body: String) -> Vec<Write> {
    let again = if claim.revivals > 0 { format!("-{}", claim.revivals) } else { String::new() };
    let marker = format!("{what}-{}-{}{again}", claim.number, claim.sessions.max(claim.failures));
    if wanted { vec![Write::Comment { marker, body }] } else { Vec::new() }
}

/// Writes at the beginning of a claim.
pub fn opening(config: &Config, claim: &IssueClaim) -> Vec<Write> {
    let mut writes = Vec::new();
    if let Some(to) = &config.tracker.in_progress_state
        && to.to_lowercase() != claim.state.to_lowercase()
    {
        writes.push(Write::Transition { to: to.clone() });
    }
    if claim.question.is_some() {
        writes.push(Write::Unlabel { label: config.tracker.escalation_label.clone() });
    }
    if config.tracker.comments.on_dispatch {
        let marker = format!("dispatch-{}", claim.number);
        let body = match claim.rivals.len() {
            0 => format!("The agent `{}` works on this issue.", claim.agent),
            count => format!("{count} agents work on this issue side by side."),
        };
        writes.push(Write::Comment { marker, body });
    }
    writes
}

/// Writes before the work of a candidate is taken over.
pub fn promoting(config: &Config, by_person: bool) -> Vec<Write> {
    // The issue waits for nobody any more.
    if by_person {
        vec![Write::Unlabel { label: config.tracker.escalation_label.clone() }]
    } else {
        Vec::new()
    }
}
