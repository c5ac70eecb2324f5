//! GitHub on loopback: issues, pull requests, checks, reviews and a git server, with pages, entity tags and limits. It is
//! stateful, and refuses what the real one refuses.

mod checks;
mod git;
pub(crate) mod graphql;
pub(crate) mod http;
mod pulls;

use http::{Answer, Request, read};
pub use pulls::ReviewRemark;

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};

/// Token that the simulator accepts.
pub const TOKEN: &str = "github_pat_simulated";
const REPOSITORY: &str = "/repos/octo/app";
/// Largest page that the API gives.
const MAX_PER_PAGE: usize = 100;

/// A repository `octo/app` with issues.
pub struct GitHubServer {
    pub url: String,
    state: Arc<Mutex<Repository>>,
}

#[derive(Default)]
pub struct Repository {
    issues: BTreeMap<u64, Entry>,
    /// Lines `METHOD path STATUS`.
    pub requests: Vec<String>,
    /// Answer to the next requests, instead of theirs.
    pub refusals: Vec<ScriptedRefusal>,
    next_comment: u64,
    /// Everything that happened, such as `issue 1 closed`.
    pub events: Vec<String>,
    pulls: BTreeMap<u64, pulls::Pull>,
    git: Option<git::Bare>,
    checks: checks::Checks,
    /// Most requests that change something, until [`GitHubServer::relax`]. The secondary limit refuses more.
    pub writes_left: Option<usize>,
}

#[derive(Debug, Clone)]
pub struct ScriptedRefusal {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub message: &'static str,
}

struct Entry {
    title: String,
    body: String,
    state: &'static str,
    labels: Vec<String>,
    comments: Vec<Value>,
    is_pull_request: bool,
}

impl GitHubServer {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("its address"));
        let state = Arc::new(Mutex::new(Repository::default()));
        let (shared, base) = (Arc::clone(&state), url.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (shared, base) = (Arc::clone(&shared), base.clone());
                // A client that goes away in the middle is its own affair.
                std::thread::spawn(move || drop(serve(&stream, &shared, &base)));
            }
        });
        Self { url, state }
    }

    pub fn repository(&self) -> MutexGuard<'_, Repository> {
        self.state.lock().expect("no test panicked with it")
    }

    pub fn issue(&self, number: u64, title: &str, labels: &[&str]) {
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        let title = title.to_owned();
        let body = String::new();
        let entry =
            Entry { title, body, state: "open", labels, comments: Vec::new(), is_pull_request: false };
        self.repository().issues.insert(number, entry);
    }

    /// Lines of `events` that contain a text.
    pub fn happened(&self, what: &str) -> usize {
        self.repository().events.iter().filter(|event| event.contains(what)).count()
    }

    pub fn pull_request(&self, number: u64) {
        self.issue(number, "a pull request", &[]);
        if let Some(entry) = self.repository().issues.get_mut(&number) {
            entry.is_pull_request = true;
        }
    }

    /// Number of comments of an issue, its labels and its state.
    pub fn look(&self, number: u64) -> (usize, Vec<String>, String) {
        let repository = self.repository();
        let entry = &repository.issues[&number];
        (entry.comments.len(), entry.labels.clone(), entry.state.to_owned())
    }
}

fn serve(stream: &TcpStream, state: &Arc<Mutex<Repository>>, base: &str) -> std::io::Result<()> {
    let Some(request) = read(stream)? else { return Ok(()) };
    if request.path.starts_with(git::PATH) {
        return git::serve(stream, state, &request);
    }
    let mut answer = {
        let mut repository = state.lock().expect("no test panicked with it");
        let answer = repository.answer(&request, base);
        repository.start_checks(state);
        repository.requests.push(format!("{} {} {}", request.method, request.path, answer.status));
        answer
    };
    let mut body = match (answer.status, answer.raw.take()) {
        (204 | 304, _) => String::new(),
        (_, Some(raw)) => String::from_utf8_lossy(&raw).into_owned(),
        (_, None) => answer.body.to_string(),
    };
    if answer.status == 200 && request.method == "GET" {
        let tag = format!(
            "W/\"{:x}\"",
            body.bytes().fold(7u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()))
        );
        if request.headers.get("if-none-match") == Some(&tag) {
            (answer.status, body) = (304, String::new());
            if let Some(last) = state.lock().expect("no test panicked with it").requests.last_mut() {
                *last = last.replace(" 200", " 304");
            }
        }
        answer.headers.push(("etag".to_owned(), tag));
    }
    let mut head =
        format!("HTTP/1.1 {} x\r\nconnection: close\r\ncontent-length: {}\r\n", answer.status, body.len());
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let mut stream = stream;
    stream.write_all(format!("{head}\r\n{body}").as_bytes())
}

