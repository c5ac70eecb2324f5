//! The rules of a store of runs, held by files and by the servers.

use hangar_fleet::run_store::FleetRunStore;
use hangar_jobs::record::{RunEnd, RunFact, RunId, RunRecord};
use hangar_jobs::store::{FileStore, RunStatus, RunStore, RunStoreError};
use hangar_test_support::NatsServers;
use jiff::Timestamp;
use serde_json::json;

use crate::settings;

fn started(run: &str) -> RunRecord {
    let order = json!({
        "subject": { "kind": "job", "name": "build" },
        "input": "",
        "workingDirectory": "/work",
        "runtime": null,
        "entry": { "tasks": {}, "jobs": {} },
    });
    let line = json!({ "seq": 0, "at": "2026-01-01T00:00:00.000Z", "type": "runStarted", "run": run, "order": order });
    serde_json::from_value(line).unwrap()
}

fn record(seq: u64, fact: RunFact) -> RunRecord {
    RunRecord { seq, at: Timestamp::UNIX_EPOCH, fact }
}

/// All rules. `again` is the same store in another process.
fn suite(store: &dyn RunStore, again: &dyn RunStore) {
    let (first, second) = (RunId("run-1".to_owned()), RunId("run-2".to_owned()));
    assert!(matches!(store.read(&first), Err(RunStoreError::NotFound(_))));
    assert!(matches!(store.open(&first), Err(RunStoreError::NotFound(_))));
    assert!(matches!(store.open(&RunId("../x".to_owned())), Err(RunStoreError::NotFound(_))));
    let mut log = store.create(&first).unwrap();
    let records = [started("run-1"), record(1, RunFact::RunResumed)];
    records.iter().for_each(|record| log.append(record).unwrap());
    assert!(log.scratch().is_dir());

    // Others read it, and do not write it.
    assert_eq!(again.read(&first).unwrap(), records);
    assert!(store.create(&first).is_err());
    assert!(matches!(again.open(&first), Err(RunStoreError::Busy(_))));
    let listed = again.list(10).unwrap();
    assert_eq!((listed.len(), &listed[0].run, listed[0].status), (1, &first, RunStatus::Running));

    // One that is let go of is taken over, with all its records, and goes on.
    drop(log);
    assert_eq!(again.list(10).unwrap()[0].status, RunStatus::Interrupted);
    let (found, mut log) = again.open(&first).unwrap();
    assert_eq!(found, records);
    log.append(&record(2, RunFact::RunEnded { end: RunEnd::Succeeded })).unwrap();
    assert_eq!(store.read(&first).unwrap().len(), 3);
    assert_eq!(store.list(10).unwrap()[0].status, RunStatus::Succeeded);
    drop(log);

    // The newest first, and no more than asked for.
    let mut log = store.create(&second).unwrap();
    log.append(&started("run-2")).unwrap();
    let names = |most| store.list(most).unwrap().into_iter().map(|summary| summary.run).collect::<Vec<_>>();
    assert_eq!(names(10), [second.clone(), first.clone()]);
    assert_eq!(names(1), [second]);
}

#[test]
fn runs_in_files_keep_the_rules() {
    let directory = tempfile::tempdir().unwrap();
    let open = || FileStore::new(directory.path().to_owned());
    suite(&open(), &open());
}

#[test]
fn runs_on_the_servers_keep_the_rules() {
    let servers = NatsServers::one();
    let directory = tempfile::tempdir().unwrap();
    let open =
        |name: &str| FleetRunStore::connect(settings(&servers), name, directory.path().join(name)).unwrap();
    suite(&open("one"), &open("two"));
}
