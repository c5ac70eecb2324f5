//! The REST API of the simulated GitLab. Its numbers of issues and merge requests are separate, and links between issues are
//! system notes too.

use serde_json::{Value, json};

use super::checks::Run;
use super::http::{Answer, Request};
use super::pulls::{Opening, Pull, ReviewThread, ReviewVerdict};
use super::{BOT, Entry, Note, Repository, TOKEN, created_at, now, page};

/// The project as it has to be written in a path.
const PROJECT: &str = "/api/v4/projects/octo%2Fapp";
/// The same, decoded.
const DECODED: &str = "/api/v4/projects/octo/app";

pub(super) fn unauthorized(request: &Request) -> Option<Answer> {
    let header = |name: &str| request.headers.get(name).map(String::as_str);
    let is_known =
        header("private-token") == Some(TOKEN) || header("authorization") == Some(&format!("Bearer {TOKEN}"));
    (!is_known).then(|| Answer::new(401, json!({ "message": "401 Unauthorized" })))
}

fn missing(what: &str) -> Answer {
    Answer::new(404, json!({ "message": format!("404 {what} Not Found") }))
}

/// A parameter that is missing or wrong.
fn invalid(why: &str) -> Answer {
    Answer::new(400, json!({ "error": why }))
}

fn user(name: &str) -> Value {
    json!({ "id": name.len(), "username": name, "name": name, "state": "active" })
}

fn text(request: &Request, name: &str) -> String {
    request.body[name].as_str().unwrap_or_default().to_owned()
}

fn note_json(note: &Note, thread: Option<&ReviewThread>) -> Value {
    let mut shown = json!({
        "id": note.id, "body": note.body, "author": user(&note.author), "created_at": note.at,
        "system": false, "resolvable": thread.is_some(), "type": null,
    });
    if let Some(thread) = thread {
        shown["type"] = json!("DiffNote");
        shown["resolved"] = json!(thread.resolved);
        shown["position"] = json!({
            "head_sha": thread.commit, "new_path": thread.path, "old_path": thread.path,
            "new_line": thread.line, "old_line": null, "position_type": "text",
        });
    }
    shown
}

impl Entry {
    /// Changes labels and state as the parameters say.
    fn edit(&mut self, request: &Request) -> Option<Answer> {
        let words = |name: &str| -> Vec<String> {
            text(request, name).split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect()
        };
        let (added, removed) = (words("add_labels"), words("remove_labels"));
        let event = request.body["state_event"].as_str();
        if added.is_empty() && removed.is_empty() && event.is_none() {
            return Some(invalid("at least one parameter must be provided"));
        }
        added.iter().for_each(|label| self.add_label(label));
        for label in &removed {
            self.remove_label(label);
        }
        match event {
            Some("close") => self.state = "closed",
            Some("reopen") => self.state = "open",
            Some(_) => return Some(invalid("state_event does not have a valid value")),
            None => {}
        }
        self.updated_at = now();
        None
    }

    fn gitlab_state(&self) -> &'static str {
        if self.state == "open" { "opened" } else { "closed" }
    }
}

