//! The orchestrator is killed at many points, and goes on each time.

use hangar_test_support::Signal;

use super::{Place, issue, kills, lines};

const KILLS: usize = 40;
const ISSUES: usize = 6;

#[test]
fn after_dozens_of_kills_every_issue_was_handed_over_once() {
    let yaml = "  handoff_state: Review\n  in_progress_state: In Progress\n  comments: { on_dispatch: true, on_completion: true }\nagent: { kind: mock, max_turns: 12, max_concurrent_agents: 2 }\nhooks:\n  after_create: 'echo >> created'\n  before_run: 'test -e created'\n";
    let names: Vec<String> = (0..ISSUES).map(|number| format!("A-{number}")).collect();
    let issues: Vec<_> = names.iter().map(|name| issue(name)).collect();
    let place = Place::new(yaml, "x", &issues);
    let args = ["orchestrate", "--until-idle", "--output-format", "json"];
    for round in 0..kills(KILLS) {
        let mut running = place.command(&args).start();
        // A different point each time: after the nth line.
        for _ in 0..(round * 7 % 17) + 1 {
            if running.next_line().is_none() {
                break;
            }
        }
        running.try_signal(Signal::KILL);
        running.finish();
    }
    place.command(&args).finish().expect_exit(0);
    let state = place.scratch.state().join("orchestrator");
    let log = std::fs::read_dir(state).unwrap().map(|entry| entry.unwrap().path().join("records.jsonl"));
    let records =
        lines(&std::fs::read_to_string(log.into_iter().find(|path| path.exists()).unwrap()).unwrap());
    for (at, record) in records.iter().enumerate() {
        assert_eq!(record["seq"], at, "no record is lost or written twice");
    }
    for name in &names {
        let issue = place.issue(name);
        assert_eq!(issue["state"], "Review", "{name}");
        let comments = issue["comments"].as_array().unwrap();
        assert_eq!(comments.len(), 2, "{name}: {comments:#?}");
        let handed =
            records.iter().filter(|record| record["type"] == "released" && record["issue"] == issue["id"]);
        assert_eq!(handed.count(), 1, "{name}");
        let claims =
            records.iter().filter(|record| record["type"] == "claimed" && record["issue"] == issue["id"]);
        assert_eq!(claims.count(), 1, "{name}");
    }
}
