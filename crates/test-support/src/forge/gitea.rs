//! The REST API of the simulated Gitea, which is Forgejo's too. Labels have numbers, lists are without entity tags, and
//! `mergeable` is false while the server finds out.

use serde_json::{Value, json};

use super::checks::Run;
use super::http::{Answer, Request};
use super::pulls::{Opening, Pull, ReviewThread, ReviewVerdict, Reviewed};
use super::{BOT, Entry, Note, Repository, TOKEN, created_at, now, pages};

const REPOSITORY: &str = "/api/v1/repos/octo/app";
/// Parameter and largest value of the size of a page.
const LIMIT: (&str, usize) = ("limit", 50);

pub(super) fn unauthorized(request: &Request) -> Option<Answer> {
    let known = [format!("token {TOKEN}"), format!("Bearer {TOKEN}")];
    let is_known = request.headers.get("authorization").is_some_and(|given| known.contains(given));
    (!is_known).then(|| Answer::refused(401, "invalid username, password or token"))
}

fn missing() -> Answer {
    Answer::refused(404, "The target couldn't be found.")
}

fn user(name: &str) -> Value {
    json!({ "id": name.len(), "login": name, "username": name })
}

fn comment(note: &Note) -> Value {
    json!({ "id": note.id, "body": note.body, "user": user(&note.author), "created_at": note.at })
}

fn text(request: &Request, name: &str) -> String {
    request.body[name].as_str().unwrap_or_default().to_owned()
}

impl Repository {
    pub(super) fn answer_gitea(&mut self, request: &Request, base: &str) -> Answer {
        let Some(rest) = request.path.strip_prefix(REPOSITORY) else { return missing() };
        let parts: Vec<&str> = rest.split('/').skip(1).collect();
        let number = |at: usize| parts.get(at).and_then(|part| part.parse::<u64>().ok()).unwrap_or(0);
        let list = |all: Vec<Value>| pages(request, base, all, LIMIT, |all| all);
        match (request.method.as_str(), &parts[..]) {
            ("GET", []) => Answer::new(200, json!({ "full_name": "octo/app", "default_branch": "main" })),
            ("GET", ["issues"]) => list(self.gitea_issues(request)),
            ("POST", ["issues"]) if text(request, "title").is_empty() => {
                Answer::refused(422, "[Title]: Required")
            }
            ("POST", ["issues"]) => {
                let number = self.create_issue(&text(request, "title"), &text(request, "body"));
                Answer::new(201, self.gitea_issue(number))
            }
            (_, ["issues", _, rest @ ..]) => self.gitea_issue_answer(request, base, number(1), rest),
            ("GET", ["labels"]) => {
                let labels: Vec<String> = self.labels.clone();
                list(labels.iter().map(|label| self.label_json(label)).collect())
            }
            ("POST", ["labels"]) => {
                let (name, color) = (text(request, "name"), text(request, "color"));
                if name.is_empty() || !color.starts_with('#') {
                    return Answer::refused(422, "bad color format");
                }
                Answer::new(201, self.label_json(&name))
            }
            ("GET", ["compare", range @ ..]) => {
                let range = range.join("/");
                let branches = range.split_once("...").unwrap_or_default();
                match self.ahead(branches.0, branches.1) {
                    Some(commits) => {
                        Answer::new(200, json!({ "total_commits": commits.len(), "commits": [] }))
                    }
                    None => missing(),
                }
            }
            ("GET", ["commits", commit, "status"]) => {
                let runs: Vec<Value> = self.runs(commit).map(|(id, run)| status(id, run)).collect();
                if runs.is_empty() {
                    return Answer::new(200, json!({ "sha": commit, "total_count": 0, "statuses": null }));
                }
                let (sha, total) = ((*commit).to_owned(), runs.len());
                pages(
                    request,
                    base,
                    runs,
                    LIMIT,
                    |runs| json!({ "sha": sha, "total_count": total, "statuses": runs }),
                )
            }
            ("GET", ["actions", "runs"]) => {
                let commit = request.query.get("head_sha").cloned().unwrap_or_default();
                let any = self.runs(&commit).next().map(|(id, _)| json!({ "id": id, "head_sha": commit }));
                let runs: Vec<Value> = any.into_iter().collect();
                Answer::new(200, json!({ "total_count": runs.len(), "workflow_runs": runs }))
            }
            ("GET", ["actions", "runs", _, "jobs"]) => {
                let commit = self.commit_of_run(number(2)).unwrap_or_default();
                let jobs: Vec<Value> = self.runs(&commit).map(|(id, run)| job(id, run)).collect();
                Answer::new(200, json!({ "total_count": jobs.len(), "jobs": jobs }))
            }
            ("GET", ["actions", "jobs", _, "logs"]) => match self.check_log(number(2)) {
                Some(log) if !self.is_old => Answer::text(log),
                _ => missing(),
            },
            ("DELETE", ["branches", branch @ ..]) => match self.delete_branch(&branch.join("/")) {
                true => Answer::new(204, Value::Null),
                false => missing(),
            },
            (_, ["pulls", rest @ ..]) => self.gitea_pulls(request, base, rest),
            _ => missing(),
        }
    }

