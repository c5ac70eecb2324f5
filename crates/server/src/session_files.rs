//! The directory of a live session, as clients read and change it.

use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use hangar_files::{FileError, FileKind, FileRequest, LocalFiles, SessionFiles, Stat};
use hangar_store::checkpoints::{self, CheckpointEntry};
use hangar_store::{SessionMeta, client_session};

use crate::methods::Failure;

/// Largest file that clients write in it.
const MAX_FILE: usize = 16 << 20;
/// Files that are listed.
const MAX_LISTED: usize = 100_000;

#[derive(Clone)]
pub(crate) struct SessionDir(pub(crate) Arc<dyn SessionFiles>);

/// Kinds of files that a removal may delete.
pub(crate) struct Removal {
    pub(crate) with_content: bool,
    pub(crate) may_be_absent: bool,
}

fn failed<'a>(what: &'a str, path: &'a str) -> impl FnOnce(FileError) -> Failure + 'a {
    move |error| Failure::new(format!("{what} {path}: {error}"))
}

/// Error with the POSIX code that clients expect.
fn told(error: FileError) -> Failure {
    let error = io::Error::from(error);
    let name = match error.kind() {
        io::ErrorKind::NotFound => "ENOENT: ",
        io::ErrorKind::AlreadyExists => "EEXIST: ",
        io::ErrorKind::NotADirectory => "ENOTDIR: ",
        io::ErrorKind::IsADirectory => "EISDIR: ",
        io::ErrorKind::DirectoryNotEmpty => "ENOTEMPTY: ",
        io::ErrorKind::PermissionDenied => "EACCES: ",
        _ => "",
    };
    Failure::new(format!("{name}{error}"))
}

/// Milliseconds since 1970; zero where the time is unknown.
pub(crate) fn millis(time: Option<SystemTime>) -> f64 {
    let since = time.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    since.map_or(0.0, |since| since.as_secs_f64() * 1000.0)
}

impl SessionDir {
    /// A directory on this machine.
    pub(crate) fn local(dir: PathBuf) -> Self {
        Self(Arc::new(LocalFiles::at(dir)))
    }

    /// Path of the directory, in the syntax of its storage.
    pub(crate) fn shown(&self) -> String {
        self.path("")
    }

    /// The path of a file in the directory.
    pub(crate) fn path(&self, name: &str) -> String {
        self.0.path(name).to_string_lossy().into_owned()
    }

    /// A file's text, unless there is none.
    pub(crate) async fn read(&self, name: &str) -> Result<Option<String>, Failure> {
        self.0.read(name).await.map_err(failed("reading", &self.path(name)))
    }

    pub(crate) async fn exists(&self, name: &str) -> Result<bool, Failure> {
        match self.0.stat(name).await {
            Ok(stat) => Ok(stat.kind == FileKind::File),
            Err(FileError::Missing) => Ok(false),
            Err(error) => Err(failed("looking for", &self.path(name))(error)),
        }
    }

    /// Writes a file, with the directories above it.
    pub(crate) async fn write(&self, name: &str, content: String) -> Result<(), Failure> {
        let path = self.path(name);
        if content.len() > MAX_FILE {
            return Err(Failure::new(format!("{path} would be larger than {} MB", MAX_FILE >> 20)));
        }
        self.0.write(name, content).await.map_err(failed("writing", &path))
    }

    /// Removes a file. Says whether there was one.
    pub(crate) async fn remove(&self, name: &str) -> Result<bool, Failure> {
        let exists = self.exists(name).await?;
        if exists {
            self.0.remove(name, false).await.map_err(failed("deleting", &self.path(name)))?;
        }
        Ok(exists)
    }

    /// The files below a directory, by their paths from there.
    pub(crate) async fn list(&self, dir: &str) -> Result<Vec<String>, Failure> {
        let mut found = Vec::new();
        let mut open = vec![String::new()];
        while let Some(below) = open.pop() {
            let join =
                |name: &str| if below.is_empty() { name.to_owned() } else { format!("{below}/{name}") };
            let at = format!("{dir}/{below}");
            let at = at.trim_end_matches('/');
            for entry in self.0.list(at).await.map_err(failed("listing", &self.path(at)))? {
                match entry.kind {
                    FileKind::Folder => open.push(join(&entry.name)),
                    FileKind::File if found.len() < MAX_LISTED => found.push(join(&entry.name)),
                    FileKind::File | FileKind::Other => {}
                }
            }
        }
        found.sort();
        Ok(found)
    }

