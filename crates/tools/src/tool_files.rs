//! The files that tools work on: those of this machine, or those of a client.
//!
//! Everything here may block, for a client that takes its time; the loop's own thread must not come here for a client's
//! files, which is what [`OffThread`] is for.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use hangar_agent::tool::{Access, Tool, ToolContext, ToolInput, ToolOutcome, ToolSpec};
use hangar_disk::{FileKind, Folder};
use hangar_files::{FileReply, FileRequest, SessionFiles, block_on};

use crate::files::anchor::Anchor;
use crate::files::content;
use crate::held_paths::HeldPaths;
use crate::paths;

#[derive(Debug, Clone, Default)]
pub enum ToolFiles {
    #[default]
    Here,
    /// Paths on this machine that a call was inspected with, and no others.
    Held(Arc<HeldPaths>),
    Client(Arc<dyn SessionFiles>),
}

/// Kind and size of a path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PathStat {
    pub(crate) is_dir: bool,
    pub(crate) size: u64,
}

impl ToolFiles {
    /// The files that the tools of a session work on, and the directory for outputs that are too large for the model.
    pub fn of_session(session: &Arc<dyn SessionFiles>) -> (Self, PathBuf) {
        match session.local() {
            // The directory is the session's own; a link that is put in its place is not followed.
            Some(_) => (Self::Here, paths::resolve_entry(&session.path("files"))),
            None => (Self::Client(Arc::clone(session)), session.path("temp")),
        }
    }

    /// Whether a client keeps them. Its file system has no links and no modes that we could know of.
    pub(crate) fn is_client(&self) -> bool {
        matches!(self, Self::Client(_))
    }

    /// Resolves an absolute path.
    pub(crate) fn resolve(&self, path: &Path) -> PathBuf {
        if self.is_client() { path.to_owned() } else { paths::resolve(path) }
    }

    pub(crate) fn resolve_entry(&self, path: &Path) -> PathBuf {
        if self.is_client() { path.to_owned() } else { paths::resolve_entry(path) }
    }

    /// The same files for the run of a call: those that it was inspected with.
    pub(crate) fn held(&self, places: &Arc<HeldPaths>) -> Self {
        if self.is_client() { self.clone() } else { Self::Held(Arc::clone(places)) }
    }

    /// A resolved path on this machine, with its directory held open.
    fn anchor(&self, path: &Path) -> io::Result<Anchor> {
        match self {
            Self::Held(places) => places.anchor(path),
            Self::Here | Self::Client(_) => Anchor::of(path),
        }
    }

    /// Kind and size of a resolved path.
    pub(crate) fn find(&self, path: &Path) -> io::Result<PathStat> {
        let is_held = match self {
            Self::Client(files) => {
                let stat = ask(files, FileRequest::Stat { path: path.to_owned() })?.stat()?;
                return Ok(PathStat { is_dir: stat.kind == FileKind::Folder, size: stat.size });
            }
            Self::Held(places) => places.holds(path),
            Self::Here => false,
        };
        if is_held || path.parent().is_none() {
            return Ok(PathStat { is_dir: true, size: 0 });
        }
        let metadata = self.anchor(path)?.status()?;
        Ok(PathStat { is_dir: metadata.is_dir(), size: metadata.len() })
    }

    /// The names in a directory, some at most.
    pub(crate) fn names(&self, path: &Path, limit: usize) -> io::Result<Vec<String>> {
        if let Self::Client(files) = self {
            let entries = ask(files, FileRequest::List { path: path.to_owned() })?.entries()?;
            return Ok(entries.into_iter().take(limit).map(|entry| entry.name).collect());
        }
        let folder = match path.parent() {
            Some(_) => self.anchor(path)?.into_folder()?,
            None => Folder::open(path)?,
        };
        let names = folder.entries(limit)?.into_iter();
        Ok(names.map(|(name, _)| name.to_string_lossy().into_owned()).collect())
    }

    /// Opens a regular file by its resolved path.
    pub(crate) fn open(&self, path: &Path) -> io::Result<Box<dyn Read>> {
        match self {
            Self::Here | Self::Held(_) => Ok(Box::new(content::open(&self.anchor(path)?)?)),
            Self::Client(files) => {
                let content = ask(files, FileRequest::Read { path: path.to_owned() })?.content()?;
                Ok(Box::new(io::Cursor::new(content)))
            }
        }
    }

