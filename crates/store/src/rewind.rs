//! Taking files back to what they were before some calls, without touching what a person did to them since.
//!
//! Which files those are says a record beside the log, which others may have written. It is believed only about files in
//! directories that the session may write, never through a link, and never about what Git keeps.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use hangar_disk::{Folder, Identity};
use hangar_protocol::{Body, Event};

use crate::snapshots::{FileChange, FileState, Snapshots, Version};

/// Net change of one file over several calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetChange {
    pub path: PathBuf,
    pub before: Version,
    pub after: Version,
    pub lines_added: u64,
    pub lines_removed: u64,
}

/// The changes of these calls, by file.
pub fn net_changes(changes: &[FileChange], is_meant: impl Fn(&str) -> bool) -> Vec<NetChange> {
    let mut files: BTreeMap<&Path, NetChange> = BTreeMap::new();
    for change in changes.iter().filter(|change| is_meant(&change.call_id)) {
        let net = files.entry(&change.path).or_insert_with(|| NetChange {
            path: change.path.clone(),
            before: change.before.clone(),
            after: change.after.clone(),
            lines_added: 0,
            lines_removed: 0,
        });
        net.after = change.after.clone();
        net.lines_added += change.lines_added;
        net.lines_removed += change.lines_removed;
    }
    files.into_values().filter(|net| net.before != net.after || net.before == Version::Unknown).collect()
}

/// Net changes of files by the calls among some events.
pub fn changes_of(changes: &[FileChange], events: &[Event]) -> Vec<NetChange> {
    let calls: HashSet<&str> = events
        .iter()
        .filter_map(|event| match event.body() {
            Body::ToolStart(start) => Some(start.tool_call_id.as_str()),
            _ => None,
        })
        .collect();
    net_changes(changes, |call| calls.contains(call))
}

/// Positions of the session's own prompts: the points that can be rewound to.
pub fn points(events: &[Event]) -> Vec<usize> {
    let is_point = |event: &Event| match event.body() {
        Body::UserMessage(message) if event.agent_id().is_none() => {
            message.source.is_none() || message.is_autopilot_continuation == Some(true)
        }
        _ => false,
    };
    (0..events.len()).filter(|index| is_point(&events[*index])).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkipReason {
    /// Someone changed the file after the last of the calls.
    UserModified,
    /// The content before the change is not known.
    SkippedCapture,
    /// The file is in no directory that the session may write, or belongs to Git.
    Outside,
    /// The path is a link or leads through one, or the file has a second name elsewhere.
    Linked,
    /// The stored content does not match its hash in the record.
    Altered,
}

impl SkipReason {
    pub fn as_str(self) -> &'static str {
        match self {
            SkipReason::UserModified => "user-modified",
            SkipReason::SkippedCapture | SkipReason::Outside | SkipReason::Linked | SkipReason::Altered => {
                "skipped-capture"
            }
        }
    }

    /// The reason as a part of a sentence about the file.
    pub fn told(self) -> &'static str {
        match self {
            SkipReason::UserModified => "somebody changed it since",
            SkipReason::SkippedCapture => "what it was is not known",
            SkipReason::Outside => "it is outside of the directories that the session may write",
            SkipReason::Linked => "it is a link, leads through one, or has a second name",
            SkipReason::Altered => "what was kept of it is not what the record says",
        }
    }
}

/// Result of a restore.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Restored {
    pub files: Vec<PathBuf>,
    pub skipped: Vec<(PathBuf, SkipReason)>,
}

/// Failure of a restore. Files restored before it were rolled back as far as possible.
#[derive(Debug, thiserror::Error)]
#[error("restoring {}", path.display())]
pub struct RestoreError {
    pub path: PathBuf,
    pub source: io::Error,
    /// Files that could not be put back the way they were.
    pub left: Vec<PathBuf>,
}

/// Restores files to their earlier content, as far as they are in these directories, whose paths have their links
/// resolved.
pub fn restore(
    snapshots: &Snapshots,
    changes: &[NetChange],
    within: &[PathBuf],
) -> Result<Restored, RestoreError> {
    let mut restored = Restored::default();
    let mut undo: Vec<(HeldFile, Option<Vec<u8>>)> = Vec::new();
    for change in changes {
        let outcome = match HeldFile::find(&change.path, within) {
            Ok(spot) => restore_one(snapshots, change, spot, &mut undo),
            Err(refused) => refused.settle(),
        };
        match outcome {
            Ok(None) => restored.files.push(change.path.clone()),
            Ok(Some(reason)) => restored.skipped.push((change.path.clone(), reason)),
            Err(source) => {
                let left = undo.into_iter().rev().filter_map(|(spot, was)| {
                    let put_back = match was {
                        Some(bytes) => spot.write(&bytes),
                        None => spot.folder.remove(&spot.below).map_err(NotRestored::from),
                    };
                    put_back.err().map(|_| spot.folder.path().join(spot.below))
                });
                return Err(RestoreError { path: change.path.clone(), source, left: left.collect() });
            }
        }
    }
    Ok(restored)
}

