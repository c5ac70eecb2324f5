//! Endpoints of running processes: where other processes of the same user join the sessions of a terminal or of a portal.
//!
//! Each is a file below the home, which only its owner reads and which confined commands do not see. It says where the
//! process listens and has the token that it requires. The process holds a lock on the file, so the file of one that was
//! killed is recognised and removed by the next reader.

mod announcement;
mod job;

use std::fs::{File, TryLockError};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use hangar_store::SessionId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub(crate) use announcement::{Announcement, TerminalPresence};
pub(crate) use job::{JobPresence, job_views};

/// Largest file that is read.
const MAX_FILE: u64 = 4096;
/// Maximum number of endpoints that are listed.
const MAX_LISTED: usize = 256;

/// Address and token of a process that listens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessEndpoint {
    pub(crate) pid: u32,
    pub(crate) address: SocketAddr,
    /// Token that the process requires. `None` where it serves anyone who reaches the address.
    pub(crate) token: Option<String>,
}

impl ProcessEndpoint {
    /// Whether it is the endpoint of this process.
    pub(crate) fn is_own(&self) -> bool {
        self.pid == std::process::id()
    }
}

fn sessions_dir(home: &Path) -> PathBuf {
    home.join("run/sessions")
}

fn portals_dir(home: &Path) -> PathBuf {
    home.join("run/portals")
}

/// Endpoint of the terminal that has a session open.
pub(crate) fn of_session(home: &Path, id: &SessionId) -> Option<ProcessEndpoint> {
    read(&sessions_dir(home).join(format!("{id}.json")))
}

/// Sessions that terminals have open.
pub(crate) fn open_sessions(home: &Path) -> Vec<SessionId> {
    let files = files(&sessions_dir(home));
    let live = files.filter(|file| read::<ProcessEndpoint>(file).is_some());
    live.filter_map(|file| file.file_stem()?.to_str()?.parse().ok()).take(MAX_LISTED).collect()
}

/// Endpoints of the portals that are up.
pub(crate) fn portals(home: &Path) -> Vec<ProcessEndpoint> {
    files(&portals_dir(home)).filter_map(|file| read(&file)).take(MAX_LISTED).collect()
}

fn files(dir: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "json"))
}

/// Reads the file of a process that is alive, and removes that of one that is not.
fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let file = File::open(path).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {}
        Ok(()) | Err(TryLockError::Error(_)) => {
            announcement::remove(path, &file);
            return None;
        }
    }
    serde_json::from_str(&hangar_disk::read_text(path, MAX_FILE).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(port: u16) -> ProcessEndpoint {
        ProcessEndpoint { pid: 7, address: ([127, 0, 0, 1], port).into(), token: Some("secret".to_owned()) }
    }

    #[test]
    fn an_endpoint_is_found_as_long_as_its_process_holds_it() {
        let home = tempfile::tempdir().unwrap();
        let id: SessionId = "s".parse().unwrap();
        assert_eq!(of_session(home.path(), &id), None);
        let held = Announcement::of_session(home.path(), &id, &endpoint(1)).unwrap();
        assert_eq!(of_session(home.path(), &id), Some(endpoint(1)));
        assert_eq!(open_sessions(home.path()), std::slice::from_ref(&id));
        drop(held);
        assert_eq!(of_session(home.path(), &id), None);
        assert_eq!(open_sessions(home.path()), []);
    }

    #[test]
    fn the_file_of_a_killed_process_is_removed() {
        let home = tempfile::tempdir().unwrap();
        let file = portals_dir(home.path()).join("7.json");
        hangar_disk::keep(&file, serde_json::to_string(&endpoint(1)).unwrap()).unwrap();
        assert_eq!(portals(home.path()), []);
        assert!(!file.exists());
    }

    #[test]
    fn the_later_announcement_of_a_session_stays_when_the_earlier_goes() {
        let home = tempfile::tempdir().unwrap();
        let id: SessionId = "s".parse().unwrap();
        let earlier = Announcement::of_session(home.path(), &id, &endpoint(1)).unwrap();
        let _later = Announcement::of_session(home.path(), &id, &endpoint(2)).unwrap();
        drop(earlier);
        assert_eq!(of_session(home.path(), &id), Some(endpoint(2)));
    }

    #[test]
    fn only_the_owner_reads_the_file() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let _held = Announcement::of_portal(home.path(), &endpoint(1)).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let dir = portals_dir(home.path());
        assert_eq!((mode(&dir), mode(&dir.join("7.json"))), (0o700, 0o600));
    }
}
