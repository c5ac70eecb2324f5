//! Going back: to which prompts a session can be rewound, what that would do to files, and doing it.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hangar_agent::permissions::Policy;
use hangar_diff::{LineCounts, operations};
use hangar_files::LocalFiles;
use hangar_protocol::{Body, Event};
use hangar_store::rewind::{NetChange, Restored, SkipReason, changes_of, points, restore};
use hangar_store::snapshots::{FileChange, FileState, Snapshots, Version};
use serde::Deserialize;
use serde_json::{Value, json};

use super::history::truncate_from;
use super::sessions::events;
use super::{Call, Failure, Method, Reply};

pub(super) const METHODS: &[Method] = &[
    Method { name: "session.history.listRewindPoints", run: |call| Box::pin(list(call)) },
    Method { name: "session.history.previewRewind", run: |call| Box::pin(preview(call)) },
    Method { name: "session.history.rewind", run: |call| Box::pin(rewind(call)) },
];

/// Time for the comparison of two contents; after it, any diff will do.
const COMPARE_LIMIT: Duration = Duration::from_millis(200);

/// The session as far as rewinding goes.
struct RewindContext {
    tracked: bool,
    idle: bool,
    /// The directories that the session may write.
    writable: Vec<PathBuf>,
    events: Vec<Event>,
    snapshots: Option<Snapshots>,
    changes: Vec<FileChange>,
}

impl RewindContext {
    async fn of(call: &Call) -> Result<Self, Failure> {
        let live = call.live()?;
        let (idle, wanted, writable) = live
            .ask(|task| {
                let wanted = task.spec.tools.tracks_files.unwrap_or(false);
                (task.session().is_idle(), wanted, writable(&task.session().config().policy))
            })
            .await?;
        // Restoring the files that a client keeps is up to the client.
        let local = live.dir.0.local().map(LocalFiles::folder).transpose();
        let opening = |error| Failure::new(format!("opening {}: {error}", live.dir.shown()));
        let snapshots = local.map_err(opening)?.map(Snapshots::new);
        let changes = snapshots.as_ref().map_or(Ok(Vec::new()), Snapshots::changes).map_err(|error| {
            Failure::new(format!("reading the snapshots of session {}: {error}", live.id))
        })?;
        Ok(Self {
            tracked: snapshots.as_ref().is_some_and(|snapshots| wanted || snapshots.exist()),
            idle,
            writable,
            events: events(call, &live.id).await?,
            snapshots,
            changes,
        })
    }

    /// Net file changes from one event up to another, or up to now.
    fn changes_between(&self, from: usize, to: usize) -> Vec<NetChange> {
        changes_of(&self.changes, &self.events[from..to])
    }

    /// Lines that were added and removed in all: edits of the same lines count once. `None` if a content is not known.
    fn net_lines(&self, change: &NetChange) -> Option<(u64, u64)> {
        let snapshots = self.snapshots.as_ref()?;
        let before = match &change.before {
            Version::Absent => Vec::new(),
            Version::Content(name) => snapshots.content(name).ok()??,
            Version::Unknown => return None,
        };
        let after = match &change.after {
            Version::Absent => Vec::new(),
            Version::Content(_) => match current(&change.path) {
                FileState::Content(bytes) if FileState::Content(bytes.clone()).version() == change.after => {
                    bytes
                }
                FileState::Absent | FileState::Content(_) | FileState::Unknown => return None,
            },
            Version::Unknown => return None,
        };
        let (before, after) = (lines(&before), lines(&after));
        let deadline = Some(Instant::now() + COMPARE_LIMIT);
        let LineCounts { added, removed } = LineCounts::of(&operations(&before, &after, deadline));
        Some((added as u64, removed as u64))
    }

    fn position(&self, event_id: &str) -> Result<usize, Failure> {
        let at = self.events.iter().position(|event| event.id().0 == event_id);
        at.ok_or_else(|| Failure::new(format!("Event {event_id} not found")))
    }
}

fn current(path: &Path) -> FileState {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(path)?.take(FileState::LIMIT + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_file() => FileState::from_read(read()),
        _ => FileState::Unknown,
    }
}

fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

/// The directories that a policy lets tools write, and a sandbox commands too.
fn writable(policy: &Policy) -> Vec<PathBuf> {
    let mut roots = policy.roots.clone();
    if let Some(confinement) = &policy.confinement {
        roots.retain(|root| confinement.writable.iter().any(|writable| root.starts_with(writable)));
    }
    roots
}

fn restorable(changes: &[NetChange]) -> bool {
    changes.iter().any(|change| change.before != Version::Unknown)
}

