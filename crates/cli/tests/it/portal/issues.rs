//! Workflows inside the portal: the board with its reasons, orders of people, and the editor.

use hangar_test_support::{Running, Signal};
use serde_json::{Value, json};

use super::client::Ask;
use super::{expect, port, refused};
use crate::orchestrate::{Place, contest, issue};

const STATES: &str = "  handoff_state: Review\n";

/// A portal that runs the workflow of a place.
struct Hosted {
    place: Place,
    running: Running,
    port: u16,
}

impl Hosted {
    fn on(place: Place) -> Self {
        let workflow = place.scratch.work().join("WORKFLOW.md");
        let config = format!("[[orchestrator]]\nworkflow = \"{}\"\n", workflow.display());
        std::fs::create_dir_all(place.scratch.state()).unwrap();
        std::fs::write(place.scratch.state().join("config.toml"), config).unwrap();
        let mut running = place.command(&["up", "--port", "0"]).start();
        let port = port(&mut running);
        Self { place, running, port }
    }

    fn ask(&self, method: &str, path: &str) -> Ask {
        Ask::new(self.port, method, path)
    }

    fn board(&self) -> Value {
        expect(self.ask("GET", "/api/v1/issues").send(), 200)
    }

    /// The board, once it is as it should be.
    fn until(&self, is: impl Fn(&Value) -> bool) -> Value {
        loop {
            let board = self.board();
            if is(&board) {
                return board;
            }
            std::thread::yield_now();
        }
    }

    /// A card, once it is in a column.
    fn in_column(&self, identifier: &str, column: &str) -> Value {
        let board = self.until(|board| card(board, identifier).is_some_and(|card| card["column"] == column));
        card(&board, identifier).unwrap().clone()
    }

    fn key(&self) -> String {
        let board = self.until(|board| board["workflows"][0]["status"] == "running");
        board["workflows"][0]["key"].as_str().unwrap().to_owned()
    }

    fn act(&self, key: &str, issue: &str, order: &Value) -> super::Answer {
        self.ask("POST", &format!("/api/v1/issues/{key}/{issue}/actions")).json(order).send()
    }
}

fn card<'a>(board: &'a Value, identifier: &str) -> Option<&'a Value> {
    board["issues"].as_array().unwrap().iter().find(|card| card["identifier"] == identifier)
}

#[test]
fn a_portal_works_on_the_issues_of_its_workflows() {
    let blocked = json!({ "id": "id-B", "identifier": "B", "title": "Later", "state": "To Do",
        "blocked_by": [{ "id": "id-A", "identifier": "A", "state": "To Do" }] });
    let place = Place::new(
        &format!("{STATES}agent: {{ kind: native, max_turns: 1 }}\nnative: {{ model: mock-model }}\n"),
        "SAY:worked on {{ .issue.identifier }}",
        &[issue("A"), blocked],
    );
    let portal = Hosted::on(place);
    let done = portal.in_column("A", "waiting_review");
    assert_eq!(done["code"], "handed_off", "{done}");
    assert_eq!(portal.place.issue("A")["state"], "Review");
    // The session of the issue is one of the portal.
    let session = done["session"].as_str().unwrap();
    let found = expect(portal.ask("GET", &format!("/api/v1/sessions/{session}")).send(), 200);
    assert_eq!(found["id"], session);
    assert!(done["tokens"]["output"].as_u64().unwrap() > 0, "{done}");
    let held = portal.in_column("B", "held");
    assert_eq!(held["code"], "blocked_by");
    assert_eq!(held["why"], "it is blocked by A");
    let key = portal.key();
    let details = expect(portal.ask("GET", &format!("/api/v1/issues/{key}/B")).send(), 200);
    assert_eq!(details["blockers"][0]["identifier"], "A");
    // A second process is refused while the portal has the lock, and its requests reach the portal.
    let second = portal.place.command(&["orchestrate", "--until-idle"]).finish().expect_exit(1);
    assert!(second.stderr.contains("another process works on the issues"), "{}", second.stderr);
    portal.place.command(&["issue", "park", "B"]).finish().expect_exit(0);
    assert_eq!(portal.in_column("B", "parked")["actions"], json!(["retry", "move"]));
    // Closed elsewhere: the board follows.
    portal.place.edit("A", "state", &json!("Done"));
    portal.in_column("A", "done");
}

