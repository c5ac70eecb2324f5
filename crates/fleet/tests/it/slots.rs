//! Slots of limits that hold for all machines, on a cluster.

use std::collections::BTreeSet;

use hangar_fleet::slots::SlotAnswer;
use hangar_scheduler::item::{ItemId, WorkItem, WorkKind};
use hangar_scheduler::limits::{Limits, ScopeKind};
use hangar_test_support::NatsServers;
use jiff::Timestamp;

use crate::connect;

fn item(session: &str, host: &str) -> WorkItem {
    WorkItem {
        id: ItemId(session.to_owned()),
        kind: WorkKind::Turn,
        project: "p".to_owned(),
        runtime: "native".to_owned(),
        agent: None,
        account: "none".to_owned(),
        host: host.to_owned(),
        job: None,
        run: None,
        labels: BTreeSet::new(),
        priority: 0,
        enqueued: Timestamp::UNIX_EPOCH,
        attempt: 1,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_workers_at_once_as_many_get_a_slot_as_there_are() {
    const WORKERS: usize = 12;
    const SLOTS: u32 = 3;
    let servers = NatsServers::three();
    let limits = Limits::global(1000).with(ScopeKind::Project, "p", SLOTS);
    for round in 0..3 {
        let mut all = tokio::task::JoinSet::new();
        for n in 0..WORKERS {
            let (broker, limits) = (connect(&servers).await, limits.clone());
            all.spawn(async move {
                let (session, worker) = (format!("s{round}-{n}"), format!("w{n}"));
                let answer = broker.take_slot(&limits, &item(&session, &worker), &worker).await.unwrap();
                (broker, session, worker, answer)
            });
        }
        let answers = all.join_all().await;
        let (granted, waits): (Vec<_>, Vec<_>) =
            answers.into_iter().partition(|(.., answer)| *answer == SlotAnswer::Granted);
        assert_eq!(granted.len(), SLOTS as usize);
        for (.., answer) in &waits {
            let full = SlotAnswer::Waits("3 of 3 slots of project p are taken; first in line".to_owned());
            assert_eq!(*answer, full);
        }
        // The session that moves takes its slot with it; its first worker cannot free it any more.
        let (broker, session, worker, _) = &granted[0];
        let moved = broker.take_slot(&limits, &item(session, "other"), "other").await.unwrap();
        assert_eq!(moved, SlotAnswer::Granted);
        broker.free_slot(session, worker).await.unwrap();
        let (waiting, wanted, by, _) = &waits[0];
        assert_ne!(waiting.take_slot(&limits, &item(wanted, by), by).await.unwrap(), SlotAnswer::Granted);
        broker.free_slot(session, "other").await.unwrap();
        assert_eq!(waiting.take_slot(&limits, &item(wanted, by), by).await.unwrap(), SlotAnswer::Granted);
        waiting.free_slot(wanted, by).await.unwrap();
        for (broker, session, worker, _) in &granted[1..] {
            broker.free_slot(session, worker).await.unwrap();
        }
    }
}
