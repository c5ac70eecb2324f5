//! One agent, heard out: what it says is written down and told, what it asks is kept for whoever answers.

use std::collections::VecDeque;
use std::sync::Arc;

use hangar_protocol::Event;
use hangar_runtimes::runtime::{AgentAnswer, AgentSession, PermissionReply, SessionCommand, SessionNews};
use tokio::sync::mpsc;

use super::{Hub, lock};
use crate::approvals::{ApprovalKind, QuestionChange, asking};
use crate::host::LogWriter;
use crate::live::{self, LiveSession, SessionUpdate};
use crate::resource::Policy;
use crate::subscription;

/// Approvals that may wait for an agent which asks and does not listen. More would be no use to anybody.
const MOST_APPROVALS: usize = 10_000;

/// Hears one agent out.
pub(super) struct Pump {
    pub(super) hub: Hub,
    pub(super) live: Arc<LiveSession>,
    pub(super) agent: AgentSession,
    pub(super) record: Option<Box<dyn LogWriter>>,
    pub(super) renamed: mpsc::Receiver<String>,
    /// Answers of a session that may do all, on their way to its agent. The pump does not wait for the agent to take one:
    /// the agent may be waiting for the pump.
    pub(super) approvals: VecDeque<SessionCommand>,
}

impl Pump {
    pub(super) async fn run(mut self) {
        let mut failure = None;
        let mut quiet = 0;
        loop {
            let news = tokio::select! {
                news = self.agent.news.recv() => {
                    quiet = 0;
                    news
                }
                place = self.live.commands.reserve(), if !self.approvals.is_empty() => {
                    match (place, self.approvals.pop_front()) {
                        (Ok(place), Some(answer)) => place.send(answer),
                        // Its last news are on the way.
                        (Err(_), _) | (_, None) => self.approvals.clear(),
                    }
                    continue;
                }
                () = until_look(&self.live, quiet) => {
                    quiet += 1;
                    let knows_all = self.live.takes_words(&self.live.state(), &self.hub.0.store);
                    if !knows_all {
                        // Those who watch go on with the file.
                        self.live.end_now();
                    }
                    continue;
                }
                Some(name) = self.renamed.recv() => {
                    // A name that cannot be written is no reason to end the work.
                    if let Some(record) = &mut self.record
                        && let Err(error) = record.rename(name)
                    {
                        tracing::warn!(session = %self.live.id, %error, "the name could not be written");
                    }
                    continue;
                }
            };
            let Some(news) = news else { break };
            match news {
                SessionNews::Event(mut event) => {
                    if let Some(error) = self.hear(&mut event) {
                        // What cannot be written down, or asks and hears nothing, must not go on.
                        failure = Some(error);
                        break;
                    }
                    self.live.heard(SessionUpdate::Event(&event));
                    let holder = self.live.state().holder();
                    pass_on(holder, SessionNews::Event(event)).await;
                }
                SessionNews::TurnEnded(ended) => {
                    let holder = self.live.state().holder();
                    self.live.state().turn_ended(&ended);
                    self.hub.settle_all(&self.live);
                    self.hub.changed(&self.live);
                    self.live.heard(SessionUpdate::TurnEnded(live::failure(&ended)));
                    pass_on(holder, SessionNews::TurnEnded(ended)).await;
                }
            }
        }
        self.end(failure).await;
    }

    /// Writes an event down and tells it. An error means that it could not be written, or that nothing comes of it.
    fn hear(&mut self, event: &mut Event) -> Option<String> {
        if let Some(record) = &mut self.record {
            match record.append(event) {
                Ok(position) => position.into_iter().for_each(|position| event.set_position(position)),
                Err(error) => return Some(error.to_string()),
            }
        }
        let live = &self.live;
        let before = live.state().shown();
        live.publish(&self.hub.0.store, event);
        match asking(event) {
            Some(QuestionChange::Asks(ApprovalKind::Permission, id)) if live.policy == Policy::AllowAll => {
                if self.approvals.len() == MOST_APPROVALS {
                    return Some(format!("the agent asked {MOST_APPROVALS} times and took no answer"));
                }
                let answer = AgentAnswer::Permission(PermissionReply::Once);
                self.approvals.push_back(SessionCommand::Answer { request_id: id.to_owned(), answer });
            }
            Some(QuestionChange::Asks(kind, id)) => self.hub.asked(live, kind, id, event),
            Some(QuestionChange::Settles(id)) => self.hub.settled(live, id),
            None => {}
        }
        if live.state().shown() != before {
            self.hub.changed(live);
        }
        None
    }

    async fn end(mut self, failure: Option<String>) {
        self.live.heard(SessionUpdate::Closed(failure.as_deref()));
        let (usage, model) = {
            let state = self.live.state();
            (*state.total(), state.model.clone().or_else(|| state.stats.model.clone()))
        };
        // The log says what went wrong, if that much can be written.
        let mut closing = None;
        if let Some(record) = &mut self.record {
            let changes = self.agent.code_changes().await.unwrap_or_default();
            closing = record.close(model, &usage, changes, failure).ok();
        }
        let Pump { hub, live, agent, record, .. } = self;
        drop(agent);
        // The lock is free before anybody is told that the session is closed.
        drop(record);
        if let Some(event) = closing {
            live.publish(&hub.0.store, &event);
        }
        hub.settle_all(&live);
        if hub.0.store.contains(&live.id) {
            hub.0.catalogue.keep(&live.id, live.state().stats.clone());
        }
        {
            let mut all = lock(&hub.0.live);
            if all.get(&live.id).is_some_and(|current| Arc::ptr_eq(current, &live)) {
                all.remove(&live.id);
            }
        }
        hub.changed(&live);
        live.close();
        live.over.cancel();
    }
}

/// Waits until it is time to see whether another process has gone on with a session that rests. That is nobody's business
/// while nobody watches.
async fn until_look(live: &LiveSession, quiet: u32) {
    if !live.own_log {
        return std::future::pending().await;
    }
    while !(live.state().rests() && live.is_watched()) {
        live.joined.notified().await;
    }
    tokio::time::sleep(subscription::patience(quiet)).await;
}

async fn pass_on(holder: Option<mpsc::Sender<SessionNews>>, news: SessionNews) {
    if let Some(holder) = holder {
        // Whoever let go of the session hears no more.
        let _ = holder.send(news).await;
    }
}
