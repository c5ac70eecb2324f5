//! Faults: workers that are killed, stopped and cut off, servers that are lost, orders that cannot be carried out.

use std::net::TcpListener;
use std::time::Duration;

use hangar_fleet::claim::LogClaim;
use hangar_fleet::facts::{FleetSessionState, SessionFact};
use hangar_fleet::queue::{OrderQueue as _, Settled};
use hangar_fleet::record::{FleetRecord, FleetTurnEnd, OrderEnd};
use hangar_fleet::slots::SlotAnswer;
use hangar_fleet::work_queue::WorkQueue;
use hangar_fleet::{FleetError, log};
use hangar_scheduler::item::{ItemId, WorkItem, WorkKind};
use hangar_scheduler::limits::Limits;
use hangar_test_support::process::Witness;
use hangar_test_support::{Namespace, NatsServers, Running, Scratch, Signal};

use super::machines::{Fleet, LEASE, Link, file, until_log};

/// An order whose command notes its process and waits for a gate. Each start adds a line to `count`.
struct Waiting {
    running: Running,
    session: String,
    command: Witness,
}

impl Waiting {
    fn start(fleet: &Fleet) -> Self {
        let place = |name: &str| fleet.here.root().join(name).display().to_string();
        let prompt = format!(
            r#"TOOL:bash:{{"command":"echo kept > kept.txt"}}
TOOL:bash:{{"command":"echo run >> {}; echo $$ > {}; while [ ! -e {} ]; do sleep 0.05; done"}}
SAY:done"#,
            place("count"),
            place("pid"),
            place("gate")
        );
        let session = uuid::Uuid::new_v4().to_string();
        let running = fleet.place(&prompt, &["--session-id", &session]).start();
        let command = Witness::of(file(&fleet.here.root().join("pid")).trim().parse().unwrap());
        Self { running, session, command }
    }

    /// The order ends elsewhere, and nothing was done twice.
    fn ends_on(self, fleet: &Fleet, workers: &[&str]) {
        self.running.finish().expect_exit(0);
        assert!(
            self.command.is_gone_within(Duration::from_secs(60)),
            "the command of the lost worker is gone"
        );
        assert_eq!(std::fs::read_to_string(fleet.here.root().join("count")).unwrap(), "run\n");
        assert_eq!(fleet.check(&self.session), workers);
    }
}

#[test]
fn another_worker_goes_on_when_one_is_killed() {
    let fleet = Fleet::new(NatsServers::three());
    let first = fleet.worker("w1", &[]);
    let waiting = Waiting::start(&fleet);
    let _second = fleet.worker("w2", &[]);
    first.running.signal(Signal::KILL);
    waiting.ends_on(&fleet, &["w1", "w2"]);
}

#[test]
fn a_worker_killed_in_a_later_turn_loses_neither_work_nor_messages() {
    let fleet = Fleet::new(NatsServers::three());
    let first = fleet.worker("w1", &[]);
    let place = |name: &str| fleet.here.root().join(name);
    let made = r#"TOOL:bash:{"command":"echo one > made.txt"}
SAY:made"#;
    let session = fleet.place(made, &[]).finish().expect_exit(0).session_id();
    let wait = format!(
        r#"TOOL:bash:{{"command":"echo run >> {}; echo $$ > {}; sleep 1000"}}"#,
        place("count").display(),
        place("pid").display()
    );
    let second = fleet.place(&wait, &["--resume", &session]).start();
    let command = Witness::of(file(&place("pid")).trim().parse().unwrap());
    let look = format!(
        r#"TOOL:bash:{{"command":"cat made.txt > {}"}}
SAY:seen"#,
        place("seen").display()
    );
    let third = fleet.place(&look, &["--resume", &session]).start();
    until_log(&fleet, &session, "the message is accepted", |fold| fold.waiting.len() == 2);
    let _second = fleet.worker("w2", &[]);
    first.running.signal(Signal::KILL);
    second.finish().expect_exit(0);
    third.finish().expect_exit(0);
    assert!(command.is_gone_within(Duration::from_secs(60)));
    assert_eq!(file(&place("seen")), "one\n", "the worktree has what the last turn made");
    assert_eq!(file(&place("count")), "run\n");
    assert_eq!(fleet.check(&session), ["w1", "w1", "w2"]);
}

#[test]
fn an_order_that_always_loses_its_worker_is_parked() {
    const ATTEMPTS: u32 = 5;
    let fleet = Fleet::new(NatsServers::one());
    // Connections are taken, and nothing is ever said: the turn is under way whenever the worker is lost.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let session = uuid::Uuid::new_v4().to_string();
    let order = fleet.place("SAY:hi", &["--session-id", &session]).start();
    let mut scratch = Scratch::new();
    fleet.configure(&scratch, &fleet.servers.url());
    for attempt in 1..=ATTEMPTS {
        let worker = fleet.worker_without_answers(scratch, "w1", &silent);
        until_log(&fleet, &session, "it is claimed", |fold| {
            fold.attempts.values().any(|all| *all == attempt)
        });
        worker.running.signal(Signal::KILL);
        scratch = worker.scratch;
    }
    let _last = fleet.worker_without_answers(scratch, "w1", &silent);
    let parked = order.finish().expect_exit(1);
    let why = "the order was given up: it was tried 5 times: the workers were lost";
    assert!(parked.stderr.contains(why), "{parked:#?}");
    assert_eq!(fleet.check(&session).len(), ATTEMPTS as usize + 1, "and one claim to say so");
}

