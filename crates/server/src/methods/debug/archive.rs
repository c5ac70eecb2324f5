//! Archives of files that are text: tar, compressed by gzip.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

/// Size of the units of a tar file.
const BLOCK: usize = 512;
/// Most names that are tried beside one that is taken.
const MAX_COPIES: u32 = 1000;

/// An archive that is being written beside its place. Dropped before its end, it leaves nothing.
pub(super) struct ArchiveWriter {
    draft: PathBuf,
    file: Option<GzEncoder<File>>,
}

impl ArchiveWriter {
    /// Begins an archive for a place whose directory is made if it is missing.
    pub(super) fn create(place: &Path) -> io::Result<Self> {
        let name = place.file_name().ok_or_else(|| io::Error::other("it has no file name"))?;
        let dir = place.parent().unwrap_or(Path::new("/"));
        hangar_disk::ensure_dir(dir)?;
        let draft = dir.join(format!(".{}.{}", name.to_string_lossy(), uuid::Uuid::new_v4().simple()));
        let file = hangar_disk::private().write(true).create_new(true).open(&draft)?;
        Ok(Self { draft, file: Some(GzEncoder::new(file, Compression::default())) })
    }

    pub(super) fn add(&mut self, name: &str, text: &str) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Err(io::Error::other("the archive is complete")) };
        file.write_all(&header(name, text.len())?)?;
        file.write_all(text.as_bytes())?;
        file.write_all(&[0; BLOCK][..text.len().next_multiple_of(BLOCK) - text.len()])
    }

    /// Completes the archive and moves it to its place, or to the first free one with a number. Returns its path.
    pub(super) fn finish(mut self, place: &Path, overwrites: bool) -> io::Result<PathBuf> {
        if let Some(mut file) = self.file.take() {
            file.write_all(&[0; 2 * BLOCK])?;
            file.finish()?;
        }
        if overwrites {
            std::fs::rename(&self.draft, place)?;
            return Ok(place.to_owned());
        }
        for number in 0..MAX_COPIES {
            let place = numbered(place, number);
            // Unlike a rename, a link does not replace what is there.
            match std::fs::hard_link(&self.draft, &place) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                done => return done.map(|()| place),
            }
        }
        Err(io::Error::from(io::ErrorKind::AlreadyExists))
    }
}

impl Drop for ArchiveWriter {
    fn drop(&mut self) {
        // It is gone already if it was moved.
        let _ = std::fs::remove_file(&self.draft);
    }
}

/// `name.tgz`, then `name (1).tgz`, and so on.
fn numbered(place: &Path, number: u32) -> PathBuf {
    if number == 0 {
        return place.to_owned();
    }
    let stem = place.file_stem().unwrap_or_default().to_string_lossy();
    let extension = place.extension().map(|extension| format!(".{}", extension.to_string_lossy()));
    place.with_file_name(format!("{stem} ({number}){}", extension.unwrap_or_default()))
}

/// The head of a file: its name, and fields of a fixed width with numbers in octal.
fn header(name: &str, size: usize) -> io::Result<[u8; BLOCK]> {
    if name.len() > 100 {
        return Err(io::Error::other(format!("`{name}` is longer than 100 bytes")));
    }
    let mut head = [0; BLOCK];
    let mut put = |at: usize, text: &str| head[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, name);
    put(100, "0000600\0");
    put(108, "0000000\0");
    put(116, "0000000\0");
    put(124, &format!("{size:011o}\0"));
    put(136, "00000000000\0");
    // The sum counts its own field as spaces.
    put(148, "        ");
    put(156, "0");
    put(257, "ustar\0");
    put(263, "00");
    let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
    head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(head)
}
