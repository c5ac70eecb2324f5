//! The whole way from an issue to a merged change, on simulated forges with a real git server and checks that run.

use hangar_test_support::forge::github::KeyForm;
use hangar_test_support::forge::{ReviewRemark, ReviewVerdict, TOKEN};
use hangar_test_support::{Dialect, ForgeServer, Invocation, Running, Signal};
use serde_json::Value;

use super::Place;

const KILLS: usize = 24;
/// Kills on the forges that have the same story.
const FEWER_KILLS: usize = 8;
const ARGS: &[&str] = &["orchestrate", "--output-format", "json"];
/// The agent writes something bad, repairs it when CI fails, and makes it better when a reviewer asks for it.
const PROMPT: &str = r#"{{ if .ci_failure }}TOOL:bash:{"command":"echo good > feature.txt; echo done > .sortie/status"}
CI says: {{ .ci_failure.log_excerpt }}
{{ else if .review_comments }}TOOL:bash:{"command":"echo good and better > feature.txt; echo done > .sortie/status"}
{{ range .review_comments }}{{ .reviewer }} says: {{ .body }}{{ end }}
{{ else }}TOOL:bash:{"command":"echo bad > feature.txt; echo done > .sortie/status"}
{{ end }}"#;
const REACTIONS: &str = "reactions:\n  ci_failure: { max_retries: 3 }\n  review_comments: { debounce_ms: 0 }\n  merge_conflicts: { max_retries: 2 }\n  auto_merge: { require_approval: true }\n";

struct Story {
    place: Place,
    server: ForgeServer,
    /// The token, or the key of an app.
    secret: String,
}

impl Story {
    fn new(dialect: Dialect, prompt: &str) -> Self {
        let server = ForgeServer::start(dialect);
        server.issue(1, "Add the feature", &["backlog"]);
        server.files(&[("base.txt", "base\n"), ("feature.txt", "nothing\n")]);
        let place = Place::new("", "x", &[]);
        let root = place.scratch.work().join("ws");
        place.scratch.file(
            "WORKFLOW.md",
            &format!(
                "---\ntracker:\n  kind: {}\n  endpoint: {}\n  project: octo/app\n  api_key: $TRACKER_TOKEN\n  active_states: [backlog, in-progress]\n  in_progress_state: in-progress\n  handoff_state: review\n  terminal_states: [done]\npolling: {{ interval_ms: 100 }}\nworkspace: {{ root: {} }}\nagent: {{ kind: native, max_turns: 3 }}\nnative: {{ model: mock-model }}\npull_requests: {{ poll_interval_ms: 100 }}\n{REACTIONS}---\n{prompt}\n",
                dialect.kind(),
                server.url,
                root.display()
            ),
        );
        Self { place, server, secret: TOKEN.to_owned() }
    }

    fn command(&self) -> Invocation {
        self.place.command(ARGS).env("TRACKER_TOKEN", &self.secret)
    }

    /// A reviewer who remarks once on what CI accepts, and approves what was changed then.
    fn review(&self) {
        let Some(number) = self.server.pulls().first().copied() else { return };
        if self.server.pull_state(number) != (false, "open")
            || self.server.happened("check test success") == 0
        {
            return;
        }
        match self.server.threads(number).first() {
            None => {
                let body = "Make it better.";
                let remark =
                    ReviewRemark { author: "ada", is_bot: false, file: "feature.txt", line: 1, body };
                self.server.remark(number, &remark);
            }
            Some((true, _)) => self.server.review(number, "ada", ReviewVerdict::Approved, ""),
            Some((false, _)) => {}
        }
    }

    fn is_over(&self) -> bool {
        self.server.happened("issue 1 closed") > 0
    }

    /// Number of the only pull request. GitLab counts them by themselves.
    fn number(&self) -> u64 {
        if self.server.dialect == Dialect::GitLab { 1 } else { 2 }
    }

    /// The end that every telling has.
    fn check_end(&self) {
        let number = self.number();
        assert_eq!(self.server.pulls(), [number], "one pull request: {:#?}", self.server.repository().events);
        assert_eq!(self.server.pull_state(number), (true, "closed"));
        let count = |what: &str| self.server.happened(what);
        let events = (count(" opened"), count(" merged"), count("issue 1 closed"));
        assert_eq!(events, (1, 1, 1));
        let (_, labels, state) = self.server.look(1);
        assert_eq!((labels, state.as_str()), (vec!["done".to_owned()], "closed"));
        assert_eq!(self.server.file("main", "feature.txt").as_deref(), Some("good and better"));
        assert_eq!(self.server.file("hangar/1", "feature.txt"), None, "the branch is deleted");
        let threads = self.server.threads(number);
        assert_eq!(threads.len(), 1);
        let (resolved, said) = &threads[0];
        assert!(*resolved && said.len() == 2 && said[1].starts_with("Addressed in "), "{said:?}");
    }
}

/// The next event of a type whose text contains something.
fn wait_for(running: &mut Running, kind: &str, with: &str) -> Value {
    loop {
        let found = running.wait_for_event(kind);
        if found.to_string().contains(with) {
            return found;
        }
    }
}

#[test]
fn an_issue_becomes_a_merged_change_on_github() {
    told(Dialect::GitHub);
}

#[test]
fn an_issue_becomes_a_merged_change_on_gitlab() {
    told(Dialect::GitLab);
}

#[test]
fn an_issue_becomes_a_merged_change_on_gitea() {
    told(Dialect::Gitea);
}

