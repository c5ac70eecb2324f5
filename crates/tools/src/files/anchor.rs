//! A resolved path whose directory is held open. Between the moment a path was looked at and the moment it is used, a
//! command in the background may put a link in its way; a directory that is held stays the one that was meant.

use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};

use hangar_disk::{Folder, Identity};

pub(crate) struct Anchor {
    folder: Folder,
    name: OsString,
    path: PathBuf,
    /// The file that a permission is for, where there was one and that is known.
    permitted: Option<Permitted>,
}

/// File that may be written in place although it has a second name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Permitted(pub(crate) Option<Identity>);

impl Anchor {
    /// Opens the directory of a path whose links are resolved. A path that contains a link is refused.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a directory"));
        };
        Ok(Self::new(Folder::resolved(parent)?, name.to_owned(), None))
    }

    /// An entry of a directory that is held already.
    pub(crate) fn new(folder: Folder, name: OsString, permitted: Option<Permitted>) -> Self {
        let path = folder.fd_path().join(&name);
        Self { folder, name, path, permitted }
    }

    /// The path through the held directory. Valid while this value exists.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Path of the held directory, for files that are created beside the entry.
    pub(crate) fn directory(&self) -> PathBuf {
        self.folder.fd_path()
    }

    /// Metadata of the entry. Links are not followed.
    pub(crate) fn status(&self) -> io::Result<Metadata> {
        self.folder.status(&self.name)
    }

    /// The directory of this name.
    pub(crate) fn into_folder(self) -> io::Result<Folder> {
        self.folder.folder(&self.name)
    }

    /// Whether a file with a second name is the one that the permission is for.
    pub(crate) fn permits(&self, found: &Metadata) -> bool {
        self.permitted.is_none_or(|Permitted(file)| file == Some(Identity::of(found)))
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::tool_files::ToolFiles;

    /// A directory inside, and a link beside it that leads outside, where a directory was when the path was looked at.
    fn place() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let outside = root.join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "kept").unwrap();
        symlink(&outside, root.join("swapped")).unwrap();
        (place, root.join("swapped"), outside)
    }

    #[test]
    fn what_was_swapped_for_a_link_is_neither_read_nor_changed() {
        let (_place, swapped, outside) = place();
        let files = ToolFiles::Here;
        fs::write(swapped.parent().unwrap().join("own"), "own").unwrap();
        let own = swapped.parent().unwrap().join("own");
        assert!(files.create(&swapped.join("planted"), b"x").is_err());
        assert!(files.replace(&swapped.join("kept"), b"x").is_err());
        assert!(files.read(&swapped.join("kept")).is_err());
        assert!(files.find(&swapped.join("kept")).is_err());
        assert!(files.names(&swapped, 9).is_err());
        assert!(files.remove(&swapped.join("kept")).is_err());
        assert!(files.rename(&own, &swapped.join("planted")).is_err());
        assert!(files.rename(&swapped.join("kept"), &own).is_err());
        assert!(files.copy_mode(&own, &swapped.join("kept")).is_err());
        assert!(files.make_dir(&swapped.join("planted")).is_err());
        assert!(files.set_aside(&swapped.join("kept")).is_err());
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
        assert_eq!(fs::read(outside.join("kept")).unwrap(), b"kept");
    }

    #[test]
    fn a_directory_that_is_held_is_the_one_that_was_meant() {
        let (_place, swapped, outside) = place();
        let root = swapped.parent().unwrap();
        fs::create_dir(root.join("dir")).unwrap();
        let anchor = Anchor::of(&root.join("dir/file")).unwrap();
        fs::rename(root.join("dir"), root.join("moved")).unwrap();
        symlink(&outside, root.join("dir")).unwrap();
        fs::write(anchor.path(), "x").unwrap();
        assert!(root.join("moved/file").exists() && !outside.join("file").exists());
    }
}