impl Repository {
    pub(super) fn answer_gitlab(&mut self, request: &Request, base: &str) -> Answer {
        if request.path == "/api/v4/users" {
            let name = request.query.get("username").cloned().unwrap_or_default();
            return Answer::new(200, if name == "nobody" { json!([]) } else { json!([user(&name)]) });
        }
        let rest = request.path.strip_prefix(DECODED).filter(|_| request.target.starts_with(PROJECT));
        let Some(rest) = rest else { return missing("Project") };
        let parts: Vec<&str> = rest.split('/').skip(1).collect();
        let number = |at: usize| parts.get(at).and_then(|part| part.parse::<u64>().ok()).unwrap_or(0);
        match (request.method.as_str(), &parts[..]) {
            ("GET", []) => Answer::new(
                200,
                json!({ "id": 7, "path_with_namespace": "octo/app", "default_branch": "main" }),
            ),
            ("GET", ["issues"]) => self.gitlab_issues(request, base),
            ("POST", ["issues"]) if text(request, "title").is_empty() => invalid("title is missing"),
            ("POST", ["issues"]) => {
                let number = self.create_issue(&text(request, "title"), &text(request, "description"));
                Answer::new(201, self.gitlab_issue(number))
            }
            (_, ["issues", _, rest @ ..]) => self.gitlab_issue_answer(request, base, number(1), rest),
            ("GET", ["merge_requests"]) => self.merge_requests(request, base),
            ("POST", ["merge_requests"]) => self.create_merge_request(request, base),
            (_, ["merge_requests", _, rest @ ..]) => match self.pulls.contains_key(&number(1)) {
                true => self.merge_request_answer(request, base, number(1), rest),
                false => missing("Not found"),
            },
            ("GET", ["repository", "compare"]) => {
                let branch = |name: &str| request.query.get(name).cloned().unwrap_or_default();
                match self.ahead(&branch("from"), &branch("to")) {
                    Some(commits) => {
                        let commits: Vec<Value> = commits.iter().map(|id| json!({ "id": id })).collect();
                        Answer::new(200, json!({ "commits": commits, "compare_timeout": false }))
                    }
                    None => missing("Ref"),
                }
            }
            ("GET", ["repository", "commits", commit, "statuses"]) => {
                let runs = self.runs(commit).map(|(id, run)| status(id, run)).collect();
                page(request, base, runs, |runs| runs)
            }
            ("DELETE", ["repository", "branches", branch @ ..]) => {
                match self.delete_branch(&branch.join("/")) {
                    true => Answer::new(204, Value::Null),
                    false => missing("Branch"),
                }
            }
            ("GET", ["jobs", _, "trace"]) => match self.check_log(number(1)) {
                Some(log) => Answer::text(&format!(
                    "section_start:1:step_script\r\u{1b}[0K\u{1b}[36;1mExecuting\u{1b}[0;m\n{log}section_end:1:step_script\r\u{1b}[0K\u{1b}[31;1mERROR: Job failed: exit code 1\u{1b}[0;m\n"
                )),
                None => missing("Not found"),
            },
            _ => missing("Not found"),
        }
    }

    fn gitlab_issues(&self, request: &Request, base: &str) -> Answer {
        let wanted = request.query.get("state").map_or("all", String::as_str);
        if !["opened", "closed", "all"].contains(&wanted) {
            return invalid("state does not have a valid value");
        }
        let labels = request.query.get("labels").cloned().unwrap_or_default();
        let labels: Vec<&str> = labels.split(',').filter(|label| !label.is_empty()).collect();
        let fits = |entry: &Entry| {
            (wanted == "all" || entry.gitlab_state() == wanted)
                && labels.iter().all(|label| entry.has_label(label))
        };
        let found = self.issues.iter().filter(|(_, entry)| fits(entry));
        let mut found: Vec<Value> = found.map(|(number, _)| self.gitlab_issue(*number)).collect();
        if request.query.get("sort").is_none_or(|sort| sort != "asc") {
            found.reverse();
        }
        page(request, base, found, |found| found)
    }

    fn gitlab_issue(&self, number: u64) -> Value {
        let entry = &self.issues[&number];
        json!({
            "id": 1_000_000 + number, "iid": number, "project_id": 7, "title": entry.title,
            "description": entry.body, "state": entry.gitlab_state(), "labels": entry.labels,
            "assignees": [], "assignee": null, "author": user("ada"), "issue_type": "issue",
            "user_notes_count": entry.comments.len(), "created_at": created_at(number),
            "updated_at": entry.updated_at, "web_url": format!("https://gitlab.com/octo/app/-/issues/{number}"),
            "references": { "short": format!("#{number}"), "full": format!("octo/app#{number}") },
        })
    }

    fn gitlab_issue_answer(&mut self, request: &Request, base: &str, number: u64, parts: &[&str]) -> Answer {
        let note = self.note(&text(request, "body"));
        let Some(entry) = self.issues.get_mut(&number) else { return missing("Issue") };
        match (request.method.as_str(), parts) {
            ("GET", []) => Answer::new(200, self.gitlab_issue(number)),
            ("PUT", []) => entry.edit(request).unwrap_or_else(|| Answer::new(200, self.gitlab_issue(number))),
            ("GET", ["notes"]) => {
                let linked = entry.blocked_by.iter().map(|by| {
                    let body = format!("marked this issue as blocked by #{by}");
                    json!({ "id": 900_000 + by, "body": body, "author": user("ada"), "system": true,
                        "created_at": created_at(*by) })
                });
                let mut notes: Vec<Value> =
                    linked.chain(entry.comments.iter().map(|note| note_json(note, None))).collect();
                if request.query.get("sort").is_none_or(|sort| sort != "asc") {
                    notes.reverse();
                }
                page(request, base, notes, |notes| notes)
            }
            ("POST", ["notes"]) if note.body.is_empty() => invalid("body is missing"),
            ("POST", ["notes"]) => {
                let shown = note_json(&note, None);
                entry.comments.push(note);
                entry.updated_at = now();
                Answer::new(201, shown)
            }
            ("GET", ["links"]) => {
                let blockers = entry.blocked_by.clone();
                let blocks = self.issues.iter().filter(|(_, other)| other.blocked_by.contains(&number));
                let linked = blockers.iter().map(|by| (*by, "is_blocked_by"));
                let linked = linked.chain(blocks.map(|(other, _)| (*other, "blocks")));
                let shown = linked.map(|(other, kind)| {
                    let mut shown = self.gitlab_issue(other);
                    (shown["link_type"], shown["issue_link_id"]) = (json!(kind), json!(number * 100 + other));
                    shown
                });
                page(request, base, shown.collect(), |links| links)
            }
            _ => missing("Not found"),
        }
    }

