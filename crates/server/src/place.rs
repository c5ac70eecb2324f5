//! The folder of a live session: on this machine, or with a client.

use std::io::Read;
use std::path::{Component, Path, PathBuf};

use hangar_disk::{Folder, Kind};
use hangar_files::{ClientHome, FileError};
use hangar_store::checkpoints::{self, CheckpointEntry};
use hangar_store::{SessionMeta, away};

use crate::methods::Failure;

/// Largest file that clients read or write in it.
const MAX_FILE: u64 = 16 << 20;
/// Files that are listed.
const MAX_LISTED: usize = 100_000;

#[derive(Clone)]
pub(crate) enum Place {
    Here(PathBuf),
    Client(ClientHome),
}

fn failed<'a>(what: &'a str, path: &'a str) -> impl FnOnce(std::io::Error) -> Failure + 'a {
    move |error| Failure::new(format!("{what} {path}: {error}"))
}

/// A session's folder, held open.
pub(crate) fn held(dir: &Path) -> std::io::Result<Folder> {
    match (dir.parent(), dir.file_name()) {
        (Some(parent), Some(name)) => Folder::open(parent)?.folder(name),
        _ => Folder::open(dir),
    }
}

/// A file's text. One that is too large is refused.
fn read_here(dir: &Path, name: &str) -> std::io::Result<String> {
    let file = held(dir)?.read(name)?;
    if file.metadata()?.len() > MAX_FILE {
        let text = format!("it is larger than {} MB", MAX_FILE >> 20);
        return Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, text));
    }
    let mut text = String::new();
    file.take(MAX_FILE).read_to_string(&mut text)?;
    Ok(text)
}

/// Writes a file, with the folders above it.
fn write_here(dir: &Path, name: &str, content: &str) -> std::io::Result<()> {
    let folder = held(dir)?;
    if let Some((above, _)) = name.rsplit_once('/') {
        folder.ensure_folder(above)?;
    }
    if folder.kind(name).is_ok_and(|kind| kind == Kind::Folder) {
        return Err(std::io::ErrorKind::IsADirectory.into());
    }
    folder.replace(name, content)
}

impl Place {
    /// The folder with the client that keeps it.
    pub(crate) fn home(&self) -> Option<ClientHome> {
        match self {
            Self::Here(_) => None,
            Self::Client(home) => Some(home.clone()),
        }
    }

    /// The folder on this machine, held open: no link in it is followed.
    pub(crate) fn folder(&self) -> Result<Folder, Failure> {
        match self {
            Self::Here(dir) => held(dir).map_err(failed("opening", &dir.display().to_string())),
            Self::Client(_) => Err(Failure::new("the folder of this session is with its client")),
        }
    }

