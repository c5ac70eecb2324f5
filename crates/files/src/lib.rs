//! The files of a session, wherever they are kept.
//!
//! [`SessionFiles`] is what everybody has who reads or writes beside a session's log. [`LocalFiles`] is a directory of this
//! machine; [`ClientFiles`] is a client that is asked over its connection, one request after the other.

mod client;
mod local;
mod request;
mod session_files;

pub use client::{ClientFiles, ClientReply, ClientRequest, Conventions, FilesClient, Rows, Site, SqlKind};
pub use hangar_disk::FileKind;
pub use local::LocalFiles;
pub use request::{DirectoryEntry, FileError, FileReply, FileRequest, Stat};
pub use session_files::{SessionFiles, block_on};