async fn list(call: Call) -> Result<Reply, Failure> {
    let past = RewindContext::of(&call).await?;
    if past.tracked && !past.idle {
        return Reply::of(json!({
            "fileChangeTrackingEnabled": true,
            "unavailableReason": "session-busy",
            "points": [],
        }));
    }
    let positions = points(&past.events);
    let points: Vec<Value> = positions
        .iter()
        .enumerate()
        .filter_map(|(index, at)| {
            let event = &past.events[*at];
            let Body::UserMessage(message) = event.body() else { return None };
            let next = positions.get(index + 1).copied().unwrap_or(past.events.len());
            let own = past.changes_between(*at, next);
            let all = past.changes_between(*at, past.events.len());
            Some(json!({
                "eventId": event.id().0,
                "userMessage": message.content,
                "timestamp": event.timestamp(),
                "canRestoreFiles": restorable(&all),
                "fileCount": all.len(),
                "turnChangedFiles": !own.is_empty(),
                "linesAdded": own.iter().map(|change| change.lines_added).sum::<u64>(),
                "linesRemoved": own.iter().map(|change| change.lines_removed).sum::<u64>(),
                "isAutopilotContinuation": message.is_autopilot_continuation.unwrap_or(false),
            }))
        })
        .collect();
    Reply::of(json!({ "fileChangeTrackingEnabled": past.tracked, "points": points }))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    event_id: String,
    mode: Option<RewindMode>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RewindMode {
    Conversation,
    ConversationAndFiles,
}

async fn preview(call: Call) -> Result<Reply, Failure> {
    let params: Params = call.params()?;
    let past = RewindContext::of(&call).await?;
    let unavailable = match (past.tracked, past.idle) {
        (false, _) => Some("file-change-tracking-disabled"),
        (true, false) => Some("session-busy"),
        (true, true) => None,
    };
    if let Some(reason) = unavailable {
        return Reply::of(json!({ "available": false, "reason": reason, "fileCount": 0, "files": [] }));
    }
    let changes = past.changes_between(past.position(&params.event_id)?, past.events.len());
    let files: Vec<Value> = changes
        .iter()
        .map(|change| {
            let kind = match (&change.before, &change.after) {
                (Version::Absent, _) => "created",
                (_, Version::Absent) => "deleted",
                _ => "modified",
            };
            let (added, removed) =
                past.net_lines(change).unwrap_or((change.lines_added, change.lines_removed));
            json!({ "path": change.path, "changeType": kind, "linesAdded": added, "linesRemoved": removed })
        })
        .collect();
    Reply::of(json!({ "available": true, "fileCount": files.len(), "files": files }))
}

/// Message about files whose records were not trusted and which were left alone.
fn refusals(restored: &Restored) -> Option<String> {
    let refused = restored.skipped.iter().filter_map(|(path, reason)| match reason {
        SkipReason::UserModified | SkipReason::SkippedCapture => None,
        SkipReason::Outside | SkipReason::Linked | SkipReason::Altered => {
            Some(format!("{} was left as it is: {}", path.display(), reason.told()))
        }
    });
    let refused: Vec<String> = refused.collect();
    (!refused.is_empty()).then(|| refused.join("; "))
}

async fn rewind(call: Call) -> Result<Reply, Failure> {
    let params: Params = call.params()?;
    let past = RewindContext::of(&call).await?;
    let at = past.position(&params.event_id)?;
    let files = params.mode == Some(RewindMode::ConversationAndFiles);
    let refused = match (past.idle, files && !past.tracked) {
        (false, _) => Some("session-busy"),
        (true, true) => Some("file-change-tracking-disabled"),
        (true, false) => None,
    };
    if let Some(outcome) = refused {
        return Reply::of(json!({ "outcome": outcome, "restoredFiles": [], "skippedFiles": [] }));
    }
    let mut result = json!({ "outcome": "success", "restoredFiles": [], "skippedFiles": [] });
    if let Some(snapshots) = past.snapshots.as_ref().filter(|_| files) {
        let changes = past.changes_between(at, past.events.len());
        match restore(snapshots, &changes, &past.writable) {
            Ok(restored) => {
                let skipped = restored.skipped.iter();
                let skipped: Vec<Value> =
                    skipped.map(|(path, why)| json!({ "path": path, "reason": why.as_str() })).collect();
                result["restoredFiles"] = json!(restored.files);
                result["skippedFiles"] = json!(skipped);
                if let Some(refused) = refusals(&restored) {
                    result["error"] = json!(refused);
                }
            }
            Err(error) => {
                let outcome = if error.left.is_empty() { "files-rolled-back" } else { "rollback-incomplete" };
                result["outcome"] = json!(outcome);
                result["error"] = json!(format!("{error}: {}", error.source));
                return Reply::of(result);
            }
        }
    }
    match truncate_from(&call, &params.event_id).await {
        Ok(removed) => result["eventsRemoved"] = json!(removed),
        Err(failure) => {
            result["outcome"] = json!("truncation-failed");
            result["error"] = json!(failure.message());
        }
    }
    Reply::of(result)
}
