//! Sessions: starting, talking, polling in both forms, stopping.

use serde_json::{Value, json};

use super::{MODEL, Portal, names, request};

fn query(portal: &Portal, session: &str, prompt: &str) {
    assert_eq!(portal.post(&format!("copilot/session/{session}/query"), prompt), json!({}));
}

/// One call of a reader with a token.
fn read(portal: &Portal, session: &str, token: &str) -> Value {
    read_at(portal.port, session, token)
}

fn read_at(port: u16, session: &str, token: &str) -> Value {
    request(port, "GET", &format!("copilot/session/{session}/live/{token}"), "").1
}

/// All that a reader with a token is given, to the end.
fn read_all(port: u16, session: &str, token: &str) -> Vec<Value> {
    let mut all = Vec::new();
    loop {
        let answer = read_at(port, session, token);
        match answer["error"].as_str() {
            Some("SessionClosed") => return all,
            Some("HttpRequestTimeout") => {}
            Some(error) => panic!("{error} after {all:?}"),
            None => all.extend(answer["responses"].as_array().unwrap().iter().cloned()),
        }
    }
}

#[test]
fn a_session_needs_a_model_and_a_directory_that_are_there() {
    let portal = Portal::start();
    let check = |model: &str, directory: &str, error: &str| {
        let answer = portal.post(&format!("copilot/session/start/{model}"), directory);
        assert_eq!(answer, json!({ "error": error }), "{model} {directory}");
    };
    check("no-such-model", &portal.work(), "ModelIdNotFound");
    check(MODEL, "relative/path", "WorkingDirectoryNotAbsolutePath");
    check(MODEL, "/no/such/directory", "WorkingDirectoryNotExists");
    let file = portal.scratch.file("a.txt", "");
    check(MODEL, file.to_str().unwrap(), "WorkingDirectoryNotExists");
}

#[test]
fn where_models_cannot_be_known_any_will_do() {
    // Nobody listens where the provider should be.
    let portal = Portal::start_elsewhere();
    assert_eq!(portal.get("copilot/models"), json!({ "models": [] }));
    assert_eq!(
        portal.post("copilot/session/start/any-model", &portal.work()),
        json!({ "sessionId": "session-1" })
    );
}

#[test]
fn sessions_are_counted_and_an_empty_body_means_the_usual_directory() {
    let portal = Portal::start();
    assert_eq!(portal.start_session(), "session-1");
    let answer = portal.post(&format!("copilot/session/start/{MODEL}"), "");
    assert_eq!(answer, json!({ "sessionId": "session-2" }));
}

#[test]
fn a_query_is_answered_with_callbacks_one_at_a_time_and_in_order() {
    let portal = Portal::start();
    let session = portal.start_session();
    query(&portal, &session, "THINK:hm\nSTREAM:3");
    let heard = portal.until_idle(&session);
    let heard_names = names(&heard);
    let expected = [
        "onAgentStart",
        "onStartReasoning",
        "onReasoning",
        "onEndReasoning",
        "onStartMessage",
        "onMessage",
        "onMessage",
        "onMessage",
        "onEndMessage",
        "onAgentEnd",
        "onIdle",
    ];
    let mut sorted = (heard_names.clone(), expected.map(str::to_owned).to_vec());
    sorted.0.sort();
    sorted.1.sort();
    assert_eq!(sorted.0, sorted.1, "{heard_names:?}");
    let at = |name: &str| heard_names.iter().position(|heard| heard == name).unwrap();
    let order = ["onAgentStart", "onStartMessage", "onMessage", "onEndMessage", "onAgentEnd", "onIdle"];
    assert!(order.is_sorted_by_key(|name| at(name)), "{heard_names:?}");
    assert!(at("onStartReasoning") < at("onReasoning") && at("onReasoning") < at("onEndReasoning"));
    let text = |name: &str, member: &str| -> String {
        heard.iter().filter(|it| it["callback"] == name).map(|it| it[member].as_str().unwrap()).collect()
    };
    assert_eq!(text("onMessage", "delta"), "tok0 tok1 tok2 ");
    assert_eq!(text("onEndMessage", "completeContent").trim_end(), "tok0 tok1 tok2");
    assert_eq!(text("onEndReasoning", "completeContent"), "hm");
}

