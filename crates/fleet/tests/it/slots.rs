//! Slots of limits that hold for all machines, on a cluster.

use std::collections::BTreeSet;

use hangar_fleet::claim::LogClaim;
use hangar_fleet::facts::{FleetSessionState, SessionFact};
use hangar_fleet::order::OrderId;
use hangar_fleet::record::{FleetRecord, FleetTurnEnd, OrderEnd};
use hangar_fleet::slots::SlotAnswer;
use hangar_fleet::{leftover, log};
use hangar_scheduler::item::{ItemId, WorkItem, WorkKind};
use hangar_scheduler::limits::{Limits, ScopeKind};
use hangar_test_support::NatsServers;
use jiff::Timestamp;

use crate::{LONG, connect, order};

fn item(session: &str, host: &str, project: &str) -> WorkItem {
    WorkItem {
        id: ItemId(session.to_owned()),
        kind: WorkKind::Turn,
        project: project.to_owned(),
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
    let limits = Limits::global(1000).with(ScopeKind::Project, "*", SLOTS);
    for round in 0..3 {
        let project = &format!("p{round}");
        let mut all = tokio::task::JoinSet::new();
        for n in 0..WORKERS {
            let (broker, limits, project) = (connect(&servers).await, limits.clone(), project.clone());
            all.spawn(async move {
                let (session, worker) = (format!("s{round}-{n}"), format!("w{n}"));
                let answer =
                    broker.take_slot(&limits, &item(&session, &worker, &project), &worker).await.unwrap();
                (broker, session, worker, answer)
            });
        }
        let answers = all.join_all().await;
        let (granted, waits): (Vec<_>, Vec<_>) =
            answers.into_iter().partition(|(.., answer)| *answer == SlotAnswer::Granted);
        assert_eq!(granted.len(), SLOTS as usize);
        for (.., answer) in &waits {
            let SlotAnswer::Waits(why) = answer else { unreachable!() };
            assert!(why.starts_with(&format!("3 of 3 slots of project {project} are taken; ")), "{why}");
        }
        // The session that moves takes its slot with it; its first worker cannot free it any more.
        let (broker, session, worker, _) = &granted[0];
        let moved = broker.take_slot(&limits, &item(session, "other", project), "other").await.unwrap();
        assert_eq!(moved, SlotAnswer::Granted);
        broker.free_slot(session, worker).await.unwrap();
        let ask = async || {
            let mut got = Vec::new();
            for (broker, wanted, by, _) in &waits {
                if broker.take_slot(&limits, &item(wanted, by, project), by).await.unwrap()
                    == SlotAnswer::Granted
                {
                    got.push((broker, wanted, by));
                }
            }
            got
        };
        assert!(ask().await.is_empty());
        // One that is freed is for one of those that wait.
        broker.free_slot(session, "other").await.unwrap();
        let got = ask().await;
        assert_eq!(got.len(), 1);
        for (broker, session, worker) in got {
            broker.free_slot(session, worker).await.unwrap();
        }
        for (broker, session, worker, _) in &granted[1..] {
            broker.free_slot(session, worker).await.unwrap();
        }
    }
}

#[tokio::test]
async fn what_a_lost_worker_left_behind_is_cleared_once_nobody_owns_the_session() {
    let servers = NatsServers::one();
    let broker = connect(&servers).await;
    let (order, limits, at) = (order("o", &[]), Limits::global(1), Timestamp::UNIX_EPOCH);
    let (session, id) = (order.session.as_str(), order.session_id().unwrap());
    let ask = async |session: &str, worker: &str| {
        broker.take_slot(&limits, &item(session, worker, "p"), worker).await.unwrap()
    };
    let shown = async || broker.fact::<SessionFact>(session).await.unwrap().unwrap();
    assert_eq!(ask(session, "lost").await, SlotAnswer::Granted);
    let id_of_order = OrderId("o".to_owned());
    let claimed =
        FleetRecord::Claimed { worker: "lost".to_owned(), order: id_of_order.clone(), delivery: 1, at };
    let claim = LogClaim::take(&broker, log::session_subject(&broker, &id), 0, &claimed).await.unwrap();
    let running = SessionFact {
        state: FleetSessionState::Running,
        worker: Some("lost".to_owned()),
        asked: 1,
        ..SessionFact::queued(&order)
    };
    broker.put_fact(&running).await.unwrap();
    let outcome = FleetTurnEnd::Failed { message: "it broke".to_owned() };
    claim.append(&FleetRecord::TurnEnded { message: "o".to_owned(), outcome, at }).await.unwrap();
    leftover::clear(&broker, &id).await.unwrap();
    assert_eq!(shown().await, running, "it is owned");
    let end = OrderEnd::Done;
    claim.append(&FleetRecord::Released { order: id_of_order, end, at }).await.unwrap();

    leftover::clear(&broker, &id).await.unwrap();
    let fact = shown().await;
    assert_eq!(
        fact,
        SessionFact {
            state: FleetSessionState::Failed,
            worker: None,
            asked: 0,
            why: Some("it broke".to_owned()),
            at: fact.at,
            ..running
        }
    );
    // The slot was asked for a moment ago. Once that is past, it is another one's.
    let cleared = async {
        while ask("other", "w").await != SlotAnswer::Granted {
            leftover::clear(&broker, &id).await.unwrap();
        }
    };
    tokio::time::timeout(LONG, cleared).await.unwrap();
}
