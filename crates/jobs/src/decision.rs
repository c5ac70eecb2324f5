//! Decisions of a task, and their descriptions for people.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::prompt::TaskPrompt;
use crate::record::{CheckFailure, CrashError};
use crate::tools::JobTool;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "is")]
pub enum Decision {
    AvailabilityPassed,
    /// The condition was not answered with yes.
    AvailabilityFailed {
        condition: TaskPrompt,
    },
    /// The task before was none of those that must come before.
    PreviousTaskMissing {
        wanted: Vec<String>,
        previous: Option<String>,
    },
    ToolsMissing {
        tools: Vec<JobTool>,
    },
    ChecksFailed {
        failures: Vec<CheckFailure>,
    },
    ConditionPassed,
    ConditionFailed {
        condition: TaskPrompt,
    },
    RetryStarted {
        retry: u32,
    },
    PassedOnRetry {
        retry: u32,
    },
    FailedOnRetry {
        retry: u32,
    },
    BudgetDrained {
        retries: u32,
    },
    Succeeded,
    Failed,
    SessionCrashed {
        error: CrashError,
    },
    BorrowedSessionCrashed {
        error: CrashError,
    },
    BorrowedSessionCrashedInRetry {
        error: CrashError,
    },
    CrashedInRetry {
        retry: u32,
        error: CrashError,
    },
    ReplacementFailed {
        error: CrashError,
    },
    TaskError {
        error: CrashError,
    },
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AvailabilityPassed => f.write_str("[AVAILABILITY] Availability check passed"),
            Self::AvailabilityFailed { condition } => write!(
                f,
                "[AVAILABILITY] Availability check failed: condition not satisfied. Condition: {}",
                as_json(condition)
            ),
            Self::PreviousTaskMissing { wanted, previous } => write!(
                f,
                "[AVAILABILITY] Availability check failed: the previous task should be one of {} but is {}",
                wanted.join(", "),
                previous.as_deref().unwrap_or("none")
            ),
            Self::ToolsMissing { tools } => {
                write!(f, "[CRITERIA] toolExecuted check failed: missing tools: {}", names(tools))
            }
            Self::ChecksFailed { failures } => {
                let all: Vec<String> = failures.iter().map(ToString::to_string).collect();
                write!(f, "[CRITERIA] Check failed: {}", all.join("; "))
            }
            Self::ConditionPassed => f.write_str("[CRITERIA] Criteria condition passed"),
            Self::ConditionFailed { condition } => {
                write!(f, "[CRITERIA] Criteria condition failed. Condition: {}", as_json(condition))
            }
            Self::RetryStarted { retry } => write!(f, "[OPERATION] Starting retry #{retry}"),
            Self::PassedOnRetry { retry } => write!(f, "[CRITERIA] Criteria passed on retry #{retry}"),
            Self::FailedOnRetry { retry } => write!(f, "[CRITERIA] Criteria failed on retry #{retry}"),
            Self::BudgetDrained { retries } => {
                write!(f, "[DECISION] Retry budget drained after {retries} retries")
            }
            Self::Succeeded => f.write_str("[TASK SUCCEEDED] Decision: task succeeded"),
            Self::Failed => f.write_str("[TASK FAILED] Decision: task failed (criteria not satisfied)"),
            Self::SessionCrashed { error } => write!(f, "[SESSION CRASHED] {}", error.json()),
            Self::BorrowedSessionCrashed { error } => {
                write!(f, "[SESSION CRASHED] Task crashed in borrowing session mode: {}", error.json())
            }
            Self::BorrowedSessionCrashedInRetry { error } => {
                write!(f, "[SESSION CRASHED] Crash during retry in borrowing mode: {}", error.json())
            }
            Self::CrashedInRetry { retry, error } => {
                write!(f, "[SESSION CRASHED] Session crash during retry #{retry}: {}", error.json())
            }
            Self::ReplacementFailed { error } => {
                write!(f, "[SESSION CRASHED] Failed to create replacement session: {}", error.json())
            }
            Self::TaskError { error } => write!(f, "[TASK FAILED] Task error: {}", error.json()),
        }
    }
}

pub(crate) fn names(tools: &[JobTool]) -> String {
    tools.iter().map(|tool| tool.name()).collect::<Vec<_>>().join(", ")
}

fn as_json(prompt: &TaskPrompt) -> String {
    serde_json::to_string(prompt).unwrap_or_default()
}
