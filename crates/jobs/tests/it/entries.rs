//! Errors of invalid entries, and the results of valid ones.

use expect_test::expect_file;
use hangar_jobs::chart::{Hint, chart};
use hangar_jobs::entry::{Entry, Work, schema};
use hangar_jobs::read::{Format, entry_of, read_entry};
use hangar_jobs::validate::{ValidEntry, validate_entry};
use proptest::prelude::*;
use serde_json::{Value, json};

fn sound() -> Value {
    json!({
        "models": { "driving": "m", "coding": "n" },
        "promptVariables": { "greet": ["hello", "$name"], "name": ["world"] },
        "tasks": {
            "t": { "model": { "category": "coding" }, "prompt": ["$greet"], "requireUserInput": false },
            "u": { "prompt": ["$user-input"], "requireUserInput": true },
        },
        "jobs": { "j": { "work": { "kind": "Ref", "workIdInJob": 17, "taskId": "t" } } },
        "grid": [{ "keyword": "k", "jobs": [null, { "name": "J", "jobName": "j" }] }],
    })
}

fn validated(entry: Value) -> Result<ValidEntry, String> {
    let entry = entry_of(entry, "CODE:").map_err(|error| error.to_string())?;
    validate_entry(entry, "CODE:").map_err(|error| error.to_string())
}

/// Sets one value of a sound entry, by JSON pointer; `null` takes it away.
#[track_caller]
fn check(changes: &[(&str, Value)], expected: &str) {
    let mut entry = sound();
    for (pointer, value) in changes {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let parent = entry.pointer_mut(parent).unwrap();
        match (parent, value) {
            (Value::Object(members), Value::Null) => drop(members.remove(key)),
            (parent, value) => parent[key] = value.clone(),
        }
    }
    let said = validated(entry).map_or_else(|error| error, |_| "sound".to_owned());
    assert_eq!(said, expected, "{changes:?}");
}

#[track_caller]
fn check_work(work: Value, expected: &str) {
    check(&[("/jobs/j/work", work)], expected);
}

fn task(name: &str) -> Value {
    json!({ "kind": "Ref", "taskId": name })
}

#[test]
fn a_sound_entry_comes_out_ready_to_run() {
    let entry = validated(sound()).unwrap();
    assert_eq!(entry.tasks["t"].prompt.0, ["hello\nworld"]);
    assert_eq!(entry.jobs["j"].require_user_input, Some(false));
    assert_eq!(entry.jobs["j"].work.tasks()[0].work_id_in_job.0, 0);
}

#[test]
fn models() {
    check(&[("/models/driving", Value::Null)], "CODE:entry.models.driving: Should exist.");
    let retries = "CODE:entry.drivingSessionRetries: ";
    let set = |value: Value| vec![("/drivingSessionRetries", value)];
    check(&set(json!([])), &format!("{retries}Should contain at least one item."));
    check(
        &set(json!([{ "modelId": "n", "retries": 1 }])),
        &format!("{retries}The first modelId should equal to entry.models.driving."),
    );
    check(&set(json!([{ "modelId": "m", "retries": 1 }])), "sound");
    check(
        &set(json!([{ "modelId": "m", "retries": 101 }])),
        "CODE:entry.drivingSessionRetries[0].retries: Should be at most 100.",
    );
}

#[test]
fn the_grid_names_jobs() {
    check(
        &[("/grid/0/jobs/1/jobName", json!("x"))],
        "CODE:entry.grid[0].jobs[1].jobName: \"x\" is not a valid job name.",
    );
}

