//! Inputs and effects of a session. [`Session::step`](super::Session::step) turns the one into the other.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hangar_protocol::Body;
use hangar_protocol::data::{
    AgentMode, Attachment, CompactionTrigger, Mode, NotificationKind, PlanAndTodos, PlanDecision,
    SessionLimits, SwitchAnswer, WorkingDirectory,
};
use hangar_protocol::permission::PermissionOutcome;
use jiff::Timestamp;

use super::agent::AgentEnd;
use super::checkpoint::Checkpoint;
use super::queue::QueueEdit;
use super::switch::ModelSwitch;
use crate::agents::call::AgentCall;
use crate::entropy::Entropy;
use crate::hook::{HookAnswer, HookRequest};
use crate::model::{AnswerSchema, ModelError, ModelEvent, ModelRequest};
use crate::permissions::Grant;
use crate::retry::RetryReason;
use crate::tool::{Access, ToolInput, ToolOutcome, ToolSpec};

/// Number of a model call, so that late pieces of a cancelled call are not mistaken for those of the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallSeq(pub u64);

#[derive(Debug)]
pub enum SessionInput {
    Opened(Opening),
    Command(Command),
    Model(CallSeq, Result<ModelEvent, ModelError>),
    /// A piece of the summary.
    Summary(CallSeq, Result<ModelEvent, ModelError>),
    RetryDue(CallSeq),
    Inspected(Vec<Inspection>),
    Progress(Body),
    ToolDone {
        call_id: String,
        outcome: ToolOutcome,
    },
    Discovered(Vec<Reminder>),
    /// The plan and the open todos.
    Gathered(PlanAndTodos),
    /// Whether the working tree is unchanged since the session began.
    Unchanged(bool),
    /// A hook has answered or failed.
    HookDone {
        id: String,
        output: HookAnswer,
    },
    /// The session's plan, for `exit_plan_mode`.
    Plan {
        call_id: String,
        content: String,
    },
    /// News of background work: a command, or an agent that no call waits for.
    Background(BackgroundNotice),
    /// No agent of the session is running, and none has news.
    AgentsSettled,
}

#[derive(Debug)]
pub enum Opening {
    New {
        session_id: String,
        version: String,
        context: WorkingDirectory,
    },
    /// The session of a sub-agent, which has no log of its own.
    Agent,
    /// A resumed session. `silent` logs no event. `continue_pending` is what the client asked for, if anything.
    Resumed {
        log_bytes: u64,
        context: WorkingDirectory,
        silent: bool,
        continue_pending: Option<bool>,
    },
}

#[derive(Debug)]
pub enum Command {
    Send(Prompt),
    Abort {
        reason: String,
    },
    SetMode(Mode),
    SetModel {
        model: String,
        effort: Option<String>,
    },
    /// Switches the model from the next call on.
    SwitchModel(Box<ModelSwitch>),
    AnswerPermission {
        request_id: String,
        answer: PermissionOutcome,
    },
    AnswerQuestion {
        request_id: String,
        answer: String,
        was_freeform: bool,
    },
    /// Result of a client's tool call that was requested before the session was resumed.
    AnswerClientCall {
        request_id: String,
        outcome: Box<ToolOutcome>,
    },
    /// Decision about the plan.
    ReviewPlan {
        request_id: String,
        decision: PlanDecision,
    },
    /// Answer whether another model may be used at a rate limit.
    AnswerSwitch {
        request_id: String,
        answer: SwitchAnswer,
    },
    SetLimits(Option<SessionLimits>),
    /// Emits an event that happened outside.
    Record(Body),
    /// Replaces all tools except the session's own.
    SetTools(Arc<[Arc<ToolSpec>]>),
    Unqueue(Unqueue),
    EditQueue(QueueEdit),
    /// Removes prompts from the queue.
    SendNow {
        id: String,
    },
    /// Clears the conversation, and starts with a prompt once the running calls have ended. Only while there are some.
    ClearContext {
        prompt: String,
    },
    /// Ends the current run, but not the session's agents.
    Interrupt {
        reason: String,
        /// Whether the queue is kept and its first prompt is next.
        keep_queue: bool,
    },
    /// Starts a compaction.
    Compact {
        instructions: Option<String>,
        /// Reason for the log.
        trigger: Option<CompactionTrigger>,
    },
    /// Takes the role of this agent, or the usual one.
    SelectAgent(Option<String>),
    /// A client joined a live session. Calls that wait for answers are kept or ended as interrupted.
    Rejoined {
        continue_pending: bool,
    },
    /// Closes the session. Nothing may follow.
    Shutdown {
        error: Option<String>,
    },
}

