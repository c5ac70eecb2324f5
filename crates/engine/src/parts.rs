//! Parts of a session that the engine takes over, and options of front ends.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use hangar_agent::driver::Driver;
use hangar_agent::features::Features;
use hangar_agent::model::ModelProvider;
use hangar_agent::session::SessionInput;
use hangar_agent::tool::ToolFilter;
use hangar_custom::skills::Skills;
use hangar_files::SessionFiles;
use hangar_mcp::{McpHost, News};
use hangar_tools::shell::{BackgroundCommand, Shells};
use tokio::sync::mpsc;

use crate::commands::CommandRefusal;
use crate::wait::DEFAULT_TASK_WAIT;

/// MCP servers and their news. None has been started.
pub type Mcp = (McpHost, mpsc::Receiver<News>);

/// A composed session that nothing has happened in.
pub struct EngineParts {
    pub driver: Driver,
    /// The first inputs of the session. A resumed one says first what it was; what is different now follows.
    pub opening: Vec<SessionInput>,
    pub mcp: Option<Mcp>,
    /// Filter on the MCP servers' tools that the model is shown.
    pub filter: ToolFilter,
    pub skills: Arc<Skills>,
    pub background: Arc<dyn Background>,
    /// Working directory of the session.
    pub directory: PathBuf,
    /// Whether all commands of the session run in a sandbox.
    pub sandboxed: bool,
    /// A fact for the model that takes a moment to find out. The first prompt waits for it.
    pub fact: Option<BoxFuture<'static, Option<String>>>,
}

/// Differences between front ends.
#[derive(Debug, Clone)]
pub struct Options {
    pub servers: ServerStart,
    pub naming: Naming,
    /// Background work that a prompt waits for.
    pub waits_for: BackgroundWork,
    /// Maximum wait for it before a prompt is reported as ended.
    pub task_wait: Duration,
    /// Whether a change of the model's tools is an event (`session.tools_updated`).
    pub announces_tools: bool,
    pub features: Features,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            servers: ServerStart::WithPrompt,
            naming: Naming::Announced,
            waits_for: BackgroundWork::All,
            task_wait: DEFAULT_TASK_WAIT,
            announces_tools: false,
            features: Features::default(),
        }
    }
}

/// Background work that a prompt waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackgroundWork {
    /// Commands and sub-agents: a run that ends with its prompt would kill them.
    All,
    /// Sub-agents, whose results belong to the answer. Commands, such as a server that a person tries out, go on after
    /// the prompt, and the news of their end starts a turn of its own.
    Agents,
}

/// When MCP servers are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerStart {
    /// Before the session's first event: a prompt follows at once.
    BeforeOpening,
    /// With the first prompt, which waits for them: a session may be open for long without one.
    WithPrompt,
}

/// Effect of the first prompt on the session's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// None: the session has a name.
    Named,
    /// It names the session in lists.
    Quiet,
    /// It names the session, and an event (`session.title_changed`) says so.
    Announced,
    /// The same, and a small model then makes a better title of it, if there is such a model.
    Titled,
}

/// Work that outlives the calls that began it: commands that run on.
pub trait Background: Send + Sync {
    /// Whether work is running that ends with the session.
    fn is_running(&self) -> bool;

    fn shutdown(&self) -> BoxFuture<'static, ()>;

    /// Commands that no call waits for.
    fn commands(&self) -> Vec<BackgroundCommand>;

    /// Output of one of them so far.
    fn output(&self, id: &str) -> Option<String>;

    /// Stops one of them. False if there is none with this id.
    fn stop(&self, id: &str) -> bool;
}

impl Background for Shells {
    fn is_running(&self) -> bool {
        self.has_background_work()
    }

    fn shutdown(&self) -> BoxFuture<'static, ()> {
        let shells = self.clone();
        Box::pin(async move { Shells::shutdown(&shells).await })
    }

    fn commands(&self) -> Vec<BackgroundCommand> {
        self.background()
    }

    fn output(&self, id: &str) -> Option<String> {
        Self::output(self, id)
    }

    fn stop(&self, id: &str) -> bool {
        Self::stop(self, id)
    }
}

/// Composer of the session, for slash commands that recompose a part of it.
pub trait SessionComposer: Send + Sync {
    /// The provider that answers for a model with this effort.
    fn provider(&self, model: &str, effort: Option<&str>) -> Result<SwitchedModel, CommandRefusal>;

    /// Composes the session anew, to work in this directory. The engine has let go of its log.
    fn recompose(&self, directory: &Path) -> Result<EngineParts, CommandRefusal>;

    /// The paths of the instruction files that hold for a directory.
    fn instruction_files(&self, directory: &Path) -> Vec<String>;

    /// The folder of the session and the name that lists have for it.
    fn record(&self) -> Result<SessionRecord, CommandRefusal>;
}

/// A model that the session can have.
pub struct SwitchedModel {
    pub provider: Arc<dyn ModelProvider>,
    /// A sentence for people, if the model gets another effort than they asked for.
    pub effort_notice: Option<String>,
}

/// A session as it is on this machine.
pub struct SessionRecord {
    pub id: String,
    pub name: Option<String>,
    pub files: Arc<dyn SessionFiles>,
}

/// For front ends that deal with such commands themselves.
pub struct NoComposer;

impl SessionComposer for NoComposer {
    fn provider(&self, _: &str, _: Option<&str>) -> Result<SwitchedModel, CommandRefusal> {
        Err(CommandRefusal::new("the model of this session cannot be changed"))
    }

    fn recompose(&self, _: &Path) -> Result<EngineParts, CommandRefusal> {
        Err(CommandRefusal::new("this session cannot be composed anew"))
    }

    fn instruction_files(&self, _: &Path) -> Vec<String> {
        Vec::new()
    }

    fn record(&self) -> Result<SessionRecord, CommandRefusal> {
        Err(CommandRefusal::new("this session has no folder on this machine"))
    }
}
