//! Files of a session on this machine. No link below its directory is ever followed.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use futures_util::future::{BoxFuture, ready};
use hangar_disk::{FileKind, Folder};

use crate::request::{DirectoryEntry, FileError, FileReply, FileRequest, Stat};
use crate::session_files::SessionFiles;

/// Largest file that is read, and names of one directory that are listed.
const MAX_FILE: u64 = 16 << 20;
const MAX_LISTED: usize = 100_000;
/// Maximum size of a plan that is shown for review, in bytes.
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
                let entry = |(name, kind): (std::ffi::OsString, FileKind)| DirectoryEntry {
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::sync::Arc;

    use super::*;
    use crate::session_files::block_on;

    /// A session `ours` beside a directory `outside` with a file `kept`.
    fn session() -> (tempfile::TempDir, Arc<dyn SessionFiles>) {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("ours")).unwrap();
        std::fs::create_dir(root.path().join("outside")).unwrap();
        std::fs::write(root.path().join("outside/kept"), "kept").unwrap();
        let files = Arc::new(LocalFiles::at(root.path().join("ours")));
        (root, files)
    }

    /// The outcome of every kind of request for a name.
    fn every(files: &dyn SessionFiles, name: &str) -> Vec<Result<FileReply, FileError>> {
        let path = || files.path(name);
        let content = || b"new".to_vec();
        let requests = [
            FileRequest::Read { path: path() },
            FileRequest::Write { path: path(), content: content(), private: false },
            FileRequest::Append { path: path(), content: content() },
            FileRequest::List { path: path() },
            FileRequest::Rename { from: path(), to: files.path("taken") },
        ];
        requests.into_iter().map(|request| block_on(files.ask(request))).collect()
    }

    #[test]
    fn files_are_written_with_the_directories_above_them_and_read_back() {
        let (_root, files) = session();
        block_on(files.write("files/a/b.txt", "text".to_owned())).unwrap();
        assert_eq!(block_on(files.read("files/a/b.txt")).unwrap().as_deref(), Some("text"));
        assert_eq!(block_on(files.read("files/none")), Ok(None));
        let kinds = block_on(files.list("files")).unwrap();
        assert_eq!(kinds, [DirectoryEntry { name: "a".to_owned(), kind: FileKind::Folder }]);
        assert_eq!(block_on(files.list("none")), Ok(Vec::new()));
        block_on(files.remove("files", true)).unwrap();
        block_on(files.remove("files", true)).unwrap();
        assert!(files.settled().is_none());
    }

    #[test]
    fn nothing_is_reached_through_a_link() {
        let (root, files) = session();
        symlink("../outside", files.path("dir")).unwrap();
        for reply in every(&*files, "dir/kept") {
            assert!(matches!(reply, Err(FileError::Local { .. })), "{reply:?}");
        }
        assert_eq!(block_on(files.stat("dir")).unwrap().kind, FileKind::Other);
        assert_eq!(std::fs::read(root.path().join("outside/kept")).unwrap(), b"kept");
    }

    #[test]
    fn paths_of_others_are_refused() {
        let (root, files) = session();
        for path in [root.path().join("outside/kept"), files.path("../outside/kept")] {
            let reply = block_on(files.ask(FileRequest::Read { path }));
            assert!(matches!(reply, Err(FileError::Local { .. })), "{reply:?}");
        }
    }

    #[test]
    fn a_directory_is_not_written_but_may_be_replaced() {
        let (_root, files) = session();
        block_on(files.write("name/below", String::new())).unwrap();
        assert!(block_on(files.write("name", "text".to_owned())).is_err());
        files.put(FileRequest::Replace { path: files.path("name"), content: b"text".to_vec() }).unwrap();
        assert_eq!(block_on(files.read("name")).unwrap().as_deref(), Some("text"));
    }

    #[test]
    fn a_link_in_the_place_of_our_directory_is_set_aside() {
        let (root, files) = session();
        symlink("../outside", files.path("checkpoints")).unwrap();
        block_on(files.write("checkpoints/index.md", "text".to_owned())).unwrap();
        assert_eq!(block_on(files.stat("checkpoints")).unwrap().kind, FileKind::Folder);
        assert_eq!(std::fs::read_dir(root.path().join("outside")).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_is_too_large_is_not_read() {
        let (_root, files) = session();
        std::fs::File::create(files.path("large")).unwrap().set_len(MAX_FILE + 1).unwrap();
        assert!(block_on(files.read("large")).unwrap_err().to_string().contains("larger than 16 MB"));
    }
}
