//! Snapshots of files before tools changed them: contents by their hash, and a line per change.
//!
//! ```text
//! rewind-file-snapshots/
//!     changes.jsonl    one line per file and call: what it was before and after, by hash
//!     backups/<hash>   contents before a change, each once
//! ```
//!
//! The folder comes into being with the first change; a session that writes nothing has none.

use parking_lot::Mutex;
use std::collections::HashSet;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use hangar_disk::Folder;
use serde::{Deserialize, Serialize};

const DIR: &str = "rewind-file-snapshots";
const BACKUPS: &str = "backups";
const CHANGES: &str = "changes.jsonl";

/// The largest file that is kept.
const MAX_FILE: u64 = 10 << 20;
/// The most that is kept for one session, in bytes and in contents.
const MAX_BYTES: u64 = 256 << 20;
const MAX_CONTENTS: usize = 2000;
/// Maximum number of lines and bytes that are read of `changes.jsonl`.
const MAX_CHANGES: usize = 100_000;
const MAX_CHANGES_BYTES: u64 = 64 << 20;
/// Characters of a hash.
const HASH_CHARS: usize = 64;

/// A file before or after a change.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Version {
    /// There was no such file.
    Absent,
    /// Its contents have this hash.
    Content(String),
    /// It was too large, or no plain file, or the session had kept its share.
    Unknown,
}

/// Change of one file by one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileChange {
    pub call_id: String,
    pub path: PathBuf,
    pub before: Version,
    pub after: Version,
    #[serde(default)]
    pub lines_added: u64,
    #[serde(default)]
    pub lines_removed: u64,
}

/// A file as a call finds it or leaves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileState {
    Absent,
    Content(Vec<u8>),
    /// No plain file, too large, or not to be read.
    Unknown,
}

impl FileState {
    /// The largest content that can be kept.
    pub const LIMIT: u64 = MAX_FILE;

    /// State of a file from a read of at most one byte over the limit.
    pub fn from_read(read: io::Result<Vec<u8>>) -> Self {
        match read {
            Ok(bytes) if bytes.len() as u64 <= MAX_FILE => Self::Content(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::Absent,
            Ok(_) | Err(_) => Self::Unknown,
        }
    }

    pub fn version(&self) -> Version {
        match self {
            Self::Absent => Version::Absent,
            Self::Content(bytes) => Version::Content(hash(bytes)),
            Self::Unknown => Version::Unknown,
        }
    }
}

/// The snapshots of one session. All of it may have been written by others: a change is believed no further than
/// [`restore`](crate::rewind::restore) can check it.
#[derive(Debug)]
pub struct Snapshots {
    session: Folder,
    /// Contents that are already stored, once listed.
    kept: Mutex<Option<StoredCopies>>,
}

#[derive(Debug, Default)]
struct StoredCopies {
    hashes: HashSet<String>,
    bytes: u64,
}

impl Snapshots {
    /// Of the session with this folder.
    pub fn new(session: Folder) -> Self {
        Self { session, kept: Mutex::new(None) }
    }

    pub fn exist(&self) -> bool {
        self.session.folder(DIR).is_ok()
    }

    /// Keeps a file as it was found.
    pub fn keep(&self, found: &FileState) -> io::Result<Version> {
        let FileState::Content(bytes) = found else { return Ok(found.version()) };
        let hash = hash(bytes);
        let mut slot = self.kept.lock();
        let kept = match &mut *slot {
            Some(kept) => kept,
            empty => empty.insert(self.look_up()?),
        };
        if kept.hashes.contains(&hash) {
            return Ok(Version::Content(hash));
        }
        let size = bytes.len() as u64;
        if kept.bytes + size > MAX_BYTES || kept.hashes.len() >= MAX_CONTENTS {
            return Ok(Version::Unknown);
        }
        self.session.ensure_folder(DIR)?.ensure_folder(BACKUPS)?.replace(&hash, bytes)?;
        kept.bytes += size;
        kept.hashes.insert(hash.clone());
        Ok(Version::Content(hash))
    }

    fn look_up(&self) -> io::Result<StoredCopies> {
        let mut kept = StoredCopies::default();
        let backups = match self.session.folder(Path::new(DIR).join(BACKUPS)) {
            Ok(backups) => backups,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(kept),
            Err(error) => return Err(error),
        };
        for (name, _) in backups.entries(MAX_CONTENTS)? {
            kept.bytes += backups.status(&name)?.len();
            kept.hashes.extend(name.into_string());
        }
        Ok(kept)
    }

    /// Records the change of a file by a call; the earlier content was stored before.
    pub fn record(&self, change: &FileChange) -> io::Result<()> {
        let mut line = serde_json::to_vec(change)?;
        line.push(b'\n');
        self.session.ensure_folder(DIR)?.append_or_create(CHANGES)?.write_all(&line)
    }

    /// All changes, in the order in which they were made. A line that is none is passed over.
    pub fn changes(&self) -> io::Result<Vec<FileChange>> {
        let file = match self.session.read(Path::new(DIR).join(CHANGES)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut changes = Vec::new();
        for line in BufReader::new(file.take(MAX_CHANGES_BYTES)).split(b'\n').take(MAX_CHANGES) {
            changes.extend(serde_json::from_slice(&line?).ok());
        }
        Ok(changes)
    }

    /// Contents that were kept. `None` where the name is none of ours, or the content is not what was kept under it.
    pub fn content(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        if name.len() != HASH_CHARS || !name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(None);
        }
        let backups = self.session.folder(Path::new(DIR).join(BACKUPS))?;
        let bytes = backups.read_bytes(name, MAX_FILE + 1)?;
        Ok((hash(&bytes) == name).then_some(bytes))
    }
}

fn hash(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
