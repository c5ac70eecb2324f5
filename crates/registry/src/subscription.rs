//! Reading a session from any event on: first what is in its log, then what happens, without a gap and without anything
//! twice. A session that another process writes is followed by its file.

use std::time::Duration;

use hangar_protocol::LogPosition;
use hangar_store::{Follow, SessionId};
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{broadcast, watch};

use crate::error::RegistryError;
use crate::frame::{self, SseFrame, StreamItem, is_shown};
use crate::hub::Hub;

/// Polling interval of a file that another process may write. It is polled only while there is a reader.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Polling interval of a file that was unchanged for a while.
const LOOK_SELDOM: Duration = Duration::from_secs(2);
/// Polls without a change after which a file is polled less often.
const PATIENCE: u32 = 120;
/// Lines after which others get a turn.
const AT_ONCE: u32 = 64;

/// Polling interval after a number of polls without a change.
pub(crate) fn patience(quiet: u32) -> Duration {
    if quiet < PATIENCE { LOOK_EVERY } else { LOOK_SELDOM }
}

pub struct Subscription {
    hub: Hub,
    id: SessionId,
    /// The last event that was given out, or that the reader has.
    after: u64,
    source: EventSource,
    openings: watch::Receiver<u64>,
    read: u32,
    quiet: u32,
    /// Whether events were missed.
    behind: bool,
    /// Whether the reader has been sent the state of the session. It is sent once the past is read, and again when the
    /// session is opened.
    greeted: bool,
}

enum EventSource {
    /// Not opened yet.
    Nothing,
    /// The file, up to the line from which on a live session publishes.
    History {
        follow: Box<Follow>,
        upto: u64,
        then: broadcast::Receiver<StreamItem>,
    },
    Live(broadcast::Receiver<StreamItem>),
    /// The file, as far as it goes by now.
    File(Box<Follow>),
    /// A session of a fleet that is not joined any more.
    Away,
    /// It was deleted.
    Over,
}

/// Why a subscription ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubscriptionEnd {
    #[error("the reader fell behind; it can reconnect after its last event")]
    Behind,
    #[error("the registry shuts down")]
    Stopping,
}

impl Hub {
    /// Events of a session after the given one, then live ones.
    pub fn subscribe(&self, id: &SessionId, after: u64) -> Result<Subscription, RegistryError> {
        let live = self.live(id);
        if live.is_none() && !self.has(id) {
            return Err(RegistryError::NoSession(id.to_string()));
        }
        if after > 0 {
            let last = match live {
                Some(live) => live.state().stats.at.seq,
                None => self.catalogue().stats(id)?.at.seq,
            };
            // A reader that waits after an event that does not exist would miss the events before it.
            if after > last {
                return Err(RegistryError::Invalid(format!(
                    "session {id} has {last} events, none of them with the number {after}"
                )));
            }
        }
        Ok(Subscription {
            hub: self.clone(),
            id: id.clone(),
            after,
            source: EventSource::Nothing,
            openings: self.openings(),
            read: 0,
            quiet: 0,
            behind: false,
            greeted: false,
        })
    }
}

impl Subscription {
    /// The next thing that happened. `None` once the session was deleted.
    pub async fn next(&mut self) -> Result<Option<StreamItem>, SubscriptionEnd> {
        loop {
            // Before anything is taken, so that nothing is lost with a reader that waits no longer.
            self.breathe().await;
            if self.behind {
                return Err(SubscriptionEnd::Behind);
            }
            match &mut self.source {
                EventSource::Nothing => self.join(),
                EventSource::Over => return Ok(None),
                EventSource::Away => self.look_again().await?,
                EventSource::History { follow, upto, .. } => {
                    let done = follow.position().seq >= *upto;
                    match if done { None } else { follow.next_line().ok().flatten() } {
                        Some((seq, line)) => {
                            if seq > self.after {
                                self.after = seq;
                                if is_shown(line) {
                                    return Ok(Some(StreamItem::Event(SseFrame::new(Some(seq), line))));
                                }
                            }
                        }
                        None => {
                            self.caught_up();
                            if let Some(session) = self.greeting() {
                                return Ok(Some(session));
                            }
                        }
                    }
                }
                EventSource::Live(items) => {
                    let item = tokio::select! {
                        item = items.recv() => item,
                        () = self.hub.stopping().cancelled() => return Err(SubscriptionEnd::Stopping),
                    };
                    match item {
                        Ok(StreamItem::Event(event)) => match event.seq {
                            Some(seq) if seq <= self.after => {}
                            seq => {
                                self.after = seq.unwrap_or(self.after);
                                return Ok(Some(StreamItem::Event(event)));
                            }
                        },
                        Ok(item) => return Ok(Some(item)),
                        Err(RecvError::Lagged(_)) => return Err(SubscriptionEnd::Behind),
                        Err(RecvError::Closed) => self.source = EventSource::Nothing,
                    }
                }
                EventSource::File(follow) => match follow.next_line().ok().flatten() {
                    Some((seq, line)) => {
                        self.quiet = 0;
                        if seq > self.after {
                            self.after = seq;
                            if is_shown(line) {
                                return Ok(Some(StreamItem::Event(SseFrame::new(Some(seq), line))));
                            }
                        }
                    }
                    None => {
                        if let Some(session) = self.greeting() {
                            return Ok(Some(session));
                        }
                        self.look_again().await?;
                    }
                },
            }
        }
    }

