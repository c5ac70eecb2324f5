//! Files of a session that a client keeps instead of this machine.
//!
//! All requests go through one bounded queue that one task works off, so a read sees every write before it. A write to the
//! log that fails, or that the client does not confirm in time, is remembered: every later one is refused, and the session
//! ends instead of having a log with a hole.

use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};

use crate::local::LocalFiles;
use crate::request::{FileError, FileReply, FileRequest};
use crate::session_files::SessionFiles;

/// Timeout of one request.
const PATIENCE: Duration = Duration::from_secs(30);
/// Requests that may wait, and the bytes in them. A session stops to let its log catch up long before.
const QUEUE: usize = 4096;
const MAX_QUEUED: usize = 64 << 20;
/// Appends to one file that wait are joined up to this size.
const APPEND_TOGETHER: usize = 1 << 20;

/// A client that keeps the files of one session, and its tables if it can.
pub trait FilesClient: Send + Sync {
    fn ask(&self, request: ClientRequest) -> BoxFuture<'static, Result<ClientReply, FileError>>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientRequest {
    File(FileRequest),
    Sql { kind: SqlKind, query: String },
    HasTables,
}

/// Kind of execution of SQL statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SqlKind {
    /// Any number of them, for their effect.
    Exec,
    /// One, for its rows.
    Query,
    /// One, for the number of rows that it changes.
    Run,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ClientReply {
    File(FileReply),
    Rows(Rows),
    Exists(bool),
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows {
    pub columns: Vec<String>,
    /// Rows of as many values as there are columns.
    pub rows: Vec<Vec<Value>>,
    pub affected: u64,
    pub last_id: Option<i64>,
}

/// Path syntax of a client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Conventions {
    #[default]
    Posix,
    Windows,
}

/// Location of a session's directory with a client.
#[derive(Debug, Clone)]
pub struct Site {
    pub root: String,
    pub conventions: Conventions,
    /// Whether the client has a database for the session too.
    pub has_tables: bool,
    /// Default working directory of the session.
    pub initial_cwd: String,
}

impl Site {
    fn path(&self, name: &str) -> PathBuf {
        let root = &self.root;
        PathBuf::from(match self.conventions {
            _ if name.is_empty() => root.clone(),
            Conventions::Posix => format!("{}/{name}", root.trim_end_matches('/')),
            Conventions::Windows => {
                format!("{}\\{}", root.trim_end_matches(['/', '\\']), name.replace('/', "\\"))
            }
        })
    }
}

/// The files of one session with a client. Clones share one queue.
#[derive(Clone)]
pub struct ClientFiles(Arc<Shared>);

struct Shared {
    site: Site,
    jobs: mpsc::Sender<Job>,
    /// Jobs that were put into the queue, ever.
    put: AtomicU64,
    done: watch::Receiver<u64>,
    progress: Arc<Progress>,
}

struct Job {
    request: ClientRequest,
    answers: Vec<oneshot::Sender<Result<ClientReply, FileError>>>,
}

/// State that the worker shares with those who make requests.
struct Progress {
    log: PathBuf,
    /// Error of the first write to the log that failed.
    broken: OnceLock<FileError>,
    plan_path: PathBuf,
    plan: Mutex<Option<String>>,
    /// Bytes that wait.
    queued: AtomicUsize,
}

impl fmt::Debug for ClientFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ClientFiles").field(&self.0.site).finish()
    }
}

impl ClientFiles {
    /// Starts the worker, on the runtime that this is called in. It ends with the last clone.
    pub fn new(client: Arc<dyn FilesClient>, site: Site) -> Self {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let (counter, done) = watch::channel(0);
        let progress = Arc::new(Progress {
            log: site.path("events.jsonl"),
            broken: OnceLock::new(),
            plan_path: site.path("plan.md"),
            plan: Mutex::default(),
            queued: AtomicUsize::new(0),
        });
        tokio::spawn(FutureExt::boxed(work(client, queue, counter, Arc::clone(&progress))));
        Self(Arc::new(Shared { site, jobs, put: AtomicU64::new(0), done, progress }))
    }

    pub fn site(&self) -> &Site {
        &self.0.site
    }

    pub async fn sql(&self, kind: SqlKind, query: impl Into<String>) -> Result<Rows, FileError> {
        match self.enqueue(ClientRequest::Sql { kind, query: query.into() }).await? {
            ClientReply::Rows(rows) => Ok(rows),
            other => Err(unexpected(&other)),
        }
    }

    /// Whether the database has been made.
    pub async fn has_tables(&self) -> Result<bool, FileError> {
        match self.enqueue(ClientRequest::HasTables).await? {
            ClientReply::Exists(exists) => Ok(exists),
            other => Err(unexpected(&other)),
        }
    }

