//! Reading and writing whole files. A reader of a changed file sees the old content or the new, never a mixture.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};

use rustix::fs::OFlags;
use tempfile::NamedTempFile;

use super::anchor::Anchor;

/// Bytes of a file that can be changed. Text is far smaller; more would only cost memory.
const SIZE_LIMIT: u64 = 32 * 1024 * 1024;

/// Opens a regular file. Devices and pipes, which may never end, are refused.
pub(crate) fn open(anchor: &Anchor) -> io::Result<File> {
    open_with(anchor, OpenOptions::new().read(true))
}

/// All of a file that can be changed.
pub(crate) fn read_all(file: impl Read) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    // One byte over the limit tells a file at the limit from a larger one, whatever its metadata say.
    file.take(SIZE_LIMIT + 1).read_to_end(&mut content)?;
    if content.len() as u64 > SIZE_LIMIT {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "file is too large to change"));
    }
    Ok(content)
}

/// Creates a file that must not exist, in a directory that must.
pub(crate) fn create(anchor: &Anchor, content: &[u8]) -> io::Result<()> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".hangar-");
    // As for any new file: what the umask leaves.
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut staged = builder.tempfile_in(anchor.directory()).map_err(nameless)?;
    staged.write_all(content)?;
    match staged.persist_noclobber(anchor.path()) {
        Ok(_) => Ok(()),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Err(error.error),
        // The file system has no rename that fails if the target exists.
        Err(_) => OpenOptions::new().write(true).create_new(true).open(anchor.path())?.write_all(content),
    }
}

/// Replaces the content of an existing file, which keeps its mode and owner.
pub(crate) fn replace(anchor: &Anchor, content: &[u8]) -> io::Result<()> {
    // Opened first: a file that may not be written stays as it is, even if its directory allows a rename over it.
    let mut file = open_with(anchor, OpenOptions::new().write(true))?;
    let metadata = file.metadata()?;
    let has_other_names = metadata.nlink() > 1;
    if has_other_names && !anchor.permits(&metadata) {
        let text = "it is not the file that was permitted, and has a second name";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    // A rename would leave the other names of a file with the old content.
    let staged = if has_other_names { None } else { stage(anchor, content, &metadata)? };
    if let Some(staged) = staged {
        match staged.persist(anchor.path()) {
            Ok(_) => return Ok(()),
            // A mount point, or a directory that lets files be made but not replaced.
            Err(error) if is_in_the_way(&error.error) => {}
            Err(error) => return Err(error.error),
        }
    }
    file.rewind()?;
    file.write_all(content)?;
    file.set_len(content.len() as u64)
}

/// The new content beside the file, ready to take its place; `None` where only the file itself can be written.
fn stage(anchor: &Anchor, content: &[u8], like: &Metadata) -> io::Result<Option<NamedTempFile>> {
    let mut staged =
        match tempfile::Builder::new().prefix(".hangar-").tempfile_in(anchor.directory()).map_err(nameless) {
            Ok(staged) => staged,
            Err(error) if is_in_the_way(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
    staged.write_all(content)?;
    if !take_owner(staged.as_file(), like)? {
        return Ok(None);
    }
    staged.as_file().set_permissions(like.permissions())?;
    Ok(Some(staged))
}

fn is_in_the_way(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ResourceBusy | io::ErrorKind::CrossesDevices
    )
}

/// The error without the path of an internal file.
fn nameless(error: io::Error) -> io::Error {
    error.kind().into()
}

fn open_with(anchor: &Anchor, options: &mut OpenOptions) -> io::Result<File> {
    // The path is resolved: a link in the last place was put there since. Opening a pipe must not wait for its other end.
    options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    let file = options.open(anchor.path())?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a directory"));
    }
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok(file)
}

/// Whether `file` now has the owner that `like` describes.
fn take_owner(file: &File, like: &Metadata) -> io::Result<bool> {
    let ours = file.metadata()?;
    Ok((ours.uid(), ours.gid()) == (like.uid(), like.gid())
        || fchown(file, Some(like.uid()), Some(like.gid())).is_ok())
}

/// Removes a directory entry.
pub(crate) fn remove(anchor: &Anchor) -> io::Result<()> {
    fs::remove_file(anchor.path())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    use super::*;

    fn at(path: &Path) -> Anchor {
        let parent = path.parent().unwrap().canonicalize().unwrap();
        Anchor::of(&parent.join(path.file_name().unwrap())).unwrap()
    }

    fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
        super::replace(&at(path), content)
    }

    fn read(path: &Path) -> io::Result<Vec<u8>> {
        super::read_all(super::open(&at(path))?)
    }

    fn create(path: &Path, content: &[u8]) -> io::Result<()> {
        super::create(&at(path), content)
    }

    #[test]
    fn a_replaced_file_keeps_its_mode() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.sh");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
        replace(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o750);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left behind");
    }

    #[test]
    fn every_name_of_a_file_sees_its_new_content() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("a"), dir.path().join("b"));
        fs::write(&path, "longer than the new").unwrap();
        fs::hard_link(&path, &other).unwrap();
        replace(&path, b"new").unwrap();
        assert_eq!(fs::read(&other).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().nlink(), 2);
    }

    #[test]
    fn a_reader_of_the_old_file_keeps_the_old_content() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, "old").unwrap();
        let mut reader = File::open(&path).unwrap();
        replace(&path, b"new content").unwrap();
        let mut seen = String::new();
        reader.read_to_string(&mut seen).unwrap();
        assert_eq!(seen, "old");
    }

    #[test]
    fn a_link_put_in_the_way_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (target, link) = (dir.path().join("target"), dir.path().join("link"));
        fs::write(&target, "safe").unwrap();
        symlink(&target, &link).unwrap();
        assert!(replace(&link, b"x").is_err() && read(&link).is_err() && create(&link, b"x").is_err());
        assert_eq!(fs::read(&target).unwrap(), b"safe");
    }

    #[test]
    fn a_pipe_is_refused_without_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR).unwrap();
        assert_eq!(read(&path).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn a_directory_is_not_a_file() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path()).unwrap_err().kind(), io::ErrorKind::IsADirectory);
    }

    #[test]
    fn a_created_file_never_replaces_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        create(&path, b"first").unwrap();
        assert_eq!(create(&path, b"second").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o600, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
