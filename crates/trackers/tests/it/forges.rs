//! The trackers of forges, against simulated ones: what all of them do, and what each has of its own.

use std::sync::Arc;
use std::time::Duration;

use hangar_test_support::forge::github::KeyForm;
use hangar_test_support::forge::{ScriptedRefusal, TOKEN};
use hangar_test_support::{Dialect, ForgeServer};
use hangar_trackers::{Tracker, TrackerErrorKind, open};
use hangar_workflow::environment::WorkflowEnvironment;

use crate::suite;

pub(crate) fn tracker(server: &ForgeServer, more: &str) -> Arc<dyn Tracker> {
    let text = format!(
        "---\ntracker:\n  kind: {}\n  endpoint: {}\n  project: octo/app\n  active_states: [To Do, In Progress]\n  terminal_states: [Done]\n  api_key: {TOKEN}\n{more}---\n",
        server.dialect.kind(),
        server.url
    );
    let workflow = hangar_workflow::load(&text, "/".as_ref(), &WorkflowEnvironment::default()).unwrap();
    open(&workflow.config.tracker, &[]).unwrap()
}

pub(crate) fn active() -> Vec<String> {
    vec!["To Do".to_owned(), "In Progress".to_owned()]
}

#[tokio::test]
async fn a_repository_is_a_tracker() {
    for dialect in Dialect::ALL {
        let server = ForgeServer::start(dialect);
        server.issue(1, "Mend it", &["Bug", "UI", "to do"]);
        server.issue(2, "Make it", &["In Progress"]);
        server.issue(3, "Over", &["done"]);
        server.issue(4, "Not ours", &[]);
        server.block(1, 2);
        server.pull_request(5);
        suite::every_claim_of_a_forge(|| tracker(&server, "")).await;
        // Gitea does not close an issue before its dependencies.
        tracker(&server, "").transition(&suite::id("2"), "Done").await.unwrap();
        tracker(&server, "").transition(&suite::id("1"), "Done").await.unwrap();
        let (_, labels, state) = server.look(1);
        assert_eq!((labels.contains(&"In Progress".to_owned()), state.as_str()), (false, "closed"));
    }
}

#[tokio::test]
async fn lists_have_all_pages_in_order() {
    for dialect in Dialect::ALL {
        let server = ForgeServer::start(dialect);
        (1..=123).for_each(|number| {
            server.issue(number, "x", &["to do", if number % 2 == 0 { "even" } else { "odd" }]);
        });
        let found = tracker(&server, "").by_states(&active()).await.unwrap();
        let numbers: Vec<usize> = found.iter().map(|issue| issue.id.0.parse().unwrap()).collect();
        assert_eq!(numbers, (1..=123).collect::<Vec<_>>(), "{dialect:?}");
        let filter = if dialect == Dialect::GitHub { "label:even" } else { "labels=even" };
        let found = tracker(&server, &format!("  query_filter: '{filter}'\n"));
        assert_eq!(found.by_states(&active()).await.unwrap().len(), 61, "a filter has pages too");
    }
}

#[tokio::test]
async fn reads_of_what_has_not_changed_are_conditional() {
    for dialect in [Dialect::GitHub, Dialect::GitLab] {
        let server = ForgeServer::start(dialect);
        server.issue(1, "x", &["to do"]);
        let tracker = tracker(&server, "");
        for _ in 0..3 {
            assert_eq!(tracker.by_states(&active()).await.unwrap().len(), 1);
        }
        server.issue(2, "y", &["to do"]);
        assert_eq!(tracker.by_states(&active()).await.unwrap().len(), 2);
        let requests = server.repository().requests.clone();
        let lists = requests.iter().filter(|line| line.contains("/issues "));
        let statuses: Vec<&str> = lists.map(|line| line.rsplit(' ').next().unwrap()).collect();
        assert_eq!(statuses, ["200", "304", "304", "200"], "{dialect:?}");
    }
}