    fn enqueue(
        &self,
        request: ClientRequest,
    ) -> impl Future<Output = Result<ClientReply, FileError>> + Send + use<> {
        let queued = self.try_enqueue(request);
        async move { queued?.await.map_err(|_| FileError::Gone)? }
    }

    fn try_enqueue(
        &self,
        request: ClientRequest,
    ) -> Result<oneshot::Receiver<Result<ClientReply, FileError>>, FileError> {
        let progress = &self.0.progress;
        progress.check(&request)?;
        let size = size(&request);
        let queued = progress.queued.fetch_add(size, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        let sent = if queued > 0 && queued + size > MAX_QUEUED {
            Err(FileError::Full(queued))
        } else {
            self.0.jobs.try_send(Job { request, answers: vec![answer] }).map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => FileError::Full(queued),
                mpsc::error::TrySendError::Closed(_) => FileError::Gone,
            })
        };
        match sent {
            Ok(()) => self.0.put.fetch_add(1, Ordering::Relaxed),
            Err(error) => {
                progress.queued.fetch_sub(size, Ordering::Relaxed);
                return Err(error);
            }
        };
        Ok(answered)
    }
}

impl SessionFiles for ClientFiles {
    fn ask(&self, request: FileRequest) -> BoxFuture<'static, Result<FileReply, FileError>> {
        let asked = match request {
            // Clients have no such request. One that dies in between has the old file or the new one.
            FileRequest::Replace { path, content } => {
                let mut draft = path.clone().into_os_string();
                draft.push(".tmp");
                let draft = PathBuf::from(draft);
                let write = FileRequest::Write { path: draft.clone(), content, private: true };
                if let Err(error) = self.try_enqueue(ClientRequest::File(write)) {
                    return Box::pin(ready(Err(error)));
                }
                FileRequest::Rename { from: draft, to: path }
            }
            request => request,
        };
        let asked = self.enqueue(ClientRequest::File(asked));
        Box::pin(async move {
            match asked.await? {
                ClientReply::File(reply) => Ok(reply),
                other => Err(unexpected(&other)),
            }
        })
    }

    fn settled(&self) -> Option<BoxFuture<'static, Result<(), FileError>>> {
        let put = self.0.put.load(Ordering::Relaxed);
        let mut done = self.0.done.clone();
        if *done.borrow() >= put && self.0.progress.broken.get().is_none() {
            return None;
        }
        let progress = Arc::clone(&self.0.progress);
        Some(Box::pin(async move {
            let all = done.wait_for(|done| *done >= put).await.is_ok();
            match progress.broken.get() {
                Some(error) => Err(error.clone()),
                None if all => Ok(()),
                None => Err(FileError::Gone),
            }
        }))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.site.path(name)
    }

    fn plan(&self) -> Option<String> {
        self.0.progress.plan.lock().clone()
    }

    fn local(&self) -> Option<&LocalFiles> {
        None
    }
}

/// Bytes that wait while a request does.
fn size(request: &ClientRequest) -> usize {
    match request {
        ClientRequest::File(FileRequest::Write { content, .. } | FileRequest::Append { content, .. }) => {
            content.len()
        }
        ClientRequest::Sql { query, .. } => query.len(),
        ClientRequest::File(_) | ClientRequest::HasTables => 0,
    }
}

fn unexpected(reply: &ClientReply) -> FileError {
    FileError::Refused(format!("it answered {reply:?}"))
}

impl Progress {
    fn is_log(&self, request: &ClientRequest) -> bool {
        match request {
            ClientRequest::File(FileRequest::Write { path, .. } | FileRequest::Append { path, .. }) => {
                *path == self.log
            }
            _ => false,
        }
    }

    /// Refuses to write behind a hole in the log.
    fn check(&self, request: &ClientRequest) -> Result<(), FileError> {
        match self.broken.get() {
            Some(error) if self.is_log(request) => Err(error.clone()),
            _ => Ok(()),
        }
    }

    fn learn(&self, request: &FileRequest, reply: &Result<ClientReply, FileError>) {
        let is_plan = |path: &Path| path == self.plan_path;
        let text = |content: &[u8]| Some(String::from_utf8_lossy(content).into_owned());
        let plan = match (request, reply) {
            (FileRequest::Read { path }, Ok(ClientReply::File(FileReply::Content(content))))
                if is_plan(path) =>
            {
                text(content)
            }
            (FileRequest::Read { path }, Err(FileError::Missing)) if is_plan(path) => None,
            (FileRequest::Write { path, content, .. }, Ok(_)) if is_plan(path) => text(content),
            (FileRequest::Remove { path, .. } | FileRequest::Rename { from: path, .. }, Ok(_))
                if is_plan(path) =>
            {
                None
            }
            _ => return,
        };
        *self.plan.lock() = plan;
    }
}