    fn merge_requests(&mut self, request: &Request, base: &str) -> Answer {
        let state = request.query.get("state").map_or("all", String::as_str).to_owned();
        let branch = request.query.get("source_branch").cloned();
        let fits = |pull: &Pull| {
            (state == "all" || pull.gitlab_state() == state)
                && branch.as_ref().is_none_or(|branch| pull.branch == *branch)
        };
        let numbers: Vec<u64> =
            self.pulls.iter().filter(|(_, pull)| fits(pull)).map(|(number, _)| *number).collect();
        let found = numbers.into_iter().map(|number| self.merge_request(number, base, false)).collect();
        page(request, base, found, |found| found)
    }

    fn merge_request(&mut self, number: u64, base_url: &str, full: bool) -> Value {
        let mergeable = if full { self.mergeable(number) } else { None };
        let head = self.head_of(number).unwrap_or_default();
        let pull = &self.pulls[&number];
        let (status, detailed) = match mergeable {
            _ if pull.entry.state == "closed" => ("can_be_merged", "not_open"),
            None => ("checking", "checking"),
            Some(false) => ("cannot_be_merged", "conflict"),
            Some(true) if pull.is_draft() => ("can_be_merged", "draft_status"),
            Some(true) => ("can_be_merged", "mergeable"),
        };
        json!({
            "id": 2_000_000 + number, "iid": number, "state": pull.gitlab_state(), "title": pull.entry.title,
            "description": pull.entry.body, "draft": pull.is_draft(), "labels": pull.entry.labels,
            "author": user(BOT), "web_url": format!("{base_url}/octo/app/-/merge_requests/{number}"),
            "updated_at": pull.entry.updated_at, "sha": head, "source_branch": pull.branch,
            "target_branch": pull.base, "merge_status": status, "detailed_merge_status": detailed,
            "has_conflicts": mergeable == Some(false),
        })
    }

    fn create_merge_request(&mut self, request: &Request, base_url: &str) -> Answer {
        let (title, branch, base) =
            (text(request, "title"), text(request, "source_branch"), text(request, "target_branch"));
        for (name, value) in [("title", &title), ("source_branch", &branch), ("target_branch", &base)] {
            if value.is_empty() {
                return invalid(&format!("{name} is missing"));
            }
        }
        match self.opening(&branch, &base) {
            // A merge request without commits can be opened.
            Opening::Possible | Opening::Empty => {}
            Opening::Invalid => {
                return Answer::new(422, json!({ "message": { "source_branch": ["does not exist"] } }));
            }
            Opening::Exists(other) => {
                let why =
                    format!("Another open merge request already exists for this source branch: !{other}");
                return Answer::new(409, json!({ "message": [why] }));
            }
        }
        let number = self.open_pull(&title, &text(request, "description"), (&branch, &base), false);
        let labels = text(request, "labels");
        if let Some(pull) = self.pulls.get_mut(&number) {
            labels.split(',').filter(|label| !label.is_empty()).for_each(|label| pull.entry.add_label(label));
        }
        Answer::new(201, self.merge_request(number, base_url, true))
    }

