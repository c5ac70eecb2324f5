//! Sessions that tasks hold.

use hangar_protocol::Body;
use hangar_registry::error::RegistryError;
use hangar_registry::resource::SessionPolicy;
use hangar_runtimes::runtime::{AgentSession, SessionCommand, SessionNews};

use crate::stage::Stage;

/// The next turn's output: the question and the answer.
async fn turn(live: &mut AgentSession) -> Vec<String> {
    let mut heard = Vec::new();
    loop {
        match live.news.recv().await.unwrap() {
            SessionNews::Event(event) => match event.body() {
                Body::UserMessage(message) => heard.push(format!("<- {}", message.content)),
                Body::AssistantMessage(message) => heard.push(format!("-> {}", message.content)),
                _ => {}
            },
            SessionNews::TurnEnded(_) => return heard,
        }
    }
}

#[tokio::test]
async fn a_session_has_one_lease_at_a_time() {
    let stage = Stage::new();
    let id = stage.open(SessionPolicy::AllowAll).await;
    let lease = stage.hub.lease(&id).await.unwrap();
    assert!(matches!(stage.hub.lease(&id).await, Err(RegistryError::Leased(_))));
    drop(lease);
    let (first, second) = tokio::join!(stage.hub.lease(&id), stage.hub.lease(&id));
    assert_eq!(first.is_ok() as usize + second.is_ok() as usize, 1);
}

#[tokio::test]
async fn what_was_asked_under_an_earlier_lease_is_no_answer_to_the_next() {
    let stage = Stage::new();
    let id = stage.open(SessionPolicy::AllowAll).await;
    let mut first = stage.hub.lease(&id).await.unwrap();
    first.commands.send(SessionCommand::Send("wait".to_owned())).await.unwrap();
    let SessionNews::Event(event) = first.news.recv().await.unwrap() else {
        panic!("a turn begins with its prompt")
    };
    assert!(matches!(event.body(), Body::UserMessage(_)));
    drop(first);
    let mut second = stage.hub.lease(&id).await.unwrap();
    stage.hub.abort(&id).await.unwrap();
    second.commands.send(SessionCommand::Send("say hello".to_owned())).await.unwrap();
    assert_eq!(turn(&mut second).await, ["<- say hello", "-> hello"]);
}
