//! Workspaces that have to go: those that nobody used for long, and the least recently used ones where there are too many.

use std::collections::BTreeSet;

use hangar_trackers::IssueId;
use hangar_workflow::Config;
use jiff::{SignedDuration, Timestamp};

use crate::state::{IssueWorkspace, OrchestratorState, Phase};

/// Whether nobody works in a workspace. One whose pull request is open is created again from its branch when it is needed.
fn is_idle(state: &OrchestratorState, issue: &IssueId) -> bool {
    match state.work(issue).map(|claim| &claim.phase) {
        None => true,
        Some(Phase::Waiting { .. }) => true,
        Some(_) => false,
    }
}

/// Workspaces to remove, the least recently used first. Effects under way are left alone.
pub fn surplus(
    config: &Config,
    state: &OrchestratorState,
    busy: &BTreeSet<IssueId>,
    now: Timestamp,
) -> Vec<IssueId> {
    let limits = &config.workspace;
    if limits.max_workspaces.is_none() && limits.quota_bytes.is_none() && limits.retention.is_none() {
        return Vec::new();
    }
    let mut going = Vec::new();
    // One that is idle and busy is being removed already.
    let (mut count, mut bytes) = (0, 0);
    let mut idle: Vec<(&IssueId, &IssueWorkspace)> = Vec::new();
    for (issue, place) in &state.workspaces {
        let is_idle = is_idle(state, issue);
        if is_idle && busy.contains(issue) {
            continue;
        }
        (count, bytes) = (count + 1, place.bytes.saturating_add(bytes));
        if is_idle {
            idle.push((issue, place));
        }
    }
    idle.sort_by_key(|(issue, place)| (place.used, *issue));
    let retention = limits.retention.and_then(|limit| SignedDuration::try_from(limit).ok());
    for (issue, place) in idle {
        // Records of earlier versions do not say when it was used.
        let is_old = place.used > Timestamp::UNIX_EPOCH
            && !state.claims.contains_key(issue)
            && retention.is_some_and(|limit| now.duration_since(place.used) > limit);
        let is_much = limits.max_workspaces.is_some_and(|limit| count > limit)
            || limits.quota_bytes.is_some_and(|limit| bytes > limit);
        if is_old || is_much {
            (count, bytes) = (count - 1, bytes - place.bytes);
            going.push(issue.clone());
        }
    }
    going
}
