//! Files and directories of this machine that only their owner may read: they hold prompts, code and sometimes secrets.
//! All state that is kept in a file of its own is written through here.
//!
//! Files where programs of a session can write too, such as those beside its log, are opened by way of a [`Folder`], which
//! follows no links. The functions on paths are for files of the home, where links are their owner's.

mod folder;

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

pub use folder::{FileKind, Folder, Identity};

/// Options that create a file readable by its owner alone.
pub fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn private_dir() -> DirBuilder {
    let mut builder = DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

/// Makes a directory and what is missing above it; no error if it is there.
pub fn ensure_dir(path: &Path) -> io::Result<()> {
    match private_dir().create(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => private_dir().recursive(true).create(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        done => done,
    }
}

/// Replaces a file in one step: a reader sees the old content or the new one, and a killed process leaves one of the
/// two. It need not survive a power cut. The directory exists already.
pub fn replace(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    let draft = path.with_file_name(folder::unique(path.file_name().unwrap_or_default(), "tmp"));
    let written = private()
        .write(true)
        .create_new(true)
        .open(&draft)
        .and_then(|mut file| file.write_all(content.as_ref()))
        .and_then(|()| std::fs::rename(&draft, path));
    if written.is_err() {
        // The error that is reported is the one that matters; a leftover is harmless.
        let _ = std::fs::remove_file(&draft);
    }
    written
}

/// The same where the directory may be missing.
pub fn keep(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        ensure_dir(dir)?;
    }
    replace(path, content)
}

/// Checks that a file can be written at a path, as far as that can be told without creating anything. Directories that are
/// missing above it could be created.
pub fn check_writable(path: &Path) -> io::Result<()> {
    let refused = |kind, path: &Path, why| Err(io::Error::new(kind, format!("{} {why}", path.display())));
    let may_write = |path: &Path| match rustix::fs::access(path, rustix::fs::Access::WRITE_OK) {
        Ok(()) => Ok(()),
        Err(error) => refused(io::Error::from(error).kind(), path, "cannot be written"),
    };
    match path.metadata() {
        Ok(found) if found.is_dir() => return refused(io::ErrorKind::IsADirectory, path, "is a directory"),
        Ok(_) => return may_write(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    // The last of them is the root, or the current directory as an empty path.
    let above =
        path.ancestors().skip(1).map(|dir| if dir.as_os_str().is_empty() { Path::new(".") } else { dir });
    match above.map(|dir| (dir, dir.metadata())).find(|(_, found)| found.is_ok()) {
        Some((dir, Ok(found))) if found.is_dir() => may_write(dir),
        Some((dir, _)) => refused(io::ErrorKind::NotADirectory, dir, "is not a directory"),
        None => Err(io::ErrorKind::NotFound.into()),
    }
}

/// Reads at most `limit` bytes of a text file; what is not UTF-8 becomes replacement characters. What is no regular file is
/// refused, and a pipe is not waited for.
pub fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    let mut options = OpenOptions::new();
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags);
    let file = options.read(true).open(path)?;
    if !file.metadata()?.is_file() {
        let text = format!("{} is no regular file", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(text(bytes))
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Makes the names in a directory survive a power cut.
pub fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_checked_without_a_trace() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), "x").unwrap();
        let check = |path: &str, expected: Result<(), io::ErrorKind>| {
            let checked = check_writable(&dir.path().join(path));
            assert_eq!(checked.map_err(|error| error.kind()), expected, "{path}");
        };
        check("file", Ok(()));
        check("new", Ok(()));
        check("new/deep/file", Ok(()));
        check("", Err(io::ErrorKind::IsADirectory));
        check("file/below", Err(io::ErrorKind::NotADirectory));
        assert!(check_writable(Path::new("no-such-file")).is_ok(), "in the current directory");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        assert_eq!(std::fs::read_to_string(dir.path().join("file")).unwrap(), "x");
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_read_by_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a/b/file.json");
        assert!(replace(&file, "x").is_err(), "there is no directory");
        keep(&file, "one").unwrap();
        keep(&file, "two").unwrap();
        assert_eq!(read_text(&file, 99).unwrap(), "two");
        assert_eq!(std::fs::read_dir(file.parent().unwrap()).unwrap().count(), 1, "nothing is left over");
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    }

    #[test]
    fn many_may_replace_one_file_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::thread::scope(|scope| {
            for writer in ["a", "b", "c", "d"] {
                let (file, text) = (&file, writer.repeat(10_000));
                scope.spawn(move || (0..50).for_each(|_| replace(file, &text).unwrap()));
            }
        });
        let text = read_text(&file, 99_999).unwrap();
        assert!(text.len() == 10_000 && text.chars().all(|c| text.starts_with(c)));
    }
}
