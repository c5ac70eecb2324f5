//! Runs on disk.
//!
//! ```text
//! <root>/<run>/
//!     run.jsonl        the records of the run, only ever appended to
//!     worktrees/       git worktrees that the run made
//!     .lock            held by the process that carries the run out
//! ```
//!
//! The agents' messages are in the logs of their sessions, which belong to others.
//!
//! A record is one `write(2)` of a whole line, so it survives the death of the process. It survives a power cut from the
//! next milestone on: the start and the end of the run and of each work are synced. An unfinished last line is cut off
//! when the run is opened again; a line in the middle that is no record is an error, because a fold over the rest would
//! be another run.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::record::{RunEnd, RunFact, RunId, RunRecord, Subject};

/// Longest record: a prompt, or an entry at the start.
pub const MAX_RECORD_BYTES: usize = 32 << 20;
/// Maximum size of a run's log.
const MAX_LOG_BYTES: u64 = 512 << 20;
/// Size of one read, to which the record that crosses it is added.
const BATCH_BYTES: u64 = 256 << 10;
/// Size of the tail of a log that is read to find its last record.
const TAIL_BYTES: u64 = 64 << 10;
/// Longest name of a run.
const MAX_NAME: usize = 128;

/// A process that was killed while it started a child leaves its lock with that child until the child runs its program,
/// which is a matter of milliseconds.
const AFTERLIFE: Duration = Duration::from_secs(2);
const AFTERLIFE_STEP: Duration = Duration::from_millis(5);
/// Longest process id that is worth reading.
const PID_BYTES: u64 = 16;

const RECORDS: &str = "run.jsonl";
const LOCK: &str = ".lock";

#[derive(Debug, thiserror::Error)]
pub enum RunStoreError {
    #[error("there is no run {0}")]
    NotFound(RunId),
    #[error("run {0} is in use by another process")]
    Busy(RunId),
    #[error("{place} of the log of run {run} is no record: {why}")]
    Corrupt { run: RunId, place: BrokenAt, why: String },
    #[error("the log of run {0} has grown to its limit")]
    Full(RunId),
    /// Another place than a directory cannot be read or written.
    #[error("the log of run {run}: {why}")]
    Remote { run: RunId, why: String },
    #[error("{doing} {}", path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
}

/// Position at which a log is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrokenAt {
    Line(usize),
    Byte(u64),
}

impl std::fmt::Display for BrokenAt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BrokenAt::Line(line) => write!(f, "line {line}"),
            BrokenAt::Byte(byte) => write!(f, "the line at byte {byte}"),
        }
    }
}

fn io_error<'a>(doing: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> RunStoreError + 'a {
    move |source| RunStoreError::Io { doing, path: path.to_owned(), source }
}

/// Keeps runs.
pub trait RunStore: Send + Sync {
    /// Creates a log. Its owner is the only writer.
    fn create(&self, run: &RunId) -> Result<Box<dyn RunLog>, RunStoreError>;

    /// Takes over a log whose process is gone.
    fn open(&self, run: &RunId) -> Result<(Vec<RunRecord>, Box<dyn RunLog>), RunStoreError>;

    /// Reads the records, also while another process writes.
    fn read(&self, run: &RunId) -> Result<Vec<RunRecord>, RunStoreError>;

    /// The newest runs first.
    fn list(&self, most: usize) -> Result<Vec<RunSummary>, RunStoreError>;
}

/// The log of one run, for its one writer.
pub trait RunLog: Send {
    fn append(&mut self, record: &RunRecord) -> Result<(), RunStoreError>;

    /// A directory for what the run makes beside its work.
    fn scratch(&self) -> &Path;
}

/// A run as lists show it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunSummary {
    pub run: RunId,
    pub subject: Subject,
    pub working_directory: PathBuf,
    #[serde(serialize_with = "iso")]
    pub started: Timestamp,
    /// When something was last put on record.
    #[serde(serialize_with = "iso")]
    pub last: Timestamp,
    pub status: RunStatus,
}

fn iso<S: serde::Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{at:.3}"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RunStatus {
    Running,
    /// Its process ended before it did.
    Interrupted,
    Succeeded,
    Failed,
    Canceled,
    LimitReached,
}

impl std::fmt::Display for RunStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            RunStatus::Running => "running",
            RunStatus::Interrupted => "interrupted",
            RunStatus::Succeeded => "succeeded",
            RunStatus::Failed => "failed",
            RunStatus::Canceled => "canceled",
            RunStatus::LimitReached => "limit reached",
        })
    }
}

