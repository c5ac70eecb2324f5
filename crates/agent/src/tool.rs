//! Tools: specification, inspection of a call before it runs, and the call itself.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use hangar_protocol::Body;
use hangar_protocol::data::{CodeChanges, SkillContextDelivered, SkillInvoked, ToolType};
use hangar_protocol::permission::PermissionRequest;
use tokio_util::sync::CancellationToken;

use crate::model::Part;
use crate::permissions::Grant;
use crate::schema::Schema;

/// A tool. A failing call is an answer for the model, not an `Err`.
pub trait Tool: Send + Sync {
    fn spec(&self) -> &Arc<ToolSpec>;

    /// Parses the arguments and returns what the call would touch, before anything is touched.
    ///
    /// `Err` is the answer to invalid arguments. It may look at the file system (to resolve links) but changes nothing.
    fn inspect(&self, call: &ToolInput) -> Result<Access, ToolOutcome>;

    /// Asynchronous inspection, which replaces [`inspect`](Self::inspect) where there is one.
    fn inspect_apart(&self, call: &ToolInput) -> Option<BoxFuture<'static, Result<Access, ToolOutcome>>> {
        let _ = call;
        None
    }

    /// Files that a call would write, through the handles that its inspection holds open. For wrappers that take
    /// snapshots.
    fn held(&self, call: &ToolInput) -> Option<Arc<dyn HeldFiles>> {
        let _ = call;
        None
    }

    /// Runs a call that was inspected and permitted. Must end soon after `cancel`, with its children gone.
    fn run(&self, call: ToolInput, context: ToolContext) -> BoxFuture<'static, ToolOutcome>;
}

/// Files of an inspected call, accessed as its run will access them.
pub trait HeldFiles: Send + Sync {
    /// Their paths, links resolved.
    fn paths(&self) -> Vec<PathBuf>;

