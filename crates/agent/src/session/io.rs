//! What a session is told and what it wants done. Between the two lies [`Session::step`](super::Session::step).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hangar_protocol::Body;
use hangar_protocol::data::{
    AgentMode, Attachment, Commitments, CompactionTrigger, Mode, NotificationKind, PlanDecision,
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
use crate::retry::Reason;
use crate::tool::{Access, ToolInput, ToolOutcome, ToolSpec};

/// Numbers the model calls of a session, so that what a cancelled call still says is not taken for the next one's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallSeq(pub u64);

#[derive(Debug)]
pub enum Input {
    Opened(Opening),
    Command(Command),
    Model(CallSeq, Result<ModelEvent, ModelError>),
    /// News of the call that sums the session up.
    Summary(CallSeq, Result<ModelEvent, ModelError>),
    RetryDue(CallSeq),
    Inspected(Vec<Inspection>),
    Progress(Body),
    ToolDone {
        call_id: String,
        outcome: ToolOutcome,
    },
    Discovered(Vec<Reminder>),
    /// What the session is bound to beside its conversation.
    Gathered(Commitments),
    /// Whether nothing has changed since the work began.
    Unchanged(bool),
    /// A hook has spoken, or failed.
    HookDone {
        id: String,
        output: HookAnswer,
    },
    /// The session's plan, for the call that wants to leave plan mode.
    Plan {
        call_id: String,
        content: String,
    },
    /// Work that outlived its tool call has news: a command in the background, or an agent that nobody waits for.
    Background(Notice),
    /// No agent of the session runs any more, and none has news.
    AgentsSettled,
}

#[derive(Debug)]
pub enum Opening {
    New {
        session_id: String,
        version: String,
        context: WorkingDirectory,
    },
    /// A session that works for another one. It has no log of its own.
    Agent,
    /// `silent` says nothing of it in the log. `continue_pending` is what the one who resumes asked for, if anything.
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
    /// Has another model answer from the next call on.
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
    /// The result of a call that a client was asked to make before the session was resumed.
    AnswerClientCall {
        request_id: String,
        outcome: Box<ToolOutcome>,
    },
    /// What a person says about the plan that they were shown.
    ReviewPlan {
        request_id: String,
        decision: PlanDecision,
    },
    /// Whether another model may go on where one is at its rate limit.
    AnswerSwitch {
        request_id: String,
        answer: SwitchAnswer,
    },
    SetLimits(Option<SessionLimits>),
    /// Puts something that happened outside on record.
    Record(Body),
    /// Other tools than before, beside the session's own.
    SetTools(Arc<[Arc<ToolSpec>]>),
    Unqueue(Unqueue),
    EditQueue(QueueEdit),
    /// Has a prompt that waits not wait any longer.
    SendNow {
        id: String,
    },
    /// Forget the conversation, and begin anew with a prompt once the calls under way have ended. Only while there are
    /// some.
    ClearContext {
        prompt: String,
    },
    /// Ends the run that is under way, but not the agents that work for the session.
    Interrupt {
        reason: String,
        /// Whether what waits is kept, and is next.
        keep_queue: bool,
    },
    /// Sum the conversation up now.
    Compact {
        instructions: Option<String>,
        /// Why, as it is to be on record.
        trigger: Option<CompactionTrigger>,
    },
    /// Play the role of this agent from now on, or the usual one.
    SelectAgent(Option<String>),
    /// Someone joined a session that is alive. Work that waits for answers is kept or ended as interrupted.
    Rejoined {
        continue_pending: bool,
    },
    /// Writes the closing event. Nothing may follow.
    Shutdown {
        error: Option<String>,
    },
}

#[derive(Debug, Clone)]
pub struct Prompt {
    /// What the model is to read.
    pub text: String,
    /// What people are shown in its place.
    pub shown: Option<String>,
    pub attachments: Vec<Attachment>,
    pub timing: Timing,
    pub origin: Origin,
    /// The id that the sender was told, if it was told one.
    pub message_id: Option<String>,
    /// The mode that it is sent in, which holds while it is worked on; the session's own where it does not say.
    pub agent_mode: Option<AgentMode>,
    pub wishes: Wishes,
    /// What goes before it in the conversation: messages that were sent with it, skills that it invokes by name.
    pub preface: Vec<Body>,
}

/// What the sender of a prompt wants of the calls to the model that it leads to.
#[derive(Debug, Clone, Default)]
pub struct Wishes {
    pub headers: Vec<(String, String)>,
    pub answer: Option<Arc<AnswerSchema>>,
}

/// Which waiting prompts are taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unqueue {
    Last,
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timing {
    /// After everything that is already waiting.
    Queue,
    /// Before everything that is already waiting.
    Next,
    /// Into the run that is under way; like `Queue` when there is none.
    Steer,
}

#[derive(Debug, Clone)]
pub enum Origin {
    User,
    /// A person's message that came through something with a name.
    Source(String),
    AutopilotNudge,
    /// Nobody says anything: the model is to go on from what there is.
    Nobody,
    /// What a hook says, with the source that it is on record under.
    Hook(&'static str),
    /// Nothing is said: another model is to answer from here on.
    Switch(Box<ModelSwitch>),
    /// Nobody sent it: something in the background has happened.
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

    /// Whether people see it wait, and may change their minds about it.
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
            wishes: Wishes::default(),
            preface: Vec::new(),
        }
    }

    /// As people are shown it.
    pub fn as_shown(&self) -> &str {
        self.shown.as_deref().unwrap_or(&self.text)
    }
}

