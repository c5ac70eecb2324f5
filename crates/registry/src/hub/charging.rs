//! Enters new model calls in the ledger, and reports their cost to the budgets of the queue.

use std::collections::BTreeSet;
use std::time::Duration;

use hangar_protocol::{Event, EventKind};
use hangar_store::SessionId;

use super::Hub;

/// Time for which sessions with new calls are batched.
const BATCH: Duration = Duration::from_millis(250);

/// Sessions with calls that are not in the ledger yet.
#[derive(Debug, Default)]
pub(super) struct Uncharged {
    sessions: BTreeSet<SessionId>,
    /// Whether a task is about to take them in.
    scheduled: bool,
}

impl Hub {
    /// Notes that an event reports model calls, and schedules their entry in the ledger.
    pub(super) fn note_calls(&self, id: &SessionId, event: &Event) {
        if !matches!(event.event_kind(), Some(EventKind::UsageRecord | EventKind::SessionShutdown)) {
            return;
        }
        let mut uncharged = self.0.uncharged.lock();
        uncharged.sessions.insert(id.clone());
        if std::mem::replace(&mut uncharged.scheduled, true) {
            return;
        }
        drop(uncharged);
        let hub = self.clone();
        self.spawn(async move {
            tokio::time::sleep(BATCH).await;
            hub.0.uncharged.lock().scheduled = false;
            hub.charge_aside().await;
        });
    }

    /// Takes in all calls that are known of here, on a thread of its own: files are read, which must not hold others up.
    pub(super) async fn charge_aside(&self) {
        let hub = self.clone();
        let _ = tokio::task::spawn_blocking(move || hub.charge()).await;
    }

    /// Takes in all calls that are known of here, now.
    pub(crate) fn charge(&self) {
        let sessions = std::mem::take(&mut self.0.uncharged.lock().sessions);
        if sessions.is_empty() {
            return;
        }
        if let Err(error) = self.0.ledger.take_in(sessions.iter().cloned()) {
            tracing::error!(%error, "the ledger cannot be written");
            self.0.uncharged.lock().sessions.extend(sessions);
        }
        self.tell_spent();
    }

    /// Takes in the calls of all sessions of the home.
    pub fn charge_all(&self) {
        if let Err(error) = self.0.ledger.collect() {
            tracing::error!(%error, "the ledger cannot be written");
        }
        self.tell_spent();
    }

    fn tell_spent(&self) {
        let budgets = self.0.scheduler.budgets();
        if budgets.is_empty() {
            return;
        }
        let figures = self.0.ledger.spent(&budgets, &self.0.scheduler.runs(), self.now());
        if let Err(error) = self.0.scheduler.spent(&figures) {
            tracing::error!(%error, "the queue cannot be told what was spent");
        }
        self.notify_budgets();
    }
}
