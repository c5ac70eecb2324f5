//! Sessions over several processes: resuming, one writer at a time, and what a killed process leaves behind.

use std::collections::HashSet;
use std::time::Duration;

use hangar_test_support::process::Witness;
use hangar_test_support::{Finished, ModelServer, Scratch, Signal};
use serde_json::{Value, json};

use crate::hangar;

const JSON: [&str; 3] = ["--output-format", "json", "--allow-all-tools"];

/// Starts a session called `first try`, then goes on with it as `select` says (`$ID` is its id, `$PREFIX` the head of
/// it). The second run must be the same session and must know what was said in the first.
#[track_caller]
fn check_resumes(select: &[&str]) {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let args = ["-p", "the first question\nSAY:the first answer", "--name", "first try"];
    let first = hangar(&scratch, &model).args(args).args(JSON).finish().expect_exit(0).session_id();
    let select = select.iter().map(|arg| arg.replace("$ID", &first).replace("$PREFIX", &first[..8]));
    let second = hangar(&scratch, &model)
        .args(["-p", "the second question\nSAY:the second answer"])
        .args(select)
        .args(JSON)
        .finish()
        .expect_exit(0);
    assert_eq!(second.session_id(), first);
    assert_eq!(scratch.sessions(), [first]);
    let asked = model.last_request()["messages"].to_string();
    for said in ["the first question", "the first answer", "the second question"] {
        assert!(asked.contains(said), "the model was not told `{said}`: {asked}");
    }
    let events = second.events();
    assert_eq!(Finished::of_type(&events, "user.message").len(), 1, "old events are not shown again");
}

#[test]
fn a_session_resumes_by_id() {
    check_resumes(&["--resume=$ID"]);
}

#[test]
fn totals_after_a_resume_are_those_of_the_whole_session() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let usage = scratch.work().join("usage.json");
    let share = scratch.work().join("shared.md");
    let run = |file: &str, select: Option<String>| {
        let path = scratch.work().join(file).display().to_string();
        let call = json!({ "path": path, "file_text": "one\ntwo\n" });
        hangar(&scratch, &model)
            .args(["-p", &format!("TOOL:create:{call}")])
            .args(JSON)
            .arg(format!("--usage-output-file={}", usage.display()))
            .arg(format!("--share={}", share.display()))
            .args(select)
            .finish()
            .expect_exit(0)
    };
    let first = run("a.txt", None).session_id();
    let second = run("b.txt", Some(format!("--resume={first}")));
    let log =
        std::fs::read_to_string(scratch.state().join("session-state").join(&first).join("events.jsonl"));
    let log: Vec<Value> = log.unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let usage: Value = serde_json::from_slice(&std::fs::read(usage).unwrap()).unwrap();
    for changes in [
        &log.last().unwrap()["data"]["codeChanges"],
        &second.result()["usage"]["codeChanges"],
        &usage["codeChanges"],
    ] {
        assert_eq!(changes["linesAdded"], 4, "{changes}");
        assert_eq!(changes["filesModified"].as_array().map(Vec::len), Some(2), "{changes}");
    }
    assert_eq!(usage["totalUserRequests"], 2);
    let shared = std::fs::read_to_string(share).unwrap();
    assert!(shared.contains("| changes | +4 -0 lines in 2 files |"), "{shared}");
}

#[test]
fn a_session_resumes_by_prefix() {
    check_resumes(&["--resume=$PREFIX"]);
}

#[test]
fn a_session_resumes_by_name() {
    check_resumes(&["--resume=first try"]);
}

#[test]
fn the_latest_session_is_continued() {
    check_resumes(&["--continue"]);
}

#[test]
fn a_session_resumes_by_the_id_that_it_must_have() {
    check_resumes(&["--session-id", "$ID"]);
}

#[test]
fn a_session_gets_the_id_that_it_must_have() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let id = "0b5a2a57-6f0a-4b5e-9f0c-0c8f0e4ad001";
    let run =
        hangar(&scratch, &model).args(["-p", "SAY:x", "--session-id", id]).args(JSON).finish().expect_exit(0);
    assert_eq!(run.session_id(), id);
    assert_eq!(scratch.sessions(), [id]);
}

#[test]
fn a_resumed_session_works_where_it_began() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let id = hangar(&scratch, &model).args(["-p", "SAY:x"]).args(JSON).finish().expect_exit(0).session_id();
    let run = hangar(&scratch, &model)
        .cwd(scratch.tmp())
        .args(["-p", "TOOL:bash:{\"command\":\"pwd\",\"description\":\"d\"}", &format!("--resume={id}")])
        .args(JSON)
        .finish()
        .expect_exit(0);
    let events = run.events();
    let answer = &Finished::of_type(&events, "tool.execution_complete")[0]["data"]["result"]["content"];
    let work = scratch.work().to_string_lossy().into_owned();
    assert!(answer.as_str().is_some_and(|text| text.starts_with(&work)), "{answer}");
}

#[test]
fn a_second_writer_is_refused() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let id = "0b5a2a57-6f0a-4b5e-9f0c-0c8f0e4ad002";
    let mut first =
        hangar(&scratch, &model).args(["-p", "STREAM:2000:50", "--session-id", id]).args(JSON).start();
    first.wait_for_event("assistant.message_delta");
    let second =
        hangar(&scratch, &model).args(["-p", "SAY:x", "--resume", id]).args(JSON).finish().expect_exit(1);
    assert!(second.stderr.contains(id), "the remark names the session: {}", second.stderr);
    assert_eq!(model.requests().len(), 0, "the second run asked the model");
    first.signal(Signal::INT);
    assert_eq!(first.finish().expect_exit(0).session_id(), id);
    hangar(&scratch, &model).args(["-p", "SAY:x", "--resume", id]).args(JSON).finish().expect_exit(0);
}

