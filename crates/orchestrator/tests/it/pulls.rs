//! Pull requests: published, and what follows from what happens to them.

use std::time::Duration;

use hangar_orchestrator::hold;
use hangar_orchestrator::record::{IssueFact, Release, WorkTurnEnd};
use hangar_trackers::forge::{Check, CheckStatus, PullState, Review, ReviewVerdict, Thread, ThreadComment};

use crate::world::{World, id};

const YAML: &str = "  handoff_state: Review\n  in_progress_state: In Progress\nagent: { max_turns: 1 }\npull_requests: { provider: github, project: o/r, api_key: k }\nreactions:\n  ci_failure: { max_retries: 2 }\n  review_comments: { debounce_ms: 60000, max_continuation_turns: 2 }\n  bot_review: { debounce_ms: 0 }\n  merge_conflicts: { max_retries: 1 }\n  labels: { fix: again }\n";
const AUTO_MERGE: &str = "  auto_merge: { require_approval: true }\n";

/// A world in which the pull request of an issue is open.
fn waiting(yaml: &str) -> World {
    let mut world = World::new(yaml, &["a"]);
    world.poll();
    world.completes("a");
    world.log.clear();
    world.look();
    world
}

fn check(name: &str, status: CheckStatus) -> Check {
    let (conclusion, details_url) = (status.as_str().to_owned(), String::new());
    Check { name: name.to_owned(), status, conclusion, details_url }
}

fn thread(comment: &str, is_bot: bool, at: &str) -> Thread {
    let said = ThreadComment {
        id: comment.to_owned(),
        author: "ada".to_owned(),
        is_bot,
        body: "Rename it.".to_owned(),
        created_at: at.to_owned(),
    };
    Thread {
        id: format!("t{comment}"),
        is_resolved: false,
        is_outdated: false,
        file: "a.rs".to_owned(),
        start_line: None,
        end_line: Some(3),
        comments: vec![said],
    }
}

fn review(verdict: ReviewVerdict, body: &str) -> Review {
    Review {
        id: "7".to_owned(),
        author: "ada".to_owned(),
        is_bot: false,
        verdict,
        body: body.to_owned(),
        submitted_at: "1970-01-01T00:00:00Z".to_owned(),
    }
}

#[test]
fn a_merge_of_ours_that_closed_the_issue_is_one_though_the_pull_request_was_read_before() {
    let mut world = waiting(YAML);
    let snapshot = world.snapshot.as_mut().unwrap();
    snapshot.asked_for.insert(id("a"));
    let mut closed = world.issues[&id("a")].clone();
    closed.state = "Done".to_owned();
    snapshot.watched.insert(id("a"), closed);
    let head = world.pull().head.clone();
    world.snapshot.as_mut().unwrap().asked = world.pulls.0[&id("a")].asked;
    world.note(IssueFact::Merged { issue: id("a"), head, error: None });
    world.settle();
    assert!(matches!(world.state.history[&id("a")].release, Release::Merged { .. }), "{:#?}", world.log);
}

#[test]
fn work_is_published_before_the_issue_is_handed_over_and_the_claim_stays() {
    let mut world = World::new(YAML, &["a"]);
    world.poll();
    world.completes("a");
    world.poll();
    world.look();
    world.logged(&[
        "a: claimed",
        "a: -> In Progress",
        "a: opened",
        "a: ended max turns",
        "a: pushed c1",
        "a: -> Review",
        "a: waits",
    ]);
    let claim = &world.state.claims[&id("a")];
    assert_eq!(hold::of_claim(claim).code(), "waiting_review");
    assert_eq!(world.running().len(), 0, "it holds no slot");
}

#[test]
fn a_failed_check_leads_to_a_session_about_it_until_there_were_enough() {
    let mut world = waiting(YAML);
    for round in 2..=3 {
        world.pull().checks = vec![check("test", CheckStatus::Failing), check("lint", CheckStatus::Pending)];
        world.look();
        assert_eq!(world.turn_of("a"), None, "the other check may fail as well");
        world.pull().checks[1].status = CheckStatus::Passing;
        world.look();
        assert_eq!(world.turn_of("a"), Some(1), "{:#?}", world.log);
        assert_eq!(world.issue("a").state, "In Progress");
        world.completes("a");
        world.look();
        assert!(world.log.contains(&format!("a: pushed c{round}")), "{:#?}", world.log);
    }
    world.pull().checks = vec![check("test", CheckStatus::Failing)];
    world.look();
    assert_eq!(
        world.log[world.log.len() - 2..],
        ["a: label needs-human", "a: parked, the failure of CI remains after 2 attempts"]
    );
    // A person removes the label: it is tried again.
    world.issue("a").labels.clear();
    world.poll();
    world.look();
    assert_eq!(world.turn_of("a"), Some(1), "{:#?}", world.log);
}

#[test]
fn an_old_head_that_the_forge_still_shows_is_ignored() {
    let mut world = waiting(YAML);
    world.pull().checks = vec![check("test", CheckStatus::Failing)];
    world.look();
    world.completes("a");
    world.pull().head = "c1".to_owned();
    world.pull().checks = vec![check("test", CheckStatus::Failing)];
    world.look();
    assert_eq!(world.turn_of("a"), None, "{:#?}", world.log);
}