    /// Whether the entries are live.
    pub fn is_live(&self) -> bool {
        matches!(self.source, EventSource::Live(_))
    }

    /// Next entry, if one is available without waiting.
    pub fn ready(&mut self) -> Option<StreamItem> {
        let EventSource::Live(items) = &mut self.source else { return None };
        loop {
            match items.try_recv() {
                Ok(StreamItem::Event(event)) => match event.seq {
                    Some(seq) if seq <= self.after => {}
                    seq => {
                        self.after = seq.unwrap_or(self.after);
                        return Some(StreamItem::Event(event));
                    }
                },
                Ok(item) => return Some(item),
                Err(TryRecvError::Lagged(_)) => {
                    self.behind = true;
                    return None;
                }
                // `next` finds out why.
                Err(TryRecvError::Empty | TryRecvError::Closed) => return None,
            }
        }
    }

    /// State of the session, sent once: a new reader cannot know what changed before.
    fn greeting(&mut self) -> Option<StreamItem> {
        if std::mem::replace(&mut self.greeted, true) {
            return None;
        }
        let session = self.hub.session(&self.id)?;
        Some(StreamItem::Session(frame::named("session", &session)))
    }

    /// Finds out where to read on.
    fn join(&mut self) {
        let joined = self.hub.live(&self.id).map(|live| live.join());
        let from = self.place();
        let follow = self.hub.store().follow(&self.id, from).map(Box::new);
        self.source = match (joined, follow) {
            (Some(joined), Ok(follow)) => {
                EventSource::History { follow, upto: joined.published, then: joined.items }
            }
            (Some(joined), Err(_)) => EventSource::Live(joined.items),
            (None, Ok(follow)) => EventSource::File(follow),
            (None, Err(_)) if self.hub.fleet().is_some() => EventSource::Away,
            (None, Err(_)) => EventSource::Over,
        };
    }

    /// A place in the file at or before the next event.
    fn place(&self) -> LogPosition {
        let next = self.after.saturating_add(1);
        match self.hub.live(&self.id) {
            Some(live) => live.state().stats.mark_before(next),
            None => self.hub.catalogue().mark_before(&self.id, next),
        }
    }

    /// Switches from the log to the live session. If too much happened meanwhile, reads more of the log.
    fn caught_up(&mut self) {
        if let EventSource::History { then, .. } = std::mem::replace(&mut self.source, EventSource::Nothing)
            && (then.len() as u64) < crate::live::WATCHED_QUEUE as u64
        {
            self.source = EventSource::Live(then);
        }
    }

    /// Waits until the file may have grown, or until the session is opened here.
    async fn look_again(&mut self) -> Result<(), SubscriptionEnd> {
        let patience = patience(self.quiet);
        self.quiet = self.quiet.saturating_add(1);
        tokio::select! {
            () = tokio::time::sleep(patience) => {}
            _ = self.openings.changed() => {}
            () = self.hub.stopping().cancelled() => return Err(SubscriptionEnd::Stopping),
        }
        if self.hub.fleet().is_some() && self.hub.live(&self.id).is_none() {
            // The copy is not kept up to date while the session is not joined.
            if let Err(error) = self.hub.meet(&self.id).await {
                tracing::debug!(session = %self.id, %error, "a session of the fleet cannot be joined");
            }
        }
        if self.hub.live(&self.id).is_some() {
            self.source = EventSource::Nothing;
            // The state was published to the subscribers when the session was opened.
            self.greeted = false;
        } else if !self.hub.has(&self.id) {
            self.source = EventSource::Over;
        }
        Ok(())
    }

    async fn breathe(&mut self) {
        self.read = self.read.wrapping_add(1);
        if self.read.is_multiple_of(AT_ONCE) {
            tokio::task::yield_now().await;
        }
    }
}
