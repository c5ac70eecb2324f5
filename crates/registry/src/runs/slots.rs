//! Slots of the queue for the sessions of runs.

use std::collections::BTreeSet;

use futures_util::future::BoxFuture;
use hangar_jobs::record::{RunId, TaskId};
use hangar_jobs::slots::{Slot, SlotRequest, SlotSource};
use hangar_scheduler::item::{ItemId, WorkItem, WorkKind};
use hangar_scheduler::retry::Failure;

use crate::hub::Hub;
use crate::queue;

/// The queue of a hub, for an executor of runs.
pub struct HubSlots(Hub);

impl HubSlots {
    pub fn new(hub: &Hub) -> Self {
        Self(hub.clone())
    }
}

/// Identity of a task's work in the queue. All its sessions have the same, since there is one at a time.
pub(crate) fn item_id(run: &RunId, task: TaskId) -> ItemId {
    ItemId(format!("{run}/{task}"))
}

impl SlotSource for HubSlots {
    fn acquire(&self, request: SlotRequest) -> BoxFuture<'static, Result<Box<dyn Slot>, String>> {
        let hub = self.0.clone();
        Box::pin(async move {
            let runtime = request.runtime.unwrap_or_else(|| hub.default_runtime().to_owned());
            let item = WorkItem {
                id: item_id(&request.run, request.task),
                kind: WorkKind::Task,
                project: request.project.display().to_string(),
                account: hub.account(&runtime, Some(&request.model)),
                host: hub.host_name(&runtime),
                runtime,
                job: Some(request.job),
                run: Some(request.run.0),
                labels: BTreeSet::new(),
                priority: 0,
                enqueued: request.since,
                attempt: 1,
            };
            let slot = hub.scheduler().acquire(item).await.map_err(|error| error.to_string())?;
            Ok(Box::new(QueueSlot(slot)) as Box<dyn Slot>)
        })
    }

    fn withdraw_task(&self, run: &RunId, task: TaskId) {
        let id = item_id(run, task);
        self.0.scheduler().withdraw(|item| item.id == id);
    }

    fn withdraw_run(&self, run: &RunId) {
        self.0.scheduler().withdraw_run(&run.0);
    }
}

struct QueueSlot(queue::Slot);

impl Slot for QueueSlot {
    fn answered(&self) {
        self.0.answered();
    }

    fn end(self: Box<Self>, failure: Option<Failure>) {
        match failure {
            Some(failure) => self.0.fail(&failure),
            None => self.0.finish(),
        }
    }
}