    /// Reads at most `limit` bytes of a file.
    fn read(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSpec {
    pub name: String,
    /// Short label for people: "Running command".
    pub title: Option<String>,
    pub description: String,
    pub input: ToolSchema,
}

impl ToolSpec {
    /// Size as text, in bytes.
    pub fn size(&self) -> usize {
        self.name.len() + self.description.len() + self.input.size()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolSchema {
    /// JSON Schema of the argument object.
    Function(Schema),
    /// Free text, with a Lark grammar for providers that can enforce one. For providers without custom tools it is a
    /// function with one string argument `input`.
    Custom { grammar: Option<String> },
    /// The provider runs it within an answer, so that no call of it reaches the session. A provider that has no such tool
    /// does not offer it.
    Hosted,
}

impl ToolSchema {
    /// A tool whose argument object has this schema.
    pub fn function(schema: impl Into<Schema>) -> Self {
        Self::Function(schema.into().portable())
    }

    /// Size as text, in bytes.
    pub fn size(&self) -> usize {
        match self {
            Self::Function(schema) => schema.as_str().len(),
            Self::Custom { grammar } => grammar.as_ref().map_or(0, String::len),
            Self::Hosted => 0,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct ToolInput {
    pub call_id: String,
    pub kind: ToolType,
    /// The parsed arguments of a function; a string for a custom tool.
    pub arguments: serde_json::Value,
}

/// Access that a call needs.
#[derive(Debug, Clone)]
pub enum Access {
    /// Nothing outside the session.
    None,
    Needs(Box<AccessRequest>),
}

/// A request with the facts that rules are matched against. Paths are absolute, links resolved.
#[derive(Debug, Clone)]
pub struct AccessRequest {
    pub request: PermissionRequest,
    /// Paths that would be read or, for a shell, that appear in its command.
    pub reads: Vec<std::path::PathBuf>,
    /// Paths that would be written.
    pub writes: Vec<std::path::PathBuf>,
}

/// Context of a running call.
#[derive(Clone)]
pub struct ToolContext {
    /// Limits of the call.
    pub grant: Grant,
    pub cancel: CancellationToken,
    /// Cancelled when a message arrives. A call whose work goes on in the background then returns.
    pub hurry: CancellationToken,
    /// Ephemeral events (`tool.shell_output`, `tool.execution_partial_result`, `session.info`, ...). The channel is
    /// bounded, which is the backpressure on chatty tools. Boxed, because a channel has room for many before the first
    /// is sent, and every session has this one.
    pub progress: tokio::sync::mpsc::Sender<Box<Body>>,
}

/// A skill that is invoked: its event, and the text for the model.
#[derive(Debug, Clone, PartialEq)]
pub struct InvokedSkill {
    pub invoked: SkillInvoked,
    pub context: SkillContextDelivered,
}

impl InvokedSkill {
    /// Events before the prompt that invoked it.
    pub fn into_preface(self) -> Vec<Body> {
        vec![self.invoked.into(), self.context.into()]
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutcome {
    pub status: ToolStatus,
    /// Text for the model. On failure it is the error's message too, unless `error` is set.
    pub text: String,
    /// Text for people, if that differs: a diff.
    pub detailed: Option<String>,
    /// Shorter error for the event, if the model is told more than people need (lists of tools).
    pub error: Option<String>,
    /// Original answer of an MCP server.
    pub content: Option<Box<McpContent>>,
    /// Images for the model.
    pub images: Vec<Part>,
    pub exit_code: Option<i32>,
    /// Whether it ran in a sandbox.
    pub sandboxed: bool,
    /// Operation that the call's limits blocked.
    pub blocked: Option<Box<Blocked>>,
    pub changes: CodeChanges,
    pub telemetry: Option<serde_json::Value>,
    /// Skill that the call invoked. The model is given it once all calls of the turn have their results, and only once
    /// in a conversation.
    pub skill: Option<Box<InvokedSkill>>,
    /// Whether the run ends with this call, without another answer of the model.
    pub ends_run: bool,
}

/// An operation that the kernel blocked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// Text for people: `reading /etc/passwd`.
    pub from: String,
}

/// Content of an MCP server's answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct McpContent {
    pub blocks: Vec<serde_json::Value>,
    pub structured: Option<serde_json::Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolStatus {
    Success,
    Failure,
    Denied,
    /// Denied in a way that ends the run.
    Rejected,
    Interrupted,
    Timeout,
}

impl ToolOutcome {
    pub fn success(text: impl Into<String>) -> Self {
        Self::of(ToolStatus::Success, text)
    }

    pub fn failure(text: impl Into<String>) -> Self {
        Self::of(ToolStatus::Failure, text)
    }

    pub fn of(status: ToolStatus, text: impl Into<String>) -> Self {
        Self {
            status,
            text: text.into(),
            detailed: None,
            error: None,
            content: None,
            images: Vec::new(),
            exit_code: None,
            sandboxed: false,
            blocked: None,
            changes: CodeChanges::default(),
            telemetry: None,
            skill: None,
            ends_run: false,
        }
    }
}

/// Source of a tool. Filters may name all of one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolSource {
    Builtin,
    Mcp,
    /// Registered by a client.
    Custom,
}

/// Filter of the tools that the model is shown. A pattern is a tool's name, or a source and a name, or a source and
/// `*`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolFilter {
    /// The only tools that are shown; all if absent.
    pub available: Option<Vec<String>>,
    pub excluded: Vec<String>,
}

impl ToolFilter {
    pub fn admits(&self, source: ToolSource, name: &str) -> bool {
        let names = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, source, name));
        self.available.as_deref().is_none_or(names) && !names(&self.excluded)
    }
}

fn matches(pattern: &str, source: ToolSource, name: &str) -> bool {
    let prefix = match source {
        ToolSource::Builtin => "builtin:",
        ToolSource::Mcp => "mcp:",
        ToolSource::Custom => "custom:",
    };
    pattern == name || pattern.strip_prefix(prefix).is_some_and(|rest| rest == "*" || rest == name)
}

/// The tools of a session, in the order in which the model is shown them.
#[derive(Clone, Default)]
pub struct Toolset(Vec<Arc<dyn Tool>>);

impl Toolset {
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        Self(tools)
    }

    pub fn find(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.0.iter().find(|tool| tool.spec().name == name)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.0.iter()
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|tool| tool.spec().name.as_str())
    }

    pub fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) {
        self.0.retain(|tool| keep(&tool.spec().name));
    }
}
