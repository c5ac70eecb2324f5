//! The REST API of the simulated GitHub.

mod app;
mod board;
pub(crate) mod graphql;

use serde_json::{Value, json};

use super::http::{Answer, Request};
use super::pulls::{Opening, Pull, ReviewVerdict};
use super::{BOT, Entry, Note, Repository, created_at, page};

pub(super) use board::Board;

pub use app::{InstalledApp, KeyForm};

const REPOSITORY: &str = "/repos/octo/app";

fn missing() -> Answer {
    Answer::refused(404, "Not Found")
}

fn invalid() -> Answer {
    Answer::refused(422, "Validation Failed")
}

fn user(login: &str, is_bot: bool) -> Value {
    json!({ "login": login, "type": if is_bot { "Bot" } else { "User" } })
}

fn comment(note: &Note) -> Value {
    json!({
        "id": note.id, "body": note.body, "user": user(&note.author, note.is_bot), "created_at": note.at,
    })
}

fn labels(entry: &Entry) -> Vec<Value> {
    entry.labels.iter().map(|label| json!({ "name": label })).collect()
}

impl Repository {
    pub(super) fn unauthorized_github(&self, request: &Request) -> Option<Answer> {
        let header = |name: &str| request.headers.get(name).map(String::as_str);
        let token =
            header("authorization").and_then(|given| given.strip_prefix("Bearer ")).unwrap_or_default();
        let is_known = match app::is_for_app(&request.path) {
            true => self.app.as_ref().is_some_and(|app| app.is_proof(token)),
            false => self.is_token(token),
        };
        if !is_known {
            return Some(Answer::refused(401, "Bad credentials"));
        }
        if header("user-agent").is_none_or(str::is_empty) {
            return Some(Answer::refused(403, "Request forbidden by administrative rules."));
        }
        if header("accept") != Some("application/vnd.github+json") || header("x-github-api-version").is_none()
        {
            return Some(Answer::refused(415, "Must accept 'application/vnd.github+json'"));
        }
        None
    }

    pub(super) fn answer_github(&mut self, request: &Request, base: &str) -> Answer {
        if app::is_for_app(&request.path) {
            return self.answer_app(request);
        }
        if request.path == "/graphql" {
            return graphql::answer(self, request);
        }
        if request.path == "/search/issues" {
            return self.search(request, base);
        }
        let Some(rest) = request.path.strip_prefix(REPOSITORY) else { return missing() };
        let parts: Vec<&str> = rest.split('/').skip(1).collect();
        match (request.method.as_str(), &parts[..]) {
            ("GET", ["issues"]) => {
                let wanted = request.query.get("state").map_or("open", String::as_str);
                let mut found = self.all_issues(|entry| wanted == "all" || entry.state == wanted);
                if request.query.get("direction").is_none_or(|direction| direction != "asc") {
                    found.reverse();
                }
                page(request, base, found, |found| found)
            }
            ("POST", ["issues"]) => {
                let text = |name: &str| request.body[name].as_str().unwrap_or_default().to_owned();
                if text("title").is_empty() {
                    return invalid();
                }
                let number = self.create_issue(&text("title"), &text("body"));
                Answer::new(201, self.github_issue(number))
            }
            (_, ["issues", number, rest @ ..]) => {
                let number = number.parse().unwrap_or(0);
                self.answer_issue(request, base, number, rest)
            }
            _ => self.answer_pulls(request, base, &parts),
        }
    }

    /// Issues and pull requests, by their numbers.
    fn all_issues(&self, fits: impl Fn(&Entry) -> bool) -> Vec<Value> {
        let pulls = self.pulls.iter().filter(|(_, pull)| fits(&pull.entry)).map(|(number, _)| *number);
        let issues = self.issues.iter().filter(|(_, entry)| fits(entry)).map(|(number, _)| *number);
        let mut numbers: Vec<u64> = issues.chain(pulls).collect();
        numbers.sort_unstable();
        numbers.into_iter().map(|number| self.github_issue(number)).collect()
    }

