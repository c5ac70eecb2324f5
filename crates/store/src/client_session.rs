//! A session whose files a client keeps. The files are those of a session on disk, and so are their contents; what is
//! different is that a write is a request, which waits in the queue of [`ClientFiles`].
//!
//! There is no lock: the client decides who may open its session, and one server opens it once.

use std::io;
use std::sync::Arc;

use hangar_agent::log::Seq;
use hangar_files::{ClientFiles, FileError, FileRequest, SessionFiles};
use hangar_protocol::{Event, EventId};
use jiff::Timestamp;

use crate::append::AppendError;
use crate::checkpoints::{self, CheckpointEntry};
use crate::lines::parse_line;
use crate::meta::META_FILE;
use crate::session::{LOG_FILE, LogKeeper, LogTail, LogWriter, OpenSession, PLAN_FILE};
use crate::yaml::YamlDocument;
use crate::{SessionId, SessionMeta, StoreError};

/// The directories of a new session.
const FOLDERS: [&str; 3] = [checkpoints::DIR, "files", "temp"];

/// A session with a client, before it is opened.
#[derive(Debug, Clone)]
pub struct ClientSession {
    pub files: ClientFiles,
    /// Files of the session that the client has; none for a new one.
    pub stored: Option<StoredSession>,
}

/// The files of a session that opening it takes.
#[derive(Debug, Clone)]
pub struct StoredSession {
    log: String,
    document: YamlDocument,
    checkpoints: Vec<CheckpointEntry>,
}

impl ClientSession {
    pub async fn load(client: ClientFiles) -> Result<Self, FileError> {
        let files: &dyn SessionFiles = &client;
        let log = files.read(LOG_FILE).await?;
        let facts = files.read(META_FILE).await?;
        if log.is_none() && facts.is_none() {
            return Ok(Self { files: client, stored: None });
        }
        let checkpoints = checkpoints::list(files).await?;
        // From here on the plan is known; its absence is not an error.
        files.read(PLAN_FILE).await?;
        let stored = StoredSession {
            log: log.unwrap_or_default(),
            document: YamlDocument::parse(&facts.unwrap_or_default()),
            checkpoints,
        };
        Ok(Self { files: client, stored: Some(stored) })
    }

    /// Begins the session anew, whatever the client has of it.
    pub fn create(self, id: SessionId, meta: SessionMeta) -> Result<OpenSession, StoreError> {
        let files: Arc<dyn SessionFiles> = Arc::new(self.files);
        let made = FOLDERS
            .iter()
            .try_for_each(|folder| files.put(FileRequest::MakeDir { path: files.path(folder) }))
            .and_then(|()| files.put(checkpoints::write_index(&*files, checkpoints::HEADER)));
        made.map_err(|error| StoreError::io("creating", &files.path(""))(error.into()))?;
        let log = ClientLog { files: Arc::clone(&files), bytes: 0 };
        let mut session = OpenSession::new(id, files, Box::new(log), meta, YamlDocument::default());
        session.checkpoints = Some(Vec::new());
        session.save_meta()?;
        Ok(session)
    }

    /// Resumes the session and repairs the end of its log.
    pub fn resume(self, id: SessionId, now: Timestamp) -> Result<OpenSession, StoreError> {
        let Some(StoredSession { mut log, document, checkpoints }) = self.stored else {
            return Err(StoreError::NotFound { id });
        };
        let files: Arc<dyn SessionFiles> = Arc::new(self.files);
        let path = files.path(LOG_FILE);
        let whole = log.rfind('\n').map_or(0, |at| at + 1);
        let (tail, mended) = if whole == log.len() {
            (LogTail::Whole, None)
        } else if parse_line(&log.as_bytes()[whole..]).is_ok() {
            log.push('\n');
            (LogTail::Completed, Some(FileRequest::Append { path: path.clone(), content: b"\n".to_vec() }))
        } else {
            let bytes = (log.len() - whole) as u64;
            log.truncate(whole);
            let content = log.clone().into_bytes();
            (LogTail::Cut { bytes }, Some(FileRequest::Write { path: path.clone(), content, private: true }))
        };
        if let Some(mended) = mended {
            files.put(mended).map_err(|error| StoreError::io("mending", &path)(error.into()))?;
        }
        let meta = SessionMeta::from_document(&document).unwrap_or_else(|| {
            SessionMeta::from_first_event(events(&log).next().as_ref().map(Event::body), now)
        });
        let writer = ClientLog { files: Arc::clone(&files), bytes: log.len() as u64 };
        let mut session = OpenSession::new(id, files, Box::new(writer), meta, document);
        session.end = Seq(memchr::memchr_iter(b'\n', log.as_bytes()).count() as u64);
        session.last = last_event_id(&log);
        session.tail = tail;
        session.checkpoints = Some(checkpoints);
        Ok(session)
    }
}

impl StoredSession {
    /// The events of the log. Lines that are none are passed over.
    pub fn events(&self) -> impl Iterator<Item = Event> + '_ {
        events(&self.log)
    }

    pub fn last_event_id(&self) -> Option<EventId> {
        last_event_id(&self.log)
    }
}

fn events(log: &str) -> impl DoubleEndedIterator<Item = Event> + '_ {
    log.lines().filter_map(|line| parse_line(line.as_bytes()).ok())
}

fn last_event_id(log: &str) -> Option<EventId> {
    events(log).next_back().map(|event| event.id().clone())
}

