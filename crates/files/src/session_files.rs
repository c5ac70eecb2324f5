//! [`SessionFiles`], and what can be done with any of them.

use std::fmt::Debug;
use std::future::Future;
use std::path::PathBuf;
use std::pin::pin;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::runtime::Handle;

use crate::local::LocalFiles;
use crate::request::{DirectoryEntry, FileError, FileReply, FileRequest, Stat};

/// The directory of one session. Names in it have `/` between their parts.
pub trait SessionFiles: Debug + Send + Sync {
    /// Carries a request out after all that were made before. It is under way when this returns, and goes on if the
    /// answer is dropped.
    fn ask(&self, request: FileRequest) -> BoxFuture<'static, Result<FileReply, FileError>>;

    /// The requests that are under way. `None` if all are done and the log is whole; the error is that of the first write
    /// of the log that failed.
    fn settled(&self) -> Option<BoxFuture<'static, Result<(), FileError>>>;

    /// The whole path of a name, or of the directory itself if the name is empty.
    fn path(&self, name: &str) -> PathBuf;

    /// The text of `plan.md` without waiting; that of a client as it was last read or written.
    fn plan(&self) -> Option<String>;

    /// The directory, if it is on this machine.
    fn local(&self) -> Option<&LocalFiles>;
}

impl dyn SessionFiles + '_ {
    /// Makes a request without waiting for its answer. The error is one that is known at once.
    pub fn put(&self, request: FileRequest) -> Result<(), FileError> {
        self.ask(request).now_or_never().map_or(Ok(()), |reply| reply.map(drop))
    }

    /// The text of a file; `None` if there is none.
    pub async fn read(&self, name: &str) -> Result<Option<String>, FileError> {
        let reply = match self.ask(FileRequest::Read { path: self.path(name) }).await {
            Err(FileError::Missing) => return Ok(None),
            reply => reply?,
        };
        let text = String::from_utf8(reply.content()?);
        Ok(Some(text.map_err(|error| std::io::Error::new(std::io::ErrorKind::InvalidData, error))?))
    }

    /// Writes a file, with the directories above it.
    pub async fn write(&self, name: &str, content: String) -> Result<(), FileError> {
        if let Some((above, _)) = name.rsplit_once('/') {
            self.ask(FileRequest::MakeDir { path: self.path(above) }).await?;
        }
        let write = FileRequest::Write { path: self.path(name), content: content.into(), private: false };
        self.ask(write).await.map(drop)
    }

    pub async fn stat(&self, name: &str) -> Result<Stat, FileError> {
        self.ask(FileRequest::Stat { path: self.path(name) }).await?.stat()
    }

    /// Entries of a directory; empty if there is none.
    pub async fn list(&self, name: &str) -> Result<Vec<DirectoryEntry>, FileError> {
        match self.ask(FileRequest::List { path: self.path(name) }).await {
            Err(FileError::Missing) => Ok(Vec::new()),
            reply => reply?.entries(),
        }
    }

    pub async fn remove(&self, name: &str, recursive: bool) -> Result<(), FileError> {
        self.ask(FileRequest::Remove { path: self.path(name), recursive }).await.map(drop)
    }

    pub async fn rename(&self, from: &str, to: &str) -> Result<(), FileError> {
        self.ask(FileRequest::Rename { from: self.path(from), to: self.path(to) }).await.map(drop)
    }
}

/// Waits for an answer. One that is not there at once may only be waited for on a thread that may block.
pub fn block_on<T>(answer: impl Future<Output = T>) -> T {
    let mut answer = pin!(answer);
    match answer.as_mut().now_or_never() {
        Some(answer) => answer,
        None => Handle::current().block_on(answer),
    }
}