#[test]
fn a_worker_that_slept_through_its_lease_writes_nothing_and_stops_its_agents() {
    let fleet = Fleet::new(NatsServers::one());
    let first = fleet.worker("w1", &[]);
    let waiting = Waiting::start(&fleet);
    let _second = fleet.worker("w2", &[]);
    first.running.signal(Signal::STOP);
    until_log(&fleet, &waiting.session, "w2 has it", |fold| fold.last_worker.as_deref() == Some("w2"));
    first.running.signal(Signal::CONT);
    waiting.ends_on(&fleet, &["w1", "w2"]);
    // It works on.
    fleet.hangar(&["workers", "cordon", "w2"]).finish().expect_exit(0);
    fleet.until("w2 is cordoned", |rows| {
        rows.iter().any(|row| row["worker"]["name"] == "w2" && row["state"] == "cordoned")
    });
    let session = fleet.place("SAY:hello", &[]).finish().expect_exit(0).session_id();
    assert_eq!(fleet.check(&session), ["w1"]);
}

/// It sleeps until its lease has ended, and is given the order again when it wakes up.
#[test]
fn a_worker_stops_its_agents_before_it_begins_its_own_order_anew() {
    let fleet = Fleet::new(NatsServers::one());
    let worker = fleet.worker("w1", &[]);
    let waiting = Waiting::start(&fleet);
    worker.running.signal(Signal::STOP);
    fleet.asked(async |broker| {
        let pulled = WorkQueue::new(&broker).pull("any", Duration::from_secs(LEASE)).await?;
        let ticket = pulled.ok_or_else(|| FleetError::Invalid("the lease has not ended".to_owned()))?;
        worker.running.signal(Signal::CONT);
        ticket.settle(Settled::GiveBack(Duration::ZERO)).await
    });
    until_log(&fleet, &waiting.session, "it begins anew", |fold| {
        fold.attempts.values().any(|attempts| *attempts == 2)
    });
    assert!(waiting.command.is_gone_within(Duration::ZERO), "the command of the first attempt is gone");
    waiting.ends_on(&fleet, &["w1", "w1"]);
}

#[test]
fn a_worker_that_is_cut_off_stops_its_agents_and_comes_back() {
    let fleet = Fleet::new(NatsServers::one());
    let link = Link::to(fleet.servers.port(0));
    let first = fleet.worker_at("w1", &link.url(), &[]);
    let waiting = Waiting::start(&fleet);
    let _second = fleet.worker("w2", &["--label", "spare"]);
    link.cut(true);
    // The command ends although nobody can tell the worker anything.
    assert!(waiting.command.is_gone_within(Duration::from_secs(20 * LEASE)));
    waiting.ends_on(&fleet, &["w1", "w2"]);
    link.cut(false);
    fleet.hangar(&["workers", "drain", "w2"]).finish().expect_exit(0);
    let session = fleet.place("SAY:back", &[]).finish().expect_exit(0).session_id();
    let workers = fleet.check(&session);
    assert!(workers == ["w1"] || workers == ["w2"], "{workers:?}");
    drop(first);
}

/// The same with a link of the kernel, whose packets are lost: nothing is closed, and nobody says a word.
#[test]
fn a_worker_whose_network_is_cut_stops_its_agents_before_another_goes_on() {
    let Some(network) = Namespace::new(2) else { return };
    let fleet = Fleet::with_lease(NatsServers::within(&network), 2 * LEASE);
    let far = format!("nats://{}:{}", network.address(1), fleet.servers.port(0));
    let first = fleet.worker_at("w1", &far, &[]);
    let waiting = Waiting::start(&fleet);
    let _second = fleet.worker("w2", &[]);
    network.cut(1, true);
    until_log(&fleet, &waiting.session, "w2 has it", |fold| fold.last_worker.as_deref() == Some("w2"));
    assert!(waiting.command.is_gone_within(Duration::ZERO), "the command of w1 is gone before w2 begins");
    waiting.ends_on(&fleet, &["w1", "w2"]);
    // It comes back by itself.
    network.cut(1, false);
    fleet.hangar(&["workers", "drain", "w2"]).finish().expect_exit(0);
    fleet.until("w2 has ended", |rows| {
        rows.iter().any(|row| row["worker"]["name"] == "w2" && row["state"] == "gone")
    });
    let session = fleet.place("SAY:back", &[]).finish().expect_exit(0).session_id();
    assert_eq!(fleet.check(&session), ["w1"]);
    drop(first);
}

