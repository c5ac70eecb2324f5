//! All sessions of one home.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hangar_disk::{FileKind, Folder};
use hangar_protocol::{Body, Event, EventKind};
use jiff::Timestamp;

use crate::lines::parse_line;
use crate::lock::{Lock, LockError};
use crate::meta::{META_BYTES, META_FILE};
use crate::replica::{LogCopy, LogReplica};
use crate::reverse_lines::ReverseLines;
use crate::session::LOG_FILE;
use crate::unfinished;
use crate::yaml::YamlDocument;
use crate::{Events, LogLines, OpenSession, SessionId, SessionMeta, SessionName, StoreError};

/// Directories of sessions on their way out start with this; no session id can.
const DELETED: &str = ".deleted-";

#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
    replica: Option<Arc<dyn LogReplica>>,
}

/// Copy of a log that another machine writes.
#[derive(Debug)]
pub struct CopiedLog(std::fs::File);

impl CopiedLog {
    /// Appends whole lines.
    pub fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        io::Write::write_all(&mut self.0, lines)
    }
}

impl Store {
    /// Sessions live in `<home>/session-state`, which need not exist yet.
    pub fn new(home: &Path) -> Self {
        Self { root: home.join("session-state"), replica: None }
    }

    /// The same sessions, with a copy of their logs elsewhere.
    pub fn with_replica(self, replica: Option<Arc<dyn LogReplica>>) -> Self {
        Self { replica, ..self }
    }

    fn copy(&self, id: &SessionId) -> Option<Box<dyn LogCopy>> {
        self.replica.as_ref()?.open(id)
    }

