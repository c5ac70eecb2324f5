//! Summaries of a session as files: `checkpoints/NNN-title.md`, and `index.md` that lists them.

use std::path::{Path, PathBuf};

use hangar_agent::session::Checkpoint;
use hangar_files::{FileError, FileRequest, SessionFiles};

/// The directory of a session that they are in.
pub(crate) const DIR: &str = "checkpoints";
const INDEX: &str = "index.md";
/// Numbers above this one are summaries of clients, which no compaction replaces.
const OF_CLIENTS: u64 = 10_000;
pub(crate) const HEADER: &str = "# Checkpoint History\n\nCheckpoints are listed in chronological order. Checkpoint 1 is the oldest, \
                      higher numbers are more recent.\n\n| # | Title | File |\n|---|-------|------|\n";

/// A checkpoint as the index lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointEntry {
    pub number: u64,
    pub title: String,
    pub file: String,
}

/// The whole path of a file beside the index.
pub(crate) fn path(files: &dyn SessionFiles, file: &str) -> PathBuf {
    files.path(&format!("{DIR}/{file}"))
}

pub(crate) fn write_index(files: &dyn SessionFiles, index: &str) -> FileRequest {
    FileRequest::Replace { path: path(files, INDEX), content: index.as_bytes().to_vec() }
}

/// The directory with another checkpoint.
pub(crate) struct UpdatedIndex {
    /// The file of the checkpoint.
    pub(crate) file: String,
    pub(crate) entries: Vec<CheckpointEntry>,
    /// The files of checkpoints from a past that was taken back.
    pub(crate) stale: Vec<String>,
}

pub(crate) fn with_checkpoint(entries: Vec<CheckpointEntry>, checkpoint: &Checkpoint) -> UpdatedIndex {
    let (mut kept, stale): (Vec<_>, Vec<_>) =
        entries.into_iter().partition(|entry| entry.number < checkpoint.number || entry.number > OF_CLIENTS);
    let file = checkpoint.file_name();
    let stale = stale.into_iter().map(|old| old.file).filter(|old| *old != file && is_plain(old)).collect();
    kept.push(CheckpointEntry {
        number: checkpoint.number,
        title: checkpoint.title.clone(),
        file: file.clone(),
    });
    UpdatedIndex { file, entries: kept, stale }
}

/// The text of the index.
pub(crate) fn render(entries: &[CheckpointEntry]) -> String {
    let mut index = HEADER.to_owned();
    for entry in entries {
        index.push_str(&format!("| {} | {} | {} |\n", entry.number, entry.title, entry.file));
    }
    index
}

/// The checkpoints of a session, oldest first. A session without an index has none, and so has one whose index is no
/// file.
pub async fn list(files: &dyn SessionFiles) -> Result<Vec<CheckpointEntry>, FileError> {
    match files.read(&format!("{DIR}/{INDEX}")).await {
        Err(FileError::Local { .. }) => Ok(Vec::new()),
        index => Ok(parse(&index?.unwrap_or_default())),
    }
}

/// The checkpoints that an index lists.
fn parse(index: &str) -> Vec<CheckpointEntry> {
    let row = |line: &str| {
        let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
        let number = cells.next()?.parse().ok()?;
        Some(CheckpointEntry { number, title: cells.next()?.to_owned(), file: cells.next()?.to_owned() })
    };
    index.lines().filter_map(row).collect()
}

/// The text of a checkpoint; `None` where there is none of that number.
pub async fn read(files: &dyn SessionFiles, number: u64) -> Result<Option<String>, FileError> {
    let entry = list(files).await?.into_iter().find(|entry| entry.number == number);
    let Some(entry) = entry.filter(|entry| is_plain(&entry.file)) else { return Ok(None) };
    match files.read(&format!("{DIR}/{}", entry.file)).await {
        Err(FileError::Local { .. }) => Ok(None),
        text => text,
    }
}

