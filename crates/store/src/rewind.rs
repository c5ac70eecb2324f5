//! Taking files back to what they were before some calls, without touching what a person did to them since.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use hangar_protocol::{Body, Event};

use crate::snapshots::{FileChange, Snapshots, Version, version};

/// What all of some calls together did to one file.
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

/// What the calls among some events did to files.
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

/// Where the prompts of the session itself are: what a person could go back to.
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
    /// What the file was before is not known.
    SkippedCapture,
}

impl SkipReason {
    pub fn as_str(self) -> &'static str {
        match self {
            SkipReason::UserModified => "user-modified",
            SkipReason::SkippedCapture => "skipped-capture",
        }
    }
}

/// What became of the files.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Restored {
    pub files: Vec<PathBuf>,
    pub skipped: Vec<(PathBuf, SkipReason)>,
}

/// Why files could not be restored. What had been restored was taken back, as far as that could be done.
#[derive(Debug, thiserror::Error)]
#[error("restoring {}", path.display())]
pub struct RestoreError {
    pub path: PathBuf,
    pub source: io::Error,
    /// Files that could not be put back the way they were.
    pub left: Vec<PathBuf>,
}

/// Puts files back to what they were before.
pub fn restore(snapshots: &Snapshots, changes: &[NetChange]) -> Result<Restored, RestoreError> {
    let mut restored = Restored::default();
    let mut undo: Vec<(PathBuf, Option<Vec<u8>>)> = Vec::new();
    for change in changes {
        match restore_one(snapshots, change, &mut undo) {
            Ok(Ok(())) => restored.files.push(change.path.clone()),
            Ok(Err(reason)) => restored.skipped.push((change.path.clone(), reason)),
            Err(source) => {
                let left = undo.into_iter().rev().filter_map(|(path, was)| {
                    let put_back = match was {
                        Some(bytes) => std::fs::write(&path, bytes),
                        None => std::fs::remove_file(&path),
                    };
                    put_back.err().map(|_| path)
                });
                return Err(RestoreError { path: change.path.clone(), source, left: left.collect() });
            }
        }
    }
    Ok(restored)
}

fn restore_one(
    snapshots: &Snapshots,
    change: &NetChange,
    undo: &mut Vec<(PathBuf, Option<Vec<u8>>)>,
) -> io::Result<Result<(), SkipReason>> {
    if change.before == Version::Unknown {
        return Ok(Err(SkipReason::SkippedCapture));
    }
    let now = version(&change.path)?;
    if now == change.before {
        return Ok(Ok(()));
    }
    if now != change.after || now == Version::Unknown {
        return Ok(Err(SkipReason::UserModified));
    }
    let was = match now {
        Version::Content(_) => Some(std::fs::read(&change.path)?),
        Version::Absent | Version::Unknown => None,
    };
    match &change.before {
        Version::Content(hash) => {
            let bytes = snapshots.content(hash)?;
            if let Some(parent) = change.path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            undo.push((change.path.clone(), was));
            std::fs::write(&change.path, bytes)?;
        }
        Version::Absent => {
            std::fs::remove_file(&change.path)?;
            undo.push((change.path.clone(), was));
        }
        Version::Unknown => {}
    }
    Ok(Ok(()))
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
            let snapshots = Snapshots::new(&dir.path().join("session"));
            Self { dir, snapshots }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.dir.path().join(name)
        }

        fn write(&self, name: &str, text: Option<&str>) {
            match text {
                Some(text) => std::fs::write(self.path(name), text).unwrap(),
                None => std::fs::remove_file(self.path(name)).unwrap(),
            }
        }

        fn call(&self, id: &str, name: &str, text: Option<&str>) {
            let path = self.path(name);
            let before = self.snapshots.keep(&path).unwrap();
            self.write(name, text);
            let after = version(&path).unwrap();
            let change =
                FileChange { call_id: id.to_owned(), path, before, after, lines_added: 1, lines_removed: 0 };
            self.snapshots.record(&change).unwrap();
        }

        /// Rewinds to before the calls from this one on.
        fn rewind(&self, from: &str) -> Vec<String> {
            let changes = net_changes(&self.snapshots.changes().unwrap(), |call| call >= from);
            let restored = restore(&self.snapshots, &changes).unwrap();
            let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
            let mut told: Vec<String> = restored.files.iter().map(name).collect();
            told.extend(
                restored.skipped.iter().map(|(path, why)| format!("{} {}", name(path), why.as_str())),
            );
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
        assert_eq!(world.rewind("1"), ["ours", "theirs user-modified"]);
        assert_eq!(world.read("theirs").as_deref(), Some("by a person"));
    }

    #[test]
    fn what_was_not_kept_is_left_alone_and_said() {
        let world = World::new();
        let huge = "x".repeat((10 << 20) + 1);
        world.write("huge", Some(&huge));
        world.call("1", "huge", Some("small"));
        assert_eq!(world.rewind("1"), ["huge skipped-capture"]);
        assert_eq!(world.read("huge").as_deref(), Some("small"));
    }

    #[test]
    fn the_same_contents_are_kept_once() {
        let world = World::new();
        world.write("a", Some("same"));
        world.write("b", Some("same"));
        world.call("1", "a", Some("x"));
        world.call("1", "b", Some("y"));
        let backups = std::fs::read_dir(world.path("session/rewind-file-snapshots/backups")).unwrap();
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
        std::fs::remove_file(world.path("session/rewind-file-snapshots/backups").join(lost)).unwrap();
        let error = restore(&world.snapshots, &changes).unwrap_err();
        assert!(error.left.is_empty());
        assert_eq!(world.read("a").as_deref(), Some("changed a"));
    }
}