    /// Replaces the log of a session by its copy, or begins it with the copy. What is beside the log goes: it may be that of an
    /// older state.
    pub fn restore(&self, id: &SessionId, lines: &[u8]) -> Result<(), StoreError> {
        match self.delete(id) {
            Ok(()) | Err(StoreError::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
        if lines.is_empty() {
            return Ok(());
        }
        let file = self.write_log(id, lines)?;
        file.sync_data().map_err(StoreError::io("restoring", &self.log_path(id)))
    }

    /// Begins a copy of a log that another machine writes, in place of an earlier one. It grows with [`CopiedLog::append`], and need
    /// not survive the machine.
    pub fn begin_copy(&self, id: &SessionId, lines: &[u8]) -> Result<CopiedLog, StoreError> {
        match self.delete(id) {
            Ok(()) | Err(StoreError::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(CopiedLog(self.write_log(id, lines)?))
    }

    fn write_log(&self, id: &SessionId, lines: &[u8]) -> Result<std::fs::File, StoreError> {
        let write = || -> io::Result<std::fs::File> {
            let folder = Folder::ensure(&self.root)?.ensure_folder(id.as_str())?;
            for name in ["checkpoints", "files"] {
                folder.ensure_folder(name)?;
            }
            let mut file = folder.create_log(LOG_FILE)?;
            io::Write::write_all(&mut file, lines)?;
            Ok(file)
        };
        write().map_err(StoreError::io("restoring", &self.log_path(id)))
    }

    /// The directory that holds one directory per session.
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn session_dir(&self, id: &SessionId) -> PathBuf {
        self.root.join(id.as_str())
    }

    pub fn contains(&self, id: &SessionId) -> bool {
        self.log_path(id).is_file()
    }

    /// The directory of a session, held open. Where the sessions are is for the owner of the home to say, links or not;
    /// from there on none is followed.
    pub fn folder(&self, id: &SessionId) -> io::Result<Folder> {
        Folder::open(&self.root)?.folder(id.as_str())
    }

    /// The log of a session, opened to be read.
    pub(crate) fn open_log(&self, id: &SessionId) -> Result<File, StoreError> {
        let opened = self.folder(id).and_then(|folder| folder.read(LOG_FILE));
        opened.map_err(|error| missing_or(id, &self.log_path(id), error))
    }

    /// Whether a process works on the session right now.
    pub fn is_in_use(&self, id: &SessionId) -> bool {
        let held = |folder: Folder| matches!(Lock::acquire(&folder), Err(LockError::Held { .. }));
        self.folder(id).is_ok_and(held)
    }

    /// Bytes of everything that is kept of a session. What cannot be looked at counts as nothing.
    pub fn size(&self, id: &SessionId) -> u64 {
        let mut total = 0;
        let mut open = vec![self.session_dir(id)];
        while let Some(dir) = open.pop() {
            for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
                match entry.metadata() {
                    Ok(metadata) if metadata.is_dir() => open.push(entry.path()),
                    Ok(metadata) => total += metadata.len(),
                    Err(_) => {}
                }
            }
        }
        total
    }

    /// Starts a session with an empty log.
    pub fn create(&self, id: &SessionId, meta: SessionMeta) -> Result<OpenSession, StoreError> {
        let dir = self.session_dir(id);
        let made = || -> io::Result<Folder> {
            let folder = Folder::ensure(&self.root)?.ensure_folder(id.as_str())?;
            for name in ["checkpoints", "files"] {
                folder.ensure_folder(name)?;
            }
            Ok(folder)
        };
        let folder = made().map_err(StoreError::io("creating", &dir))?;
        let lock = lock(id, &folder)?;
        let path = dir.join(LOG_FILE);
        let file = match folder.create_log(LOG_FILE) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(StoreError::Exists { id: id.clone() });
            }
            Err(error) => return Err(StoreError::io("creating", &path)(error)),
        };
        let mut session =
            OpenSession::start(id.clone(), folder, lock, file, meta, YamlDocument::default(), self.copy(id))?;
        session.save_meta()?;
        Ok(session)
    }

    /// Opens a session for writing. Its log is mended if the last writer died in the middle of a line.
    pub fn open(&self, id: &SessionId) -> Result<OpenSession, StoreError> {
        let path = self.log_path(id);
        let folder = self.folder(id).map_err(|error| missing_or(id, &path, error))?;
        match folder.kind(LOG_FILE) {
            Ok(FileKind::Folder) => return Err(StoreError::NotFound { id: id.clone() }),
            Ok(_) => {}
            Err(error) => return Err(missing_or(id, &path, error)),
        }
        let lock = lock(id, &folder)?;
        let file = folder.append(LOG_FILE).map_err(|error| missing_or(id, &path, error))?;
        let written = last_written(&file);
        let document = read_document(&folder);
        let meta = SessionMeta::from_document(&document).unwrap_or_else(|| meta_from_log(&folder, written));
        OpenSession::start(id.clone(), folder, lock, file, meta, document, self.copy(id))
    }

    /// Logs the answers that were arriving when the last process of a session was killed. One that another process has open
    /// stays as it is.
    pub fn recover(&self, id: &SessionId) {
        if self.folder(id).is_ok_and(|folder| unfinished::is_left(&folder)) {
            drop(self.open(id));
        }
    }

    /// All events of a session, from the first on.
    pub fn read(&self, id: &SessionId) -> Result<Events, StoreError> {
        Ok(Events::new(self.lines(id)?, |_| true))
    }

    /// The events of the kinds that are wanted. The others cost no parsing and no memory.
    pub fn read_kinds<F: FnMut(EventKind) -> bool>(
        &self,
        id: &SessionId,
        mut wants: F,
    ) -> Result<Events<impl FnMut(&str) -> bool + use<F>>, StoreError> {
        let wants = move |name: &str| EventKind::of_type(name).is_some_and(&mut wants);
        Ok(Events::new(self.lines(id)?, wants))
    }

    /// The lines of a session's log, unparsed.
    pub fn lines(&self, id: &SessionId) -> Result<LogLines, StoreError> {
        Ok(LogLines::new(self.open_log(id)?, self.log_path(id)))
    }

    /// Working directories of the session according to its log, the latest last. `workspace.yaml` is for lists only.
    pub fn directories(&self, id: &SessionId) -> Result<Vec<String>, StoreError> {
        let kinds = [EventKind::SessionStart, EventKind::SessionResume, EventKind::ContextChanged];
        let mut directories = Vec::new();
        for event in self.read_kinds(id, |kind| kinds.contains(&kind))? {
            let event = event?;
            let context = match event.body() {
                Body::SessionStart(start) => start.context.as_ref(),
                Body::SessionResume(resume) => resume.context.as_ref(),
                Body::ContextChanged(changed) => Some(&changed.directory),
                _ => None,
            };
            directories.extend(context.map(|context| context.cwd.clone()));
        }
        Ok(directories)
    }

    /// The last `count` events in the order of the log, without reading what is before them.
    pub fn read_back(&self, id: &SessionId, count: usize) -> Result<Vec<Event>, StoreError> {
        let path = self.log_path(id);
        let file = self.open_log(id)?;
        let read = || -> io::Result<Vec<Event>> {
            let mut reverse = ReverseLines::new(&file, file.metadata()?.len());
            let mut events = Vec::new();
            while events.len() < count {
                let Some(line) = reverse.previous_line()? else { break };
                events.extend(parse_line(&line).ok());
            }
            events.reverse();
            Ok(events)
        };
        read().map_err(StoreError::io("reading", &path))
    }

    /// Renames a session that no process writes.
    pub fn rename(&self, id: &SessionId, name: SessionName) -> Result<(), StoreError> {
        self.open(id)?.rename(name)
    }

    /// Deletes a session that no process writes. It disappears in one step, even if deleting its files is interrupted.
    pub fn delete(&self, id: &SessionId) -> Result<(), StoreError> {
        let dir = self.session_dir(id);
        let _lock = match self.folder(id) {
            Ok(folder) => lock(id, &folder)?,
            Err(error) => return Err(missing_or(id, &dir, error)),
        };
        let away = self.root.join(format!("{DELETED}{}-{id}", std::process::id()));
        std::fs::rename(&dir, &away).map_err(StoreError::io("deleting", &dir))?;
        match std::fs::remove_dir_all(&away) {
            // Another process swept it away.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            done => done.map_err(StoreError::io("deleting", &away))?,
        }
        self.sweep();
        Ok(())
    }

    /// Removes what a deletion that was killed has left. Another process may be doing the same.
    fn sweep(&self) {
        let entries = std::fs::read_dir(&self.root).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(DELETED)) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }

