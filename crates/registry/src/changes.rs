//! Changes of files by a session: in all and by turn, as diffs, and taking them back.
//!
//! They are those that tools recorded (`hangar_store::snapshots`), or, of other agents, the differences of the working tree
//! after each turn. The record is untrusted: a content is shown only if it has
//! the hash that the record names, and a file is restored only below the session's directories.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use hangar_diff::{DiffOp, LineCounts, hunks, lines, operations, unified};
use hangar_protocol::{Body, EventKind};
use hangar_runtimes::runtime::{FileContent, FileDifference};
use hangar_store::rewind::{NetChange, net_changes, restore};
use hangar_store::snapshots::{FileChange, FileState, Snapshots, Version};
use hangar_store::{SessionId, Store};
use schemars::JsonSchema;
use serde::Serialize;
use serde_with::skip_serializing_none;

use crate::error::RegistryError;

/// Files of one answer, and bytes of one diff.
const MOST_FILES: usize = 500;
const MOST_DIFF: usize = 256 << 10;
/// Characters of a prompt that name its turn.
const EXCERPT: usize = 120;
/// Lines around a change.
const CONTEXT: usize = 3;
/// Call id of changes that a person took back.
const TAKEN_BACK: &str = "hangar.taken_back";
/// Beginning of the call id of changes that are known by turn only; the number of the turn follows.
const OF_TURN: &str = "hangar.turn.";

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "Changes")]
pub struct FileChanges {
    /// Over all turns.
    pub files: Vec<ChangedFile>,
    /// Turns that changed files.
    pub turns: Vec<ChangedTurn>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ChangedTurn {
    /// Number of the prompt; the first is 1.
    pub turn: usize,
    pub prompt: String,
    pub at: String,
    pub files: Vec<ChangedFile>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangedFile {
    pub path: String,
    pub lines_added: u64,
    pub lines_removed: u64,
    /// Unified diff; absent if a content is not known or no text.
    pub diff: Option<String>,
}

/// A prompt, and the calls after it.
struct Turn {
    prompt: String,
    at: String,
}

/// Records the files that differ after a turn, of an agent that does not tell of its changes. `turn` is the number of the
/// prompt; the first is 1.
pub fn record_turn(
    store: &Store,
    id: &SessionId,
    turn: u64,
    files: Vec<FileDifference>,
) -> Result<(), RegistryError> {
    if files.is_empty() {
        return Ok(());
    }
    let failed = |error: std::io::Error| {
        RegistryError::Store(format!("recording the changes of session {id}: {error}"))
    };
    let snapshots = Snapshots::new(store.folder(id).map_err(failed)?);
    let state = |content: FileContent| match content {
        FileContent::Absent => FileState::Absent,
        FileContent::Bytes(bytes) => FileState::Content(bytes),
        FileContent::Unknown => FileState::Unknown,
    };
    for FileDifference { path, before, after } in files {
        let (lines_added, lines_removed) = count_lines(&before, &after);
        let change = FileChange {
            call_id: format!("{OF_TURN}{turn}"),
            path,
            before: snapshots.keep(&state(before)).map_err(failed)?,
            after: snapshots.keep(&state(after)).map_err(failed)?,
            lines_added,
            lines_removed,
        };
        snapshots.record(&change).map_err(failed)?;
    }
    Ok(())
}

/// Lines that were added and removed, as far as the contents are known.
fn count_lines(before: &FileContent, after: &FileContent) -> (u64, u64) {
    let text = |content: &FileContent| match content {
        FileContent::Absent => Some(String::new()),
        FileContent::Bytes(bytes) => String::from_utf8(bytes.clone()).ok(),
        FileContent::Unknown => None,
    };
    let (Some(before), Some(after)) = (text(before), text(after)) else { return (0, 0) };
    let LineCounts { added, removed } = LineCounts::of(&operations(&lines(&before), &lines(&after), None));
    (added as u64, removed as u64)
}

/// Changes of a session.
pub fn changes(store: &Store, id: &SessionId) -> Result<FileChanges, RegistryError> {
    let record = Record::read(store, id)?;
    let (turns, calls) = turns(store, id)?;
    let files = record.shown(|_| true);
    let by_turn = turns.into_iter().enumerate().map(|(at, turn)| ChangedTurn {
        turn: at + 1,
        prompt: turn.prompt,
        at: turn.at,
        files: record.shown(|call| calls.get(call).copied().or_else(|| turn_of(call)) == Some(at)),
    });
    Ok(FileChanges { files, turns: by_turn.filter(|turn| !turn.files.is_empty()).collect() })
}

/// Index of the turn that a call id stands for, of an agent whose calls are not recorded.
fn turn_of(call: &str) -> Option<usize> {
    call.strip_prefix(OF_TURN)?.parse::<usize>().ok()?.checked_sub(1)
}

/// Takes a file back to what it was before the session, or one hunk of its diff.
pub fn take_back(
    store: &Store,
    id: &SessionId,
    within: &Path,
    path: &str,
    hunk: Option<usize>,
) -> Result<FileChanges, RegistryError> {
    let record = Record::read(store, id)?;
    let change =
        net_changes(&record.changes, |_| true).into_iter().find(|change| change.path == Path::new(path));
    let Some(change) = change else {
        return Err(RegistryError::Unprocessable(format!("the session did not change {path}")));
    };
    let failed = |error: &dyn std::fmt::Display| RegistryError::Store(format!("restoring {path}: {error}"));
    let wanted = match hunk {
        None => change.before.clone(),
        Some(hunk) => {
            let texts = (record.text(&change.before, &change.path), record.text(&change.after, &change.path));
            let (Some(before), Some(after)) = texts else {
                return Err(RegistryError::Unprocessable(format!(
                    "the contents of {path} are not known any more"
                )));
            };
            let Some(text) = without_hunk(&before, &after, hunk) else {
                return Err(RegistryError::Unprocessable(format!("the diff of {path} has no hunk {hunk}")));
            };
            // A file that the session made is gone once all of it is taken back.
            match text.is_empty() && change.before == Version::Absent {
                true => Ok(Version::Absent),
                false => record.snapshots.keep(&FileState::Content(text.into_bytes())),
            }
            .map_err(|error: std::io::Error| failed(&error))?
        }
    };
    let within = within.canonicalize().map_err(|error| failed(&error))?;
    let net = NetChange { before: wanted.clone(), ..change.clone() };
    let restored = restore(&record.snapshots, &[net], &[within]).map_err(|error| failed(&error))?;
    if let Some((_, reason)) = restored.skipped.first() {
        return Err(RegistryError::Unprocessable(format!("{path} is left as it is: {}", reason.told())));
    }
    let taken = FileChange {
        call_id: TAKEN_BACK.to_owned(),
        path: change.path,
        before: change.after,
        after: wanted,
        lines_added: 0,
        lines_removed: 0,
    };
    record.snapshots.record(&taken).map_err(|error| failed(&error))?;
    changes(store, id)
}

/// The later text with one hunk of the diff undone.
fn without_hunk(before: &str, after: &str, hunk: usize) -> Option<String> {
    let (old, new) = (lines(before), lines(after));
    let operations = operations(&old, &new, None);
    let hunks = hunks(operations.clone(), CONTEXT);
    let undone: Vec<_> = hunks.get(hunk)?.iter().filter(|op| !matches!(op, DiffOp::Equal { .. })).collect();
    let is_undone = |op: &DiffOp| {
        undone
            .iter()
            .any(|undone| undone.old_range() == op.old_range() && undone.new_range() == op.new_range())
    };
    let kept = operations.iter().flat_map(|op| match is_undone(op) {
        true => old.get(op.old_range()).unwrap_or_default(),
        false => new.get(op.new_range()).unwrap_or_default(),
    });
    Some(kept.copied().collect())
}

/// The record of a session.
struct Record {
    snapshots: Snapshots,
    changes: Vec<FileChange>,
}

impl Record {
    fn read(store: &Store, id: &SessionId) -> Result<Self, RegistryError> {
        if !store.contains(id) {
            return Err(RegistryError::NoSession(id.to_string()));
        }
        let failed = |error: std::io::Error| {
            RegistryError::Store(format!("reading the changes of session {id}: {error}"))
        };
        let snapshots = Snapshots::new(store.folder(id).map_err(failed)?);
        let changes = snapshots.changes().map_err(failed)?;
        Ok(Self { snapshots, changes })
    }

    fn shown(&self, is_meant: impl Fn(&str) -> bool) -> Vec<ChangedFile> {
        net_changes(&self.changes, is_meant).iter().take(MOST_FILES).map(|change| self.file(change)).collect()
    }

    fn file(&self, change: &NetChange) -> ChangedFile {
        let path = change.path.display().to_string();
        let texts = (self.text(&change.before, &change.path), self.text(&change.after, &change.path));
        let diff = match &texts {
            (Some(before), Some(after)) => {
                let name = |version: &Version, side: &str| match version {
                    Version::Absent => "/dev/null".to_owned(),
                    Version::Content(_) | Version::Unknown => format!("{side}{path}"),
                };
                let (from, to) = (name(&change.before, "a"), name(&change.after, "b"));
                let text = unified(before, after, (&from, &to), CONTEXT, None);
                Some(text).filter(|text| text.len() <= MOST_DIFF)
            }
            _ => None,
        };
        ChangedFile { path, lines_added: change.lines_added, lines_removed: change.lines_removed, diff }
    }

    /// The text of a version: as it was kept, or of the file if that is still the same.
    fn text(&self, version: &Version, path: &Path) -> Option<String> {
        let hash = match version {
            Version::Absent => return Some(String::new()),
            Version::Unknown => return None,
            Version::Content(hash) => hash,
        };
        let kept = self.snapshots.content(hash).ok().flatten();
        let bytes = kept.or_else(|| {
            let small =
                std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() <= FileState::LIMIT);
            let found = small.then(|| std::fs::read(path).ok())?.map(FileState::Content)?;
            match found {
                FileState::Content(bytes) if FileState::Content(bytes.clone()).version() == *version => {
                    Some(bytes)
                }
                _ => None,
            }
        })?;
        String::from_utf8(bytes).ok()
    }
}

/// The prompts of a session, and the turn of each call.
fn turns(store: &Store, id: &SessionId) -> Result<(Vec<Turn>, HashMap<String, usize>), RegistryError> {
    let mut turns: Vec<Turn> = Vec::new();
    let mut calls = HashMap::new();
    let kinds = [EventKind::UserMessage, EventKind::ToolStart];
    for event in store.read_kinds(id, |kind| kinds.contains(&kind))? {
        let Ok(event) = event else { continue };
        match event.body() {
            Body::UserMessage(message) if event.agent_id().is_none() && message.source.is_none() => {
                let line = message.content.lines().next().unwrap_or_default();
                let prompt = line.chars().take(EXCERPT).collect();
                turns.push(Turn { prompt, at: event.timestamp().to_owned() });
            }
            Body::ToolStart(start) => {
                calls.insert(start.tool_call_id.clone(), turns.len().saturating_sub(1));
            }
            _ => {}
        }
    }
    Ok((turns, calls))
}

/// Directory of a session, below which files are restored.
pub fn directory(store: &Store, id: &SessionId) -> Result<PathBuf, RegistryError> {
    let known = store.directories(id)?.pop();
    known
        .map(PathBuf::from)
        .ok_or_else(|| RegistryError::Unprocessable(format!("session {id} has no directory")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_hunk_is_taken_back_and_the_others_stay() {
        let lines = |changed: &[(usize, &str)]| -> String {
            (1..=30)
                .map(|line| {
                    let text = changed.iter().find(|(at, _)| *at == line).map(|(_, text)| (*text).to_owned());
                    text.unwrap_or_else(|| format!("{line}\n"))
                })
                .collect()
        };
        let (before, after) = (lines(&[]), lines(&[(3, "three\n"), (20, "twenty\nmore\n")]));
        assert_eq!(without_hunk(&before, &after, 0), Some(lines(&[(20, "twenty\nmore\n")])));
        assert_eq!(without_hunk(&before, &after, 1), Some(lines(&[(3, "three\n")])));
        assert_eq!(without_hunk(&before, &after, 2), None);
    }
}
