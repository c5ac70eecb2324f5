//! Slots of the queue for the sessions of runs.

use futures_util::future::BoxFuture;
use hangar_jobs::record::{RunId, TaskId};
use hangar_jobs::slots::{SlotRequest, SlotSource, TaskSlot};
use hangar_scheduler::item::{ItemId, WorkItem, WorkKind};
use hangar_scheduler::retry::AttemptFailure;

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
    fn acquire(&self, request: SlotRequest) -> BoxFuture<'static, Result<Box<dyn TaskSlot>, String>> {
        let hub = self.0.clone();
        Box::pin(async move {
            let name = request.runtime.unwrap_or_else(|| hub.default_runtime());
            let card = hub.runtime(Some(&name)).map_err(|error| error.to_string())?;
            let (runtime, agent) = (card.card().base().to_owned(), card.card().agent().map(str::to_owned));
            let (placement, host) = (hub.placement(&name), hub.host_name(&name));
            let chosen = (!placement.pool.is_empty()).then(|| host.clone());
            let item = WorkItem {
                id: item_id(&request.run, request.task),
                kind: WorkKind::Task,
                project: request.project.display().to_string(),
                account: hub.account(&name, Some(&request.model)),
                host,
                runtime,
                agent,
                job: Some(request.job),
                run: Some(request.run.0),
                labels: placement.labels.into_iter().chain(request.labels).collect(),
                priority: request.priority,
                enqueued: request.since,
                attempt: 1,
            };
            let slot = hub.scheduler().acquire(item).await.map_err(|error| error.to_string())?;
            Ok(Box::new(QueueSlot { slot, hub, host: chosen }) as Box<dyn TaskSlot>)
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

struct QueueSlot {
    slot: queue::Slot,
    hub: Hub,
    /// Host that was chosen of a pool.
    host: Option<String>,
}

impl TaskSlot for QueueSlot {
    fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    fn answered(&self) {
        self.slot.answered();
    }

    fn remark(&self, remark: Option<&str>) {
        self.slot.remark(remark);
    }

    fn end(self: Box<Self>, failure: Option<AttemptFailure>) {
        // The next work is placed by what this one has cost.
        self.hub.charge();
        match failure {
            Some(failure) => self.slot.fail(&failure),
            None => self.slot.finish(),
        }
    }
}
