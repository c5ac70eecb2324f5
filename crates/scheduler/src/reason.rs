//! The sentence that says why an item waits. Command line, API and pages all show this one, so it depends on the records of the
//! queue alone and not on what a process has decided so far.

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::index::{Gate, Place, place};
use crate::item::{ItemId, WorkItem};
use crate::queue::Queue;
use crate::state::{Delay, ItemStatus, SchedulerMode};

/// Why the items of a queue wait, at one time.
pub struct Reasons<'a> {
    queue: &'a Queue,
    now: Timestamp,
    zone: &'a TimeZone,
    /// Project whose items are asked about, if it is only one.
    project: Option<&'a str>,
    /// Made for the first item that is asked about and is the first of its lane.
    lines: OnceCell<Lines>,
}

/// First items of the lanes of a project that wait for the same.
type Lines = HashMap<(Arc<str>, Option<Gate>), BTreeSet<Place>>;

impl Queue {
    /// Why an item waits. `None` if it does not. Times are shown in `zone`.
    pub fn reason(&self, id: &ItemId, now: Timestamp, zone: &TimeZone) -> Option<String> {
        let project = Some(self.entry(id)?.item.project.as_str());
        Reasons { queue: self, now, zone, project, lines: OnceCell::new() }.of(id)
    }

    /// Why items wait, for many of them. Times are shown in `zone`.
    pub fn reasons<'a>(&'a self, now: Timestamp, zone: &'a TimeZone) -> Reasons<'a> {
        Reasons { queue: self, now, zone, project: None, lines: OnceCell::new() }
    }
}

impl Reasons<'_> {
    fn lines(&self) -> &Lines {
        self.lines.get_or_init(|| {
            let mut lines = Lines::new();
            for (lane, head) in self.queue.heads(self.project) {
                let line = (Arc::clone(&lane.project), self.queue.blocker(lane, self.now));
                lines.entry(line).or_default().insert(head.clone());
            }
            lines
        })
    }

    /// Why an item waits. `None` if it does not.
    pub fn of(&self, id: &ItemId) -> Option<String> {
        let entry = self.queue.entry(id)?;
        let item = &entry.item;
        match &entry.status {
            ItemStatus::Running { .. } => None,
            ItemStatus::Parked { delay } => {
                Some(self.delayed(item, delay).unwrap_or_else(|| match &item.run {
                    Some(run) => format!("waits for run {run} to be resumed"),
                    None => "waits for its session to be opened again".to_owned(),
                }))
            }
            ItemStatus::Waiting { delay } => Some(match self.queue.state().mode {
                SchedulerMode::Paused => "the queue is paused; `hangar resume` continues it".to_owned(),
                SchedulerMode::Draining => {
                    "the queue is drained and takes nothing new; `hangar resume` continues it".to_owned()
                }
                SchedulerMode::Open => self.delayed(item, delay).unwrap_or_else(|| self.held(item)),
            }),
        }
    }

    fn time(&self, at: Timestamp) -> String {
        let zone_name = if *self.zone == TimeZone::UTC { " UTC" } else { "" };
        format!("{}{zone_name}", at.to_zoned(self.zone.clone()).strftime("%H:%M:%S"))
    }

    fn delayed(&self, item: &WorkItem, delay: &Option<Delay>) -> Option<String> {
        let delay = delay.as_ref().filter(|delay| delay.due > self.now)?;
        let (due, message) = (self.time(delay.due), &delay.failure.message);
        Some(format!("waits until {due} for attempt {}: {message}", item.attempt))
    }

    fn held(&self, item: &WorkItem) -> String {
        let (queue, account) = (self.queue, &item.account);
        if let Some(breaker) = queue.state().breakers.get(account)
            && !breaker.admits_probe(self.now)
        {
            let words = breaker.failure.kind.words();
            let prober = breaker.probe.as_ref().and_then(|probe| queue.entry(probe));
            return match prober {
                Some(prober) => {
                    format!("waits for account {account}, which {} tries: {words}", prober.item.name())
                }
                None => format!("waits for account {account} until {}: {words}", self.time(breaker.until)),
            };
        }
        let lane = queue.lane(item);
        let taken = match queue.full_scope(&lane) {
            Some(scope) => {
                let limit = queue.limits().limit(scope).unwrap_or_default();
                format!("{} of {limit} {scope} are taken", queue.used_of(scope))
            }
            None => match queue.used_up(&lane.budgets, self.now) {
                Some(budget) => return budget.reason(),
                None if queue.running() >= queue.limits().global => {
                    format!("{} of {} slots are taken", queue.running(), queue.limits().global)
                }
                None => return "starts next".to_owned(),
            },
        };
        let before = queue.before(&lane, item).or_else(|| {
            let line = (Arc::clone(&lane.project), queue.blocker(&lane, self.now));
            self.lines().get(&line)?.range(..place(item)).next_back().map(|(_, _, id)| id)
        });
        match before.and_then(|before| queue.entry(before)).map(|entry| &entry.item) {
            Some(before) if before.run != item.run || before.run.is_none() => {
                format!("{taken}; next after {}", before.name())
            }
            Some(before) => format!("{taken}; next after {}", before.id),
            None => format!("{taken}; first in line"),
        }
    }
}