#[derive(Debug)]
pub struct Inspection {
    pub call_id: String,
    pub access: Result<Access, ToolOutcome>,
}

/// Instructions that came to light because a tool touched a file they are about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reminder {
    pub source: String,
    pub trigger_file: String,
    pub trigger_tool: String,
    pub text: String,
}

/// What has become of work in the background.
#[derive(Debug, Clone)]
pub struct Notice {
    pub text: String,
    pub kind: NotificationKind,
    /// What the model would read if it asked.
    pub read: Option<Box<ReadForModel>>,
}

/// A call that the model is spared, because it would make it next.
#[derive(Debug, Clone)]
pub struct ReadForModel {
    pub tool: &'static str,
    pub arguments: serde_json::Value,
    pub outcome: ToolOutcome,
}

#[derive(Debug)]
pub enum Effect {
    CallModel(CallSeq, Box<ModelRequest>),
    CancelModel,
    /// Ask another one from now on, which waited under an id if it did.
    UseModel(Box<ModelSwitch>, Option<String>),
    /// Ask for a summary, beside whatever else is under way.
    Summarize(CallSeq, Box<ModelRequest>),
    RetryAfter(CallSeq, Duration, Reason),
    /// Ask the named tools what the calls would touch.
    Inspect(Vec<(String, ToolInput)>),
    RunTool(String, ToolInput, Grant),
    CancelTools,
    /// Let running tools know that someone has something to say.
    Hurry,
    /// Read the plan that the session wrote.
    ReadPlan(String),
    Hook(HookRequest),
    /// Deal with the session's agents, for a call with this id.
    Agents(String, AgentCall),
    /// The session worked for another one and is done.
    AgentDone(AgentEnd),
    /// Look for instructions about these files, with the tool that touched each.
    Discover(Vec<(PathBuf, String)>),
    /// Look up the plan and the open todos.
    Gather,
    /// Keep a summary as a file.
    Checkpoint(Checkpoint),
    /// Find out whether anything has changed since the work began.
    AskUnchanged,
    /// The session is at rest: make the log durable.
    Sync,
}

#[derive(Debug, Default)]
pub struct Step {
    pub events: Vec<Body>,
    pub effects: Vec<Effect>,
}

/// What a step may know of the world.
pub struct Context<'a> {
    pub now: Timestamp,
    pub entropy: &'a mut Entropy,
}

/// The form of every timestamp in an event.
pub fn iso(timestamp: Timestamp) -> String {
    timestamp.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}
