//! Requests for files, and their replies.

use std::io;
use std::path::PathBuf;
use std::time::SystemTime;

use hangar_disk::FileKind;

/// Paths are absolute, in the notation of the owner of the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileRequest {
    Read {
        path: PathBuf,
    },
    /// Replaces a file, or makes it in a directory that exists.
    Write {
        path: PathBuf,
        content: Vec<u8>,
        /// Whether only its owner may read it, where the system has modes.
        private: bool,
    },
    /// Puts a file that only its owner may read in the place of whatever has the name, in one step.
    Replace {
        path: PathBuf,
        content: Vec<u8>,
    },
    Append {
        path: PathBuf,
        content: Vec<u8>,
    },
    Stat {
        path: PathBuf,
    },
    /// Makes a directory with all that is missing above it.
    MakeDir {
        path: PathBuf,
    },
    List {
        path: PathBuf,
    },
    /// Removes a file, or with `recursive` a directory too. A missing one is no error.
    Remove {
        path: PathBuf,
        recursive: bool,
    },
    Rename {
        from: PathBuf,
        to: PathBuf,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileReply {
    Done,
    Content(Vec<u8>),
    Stat(Stat),
    Entries(Vec<DirectoryEntry>),
}

impl FileReply {
    pub fn content(self) -> Result<Vec<u8>, FileError> {
        match self {
            Self::Content(content) => Ok(content),
            other => Err(other.unexpected()),
        }
    }

    pub fn stat(self) -> Result<Stat, FileError> {
        match self {
            Self::Stat(stat) => Ok(stat),
            other => Err(other.unexpected()),
        }
    }

    pub fn entries(self) -> Result<Vec<DirectoryEntry>, FileError> {
        match self {
            Self::Entries(entries) => Ok(entries),
            other => Err(other.unexpected()),
        }
    }

    fn unexpected(&self) -> FileError {
        FileError::Refused(format!("it answered {self:?}"))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    pub kind: FileKind,
    pub size: u64,
    /// Unknown where a client does not tell.
    pub modified: Option<SystemTime>,
    pub created: Option<SystemTime>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryEntry {
    pub name: String,
    pub kind: FileKind,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    #[error("there is no such file")]
    Missing,
    #[error("{text}")]
    Local { kind: io::ErrorKind, text: String },
    #[error("the client that keeps the files failed: {0}")]
    Refused(String),
    #[error("the client that keeps the files has not answered for {0} seconds")]
    Late(u64),
    #[error("the client that keeps the files is gone")]
    Gone,
    #[error("the client that keeps the files is too slow: {0} bytes wait for it")]
    Full(usize),
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing,
            kind => Self::Local { kind, text: error.to_string() },
        }
    }
}

impl From<FileError> for io::Error {
    fn from(error: FileError) -> Self {
        let kind = match &error {
            FileError::Missing => io::ErrorKind::NotFound,
            FileError::Local { kind, .. } => *kind,
            FileError::Refused(_) => io::ErrorKind::Other,
            FileError::Late(_) => io::ErrorKind::TimedOut,
            FileError::Gone => io::ErrorKind::NotConnected,
            FileError::Full(_) => io::ErrorKind::StorageFull,
        };
        Self::new(kind, error)
    }
}