#[test]
fn a_worker_that_is_told_to_end_hands_its_sessions_over() {
    let fleet = Fleet::new(NatsServers::one());
    let first = fleet.worker("w1", &[]);
    let waiting = Waiting::start(&fleet);
    let _second = fleet.worker("w2", &[]);
    first.running.signal(Signal::TERM);
    first.running.finish().expect_exit(0);
    waiting.ends_on(&fleet, &["w1", "w2"]);
}

#[test]
fn a_worker_that_is_told_to_end_does_so_without_servers() {
    let mut fleet = Fleet::new(NatsServers::one());
    let worker = fleet.worker("w1", &[]);
    fleet.servers.kill(0);
    worker.running.signal(Signal::TERM);
    worker.running.finish().expect_exit(0);
}

#[test]
fn an_order_that_cannot_be_carried_out_is_parked() {
    let fleet = Fleet::new(NatsServers::one());
    let _worker = fleet.worker("w1", &[]);
    let nowhere = fleet.here.root().join("nowhere.git").display().to_string();
    let order = ["run", "--fleet", "--remote", &nowhere, "-p", "SAY:hi", "--output-format", "json"];
    let parked = fleet.hangar(&order).finish().expect_exit(1);
    assert!(
        parked.stderr.contains("the order was given up: it was tried 5 times: the workspace is not ready"),
        "{parked:#?}"
    );
    let session = parked.session_id();
    let fold = hangar_fleet::fold::SessionFold::of(&fleet.log(&session));
    assert!(matches!(fold.over.values().next(), Some(OrderEnd::Parked { .. })), "{fold:?}");
    fleet.check(&session);
}

#[test]
fn a_session_goes_on_when_servers_are_lost() {
    let mut fleet = Fleet::new(NatsServers::three());
    let _worker = fleet.worker("w1", &[]);
    let waiting = Waiting::start(&fleet);
    for n in 0..3 {
        fleet.servers.kill(n);
        fleet.servers.restart(n);
    }
    std::fs::write(fleet.here.root().join("gate"), "").unwrap();
    let Waiting { running, session, .. } = waiting;
    running.finish().expect_exit(0);
    let workers = fleet.check(&session);
    assert!(workers.iter().all(|worker| worker == "w1"), "{workers:?}");
}

/// The worker is played: it is lost right after the end of the order is stored, before lists and slots say so.
#[test]
fn a_worker_that_is_lost_after_the_end_of_an_order_leaves_no_slot_behind() {
    let fleet = Fleet::new(NatsServers::one());
    let session = uuid::Uuid::new_v4().to_string();
    let (order, id) = (fleet.order(&session, "SAY:hi"), session.parse().unwrap());
    let item = WorkItem {
        id: ItemId(session.clone()),
        kind: WorkKind::Turn,
        project: fleet.remote(),
        runtime: "native".to_owned(),
        agent: None,
        account: "none".to_owned(),
        host: "lost".to_owned(),
        job: None,
        run: None,
        labels: Default::default(),
        priority: 0,
        enqueued: order.placed,
        attempt: 1,
    };
    fleet.asked(async |broker| {
        let (worker, message, at) = ("lost".to_owned(), order.id.0.clone(), order.placed);
        let taken = broker.take_slot(&Limits::global(1), &item, &worker).await?;
        assert_eq!(taken, SlotAnswer::Granted);
        let claimed =
            FleetRecord::Claimed { worker: worker.clone(), order: order.id.clone(), delivery: 0, at };
        let claim = LogClaim::take(&broker, log::session_subject(&broker, &id), 0, &claimed).await?;
        let state = FleetSessionState::Running;
        broker.put_fact(&SessionFact { state, worker: Some(worker), ..SessionFact::queued(&order) }).await?;
        let outcome = FleetTurnEnd::Completed;
        claim.append(&FleetRecord::TurnEnded { message, outcome, at }).await?;
        let released = FleetRecord::Released { order: order.id.clone(), end: OrderEnd::Done, at };
        claim.append(&released).await?;
        WorkQueue::new(&broker).put(&order).await
    });
    let scratch = Scratch::new();
    fleet.configure(&scratch, &fleet.servers.url());
    let path = scratch.state().join("config.toml");
    let config = std::fs::read_to_string(&path).unwrap() + "\n[limits]\nglobal = 1\n";
    std::fs::write(path, config).unwrap();
    let _worker = fleet.worker_in(scratch, "w1", &[]);
    // The only slot is free again.
    let other = fleet.place("SAY:hello", &[]).finish().expect_exit(0).session_id();
    assert_eq!(fleet.check(&other), ["w1"]);
    let shown = fleet.facts()();
    let left = shown.iter().find(|fact| fact.session == session).unwrap();
    assert_eq!((left.state, &left.worker), (FleetSessionState::Idle, &None));
    assert_eq!(fleet.check(&session), ["lost"]);
}
