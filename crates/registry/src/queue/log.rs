//! The queue on disk.
//!
//! ```text
//! <dir>/
//!     queue.jsonl      the records, appended to; a compaction replaces the file
//!     lock             held by the process that reads and appends
//!     owners/<id>      held by a process as long as it has work in the queue
//! ```
//!
//! Any process of the home may append, one at a time: it takes the lock, folds what others have appended, decides,
//! appends, and lets go. So there is one queue for all processes. A record is a whole line of one `write(2)`, so it survives
//! the death of the process; milestones are synced. An unfinished last line is cut off by the next process that has the lock.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use hangar_disk::{ensure_dir, private};
use hangar_scheduler::item::{ItemId, OwnerId};
use hangar_scheduler::limits::Limits;
use hangar_scheduler::queue::Queue;
use hangar_scheduler::record::{QueueFact, QueueRecord};
use hangar_scheduler::state::ItemStatus;
use jiff::Timestamp;

use crate::directory_lock::{DirectoryLock, SharedFileError, io_error};

const RECORDS: &str = "queue.jsonl";
const OWNERS: &str = "owners";

/// Size from which a log is compacted.
const COMPACT_BYTES: u64 = 4 << 20;
/// A compacted log may grow to this many times its size before it is compacted again.
const GROWTH: u64 = 4;
/// Maximum size of a log. Compaction keeps it far below.
const MAX_LOG_BYTES: u64 = 512 << 20;
/// Time for which the lock is waited for. It is held for a few writes.
const LOCK_TIME: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    #[error(transparent)]
    File(#[from] SharedFileError),
    #[error("line {line} of {} is no record: {why}; move the file away to begin with an empty queue", path.display())]
    Corrupt { path: PathBuf, line: usize, why: String },
    #[error("{} has grown to its limit", .0.display())]
    Full(PathBuf),
}

/// The log, with the queue as far as it was read.
pub struct QueueLog {
    dir: PathBuf,
    path: PathBuf,
    lock: DirectoryLock,
    queue: Queue,
    read: ReadTo,
    /// The file that was read, kept open: as long as it is, no file that replaces it can have its inode.
    pinned: Option<File>,
    compact_bytes: u64,
    owner: OwnerId,
    /// Other processes that have work in the queue, as far as the log tells.
    others: BTreeSet<OwnerId>,
    /// Grants since they were last taken.
    grants: Grants,
    /// Locked while this process has work in the queue.
    presence: Option<File>,
}

/// Items that got a slot.
#[derive(Debug, PartialEq, Eq)]
pub enum Grants {
    Items(Vec<ItemId>),
    /// The log was read from its beginning, so any item may have got one.
    Any,
}

/// Position up to which the log was read.
#[derive(Debug, Default)]
struct ReadTo {
    /// Device and inode of the file.
    file: Option<(u64, u64)>,
    bytes: u64,
    lines: usize,
    /// Size of the file after it was compacted.
    compacted: u64,
}

impl QueueLog {
    pub fn open(dir: PathBuf, limits: Limits) -> Result<Self, QueueError> {
        let lock = DirectoryLock::open(&dir, LOCK_TIME)?;
        Ok(Self {
            path: dir.join(RECORDS),
            lock,
            queue: Queue::new(limits),
            read: ReadTo::default(),
            pinned: None,
            compact_bytes: COMPACT_BYTES,
            owner: OwnerId(uuid::Uuid::new_v4().to_string()),
            others: BTreeSet::new(),
            grants: Grants::Items(Vec::new()),
            presence: None,
            dir,
        })
    }

    /// Compacts the log from another size on.
    pub fn compact_from(&mut self, bytes: u64) {
        self.compact_bytes = bytes;
    }

