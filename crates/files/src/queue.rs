//! The queue of what a session wants of the keeper of its files, and the one task that works it off.

use parking_lot::{Mutex, MutexGuard};
use std::future::Future;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};

use crate::keeper::{Entry, FileError, FileKeeper, FileReply, FileRequest, Rows, SqlKind, Stat};

/// How long the keeper may take for one thing.
const PATIENCE: Duration = Duration::from_secs(30);
/// Things that may wait, and the bytes in them. A session stops to let its log catch up long before.
const QUEUE: usize = 4096;
const MAX_QUEUED: usize = 64 << 20;
/// Appends to one file that wait are joined up to this size.
const APPEND_TOGETHER: usize = 1 << 20;

/// What a write that fails means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// The session cannot go on without it.
    Log,
    /// The session is poorer without it.
    Aside,
}

struct Job {
    request: FileRequest,
    answer: Answer,
}

enum Answer {
    To(oneshot::Sender<Result<FileReply, FileError>>),
    Nobody(Weight),
}

/// The files of one session. Cheap to clone; all clones share one queue.
#[derive(Clone)]
pub struct ClientFiles(Arc<Shared>);

struct Shared {
    jobs: mpsc::Sender<Job>,
    /// Jobs that were put into the queue, ever.
    put: AtomicU64,
    done: watch::Receiver<u64>,
    progress: Arc<Progress>,
    runtime: Handle,
}

/// What the working task tells everybody.
struct Progress {
    /// Why the log cannot be written any more.
    broken: OnceLock<FileError>,
    /// The file whose content is known here, and that content.
    known: Mutex<(String, Option<String>)>,
    /// Bytes that wait.
    queued: AtomicUsize,
}

impl std::fmt::Debug for ClientFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ClientFiles")
    }
}

impl ClientFiles {
    /// Begins to work for a session, on the runtime that this is called in. The content of the file `known` is
    /// remembered, for those who cannot wait for an answer.
    pub fn new(keeper: Arc<dyn FileKeeper>, known: String) -> Self {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let (counter, done) = watch::channel(0);
        let progress = Arc::new(Progress {
            broken: OnceLock::new(),
            known: Mutex::new((known, None)),
            queued: AtomicUsize::new(0),
        });
        tokio::spawn(work(keeper, queue, counter, Arc::clone(&progress)));
        Self(Arc::new(Shared { jobs, put: AtomicU64::new(0), done, progress, runtime: Handle::current() }))
    }