/// Processes the queue until its last sender is gone.
async fn work(
    client: Arc<dyn FilesClient>,
    mut queue: mpsc::Receiver<Job>,
    done: watch::Sender<u64>,
    progress: Arc<Progress>,
) {
    let mut held = None;
    loop {
        let Some(mut job) = (match held.take() {
            Some(job) => Some(job),
            None => queue.recv().await,
        }) else {
            return;
        };
        // Events come in bursts, and each request costs a way to the client and back.
        while let ClientRequest::File(FileRequest::Append { path, content }) = &mut job.request
            && content.len() < APPEND_TOGETHER
            && let Ok(next) = queue.try_recv()
        {
            match next {
                Job {
                    request: ClientRequest::File(FileRequest::Append { path: same, content: more }),
                    answers,
                } if same == *path => {
                    content.extend(more);
                    job.answers.extend(answers);
                }
                other => {
                    held = Some(other);
                    break;
                }
            }
        }
        let reply = perform(&*client, &job.request, &progress).await;
        progress.queued.fetch_sub(size(&job.request), Ordering::Relaxed);
        if let ClientRequest::File(request) = &job.request {
            progress.learn(request, &reply);
        }
        if let Err(error) = &reply
            && progress.is_log(&job.request)
        {
            let _ = progress.broken.set(error.clone());
        }
        let count = job.answers.len() as u64;
        for answer in job.answers {
            if let Err(Err(error)) = answer.send(reply.clone()) {
                tracing::warn!(%error, "a file of a session could not be written");
            }
        }
        done.send_modify(|done| *done += count);
    }
}

async fn perform(
    client: &dyn FilesClient,
    request: &ClientRequest,
    progress: &Progress,
) -> Result<ClientReply, FileError> {
    progress.check(request)?;
    match tokio::time::timeout(PATIENCE, client.ask(request.clone())).await {
        Ok(reply) => reply,
        Err(_) => Err(FileError::Late(PATIENCE.as_secs())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes down its requests, and fails from some request on.
    struct Script {
        asked: Mutex<Vec<ClientRequest>>,
        fails_from: usize,
        hangs: bool,
    }

    impl FilesClient for Script {
        fn ask(&self, request: ClientRequest) -> BoxFuture<'static, Result<ClientReply, FileError>> {
            let mut asked = self.asked.lock();
            asked.push(request);
            let fails = asked.len() > self.fails_from;
            let hangs = self.hangs;
            Box::pin(async move {
                match fails {
                    true if hangs => std::future::pending().await,
                    true => Err(FileError::Refused("disk full".to_owned())),
                    false => Ok(ClientReply::File(FileReply::Done)),
                }
            })
        }
    }

    fn script(fails_from: usize, hangs: bool) -> (Arc<Script>, Arc<dyn SessionFiles>) {
        let script = Arc::new(Script { asked: Mutex::default(), fails_from, hangs });
        let site = Site {
            root: "/s".to_owned(),
            conventions: Conventions::Posix,
            has_tables: false,
            initial_cwd: "/w".to_owned(),
        };
        let files = ClientFiles::new(Arc::clone(&script) as Arc<dyn FilesClient>, site);
        (script, Arc::new(files))
    }

    fn append(text: &str) -> FileRequest {
        FileRequest::Append { path: "/s/events.jsonl".into(), content: text.as_bytes().to_vec() }
    }

    #[tokio::test]
    async fn appends_that_wait_go_out_together_and_in_order() {
        let (script, files) = script(usize::MAX, false);
        for text in ["a", "b", "c"] {
            files.put(append(text)).unwrap();
        }
        files.write("plan.md", "p".to_owned()).await.unwrap();
        assert!(files.settled().is_none(), "the answer came after all that was put before");
        let asked = script.asked.lock().clone();
        assert_eq!(asked[0], ClientRequest::File(append("abc")));
        assert!(matches!(asked[1], ClientRequest::File(FileRequest::Write { .. })));
        assert_eq!(files.plan().as_deref(), Some("p"));
    }

    #[tokio::test]
    async fn nothing_is_written_behind_a_hole_in_the_log() {
        let (script, files) = script(1, false);
        files.put(append("a")).unwrap();
        files.write("x", String::new()).await.unwrap_err();
        files.put(append("b")).unwrap();
        let error = files.settled().unwrap().await.unwrap_err();
        assert_eq!(error, FileError::Refused("disk full".to_owned()));
        assert_eq!(files.put(append("c")), Err(error));
        assert_eq!(script.asked.lock().len(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_answer_breaks_the_log() {
        let (_script, files) = script(0, true);
        files.put(append("a")).unwrap();
        assert_eq!(files.settled().unwrap().await, Err(FileError::Late(PATIENCE.as_secs())));
    }

    #[tokio::test]
    async fn what_waits_is_bounded() {
        let (_script, files) = script(0, true);
        let big = "x".repeat(MAX_QUEUED / 2 + 1);
        files.put(append(&big)).unwrap();
        assert!(matches!(files.put(append(&big)), Err(FileError::Full(_))));
    }
}
