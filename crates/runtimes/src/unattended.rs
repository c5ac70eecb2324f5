//! Sessions that nobody watches: their questions are answered at once, and they are ended in order.

use std::time::Duration;

use hangar_protocol::{Body, Event};

use crate::runtime::{AgentAnswer, AgentSession, PermissionReply, SessionCommand, SessionNews};

/// Grace period of a session that was told to stop.
const STOP_GRACE: Duration = Duration::from_secs(5);
/// Answer to a question of an agent.
const NOBODY: &str = "Nobody is here to answer. Decide by yourself, and say what you decided.";

impl AgentSession {
    /// Answers the question that an event asks, if it asks one: a permission with the given reply, anything else with the sentence
    /// that nobody is there.
    pub async fn answer_unattended(&self, event: &Event, permission: PermissionReply) {
        let (request_id, answer) = match event.body() {
            Body::PermissionRequested(asked) => (&asked.request_id, AgentAnswer::Permission(permission)),
            Body::UserInputRequested(asked) => (&asked.request_id, AgentAnswer::Question(NOBODY.to_owned())),
            _ => return,
        };
        // A session that is gone says so with its next news.
        let _ = self.commands.send(SessionCommand::Answer { request_id: request_id.clone(), answer }).await;
    }

    /// Tells the agent to stop and hears its last events, within a grace period. Dropping the session ends what is left.
    pub async fn stop(&mut self, mut hear: impl FnMut(&Event)) {
        if self.commands.try_send(SessionCommand::Stop).is_err() {
            return;
        }
        let last_events = async {
            while let Some(news) = self.news.recv().await {
                if let SessionNews::Event(event) = news {
                    hear(&event);
                }
            }
        };
        let _ = tokio::time::timeout(STOP_GRACE, last_events).await;
    }
}
