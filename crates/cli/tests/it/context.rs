//! Long sessions: summaries and their files, records that summaries must keep, rewinding, and work that was pending
//! when the server died.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use hangar_test_support::{Finished, ModelServer};
use serde_json::{Value, json};

use crate::hangar;
use crate::sdk::{Client, ID, stage};

/// The model's last request.
fn shown(model: &ModelServer) -> String {
    let messages = model.last_request()["messages"].take();
    messages
        .as_array()
        .unwrap()
        .iter()
        .map(|message| format!("{}\n", message["content"].as_str().unwrap_or("")))
        .collect()
}

fn in_session(method_params: Value) -> Value {
    let mut params = method_params;
    params["sessionId"] = json!(ID);
    params
}

#[test]
fn todos_the_plan_and_every_prompt_survive_a_summary_and_a_resume() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    client.create(json!({}));
    let todo = json!({
        "description": "d",
        "query": "INSERT INTO todos (id, title) VALUES ('t1', 'write the tests'), ('t2', 'rest'); UPDATE todos SET status = 'done' WHERE id = 't2'",
    });
    client.send(&format!("Keep  \u{e4} two blanks.\nTOOL:sql:{todo}\nSAY:noted"));
    client.event("session.idle");
    client.call("session.plan.update", in_session(json!({ "content": "# Plan\n1. *all* of it\n" })));
    let compacted = client.call("session.history.compact", in_session(json!({})));
    assert_eq!(compacted["success"], true, "{compacted}");
    let complete = client.event("session.compaction_complete");
    assert_eq!((&complete["success"], &complete["checkpointNumber"]), (&json!(true), &json!(1)));
    assert!(std::path::Path::new(complete["checkpointPath"].as_str().unwrap()).is_file());
    let listed = client.call("session.workspaces.listCheckpoints", in_session(json!({})));
    assert_eq!(listed["checkpoints"][0]["number"], 1);
    let read = client.call("session.workspaces.readCheckpoint", in_session(json!({ "number": 1 })));
    assert_eq!(read["content"], complete["summaryContent"]);
    client.finish();

    // Another process knows it from the log.
    let mut client = Client::start(&scratch, &model);
    client.call("session.resume", in_session(json!({})));
    client.send("SAY:on it");
    client.event("session.idle");
    let shown = shown(&model);
    for owed in ["Keep  \u{e4} two blanks.\n", "# Plan\n1. *all* of it\n", "t1 [pending] write the tests"] {
        assert!(shown.contains(owed), "{owed:?} is lost: {shown}");
    }
    assert!(!shown.contains("[done]"), "{shown}");
    client.finish();
    let index =
        std::fs::read_to_string(scratch.state().join("session-state").join(ID).join("checkpoints/index.md"));
    assert!(index.unwrap().contains("| 1 | "));
}

#[test]
fn a_refusal_as_too_long_forces_a_summary_in_a_one_shot_session_too() {
    let (scratch, model) = stage();
    let json = ["--output-format", "json", "--all-events"];
    let first = hangar(&scratch, &model).args(["-p", "first\nSAY:one"]).args(json).finish().expect_exit(0);
    let resume = format!("--resume={}", first.session_id());
    // The failure belongs to this prompt alone; without history it is an error.
    let second = hangar(&scratch, &model).args(["-p", "FAIL:413:1\nSAY:two", &resume]).args(json).finish();
    let events = second.events();
    let start = Finished::of_type(&events, "session.compaction_start");
    assert_eq!(start[0]["data"]["trigger"], "context_limit_retry");
    let retries = Finished::of_type(&events, "assistant.turn_retry");
    assert_eq!(retries[0]["data"]["reason"], "forced_compaction");
    let summary = model.requests().into_iter().find(|request| request.body["tool_choice"] == "none");
    assert!(summary.unwrap().body["tools"].as_array().is_some_and(|tools| !tools.is_empty()));
    let alone = hangar(&scratch, &model).args(["-p", "FAIL:413"]).args(json).finish().expect_exit(1);
    assert_eq!(Finished::of_type(&alone.events(), "session.compaction_start").len(), 0);
}

#[test]
fn a_client_is_told_that_there_is_nothing_to_sum_up() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    client.create(json!({}));
    let answer = client.answer("session.history.compact", in_session(json!({})));
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("Nothing to compact."), "{answer}");
    client.finish();
}

const COMPACTED: &str = "0cb916ba-26aa-40f2-86b5-1ba81b225fd2";

