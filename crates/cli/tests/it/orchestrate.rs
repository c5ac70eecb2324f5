//! `hangar orchestrate`: issues of a file, worked on by the real binary.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

pub(crate) mod contest;
mod github;
mod killed;
mod served;
mod story;
mod symphony;
mod validate;
mod work;

use std::path::Path;

use hangar_test_support::{Invocation, ModelServer, Scratch};
use serde_json::{Value, json};

use crate::hangar;

/// A place with a workflow and its issues.
pub(crate) struct Place {
    pub(crate) scratch: Scratch,
    pub(crate) model: ModelServer,
}

impl Place {
    pub(crate) fn new(yaml: &str, prompt: &str, issues: &[Value]) -> Self {
        let place = Self { scratch: Scratch::new(), model: ModelServer::start() };
        place.workflow(yaml, prompt);
        place.scratch.file("issues.json", &serde_json::to_string_pretty(issues).unwrap());
        place
    }

    pub(crate) fn workflow(&self, yaml: &str, prompt: &str) {
        let head =
            "tracker:\n  kind: file\n  active_states: [To Do, In Progress]\n  terminal_states: [Done]\n";
        let root = self.scratch.work().join("ws");
        let text = format!(
            "---\n{head}{yaml}file: {{ path: issues.json }}\npolling: {{ interval_ms: 100 }}\nworkspace:\n  root: {}\n{}---\n{prompt}\n",
            root.display(),
            self.repository()
        );
        // In one step, as editors do.
        let draft = self.scratch.file("WORKFLOW.draft", &text);
        std::fs::rename(draft, self.scratch.work().join("WORKFLOW.md")).unwrap();
    }

    fn repository(&self) -> String {
        let origin = self.scratch.work().join("origin");
        if origin.exists() { format!("  repository: {}\n", origin.display()) } else { String::new() }
    }

    pub(crate) fn command(&self, args: &[&str]) -> Invocation {
        hangar(&self.scratch, &self.model).env("HANGAR_RETRY_SCALE", "0.01").args(args)
    }

    pub(crate) fn issue(&self, identifier: &str) -> Value {
        let text = std::fs::read_to_string(self.scratch.work().join("issues.json")).unwrap();
        let issues: Vec<Value> = serde_json::from_str(&text).unwrap();
        issues.into_iter().find(|issue| issue["identifier"] == identifier).unwrap()
    }

    /// Somebody else changes an issue.
    pub(crate) fn edit(&self, identifier: &str, field: &str, value: &Value) {
        let path = self.scratch.work().join("issues.json");
        let mut issues: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let found = issues.iter_mut().find(|issue| issue["identifier"] == identifier).unwrap();
        found[field] = value.clone();
        let draft = self.scratch.file("issues.draft", &serde_json::to_string(&issues).unwrap());
        std::fs::rename(draft, path).unwrap();
    }

    fn workspace(&self, identifier: &str) -> std::path::PathBuf {
        self.scratch.work().join("ws").join(identifier)
    }
}

pub(crate) fn issue(identifier: &str) -> Value {
    json!({ "id": format!("id-{identifier}"), "identifier": identifier, "title": "Mend it", "state": "To Do" })
}

/// Number of kills of a test: another one if `HANGAR_TEST_KILLS` says so.
fn kills(usual: usize) -> usize {
    std::env::var("HANGAR_TEST_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(usual)
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of_type<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["type"] == kind).collect()
}

fn git(directory: &Path, script: &str) -> String {
    let mut command = std::process::Command::new("sh");
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "t").env(format!("GIT_{role}_EMAIL"), "t@example.com");
    }
    let output = command.arg("-ec").arg(script).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