#[test]
fn a_tool_that_a_kill_interrupted_is_closed_and_its_children_are_gone() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let id = "0b5a2a57-6f0a-4b5e-9f0c-0c8f0e4ad003";
    let command = "sleep 1000 & echo $$ $! > pids; echo started; wait";
    let prompt = format!("TOOL:bash:{{\"command\":\"{command}\",\"description\":\"d\"}}");
    let mut run = hangar(&scratch, &model).args(["-p", &prompt, "--session-id", id]).args(JSON).start();
    run.wait_for_event("tool.shell_output");
    let pids =
        std::fs::read_to_string(scratch.work().join("pids")).expect("the command wrote its process ids");
    let children: Vec<Witness> =
        pids.split_whitespace().map(|pid| Witness::of(pid.parse().expect("a number"))).collect();
    assert_eq!(children.len(), 2);
    run.signal(Signal::KILL);
    run.finish().expect_exit(-9);
    for child in &children {
        assert!(child.is_gone_within(Duration::from_secs(30)), "a child of the killed process lives on");
    }

    let resumed =
        hangar(&scratch, &model).args(["-p", "SAY:back", "--resume", id]).args(JSON).finish().expect_exit(0);
    let events = resumed.events();
    let closed = Finished::of_type(&events, "tool.execution_complete");
    assert_eq!(closed.len(), 1);
    assert_eq!(
        (&closed[0]["data"]["success"], &closed[0]["data"]["error"]["code"]),
        (&false.into(), &"interrupted".into())
    );
    assert_eq!(Finished::of_type(&events, "session.warning")[0]["data"]["warningType"], "interrupted_tools");
    assert_eq!(dangling_calls(&model.last_request()), Vec::<String>::new());
}

#[test]
fn the_children_of_an_interrupted_process_are_gone() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let prompt =
        r#"TOOL:bash:{"command":"sleep 1000 & echo $! > pid; echo started; wait","description":"d"}"#;
    let mut run = hangar(&scratch, &model).args(["-p", prompt]).args(JSON).start();
    run.wait_for_event("tool.shell_output");
    let pid = std::fs::read_to_string(scratch.work().join("pid")).expect("the command wrote its process id");
    let child = Witness::of(pid.trim().parse().expect("a number"));
    run.signal(Signal::TERM);
    run.finish().expect_exit(0);
    assert!(child.is_gone_within(Duration::from_secs(30)), "a child of the interrupted process lives on");
}

#[test]
fn a_session_survives_a_kill_at_any_moment() {
    const KILLS: usize = 20;
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let id = "0b5a2a57-6f0a-4b5e-9f0c-0c8f0e4ad004";
    let prompt = "REPEAT:3:TOOL:bash:{\"command\":\"echo x\",\"description\":\"d\"}\nSTREAM:50";
    for round in 0..KILLS {
        let mut run = hangar(&scratch, &model).args(["-p", prompt, "--session-id", id]).args(JSON).start();
        // A stride that shares no factor with the number of lines meets different moments of the run each time; the
        // first kill comes before anything was printed.
        for _ in 0..(round * 7) % 64 {
            if run.next_line().is_none() {
                break;
            }
        }
        // The run may have ended by itself meanwhile.
        run.try_signal(Signal::KILL);
        drop(run.finish());

        let before = scratch.try_log(id).unwrap_or_default();
        let prompt = format!("SAY:back {round}");
        let back = hangar(&scratch, &model)
            .args(["-p", &prompt, "--session-id", id])
            .args(JSON)
            .finish()
            .expect_exit(0);
        let events = back.events();
        let said = Finished::of_type(&events, "assistant.message")
            .last()
            .map(|event| event["data"]["content"].clone());
        assert_eq!(said, Some(format!("back {round}").into()), "round {round}");
        assert_eq!(dangling_calls(&model.last_request()), Vec::<String>::new(), "round {round}");
        check_log(&scratch.log(id), &before);
    }
}

/// A log is whole lines of JSON with ids of their own, each event behind its parent, and it only ever grows.
#[track_caller]
fn check_log(log: &str, before: &str) {
    let whole = &before[..before.rfind('\n').map_or(0, |end| end + 1)];
    assert!(log.starts_with(whole), "what was in the log has changed");
    let mut ids: HashSet<String> = HashSet::new();
    for line in log.lines() {
        let event: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        if let Some(parent) = event["parentId"].as_str() {
            assert!(ids.contains(parent), "the parent of this event is not before it: {line}");
        }
        let id = event["id"].as_str().expect("an event has an id").to_owned();
        assert!(ids.insert(id), "this id is taken: {line}");
    }
}

/// The tool calls in a chat request that have no answer.
fn dangling_calls(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let answered: HashSet<String> =
        messages.iter().filter_map(|message| text(&message["tool_call_id"])).collect();
    let calls =
        messages.iter().flat_map(|message| message["tool_calls"].as_array().cloned().unwrap_or_default());
    calls.filter_map(|call| text(&call["id"])).filter(|id| !answered.contains(id)).collect()
}
