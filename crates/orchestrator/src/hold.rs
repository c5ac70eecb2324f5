//! Holds: why an issue is not worked on, as a code and as a sentence. Command line, API and pages say the same.

use hangar_trackers::Issue;
use hangar_trackers::forge::CheckStatus;
use hangar_workflow::Config;
use jiff::Timestamp;
use serde::Serialize;

use crate::state::{IssueClaim, OrchestratorState, Phase};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hold {
    Incomplete {
        field: &'static str,
    },
    Inactive {
        state: String,
    },
    Terminal {
        state: String,
    },
    NotDispatchable,
    MissingLabel {
        label: String,
    },
    BlockedBy {
        blockers: Vec<String>,
    },
    /// A blocker whose state is unknown.
    BlockersUnresolved {
        blockers: Vec<String>,
    },
    Running {
        turn: u32,
    },
    Retrying {
        due: Timestamp,
        error: Option<String>,
    },
    Parked {
        reason: String,
    },
    Settling,
    /// Several agents work on it.
    Contest {
        candidates: usize,
    },
    /// The work of a candidate is taken over.
    Promoting {
        candidate: u32,
    },
    /// A candidate that waits for the judge.
    Done,
    /// Its pull request is open.
    Waiting {
        number: u64,
        until: PullWait,
    },
    MaxSessions {
        limit: u32,
    },
    /// It was released after the tracker was read; the next read decides.
    Stale,
    StateSlots {
        state: String,
        limit: u32,
    },
    Slots {
        limit: u32,
    },
}

/// Condition that an open pull request waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullWait {
    Ci,
    Review,
    Merge,
}

impl Hold {
    pub fn code(&self) -> &'static str {
        match self {
            Hold::Incomplete { .. } => "incomplete",
            Hold::Inactive { .. } => "inactive",
            Hold::Terminal { .. } => "terminal",
            Hold::NotDispatchable => "not_dispatchable",
            Hold::MissingLabel { .. } => "missing_label",
            Hold::BlockedBy { .. } => "blocked_by",
            Hold::BlockersUnresolved { .. } => "blockers_unresolved",
            Hold::Running { .. } => "running",
            Hold::Retrying { .. } => "retrying",
            Hold::Parked { .. } => "parked",
            Hold::Settling => "settling",
            Hold::Contest { .. } => "candidates",
            Hold::Promoting { .. } => "promoting",
            Hold::Done => "done",
            Hold::Waiting { until: PullWait::Ci, .. } => "waiting_ci",
            Hold::Waiting { until: PullWait::Review, .. } => "waiting_review",
            Hold::Waiting { until: PullWait::Merge, .. } => "waiting_merge",
            Hold::MaxSessions { .. } => "max_sessions",
            Hold::Stale => "stale",
            Hold::StateSlots { .. } => "state_slots",
            Hold::Slots { .. } => "slots",
        }
    }

    pub fn sentence(&self) -> String {
        match self {
            Hold::Incomplete { field } => format!("it has no {field}"),
            Hold::Inactive { state } => format!("its state `{state}` is not active"),
            Hold::Terminal { state } => format!("its state `{state}` is terminal"),
            Hold::NotDispatchable => "the rules of its tracker hold it back".to_owned(),
            Hold::MissingLabel { label } => format!("it lacks the label `{label}`"),
            Hold::BlockedBy { blockers } => format!("it is blocked by {}", blockers.join(", ")),
            Hold::BlockersUnresolved { blockers } => {
                format!("the state of its blockers is unknown: {}", blockers.join(", "))
            }
            Hold::Running { turn: 0 } => "it is being started".to_owned(),
            Hold::Running { turn } => format!("it runs, in turn {turn}"),
            Hold::Retrying { due, error: Some(error) } => format!("it is tried again at {due:.0}: {error}"),
            Hold::Retrying { due, error: None } => format!("it goes on at {due:.0}"),
            Hold::Parked { reason } => format!("it is parked until a person acts: {reason}"),
            Hold::Settling => "its last session is being settled".to_owned(),
            Hold::Contest { candidates } => format!("{candidates} candidates work on it"),
            Hold::Promoting { candidate } => format!("the work of candidate {candidate} is taken over"),
            Hold::Done => "it waits for the judge".to_owned(),
            Hold::Waiting { number, until } => {
                let until = match until {
                    PullWait::Ci => "the checks of",
                    PullWait::Review => "a review of",
                    PullWait::Merge => "the merge of",
                };
                format!("it waits for {until} its pull request #{number}")
            }
            Hold::MaxSessions { limit } => format!("all {limit} sessions of the issue are used"),
            Hold::Stale => "it was released just now; the next poll decides".to_owned(),
            Hold::StateSlots { state, limit } => {
                format!("{limit} of {limit} agents work on the state `{state}`")
            }
            Hold::Slots { limit } => format!("{limit} of {limit} slots of the workflow are taken"),
        }
    }
}

