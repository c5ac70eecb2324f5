//! Summaries of a session as files: `checkpoints/NNN-title.md`, and `index.md` that lists them.

use std::io;
use std::path::Path;

use hangar_agent::session::Checkpoint;

use hangar_disk::Folder;

/// The folder of a session that they are in.
const DIR: &str = "checkpoints";
pub(crate) const INDEX: &str = "index.md";
/// What of an index or a checkpoint is read.
const READ_LIMIT: u64 = 16 << 20;
pub(crate) const HEADER: &str = "# Checkpoint History\n\nCheckpoints are listed in chronological order. Checkpoint 1 is the oldest, \
                      higher numbers are more recent.\n\n| # | Title | File |\n|---|-------|------|\n";

/// A checkpoint as the index lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointEntry {
    pub number: u64,
    pub title: String,
    pub file: String,
}

/// Writes a checkpoint. One of the same number, or of a later one, is from a past that was taken back, and goes.
pub(crate) fn write(session: &Folder, checkpoint: &Checkpoint) -> io::Result<()> {
    let folder = session.own_folder(DIR)?;
    let renewed = renew(entries(&folder), checkpoint);
    for file in &renewed.stale {
        // It is in no list any more; whether it goes matters to nobody.
        let _ = folder.remove(file);
    }
    folder.replace(&renewed.file, &checkpoint.content)?;
    folder.replace(INDEX, &renewed.index)
}

/// What becomes of a folder with another checkpoint.
pub(crate) struct Renewed {
    /// The file of the checkpoint.
    pub(crate) file: String,
    /// The text of the index.
    pub(crate) index: String,
    /// The files of checkpoints from a past that was taken back.
    pub(crate) stale: Vec<String>,
}

pub(crate) fn renew(entries: Vec<CheckpointEntry>, checkpoint: &Checkpoint) -> Renewed {
    let (mut kept, stale): (Vec<_>, Vec<_>) =
        entries.into_iter().partition(|entry| entry.number < checkpoint.number);
    let file = checkpoint.file_name();
    let stale = stale.into_iter().map(|old| old.file).filter(|old| *old != file && is_plain(old)).collect();
    kept.push(CheckpointEntry {
        number: checkpoint.number,
        title: checkpoint.title.clone(),
        file: file.clone(),
    });
    Renewed { file, index: render(&kept), stale }
}

fn render(entries: &[CheckpointEntry]) -> String {
    let mut index = HEADER.to_owned();
    for entry in entries {
        index.push_str(&format!("| {} | {} | {} |\n", entry.number, entry.title, entry.file));
    }
    index
}

/// The checkpoints of a session, oldest first. A session without an index has none.
pub fn list(session: &Folder) -> Vec<CheckpointEntry> {
    session.folder(DIR).map(|folder| entries(&folder)).unwrap_or_default()
}

fn entries(folder: &Folder) -> Vec<CheckpointEntry> {
    parse(&folder.read_text(INDEX, READ_LIMIT).unwrap_or_default())
}

/// The checkpoints that an index lists.
pub(crate) fn parse(index: &str) -> Vec<CheckpointEntry> {
    let row = |line: &str| {
        let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
        let number = cells.next()?.parse().ok()?;
        Some(CheckpointEntry { number, title: cells.next()?.to_owned(), file: cells.next()?.to_owned() })
    };
    index.lines().filter_map(row).collect()
}

/// The text of a checkpoint; `None` where there is none of that number.
pub fn read(session: &Folder, number: u64) -> Option<String> {
    let folder = session.folder(DIR).ok()?;
    let entry = entries(&folder).into_iter().find(|entry| entry.number == number)?;
    is_plain(&entry.file).then(|| folder.read_text(entry.file, READ_LIMIT).ok()).flatten()
}

/// The index is a file that anyone may have edited: what it names must be in its folder.
pub(crate) fn is_plain(file: &str) -> bool {
    Path::new(file).file_name().is_some_and(|name| name == file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint(number: u64, title: &str) -> Checkpoint {
        Checkpoint { number, title: title.to_owned(), content: format!("about {title}") }
    }

    fn session() -> (tempfile::TempDir, Folder) {
        let dir = tempfile::tempdir().unwrap();
        let session = Folder::open(dir.path()).unwrap();
        (dir, session)
    }

    #[test]
    fn checkpoints_are_listed_in_order_and_read_by_number() {
        let (_dir, session) = session();
        assert!(list(&session).is_empty());
        write(&session, &checkpoint(1, "First Part")).unwrap();
        write(&session, &checkpoint(2, "Second")).unwrap();
        let files: Vec<String> = list(&session).into_iter().map(|entry| entry.file).collect();
        assert_eq!(files, ["001-first-part.md", "002-second.md"]);
        assert_eq!(read(&session, 2).as_deref(), Some("about Second"));
        assert_eq!(read(&session, 9), None);
    }

    #[test]
    fn a_checkpoint_of_a_past_that_was_taken_back_is_replaced() {
        let (dir, session) = session();
        for number in 1..=3 {
            write(&session, &checkpoint(number, &format!("old {number}"))).unwrap();
        }
        write(&session, &checkpoint(2, "new")).unwrap();
        let titles: Vec<String> = list(&session).into_iter().map(|entry| entry.title).collect();
        assert_eq!(titles, ["old 1", "new"]);
        assert!(!dir.path().join("checkpoints/003-old-3.md").exists());
    }

    #[test]
    fn an_index_cannot_lead_out_of_its_folder() {
        let (dir, session) = session();
        std::fs::write(dir.path().join("secret"), "secret").unwrap();
        let folder = session.ensure_folder(DIR).unwrap();
        std::os::unix::fs::symlink("../secret", dir.path().join("checkpoints/link")).unwrap();
        folder.replace(INDEX, format!("{HEADER}| 1 | x | ../secret |\n| 2 | x | link |\n")).unwrap();
        assert_eq!((read(&session, 1), read(&session, 2)), (None, None));
    }
}
