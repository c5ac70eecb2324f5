//! What files were before tools changed them: contents by their hash, and a line per change.
//!
//! ```text
//! rewind-file-snapshots/
//!     changes.jsonl    one line per file and call: what it was before and after, by hash
//!     backups/<hash>   contents before a change, each once
//! ```
//!
//! The folder comes into being with the first change; a session that writes nothing has none.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use hangar_disk as disk;

/// The largest file that is kept.
const MAX_FILE: u64 = 10 << 20;
/// The most that is kept for one session, in bytes and in contents.
const MAX_BYTES: u64 = 256 << 20;
const MAX_CONTENTS: usize = 2000;
/// Lines of `changes.jsonl` that are looked at.
const MAX_CHANGES: usize = 100_000;

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

/// What one call did to one file.
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

/// The snapshots of one session.
#[derive(Debug)]
pub struct Snapshots {
    dir: PathBuf,
    /// What is kept already, once it was looked up.
    kept: Mutex<Option<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    hashes: HashSet<String>,
    bytes: u64,
}

impl Snapshots {
    /// Of the session with this folder.
    pub fn new(session_dir: &Path) -> Self {
        Self { dir: session_dir.join("rewind-file-snapshots"), kept: Mutex::new(None) }
    }

    pub fn exist(&self) -> bool {
        self.dir.is_dir()
    }

    /// Keeps a file as it is now.
    pub fn keep(&self, path: &Path) -> io::Result<Version> {
        let Some(bytes) = read(path)? else { return Ok(version_of_unread(path)) };
        let hash = hash(&bytes);
        let mut slot = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
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
        let backups = self.dir.join("backups");
        disk::ensure_dir(&backups)?;
        disk::replace(&backups.join(&hash), &bytes)?;
        kept.bytes += size;
        kept.hashes.insert(hash.clone());
        Ok(Version::Content(hash))
    }

    fn look_up(&self) -> io::Result<Kept> {
        let mut kept = Kept::default();
        let entries = match std::fs::read_dir(self.dir.join("backups")) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(kept),
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            kept.bytes += entry.metadata()?.len();
            kept.hashes.extend(entry.file_name().into_string());
        }
        Ok(kept)
    }

    /// Puts on record what a call did to a file that was kept before it.
    pub fn record(&self, change: &FileChange) -> io::Result<()> {
        disk::ensure_dir(&self.dir)?;
        let mut line = serde_json::to_vec(change)?;
        line.push(b'\n');
        disk::private().append(true).create(true).open(self.dir.join("changes.jsonl"))?.write_all(&line)
    }

    /// All changes, in the order in which they were made. A line that is none is passed over.
    pub fn changes(&self) -> io::Result<Vec<FileChange>> {
        let file = match File::open(self.dir.join("changes.jsonl")) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut changes = Vec::new();
        for line in BufReader::new(file).lines().take(MAX_CHANGES) {
            changes.extend(serde_json::from_str(&line?).ok());
        }
        Ok(changes)
    }

    /// Contents that were kept.
    pub fn content(&self, hash: &str) -> io::Result<Vec<u8>> {
        let plain = hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !plain {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("`{hash}` is no hash")));
        }
        let mut bytes = Vec::new();
        File::open(self.dir.join("backups").join(hash))?.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// A file as it is now, without keeping it.
pub fn version(path: &Path) -> io::Result<Version> {
    Ok(match read(path)? {
        Some(bytes) => Version::Content(hash(&bytes)),
        None => version_of_unread(path),
    })
}

/// The bytes of a plain file that is not too large.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() && metadata.len() <= MAX_FILE => {}
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= MAX_FILE).then_some(bytes))
}

fn version_of_unread(path: &Path) -> Version {
    let absent =
        matches!(std::fs::symlink_metadata(path), Err(error) if error.kind() == io::ErrorKind::NotFound);
    if absent { Version::Absent } else { Version::Unknown }
}

fn hash(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
