//! Streams: any reader that comes at any time hears everything once and in order.

use hangar_test_support::Signal;
use proptest::prelude::*;

use super::Portal;
use super::client::Message;

/// A turn of many events.
fn long(calls: usize) -> String {
    // A model that repeats itself is stopped.
    let call = |n| format!(r#"TOOL:bash:{{"command":"true {n}","description":"nothing"}}"#);
    (0..calls).map(call).chain(["SAY:last words".to_owned()]).collect::<Vec<_>>().join("\n")
}

fn numbers(heard: &[Message]) -> Vec<u64> {
    heard.iter().filter_map(|message| message.id).collect()
}

#[test]
fn a_stream_begins_behind_any_event() {
    let portal = Portal::start();
    let id = portal.done(&long(6));
    let last = portal.session(&id)["events"].as_u64().unwrap();
    let whole: Vec<Message> = {
        let mut stream = portal.hear(&id, 0);
        stream.until(|message| message.id == Some(last))
    };
    assert_eq!(numbers(&whole), (1..=last).collect::<Vec<_>>());
    proptest!(ProptestConfig::with_cases(24), |(after in 0..last)| {
        let mut stream = portal.hear(&id, after);
        let heard = stream.until(|message| message.id == Some(last));
        prop_assert_eq!(&heard[..], &whole[after as usize..]);
        let again = portal
            .ask("GET", &format!("/api/v1/sessions/{id}/stream?after=0"))
            .header("last-event-id", &after.to_string())
            .stream()
            .until(|message| message.id == Some(last));
        prop_assert_eq!(again, heard);
    });
}

#[test]
fn readers_who_come_while_it_works_hear_everything_once() {
    let portal = Portal::start();
    let id = portal.open(&long(12), "allow-all");
    let all: Vec<Vec<u64>> = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..6)
            .map(|_| {
                // Each waits for something to have happened, and comes then.
                portal.hear(&id, 0).until_kind("tool.execution_start");
                let mut stream = portal.hear(&id, 0);
                scope.spawn(move || {
                    numbers(&stream.until(|message| message.data["data"]["content"] == "last words"))
                })
            })
            .collect();
        readers.into_iter().map(|reader| reader.join().unwrap()).collect()
    });
    for heard in all {
        assert_eq!(heard, (1..=*heard.last().unwrap()).collect::<Vec<_>>());
    }
}

#[test]
fn a_reader_goes_on_with_the_next_server_where_it_was() {
    let portal = Portal::start();
    let id = portal.open(&long(3), "allow-all");
    let mut stream = portal.hear(&id, 0);
    let first = stream.until_kind("tool.execution_complete");
    portal.running.signal(Signal::KILL);
    while stream.next().is_some() {}
    let portal = portal.again();
    let after = *numbers(&first).last().unwrap();
    portal.send(&id, "SAY:and on");
    let second = portal.hear(&id, after).until(|message| message.data["data"]["content"] == "and on");
    let heard = [numbers(&first), numbers(&second)].concat();
    assert_eq!(heard, (1..=*heard.last().unwrap()).collect::<Vec<_>>());
}

#[test]
fn resources_are_told_as_they_change() {
    let portal = Portal::start();
    let mut feed = portal.ask("GET", "/api/v1/stream").stream();
    let hello = feed.next().unwrap();
    assert_eq!(hello.event.as_deref(), Some("hello"));
    assert!(hello.data["boot"].is_string());
    let id = portal.open(r#"TOOL:bash:{"command":"touch x","description":"x"}"#, "ask");
    let mut heard = feed.until(|message| message.data["state"] == "waiting");
    let approval = heard.iter().find(|message| message.event.as_deref() == Some("approval")).unwrap();
    assert_eq!(approval.data["state"], "open");
    let answer = format!("/api/v1/approvals/{}", approval.data["id"].as_str().unwrap());
    portal.post(&answer, &serde_json::json!({ "decision": "approve" }), 200);
    heard.extend(
        feed.until(|message| message.data["state"] == "idle" && message.data["events"].as_u64() > Some(5)),
    );
    let answered = heard
        .iter()
        .any(|message| message.event.as_deref() == Some("approval") && message.data["state"] == "answered");
    assert!(answered);
    portal.poke(&format!("/api/v1/sessions/{id}/stop"), 202);
    feed.until(|message| message.data["state"] == "closed");
}