    /// Has something written after all that waits already, without waiting for it.
    pub fn put(&self, request: FileRequest, weight: Weight) -> Result<(), FileError> {
        if let Some(error) = self.0.progress.broken.get() {
            return Err(error.clone());
        }
        let size = request.size();
        let queued = self.0.progress.queued.fetch_add(size, Ordering::Relaxed);
        if queued > 0 && queued + size > MAX_QUEUED {
            self.0.progress.queued.fetch_sub(size, Ordering::Relaxed);
            return Err(FileError::Full(queued));
        }
        self.0.jobs.try_send(Job { request, answer: Answer::Nobody(weight) }).map_err(|error| {
            self.0.progress.queued.fetch_sub(size, Ordering::Relaxed);
            match error {
                mpsc::error::TrySendError::Full(_) => FileError::Full(queued),
                mpsc::error::TrySendError::Closed(_) => FileError::Gone,
            }
        })?;
        self.0.put.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Asks something after all that waits already.
    async fn ask(&self, request: FileRequest) -> Result<FileReply, FileError> {
        let (answer, answered) = oneshot::channel();
        self.0.progress.queued.fetch_add(request.size(), Ordering::Relaxed);
        let job = Job { request, answer: Answer::To(answer) };
        self.0.jobs.send(job).await.map_err(|_| FileError::Gone)?;
        self.0.put.fetch_add(1, Ordering::Relaxed);
        answered.await.map_err(|_| FileError::Gone)?
    }

    /// What is on its way to the keeper. `None` if everything that was put has been confirmed; the error is that of the
    /// first write of the log that failed.
    pub fn settled(&self) -> Option<impl Future<Output = Result<(), FileError>> + Send + use<>> {
        let put = self.0.put.load(Ordering::Relaxed);
        let mut done = self.0.done.clone();
        if *done.borrow() >= put && self.0.progress.broken.get().is_none() {
            return None;
        }
        let progress = Arc::clone(&self.0.progress);
        Some(async move {
            let all = done.wait_for(|done| *done >= put).await.is_ok();
            match progress.broken.get() {
                Some(error) => Err(error.clone()),
                None if all => Ok(()),
                None => Err(FileError::Gone),
            }
        })
    }

    /// The content of the file that is remembered, as of the last time it was read or written.
    pub fn known(&self) -> Option<String> {
        self.0.progress.known().1.clone()
    }

    /// Waits for an answer on a thread that may block, which those of the runtime may not.
    pub fn block_on<T>(&self, answer: impl Future<Output = T>) -> T {
        self.0.runtime.block_on(answer)
    }

    pub async fn read(&self, path: impl Into<String>) -> Result<String, FileError> {
        match self.ask(FileRequest::Read { path: path.into() }).await? {
            FileReply::Text(text) => Ok(text),
            other => Err(unexpected(&other)),
        }
    }

    pub async fn write(&self, path: impl Into<String>, content: String) -> Result<(), FileError> {
        self.done(FileRequest::Write { path: path.into(), content, private: false }).await
    }

    pub async fn stat(&self, path: impl Into<String>) -> Result<Stat, FileError> {
        match self.ask(FileRequest::Stat { path: path.into() }).await? {
            FileReply::Stat(stat) => Ok(stat),
            other => Err(unexpected(&other)),
        }
    }

    pub async fn make_dir(&self, path: impl Into<String>) -> Result<(), FileError> {
        self.done(FileRequest::MakeDir { path: path.into() }).await
    }

    pub async fn list(&self, path: impl Into<String>) -> Result<Vec<Entry>, FileError> {
        match self.ask(FileRequest::List { path: path.into() }).await? {
            FileReply::Entries(entries) => Ok(entries),
            other => Err(unexpected(&other)),
        }
    }

    pub async fn remove(&self, path: impl Into<String>, with_content: bool) -> Result<(), FileError> {
        self.done(FileRequest::Remove { path: path.into(), with_content }).await
    }

    pub async fn rename(&self, from: impl Into<String>, to: impl Into<String>) -> Result<(), FileError> {
        self.done(FileRequest::Rename { from: from.into(), to: to.into() }).await
    }

    pub async fn sql(&self, kind: SqlKind, query: impl Into<String>) -> Result<Rows, FileError> {
        match self.ask(FileRequest::Sql { kind, query: query.into() }).await? {
            FileReply::Rows(rows) => Ok(rows),
            FileReply::Done => Ok(Rows::default()),
            other => Err(unexpected(&other)),
        }
    }

    pub async fn has_tables(&self) -> Result<bool, FileError> {
        match self.ask(FileRequest::HasTables).await? {
            FileReply::Exists(exists) => Ok(exists),
            other => Err(unexpected(&other)),
        }
    }

    async fn done(&self, request: FileRequest) -> Result<(), FileError> {
        self.ask(request).await.map(|_| ())
    }
}

fn unexpected(reply: &FileReply) -> FileError {
    FileError::Refused(format!("it answered {reply:?}"))
}

impl Progress {
    fn known(&self) -> MutexGuard<'_, (String, Option<String>)> {
        self.known.lock()
    }

    fn learn(&self, request: &FileRequest, reply: &Result<FileReply, FileError>) {
        let mut known = self.known();
        let (path, content) = &mut *known;
        match (request, reply) {
            (FileRequest::Read { path: read }, Ok(FileReply::Text(text))) if read == path => {
                *content = Some(text.clone());
            }
            (FileRequest::Read { path: read }, Err(FileError::Missing)) if read == path => *content = None,
            (FileRequest::Write { path: written, content: text, .. }, Ok(_)) if written == path => {
                *content = Some(text.clone());
            }
            (FileRequest::Remove { path: gone, .. } | FileRequest::Rename { from: gone, .. }, Ok(_))
                if gone == path =>
            {
                *content = None;
            }
            _ => {}
        }
    }
}

