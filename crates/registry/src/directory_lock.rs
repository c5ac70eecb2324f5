//! The lock of a directory that several processes append to.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hangar_disk::{ensure_dir, private};

const NAME: &str = "lock";
/// Time between two attempts.
const STEP: Duration = Duration::from_millis(2);

/// Failure of a file that processes share.
#[derive(Debug, thiserror::Error)]
pub enum SharedFileError {
    #[error("{doing} {}: {source}", path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("another process holds {} for too long", .0.display())]
    Locked(PathBuf),
}

/// The error of an operation on a path.
pub(crate) fn io_error<'a>(
    doing: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> SharedFileError + 'a {
    move |source| SharedFileError::Io { doing, path: path.to_owned(), source }
}

pub(crate) struct DirectoryLock {
    path: PathBuf,
    file: File,
    /// Time for which the lock is waited for.
    limit: Duration,
}

impl DirectoryLock {
    /// Opens the lock of a directory, which is created if it is missing.
    pub(crate) fn open(dir: &Path, limit: Duration) -> Result<Self, SharedFileError> {
        ensure_dir(dir).map_err(io_error("creating", dir))?;
        let path = dir.join(NAME);
        let file = private().read(true).write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(io_error("opening", &path))?;
        Ok(Self { path, file, limit })
    }

    pub(crate) fn lock(&self) -> Result<(), SharedFileError> {
        let mut waited = Duration::ZERO;
        loop {
            match self.file.try_lock() {
                Ok(()) => return Ok(()),
                Err(TryLockError::WouldBlock) if waited < self.limit => {
                    std::thread::sleep(STEP);
                    waited += STEP;
                }
                Err(TryLockError::WouldBlock) => return Err(SharedFileError::Locked(self.path.clone())),
                Err(TryLockError::Error(error)) => return Err(io_error("locking", &self.path)(error)),
            }
        }
    }

    pub(crate) fn unlock(&self) {
        // The lock ends with the process in any case.
        let _ = self.file.unlock();
    }
}