    fn merge_request_answer(&mut self, request: &Request, base: &str, number: u64, parts: &[&str]) -> Answer {
        let note = self.note(&text(request, "body"));
        let pull = self.pulls.get_mut(&number).expect("it was looked up");
        match (request.method.as_str(), parts) {
            ("GET", []) => Answer::new(200, self.merge_request(number, base, true)),
            ("PUT", []) => match pull.entry.edit(request) {
                Some(refused) => refused,
                None => Answer::new(200, self.merge_request(number, base, false)),
            },
            ("PUT", ["merge"]) => self.accept(request, base, number),
            ("GET", ["approvals"]) => {
                let approved =
                    pull.verdicts().into_iter().filter(|review| review.verdict == ReviewVerdict::Approved);
                let by: Vec<Value> =
                    approved.map(|review| json!({ "user": user(&review.note.author) })).collect();
                Answer::new(200, json!({ "approved": !by.is_empty(), "approved_by": by }))
            }
            ("GET", ["reviewers"]) => {
                let state = |verdict| match verdict {
                    ReviewVerdict::Approved => "approved",
                    ReviewVerdict::ChangesRequested => "requested_changes",
                    ReviewVerdict::Commented => "reviewed",
                };
                let all = pull.verdicts().into_iter().map(|review| {
                    json!({ "user": user(&review.note.author), "state": state(review.verdict),
                        "created_at": review.note.at })
                });
                Answer::new(200, Value::Array(all.collect()))
            }
            ("GET", ["discussions"]) => page(request, base, discussions(pull), |all| all),
            ("GET", ["notes"]) => {
                let notes = pull.entry.comments.iter().map(|note| note_json(note, None)).collect();
                page(request, base, notes, |notes| notes)
            }
            ("POST", _) if note.body.is_empty() => invalid("body is missing"),
            ("POST", ["notes"]) => {
                let shown = note_json(&note, None);
                pull.entry.comments.push(note);
                Answer::new(201, shown)
            }
            (method, ["discussions", id, rest @ ..]) => {
                let thread = pull.threads.iter_mut().find(|thread| discussion(thread) == **id);
                let Some(thread) = thread else { return missing("Discussion") };
                match (method, rest, request.body["resolved"].as_bool()) {
                    ("POST", ["notes"], _) => {
                        thread.comments.push(note);
                        Answer::new(201, json!({ "id": thread.id }))
                    }
                    ("PUT", [], Some(resolved)) => {
                        thread.resolved = resolved;
                        Answer::new(200, json!({ "id": discussion(thread) }))
                    }
                    ("PUT", [], None) => invalid("resolved is missing"),
                    _ => missing("Not found"),
                }
            }
            _ => missing("Not found"),
        }
    }

    fn accept(&mut self, request: &Request, base: &str, number: u64) -> Answer {
        let head = self.head_of(number).unwrap_or_default();
        let pull = &self.pulls[&number];
        if pull.entry.state == "closed" || pull.is_draft() {
            return Answer::new(405, json!({ "message": "405 Method Not Allowed" }));
        }
        if request.body["sha"].as_str().is_some_and(|sha| sha != head) {
            let why = format!("SHA does not match HEAD of source branch: {head}");
            return Answer::new(409, json!({ "message": why }));
        }
        let (squash, branch) = (request.body["squash"] == true, pull.branch.clone());
        let message = match squash {
            true => pull.entry.title.clone(),
            false => format!("Merge branch '{branch}' into '{}'", pull.base),
        };
        if self.merge_pull(number, squash, &message).is_none() {
            return Answer::new(422, json!({ "message": "Branch cannot be merged" }));
        }
        if request.body["should_remove_source_branch"] == true {
            self.delete_branch(&branch);
        }
        Answer::new(200, self.merge_request(number, base, false))
    }
}

impl Pull {
    fn gitlab_state(&self) -> &'static str {
        if self.merged { "merged" } else { self.entry.gitlab_state() }
    }

    fn is_draft(&self) -> bool {
        self.entry.title.starts_with("Draft:")
    }
}

fn discussion(thread: &ReviewThread) -> String {
    format!("{:040x}", thread.id)
}

/// Threads, single comments and the texts of reviews.
fn discussions(pull: &Pull) -> Vec<Value> {
    let threads = pull.threads.iter().map(|thread| {
        let notes: Vec<Value> = thread.comments.iter().map(|note| note_json(note, Some(thread))).collect();
        json!({ "id": discussion(thread), "individual_note": false, "notes": notes })
    });
    let said = pull.reviews.iter().map(|review| &review.note).filter(|note| !note.body.is_empty());
    let single = said.chain(&pull.entry.comments).map(|note| {
        json!({ "id": format!("{:040x}", 500_000 + note.id), "individual_note": true,
            "notes": [note_json(note, None)] })
    });
    threads.chain(single).collect()
}

fn status(id: u64, run: &Run) -> Value {
    let state = match (run.status, run.conclusion) {
        ("queued", _) => "pending",
        ("in_progress", _) => "running",
        (_, Some("success")) => "success",
        _ => "failed",
    };
    json!({
        "id": id, "sha": run.commit, "name": run.name, "status": state, "allow_failure": false,
        "target_url": format!("https://gitlab.com/octo/app/-/jobs/{id}"), "description": null,
    })
}
