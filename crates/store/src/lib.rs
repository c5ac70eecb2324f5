//! Sessions on disk: the log that is a session's only truth, and the facts about it that lists show.
//!
//! ```text
//! <home>/session-state/<id>/
//!     events.jsonl     one event per line, only ever appended to
//!     workspace.yaml   name, directory, repository, times: what a list shows without opening the log
//!     plan.md          once there is a plan
//!     checkpoints/     once there are any, with their index.md
//!     files/           what the agent keeps beside its work
//!     rewind-file-snapshots/   what files were before tools changed them, once one did
//!     unfinished.jsonl  answers while they arrive; after `kill -9` the next process logs them
//!     .lock            held by the session's one writer, with its process id inside
//! ```
//!
//! # What survives what
//!
//! An append is one `write(2)` of whole lines, so whatever was appended survives the death of the process (`kill -9`
//! included): it is in the page cache. It survives a power cut from the next [`sync`](hangar_agent::log::SessionLog::sync)
//! on, which the session's loop calls when a run goes idle and at shutdown; syncing every event would cost more than
//! the work it protects. A write that fails halfway is taken back at once. What a dying kernel leaves behind is
//! mended when the session is opened again: an unfinished last line is cut off, or, if all of the event is there and only
//! its newline is missing, completed. Bytes before that line are never rewritten, and a line in the middle that is no
//! event is skipped by readers and counted, never fatal.
//!
//! # Whose files these are
//!
//! Commands of a session may write beside its log. Everything here is opened by way of the session's directory, held open
//! ([`hangar_disk::Folder`]): no link is followed and nothing but a regular file is opened. What is replaced as a whole
//! replaces whatever has its name; what is appended to and has a second name is copied first, since refusing it would lose
//! the session and writing to it would change a file of others.
//!
//! # Who may write
//!
//! One process at a time: [`Store::create`] and [`Store::open`] take the lock and [`OpenSession`] holds it. Readers
//! take none; they see a prefix of the log that ends at a whole line.
//!
//! # No index
//!
//! Lists are made by reading every `workspace.yaml`. A thousand sessions cost some thirty milliseconds that way, so a
//! database beside the files would buy little and could disagree with them.

mod append;
pub mod checkpoints;
pub mod client_session;
mod error;
mod export;
mod follow;
pub mod fork;
mod id;
mod lines;
mod list;
mod lock;
mod meta;
mod replica;
mod reverse_lines;
pub mod rewind;
mod session;
pub mod snapshots;
mod store;
mod unfinished;
mod yaml;

pub use error::{ResolveError, StoreError};
pub use export::{ExportError, export_markdown};
pub use follow::Follow;
pub use id::{InvalidId, SessionId};
pub use lines::{Events, LogLines, MAX_LINE, RawLine};
pub use list::{Filter, SessionSummary};
pub use meta::{SessionMeta, SessionName};
pub use replica::{LogCopy, LogReplica};
pub use session::{LogTail, OpenSession};
pub use store::{CopiedLog, Store};
