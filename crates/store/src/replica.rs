//! Copies of logs elsewhere, written along with the files.

use std::fmt::Debug;
use std::io;

use futures_util::future::BoxFuture;

use crate::SessionId;

/// Place that has copies of logs, such as the servers of a fleet.
pub trait LogReplica: Debug + Send + Sync {
    /// The copy of a session's log, for its one writer. `None` for a session that has none.
    fn open(&self, id: &SessionId) -> Option<Box<dyn LogCopy>>;
}

/// The copy of one log. It gets what the file gets, after the file.
pub trait LogCopy: Debug + Send {
    /// Accepts whole lines. An error means that the session must not go on.
    fn append(&mut self, lines: &[u8]) -> io::Result<()>;

    /// Future that completes when everything accepted is stored; `None` if it is. The session performs no effect before that.
    fn settled(&mut self) -> Option<BoxFuture<'static, io::Result<()>>>;
}