#[derive(Debug, Clone)]
pub struct Prompt {
    /// Text for the model.
    pub text: String,
    /// Text that people are shown instead.
    pub shown: Option<String>,
    pub attachments: Vec<Attachment>,
    pub timing: Timing,
    pub origin: Origin,
    /// Id that the sender was given, if any.
    pub message_id: Option<String>,
    /// Mode for the run of this prompt; the session's own if absent.
    pub agent_mode: Option<AgentMode>,
    pub call_options: CallOptions,
    /// Events before it in the conversation: messages that were sent with it, skills that it invokes by name.
    pub preface: Vec<Body>,
}

/// Options of the model calls that a prompt leads to.
#[derive(Debug, Clone, Default)]
pub struct CallOptions {
    pub headers: Vec<(String, String)>,
    pub answer: Option<Arc<AnswerSchema>>,
}

/// Which prompts are removed from the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unqueue {
    Last,
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timing {
    /// At the end of the queue.
    Queue,
    /// At the front of the queue.
    Next,
    /// Into the current run; like `Queue` if there is none.
    Steer,
}

#[derive(Debug, Clone)]
pub enum Origin {
    User,
    /// A user message with a named source.
    Source(String),
    AutopilotNudge,
    /// No message: the model continues the conversation.
    Nobody,
    /// A message of a hook, with its `source`.
    Hook(&'static str),
    /// No message: a queued model switch.
    Switch(Box<ModelSwitch>),
    /// News of background work.
    News {
        kind: NotificationKind,
        read: Option<Box<ReadForModel>>,
    },
}

impl Origin {
    pub(super) fn is_news(&self) -> bool {
        match self {
            Origin::News { .. } => true,
            Origin::User
            | Origin::Source(_)
            | Origin::AutopilotNudge
            | Origin::Nobody
            | Origin::Hook(_)
            | Origin::Switch(_) => false,
        }
    }

    /// Whether it is shown in the queue and may be edited there.
    pub(super) fn is_shown(&self) -> bool {
        match self {
            Origin::User | Origin::Switch(_) => true,
            Origin::Source(source) => source != "system",
            Origin::AutopilotNudge | Origin::Nobody | Origin::Hook(_) | Origin::News { .. } => false,
        }
    }
}

impl Prompt {
    pub fn user(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            shown: None,
            attachments: Vec::new(),
            timing: Timing::Queue,
            origin: Origin::User,
            message_id: None,
            agent_mode: None,
            call_options: CallOptions::default(),
            preface: Vec::new(),
        }
    }

    /// The prompt as people are shown it.
    pub fn as_shown(&self) -> &str {
        self.shown.as_deref().unwrap_or(&self.text)
    }
}

#[derive(Debug)]
pub struct Inspection {
    pub call_id: String,
    pub access: Result<Access, ToolOutcome>,
}

/// Instructions that were discovered because a tool touched a file they are about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reminder {
    pub source: String,
    pub trigger_file: String,
    pub trigger_tool: String,
    pub text: String,
}

/// News of background work.
#[derive(Debug, Clone)]
pub struct BackgroundNotice {
    pub text: String,
    pub kind: NotificationKind,
    /// The result that the model would get if it asked.
    pub read: Option<Box<ReadForModel>>,
}

/// A call that Hangar makes for the model, because the model would make it next.
#[derive(Debug, Clone)]
pub struct ReadForModel {
    pub tool: &'static str,
    pub arguments: serde_json::Value,
    pub outcome: ToolOutcome,
}

#[derive(Debug)]
pub enum SessionEffect {
    CallModel(CallSeq, Box<ModelRequest>),
    CancelModel,
    /// Switch the provider, with the id of the queued switch, if it was queued.
    UseModel(Box<ModelSwitch>, Option<String>),
    /// Request a summary, beside other work.
    Summarize(CallSeq, Box<ModelRequest>),
    RetryAfter(CallSeq, Duration, RetryReason),
    /// Inspect calls.
    Inspect(Vec<(String, ToolInput)>),
    RunTool(String, ToolInput, Grant),
    CancelTools,
    /// Tell running tools that a message has arrived.
    Hurry,
    /// Read the plan.
    ReadPlan(String),
    Hook(HookRequest),
    /// Perform a call of an agent tool.
    Agents(String, AgentCall),
    /// Report the outcome of a sub-agent.
    AgentDone(AgentEnd),
    /// Find instructions about files, each with the tool that touched it.
    Discover(Vec<(PathBuf, String)>),
    /// Read the plan and the open todos.
    Gather,
    /// Write a checkpoint.
    Checkpoint(Checkpoint),
    /// Find out whether the working tree is unchanged.
    AskUnchanged,
    /// Sync the log, because the session is idle.
    Sync,
}

#[derive(Debug, Default)]
pub struct Step {
    pub events: Vec<Body>,
    pub effects: Vec<SessionEffect>,
}

/// Time and randomness of a step.
pub struct Context<'a> {
    pub now: Timestamp,
    pub entropy: &'a mut Entropy,
}

/// Formats a timestamp for events.
pub fn iso(timestamp: Timestamp) -> String {
    timestamp.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}
