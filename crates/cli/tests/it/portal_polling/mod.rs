//! The routes of the portal for clients that poll: the real server, a scripted model, and nothing but HTTP.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod basics;
mod entries;
mod jobs;
mod sessions;
mod tasks;
mod works;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::JoinHandle;

use hangar_test_support::{Invocation, ModelServer, Running, Scratch};
use serde_json::{Value, json};

use crate::hangar;

const MODEL: &str = "mock-model";
/// Polls before a test gives up: each takes five seconds at most, and reaching this is a failure.
const MOST_POLLS: usize = 400;

struct Portal {
    scratch: Scratch,
    /// The model lives as long as whoever asks it.
    _model: ModelServer,
    running: Running,
    port: u16,
}

impl Portal {
    /// A server for tests.
    fn start() -> Self {
        Self::start_with(&["--test"])
    }

    /// One whose provider says nothing about its models.
    fn start_elsewhere() -> Self {
        Self::start_as(&["--test"], |invocation| invocation.provider("http://127.0.0.1:9"))
    }

    fn start_with(args: &[&str]) -> Self {
        Self::start_as(args, |invocation| invocation)
    }

    fn start_as(args: &[&str], adjusted: impl FnOnce(Invocation) -> Invocation) -> Self {
        let (scratch, model) = (Scratch::new(), ModelServer::start());
        let invocation = adjusted(hangar(&scratch, &model));
        let mut running = invocation.args(["up", "--port", "0"]).args(args).start();
        let port = loop {
            let line = running.next_line().expect("the server says where it is").to_owned();
            if let Some((_, port)) = line.trim_end_matches('/').rsplit_once(':')
                && line.contains("http://")
                && let Ok(port) = port.parse()
            {
                break port;
            }
        };
        Self { scratch, _model: model, running, port }
    }

    /// A server with these tasks and jobs.
    fn with_entry(entry: &Value) -> Self {
        let portal = Self::start();
        portal.install(entry);
        portal
    }

    fn install(&self, entry: &Value) {
        let file = self.scratch.file("test/entry.json", &entry.to_string());
        let answer = self.post("copilot/test/installJobsEntry", file.to_str().unwrap());
        assert_eq!(answer, json!({ "result": "OK" }));
    }

    /// The directory to work in.
    fn work(&self) -> String {
        self.scratch.work().to_str().unwrap().to_owned()
    }

    fn get(&self, path: &str) -> Value {
        self.ask("GET", path, "")
    }

    fn post(&self, path: &str, body: &str) -> Value {
        self.ask("POST", path, body)
    }

    #[track_caller]
    fn ask(&self, method: &str, path: &str, body: &str) -> Value {
        let (status, answer) = request(self.port, method, path, body);
        assert_eq!(status, 200, "{method} {path}: {answer}");
        answer
    }

