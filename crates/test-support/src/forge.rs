//! Forges on loopback: GitHub, GitLab and Gitea, with issues, pull requests, checks, reviews and a git server. One stateful
//! repository is behind all of them; each dialect has the paths, shapes, pages and refusals of the real one.

mod checks;
mod git;
mod gitea;
pub mod github;
mod gitlab;
pub(crate) mod http;
mod pulls;

use http::{Answer, Request, read};
pub use pulls::{ReviewRemark, ReviewVerdict};

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::Value;

/// Token that the simulators accept.
pub const TOKEN: &str = "token_simulated";
/// Name of the user that the token belongs to.
const BOT: &str = "octo-bot";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    GitHub,
    GitLab,
    Gitea,
}

impl Dialect {
    pub const ALL: [Dialect; 3] = [Dialect::GitHub, Dialect::GitLab, Dialect::Gitea];

    /// Name of the tracker in a workflow.
    pub fn kind(self) -> &'static str {
        match self {
            Dialect::GitHub => "github",
            Dialect::GitLab => "gitlab",
            Dialect::Gitea => "gitea",
        }
    }
}

/// A repository `octo/app` with issues.
pub struct ForgeServer {
    pub url: String,
    pub dialect: Dialect,
    state: Arc<Mutex<Repository>>,
}

pub struct Repository {
    dialect: Dialect,
    issues: BTreeMap<u64, Entry>,
    /// Lines `METHOD path STATUS`.
    pub requests: Vec<String>,
    /// Answer to the next requests, instead of theirs.
    pub refusals: Vec<ScriptedRefusal>,
    next_id: u64,
    /// Everything that happened, such as `issue 1 closed`.
    pub events: Vec<String>,
    pulls: BTreeMap<u64, pulls::Pull>,
    /// Labels of the repository, where the API knows them by number.
    labels: Vec<String>,
    git: Option<git::Bare>,
    checks: checks::Checks,
    /// Most requests that change something. One more is refused with a limit, and then there is none.
    pub writes_left: Option<usize>,
    /// The project of GitHub that has the issues, if there is one.
    board: Option<github::Board>,
    /// The GitHub App of the installation, if there is one.
    pub app: Option<github::InstalledApp>,
    /// Whether the server is too old to answer and resolve threads.
    pub is_old: bool,
}

#[derive(Debug, Clone)]
pub struct ScriptedRefusal {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub message: &'static str,
}

/// An issue, or what a pull request has in common with one.
#[derive(Debug, Clone)]
struct Entry {
    title: String,
    body: String,
    state: &'static str,
    labels: Vec<String>,
    comments: Vec<Note>,
    blocked_by: Vec<u64>,
    /// Issue that it is a part of.
    parent: Option<u64>,
    updated_at: String,
}

#[derive(Debug, Clone)]
struct Note {
    id: u64,
    author: String,
    is_bot: bool,
    body: String,
    at: String,
}

impl Entry {
    fn new(title: &str, body: &str, labels: Vec<String>) -> Self {
        Self {
            title: title.to_owned(),
            body: body.to_owned(),
            state: "open",
            labels,
            comments: Vec::new(),
            blocked_by: Vec::new(),
            parent: None,
            updated_at: now(),
        }
    }

    fn has_label(&self, label: &str) -> bool {
        self.labels.iter().any(|known| known.eq_ignore_ascii_case(label))
    }

    fn add_label(&mut self, label: &str) {
        if !self.has_label(label) {
            self.labels.push(label.to_owned());
        }
        self.updated_at = now();
    }

    /// Whether it had the label.
    fn remove_label(&mut self, label: &str) -> bool {
        let before = self.labels.len();
        self.labels.retain(|known| !known.eq_ignore_ascii_case(label));
        self.updated_at = now();
        self.labels.len() < before
    }
}

