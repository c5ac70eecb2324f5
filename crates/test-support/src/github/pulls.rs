//! Pull requests of the simulated GitHub, with reviews and merges.

use serde_json::{Value, json};

use super::http::{Answer, Request};
use super::{Entry, GitHubServer, Repository, now, page};

pub(super) struct Pull {
    pub(super) branch: String,
    pub(super) base: String,
    body: String,
    state: &'static str,
    merged: bool,
    /// Head when it was closed.
    last_head: String,
    draft: bool,
    pub(super) updated_at: String,
    /// Head for which it was asked whether it can be merged: the first answer is that this is not known yet.
    computed: Option<String>,
    pub(super) threads: Vec<ReviewThread>,
    reviews: Vec<Value>,
}

pub(super) struct ReviewThread {
    pub(super) id: String,
    pub(super) path: String,
    pub(super) line: u64,
    pub(super) resolved: bool,
    /// Commit that the lines are of.
    commit: String,
    pub(super) comments: Vec<Value>,
}

/// A remark of a reviewer on a line.
pub struct ReviewRemark<'a> {
    pub author: &'a str,
    pub is_bot: bool,
    pub file: &'a str,
    pub line: u64,
    pub body: &'a str,
}

fn user(login: &str, is_bot: bool) -> Value {
    json!({ "login": login, "type": if is_bot { "Bot" } else { "User" } })
}

impl GitHubServer {
    /// Numbers of all pull requests that were ever opened.
    pub fn pulls(&self) -> Vec<u64> {
        self.repository().pulls.keys().copied().collect()
    }

    /// Somebody remarks something about a line.
    pub fn remark(&self, number: u64, remark: &ReviewRemark<'_>) {
        let mut repository = self.repository();
        let head = repository.pulls.get(&number).and_then(|pull| repository.open_head(pull));
        repository.next_comment += 1;
        let id = repository.next_comment;
        let author = json!({
            "__typename": if remark.is_bot { "Bot" } else { "User" }, "login": remark.author,
        });
        let comment = json!({
            "__typename": "PullRequestReviewComment", "databaseId": id, "id": format!("PRRC_{id}"),
            "body": remark.body, "createdAt": now(), "author": author,
        });
        let pull = repository.pulls.get_mut(&number).expect("the pull request");
        pull.threads.push(ReviewThread {
            id: format!("PRRT_{id}"),
            path: remark.file.to_owned(),
            line: remark.line,
            resolved: false,
            commit: head.unwrap_or_default(),
            comments: vec![comment],
        });
        pull.updated_at = now();
        repository.events.push(format!("pull {number} remarked"));
    }

    /// Somebody reviews: `APPROVED`, `CHANGES_REQUESTED` or `COMMENTED`.
    pub fn review(&self, number: u64, author: &str, verdict: &str, body: &str) {
        let mut repository = self.repository();
        repository.next_comment += 1;
        let id = repository.next_comment;
        let pull = repository.pulls.get_mut(&number).expect("the pull request");
        pull.reviews.push(json!({
            "id": id, "user": user(author, false), "state": verdict, "body": body, "submitted_at": now(),
        }));
        pull.updated_at = now();
    }

    /// Bodies of the comments of each thread, with whether it is resolved.
    pub fn threads(&self, number: u64) -> Vec<(bool, Vec<String>)> {
        let repository = self.repository();
        let body = |comment: &Value| comment["body"].as_str().unwrap_or_default().to_owned();
        let threads = repository.pulls[&number].threads.iter();
        threads.map(|thread| (thread.resolved, thread.comments.iter().map(body).collect())).collect()
    }

    /// Whether a pull request is merged, and its state.
    pub fn pull_state(&self, number: u64) -> (bool, &'static str) {
        let repository = self.repository();
        let pull = &repository.pulls[&number];
        (pull.merged, pull.state)
    }

    /// Branch of a pull request.
    pub fn branch_of(&self, number: u64) -> String {
        self.repository().pulls[&number].branch.clone()
    }