#[test]
fn a_prompt_can_ask_for_a_summary_and_fails_where_there_is_nothing_to_sum_up() {
    let (scratch, model) = stage();
    let run = |prompt: &str, session: &str| {
        let args = ["-p", prompt, session, COMPACTED, "--output-format", "json"];
        hangar(&scratch, &model).args(args).finish()
    };
    run("SAY:one", "--session-id").expect_exit(0);
    run("SAY:two", "--resume").expect_exit(0);
    let events = run("/compact the colours", "--resume").expect_exit(0).events();
    assert_eq!(Finished::of_type(&events, "user.message").len(), 0, "it is no prompt");
    assert!(shown(&model).contains("the colours"));
    assert_eq!(model.last_request()["tool_choice"], "none");
    run("SAY:three", "--resume").expect_exit(0);
    assert!(!model.last_request()["messages"].to_string().contains("/compact"));
    let before = model.requests().len();
    run("/compact", "--resume").expect_exit(0);
    let again = run("/compact", "--resume").expect_exit(1);
    assert!(again.stderr.contains("Nothing to compact."), "{}", again.stderr);
    assert_eq!(model.requests().len(), before + 1);
    run("/compactor SAY:prompt", "--resume").expect_exit(0);
    assert!(shown(&model).contains("/compactor"));
}

#[test]
fn rewinding_restores_files_and_leaves_what_a_person_changed() {
    let (scratch, model) = stage();
    scratch.file("theirs.txt", "original\n");
    let mut client = Client::start(&scratch, &model);
    let work = scratch.work();
    client.create(json!({
        "enableFileChangeTracking": true,
        "requestPermission": true,
        "workingDirectory": work,
    }));
    client.call("session.permissions.setApproveAll", in_session(json!({ "enabled": true })));
    let path = |name: &str| work.join(name).display().to_string();
    client.send(&format!(
        "TOOL:create:{}\nTOOL:edit:{}\nSAY:done",
        json!({ "path": path("made.txt"), "file_text": "new\n" }),
        json!({ "path": path("theirs.txt"), "old_str": "original", "new_str": "by a tool" }),
    ));
    client.event("session.idle");
    assert!(work.join("made.txt").is_file());
    scratch.file("theirs.txt", "by a person\n");
    let points = client.call("session.history.listRewindPoints", in_session(json!({})));
    let point = &points["points"][0];
    assert_eq!((&point["fileCount"], &point["canRestoreFiles"]), (&json!(2), &json!(true)), "{points}");
    let to = json!({ "eventId": point["eventId"], "mode": "conversation-and-files" });
    let rewound = client.call("session.history.rewind", in_session(to));
    assert_eq!(rewound["outcome"], "success", "{rewound}");
    assert_eq!(rewound["skippedFiles"][0]["reason"], "user-modified");
    assert!(!work.join("made.txt").exists());
    assert_eq!(std::fs::read_to_string(work.join("theirs.txt")).unwrap(), "by a person\n");
    assert!(!client.kinds().iter().any(|kind| kind == "user.message"));
    client.finish();
}

#[test]
fn a_fork_can_be_rewound_as_the_session_that_it_came_from() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    let work = scratch.work();
    let config =
        json!({ "enableFileChangeTracking": true, "requestPermission": true, "workingDirectory": work });
    client.create(config.clone());
    client.call("session.permissions.setApproveAll", in_session(json!({ "enabled": true })));
    client.call("session.plan.update", in_session(json!({ "content": "# Plan\n" })));
    let path = work.join("a.txt");
    let mut say = |prompt: String| {
        client.forget();
        client.send(&prompt);
        client.event("session.idle");
    };
    say(format!("TOOL:create:{}\nSAY:made", json!({ "path": path, "file_text": "one\n" })));
    say(format!("TOOL:edit:{}\nSAY:changed", json!({ "path": path, "old_str": "one", "new_str": "two" })));
    let fork = client.call("sessions.fork", in_session(json!({})))["sessionId"].clone();
    let of_fork = |mut params: Value| {
        params["sessionId"] = fork.clone();
        params
    };
    client.call("session.resume", of_fork(config));
    let points = client.call("session.history.listRewindPoints", of_fork(json!({})));
    let last = points["points"].as_array().unwrap().last().unwrap();
    let to = json!({ "eventId": last["eventId"], "mode": "conversation-and-files" });
    let rewound = client.call("session.history.rewind", of_fork(to));
    assert_eq!(
        (&rewound["outcome"], &rewound["restoredFiles"]),
        (&json!("success"), &json!([path])),
        "{rewound}"
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\n");
    assert_eq!(client.call("session.plan.read", of_fork(json!({})))["content"], "# Plan\n");
    client.finish();
}

#[test]
fn a_session_that_changes_no_file_keeps_no_snapshots() {
    let (scratch, model) = stage();
    let done =
        hangar(&scratch, &model).args(["-p", "SAY:hi", "--output-format", "json"]).finish().expect_exit(0);
    let dir = scratch.state().join("session-state").join(done.session_id());
    assert!(dir.is_dir() && !dir.join("rewind-file-snapshots").exists());
}

fn tool() -> Value {
    json!({ "name": "lookup", "description": "d", "parameters": { "type": "object" }, "skipPermission": true })
}

