//! What a keeper of files is asked, and what it answers.

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

/// Keeps the files of one session, and its tables if it can.
pub trait FileKeeper: Send + Sync {
    fn ask(&self, request: FileRequest) -> BoxFuture<'static, Result<FileReply, FileError>>;
}

#[derive(Debug, Clone, PartialEq)]
pub enum FileRequest {
    Read {
        path: String,
    },
    Write {
        path: String,
        content: String,
        private: bool,
    },
    Append {
        path: String,
        content: String,
    },
    Stat {
        path: String,
    },
    /// With all that is missing above it.
    MakeDir {
        path: String,
    },
    List {
        path: String,
    },
    /// What is not there is no error.
    Remove {
        path: String,
        with_content: bool,
    },
    Rename {
        from: String,
        to: String,
    },
    Sql {
        kind: SqlKind,
        query: String,
    },
    HasTables,
}

impl FileRequest {
    /// What waits while the request does, in bytes.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Write { content, .. } | Self::Append { content, .. } => content.len(),
            Self::Sql { query, .. } => query.len(),
            Self::Read { .. }
            | Self::Stat { .. }
            | Self::MakeDir { .. }
            | Self::List { .. }
            | Self::Remove { .. }
            | Self::Rename { .. }
            | Self::HasTables => 0,
        }
    }
}

/// How statements are carried out.
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
pub enum FileReply {
    Done,
    Text(String),
    Stat(Stat),
    Entries(Vec<Entry>),
    Rows(Rows),
    Exists(bool),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    pub is_dir: bool,
    pub size: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    pub is_dir: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows {
    pub columns: Vec<String>,
    pub rows: Vec<Map<String, Value>>,
    pub affected: u64,
    pub last_id: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    #[error("there is no such file")]
    Missing,
    #[error("the client that keeps the files failed: {0}")]
    Refused(String),
    #[error("the client that keeps the files has not answered for {0} seconds")]
    Late(u64),
    #[error("the client that keeps the files is gone")]
    Gone,
    #[error("the client that keeps the files is too slow: {0} bytes wait for it")]
    Full(usize),
}

impl From<FileError> for std::io::Error {
    fn from(error: FileError) -> Self {
        let kind = match &error {
            FileError::Missing => std::io::ErrorKind::NotFound,
            FileError::Refused(_) => std::io::ErrorKind::Other,
            FileError::Late(_) => std::io::ErrorKind::TimedOut,
            FileError::Gone => std::io::ErrorKind::NotConnected,
            FileError::Full(_) => std::io::ErrorKind::StorageFull,
        };
        Self::new(kind, error)
    }
}