#[test]
fn remarks_are_collected_until_the_reviewer_is_silent_then_answered() {
    let mut world = waiting(YAML);
    world.pull().threads =
        vec![thread("11", false, "1970-01-01T00:00:30Z"), thread("12", true, "1970-01-01T00:00:00Z")];
    world.pull().threads[1].is_resolved = true;
    world.look();
    assert_eq!(world.turn_of("a"), None, "the reviewer may go on");
    world.wait(Duration::from_secs(90));
    world.look();
    assert_eq!(world.turn_of("a"), Some(1));
    let context = hangar_orchestrator::prompt::context(
        &world.workflow,
        &world.state.claims[&id("a")],
        &world.issues[&id("a")],
    );
    assert_eq!(context["review_comments"][0]["file"], "a.rs");
    world.completes("a");
    world.look();
    world.logged(&[
        "a: reaction to review",
        "a: -> In Progress",
        "a: opened",
        "a: ended max turns",
        "a: pushed c2",
        "a: answered 11",
        "a: -> Review",
        "a: waits",
    ]);
}

#[test]
fn a_review_without_lines_is_answered_once() {
    let mut world = waiting(YAML);
    world.pull().reviews = vec![review(ReviewVerdict::ChangesRequested, "Too long.")];
    world.wait(Duration::from_secs(90));
    world.look();
    world.completes("a");
    world.look();
    world.look();
    assert_eq!(world.log.iter().filter(|line| line.contains("reaction")).count(), 1, "{:#?}", world.log);
    assert!(world.log.contains(&"a: answered review-7".to_owned()));
}

#[test]
fn bots_labels_and_conflicts_lead_to_sessions_as_well() {
    let mut world = waiting(YAML);
    world.pull().threads = vec![thread("12", true, "1970-01-01T00:00:00Z")];
    world.look();
    assert_eq!(world.log[0], "a: reaction to botReview");
    world.completes("a");
    world.pull().labels = vec!["again".to_owned()];
    world.look();
    assert_eq!(world.turn_of("a"), Some(1), "{:#?}", world.log);
    world.pull().labels.clear();
    world.completes("a");
    assert!(world.log.contains(&"a: answered label".to_owned()));
    world.pull().mergeable = Some(false);
    world.look();
    world.completes("a");
    world.look();
    let last = world.log.last().unwrap();
    assert_eq!(last, "a: parked, the merge conflict remains after 1 attempt", "{:#?}", world.log);
}

#[test]
fn a_pull_request_is_merged_when_the_rule_holds_and_the_issue_is_closed() {
    let mut world = waiting(&format!("{YAML}{AUTO_MERGE}"));
    world.pull().checks = vec![check("test", CheckStatus::Pending)];
    world.pull().reviews = vec![review(ReviewVerdict::Approved, "")];
    world.look();
    world.pull().checks = vec![check("test", CheckStatus::Passing)];
    world.pull().reviews = vec![review(ReviewVerdict::Commented, "Hm.")];
    world.look();
    assert!(world.log.is_empty(), "{:#?}", world.log);
    world.pull().reviews =
        vec![review(ReviewVerdict::Approved, ""), review(ReviewVerdict::Commented, "Nice.")];
    world.look();
    world.look();
    world.poll();
    world.logged(&["a: merged c1", "a: -> Done", "a: released", "a: workspace removed"]);
    assert_eq!(world.state.totals.merged, 1);
}

#[test]
fn a_merge_by_a_person_closes_the_issue_also_if_the_forge_closed_it_already() {
    let mut world = waiting(YAML);
    world.pull().state = PullState::Merged;
    world.issue("a").state = "Done".to_owned();
    world.poll();
    world.killed();
    world.poll();
    assert!(world.log.is_empty(), "the pull request has to be read first: {:#?}", world.log);
    world.look();
    world.poll();
    world.logged(&["a: -> Done", "a: released", "a: workspace removed"]);
}

#[test]
fn an_issue_that_a_person_closes_or_moves_back_is_released() {
    for (state, log) in
        [("Done", &["a: released", "a: workspace removed"][..]), ("Backlog", &["a: released"])]
    {
        let mut world = waiting(YAML);
        world.issue("a").state = state.to_owned();
        world.poll();
        world.look();
        world.poll();
        world.logged(log);
    }
    let mut world = waiting(YAML);
    world.issue("a").state = "To Do".to_owned();
    world.poll();
    world.poll();
    assert_eq!(world.turn_of("a"), Some(1), "{:#?}", world.log);
}

#[test]
fn a_pull_request_that_is_closed_parks_the_issue() {
    let mut world = waiting(YAML);
    world.pull().state = PullState::Closed;
    world.look();
    world.poll();
    world.logged(&[
        "a: label needs-human",
        "a: parked, the pull request #1000 was closed without being merged",
    ]);
}

#[test]
fn a_killed_process_waits_on_and_reacts_once() {
    let mut world = waiting(YAML);
    world.pull().checks = vec![check("test", CheckStatus::Failing)];
    world.killed();
    world.look();
    world.killed();
    assert_eq!(world.turn_of("a"), Some(1));
    world.turn("a", WorkTurnEnd::Interrupted, None);
    world.killed();
    world.completes("a");
    world.killed();
    world.look();
    let count = |what: &str| world.log.iter().filter(|line| line.contains(what)).count();
    assert_eq!((count("reaction"), count("waits")), (1, 1), "{:#?}", world.log);
}
