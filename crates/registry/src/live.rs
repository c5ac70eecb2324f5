//! Session that is open here: its agent is read, its log is followed, its subscribers are served.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use hangar_protocol::data::CanvasOpened;
use hangar_protocol::{Body, Event, LogPosition};
use hangar_runtimes::outcome::{ErrorKind, TurnResult};
use hangar_runtimes::runtime::{SessionCommand, SessionNews, TurnEnded};
use hangar_runtimes::usage::AgentUsage;
use hangar_runtimes::watch::ProgressRemark;
use hangar_store::{SessionId, Store};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, broadcast, mpsc};
use tokio_util::sync::CancellationToken;

use crate::canvas::{Canvas, OpenCanvases};
use crate::frame::{SseFrame, StreamItem, is_told};
use crate::resource::{SessionPolicy, SessionState};
use crate::session_stats::{SessionStats, Used};

/// Capacity of a subscriber's queue. A subscriber that falls further behind is cut off.
pub(crate) const WATCHED_QUEUE: usize = 2048;
/// Maximum number of queued prompts.
pub(crate) const MOST_PROMPTS: usize = 32;

pub(crate) struct LiveSession {
    pub(crate) id: SessionId,
    pub(crate) runtime: String,
    pub(crate) policy: SessionPolicy,
    pub(crate) own_log: bool,
    /// Whether another process runs it, which it was joined in.
    pub(crate) elsewhere: bool,
    /// Whether the agent accepts messages while it works.
    pub(crate) steers: bool,
    pub(crate) commands: mpsc::Sender<SessionCommand>,
    /// For sessions whose log is kept here.
    pub(crate) names: mpsc::Sender<String>,
    pub(crate) state: Mutex<LiveState>,
    /// Notified when a subscriber joins.
    pub(crate) joined: Notify,
    /// Done when its agent is gone and its log is closed.
    pub(crate) over: CancellationToken,
}

/// State of a live session beside its log.
pub(crate) struct LiveState {
    pub(crate) stats: SessionStats,
    /// Usage before it was opened here.
    before: Used,
    /// Usage over all its turns, as its agent reports it.
    total: AgentUsage,
    /// The model that was asked for, or that answered.
    pub(crate) model: Option<String>,
    /// Senders of the prompts whose turns have not ended, the current one first.
    prompts: VecDeque<PromptSender>,
    working: bool,
    /// Whether it has received a message here. A closed session is opened to receive one, and is not shared until then.
    spoken_to: bool,
    /// Whether a turn has ended here and nothing came after it: all output of the agent has been processed then.
    rested: bool,
    /// Whether its agent was told to end and accepts nothing more.
    ending: bool,
    asked: BTreeSet<String>,
    failed: Option<String>,
    /// Channel of the subscribers; absent while there are none.
    watchers: Option<broadcast::Sender<StreamItem>>,
    /// Holder of the lease of the session. A holder whose receiver is closed no longer has it.
    holder: Option<LeaseHolder>,
    /// Leases that were granted.
    leases: u64,
    listener: Option<Arc<dyn SessionListener>>,
    /// The sentence that the turn makes no progress, until it does.
    progress: ProgressRemark,
    canvases: OpenCanvases,
}

/// Sender of a prompt, who receives the news of its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PromptSender {
    Anybody,
    Holder(LeaseId),
}

/// One lease of a session among all that there were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LeaseId(u64);

struct LeaseHolder {
    lease: LeaseId,
    news: mpsc::Sender<SessionNews>,
}

