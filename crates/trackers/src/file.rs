//! Issues in one JSON file: an array, in the format of Sortie's file tracker. Unlike there, writes are kept.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use crate::error::{TrackerError, TrackerErrorKind};
use crate::issue::{Issue, IssueId};
use crate::shared_file::{Gate, IssueFiles};
use crate::{IssueWriter, LabelChange, NEW_STATE, NewComment, NewIssue, Reading, shared_file};

#[derive(Clone)]
pub struct FileTracker {
    path: PathBuf,
    /// The file as it was last parsed. Many agents ask for their issues at once, and one parse is enough for all.
    parsed: Arc<Mutex<Option<ParsedFile>>>,
    /// Changes that wait for the next write, at most one of each caller.
    pending: Arc<Mutex<Vec<PendingChange>>>,
    gate: Gate,
}

/// Change of the entries. `false` leaves them as they are.
type Change = Box<dyn FnOnce(&mut Vec<Value>) -> Result<bool, TrackerError> + Send>;

struct PendingChange {
    change: Change,
    done: oneshot::Sender<Result<(), TrackerError>>,
}

#[derive(Debug)]
struct ParsedFile {
    stamp: FileStamp,
    issues: Arc<Vec<Issue>>,
}

/// Identity of the content of a file, as far as its metadata tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    inode: u64,
    length: u64,
    modified: SystemTime,
}

impl FileStamp {
    /// `None` for a file that was changed so recently that another change may have the same time.
    fn of(path: &Path) -> Option<Self> {
        let found = std::fs::metadata(path).ok()?;
        let modified = found.modified().ok()?;
        let is_settled = modified.elapsed().is_ok_and(|age| age > SETTLED_AFTER);
        is_settled.then(|| Self { inode: found.ino(), length: found.len(), modified })
    }
}

/// Times of files are only as exact as the tick of the kernel.
const SETTLED_AFTER: Duration = Duration::from_millis(50);

impl FileTracker {
    pub fn new(path: PathBuf) -> Self {
        Self { path, parsed: Arc::default(), pending: Arc::default(), gate: Gate::default() }
    }

    fn invalid(&self, why: impl std::fmt::Display) -> TrackerError {
        TrackerError::new(TrackerErrorKind::Payload, format!("{}: {why}", self.path.display()))
    }

    fn entries(&self, text: &str) -> Result<Vec<Value>, TrackerError> {
        match serde_json::from_str(text) {
            Ok(Value::Array(entries)) => Ok(entries),
            Ok(_) => Err(self.invalid("the file must be an array of issues")),
            Err(error) => Err(self.invalid(error)),
        }
    }

    /// Changes the entry of an issue. `false` leaves the file as it is.
    fn change(
        &self,
        id: IssueId,
        change: impl FnOnce(&mut Map<String, Value>) -> bool + Send + 'static,
    ) -> Reading<()> {
        let path = self.path.clone();
        self.write(move |entries| {
            let entry = entries.iter_mut().filter_map(Value::as_object_mut);
            let mut entry = entry.filter(|entry| entry.get("id").and_then(Value::as_str) == Some(&id.0));
            let missing = || {
                let message = format!("{} has no issue with the id `{id}`", path.display());
                TrackerError::new(TrackerErrorKind::NotFound, message)
            };
            Ok(change(entry.next().ok_or_else(missing)?))
        })
    }

    /// Changes the file. All changes that wait for it are made with one write: it may be large, and the callers many.
    fn write(
        &self,
        change: impl FnOnce(&mut Vec<Value>) -> Result<bool, TrackerError> + Send + 'static,
    ) -> Reading<()> {
        let tracker = self.clone();
        Box::pin(async move {
            let (done, result) = oneshot::channel();
            tracker.pending.lock().push(PendingChange { change: Box::new(change), done });
            let turn = tracker.blocking(|tracker| {
                tracker.write_pending();
                Ok(())
            });
            turn.await?;
            let lost = |_| Err(TrackerError::new(TrackerErrorKind::Transport, "the write was not made"));
            result.await.unwrap_or_else(lost)
        })
    }