impl Serialize for Hold {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("code", self.code())?;
        map.serialize_entry("reason", &self.sentence())?;
        map.end()
    }
}

/// The hold of a claim on its issue.
pub fn of_claim(claim: &IssueClaim) -> Hold {
    match &claim.phase {
        Phase::Opening | Phase::Ready | Phase::Turn | Phase::Turned { .. } | Phase::Closing { .. } => {
            Hold::Running { turn: claim.turn }
        }
        Phase::Settling { .. } => Hold::Settling,
        Phase::Contest { .. } => Hold::Contest { candidates: claim.rivals.len() },
        Phase::Promoting { candidate, .. } => Hold::Promoting { candidate: *candidate },
        Phase::Done { .. } => Hold::Done,
        Phase::Waiting { .. } => {
            let seen = claim.pull.as_ref().and_then(|pull| pull.seen.as_ref());
            let until = match seen {
                Some(seen) if seen.checks == Some(CheckStatus::Pending) => PullWait::Ci,
                None => PullWait::Ci,
                Some(seen) if seen.approved && seen.open_threads == 0 => PullWait::Merge,
                Some(_) => PullWait::Review,
            };
            Hold::Waiting { number: claim.pull.as_ref().map_or(0, |pull| pull.number), until }
        }
        Phase::Retrying { due, .. } => Hold::Retrying { due: *due, error: claim.error.clone() },
        Phase::Parked { reason, .. } => Hold::Parked { reason: reason.sentence() },
    }
}

/// Why an issue is not eligible, limits aside. `asked` is when the tracker was read.
pub fn of_issue(config: &Config, state: &OrchestratorState, issue: &Issue, asked: Timestamp) -> Option<Hold> {
    if let Some(claim) = state.claims.get(&issue.id) {
        return Some(of_claim(claim));
    }
    let tracker = &config.tracker;
    let fields = [
        ("id", &issue.id.0),
        ("identifier", &issue.identifier),
        ("title", &issue.title),
        ("state", &issue.state),
    ];
    if let Some((field, _)) = fields.into_iter().find(|(_, value)| value.trim().is_empty()) {
        return Some(Hold::Incomplete { field });
    }
    if tracker.is_terminal(&issue.state) {
        return Some(Hold::Terminal { state: issue.state.clone() });
    }
    if !tracker.active_states.is_empty() && !tracker.is_active(&issue.state) {
        return Some(Hold::Inactive { state: issue.state.clone() });
    }
    if state.history.get(&issue.id).is_some_and(|history| history.at >= asked) {
        return Some(Hold::Stale);
    }
    // A person has said that it is to be worked on.
    if state.wanted.contains_key(&issue.id) {
        return None;
    }
    if !issue.dispatchable {
        return Some(Hold::NotDispatchable);
    }
    if let Some(label) = tracker.required_labels.iter().find(|label| !issue.labels.contains(label)) {
        return Some(Hold::MissingLabel { label: label.clone() });
    }
    let names = |unknown: bool| -> Vec<String> {
        let open = issue.blocked_by.iter().filter(|blocker| !tracker.is_terminal(&blocker.state));
        let open = open.filter(|blocker| blocker.state.trim().is_empty() == unknown);
        open.map(|blocker| {
            if blocker.identifier.is_empty() { &blocker.id } else { &blocker.identifier }.clone()
        })
        .collect()
    };
    for (unknown, blockers) in [(false, names(false)), (true, names(true))] {
        if !blockers.is_empty() {
            return Some(match unknown {
                false => Hold::BlockedBy { blockers },
                true => Hold::BlockersUnresolved { blockers },
            });
        }
    }
    let sessions = state.history.get(&issue.id).map_or(0, |history| history.sessions);
    let limit = config.agent.max_sessions.filter(|limit| sessions >= *limit);
    limit.map(|limit| Hold::MaxSessions { limit })
}