#[test]
fn a_clients_call_can_be_answered_after_the_server_was_killed() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    client.create(json!({ "tools": [tool()] }));
    client.send("TOOL:lookup:{\"key\":\"a\"}\nSAY:done");
    let asked = client.event("external_tool.requested");
    client.kill();

    let mut client = Client::start(&scratch, &model);
    client.call("session.resume", in_session(json!({ "continuePendingWork": true, "tools": [tool()] })));
    assert_eq!(client.event("session.resume")["continuePendingWork"], true);
    let answer = in_session(json!({ "requestId": asked["requestId"], "result": "found it" }));
    assert_eq!(client.call("session.tools.handlePendingToolCall", answer.clone())["success"], true);
    assert_eq!(client.call("session.tools.handlePendingToolCall", answer)["success"], false);
    client.event("session.idle");
    assert!(shown(&model).contains("found it"));
    client.finish();
}

#[test]
fn a_permission_can_be_given_after_the_server_was_killed() {
    let (scratch, model) = stage();
    let work = scratch.work();
    let config = json!({ "requestPermission": true, "workingDirectory": work });
    let mut client = Client::start(&scratch, &model);
    client.create(config.clone());
    let create = json!({ "path": work.join("made.txt"), "file_text": "new\n" });
    client.send(&format!("TOOL:create:{create}\nSAY:done"));
    let asked = client.event("permission.requested");
    client.kill();
    assert!(!work.join("made.txt").exists());

    let mut client = Client::start(&scratch, &model);
    client.call(
        "session.resume",
        in_session(json!({ "continuePendingWork": true, "requestPermission": true })),
    );
    client.event("session.resume");
    let pending = client.call("session.permissions.pendingRequests", in_session(json!({})));
    assert_eq!(pending["items"][0]["requestId"], asked["requestId"], "{pending}");
    let approve = json!({ "requestId": asked["requestId"], "result": { "kind": "approve-once" } });
    let answered = client.call("session.permissions.handlePendingPermissionRequest", in_session(approve));
    assert_eq!(answered["success"], true);
    client.event("session.idle");
    assert_eq!(std::fs::read_to_string(work.join("made.txt")).unwrap(), "new\n");
    client.finish();
}

#[test]
fn an_instruction_comes_at_its_share_of_the_budget_once() {
    let (scratch, model) = stage();
    let config =
        "[budget]\nturns = 4\n\n[[just_in_time]]\nat = 50\nof = \"turns\"\ntext = \"Half of it is gone.\"\n";
    std::fs::create_dir_all(scratch.state()).unwrap();
    std::fs::write(scratch.state().join("config.toml"), config).unwrap();
    let json = ["--output-format", "json", "--allow-all-tools"];
    let echo = "TOOL:bash:{\"command\":\"true\",\"description\":\"d\"}";
    let run = |args: &[&str]| hangar(&scratch, &model).args(args).args(json).finish().expect_exit(0);
    let first = run(&["-p", &format!("{echo}\n{echo}\nSAY:done")]);
    let told = |done: &Finished| {
        let events = done.events();
        let told = Finished::of_type(&events, "user.message");
        told.iter().filter(|event| event["data"]["source"] == "jit-instruction").count()
    };
    assert_eq!(told(&first), 1);
    let resume = format!("--resume={}", first.session_id());
    assert_eq!(told(&run(&["-p", &format!("{echo}\n{echo}\n{echo}\nSAY:done"), &resume])), 0);
    let log = scratch.log(&first.session_id());
    assert_eq!(log.matches("jit-instruction").count(), 1);
}

#[test]
fn an_instruction_for_work_that_has_changed_nothing_since_the_base_commit() {
    let check = |work: &str, told: bool| {
        let (scratch, model) = stage();
        let git = |args: &[&str]| {
            let me = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
            let status =
                std::process::Command::new("git").args(me).args(args).current_dir(scratch.work()).output();
            assert!(status.unwrap().status.success(), "git {args:?}");
        };
        scratch.file("a.txt", "a");
        git(&["init", "-q"]);
        git(&["add", "-A"]);
        git(&["commit", "-qm", "base"]);
        let config = "[budget]\nturns = 4\n\n[[just_in_time]]\nat = 25\nof = \"turns\"\nunchanged = true\n\
                      text = \"Begin.\"\n";
        std::fs::create_dir_all(scratch.state()).unwrap();
        std::fs::write(scratch.state().join("config.toml"), config).unwrap();
        let command = json!({ "command": work, "description": "d" });
        let run = hangar(&scratch, &model)
            .args([
                "-p",
                &format!("TOOL:bash:{command}\nSAY:done"),
                "--output-format",
                "json",
                "--allow-all-tools",
            ])
            .finish()
            .expect_exit(0);
        assert_eq!(run.stdout.contains("jit-instruction"), told, "{work}");
    };
    check("true", true);
    check("echo b > a.txt", false);
    check("touch new.txt", false);
    let commit = "echo b > a.txt; git -c user.name=t -c user.email=t@example.com commit -qam more";
    check(commit, false);
}
