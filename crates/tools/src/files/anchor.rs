//! A resolved path whose directory is held open. Between the moment a path was looked at and the moment it is used, a
//! command in the background may put a link in its way; a directory that is held stays the one that was meant.

use std::io;
use std::path::{Path, PathBuf};

pub(crate) struct Anchor {
    #[cfg(target_os = "linux")]
    _held: Option<std::os::fd::OwnedFd>,
    path: PathBuf,
}

impl Anchor {
    /// Takes hold of the directory of a path on which all links are resolved. One that has a link in it is refused.
    #[cfg(target_os = "linux")]
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
        use rustix::io::Errno;
        use std::os::fd::AsRawFd;

        let by_name = || Ok(Self { _held: None, path: path.to_owned() });
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return by_name() };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match openat2(CWD, parent, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
            Ok(directory) => {
                let path = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())).join(name);
                Ok(Self { _held: Some(directory), path })
            }
            Err(Errno::LOOP) => {
                Err(io::Error::new(io::ErrorKind::PermissionDenied, "a link was put in its way meanwhile"))
            }
            // An older kernel, or one that is told to hide it.
            Err(Errno::NOSYS | Errno::PERM) => by_name(),
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned() })
    }

    /// The path by way of the directory that is held. Good as long as this is there.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn directory(&self) -> io::Result<&Path> {
        let parent = self.path.parent();
        parent.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not a path of a file"))
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::place::Files;

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
        let files = Files::Here;
        fs::write(swapped.parent().unwrap().join("own"), "own").unwrap();
        let own = swapped.parent().unwrap().join("own");
        assert!(files.create(&swapped.join("planted"), b"x").is_err());
        assert!(files.replace(&swapped.join("kept"), b"x").is_err());
        assert!(files.read(&swapped.join("kept")).is_err());
        assert!(files.remove(&swapped.join("kept")).is_err());
        assert!(files.rename(&own, &swapped.join("planted")).is_err());
        assert!(files.rename(&swapped.join("kept"), &own).is_err());
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
