//! The book: the file of all calls, and its sums.
//!
//! ```text
//! <dir>/
//!     calls.jsonl    a line for each read of a session's log: its calls, and the position that it was read to
//!     sums.json      the sums up to a position of that file, so that starting does not read all of it
//!     lock           held by the process that appends
//! ```
//!
//! Memory holds sums and positions, not calls. A line is one `write(2)`; an unfinished last line is cut off by the next process
//! that has the lock. `sums.json` may be deleted: it is made again from the file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hangar_disk::private;
use hangar_store::SessionId;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use super::Figures;
use super::fold::{Call, Known, Read, ReadStart};
use crate::directory_lock::{DirectoryLock, SharedFileError, io_error};

const CALLS: &str = "calls.jsonl";
const SUMS: &str = "sums.json";
const VERSION: u32 = 1;

/// Bytes of the file after which its sums are written down again.
const SUM_EVERY: u64 = 256 << 10;
/// Time for which the lock is waited for. It is held for the reading of some logs.
const LOCK_TIME: Duration = Duration::from_secs(30);

#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    #[error(transparent)]
    File(#[from] SharedFileError),
    #[error("{0}")]
    Store(String),
}

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    session: SessionText,
    known: Known,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    calls: Vec<Call>,
}

/// Id of a session as text, since deleted sessions stay in the book.
type SessionText = String;

/// A session in the book.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct SessionSums {
    pub(super) known: Known,
    pub(super) figures: Figures,
}

/// Figures of a day by agent, model and project.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Cell {
    pub(super) day: String,
    pub(super) agent: String,
    pub(super) model: String,
    pub(super) project: String,
}

/// A run in the book.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct RunSums {
    pub(super) last: String,
    pub(super) project: String,
    pub(super) figures: Figures,
}

/// Sums over all calls up to a position of the file.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Sums {
    version: u32,
    /// Time zone of the days.
    zone: String,
    bytes: u64,
    /// Inode of the file that was read.
    inode: u64,
    pub(super) sessions: BTreeMap<SessionText, SessionSums>,
    #[serde(with = "cells")]
    pub(super) days: BTreeMap<Cell, Figures>,
    pub(super) runs: BTreeMap<String, RunSums>,
}

/// Figures of one day.
#[derive(Debug, Default)]
pub(super) struct DaySums {
    pub(super) all: Figures,
    pub(super) agents: BTreeMap<String, Figures>,
    pub(super) projects: BTreeMap<String, Figures>,
}

impl Sums {
    fn apply(&mut self, line: Line, zone: &TimeZone) {
        let session = self.sessions.entry(line.session).or_default();
        // A line that was counted already changes nothing. A log that has become shorter is another one.
        if line.known.seq <= session.known.seq && line.known.first_call == session.known.first_call {
            return;
        }
        session.known = line.known;
        for call in line.calls {
            session.figures.add(&call.figures);
            let day = day_of(&call.at, zone);
            if let Some(run) = &call.run {
                let run = self.runs.entry(run.clone()).or_default();
                run.figures.add(&call.figures);
                run.last.clone_from(&call.at);
                run.project.clone_from(&call.project);
            }
            let Call { agent, model, project, figures, .. } = call;
            self.days.entry(Cell { day, agent, model, project }).or_default().add(&figures);
        }
    }

    pub(super) fn day(&self, day: Date) -> DaySums {
        let mut sums = DaySums::default();
        let day = day.to_string();
        let from =
            Cell { day: day.clone(), agent: String::new(), model: String::new(), project: String::new() };
        for (cell, figures) in self.days.range(from..).take_while(|(cell, _)| cell.day == day) {
            sums.all.add(figures);
            sums.agents.entry(cell.agent.clone()).or_default().add(figures);
            sums.projects.entry(cell.project.clone()).or_default().add(figures);
        }
        sums
    }

    pub(super) fn run(&self, run: &str) -> Option<&Figures> {
        self.runs.get(run).map(|run| &run.figures)
    }

