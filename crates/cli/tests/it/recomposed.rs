//! Changes of live sessions: when a client joins, options are updated, the model is switched or the MCP servers are reloaded,
//! settings that the change does not name stay as the session was composed with.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::path::{Path, PathBuf};

use hangar_test_support::{ModelServer, Scratch};
use serde_json::{Value, json};

use crate::hangar;
use crate::sdk::{Client, ID, of_session, stage};
use crate::sdk_access::TcpServer;

const ODD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/odd.mjs");

/// A change of a live session.
#[derive(Debug, Clone, Copy)]
enum Change {
    /// A client opens it again.
    Join,
    Options,
    /// Options for which the session is reopened.
    Ground,
    Model,
}

const CHANGES: [Change; 4] = [Change::Join, Change::Options, Change::Ground, Change::Model];

impl Change {
    fn make(self, client: &mut Client) {
        let (method, params) = match self {
            Self::Join => ("session.resume", json!({})),
            Self::Options => {
                ("session.options.update", json!({ "organizationCustomInstructions": "MARK-organization" }))
            }
            Self::Ground => ("session.options.update", json!({ "enableFileHooks": false })),
            Self::Model => ("session.model.switchTo", json!({ "modelId": "other-model" })),
        };
        client.call(method, of_session(params));
    }
}

/// The system prompt that the model is sent.
fn system(client: &mut Client, model: &ModelServer) -> String {
    client.forget();
    client.send("SAY:x");
    client.event("session.idle");
    model.last_request()["messages"][0]["content"].as_str().unwrap().to_owned()
}

/// Creates a session in a directory with instructions, makes every change, and checks the system prompt before and after.
#[track_caller]
fn check_told(prepare: impl Fn(&Scratch) -> Value, told: &[&str], untold: &[&str]) {
    for change in CHANGES {
        let (scratch, model) = stage();
        scratch.file("AGENTS.md", "MARK-project");
        let config = prepare(&scratch);
        let mut client = Client::start(&scratch, &model);
        client.create(config);
        for when in ["before", "after"] {
            let system = system(&mut client, &model);
            for mark in told {
                assert!(system.contains(mark), "{change:?}: {when}, {mark} is not told: {system}");
            }
            for mark in untold {
                assert!(!system.contains(mark), "{change:?}: {when}, {mark} is told: {system}");
            }
            change.make(&mut client);
        }
        client.finish();
    }
}

fn instruct(home: &Path, text: &str) {
    std::fs::create_dir_all(home).unwrap();
    std::fs::write(home.join("copilot-instructions.md"), text).unwrap();
}

#[test]
fn instructions_stay_those_of_the_session_s_own_home() {
    let prepare = |scratch: &Scratch| {
        let own = scratch.root().join("own");
        instruct(&own, "MARK-own");
        instruct(&scratch.state(), "MARK-server");
        json!({ "configDir": own })
    };
    check_told(prepare, &["MARK-project", "MARK-own"], &["MARK-server"]);
}