    fn write_pending(&self) {
        // The caller of a change may be gone.
        let pending: Vec<PendingChange> =
            self.pending.lock().drain(..).filter(|pending| !pending.done.is_closed()).collect();
        let (changes, callers): (Vec<_>, Vec<_>) =
            pending.into_iter().map(|pending| (pending.change, pending.done)).unzip();
        if changes.is_empty() {
            return;
        }
        let mut results = Vec::new();
        let written = shared_file::change(&self.path, |text| {
            let mut entries = self.entries(text)?;
            results = changes.into_iter().map(|change| change(&mut entries)).collect();
            if !results.contains(&Ok(true)) {
                return Ok(None);
            }
            let text = serde_json::to_string_pretty(&entries).map_err(|error| self.invalid(error))?;
            Ok(Some(text + "\n"))
        });
        for (n, caller) in callers.into_iter().enumerate() {
            let own = || results.get(n).cloned().unwrap_or(Ok(false)).map(drop);
            // A caller that is gone needs no result.
            let _ = caller.send(written.clone().and_then(|()| own()));
        }
    }
}

impl IssueFiles for FileTracker {
    fn gate(&self) -> &Gate {
        &self.gate
    }

    fn issues(&self) -> Result<Arc<Vec<Issue>>, TrackerError> {
        // One parse at a time: the file may be large.
        let mut parsed = self.parsed.lock();
        let stamp = FileStamp::of(&self.path);
        if let Some(known) = parsed.as_ref().filter(|known| Some(known.stamp) == stamp) {
            return Ok(Arc::clone(&known.issues));
        }
        let text = shared_file::read(&self.path)?;
        // One entry after the other: all values at once need ten times the memory of the issues.
        let entries: Vec<&RawValue> = match serde_json::from_str(&text) {
            Ok(entries) => entries,
            Err(_) => return Err(self.entries(&text).err().unwrap_or_else(|| self.invalid("it is no list"))),
        };
        let mut issues = Vec::with_capacity(entries.len());
        let (mut ids, mut identifiers) = (BTreeSet::new(), BTreeSet::new());
        for (at, entry) in entries.iter().enumerate() {
            let entry = serde_json::from_str(entry.get()).map_err(|error| self.invalid(error))?;
            let issue = issue(&entry).map_err(|why| self.invalid(format!("issue {}: {why}", at + 1)))?;
            if !ids.insert(issue.id.clone()) || !identifiers.insert(issue.identifier.clone()) {
                return Err(
                    self.invalid(format!("two issues have the id or identifier of `{}`", issue.identifier))
                );
            }
            issues.push(issue);
        }
        let issues = Arc::new(issues);
        *parsed = stamp.map(|stamp| ParsedFile { stamp, issues: Arc::clone(&issues) });
        Ok(issues)
    }
}

impl IssueWriter for FileTracker {
    fn transition(&self, id: &IssueId, state: &str) -> Reading<()> {
        let state = state.to_owned();
        self.change(id.clone(), move |entry| {
            let before = entry.insert("state".to_owned(), Value::String(state.clone()));
            before.as_ref().and_then(Value::as_str) != Some(&state)
        })
    }

    fn comment(&self, id: &IssueId, comment: NewComment) -> Reading<()> {
        self.change(id.clone(), move |entry| {
            let comments = entry.entry("comments").or_insert(Value::Null);
            if comments.is_null() {
                *comments = json!([]);
            }
            let Some(comments) = comments.as_array_mut() else { return false };
            let id = format!("hangar-{}", comment.marker);
            if comments.iter().any(|known| known["id"].as_str() == Some(&id)) {
                return false;
            }
            let (body, at) = (comment.body.trim_end(), format!("{:.0}", comment.at));
            comments.push(json!({ "id": id, "author": "hangar", "body": body, "created_at": at }));
            true
        })
    }