#[test]
fn people_start_stop_park_and_move_issues() {
    let place = Place::new(
        &format!(
            "{STATES}agent: {{ kind: mock, max_concurrent_agents: 1 }}\nmock: {{ turn_delay_ms: 600000 }}\n"
        ),
        "x",
        &[issue("A"), issue("B")],
    );
    let portal = Hosted::on(place);
    let board = portal.until(|board| card(board, "A").is_some_and(|card| card["turn"] == 1));
    let running = card(&board, "A").unwrap();
    assert_eq!((&running["agent"], &running["column"]), (&json!("mock"), &json!("running")), "{running}");
    let held = portal.in_column("B", "held");
    assert_eq!(held["why"], "1 of 1 slots of the workflow are taken");
    let key = portal.key();
    let act = |issue: &str, order: Value| portal.act(&key, issue, &order);
    refused(&act("A", json!({ "action": "start" })), 422, "not_possible", "does not fit A");
    refused(&act("Z", json!({ "action": "start" })), 404, "issue_not_found", "no issue `Z`");
    refused(&act("A", json!({ "action": "move", "state": "Nowhere" })), 422, "not_possible", "Review");
    expect(act("A", json!({ "action": "stop" })), 200);
    portal.in_column("A", "parked");
    portal.in_column("B", "running");
    expect(act("B", json!({ "action": "move", "state": "done" })), 200);
    assert_eq!(portal.place.issue("B")["state"], "Done");
    portal.in_column("B", "done");
    expect(act("A", json!({ "action": "retry" })), 200);
    portal.in_column("A", "running");
    let counts = portal.board()["counts"].clone();
    let count = |column: &str| {
        let all = counts.as_array().unwrap().iter();
        all.filter(|count| count["column"] == column)
            .map(|count| count["count"].as_u64().unwrap())
            .sum::<u64>()
    };
    assert_eq!((count("running"), count("done"), count("parked")), (1, 1, 0), "{counts}");
}

#[test]
fn a_move_off_the_board_is_answered_with_the_issue() {
    let blocked = json!({ "id": "id-B", "identifier": "B", "title": "Later", "state": "To Do",
        "blocked_by": [{ "id": "id-A", "identifier": "A", "state": "To Do" }] });
    let place = Place::new(
        &format!("{STATES}agent: {{ kind: mock }}\nmock: {{ turn_delay_ms: 600000 }}\n"),
        "x",
        &[issue("A"), blocked],
    );
    let portal = Hosted::on(place);
    portal.in_column("B", "held");
    let key = portal.key();
    let moved = expect(portal.act(&key, "B", &json!({ "action": "move", "state": "Done" })), 200);
    let after = &moved["card"];
    assert_eq!((&after["identifier"], &after["state"]), (&json!("B"), &json!("Done")), "{moved}");
    portal.until(|board| card(board, "B").is_none());
    refused(
        &portal.act(&key, "B", &json!({ "action": "park" })),
        404,
        "issue_not_found",
        "no issue `B` on the board",
    );
}