/// Works the queue off until nobody can add to it.
async fn work(
    keeper: Arc<dyn FileKeeper>,
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
        let mut count = 1;
        // Events come in bursts, and each question costs a way to the client and back.
        while let (FileRequest::Append { path, content }, Answer::Nobody(weight)) =
            (&mut job.request, &job.answer)
            && content.len() < APPEND_TOGETHER
            && let Ok(next) = queue.try_recv()
        {
            match next {
                Job {
                    request: FileRequest::Append { path: same, content: more },
                    answer: Answer::Nobody(too),
                } if same == *path && too == *weight => {
                    content.push_str(&more);
                    count += 1;
                }
                other => {
                    held = Some(other);
                    break;
                }
            }
        }
        let size = job.request.size();
        let reply = perform(&*keeper, &job, &progress).await;
        progress.queued.fetch_sub(size, Ordering::Relaxed);
        progress.learn(&job.request, &reply);
        match job.answer {
            // Whoever asked may have stopped waiting.
            Answer::To(waiting) => drop(waiting.send(reply)),
            Answer::Nobody(Weight::Log) => {
                if let Err(error) = reply {
                    let _ = progress.broken.set(error);
                }
            }
            Answer::Nobody(Weight::Aside) => {
                if let Err(error) = reply {
                    tracing::warn!(%error, "a file of a session could not be written");
                }
            }
        }
        done.send_modify(|done| *done += count);
    }
}

async fn perform(keeper: &dyn FileKeeper, job: &Job, progress: &Progress) -> Result<FileReply, FileError> {
    if matches!(job.answer, Answer::Nobody(_))
        && let Some(error) = progress.broken.get()
    {
        // What came after a hole must not be written.
        return Err(error.clone());
    }
    match tokio::time::timeout(PATIENCE, keeper.ask(job.request.clone())).await {
        Ok(reply) => reply,
        Err(_) => Err(FileError::Late(PATIENCE.as_secs())),
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::BoxFuture;

    use super::*;

    /// Writes down what it is asked, and fails from some request on.
    struct Script {
        asked: Mutex<Vec<FileRequest>>,
        fails_from: usize,
        hangs: bool,
    }

    impl FileKeeper for Script {
        fn ask(&self, request: FileRequest) -> BoxFuture<'static, Result<FileReply, FileError>> {
            let mut asked = self.asked.lock();
            asked.push(request);
            let fails = asked.len() > self.fails_from;
            let hangs = self.hangs;
            Box::pin(async move {
                match fails {
                    true if hangs => std::future::pending().await,
                    true => Err(FileError::Refused("disk full".to_owned())),
                    false => Ok(FileReply::Done),
                }
            })
        }
    }

    fn script(fails_from: usize, hangs: bool) -> (Arc<Script>, ClientFiles) {
        let script = Arc::new(Script { asked: Mutex::default(), fails_from, hangs });
        let files = ClientFiles::new(Arc::clone(&script) as Arc<dyn FileKeeper>, "/plan".to_owned());
        (script, files)
    }

    fn append(text: &str) -> FileRequest {
        FileRequest::Append { path: "/log".to_owned(), content: text.to_owned() }
    }

    #[tokio::test]
    async fn appends_that_wait_go_out_together_and_in_order() {
        let (script, files) = script(usize::MAX, false);
        for text in ["a", "b", "c"] {
            files.put(append(text), Weight::Log).unwrap();
        }
        files.write("/plan", "p".to_owned()).await.unwrap();
        assert!(files.settled().is_none(), "the answer came after all that was put before");
        let asked = script.asked.lock().clone();
        assert_eq!(asked[0], append("abc"));
        assert!(matches!(asked[1], FileRequest::Write { .. }));
        assert_eq!(files.known().as_deref(), Some("p"));
    }

    #[tokio::test]
    async fn nothing_is_written_behind_a_hole_in_the_log() {
        let (script, files) = script(1, false);
        files.put(append("a"), Weight::Log).unwrap();
        files.write("/x", String::new()).await.unwrap_err();
        files.put(append("b"), Weight::Log).unwrap();
        let error = files.settled().unwrap().await.unwrap_err();
        assert_eq!(error, FileError::Refused("disk full".to_owned()));
        assert_eq!(files.put(append("c"), Weight::Log), Err(error));
        assert_eq!(script.asked.lock().len(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_keeper_that_does_not_answer_breaks_the_log() {
        let (_script, files) = script(0, true);
        files.put(append("a"), Weight::Log).unwrap();
        assert_eq!(files.settled().unwrap().await, Err(FileError::Late(PATIENCE.as_secs())));
    }

    #[tokio::test]
    async fn what_waits_is_bounded() {
        let (_script, files) = script(0, true);
        let big = "x".repeat(MAX_QUEUED / 2 + 1);
        files.put(append(&big), Weight::Log).unwrap();
        assert!(matches!(files.put(append(&big), Weight::Log), Err(FileError::Full(_))));
    }
}