impl From<&RunEnd> for RunStatus {
    fn from(end: &RunEnd) -> Self {
        match end {
            RunEnd::Succeeded => RunStatus::Succeeded,
            RunEnd::Failed { .. } => RunStatus::Failed,
            RunEnd::Canceled => RunStatus::Canceled,
            RunEnd::LimitReached { .. } => RunStatus::LimitReached,
            RunEnd::Interrupted => RunStatus::Interrupted,
        }
    }
}

/// Runs in a directory.
#[derive(Debug, Clone)]
pub struct FileStore {
    root: PathBuf,
}

impl FileStore {
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    fn dir(&self, run: &RunId) -> Result<PathBuf, RunStoreError> {
        if is_name(&run.0) { Ok(self.root.join(&run.0)) } else { Err(RunStoreError::NotFound(run.clone())) }
    }

    /// Removes the files of a run that no process carries out.
    pub fn delete(&self, run: &RunId) -> Result<(), RunStoreError> {
        let dir = self.dir(run)?;
        if !dir.join(RECORDS).is_file() {
            return Err(RunStoreError::NotFound(run.clone()));
        }
        if is_locked(&dir) {
            return Err(RunStoreError::Busy(run.clone()));
        }
        fs::remove_dir_all(&dir).map_err(io_error("removing", &dir))
    }

    /// One run as lists show it.
    pub fn look(&self, run: &RunId) -> Option<RunSummary> {
        self.summary(run.clone())
    }

    fn summary(&self, run: RunId) -> Option<RunSummary> {
        let dir = self.dir(&run).ok()?;
        let mut file = File::open(dir.join(RECORDS)).ok()?;
        let mut line = Vec::new();
        let mut start = BufReader::new(&mut file).take(MAX_RECORD_BYTES as u64);
        start.read_until(b'\n', &mut line).ok()?;
        let first: First = serde_json::from_slice(&line).ok()?;
        let started = first.at.parse().ok()?;
        let last = last_line(&mut file).and_then(|line| serde_json::from_slice::<Last>(&line).ok());
        let ended = last.as_ref().and_then(|last| last.end.as_ref());
        let status = match ended {
            Some(end) => RunStatus::from(end),
            None if is_locked(&dir) => RunStatus::Running,
            None => RunStatus::Interrupted,
        };
        let last = last.and_then(|last| last.at.parse().ok()).unwrap_or(started);
        let First { order: FirstOrder { subject, working_directory }, .. } = first;
        Some(RunSummary { run, subject, working_directory, started, last, status })
    }
}

/// The part of the first record that lists show.
#[derive(Deserialize)]
struct First {
    at: String,
    order: FirstOrder,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FirstOrder {
    subject: Subject,
    working_directory: PathBuf,
}

/// Whether the last record is the end of the run.
#[derive(Deserialize)]
struct Last {
    at: String,
    #[serde(default, deserialize_with = "end_of_run")]
    end: Option<RunEnd>,
}

/// Other records have an `end` too, of a turn or of a task.
fn end_of_run<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<RunEnd>, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).ok())
}

impl RunStore for FileStore {
    fn create(&self, run: &RunId) -> Result<Box<dyn RunLog>, RunStoreError> {
        let dir = self.dir(run)?;
        ensure_dir(&dir)?;
        let lock = RunLock::take(&dir, run)?;
        let path = dir.join(RECORDS);
        let file =
            private().append(true).create_new(true).open(&path).map_err(io_error("creating", &path))?;
        // The name of a new file is safe only with its directory.
        sync_dir(&dir)?;
        sync_dir(&self.root)?;
        Ok(Box::new(FileLog { run: run.clone(), dir, file, path, length: 0, _lock: lock }))
    }

    fn open(&self, run: &RunId) -> Result<(Vec<RunRecord>, Box<dyn RunLog>), RunStoreError> {
        let dir = self.dir(run)?;
        let path = dir.join(RECORDS);
        if !path.is_file() {
            return Err(RunStoreError::NotFound(run.clone()));
        }
        let lock = RunLock::take(&dir, run)?;
        let (records, length) = read_records(&path, run)?;
        let file = private().append(true).open(&path).map_err(io_error("opening", &path))?;
        file.set_len(length).map_err(io_error("mending", &path))?;
        Ok((records, Box::new(FileLog { run: run.clone(), dir, file, path, length, _lock: lock })))
    }

    fn read(&self, run: &RunId) -> Result<Vec<RunRecord>, RunStoreError> {
        Ok(read_records(&self.dir(run)?.join(RECORDS), run)?.0)
    }

    fn list(&self, most: usize) -> Result<Vec<RunSummary>, RunStoreError> {
        self.page(None, most)
    }
}

