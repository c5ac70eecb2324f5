//! Pull requests of all forges, against simulated ones with a real git server.

use std::sync::Arc;

use hangar_test_support::forge::{ReviewRemark, ReviewVerdict, TOKEN};
use hangar_test_support::{Dialect, ForgeServer};
use hangar_trackers::forge::{
    CheckStatus, MergeOrder, PullDraft, PullRequest, PullState, ReviewVerdict as Said, ThreadAnswer,
};
use hangar_trackers::{Forge, LabelChange, NewComment, TrackerErrorKind, open_forge};
use hangar_workflow::environment::WorkflowEnvironment;
use hangar_workflow::reactions::MergeMethod;
use jiff::Timestamp;

fn forge(server: &ForgeServer) -> Arc<dyn Forge> {
    let text = format!(
        "---\ntracker:\n  kind: {}\n  endpoint: {}\n  project: octo/app\n  api_key: {TOKEN}\npull_requests: {{}}\n---\n",
        server.dialect.kind(),
        server.url
    );
    let workflow = hangar_workflow::load(&text, "/".as_ref(), &WorkflowEnvironment::default()).unwrap();
    open_forge(&workflow.config.pulls).unwrap().unwrap()
}

fn draft(branch: &str) -> PullDraft {
    PullDraft {
        branch: branch.to_owned(),
        base: None,
        title: "Add it".to_owned(),
        body: "Closes #1".to_owned(),
        draft: false,
        labels: vec!["Agent".to_owned()],
        reviewers: vec!["ada".to_owned(), "nobody".to_owned()],
    }
}

/// A server with an issue and a branch that has a commit.
fn server(dialect: Dialect) -> ForgeServer {
    let server = ForgeServer::start(dialect);
    server.issue(1, "Add it", &[]);
    server.files(&[("a.txt", "old\n")]);
    server.commit("work/1", &[("a.txt", "new\n")], "new");
    server
}

/// Reads until the forge has found out whether the pull request can be merged, and its checks are done.
async fn settled(forge: &Arc<dyn Forge>, number: u64) -> PullRequest {
    loop {
        let pull = forge.look(number, 10).await.unwrap();
        if pull.mergeable.is_some() && pull.checks_status() != Some(CheckStatus::Pending) {
            return pull;
        }
    }
}

fn note(marker: &str) -> NewComment {
    NewComment { marker: marker.to_owned(), body: "Done.".to_owned(), at: Timestamp::UNIX_EPOCH }
}

fn order(pull: &PullRequest) -> MergeOrder {
    let delete = Some("work/1".to_owned());
    MergeOrder { number: pull.number, head: pull.head.clone(), method: MergeMethod::Squash, delete }
}

#[tokio::test]
async fn a_branch_has_one_pull_request_and_one_without_commits_has_none() {
    for dialect in Dialect::ALL {
        let server = server(dialect);
        let made = forge(&server).publish(draft("work/1")).await.unwrap();
        assert_eq!(forge(&server).publish(draft("work/1")).await.unwrap(), made, "{dialect:?}");
        assert_eq!((server.pulls().len(), made.base.as_str()), (1, "main"));
        assert_eq!(server.pull_labels(made.number), ["Agent"]);
        server.commit("other", &[("b.txt", "b\n")], "b");
        let own = PullDraft { draft: true, base: Some("main".to_owned()), ..draft("other") };
        let second = forge(&server).publish(own).await.unwrap();
        assert!(forge(&server).look(second.number, 0).await.unwrap().is_draft, "{dialect:?}");
        let empty = forge(&server).publish(PullDraft { base: Some("work/1".to_owned()), ..draft("main") });
        assert_eq!(empty.await.unwrap_err().kind, TrackerErrorKind::NothingToMerge, "{dialect:?}");
    }
}

#[tokio::test]
async fn checks_have_results_and_the_end_of_the_log() {
    for dialect in Dialect::ALL {
        let server = server(dialect);
        server.check("lint", "true");
        server.check("test", "for n in $(seq 50); do echo line $n; done; exit 1");
        let forge = forge(&server);
        let number = forge.publish(draft("work/1")).await.unwrap().number;
        let pull = settled(&forge, number).await;
        let results: Vec<(&str, CheckStatus)> =
            pull.checks.iter().map(|check| (check.name.as_str(), check.status)).collect();
        assert_eq!(results, [("lint", CheckStatus::Passing), ("test", CheckStatus::Failing)], "{dialect:?}");
        let log = &pull.log_excerpt;
        assert!(log.contains("line 50") && !log.contains("line 2\n") && !log.contains('\u{1b}'), "{log}");
        assert_eq!(pull.mergeable, Some(true));
    }
}

#[tokio::test]
async fn a_server_without_logs_has_a_description() {
    let server = server(Dialect::Gitea);
    server.repository().is_old = true;
    server.check("test", "exit 1");
    let forge = forge(&server);
    let number = forge.publish(draft("work/1")).await.unwrap().number;
    assert_eq!(settled(&forge, number).await.log_excerpt, "test failure");
}

