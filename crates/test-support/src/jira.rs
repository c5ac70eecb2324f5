//! Jira on loopback, Cloud and Data Center: searches, transitions, comments with properties and labels. It refuses what the real
//! one refuses.

use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};

use crate::forge::http::{Answer, Request, read, write};

/// Credentials that the simulator accepts: the token of Data Center, and `email:token` of Cloud in Base64.
pub const TOKEN: &str = "pat-simulated";
pub const KEY: &str = "ada@example.com:simulated";
const BASIC: &str = "Basic YWRhQGV4YW1wbGUuY29tOnNpbXVsYXRlZA==";
/// Largest page.
const MAX_RESULTS: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edition {
    Cloud,
    DataCenter,
}

/// A project `PROJ`.
pub struct JiraServer {
    pub url: String,
    state: Arc<Mutex<Project>>,
}

pub struct Project {
    edition: Edition,
    issues: BTreeMap<u64, Entry>,
    /// Lines `METHOD path STATUS`.
    pub requests: Vec<String>,
    next: u64,
    url: String,
}

struct Entry {
    summary: String,
    description: Value,
    status: String,
    priority: Option<u32>,
    labels: Vec<String>,
    blocked_by: Vec<u64>,
    comments: Vec<Value>,
}

/// States that each state can be left for.
const WORKFLOW: &[&str] = &["To Do", "In Progress", "Review", "Done"];

impl JiraServer {
    pub fn start(edition: Edition) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("its address"));
        let project =
            Project { edition, issues: BTreeMap::new(), requests: Vec::new(), next: 1000, url: url.clone() };
        let state = Arc::new(Mutex::new(project));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&shared);
                // A client that goes away in the middle is its own affair.
                std::thread::spawn(move || drop(serve(&stream, &shared)));
            }
        });
        Self { url, state }
    }

    pub fn project(&self) -> MutexGuard<'_, Project> {
        self.state.lock().expect("no test panicked with it")
    }

    pub fn issue(&self, id: u64, summary: &str, status: &str, labels: &[&str], priority: Option<u32>) {
        let entry = Entry {
            summary: summary.to_owned(),
            description: Value::Null,
            status: status.to_owned(),
            priority,
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
            blocked_by: Vec::new(),
            comments: Vec::new(),
        };
        self.project().issues.insert(id, entry);
    }

    /// One issue has to be finished before another.
    pub fn block(&self, blocked: u64, by: u64) {
        self.project().issues.get_mut(&blocked).expect("the issue").blocked_by.push(by);
    }
}

fn serve(stream: &TcpStream, state: &Mutex<Project>) -> std::io::Result<()> {
    let Some(request) = read(stream)? else { return Ok(()) };
    let answer = {
        let mut project = state.lock().expect("no test panicked with it");
        let answer = project.answer(&request);
        project.requests.push(format!("{} {} {}", request.method, request.path, answer.status));
        answer
    };
    write(stream, &answer)
}

fn refused(status: u16, message: &str) -> Answer {
    Answer::new(status, json!({ "errorMessages": [message], "errors": {} }))
}

/// Names in a list of Jira's query language, such as `("a", "b")`.
fn names(jql: &str, after: &str) -> Option<Vec<String>> {
    let (_, rest) = jql.split_once(after)?;
    let list = rest.trim_start().strip_prefix('(')?.split(')').next()?;
    Some(list.split(',').map(|name| name.trim().trim_matches('"').to_owned()).collect())
}

