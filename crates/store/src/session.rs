//! A session that this process writes.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use hangar_agent::log::{Fact, LogError, Seq, SessionLog};
use hangar_disk::Folder;
use hangar_protocol::data::WorkingDirectory;
use hangar_protocol::{Event, EventId, LogPosition};

use crate::append::{AppendError, AppendOnly};
use crate::backwards::Backwards;
use crate::lines::parse_line;
use crate::lock::{Lock, LockError};
use crate::meta::META_FILE;
use crate::yaml::Document;
use crate::{MAX_LINE, SessionId, SessionMeta, SessionName, StoreError, checkpoints};

pub(crate) const LOG_FILE: &str = "events.jsonl";

const PLAN_FILE: &str = "plan.md";
/// What of a plan is shown to whoever reviews it.
const PLAN_BYTES: u64 = 1 << 20;
/// A buffer that a huge event has grown beyond this is given back after the append.
const KEPT_BUFFER: usize = 1024 * 1024;

const COUNT_CHUNK: usize = 256 * 1024;

/// How the log ended when it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// With a whole line.
    Whole,
    /// With an event whose newline was missing; it was added.
    Completed,
    /// With part of an event, which was removed.
    Cut { bytes: u64 },
}

/// The one writer of a session. Dropping it releases the session.
#[derive(Debug)]
pub struct OpenSession {
    id: SessionId,
    folder: Folder,
    log: AppendOnly<File>,
    end: Seq,
    last: Option<EventId>,
    tail: Tail,
    meta: SessionMeta,
    document: Document,
    /// `meta` as the file has it.
    saved: Option<SessionMeta>,
    /// Whether the names in the directories are known to survive a power cut.
    dirs_synced: bool,
    buffer: Vec<u8>,
    /// Where the events of the last append end.
    appended: Vec<LogPosition>,
    /// Absent while the session rests.
    lock: Option<Lock>,
}

impl OpenSession {
    /// Takes over the log of a session whose lock is held, mending its end.
    pub(crate) fn start(
        id: SessionId,
        folder: Folder,
        lock: Lock,
        mut file: File,
        meta: SessionMeta,
        document: Document,
    ) -> Result<Self, StoreError> {
        let path = folder.path().join(LOG_FILE);
        let (tail, end) = mend(&mut file).map_err(StoreError::io("mending", &path))?;
        let lines = count_lines(&file, end).map_err(StoreError::io("reading", &path))?;
        let last = last_event(&file, end).map_err(StoreError::io("reading", &path))?;
        let saved = SessionMeta::from_document(&document);
        Ok(Self {
            id,
            folder,
            log: AppendOnly::new(file, end),
            end: Seq(lines),
            last: last.map(|event| event.id().clone()),
            tail,
            meta,
            document,
            saved,
            dirs_synced: false,
            buffer: Vec::new(),
            appended: Vec::new(),
            lock: Some(lock),
        })
    }

    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Where the next event goes. A line that is no event takes a position too, so positions never change.
    pub fn end(&self) -> Seq {
        self.end
    }

    /// The newest event: the parent of the next one.
    pub fn last_event_id(&self) -> Option<&EventId> {
        self.last.as_ref()
    }

    pub fn log_bytes(&self) -> u64 {
        self.log.end()
    }

    pub fn tail(&self) -> Tail {
        self.tail
    }

    pub fn meta(&self) -> &SessionMeta {
        &self.meta
    }

    pub fn dir(&self) -> &Path {
        self.folder.path()
    }

    /// The session's directory, held open: how everything beside the log is opened.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    pub fn log_path(&self) -> PathBuf {
        self.folder.path().join(LOG_FILE)
    }

    pub fn files_dir(&self) -> PathBuf {
        self.folder.path().join("files")
    }

    pub fn rename(&mut self, name: SessionName) -> Result<(), StoreError> {
        self.meta.name = Some(name);
        self.save_meta()
    }

    pub fn set_context(&mut self, context: WorkingDirectory) -> Result<(), StoreError> {
        self.meta.context = Some(context);
        self.save_meta()
    }

    pub fn set_summary_count(&mut self, count: u32) -> Result<(), StoreError> {
        self.meta.summary_count = count;
        self.save_meta()
    }

    /// Writes `workspace.yaml` unless it says the same already.
    pub(crate) fn save_meta(&mut self) -> Result<(), StoreError> {
        if self.saved.as_ref() == Some(&self.meta) {
            return Ok(());
        }
        let path = self.folder.path().join(META_FILE);
        self.document.set("id", self.id.as_str());
        self.meta.write_to(&mut self.document);
        self.folder.replace(META_FILE, self.document.render()).map_err(StoreError::io("writing", &path))?;
        self.saved = Some(self.meta.clone());
        Ok(())
    }

    fn write_error(&self, source: io::Error) -> LogError {
        LogError::Write { id: self.id.to_string(), source }
    }

    /// Why a session that rested could not be taken back.
    fn taken(&self, error: LockError) -> LogError {
        let source = match error {
            LockError::Held { .. } => {
                io::Error::new(io::ErrorKind::ResourceBusy, "another process has taken it over")
            }
            LockError::Gone => io::Error::new(io::ErrorKind::NotFound, "it was deleted"),
            LockError::Io(error) => error,
        };
        self.write_error(source)
    }

    fn moved(&self, expected: Seq) -> LogError {
        match self.folder.read(LOG_FILE).and_then(|log| count_lines(&log, u64::MAX)) {
            Ok(actual) => LogError::Moved { id: self.id.to_string(), expected: expected.0, actual },
            Err(error) => self.write_error(error),
        }
    }

    fn note_last(&mut self, event: &Event) {
        self.last = Some(event.id().clone());
        self.meta.note_event(event);
    }
}

