//! Files of a session on this machine. No link below its directory is ever followed.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use futures_util::future::{BoxFuture, ready};
use hangar_disk::{FileKind, Folder};

use crate::request::{Entry, FileError, FileReply, FileRequest, Stat};
use crate::session_files::SessionFiles;

/// Largest file that is read, and names of one directory that are listed.
const MAX_FILE: u64 = 16 << 20;
const MAX_LISTED: usize = 100_000;
/// Bytes of a plan that are shown to whoever reviews it.
const PLAN_BYTES: u64 = 1 << 20;

#[derive(Debug, Clone)]
pub struct LocalFiles {
    dir: PathBuf,
    held: Option<Folder>,
}

impl LocalFiles {
    /// A directory that is held open.
    pub fn held(folder: Folder) -> Self {
        Self { dir: folder.path().to_owned(), held: Some(folder) }
    }

    /// A directory that is opened for each request: a process has fewer files to open than a server has sessions.
    pub fn at(dir: PathBuf) -> Self {
        Self { dir, held: None }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The directory, held open. It must not be a link itself.
    pub fn folder(&self) -> io::Result<Folder> {
        match (&self.held, self.dir.parent(), self.dir.file_name()) {
            (Some(folder), ..) => Ok(folder.clone()),
            (None, Some(parent), Some(name)) => Folder::open(parent)?.folder(name),
            (None, ..) => Folder::open(&self.dir),
        }
    }

    fn perform(&self, request: FileRequest) -> io::Result<FileReply> {
        let folder = self.folder()?;
        let name = |path: PathBuf| match path.strip_prefix(&self.dir) {
            Ok(name) => Ok(name.to_owned()),
            Err(_) => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file of this session")),
        };
        match request {
            FileRequest::Read { path } => return Ok(FileReply::Content(read(&folder, &name(path)?)?)),
            FileRequest::Stat { path } => return Ok(FileReply::Stat(stat(&folder, &name(path)?)?)),
            FileRequest::List { path } => {
                let entries = folder.folder(name(path)?)?.entries(MAX_LISTED)?.into_iter();
                let entry = |(name, kind): (std::ffi::OsString, FileKind)| Entry {
                    name: name.to_string_lossy().into_owned(),
                    kind,
                };
                return Ok(FileReply::Entries(entries.map(entry).collect()));
            }
            FileRequest::Write { path, content, .. } => {
                let name = name(path)?;
                if folder.kind(&name).is_ok_and(|kind| kind == FileKind::Folder) {
                    return Err(io::ErrorKind::IsADirectory.into());
                }
                folder.replace(name, content)?;
            }
            FileRequest::Replace { path, content } => folder.replace(name(path)?, content)?,
            FileRequest::Append { path, content } => {
                folder.append_or_create(name(path)?)?.write_all(&content)?;
            }
            FileRequest::MakeDir { path } => make_dir(&folder, &name(path)?)?,
            FileRequest::Remove { path, recursive } => {
                let name = name(path)?;
                let removed = match folder.kind(&name) {
                    Ok(FileKind::Folder) if recursive => folder.remove_all(name),
                    Ok(_) => folder.remove(name),
                    Err(error) => Err(error),
                };
                match removed {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    removed => removed?,
                }
            }
            FileRequest::Rename { from, to } => folder.rename(name(from)?, name(to)?)?,
        }
        Ok(FileReply::Done)
    }
}

fn read(folder: &Folder, name: &Path) -> io::Result<Vec<u8>> {
    let file = folder.read(name)?;
    let mut content = Vec::new();
    // One byte over the limit tells a file at the limit from a larger one, whatever its metadata say.
    file.take(MAX_FILE + 1).read_to_end(&mut content)?;
    if content.len() as u64 > MAX_FILE {
        let text = format!("it is larger than {} MB", MAX_FILE >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(content)
}

/// Makes a directory. Those right below the session's own are ours alone: what is in their way is set aside.
fn make_dir(folder: &Folder, name: &Path) -> io::Result<()> {
    let mut parts = name.iter();
    let first = parts.next().and_then(|part| part.to_str()).ok_or(io::ErrorKind::InvalidInput)?;
    let own = folder.own_folder(first)?;
    let rest = parts.as_path();
    if rest.as_os_str().is_empty() { Ok(()) } else { own.ensure_folder(rest).map(drop) }
}

fn stat(folder: &Folder, name: &Path) -> io::Result<Stat> {
    let metadata = folder.status(name)?;
    let modified = metadata.modified().ok();
    Ok(Stat {
        kind: FileKind::of(metadata.file_type()),
        size: metadata.len(),
        modified,
        // Not every file system knows; then it is as old as its content.
        created: metadata.created().ok().or(modified),
    })
}

impl SessionFiles for LocalFiles {
    fn ask(&self, request: FileRequest) -> BoxFuture<'static, Result<FileReply, FileError>> {
        Box::pin(ready(self.perform(request).map_err(FileError::from)))
    }

    fn settled(&self) -> Option<BoxFuture<'static, Result<(), FileError>>> {
        None
    }

    fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.dir.clone() } else { self.dir.join(name) }
    }

    fn plan(&self) -> Option<String> {
        self.folder().and_then(|folder| folder.read_text("plan.md", PLAN_BYTES)).ok()
    }

    fn local(&self) -> Option<&LocalFiles> {
        Some(self)
    }
}