/// Receives the updates of a session from when it was added, in order. Must not block: the session waits for it.
pub trait SessionListener: Send + Sync {
    fn hear(&self, heard: SessionUpdate<'_>);
}

#[derive(Debug, Clone, Copy)]
pub enum SessionUpdate<'a> {
    Event(&'a Event),
    /// Error of the turn, if it failed.
    TurnEnded(Option<&'a str>),
    /// The session was closed; with the error, if it did not just end.
    Closed(Option<&'a str>),
}

/// Position at which a subscriber joins.
pub(crate) struct SubscriberStart {
    pub(crate) items: broadcast::Receiver<StreamItem>,
    /// The last line that was published. What is behind it comes by `items`.
    pub(crate) published: u64,
}

impl LiveSession {
    pub(crate) fn state(&self) -> MutexGuard<'_, LiveState> {
        self.state.lock()
    }

    pub(crate) fn join(&self) -> SubscriberStart {
        let mut state = self.state();
        let published = state.stats.at.seq;
        let items = match &state.watchers {
            Some(watchers) => watchers.subscribe(),
            None => {
                let (watchers, items) = broadcast::channel(WATCHED_QUEUE);
                state.watchers = Some(watchers);
                items
            }
        };
        drop(state);
        self.joined.notify_one();
        SubscriberStart { items, published }
    }

    /// Whether its agent accepts messages: it is not about to end, and knows the whole log. Another process may
    /// continue an idle session, or delete it; this agent does not know what was written then and must not continue.
    /// The state stays locked meanwhile, so that the agent is sent nothing that it could write.
    pub(crate) fn takes_words(&self, state: &LiveState, store: &Store) -> bool {
        if state.ending {
            return false;
        }
        let known = state.stats.at.offset;
        self.elsewhere
            || !self.own_log
            || !state.rested
            || store.log_bytes(&self.id).is_some_and(|length| length <= known)
    }

    /// Ends the agent. Commands that were sent before are still delivered.
    pub(crate) async fn end(&self) {
        self.state().ending = true;
        let _ = self.commands.send(SessionCommand::Stop).await;
    }

    /// The same for those who cannot wait.
    pub(crate) fn end_now(&self) {
        self.state().ending = true;
        let full = matches!(self.commands.try_send(SessionCommand::Stop), Err(TrySendError::Full(_)));
        if full && let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let commands = self.commands.clone();
            runtime.spawn(async move { commands.send(SessionCommand::Stop).await });
        }
    }

    /// Publishes an event to the subscribers, with its number if it is in the log.
    pub(crate) fn publish(&self, store: &Store, event: &Event) {
        let mut state = self.state();
        if let Some(position) = event.position() {
            state.fill_gap(store, &self.id, position);
            state.stats.passed(position);
        }
        state.stats.apply(event);
        if state.is_watched()
            && is_told(event.event_kind())
            && let Ok(json) = serde_json::to_vec(event)
        {
            let seq = event.position().map(|position| position.seq);
            state.tell(StreamItem::Event(SseFrame::new(seq, &json)));
        }
        state.note(event);
    }

    pub(crate) fn tell(&self, item: StreamItem) {
        self.state().tell(item);
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.state().is_watched()
    }

    pub(crate) fn listen(&self, listener: Arc<dyn SessionListener>) {
        self.state().listener = Some(listener);
    }

    /// Calls the listeners.
    pub(crate) fn heard(&self, heard: SessionUpdate<'_>) {
        let listener = self.state().listener.clone();
        if let Some(listener) = listener {
            listener.hear(heard);
        }
    }

    /// Grants the lease of the session, unless it is held.
    pub(crate) fn grant_lease(&self, news: mpsc::Sender<SessionNews>) -> Option<LeaseId> {
        let mut state = self.state();
        if state.holder.as_ref().is_some_and(|holder| !holder.news.is_closed()) {
            return None;
        }
        state.leases += 1;
        let lease = LeaseId(state.leases);
        state.spoken_to = true;
        state.holder = Some(LeaseHolder { lease, news });
        Some(lease)
    }

    /// Closes the session to new subscribers; existing ones continue with the file.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.watchers = None;
        state.holder = None;
        state.listener = None;
        state.working = false;
        state.asked.clear();
    }
}