#[test]
fn a_question_is_answered_in_the_portal() {
    let ask = r#"{{ if .run.is_continuation }}SAY:thanks{{ else }}TOOL:issue-ask_person:{"question":"Which colour?"}
SAY:asked{{ end }}"#;
    let place = Place::new(
        &format!("{STATES}agent: {{ kind: native, max_turns: 1 }}\nnative: {{ model: mock-model }}\n"),
        ask,
        &[issue("A")],
    );
    let portal = Hosted::on(place);
    let parked = portal.in_column("A", "parked");
    assert_eq!(parked["question"], "Which colour?", "{parked}");
    let key = portal.key();
    refused(
        &portal.act(&key, "A", &json!({ "action": "answer", "text": " " })),
        422,
        "not_possible",
        "`text`",
    );
    expect(portal.act(&key, "A", &json!({ "action": "answer", "text": "Blue." })), 200);
    portal.in_column("A", "waiting_review");
    let comments = portal.place.issue("A")["comments"].clone();
    assert!(comments.to_string().contains("Blue."), "{comments}");
    let prompts: Vec<String> =
        portal.place.model.requests().iter().map(|seen| seen.body.to_string()).collect();
    assert!(
        prompts
            .iter()
            .any(|prompt| prompt.contains("You asked a person: Which colour?") && prompt.contains("Blue."))
    );
}

#[test]
fn a_candidate_is_promoted_in_the_portal() {
    let portal = Hosted::on(contest::place("person", &[issue("A")]));
    let parked = portal.in_column("A", "parked");
    assert_eq!(parked["actions"], json!(["retry", "move", "promote"]), "{parked}");
    let key = portal.key();
    let details = expect(portal.ask("GET", &format!("/api/v1/issues/{key}/A")).send(), 200);
    let candidates = details["candidates"].as_array().unwrap();
    let met: Vec<&Value> = candidates.iter().map(|candidate| &candidate["meetsCriteria"]).collect();
    assert_eq!(met, [true, false, true], "{details}");
    assert!(candidates[0]["tokens"]["output"].as_u64().unwrap() > 0, "{details}");
    let diff = |candidate: &str| {
        portal.ask("GET", &format!("/api/v1/issues/{key}/A/candidates/{candidate}/diff")).send()
    };
    let shown = expect(diff("1"), 200);
    assert!(shown["diff"].as_str().unwrap().contains("+good\n+and\n+more"), "{shown}");
    refused(&diff("7"), 404, "issue_not_found", "candidate 7 of A has no changes");
    refused(&diff("first"), 400, "invalid_request", "`first` is not the number of a candidate");
    let promote =
        |candidate: Value| portal.act(&key, "A", &json!({ "action": "promote", "candidate": candidate }));
    refused(&promote(json!(7)), 422, "not_possible", "`candidate` must be one of: 1, 2, 3");
    expect(promote(json!(1)), 200);
    portal.in_column("A", "waiting_review");
    assert_eq!(portal.place.issue("A")["state"], "Review");
}

#[test]
fn the_configuration_names_the_workflows_and_is_followed() {
    let place = Place::new(&format!("{STATES}agent: {{ kind: mock, max_turns: 1 }}\n"), "x", &[issue("A")]);
    let workflow = place.scratch.work().join("WORKFLOW.md");
    let config = place.scratch.state().join("config.toml");
    std::fs::create_dir_all(place.scratch.state()).unwrap();
    std::fs::write(&config, "[[orchestrator]]\nworkflow = \"WORKFLOW.md\"\n").unwrap();
    let checked = place.command(&["config", "check"]).finish().expect_exit(1);
    assert!((checked.stdout + &checked.stderr).contains("must be an absolute path"));
    std::fs::write(&config, "[[orchestrator]]\nworkflow = \"/nowhere/WORKFLOW.md\"\n").unwrap();
    let checked = place.command(&["config", "check"]).finish().expect_exit(1);
    assert!((checked.stdout + &checked.stderr).contains("the workflow cannot be read"));
    std::fs::write(&config, "").unwrap();
    let mut running = place.command(&["up", "--port", "0"]).start();
    let port = port(&mut running);
    let portal = Hosted { place, running, port };
    assert_eq!(portal.board()["workflows"], json!([]));
    let text = format!("[[orchestrator]]\nworkflow = \"{}\"\n", workflow.display());
    std::fs::write(&config, &text).unwrap();
    portal.in_column("A", "waiting_review");
    portal.place.command(&["config", "check"]).finish().expect_exit(0);
    std::fs::write(&config, format!("{text}enabled = false\n")).unwrap();
    portal.until(|board| board["workflows"] == json!([]));
    // The lock is free again.
    portal.place.command(&["orchestrate", "--until-idle"]).finish().expect_exit(0);
}

