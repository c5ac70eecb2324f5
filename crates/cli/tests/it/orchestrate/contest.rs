//! Several agents on one issue, with real worktrees: a judge promotes one, and the work of the others is kept.

use hangar_test_support::Signal;
use serde_json::{Value, json};

use super::{Place, git, issue, kills, lines, of_type};

const RUN: &[&str] = &["orchestrate", "--until-idle", "--output-format", "json"];
const KILLS: usize = 12;
/// The first candidate does much, the second does it wrong, the third does little.
const PROMPT: &str = r#"{{ if eq .run.candidate 1 }}TOOL:bash:{"command":"printf 'good\nand\nmore\n' > work.txt"}
SAY:much{{ else if eq .run.candidate 2 }}TOOL:bash:{"command":"echo bad > work.txt"}
SAY:wrong{{ else }}TOOL:bash:{"command":"echo good > work.txt; echo done > .sortie/status"}
SAY:little{{ end }}"#;

/// A place with a repository and three candidates for every issue.
pub(crate) fn place(judge: &str, issues: &[Value]) -> Place {
    let place = Place::new("", "x", issues);
    let origin = place.scratch.work().join("origin");
    std::fs::create_dir(&origin).unwrap();
    git(&origin, "git init -q -b main . && echo base > base.txt && git add base.txt && git commit -qm one");
    place.workflow(
        &format!(
            "  handoff_state: Review\n  in_progress_state: In Progress\nagent: {{ kind: native, max_turns: 1 }}\nnative: {{ model: mock-model }}\ndispatch:\n  rules:\n    - candidates: [{{ agent: native, count: 3 }}]\n      judge: {judge}\n  judge:\n    commands: ['grep -q good work.txt']\nhooks: {{ before_remove: 'echo $SORTIE_ISSUE_ID $HANGAR_CANDIDATE >> ../../removed' }}\n"
        ),
        PROMPT,
    );
    place
}

fn mirror(place: &Place) -> std::path::PathBuf {
    let mirrors = place.scratch.state().join("orchestrator/mirrors");
    std::fs::read_dir(mirrors).unwrap().next().unwrap().unwrap().path()
}

fn records(place: &Place) -> Vec<Value> {
    let state = place.scratch.state().join("orchestrator");
    let logs = std::fs::read_dir(state).unwrap().map(|entry| entry.unwrap().path().join("records.jsonl"));
    lines(&std::fs::read_to_string(logs.into_iter().find(|path| path.exists()).unwrap()).unwrap())
}

/// Every issue was handed over with the work of its third candidate, and nothing is left of the contest but refs.
fn check_end(place: &Place, names: &[&str]) {
    let mirror = mirror(place);
    for name in names {
        assert_eq!(place.issue(name)["state"], "Review");
        let workspace = place.workspace(name);
        assert_eq!(std::fs::read_to_string(workspace.join("work.txt")).unwrap(), "good\n");
        assert_eq!(
            git(&workspace, "git status --short; git log -1 --format=%s"),
            format!("Work of candidate 3 on {name}")
        );
    }
    let left = std::fs::read_dir(place.scratch.work().join("ws")).unwrap();
    let left: Vec<String> = left.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(left.len(), names.len(), "the workspaces of candidates are gone: {left:?}");
    let refs = git(&mirror, "git --git-dir . for-each-ref --format='%(refname)'");
    let count =
        |what: &str| refs.lines().filter(|name| name.contains(what) && name.ends_with("/work")).count();
    assert_eq!(count("refs/hangar/candidates/"), 3 * names.len(), "{refs}");
    assert!(!refs.contains("-candidate-"), "no branch is left: {refs}");
}

#[test]
fn the_smallest_work_that_passes_is_promoted_and_that_of_the_others_is_kept() {
    let place = place("criteria", &[issue("A")]);
    let found = place.command(RUN).finish().expect_exit(0);
    let found = lines(&found.stdout);
    check_end(&place, &["A"]);
    let results = of_type(&found, "rivalDone");
    let passed = |result: &Value| result["result"]["checks"][0]["passed"].as_bool().unwrap();
    let mut measured: Vec<(u64, bool)> =
        results.iter().map(|result| (result["result"]["added"].as_u64().unwrap(), passed(result))).collect();
    measured.sort_unstable();
    assert_eq!(measured, [(1, false), (1, true), (3, true)]);
    assert_eq!(of_type(&found, "chosen")[0]["candidate"], 3);
    let kept = results.iter().find(|result| result["result"]["added"] == 3).unwrap();
    let kept = kept["result"]["reference"].as_str().unwrap();
    assert_eq!(git(&mirror(&place), &format!("git --git-dir . show {kept}:work.txt")), "good\nand\nmore");
    let transitions: Vec<&Value> = of_type(&found, "written");
    assert_eq!(transitions.len(), 2, "the tracker is written to once for all of them: {transitions:?}");
    let removed = std::fs::read_to_string(place.scratch.work().join("removed")).unwrap();
    let mut removed: Vec<&str> = removed.lines().collect();
    removed.sort_unstable();
    assert_eq!(removed, ["id-A 1", "id-A 2", "id-A 3"], "the hook knows the issue and the candidate");
}

