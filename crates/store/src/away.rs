//! A session whose files a client keeps. The files are those of a session on disk, and so are their contents; what is
//! different is that writing is asking, which takes time, so writes wait in the queue of [`ClientFiles`].
//!
//! There is no lock: the client decides who may open its session, and one server opens it once.

use std::io;

use futures_util::future::BoxFuture;
use hangar_agent::log::{Fact, LogError, Seq, SessionLog};
use hangar_agent::session::Checkpoint;
use hangar_files::{ClientFiles, ClientHome, FileError, FileRequest, Weight};
use hangar_protocol::{Event, EventId};
use jiff::Timestamp;

use crate::checkpoints::{self, CheckpointEntry};
use crate::lines::parse_line;
use crate::meta::META_FILE;
use crate::session::{LOG_FILE, encode};
use crate::yaml::Document;
use crate::{SessionId, SessionMeta};

/// The folders of a new session.
const FOLDERS: [&str; 3] = ["checkpoints", "files", "temp"];
const CHECKPOINTS: &str = "checkpoints";

/// What a client has of a session.
#[derive(Debug, Clone)]
pub struct Kept {
    log: String,
    document: Document,
    checkpoints: Vec<CheckpointEntry>,
}

impl Kept {
    /// Asks for everything that opening the session takes. `None` if the client does not have it.
    pub async fn load(home: &ClientHome) -> Result<Option<Self>, FileError> {
        let log = found(home.files.read(home.path(LOG_FILE)).await)?;
        let facts = found(home.files.read(home.path(META_FILE)).await)?;
        if log.is_none() && facts.is_none() {
            return Ok(None);
        }
        let index = found(home.files.read(index_path(home)).await)?.unwrap_or_default();
        // From here on the plan is known; that there is none is no error.
        found(home.files.read(home.path("plan.md")).await)?;
        Ok(Some(Self {
            log: log.unwrap_or_default(),
            document: Document::parse(&facts.unwrap_or_default()),
            checkpoints: checkpoints::parse(&index),
        }))
    }

    /// The events of the log. Lines that are none are passed over.
    pub fn events(&self) -> impl Iterator<Item = Event> + '_ {
        self.log.lines().filter_map(|line| parse_line(line.as_bytes()).ok())
    }

    pub fn last_event_id(&self) -> Option<EventId> {
        let last = self.log.lines().rev().find_map(|line| parse_line(line.as_bytes()).ok());
        last.map(|event| event.id().clone())
    }
}

/// Asks for the events of a session. Those on their way come before the answer.
pub async fn events(home: &ClientHome) -> Result<Vec<Event>, FileError> {
    let log = found(home.files.read(home.path(LOG_FILE)).await)?.unwrap_or_default();
    Ok(log.lines().filter_map(|line| parse_line(line.as_bytes()).ok()).collect())
}

/// Asks for what lists show of a session.
pub async fn facts(home: &ClientHome) -> Result<Option<SessionMeta>, FileError> {
    let facts = found(home.files.read(home.path(META_FILE)).await)?;
    Ok(facts.and_then(|facts| SessionMeta::from_document(&Document::parse(&facts))))
}

/// Asks for the checkpoints of a session, oldest first.
pub async fn checkpoints(home: &ClientHome) -> Result<Vec<CheckpointEntry>, FileError> {
    let index = found(home.files.read(index_path(home)).await)?.unwrap_or_default();
    Ok(checkpoints::parse(&index))
}

/// Asks for the text of a checkpoint; `None` where there is none of that number.
pub async fn checkpoint(home: &ClientHome, number: u64) -> Result<Option<String>, FileError> {
    let entry = checkpoints(home).await?.into_iter().find(|entry| entry.number == number);
    match entry.filter(|entry| checkpoints::is_plain(&entry.file)) {
        Some(entry) => found(home.files.read(home.path(&format!("{CHECKPOINTS}/{}", entry.file))).await),
        None => Ok(None),
    }
}

