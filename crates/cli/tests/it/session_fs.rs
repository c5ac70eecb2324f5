//! Sessions whose files a client keeps: what it is asked, what it has in the end, and what becomes of a session whose
//! client fails.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use hangar_test_support::{ModelServer, Scratch};
use serde_json::{Value, json};

use crate::sdk::{Client, ID, Keeper, stage};

const ROOT: &str = "/kept/session-state";

/// Files in memory, by path, and what was asked.
#[derive(Default)]
struct Files {
    files: BTreeMap<String, String>,
    asked: Vec<String>,
    statements: Vec<(String, String)>,
    /// The append that fails, counted from the first.
    fails_at: Option<usize>,
    appends: usize,
}

type Shared = Rc<RefCell<Files>>;

impl Files {
    fn answer(&mut self, method: &str, params: &Value) -> Value {
        self.asked.push(method.to_owned());
        let text = |name: &str| params[name].as_str().unwrap_or_default().to_owned();
        let path = text("path");
        let missing = json!({ "code": "ENOENT" });
        let below = |folder: &str| format!("{}/", folder.trim_end_matches('/'));
        let is_dir = self.files.keys().any(|known| known.starts_with(&below(&path)))
            || ["files", "temp", "checkpoints"].iter().any(|name| path == format!("{ROOT}/{name}"));
        match method {
            "sessionFs.readFile" => match self.files.get(&path) {
                Some(content) => json!({ "content": content }),
                None => json!({ "content": "", "error": missing }),
            },
            "sessionFs.writeFile" => {
                self.files.insert(path, text("content"));
                Value::Null
            }
            "sessionFs.appendFile" => {
                self.appends += 1;
                if self.fails_at.is_some_and(|at| self.appends >= at) {
                    return json!({ "code": "UNKNOWN", "message": "the disk is full" });
                }
                self.files.entry(path).or_default().push_str(&text("content"));
                Value::Null
            }
            "sessionFs.stat" => {
                let size = self.files.get(&path).map(String::len);
                let time = "2026-01-01T00:00:00.000Z";
                let mut stat = json!({
                    "isFile": size.is_some(), "isDirectory": is_dir, "size": size.unwrap_or(0), "mtime": time,
                    "birthtime": time,
                });
                if size.is_none() && !is_dir {
                    stat["error"] = missing;
                }
                stat
            }
            "sessionFs.mkdir" => Value::Null,
            "sessionFs.readdirWithTypes" => {
                let inside = self.files.keys().filter_map(|known| known.strip_prefix(&below(&path)));
                let mut entries: BTreeMap<&str, &str> = BTreeMap::new();
                for rest in inside {
                    match rest.split_once('/') {
                        Some((folder, _)) => entries.insert(folder, "directory"),
                        None => entries.insert(rest, "file"),
                    };
                }
                let entries: Vec<Value> =
                    entries.iter().map(|(name, kind)| json!({ "name": name, "type": kind })).collect();
                json!({ "entries": entries })
            }
            "sessionFs.rm" => {
                let below = below(&path);
                self.files.retain(|known, _| *known != path && !known.starts_with(&below));
                Value::Null
            }
            "sessionFs.rename" => {
                let content = self.files.remove(&text("src")).unwrap();
                self.files.insert(text("dest"), content);
                Value::Null
            }
            "sessionFs.sqliteExists" => json!({ "exists": !self.statements.is_empty() }),
            "sessionFs.sqliteQuery" => {
                self.statements.push((text("queryType"), text("query")));
                let row = json!({ "id": "t1", "title": "Write it", "description": "", "status": "pending" });
                let rows = if text("queryType") == "query" { vec![row] } else { Vec::new() };
                json!({ "rows": rows, "columns": ["id", "title"], "rowsAffected": 1, "lastInsertRowid": 1 })
            }
            other => panic!("the keeper was asked {other}"),
        }
    }

    fn log(&self) -> &str {
        self.files.get(&format!("{ROOT}/events.jsonl")).map_or("", String::as_str)
    }
}