#[test]
fn tools_are_told_with_arguments_and_result() {
    let portal = Portal::start();
    let session = portal.start_session();
    query(&portal, &session, r#"TOOL:bash:{"command":"echo out","description":"d"}"#);
    let heard = portal.until_idle(&session);
    let of =
        |name: &str| heard.iter().find(|it| it["callback"] == name).unwrap_or_else(|| panic!("{heard:#?}"));
    let start = of("onStartToolExecution");
    assert_eq!(start["toolName"], "bash");
    assert_eq!(start["toolArguments"], "{\n  \"command\": \"echo out\",\n  \"description\": \"d\"\n}");
    assert!(start.get("parentToolCallId").is_none());
    let end = of("onEndToolExecution");
    assert_eq!(end["toolCallId"], start["toolCallId"]);
    assert!(end["result"]["content"].as_str().unwrap().contains("out"), "{end}");
    assert!(end.get("error").is_none());
}

#[test]
fn a_failing_model_is_an_error_of_the_session_which_goes_on() {
    let portal = Portal::start();
    let session = portal.start_session();
    query(&portal, &session, "FAIL:400");
    let heard = portal.until_idle(&session);
    assert_eq!(heard.iter().filter(|it| it["sessionError"].is_string()).count(), 1, "{heard:#?}");
    query(&portal, &session, "SAY:again");
    assert!(names(&portal.until_idle(&session)).contains(&"onEndMessage".to_owned()));
}

#[test]
fn sessions_do_not_mix() {
    let portal = Portal::start();
    let sessions = [portal.start_session(), portal.start_session(), portal.start_session()];
    for session in &sessions {
        query(&portal, session, &format!("SAY:I am {session}"));
    }
    for session in &sessions {
        let heard = portal.until_idle(session);
        let end = heard.iter().find(|it| it["callback"] == "onEndMessage").unwrap();
        assert_eq!(end["completeContent"], format!("I am {session}"));
    }
}

#[test]
fn an_idle_session_times_out_and_a_second_call_is_refused() {
    let portal = Portal::start();
    let session = portal.start_session();
    for form in ["live", "live/token"] {
        let waiting = portal.wait_elsewhere(&format!("copilot/session/{session}/{form}"));
        assert_eq!(waiting.join().unwrap(), json!({ "error": "HttpRequestTimeout" }));
    }
}

#[test]
fn stopping_answers_who_waits_and_then_the_id_is_gone() {
    let portal = Portal::start();
    let session = portal.start_session();
    let waiting = portal.wait_elsewhere(&format!("copilot/session/{session}/live"));
    let stop = format!("copilot/session/{session}/stop");
    assert_eq!(portal.get(&stop), json!({ "result": "Closed" }));
    assert_eq!(waiting.join().unwrap(), json!({ "error": "SessionClosed" }));
    let not_found = json!({ "error": "SessionNotFound" });
    assert_eq!(portal.get(&format!("copilot/session/{session}/live")), not_found);
    assert_eq!(portal.get(&stop), not_found);
    assert_eq!(portal.post(&format!("copilot/session/{session}/query"), "SAY:more"), not_found);
    assert_eq!(portal.post(&format!("copilot/task/start/ok/session/{session}"), ""), not_found);
}

#[test]
fn what_was_said_is_drained_after_the_end() {
    let portal = Portal::start();
    let session = portal.start_session();
    query(&portal, &session, "SAY:before the end");
    // One reader finds out when it is over, another has read nothing until then.
    let mut responses = Vec::new();
    while !responses.iter().any(|it: &Value| it["callback"] == "onIdle") {
        let answer = read(&portal, &session, "first");
        responses.extend(answer["responses"].as_array().into_iter().flatten().cloned());
    }
    portal.post(&format!("copilot/session/{session}/stop"), "");
    let heard = names(&portal.drain(&format!("session/{session}")));
    assert_eq!(heard.first().map(String::as_str), Some("onAgentStart"));
    assert_eq!(heard.last().map(String::as_str), Some("onIdle"));
    assert_eq!(portal.get(&format!("copilot/session/{session}/live")), json!({ "error": "SessionNotFound" }));
    assert_eq!(read(&portal, &session, "first"), json!({ "error": "SessionClosed" }));
    let late = read_all(portal.port, &session, "second");
    assert_eq!(late.last(), Some(&json!({ "callback": "onIdle" })));
    assert!(names(&late).contains(&"onEndMessage".to_owned()));
    assert!(!names(&late).contains(&"onMessage".to_owned()), "pieces are left out when their whole is there");
    assert_eq!(read(&portal, &session, "second"), json!({ "error": "SessionNotFound" }));
}

#[test]
fn many_read_at_once_and_each_gets_everything_in_order() {
    let portal = Portal::start();
    let session = portal.start_session();
    // A reader's final view: everything but pieces, and the pieces of each text joined.
    let view = |responses: &[Value]| -> (Vec<Value>, String) {
        let (pieces, rest): (Vec<&Value>, Vec<&Value>) =
            responses.iter().partition(|it| it["callback"] == "onMessage");
        let pieces: String = pieces.iter().map(|it| it["delta"].as_str().unwrap()).collect();
        (rest.into_iter().cloned().collect(), pieces)
    };
    std::thread::scope(|scope| {
        let readers: Vec<_> = ["a", "b", "c"]
            .map(|token| {
                let (port, session) = (portal.port, &session);
                scope.spawn(move || read_all(port, session, token))
            })
            .into();
        for _ in 0..3 {
            query(&portal, &session, "STREAM:40:2\nTOOL:bash:{\"command\":\"echo out\"}");
        }
        let mut plain = Vec::new();
        for _ in 0..3 {
            plain.extend(portal.until_idle(&session));
        }
        portal.get(&format!("copilot/session/{session}/stop"));
        let (rest, pieces) = view(&plain);
        assert!(rest.len() > 20 && pieces.matches("tok39").count() == 3, "{pieces}");
        for reader in readers {
            let read = view(&reader.join().unwrap());
            assert_eq!(read.0, rest);
            // Pieces that were put into their whole are not told again.
            assert!(pieces.len() >= read.1.len());
        }
    });
}

#[test]
fn new_readers_are_too_late_after_a_while() {
    let portal = Portal::start();
    let session = portal.start_session();
    read(&portal, &session, "known");
    portal.post(&format!("copilot/session/{session}/stop"), "");
    let mut tries = 0;
    // Each try is a new reader, which is told that it is over as long as it may come.
    while read(&portal, &session, &format!("late-{tries}")) == json!({ "error": "SessionClosed" }) {
        tries += 1;
        std::thread::yield_now();
    }
    let token = format!("late-{}", tries + 1);
    assert_eq!(read(&portal, &session, &token), json!({ "error": "SessionNotFound" }));
    assert_eq!(read(&portal, &session, "known"), json!({ "error": "SessionClosed" }));
}

#[test]
fn readers_with_tokens_read_by_themselves() {
    let portal = Portal::start();
    let session = portal.start_session();
    query(&portal, &session, "SAY:once");
    let plain = portal.until_idle(&session);
    let answer = read(&portal, &session, "a");
    let batch = answer["responses"].as_array().unwrap();
    let without_pieces = |responses: &[Value]| -> Vec<Value> {
        responses.iter().filter(|it| it["callback"] != "onMessage").cloned().collect()
    };
    assert_eq!(batch, &without_pieces(&plain));
    assert_eq!(
        read(&portal, &session, "b")["responses"],
        answer["responses"],
        "a new reader reads from the start"
    );
}