    /// A whole file, unless it is too large to change.
    pub(crate) fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        content::read_all(self.open(path)?)
    }

    /// Creates a file that must not exist, in a directory that must.
    pub(crate) fn create(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        match self {
            Self::Here | Self::Held(_) => content::create(&self.anchor(path)?, content),
            Self::Client(_) if self.find(path).is_ok() => Err(io::ErrorKind::AlreadyExists.into()),
            Self::Client(_) => self.replace(path, content),
        }
    }

    /// Replaces the content of an existing file.
    pub(crate) fn replace(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        match self {
            Self::Here | Self::Held(_) => content::replace(&self.anchor(path)?, content),
            Self::Client(files) => {
                let (path, content) = (path.to_owned(), content.to_vec());
                ask(files, FileRequest::Write { path, content, private: false }).map(drop)
            }
        }
    }

    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        match self {
            Self::Here | Self::Held(_) => content::remove(&self.anchor(path)?),
            Self::Client(files) => {
                ask(files, FileRequest::Remove { path: path.to_owned(), recursive: false }).map(drop)
            }
        }
    }

    pub(crate) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        match self {
            Self::Here | Self::Held(_) => fs::rename(self.anchor(from)?.path(), self.anchor(to)?.path()),
            Self::Client(files) => {
                ask(files, FileRequest::Rename { from: from.to_owned(), to: to.to_owned() }).map(drop)
            }
        }
    }

    pub(crate) fn make_dir(&self, path: &Path) -> io::Result<()> {
        match self {
            Self::Here | Self::Held(_) => fs::create_dir(self.anchor(path)?.path()),
            Self::Client(files) => ask(files, FileRequest::MakeDir { path: path.to_owned() }).map(drop),
        }
    }

    /// Directories on the way to a path that are not there, outermost first.
    pub(crate) fn missing_parents(&self, path: &Path) -> Vec<PathBuf> {
        let missing = path.ancestors().skip(1).take_while(|directory| self.find(directory).is_err());
        let mut missing: Vec<PathBuf> = missing.map(Path::to_path_buf).collect();
        missing.reverse();
        missing
    }

    pub(crate) fn remove_dir(&self, path: &Path) -> io::Result<()> {
        match self {
            Self::Here | Self::Held(_) => fs::remove_dir(self.anchor(path)?.path()),
            Self::Client(files) => {
                ask(files, FileRequest::Remove { path: path.to_owned(), recursive: true }).map(drop)
            }
        }
    }

    /// Renames a file to a free name beside it, from where it can come back.
    pub(crate) fn set_aside(&self, path: &Path) -> io::Result<PathBuf> {
        let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        match self {
            Self::Here | Self::Held(_) => {
                let anchor = self.anchor(path)?;
                let staged = tempfile::Builder::new().prefix(".hangar-").tempfile_in(anchor.directory())?;
                let aside = staged.into_temp_path();
                fs::rename(anchor.path(), &aside)?;
                let kept = aside.keep().map_err(|error| error.error)?;
                Ok(directory.join(kept.file_name().ok_or(io::ErrorKind::InvalidInput)?))
            }
            Self::Client(_) => {
                let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
                let aside = directory.join(format!(".hangar-{name}"));
                self.rename(path, &aside)?;
                Ok(aside)
            }
        }
    }

    /// Gives a file the mode of another, where there are modes.
    pub(crate) fn copy_mode(&self, from: &Path, to: &Path) -> io::Result<()> {
        if self.is_client() {
            return Ok(());
        }
        let from = content::open(&self.anchor(from)?)?;
        content::open(&self.anchor(to)?)?.set_permissions(from.metadata()?.permissions())
    }

    /// The tool, in a form that asks a client off the loop's thread.
    pub(crate) fn adapt(&self, tool: Arc<dyn Tool>) -> Arc<dyn Tool> {
        if self.is_client() { Arc::new(OffThread(tool)) } else { tool }
    }
}

fn ask(files: &Arc<dyn SessionFiles>, request: FileRequest) -> io::Result<FileReply> {
    Ok(block_on(files.ask(request))?)
}

/// A tool whose inspection runs off the loop's thread.
struct OffThread(Arc<dyn Tool>);

impl Tool for OffThread {
    fn spec(&self) -> &Arc<ToolSpec> {
        self.0.spec()
    }

    fn inspect(&self, call: &ToolInput) -> Result<Access, ToolOutcome> {
        self.0.inspect(call)
    }

    fn inspect_apart(&self, call: &ToolInput) -> Option<BoxFuture<'static, Result<Access, ToolOutcome>>> {
        let (tool, call) = (Arc::clone(&self.0), call.clone());
        Some(Box::pin(async move {
            match tokio::task::spawn_blocking(move || tool.inspect(&call)).await {
                Ok(access) => access,
                Err(error) => Err(ToolOutcome::failure(format!("The tool failed: {error}"))),
            }
        }))
    }

    fn run(&self, call: ToolInput, context: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        self.0.run(call, context)
    }
}
