//! Spans of the work of this process, where telemetry is on.

use std::sync::Arc;

use hangar_registry::queue::{Scheduler, WorkListener, WorkNews};
use hangar_scheduler::item::WorkItem;
use hangar_telemetry::{Exporter, QueuedSpan};
use serde_json::{Value, json};

struct Spans(Exporter);

/// Makes spans of the work of a queue, if telemetry is on.
pub(super) fn listen(scheduler: &Scheduler, exporter: Option<Exporter>) {
    if let Some(exporter) = exporter {
        scheduler.listen(Arc::new(Spans(exporter)));
    }
}

impl WorkListener for Spans {
    fn hear(&self, news: WorkNews) {
        let (name, item, start, end, error) = match news {
            WorkNews::Granted { item, at } => ("queue.wait", item.clone(), item.enqueued, at, None),
            WorkNews::Ended { item, since, at, failure } => {
                ("queue.run", item, since, at, failure.map(|failure| failure.kind.words().to_owned()))
            }
        };
        let attributes = attributes(&item);
        self.0.queued(QueuedSpan { name, item: item.id.0, start, end, attributes, error });
    }
}

fn attributes(item: &WorkItem) -> Vec<(&'static str, Value)> {
    let mut attributes = vec![
        ("hangar.item", json!(item.id)),
        ("hangar.project", json!(item.project)),
        ("hangar.agent", json!(item.runtime)),
        ("hangar.account", json!(item.account)),
        ("hangar.attempt", json!(item.attempt)),
    ];
    attributes.extend(item.run.as_ref().map(|run| ("hangar.run", json!(run))));
    attributes.extend(item.job.as_ref().map(|job| ("hangar.job", json!(job))));
    attributes
}
