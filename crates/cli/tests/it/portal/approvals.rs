//! Questions of agents, answered over HTTP.

use hangar_test_support::Signal;
use serde_json::{Value, json};

use super::{Portal, refused};

const TOUCH: &str = r#"TOOL:bash:{"command":"touch made.txt","description":"makes a file"}"#;

/// The one question that is open.
#[track_caller]
fn asked(portal: &Portal) -> Value {
    let open = portal.get("/api/v1/approvals");
    let [only] = open["approvals"].as_array().unwrap().as_slice() else { panic!("{open}") };
    only.clone()
}

#[track_caller]
fn path(approval: &Value) -> String {
    format!("/api/v1/approvals/{}", approval["id"].as_str().unwrap())
}

#[test]
fn of_many_who_answer_at_once_one_is_heard() {
    let portal = Portal::start();
    let id = portal.open(TOUCH, "ask");
    let mut stream = portal.hear(&id, 0);
    stream.until_state("waiting");
    let approval = asked(&portal);
    assert_eq!(approval["kind"], "permission");
    assert_eq!(approval["event"]["type"], "permission.requested");
    assert_eq!(approval["sessionId"], id.as_str());
    assert_eq!(portal.session(&id)["approvals"], 1);
    let path = path(&approval);
    let wrong = portal.ask("POST", &path).json(&json!({ "answer": "yes" })).send();
    refused(&wrong, 422, "unprocessable", "decision");
    let answers: Vec<u16> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..8)
            .map(|_| {
                let ask = portal.ask("POST", &path).json(&json!({ "decision": "approve" }));
                scope.spawn(move || ask.send().status)
            })
            .collect();
        all.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(answers.iter().filter(|status| **status == 200).count(), 1, "{answers:?}");
    assert_eq!(answers.iter().filter(|status| **status == 409).count(), 7, "{answers:?}");
    stream.until_state("idle");
    assert!(portal.scratch.work().join("made.txt").exists());
    let late = portal.ask("POST", &path).json(&json!({ "decision": "deny" })).send();
    refused(&late, 409, "already_answered", "answered already");
}

#[test]
fn who_denies_can_say_what_to_do_instead() {
    let portal = Portal::start();
    let id = portal.open(TOUCH, "ask");
    let mut stream = portal.hear(&id, 0);
    stream.until_state("waiting");
    let deny = json!({ "decision": "deny", "feedback": "use another name" });
    assert_eq!(portal.post(&path(&asked(&portal)), &deny, 200)["state"], "answered");
    let heard = stream.until_kind("permission.completed");
    let result = &heard.last().unwrap().data["data"]["result"];
    assert_eq!(result["kind"], "denied-interactively-by-user");
    assert_eq!(result["feedback"], "use another name");
    stream.until_state("idle");
    assert!(!portal.scratch.work().join("made.txt").exists());
}

#[test]
fn what_is_approved_for_the_session_is_not_asked_again() {
    let portal = Portal::start();
    let id = portal.open(&format!("{TOUCH}\n{TOUCH}\nSAY:done"), "ask");
    let mut stream = portal.hear(&id, 0);
    stream.until_state("waiting");
    portal.post(&path(&asked(&portal)), &json!({ "decision": "approve-for-session" }), 200);
    let heard = stream.until_state("idle");
    assert!(!heard.iter().any(|message| message.kind() == "permission.requested"));
    assert_eq!(heard.iter().filter(|message| message.kind() == "tool.execution_complete").count(), 2);
}

#[test]
fn a_question_is_answered_with_words() {
    let portal = Portal::start();
    let id = portal.open(r#"TOOL:ask_user:{"question":"Which colour?"}"#, "ask");
    let mut stream = portal.hear(&id, 0);
    stream.until_state("waiting");
    let approval = asked(&portal);
    assert_eq!(approval["kind"], "question");
    portal.post(&path(&approval), &json!({ "answer": "blue" }), 200);
    let heard = stream.until_state("idle");
    let answer = heard.iter().find(|message| message.kind() == "user_input.completed").unwrap();
    assert_eq!(answer.data["data"]["answer"], "blue");
}

#[test]
fn who_stops_waiting_takes_the_question_along() {
    let portal = Portal::start();
    let id = portal.open(TOUCH, "ask");
    let mut stream = portal.hear(&id, 0);
    stream.until_state("waiting");
    let approval = asked(&portal);
    portal.poke(&format!("/api/v1/sessions/{id}/abort"), 202);
    stream.until_state("idle");
    assert_eq!(portal.get("/api/v1/approvals")["approvals"], json!([]));
    let late = portal.ask("POST", &path(&approval)).json(&json!({ "decision": "approve" })).send();
    refused(&late, 409, "already_answered", "answered");
}

#[test]
fn a_question_of_a_portal_that_was_killed_is_interrupted() {
    let portal = Portal::start();
    let id = portal.open(TOUCH, "ask");
    portal.hear(&id, 0).until_state("waiting");
    portal.running.signal(Signal::KILL);
    let portal = portal.again();
    assert_eq!(portal.get("/api/v1/approvals")["approvals"], json!([]));
    let session = portal.session(&id);
    assert_eq!(session["state"], "closed");
    portal.send(&id, "SAY:going on");
    let mut stream = portal.hear(&id, session["events"].as_u64().unwrap());
    let heard = stream.until_state("idle");
    let ended = heard.iter().find(|message| message.kind() == "tool.execution_complete").unwrap();
    assert_eq!(ended.data["data"]["success"], false);
    assert!(heard.iter().any(|message| message.data["data"]["content"] == "going on"));
    assert!(!portal.scratch.work().join("made.txt").exists());
}
