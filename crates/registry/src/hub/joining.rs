//! Sessions that another process has open, such as a terminal: they are joined there, shown live and steered.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use hangar_protocol::{Event, LogPosition};
use hangar_store::{Follow, SessionId};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use super::Hub;
use super::opening::OpeningGuard;
use super::pump::Pump;
use crate::error::RegistryError;
use crate::host::JoinedSession;
use crate::live::{LiveSession, LiveState};
use crate::resource::SessionPolicy;

/// Lines of a log that may be ahead of what the other process has told.
const MOST_AHEAD: usize = 4096;

/// Wait for the sessions of other processes before a list is made without those that do not answer.
const MEETING_WAIT: Duration = Duration::from_secs(2);

/// Positions of events in a log that another process writes.
pub(super) struct LogPositions {
    follow: Follow,
    /// Lines that were read and not told yet, each with its event.
    ahead: VecDeque<(String, LogPosition)>,
}

impl LogPositions {
    pub(super) fn new(follow: Follow) -> Self {
        Self { follow, ahead: VecDeque::new() }
    }

    /// Position of an event that was logged. `None` for one before the position at which the log was joined.
    pub(super) fn find(&mut self, event: &Event) -> Option<LogPosition> {
        let id = event.id().0.as_str();
        if let Some(at) = self.ahead.iter().position(|(known, _)| known == id) {
            return self.ahead.drain(..=at).next_back().map(|(_, position)| position);
        }
        while self.ahead.len() < MOST_AHEAD
            && let Ok(Some((_, line))) = self.follow.next_line()
        {
            let found = std::str::from_utf8(line).ok().and_then(|line| Event::parse(line).ok());
            let found = found.map(|event| event.id().0.clone()).unwrap_or_default();
            if found == id {
                self.ahead.clear();
                return Some(self.follow.position());
            }
            self.ahead.push_back((found, self.follow.position()));
        }
        None
    }
}

impl Hub {
    /// Joins a session that another process has open, if one has and it is not open here.
    pub async fn meet(&self, id: &SessionId) -> Result<(), RegistryError> {
        if self.live(id).is_some() || !self.0.opening.lock().insert(id.clone()) {
            return Ok(());
        }
        let _opening = OpeningGuard { hub: &self.0, id: id.clone() };
        self.join(id).await.map(drop)
    }

    /// Joins the sessions that other processes have open, and waits a moment for those that are slow to answer.
    pub async fn meet_all(&self) {
        if self.fleet().is_some() {
            // They are listed from facts, and joined by those who read them.
            return;
        }
        let host = Arc::clone(&self.0.host);
        // Each has a file that is looked at.
        let found = tokio::task::spawn_blocking(move || host.open_elsewhere()).await;
        let hub = self.clone();
        let joining = self.0.tasks.spawn(async move {
            for id in found.unwrap_or_default() {
                if let Err(error) = hub.meet(&id).await {
                    tracing::warn!(session = %id, %error, "the session of another process cannot be joined");
                }
            }
        });
        let _ = tokio::time::timeout(MEETING_WAIT, joining).await;
    }

    /// Joins a session where it is open. `None` if no process has it. The caller has noted that the session is being opened.
    pub(super) async fn join(&self, id: &SessionId) -> Result<Option<Arc<LiveSession>>, RegistryError> {
        let joined = match self.fleet() {
            Some(fleet) => fleet.join(id).await?,
            None => {
                let joined = self.0.host.join(id).await;
                joined.map_err(|reason| RegistryError::Unreachable { id: id.clone(), reason })?
            }
        };
        let Some(JoinedSession { agent, working, questions, canvases }) = joined else { return Ok(None) };
        let stats = self.0.catalogue.stats(id)?;
        let positions = LogPositions::new(self.0.store.follow(id, stats.at)?);
        let runtime = self.runtime_of(&stats, None);
        let mut state = LiveState::new(stats, None);
        state.join(working, canvases);
        let live = Arc::new(LiveSession {
            id: id.clone(),
            runtime,
            // Its questions are for people, whatever else it may do.
            policy: SessionPolicy::Ask,
            own_log: true,
            elsewhere: true,
            steers: true,
            commands: agent.commands.clone(),
            names: mpsc::channel(1).0,
            state: Mutex::new(state),
            joined: Notify::new(),
            over: CancellationToken::new(),
        });
        self.0.live.lock().insert(id.clone(), Arc::clone(&live));
        self.0.openings.send_modify(|openings| *openings += 1);
        let pump = Pump {
            tree: None,
            hub: self.clone(),
            live: Arc::clone(&live),
            host: None,
            agent,
            record: None,
            // The process that writes the log writes the name.
            renamed: mpsc::channel(1).1,
            approvals: VecDeque::new(),
            // The process that runs it counts it.
            counts_as: None,
            counted: None,
            remarked: None,
            positions: Some(positions),
        };
        pump.ask_again(&questions);
        self.spawn(pump.run());
        self.changed(&live);
        Ok(Some(live))
    }
}