impl SessionLog for OpenSession {
    fn rest(&mut self) {
        self.lock = None;
    }

    fn plan(&mut self) -> Option<String> {
        plan(&self.folder)
    }

    fn note(&mut self, fact: Fact) -> Result<(), LogError> {
        if let Fact::Checkpoint(checkpoint) = &fact {
            checkpoints::write(&self.folder, checkpoint).map_err(|error| self.write_error(error))?;
        }
        self.meta.note(fact);
        self.save_meta().map_err(|error| self.write_error(io::Error::other(error)))
    }

    /// Ephemeral events may be among `events`; they are not written and take no position.
    fn append(&mut self, expected: Seq, events: &[Event]) -> Result<Seq, LogError> {
        if expected != self.end {
            return Err(LogError::Moved {
                id: self.id.to_string(),
                expected: expected.0,
                actual: self.end.0,
            });
        }
        self.appended.clear();
        let (ends, last) = encode(&mut self.buffer, events).map_err(|error| self.write_error(error))?;
        let Some(last) = last else { return Ok(self.end) };
        let start = self.log.end();
        if self.lock.is_none() {
            self.lock = Some(Lock::acquire(&self.folder).map_err(|error| self.taken(error))?);
        }
        match self.log.append(&self.buffer) {
            Ok(()) => {}
            Err(AppendError::Moved) => return Err(self.moved(expected)),
            Err(AppendError::Io(error)) => return Err(self.write_error(error)),
        }
        self.buffer.clear();
        self.buffer.shrink_to(KEPT_BUFFER);
        for end in ends {
            self.end.0 += 1;
            self.appended.push(LogPosition { seq: self.end.0, offset: start + end });
        }
        self.note_last(last);
        Ok(self.end)
    }

    fn appended(&self) -> &[LogPosition] {
        &self.appended
    }

    /// Also brings the time in `workspace.yaml` up to that of the last event.
    fn sync(&mut self) -> Result<(), LogError> {
        let synced = self.log.sync().map_err(|error| self.write_error(error))?;
        if synced && !self.dirs_synced {
            let parent = self.dir().parent().unwrap_or(self.dir());
            let both = self.folder.sync().and_then(|()| hangar_disk::sync_dir(parent));
            both.map_err(|error| self.write_error(error))?;
            self.dirs_synced = true;
        }
        self.save_meta().map_err(|error| self.write_error(io::Error::other(error)))
    }
}

/// The plan of a session, once somebody has written one.
pub fn plan(session: &Folder) -> Option<String> {
    session.read_text(PLAN_FILE, PLAN_BYTES).ok()
}

/// Fills the buffer with the lines of all events that are to be kept, and says where they end in it and which was last.
pub(crate) fn encode<'a>(
    buffer: &mut Vec<u8>,
    events: &'a [Event],
) -> io::Result<(Vec<u64>, Option<&'a Event>)> {
    buffer.clear();
    let mut ends = Vec::with_capacity(events.len());
    let mut last = None;
    for event in events.iter().filter(|event| !event.is_ephemeral()) {
        let start = buffer.len();
        serde_json::to_writer(&mut *buffer, event)?;
        let length = buffer.len() - start;
        if length > MAX_LINE {
            let message =
                format!("an event of {length} bytes is longer than the {MAX_LINE} that a log may hold");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        buffer.push(b'\n');
        ends.push(buffer.len() as u64);
        last = Some(event);
    }
    Ok((ends, last))
}

/// Makes a log end with a whole line and says where that is.
fn mend(file: &mut File) -> io::Result<(Tail, u64)> {
    let size = file.metadata()?.len();
    let mut backwards = Backwards::new(file, size);
    let start = backwards.last_newline(size)?.map_or(0, |at| at + 1);
    if start == size {
        return Ok((Tail::Whole, size));
    }
    let whole = backwards.previous_line()?.is_some_and(|line| parse_line(&line).is_ok());
    if whole {
        io::Write::write_all(file, b"\n")?;
        Ok((Tail::Completed, size + 1))
    } else {
        file.set_len(start)?;
        Ok((Tail::Cut { bytes: size - start }, start))
    }
}

fn count_lines(mut file: &File, end: u64) -> io::Result<u64> {
    io::Seek::rewind(&mut file)?;
    let mut file = io::Read::take(file, end);
    let mut chunk = vec![0; COUNT_CHUNK.min(usize::try_from(end).unwrap_or(COUNT_CHUNK))];
    let mut lines = 0;
    loop {
        match io::Read::read(&mut file, &mut chunk)? {
            0 => return Ok(lines),
            read => lines += memchr::memchr_iter(b'\n', &chunk[..read]).count() as u64,
        }
    }
}

pub(crate) fn last_event(file: &File, end: u64) -> io::Result<Option<Event>> {
    let mut backwards = Backwards::new(file, end);
    while let Some(line) = backwards.previous_line()? {
        if let Ok(event) = parse_line(&line) {
            return Ok(Some(event));
        }
    }
    Ok(None)
}
