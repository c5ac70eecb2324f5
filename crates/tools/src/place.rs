//! Where files are: on this machine, or with a client.
//!
//! Everything here may block, for a client that takes its time; the loop's own thread must not come here for a client's
//! files, which is what [`Apart`] is for.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use hangar_agent::tool::{Access, Tool, ToolContext, ToolInput, ToolOutcome, ToolSpec};
use hangar_disk::Folder;
use hangar_files::ClientFiles;

use crate::files::anchor::Anchor;
use crate::files::content;
use crate::held::Places;
use crate::paths;

/// Files of the client that are read or written at once.
const SIZE_LIMIT: usize = content::SIZE_LIMIT as usize;

#[derive(Debug, Clone, Default)]
pub enum Files {
    #[default]
    Here,
    /// Those on this machine that a call was inspected with, and no others.
    Held(Arc<Places>),
    Client(ClientFiles),
}

/// What is at a path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    pub(crate) is_dir: bool,
    pub(crate) size: u64,
}

impl Files {
    /// Where an absolute path leads. A client's file system has no links that we could know of.
    pub(crate) fn resolve(&self, path: &Path) -> PathBuf {
        match self {
            Self::Here | Self::Held(_) => paths::resolve(path),
            Self::Client(_) => path.to_path_buf(),
        }
    }

    pub(crate) fn resolve_entry(&self, path: &Path) -> PathBuf {
        match self {
            Self::Here | Self::Held(_) => paths::resolve_entry(path),
            Self::Client(_) => path.to_path_buf(),
        }
    }

    /// The same files for the run of a call: those that it was inspected with.
    pub(crate) fn held(&self, places: &Arc<Places>) -> Self {
        match self {
            Self::Here | Self::Held(_) => Self::Held(Arc::clone(places)),
            Self::Client(files) => Self::Client(files.clone()),
        }
    }

    /// A resolved path on this machine, with its directory held open.
    fn anchor(&self, path: &Path) -> io::Result<Anchor> {
        match self {
            Self::Held(places) => places.anchor(path),
            Self::Here | Self::Client(_) => Anchor::of(path),
        }
    }

    /// What is at a resolved path.
    pub(crate) fn find(&self, path: &Path) -> io::Result<Found> {
        let is_held = match self {
            Self::Client(files) => return client_find(files, path),
            Self::Held(places) => places.holds(path),
            Self::Here => false,
        };
        if is_held || path.parent().is_none() {
            return Ok(Found { is_dir: true, size: 0 });
        }
        let metadata = self.anchor(path)?.status()?;
        Ok(Found { is_dir: metadata.is_dir(), size: metadata.len() })
    }

    /// The names in a directory, some at most.
    pub(crate) fn names(&self, path: &Path, limit: usize) -> io::Result<Vec<String>> {
        if let Self::Client(files) = self {
            let entries = files.block_on(files.list(text(path)))?;
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
            Self::Client(_) => Ok(Box::new(io::Cursor::new(self.read(path)?))),
        }
    }

    pub(crate) fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        match self {
            Self::Here | Self::Held(_) => content::read(&self.anchor(path)?),
            Self::Client(files) => {
                let content = files.block_on(files.read(text(path)))?;
                if content.len() > SIZE_LIMIT {
                    return Err(io::Error::new(io::ErrorKind::FileTooLarge, "file is too large to change"));
                }
                Ok(content.into_bytes())
            }
        }
    }

    /// Creates a file that must not exist, in a directory that must.
    pub(crate) fn create(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        match self {
            Self::Here | Self::Held(_) => content::create(&self.anchor(path)?, content),
            Self::Client(files) => {
                if client_find(files, path).is_ok() {
                    return Err(io::ErrorKind::AlreadyExists.into());
                }
                client_write(files, path, content)
            }
        }
    }

    /// Replaces the content of an existing file.
    pub(crate) fn replace(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        match self {
            Self::Here | Self::Held(_) => content::replace(&self.anchor(path)?, content),
            Self::Client(files) => client_write(files, path, content),
        }
    }

    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        match self {
            Self::Here | Self::Held(_) => content::remove(&self.anchor(path)?),
            Self::Client(files) => Ok(files.block_on(files.remove(text(path), false))?),
        }
    }

    pub(crate) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        match self {
            Self::Here | Self::Held(_) => fs::rename(self.anchor(from)?.path(), self.anchor(to)?.path()),
            Self::Client(files) => Ok(files.block_on(files.rename(text(from), text(to)))?),
        }
    }

    pub(crate) fn make_dir(&self, path: &Path) -> io::Result<()> {
        match self {
            Self::Here | Self::Held(_) => fs::create_dir(self.anchor(path)?.path()),
            Self::Client(files) => Ok(files.block_on(files.make_dir(text(path)))?),
        }
    }

    pub(crate) fn remove_dir(&self, path: &Path) -> io::Result<()> {
        match self {
            Self::Here | Self::Held(_) => fs::remove_dir(self.anchor(path)?.path()),
            Self::Client(files) => Ok(files.block_on(files.remove(text(path), true))?),
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
        match self {
            Self::Here | Self::Held(_) => {
                let from = content::open(&self.anchor(from)?)?;
                content::open(&self.anchor(to)?)?.set_permissions(from.metadata()?.permissions())
            }
            Self::Client(_) => Ok(()),
        }
    }

    /// The tool, in a form that asks a client off the loop's thread.
    pub(crate) fn adapt(&self, tool: Arc<dyn Tool>) -> Arc<dyn Tool> {
        match self {
            Self::Here | Self::Held(_) => tool,
            Self::Client(_) => Arc::new(Apart(tool)),
        }
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn client_find(files: &ClientFiles, path: &Path) -> io::Result<Found> {
    let stat = files.block_on(files.stat(text(path)))?;
    Ok(Found { is_dir: stat.is_dir, size: stat.size })
}

fn client_write(files: &ClientFiles, path: &Path, content: &[u8]) -> io::Result<()> {
    let content = String::from_utf8(content.to_vec()).map_err(|_| {
        io::Error::new(io::ErrorKind::InvalidData, "the client that keeps the files takes text only")
    })?;
    Ok(files.block_on(files.write(text(path), content))?)
}

/// A tool whose look at files may take a while.
struct Apart(Arc<dyn Tool>);

impl Tool for Apart {
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
