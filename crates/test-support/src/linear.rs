//! Linear on loopback: its GraphQL API, as far as issues, comments and labels go. Queries are parsed and executed, and a field
//! or filter that it does not have is refused.

use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Map, Value, json};

use crate::forge::github::graphql::{Field, parsed, selected, tokens};
use crate::forge::http::{Answer, Request, read, write};

/// Key that the simulator accepts.
pub const KEY: &str = "lin_api_simulated";
const STATES: &[&str] = &["Triage", "To Do", "In Progress", "Review", "Done"];

/// A project `app` of a team.
pub struct LinearServer {
    pub url: String,
    state: Arc<Mutex<LinearWorkspace>>,
}

#[derive(Default)]
pub struct LinearWorkspace {
    issues: Vec<Value>,
    labels: Vec<String>,
    /// Number of requests.
    pub requests: usize,
}

impl LinearServer {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("its address"));
        let state = Arc::new(Mutex::new(LinearWorkspace::default()));
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

    pub fn workspace(&self) -> MutexGuard<'_, LinearWorkspace> {
        self.state.lock().expect("no test panicked with it")
    }

    pub fn issue(&self, id: &str, title: &str, state: &str, labels: &[&str], priority: u64) {
        let mut workspace = self.workspace();
        let labels: Vec<Value> = labels.iter().map(|name| workspace.label(name)).collect();
        let mut issue = new_issue(id, title, "", state);
        (issue["labels"], issue["priority"]) = (json!(labels), json!(priority));
        workspace.issues.push(issue);
    }

    /// One issue has to be finished before another.
    pub fn block(&self, blocked: &str, by: &str) {
        let mut workspace = self.workspace();
        let other = workspace.issues.iter().find(|issue| issue["id"] == by).expect("the issue").clone();
        let relation = json!({ "__typename": "IssueRelation", "type": "blocks", "issue": other });
        let issue = workspace.issues.iter_mut().find(|issue| issue["id"] == blocked).expect("the issue");
        issue["inverseRelations"] = json!([relation]);
    }
}

fn new_issue(id: &str, title: &str, description: &str, state: &str) -> Value {
    let states: Vec<Value> = STATES
        .iter()
        .map(|name| json!({ "__typename": "WorkflowState", "id": format!("state-{name}"), "name": name }))
        .collect();
    json!({
        "__typename": "Issue", "id": id, "identifier": format!("APP-{id}"), "title": title,
        "description": description, "priority": 0, "branchName": null, "url": format!("https://linear.app/x/issue/APP-{id}"),
        "createdAt": "2026-01-01T00:00:00.000Z", "updatedAt": "2026-01-01T00:00:00.000Z",
        "state": { "__typename": "WorkflowState", "name": state }, "assignee": null, "parent": null, "labels": [],
        "inverseRelations": [], "comments": [],
        "team": { "__typename": "Team", "id": "team-1", "states": states },
    })
}

fn serve(stream: &TcpStream, state: &Mutex<LinearWorkspace>) -> std::io::Result<()> {
    let Some(request) = read(stream)? else { return Ok(()) };
    let answer = {
        let mut workspace = state.lock().expect("no test panicked with it");
        workspace.requests += 1;
        workspace.answer(&request)
    };
    write(stream, &answer)
}

/// Whether a filter fits an issue. One that Linear does not have is refused.
fn fits(issue: &Value, filter: &Value) -> Result<bool, String> {
    let Some(parts) = filter.as_object() else { return Ok(true) };
    for (name, part) in parts {
        let all = || part.as_array().into_iter().flatten().map(|part| fits(issue, part));
        let holds = match name.as_str() {
            "and" => all().collect::<Result<Vec<bool>, _>>()?.into_iter().all(|fits| fits),
            "or" => all().collect::<Result<Vec<bool>, _>>()?.into_iter().any(|fits| fits),
            "project" => part["slugId"]["eq"] == "app",
            "id" => part["in"].as_array().ok_or("id needs `in`")?.contains(&issue["id"]),
            "state" => {
                let wanted = part["name"]["eqIgnoreCase"].as_str().ok_or("name needs `eqIgnoreCase`")?;
                issue["state"]["name"].as_str().is_some_and(|name| name.eq_ignore_ascii_case(wanted))
            }
            other => return Err(format!("Field \"{other}\" is not defined by type \"IssueFilter\".")),
        };
        if !holds {
            return Ok(false);
        }
    }
    Ok(true)
}

impl LinearWorkspace {
    fn label(&mut self, name: &str) -> Value {
        if !self.labels.iter().any(|known| known == name) {
            self.labels.push(name.to_owned());
        }
        json!({ "__typename": "IssueLabel", "id": format!("label-{name}"), "name": name })
    }