impl Project {
    fn answer(&mut self, request: &Request) -> Answer {
        let authorization = request.headers.get("authorization").map(String::as_str).unwrap_or_default();
        let (wanted, prefix) = match self.edition {
            Edition::Cloud => (BASIC.to_owned(), "/rest/api/3"),
            Edition::DataCenter => (format!("Bearer {TOKEN}"), "/rest/api/2"),
        };
        if authorization != wanted {
            return refused(401, "Client must be authenticated to access this resource.");
        }
        let Some(rest) = request.path.strip_prefix(prefix) else { return refused(404, "null for uri") };
        let parts: Vec<&str> = rest.split('/').skip(1).collect();
        match (request.method.as_str(), &parts[..], self.edition) {
            ("GET", ["search", "jql"], Edition::Cloud) | ("GET", ["search"], Edition::DataCenter) => {
                self.search(request)
            }
            // The old search is gone from Cloud.
            ("GET", ["search"], Edition::Cloud) => refused(410, "The requested API has been removed."),
            ("POST", ["issue"], _) => self.create(request),
            (_, ["issue", id, more @ ..], _) => {
                let id = id.parse().unwrap_or(0);
                match self.issues.contains_key(&id) {
                    true => self.of_issue(request, id, more),
                    false => refused(404, "Issue does not exist or you do not have permission to see it."),
                }
            }
            _ => refused(404, "null for uri"),
        }
    }

    fn search(&self, request: &Request) -> Answer {
        let text = |name: &str| request.query.get(name).cloned().unwrap_or_default();
        let jql = text("jql");
        if !jql.contains("project = \"PROJ\"") {
            return refused(400, "Unbounded JQL queries are not allowed here.");
        }
        let (statuses, ids) = (names(&jql, "status IN"), names(&jql, "id in"));
        let label = jql.split_once("labels = \"").map(|(_, rest)| rest.split('"').next().unwrap_or_default());
        if let Some(missing) =
            ids.iter().flatten().find(|id| !self.issues.contains_key(&id.parse().unwrap_or(0)))
        {
            return refused(400, &format!("An issue with key '{missing}' does not exist for field 'id'."));
        }
        let fits = |(id, entry): &(&u64, &Entry)| {
            let has = |list: &Option<Vec<String>>, value: &str| {
                list.as_ref().is_none_or(|list| list.iter().any(|name| name.eq_ignore_ascii_case(value)))
            };
            has(&statuses, &entry.status)
                && has(&ids, &id.to_string())
                && label.is_none_or(|label| entry.labels.iter().any(|known| known == label))
        };
        let found: Vec<Value> = self.issues.iter().filter(fits).map(|(id, _)| self.shown(*id)).collect();
        let most = text("maxResults").parse().unwrap_or(50).min(MAX_RESULTS);
        let start_name = if self.edition == Edition::Cloud { "nextPageToken" } else { "startAt" };
        let start: usize = text(start_name).parse().unwrap_or(0);
        let total = found.len();
        let part: Vec<Value> = found.into_iter().skip(start).take(most).collect();
        let end = start + part.len();
        let mut page = json!({ "issues": part });
        match self.edition {
            Edition::Cloud => {
                page["isLast"] = json!(end >= total);
                if end < total {
                    page["nextPageToken"] = json!(end.to_string());
                }
            }
            Edition::DataCenter => {
                (page["startAt"], page["total"], page["maxResults"]) =
                    (json!(start), json!(total), json!(most));
            }
        }
        Answer::new(200, page)
    }

    fn shown(&self, id: u64) -> Value {
        let entry = &self.issues[&id];
        let links = entry.blocked_by.iter().filter_map(|other| {
            let status = json!({ "name": self.issues.get(other)?.status });
            Some(json!({
                "type": { "name": "Blocks", "inward": "is blocked by", "outward": "blocks" },
                "inwardIssue": { "id": other.to_string(), "key": format!("PROJ-{other}"), "fields": { "status": status } },
            }))
        });
        json!({
            "id": id.to_string(), "key": format!("PROJ-{id}"), "self": format!("{}/rest/api/3/issue/{id}", self.url),
            "fields": {
                "summary": entry.summary, "description": entry.description, "status": { "name": entry.status },
                "priority": entry.priority.map(|id| json!({ "id": id.to_string(), "name": "P" })),
                "labels": entry.labels, "assignee": null, "issuetype": { "name": "Task" },
                "issuelinks": links.collect::<Vec<_>>(), "created": "2026-01-01T00:00:00.000+0000",
                "updated": "2026-01-01T00:00:00.000+0000",
            },
        })
    }

    /// Whether a text has the form that the edition takes.
    fn is_text(&self, value: &Value) -> bool {
        match self.edition {
            Edition::Cloud => value["type"] == "doc" && value["version"] == 1 && value["content"].is_array(),
            Edition::DataCenter => value.is_string(),
        }
    }

