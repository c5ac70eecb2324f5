//! What the orchestrator relies on, of every tracker. A tracker brings a place with these issues:
//!
//! | id | title | state | labels | priority | blocked by |
//! |---|---|---|---|---|---|
//! | 1 | Mend it | To Do | Bug, UI | 2 | 2 (In Progress) |
//! | 2 | Make it | In Progress | | 1 | |
//! | 3 | Over | Done | | | |

use std::sync::Arc;

use hangar_trackers::{Issue, IssueId, LabelChange, NewComment, NewIssue, Tracker, TrackerErrorKind};
use jiff::Timestamp;

pub(crate) fn id(id: &str) -> IssueId {
    IssueId(id.to_owned())
}

fn states(states: &[&str]) -> Vec<String> {
    states.iter().map(|state| (*state).to_owned()).collect()
}

async fn one(tracker: &Arc<dyn Tracker>, id_of: &str) -> Issue {
    tracker.by_ids(&[id(id_of)]).await.unwrap().remove(0)
}

fn note(marker: &str, body: &str) -> NewComment {
    NewComment { marker: marker.to_owned(), body: body.to_owned(), at: Timestamp::UNIX_EPOCH }
}

pub(crate) async fn every_claim(open: impl Fn() -> Arc<dyn Tracker>) {
    let tracker = open();
    reads(&tracker).await;
    priorities(&tracker).await;
    is_blocked(&tracker).await;
    writes(&tracker, open, str::to_owned).await;
}

/// The claims about a tracker without priorities, whose comments show their marker.
pub(crate) async fn every_claim_of_a_forge(open: impl Fn() -> Arc<dyn Tracker>) {
    let tracker = open();
    reads(&tracker).await;
    is_blocked(&tracker).await;
    writes(&tracker, open, |body| body.split("\n<!-- hangar:").next().unwrap().to_owned()).await;
}

async fn priorities(tracker: &Arc<dyn Tracker>) {
    let active = tracker.by_states(&states(&["to do", "IN PROGRESS"])).await.unwrap();
    assert_eq!((active[0].priority, active[1].priority), (Some(2), Some(1)));
}

async fn is_blocked(tracker: &Arc<dyn Tracker>) {
    let active = tracker.by_states(&states(&["to do", "IN PROGRESS"])).await.unwrap();
    assert_eq!((active[0].blocked_by.len(), active[1].blocked_by.len()), (1, 0));
    assert_eq!(active[0].blocked_by[0].state, "In Progress");
}

async fn reads(tracker: &Arc<dyn Tracker>) {
    let active = tracker.by_states(&states(&["to do", "IN PROGRESS"])).await.unwrap();
    let ids: Vec<&str> = active.iter().map(|issue| issue.id.0.as_str()).collect();
    assert_eq!(ids, ["1", "2"], "states are compared without regard to case");
    assert_eq!(active[0].labels[..2], ["bug", "ui"], "labels are in lower case");
    assert_eq!(active[0].comments, None, "a list has no comments");
    assert!(tracker.by_states(&[]).await.unwrap().is_empty());
    assert!(tracker.by_ids(&[]).await.unwrap().is_empty());
    let found = tracker.by_ids(&[id("3"), id("99")]).await.unwrap();
    assert_eq!(found.len(), 1, "an issue that is gone is missing");
    assert_eq!((found[0].title.as_str(), found[0].state.as_str()), ("Over", "Done"));
    assert_eq!(found[0].comments, Some(Vec::new()));
}

async fn writes(
    tracker: &Arc<dyn Tracker>,
    open: impl Fn() -> Arc<dyn Tracker>,
    shown: impl Fn(&str) -> String,
) {
    for _ in 0..2 {
        tracker.transition(&id("1"), "In Progress").await.unwrap();
        tracker.comment(&id("1"), note("claim-1", "Started.\n\nOn it.")).await.unwrap();
        tracker.label(&id("1"), "Needs-Human", LabelChange::Add).await.unwrap();
        tracker.label(&id("1"), "ui", LabelChange::Remove).await.unwrap();
    }
    tracker.comment(&id("1"), note("claim-2", "Done.")).await.unwrap();
    // Another process reads the same.
    for tracker in [Arc::clone(tracker), open()] {
        let issue = one(&tracker, "1").await;
        assert_eq!(issue.state, "In Progress");
        assert!(issue.labels.contains(&"needs-human".to_owned()) && !issue.labels.contains(&"ui".to_owned()));
        let bodies: Vec<String> =
            issue.comments.unwrap().iter().map(|comment| shown(&comment.body)).collect();
        assert_eq!(bodies, ["Started.\n\nOn it.", "Done."], "a comment is written once");
        assert!(issue.labels.contains(&"bug".to_owned()), "the rest stays");
    }
    let draft = NewIssue {
        marker: "m1".to_owned(),
        title: "More: \"this\"".to_owned(),
        description: "Why.".to_owned(),
    };
    let made = tracker.create(draft.clone()).await.unwrap();
    assert_eq!(open().create(draft).await.unwrap(), made, "an issue is created once");
    let found = tracker.by_ids(std::slice::from_ref(&made)).await.unwrap().remove(0);
    assert_eq!((found.title.as_str(), found.description.contains("Why.")), ("More: \"this\"", true));
    let active = tracker.by_states(&states(&["to do", "IN PROGRESS"])).await.unwrap();
    assert!(active.iter().all(|issue| issue.id != made), "a person looks at it first");
    let missing = tracker.transition(&id("99"), "Done").await.unwrap_err();
    assert_eq!(missing.kind, TrackerErrorKind::NotFound);
}