fn keeper(files: &Shared) -> Keeper {
    let files = Rc::clone(files);
    Box::new(move |method, params| {
        assert_eq!(params["sessionId"], ID);
        Some(files.borrow_mut().answer(method, params))
    })
}

fn connect(scratch: &Scratch, model: &ModelServer, files: &Shared, tables: bool) -> Client {
    let mut client = Client::start_with(scratch, model, &["--allow-all-tools"]);
    client.keep(keeper(files));
    let provider = json!({
        "initialCwd": scratch.work(), "sessionStatePath": ROOT, "conventions": "posix",
        "capabilities": { "sqlite": tables },
    });
    assert_eq!(client.call("sessionFs.setProvider", provider)["success"], true);
    client
}

fn of_session(mut params: Value) -> Value {
    params["sessionId"] = json!(ID);
    params
}

fn send(client: &mut Client, prompt: &str) {
    client.send(prompt);
    client.event("session.idle");
}

#[test]
fn the_client_has_all_files_of_its_session_and_this_machine_none() {
    let (scratch, model) = stage();
    let files = Shared::default();
    let mut client = connect(&scratch, &model, &files, false);
    let created = client.create(json!({}));
    assert_eq!(created["workspacePath"], ROOT);
    client.call("session.plan.update", of_session(json!({ "content": "# Plan" })));
    assert_eq!(client.call("session.plan.read", of_session(json!({})))["content"], "# Plan");
    client.call("session.workspaces.createFile", of_session(json!({ "path": "a/b.txt", "content": "B" })));
    let listed = client.call("session.workspaces.listFiles", of_session(json!({})));
    assert_eq!(listed["files"], json!(["a/b.txt"]));
    send(&mut client, "SAY:first");
    client.call("session.history.compact", of_session(json!({})));
    let checkpoints = client.call("session.workspaces.listCheckpoints", of_session(json!({})));
    assert_eq!(checkpoints["checkpoints"].as_array().unwrap().len(), 1);
    assert!(client.kinds().contains(&"user.message".to_owned()));
    assert_eq!(client.call("session.destroy", of_session(json!({})))["success"], true);
    let kept = files.borrow();
    for name in ["events.jsonl", "workspace.yaml", "plan.md", "checkpoints/index.md", "files/a/b.txt"] {
        assert!(kept.files.contains_key(&format!("{ROOT}/{name}")), "{name}: {:?}", kept.files.keys());
    }
    assert!(kept.log().ends_with('\n') && kept.log().contains("session.shutdown"));
    drop(kept);
    assert!(!scratch.state().join("session-state").join(ID).exists());
    assert!(client.call("session.list", json!({}))["sessions"].as_array().unwrap().is_empty());
    client.finish();

    let mut client = connect(&scratch, &model, &files, false);
    client.call("session.resume", of_session(json!({})));
    send(&mut client, "SAY:second");
    assert!(model.last_request()["messages"].to_string().contains("SAY:second"));
    client.call("session.delete", of_session(json!({})));
    assert!(files.borrow().files.is_empty(), "{:?}", files.borrow().files.keys());
    client.finish();
}

#[test]
fn tools_for_files_work_on_the_files_of_the_client() {
    let (scratch, model) = stage();
    let files = Shared::default();
    let mut client = connect(&scratch, &model, &files, false);
    client.create(json!({}));
    let path = format!("{ROOT}/files/note.txt");
    let create = json!({ "path": path, "file_text": "old text" });
    let edit = json!({ "path": path, "old_str": "old", "new_str": "new" });
    let view = json!({ "path": path });
    send(&mut client, &format!("TOOL:create:{create}\nTOOL:edit:{edit}\nTOOL:view:{view}"));
    assert_eq!(files.borrow().files[&path], "new text");
    let told = model.last_request()["messages"].to_string();
    assert!(told.contains("1. new text"), "{told}");
    send(&mut client, "TOOL:bash:{\"command\": \"seq 1 9000\", \"description\": \"d\"}");
    let told = model.last_request()["messages"].to_string();
    assert!(told.contains(&format!("Saved to: {ROOT}/temp/")), "{told}");
    let large = |path: &&String| path.starts_with(&format!("{ROOT}/temp/"));
    assert!(files.borrow().files.keys().find(large).is_some());
    client.finish();
}