/// Asks for the events of a session. Those on their way come before the answer.
pub async fn read_events(files: &dyn SessionFiles) -> Result<Vec<Event>, FileError> {
    Ok(events(&files.read(LOG_FILE).await?.unwrap_or_default()).collect())
}

/// Asks for what lists show of a session.
pub async fn read_meta(files: &dyn SessionFiles) -> Result<Option<SessionMeta>, FileError> {
    let facts = files.read(META_FILE).await?;
    Ok(facts.and_then(|facts| SessionMeta::from_document(&YamlDocument::parse(&facts))))
}

/// A log that a client appends to. How long it lasts is up to the client.
#[derive(Debug)]
struct ClientLog {
    files: Arc<dyn SessionFiles>,
    bytes: u64,
}

impl LogWriter for ClientLog {
    fn append(&mut self, lines: &mut Vec<u8>) -> Result<(), AppendError> {
        let bytes = lines.len() as u64;
        let append = FileRequest::Append { path: self.files.path(LOG_FILE), content: std::mem::take(lines) };
        self.files.put(append).map_err(|error| AppendError::Io(error.into()))?;
        self.bytes += bytes;
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl LogKeeper for ClientLog {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use futures_util::future::BoxFuture;
    use hangar_agent::log::{ListedFact, SessionLog, SessionNotes};
    use hangar_agent::session::Checkpoint;
    use hangar_files::{ClientReply, ClientRequest, Conventions, FileReply, FilesClient, Site};
    use hangar_protocol::Body;
    use hangar_protocol::data::{SessionInfo, WorkingDirectory};
    use parking_lot::Mutex;

    use super::*;

    #[derive(Default)]
    struct Files(Mutex<BTreeMap<PathBuf, Vec<u8>>>);

    impl FilesClient for Files {
        fn ask(&self, request: ClientRequest) -> BoxFuture<'static, Result<ClientReply, FileError>> {
            let mut files = self.0.lock();
            let ClientRequest::File(request) = request else { unreachable!("no tables") };
            let reply = match request {
                FileRequest::Read { path } => {
                    files.get(&path).cloned().map(FileReply::Content).ok_or(FileError::Missing)
                }
                FileRequest::Write { path, content, .. } => {
                    files.insert(path, content);
                    Ok(FileReply::Done)
                }
                FileRequest::Append { path, content } => {
                    files.entry(path).or_default().extend(content);
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
            Box::pin(std::future::ready(reply.map(ClientReply::File)))
        }
    }

    async fn load(files: &Arc<Files>) -> ClientSession {
        let site = Site {
            root: "/s".to_owned(),
            conventions: Conventions::Posix,
            has_tables: false,
            initial_cwd: "/w".to_owned(),
        };
        ClientSession::load(ClientFiles::new(Arc::clone(files) as Arc<dyn FilesClient>, site)).await.unwrap()
    }

    fn id() -> SessionId {
        "0b5a2a57-6f0a-4b5e-9f0c-0c8f0e4ad001".parse().unwrap()
    }

    fn meta() -> SessionMeta {
        let context =
            WorkingDirectory { cwd: "/w".to_owned(), git_root: None, repository: None, branch: None };
        SessionMeta::new(context, Timestamp::UNIX_EPOCH)
    }

    fn event(text: &str) -> Event {
        let body = Body::from(SessionInfo::new("note", text.to_owned()));
        Event::new(EventId(text.to_owned()), "2026-01-01T00:00:00.000Z".to_owned(), None, None, body)
    }

    /// A session with two events, whose log then ends like this; what becomes of it and where it ends.
    async fn check(tail: &str, end: u64, last: &str) {
        let files = Arc::new(Files::default());
        let mut session = load(&files).await.create(id(), meta()).unwrap();
        session.append(Seq(0), &[event("one"), event("two")]).unwrap();
        session.settle().unwrap().await.unwrap();
        let log = PathBuf::from("/s/events.jsonl");
        files.0.lock().entry(log.clone()).or_default().extend(tail.as_bytes());

        let mut session = load(&files).await.resume(id(), Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!((session.end(), session.last_event_id()), (Seq(end), Some(&EventId(last.to_owned()))));
        session.append(Seq(end), &[event("next")]).unwrap();
        session.settle().unwrap().await.unwrap();
        let text = String::from_utf8(files.0.lock()[&log].clone()).unwrap();
        let whole = text.lines().all(|line| parse_line(line.as_bytes()).is_ok());
        assert!(whole && text.ends_with('\n') && text.lines().count() as u64 == end + 1, "{text}");
        assert_eq!(session.log_bytes(), text.len() as u64);
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
        let session = load(&Arc::default()).await;
        assert!(session.stored.is_none());
        assert!(matches!(session.resume(id(), Timestamp::UNIX_EPOCH), Err(StoreError::NotFound { .. })));
    }

    #[tokio::test]
    async fn checkpoints_are_listed_and_read() {
        let files = Arc::new(Files::default());
        let mut session = load(&files).await.create(id(), meta()).unwrap();
        let checkpoint = Checkpoint { number: 1, title: "First".to_owned(), content: "so far".to_owned() };
        session.note(ListedFact::Checkpoint(checkpoint)).unwrap();
        let files = &**session.files();
        assert_eq!(checkpoints::list(files).await.unwrap()[0].file, "001-first.md");
        assert_eq!(checkpoints::read(files, 1).await.unwrap().as_deref(), Some("so far"));
        assert_eq!(read_meta(files).await.unwrap().unwrap().summary_count, 1);
    }
}
