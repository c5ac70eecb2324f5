//! A session that this process writes.

use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use hangar_agent::log::{ListedFact, LogError, Seq, SessionLog, SessionNotes};
use hangar_agent::session::Checkpoint;
use hangar_disk::Folder;
use hangar_files::{FileError, FileRequest, LocalFiles, SessionFiles};
use hangar_protocol::data::WorkingDirectory;
use hangar_protocol::{Event, EventId, LogPosition};

use crate::append::{AppendError, AppendOnly};
use crate::checkpoints::{self, CheckpointEntry};
use crate::lines::parse_line;
use crate::lock::{Lock, LockError};
use crate::meta::META_FILE;
use crate::replica::LogCopy;
use crate::reverse_lines::ReverseLines;
use crate::unfinished;
use crate::yaml::YamlDocument;
use crate::{MAX_LINE, SessionId, SessionMeta, SessionName, StoreError};

pub(crate) const LOG_FILE: &str = "events.jsonl";
pub(crate) const PLAN_FILE: &str = "plan.md";

/// A buffer that a huge event has grown beyond this is given back after the append.
const KEPT_BUFFER: usize = 1024 * 1024;

const COUNT_CHUNK: usize = 256 * 1024;

/// State of the end of the log when it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogTail {
    /// With a whole line.
    Whole,
    /// With an event whose newline was missing; it was added.
    Completed,
    /// With part of an event, which was removed.
    Cut { bytes: u64 },
}

/// Writer of the lines of a log.
pub(crate) trait LogWriter: LogKeeper + Debug + Send {
    /// Appends whole lines, all or none of them. Those that were appended may be taken out of the buffer.
    fn append(&mut self, lines: &mut Vec<u8>) -> Result<(), AppendError>;

    /// Makes everything appended survive a power cut too.
    fn sync(&mut self) -> io::Result<()>;

    fn bytes(&self) -> u64;
}

/// The lock, the copy and the unfinished answers of a log on this machine. A client keeps its log without them.
pub(crate) trait LogKeeper {
    /// Lets another process take the log over, until the next append.
    fn rest(&mut self) {}

    /// Stores lines beside the log for the next process that opens it, or removes them.
    fn keep_unfinished(&mut self, lines: &[u8]) {
        let _ = lines;
    }

    /// Future that completes when the copy of the log has everything that was appended; `None` if it has.
    fn settled(&mut self) -> Option<BoxFuture<'static, io::Result<()>>> {
        None
    }
}

/// The one writer of a session. Dropping it releases the session.
#[derive(Debug)]
pub struct OpenSession {
    id: SessionId,
    files: Arc<dyn SessionFiles>,
    log: Box<dyn LogWriter>,
    pub(crate) end: Seq,
    pub(crate) last: Option<EventId>,
    pub(crate) tail: LogTail,
    meta: SessionMeta,
    document: YamlDocument,
    /// `meta` as the file has it.
    saved: Option<SessionMeta>,
    /// The checkpoints, where their index cannot be read without waiting.
    pub(crate) checkpoints: Option<Vec<CheckpointEntry>>,
    buffer: Vec<u8>,
    /// Positions after each event of the last append.
    appended: Vec<LogPosition>,
}

impl OpenSession {
    /// Takes over the log of a session whose lock is held, mending its end.
    pub(crate) fn start(
        id: SessionId,
        folder: Folder,
        lock: Lock,
        mut file: File,
        meta: SessionMeta,
        document: YamlDocument,
        copy: Option<Box<dyn LogCopy>>,
    ) -> Result<Self, StoreError> {
        let path = folder.path().join(LOG_FILE);
        let (tail, end) = mend(&mut file).map_err(StoreError::io("mending", &path))?;
        let end = unfinished::recover(&folder, &mut file, end).map_err(StoreError::io("mending", &path))?;
        let lines = count_lines(&file, end).map_err(StoreError::io("reading", &path))?;
        let last = last_event(&file, end).map_err(StoreError::io("reading", &path))?;
        let log = AppendOnly::new(file, end);
        let log = LocalLog { folder: folder.clone(), log, dirs_synced: false, lock: Some(lock), copy };
        let files = Arc::new(LocalFiles::held(folder));
        let session = Self::new(id, files, Box::new(log), meta, document);
        Ok(Self { end: Seq(lines), last: last.map(|event| event.id().clone()), tail, ..session })
    }