    fn github_issue(&self, number: u64) -> Value {
        let pull = self.pulls.get(&number);
        let entry = pull.map_or_else(|| &self.issues[&number], |pull| &pull.entry);
        let mut issue = json!({
            "number": number, "id": 1_000_000 + number, "title": entry.title, "body": entry.body,
            "state": entry.state, "labels": labels(entry), "assignee": null, "comments": entry.comments.len(),
            "html_url": format!("https://github.com/octo/app/issues/{number}"),
            "created_at": created_at(number), "updated_at": entry.updated_at,
        });
        let is_open = |by: &&u64| self.issues[by].state == "open";
        let open = entry.blocked_by.iter().filter(is_open).count();
        issue["issue_dependencies_summary"] =
            json!({ "blocked_by": open, "total_blocked_by": entry.blocked_by.len() });
        let parts = self.sub_issues(number);
        let completed = parts.iter().filter(|part| !is_open(part)).count();
        issue["sub_issues_summary"] = json!({ "total": parts.len(), "completed": completed });
        if pull.is_some() {
            issue["pull_request"] = json!({ "url": "x" });
        }
        issue
    }

    fn sub_issues(&self, number: u64) -> Vec<u64> {
        let parts = self.issues.iter().filter(|(_, entry)| entry.parent == Some(number));
        parts.map(|(part, _)| *part).collect()
    }

    /// `repo:`, `is:` and `label:` of a search.
    fn search(&self, request: &Request, base: &str) -> Answer {
        let query = request.query.get("q").cloned().unwrap_or_default();
        if !query.contains("repo:octo/app") || !query.contains("is:issue") {
            return invalid();
        }
        let labels: Vec<&str> =
            query.split_whitespace().filter_map(|word| word.strip_prefix("label:")).collect();
        let fits = |entry: &Entry| entry.state == "open" && labels.iter().all(|label| entry.has_label(label));
        let found = self.issues.iter().filter(|(_, entry)| fits(entry));
        let found: Vec<Value> = found.map(|(number, _)| self.github_issue(*number)).collect();
        let total = found.len();
        page(
            request,
            base,
            found,
            |found| json!({ "total_count": total, "incomplete_results": false, "items": found }),
        )
    }

    fn answer_issue(&mut self, request: &Request, base: &str, number: u64, parts: &[&str]) -> Answer {
        let note = self.note(request.body["body"].as_str().unwrap_or_default());
        let Some(entry) = self.entry_mut(number) else { return missing() };
        match (request.method.as_str(), parts) {
            ("GET", []) => Answer::new(200, self.github_issue(number)),
            ("GET", ["dependencies", "blocked_by"]) => {
                let blockers = entry.blocked_by.clone();
                let found = blockers.into_iter().map(|by| self.github_issue(by)).collect();
                page(request, base, found, |found| found)
            }
            ("GET", ["sub_issues"]) => {
                let found = self.sub_issues(number).into_iter().map(|part| self.github_issue(part)).collect();
                page(request, base, found, |found| found)
            }
            ("PATCH", []) => {
                entry.state = match request.body["state"].as_str() {
                    Some("open") => "open",
                    Some("closed") => "closed",
                    _ => return invalid(),
                };
                entry.updated_at = super::now();
                Answer::new(200, self.github_issue(number))
            }
            ("GET", ["comments"]) => {
                page(request, base, entry.comments.iter().map(comment).collect(), |found| found)
            }
            ("POST", ["comments"]) if note.body.is_empty() => invalid(),
            ("POST", ["comments"]) => {
                let id = note.id;
                entry.comments.push(note);
                entry.updated_at = super::now();
                Answer::new(201, json!({ "id": id }))
            }
            ("POST", ["labels"]) => match request.body["labels"].as_array() {
                Some(labels) => {
                    labels.iter().filter_map(Value::as_str).for_each(|label| entry.add_label(label));
                    Answer::new(200, json!([]))
                }
                None => invalid(),
            },
            ("DELETE", ["labels", label]) => match entry.remove_label(label) {
                true => Answer::new(200, json!([])),
                false => Answer::refused(404, "Label does not exist"),
            },
            _ => missing(),
        }
    }

