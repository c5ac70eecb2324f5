//! Issues as Markdown files of a directory, for backlogs that are kept in git.
//!
//! ```text
//! ---
//! title: Mend the pool        # or the first heading
//! state: To Do
//! labels: [bug]
//! priority: 1
//! blocked_by: [other-issue]
//! ---
//! The description.
//!
//! <!-- comments -->
//! <!-- comment ID AUTHOR TIME -->
//! A comment.
//! ```
//!
//! The name of a file without `.md` is the id and the identifier. Only the lines that a write is about are changed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use hangar_front_matter::{self as front_matter, FENCE, Head, Parts};
use serde_json::Value;

use crate::error::{TrackerError, TrackerErrorKind};
use crate::issue::{Blocker, Comment, Issue, IssueId};
use crate::shared_file::{Gate, IssueFiles};
use crate::{IssueWriter, LabelChange, NEW_STATE, NewComment, NewIssue, Reading, shared_file};

/// Most files that are read.
const MAX_FILES: usize = 20_000;
const COMMENTS: &str = "<!-- comments -->";
const COMMENT: &str = "<!-- comment ";

#[derive(Debug, Clone)]
pub struct MarkdownTracker {
    directory: PathBuf,
    gate: Gate,
}

impl MarkdownTracker {
    pub fn new(directory: PathBuf) -> Self {
        Self { directory, gate: Gate::default() }
    }

    /// Path of an issue. An id with a slash or a dot first is none of ours.
    fn path(&self, id: &IssueId) -> Result<PathBuf, TrackerError> {
        let plain = !id.0.is_empty() && !id.0.starts_with('.') && !id.0.contains(['/', '\0']);
        let missing = || {
            let message = format!("{} has no issue `{id}`", self.directory.display());
            TrackerError::new(TrackerErrorKind::NotFound, message)
        };
        plain.then(|| self.directory.join(format!("{id}.md"))).ok_or_else(missing)
    }

    fn issue(&self, id: &IssueId) -> Result<Issue, TrackerError> {
        let path = self.path(id)?;
        parse(id, &shared_file::read(&path)?)
            .map_err(|why| TrackerError::new(TrackerErrorKind::Payload, format!("{}: {why}", path.display())))
    }