#[test]
fn a_workflow_is_checked_previewed_and_saved() {
    let place = Place::new(
        &format!(
            "{STATES}agent: {{ kind: mock, max_turns: 1, max_concurrent_agents: 1 }}\nmock: {{ turn_delay_ms: 600000 }}\n"
        ),
        "Do {{ .issue.title }}.",
        &[issue("A")],
    );
    let portal = Hosted::on(place);
    let path = format!("/api/v1/workflows/{}", portal.key());
    let file = expect(portal.ask("GET", &path).send(), 200);
    assert_eq!(file["check"]["valid"], true, "{file}");
    let text = file["text"].as_str().unwrap();
    let check = |text: &str, issue: &str| {
        let body = json!({ "text": text, "issue": issue });
        expect(portal.ask("POST", &format!("{path}/check")).json(&body).send(), 200)
    };
    let checked = check(text, "A");
    assert!(checked["prompt"].as_str().unwrap().starts_with("Do Mend it."), "{checked}");
    assert!(check(text, "Z")["promptProblem"].as_str().unwrap().contains("no issue `Z`"));
    let line = text.lines().position(|line| line.starts_with("Do ")).unwrap() + 1;
    let checked = check(&text.replace("{{ .issue.title }}", "{{ .issue.tilte }}"), "A");
    assert_eq!(
        (&checked["valid"], &checked["problems"][0]["line"]),
        (&json!(true), &json!(line)),
        "{checked}"
    );
    assert!(checked["promptProblem"].as_str().unwrap().contains("`.issue.tilte` does not exist"));
    let wrong = text.replace("{{ .issue.title }}", "{{ if }}");
    let checked = check(&wrong, "A");
    assert_eq!(
        (&checked["valid"], &checked["problems"][0]["line"]),
        (&json!(false), &json!(line)),
        "{checked}"
    );
    let save = |text: &str, revision: &Value| {
        portal.ask("PUT", &path).json(&json!({ "text": text, "revision": revision })).send()
    };
    refused(&save(&wrong, &file["revision"]), 422, "not_possible", &format!("line {line}"));
    refused(&save(text, &json!("0")), 409, "changed_meanwhile", "load it again");
    let better = text.replace("Do {{", "Please do {{");
    let saved = expect(save(&better, &file["revision"]), 200);
    assert_eq!(saved["text"], better);
    assert_eq!(std::fs::read_to_string(portal.place.scratch.work().join("WORKFLOW.md")).unwrap(), better);
    refused(
        &portal.ask("GET", "/api/v1/workflows/none").send(),
        404,
        "issue_not_found",
        "no workflow `none`",
    );
}

#[test]
fn a_killed_portal_goes_on_where_it_was() {
    let place = Place::new(
        &format!("{STATES}agent: {{ kind: mock, max_turns: 1 }}\nmock: {{ turn_delay_ms: 600000 }}\n"),
        "x",
        &[issue("A")],
    );
    let portal = Hosted::on(place);
    portal.in_column("A", "running");
    portal.running.signal(Signal::KILL);
    let Hosted { place, running, .. } = portal;
    drop(running);
    place.workflow(&format!("{STATES}agent: {{ kind: mock, max_turns: 1 }}\n"), "x");
    let portal = Hosted::on(place);
    portal.in_column("A", "waiting_review");
    assert_eq!(portal.place.issue("A")["state"], "Review");
}