    fn pull_json(&mut self, number: u64, base_url: &str, full: bool) -> Value {
        let mergeable = if full { self.mergeable(number) } else { None };
        let head = self.head_of(number).unwrap_or_default();
        let pull = &self.pulls[&number];
        let base_sha = self.commit_of(&pull.base);
        let mut shown = json!({
            "number": number, "id": 2_000_000 + number, "state": pull.entry.state, "title": pull.entry.title,
            "body": pull.entry.body, "draft": pull.draft, "labels": labels(&pull.entry),
            "user": user(BOT, true), "html_url": format!("{base_url}/octo/app/pull/{number}"),
            "updated_at": pull.entry.updated_at,
            "head": { "ref": pull.branch, "sha": head, "label": format!("octo:{}", pull.branch) },
            "base": { "ref": pull.base, "sha": base_sha, "label": format!("octo:{}", pull.base) },
            "merged_at": pull.merged.then(|| pull.entry.updated_at.clone()),
        });
        if full {
            shown["merged"] = json!(pull.merged);
            shown["mergeable"] = json!(mergeable);
        }
        shown
    }

    /// Everything of a repository but its issues.
    fn answer_pulls(&mut self, request: &Request, base: &str, parts: &[&str]) -> Answer {
        let number = parts.get(1).and_then(|number| number.parse::<u64>().ok()).unwrap_or(0);
        match (request.method.as_str(), parts) {
            ("GET", []) => Answer::new(
                200,
                json!({ "full_name": "octo/app", "default_branch": "main", "private": true }),
            ),
            ("GET", ["pulls"]) => self.list_pulls(request, base),
            ("POST", ["pulls"]) => self.create_pull(request, base),
            ("GET", ["commits", commit, "check-runs"]) => {
                let runs = self.check_runs(commit, base);
                let total = runs.len();
                page(request, base, runs, |runs| json!({ "total_count": total, "check_runs": runs }))
            }
            ("GET", ["commits", commit, "status"]) => {
                let commit = (*commit).to_owned();
                page(
                    request,
                    base,
                    Vec::new(),
                    |statuses| json!({ "state": "pending", "sha": commit, "total_count": 0, "statuses": statuses }),
                )
            }
            ("GET", ["actions", "jobs", id, "logs"]) => {
                match id.parse().ok().and_then(|id| self.check_log(id)) {
                    Some(log) => Answer::text(log),
                    None => missing(),
                }
            }
            ("DELETE", ["git", "refs", "heads", branch @ ..]) => {
                match self.delete_branch(&branch.join("/")) {
                    true => Answer::new(204, Value::Null),
                    false => Answer::refused(422, "Reference does not exist"),
                }
            }
            (_, ["pulls", _, ..]) if !self.pulls.contains_key(&number) => missing(),
            ("GET", ["pulls", _]) => Answer::new(200, self.pull_json(number, base, true)),
            ("PUT", ["pulls", _, "merge"]) => self.merge_github(request, number),
            ("GET", ["pulls", _, "reviews"]) => {
                page(request, base, reviews(&self.pulls[&number]), |reviews| reviews)
            }
            ("POST", ["pulls", _, "requested_reviewers"]) => Answer::new(201, json!({})),
            ("GET", ["pulls", _, "comments"]) => {
                let threads = self.pulls[&number].threads.iter();
                let comments = threads.flat_map(|thread| thread.comments.iter().map(comment));
                page(request, base, comments.collect(), |comments| comments)
            }
            ("POST", ["pulls", _, "comments", comment, "replies"]) => self.reply(request, number, comment),
            _ => missing(),
        }
    }

    fn check_runs(&self, commit: &str, base: &str) -> Vec<Value> {
        self.runs(commit)
            .map(|(id, run)| {
                json!({
                    "id": id, "name": run.name, "head_sha": run.commit, "status": run.status,
                    "conclusion": run.conclusion, "html_url": format!("{base}/octo/app/runs/{id}"),
                    "details_url": format!("https://github.com/octo/app/actions/runs/1/job/{id}"),
                    "output": { "title": null, "summary": null, "text": null, "annotations_count": 0 },
                    "app": { "slug": "github-actions" },
                })
            })
            .collect()
    }