    pub(super) fn run_of(&self, id: &SessionId) -> Option<String> {
        self.sessions.get(id.as_str())?.known.run.clone()
    }

    pub(super) fn by_agent_and_model(&self) -> Vec<(String, String, Figures)> {
        let mut sums: BTreeMap<(&str, &str), Figures> = BTreeMap::new();
        for (cell, figures) in &self.days {
            sums.entry((&cell.agent, &cell.model)).or_default().add(figures);
        }
        sums.into_iter()
            .map(|((agent, model), figures)| (agent.to_owned(), model.to_owned(), figures))
            .collect()
    }
}

fn day_of(at: &str, zone: &TimeZone) -> String {
    let at: Timestamp = at.parse().unwrap_or(Timestamp::UNIX_EPOCH);
    at.to_zoned(zone.clone()).date().to_string()
}

pub(super) struct Book {
    dir: PathBuf,
    path: PathBuf,
    lock: DirectoryLock,
    zone: TimeZone,
    sums: Sums,
    /// Position of the file that `sums.json` is at.
    written: u64,
}

impl Book {
    pub(super) fn open(dir: PathBuf, zone: TimeZone) -> Result<Self, LedgerError> {
        let lock = DirectoryLock::open(&dir, LOCK_TIME)?;
        let sums = kept_sums(&dir.join(SUMS), &zone_name(&zone));
        let mut book = Self { path: dir.join(CALLS), dir, lock, zone, written: sums.bytes, sums };
        book.refresh()?;
        Ok(book)
    }

    pub(super) fn sums(&self) -> &Sums {
        &self.sums
    }

    /// Whether the log of a session has something that is not in the book.
    pub(super) fn is_behind(&self, id: &SessionId, length: Option<u64>) -> bool {
        let known = self.sums.sessions.get(id.as_str()).map_or(0, |session| session.known.offset);
        length.is_some_and(|length| length != known)
    }

    /// Folds what other processes have appended.
    pub(super) fn refresh(&mut self) -> Result<(), LedgerError> {
        match File::open(&self.path) {
            Ok(file) => self.catch_up(file).map(drop),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(io_error("opening", &self.path)(error).into()),
        }
    }