#[tokio::test]
async fn refusals_have_kinds_and_say_how_long_to_wait() {
    let date = || ("date", "Thu, 01 Jan 2026 00:00:00 GMT".to_owned());
    let reset = (1_767_225_600 + 90).to_string();
    let used_up = |prefix: &'static str| match prefix {
        "x" => vec![("x-ratelimit-remaining", "0".to_owned()), ("x-ratelimit-reset", reset.clone()), date()],
        _ => vec![("ratelimit-remaining", "0".to_owned()), ("ratelimit-reset", reset.clone()), date()],
    };
    let seven = || vec![("retry-after", "7".to_owned())];
    let limited = TrackerErrorKind::RateLimited;
    let cases = [
        (Dialect::GitHub, 403, seven(), "You have exceeded a secondary rate limit", limited, Some(7)),
        (Dialect::GitHub, 403, used_up("x"), "API rate limit exceeded", limited, Some(90)),
        (Dialect::GitLab, 429, used_up(""), "Retry later", limited, Some(90)),
        (Dialect::GitLab, 429, seven(), "Retry later", limited, Some(7)),
        (Dialect::Gitea, 429, vec![], "Too many", limited, Some(60)),
        (Dialect::GitHub, 403, vec![], "Resource not accessible", TrackerErrorKind::Auth, None),
        (Dialect::GitLab, 403, vec![], "insufficient_scope", TrackerErrorKind::Auth, None),
        (Dialect::Gitea, 401, vec![], "token is required", TrackerErrorKind::Auth, None),
        (Dialect::GitLab, 502, vec![], "", TrackerErrorKind::Api, None),
    ];
    for (dialect, status, headers, message, kind, wait) in cases {
        let server = ForgeServer::start(dialect);
        server.repository().refusals.push(ScriptedRefusal { status, headers, message });
        let error = tracker(&server, "").by_states(&active()).await.unwrap_err();
        assert_eq!(
            (error.kind, error.retry_after),
            (kind, wait.map(Duration::from_secs)),
            "{dialect:?} {status} {message}"
        );
    }
}

#[test]
fn a_tracker_without_a_token_a_repository_or_an_address_is_refused() {
    for (kind, more, expected) in [
        ("github", "  project: octo/app\n", TrackerErrorKind::MissingApiKey),
        ("github", "  api_key: x\n", TrackerErrorKind::MissingProject),
        ("github", "  api_key: x\n  project: ../x\n", TrackerErrorKind::MissingProject),
        ("gitlab", "  project: octo/app\n", TrackerErrorKind::MissingApiKey),
        ("gitlab", "  api_key: x\n  project: app\n", TrackerErrorKind::MissingProject),
        ("gitlab", "  api_key: x\n  project: a/../x\n", TrackerErrorKind::MissingProject),
        ("gitea", "  endpoint: http://x\n  project: octo/app\n", TrackerErrorKind::MissingApiKey),
        ("gitea", "  endpoint: http://x\n  api_key: x\n  project: a/b/c\n", TrackerErrorKind::MissingProject),
        ("forgejo", "  api_key: x\n  project: octo/app\n", TrackerErrorKind::InvalidConfig),
    ] {
        let text = format!("---\ntracker:\n  kind: {kind}\n{more}---\n");
        let workflow = hangar_workflow::load(&text, "/".as_ref(), &WorkflowEnvironment::default()).unwrap();
        assert_eq!(open(&workflow.config.tracker, &[]).err().unwrap().kind, expected, "{kind} {more}");
    }
}

#[tokio::test]
async fn open_sub_issues_of_github_are_blockers_too() {
    let server = ForgeServer::start(Dialect::GitHub);
    server.issue(1, "The whole", &["to do"]);
    server.issue(2, "A part", &["to do"]);
    server.sub_issue(1, 2);
    let tracker = tracker(&server, "");
    let found = tracker.by_states(&active()).await.unwrap();
    assert_eq!(found[0].blocked_by[0].identifier, "octo/app#2");
    assert!(found[1].blocked_by.is_empty());
    tracker.transition(&suite::id("2"), "Done").await.unwrap();
    let found = tracker.by_states(&active()).await.unwrap();
    assert!(found[0].blocked_by.is_empty(), "it is done");
}