    fn label_json(&mut self, label: &str) -> Value {
        let id = self.label_id(label);
        json!({ "id": id, "name": self.labels[id as usize - 1], "color": "ededed", "exclusive": false })
    }

    fn labels_json(&mut self, entry: &Entry) -> Vec<Value> {
        entry.labels.iter().map(|label| self.label_json(label)).collect()
    }

    fn gitea_issues(&mut self, request: &Request) -> Vec<Value> {
        let wanted = request.query.get("state").map_or("open", String::as_str).to_owned();
        let kind = request.query.get("type").cloned().unwrap_or_default();
        let labels = request.query.get("labels").cloned().unwrap_or_default();
        let labels: Vec<&str> = labels.split(',').filter(|label| !label.is_empty()).collect();
        let fits = |entry: &Entry| {
            (wanted == "all" || entry.state == wanted) && labels.iter().all(|label| entry.has_label(label))
        };
        let issues = self.issues.iter().filter(|(_, entry)| kind != "pulls" && fits(entry));
        let pulls = self.pulls.iter().filter(|(_, pull)| kind != "issues" && fits(&pull.entry));
        let mut numbers: Vec<u64> =
            issues.map(|(number, _)| *number).chain(pulls.map(|(number, _)| *number)).collect();
        // The newest first, and nothing to change that.
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        numbers.into_iter().map(|number| self.gitea_issue(number)).collect()
    }

    fn gitea_issue(&mut self, number: u64) -> Value {
        let entry = self.entry_mut(number).expect("it was looked up").clone();
        let is_pull = self.pulls.contains_key(&number);
        json!({
            "id": 1_000_000 + number, "number": number, "title": entry.title, "body": entry.body,
            "state": entry.state, "labels": self.labels_json(&entry), "assignee": null,
            "comments": entry.comments.len(), "created_at": created_at(number),
            "updated_at": entry.updated_at, "pull_request": is_pull.then(|| json!({ "merged": false })),
            "html_url": format!("https://gitea.example.com/octo/app/issues/{number}"),
            "repository": { "full_name": "octo/app" },
        })
    }

    fn gitea_issue_answer(&mut self, request: &Request, base: &str, number: u64, parts: &[&str]) -> Answer {
        let note = self.note(&text(request, "body"));
        let labels = self.labels.clone();
        let named = |id: u64| labels.get((id as usize).wrapping_sub(1)).cloned();
        let blockers = self.issues.get(&number).map(|entry| entry.blocked_by.clone()).unwrap_or_default();
        let is_blocked = blockers.iter().any(|by| self.entry_mut(*by).is_some_and(|by| by.state == "open"));
        let Some(entry) = self.entry_mut(number) else { return missing() };
        match (request.method.as_str(), parts) {
            ("GET", []) => Answer::new(200, self.gitea_issue(number)),
            ("PATCH", []) => {
                entry.state = match request.body["state"].as_str() {
                    Some("open") => "open",
                    Some("closed") if is_blocked => {
                        let why = "cannot close this issue because it still has open dependencies";
                        return Answer::refused(412, why);
                    }
                    Some("closed") => "closed",
                    _ => return Answer::refused(412, "unknown state"),
                };
                entry.updated_at = now();
                Answer::new(201, self.gitea_issue(number))
            }
            ("GET", ["comments"]) => Answer::new(200, entry.comments.iter().map(comment).collect()),
            ("POST", ["comments"]) if note.body.is_empty() => Answer::refused(422, "[Body]: Required"),
            ("POST", ["comments"]) => {
                let shown = comment(&note);
                entry.comments.push(note);
                entry.updated_at = now();
                Answer::new(201, shown)
            }
            ("POST", ["labels"]) => {
                let ids = request.body["labels"].as_array().into_iter().flatten().map(Value::as_u64);
                let Some(ids) = ids.collect::<Option<Vec<u64>>>() else {
                    return Answer::refused(400, "labels should be an array of integers");
                };
                // Numbers of no label are passed over.
                ids.into_iter().filter_map(named).for_each(|label| entry.add_label(&label));
                Answer::new(200, json!([]))
            }
            ("DELETE", ["labels", id]) => match id.parse().ok().and_then(named) {
                Some(label) => {
                    entry.remove_label(&label);
                    Answer::new(204, Value::Null)
                }
                None => Answer::refused(422, "label does not exist"),
            },
            ("GET", ["dependencies"]) => {
                let found = blockers.iter().map(|by| self.gitea_issue(*by)).collect();
                pages(request, base, found, LIMIT, |found| found)
            }
            _ => missing(),
        }
    }