impl FileStore {
    /// The newest runs before one of them. Only those that are given are read.
    pub fn page(&self, before: Option<&str>, most: usize) -> Result<Vec<RunSummary>, RunStoreError> {
        let entries = match fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(io_error("listing", &self.root)(error)),
        };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut runs: Vec<RunId> =
            names.filter(|name| before.is_none_or(|before| name.as_str() < before)).map(RunId).collect();
        runs.sort_unstable_by(|a, b| b.cmp(a));
        Ok(runs.into_iter().filter_map(|run| self.summary(run)).take(most).collect())
    }

    /// Records after a position in a log, and the position after them. None if there is nothing new.
    pub fn read_on(&self, run: &RunId, from: u64) -> Result<(Vec<RunRecord>, u64), RunStoreError> {
        let path = self.dir(run)?.join(RECORDS);
        let mut file = open_records(&path, run)?;
        file.seek(SeekFrom::Start(from)).map_err(io_error("reading", &path))?;
        let mut reader = BufReader::new(file.take(MAX_LOG_BYTES.saturating_sub(from)));
        let (mut records, mut at, mut line) = (Vec::new(), from, Vec::new());
        while at - from < BATCH_BYTES {
            line.clear();
            let read = reader.read_until(b'\n', &mut line).map_err(io_error("reading", &path))?;
            if !line.ends_with(b"\n") {
                break;
            }
            let record = serde_json::from_slice(&line).map_err(|error| RunStoreError::Corrupt {
                run: run.clone(),
                place: BrokenAt::Byte(at),
                why: error.to_string(),
            })?;
            records.push(record);
            at += read as u64;
        }
        Ok((records, at))
    }
}

struct FileLog {
    run: RunId,
    dir: PathBuf,
    path: PathBuf,
    file: File,
    length: u64,
    _lock: RunLock,
}

impl RunLog for FileLog {
    fn append(&mut self, record: &RunRecord) -> Result<(), RunStoreError> {
        self.length = append_line(&mut self.file, &self.path, self.length, record, &self.run)?;
        if is_milestone(&record.fact) {
            self.file.sync_data().map_err(io_error("syncing", &self.path))?;
        }
        Ok(())
    }

    fn scratch(&self) -> &Path {
        &self.dir
    }
}

/// Appends a line or nothing of it, and gives the new length.
fn append_line(
    file: &mut File,
    path: &Path,
    length: u64,
    line: &impl Serialize,
    run: &RunId,
) -> Result<u64, RunStoreError> {
    let mut bytes = serde_json::to_vec(line).map_err(|error| io_error("writing", path)(error.into()))?;
    bytes.push(b'\n');
    let after = length + bytes.len() as u64;
    if bytes.len() > MAX_RECORD_BYTES || after > MAX_LOG_BYTES {
        return Err(RunStoreError::Full(run.clone()));
    }
    match file.write_all(&bytes) {
        Ok(()) => Ok(after),
        Err(error) => {
            // Half a line would swallow the next one. If even this fails, opening the run again mends it.
            let _ = file.set_len(length);
            Err(io_error("writing", path)(error))
        }
    }
}

fn is_milestone(fact: &RunFact) -> bool {
    match fact {
        RunFact::RunStarted { .. }
        | RunFact::RunResumed
        | RunFact::WorktreeMade { .. }
        | RunFact::WorkStarted { .. }
        | RunFact::WorkStopped { .. }
        | RunFact::RunEnded { .. } => true,
        RunFact::WorktreeLeft { .. }
        | RunFact::WorktreeFailed { .. }
        | RunFact::SessionStarted { .. }
        | RunFact::SessionRefused { .. }
        | RunFact::Prompted { .. }
        | RunFact::TurnEnded { .. }
        | RunFact::Checked { .. }
        | RunFact::Decided { .. }
        | RunFact::SessionStopped { .. }
        | RunFact::TaskStopped { .. }
        | RunFact::TaskEnded { .. } => false,
    }
}

/// The records of a log, and how long the part of it is that holds them.
fn read_records(path: &Path, run: &RunId) -> Result<(Vec<RunRecord>, u64), RunStoreError> {
    let file = open_records(path, run)?;
    let mut reader = BufReader::new(file.take(MAX_LOG_BYTES));
    let (mut records, mut length, mut line) = (Vec::new(), 0, Vec::new());
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line).map_err(io_error("reading", path))?;
        if read == 0 || !line.ends_with(b"\n") {
            return Ok((records, length));
        }
        let record = serde_json::from_slice(&line).map_err(|error| RunStoreError::Corrupt {
            run: run.clone(),
            place: BrokenAt::Line(records.len() + 1),
            why: error.to_string(),
        })?;
        records.push(record);
        length += read as u64;
    }
}

