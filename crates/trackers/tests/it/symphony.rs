//! Section 17.3 of the specification of Symphony, one test for each of its sentences that no test elsewhere has the name of.

use hangar_test_support::{Dialect, ForgeServer};
use hangar_trackers::{IssueReader, TrackerErrorKind};

use crate::files::json;
use crate::forges::{active, tracker};
use crate::suite::id;

#[tokio::test]
async fn candidates_are_those_in_active_states_within_the_scope_of_the_workflow() {
    for dialect in Dialect::ALL {
        let server = ForgeServer::start(dialect);
        server.issue(1, "x", &["to do", "mine"]);
        server.issue(2, "x", &["to do"]);
        server.issue(3, "x", &["done", "mine"]);
        server.issue(4, "x", &["mine"]);
        let filter = if dialect == Dialect::GitHub { "label:mine" } else { "labels=mine" };
        let found = tracker(&server, &format!("  query_filter: '{filter}'\n"));
        let found = found.by_states(&active()).await.unwrap();
        let ids: Vec<&str> = found.iter().map(|issue| issue.id.0.as_str()).collect();
        assert_eq!(ids, ["1"], "{dialect:?}");
    }
}

#[tokio::test]
async fn no_states_and_no_ids_are_read_without_a_request() {
    for dialect in Dialect::ALL {
        let server = ForgeServer::start(dialect);
        server.issue(1, "x", &["to do"]);
        let tracker = tracker(&server, "");
        assert!(tracker.by_states(&[]).await.unwrap().is_empty());
        assert!(tracker.by_ids(&[]).await.unwrap().is_empty());
        assert!(server.repository().requests.is_empty(), "{dialect:?}");
    }
}

#[tokio::test]
async fn labels_are_in_lower_case() {
    for dialect in Dialect::ALL {
        let server = ForgeServer::start(dialect);
        server.issue(1, "x", &["To Do", "BUG"]);
        let found = tracker(&server, "").by_states(&active()).await.unwrap();
        assert!(found[0].labels.contains(&"bug".to_owned()), "{:?}", found[0].labels);
    }
}

#[tokio::test]
async fn optional_fields_that_are_unusable_hide_no_issue() {
    let text = r#"[{"id": "1", "identifier": "A", "title": "t", "state": "To Do", "priority": "high", "parent": null}]"#;
    let (_place, tracker) = json(text);
    let found = tracker.by_states(&active()).await.unwrap();
    assert_eq!((found[0].title.as_str(), found[0].priority, &found[0].parent), ("t", None, &None));
}

#[tokio::test]
async fn a_malformed_issue_that_is_asked_for_is_an_error_and_not_invisible() {
    let (_place, tracker) = json(r#"[{"id": "1", "identifier": "A", "state": "To Do"}]"#);
    let error = tracker.by_ids(&[id("1")]).await.unwrap_err();
    assert_eq!(error.kind, TrackerErrorKind::Payload);
}

#[tokio::test]
async fn a_refresh_by_id_returns_the_whole_issue() {
    for dialect in Dialect::ALL {
        let server = ForgeServer::start(dialect);
        server.issue(1, "Mend it", &["to do", "bug"]);
        let tracker = tracker(&server, "");
        let listed = tracker.by_states(&active()).await.unwrap().remove(0);
        let found = tracker.by_ids(std::slice::from_ref(&listed.id)).await.unwrap().remove(0);
        assert_eq!(
            (&found.identifier, &found.title, &found.description, &found.labels),
            (&listed.identifier, &listed.title, &listed.description, &listed.labels)
        );
        assert!(found.comments.is_some(), "{dialect:?}");
    }
}
