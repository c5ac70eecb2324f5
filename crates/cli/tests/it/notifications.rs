//! Notifications with a local sink: who is told of what, and what is retried.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use hangar_test_support::{ModelServer, Scratch};
use serde_json::Value;

use crate::hangar;

/// Longest wait for a notification.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that takes notifications, after it has refused some.
struct Sink {
    address: String,
    taken: Receiver<Value>,
}

impl Sink {
    fn refusing(mut refusals: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/secret-path", listener.local_addr().unwrap());
        let (sender, taken) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut reader = BufReader::new(stream.unwrap());
                let (mut length, mut line) = (0, String::new());
                while reader.read_line(&mut line).unwrap_or(0) > 2 {
                    let lower = line.to_lowercase();
                    if let Some(bytes) = lower.strip_prefix("content-length:") {
                        length = bytes.trim().parse().unwrap();
                    }
                    line.clear();
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                let status = if refusals > 0 { "500 Broken" } else { "200 OK" };
                let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                let _ = reader.get_mut().write_all(answer.as_bytes());
                if refusals == 0 {
                    let _ = sender.send(serde_json::from_slice(&body).unwrap());
                }
                refusals = refusals.saturating_sub(1);
            }
        });
        Self { address, taken }
    }

    fn next(&self) -> Value {
        self.taken.recv_timeout(PATIENCE).expect("a notification")
    }
}

const ENTRY: &str = "
models: { driving: mock-model }
tasks:
  say: { model: { category: driving }, prompt: 'SAY:hello', requireUserInput: false }
  fails: { model: { category: driving }, prompt: 'FAIL:400', requireUserInput: false }
  waits: { model: { category: driving }, prompt: 'TOOL:bash:{\"command\":\"while [ ! -e go ]; do sleep 0.02; done\"}', requireUserInput: false }
jobs:
  waits: { work: { kind: Ref, taskId: waits } }
  say: { work: { kind: Ref, taskId: say } }
  fails: { work: { kind: Ref, taskId: fails } }
";

fn machine(config: &str) -> (Scratch, ModelServer) {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    std::fs::create_dir_all(scratch.state()).unwrap();
    std::fs::write(scratch.state().join("config.toml"), config).unwrap();
    scratch.file("jobs.yaml", ENTRY);
    (scratch, model)
}

#[test]
fn ends_and_failures_reach_a_webhook_slack_and_a_command_also_after_refusals() {
    let (webhook, slack) = (Sink::refusing(2), Sink::refusing(0));
    let config = format!(
        "[[notifications]]\non = [\"finish\", \"failure\"]\nwebhook = \"{}\"\ncommand = [\"sh\", \"-c\", \"cat >> told.jsonl\"]\n\
         [[notifications]]\non = [\"failure\"]\nslack = \"env:SLACK\"\n",
        webhook.address
    );
    let (scratch, model) = machine(&config);
    let job = |name: &str| {
        hangar(&scratch, &model).env("SLACK", &slack.address).args(["job", "run", "jobs.yaml", name]).finish()
    };
    job("say").expect_exit(0);
    let told = webhook.next();
    assert_eq!(
        (told["kind"].as_str(), told["title"].as_str()),
        (Some("finish"), Some("say: done")),
        "{told}"
    );
    assert!(told["run"].is_string() && told["at"].is_string(), "{told}");
    job("fails").expect_exit(1);
    assert_eq!(webhook.next()["kind"], "failure");
    let text = slack.next()["text"].as_str().unwrap().to_owned();
    assert!(text.starts_with("*fails: failed*\n"), "{text}");
    let lines = std::fs::read_to_string(scratch.work().join("told.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 2, "{lines}");
}

#[test]
fn a_destination_that_refuses_is_given_up_without_its_address() {
    let sink = Sink::refusing(usize::MAX);
    let (scratch, model) =
        machine(&format!("[[notifications]]\non = [\"finish\"]\nwebhook = \"{}\"\n", sink.address));
    let run = hangar(&scratch, &model).args(["job", "run", "jobs.yaml", "say"]).finish().expect_exit(0);
    assert!(
        run.stderr.contains("note: a notification by webhook was given up: status 500"),
        "{}",
        run.stderr
    );
    assert!(!run.stderr.contains("secret-path"), "{}", run.stderr);
}

#[test]
fn a_rule_that_is_added_applies_to_the_next_notice_of_a_run_under_way() {
    let sink = Sink::refusing(0);
    let (scratch, model) = machine("");
    let job = ["job", "run", "jobs.yaml", "waits", "--output-format", "json"];
    let mut running = hangar(&scratch, &model).args(job).start();
    running.wait_for_event("sessionStarted");
    let rule = format!("[[notifications]]\non = [\"finish\"]\nwebhook = \"{}\"\n", sink.address);
    std::fs::write(scratch.state().join("config.toml"), rule).unwrap();
    scratch.file("go", "");
    running.finish().expect_exit(0);
    assert_eq!(sink.next()["title"], "waits: done");
}

#[test]
fn work_that_a_budget_holds_is_told_once() {
    let sink = Sink::refusing(0);
    let config = format!(
        "[budgets]\nper_day = 0.0001\nreserve = 0.0001\n[[notifications]]\non = [\"budget\"]\nwebhook = \"{}\"\n",
        sink.address
    );
    let (scratch, model) = machine(&config);
    let priced = |args: &[&str]| hangar(&scratch, &model).env("COPILOT_MODEL", "gpt-4.1").args(args);
    std::fs::write(scratch.work().join("jobs.yaml"), ENTRY.replace("mock-model", "gpt-4.1")).unwrap();
    priced(&["job", "run", "jobs.yaml", "say"]).finish().expect_exit(0);
    let told = sink.next();
    assert_eq!(told["title"], "A budget is used up", "{told}");
    assert!(told["text"].as_str().unwrap().contains("`hangar budget raise day USD`"), "{told}");
}
