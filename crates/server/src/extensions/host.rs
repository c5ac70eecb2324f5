//! Dependencies of extensions that the host hands in: where they are, and how their programs are started.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use hangar_custom::extensions::Extension;
use hangar_sandbox::Sandbox;
use hangar_spec::SessionSpec;

/// Finds extensions and knows how to run them.
pub trait ExtensionHost: Send + Sync {
    /// Extensions of a session, and sentences about those that are not loaded. Without a session: those that every session has.
    fn find(&self, session: Option<&ExtensionSession>) -> (Vec<Extension>, Vec<String>);

    /// The program that runs an extension, or a sentence that says why there is none.
    fn launch(&self, session: &ExtensionSession, extension: &Extension) -> Result<LaunchPlan, String>;

    /// Variables of this process that extensions do not see, with their values. Others are left out.
    fn withheld(&self, session: &ExtensionSession, names: &[String]) -> Vec<(String, String)>;

    /// Folder in which a new extension is created.
    fn folder(&self, session: &ExtensionSession, location: NewExtensionLocation) -> Result<PathBuf, String>;
}

/// A session, as far as its extensions depend on it.
#[derive(Clone)]
pub struct ExtensionSession {
    pub id: String,
    pub directory: PathBuf,
    /// Folder of the session, if this machine keeps it.
    pub session_dir: Option<PathBuf>,
    pub spec: SessionSpec,
    pub confine: ProgramSandbox,
}

/// Makes the sandbox of a program that a session runs, if it has one. The folders are those that the program reads although
/// they lie in the home.
pub type ProgramSandbox =
    Arc<dyn Fn(SandboxedProgram, &[PathBuf]) -> Result<Option<Sandbox>, String> + Send + Sync>;

/// Owner of a program, as far as its sandbox depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxedProgram {
    /// The project brings it.
    OfProject,
    /// The user has installed it.
    OfUser,
}

/// A program with everything that it is started with.
#[derive(Debug, Clone, Default)]
pub struct LaunchPlan {
    pub program: OsString,
    pub args: Vec<OsString>,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    pub sandbox: Option<Sandbox>,
}

/// Place of a new extension.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NewExtensionLocation {
    #[default]
    Project,
    User,
    Session,
}