/// The time, with the precision that GitHub has.
fn now() -> String {
    format!("{:.0}", jiff::Timestamp::now())
}

impl Repository {
    fn answer(&mut self, request: &Request, base: &str) -> Answer {
        if !self.refusals.is_empty() {
            let refusal = self.refusals.remove(0);
            let mut answer = Answer::refused(refusal.status, refusal.message);
            answer.headers =
                refusal.headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            return answer;
        }
        let header = |name: &str| request.headers.get(name).map(String::as_str);
        if header("authorization") != Some(&format!("Bearer {TOKEN}")) {
            return Answer::refused(401, "Bad credentials");
        }
        if header("user-agent").is_none_or(str::is_empty) {
            return Answer::refused(403, "Request forbidden by administrative rules.");
        }
        if header("accept") != Some("application/vnd.github+json") || header("x-github-api-version").is_none()
        {
            return Answer::refused(415, "Must accept 'application/vnd.github+json'");
        }
        if request.method != "GET" && self.writes_left == Some(0) {
            let mut answer = Answer::refused(403, "You have exceeded a secondary rate limit.");
            answer.headers.push(("retry-after".to_owned(), "1".to_owned()));
            self.writes_left = None;
            return answer;
        }
        if request.method != "GET" {
            self.writes_left = self.writes_left.map(|left| left - 1);
        }
        if request.path == "/graphql" {
            return graphql::answer(self, request);
        }
        if request.path == "/search/issues" {
            return self.search(request, base);
        }
        let Some(rest) = request.path.strip_prefix(REPOSITORY) else {
            return Answer::refused(404, "Not Found");
        };
        let Some(rest) = rest.strip_prefix("/issues") else { return self.answer_pulls(request, base, rest) };
        let parts: Vec<&str> = rest.split('/').skip(1).collect();
        if let ("GET", []) = (request.method.as_str(), &parts[..]) {
            let wanted = request.query.get("state").map_or("open", String::as_str);
            let found = self.issues.iter().filter(|(_, entry)| wanted == "all" || entry.state == wanted);
            let mut found: Vec<Value> = found.map(|(number, entry)| entry.json(*number)).collect();
            if request.query.get("direction").is_none_or(|direction| direction != "asc") {
                found.reverse();
            }
            return page(request, base, found, |found| found);
        }
        if let ("POST", []) = (request.method.as_str(), &parts[..]) {
            return self.create(request);
        }
        let number = parts.first().and_then(|number| number.parse().ok()).unwrap_or(0);
        self.next_comment += 1;
        let comment = self.next_comment;
        let Some(entry) = self.issues.get_mut(&number) else { return Answer::refused(404, "Not Found") };
        let before = entry.state;
        let answer = entry.answer(request, base, number, &parts[1..], comment);
        if before != entry.state {
            self.events.push(format!("issue {number} {}", entry.state));
        }
        if request.method != "GET"
            && let Some(pull) = self.pulls.get_mut(&number)
        {
            pull.updated_at = now();
        }
        answer
    }

    fn create(&mut self, request: &Request) -> Answer {
        let text = |name: &str| request.body[name].as_str().unwrap_or_default().to_owned();
        if text("title").is_empty() {
            return Answer::refused(422, "Validation Failed");
        }
        let number = self.issues.keys().last().copied().unwrap_or(0) + 1;
        let entry = Entry {
            title: text("title"),
            body: text("body"),
            state: "open",
            labels: Vec::new(),
            comments: Vec::new(),
            is_pull_request: false,
        };
        let shown = entry.json(number);
        self.issues.insert(number, entry);
        self.events.push(format!("issue {number} created"));
        Answer::new(201, shown)
    }