#[test]
fn tasks() {
    let path = "CODE:entry.tasks[\"t\"]";
    check(
        &[("/tasks/t/model/category", json!("x"))],
        &format!("{path}.model.category: \"x\" is not a valid model key."),
    );
    check(&[("/tasks/t/prompt", json!([]))], &format!("{path}.prompt: Prompt is empty."));
    check(&[("/tasks/t/prompt", json!(["$x"]))], &format!("{path}.prompt: Cannot find prompt variable: $x."));
    check(
        &[("/promptVariables/name", json!(["$greet"]))],
        &format!(
            "{path}.prompt/$greet/$name: Prompt variable $greet contains itself: $greet -> $name -> $greet."
        ),
    );
    check(
        &[("/tasks/t/requireUserInput", json!(true))],
        &format!("{path}.requireUserInput: Prompt should use $user-input when requireUserInput is true."),
    );
    check(
        &[("/tasks/u/requireUserInput", json!(false))],
        "CODE:entry.tasks[\"u\"].requireUserInput: \
         Prompt should not use $user-input when requireUserInput is false.",
    );
}

#[test]
fn availability() {
    let path = "CODE:entry.tasks[\"t\"].availability";
    let set = |value: Value| vec![("/tasks/t/availability", value)];
    check(&set(json!({ "previousTasks": ["u"] })), "sound");
    check(
        &set(json!({ "previousTasks": ["u", "x"] })),
        &format!("{path}.previousTasks[1]: \"x\" is not a valid task name."),
    );
    check(
        &set(json!({ "condition": ["well?"] })),
        &format!("{path}.condition: Boolean tool (job_boolean_true or job_boolean_false) must be mentioned."),
    );
    check(&set(json!({ "condition": ["job_boolean_false?"] })), "sound");
}

#[test]
fn criteria() {
    let path = "CODE:entry.tasks[\"t\"].criteria";
    let with = |mut value: Value| {
        if value.get("failureAction").is_none() {
            value["failureAction"] = json!({ "retryTimes": 0 });
        }
        vec![("/tasks/t/criteria", value)]
    };
    check(&with(json!({ "toolExecuted": ["job_prepare_document"] })), "sound");
    check(
        &with(json!({ "toolExecuted": ["x"] })),
        &format!("{path}.toolExecuted[0]: \"x\" is not an available tool."),
    );
    check(
        &with(json!({ "condition": ["x"] })),
        &format!("{path}.condition: Boolean tool (job_boolean_true or job_boolean_false) must be mentioned."),
    );
    check(&with(json!({ "condition": "$greet job_boolean_true" })), "sound");
    check(
        &with(json!({ "failureAction": { "retryTimes": 1, "additionalPrompt": [] } })),
        &format!("{path}.failureAction.additionalPrompt: Prompt is empty."),
    );
    check(&[("/tasks/t/criteria", json!({}))], &format!("{path}.failureAction: Should exist."));
    check(
        &with(json!({ "failureAction": { "retryTimes": -1 } })),
        &format!("{path}.failureAction.retryTimes: Should be a number from 0 but is -1."),
    );
    check(
        &with(json!({ "failureAction": {} })),
        &format!("{path}.failureAction.retryTimes: Should be a number from 0 but is null."),
    );
    check(
        &with(json!({ "commands": [{ "run": " " }] })),
        &format!("{path}.commands[0].run: Should not be empty."),
    );
    check(&with(json!({ "files": [""] })), &format!("{path}.files[0]: Should not be empty."));
}

#[test]
fn references() {
    let path = "CODE:entry.jobs[\"j\"].work";
    check_work(task("x"), &format!("{path}.taskId: \"x\" is not a valid task name."));
    let with = |model: Value| json!({ "kind": "Ref", "taskId": "u", "modelOverride": model });
    check_work(
        with(json!({ "category": "x" })),
        &format!("{path}.modelOverride.category: \"x\" is not a valid model key."),
    );
    check_work(
        task("u"),
        &format!("{path}.modelOverride: must be defined because task \"u\" has no specified model."),
    );
    check_work(with(json!({ "category": "driving" })), "sound");
    check_work(with(json!({ "id": "anything" })), "sound");
}

