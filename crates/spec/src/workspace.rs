//! The directories of a session and the sandbox of its commands.

use std::path::PathBuf;

use hangar_sandbox::SandboxConfig;

group! {
    pub struct WorkspaceOptions {
        directory: PathBuf = "workingDirectory",
        /// Further directories that tools may touch.
        additional: Vec<PathBuf> = "additionalDirectories",
        /// Whether the model and the lists see the Git repository that the session works in.
        git: bool = "enableHostGitOperations",
        sandbox: SandboxConfig = "sandboxConfig",
    }
}

impl WorkspaceOptions {
    pub fn shows_git(&self) -> bool {
        self.git.unwrap_or(true)
    }
}
