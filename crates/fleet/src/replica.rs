//! Logs of claimed sessions as copies of the local ones: an append goes into the file and to the servers.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use hangar_store::{LogCopy, LogReplica, SessionId};
use parking_lot::Mutex;

use crate::FleetError;
use crate::claim::LogClaim;

/// The claims of this process, by session. A session that is not claimed cannot be written: without a copy on the servers its next
/// worker would repeat what it did.
#[derive(Debug, Clone, Default)]
pub struct ClaimedLogs(Arc<Mutex<HashMap<SessionId, LogClaim>>>);

impl ClaimedLogs {
    pub fn insert(&self, id: SessionId, claim: LogClaim) {
        self.0.lock().insert(id, claim);
    }

    /// Removes a claim that is over. A newer one of the same session stays.
    pub fn remove(&self, id: &SessionId, claim: &LogClaim) {
        let mut claims = self.0.lock();
        if claims.get(id).is_some_and(|known| known.epoch() == claim.epoch()) {
            claims.remove(id);
        }
    }
}

impl LogReplica for ClaimedLogs {
    fn open(&self, id: &SessionId) -> Option<Box<dyn LogCopy>> {
        match self.0.lock().get(id).cloned() {
            Some(claim) => Some(Box::new(ClaimedLog(claim))),
            None => Some(Box::new(UnclaimedLog(id.clone()))),
        }
    }
}

#[derive(Debug)]
struct ClaimedLog(LogClaim);

fn io_error(error: FleetError) -> io::Error {
    io::Error::other(error.to_string())
}

impl LogCopy for ClaimedLog {
    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        self.0.append_lines(lines).map_err(io_error)
    }

    fn settled(&mut self) -> Option<BoxFuture<'static, io::Result<()>>> {
        let settled = self.0.settled()?;
        Some(Box::pin(async move { settled.await.map_err(io_error) }))
    }
}

/// The log of a session that this process has not claimed, or no longer.
#[derive(Debug)]
struct UnclaimedLog(SessionId);

impl LogCopy for UnclaimedLog {
    fn append(&mut self, _: &[u8]) -> io::Result<()> {
        Err(io::Error::other(format!("this worker has no claim of session {}", self.0)))
    }

    fn settled(&mut self) -> Option<BoxFuture<'static, io::Result<()>>> {
        None
    }
}
