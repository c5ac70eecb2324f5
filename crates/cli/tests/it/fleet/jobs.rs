//! Jobs on a fleet: the tasks are orders, the records are on the servers.

use std::time::{Duration, Instant};

use hangar_test_support::{Invocation, NatsServers, Signal};
use serde_json::Value;

use super::machines::{Fleet, file, until_log};

/// Far longer than anything takes here.
const LONG: Duration = Duration::from_secs(120);

/// Tasks on the remote of the fleet, of which the second finds what the first has made.
fn entry(fleet: &Fleet) -> String {
    let place = |name: &str| fleet.here.root().join(name).display().to_string();
    format!(
        r#"
models: {{ driving: mock-model }}
tasks:
  first:
    model: {{ category: driving }}
    requireUserInput: false
    prompt: |-
      TOOL:bash:{{"command":"echo one > made.txt; echo first >> {count}"}}
      SAY:made
  second:
    model: {{ category: driving }}
    requireUserInput: false
    prompt: |-
      TOOL:bash:{{"command":"cat made.txt > {seen}; echo $$ > {begun}; while [ ! -e {gate} ]; do sleep 0.05; done; echo second >> {count}"}}
      SAY:seen
    criteria:
      condition: |-
        job_boolean_true
        TOOL:jobs-job_boolean_true:{{"argument":"fine"}}
      failureAction: {{ retryTimes: 0 }}
jobs:
  demo: {{ work: {{ kind: Seq, works: [{{ kind: Ref, taskId: first }}, {{ kind: Ref, taskId: second }}] }} }}
"#,
        count = place("count"),
        seen = place("seen"),
        begun = place("begun"),
        gate = place("gate"),
    )
}

/// `hangar job` in a clone of the remote.
fn job(fleet: &Fleet, args: &[&str]) -> Invocation {
    let clone = fleet.here.work();
    if !clone.join(".git").exists() {
        let (remote, at) = (fleet.remote(), clone.display().to_string());
        fleet.git(&["-C", &at, "init", "--quiet", "-b", "main"]);
        fleet.git(&["-C", &at, "remote", "add", "origin", &remote]);
        fleet.git(&["-C", &at, "pull", "--quiet", "origin", "main"]);
        std::fs::write(clone.join(".git/info/exclude"), "jobs.yaml\n").unwrap();
        std::fs::write(clone.join("jobs.yaml"), entry(fleet)).unwrap();
    }
    fleet.hangar(&["job"]).args(args).within(Duration::from_secs(300))
}

#[test]
fn a_job_whose_process_was_killed_goes_on_from_its_records_on_the_servers() {
    let fleet = Fleet::new(NatsServers::one());
    let _worker = fleet.worker("w1", &["--slots", "2"]);
    let mut running = job(
        &fleet,
        &["run", "jobs.yaml", "demo", "--runtime", "native", "--fleet", "--output-format", "json"],
    )
    .start();
    let first: Value = serde_json::from_str(running.next_line().expect("a record")).unwrap();
    let run = first["run"].as_str().unwrap_or_else(|| panic!("{first}")).to_owned();
    file(&fleet.here.root().join("begun"));
    assert_eq!(
        file(&fleet.here.root().join("seen")),
        "one\n",
        "the second task goes on with the work of the first"
    );
    let busy = job(&fleet, &["resume", &run, "--fleet"]).finish().expect_exit(1);
    assert!(busy.stderr.contains("is in use by another process"), "{busy:#?}");
    running.signal(Signal::KILL);
    drop(running);
    std::fs::write(fleet.here.root().join("gate"), "").unwrap();
    // Its heartbeat has to end.
    let deadline = Instant::now() + LONG;
    let resumed = loop {
        let resumed = job(&fleet, &["resume", &run, "--fleet"]).finish();
        if !resumed.stderr.contains("is in use by another process") {
            break resumed.expect_exit(0);
        }
        assert!(Instant::now() < deadline, "{resumed:#?}");
        std::thread::sleep(Duration::from_millis(200));
    };
    assert!(resumed.stdout.trim_end().ends_with("run succeeded"), "{resumed:#?}");
    let count = std::fs::read_to_string(fleet.here.root().join("count")).unwrap();
    assert_eq!(count.lines().filter(|line| *line == "first").count(), 1, "{count}");
    assert!(count.lines().any(|line| line == "second"), "{count}");
    let sessions = fleet.facts()();
    assert!(
        sessions.len() >= 2 && sessions.iter().all(|fact| fact.run.as_deref() == Some(run.as_str())),
        "{sessions:#?}"
    );
    for fact in sessions {
        until_log(&fleet, &fact.session, "its worker lets go of it", |fold| fold.owner.is_none());
        fleet.check(&fact.session);
    }
    let over = job(&fleet, &["resume", &run, "--fleet"]).finish().expect_exit(1);
    assert!(over.stderr.contains("ended"), "{over:#?}");
}
