//! The tracker of GitHub, against a simulated one.

use std::sync::Arc;
use std::time::Duration;

use hangar_test_support::GitHubServer;
use hangar_test_support::github::{ScriptedRefusal, TOKEN};
use hangar_trackers::{Tracker, TrackerErrorKind, open};
use hangar_workflow::environment::WorkflowEnvironment;

use crate::suite;

fn tracker(server: &GitHubServer, more: &str) -> Arc<dyn Tracker> {
    let text = format!(
        "---\ntracker:\n  kind: github\n  endpoint: {}\n  project: octo/app\n  active_states: [To Do, In Progress]\n  terminal_states: [Done]\n  api_key: {TOKEN}\n{more}---\n",
        server.url
    );
    let workflow = hangar_workflow::load(&text, "/".as_ref(), &WorkflowEnvironment::default()).unwrap();
    open(&workflow.config.tracker, &[]).unwrap()
}

fn active() -> Vec<String> {
    vec!["To Do".to_owned(), "In Progress".to_owned()]
}

#[tokio::test]
async fn a_repository_is_a_tracker() {
    let server = GitHubServer::start();
    server.issue(1, "Mend it", &["Bug", "UI", "to do"]);
    server.issue(2, "Make it", &["In Progress"]);
    server.issue(3, "Over", &["done"]);
    server.issue(4, "Not ours", &[]);
    server.pull_request(5);
    suite::every_claim_of_a_forge(|| tracker(&server, "")).await;
    tracker(&server, "").transition(&suite::id("1"), "Done").await.unwrap();
    let (_, labels, state) = server.look(1);
    assert_eq!((labels.contains(&"In Progress".to_owned()), state.as_str()), (false, "closed"));
}

#[tokio::test]
async fn lists_have_all_pages_in_order() {
    let server = GitHubServer::start();
    (1..=123).for_each(|number| {
        server.issue(number, "x", &["to do", if number % 2 == 0 { "even" } else { "odd" }]);
    });
    let found = tracker(&server, "").by_states(&active()).await.unwrap();
    let numbers: Vec<usize> = found.iter().map(|issue| issue.id.0.parse().unwrap()).collect();
    assert_eq!(numbers, (1..=123).collect::<Vec<_>>());
    let found = tracker(&server, "  query_filter: 'label:even'\n").by_states(&active()).await.unwrap();
    assert_eq!(found.len(), 61, "a filter is a search, with pages too");
}

#[tokio::test]
async fn reads_of_what_has_not_changed_are_conditional() {
    let server = GitHubServer::start();
    server.issue(1, "x", &["to do"]);
    let tracker = tracker(&server, "");
    for _ in 0..3 {
        assert_eq!(tracker.by_states(&active()).await.unwrap().len(), 1);
    }
    server.issue(2, "y", &["to do"]);
    assert_eq!(tracker.by_states(&active()).await.unwrap().len(), 2);
    let statuses: Vec<String> =
        server.repository().requests.iter().map(|line| line.rsplit(' ').next().unwrap().to_owned()).collect();
    assert_eq!(statuses, ["200", "304", "304", "200"]);
}

#[tokio::test]
async fn refusals_have_kinds_and_say_how_long_to_wait() {
    let server = GitHubServer::start();
    let date = "Thu, 01 Jan 2026 00:00:00 GMT".to_owned();
    let reset = 1_767_225_600 + 90;
    let cases = [
        (
            403,
            vec![("retry-after", "7".to_owned())],
            "You have exceeded a secondary rate limit",
            TrackerErrorKind::RateLimited,
            Some(7),
        ),
        (
            403,
            vec![
                ("x-ratelimit-remaining", "0".to_owned()),
                ("x-ratelimit-reset", reset.to_string()),
                ("date", date),
            ],
            "API rate limit exceeded",
            TrackerErrorKind::RateLimited,
            Some(90),
        ),
        (429, vec![], "Too many", TrackerErrorKind::RateLimited, Some(60)),
        (403, vec![], "Resource not accessible", TrackerErrorKind::Auth, None),
        (401, vec![], "Bad credentials", TrackerErrorKind::Auth, None),
        (502, vec![], "", TrackerErrorKind::Api, None),
    ];
    for (status, headers, message, kind, wait) in cases {
        server.repository().refusals.push(ScriptedRefusal { status, headers, message });
        let error = tracker(&server, "").by_states(&active()).await.unwrap_err();
        assert_eq!(
            (error.kind, error.retry_after),
            (kind, wait.map(Duration::from_secs)),
            "{status} {message}"
        );
    }
}

#[test]
fn a_tracker_without_a_token_or_a_repository_is_refused() {
    for (more, kind) in [
        ("  project: octo/app\n", TrackerErrorKind::MissingApiKey),
        ("  api_key: x\n", TrackerErrorKind::MissingProject),
        ("  api_key: x\n  project: ../x\n", TrackerErrorKind::MissingProject),
    ] {
        let text = format!("---\ntracker:\n  kind: github\n{more}---\n");
        let workflow = hangar_workflow::load(&text, "/".as_ref(), &WorkflowEnvironment::default()).unwrap();
        assert_eq!(open(&workflow.config.tracker, &[]).err().unwrap().kind, kind, "{more}");
    }
}
