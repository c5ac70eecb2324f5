//! Paths in a session's folder that clients look at, make, move and remove.

use std::io;
use std::path::{Component, Path};
use std::time::SystemTime;

use hangar_disk::{Folder, Kind};
use hangar_files::FileError;

use crate::methods::Failure;
use crate::place::{Place, held};

/// What is known of a path.
pub(crate) struct PathFacts {
    pub(crate) is_dir: bool,
    pub(crate) size: u64,
    /// Milliseconds since 1970; zero where whoever keeps the file does not say.
    pub(crate) modified_ms: f64,
    pub(crate) created_ms: f64,
}

/// What may be removed with a path.
pub(crate) struct Removal {
    pub(crate) with_content: bool,
    pub(crate) may_be_absent: bool,
}

/// As a client that knows files of POSIX looks for it.
fn told(error: io::Error) -> Failure {
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

fn refused(error: FileError) -> Failure {
    told(error.into())
}

fn millis(time: io::Result<SystemTime>) -> f64 {
    let since = time.ok().and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    since.map_or(0.0, |since| since.as_secs_f64() * 1000.0)
}

impl Place {
    /// The name in the folder of something below its `files`, but not of `files` itself.
    pub(crate) fn artifact(&self, path: &str) -> Result<String, Failure> {
        let plain = |part| matches!(part, Component::Normal(_));
        let tidy = !path.is_empty() && Path::new(path).components().all(plain) && !path.ends_with('/');
        if !tidy || path.contains("//") || path.contains("/./") {
            return Err(Failure::new("Path must be a normalized relative session artifact path"));
        }
        self.inside_files(path)
    }

    pub(crate) async fn stat(&self, name: &str) -> Result<PathFacts, Failure> {
        self.look(name).await.map_err(told)
    }

    async fn look(&self, name: &str) -> io::Result<PathFacts> {
        match self {
            Self::Here(dir) => {
                let metadata = held(dir)?.status(name)?;
                Ok(PathFacts {
                    is_dir: metadata.is_dir(),
                    size: metadata.len(),
                    modified_ms: millis(metadata.modified()),
                    // Not every file system knows; then it is as old as its content.
                    created_ms: millis(metadata.created().or_else(|_| metadata.modified())),
                })
            }
            Self::Client(home) => {
                let stat = home.files.stat(home.path(name)).await?;
                Ok(PathFacts { is_dir: stat.is_dir, size: stat.size, modified_ms: 0.0, created_ms: 0.0 })
            }
        }
    }

    /// Makes a directory, with those above it if it may.
    pub(crate) async fn make_dir(&self, name: &str, above_too: bool) -> Result<(), Failure> {
        match self {
            Self::Here(dir) if above_too => {
                held(dir).and_then(|folder| folder.ensure_folder(name)).map(drop).map_err(told)
            }
            Self::Here(dir) => held(dir).and_then(|folder| folder.make_folder(name)).map_err(told),
            Self::Client(home) => {
                if !above_too {
                    let above = name.rsplit_once('/').map_or("", |(above, _)| above);
                    self.stat(above).await?;
                    if self.stat(name).await.is_ok() {
                        return Err(told(io::ErrorKind::AlreadyExists.into()));
                    }
                }
                home.files.make_dir(home.path(name)).await.map_err(refused)
            }
        }
    }

    /// Removes a file, or a directory with everything in it if that is meant.
    pub(crate) async fn remove_path(&self, name: &str, how: Removal) -> Result<(), Failure> {
        match self.look(name).await {
            Err(error) if how.may_be_absent && error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(told(error)),
            Ok(facts) if facts.is_dir && !how.with_content => {
                return Err(Failure::new("ERR_FS_EISDIR: path is a directory"));
            }
            Ok(_) => {}
        }
        match self {
            Self::Here(dir) => {
                let remove = |folder: Folder| match folder.kind(name)? {
                    Kind::Folder => folder.remove_all(name),
                    Kind::File | Kind::Other => folder.remove(name),
                };
                held(dir).and_then(remove).map_err(told)
            }
            Self::Client(home) => home.files.remove(home.path(name), true).await.map_err(refused),
        }
    }

    pub(crate) async fn rename(&self, from: &str, to: &str) -> Result<(), Failure> {
        match self {
            Self::Here(dir) => held(dir).and_then(|folder| folder.rename(from, to)).map_err(told),
            Self::Client(home) => home.files.rename(home.path(from), home.path(to)).await.map_err(refused),
        }
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
        let place = Place::Here(dir.path().to_path_buf());
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