#[test]
fn empty_and_unknown_works() {
    let path = "CODE:entry.jobs[\"j\"].work";
    let kind = |kind: &str, works: Value| json!({ "kind": kind, "works": works });
    check_work(kind("Seq", json!([])), &format!("{path}.works: should have at least one element."));
    check_work(kind("Par", json!([])), &format!("{path}.works: should have at least one element."));
    check_work(
        kind("Seq", json!([task("t"), kind("Par", json!([]))])),
        &format!("{path}.works[1].works: should have at least one element."),
    );
    check_work(kind("Seq", json!([kind("Seq", json!([])), task("t")])), "sound");
    check_work(
        kind("Seq", json!([task("t"), { "kind": "Hop" }])),
        &format!("{path}.works[1].kind: \"Hop\" is not a kind of work (Ref, Seq, Par, Loop, Alt)."),
    );
    check_work(json!({}), &format!("{path}.kind: null is not a kind of work (Ref, Seq, Par, Loop, Alt)."));
    check(&[("/jobs/j/work", Value::Null)], &format!("{path}: Should exist."));
}

#[test]
fn the_path_to_a_mistake_in_a_tree() {
    let path = "CODE:entry.jobs[\"j\"].work";
    let broken = |place: &str| format!("{path}{place}.taskId: \"x\" is not a valid task name.");
    let body = task("t");
    check_work(json!({ "kind": "Loop", "body": task("x") }), &broken(".body"));
    check_work(
        json!({ "kind": "Loop", "preCondition": [true, task("x")], "body": body }),
        &broken(".preCondition[1]"),
    );
    check_work(
        json!({ "kind": "Loop", "postCondition": [true, task("x")], "body": body }),
        &broken(".postCondition[1]"),
    );
    check_work(json!({ "kind": "Alt", "condition": task("x") }), &broken(".condition"));
    check_work(json!({ "kind": "Alt", "condition": body, "trueWork": task("x") }), &broken(".trueWork"));
    check_work(json!({ "kind": "Alt", "condition": body, "falseWork": task("x") }), &broken(".falseWork"));
}

#[test]
fn the_flag_of_a_job_is_that_of_its_tasks() {
    let u = json!({ "kind": "Ref", "taskId": "u", "modelOverride": { "id": "x" } });
    let mixed = json!({ "kind": "Seq", "works": [task("t"), u] });
    check(&[("/jobs/j/work", mixed.clone()), ("/jobs/j/requireUserInput", json!(true))], "sound");
    check(
        &[("/jobs/j/work", mixed), ("/jobs/j/requireUserInput", json!(false))],
        "CODE:entry.jobs[\"j\"].requireUserInput: Should be true but is false.",
    );
    check(
        &[("/jobs/j/requireUserInput", json!(true))],
        "CODE:entry.jobs[\"j\"].requireUserInput: Should be false but is true.",
    );
}

#[test]
fn an_entry_without_jobs_is_sound() {
    check(&[("/jobs", Value::Null), ("/grid", Value::Null)], "sound");
}

#[test]
fn works_of_one_kind_inside_each_other_are_one() {
    let kind = |kind: &str, works: Vec<Value>| json!({ "kind": kind, "works": works });
    let mut entry = sound();
    let seq = kind("Seq", vec![kind("Seq", vec![kind("Seq", vec![task("t")]), task("t")]), task("t")]);
    let par = kind("Par", vec![kind("Par", vec![task("t"), task("t")])]);
    entry["jobs"]["j"]["work"] = json!({ "kind": "Loop", "body": kind("Seq", vec![seq, par]) });
    let entry = validated(entry).unwrap();
    let Work::Loop(work) = &entry.jobs["j"].work else { panic!("{:?}", entry.jobs["j"].work) };
    let Work::Seq(seq) = &*work.body else { panic!("{work:?}") };
    let kinds: Vec<bool> = seq.works.iter().map(|work| matches!(work, Work::Ref(_))).collect();
    assert_eq!(kinds, [true, true, true, false]);
    let ids: Vec<u32> = entry.jobs["j"].work.tasks().iter().map(|task| task.work_id_in_job.0).collect();
    assert_eq!(ids, [0, 1, 2, 3, 4]);
}

