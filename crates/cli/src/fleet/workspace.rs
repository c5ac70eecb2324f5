//! Workspace of a session of the fleet: a worktree whose work is kept on the remote, or a directory of this machine.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hangar_fleet::order::OrderWorkspace;
use hangar_git::RepositoryAccess;
use parking_lot::Mutex;

use crate::credentials;
use crate::orchestrate::mirror::{KeptWork, Mirror};
use crate::settings::Settings;

/// Mirrors and worktrees of a worker.
pub(super) struct Workspaces {
    /// Directory of mirrors and worktrees.
    directory: PathBuf,
    agent_socket: Option<OsString>,
    mirrors: Mutex<HashMap<String, Arc<Mirror>>>,
}

/// A workspace that is ready.
pub(super) struct ReadyWorkspace {
    pub(super) path: PathBuf,
    mirror: Option<Arc<Mirror>>,
}

impl Workspaces {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            directory: settings.home.join("fleet"),
            agent_socket: settings.var("SSH_AUTH_SOCK").map(OsString::from),
            mirrors: Mutex::default(),
        }
    }

    fn mirror(&self, remote: &str) -> Arc<Mirror> {
        let mut mirrors = self.mirrors.lock();
        let mirror = mirrors.entry(remote.to_owned()).or_insert_with(|| {
            let directory = self.directory.join("mirrors");
            let access = RepositoryAccess { agent_socket: self.agent_socket.clone(), login: None };
            Arc::new(Mirror::new(credentials::git(), &directory, remote, access))
        });
        Arc::clone(mirror)
    }

    /// Makes the workspace of a session ready, with the work that was kept of it.
    pub(super) async fn prepare(
        &self,
        session: &str,
        wanted: &OrderWorkspace,
    ) -> Result<ReadyWorkspace, String> {
        match wanted {
            OrderWorkspace::Git { remote, reference } => {
                let mirror = self.mirror(remote);
                let worktrees = self.directory.join("worktrees");
                std::fs::create_dir_all(&worktrees)
                    .map_err(|error| format!("creating {}: {error}", worktrees.display()))?;
                let path = worktrees.join(session);
                mirror.check_out_session(&path, session, reference.as_deref()).await?;
                Ok(ReadyWorkspace { path, mirror: Some(mirror) })
            }
            OrderWorkspace::Path { path } => match path.is_absolute() && path.is_dir() {
                true => Ok(ReadyWorkspace { path: path.clone(), mirror: None }),
                false => Err(format!("{} is no directory of this machine", path.display())),
            },
        }
    }
}

impl ReadyWorkspace {
    /// Keeps the work on the remote. `None` if there is nothing new, or no remote.
    pub(super) async fn keep(&self, session: &str) -> Result<Option<KeptWork>, String> {
        match &self.mirror {
            Some(mirror) => mirror.keep_session(&self.path, session).await,
            None => Ok(None),
        }
    }

    /// Removes a worktree whose work is on the remote.
    pub(super) async fn remove(self) {
        if let Some(mirror) = &self.mirror {
            mirror.forget(&self.path).await;
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}