    fn label(&self, id: &IssueId, label: &str, change: LabelChange) -> Reading<()> {
        let label = label.to_lowercase();
        self.change(id.clone(), move |entry| {
            let labels = entry.entry("labels").or_insert_with(|| json!([]));
            let Some(labels) = labels.as_array_mut() else { return false };
            let is_it = |known: &Value| known.as_str().is_some_and(|known| known.to_lowercase() == label);
            match (change, labels.iter().any(is_it)) {
                (LabelChange::Add, false) => labels.push(Value::String(label)),
                (LabelChange::Remove, true) => labels.retain(|known| !is_it(known)),
                (LabelChange::Add, true) | (LabelChange::Remove, false) => return false,
            }
            true
        })
    }

    fn create(&self, draft: NewIssue) -> Reading<IssueId> {
        let id = format!("hangar-{}", draft.marker);
        let made = IssueId(id.clone());
        let written = self.write(move |entries| {
            if entries.iter().any(|entry| entry["id"] == *id) {
                return Ok(false);
            }
            let identifier = format!("follow-up-{}", next_number(entries));
            entries.push(json!({
                "id": id, "identifier": identifier, "title": draft.title,
                "description": draft.description, "state": NEW_STATE, "labels": [],
            }));
            Ok(true)
        });
        Box::pin(async move { written.await.map(|()| made) })
    }
}

/// Number that a new identifier gets: one more than any that is there.
fn next_number(entries: &[Value]) -> u64 {
    let numbers = entries.iter().filter_map(|entry| {
        let identifier = entry["identifier"].as_str()?;
        let digits = identifier.trim_start_matches(|c: char| !c.is_ascii_digit());
        digits.parse::<u64>().ok()
    });
    numbers.max().unwrap_or(0) + 1
}

/// Reads one entry. Optional fields of the wrong type are left out, except where the format forbids it.
fn issue(entry: &Value) -> Result<Issue, String> {
    let fields = entry.as_object().ok_or("it is no object")?;
    let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
    let needed = |name: &str| {
        text(name).filter(|value| !value.trim().is_empty()).ok_or_else(|| format!("`{name}` is missing"))
    };
    let (id, identifier) = (needed("id")?, needed("identifier")?);
    let mut issue = Issue::new(&id, &identifier, &needed("title")?, &needed("state")?);
    issue.description = text("description").unwrap_or_default();
    issue.priority = fields.get("priority").and_then(Value::as_i64);
    issue.branch_name = text("branch_name");
    issue.url = text("url");
    issue.assignee = text("assignee");
    issue.issue_type = text("issue_type");
    issue.created_at = text("created_at");
    issue.updated_at = text("updated_at");
    issue.labels = match fields.get("labels") {
        None => Vec::new(),
        Some(Value::Array(labels)) => {
            labels.iter().filter_map(Value::as_str).map(|label| label.trim().to_lowercase()).collect()
        }
        Some(_) => return Err("`labels` must be a list".to_owned()),
    };
    issue.blocked_by = match fields.get("blocked_by") {
        None => Vec::new(),
        Some(blockers) => serde_json::from_value(blockers.clone())
            .map_err(|error| format!("`blocked_by` is invalid: {error}"))?,
    };
    issue.parent = match fields.get("parent") {
        None | Some(Value::Null) => None,
        Some(parent) => serde_json::from_value(parent.clone())
            .map(Some)
            .map_err(|error| format!("`parent` is invalid: {error}"))?,
    };
    issue.comments = match fields.get("comments") {
        None | Some(Value::Null) => None,
        Some(comments) => Some(
            serde_json::from_value(comments.clone())
                .map_err(|error| format!("`comments` is invalid: {error}"))?,
        ),
    };
    Ok(issue)
}
