//! The records of one workflow on disk.
//!
//! ```text
//! <home>/orchestrator/<workflow>/
//!     records.jsonl    the records, appended to; a compaction replaces the file
//!     lock             held by the process that works on the issues
//!     requests/        what other processes ask of it
//! ```

use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use hangar_disk::{ensure_dir, private};
use hangar_orchestrator::record::{IssueFact, OrchestratorRecord};
use hangar_orchestrator::state::OrchestratorState;

const RECORDS: &str = "records.jsonl";
const LOCK: &str = "lock";
/// Size from which a log is compacted.
const COMPACT_BYTES: u64 = 8 << 20;
/// A compacted log may grow to this many times its size before it is compacted again.
const GROWTH: u64 = 4;
/// Pause between two looks at a lock.
const PAUSE: Duration = Duration::from_millis(20);
const MAX_LOG_BYTES: u64 = 512 << 20;

/// The log, for its one writer.
pub(super) struct RecordLog {
    path: PathBuf,
    file: File,
    length: u64,
    compacted: u64,
    _lock: File,
}

impl RecordLog {
    /// Opens the log and takes its lock. `None` if another process has it.
    pub(super) fn open(directory: &Path) -> Result<Option<(OrchestratorState, Self)>> {
        ensure_dir(directory).with_context(|| format!("creating {}", directory.display()))?;
        let lock_path = directory.join(LOCK);
        let lock = private().read(true).write(true).create(true).truncate(false).open(&lock_path);
        let mut lock = lock.with_context(|| format!("opening {}", lock_path.display()))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("locking {}", lock_path.display()));
            }
        }
        let named = lock.set_len(0).and_then(|()| writeln!(lock, "{}", std::process::id()));
        named.with_context(|| format!("writing {}", lock_path.display()))?;
        let path = directory.join(RECORDS);
        let file = private().read(true).append(true).create(true).open(&path);
        let file = file.with_context(|| format!("opening {}", path.display()))?;
        let (state, length, compacted) = folded(&path)?;
        // An unfinished line is one of a process that was killed.
        file.set_len(length).with_context(|| format!("mending {}", path.display()))?;
        Ok(Some((state, Self { path, file, length, compacted, _lock: lock })))
    }

    /// Appends records, all or nothing of them, and has them on disk if one of them is a milestone.
    pub(super) fn append(&mut self, records: &[OrchestratorRecord]) -> Result<()> {
        let failed = || format!("writing {}", self.path.display());
        let mut lines = Vec::new();
        for record in records {
            serde_json::to_writer(&mut lines, record).with_context(failed)?;
            lines.push(b'\n');
        }
        let after = self.length + lines.len() as u64;
        if after > MAX_LOG_BYTES {
            bail!("{} has grown to its limit", self.path.display());
        }
        if let Err(error) = self.file.write_all(&lines) {
            // Half a line would swallow the next one.
            let _ = self.file.set_len(self.length);
            return Err(error).with_context(failed);
        }
        if records.iter().any(|record| record.fact.is_milestone()) {
            self.file.sync_data().with_context(failed)?;
        }
        self.length = after;
        Ok(())
    }

    /// Replaces the log by the state, if it has grown enough.
    pub(super) fn compact(&mut self, state: &OrchestratorState, at: jiff::Timestamp) -> Result<()> {
        if self.length <= COMPACT_BYTES.max(self.compacted.saturating_mul(GROWTH)) {
            return Ok(());
        }
        let fact = IssueFact::Compacted { state: Box::new(state.compacted()) };
        let seq = state.next_seq.saturating_sub(1);
        let mut line = serde_json::to_vec(&OrchestratorRecord { seq, at, fact })?;
        line.push(b'\n');
        let failed = || format!("replacing {}", self.path.display());
        hangar_disk::replace(&self.path, &line).with_context(failed)?;
        self.file = private().read(true).append(true).open(&self.path).with_context(failed)?;
        self.file.sync_all().with_context(failed)?;
        (self.length, self.compacted) = (line.len() as u64, line.len() as u64);
        Ok(())
    }
}

/// Waits until nobody has the lock, at most for so long: a child of a process that was killed may have it for a moment.
pub(super) fn wait_for_lock(directory: &Path, patience: Duration) {
    let Ok(lock) = File::open(directory.join(LOCK)) else { return };
    let until = Instant::now() + patience;
    while matches!(lock.try_lock(), Err(TryLockError::WouldBlock)) && Instant::now() < until {
        std::thread::sleep(PAUSE);
    }
}

/// The state as the log tells, also while another process writes.
pub(super) fn read(directory: &Path) -> Result<OrchestratorState> {
    folded(&directory.join(RECORDS)).map(|(state, _, _)| state)
}

/// The state, the length of the part that tells it, and the length of a compacted beginning.
fn folded(path: &Path) -> Result<(OrchestratorState, u64, u64)> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok((OrchestratorState::default(), 0, 0));
        }
        Err(error) => return Err(error).with_context(|| format!("opening {}", path.display())),
    };
    let mut reader = BufReader::new(file.take(MAX_LOG_BYTES));
    let (mut state, mut length, mut compacted, mut line, mut number) =
        (OrchestratorState::default(), 0, 0, Vec::new(), 0);
    loop {
        line.clear();
        let read =
            reader.read_until(b'\n', &mut line).with_context(|| format!("reading {}", path.display()))?;
        if read == 0 || !line.ends_with(b"\n") {
            return Ok((state, length, compacted));
        }
        number += 1;
        let record: OrchestratorRecord = serde_json::from_slice(&line).with_context(|| {
            format!("line {number} of {} is no record; move the file away to begin anew", path.display())
        })?;
        state.apply(&record);
        length += read as u64;
        if matches!(record.fact, IssueFact::Compacted { .. }) {
            compacted = length;
        }
    }
}

/// Directory of the requests.
pub(super) fn requests(directory: &Path) -> PathBuf {
    directory.join("requests")
}

/// Facts that other processes ask for, with their files. A file that is no request is removed.
pub(super) fn take_requests(directory: &Path) -> Vec<(PathBuf, IssueFact)> {
    let Ok(entries) = fs::read_dir(requests(directory)) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        match fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
            Some(fact @ IssueFact::Requested { .. }) => found.push((path, fact)),
            _ => drop(fs::remove_file(&path)),
        }
    }
    found
}