fn found(read: Result<String, FileError>) -> Result<Option<String>, FileError> {
    match read {
        Ok(text) => Ok(Some(text)),
        Err(FileError::Missing) => Ok(None),
        Err(error) => Err(error),
    }
}

fn index_path(home: &ClientHome) -> String {
    home.path(&format!("{CHECKPOINTS}/{}", checkpoints::INDEX))
}

/// The one writer of a session that a client keeps.
#[derive(Debug)]
pub struct AwaySession {
    id: SessionId,
    home: ClientHome,
    end: Seq,
    bytes: u64,
    last: Option<EventId>,
    meta: SessionMeta,
    document: Document,
    /// `meta` as the client has it.
    saved: Option<SessionMeta>,
    checkpoints: Vec<CheckpointEntry>,
    buffer: Vec<u8>,
}

impl AwaySession {
    /// Begins a new session.
    pub fn create(id: SessionId, home: ClientHome, meta: SessionMeta) -> Result<Self, LogError> {
        let mut session = Self {
            id,
            home,
            end: Seq(0),
            bytes: 0,
            last: None,
            meta,
            document: Document::default(),
            saved: None,
            checkpoints: Vec::new(),
            buffer: Vec::new(),
        };
        for folder in FOLDERS {
            let path = session.home.path(folder);
            session.put(FileRequest::MakeDir { path }, Weight::Aside)?;
        }
        session.write(index_path(&session.home), checkpoints::HEADER.to_owned())?;
        session.save_meta()?;
        Ok(session)
    }

    /// Goes on with a session, mending the end of its log.
    pub fn resume(id: SessionId, home: ClientHome, kept: Kept, now: Timestamp) -> Result<Self, LogError> {
        let Kept { mut log, document, checkpoints } = kept;
        let whole = log.rfind('\n').map_or(0, |at| at + 1);
        let mended = if whole == log.len() {
            None
        } else if parse_line(&log.as_bytes()[whole..]).is_ok() {
            log.push('\n');
            Some(FileRequest::Append { path: home.path(LOG_FILE), content: "\n".to_owned() })
        } else {
            log.truncate(whole);
            let (path, content) = (home.path(LOG_FILE), log.clone());
            Some(FileRequest::Write { path, content, private: true })
        };
        let first = log.lines().find_map(|line| parse_line(line.as_bytes()).ok());
        let saved = SessionMeta::from_document(&document);
        let meta = saved
            .clone()
            .unwrap_or_else(|| SessionMeta::from_first_event(first.as_ref().map(Event::body), now));
        let last = log.lines().rev().find_map(|line| parse_line(line.as_bytes()).ok());
        let session = Self {
            id,
            home,
            end: Seq(memchr::memchr_iter(b'\n', log.as_bytes()).count() as u64),
            bytes: log.len() as u64,
            last: last.map(|event| event.id().clone()),
            meta,
            document,
            saved,
            checkpoints,
            buffer: Vec::new(),
        };
        if let Some(mended) = mended {
            session.put(mended, Weight::Log)?;
        }
        Ok(session)
    }

    pub fn id(&self) -> &SessionId {
        &self.id
    }

    pub fn home(&self) -> &ClientHome {
        &self.home
    }

    pub fn end(&self) -> Seq {
        self.end
    }

    pub fn last_event_id(&self) -> Option<&EventId> {
        self.last.as_ref()
    }

    pub fn log_bytes(&self) -> u64 {
        self.bytes
    }

    pub fn meta(&self) -> &SessionMeta {
        &self.meta
    }

    fn files(&self) -> &ClientFiles {
        &self.home.files
    }

    fn put(&self, request: FileRequest, weight: Weight) -> Result<(), LogError> {
        self.files().put(request, weight).map_err(|error| failed(&self.id, error.into()))
    }

    fn write(&self, path: String, content: String) -> Result<(), LogError> {
        self.put(FileRequest::Write { path, content, private: true }, Weight::Aside)
    }

