//! Issues of a simulated GitHub.

use hangar_test_support::forge::TOKEN;
use hangar_test_support::{Dialect, ForgeServer, Signal};

use super::Place;

#[test]
fn issues_of_github_are_handed_over_once_through_kills_and_limits() {
    let server = ForgeServer::start(Dialect::GitHub);
    (1..=3).for_each(|number| server.issue(number, "Mend it", &["backlog"]));
    server.issue(4, "Not ours", &[]);
    let place = Place::new("", "x", &[]);
    let root = place.scratch.work().join("ws");
    place.scratch.file(
        "WORKFLOW.md",
        &format!(
            "---\ntracker:\n  kind: github\n  endpoint: {}\n  project: octo/app\n  api_key: $TRACKER_TOKEN\n  active_states: [backlog, in-progress]\n  in_progress_state: in-progress\n  handoff_state: review\n  terminal_states: [done]\n  comments: {{ on_dispatch: true, on_completion: true }}\npolling: {{ interval_ms: 100 }}\nworkspace: {{ root: {} }}\nagent: {{ kind: mock, max_turns: 2 }}\n---\nDo {{{{ .issue.title }}}}.\n",
            server.url,
            root.display()
        ),
    );
    let args = ["orchestrate", "--until-idle", "--output-format", "json"];
    for round in 0..12 {
        let mut running = place.command(&args).env("TRACKER_TOKEN", TOKEN).start();
        for _ in 0..round + 1 {
            if running.next_line().is_none() {
                break;
            }
        }
        running.try_signal(Signal::KILL);
        running.finish();
    }
    place.command(&args).env("TRACKER_TOKEN", TOKEN).finish().expect_exit(0);
    for number in 1..=3 {
        let (comments, labels, state) = server.look(number);
        assert_eq!((comments, labels, state.as_str()), (2, vec!["review".to_owned()], "open"), "{number}");
    }
    assert_eq!(server.look(4), (0, Vec::new(), "open".to_owned()));
    let second = place.command(&["orchestrate", "validate"]).finish().expect_exit(1);
    assert!(
        second.stdout.contains("WORKFLOW.md:6: error: `tracker.api_key` is missing"),
        "{}",
        second.stdout
    );
}

#[test]
fn issues_at_rest_cost_no_calls_of_the_quota() {
    const ISSUES: u64 = 30;
    const ROUNDS: usize = 40;
    let server = ForgeServer::start(Dialect::GitHub);
    (1..=ISSUES).for_each(|number| server.issue(number, "Later", &["backlog"]));
    let place = Place::new("", "x", &[]);
    let root = place.scratch.work().join("ws");
    place.scratch.file(
        "WORKFLOW.md",
        &format!(
            "---\ntracker:\n  kind: github\n  endpoint: {}\n  project: octo/app\n  api_key: $TRACKER_TOKEN\n  active_states: [backlog]\n  terminal_states: [done]\n  required_labels: [ready]\npolling: {{ interval_ms: 10 }}\nworkspace: {{ root: {} }}\nagent: {{ kind: mock }}\n---\nx\n",
            server.url,
            root.display()
        ),
    );
    let mut running =
        place.command(&["orchestrate", "--output-format", "json"]).env("TRACKER_TOKEN", TOKEN).start();
    running.wait_for_event("resumed");
    let unchanged = |requests: &[String]| requests.iter().filter(|line| line.ends_with(" 304")).count();
    while unchanged(&server.repository().requests) < ROUNDS {
        std::thread::yield_now();
    }
    running.signal(Signal::TERM);
    running.finish().expect_exit(0);
    let requests = server.repository().requests.clone();
    let first = requests.iter().position(|line| line.ends_with(" 304")).unwrap();
    let charged: Vec<&String> = requests[first..].iter().filter(|line| !line.ends_with(" 304")).collect();
    assert!(charged.is_empty(), "after the first reading, nothing is charged: {charged:?}");
}