    fn start_session(&self) -> String {
        let answer = self.post(&format!("copilot/session/start/{MODEL}"), &self.work());
        answer["sessionId"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    fn start_job(&self, name: &str, input: &str) -> String {
        let answer = self.post(&format!("copilot/job/start/{name}"), &format!("{}\n{input}", self.work()));
        answer["jobId"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// Polls `session/session-1` until a response is what is waited for; gives all up to there.
    #[track_caller]
    fn poll_until(&self, what: &str, done: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut heard = Vec::new();
        for _ in 0..MOST_POLLS {
            let answer = self.get(&format!("copilot/{what}/live"));
            match answer["error"].as_str() {
                Some("HttpRequestTimeout") => continue,
                Some(error) => panic!("{what}: {error} after {heard:#?}"),
                None => heard.push(answer),
            }
            if heard.last().is_some_and(&done) {
                return heard;
            }
        }
        panic!("{what}: gave up after {heard:#?}");
    }

    /// All responses until nothing comes any more.
    #[track_caller]
    fn drain(&self, what: &str) -> Vec<Value> {
        let mut heard = Vec::new();
        for _ in 0..MOST_POLLS {
            let answer = self.get(&format!("copilot/{what}/live"));
            match answer["error"].as_str() {
                Some("HttpRequestTimeout") => {}
                Some("SessionClosed" | "TaskClosed" | "JobsClosed") => return heard,
                Some(error) => panic!("{what}: {error} after {heard:#?}"),
                None => heard.push(answer),
            }
        }
        panic!("{what}: gave up after {heard:#?}");
    }

    /// A call to `live` that waits, made by somebody else.
    fn wait_elsewhere(&self, path: &str) -> JoinHandle<Value> {
        let (port, path) = (self.port, path.to_owned());
        let other = {
            let path = path.clone();
            std::thread::spawn(move || {
                loop {
                    let (_, answer) = request(port, "GET", &path, "");
                    // This test itself was quicker.
                    if answer["error"] != "ParallelCallNotSupported" {
                        return answer;
                    }
                }
            })
        };
        while self.get(&path)["error"] != "ParallelCallNotSupported" {}
        other
    }

    /// Waits until a job has a session at work, without taking what there is to poll.
    fn until_at_work(&self, job: &str) {
        self.watch(&format!("job/{job}"), "workStarted");
        self.watch("task/task-1", "taskSessionStarted");
        self.watch("session/session-1", "onStartToolExecution");
    }

    /// Reads with a token of its own until there is such a callback.
    #[track_caller]
    fn watch(&self, what: &str, callback: &str) {
        for _ in 0..MOST_POLLS {
            let answer = self.get(&format!("copilot/{what}/live/watch"));
            let mut responses = answer["responses"].as_array().into_iter().flatten();
            if responses.any(|response| response["callback"] == callback) {
                return;
            }
            assert!(
                answer.get("error").is_none_or(|error| error == "HttpRequestTimeout"),
                "{what}: {answer}"
            );
        }
        panic!("{what}: no {callback}");
    }

    fn until_idle(&self, session: &str) -> Vec<Value> {
        self.poll_until(&format!("session/{session}"), |response| response["callback"] == "onIdle")
    }
}

/// One request on a connection of its own.
fn request(port: u16, method: &str, path: &str, body: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let head = format!(
        "{method} /api/{path} HTTP/1.1\r\nhost: localhost:{port}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

/// The names of callbacks, with what tells them apart.
fn names(responses: &[Value]) -> Vec<String> {
    responses.iter().map(name).collect()
}

fn name(response: &Value) -> String {
    let Some(callback) = response["callback"].as_str() else {
        return response.as_object().unwrap().keys().next().unwrap().clone();
    };
    match callback {
        "workStarted" => format!("workStarted {}", response["workId"]),
        "workStopped" => format!("workStopped {} {}", response["workId"], response["succeeded"]),
        "taskSessionStarted" => format!("taskSessionStarted {}", response["isDriving"]),
        "taskSessionStopped" => format!("taskSessionStopped {}", response["succeeded"]),
        "taskDecision" => {
            response["reason"].as_str().unwrap().split(". Condition").next().unwrap().to_owned()
        }
        "onGeneratedUserPrompt" => format!("onGeneratedUserPrompt {}", response["prompt"]),
        other => other.to_owned(),
    }
}

/// Tasks for all tests. The scripted model does what its prompt says.
fn entry(jobs: &Value) -> Value {
    let answer = |tool: &str| {
        format!("Call job_boolean_true or job_boolean_false.\nTOOL:jobs-{tool}:{{\"argument\":\"because\"}}")
    };
    let document = r#"TOOL:jobs-job_prepare_document:{"argument":"a.md"}"#;
    let model = json!({ "category": "driving" });
    let task = |prompt: &str, criteria: Value| {
        let mut task =
            json!({ "model": model, "prompt": [prompt], "requireUserInput": prompt.contains("$user-input") });
        if !criteria.is_null() {
            task["criteria"] = criteria;
        }
        task
    };
    let no_retry = json!({ "retryTimes": 0 });
    let condition = |tool: &str, same: bool| json!({ "condition": [answer(tool)], "runConditionInSameSession": same, "failureAction": no_retry });
    let mut multi = task("SAY:working", condition("job_boolean_true", false));
    multi["availability"] = json!({ "condition": [answer("job_boolean_true")] });
    let mut unavailable = task("SAY:working", Value::Null);
    unavailable["availability"] = json!({ "condition": [answer("job_boolean_false")] });
    json!({
        "models": { "driving": MODEL },
        "promptVariables": {},
        "grid": [{ "keyword": "row", "jobs": [{ "name": "go", "jobName": jobs.as_object().unwrap().keys().next() }, null] }],
        "jobs": jobs,
        "tasks": {
            "ok": task("SAY:fine", Value::Null),
            "bad": task("SAY:poor", json!({ "files": ["gone.txt"], "failureAction": no_retry })),
            "input": task("SAY:$user-input", Value::Null),
            "reports": task(document, json!({ "toolExecuted": ["job_prepare_document"], "failureAction": no_retry })),
            "silent": task("SAY:nothing", json!({ "toolExecuted": ["job_prepare_document"], "failureAction": no_retry })),
            "persistent": task("SAY:nothing", json!({ "toolExecuted": ["job_prepare_document"], "failureAction": { "retryTimes": 2 } })),
            "reminded": task("SAY:nothing", json!({
                "toolExecuted": ["job_prepare_document"],
                "failureAction": { "retryTimes": 2, "additionalPrompt": [document] },
            })),
            "agreed": task("SAY:working", condition("job_boolean_true", true)),
            "disputed": task("SAY:working", condition("job_boolean_false", true)),
            "multi": multi,
            "unavailable": unavailable,
            "crashes": task("FAIL:400", Value::Null),
            "waits": task(r#"TOOL:bash:{"command":"[ -e go ] || sleep 1000"}"#, Value::Null),
            "patient": task(
                r#"TOOL:bash:{"command":"until [ -e go ]; do sleep 0.1; done"}"#,
                condition("job_boolean_true", true),
            ),
            "counts": task(r#"TOOL:bash:{"command":"echo x >> count"}"#, Value::Null),
            "enough": task("SAY:judging", json!({
                "commands": [{ "run": "[ $(wc -l < count) -ge 3 ]" }],
                "failureAction": no_retry,
            })),
        },
    })
}

/// An entry with one job.
fn one_job(work: &Value) -> Value {
    entry(&json!({ "demo": { "work": work } }))
}

/// A work that runs a task.
fn run(task: &str) -> Value {
    json!({ "kind": "Ref", "taskId": task })
}