#[test]
fn an_issue_becomes_a_merged_change_with_the_tokens_of_an_app() {
    let mut story = Story::new(Dialect::GitHub, PROMPT);
    story.secret = story.server.install_app("12345", KeyForm::Pkcs1);
    let path = story.place.scratch.work().join("WORKFLOW.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let app = "app: { id: 12345, private_key: $TRACKER_TOKEN }";
    std::fs::write(&path, text.replace("api_key: $TRACKER_TOKEN", app)).unwrap();
    unfold(&story);
    let repository = story.server.repository();
    assert_eq!(repository.app.as_ref().map(|app| app.tokens.len() <= 3), Some(true), "tokens are kept");
}

fn told(dialect: Dialect) {
    unfold(&Story::new(dialect, PROMPT));
}

fn unfold(story: &Story) {
    story.server.check("test", "grep good feature.txt || { echo 'the feature is bad'; exit 1; }");
    let mut running = story.command().start();
    wait_for(&mut running, "published", "\"changed\":true");
    let reacted = wait_for(&mut running, "reacted", "ciFailure");
    assert!(reacted["reaction"]["logExcerpt"].as_str().unwrap().contains("the feature is bad"), "{reacted}");
    wait_for(&mut running, "pullSeen", "\"checks\":\"passing\"");
    story.review();
    wait_for(&mut running, "reacted", "Make it better.");
    wait_for(&mut running, "answered", "");
    wait_for(&mut running, "waiting", "");
    story.review();
    assert_eq!(wait_for(&mut running, "released", "")["release"]["why"], "merged");
    running.wait_for_event("workspaceRemoved");
    running.signal(Signal::TERM);
    running.finish().expect_exit(0);
    story.check_end();
    let title =
        if story.server.dialect == Dialect::GitLab { "Add the feature" } else { "Add the feature (#2)" };
    assert_eq!(story.server.subjects("main"), [title, "files"], "squashed, with the title of the issue");
    let agent_saw =
        story.place.model.requests().iter().any(|request| request.body.to_string().contains(&story.secret));
    assert!(!agent_saw, "the token is not the agent's");
}

#[test]
fn the_story_has_one_pull_request_and_one_close_however_often_it_is_interrupted() {
    interrupted(Dialect::GitHub, KILLS);
}

#[test]
fn the_story_is_interrupted_on_gitlab_too() {
    interrupted(Dialect::GitLab, FEWER_KILLS);
}

#[test]
fn the_story_is_interrupted_on_gitea_too() {
    interrupted(Dialect::Gitea, FEWER_KILLS);
}

/// Tells the story again and again, with kills at different points, until there were so many in stories that were not over.
fn interrupted(dialect: Dialect, kills: usize) {
    let kills = super::kills(kills);
    let mut made = 0;
    while made < kills {
        made += interrupted_story(dialect, made, kills);
    }
}

/// One story. The result is the number of its kills.
fn interrupted_story(dialect: Dialect, before: usize, kills: usize) -> usize {
    let story = Story::new(dialect, PROMPT);
    story.server.check("test", "grep good feature.txt");
    let mut made = 0;
    while before + made < kills && !story.is_over() {
        let mut running = story.command().start();
        // A different point each time: after the nth line.
        for _ in 0..((before + made) * 11 % 23) + 1 {
            if story.is_over() || running.next_line().is_none() {
                break;
            }
            story.review();
        }
        made += usize::from(!story.is_over());
        running.try_signal(Signal::KILL);
        running.finish();
    }
    let mut running = story.command().start();
    while !story.is_over() {
        story.review();
        running.next_line().unwrap();
    }
    running.signal(Signal::TERM);
    running.finish();
    // Whatever was left to write is written by the next one.
    story
        .place
        .command(&[ARGS, &["--until-idle"]].concat())
        .env("TRACKER_TOKEN", TOKEN)
        .finish()
        .expect_exit(0);
    story.check_end();
    made
}

#[test]
fn a_conflict_is_solved_by_the_agent_and_the_merge_is_committed() {
    solved(Dialect::GitHub);
}

#[test]
fn a_conflict_is_solved_on_gitlab_too() {
    solved(Dialect::GitLab);
}

#[test]
fn a_conflict_is_solved_on_gitea_too() {
    solved(Dialect::Gitea);
}

fn solved(dialect: Dialect) {
    let prompt = r#"{{ if .run.is_continuation }}TOOL:bash:{"command":"cat feature.txt > .sortie/seen; echo both > feature.txt; echo done > .sortie/status"}
{{ else }}TOOL:bash:{"command":"echo ours > feature.txt; echo done > .sortie/status"}
{{ end }}"#;
    let story = Story::new(dialect, prompt);
    story.server.check("test", "true");
    story.server.pause_checks(true);
    let mut running = story.command().start();
    wait_for(&mut running, "waiting", "");
    story.server.commit("main", &[("feature.txt", "theirs\n")], "theirs");
    wait_for(&mut running, "reacted", "conflict");
    wait_for(&mut running, "published", "");
    let seen = std::fs::read_to_string(story.place.workspace("1").join(".sortie/seen")).unwrap();
    assert!(seen.contains("<<<<<<<") && seen.contains("theirs") && seen.contains("ours"), "{seen}");
    story.server.review(story.number(), "ada", ReviewVerdict::Approved, "");
    story.server.pause_checks(false);
    assert_eq!(wait_for(&mut running, "released", "")["release"]["why"], "merged");
    running.signal(Signal::TERM);
    running.finish().expect_exit(0);
    assert_eq!(story.server.file("main", "feature.txt").as_deref(), Some("both"));
}

#[test]
fn an_agent_that_changes_nothing_gets_no_pull_request() {
    let story = Story::new(Dialect::GitHub, r#"TOOL:bash:{"command":"echo done > .sortie/status"}"#);
    let mut running = story.command().start();
    assert_eq!(running.wait_for_event("parked")["reason"]["why"], "noChange");
    running.signal(Signal::TERM);
    running.finish().expect_exit(0);
    assert!(story.server.pulls().is_empty());
}