    /// A session with an empty log.
    pub(crate) fn new(
        id: SessionId,
        files: Arc<dyn SessionFiles>,
        log: Box<dyn LogWriter>,
        meta: SessionMeta,
        document: YamlDocument,
    ) -> Self {
        let saved = SessionMeta::from_document(&document);
        Self {
            id,
            files,
            log,
            end: Seq(0),
            last: None,
            tail: LogTail::Whole,
            meta,
            document,
            saved,
            checkpoints: None,
            buffer: Vec::new(),
            appended: Vec::new(),
        }
    }

    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Position of the next event. A line that is no event takes a position too, so positions never change.
    pub fn end(&self) -> Seq {
        self.end
    }

    /// The newest event: the parent of the next one.
    pub fn last_event_id(&self) -> Option<&EventId> {
        self.last.as_ref()
    }

    pub fn log_bytes(&self) -> u64 {
        self.log.bytes()
    }

    pub fn tail(&self) -> LogTail {
        self.tail
    }

    pub fn meta(&self) -> &SessionMeta {
        &self.meta
    }

    /// The session's directory: how everything beside the log is opened.
    pub fn files(&self) -> &Arc<dyn SessionFiles> {
        &self.files
    }

    /// Path of the directory, in the syntax of its storage.
    pub fn dir(&self) -> PathBuf {
        self.files.path("")
    }

    pub fn log_path(&self) -> PathBuf {
        self.files.path(LOG_FILE)
    }

    pub fn rename(&mut self, name: SessionName) -> Result<(), StoreError> {
        self.meta.name = Some(name);
        self.save_meta()
    }

    pub fn set_context(&mut self, context: WorkingDirectory) -> Result<(), StoreError> {
        self.meta.context = Some(context);
        self.save_meta()
    }

    /// Writes `workspace.yaml` if it changed.
    pub(crate) fn save_meta(&mut self) -> Result<(), StoreError> {
        if self.saved.as_ref() == Some(&self.meta) {
            return Ok(());
        }
        self.document.set("id", self.id.as_str());
        self.meta.write_to(&mut self.document);
        let path = self.files.path(META_FILE);
        let content = self.document.render().into_bytes();
        self.files
            .put(FileRequest::Replace { path: path.clone(), content })
            .map_err(|error| StoreError::io("writing", &path)(error.into()))?;
        self.saved = Some(self.meta.clone());
        Ok(())
    }

    /// Writes a checkpoint. One of the same number, or of a later one, is from a past that was taken back, and goes.
    fn write_checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<(), FileError> {
        let files = &*self.files;
        let entries = match &self.checkpoints {
            Some(known) => known.clone(),
            None => hangar_files::block_on(checkpoints::list(files)).unwrap_or_default(),
        };
        let updated = checkpoints::with_checkpoint(entries, checkpoint);
        files.put(FileRequest::MakeDir { path: files.path(checkpoints::DIR) })?;
        for file in &updated.stale {
            let path = checkpoints::path(files, file);
            // It is not listed any more, so a failure to remove it does not matter.
            let _ = files.put(FileRequest::Remove { path, recursive: false });
        }
        let path = checkpoints::path(files, &updated.file);
        files.put(FileRequest::Replace { path, content: checkpoint.content.clone().into_bytes() })?;
        files.put(checkpoints::write_index(files, &checkpoints::render(&updated.entries)))?;
        if let Some(known) = &mut self.checkpoints {
            *known = updated.entries;
        }
        Ok(())
    }

    fn write_error(&self, source: io::Error) -> LogError {
        LogError::Write { id: self.id.to_string(), source }
    }

    fn moved(&self, expected: Seq, actual: u64) -> LogError {
        LogError::Moved { id: self.id.to_string(), expected: expected.0, actual }
    }

    fn note_last(&mut self, event: &Event) {
        self.last = Some(event.id().clone());
        self.meta.note_event(event);
    }
}

impl SessionLog for OpenSession {
    fn settle(&mut self) -> Option<BoxFuture<'static, Result<(), LogError>>> {
        let id = self.id.to_string();
        if let Some(copied) = self.log.settled() {
            return Some(Box::pin(
                async move { copied.await.map_err(|source| LogError::Write { id, source }) },
            ));
        }
        let settled = self.files.settled()?;
        Some(Box::pin(
            async move { settled.await.map_err(|error| LogError::Write { id, source: error.into() }) },
        ))
    }

    fn rest(&mut self) {
        self.log.rest();
    }

    /// Ephemeral events may be among `events`; they are not written and take no position.
    fn append(&mut self, expected: Seq, events: &[Event]) -> Result<Seq, LogError> {
        if expected != self.end {
            return Err(self.moved(expected, self.end.0));
        }
        self.appended.clear();
        let (ends, last) = encode(&mut self.buffer, events).map_err(|error| self.write_error(error))?;
        let Some(last) = last else { return Ok(self.end) };
        let start = self.log.bytes();
        self.log.append(&mut self.buffer).map_err(|error| match error {
            AppendError::Moved(actual) => self.moved(expected, actual),
            AppendError::Io(error) => self.write_error(error),
        })?;
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
        self.log.sync().map_err(|error| self.write_error(error))?;
        self.save_meta().map_err(|error| self.write_error(io::Error::other(error)))
    }
}