#[tokio::test]
async fn the_status_of_a_project_is_the_state() {
    let server = ForgeServer::start(Dialect::GitHub);
    server.board(&["To Do", "In Progress", "Done"]);
    for (number, title, labels, status) in [
        (1, "Mend it", &["Bug", "UI"][..], Some("To Do")),
        (2, "Make it", &[], Some("In Progress")),
        (3, "Over", &[], Some("Done")),
        (4, "Not on the board", &["to do"], None),
    ] {
        server.issue(number, title, labels);
        if let Some(status) = status {
            server.put_on_board(number, status);
        }
    }
    server.block(1, 2);
    let provider = "  provider: { project_number: 5 }\n";
    suite::every_claim_of_a_forge(|| tracker(&server, provider)).await;
    assert_eq!(server.board_status(1).as_deref(), Some("In Progress"));
    assert_eq!(server.look(1).1, ["Bug", "needs-human"], "labels are no states");
    let board = tracker(&server, provider);
    board.transition(&suite::id("4"), "Done").await.unwrap();
    assert_eq!((server.board_status(4).as_deref(), server.look(4).2.as_str()), (Some("Done"), "closed"));
    let wrong = board.transition(&suite::id("1"), "Nowhere").await.unwrap_err();
    assert!(wrong.message.contains("no choice `Nowhere`; it has: To Do, In Progress, Done"), "{wrong}");
    let other = tracker(&server, "  provider: { project_number: 6 }\n");
    other.by_states(&active()).await.unwrap_err();
    (5..=160).for_each(|number| {
        server.issue(number, "x", &[]);
        server.put_on_board(number, "To Do");
    });
    assert_eq!(board.by_states(&active()).await.unwrap().len(), 158, "a board has pages");
}

#[tokio::test]
async fn a_github_app_has_tokens_that_are_renewed_before_they_expire() {
    for (form, installation) in [(KeyForm::Pkcs1, ""), (KeyForm::Pkcs8, ", installation: 77")] {
        let server = ForgeServer::start(Dialect::GitHub);
        server.issue(1, "x", &["to do"]);
        let key = server.install_app("12345", form).replace('\n', "\\n");
        let open_with = |id: &str| {
            let text = format!(
                "---\ntracker:\n  kind: github\n  endpoint: {}\n  project: octo/app\n  active_states: [To Do]\n  terminal_states: [Done]\n  app: {{ id: {id}, private_key: '{key}'{installation} }}\n---\n",
                server.url
            );
            let workflow =
                hangar_workflow::load(&text, "/".as_ref(), &WorkflowEnvironment::default()).unwrap();
            open(&workflow.config.tracker, &[]).unwrap()
        };
        let tracker = open_with("12345");
        for _ in 0..3 {
            assert_eq!(tracker.by_states(&active()).await.unwrap().len(), 1, "{form:?}");
        }
        let made = |seconds: i64| {
            let mut repository = server.repository();
            let app = repository.app.as_mut().unwrap();
            app.seconds = seconds;
            app.tokens.len()
        };
        assert_eq!(made(200), 1, "a token lasts an hour");
        let short = open_with("12345");
        for _ in 0..3 {
            short.by_states(&active()).await.unwrap();
        }
        assert_eq!(made(3600), 4, "one with few minutes left is replaced");
        let wrong = open_with("999").by_states(&active()).await.unwrap_err();
        assert_eq!(wrong.kind, TrackerErrorKind::Auth);
    }
}

#[test]
fn an_app_without_a_key_is_refused() {
    let load = |app: &str| {
        let text = format!("---\ntracker:\n  kind: github\n  project: octo/app\n  app: {app}\n---\n");
        hangar_workflow::load(&text, "/".as_ref(), &WorkflowEnvironment::default())
    };
    assert!(format!("{:?}", load("{ id: 1 }").unwrap_err()).contains("`tracker.app` needs `id`"));
    let workflow = load("{ id: 1, private_key: nonsense }").unwrap();
    let error = open(&workflow.config.tracker, &[]).err().unwrap();
    assert_eq!(error.kind, TrackerErrorKind::InvalidConfig);
    let workflow = load("{ id: 1, private_key_path: /nowhere/key.pem }").unwrap();
    let error = open(&workflow.config.tracker, &[]).err().unwrap();
    assert!(error.message.contains("/nowhere/key.pem"), "{error}");
}

#[tokio::test]
async fn a_pull_request_of_gitea_may_be_a_blocker() {
    let server = ForgeServer::start(Dialect::Gitea);
    server.issue(1, "x", &["to do"]);
    server.pull_request(2);
    server.block(1, 2);
    let found = tracker(&server, "").by_states(&active()).await.unwrap();
    let blocker = &found[0].blocked_by[0];
    assert_eq!((blocker.identifier.as_str(), blocker.state.as_str()), ("octo/app#2", "open"));
}

#[tokio::test]
async fn blockers_of_a_long_list_are_read_in_turns() {
    let server = ForgeServer::start(Dialect::Gitea);
    (1..=60).for_each(|number| server.issue(number, "x", &["to do"]));
    let found = tracker(&server, "").by_states(&active()).await.unwrap();
    let ready = found.iter().filter(|issue| issue.dispatchable).count();
    assert_eq!((found.len(), ready), (60, 50));
}