#[tokio::test]
async fn threads_are_answered_once_and_resolved() {
    for (dialect, is_old) in
        [(Dialect::GitHub, false), (Dialect::GitLab, false), (Dialect::Gitea, false), (Dialect::Gitea, true)]
    {
        let server = server(dialect);
        server.repository().is_old = is_old;
        let forge = forge(&server);
        let number = forge.publish(draft("work/1")).await.unwrap().number;
        for body in ["Why?", "And this?"] {
            let line = if body == "Why?" { 1 } else { 2 };
            server.remark(number, &ReviewRemark { author: "ada", is_bot: false, file: "a.txt", line, body });
        }
        let pull = forge.look(number, 0).await.unwrap();
        let said: Vec<(&str, bool, Option<u64>)> = pull
            .threads
            .iter()
            .map(|thread| (thread.comments[0].body.as_str(), thread.is_resolved, thread.end_line))
            .collect();
        assert_eq!(said, [("Why?", false, Some(1)), ("And this?", false, Some(2))], "{dialect:?}");
        for (at, resolve) in [(0, true), (1, false)] {
            let thread = &pull.threads[at];
            let answer =
                ThreadAnswer { thread: thread.id.clone(), comment: thread.comments[0].id.clone(), resolve };
            for _ in 0..2 {
                forge.answer(number, Some(answer.clone()), note(&format!("m{at}"))).await.unwrap();
            }
        }
        let pull = forge.look(number, 0).await.unwrap();
        let found: Vec<(usize, bool)> =
            pull.threads.iter().map(|thread| (thread.comments.len(), thread.is_resolved)).collect();
        assert_eq!(found, [(2, true), (2, false)], "{dialect:?} {is_old}");
        // A new remark about the same line is a new thread.
        let again = ReviewRemark { author: "bob", is_bot: false, file: "a.txt", line: 1, body: "Still?" };
        server.remark(number, &again);
        let pull = forge.look(number, 0).await.unwrap();
        assert_eq!(pull.threads.len(), 3, "{dialect:?} {is_old}");
        for _ in 0..2 {
            forge.answer(number, None, note("whole")).await.unwrap();
        }
    }
}

#[tokio::test]
async fn reviews_count_with_the_last_verdict_of_each_person() {
    for dialect in Dialect::ALL {
        let server = server(dialect);
        let forge = forge(&server);
        let number = forge.publish(draft("work/1")).await.unwrap().number;
        server.review(number, "ada", ReviewVerdict::ChangesRequested, "Not like this.");
        let pull = forge.look(number, 0).await.unwrap();
        assert!(pull.has_changes_requested() && !pull.is_approved(), "{dialect:?}");
        let asked = pull.reviews.iter().find(|review| review.verdict == Said::ChangesRequested).unwrap();
        assert_eq!((asked.author.as_str(), asked.body.as_str()), ("ada", "Not like this."));
        server.review(number, "ada", ReviewVerdict::Approved, "");
        let pull = forge.look(number, 0).await.unwrap();
        assert!(pull.is_approved() && !pull.has_changes_requested(), "{dialect:?}");
    }
}

#[tokio::test]
async fn a_merge_is_of_the_commit_that_was_seen_and_happens_once() {
    for dialect in Dialect::ALL {
        let server = server(dialect);
        let forge = forge(&server);
        let number = forge.publish(draft("work/1")).await.unwrap().number;
        let seen = settled(&forge, number).await;
        server.commit("work/1", &[("a.txt", "newer\n")], "newer");
        let refused = forge.merge(order(&seen)).await.unwrap_err();
        assert_eq!(refused.kind, TrackerErrorKind::NotMergeable, "{dialect:?}");
        let seen = settled(&forge, number).await;
        for _ in 0..2 {
            forge.merge(order(&seen)).await.unwrap();
        }
        assert_eq!(forge.look(number, 0).await.unwrap().state, PullState::Merged, "{dialect:?}");
        assert_eq!(server.file("main", "a.txt").as_deref(), Some("newer"));
        assert_eq!(server.file("work/1", "a.txt"), None, "the branch is deleted");
        assert_eq!((server.happened("merged"), server.happened("issue 1 closed")), (1, 1), "{dialect:?}");
    }
}

#[tokio::test]
async fn a_conflict_is_seen_and_labels_come_and_go() {
    for dialect in Dialect::ALL {
        let server = server(dialect);
        let forge = forge(&server);
        let number = forge.publish(draft("work/1")).await.unwrap().number;
        server.commit("main", &[("a.txt", "theirs\n")], "theirs");
        let pull = settled(&forge, number).await;
        assert_eq!(pull.mergeable, Some(false), "{dialect:?}");
        assert_eq!(forge.merge(order(&pull)).await.unwrap_err().kind, TrackerErrorKind::NotMergeable);
        for change in [LabelChange::Add, LabelChange::Add, LabelChange::Remove, LabelChange::Remove] {
            forge.label_pull(number, "fix-it", change).await.unwrap();
            let has = forge.look(number, 0).await.unwrap().labels.contains(&"fix-it".to_owned());
            assert_eq!(has, change == LabelChange::Add, "{dialect:?}");
        }
    }
}
