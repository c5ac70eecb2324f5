//! Files of a session that a client keeps, instead of this machine.
//!
//! [`FileKeeper`] is whoever is asked; [`ClientFiles`] asks it, one thing after the other. What a session writes in
//! passing (its log, large outputs) is put into a bounded queue and goes out in order; whoever needs an answer waits for
//! its turn in the same queue, so a read sees every write before it. A write to the log that fails, or that the client
//! does not confirm in time, is remembered: every later one is refused, and the session ends instead of having a log
//! with a hole.
//!
//! Sessions with files on this machine know nothing of all this.

mod home;
mod keeper;
mod queue;

pub use home::{ClientHome, Conventions};
pub use keeper::{Entry, FileError, FileKeeper, FileReply, FileRequest, Rows, SqlKind, Stat};
pub use queue::{ClientFiles, Weight};
