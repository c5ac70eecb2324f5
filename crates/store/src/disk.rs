//! Files and directories that only their owner may read. Sessions hold prompts, code and sometimes secrets.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

/// Options that create a file readable by its owner alone.
pub(crate) fn private() -> OpenOptions {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "the mode exists on Unix only"))]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn private_dir() -> DirBuilder {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "the mode exists on Unix only"))]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

/// Makes a directory and what is missing above it; no error if it is there.
pub(crate) fn ensure_dir(path: &Path) -> io::Result<()> {
    match private_dir().create(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => private_dir().recursive(true).create(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        done => done,
    }
}

/// Replaces a file in one step: a reader sees the old text or the new one, and a crash leaves one of the two.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let written = private()
        .write(true)
        .create(true)
        .truncate(true)
        .open(&temporary)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        // The error that is reported is the one that matters; a leftover is harmless.
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

/// Reads at most `limit` bytes of a text file; what is not UTF-8 becomes replacement characters.
pub(crate) fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// Makes the names in a directory survive a power cut.
pub(crate) fn sync_dir(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    File::open(path)?.sync_all()?;
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}