    fn list_pulls(&mut self, request: &Request, base: &str) -> Answer {
        let head = request.query.get("head").map(|head| head.trim_start_matches("octo:").to_owned());
        let state = request.query.get("state").map_or("open", String::as_str).to_owned();
        let fits = |pull: &Pull| {
            (state == "all" || pull.entry.state == state)
                && head.as_ref().is_none_or(|head| pull.branch == *head)
        };
        let numbers: Vec<u64> =
            self.pulls.iter().filter(|(_, pull)| fits(pull)).map(|(number, _)| *number).collect();
        let found = numbers.into_iter().map(|number| self.pull_json(number, base, false)).collect();
        page(request, base, found, |found| found)
    }

    fn create_pull(&mut self, request: &Request, base_url: &str) -> Answer {
        let text = |name: &str| request.body[name].as_str().unwrap_or_default().to_owned();
        let (title, branch, base) = (text("title"), text("head"), text("base"));
        let refused = |message: String| {
            let errors = json!([{ "resource": "PullRequest", "code": "custom", "message": message }]);
            Answer::new(422, json!({ "message": "Validation Failed", "errors": errors, "status": "422" }))
        };
        match self.opening(&branch, &base) {
            Opening::Possible if !title.is_empty() => {}
            Opening::Possible | Opening::Invalid => return refused("head or base is invalid".to_owned()),
            Opening::Exists(_) => {
                return refused(format!("A pull request already exists for octo:{branch}."));
            }
            Opening::Empty => return refused(format!("No commits between {base} and {branch}")),
        }
        let draft = request.body["draft"] == true;
        let number = self.open_pull(&title, &text("body"), (&branch, &base), draft);
        Answer::new(201, self.pull_json(number, base_url, true))
    }

    fn merge_github(&mut self, request: &Request, number: u64) -> Answer {
        let head = self.head_of(number).unwrap_or_default();
        let pull = &self.pulls[&number];
        if pull.entry.state == "closed" || pull.draft {
            return Answer::refused(405, "Pull Request is not mergeable");
        }
        if request.body["sha"].as_str().is_some_and(|sha| sha != head) {
            return Answer::refused(409, "Head branch was modified. Review and try the merge again.");
        }
        let squash = match request.body["merge_method"].as_str() {
            Some("squash") => true,
            Some("merge") | None => false,
            Some(_) => return Answer::refused(405, "This merge method is not allowed on this repository"),
        };
        let message = format!("{} (#{number})", pull.entry.title);
        match self.merge_pull(number, squash, &message) {
            Some(commit) => Answer::new(
                200,
                json!({ "sha": commit, "merged": true, "message": "Pull Request successfully merged" }),
            ),
            None => Answer::refused(405, "Pull Request has merge conflicts"),
        }
    }

    fn reply(&mut self, request: &Request, number: u64, comment: &str) -> Answer {
        let note = self.note(request.body["body"].as_str().unwrap_or_default());
        let (id, first) = (note.id, comment.parse::<u64>().ok());
        let pull = self.pulls.get_mut(&number).expect("it was looked up");
        // Replies to replies are refused.
        let thread = pull.threads.iter_mut().find(|thread| first == Some(thread.comments[0].id));
        let Some(thread) = thread.filter(|_| !note.body.is_empty()) else { return missing() };
        thread.comments.push(note);
        pull.entry.updated_at = super::now();
        Answer::new(201, json!({ "id": id }))
    }
}

/// Reviews that say something: a remark on a line is a review without a text.
fn reviews(pull: &Pull) -> Vec<Value> {
    let review = |review: &super::pulls::Reviewed| {
        let verdict = match review.verdict {
            ReviewVerdict::Approved => "APPROVED",
            ReviewVerdict::ChangesRequested => "CHANGES_REQUESTED",
            ReviewVerdict::Commented => "COMMENTED",
        };
        json!({
            "id": review.note.id, "user": user(&review.note.author, review.note.is_bot), "state": verdict,
            "body": review.note.body, "submitted_at": review.note.at,
        })
    };
    pull.reviews.iter().map(review).collect()
}