    fn log_path(&self, id: &SessionId) -> PathBuf {
        self.session_dir(id).join(LOG_FILE)
    }
}

fn lock(id: &SessionId, folder: &Folder) -> Result<Lock, StoreError> {
    Lock::acquire(folder).map_err(|error| match error {
        LockError::Held { pid } => StoreError::InUse { id: id.clone(), pid },
        LockError::Gone => StoreError::NotFound { id: id.clone() },
        LockError::Io(error) => StoreError::io("locking", folder.path())(error),
    })
}

fn missing_or(id: &SessionId, path: &Path, error: io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::NotFound => StoreError::NotFound { id: id.clone() },
        _ => StoreError::io("opening", path)(error),
    }
}

/// An unreadable `workspace.yaml` is as good as none: everything in it can be had from the log or asked for again.
pub(crate) fn read_document(folder: &Folder) -> YamlDocument {
    YamlDocument::parse(&folder.read_text(META_FILE, META_BYTES).unwrap_or_default())
}

pub(crate) fn meta_from_log(folder: &Folder, written: Timestamp) -> SessionMeta {
    let lines = folder.read(LOG_FILE).ok().map(|file| LogLines::new(file, folder.path().join(LOG_FILE)));
    let first = lines.and_then(|lines| Events::new(lines, |_: &str| true).next()?.ok());
    SessionMeta::from_first_event(first.as_ref().map(Event::body), written)
}

/// When the file was last written to; the epoch where the system does not say.
pub(crate) fn last_written(file: &File) -> Timestamp {
    file.metadata().map_or(Timestamp::UNIX_EPOCH, |metadata| modified(&metadata))
}

pub(crate) fn modified(metadata: &std::fs::Metadata) -> Timestamp {
    let time = metadata.modified().ok().and_then(|time| Timestamp::try_from(time).ok());
    time.unwrap_or(Timestamp::UNIX_EPOCH)
}
