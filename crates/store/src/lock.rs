//! The lock that makes one process the writer of a session.
//!
//! It is an advisory lock of the operating system on a file in the session's directory, so it ends with its process,
//! however that ends. The file also says which process holds it, for the error that others get.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Duration;

use hangar_disk::{FileKind, Folder, Identity};

pub(crate) const LOCK_FILE: &str = ".lock";

/// A session may be deleted, and even made anew, between opening its lock file and locking it.
const ATTEMPTS: usize = 8;

/// A process that was killed while it started a child leaves its lock with that child until the child runs its program,
/// which is a matter of milliseconds.
const AFTERLIFE: Duration = Duration::from_secs(2);
const AFTERLIFE_STEP: Duration = Duration::from_millis(5);

/// Maximum number of entries that are checked in a session's directory.
const MAX_BESIDE: usize = 10_000;

/// Longest process id that is worth reading.
const PID_BYTES: u64 = 16;

#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing would do, were it not for a child process that is just being started by another thread: until it
        // runs its program it shares the open file, and with it the lock.
        let _ = self.file.unlock();
    }
}

#[derive(Debug)]
pub(crate) enum LockError {
    Held {
        pid: Option<u32>,
    },
    /// The session's directory does not exist, or no longer.
    Gone,
    Io(io::Error),
}

impl Lock {
    /// Takes the lock, or returns its holder. The lock of a process that has ended is waited for.
    pub(crate) fn acquire(folder: &Folder) -> Result<Self, LockError> {
        let mut waited = Duration::ZERO;
        loop {
            match Self::try_acquire(folder) {
                Err(LockError::Held { pid: Some(pid) }) if waited < AFTERLIFE && is_gone(pid) => {
                    std::thread::sleep(AFTERLIFE_STEP);
                    waited += AFTERLIFE_STEP;
                }
                settled => return settled,
            }
        }
    }

    fn try_acquire(folder: &Folder) -> Result<Self, LockError> {
        for _ in 0..ATTEMPTS {
            let opened = match folder.update(LOCK_FILE) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => folder.create_new(LOCK_FILE),
                opened => opened,
            };
            let mut file = match opened {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(LockError::Gone),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                // Only a file can be locked, so no lock is lost with it.
                Err(error) if clear(folder).is_err() => return Err(LockError::Io(error)),
                Err(_) => continue,
            };
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(LockError::Held { pid: read_pid(&mut file) }),
                Err(TryLockError::Error(error)) => return Err(LockError::Io(error)),
            }
            let mut lock = Self { file };
            if !is_in(&lock.file, folder) {
                continue;
            }
            if has_other_names(&lock.file) {
                // Text written into it would also be in a file of others.
                folder.remove(LOCK_FILE).map_err(LockError::Io)?;
                continue;
            }
            if let Some(pid) = foreign_holder(folder) {
                return Err(LockError::Held { pid: Some(pid) });
            }
            write_pid(&mut lock.file).map_err(LockError::Io)?;
            return Ok(lock);
        }
        Err(LockError::Gone)
    }
}

/// Removes an entry that has the name of the lock and is not a file.
fn clear(folder: &Folder) -> io::Result<()> {
    match folder.kind(LOCK_FILE)? {
        FileKind::File => Err(io::ErrorKind::AlreadyExists.into()),
        // In one step, and a directory with something in it is kept under another name.
        FileKind::Folder | FileKind::Other => folder.replace(LOCK_FILE, ""),
    }
}

fn has_other_names(file: &File) -> bool {
    file.metadata().is_ok_and(|metadata| std::os::unix::fs::MetadataExt::nlink(&metadata) > 1)
}

fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(format!("{}\n", std::process::id()).as_bytes())
}

fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(PID_BYTES).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

/// Whether a process has certainly ended. A zombie has: only its parent has not reaped it yet.
fn is_gone(pid: u32) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')),
        // Without procfs nothing is known, and nothing is waited for.
        Err(error) => error.kind() == io::ErrorKind::NotFound && Path::new("/proc/self/stat").exists(),
    }
}

/// Whether the locked file is still the one that others will find under this name.
fn is_in(file: &File, folder: &Folder) -> bool {
    match (file.metadata(), folder.status(LOCK_FILE)) {
        (Ok(ours), Ok(theirs)) => Identity::of(&ours) == Identity::of(&theirs),
        _ => false,
    }
}

/// Copilot CLI, with which a home may be shared, marks a session it writes by a locked file `inuse.<pid>.hold`.
fn foreign_holder(folder: &Folder) -> Option<u32> {
    for (name, _) in folder.entries(MAX_BESIDE).ok()? {
        let pid =
            name.to_str().and_then(|name| name.strip_prefix("inuse.")?.strip_suffix(".hold")?.parse().ok());
        let Some(pid) = pid else { continue };
        let held = folder.read(&name).map(|file| file.try_lock_shared());
        if matches!(held, Ok(Err(TryLockError::WouldBlock))) {
            return Some(pid);
        }
    }
    None
}