    /// Reads logs on and appends their calls. A session that cannot be read does not keep the others out.
    pub(super) fn take_in(
        &mut self,
        ids: &[SessionId],
        mut read: impl FnMut(&SessionId, ReadStart<'_>) -> Result<Read, String>,
    ) -> Result<(), LedgerError> {
        self.lock.lock()?;
        let done = self.locked(ids, &mut read);
        self.lock.unlock();
        done
    }

    fn locked(
        &mut self,
        ids: &[SessionId],
        read: &mut dyn FnMut(&SessionId, ReadStart<'_>) -> Result<Read, String>,
    ) -> Result<(), LedgerError> {
        let path = self.path.clone();
        let file = private().read(true).append(true).create(true).open(&path);
        let mut file = self.catch_up(file.map_err(io_error("opening", &path))?)?;
        // An unfinished line is one of a process that was killed, since nobody else writes now.
        file.set_len(self.sums.bytes).map_err(io_error("mending", &path))?;
        for id in ids {
            loop {
                let sessions = &self.sums.sessions;
                let known =
                    sessions.get(id.as_str()).map(|session| session.known.clone()).unwrap_or_default();
                let before = known.clone();
                let is_known = |first: &str| {
                    let others = sessions.iter().filter(|(other, _)| other.as_str() != id.as_str());
                    others
                        .map(|(_, session)| &session.known)
                        .any(|known| known.first_call.as_deref() == Some(first))
                };
                let found = match read(id, ReadStart { known, is_known: &is_known }) {
                    Ok(found) => found,
                    Err(error) => {
                        tracing::warn!(session = %id, %error, "the costs of a session cannot be read");
                        break;
                    }
                };
                // Positions without calls are remembered here alone: another process reads those lines again, and finds none.
                if found.calls.is_empty() {
                    if found.known != before {
                        self.sums.sessions.entry(id.to_string()).or_default().known = found.known;
                    }
                } else {
                    let line = Line { session: id.to_string(), known: found.known, calls: found.calls };
                    self.append(&mut file, line)?;
                }
                if !found.more {
                    break;
                }
            }
        }
        if self.sums.bytes.saturating_sub(self.written) > SUM_EVERY {
            self.write_sums()?;
        }
        Ok(())
    }

    fn append(&mut self, file: &mut File, line: Line) -> Result<(), LedgerError> {
        let mut bytes =
            serde_json::to_vec(&line).map_err(|error| io_error("writing", &self.path)(error.into()))?;
        bytes.push(b'\n');
        if let Err(error) = file.write_all(&bytes) {
            // Half a line would swallow the next one. If even this fails, the next process cuts it off.
            let _ = file.set_len(self.sums.bytes);
            return Err(io_error("writing", &self.path)(error).into());
        }
        self.sums.bytes += bytes.len() as u64;
        self.sums.apply(line, &self.zone);
        Ok(())
    }

    /// Folds the whole lines of the file after those that were read.
    fn catch_up(&mut self, mut file: File) -> Result<File, LedgerError> {
        let path = self.path.clone();
        let found = file.metadata().map_err(io_error("reading", &path))?;
        if found.ino() != self.sums.inode || found.len() < self.sums.bytes {
            // Another file, such as a backup that was put back.
            self.sums = Sums::new(&self.zone);
            self.sums.inode = found.ino();
            self.written = 0;
        }
        if found.len() == self.sums.bytes {
            return Ok(file);
        }
        file.seek(SeekFrom::Start(self.sums.bytes)).map_err(io_error("reading", &path))?;
        let mut reader = BufReader::new(&mut file);
        let mut text = Vec::new();
        loop {
            text.clear();
            let read = reader.read_until(b'\n', &mut text).map_err(io_error("reading", &path))?;
            if !text.ends_with(b"\n") {
                return Ok(file);
            }
            self.sums.bytes += read as u64;
            match serde_json::from_slice::<Line>(&text) {
                Ok(line) => self.sums.apply(line, &self.zone),
                // Of a later version, or damaged: the rest still counts.
                Err(error) => tracing::warn!(%error, "a line of the ledger cannot be read"),
            }
        }
    }

    fn write_sums(&mut self) -> Result<(), LedgerError> {
        let path = self.dir.join(SUMS);
        let bytes =
            serde_json::to_vec(&self.sums).map_err(|error| io_error("writing", &path)(error.into()))?;
        hangar_disk::replace(&path, bytes).map_err(io_error("replacing", &path))?;
        self.written = self.sums.bytes;
        Ok(())
    }
}

impl Sums {
    fn new(zone: &TimeZone) -> Self {
        Self { version: VERSION, zone: zone_name(zone), ..Self::default() }
    }
}

fn zone_name(zone: &TimeZone) -> String {
    zone.iana_name().map_or_else(|| format!("{zone:?}"), str::to_owned)
}

/// The sums that were written down last, if they are of this version and zone.
fn kept_sums(path: &Path, zone: &str) -> Sums {
    let text = std::fs::read(path).unwrap_or_default();
    let kept = serde_json::from_slice::<Sums>(&text).ok();
    let usable = kept.filter(|sums| sums.version == VERSION && sums.zone == zone);
    usable.unwrap_or_else(|| Sums { version: VERSION, zone: zone.to_owned(), ..Sums::default() })
}

/// Cells as a list, since they are no strings.
mod cells {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serializer};

    use super::{Cell, Figures};

    pub(super) fn serialize<S: Serializer>(
        cells: &BTreeMap<Cell, Figures>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(cells.iter())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<Cell, Figures>, D::Error> {
        Ok(Vec::<(Cell, Figures)>::deserialize(deserializer)?.into_iter().collect())
    }
}