    /// Somebody closes a pull request without merging it.
    pub fn close_pull(&self, number: u64) {
        let mut repository = self.repository();
        let head = repository.head_of(number).unwrap_or_default();
        let pull = repository.pulls.get_mut(&number).expect("the pull request");
        (pull.state, pull.last_head, pull.updated_at) = ("closed", head, now());
    }
}

impl Repository {
    pub(super) fn open_head(&self, pull: &Pull) -> Option<String> {
        if pull.state == "closed" {
            return None;
        }
        self.git.as_ref()?.commit_of(&pull.branch)
    }

    fn head_of(&self, number: u64) -> Option<String> {
        let pull = self.pulls.get(&number)?;
        self.open_head(pull).or_else(|| Some(pull.last_head.clone()))
    }

    pub(super) fn is_outdated(&self, pull: &Pull, thread: &ReviewThread) -> bool {
        let Some((bare, head)) = self.git.as_ref().zip(self.open_head(pull)) else { return false };
        let line = |commit: &str| {
            let text = bare.git(&["show", &format!("{commit}:{}", thread.path)])?;
            text.lines().nth((thread.line as usize).saturating_sub(1)).map(str::to_owned)
        };
        line(&head) != line(&thread.commit)
    }

    /// Whether a pull request can be merged. GitHub finds that out after the first question.
    fn mergeable(&mut self, number: u64) -> Value {
        let Some(head) = self.head_of(number) else { return Value::Null };
        let Some(pull) = self.pulls.get_mut(&number) else { return Value::Null };
        let base = pull.base.clone();
        let Some(bare) = &self.git else { return Value::Null };
        let key = format!("{head} {}", bare.commit_of(&base).unwrap_or_default());
        if pull.computed.as_ref() != Some(&key) {
            pull.computed = Some(key);
            return Value::Null;
        }
        json!(bare.merged_tree(&base, &head).is_some())
    }

    fn pull_json(&mut self, number: u64, base_url: &str, full: bool) -> Value {
        let mergeable = if full { self.mergeable(number) } else { Value::Null };
        let head = self.head_of(number).unwrap_or_default();
        let (pull, entry) = (&self.pulls[&number], &self.issues[&number]);
        let labels: Vec<Value> = entry.labels.iter().map(|label| json!({ "name": label })).collect();
        let base_sha = self.git.as_ref().and_then(|bare| bare.commit_of(&pull.base));
        let mut shown = json!({
            "number": number, "id": 2_000_000 + number, "state": pull.state, "title": entry.title,
            "body": pull.body, "draft": pull.draft, "labels": labels, "user": user("octo-bot", true),
            "html_url": format!("{base_url}/octo/app/pull/{number}"), "updated_at": pull.updated_at,
            "head": { "ref": pull.branch, "sha": head, "label": format!("octo:{}", pull.branch) },
            "base": { "ref": pull.base, "sha": base_sha, "label": format!("octo:{}", pull.base) },
            "merged_at": pull.merged.then(|| pull.updated_at.clone()),
        });
        if full {
            shown["merged"] = json!(pull.merged);
            shown["mergeable"] = mergeable;
        }
        shown
    }