    /// `repo:`, `is:` and `label:` of a search.
    fn search(&self, request: &Request, base: &str) -> Answer {
        let query = request.query.get("q").cloned().unwrap_or_default();
        if !query.contains("repo:octo/app") || !query.contains("is:issue") {
            return Answer::refused(422, "Validation Failed");
        }
        let labels: Vec<&str> =
            query.split_whitespace().filter_map(|word| word.strip_prefix("label:")).collect();
        let fits = |entry: &Entry| {
            entry.state == "open"
                && !entry.is_pull_request
                && labels
                    .iter()
                    .all(|label| entry.labels.iter().any(|known| known.eq_ignore_ascii_case(label)))
        };
        let found = self.issues.iter().filter(|(_, entry)| fits(entry));
        let found: Vec<Value> = found.map(|(number, entry)| entry.json(*number)).collect();
        let total = found.len();
        page(
            request,
            base,
            found,
            |found| json!({ "total_count": total, "incomplete_results": false, "items": found }),
        )
    }
}

/// One page of a list, with the link to the next.
fn page(request: &Request, base: &str, all: Vec<Value>, wrapped: impl FnOnce(Value) -> Value) -> Answer {
    let number = |name: &str, default: usize| {
        request.query.get(name).and_then(|value| value.parse().ok()).unwrap_or(default).max(1)
    };
    let (per_page, page) = (number("per_page", 30).min(MAX_PER_PAGE), number("page", 1));
    let is_last = all.len() <= per_page * page;
    let part: Vec<Value> = all.into_iter().skip(per_page * (page - 1)).take(per_page).collect();
    let mut answer = Answer::new(200, wrapped(Value::Array(part)));
    if !is_last {
        let query: Vec<String> = request
            .query
            .iter()
            .filter(|(name, _)| *name != "page")
            .map(|(name, value)| {
                format!("{name}={}", value.replace(' ', "%20").replace(':', "%3A").replace('/', "%2F"))
            })
            .collect();
        let next = format!("<{base}{}?{}&page={}>; rel=\"next\"", request.path, query.join("&"), page + 1);
        answer.headers.push(("link".to_owned(), next));
    }
    answer
}

impl Entry {
    fn json(&self, number: u64) -> Value {
        let labels: Vec<Value> = self.labels.iter().map(|label| json!({ "name": label })).collect();
        let mut issue = json!({
            "number": number, "id": 1_000_000 + number, "title": self.title, "body": self.body, "state": self.state,
            "labels": labels, "assignee": null, "comments": self.comments.len(),
            "html_url": format!("https://github.com/octo/app/issues/{number}"),
            "created_at": format!("2026-01-01T00:{:02}:{:02}Z", number / 60 % 60, number % 60),
        });
        if self.is_pull_request {
            issue["pull_request"] = json!({ "url": "x" });
        }
        issue
    }

    fn answer(&mut self, request: &Request, base: &str, number: u64, parts: &[&str], comment: u64) -> Answer {
        match (request.method.as_str(), parts) {
            ("GET", []) => Answer::new(200, self.json(number)),
            ("PATCH", []) => match request.body["state"].as_str() {
                Some("open") => {
                    self.state = "open";
                    Answer::new(200, self.json(number))
                }
                Some("closed") => {
                    self.state = "closed";
                    Answer::new(200, self.json(number))
                }
                _ => Answer::refused(422, "Validation Failed"),
            },
            ("GET", ["comments"]) => page(request, base, self.comments.clone(), |found| found),
            ("POST", ["comments"]) => match request.body["body"].as_str().filter(|body| !body.is_empty()) {
                Some(body) => {
                    let user = json!({ "login": "octo-bot" });
                    let at = now();
                    self.comments
                        .push(json!({ "id": comment, "body": body, "user": user, "created_at": at }));
                    Answer::new(201, json!({ "id": comment }))
                }
                None => Answer::refused(422, "Validation Failed"),
            },
            ("POST", ["labels"]) => match request.body["labels"].as_array() {
                Some(labels) => {
                    for label in labels.iter().filter_map(Value::as_str) {
                        if !self.labels.iter().any(|known| known.eq_ignore_ascii_case(label)) {
                            self.labels.push(label.to_owned());
                        }
                    }
                    Answer::new(200, json!([]))
                }
                None => Answer::refused(422, "Validation Failed"),
            },
            ("DELETE", ["labels", label]) => {
                let before = self.labels.len();
                self.labels.retain(|known| !known.eq_ignore_ascii_case(label));
                match self.labels.len() < before {
                    true => Answer::new(200, json!([])),
                    false => Answer::refused(404, "Label does not exist"),
                }
            }
            _ => Answer::refused(404, "Not Found"),
        }
    }
}