    /// The issue, if there is one.
    fn known(&self, id: &IssueId) -> Result<Option<Issue>, TrackerError> {
        if !is_issue(id) {
            return Ok(None);
        }
        match self.issue(id) {
            Ok(issue) => Ok(Some(issue)),
            Err(error) if error.kind == TrackerErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn change(
        &self,
        id: &IssueId,
        change: impl FnOnce(&str) -> Option<String> + Send + 'static,
    ) -> Reading<()> {
        let path = self.path(id);
        self.blocking(move |_| shared_file::change(&path?, |text| Ok(change(text))))
    }
}

impl IssueFiles for MarkdownTracker {
    fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Reads the files of the issues and of those that block them, and no other.
    fn issues_with(&self, ids: &BTreeSet<IssueId>) -> Result<Vec<Issue>, TrackerError> {
        let mut issues = Vec::new();
        for id in ids {
            let Some(mut issue) = self.known(id)? else { continue };
            for blocker in &mut issue.blocked_by {
                let blocking = self.known(&IssueId(blocker.identifier.clone()))?;
                blocker.state = blocking.map(|issue| issue.state).unwrap_or_default();
            }
            issues.push(issue);
        }
        Ok(issues)
    }

    fn issues(&self) -> Result<Arc<Vec<Issue>>, TrackerError> {
        let failed = |error: std::io::Error| shared_file::transport("listing", &self.directory, &error);
        let entries = std::fs::read_dir(&self.directory).map_err(failed)?;
        let mut ids: Vec<IssueId> = entries
            .flatten()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter_map(|name| name.strip_suffix(".md").map(|stem| IssueId(stem.to_owned())))
            .filter(is_issue)
            .take(MAX_FILES)
            .collect();
        ids.sort();
        let mut issues = ids.iter().map(|id| self.issue(id)).collect::<Result<Vec<_>, _>>()?;
        // The state of a blocker is that of its own file.
        let states: BTreeMap<String, String> =
            issues.iter().map(|issue| (issue.identifier.clone(), issue.state.clone())).collect();
        for blocker in issues.iter_mut().flat_map(|issue| &mut issue.blocked_by) {
            blocker.state = states.get(&blocker.identifier).cloned().unwrap_or_default();
        }
        Ok(Arc::new(issues))
    }
}

impl IssueWriter for MarkdownTracker {
    fn transition(&self, id: &IssueId, state: &str) -> Reading<()> {
        let state = state.to_owned();
        self.change(id, move |text| set(text, "state", &scalar(&state)))
    }

    fn comment(&self, id: &IssueId, comment: NewComment) -> Reading<()> {
        self.change(id, move |text| {
            let key = format!("{COMMENT}hangar-{} ", comment.marker);
            if text.contains(&key) {
                return None;
            }
            let start = if text.contains(COMMENTS) { String::new() } else { format!("\n{COMMENTS}\n") };
            let (text, body) = (text.trim_end(), comment.body.trim());
            Some(format!("{text}\n{start}\n{key}hangar {:.0} -->\n{body}\n", comment.at))
        })
    }

    fn label(&self, id: &IssueId, label: &str, change: LabelChange) -> Reading<()> {
        let (label, id_of) = (label.to_lowercase(), id.clone());
        self.change(id, move |text| {
            let mut labels = parse(&id_of, text).ok()?.labels;
            match (change, labels.contains(&label)) {
                (LabelChange::Add, false) => labels.push(label),
                (LabelChange::Remove, true) => labels.retain(|known| *known != label),
                (LabelChange::Add, true) | (LabelChange::Remove, false) => return None,
            }
            let labels: Vec<String> = labels.iter().map(|label| scalar(label)).collect();
            set(text, "labels", &format!("[{}]", labels.join(", ")))
        })
    }

    fn create(&self, draft: NewIssue) -> Reading<IssueId> {
        let id = IssueId(format!("follow-up-{}", draft.marker));
        let path = self.path(&id);
        self.blocking(move |_| {
            let path = path?;
            let (title, body) = (scalar(&draft.title), draft.description.trim());
            let text = format!("{FENCE}\ntitle: {title}\nstate: {NEW_STATE}\n{FENCE}\n{body}\n");
            match std::fs::File::create_new(&path).and_then(|mut file| file.write_all(text.as_bytes())) {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                    Err(shared_file::transport("writing", &path, &error))
                }
                _ => Ok(id),
            }
        })
    }
}

/// Whether a file of that name is an issue.
fn is_issue(id: &IssueId) -> bool {
    !id.0.starts_with('.') && !id.0.eq_ignore_ascii_case("readme")
}

/// A text as YAML that nobody takes for something else.
fn scalar(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_' | '.' | '/');
    let is_word = text.starts_with(char::is_alphabetic) && text.chars().all(plain) && !text.ends_with(' ');
    let is_other =
        matches!(text.to_lowercase().as_str(), "true" | "false" | "null" | "yes" | "no" | "on" | "off");
    match is_word && !is_other {
        true => text.to_owned(),
        false => Value::String(text.to_owned()).to_string(),
    }
}

/// Sets one entry of the front matter, with the lines that belong to its old value gone. `None` if it is there already.
fn set(text: &str, name: &str, value: &str) -> Option<String> {
    let line = format!("{name}: {value}\n");
    let Some(Parts { yaml: Some(yaml), body, .. }) = front_matter::split(text) else {
        return Some(format!("{FENCE}\n{line}{FENCE}\n{text}"));
    };
    let (mut out, mut written, mut inside) = (String::new(), false, false);
    for old in yaml.split_inclusive('\n') {
        let is_start = old.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with(':'));
        let continues = inside && (old.starts_with([' ', '\t', '-']) || old.trim().is_empty());
        inside = is_start || continues;
        match (is_start, continues) {
            (true, _) => {
                out.push_str(&line);
                written = true;
            }
            (false, true) => {}
            (false, false) => out.push_str(old),
        }
    }
    if !written {
        out.push_str(&line);
    }
    Some(format!("{FENCE}\n{out}{FENCE}\n{body}")).filter(|new| new != text)
}

fn parse(id: &IssueId, text: &str) -> Result<Issue, String> {
    let text = text.replace("\r\n", "\n");
    let Some(Parts { yaml: Some(yaml), body, .. }) = front_matter::split(&text) else {
        return Err("it has no front matter".to_owned());
    };
    let head = Head::parse(yaml)?;
    let list = |name: &str| head.list(name).unwrap_or_default();
    let (description, comments) = match body.split_once(COMMENTS) {
        Some((description, comments)) => (description, parse_comments(comments)),
        None => (body, Vec::new()),
    };
    let heading =
        || description.lines().find_map(|line| line.strip_prefix("# ")).map(|line| line.trim().to_owned());
    let title = head.text("title").or_else(heading).ok_or("it has neither a `title` nor a heading")?;
    let state = head.text("state").ok_or("`state` is missing")?;
    let identifier = head.text("identifier").unwrap_or_else(|| id.0.clone());
    let mut issue = Issue::new(&id.0, &identifier, &title, &state);
    issue.description = description.trim().to_owned();
    issue.priority = head.get("priority").and_then(Value::as_i64);
    issue.labels = list("labels").iter().map(|label| label.trim().to_lowercase()).collect();
    issue.branch_name = head.text("branch_name");
    issue.url = head.text("url");
    issue.assignee = head.text("assignee");
    issue.issue_type = head.text("issue_type");
    issue.created_at = head.text("created_at");
    issue.updated_at = head.text("updated_at");
    let blocker = |identifier: String| Blocker { id: identifier.clone(), identifier, state: String::new() };
    issue.blocked_by = list("blocked_by").into_iter().map(blocker).collect();
    issue.comments = Some(comments);
    Ok(issue)
}

fn parse_comments(text: &str) -> Vec<Comment> {
    text.split(COMMENT)
        .skip(1)
        .filter_map(|part| {
            let (head, body) = part.split_once("-->")?;
            let mut words = head.split_whitespace().map(str::to_owned);
            Some(Comment {
                id: words.next()?,
                author: words.next().unwrap_or_default(),
                created_at: words.next().unwrap_or_default(),
                body: body.trim().to_owned(),
            })
        })
        .collect()
}
