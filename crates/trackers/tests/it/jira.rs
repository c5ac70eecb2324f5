//! The tracker of Jira, against simulated ones.

use std::sync::Arc;

use hangar_test_support::JiraServer;
use hangar_test_support::jira::{Edition, KEY, TOKEN};
use hangar_trackers::{Tracker, TrackerErrorKind, open};
use hangar_workflow::environment::WorkflowEnvironment;

use crate::suite;

fn tracker(server: &JiraServer, edition: Edition, more: &str) -> Arc<dyn Tracker> {
    let (key, version) = match edition {
        Edition::Cloud => (KEY, "3"),
        Edition::DataCenter => (TOKEN, "2"),
    };
    let text = format!(
        "---\ntracker:\n  kind: jira\n  endpoint: {}\n  project: PROJ\n  api_version: \"{version}\"\n  active_states: [To Do, In Progress]\n  terminal_states: [Done]\n  api_key: {key}\n{more}---\n",
        server.url
    );
    let workflow = hangar_workflow::load(&text, "/".as_ref(), &WorkflowEnvironment::default()).unwrap();
    open(&workflow.config.tracker, &[]).unwrap()
}

#[tokio::test]
async fn a_project_is_a_tracker_in_cloud_and_in_a_data_center() {
    for edition in [Edition::Cloud, Edition::DataCenter] {
        let server = JiraServer::start(edition);
        server.issue(1, "Mend it", "To Do", &["Bug", "UI"], Some(2));
        server.issue(2, "Make it", "In Progress", &[], Some(1));
        server.issue(3, "Over", "Done", &[], None);
        server.block(1, 2);
        suite::every_claim(|| tracker(&server, edition, "")).await;
    }
}

#[tokio::test]
async fn lists_have_all_pages_in_order() {
    for edition in [Edition::Cloud, Edition::DataCenter] {
        let server = JiraServer::start(edition);
        (1..=123).for_each(|id| server.issue(id, "x", "To Do", &[], None));
        let found = tracker(&server, edition, "").by_states(&["To Do".to_owned()]).await.unwrap();
        let ids: Vec<usize> = found.iter().map(|issue| issue.id.0.parse().unwrap()).collect();
        assert_eq!(ids, (1..=123).collect::<Vec<_>>());
        assert_eq!(
            (found[0].identifier.as_str(), found[0].created_at.as_deref()),
            ("PROJ-1", Some("2026-01-01T00:00:00.000+00:00"))
        );
        assert!(found[0].url.as_deref().unwrap().ends_with("/browse/PROJ-1"));
    }
}

#[tokio::test]
async fn a_state_that_the_workflow_of_jira_does_not_offer_is_refused_by_name() {
    let server = JiraServer::start(Edition::Cloud);
    server.issue(1, "x", "To Do", &[], None);
    let tracker = tracker(&server, Edition::Cloud, "");
    let refused = tracker.transition(&suite::id("1"), "Nowhere").await.unwrap_err();
    assert_eq!(refused.kind, TrackerErrorKind::Payload);
    assert!(refused.message.contains("PROJ-1 from `To Do` to `Nowhere`"), "{refused}");
}

#[test]
fn a_tracker_without_a_key_a_project_or_an_address_is_refused() {
    for (more, kind) in [
        ("  project: PROJ\n  endpoint: http://x\n", TrackerErrorKind::MissingApiKey),
        ("  api_key: x\n  endpoint: http://x\n", TrackerErrorKind::MissingProject),
        ("  api_key: x\n  endpoint: http://x\n  project: 'A OR 1=1'\n", TrackerErrorKind::MissingProject),
        ("  api_key: x\n  project: PROJ\n", TrackerErrorKind::InvalidConfig),
    ] {
        let text = format!("---\ntracker:\n  kind: jira\n  active_states: [a]\n{more}---\n");
        let workflow = hangar_workflow::load(&text, "/".as_ref(), &WorkflowEnvironment::default()).unwrap();
        assert_eq!(open(&workflow.config.tracker, &[]).err().unwrap().kind, kind, "{more}");
    }
}
