//! The life of sessions and servers: ends, restarts, many sessions, several clients, lists, and what goes wrong.

use std::process::Command;
use std::sync::Arc;

use github_copilot_sdk::types::{SessionId, ToolResult};
use github_copilot_sdk::{Client, Transport};
use hangar_sdk_rust::{
    answer, call, client, config, data, mark, options, resume, run, stuck_tool, told, tool, until,
};
use serde_json::json;

#[tokio::test]
async fn an_abort_ends_the_run_and_the_session_goes_on() {
    let client = client().await;
    let session = client.create_session(config()).await.unwrap();
    let mut events = session.subscribe();
    session.send("DELAY:3600000\nSAY:never").await.unwrap();
    until(&mut events, "assistant.turn_start").await;
    session.abort().await.unwrap();
    let rest = until(&mut events, "session.idle").await;
    assert_eq!(data(&rest, "session.idle")[0]["aborted"], true);
    assert_eq!(answer(&run(&session, "SAY:still here").await), "still here");
}

#[tokio::test]
async fn a_session_outlives_a_server_that_is_killed_in_the_middle_of_a_call() {
    let first = client().await;
    let (slow, called) = stuck_tool("slow");
    let before = first.create_session(config().with_tools([slow])).await.unwrap();
    let id = before.id().clone();
    let word = mark();
    run(&before, format!("{word}\nSAY:noted")).await;
    before.send(format!("{}\nSAY:never", call("slow", &json!({})))).await.unwrap();
    called.notified().await;
    let pid = first.pid().expect("the server is a process").to_string();
    assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());

    let second = client().await;
    let after = second.resume_session(resume(&id)).await.unwrap();
    let history = after.get_events().await.unwrap();
    assert!(data(&history, "user.message").iter().any(|message| message.to_string().contains(&word)));
    assert_eq!(answer(&run(&after, "SAY:back again").await), "back again");
    assert!(told(&word).contains("interrupted"));
}

#[tokio::test]
async fn many_sessions_work_side_by_side_and_none_is_lost() {
    let client = client().await;
    let working = (0..30).map(|number| {
        let client = client.clone();
        tokio::spawn(async move {
            let number = tool("number", move |_| Ok(ToolResult::Text(format!("number {number}"))));
            let session = client.create_session(config().with_tools([number])).await.unwrap();
            let events = run(&session, format!("{}\nSAY:done", call("number", &json!({})))).await;
            let result = data(&events, "tool.execution_complete")[0]["result"]["content"].clone();
            (session.id().clone(), result, answer(&events).to_owned())
        })
    });
    let listed: Vec<_> = working.collect();
    let mut ids = Vec::new();
    for (number, working) in listed.into_iter().enumerate() {
        let (id, result, said) = working.await.unwrap();
        assert_eq!((result, said.as_str()), (json!(format!("number {number}")), "done"));
        ids.push(id);
    }
    let listed = client.list_sessions(None).await.unwrap();
    assert!(ids.iter().all(|id| listed.iter().any(|session| session.session_id == *id)));
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

#[tokio::test]
async fn two_clients_of_one_server_share_a_session_and_a_stranger_is_refused() {
    let port = free_port();
    let token = |text: &str| Some(text.to_owned());
    let owner = options().with_transport(Transport::Tcp { port, connection_token: token("right") });
    let owner = Client::start(owner).await.unwrap();
    let guest = |secret: &str| {
        let host = "127.0.0.1".to_owned();
        Client::start(options().with_transport(Transport::External {
            host,
            port,
            connection_token: token(secret),
        }))
    };
    let refused = guest("wrong").await.err().expect("a wrong token is refused");
    assert!(format!("{refused:?} {refused}").contains("AUTHENTICATION_FAILED"), "{refused:?}");

    let guest = guest("right").await.unwrap();
    let saying = |name: &str, text: &'static str| tool(name, move |_| Ok(ToolResult::Text(text.to_owned())));
    let theirs = owner.create_session(config().with_tools([saying("hammer", "by hammer")])).await.unwrap();
    let ours =
        guest.resume_session(resume(theirs.id()).with_tools([saying("chisel", "by chisel")])).await.unwrap();
    let mut watched = theirs.subscribe();
    let prompt = format!("{}\n{}\nSAY:done", call("hammer", &json!({})), call("chisel", &json!({})));
    let events = run(&ours, prompt).await;
    let ended = data(&events, "tool.execution_complete");
    let results: Vec<_> = ended.iter().map(|ended| ended["result"]["content"].as_str().unwrap()).collect();
    assert_eq!(results, ["by hammer", "by chisel"]);
    assert_eq!(answer(&until(&mut watched, "session.idle").await), "done");
}

#[tokio::test]
async fn sessions_are_described_and_deleted_and_models_listed() {
    let client = client().await;
    assert!(client.list_models().await.unwrap().iter().any(|model| model.id == "mock-model"));
    assert_eq!(client.get_status().await.unwrap().protocol_version, 3);
    assert!(!client.get_auth_status().await.unwrap().is_authenticated);
    let session = client.create_session(config()).await.unwrap();
    let id = session.id().clone();
    run(&session, "SAY:x").await;
    assert_eq!(
        client.get_session_metadata(&id).await.unwrap().map(|found| found.session_id),
        Some(id.clone())
    );
    assert!(client.get_last_session_id().await.unwrap().is_some());
    session.disconnect().await.unwrap();
    client.delete_session(&id).await.unwrap();
    assert!(client.get_session_metadata(&id).await.unwrap().is_none());
}

#[tokio::test]
async fn what_goes_wrong_is_named() {
    let client = Arc::new(client().await);
    let unknown = SessionId::from("9b5a2a57-6f0a-4b5e-9f0c-0c8f0e4ad001");
    let error = client.resume_session(resume(&unknown)).await.err().expect("there is no such session");
    assert!(error.to_string().contains(unknown.as_ref()), "{error}");
    let session = client.create_session(config()).await.unwrap();
    let events = run(&session, "FAIL:401").await;
    assert_eq!(data(&events, "session.error")[0]["errorType"], "authentication");
    assert_eq!(answer(&run(&session, "SAY:better").await), "better");
}