    fn create(&mut self, request: &Request) -> Answer {
        let fields = &request.body["fields"];
        let is_valid = fields["project"]["key"] == "PROJ"
            && fields["summary"].as_str().is_some_and(|summary| !summary.is_empty())
            && fields["issuetype"]["name"] == "Task"
            && self.is_text(&fields["description"]);
        let labels: Vec<String> = fields["labels"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        if !is_valid || labels.iter().any(|label| label.contains(' ')) {
            return refused(400, "Field is invalid");
        }
        self.next += 1;
        let id = self.next;
        let entry = Entry {
            summary: fields["summary"].as_str().unwrap_or_default().to_owned(),
            description: fields["description"].clone(),
            status: "Backlog".to_owned(),
            priority: None,
            labels,
            blocked_by: Vec::new(),
            comments: Vec::new(),
        };
        self.issues.insert(id, entry);
        Answer::new(201, json!({ "id": id.to_string(), "key": format!("PROJ-{id}") }))
    }

    fn of_issue(&mut self, request: &Request, id: u64, more: &[&str]) -> Answer {
        let number = |name: &str, default: usize| {
            request.query.get(name).and_then(|value| value.parse().ok()).unwrap_or(default)
        };
        let is_text = self.is_text(&request.body["body"]);
        let shown = self.shown(id);
        let entry = self.issues.get_mut(&id).expect("it was looked up");
        match (request.method.as_str(), more) {
            ("GET", []) => Answer::new(200, shown),
            ("PUT", []) => {
                for change in request.body["update"]["labels"].as_array().into_iter().flatten() {
                    if let Some(label) = change["add"].as_str() {
                        if label.contains(' ') {
                            return refused(400, "The label 'x' contains spaces which is invalid.");
                        }
                        entry.labels.push(label.to_owned());
                    }
                    if let Some(label) = change["remove"].as_str() {
                        entry.labels.retain(|known| known != label);
                    }
                }
                Answer::new(204, Value::Null)
            }
            ("GET", ["transitions"]) => {
                let others = WORKFLOW.iter().enumerate().filter(|(_, state)| **state != entry.status);
                let offered = others.map(|(at, state)| {
                    json!({ "id": (at + 11).to_string(), "name": format!("Move to {state}"), "to": { "name": state } })
                });
                Answer::new(200, json!({ "transitions": offered.collect::<Vec<_>>() }))
            }
            ("POST", ["transitions"]) => {
                let at = request.body["transition"]["id"].as_str().and_then(|id| id.parse::<usize>().ok());
                match at.and_then(|at| WORKFLOW.get(at.checked_sub(11)?)) {
                    Some(state) => {
                        entry.status = (*state).to_owned();
                        Answer::new(204, Value::Null)
                    }
                    None => refused(
                        400,
                        "It seems that you have tried to perform a workflow operation that is not valid.",
                    ),
                }
            }
            ("GET", ["comment"]) => {
                let start = number("startAt", 0);
                let part = entry.comments.iter().skip(start).take(number("maxResults", 50));
                let with = request.query.get("expand").is_some_and(|expand| expand.contains("properties"));
                let part: Vec<Value> = part
                    .cloned()
                    .map(|mut comment| {
                        if !with {
                            comment.as_object_mut().map(|comment| comment.remove("properties"));
                        }
                        comment
                    })
                    .collect();
                Answer::new(200, json!({ "startAt": start, "total": entry.comments.len(), "comments": part }))
            }
            ("POST", ["comment"]) if is_text => {
                let made = json!({
                    "id": (entry.comments.len() + 500).to_string(), "body": request.body["body"],
                    "author": { "displayName": "Ada" }, "created": "2026-01-02T00:00:00.000+0000",
                    "properties": request.body["properties"],
                });
                entry.comments.push(made.clone());
                Answer::new(201, made)
            }
            ("POST", ["comment"]) => refused(400, "Comment body is not valid!"),
            _ => refused(404, "null for uri"),
        }
    }
}