    /// Everything of a repository but its issues.
    pub(super) fn answer_pulls(&mut self, request: &Request, base: &str, rest: &str) -> Answer {
        let parts: Vec<&str> = rest.split('/').skip(1).collect();
        let number = parts.get(1).and_then(|number| number.parse::<u64>().ok()).unwrap_or(0);
        match (request.method.as_str(), &parts[..]) {
            ("GET", []) => Answer::new(
                200,
                json!({ "full_name": "octo/app", "default_branch": "main", "private": true }),
            ),
            ("GET", ["pulls"]) => self.list(request, base),
            ("POST", ["pulls"]) => self.open(request, base),
            ("GET", ["commits", commit, "check-runs"]) => {
                let (commit, runs) = ((*commit).to_owned(), self.check_runs(commit, base));
                let total = runs.len();
                let _ = commit;
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
                    Some(log) => {
                        let mut answer = Answer::new(200, Value::Null);
                        answer.raw = Some(log.as_bytes().to_vec());
                        answer
                    }
                    None => Answer::refused(404, "Not Found"),
                }
            }
            ("DELETE", ["git", "refs", "heads", branch @ ..]) => {
                let branch = branch.join("/");
                let deleted = self.git.as_ref().filter(|bare| bare.commit_of(&branch).is_some());
                match deleted
                    .and_then(|bare| bare.git(&["update-ref", "-d", &format!("refs/heads/{branch}")]))
                {
                    Some(_) => Answer::new(204, Value::Null),
                    None => Answer::refused(422, "Reference does not exist"),
                }
            }
            (_, ["pulls", _, ..]) if !self.pulls.contains_key(&number) => Answer::refused(404, "Not Found"),
            ("GET", ["pulls", _]) => Answer::new(200, self.pull_json(number, base, true)),
            ("PUT", ["pulls", _, "merge"]) => self.merge(request, number),
            ("GET", ["pulls", _, "reviews"]) => {
                page(request, base, self.pulls[&number].reviews.clone(), |reviews| reviews)
            }
            ("POST", ["pulls", _, "requested_reviewers"]) => Answer::new(201, json!({})),
            ("GET", ["pulls", _, "comments"]) => {
                let threads = self.pulls[&number].threads.iter();
                let comments = threads
                    .flat_map(|thread| &thread.comments)
                    .map(|comment| json!({ "id": comment["databaseId"], "body": comment["body"] }));
                page(request, base, comments.collect(), |comments| comments)
            }
            ("POST", ["pulls", _, "comments", comment, "replies"]) => self.reply(request, number, comment),
            _ => Answer::refused(404, "Not Found"),
        }
    }

    fn list(&mut self, request: &Request, base: &str) -> Answer {
        let head = request.query.get("head").map(|head| head.trim_start_matches("octo:").to_owned());
        let state = request.query.get("state").map_or("open", String::as_str).to_owned();
        let fits = |pull: &Pull| {
            (state == "all" || pull.state == state) && head.as_ref().is_none_or(|head| pull.branch == *head)
        };
        let numbers: Vec<u64> =
            self.pulls.iter().filter(|(_, pull)| fits(pull)).map(|(number, _)| *number).collect();
        let found = numbers.into_iter().map(|number| self.pull_json(number, base, false)).collect();
        page(request, base, found, |found| found)
    }

    fn open(&mut self, request: &Request, base_url: &str) -> Answer {
        let text = |name: &str| request.body[name].as_str().unwrap_or_default().to_owned();
        let (title, branch, base) = (text("title"), text("head"), text("base"));
        let refused = |message: String| {
            let errors = json!([{ "resource": "PullRequest", "code": "custom", "message": message }]);
            Answer::new(422, json!({ "message": "Validation Failed", "errors": errors, "status": "422" }))
        };
        let commits = self.git.as_ref().map(|bare| (bare.commit_of(&branch), bare.commit_of(&base)));
        let (Some((Some(head), Some(_))), false) = (commits, title.is_empty()) else {
            return refused("head or base is invalid".to_owned());
        };
        if self.pulls.values().any(|pull| pull.branch == branch && pull.state == "open") {
            return refused(format!("A pull request already exists for octo:{branch}."));
        }
        let range = format!("refs/heads/{base}..{head}");
        let count = self.git.as_ref().and_then(|bare| bare.git(&["rev-list", "--count", &range]));
        if count.as_deref() == Some("0") {
            return refused(format!("No commits between {base} and {branch}"));
        }
        let number = self.issues.keys().last().copied().unwrap_or(0) + 1;
        self.issues.insert(
            number,
            Entry {
                title,
                body: String::new(),
                state: "open",
                labels: Vec::new(),
                comments: Vec::new(),
                is_pull_request: true,
            },
        );
        self.pulls.insert(
            number,
            Pull {
                branch,
                base,
                body: text("body"),
                state: "open",
                merged: false,
                last_head: String::new(),
                draft: request.body["draft"] == true,
                updated_at: now(),
                computed: None,
                threads: Vec::new(),
                reviews: Vec::new(),
            },
        );
        self.events.push(format!("pull {number} opened"));
        Answer::new(201, self.pull_json(number, base_url, true))
    }

    fn merge(&mut self, request: &Request, number: u64) -> Answer {
        let head = self.head_of(number).unwrap_or_default();
        let pull = &self.pulls[&number];
        if pull.state == "closed" || pull.draft {
            return Answer::refused(405, "Pull Request is not mergeable");
        }
        if request.body["sha"].as_str().is_some_and(|sha| sha != head) {
            return Answer::refused(409, "Head branch was modified. Review and try the merge again.");
        }
        let (Some(bare), base) = (self.git.as_ref(), pull.base.clone()) else {
            return Answer::refused(405, "Pull Request is not mergeable");
        };
        let base_commit = bare.commit_of(&base).unwrap_or_default();
        let Some(tree) = bare.merged_tree(&base, &head) else {
            return Answer::refused(405, "Pull Request has merge conflicts");
        };
        let message = format!("{} (#{number})", self.issues[&number].title);
        let mut args = vec!["commit-tree", &tree, "-p", &base_commit, "-m", &message];
        match request.body["merge_method"].as_str() {
            Some("squash") => {}
            Some("merge") | None => args.extend(["-p", &head]),
            Some(_) => return Answer::refused(405, "This merge method is not allowed on this repository"),
        }
        let commit = bare.git(&args).expect("a commit");
        bare.git(&["update-ref", &format!("refs/heads/{base}"), &commit]).expect("a new base");
        let closes = closed_by(&self.pulls[&number].body);
        let pull = self.pulls.get_mut(&number).expect("the pull request");
        (pull.state, pull.merged, pull.last_head, pull.updated_at) = ("closed", true, head, now());
        self.events.push(format!("pull {number} merged"));
        for issue in closes {
            if let Some(entry) = self.issues.get_mut(&issue).filter(|entry| entry.state == "open") {
                entry.state = "closed";
                self.events.push(format!("issue {issue} closed"));
            }
        }
        Answer::new(
            200,
            json!({ "sha": commit, "merged": true, "message": "Pull Request successfully merged" }),
        )
    }

    fn reply(&mut self, request: &Request, number: u64, comment: &str) -> Answer {
        let body = request.body["body"].as_str().unwrap_or_default().to_owned();
        self.next_comment += 1;
        let id = self.next_comment;
        let pull = self.pulls.get_mut(&number).expect("it was looked up");
        let first =
            |thread: &&mut ReviewThread| thread.comments[0]["databaseId"].as_u64() == comment.parse().ok();
        // Replies to replies are refused.
        let Some(thread) = pull.threads.iter_mut().find(first).filter(|_| !body.is_empty()) else {
            return Answer::refused(404, "Not Found");
        };
        let author = json!({ "__typename": "Bot", "login": "octo-bot" });
        thread.comments.push(json!({
            "__typename": "PullRequestReviewComment", "databaseId": id, "id": format!("PRRC_{id}"),
            "body": body, "createdAt": now(), "author": author,
        }));
        pull.updated_at = now();
        Answer::new(201, json!({ "id": id }))
    }
}

/// Issues that a text closes when it is merged.
fn closed_by(body: &str) -> Vec<u64> {
    let words: Vec<String> = body.split_whitespace().map(str::to_lowercase).collect();
    let is_closing = |word: &str| {
        ["close", "closes", "closed", "fix", "fixes", "fixed", "resolve", "resolves", "resolved"]
            .contains(&word.trim_end_matches(':'))
    };
    let pairs = words.windows(2).filter(|pair| is_closing(&pair[0]));
    pairs.filter_map(|pair| pair[1].strip_prefix('#')?.trim_end_matches(['.', ',']).parse().ok()).collect()
}
