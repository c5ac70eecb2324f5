//! The tracker of Linear, against a simulated one.

use std::sync::Arc;

use hangar_test_support::LinearServer;
use hangar_test_support::linear::KEY;
use hangar_trackers::{Tracker, TrackerErrorKind, open};
use hangar_workflow::environment::WorkflowEnvironment;

use crate::suite;

fn tracker(server: &LinearServer, key: &str) -> Arc<dyn Tracker> {
    let text = format!(
        "---\ntracker:\n  kind: linear\n  endpoint: {}/graphql\n  api_key: {key}\n  provider: {{ project_slug: app }}\n  active_states: [To Do, In Progress]\n  terminal_states: [Done]\n---\n",
        server.url
    );
    let workflow = hangar_workflow::load(&text, "/".as_ref(), &WorkflowEnvironment::default()).unwrap();
    open(&workflow.config.tracker, &[]).unwrap()
}

#[tokio::test]
async fn a_project_is_a_tracker() {
    let server = LinearServer::start();
    server.issue("1", "Mend it", "To Do", &["Bug", "UI"], 2);
    server.issue("2", "Make it", "In Progress", &[], 1);
    server.issue("3", "Over", "Done", &[], 0);
    server.block("1", "2");
    suite::every_claim(|| tracker(&server, KEY)).await;
}

#[tokio::test]
async fn lists_have_all_pages_in_order_and_no_states_need_no_request() {
    let server = LinearServer::start();
    (1..=123).for_each(|number| server.issue(&number.to_string(), "x", "To Do", &[], 0));
    let tracker = tracker(&server, KEY);
    let found = tracker.by_states(&["to do".to_owned()]).await.unwrap();
    let ids: Vec<usize> = found.iter().map(|issue| issue.id.0.parse().unwrap()).collect();
    assert_eq!(ids, (1..=123).collect::<Vec<_>>());
    assert_eq!(found[0].priority, None, "0 is no priority");
    assert_eq!(server.workspace().requests, 3);
    tracker.by_states(&[]).await.unwrap();
    tracker.by_ids(&[]).await.unwrap();
    assert_eq!(server.workspace().requests, 3);
}

#[tokio::test]
async fn a_wrong_key_and_an_unknown_state_are_refused_by_name() {
    let server = LinearServer::start();
    server.issue("1", "x", "To Do", &[], 0);
    let refused = tracker(&server, "wrong").by_states(&["To Do".to_owned()]).await.unwrap_err();
    assert_eq!(refused.kind, TrackerErrorKind::Auth);
    let refused = tracker(&server, KEY).transition(&suite::id("1"), "Nowhere").await.unwrap_err();
    assert!(refused.message.contains("no state `Nowhere`"), "{refused}");
}

#[test]
fn the_key_may_be_the_variable_that_symphony_uses() {
    let text =
        "---\ntracker:\n  kind: linear\n  provider: { project_slug: app }\n  active_states: [a]\n---\n";
    let with = |variables: &[(&str, &str)]| {
        let variables =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let environment = WorkflowEnvironment { variables, ..WorkflowEnvironment::default() };
        let workflow = hangar_workflow::load(text, "/".as_ref(), &environment).unwrap();
        open(&workflow.config.tracker, &[]).map(drop).map_err(|error| error.kind)
    };
    assert_eq!(with(&[("LINEAR_API_KEY", "k")]), Ok(()));
    assert_eq!(with(&[]), Err(TrackerErrorKind::MissingApiKey));
}