#[test]
fn instructions_that_a_setting_switches_off_stay_off() {
    let prepare = |scratch: &Scratch| {
        std::fs::create_dir_all(scratch.state()).unwrap();
        std::fs::write(scratch.state().join("settings.json"), r#"{"customInstructions":false}"#).unwrap();
        json!({})
    };
    check_told(prepare, &[], &["MARK-project"]);
}

#[test]
fn instructions_stay_those_of_the_directory_that_the_session_works_in() {
    for change in CHANGES {
        let (scratch, model) = stage();
        scratch.file("AGENTS.md", "MARK-server");
        let project = scratch.root().join("project");
        std::fs::create_dir(&project).unwrap();
        std::fs::write(project.join("AGENTS.md"), "MARK-project").unwrap();
        let mut first = Client::start(&scratch, &model);
        first.create(json!({ "workingDirectory": project }));
        system(&mut first, &model);
        first.finish();
        // Another server, somewhere else, and a client that does not say where the session is to work.
        let mut client = Client::start(&scratch, &model);
        client.call("session.resume", of_session(json!({})));
        change.make(&mut client);
        let system = system(&mut client, &model);
        assert!(system.contains("MARK-project") && !system.contains("MARK-server"), "{change:?}: {system}");
        client.finish();
    }
}

#[test]
fn an_effort_that_was_chosen_later_stays() {
    for change in [Change::Join, Change::Options, Change::Ground] {
        let (scratch, model) = stage();
        let mut client = Client::start(&scratch, &model);
        client.create(json!({ "reasoningEffort": "low" }));
        let switch = json!({ "modelId": "mock-model", "reasoningEffort": "high" });
        client.call("session.model.switchTo", of_session(switch));
        change.make(&mut client);
        let current = client.call("session.model.getCurrent", of_session(json!({})));
        assert_eq!(current["reasoningEffort"], "high", "{change:?}");
        client.finish();
    }
}

/// A client of its own on a server that others use.
fn visitor(server: &TcpServer) -> Client {
    Client::join(server.port, "secret")
}

#[test]
fn sections_that_a_client_rewrote_outlive_the_joining_of_another() {
    let server = TcpServer::start_with(&[], Some("secret"));
    let mut first = visitor(&server);
    let sections = json!({ "environment_context": { "action": "transform" } });
    let message = json!({ "mode": "customize", "sections": sections });
    let create = first.begin("session.create", of_session(json!({ "systemMessage": message })));
    let asked =
        first.until("systemMessage.transform", |message| message["method"] == "systemMessage.transform");
    let rewritten = json!({ "sections": { "environment_context": { "content": "MARK-rewritten" } } });
    first.write(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": rewritten }));
    assert!(first.answer_to(create).get("error").is_none());
    assert!(system(&mut first, &server.model).contains("MARK-rewritten"));

    let mut second = visitor(&server);
    second.call("session.resume", of_session(json!({})));
    let told = system(&mut second, &server.model);
    assert!(told.contains("MARK-rewritten"), "{told}");
    assert!(!told.contains(&server.scratch.work().display().to_string()), "{told}");
}

/// A session whose MCP server is in a sandbox. `how` are the flags of the server.
struct Confined {
    scratch: Scratch,
    client: Client,
}

impl Confined {
    fn start(how: &[&str], config: &Value) -> Self {
        let (scratch, model) = stage();
        let server = hangar(&scratch, &model).args(["--allow-all", "--sandbox"]).args(how);
        let mut client = Client::of(server);
        let starts = scratch.work().join("starts");
        let mut spec = json!({ "s": { "command": "node", "args": [ODD, "fine", starts], "tools": ["*"] } });
        spec = json!({ "mcpServers": spec });
        spec.as_object_mut().unwrap().extend(config.as_object().unwrap().clone());
        client.create(spec);
        // The model's server has to live as long as the client.
        std::mem::forget(model);
        Self { scratch, client }
    }

    /// Whether the MCP server can write there.
    fn writes(&mut self, path: &Path) -> bool {
        // The server exits on an error; it is restarted for the next call.
        let _ = std::fs::remove_file(path);
        self.client.forget();
        self.client.send(&format!("TOOL:s-write:{}\nSAY:done", json!({ "path": path })));
        self.client.event("session.idle");
        let written = path.exists();
        let _ = std::fs::remove_file(path);
        written
    }

    fn join(&mut self) {
        let starts = self.scratch.work().join("starts");
        let server = json!({ "s": { "command": "node", "args": [ODD, "fine", starts], "tools": ["*"] } });
        self.client.call("session.resume", of_session(json!({ "mcpServers": server })));
    }

    fn reload(&mut self) {
        self.client.call("session.mcp.reload", json!({ "sessionId": ID }));
    }
}

/// A file of shared memory that is this test's alone.
fn shared(scratch: &Scratch) -> PathBuf {
    let name = scratch.root().file_name().unwrap().to_string_lossy().into_owned();
    Path::new("/dev/shm").join(name)
}

#[test]
fn a_place_for_temporary_files_that_is_closed_stays_closed_to_servers() {
    for renew in [Confined::join, Confined::reload] {
        let mut session = Confined::start(&["--disallow-temp-dir"], &json!({}));
        let shared = shared(&session.scratch);
        assert!(session.writes(&session.scratch.work().join("made")), "the attempt proves nothing");
        assert!(!session.writes(&shared));
        renew(&mut session);
        assert!(session.writes(&session.scratch.work().join("made")), "the attempt proves nothing");
        assert!(!session.writes(&shared));
    }
}

#[test]
fn directories_that_are_open_stay_open_to_servers() {
    for renew in [Confined::join, Confined::reload] {
        let (outside, _keep) = {
            let scratch = Scratch::new();
            (scratch.work(), scratch)
        };
        let mut session = Confined::start(&[], &json!({ "additionalDirectories": [outside] }));
        let temporary = session.scratch.tmp().join("made");
        for when in ["before", "after"] {
            assert!(session.writes(&outside.join("made")), "{when}: an additional directory");
            assert!(session.writes(&temporary), "{when}: the directory for temporary files");
            renew(&mut session);
        }
    }
}

#[test]
fn servers_of_the_agent_whose_role_is_played_stay() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    let starts = scratch.work().join("starts");
    let server = json!({ "s": { "command": "node", "args": [ODD, "fine", starts], "tools": ["*"] } });
    let agent = json!({ "name": "reviewer", "description": "d", "prompt": "p", "mcpServers": server });
    client.create(json!({ "customAgents": [agent], "agent": "reviewer" }));
    let names = |client: &mut Client| {
        let listed = client.call("session.mcp.list", json!({ "sessionId": ID }));
        let servers = listed["servers"].as_array().unwrap().clone();
        servers.iter().map(|server| server["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&mut client), ["s"]);
    client.call("session.mcp.reload", json!({ "sessionId": ID }));
    assert_eq!(names(&mut client), ["s"], "after they were read again");
    client.call("session.resume", of_session(json!({ "disabledMcpServers": ["other"] })));
    assert_eq!(names(&mut client), ["s"], "after a client joined");
    client.finish();
}