/// Adds a summary of a client and returns its entry.
pub async fn add(files: &dyn SessionFiles, title: &str, content: &str) -> Result<CheckpointEntry, FileError> {
    let mut entries = list(files).await?;
    let last = entries.iter().map(|entry| entry.number).max().unwrap_or_default();
    let number = last.max(OF_CLIENTS) + 1;
    // A title is one cell of the index.
    let plain = |letter: char| if letter == '|' || letter.is_control() { ' ' } else { letter };
    let title: String = title.chars().map(plain).collect();
    let checkpoint = Checkpoint { number, title: title.clone(), content: content.to_owned() };
    let entry = CheckpointEntry { number, title, file: checkpoint.file_name() };
    files.write(&format!("{DIR}/{}", entry.file), content.to_owned()).await?;
    entries.push(entry.clone());
    files.write(&format!("{DIR}/{INDEX}"), render(&entries)).await?;
    Ok(entry)
}

/// Keeps the newest summaries and deletes the others. Returns how many are left.
pub async fn truncate(files: &dyn SessionFiles, keep: usize) -> Result<usize, FileError> {
    let mut entries = list(files).await?;
    let gone: Vec<CheckpointEntry> = entries.drain(..entries.len().saturating_sub(keep)).collect();
    files.write(&format!("{DIR}/{INDEX}"), render(&entries)).await?;
    for entry in gone.iter().filter(|entry| is_plain(&entry.file)) {
        // The index does not name it any more.
        let _ = files.remove(&format!("{DIR}/{}", entry.file), false).await;
    }
    Ok(entries.len())
}

/// The index is a file that anyone may have edited: what it names must be in its folder.
fn is_plain(file: &str) -> bool {
    Path::new(file).file_name().is_some_and(|name| name == file)
}

#[cfg(test)]
mod tests {
    use hangar_agent::log::{ListedFact, SessionNotes};
    use hangar_files::block_on;
    use jiff::Timestamp;

    use super::*;
    use crate::{OpenSession, SessionMeta, Store};

    fn write(session: &mut OpenSession, number: u64, title: &str) {
        let content = format!("about {title}");
        session
            .note(ListedFact::Checkpoint(Checkpoint { number, title: title.to_owned(), content }))
            .unwrap();
    }

    fn list(session: &OpenSession) -> Vec<CheckpointEntry> {
        block_on(super::list(&**session.files())).unwrap()
    }

    fn read(session: &OpenSession, number: u64) -> Option<String> {
        block_on(super::read(&**session.files(), number)).unwrap()
    }

    fn session() -> (tempfile::TempDir, OpenSession) {
        let dir = tempfile::tempdir().unwrap();
        let meta = SessionMeta::from_first_event(None, Timestamp::UNIX_EPOCH);
        let session = Store::new(dir.path()).create(&"s".parse().unwrap(), meta).unwrap();
        (dir, session)
    }

    #[test]
    fn checkpoints_are_listed_in_order_and_read_by_number() {
        let (_dir, mut session) = session();
        assert!(list(&session).is_empty());
        write(&mut session, 1, "First Part");
        write(&mut session, 2, "Second");
        let files: Vec<String> = list(&session).into_iter().map(|entry| entry.file).collect();
        assert_eq!(files, ["001-first-part.md", "002-second.md"]);
        assert_eq!(read(&session, 2).as_deref(), Some("about Second"));
        assert_eq!(read(&session, 9), None);
    }

    #[test]
    fn a_checkpoint_of_a_past_that_was_taken_back_is_replaced() {
        let (_dir, mut session) = session();
        for number in 1..=3 {
            write(&mut session, number, &format!("old {number}"));
        }
        write(&mut session, 2, "new");
        let titles: Vec<String> = list(&session).into_iter().map(|entry| entry.title).collect();
        assert_eq!(titles, ["old 1", "new"]);
        assert!(!path(&**session.files(), "003-old-3.md").exists());
    }

    #[test]
    fn an_index_cannot_lead_out_of_its_folder() {
        let (_dir, session) = session();
        let files = &**session.files();
        std::fs::write(files.path("secret"), "secret").unwrap();
        std::os::unix::fs::symlink("../secret", path(files, "link")).unwrap();
        let index = format!("{HEADER}| 1 | x | ../secret |\n| 2 | x | link |\n");
        files.put(write_index(files, &index)).unwrap();
        assert_eq!(list(&session).len(), 2);
        assert_eq!((read(&session, 1), read(&session, 2)), (None, None));
    }
}