    fn answer(&mut self, request: &Request) -> Answer {
        // Personal keys are sent as they are.
        if request.headers.get("authorization").map(String::as_str) != Some(KEY) {
            return Answer::new(
                401,
                json!({ "errors": [{ "message": "Authentication required, not authenticated" }] }),
            );
        }
        if request.path != "/graphql" || request.method != "POST" {
            return Answer::new(404, json!({}));
        }
        let (query, variables) =
            (request.body["query"].as_str().unwrap_or_default(), &request.body["variables"]);
        let result = parsed(&tokens(query), variables).and_then(|fields| {
            let mut data = Map::new();
            for field in &fields {
                data.insert(field.name.clone(), self.root(field)?);
            }
            Ok(data)
        });
        match result {
            Ok(data) => Answer::new(200, json!({ "data": data })),
            Err(message) => Answer::new(400, json!({ "errors": [{ "message": message }] })),
        }
    }

    fn root(&mut self, field: &Field) -> Result<Value, String> {
        let argument = |name: &str| field.arguments.get(name).cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let input = argument("input");
        let done = json!({ "__typename": "Payload", "success": true });
        match field.name.as_str() {
            "issues" => {
                let filter = argument("filter");
                let mut found = Vec::new();
                for issue in &self.issues {
                    if fits(issue, &filter)? {
                        found.push(issue.clone());
                    }
                }
                selected(&Value::Array(found), field)
            }
            "issueLabels" => {
                let wanted = text(&argument("filter")["name"]["eqIgnoreCase"]);
                let names: Vec<String> =
                    self.labels.iter().filter(|name| name.eq_ignore_ascii_case(&wanted)).cloned().collect();
                let labels = names.iter().map(|name| self.label(name)).collect();
                selected(&Value::Array(labels), field)
            }
            "projects" => {
                let team = json!({ "__typename": "Team", "id": "team-1" });
                let project = json!({ "__typename": "Project", "id": "project-1", "teams": [team] });
                let is_it = argument("filter")["slugId"]["eq"] == "app";
                selected(&Value::Array(if is_it { vec![project] } else { Vec::new() }), field)
            }
            "issueLabelCreate" => {
                let label = self.label(&text(&input["name"]));
                selected(&json!({ "__typename": "IssueLabelPayload", "issueLabel": label }), field)
            }
            "commentCreate" => {
                let issue = self.find(&input["issueId"])?;
                let comments = issue["comments"].as_array_mut().ok_or("no comments")?;
                if comments.iter().any(|known| known["id"] == input["id"]) {
                    return Err("Entity already exists".to_owned());
                }
                let user = json!({ "__typename": "User", "name": "Hangar", "isMe": true });
                comments.push(json!({
                    "__typename": "Comment", "id": input["id"], "body": input["body"],
                    "createdAt": "2026-01-02T00:00:00.000Z", "user": user,
                }));
                selected(&done, field)
            }
            "issueCreate" => {
                if self.find(&input["id"]).is_ok()
                    || input["teamId"] != "team-1"
                    || input["projectId"] != "project-1"
                {
                    return Err("Argument Validation Error".to_owned());
                }
                let id = text(&input["id"]);
                if id.len() != 36 {
                    return Err("id must be a UUID".to_owned());
                }
                self.issues.push(new_issue(
                    &id,
                    &text(&input["title"]),
                    &text(&input["description"]),
                    "Triage",
                ));
                selected(&done, field)
            }
            "issueUpdate" => {
                let state = text(&input["stateId"]);
                let name = state.strip_prefix("state-").filter(|name| STATES.contains(name));
                let name = name.ok_or("Entity not found: WorkflowState")?.to_owned();
                self.find(&argument("id"))?["state"]["name"] = json!(name);
                selected(&done, field)
            }
            "issueAddLabel" | "issueRemoveLabel" => {
                let id = argument("labelId");
                let name = text(&id).trim_start_matches("label-").to_owned();
                let label = self.label(&name);
                let labels = self.find(&argument("id"))?["labels"].as_array_mut().ok_or("no labels")?;
                labels.retain(|known| known["id"] != id);
                if field.name == "issueAddLabel" {
                    labels.push(label);
                }
                selected(&done, field)
            }
            other => Err(format!("Cannot query field \"{other}\"")),
        }
    }

    fn find(&mut self, id: &Value) -> Result<&mut Value, String> {
        self.issues
            .iter_mut()
            .find(|issue| issue["id"] == *id)
            .ok_or_else(|| "Entity not found: Issue".to_owned())
    }
}
