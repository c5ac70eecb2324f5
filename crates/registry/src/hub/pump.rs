//! Pump of one agent: its events are logged and published, its questions are kept until they are answered.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use hangar_protocol::Event;
use hangar_runtimes::outcome::TurnResult;
use hangar_runtimes::runtime::{
    AgentAnswer, AgentSession, PermissionReply, SessionCommand, SessionNews, TreeFollower,
};
use hangar_scheduler::item::WorkItem;
use tokio::sync::mpsc;

use super::Hub;
use super::joining::LogPositions;
use crate::approvals::{ApprovalKind, QuestionChange, asking};
use crate::changes;
use crate::host::LogWriter;
use crate::live::{self, LiveSession, SessionUpdate};
use crate::queue::Slot;
use crate::resource::SessionPolicy;
use crate::subscription;

/// Maximum number of pending approvals of one agent, which asks and never reads answers.
const MOST_APPROVALS: usize = 10_000;

/// Interval at which a joined session of a fleet is checked for readers, and checks without one after which it is left.
const UNREAD_EVERY: Duration = Duration::from_secs(20);
const UNREAD_LOOKS: u32 = 3;

/// Reads one agent's news to their end.
pub(super) struct Pump {
    pub(super) hub: Hub,
    pub(super) live: Arc<LiveSession>,
    pub(super) agent: AgentSession,
    /// Host by ssh that the agent works on.
    pub(super) host: Option<String>,
    pub(super) record: Option<Box<dyn LogWriter>>,
    pub(super) renamed: mpsc::Receiver<String>,
    /// Answers of a session that may do all, on their way to its agent. The pump does not wait for the agent to take one:
    /// the agent may be waiting for the pump.
    pub(super) approvals: VecDeque<SessionCommand>,
    /// Item by which turns count in the queue that nobody queued. `None` for a session of a run, which has a slot.
    pub(super) counts_as: Option<WorkItem>,
    /// Slot of the current turn.
    pub(super) counted: Option<Slot>,
    /// Remark on it in the queue.
    pub(super) remarked: Option<String>,
    /// Working tree, of an agent that does not tell of its changes.
    pub(super) tree: Option<TreeFollower>,
    /// Positions in the log of a session that another process writes.
    pub(super) positions: Option<LogPositions>,
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
                () = unread(&self.hub, &self.live) => {
                    self.live.end_now();
                    continue;
                }
                () = until_look(&self.live, quiet) => {
                    quiet += 1;
                    let knows_all = self.live.takes_words(&self.live.state(), &self.hub.0.store);
                    if !knows_all {
                        // Subscribers continue with the file.
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
                        // An agent whose events cannot be logged, or whose questions get no answer, must not continue.
                        failure = Some(error);
                        break;
                    }
                    self.live.heard(SessionUpdate::Event(&event));
                    let holder = self.live.state().holder();
                    pass_on(holder, SessionNews::Event(event)).await;
                }
                SessionNews::TurnEnded(ended) => {
                    let failed = match &ended.outcome.end {
                        TurnResult::Failed(failure) => Some(failure),
                        TurnResult::Completed => None,
                    };
                    self.hub.note_host(self.host.as_deref(), failed);
                    self.record_changes().await;
                    // Work that follows from the turn is placed by what the turn has cost.
                    self.hub.charge_aside().await;
                    let holder = self.live.state().holder();
                    if self.live.elsewhere {
                        self.live.state().came_to_rest();
                    }
                    self.live.state().turn_ended(&ended);
                    if !self.live.state().is_working()
                        && let Some(counted) = self.counted.take()
                    {
                        self.remarked = None;
                        counted.finish();
                    }
                    self.hub.settle_all(&self.live);
                    self.hub.changed(&self.live);
                    self.live.heard(SessionUpdate::TurnEnded(live::failure(&ended)));
                    if !self.live.state().is_working() {
                        self.hub.notify_turn(&self.live, live::failure(&ended));
                    }
                    pass_on(holder, SessionNews::TurnEnded(ended)).await;
                }
            }
        }
        self.end(failure).await;
    }

    /// Records the files that the turn has changed, before anybody hears of its end.
    async fn record_changes(&mut self) {
        let Some(tree) = &mut self.tree else { return };
        let (store, id) = (&self.hub.0.store, &self.live.id);
        let turn = self.live.state().stats.used().turns.unwrap_or(1);
        let recorded = match tree.step().await {
            Ok(files) => changes::record_turn(store, id, turn, files).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = recorded {
            tracing::warn!(session = %id, %error, "the changes of a turn are not known");
        }
    }

    /// Logs and publishes an event. An error means that it could not be logged, or that it has no effect.
    fn hear(&mut self, event: &mut Event) -> Option<String> {
        if let Some(record) = &mut self.record {
            match record.append(event) {
                Ok(position) => position.into_iter().for_each(|position| event.set_position(position)),
                Err(error) => return Some(error.to_string()),
            }
        }
        let live = &self.live;
        let before = live.state().shown();
        let is_new = match &mut self.positions {
            Some(positions) if !event.is_ephemeral() => match positions.find(event) {
                Some(position) => {
                    event.set_position(position);
                    true
                }
                // It was in the log when the session was joined.
                None => false,
            },
            _ => true,
        };
        if is_new {
            live.publish(&self.hub.0.store, event);
        }
        self.hub.note_calls(&live.id, event);
        if self.counted.is_none() && live.state().is_working() {
            self.counted = self.hub.counted(self.counts_as.as_ref());
        }
        match asking(event) {
            Some(QuestionChange::Asks(ApprovalKind::Permission, id))
                if live.policy == SessionPolicy::AllowAll =>
            {
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
            self.remark();
        }
        None
    }

    /// Puts it on record in the queue whether the turn makes progress. A run does so for its own sessions.
    fn remark(&mut self) {
        let sentence = self.live.state().no_progress().cloned();
        if let Some(counted) = self.counted.as_ref().filter(|_| sentence != self.remarked) {
            counted.remark(sentence.as_deref());
            self.remarked = sentence;
        }
    }

    /// Publishes the questions that were open before the session was joined.
    pub(super) fn ask_again(&self, questions: &[Event]) {
        for event in questions {
            if let Some(QuestionChange::Asks(kind, id)) = asking(event) {
                self.hub.asked(&self.live, kind, id, event);
            }
        }
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
        if let Some(counted) = self.counted.take() {
            counted.finish();
        }
        let Pump { hub, live, agent, record, .. } = self;
        drop(agent);
        // The lock is released before clients learn that the session is closed.
        drop(record);
        if let Some(event) = closing {
            live.publish(&hub.0.store, &event);
            hub.note_calls(&live.id, &event);
        }
        hub.settle_all(&live);
        if hub.0.store.contains(&live.id) {
            hub.0.catalogue.keep(&live.id, live.state().stats.clone());
        }
        {
            let mut all = hub.0.live.lock();
            if all.get(&live.id).is_some_and(|current| Arc::ptr_eq(current, &live)) {
                all.remove(&live.id);
            }
        }
        if hub.fleet().is_some() {
            // The copy is of no use once it is not kept up to date.
            hub.0.catalogue.forget(&live.id);
            if let Err(error) = hub.0.store.delete(&live.id) {
                tracing::warn!(session = %live.id, %error, "the copy of a log cannot be removed");
            }
        }
        hub.changed(&live);
        live.close();
        live.over.cancel();
    }
}

/// Waits until nobody has read a session of a fleet for a while. Never, for other sessions.
async fn unread(hub: &Hub, live: &LiveSession) {
    if hub.fleet().is_none() || live.state().is_ending() {
        return std::future::pending().await;
    }
    let mut unread = 0;
    while unread < UNREAD_LOOKS {
        tokio::time::sleep(UNREAD_EVERY).await;
        let mut state = live.state();
        let is_read = state.is_watched() || state.asked() > 0 || state.holder().is_some();
        unread = if is_read { 0 } else { unread + 1 };
    }
}

/// Waits for the next check whether another process has continued an idle session. Not needed without subscribers.
async fn until_look(live: &LiveSession, quiet: u32) {
    if !live.own_log || live.elsewhere {
        return std::future::pending().await;
    }
    while !(live.state().rests() && live.is_watched()) {
        live.joined.notified().await;
    }
    tokio::time::sleep(subscription::patience(quiet)).await;
}

async fn pass_on(holder: Option<mpsc::Sender<SessionNews>>, news: SessionNews) {
    if let Some(holder) = holder {
        // A task that released the session receives nothing more.
        let _ = holder.send(news).await;
    }
}