impl ForgeServer {
    pub fn start(dialect: Dialect) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("its address"));
        let state = Arc::new(Mutex::new(Repository::new(dialect)));
        let (shared, base) = (Arc::clone(&state), url.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (shared, base) = (Arc::clone(&shared), base.clone());
                // A client that goes away in the middle is its own affair.
                std::thread::spawn(move || drop(serve(&stream, &shared, &base)));
            }
        });
        Self { url, dialect, state }
    }

    pub fn repository(&self) -> MutexGuard<'_, Repository> {
        self.state.lock().expect("no test panicked with it")
    }

    pub fn issue(&self, number: u64, title: &str, labels: &[&str]) {
        let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
        let mut repository = self.repository();
        for label in &labels {
            repository.label_id(label);
        }
        repository.issues.insert(number, Entry::new(title, "", labels));
    }

    /// One issue has to be finished before another.
    pub fn block(&self, blocked: u64, by: u64) {
        let mut repository = self.repository();
        let entry = repository.issues.get_mut(&blocked).expect("the issue");
        entry.blocked_by.push(by);
        entry.updated_at = now();
    }

    /// One issue is a part of another.
    pub fn sub_issue(&self, parent: u64, of: u64) {
        self.repository().issues.get_mut(&of).expect("the issue").parent = Some(parent);
    }

    /// Lines of `events` that contain a text.
    pub fn happened(&self, what: &str) -> usize {
        self.repository().events.iter().filter(|event| event.contains(what)).count()
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
    let (mut answer, dialect) = {
        let mut repository = state.lock().expect("no test panicked with it");
        let answer = repository.answer(&request, base);
        repository.start_checks(state);
        repository.requests.push(format!("{} {} {}", request.method, request.path, answer.status));
        (answer, repository.dialect)
    };
    let mut body = match (answer.status, answer.raw.take()) {
        (204 | 304, _) => String::new(),
        (_, Some(raw)) => String::from_utf8_lossy(&raw).into_owned(),
        (_, None) => answer.body.to_string(),
    };
    if answer.status == 200 && request.method == "GET" && dialect != Dialect::Gitea {
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

/// The time, with the precision that forges have.
fn now() -> String {
    format!("{:.0}", jiff::Timestamp::now())
}

/// Date at which an issue was created, in the order of the numbers.
fn created_at(number: u64) -> String {
    format!("2026-01-01T{:02}:{:02}:{:02}Z", number / 3600 % 24, number / 60 % 60, number % 60)
}

impl Repository {
    fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            issues: BTreeMap::new(),
            requests: Vec::new(),
            refusals: Vec::new(),
            next_id: 0,
            events: Vec::new(),
            pulls: BTreeMap::new(),
            labels: Vec::new(),
            git: None,
            checks: checks::Checks::default(),
            writes_left: None,
            board: None,
            app: None,
            is_old: false,
        }
    }

    fn answer(&mut self, request: &Request, base: &str) -> Answer {
        if !self.refusals.is_empty() {
            let refusal = self.refusals.remove(0);
            let mut answer = Answer::refused(refusal.status, refusal.message);
            answer.headers =
                refusal.headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            return answer;
        }
        if let Some(refused) = match self.dialect {
            Dialect::GitHub => self.unauthorized_github(request),
            Dialect::GitLab => gitlab::unauthorized(request),
            Dialect::Gitea => gitea::unauthorized(request),
        } {
            return refused;
        }
        if request.method != "GET" && self.writes_left == Some(0) {
            let (status, words) = match self.dialect {
                Dialect::GitHub => (403, "You have exceeded a secondary rate limit."),
                Dialect::GitLab | Dialect::Gitea => (429, "Retry later"),
            };
            let mut answer = Answer::refused(status, words);
            answer.headers.push(("retry-after".to_owned(), "1".to_owned()));
            self.writes_left = None;
            return answer;
        }
        if request.method != "GET" {
            self.writes_left = self.writes_left.map(|left| left - 1);
        }
        let before: Vec<(u64, &'static str)> =
            self.issues.iter().map(|(number, entry)| (*number, entry.state)).collect();
        let answer = match self.dialect {
            Dialect::GitHub => self.answer_github(request, base),
            Dialect::GitLab => self.answer_gitlab(request, base),
            Dialect::Gitea => self.answer_gitea(request, base),
        };
        for (number, state) in before {
            let entry = &self.issues[&number];
            if entry.state != state {
                self.events.push(format!("issue {number} {}", entry.state));
            }
        }
        answer
    }

    fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// Number of the next issue or pull request. They share their numbers, except on GitLab.
    fn next_number(&self, of_pull: bool) -> u64 {
        let (issue, pull) = (self.issues.keys().last().copied(), self.pulls.keys().last().copied());
        let last = match (self.dialect, of_pull) {
            (Dialect::GitLab, true) => pull,
            (Dialect::GitLab, false) => issue,
            (Dialect::GitHub | Dialect::Gitea, _) => issue.max(pull),
        };
        last.unwrap_or(0) + 1
    }

    fn create_issue(&mut self, title: &str, body: &str) -> u64 {
        let number = self.next_number(false);
        self.issues.insert(number, Entry::new(title, body, Vec::new()));
        self.events.push(format!("issue {number} created"));
        number
    }

    /// The issue of a number or, where they share their numbers, the pull request.
    fn entry_mut(&mut self, number: u64) -> Option<&mut Entry> {
        let is_shared = self.dialect != Dialect::GitLab;
        let pull = self.pulls.get_mut(&number).filter(|_| is_shared).map(|pull| &mut pull.entry);
        pull.or_else(|| self.issues.get_mut(&number))
    }

    fn note(&mut self, body: &str) -> Note {
        Note { id: self.new_id(), author: BOT.to_owned(), is_bot: true, body: body.to_owned(), at: now() }
    }

    /// Number of a label, which is created if it is missing.
    fn label_id(&mut self, label: &str) -> u64 {
        let known = self.labels.iter().position(|known| known.eq_ignore_ascii_case(label));
        let at = known.unwrap_or_else(|| {
            self.labels.push(label.to_owned());
            self.labels.len() - 1
        });
        at as u64 + 1
    }
}

/// One page of a list, with the link to the next.
fn page(request: &Request, base: &str, all: Vec<Value>, wrapped: impl FnOnce(Value) -> Value) -> Answer {
    pages(request, base, all, ("per_page", 100), wrapped)
}

/// A page whose size is the parameter `size.0`, and at most `size.1`.
fn pages(
    request: &Request,
    base: &str,
    all: Vec<Value>,
    size: (&str, usize),
    wrapped: impl FnOnce(Value) -> Value,
) -> Answer {
    let number = |name: &str, default: usize| {
        request.query.get(name).and_then(|value| value.parse().ok()).unwrap_or(default).max(1)
    };
    let (per_page, page) = (number(size.0, 30).min(size.1), number("page", 1));
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
        let path = request.target.split('?').next().unwrap_or_default();
        let next = format!("<{base}{path}?{}&page={}>; rel=\"next\"", query.join("&"), page + 1);
        answer.headers.push(("link".to_owned(), next));
    }
    answer
}