    fn gitea_pulls(&mut self, request: &Request, base: &str, parts: &[&str]) -> Answer {
        let number = parts.first().and_then(|number| number.parse::<u64>().ok()).unwrap_or(0);
        match (request.method.as_str(), parts) {
            ("GET", []) => {
                let wanted = request.query.get("state").map_or("open", String::as_str).to_owned();
                let fits = |pull: &Pull| wanted == "all" || pull.entry.state == wanted;
                let numbers: Vec<u64> =
                    self.pulls.iter().filter(|(_, pull)| fits(pull)).map(|(number, _)| *number).collect();
                let found = numbers.into_iter().map(|number| self.gitea_pull(number, base)).collect();
                pages(request, base, found, LIMIT, |found| found)
            }
            ("POST", []) => self.create_gitea_pull(request, base),
            ("POST", ["comments", id, "resolve"]) if !self.is_old => {
                let id = id.parse::<u64>().ok();
                let mut threads = self.pulls.values_mut().flat_map(|pull| &mut pull.threads);
                match threads.find(|thread| thread.comments.iter().any(|note| Some(note.id) == id)) {
                    Some(thread) => {
                        thread.resolved = true;
                        Answer::new(204, Value::Null)
                    }
                    None => missing(),
                }
            }
            (_, [_, ..]) if !self.pulls.contains_key(&number) => missing(),
            ("GET", [_]) => Answer::new(200, self.gitea_pull(number, base)),
            ("POST", [_, "merge"]) => self.merge_gitea(request, number),
            ("POST", [_, "requested_reviewers"]) => match request.body["reviewers"][0].as_str() {
                Some("nobody") => Answer::refused(404, "user does not exist"),
                _ => Answer::new(201, json!([])),
            },
            ("GET", [_, "reviews"]) => {
                let reviews = self.pulls[&number].reviews.iter().map(review).collect();
                pages(request, base, reviews, LIMIT, |reviews| reviews)
            }
            ("POST", [_, "reviews"]) => self.create_review(request, number),
            ("GET", [_, "reviews", id, "comments"]) => {
                let threads = self.pulls[&number].threads.iter();
                let threads = threads.filter(|thread| id.parse() == Ok(thread.review));
                let comments = threads
                    .flat_map(|thread| thread.comments.iter().map(move |note| review_comment(note, thread)));
                Answer::new(200, Value::Array(comments.collect()))
            }
            ("POST", [_, "comments", id, "replies"]) if !self.is_old => {
                let note = self.note(&text(request, "body"));
                let id = id.parse::<u64>().ok();
                let pull = self.pulls.get_mut(&number).expect("it was looked up");
                let is_it =
                    |thread: &&mut ReviewThread| thread.comments.iter().any(|note| Some(note.id) == id);
                let Some(thread) = pull.threads.iter_mut().find(is_it) else { return missing() };
                let shown = review_comment(&note, thread);
                thread.comments.push(note);
                Answer::new(201, shown)
            }
            _ => missing(),
        }
    }

    fn gitea_pull(&mut self, number: u64, base_url: &str) -> Value {
        let mergeable = self.mergeable(number);
        let head = self.head_of(number).unwrap_or_default();
        let entry = self.pulls[&number].entry.clone();
        let labels = self.labels_json(&entry);
        let pull = &self.pulls[&number];
        let is_draft = pull.is_work_in_progress();
        json!({
            "id": 2_000_000 + number, "number": number, "state": entry.state, "title": entry.title,
            "body": entry.body, "draft": is_draft, "labels": labels, "user": user(BOT),
            "html_url": format!("{base_url}/octo/app/pulls/{number}"), "updated_at": entry.updated_at,
            "head": { "ref": pull.branch, "sha": head, "label": pull.branch },
            "base": { "ref": pull.base, "sha": self.commit_of(&pull.base), "label": pull.base },
            "merged": pull.merged, "mergeable": mergeable == Some(true) && !is_draft,
        })
    }

