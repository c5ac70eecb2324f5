//! Orders: placed here, carried out there, shown here.

use hangar_fleet::fold::SessionFold;
use hangar_fleet::queue::OrderQueue as _;
use hangar_fleet::work_queue::WorkQueue;
use hangar_test_support::process::Witness;
use hangar_test_support::{Finished, NatsServers, Signal};

use super::machines::{Fleet, file, until_log};

const WRITE: &str = r#"TOOL:bash:{"command":"echo made > made.txt; cat README"}
SAY:it is made"#;

#[test]
fn a_worker_carries_an_order_out_and_its_events_come_back() {
    let fleet = Fleet::new(NatsServers::one());
    let worker = fleet.worker("w1", &["--slots", "2", "--label", "linux"]);
    let done = fleet.place(WRITE, &[]).finish().expect_exit(0);
    let events = done.events();
    assert_eq!(events[0]["type"], "session.start");
    let answers = Finished::of_type(&events, "assistant.message");
    assert_eq!(answers.last().unwrap()["data"]["content"], "it is made");
    let output = Finished::of_type(&events, "tool.execution_complete");
    assert!(output[0].to_string().contains("hello"), "{output:?}");
    let session = done.session_id();
    assert_eq!(fleet.check(&session), ["w1"]);
    assert_eq!(fleet.kept(&session, "made.txt"), "made");
    assert_eq!(fleet.git(&["--git-dir", &fleet.remote(), "show", "main:README"]), "hello");
    // The log of the worker is the same.
    let local = worker.scratch.log(&session);
    assert_eq!(local.lines().count() as u64, SessionFold::of(&fleet.log(&session)).events);

    // It goes on, with what was kept, and as text.
    let again = r#"TOOL:bash:{"command":"cat made.txt; echo more >> made.txt"}
SAY:there is more"#;
    let remote = fleet.remote();
    let resumed = fleet
        .hangar(&["run", "--fleet", "--remote", &remote, "--resume", &session, "-p", again])
        .finish()
        .expect_exit(0);
    assert!(resumed.stdout.trim_end().ends_with("there is more"), "{resumed:#?}");
    assert_eq!(fleet.kept(&session, "made.txt"), "made\nmore");
    assert_eq!(fleet.check(&session), ["w1", "w1"]);

    // Labels that no worker has are waited for; a worker that has them comes.
    let waiting = fleet.place("SAY:on mac", &["--label", "mac"]).start();
    let _mac = fleet.worker("w2", &["--label", "mac"]);
    let finished = waiting.finish().expect_exit(0);
    assert_eq!(fleet.check(&finished.session_id()), ["w2"]);
}

#[test]
fn what_is_wrong_is_one_sentence() {
    let fleet = Fleet::new(NatsServers::one());
    let refused = |args: &[&str], expected: &str| {
        let done = fleet.hangar(args).finish().expect_exit(1);
        assert!(done.stderr.contains(expected), "{done:#?}");
    };
    refused(
        &["run", "--fleet", "nats://127.0.0.1:1", "-p", "hi"],
        "no NATS server answers at nats://127.0.0.1:1",
    );
    refused(&["run", "--fleet", "-p", "hi"], "has no git remote `origin` that a worker could work on");
    refused(&["run", "--fleet", "--ssh", "host", "-p", "hi"], "--ssh is about this machine");
    let examined = fleet.hangar(&["doctor", "--fleet"]).finish();
    for line in ["ok  fleet: NATS ", "ok  stream HANGAR_WORK: 0 messages", "BAD fleet workers: there is none"]
    {
        assert!(examined.stdout.contains(line), "{examined:#?}");
    }
    refused(&["workers", "drain", "nobody"], "there is no worker `nobody`");
    refused(&["worker", "--label", "A b"], "`A b` is no label");
    let failed = fleet.place("FAIL:400", &[]).start();
    let _worker = fleet.worker("w1", &[]);
    let failed = failed.finish().expect_exit(1);
    fleet.check(&failed.session_id());
}