    /// Writes `workspace.yaml` unless it says the same already, under another name first: a client that dies in
    /// between has the old one or the new one.
    fn save_meta(&mut self) -> Result<(), LogError> {
        if self.saved.as_ref() == Some(&self.meta) {
            return Ok(());
        }
        self.document.set("id", self.id.as_str());
        self.meta.write_to(&mut self.document);
        let to = self.home.path(META_FILE);
        let from = format!("{to}.tmp");
        self.write(from.clone(), self.document.render())?;
        self.put(FileRequest::Rename { from, to }, Weight::Aside)?;
        self.saved = Some(self.meta.clone());
        Ok(())
    }

    fn write_checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<(), LogError> {
        let renewed = checkpoints::renew(self.checkpoints.clone(), checkpoint);
        for file in renewed.stale {
            let path = self.home.path(&format!("{CHECKPOINTS}/{file}"));
            self.put(FileRequest::Remove { path, with_content: false }, Weight::Aside)?;
        }
        let path = self.home.path(&format!("{CHECKPOINTS}/{}", renewed.file));
        self.write(path, checkpoint.content.clone())?;
        self.checkpoints = checkpoints::parse(&renewed.index);
        self.write(index_path(&self.home), renewed.index)
    }
}

fn failed(id: &SessionId, source: io::Error) -> LogError {
    LogError::Write { id: id.to_string(), source }
}

impl SessionLog for AwaySession {
    fn append(&mut self, expected: Seq, events: &[Event]) -> Result<Seq, LogError> {
        if expected != self.end {
            let id = self.id.to_string();
            return Err(LogError::Moved { id, expected: expected.0, actual: self.end.0 });
        }
        let (ends, last) = encode(&mut self.buffer, events).map_err(|error| failed(&self.id, error))?;
        let Some(last) = last else { return Ok(self.end) };
        let lines = String::from_utf8(std::mem::take(&mut self.buffer))
            .map_err(|error| failed(&self.id, io::Error::other(error)))?;
        let bytes = lines.len() as u64;
        self.put(FileRequest::Append { path: self.home.path(LOG_FILE), content: lines }, Weight::Log)?;
        self.bytes += bytes;
        self.end.0 += ends.len() as u64;
        self.last = Some(last.id().clone());
        self.meta.note_event(last);
        Ok(self.end)
    }

    /// Brings the time in `workspace.yaml` up to that of the last event. How long the client's files last is up to it.
    fn sync(&mut self) -> Result<(), LogError> {
        self.save_meta()
    }

