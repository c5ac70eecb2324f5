//! The sentence that says why an item waits. Command line, API and pages all show this one.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::item::{ItemId, WorkItem};
use crate::queue::Queue;
use crate::state::{Delay, ItemStatus, SchedulerMode};

impl Queue {
    /// Why an item waits. `None` if it does not. Times are shown in `zone`.
    pub fn reason(&self, id: &ItemId, now: Timestamp, zone: &TimeZone) -> Option<String> {
        let entry = self.entry(id)?;
        let item = &entry.item;
        let zone_name = if *zone == TimeZone::UTC { " UTC" } else { "" };
        let time = |at: Timestamp| format!("{}{zone_name}", at.to_zoned(zone.clone()).strftime("%H:%M:%S"));
        let delayed = |delay: &Option<Delay>| {
            let delay = delay.as_ref().filter(|delay| delay.due > now)?;
            let (due, message) = (time(delay.due), &delay.failure.message);
            Some(format!("waits until {due} for attempt {}: {message}", item.attempt))
        };
        match &entry.status {
            ItemStatus::Running { .. } => None,
            ItemStatus::Parked { delay } => Some(delayed(delay).unwrap_or_else(|| match &item.run {
                Some(run) => format!("waits for run {run} to be resumed"),
                None => "waits for its session to be opened again".to_owned(),
            })),
            ItemStatus::Waiting { delay } => Some(match self.state().mode {
                SchedulerMode::Paused => "the queue is paused; `hangar resume` continues it".to_owned(),
                SchedulerMode::Draining => {
                    "the queue is drained and takes nothing new; `hangar resume` continues it".to_owned()
                }
                SchedulerMode::Open => delayed(delay).unwrap_or_else(|| self.held(item, now, &time)),
            }),
        }
    }

    fn held(&self, item: &WorkItem, now: Timestamp, time: &dyn Fn(Timestamp) -> String) -> String {
        let account = &item.account;
        if let Some(breaker) = self.state().breakers.get(account)
            && !breaker.admits_probe(now)
        {
            let words = breaker.failure.kind.words();
            let prober = breaker.probe.as_ref().and_then(|probe| self.entry(probe));
            return match prober {
                Some(prober) => {
                    format!("waits for account {account}, which {} tries: {words}", prober.item.name())
                }
                None => format!("waits for account {account} until {}: {words}", time(breaker.until)),
            };
        }
        let lane = self.lane(item);
        let taken = match self.full_scope(&lane) {
            Some(scope) => {
                let limit = self.limits().limit(scope).unwrap_or_default();
                format!("{} of {limit} {scope} are taken", self.used_of(scope))
            }
            None if self.running() >= self.limits().global => {
                format!("{} of {} slots are taken", self.running(), self.limits().global)
            }
            None => match self.used_up(&lane.budgets, now) {
                Some(budget) => return budget.reason(),
                None => return "starts next".to_owned(),
            },
        };
        match self.before(&lane, item) {
            Some(before) if before.run != item.run || before.run.is_none() => {
                format!("{taken}; next after {}", before.name())
            }
            Some(before) => format!("{taken}; next after {}", before.id),
            None => format!("{taken}; first in line"),
        }
    }
}
