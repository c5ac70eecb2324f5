//! Questions of agents in sessions with all permissions.

use hangar_registry::resource::SessionPolicy;
use hangar_runtimes::runtime::{SessionCommand, SessionNews};

use crate::stage::Stage;

/// More than the queues between a session and its agent hold.
const MANY: usize = 500;

#[tokio::test]
async fn every_question_is_answered_however_many_come_at_once() {
    let stage = Stage::new();
    let id = stage.open(SessionPolicy::AllowAll).await;
    let mut lease = stage.hub.lease(&id).await.unwrap();
    lease.commands.send(SessionCommand::Send(format!("ask {MANY}"))).await.unwrap();
    let mut asked = 0;
    while let SessionNews::Event(event) = lease.news.recv().await.unwrap() {
        asked += usize::from(event.kind() == "permission.requested");
    }
    assert_eq!(asked, MANY);
}