impl SessionNotes for OpenSession {
    fn keep_unfinished(&mut self, events: &[Event]) {
        // An event that cannot be encoded cannot be logged later either.
        if encode(&mut self.buffer, events).is_ok() {
            self.log.keep_unfinished(&self.buffer);
        }
        self.buffer.clear();
        self.buffer.shrink_to(KEPT_BUFFER);
    }

    fn plan(&mut self) -> Option<String> {
        self.files.plan()
    }

    fn note(&mut self, fact: ListedFact) -> Result<(), LogError> {
        if let ListedFact::Checkpoint(checkpoint) = &fact {
            self.write_checkpoint(checkpoint).map_err(|error| self.write_error(error.into()))?;
        }
        self.meta.note(fact);
        self.save_meta().map_err(|error| self.write_error(io::Error::other(error)))
    }
}

/// A log on this machine.
#[derive(Debug)]
struct LocalLog {
    folder: Folder,
    log: AppendOnly<File>,
    /// Whether the directory entries are known to survive a power failure.
    dirs_synced: bool,
    /// Absent while the session rests.
    lock: Option<Lock>,
    /// Copy on other machines.
    copy: Option<Box<dyn LogCopy>>,
}

impl LogWriter for LocalLog {
    fn append(&mut self, lines: &mut Vec<u8>) -> Result<(), AppendError> {
        if self.lock.is_none() {
            self.lock = Some(Lock::acquire(&self.folder).map_err(taken)?);
        }
        match self.log.append(lines) {
            Err(AppendError::Moved(_)) => {
                let log = self.folder.read(LOG_FILE)?;
                Err(AppendError::Moved(count_lines(&log, u64::MAX)?))
            }
            Ok(()) => match &mut self.copy {
                Some(copy) => Ok(copy.append(lines)?),
                None => Ok(()),
            },
            refused => refused,
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.log.sync()? && !self.dirs_synced {
            self.folder.sync()?;
            let dir = self.folder.path();
            hangar_disk::sync_dir(dir.parent().unwrap_or(dir))?;
            self.dirs_synced = true;
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.log.end()
    }
}

impl LogKeeper for LocalLog {
    fn rest(&mut self) {
        self.lock = None;
    }

    fn keep_unfinished(&mut self, lines: &[u8]) {
        unfinished::keep(&self.folder, lines);
    }

    fn settled(&mut self) -> Option<BoxFuture<'static, io::Result<()>>> {
        self.copy.as_mut()?.settled()
    }
}

/// Error of taking the lock back after a rest.
fn taken(error: LockError) -> io::Error {
    match error {
        LockError::Held { .. } => {
            io::Error::new(io::ErrorKind::ResourceBusy, "another process has taken it over")
        }
        LockError::Gone => io::Error::new(io::ErrorKind::NotFound, "it was deleted"),
        LockError::Io(error) => error,
    }
}

/// Encodes all durable events into the buffer, and returns their ends and the last of them.
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

/// Makes a log end with a complete line, and returns that position.
fn mend(file: &mut File) -> io::Result<(LogTail, u64)> {
    let size = file.metadata()?.len();
    let mut reverse = ReverseLines::new(file, size);
    let start = reverse.last_newline(size)?.map_or(0, |at| at + 1);
    if start == size {
        return Ok((LogTail::Whole, size));
    }
    let whole = reverse.previous_line()?.is_some_and(|line| parse_line(&line).is_ok());
    if whole {
        io::Write::write_all(file, b"\n")?;
        Ok((LogTail::Completed, size + 1))
    } else {
        file.set_len(start)?;
        Ok((LogTail::Cut { bytes: size - start }, start))
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
    let mut reverse = ReverseLines::new(file, end);
    while let Some(line) = reverse.previous_line()? {
        if let Ok(event) = parse_line(&line) {
            return Ok(Some(event));
        }
    }
    Ok(None)
}