    /// The queue as it was when this process last had the lock.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    pub fn set_limits(&mut self, limits: Limits) {
        self.queue.set_limits(limits);
    }

    pub fn owner(&self) -> &OwnerId {
        &self.owner
    }

    /// Whether another process has appended since this one had the lock.
    pub fn is_behind(&self) -> bool {
        let identity = fs::metadata(&self.path).ok().map(|found| ((found.dev(), found.ino()), found.len()));
        identity != self.read.file.map(|file| (file, self.read.bytes))
    }

    /// Appends the facts that follow from the current queue, and the decisions that follow from those.
    pub fn transact(
        &mut self,
        now: Timestamp,
        facts: impl FnOnce(&Queue, &OwnerId) -> Vec<QueueFact>,
    ) -> Result<(), QueueError> {
        self.lock.lock()?;
        let done = self.locked(now, facts);
        self.lock.unlock();
        if done.is_err() {
            // The decisions may not have been written: the state is read again from the file.
            self.forget();
        }
        done
    }

    /// Parks the work of processes that have ended, and appends the decisions that time alone has made possible.
    pub fn refresh(&mut self, now: Timestamp) -> Result<(), QueueError> {
        self.transact(now, |_, _| Vec::new())?;
        let gone = self.gone_owners();
        match gone.is_empty() {
            true => Ok(()),
            false => self
                .transact(now, |_, _| gone.into_iter().map(|owner| QueueFact::OwnerGone { owner }).collect()),
        }
    }

    fn locked(
        &mut self,
        now: Timestamp,
        facts: impl FnOnce(&Queue, &OwnerId) -> Vec<QueueFact>,
    ) -> Result<(), QueueError> {
        let mut file = self.catch_up()?;
        // The log has milliseconds. What is decided here must be what others read.
        let now = Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now);
        let mut records: Vec<QueueRecord> = Vec::new();
        for fact in facts(&self.queue, &self.owner) {
            if matches!(fact, QueueFact::Enqueued { .. } | QueueFact::Counted { .. }) {
                self.be_present()?;
            }
            self.note(&mut records, now, fact)?;
        }
        let decisions = self.queue.next(now);
        decisions.iter().for_each(|decision| self.granted(&decision.item));
        let decided = decisions.iter().flat_map(hangar_scheduler::queue::QueueDecision::facts);
        records.extend(decided.map(|fact| QueueRecord { at: now, fact }));
        if records.is_empty() {
            return Ok(());
        }
        self.append(&mut file, &records)?;
        if self.read.bytes > self.compact_bytes.max(self.read.compacted.saturating_mul(GROWTH)) {
            self.compact(now)?;
        }
        Ok(())
    }

    /// Applies a fact as others will read it.
    fn note(
        &mut self,
        records: &mut Vec<QueueRecord>,
        at: Timestamp,
        fact: QueueFact,
    ) -> Result<(), QueueError> {
        let line = serde_json::to_vec(&QueueRecord { at, fact });
        let record: Result<QueueRecord, _> = line.and_then(|line| serde_json::from_slice(&line));
        let record = record.map_err(|error| io_error("writing", &self.path)(error.into()))?;
        self.apply(&record);
        records.push(record);
        Ok(())
    }

    fn apply(&mut self, record: &QueueRecord) {
        match &record.fact {
            QueueFact::Enqueued { owner, .. } | QueueFact::Counted { owner, .. }
                if *owner != self.owner && !self.others.contains(owner) =>
            {
                self.others.insert(owner.clone());
            }
            QueueFact::Granted { item } => self.granted(item),
            QueueFact::OwnerGone { owner } => drop(self.others.remove(owner)),
            QueueFact::Compacted { state } => {
                let present =
                    state.items.values().filter(|entry| !matches!(entry.status, ItemStatus::Parked { .. }));
                let others = present.map(|entry| &entry.owner).filter(|owner| **owner != self.owner);
                self.others = others.cloned().collect();
            }
            _ => {}
        }
        self.queue.apply(record);
    }

    fn granted(&mut self, item: &ItemId) {
        if let Grants::Items(items) = &mut self.grants {
            items.push(item.clone());
        }
    }

    /// Items that got a slot since this was last called.
    pub fn take_grants(&mut self) -> Grants {
        std::mem::replace(&mut self.grants, Grants::Items(Vec::new()))
    }

    fn forget(&mut self) {
        self.grants = Grants::Any;
        self.read = ReadTo::default();
        self.others.clear();
        self.queue = Queue::new(self.queue.limits().clone());
    }

    /// Folds what other processes have appended. An unfinished line is one of a process that was killed, since nobody else
    /// writes now.
    fn catch_up(&mut self) -> Result<File, QueueError> {
        let path = self.path.clone();
        let file = private().read(true).append(true).create(true).open(&path);
        let mut file = file.map_err(io_error("opening", &path))?;
        let found = file.metadata().map_err(io_error("reading", &path))?;
        let identity = Some((found.dev(), found.ino()));
        if self.read.file != identity || found.len() < self.read.bytes {
            self.forget();
            self.read.file = identity;
            self.pinned = Some(file.try_clone().map_err(io_error("opening", &path))?);
        }
        if found.len() == self.read.bytes {
            return Ok(file);
        }
        file.seek(SeekFrom::Start(self.read.bytes)).map_err(io_error("reading", &path))?;
        let mut reader = BufReader::new(io::Read::take(&mut file, MAX_LOG_BYTES));
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = reader.read_until(b'\n', &mut line).map_err(io_error("reading", &path))?;
            if !line.ends_with(b"\n") {
                break;
            }
            self.read.lines += 1;
            let record: QueueRecord = serde_json::from_slice(&line).map_err(|error| QueueError::Corrupt {
                path: path.clone(),
                line: self.read.lines,
                why: error.to_string(),
            })?;
            self.apply(&record);
            self.read.bytes += read as u64;
            if matches!(record.fact, QueueFact::Compacted { .. }) {
                self.read.compacted = self.read.bytes;
            }
        }
        file.set_len(self.read.bytes).map_err(io_error("mending", &path))?;
        Ok(file)
    }

    fn append(&mut self, file: &mut File, records: &[QueueRecord]) -> Result<(), QueueError> {
        let bytes = lines(records).map_err(|error| io_error("writing", &self.path)(error))?;
        let after = self.read.bytes + bytes.len() as u64;
        if after > MAX_LOG_BYTES {
            return Err(QueueError::Full(self.path.clone()));
        }
        if let Err(error) = file.write_all(&bytes) {
            // Half a line would swallow the next one. If even this fails, the next process cuts it off.
            let _ = file.set_len(self.read.bytes);
            return Err(io_error("writing", &self.path)(error).into());
        }
        if records.iter().any(|record| record.fact.is_milestone()) {
            file.sync_data().map_err(io_error("syncing", &self.path))?;
        }
        self.read.bytes = after;
        self.read.lines += records.len();
        Ok(())
    }

    /// Replaces the log by the state, in one step.
    fn compact(&mut self, at: Timestamp) -> Result<(), QueueError> {
        let state = Box::new(self.queue.compacted());
        let bytes = lines(&[QueueRecord { at, fact: QueueFact::Compacted { state } }]);
        let bytes = bytes.map_err(|error| io_error("writing", &self.path)(error))?;
        hangar_disk::replace(&self.path, &bytes).map_err(io_error("replacing", &self.path))?;
        // The name is safe only with its directory.
        let synced = File::open(&self.path).and_then(|file| file.sync_all());
        synced.and_then(|()| File::open(&self.dir)?.sync_all()).map_err(io_error("syncing", &self.path))?;
        self.forget();
        self.catch_up().map(drop)
    }

    // ---- owners ----

    fn owner_path(&self, owner: &OwnerId) -> PathBuf {
        self.dir.join(OWNERS).join(&owner.0)
    }

    /// Shows other processes that this one is there, until it ends.
    fn be_present(&mut self) -> Result<(), QueueError> {
        if self.presence.is_some() {
            return Ok(());
        }
        let path = self.owner_path(&self.owner);
        ensure_dir(&self.dir.join(OWNERS)).map_err(io_error("creating", &path))?;
        let file = private().write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(io_error("creating", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(SharedFileError::Locked(path).into()),
            Err(TryLockError::Error(error)) => return Err(io_error("locking", &path)(error).into()),
        }
        self.presence = Some(file);
        Ok(())
    }

    /// Whether a process has ended and left work in the queue.
    pub fn has_gone_owner(&self) -> bool {
        self.others.iter().any(|owner| self.is_gone(owner))
    }

    fn gone_owners(&self) -> Vec<OwnerId> {
        self.others.iter().filter(|owner| self.is_gone(owner)).cloned().collect()
    }

    fn is_gone(&self, owner: &OwnerId) -> bool {
        let path = self.owner_path(owner);
        let file = match File::open(&path) {
            Ok(file) => file,
            // A process that has no descriptor left, for one, knows nothing about others.
            Err(error) => return error.kind() == io::ErrorKind::NotFound,
        };
        let gone = file.try_lock_shared().is_ok();
        if gone {
            // Ids are never used again, and a missing file says the same.
            let _ = fs::remove_file(&path);
        }
        gone
    }
}

impl Drop for QueueLog {
    fn drop(&mut self) {
        if let Some(presence) = self.presence.take() {
            // A child that is just being started shares the open file until it runs its program.
            let _ = presence.unlock();
            let _ = fs::remove_file(self.owner_path(&self.owner));
        }
    }
}

fn lines(records: &[QueueRecord]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for record in records {
        serde_json::to_writer(&mut bytes, record)?;
        bytes.push(b'\n');
    }
    Ok(bytes)
}