#[test]
fn statements_go_to_the_client_and_without_tables_there_is_no_tool_for_them() {
    let (scratch, model) = stage();
    let files = Shared::default();
    let mut client = connect(&scratch, &model, &files, true);
    client.create(json!({}));
    let query = "INSERT INTO todos (id, title) VALUES ('t1', 'Write it'); SELECT id, title FROM todos";
    send(&mut client, &format!("TOOL:sql:{}", json!({ "description": "d", "query": query })));
    let told = model.last_request()["messages"].to_string();
    assert!(told.contains("1 row(s) inserted") && told.contains("| t1 | Write it |"), "{told}");
    let kinds: Vec<String> = files.borrow().statements.iter().map(|(kind, _)| kind.clone()).collect();
    assert!(kinds.starts_with(&["exec".to_owned()]) && kinds.contains(&"run".to_owned()), "{kinds:?}");
    client.finish();

    let mut client = connect(&scratch, &model, &Shared::default(), false);
    client.create(json!({}));
    send(&mut client, "SAY:hi");
    assert!(!model.last_request()["tools"].to_string().contains("\"sql\""));
    client.finish();
}

#[test]
fn a_client_that_cannot_write_ends_the_session_and_has_what_it_confirmed() {
    let (scratch, model) = stage();
    let files = Shared::default();
    files.borrow_mut().fails_at = Some(3);
    let mut client = connect(&scratch, &model, &files, false);
    client.create(json!({}));
    client.send("TOOL:bash:{\"command\": \"echo one\", \"description\": \"d\"}\nSAY:two");
    let error = client.event("session.error");
    assert!(error["message"].as_str().unwrap().contains(ID), "{error}");
    let gone = client.answer("session.plan.read", of_session(json!({})));
    assert!(gone["error"]["message"].as_str().unwrap().contains("not found"), "{gone}");
    let kept = files.borrow();
    assert!(kept.log().ends_with('\n') && kept.log().lines().count() > 1);
    assert!(kept.log().lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
    drop(kept);

    files.borrow_mut().fails_at = None;
    client.call("session.resume", of_session(json!({})));
    send(&mut client, "SAY:again");
    client.finish();
}

#[test]
fn who_keeps_files_is_decided_before_there_are_sessions() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    client.create(json!({}));
    let provider = json!({ "initialCwd": "/", "sessionStatePath": ROOT, "conventions": "posix" });
    let refused = client.answer("sessionFs.setProvider", provider);
    assert!(refused["error"]["message"].as_str().unwrap().contains("while sessions are active"), "{refused}");
    client.finish();
}

#[test]
fn a_client_that_does_not_answer_keeps_nobody_else_from_opening_a_session() {
    let (scratch, model) = stage();
    let server = crate::hangar(&scratch, &model).env("COPILOT_CONNECTION_TOKEN", "secret");
    let mut server = server.args(["--headless", "--port", "0"]).start();
    let line = server.next_line().expect("the server says where it listens").to_owned();
    let port = line.strip_prefix("CLI server listening on port ").and_then(|port| port.parse().ok()).unwrap();
    let mut silent = Client::join(port, "secret");
    let provider = json!({ "initialCwd": scratch.work(), "sessionStatePath": ROOT, "conventions": "posix" });
    assert_eq!(silent.call("sessionFs.setProvider", provider)["success"], true);
    let theirs = "0b5a2a57-6f0a-4b5e-9f0c-0c8f0e4ad002";
    let opening = silent.begin("session.create", json!({ "sessionId": theirs }));
    silent.until("question about files", |message| {
        message["method"].as_str().is_some_and(|method| method.starts_with("sessionFs."))
    });
    let mut other = Client::join(port, "secret");
    other.create(json!({}));
    silent.call("ping", json!({}));
    assert!(!silent.has_answer(opening), "the other one did not wait for it");
}