/// A file by its path below a directory that is held open.
#[derive(Debug, Clone)]
struct HeldFile {
    folder: Folder,
    below: PathBuf,
}

/// Reason for leaving a file as it is.
enum NotRestored {
    Skipped(SkipReason),
    Io(io::Error),
}

impl NotRestored {
    fn settle(self) -> io::Result<Option<SkipReason>> {
        match self {
            Self::Skipped(reason) => Ok(Some(reason)),
            Self::Io(error) => Err(error),
        }
    }
}

impl From<io::Error> for NotRestored {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // A folder's errors about links and other non-files.
            io::ErrorKind::InvalidInput | io::ErrorKind::NotADirectory => Self::Skipped(SkipReason::Linked),
            _ => Self::Io(error),
        }
    }
}

impl HeldFile {
    fn find(path: &Path, within: &[PathBuf]) -> Result<Self, NotRestored> {
        let plain = |below: &Path| {
            let own = |part: &std::ffi::OsStr| !part.eq_ignore_ascii_case(".git");
            below.components().all(|part| matches!(part, Component::Normal(part) if own(part)))
        };
        for root in within {
            let Ok(below) = path.strip_prefix(root) else { continue };
            if !below.as_os_str().is_empty() && plain(below) {
                return Ok(Self { folder: Folder::resolved(root)?, below: below.to_owned() });
            }
        }
        Err(NotRestored::Skipped(SkipReason::Outside))
    }

    /// Opens the file and reads its current state. A missing file is `FileState::Absent`.
    fn look(&self) -> Result<(Option<File>, FileState), NotRestored> {
        let file = match self.folder.read(&self.below) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((None, FileState::Absent)),
            Err(error) => return Err(error.into()),
        };
        let mut bytes = Vec::new();
        (&file).take(FileState::LIMIT + 1).read_to_end(&mut bytes)?;
        Ok((Some(file), FileState::from_read(Ok(bytes))))
    }

    /// Writes the file, with the directories above it.
    fn write(&self, content: &[u8]) -> Result<(), NotRestored> {
        let mut file = match self.folder.update(&self.below) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if let Some(above) = self.below.parent().filter(|above| !above.as_os_str().is_empty()) {
                    self.folder.ensure_shared_folder(above)?;
                }
                self.folder.create_shared(&self.below)?
            }
            opened => opened?,
        };
        file.rewind()?;
        file.write_all(content)?;
        Ok(file.set_len(content.len() as u64)?)
    }
}

/// `None` if the file is as it was before.
fn restore_one(
    snapshots: &Snapshots,
    change: &NetChange,
    spot: HeldFile,
    undo: &mut Vec<(HeldFile, Option<Vec<u8>>)>,
) -> io::Result<Option<SkipReason>> {
    match try_restore(snapshots, change, spot, undo) {
        Ok(()) => Ok(None),
        Err(refused) => refused.settle(),
    }
}

