//! Slots without limits, with the delays of the retry policy.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use hangar_jobs::record::{RunId, TaskId};
use hangar_jobs::slots::{SlotRequest, SlotSource, TaskSlot};
use hangar_scheduler::retry::{AttemptFailure, RetryPolicy};
use tokio::sync::watch;
use tokio::time::Instant;

#[derive(Clone)]
pub(crate) struct Slots(Arc<Inner>);

struct Inner {
    policy: RetryPolicy,
    works: Mutex<HashMap<(RunId, TaskId), Work>>,
    changed: watch::Sender<()>,
    held_for: Mutex<Duration>,
}

#[derive(Default)]
struct Work {
    held: bool,
    attempts: u32,
    due: Option<Instant>,
}

impl Slots {
    /// Delays are so many times as long as usual.
    pub(crate) fn new(scale: f64) -> Self {
        let policy = RetryPolicy { jitter: 0.0, ..RetryPolicy::default() }.scaled(scale);
        Self(Arc::new(Inner {
            policy,
            works: Mutex::default(),
            changed: watch::Sender::new(()),
            held_for: Mutex::default(),
        }))
    }

    /// Takes the slot of a task and gives the time before which it must not be used. `None` while another session has it.
    fn take(&self, key: &(RunId, TaskId)) -> Option<Option<Instant>> {
        let mut works = self.0.works.lock();
        let work = works.entry(key.clone()).or_default();
        let free = !std::mem::replace(&mut work.held, true);
        free.then_some(work.due)
    }

    /// Lets all sessions wait for so long.
    pub(crate) fn hold(&self, delay: Duration) {
        *self.0.held_for.lock() = delay;
    }

    /// Tasks that have a slot or wait for one.
    pub(crate) fn left(&self) -> usize {
        self.0.works.lock().len()
    }
}

impl SlotSource for Slots {
    fn acquire(&self, request: SlotRequest) -> BoxFuture<'static, Result<Box<dyn TaskSlot>, String>> {
        let slots = self.clone();
        Box::pin(async move {
            let key = (request.run, request.task);
            let mut changed = slots.0.changed.subscribe();
            let due = loop {
                if let Some(due) = slots.take(&key) {
                    break due;
                }
                changed.changed().await.unwrap();
            };
            let held_for = *slots.0.held_for.lock();
            tokio::time::sleep(held_for).await;
            if let Some(due) = due {
                tokio::time::sleep_until(due).await;
            }
            Ok(Box::new(Held { slots, key }) as Box<dyn TaskSlot>)
        })
    }

    fn withdraw_task(&self, run: &RunId, task: TaskId) {
        self.0.works.lock().retain(|(of, number), work| of != run || *number != task || work.held);
    }

    fn withdraw_run(&self, run: &RunId) {
        self.0.works.lock().retain(|(of, _), _| of != run);
    }
}

struct Held {
    slots: Slots,
    key: (RunId, TaskId),
}

impl TaskSlot for Held {
    fn answered(&self) {}

    fn remark(&self, _: Option<&str>) {}

    fn end(self: Box<Self>, failure: Option<AttemptFailure>) {
        let mut works = self.slots.0.works.lock();
        let Some(work) = works.get_mut(&self.key) else { return };
        work.attempts += 1;
        let delay = failure.and_then(|failure| self.slots.0.policy.delay(&failure, work.attempts, 0.0));
        match delay {
            Some(delay) => work.due = Some(Instant::now() + delay),
            None => drop(works.remove(&self.key)),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(work) = self.slots.0.works.lock().get_mut(&self.key) {
            work.held = false;
        }
        self.slots.0.changed.send_replace(());
    }
}
