//! The portal, from outside: the real server, a scripted model, and nothing but HTTP.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod addresses;
mod approvals;
mod automation;
pub(crate) mod client;
mod described;
mod guard;
mod issues;
mod lifecycle;
mod listing;
mod machine;
mod metrics;
mod others;
mod pages;
mod queue;
mod remote;
mod runs;
mod secrets;
mod sessions;
mod streams;
mod views;

use hangar_test_support::{Invocation, ModelServer, Running, Scratch};
use serde_json::{Value, json};

use crate::{HANGAR, hangar};
use client::{Answer, Ask, Stream};

struct Portal {
    scratch: Scratch,
    model: ModelServer,
    running: Running,
    port: u16,
}

impl Portal {
    fn start() -> Self {
        Self::start_with(&[])
    }

    fn start_with(args: &[&str]) -> Self {
        let (scratch, model) = (Scratch::new(), ModelServer::start());
        Self::on(scratch, model, args)
    }

    fn on(scratch: Scratch, model: ModelServer, args: &[&str]) -> Self {
        let mut running = up(&scratch, &model, args).start();
        let port = port(&mut running);
        Self { scratch, model, running, port }
    }

    /// Another server on the same home, once this one has ended as the test wants it to.
    fn again(self) -> Self {
        let Self { scratch, model, running, .. } = self;
        drop(running);
        Self::on(scratch, model, &[])
    }

    fn ask(&self, method: &str, path: &str) -> Ask {
        Ask::new(self.port, method, path)
    }

    #[track_caller]
    fn get(&self, path: &str) -> Value {
        expect(self.ask("GET", path).send(), 200)
    }

    /// Posts, and expects a status.
    #[track_caller]
    fn post(&self, path: &str, body: &Value, status: u16) -> Value {
        expect(self.ask("POST", path).json(body).send(), status)
    }

    /// Posts nothing.
    #[track_caller]
    fn poke(&self, path: &str, status: u16) -> Value {
        expect(self.ask("POST", path).send(), status)
    }

    #[track_caller]
    fn open(&self, prompt: &str, policy: &str) -> String {
        let body = json!({ "workspace": self.scratch.work(), "policy": policy, "prompt": prompt });
        self.post("/api/v1/sessions", &body, 201)["id"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    fn send(&self, id: &str, text: &str) {
        self.post(&format!("/api/v1/sessions/{id}/messages"), &json!({ "text": text }), 202);
    }

    #[track_caller]
    fn hear(&self, id: &str, after: u64) -> Stream {
        self.ask("GET", &format!("/api/v1/sessions/{id}/stream?after={after}")).stream()
    }

    #[track_caller]
    fn session(&self, id: &str) -> Value {
        self.get(&format!("/api/v1/sessions/{id}"))
    }

    /// A session that has had one turn.
    #[track_caller]
    fn done(&self, prompt: &str) -> String {
        let id = self.open(prompt, "allow-all");
        self.hear(&id, 0).until_state("idle");
        id
    }
}

/// `hangar up` on a machine where the program `copilot` is Hangar too.
fn up(scratch: &Scratch, model: &ModelServer, args: &[&str]) -> Invocation {
    let bin = scratch.root().join("bin");
    if std::fs::create_dir(&bin).is_ok() {
        std::os::unix::fs::symlink(HANGAR, bin.join("copilot")).unwrap();
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let args = ["up", "--port", "0"].iter().chain(args);
    hangar(scratch, model).env("PATH", path).within(std::time::Duration::from_secs(180)).args(args)
}

fn port(running: &mut Running) -> u16 {
    let line = running.next_line().expect("the server says where it is");
    line.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).unwrap_or_else(|| panic!("{line}"))
}

#[track_caller]
fn expect(answer: Answer, status: u16) -> Value {
    assert_eq!(answer.status, status, "{}", String::from_utf8_lossy(&answer.body));
    if answer.body.is_empty() { Value::Null } else { answer.json() }
}

/// Checks that a request is refused with a status and a code, and a sentence that names something.
#[track_caller]
fn refused(answer: &Answer, status: u16, code: &str, names: &str) {
    let problem = answer.json();
    assert_eq!((answer.status, problem["code"].as_str()), (status, Some(code)), "{problem}");
    assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    assert_eq!(problem["status"], status);
    assert!(problem["detail"].as_str().unwrap().contains(names), "{problem}");
}