impl LiveState {
    /// A session whose log has been taken in so far; nothing of it for a new one.
    pub(crate) fn new(stats: SessionStats, model: Option<String>) -> Self {
        Self {
            spoken_to: stats.at.seq == 0,
            before: stats.used(),
            failed: stats.error.clone(),
            stats,
            total: AgentUsage::default(),
            model,
            prompts: VecDeque::new(),
            working: false,
            rested: false,
            ending: false,
            asked: BTreeSet::new(),
            watchers: None,
            holder: None,
            leases: 0,
            listener: None,
            progress: ProgressRemark::default(),
            canvases: OpenCanvases::default(),
        }
    }

    /// Whether its agent was told to end.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending
    }

    pub(crate) fn is_watched(&mut self) -> bool {
        if self.watchers.as_ref().is_some_and(|watchers| watchers.receiver_count() == 0) {
            self.watchers = None;
        }
        self.watchers.is_some()
    }

    fn tell(&mut self, item: StreamItem) {
        if let Some(watchers) = &self.watchers {
            // Those who watched may have gone.
            let _ = watchers.send(item);
        }
    }

    /// Reads events from the log that precede the given one and were missed: another process may have continued the
    /// session while its agent was being opened.
    fn fill_gap(&mut self, store: &Store, id: &SessionId, next: LogPosition) {
        if next.seq <= self.stats.at.seq + 1 {
            return;
        }
        // The log was deleted meanwhile; there is nothing to update.
        let Ok(mut follow) = store.follow(id, self.stats.at) else { return };
        while follow.position().seq + 1 < next.seq
            && let Ok(Some((seq, line))) = follow.next_line()
        {
            let item = StreamItem::Event(SseFrame::new(Some(seq), line));
            if let Ok(Ok(event)) = std::str::from_utf8(line).map(Event::parse) {
                self.stats.apply(&event);
            }
            self.stats.passed(follow.position());
            self.tell(item);
        }
    }

    fn note(&mut self, event: &Event) {
        self.canvases.apply(event.body());
        if matches!(event.body(), Body::UserMessage(_)) && event.agent_id().is_none() {
            self.working = true;
            self.rested = false;
            self.failed = None;
        }
        self.progress.note(event.body());
    }

    /// Lists the session as open before it has received a message here.
    pub(crate) fn share(&mut self) {
        self.spoken_to = true;
    }

    /// The session is open in another process, and perhaps at work.
    pub(crate) fn join(&mut self, working: bool, canvases: Vec<CanvasOpened>) {
        self.share();
        self.working = working;
        canvases.into_iter().for_each(|canvas| self.canvases.open(canvas));
    }

    /// The session of another process is idle: nothing is queued behind the prompt whose turn has ended.
    pub(crate) fn came_to_rest(&mut self) {
        self.prompts.truncate(1);
    }

    /// Whether another prompt may be queued.
    pub(crate) fn takes_prompts(&self) -> bool {
        self.prompts.len() < MOST_PROMPTS
    }

    pub(crate) fn prompted(&mut self, asker: PromptSender) {
        self.spoken_to = true;
        self.prompts.push_back(asker);
        self.working = true;
        self.rested = false;
        self.failed = None;
    }

    /// Channel on which the lease holder receives the current turn. `None` during the turn of somebody else's prompt,
    /// also if that was sent under an earlier lease.
    pub(crate) fn holder(&mut self) -> Option<mpsc::Sender<SessionNews>> {
        self.holder.take_if(|holder| holder.news.is_closed());
        let holder = self.holder.as_ref()?;
        let is_meant = self.prompts.front().is_none_or(|asker| *asker == PromptSender::Holder(holder.lease));
        is_meant.then(|| holder.news.clone())
    }

    pub(crate) fn is_working(&self) -> bool {
        self.working
    }

    /// Whether another process could continue it.
    pub(crate) fn rests(&self) -> bool {
        self.rested && !self.ending
    }

    pub(crate) fn turn_ended(&mut self, ended: &TurnEnded) {
        self.progress = ProgressRemark::default();
        self.prompts.pop_front();
        self.working = !self.prompts.is_empty();
        self.rested = !self.working;
        self.total = ended.outcome.total;
        if ended.model.is_some() {
            self.model.clone_from(&ended.model);
        }
        self.failed = failure(ended).map(str::to_owned);
    }

    pub(crate) fn ask(&mut self, request_id: &str) {
        self.asked.insert(request_id.to_owned());
    }

    pub(crate) fn settle(&mut self, request_id: &str) {
        self.asked.remove(request_id);
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.len()
    }

    pub(crate) fn state(&self) -> SessionState {
        if !self.asked.is_empty() {
            SessionState::Waiting
        } else if self.working {
            SessionState::Working
        } else if self.failed.is_some() {
            SessionState::Failed
        } else if self.spoken_to {
            SessionState::Idle
        } else {
            SessionState::Closed
        }
    }

    /// Fields that lists show at once when they change.
    pub(crate) fn shown(&self) -> (SessionState, bool, bool, u64) {
        let canvases = self.canvases.revision();
        (self.state(), self.stats.run.is_some(), self.no_progress().is_some(), canvases)
    }

    pub(crate) fn canvases(&self) -> &[Canvas] {
        self.canvases.list()
    }

    /// The sentence that its turn makes no progress, while it makes none.
    pub(crate) fn no_progress(&self) -> Option<&String> {
        self.progress.sentence()
    }

    pub(crate) fn error(&self) -> Option<&String> {
        self.failed.as_ref().filter(|_| !self.working)
    }

    pub(crate) fn total(&self) -> &AgentUsage {
        &self.total
    }

    pub(crate) fn used(&self) -> Used {
        let told = Used::from(&self.total);
        if self.stats.counts_calls() {
            return Used { premium_requests: told.premium_requests, ..self.stats.used() };
        }
        // If the agent does not report it, the log has the best value.
        let told = Used {
            input_tokens: told.input_tokens.or(self.before.input_tokens),
            output_tokens: told.output_tokens.or(self.before.output_tokens),
            cost_usd: told.cost_usd.or(self.before.cost_usd),
            ..told
        };
        Used { turns: self.stats.used().turns, ..told }
    }
}