    fn create_gitea_pull(&mut self, request: &Request, base_url: &str) -> Answer {
        let (title, branch, base) = (text(request, "title"), text(request, "head"), text(request, "base"));
        match self.opening(&branch, &base) {
            Opening::Possible | Opening::Empty if title.is_empty() => {
                return Answer::refused(422, "[Title]: Required");
            }
            // A pull request without commits can be opened.
            Opening::Possible | Opening::Empty => {}
            Opening::Invalid => return missing(),
            Opening::Exists(other) => {
                let why = format!("pull request already exists for these targets [id: {other}]");
                return Answer::refused(409, &why);
            }
        }
        let number = self.open_pull(&title, &text(request, "body"), (&branch, &base), false);
        Answer::new(201, self.gitea_pull(number, base_url))
    }

    fn merge_gitea(&mut self, request: &Request, number: u64) -> Answer {
        let head = self.head_of(number).unwrap_or_default();
        let pull = &self.pulls[&number];
        let squash = match request.body["Do"].as_str().or(request.body["do"].as_str()) {
            Some("squash") => true,
            Some("merge" | "rebase-merge") => false,
            _ => return Answer::refused(422, "[Do]: Required"),
        };
        if pull.merged {
            return Answer::refused(405, "The PR is already merged");
        }
        if pull.entry.state == "closed" || pull.is_work_in_progress() {
            return Answer::refused(405, "Work in progress PRs cannot be merged");
        }
        if request.body["head_commit_id"].as_str().is_some_and(|commit| commit != head) {
            return Answer::refused(409, "head out of date");
        }
        let message = format!("{} (#{number})", pull.entry.title);
        let branch = pull.branch.clone();
        if self.merge_pull(number, squash, &message).is_none() {
            return Answer::refused(405, "Please try again later");
        }
        if request.body["delete_branch_after_merge"] == true {
            self.delete_branch(&branch);
        }
        Answer::text("")
    }

    /// A review with comments on lines. Each begins a thread of the same place, as on servers without replies.
    fn create_review(&mut self, request: &Request, number: u64) -> Answer {
        if request.body["event"] != "COMMENT" {
            return Answer::refused(422, "review event is not valid");
        }
        let note = self.note(&text(request, "body"));
        let head = self.head_of(number).unwrap_or_default();
        let review = note.id;
        let comments = request.body["comments"].as_array().cloned().unwrap_or_default();
        if comments.is_empty() && note.body.is_empty() {
            return Answer::refused(422, "review body can not be empty");
        }
        for given in comments {
            let note = self.note(given["body"].as_str().unwrap_or_default());
            let pull = self.pulls.get_mut(&number).expect("it was looked up");
            pull.threads.push(ReviewThread {
                id: note.id,
                review,
                path: given["path"].as_str().unwrap_or_default().to_owned(),
                line: given["new_position"].as_u64().unwrap_or(0),
                resolved: false,
                commit: head.clone(),
                comments: vec![note],
            });
        }
        let pull = self.pulls.get_mut(&number).expect("it was looked up");
        pull.reviews.push(Reviewed { note, verdict: ReviewVerdict::Commented });
        Answer::new(200, json!({ "id": review }))
    }
}

impl Pull {
    fn is_work_in_progress(&self) -> bool {
        self.entry.title.starts_with("WIP:")
    }
}

fn review(review: &Reviewed) -> Value {
    let state = match review.verdict {
        ReviewVerdict::Approved => "APPROVED",
        ReviewVerdict::ChangesRequested => "REQUEST_CHANGES",
        ReviewVerdict::Commented => "COMMENT",
    };
    json!({
        "id": review.note.id, "user": user(&review.note.author), "state": state, "body": review.note.body,
        "submitted_at": review.note.at, "dismissed": false, "stale": false,
        "comments_count": u64::from(review.verdict == ReviewVerdict::Commented),
    })
}

fn review_comment(note: &Note, thread: &ReviewThread) -> Value {
    let resolver = thread.resolved.then(|| user(BOT));
    json!({
        "id": note.id, "body": note.body, "user": user(&note.author), "resolver": resolver,
        "pull_request_review_id": thread.review, "created_at": note.at, "path": thread.path,
        "commit_id": thread.commit, "position": thread.line, "original_position": 0,
    })
}

fn status(id: u64, run: &Run) -> Value {
    let state = match (run.status, run.conclusion) {
        ("completed", Some("success")) => "success",
        ("completed", _) => "failure",
        _ => "pending",
    };
    json!({
        "id": id, "context": run.name, "status": state, "description": format!("{} {state}", run.name),
        "target_url": "/octo/app/actions/runs/1/jobs/0",
    })
}

fn job(id: u64, run: &Run) -> Value {
    let conclusion = run.conclusion.unwrap_or_default();
    json!({ "id": id, "name": run.name, "head_sha": run.commit, "status": run.status, "conclusion": conclusion })
}