fn try_restore(
    snapshots: &Snapshots,
    change: &NetChange,
    spot: HeldFile,
    undo: &mut Vec<(HeldFile, Option<Vec<u8>>)>,
) -> Result<(), NotRestored> {
    if change.before == Version::Unknown {
        return Err(NotRestored::Skipped(SkipReason::SkippedCapture));
    }
    let (file, found) = spot.look()?;
    let now = found.version();
    if now == change.before {
        return Ok(());
    }
    if now != change.after || now == Version::Unknown {
        return Err(NotRestored::Skipped(SkipReason::UserModified));
    }
    if let Some(file) = &file {
        let (seen, still) = (file.metadata()?, spot.folder.status(&spot.below)?);
        if seen.nlink() > 1 || Identity::of(&seen) != Identity::of(&still) {
            return Err(NotRestored::Skipped(SkipReason::Linked));
        }
    }
    let was = match found {
        FileState::Content(bytes) => Some(bytes),
        FileState::Absent | FileState::Unknown => None,
    };
    match &change.before {
        Version::Content(hash) => {
            // Errors of our own folder are not reported as errors of the file.
            let kept = snapshots.content(hash).map_err(NotRestored::Io)?;
            let bytes = kept.ok_or(NotRestored::Skipped(SkipReason::Altered))?;
            spot.write(&bytes)?;
        }
        Version::Absent => spot.folder.remove(&spot.below)?,
        Version::Unknown => {}
    }
    undo.push((spot, was));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with files that calls change and people too.
    struct World {
        dir: tempfile::TempDir,
        snapshots: Snapshots,
    }

    impl World {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            for name in ["session", "work", "outside"] {
                std::fs::create_dir(dir.path().join(name)).unwrap();
            }
            std::fs::write(dir.path().join("outside/theirs"), "theirs").unwrap();
            let snapshots = Snapshots::new(Folder::open(&dir.path().join("session")).unwrap());
            Self { dir, snapshots }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.dir.path().canonicalize().unwrap().join("work").join(name)
        }

        fn outside(&self) -> PathBuf {
            self.dir.path().canonicalize().unwrap().join("outside")
        }

        fn backups(&self) -> PathBuf {
            self.dir.path().join("session/rewind-file-snapshots/backups")
        }

        fn found(&self, path: &Path) -> FileState {
            FileState::from_read(std::fs::read(path))
        }

        fn write(&self, name: &str, text: Option<&str>) {
            match text {
                Some(text) => std::fs::write(self.path(name), text).unwrap(),
                None => std::fs::remove_file(self.path(name)).unwrap(),
            }
        }

        fn call(&self, id: &str, name: &str, text: Option<&str>) {
            let path = self.path(name);
            let before = self.snapshots.keep(&self.found(&path)).unwrap();
            self.write(name, text);
            let after = self.found(&path).version();
            self.record(id, path, before, after);
        }

        fn record(&self, id: &str, path: PathBuf, before: Version, after: Version) {
            let call_id = id.to_owned();
            let change = FileChange { call_id, path, before, after, lines_added: 1, lines_removed: 0 };
            self.snapshots.record(&change).unwrap();
        }

        fn restore(&self, changes: &[NetChange]) -> Result<Restored, RestoreError> {
            restore(&self.snapshots, changes, &[self.path("")])
        }

        /// Rewinds to before the calls from this one on.
        fn rewind(&self, from: &str) -> Vec<String> {
            let changes = net_changes(&self.snapshots.changes().unwrap(), |call| call >= from);
            let restored = self.restore(&changes).unwrap();
            let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
            let mut told: Vec<String> = restored.files.iter().map(name).collect();
            told.extend(restored.skipped.iter().map(|(path, why)| format!("{} {}", name(path), why.told())));
            told
        }

        fn read(&self, name: &str) -> Option<String> {
            std::fs::read_to_string(self.path(name)).ok()
        }
    }

    #[test]
    fn files_become_what_they_were_before_the_first_of_the_calls() {
        let world = World::new();
        world.write("kept", Some("original"));
        world.call("1", "kept", Some("first"));
        world.call("2", "kept", Some("second"));
        world.call("3", "kept", Some("third"));
        world.call("3", "made", Some("new"));
        assert_eq!(world.rewind("2"), ["kept", "made"]);
        assert_eq!((world.read("kept").as_deref(), world.read("made")), (Some("first"), None));
    }

    #[test]
    fn a_deleted_file_comes_back() {
        let world = World::new();
        world.write("a", Some("precious"));
        world.call("1", "a", None);
        assert_eq!(world.rewind("1"), ["a"]);
        assert_eq!(world.read("a").as_deref(), Some("precious"));
    }

    #[test]
    fn what_a_person_changed_since_is_left_alone_and_said() {
        let world = World::new();
        world.write("theirs", Some("original"));
        world.call("1", "theirs", Some("by a tool"));
        world.call("1", "ours", Some("by a tool"));
        world.write("theirs", Some("by a person"));
        assert_eq!(world.rewind("1"), ["ours", "theirs somebody changed it since"]);
        assert_eq!(world.read("theirs").as_deref(), Some("by a person"));
    }

    #[test]
    fn what_was_not_kept_is_left_alone_and_said() {
        let world = World::new();
        let huge = "x".repeat((10 << 20) + 1);
        world.write("huge", Some(&huge));
        world.call("1", "huge", Some("small"));
        assert_eq!(world.rewind("1"), ["huge what it was is not known"]);
        assert_eq!(world.read("huge").as_deref(), Some("small"));
    }

    #[test]
    fn the_same_contents_are_kept_once() {
        let world = World::new();
        world.write("a", Some("same"));
        world.write("b", Some("same"));
        world.call("1", "a", Some("x"));
        world.call("1", "b", Some("y"));
        let backups = std::fs::read_dir(world.backups()).unwrap();
        assert_eq!(backups.count(), 1);
    }

    #[test]
    fn nothing_is_made_before_something_changes() {
        let world = World::new();
        assert!(world.snapshots.changes().unwrap().is_empty());
        assert!(!world.snapshots.exist());
    }

    #[test]
    fn a_restore_that_fails_puts_back_what_it_had_done() {
        let world = World::new();
        world.write("a", Some("one"));
        world.write("b", Some("two"));
        world.call("1", "a", Some("changed a"));
        world.call("1", "b", Some("changed b"));
        let changes = net_changes(&world.snapshots.changes().unwrap(), |_| true);
        let Version::Content(lost) = &changes[1].before else { panic!() };
        std::fs::remove_file(world.backups().join(lost)).unwrap();
        let error = world.restore(&changes).unwrap_err();
        assert!(error.left.is_empty());
        assert_eq!(world.read("a").as_deref(), Some("changed a"));
    }

    /// Checks forged records beside a real one: how they are treated, and that nothing outside changes.
    fn check_forged(forge: impl FnOnce(&World, &Version, &Version), told: &str) {
        let world = World::new();
        world.write("ours", Some("one"));
        world.call("1", "ours", Some("two"));
        let theirs = FileState::Content(b"theirs".to_vec());
        let planted = world.snapshots.keep(&FileState::Content(b"planted".to_vec())).unwrap();
        forge(&world, &planted, &theirs.version());
        assert_eq!(world.rewind("1"), ["ours", told]);
        assert_eq!(world.read("ours").as_deref(), Some("one"));
        assert_eq!(std::fs::read(world.outside().join("theirs")).unwrap(), b"theirs");
        assert_eq!(std::fs::read_dir(world.outside()).unwrap().count(), 1);
    }

    const OUTSIDE: &str = "it is outside of the directories that the session may write";
    const LINKED: &str = "it is a link, leads through one, or has a second name";
    const ALTERED: &str = "what was kept of it is not what the record says";

    #[test]
    fn a_forged_record_writes_nothing_outside() {
        for path in ["../outside/theirs", "sub/../../outside/theirs"] {
            let forge = |world: &World, planted: &Version, theirs: &Version| {
                world.record("1", world.path(path), planted.clone(), theirs.clone());
            };
            check_forged(forge, &format!("theirs {OUTSIDE}"));
        }
        let forge = |world: &World, planted: &Version, theirs: &Version| {
            world.record("1", world.outside().join("theirs"), planted.clone(), theirs.clone());
        };
        check_forged(forge, &format!("theirs {OUTSIDE}"));
    }

    #[test]
    fn a_forged_record_deletes_and_creates_nothing_outside() {
        let deletes = |world: &World, _: &Version, theirs: &Version| {
            world.record("1", world.outside().join("theirs"), Version::Absent, theirs.clone());
        };
        check_forged(deletes, &format!("theirs {OUTSIDE}"));
        let creates = |world: &World, planted: &Version, _: &Version| {
            world.record("1", world.outside().join("new"), planted.clone(), Version::Absent);
        };
        check_forged(creates, &format!("new {OUTSIDE}"));
    }

    #[test]
    fn a_forged_record_leads_through_no_link() {
        use std::os::unix::fs::symlink;
        let through = |name: &'static str, target: &'static str, path: &'static str| {
            move |world: &World, planted: &Version, theirs: &Version| {
                symlink(world.outside().join(target), world.path(name)).unwrap();
                world.record("1", world.path(path), planted.clone(), theirs.clone());
            }
        };
        check_forged(through("theirs", "theirs", "theirs"), &format!("theirs {LINKED}"));
        check_forged(through("sub", "", "sub/theirs"), &format!("theirs {LINKED}"));
        let hard = |world: &World, planted: &Version, theirs: &Version| {
            std::fs::hard_link(world.outside().join("theirs"), world.path("theirs")).unwrap();
            world.record("1", world.path("theirs"), planted.clone(), theirs.clone());
        };
        check_forged(hard, &format!("theirs {LINKED}"));
    }

    #[test]
    fn what_git_keeps_is_not_restored() {
        let forge = |world: &World, planted: &Version, _: &Version| {
            world.record("1", world.path(".git/hooks/pre-commit"), planted.clone(), Version::Absent);
        };
        check_forged(forge, &format!("pre-commit {OUTSIDE}"));
    }

    #[test]
    fn a_backup_is_a_content_of_ours_or_none() {
        for name in ["../../../outside/theirs", "/etc/passwd", "", "0"] {
            let forge = |world: &World, _: &Version, _: &Version| {
                world.write("stolen", Some("x"));
                let now = world.found(&world.path("stolen")).version();
                world.record("1", world.path("stolen"), Version::Content(name.to_owned()), now);
            };
            check_forged(forge, &format!("stolen {ALTERED}"));
        }
        let forge = |world: &World, planted: &Version, _: &Version| {
            let Version::Content(hash) = planted else { panic!() };
            std::fs::write(world.backups().join(hash), "other").unwrap();
            world.record("1", world.path("new"), planted.clone(), Version::Absent);
        };
        check_forged(forge, &format!("new {ALTERED}"));
    }
}