/// Error of a turn. An aborted turn has not failed.
pub(crate) fn failure(ended: &TurnEnded) -> Option<&str> {
    match &ended.outcome.end {
        TurnResult::Failed(failure) if failure.kind != ErrorKind::TurnCancelled => Some(&failure.message),
        TurnResult::Completed | TurnResult::Failed(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = r#""id":"i","timestamp":"t","parentId":null"#;

    #[test]
    fn lines_that_another_process_wrote_before_are_told_first() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::new(home.path());
        let id: SessionId = "s".parse().unwrap();
        std::fs::create_dir_all(store.session_dir(&id)).unwrap();
        let line = format!(r#"{{"type":"user.message","data":{{"content":"hi"}},{HEAD}}}"#);
        std::fs::write(store.session_dir(&id).join("events.jsonl"), format!("{line}\n").repeat(4)).unwrap();
        let end = |seq: u64| LogPosition { seq, offset: seq * (line.len() as u64 + 1) };
        let (watchers, mut items) = broadcast::channel(8);
        let mut stats = SessionStats::default();
        stats.passed(end(1));
        let mut state = LiveState::new(stats, None);
        state.watchers = Some(watchers);
        let live = LiveSession {
            id,
            runtime: "native".to_owned(),
            policy: SessionPolicy::Ask,
            own_log: true,
            elsewhere: false,
            steers: false,
            commands: mpsc::channel(1).0,
            names: mpsc::channel(1).0,
            state: Mutex::new(state),
            joined: Notify::new(),
            over: CancellationToken::new(),
        };
        let mut event = Event::parse(&line).unwrap();
        event.set_position(end(4));
        live.publish(&store, &event);
        let told = std::iter::from_fn(|| match items.try_recv() {
            Ok(StreamItem::Event(event)) => event.seq,
            _ => None,
        });
        assert_eq!(told.collect::<Vec<_>>(), [2, 3, 4]);
        assert_eq!(live.state().stats.at, end(4));
        assert_eq!(live.state().stats.used().turns, Some(3), "the first had been counted before");
    }
}
