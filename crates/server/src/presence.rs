//! Presence of sessions: which ones are alive here, for those who look for them from other processes.

use hangar_store::SessionId;

/// Told when a session of the common store begins to live here, and when it is closed. Must not block.
pub trait Presence: Send + Sync {
    fn opened(&self, id: &SessionId);
    fn closed(&self, id: &SessionId);
}
