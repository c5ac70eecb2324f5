//! The directories of a session: where it works and where it is stored.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use hangar_protocol::Body;
use hangar_protocol::data::WorkingDirectory;
use hangar_spec::WorkspaceOptions;
use hangar_store::client_session::ClientSession;
use hangar_store::{SessionId, Store, StoreError};
use hangar_tools::paths;

use crate::resumed;
use crate::selection::SessionSelection;
use crate::workspace::git::Repository;
use crate::workspace::working_directory;

#[derive(Debug, Clone)]
pub(crate) struct SessionPaths {
    pub(crate) id: SessionId,
    pub(crate) cwd: PathBuf,
    pub(crate) repository: Option<Repository>,
    /// Whether the model and the lists see the repository.
    pub(crate) shows_git: bool,
    /// All directories that tools may touch, links resolved, since that is how paths are compared.
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) temp_dir: bool,
    /// Directory of the session, as its owner names it. It need not exist yet.
    pub(crate) session_dir: PathBuf,
    /// Whether that directory is on this machine, and not with a client.
    pub(crate) is_local: bool,
}

impl SessionPaths {
    pub(super) fn find(
        store: &Store,
        selection: &SessionSelection,
        client: Option<&ClientSession>,
        workspace: &WorkspaceOptions,
        temp_dir: bool,
    ) -> Result<Self> {
        let id = selection.id().clone();
        let cwd = directory(store, selection, client, workspace.directory.as_deref())?;
        let session_dir = match client {
            Some(client) => PathBuf::from(&client.files.site().root),
            None => paths::resolve(&store.session_dir(&id)),
        };
        let mut roots = vec![real(&cwd), real(&session_dir)];
        if temp_dir {
            roots.push(real(&std::env::temp_dir()));
        }
        for dir in workspace.additional.iter().flatten() {
            roots.push(readable_dir("--add-dir", &cwd.join(dir))?);
        }
        Ok(Self {
            repository: Repository::find(&cwd),
            id,
            cwd,
            shows_git: workspace.shows_git(),
            roots,
            temp_dir,
            session_dir,
            is_local: client.is_none(),
        })
    }

    /// The repository, if the model and the lists see it.
    pub(super) fn shown_repository(&self) -> Option<&Repository> {
        self.repository.as_ref().filter(|_| self.shows_git)
    }

    /// The working directory as events and lists show it.
    pub(super) fn context(&self) -> WorkingDirectory {
        working_directory(&self.cwd, self.shown_repository())
    }

    /// The session's directory, if it is on this machine.
    pub(crate) fn own_dir(&self) -> Option<PathBuf> {
        self.is_local.then(|| real(&self.session_dir))
    }

    /// A directory for commands only.
    pub(crate) fn scratch(&self) -> PathBuf {
        match self.own_dir() {
            Some(dir) => dir.join("scratch"),
            None => real(&std::env::temp_dir()).join(format!("hangar-scratch-{}", self.id)),
        }
    }

    /// The directories that commands may touch.
    pub(crate) fn directories(&self) -> Vec<PathBuf> {
        let session_dir = real(&self.session_dir);
        self.roots.iter().filter(|root| self.is_local || **root != session_dir).cloned().collect()
    }
}

/// The path with links resolved, if it exists.
pub(crate) fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// A directory that a flag names, with links resolved.
pub(super) fn readable_dir(flag: &str, dir: &Path) -> Result<PathBuf> {
    let refused = || format!("{flag} {} is not a directory that can be read", dir.display());
    let resolved = dir.canonicalize().with_context(refused)?;
    if !resolved.is_dir() {
        bail!(refused());
    }
    Ok(resolved)
}

/// The working directory: the requested one, else that of the resumed session, else the current one.
fn directory(
    store: &Store,
    selection: &SessionSelection,
    client: Option<&ClientSession>,
    wanted: Option<&Path>,
) -> Result<PathBuf> {
    match (client, selection) {
        (Some(client), SessionSelection::New { .. }) => client_dir(wanted, &client.files.site().initial_cwd),
        (Some(client), SessionSelection::Resume(_)) => match (wanted, last_directory(client)) {
            // It may exist on the client's machine only.
            (None, Some(last)) => Ok(PathBuf::from(last)),
            _ => client_dir(wanted, &client.files.site().initial_cwd),
        },
        (None, SessionSelection::Resume(id)) if wanted.is_none() => {
            let Some(session) = store.look(id) else {
                // Opening the log says why: it is a link, or not there.
                drop(store.read(id)?);
                return Err(StoreError::NotFound { id: id.clone() }.into());
            };
            resumed::directory(store, id, &session.meta, &working_dir(None)?)
        }
        (None, _) => working_dir(wanted),
    }
}

/// A directory of this machine, relative to where the program was started.
pub(crate) fn working_dir(directory: Option<&Path>) -> Result<PathBuf> {
    let current = std::env::current_dir().context("the current directory is gone")?;
    let wanted = match directory {
        None => current,
        Some(dir) => current.join(dir),
    };
    let refused = || format!("cannot change to the directory {}", wanted.display());
    let resolved = wanted.canonicalize().with_context(refused)?;
    if !resolved.is_dir() {
        return Err(io::Error::from(io::ErrorKind::NotADirectory)).with_context(refused);
    }
    Ok(resolved)
}

/// The working directory of a session that a client stores. It may exist on the client's machine only.
fn client_dir(directory: Option<&Path>, initial: &str) -> Result<PathBuf> {
    let wanted = directory.unwrap_or(Path::new(initial));
    Ok(if wanted.is_dir() { working_dir(Some(wanted))? } else { wanted.to_path_buf() })
}

/// The last working directory in the log of a session that a client stores.
fn last_directory(client: &ClientSession) -> Option<String> {
    let events = client.stored.iter().flat_map(hangar_store::client_session::StoredSession::events);
    let directories = events.filter_map(|event| match event.body() {
        Body::SessionStart(start) => start.context.clone(),
        Body::SessionResume(resume) => resume.context.clone(),
        Body::ContextChanged(changed) => Some(changed.directory.clone()),
        _ => None,
    });
    directories.last().map(|context| context.cwd)
}