    /// The name of a path inside the session's `files`. Anything that leads out of them is refused.
    pub(crate) fn inside_files(&self, path: &str) -> Result<String, Failure> {
        let outside = || Failure::new(format!("{path} is outside the workspace files directory"));
        let parts = Path::new(path).components();
        let plain = parts.clone().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if !plain || path.is_empty() {
            return Err(outside());
        }
        let tidy: PathBuf = parts.filter(|part| matches!(part, Component::Normal(_))).collect();
        if let Some(local) = self.0.local() {
            // A link may lead out where the path itself does not, also one to something that is yet to be made.
            let files = local.folder().and_then(|folder| folder.folder("files"));
            let files = files.map_err(|error| failed("opening", &self.path("files"))(error.into()))?;
            match files.status(&tidy) {
                Ok(found) if found.is_symlink() => return Err(outside()),
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Err(outside()),
                Ok(_) | Err(_) => {}
            }
        }
        Ok(format!("files/{}", tidy.display()))
    }

    /// The name of something below the session's `files`, but not of `files` itself.
    pub(crate) fn artifact(&self, path: &str) -> Result<String, Failure> {
        let plain = |part| matches!(part, Component::Normal(_));
        let tidy = !path.is_empty() && Path::new(path).components().all(plain) && !path.ends_with('/');
        if !tidy || path.contains("//") || path.contains("/./") {
            return Err(Failure::new("Path must be a normalized relative session artifact path"));
        }
        self.inside_files(path)
    }

    pub(crate) async fn stat(&self, name: &str) -> Result<Stat, Failure> {
        self.0.stat(name).await.map_err(told)
    }

    /// Creates a directory, with its parents if `above_too`.
    pub(crate) async fn make_dir(&self, name: &str, above_too: bool) -> Result<(), Failure> {
        if !above_too {
            self.stat(name.rsplit_once('/').map_or("", |(above, _)| above)).await?;
            if self.stat(name).await.is_ok() {
                return Err(told(io::Error::from(io::ErrorKind::AlreadyExists).into()));
            }
        }
        let make = FileRequest::MakeDir { path: self.0.path(name) };
        self.0.ask(make).await.map(drop).map_err(told)
    }

    /// Removes a file, or a directory with everything in it if that is meant.
    pub(crate) async fn remove_path(&self, name: &str, how: Removal) -> Result<(), Failure> {
        match self.0.stat(name).await {
            Err(FileError::Missing) if how.may_be_absent => return Ok(()),
            Err(error) => return Err(told(error)),
            Ok(stat) if stat.kind == FileKind::Folder && !how.with_content => {
                return Err(Failure::new("ERR_FS_EISDIR: path is a directory"));
            }
            Ok(_) => {}
        }
        self.0.remove(name, true).await.map_err(told)
    }

    pub(crate) async fn rename(&self, from: &str, to: &str) -> Result<(), Failure> {
        self.0.rename(from, to).await.map_err(told)
    }

    pub(crate) async fn checkpoints(&self) -> Result<Vec<CheckpointEntry>, Failure> {
        checkpoints::list(&*self.0).await.map_err(Failure::from_files)
    }

    pub(crate) async fn add_checkpoint(
        &self,
        title: &str,
        content: &str,
    ) -> Result<CheckpointEntry, Failure> {
        checkpoints::add(&*self.0, title, content).await.map_err(Failure::from_files)
    }

    pub(crate) async fn truncate_checkpoints(&self, keep: usize) -> Result<usize, Failure> {
        checkpoints::truncate(&*self.0, keep).await.map_err(Failure::from_files)
    }

    pub(crate) async fn checkpoint(&self, number: u64) -> Result<Option<String>, Failure> {
        checkpoints::read(&*self.0, number).await.map_err(Failure::from_files)
    }

    /// Metadata of the session as lists show it.
    pub(crate) async fn facts(&self) -> Result<Option<SessionMeta>, Failure> {
        client_session::read_meta(&*self.0).await.map_err(Failure::from_files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_below_the_files_can_be_named() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("files")).unwrap();
        std::os::unix::fs::symlink("/", dir.path().join("files/out")).unwrap();
        std::os::unix::fs::symlink("/not-there-yet", dir.path().join("files/soon")).unwrap();
        let place = SessionDir::local(dir.path().to_path_buf());
        for good in ["a", "a/b.txt", "..a"] {
            assert_eq!(place.artifact(good).unwrap(), format!("files/{good}"));
        }
        for bad in [
            "",
            ".",
            "..",
            "../plan.md",
            "/etc/passwd",
            "a/../b",
            "a/./b",
            "a//b",
            "a/",
            "out",
            "out/etc",
            "soon",
        ] {
            assert!(place.artifact(bad).is_err(), "{bad}");
        }
    }
}
