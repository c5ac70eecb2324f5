//! Following a session that moves: the terminal that had it hands it over, and a view that is attached goes with it.

use std::path::PathBuf;
use std::time::Duration;

use futures_util::FutureExt;
use hangar_protocol::{Body, Event, EventKind};
use hangar_store::SessionId;
use hangar_terminal::input::Input;

use super::app::{App, LookupResult};
use super::opening::{self, Wanted, shown};
use super::owner::Owner;
use crate::endpoint::{self, ProcessEndpoint};
use crate::selection::SessionSelection;

/// Looks for the process that has the session next, and the pause between two.
const LOOKS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(100);
/// Looks after which the terminal that gave the session up counts again: nobody took it, and it is open there once more.
const PATIENT_LOOKS: u32 = 20;

impl App {
    /// Notes an event of the session. After its end in another terminal, the view goes where the session goes.
    pub(super) fn heard(&mut self, event: &Event) {
        if event.is_ephemeral() {
            return;
        }
        self.last_event = Some(event.id().clone());
        if let Body::ContextChanged(changed) = event.body()
            && event.agent_id().is_none()
        {
            self.directory = PathBuf::from(&changed.directory.cwd);
            let directory = shown(&self.directory, &self.settings);
            self.take(Input::Moved { directory, branch: changed.directory.branch.clone() });
        }
        let is_end = event.agent_id().is_none() && event.event_kind() == Some(EventKind::SessionShutdown);
        if is_end && matches!(self.elsewhere, Some(Owner::Terminal(_))) {
            self.follow();
        }
    }

    /// Looks for the process that has the session now. False if there is nothing to follow.
    pub(super) fn follow(&mut self) -> bool {
        if self.is_following {
            return true;
        }
        let Some(Owner::Terminal(before)) = self.elsewhere.clone() else { return false };
        let Some(id) = self.session.as_ref().and_then(|id| id.parse::<SessionId>().ok()) else {
            return false;
        };
        self.is_following = true;
        self.link = None;
        let (home, store, found) = (self.settings.home.clone(), self.store.clone(), self.found.clone());
        tokio::spawn(FutureExt::boxed(async move {
            let mut next = None;
            for look in 0..LOOKS {
                let owner = Owner::of(&home, &store, &id).await;
                if is_next(&owner, &before, look) {
                    next = Some(owner);
                    break;
                }
                if endpoint::portals(&home).is_empty() && owner == Owner::Nobody {
                    break;
                }
                tokio::time::sleep(PAUSE).await;
            }
            // A view that has ended needs no result.
            let _ = found.send(LookupResult::Moved(next)).await;
        }));
        true
    }

    /// The session runs elsewhere now, or nowhere.
    pub(super) fn moved(&mut self, owner: Option<Owner>) {
        self.is_following = false;
        let id = self.session.as_ref().and_then(|id| id.parse::<SessionId>().ok());
        match (owner, id) {
            (Some(owner), Some(id)) => self.enter(Wanted {
                selection: SessionSelection::Resume(id),
                directory: self.directory.clone(),
                owner: Some(owner),
                agent: self.agent.clone(),
                typed: false,
                follows: true,
            }),
            _ => self.lost_elsewhere(),
        }
    }

    /// The session of another process is closed. What it logged in its last moments may not have come over the connection.
    pub(super) fn lost_elsewhere(&mut self) {
        let reason = match self.elsewhere.take() {
            Some(owner) => {
                self.catch_up_from_log();
                let id = self.session.as_deref().unwrap_or_default();
                let program = &self.settings.program;
                format!("the session was closed in {}; `{program} --resume={id}` opens it", owner.place())
            }
            None => "the server of the session is gone; leave and come back with --continue".to_owned(),
        };
        self.take(Input::Lost(reason));
    }

    /// Shows the rest of the log, if the session is of this machine.
    fn catch_up_from_log(&mut self) {
        let Some(id) = self.session.as_ref().and_then(|id| id.parse::<SessionId>().ok()) else { return };
        if !self.store.contains(&id) {
            return;
        }
        match opening::past(&self.store, &id) {
            Ok((events, _)) => self.catch_up(events),
            Err(error) => self.take(Input::Told(format!("the end of the session cannot be read: {error:#}"))),
        }
    }
}

/// Whether a view goes on at this owner.
fn is_next(owner: &Owner, before: &ProcessEndpoint, look: u32) -> bool {
    match owner {
        Owner::Portal(_) => true,
        // Its file may outlast the session for a moment.
        Owner::Terminal(endpoint) => endpoint != before || look >= PATIENT_LOOKS,
        Owner::Nobody | Owner::Own | Owner::Job(_) | Owner::Other => false,
    }
}
