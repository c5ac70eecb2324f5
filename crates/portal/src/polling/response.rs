//! Responses of `live`: the callbacks of sessions, tasks and jobs as JSON, with the names that the pages and tests of
//! the portal know.

use serde::Serialize;
use serde_with::skip_serializing_none;

use super::item::{PollItem, TextId, TextPart};

/// Estimated size of an item without its texts.
const FRAME: usize = 64;
/// In the place of what was dropped.
const DROPPED: &str = "responses were dropped here because there were too many that nobody read";

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub(crate) enum SessionResponse {
    Callback(SessionCallback),
    Error { session_error: String },
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "callback", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[expect(clippy::enum_variant_names, reason = "they are the names on the wire")]
pub(crate) enum SessionCallback {
    OnStartReasoning {
        reasoning_id: String,
    },
    OnReasoning {
        reasoning_id: String,
        delta: String,
    },
    OnEndReasoning {
        reasoning_id: String,
        complete_content: String,
    },
    OnStartMessage {
        message_id: String,
    },
    OnMessage {
        message_id: String,
        delta: String,
    },
    OnEndMessage {
        message_id: String,
        complete_content: String,
    },
    OnStartToolExecution {
        tool_call_id: String,
        parent_tool_call_id: Option<String>,
        tool_name: String,
        tool_arguments: String,
    },
    OnToolExecution {
        tool_call_id: String,
        delta: String,
    },
    OnEndToolExecution {
        tool_call_id: String,
        result: Option<CallbackResult>,
        error: Option<CallbackError>,
    },
    OnAgentStart {
        turn_id: String,
    },
    OnAgentEnd {
        turn_id: String,
    },
    OnIdle,
    /// A task put a prompt to the session.
    OnGeneratedUserPrompt {
        prompt: String,
    },
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallbackResult {
    pub(crate) content: String,
    pub(crate) detailed_content: Option<String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct CallbackError {
    pub(crate) message: String,
    pub(crate) code: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub(crate) enum TaskResponse {
    Callback(TaskCallback),
    Error { task_error: String },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "callback", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[expect(clippy::enum_variant_names, reason = "they are the names on the wire")]
pub(crate) enum TaskCallback {
    TaskSucceeded,
    TaskFailed,
    TaskDecision { reason: String },
    TaskSessionStarted { session_id: String, is_driving: bool },
    TaskSessionStopped { session_id: String, succeeded: bool },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub(crate) enum JobResponse {
    Callback(JobCallback),
    Error { job_error: String },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "callback", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum JobCallback {
    WorkStarted { work_id: u32, task_id: String },
    WorkStopped { work_id: u32, succeeded: bool },
    JobSucceeded,
    JobFailed,
    JobCanceled,
}

impl From<SessionCallback> for SessionResponse {
    fn from(callback: SessionCallback) -> Self {
        Self::Callback(callback)
    }
}

impl From<TaskCallback> for TaskResponse {
    fn from(callback: TaskCallback) -> Self {
        Self::Callback(callback)
    }
}

impl From<JobCallback> for JobResponse {
    fn from(callback: JobCallback) -> Self {
        Self::Callback(callback)
    }
}

impl PollItem for SessionResponse {
    fn piece(&self) -> TextPart<'_> {
        use SessionCallback as Call;
        let Self::Callback(callback) = self else { return TextPart::Whole };
        match callback {
            Call::OnStartReasoning { reasoning_id } => TextPart::Start(TextId::Reasoning(reasoning_id)),
            Call::OnReasoning { reasoning_id, .. } => TextPart::Delta(TextId::Reasoning(reasoning_id)),
            Call::OnEndReasoning { reasoning_id, .. } => TextPart::End(TextId::Reasoning(reasoning_id)),
            Call::OnStartMessage { message_id } => TextPart::Start(TextId::Message(message_id)),
            Call::OnMessage { message_id, .. } => TextPart::Delta(TextId::Message(message_id)),
            Call::OnEndMessage { message_id, .. } => TextPart::End(TextId::Message(message_id)),
            Call::OnStartToolExecution { .. }
            | Call::OnToolExecution { .. }
            | Call::OnEndToolExecution { .. }
            | Call::OnAgentStart { .. }
            | Call::OnAgentEnd { .. }
            | Call::OnIdle
            | Call::OnGeneratedUserPrompt { .. } => TextPart::Whole,
        }
    }

    fn join(&mut self, next: &Self) {
        use SessionCallback as Call;
        let (Self::Callback(this), Self::Callback(next)) = (self, next) else { return };
        match (this, next) {
            (Call::OnReasoning { delta, .. }, Call::OnReasoning { delta: next, .. })
            | (Call::OnMessage { delta, .. }, Call::OnMessage { delta: next, .. }) => delta.push_str(next),
            _ => {}
        }
    }

    fn weight(&self) -> usize {
        use SessionCallback as Call;
        let option = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let texts = match self {
            Self::Error { session_error } => session_error.len(),
            Self::Callback(callback) => match callback {
                Call::OnStartReasoning { reasoning_id: id } | Call::OnStartMessage { message_id: id } => {
                    id.len()
                }
                Call::OnReasoning { reasoning_id: id, delta: text }
                | Call::OnEndReasoning { reasoning_id: id, complete_content: text }
                | Call::OnMessage { message_id: id, delta: text }
                | Call::OnEndMessage { message_id: id, complete_content: text }
                | Call::OnToolExecution { tool_call_id: id, delta: text } => id.len() + text.len(),
                Call::OnStartToolExecution {
                    tool_call_id,
                    parent_tool_call_id,
                    tool_name,
                    tool_arguments,
                } => {
                    tool_call_id.len() + option(parent_tool_call_id) + tool_name.len() + tool_arguments.len()
                }
                Call::OnEndToolExecution { tool_call_id, result, error } => {
                    let result =
                        result.as_ref().map_or(0, |it| it.content.len() + option(&it.detailed_content));
                    tool_call_id.len() + result + error.as_ref().map_or(0, |it| it.message.len())
                }
                Call::OnAgentStart { turn_id } | Call::OnAgentEnd { turn_id } => turn_id.len(),
                Call::OnIdle => 0,
                Call::OnGeneratedUserPrompt { prompt } => prompt.len(),
            },
        };
        FRAME + texts
    }

    fn dropped() -> Self {
        Self::Error { session_error: DROPPED.to_owned() }
    }
}

impl PollItem for TaskResponse {
    fn piece(&self) -> TextPart<'_> {
        TextPart::Whole
    }

    fn join(&mut self, _: &Self) {}

    fn weight(&self) -> usize {
        let text = match self {
            Self::Callback(TaskCallback::TaskDecision { reason: text })
            | Self::Error { task_error: text } => text.len(),
            Self::Callback(_) => 0,
        };
        FRAME + text
    }

    fn dropped() -> Self {
        Self::Error { task_error: DROPPED.to_owned() }
    }
}

impl PollItem for JobResponse {
    fn piece(&self) -> TextPart<'_> {
        TextPart::Whole
    }

    fn join(&mut self, _: &Self) {}

    fn weight(&self) -> usize {
        match self {
            Self::Callback(_) => FRAME,
            Self::Error { job_error } => FRAME + job_error.len(),
        }
    }

    fn dropped() -> Self {
        Self::Error { job_error: DROPPED.to_owned() }
    }
}