#[test]
fn an_interrupt_aborts_the_turn_where_it_runs() {
    let fleet = Fleet::new(NatsServers::one());
    let worker = fleet.worker("w1", &[]);
    let place = fleet.here.root().join("pid");
    let wait = format!(r#"TOOL:bash:{{"command":"echo $$ > {}; sleep 1000"}}"#, place.display());
    let running = fleet.place(&wait, &["--allow-all-tools"]).start();
    let command = Witness::of(file(&place).trim().parse().unwrap());
    running.signal(Signal::INT);
    let ended = running.finish().expect_exit(0);
    assert!(command.is_gone_within(std::time::Duration::from_secs(60)));
    assert_eq!(fleet.check(&ended.session_id()), ["w1"]);
    drop(worker);
}

#[test]
fn a_cordoned_worker_takes_nothing_and_a_drained_one_ends() {
    let fleet = Fleet::new(NatsServers::one());
    let worker = fleet.worker("w1", &[]);
    let state = |state: &'static str| {
        fleet.until(state, move |rows| {
            rows.iter().any(|row| row["worker"]["name"] == "w1" && row["state"] == state)
        });
    };
    fleet.hangar(&["workers", "cordon", "w1"]).finish().expect_exit(0);
    state("cordoned");
    let _other = fleet.worker("w2", &[]);
    let session = fleet.place("SAY:hello", &[]).finish().expect_exit(0).session_id();
    assert_eq!(fleet.check(&session), ["w2"]);
    fleet.hangar(&["workers", "uncordon", "w1"]).finish().expect_exit(0);
    state("ready");
    fleet.hangar(&["workers", "drain", "w1"]).finish().expect_exit(0);
    worker.running.finish().expect_exit(0);
    state("gone");
}

