//! The trackers of files.

use std::path::Path;
use std::sync::Arc;

use hangar_trackers::file::FileTracker;
use hangar_trackers::markdown::MarkdownTracker;
use hangar_trackers::{IssueReader, IssueWriter, Tracker, TrackerErrorKind};

use crate::suite;

const ISSUES: &str = r#"[
  {"id": "1", "identifier": "A-1", "title": "Mend it", "state": "To Do", "labels": ["Bug", "UI"], "priority": 2,
   "blocked_by": [{"id": "2", "identifier": "A-2", "state": "In Progress"}], "mine": {"kept": true}},
  {"id": "2", "identifier": "A-2", "title": "Make it", "state": "In Progress", "priority": 1, "parent": null},
  {"id": "3", "identifier": "A-3", "title": "Over", "state": "Done", "priority": "high", "comments": []}
]"#;

pub(crate) fn json(text: &str) -> (tempfile::TempDir, FileTracker) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("issues.json");
    std::fs::write(&path, text).unwrap();
    (place, FileTracker::new(path))
}

fn markdown() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let issues = [
        (
            "1",
            "title: Mend it\nstate: To Do\n# a note\nlabels:\n  - Bug\n  - UI\npriority: 2\nblocked_by: [2]",
            "All of it.\n",
        ),
        ("2", "state: In Progress\npriority: 1", "# Make it\n\nNow.\n"),
        ("3", "title: Over\nstate: Done", ""),
    ];
    for (name, head, body) in issues {
        std::fs::write(place.path().join(format!("{name}.md")), format!("---\n{head}\n---\n{body}")).unwrap();
    }
    std::fs::write(place.path().join("README.md"), "No issue.").unwrap();
    place
}

#[tokio::test]
async fn a_json_file_is_a_tracker() {
    let (_place, tracker) = json(ISSUES);
    suite::every_claim(|| Arc::new(tracker.clone()) as Arc<dyn Tracker>).await;
}

#[tokio::test]
async fn a_directory_of_markdown_is_a_tracker() {
    let place = markdown();
    suite::every_claim(|| Arc::new(MarkdownTracker::new(place.path().to_owned())) as Arc<dyn Tracker>).await;
}

#[tokio::test]
async fn a_write_keeps_fields_that_are_not_ours_and_the_rest_of_the_file() {
    let (place, tracker) = json(ISSUES);
    tracker.transition(&suite::id("1"), "Done").await.unwrap();
    let text = std::fs::read_to_string(place.path().join("issues.json")).unwrap();
    let entries: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&entries[0]["mine"]["kept"], &entries[0]["state"]), (&true.into(), &"Done".into()));
    assert_eq!(entries[2]["priority"], "high");
    assert_eq!(names(place.path()), ["issues.json"], "nothing is left beside it");
    let place = markdown();
    let tracker = MarkdownTracker::new(place.path().to_owned());
    tracker.transition(&suite::id("1"), "On: hold").await.unwrap();
    let text = std::fs::read_to_string(place.path().join("1.md")).unwrap();
    assert_eq!(
        text,
        "---\ntitle: Mend it\nstate: \"On: hold\"\n# a note\nlabels:\n  - Bug\n  - UI\npriority: 2\nblocked_by: [2]\n---\nAll of it.\n"
    );
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[tokio::test]
async fn invalid_files_are_refused_with_the_issue_that_is_wrong() {
    for (text, words) in [
        ("{}", "must be an array"),
        (r#"[{"id": "1"}]"#, "issue 1: `identifier` is missing"),
        (r#"[{"id": "1", "identifier": "a", "title": "t", "state": "s", "labels": null}]"#, "`labels`"),
        (
            r#"[{"id": "1", "identifier": "a", "title": "t", "state": "s", "blocked_by": null}]"#,
            "`blocked_by`",
        ),
        (r#"[{"id": "1", "identifier": "a", "title": "t", "state": "s", "parent": {}}]"#, "`parent`"),
        (
            r#"[{"id": "1", "identifier": "a", "title": "t", "state": "s"}, {"id": "1", "identifier": "b", "title": "t", "state": "s"}]"#,
            "two issues",
        ),
    ] {
        let (_place, tracker) = json(text);
        let error = tracker.by_states(&["s".to_owned()]).await.unwrap_err();
        assert_eq!(error.kind, TrackerErrorKind::Payload, "{text}");
        assert!(error.message.contains(words), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writes_of_many_at_once_are_all_kept() {
    let (_place, tracker) = json(ISSUES);
    let writes = (0..24).map(|n| {
        let tracker = tracker.clone();
        tokio::spawn(async move {
            tracker.label(&suite::id("2"), &format!("l{n}"), hangar_trackers::LabelChange::Add).await
        })
    });
    let writes: Vec<_> = writes.collect();
    let unknown = tracker.transition(&suite::id("9"), "Done").await.unwrap_err();
    assert_eq!(unknown.kind, TrackerErrorKind::NotFound, "one that fails leaves the others alone");
    for write in writes {
        write.await.unwrap().unwrap();
    }
    let issue = tracker.by_ids(&[suite::id("2")]).await.unwrap().remove(0);
    assert_eq!(issue.labels.len(), 24);
}

#[tokio::test]
async fn issues_of_markdown_are_found_by_id_beside_a_file_that_is_none() {
    let place = markdown();
    std::fs::write(place.path().join("broken.md"), "---\nstate: [\n---\n").unwrap();
    let tracker = MarkdownTracker::new(place.path().to_owned());
    let ids = ["1", "README", "gone"].map(suite::id);
    let found = tracker.by_ids(&ids).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].blocked_by[0].state, "In Progress", "of the blocker's own file");
    assert!(tracker.by_states(&["To Do".to_owned()]).await.is_err(), "a list tells of the broken file");
}

#[tokio::test]
async fn a_change_is_seen_though_the_file_has_the_same_length() {
    let (place, tracker) = json(ISSUES);
    let path = place.path().join("issues.json");
    let state = async || {
        let found = tracker.by_ids(&[suite::id("3")]).await.unwrap();
        found.into_iter().next().unwrap().state
    };
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    let age = |seconds| {
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(long_ago + std::time::Duration::from_secs(seconds)).unwrap();
    };
    age(0);
    assert_eq!((state().await, state().await), ("Done".to_owned(), "Done".to_owned()));
    std::fs::write(&path, ISSUES.replace("\"Done\"", "\"Gone\"")).unwrap();
    assert_eq!(state().await, "Gone", "changed just now");
    age(1);
    assert_eq!((state().await, state().await), ("Gone".to_owned(), "Gone".to_owned()));
    std::fs::write(&path, ISSUES).unwrap();
    age(2);
    assert_eq!(state().await, "Done", "only its time differs");
}