#[test]
fn yaml_and_json_say_the_same() {
    let yaml = "
models: { driving: m }
tasks:
  t:
    model: { id: y }
    prompt: |-
      one
      two
    requireUserInput: false
jobs: { j: { work: { kind: Ref, taskId: t } } }
";
    let json = json!({
        "models": { "driving": "m" },
        "tasks": { "t": { "model": { "id": "y" }, "prompt": ["one\ntwo"], "requireUserInput": false } },
        "jobs": { "j": { "work": { "kind": "Ref", "taskId": "t" } } },
    });
    let from_yaml = read_entry(yaml, Format::Yaml, "").unwrap();
    assert_eq!(from_yaml, read_entry(&json.to_string(), Format::Json, "").unwrap());
}

#[test]
fn what_is_no_entry_is_said_in_one_sentence() {
    let said = |text: &str, format| read_entry(text, format, "").unwrap_err().to_string();
    assert!(said("{", Format::Json).starts_with("not JSON: "));
    assert!(said("a: [", Format::Yaml).starts_with("not YAML: "));
    assert!(said("{\"tasks\":{\"t\":{}}}", Format::Json).contains("missing field `prompt`"));
    assert!(said(&" ".repeat(5 << 20), Format::Yaml).contains("exceeds the limit"));
}

#[test]
fn the_published_schema_is_that_of_the_types() {
    let schema = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    expect_file!["../../../../docs/job-entry.schema.json"].assert_eq(&schema);
}

#[test]
fn the_entry_in_the_documents_is_sound() {
    let text = include_str!("../../../../docs/jobs.md");
    let yaml = text.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let entry = read_entry(yaml, Format::Yaml, "").unwrap();
    assert!(validate_entry(entry, "").unwrap().jobs["feature"].work.has_worktree());
}

fn any_work() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(task("t")),
        Just(json!({ "kind": "Ref", "taskId": "u", "modelOverride": { "id": "x" } }))
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let several = proptest::collection::vec(inner.clone(), 1..4);
        let maybe = proptest::option::of(inner.clone());
        let condition = proptest::option::of((any::<bool>(), inner.clone()));
        prop_oneof![
            several.clone().prop_map(|works| json!({ "kind": "Seq", "works": works })),
            several.prop_map(|works| json!({ "kind": "Par", "works": works })),
            (inner.clone(), condition.clone(), condition)
                .prop_map(|(body, pre, post)| json!({ "kind": "Loop", "body": body, "preCondition": pre, "postCondition": post })),
            (inner, maybe.clone(), maybe)
                .prop_map(|(condition, yes, no)| json!({ "kind": "Alt", "condition": condition, "trueWork": yes, "falseWork": no })),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_sound_tree_is_numbered_charted_and_stays_the_same(work in any_work()) {
        let mut entry = sound();
        entry["jobs"]["j"]["work"] = work;
        let entry = validated(entry).unwrap();
        let work = &entry.jobs["j"].work;
        let ids: Vec<u32> = work.tasks().iter().map(|task| task.work_id_in_job.0).collect();
        prop_assert_eq!(&ids, &(0..ids.len() as u32).collect::<Vec<_>>());

        let graph = chart(work);
        let mut charted: Vec<u32> = graph.nodes.iter().filter_map(|node| match node.hint {
            Hint::Task(id) | Hint::Cond(id) => Some(id.0),
            _ => None,
        }).collect();
        charted.sort_unstable();
        prop_assert_eq!(ids, charted);
        for (at, node) in graph.nodes.iter().enumerate() {
            prop_assert_eq!(at, node.id);
            prop_assert!(node.arrows.iter().all(|arrow| arrow.to < graph.nodes.len()));
        }

        let again: Entry = serde_json::from_value(serde_json::to_value(&entry).unwrap()).unwrap();
        prop_assert_eq!(validate_entry(again, "").unwrap(), entry);
    }

    #[test]
    fn whatever_the_text_reading_it_ends(text in "[a-z:{}\\[\\]\", \\n-]{0,80}") {
        for format in [Format::Json, Format::Yaml] {
            if let Ok(entry) = read_entry(&text, format, "") {
                let _ = validate_entry(entry, "");
            }
        }
    }
}