#[test]
fn a_person_compares_the_candidates_and_promotes_one() {
    let place = place("person", &[issue("A")]);
    let found = place.command(RUN).finish().expect_exit(0);
    assert_eq!(of_type(&lines(&found.stdout), "parked")[0]["reason"]["candidates"], json!([1, 2, 3]));
    let shown = place.command(&["issue", "show", "A"]).finish().expect_exit(0).stdout;
    assert!(shown.contains("candidate 1  native  1 files, +3 -0, 1 of 1 checks passed"), "{shown}");
    assert!(shown.contains("candidate 2  native  1 files, +1 -0, 0 of 1 checks passed"), "{shown}");
    let refused = place.command(&["issue", "promote", "A", "4"]).finish().expect_exit(1);
    assert!(
        refused.stderr.contains("candidate 4 of A has no work to promote; those that have some: 1, 2, 3"),
        "{}",
        refused.stderr
    );
    place.command(&["issue", "promote", "A", "2"]).finish().expect_exit(0);
    let found = place.command(RUN).finish().expect_exit(0);
    assert_eq!(of_type(&lines(&found.stdout), "promoted")[0]["candidate"], 2);
    assert_eq!(std::fs::read_to_string(place.workspace("A").join("work.txt")).unwrap(), "bad\n");
    let issue = place.issue("A");
    assert_eq!((&issue["state"], &issue["labels"]), (&json!("Review"), &json!([])));
    let refused = place.command(&["issue", "promote", "A", "1"]).finish().expect_exit(1);
    assert!(
        refused.stderr.contains("neither an active issue nor one that is worked on"),
        "{}",
        refused.stderr
    );
}

#[test]
fn what_the_judge_writes_is_not_the_work_of_a_candidate() {
    let place = place("person", &[issue("A")]);
    let path = place.scratch.work().join("WORKFLOW.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let judge = "['grep -q good work.txt'";
    assert!(text.contains(judge));
    let writes = "['echo report > report.txt; echo more >> work.txt', 'grep -q good work.txt'";
    std::fs::write(&path, text.replace(judge, writes)).unwrap();
    let measured = || {
        let found = lines(&place.command(RUN).finish().expect_exit(0).stdout);
        let results = of_type(&found, "rivalDone").into_iter().map(|result| result["result"].clone());
        let mut results: Vec<Value> = results.collect();
        results.sort_by_key(|result| result["reference"].to_string());
        results
    };
    let first = measured();
    let added: Vec<&Value> = first.iter().map(|result| &result["added"]).collect();
    assert_eq!(added, [3, 1, 1], "{first:#?}");
    // The candidates are done, so that they are only measured again.
    place.command(&["issue", "retry", "A"]).finish().expect_exit(0);
    assert_eq!(measured(), first);
}

#[test]
fn an_issue_that_was_closed_stays_closed_when_one_is_promoted() {
    let place = place("person", &[issue("A")]);
    place.command(RUN).finish().expect_exit(0);
    place.edit("A", "state", &json!("Done"));
    place.command(&["issue", "promote", "A", "1"]).finish().expect_exit(0);
    let found = lines(&place.command(RUN).finish().expect_exit(0).stdout);
    assert_eq!(of_type(&found, "promoted"), Vec::<&Value>::new());
    assert_eq!(of_type(&found, "released")[0]["release"], json!({ "why": "inactive", "state": "Done" }));
    assert_eq!(place.issue("A")["state"], "Done");
}

#[test]
fn whenever_it_is_killed_one_candidate_is_promoted_once() {
    let kills = kills(KILLS);
    let mut made = 0;
    while made < kills {
        let place = place("criteria", &[issue("A"), issue("B")]);
        let is_over = || ["A", "B"].iter().all(|name| place.issue(name)["state"] == "Review");
        while made < kills && !is_over() {
            let mut running = place.command(RUN).start();
            // A different point each time: after the nth line.
            for _ in 0..(made * 11 % 23) + 1 {
                if running.next_line().is_none() {
                    break;
                }
            }
            made += 1;
            running.try_signal(Signal::KILL);
            running.finish();
        }
        place.command(RUN).finish().expect_exit(0);
        check_end(&place, &["A", "B"]);
        let records = records(&place);
        for name in ["id-A", "id-B"] {
            for kind in ["claimed", "promoted", "released"] {
                let count = records.iter().filter(|record| record["type"] == kind && record["issue"] == name);
                assert_eq!(count.count(), 1, "{kind} {name}");
            }
        }
    }
}

#[test]
fn the_limits_of_the_home_hold_for_candidates() {
    let place = place("criteria", &[issue("A")]);
    let path = place.scratch.work().join("WORKFLOW.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let text = text.replace("{ agent: native, count: 3 }", "{ agent: mock, count: 3 }");
    std::fs::write(
        &path,
        text.replace("native: { model", "mock: { turn_delay_ms: 600000 }\nnative: { model"),
    )
    .unwrap();
    std::fs::create_dir_all(place.scratch.state()).unwrap();
    std::fs::write(place.scratch.state().join("config.toml"), "[limits]\nglobal = 2\n").unwrap();
    let mut running = place.command(&["orchestrate", "--output-format", "json"]).start();
    running.wait_for_event("turnStarted");
    running.wait_for_event("turnStarted");
    let queue = place.command(&["queue", "--json"]).finish().expect_exit(0);
    let queue: Value = serde_json::from_str(&queue.stdout).unwrap();
    let count = |what: &str| queue[what].as_array().unwrap().len();
    assert_eq!((count("running"), count("waiting")), (2, 1), "{queue}");
    place.command(&["issue", "stop", "A"]).finish().expect_exit(0);
    assert_eq!(running.wait_for_event("parked")["reason"]["why"], "stopped");
    let queue = place.command(&["queue", "--json"]).finish().expect_exit(0);
    let queue: Value = serde_json::from_str(&queue.stdout).unwrap();
    assert_eq!(queue["waiting"], json!([]), "no slot is waited for any more");
    running.signal(Signal::TERM);
    running.finish().expect_exit(0);
}