fn open_records(path: &Path, run: &RunId) -> Result<File, RunStoreError> {
    File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => RunStoreError::NotFound(run.clone()),
        _ => io_error("opening", path)(error),
    })
}

fn last_line(file: &mut File) -> Option<Vec<u8>> {
    let length = file.seek(SeekFrom::End(0)).ok()?;
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES))).ok()?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut tail).ok()?;
    let whole = tail.iter().rposition(|byte| *byte == b'\n')?;
    let start = tail[..whole].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    Some(tail[start..whole].to_vec())
}

/// The lock of a run. It ends with its process, however that ends, and says which process that is.
struct RunLock(File);

impl RunLock {
    fn take(dir: &Path, run: &RunId) -> Result<Self, RunStoreError> {
        let path = dir.join(LOCK);
        let mut waited = Duration::ZERO;
        loop {
            let opened = private().read(true).write(true).create(true).truncate(false).open(&path);
            let mut file = opened.map_err(io_error("opening", &path))?;
            match file.try_lock() {
                Ok(()) => {
                    let written = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
                    written.map_err(io_error("writing", &path))?;
                    return Ok(Self(file));
                }
                Err(TryLockError::WouldBlock)
                    if waited < AFTERLIFE && Holder::of(&mut file) != Holder::Alive =>
                {
                    std::thread::sleep(AFTERLIFE_STEP);
                    waited += AFTERLIFE_STEP;
                }
                Err(TryLockError::WouldBlock) => return Err(RunStoreError::Busy(run.clone())),
                Err(TryLockError::Error(error)) => return Err(io_error("locking", &path)(error)),
            }
        }
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // Whoever finds the file locked from now on does so because of somebody who only looks.
        let _ = self.0.set_len(0);
        // A child that is just being started shares the open file until it runs its program.
        let _ = self.0.unlock();
    }
}

fn is_locked(dir: &Path) -> bool {
    let Ok(mut file) = File::open(dir.join(LOCK)) else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) && Holder::of(&mut file) != Holder::Gone
}

/// The process that took a lock, as far as the file tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holder {
    Alive,
    /// It has certainly ended. A zombie has: only its parent has not reaped it yet.
    Gone,
    /// It has let go, or has not written its name yet. The lock of one who looks at the file is short.
    Nameless,
}

impl Holder {
    fn of(file: &mut File) -> Self {
        let mut pid = String::new();
        if file.take(PID_BYTES).read_to_string(&mut pid).is_ok() && pid.is_empty() {
            return Self::Nameless;
        }
        if pid.trim().parse::<u32>().is_err() {
            return Self::Alive;
        }
        let gone = match fs::read_to_string(format!("/proc/{}/stat", pid.trim())) {
            Ok(stat) => stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')),
            // Where there is no such file system nothing is known, and nothing is waited for.
            Err(error) => error.kind() == io::ErrorKind::NotFound && Path::new("/proc/self/stat").exists(),
        };
        if gone { Self::Gone } else { Self::Alive }
    }
}

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(plain)
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn ensure_dir(path: &Path) -> Result<(), RunStoreError> {
    let mut builder = fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path).map_err(io_error("creating", path))
}

fn sync_dir(path: &Path) -> Result<(), RunStoreError> {
    File::open(path).and_then(|dir| dir.sync_all()).map_err(io_error("syncing", path))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_run_is_taken_up_although_somebody_looks_at_it() {
        let root = tempfile::tempdir().unwrap();
        let store = FileStore::new(root.path().to_owned());
        let run = RunId("r".to_owned());
        // Its process goes on, such as a portal whose run was left.
        drop(store.create(&run).unwrap());
        let looks = File::open(root.path().join("r").join(LOCK)).unwrap();
        looks.lock_shared().unwrap();
        let (begins, begun) = mpsc::channel();
        std::thread::scope(|scope| {
            let taken = scope.spawn(|| {
                begins.send(()).unwrap();
                store.open(&run).map(drop)
            });
            begun.recv().unwrap();
            // Time for an attempt or two; a taker that comes later finds it free.
            (0..1000).for_each(|_| std::thread::yield_now());
            looks.unlock().unwrap();
            taken.join().unwrap().unwrap();
        });
    }

    #[test]
    fn a_run_that_is_carried_out_is_in_use() {
        let root = tempfile::tempdir().unwrap();
        let store = FileStore::new(root.path().to_owned());
        let run = RunId("r".to_owned());
        let log = store.create(&run).unwrap();
        assert!(is_locked(&root.path().join("r")));
        assert!(matches!(store.open(&run), Err(RunStoreError::Busy(_))));
        drop(log);
        assert!(!is_locked(&root.path().join("r")));
        store.open(&run).map(drop).unwrap();
    }
}
