//! Files that people edit beside us: read whole, changed under a lock, replaced in one step.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{TrackerError, TrackerErrorKind};
use crate::issue::{Issue, IssueId};
use crate::{IssueReader, Reading};

/// Lock of the files of a tracker within this process. Hundreds of agents ask at once: without it, each would have a thread of its
/// own that waits, with buffers as large as the files.
pub(crate) type Gate = Arc<tokio::sync::Mutex<()>>;

/// Issues that are kept in files.
pub(crate) trait IssueFiles: Clone + Send + Sync + 'static {
    fn gate(&self) -> &Gate;

    /// All issues, with their comments.
    fn issues(&self) -> Result<Arc<Vec<Issue>>, TrackerError>;

    /// Issues with certain ids, with their comments. Ids that are unknown are left out.
    fn issues_with(&self, ids: &BTreeSet<IssueId>) -> Result<Vec<Issue>, TrackerError> {
        Ok(self.issues()?.iter().filter(|issue| ids.contains(&issue.id)).cloned().collect())
    }

    /// Works on the files where blocking is allowed, one request after the other.
    fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, TrackerError> + Send + 'static,
    ) -> Reading<T> {
        let files = self.clone();
        Box::pin(async move {
            let _turn = Arc::clone(files.gate()).lock_owned().await;
            let done = tokio::task::spawn_blocking(move || work(&files)).await;
            done.unwrap_or_else(|error| {
                Err(TrackerError::new(TrackerErrorKind::Transport, format!("reading issues: {error}")))
            })
        })
    }
}

impl<T: IssueFiles> IssueReader for T {
    fn by_states(&self, states: &[String]) -> Reading<Vec<Issue>> {
        if states.is_empty() {
            return Box::pin(async { Ok(Vec::new()) });
        }
        let states = states.to_vec();
        self.blocking(move |files| {
            let issues = files.issues()?;
            let found = issues.iter().filter(|issue| issue.is_in(&states));
            Ok(found.map(|issue| Issue { comments: None, ..issue.clone() }).collect())
        })
    }

    fn by_ids(&self, ids: &[IssueId]) -> Reading<Vec<Issue>> {
        if ids.is_empty() {
            return Box::pin(async { Ok(Vec::new()) });
        }
        let ids: BTreeSet<IssueId> = ids.iter().cloned().collect();
        self.blocking(move |files| {
            let with_comments =
                |issue: Issue| Issue { comments: Some(issue.comments.unwrap_or_default()), ..issue };
            Ok(files.issues_with(&ids)?.into_iter().map(with_comments).collect())
        })
    }
}

/// Largest file of issues.
const MAX_BYTES: u64 = 64 << 20;
/// Time for which the lock is waited for. It is held for one write.
const LOCK_TIME: Duration = Duration::from_secs(10);
const LOCK_STEP: Duration = Duration::from_millis(5);

pub(crate) fn transport(doing: &str, path: &Path, error: &io::Error) -> TrackerError {
    let kind = match error.kind() {
        io::ErrorKind::NotFound => TrackerErrorKind::NotFound,
        _ => TrackerErrorKind::Transport,
    };
    TrackerError::new(kind, format!("{doing} {}: {error}", path.display()))
}

pub(crate) fn read(path: &Path) -> Result<String, TrackerError> {
    let length = fs::metadata(path).map_err(|error| transport("reading", path, &error))?.len();
    if length > MAX_BYTES {
        let message = format!("{} is larger than {MAX_BYTES} bytes", path.display());
        return Err(TrackerError::new(TrackerErrorKind::Payload, message));
    }
    fs::read_to_string(path).map_err(|error| transport("reading", path, &error))
}

/// Changes a file while no other process of ours does. The lock is that of its directory, so that no file is left beside it.
pub(crate) fn change(
    path: &Path,
    change: impl FnOnce(&str) -> Result<Option<String>, TrackerError>,
) -> Result<(), TrackerError> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let _lock = lock(directory)?;
    match change(&read(path)?)? {
        Some(text) => replace(directory, path, &text).map_err(|error| transport("writing", path, &error)),
        None => Ok(()),
    }
}

fn lock(directory: &Path) -> Result<File, TrackerError> {
    let file = File::open(directory).map_err(|error| transport("opening", directory, &error))?;
    let mut waited = Duration::ZERO;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if waited < LOCK_TIME => {
                std::thread::sleep(LOCK_STEP);
                waited += LOCK_STEP;
            }
            Err(TryLockError::WouldBlock) => {
                let message = format!("another process holds {} for too long", directory.display());
                return Err(TrackerError::new(TrackerErrorKind::Transport, message));
            }
            Err(TryLockError::Error(error)) => return Err(transport("locking", directory, &error)),
        }
    }
}

/// Readers see the old file or the new one. The file keeps its permissions.
fn replace(directory: &Path, path: &Path, text: &str) -> io::Result<()> {
    let permissions = fs::metadata(path)?.permissions();
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.as_file().set_permissions(permissions)?;
    file.as_file().sync_data()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