    /// The path of the folder, in the words of whoever keeps it.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Here(dir) => dir.display().to_string(),
            Self::Client(home) => home.root().to_owned(),
        }
    }

    /// The path of a file in the folder.
    pub(crate) fn path(&self, name: &str) -> String {
        match self {
            Self::Here(dir) => dir.join(name).display().to_string(),
            Self::Client(home) => home.path(name),
        }
    }

    /// A file's text, unless there is none.
    pub(crate) async fn read(&self, name: &str) -> Result<Option<String>, Failure> {
        let path = self.path(name);
        let read = match self {
            Self::Here(dir) => read_here(dir, name),
            Self::Client(home) => home.files.read(path.clone()).await.map_err(Into::into),
        };
        match read {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed("reading", &path)(error)),
        }
    }

    pub(crate) async fn exists(&self, name: &str) -> Result<bool, Failure> {
        match self {
            Self::Here(dir) => {
                Ok(held(dir).and_then(|folder| folder.kind(name)).is_ok_and(|kind| kind == Kind::File))
            }
            Self::Client(home) => match home.files.stat(home.path(name)).await {
                Ok(stat) => Ok(!stat.is_dir),
                Err(FileError::Missing) => Ok(false),
                Err(error) => Err(failed("looking for", &home.path(name))(error.into())),
            },
        }
    }

    /// Writes a file, with the folders above it.
    pub(crate) async fn write(&self, name: &str, content: String) -> Result<(), Failure> {
        let path = self.path(name);
        if content.len() as u64 > MAX_FILE {
            return Err(Failure::new(format!("{path} would be larger than {} MB", MAX_FILE >> 20)));
        }
        let written: std::io::Result<()> = match self {
            Self::Here(dir) => write_here(dir, name, &content),
            Self::Client(home) => {
                let folder = name.rsplit_once('/').map(|(folder, _)| home.path(folder));
                let made = match folder {
                    Some(folder) => home.files.make_dir(folder).await,
                    None => Ok(()),
                };
                match made {
                    Ok(()) => home.files.write(path.clone(), content).await.map_err(Into::into),
                    Err(error) => Err(error.into()),
                }
            }
        };
        written.map_err(failed("writing", &path))
    }

    /// Removes a file. Says whether there was one.
    pub(crate) async fn remove(&self, name: &str) -> Result<bool, Failure> {
        if !self.exists(name).await? {
            return Ok(false);
        }
        let path = self.path(name);
        let removed = match self {
            Self::Here(dir) => held(dir).and_then(|folder| folder.remove(name)),
            Self::Client(home) => home.files.remove(path.clone(), false).await.map_err(Into::into),
        };
        removed.map(|()| true).map_err(failed("deleting", &path))
    }

    /// The files below a folder, by their paths from there.
    pub(crate) async fn list(&self, folder: &str) -> Result<Vec<String>, Failure> {
        let mut found = Vec::new();
        let mut open = vec![String::new()];
        while let Some(below) = open.pop() {
            let name =
                |entry: &str| if below.is_empty() { entry.to_owned() } else { format!("{below}/{entry}") };
            for (entry, is_dir) in self.entries(&format!("{folder}/{below}")).await? {
                match is_dir {
                    true => open.push(name(&entry)),
                    false if found.len() < MAX_LISTED => found.push(name(&entry)),
                    false => {}
                }
            }
        }
        found.sort();
        Ok(found)
    }

    /// Files and folders in a folder. One that is not there has none.
    async fn entries(&self, folder: &str) -> Result<Vec<(String, bool)>, Failure> {
        let folder = folder.trim_end_matches('/');
        match self {
            Self::Here(dir) => {
                let entries = held(dir).and_then(|session| session.folder(folder)?.entries(MAX_LISTED));
                let known = entries.unwrap_or_default().into_iter().filter_map(|(name, kind)| match kind {
                    Kind::File => Some((name.to_string_lossy().into_owned(), false)),
                    Kind::Folder => Some((name.to_string_lossy().into_owned(), true)),
                    Kind::Other => None,
                });
                Ok(known.collect())
            }
            Self::Client(home) => match home.files.list(home.path(folder)).await {
                Ok(entries) => Ok(entries.into_iter().map(|entry| (entry.name, entry.is_dir)).collect()),
                Err(FileError::Missing) => Ok(Vec::new()),
                Err(error) => Err(failed("listing", &home.path(folder))(error.into())),
            },
        }
    }

    /// The name in the folder of a path inside its `files`. Anything that leads out of them is refused.
    pub(crate) fn inside_files(&self, path: &str) -> Result<String, Failure> {
        let outside = || Failure::new(format!("{path} is outside the workspace files directory"));
        let parts = Path::new(path).components();
        let plain = parts.clone().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if !plain || path.is_empty() {
            return Err(outside());
        }
        let tidy: PathBuf = parts.filter(|part| matches!(part, Component::Normal(_))).collect();
        let name = format!("files/{}", tidy.display());
        if let Self::Here(dir) = self {
            // A link may lead out where the path itself does not, also one to something that is yet to be made.
            let files = held(dir).and_then(|session| session.folder("files"));
            let files = files.map_err(failed("opening", &dir.join("files").display().to_string()))?;
            match files.status(&tidy) {
                Ok(found) if found.is_symlink() => return Err(outside()),
                Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => return Err(outside()),
                Ok(_) | Err(_) => {}
            }
        }
        Ok(name)
    }

    pub(crate) async fn checkpoints(&self) -> Result<Vec<CheckpointEntry>, Failure> {
        match self {
            Self::Here(_) => Ok(checkpoints::list(&self.folder()?)),
            Self::Client(home) => away::checkpoints(home).await.map_err(Failure::from_files),
        }
    }

    pub(crate) async fn checkpoint(&self, number: u64) -> Result<Option<String>, Failure> {
        match self {
            Self::Here(_) => Ok(checkpoints::read(&self.folder()?, number)),
            Self::Client(home) => away::checkpoint(home, number).await.map_err(Failure::from_files),
        }
    }

    /// What lists show of a session that a client keeps.
    pub(crate) async fn facts(&self) -> Result<Option<SessionMeta>, Failure> {
        match self {
            Self::Here(_) => Ok(None),
            Self::Client(home) => away::facts(home).await.map_err(Failure::from_files),
        }
    }
}