#[test]
fn messages_to_a_session_at_work_wait_for_their_turns() {
    let fleet = Fleet::new(NatsServers::one());
    let _worker = fleet.worker("w1", &[]);
    let (begun, gate) = (fleet.here.root().join("begun"), fleet.here.root().join("gate"));
    let wait = format!(
        r#"TOOL:bash:{{"command":"echo 1 > {}; while [ ! -e {} ]; do sleep 0.05; done"}}
SAY:first"#,
        begun.display(),
        gate.display()
    );
    let id = uuid::Uuid::new_v4().to_string();
    let first = fleet.place(&wait, &["--session-id", &id]).start();
    file(&begun);
    let others: Vec<_> =
        ["two", "three"].map(|text| fleet.place(&format!("SAY:{text}"), &["--resume", &id]).start()).into();
    until_log(&fleet, &id, "both messages are accepted", |fold| fold.waiting.len() == 3);
    std::fs::write(&gate, "").unwrap();
    first.finish().expect_exit(0);
    for other in others {
        other.finish().expect_exit(0);
    }
    assert_eq!(fleet.check(&id), ["w1"]);
    let answered = |text: &str| {
        let said = format!(r#""content":"{text}""#);
        fleet.log(&id).iter().any(|entry| format!("{:?}", entry.item).replace('\\', "").contains(&said))
    };
    assert!(answered("two") && answered("three"));
}

/// A third of the lease is far longer than the test may take.
#[test]
fn an_order_that_waits_for_its_session_takes_no_slot_of_its_worker() {
    let fleet = Fleet::with_lease(NatsServers::one(), 3600);
    let _worker = fleet.worker("w1", &["--slots", "2"]);
    let (begun, gate) = (fleet.here.root().join("begun"), fleet.here.root().join("gate"));
    let wait = format!(
        r#"TOOL:bash:{{"command":"echo 1 > {}; while [ ! -e {} ]; do sleep 0.05; done"}}
SAY:first"#,
        begun.display(),
        gate.display()
    );
    let id = uuid::Uuid::new_v4().to_string();
    let first = fleet.place(&wait, &["--session-id", &id]).start();
    file(&begun);
    // Placed by somebody whom the owner of the session did not answer.
    let second = fleet.order(&id, "SAY:second");
    fleet.asked(async |broker| WorkQueue::new(&broker).put(&second).await);
    let other = fleet.place("SAY:other", &[]).finish().expect_exit(0).session_id();
    assert_eq!(fleet.check(&other), ["w1"]);
    std::fs::write(&gate, "").unwrap();
    first.finish().expect_exit(0);
}

#[test]
fn limits_hold_for_all_machines_together() {
    let fleet = Fleet::new(NatsServers::one());
    let limited = |name: &str| {
        let scratch = hangar_test_support::Scratch::new();
        fleet.configure(&scratch, &fleet.servers.url());
        let path = scratch.state().join("config.toml");
        let config = std::fs::read_to_string(&path).unwrap() + "\n[limits]\nper_project = { \"*\" = 1 }\n";
        std::fs::write(path, config).unwrap();
        fleet.worker_in(scratch, name, &["--slots", "4"])
    };
    let (_first, _second) = (limited("w1"), limited("w2"));
    // Each notes its beginning and its end, and waits for a gate: no two are there at once.
    let (marks, gate) = (fleet.here.root().join("marks"), fleet.here.root().join("gate"));
    let prompt = format!(
        r#"TOOL:bash:{{"command":"echo + >> {marks}; while [ ! -e {gate} ]; do sleep 0.05; done; sleep 0.2; echo - >> {marks}"}}
SAY:done"#,
        marks = marks.display(),
        gate = gate.display()
    );
    let ids: Vec<String> = (0..4).map(|_| uuid::Uuid::new_v4().to_string()).collect();
    let all: Vec<_> = ids.iter().map(|id| fleet.place(&prompt, &["--session-id", id]).start()).collect();
    file(&marks);
    // The others wait, with the sentence of the scheduler.
    let expected = format!("1 of 1 slots of project {} are taken; ", fleet.remote());
    let waiting = fleet.facts();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while waiting()
        .iter()
        .filter(|fact| fact.why.as_deref().is_some_and(|why| why.starts_with(&expected)))
        .count()
        < 3
    {
        assert!(std::time::Instant::now() < deadline, "{:#?}", waiting());
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(std::fs::read_to_string(&marks).unwrap(), "+\n");
    std::fs::write(&gate, "").unwrap();
    for running in all {
        running.finish().expect_exit(0);
    }
    assert_eq!(std::fs::read_to_string(&marks).unwrap(), "+\n-\n".repeat(4));
    for id in &ids {
        assert_eq!(fleet.check(id).len(), 1);
    }
}

#[test]
fn a_worker_uses_new_limits_and_no_broken_file() {
    let fleet = Fleet::new(NatsServers::one());
    let scratch = hangar_test_support::Scratch::new();
    fleet.configure(&scratch, &fleet.servers.url());
    let path = scratch.state().join("config.toml");
    let usual = std::fs::read_to_string(&path).unwrap();
    let limited = |most: u32| format!("{usual}\n[limits]\nglobal = {most}\n");
    std::fs::write(&path, limited(1)).unwrap();
    let _worker = fleet.worker_in(scratch, "w1", &["--slots", "4"]);
    let (begun, gate) = (fleet.here.root().join("begun"), fleet.here.root().join("gate"));
    let wait = format!(
        r#"TOOL:bash:{{"command":"echo 1 > {}; while [ ! -e {} ]; do sleep 0.05; done"}}
SAY:first"#,
        begun.display(),
        gate.display()
    );
    let first = fleet.place(&wait, &[]).start();
    file(&begun);
    // The only slot is taken, until there is another one.
    let id = uuid::Uuid::new_v4().to_string();
    let second = fleet.place("SAY:second", &["--session-id", &id]).start();
    let shown = fleet.facts();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !shown().iter().any(|fact| fact.session == id && fact.why.is_some()) {
        assert!(std::time::Instant::now() < deadline, "{:#?}", shown());
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    std::fs::write(&path, limited(2)).unwrap();
    second.finish().expect_exit(0);
    std::fs::write(&path, "[limits]\nglobal = \"many\"\n").unwrap();
    let third = fleet.place("SAY:third", &[]).finish().expect_exit(0).session_id();
    assert_eq!(fleet.check(&third), ["w1"]);
    std::fs::write(&gate, "").unwrap();
    first.finish().expect_exit(0);
}