    fn settle(&mut self) -> Option<BoxFuture<'static, Result<(), LogError>>> {
        let settled = self.files().settled()?;
        let id = self.id.clone();
        Some(Box::pin(async move { settled.await.map_err(|error| failed(&id, error.into())) }))
    }

    fn plan(&mut self) -> Option<String> {
        self.home.plan()
    }

    fn note(&mut self, fact: Fact) -> Result<(), LogError> {
        if let Fact::Checkpoint(checkpoint) = &fact {
            self.write_checkpoint(checkpoint)?;
        }
        self.meta.note(fact);
        self.save_meta()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use parking_lot::Mutex;

    use hangar_files::{Conventions, FileKeeper, FileReply};
    use hangar_protocol::Body;
    use hangar_protocol::data::{SessionInfo, WorkingDirectory};

    use super::*;

    #[derive(Default)]
    struct Files(Mutex<BTreeMap<String, String>>);

    impl FileKeeper for Files {
        fn ask(&self, request: FileRequest) -> BoxFuture<'static, Result<FileReply, FileError>> {
            let mut files = self.0.lock();
            let reply = match request {
                FileRequest::Read { path } => {
                    files.get(&path).cloned().map(FileReply::Text).ok_or(FileError::Missing)
                }
                FileRequest::Write { path, content, .. } => {
                    files.insert(path, content);
                    Ok(FileReply::Done)
                }
                FileRequest::Append { path, content } => {
                    files.entry(path).or_default().push_str(&content);
                    Ok(FileReply::Done)
                }
                FileRequest::Rename { from, to } => {
                    let content = files.remove(&from).unwrap();
                    files.insert(to, content);
                    Ok(FileReply::Done)
                }
                FileRequest::Remove { path, .. } => {
                    files.remove(&path);
                    Ok(FileReply::Done)
                }
                _ => Ok(FileReply::Done),
            };
            Box::pin(std::future::ready(reply))
        }
    }

    fn home(files: &Arc<Files>) -> ClientHome {
        let keeper = Arc::clone(files) as Arc<dyn FileKeeper>;
        ClientHome::new(keeper, "/s", Conventions::Posix, false, "/w")
    }

    fn id() -> SessionId {
        "0b5a2a57-6f0a-4b5e-9f0c-0c8f0e4ad001".parse().unwrap()
    }

    fn event(text: &str) -> Event {
        let body = Body::from(SessionInfo::new("note", text.to_owned()));
        Event::new(EventId(text.to_owned()), "2026-01-01T00:00:00.000Z".to_owned(), None, None, body)
    }

    /// A session with two events, whose log then ends like this; what becomes of it and where it ends.
    async fn check(tail: &str, end: u64, last: &str) {
        let files = Arc::new(Files::default());
        let context =
            WorkingDirectory { cwd: "/w".to_owned(), git_root: None, repository: None, branch: None };
        let meta = SessionMeta::new(context, Timestamp::UNIX_EPOCH);
        let mut session = AwaySession::create(id(), home(&files), meta).unwrap();
        session.append(Seq(0), &[event("one"), event("two")]).unwrap();
        session.settle().unwrap().await.unwrap();
        let log = "/s/events.jsonl".to_owned();
        files.0.lock().entry(log.clone()).or_default().push_str(tail);

        let again = home(&files);
        let kept = Kept::load(&again).await.unwrap().unwrap();
        let mut session = AwaySession::resume(id(), again, kept, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!((session.end(), session.last_event_id()), (Seq(end), Some(&EventId(last.to_owned()))));
        session.append(Seq(end), &[event("next")]).unwrap();
        session.settle().unwrap().await.unwrap();
        let text = files.0.lock()[&log].clone();
        let whole = text.lines().all(|line| parse_line(line.as_bytes()).is_ok());
        assert!(whole && text.ends_with('\n') && text.lines().count() as u64 == end + 1, "{text}");
    }

    #[tokio::test]
    async fn a_whole_log_is_gone_on_with() {
        check("", 2, "two").await;
    }

    #[tokio::test]
    async fn part_of_an_event_at_the_end_is_cut_off() {
        check("{\"type\":\"user.mes", 2, "two").await;
    }

    #[tokio::test]
    async fn an_event_that_lacks_only_its_newline_is_completed() {
        let line = serde_json::to_string(&event("three")).unwrap();
        check(&line, 3, "three").await;
    }

    #[tokio::test]
    async fn a_session_that_the_client_does_not_have_is_none() {
        assert!(Kept::load(&home(&Arc::default())).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn checkpoints_are_listed_and_read() {
        let files = Arc::new(Files::default());
        let context =
            WorkingDirectory { cwd: "/w".to_owned(), git_root: None, repository: None, branch: None };
        let meta = SessionMeta::new(context, Timestamp::UNIX_EPOCH);
        let home = home(&files);
        let mut session = AwaySession::create(id(), home.clone(), meta).unwrap();
        let checkpoint = Checkpoint { number: 1, title: "First".to_owned(), content: "so far".to_owned() };
        session.note(Fact::Checkpoint(checkpoint)).unwrap();
        assert_eq!(checkpoints(&home).await.unwrap()[0].file, "001-first.md");
        assert_eq!(super::checkpoint(&home, 1).await.unwrap().as_deref(), Some("so far"));
        assert_eq!(facts(&home).await.unwrap().unwrap().summary_count, 1);
    }
}
