//! Each kind of work: what it starts, what it leaves out, and when it has succeeded.

use serde_json::{Value, json};

use super::{Portal, names, one_job, run};

/// Runs a job. `expected` is what is told of its works, `0+` for a start, `0=` for a success and `0!` for a failure, and
/// how it ended; works that run at once may be told in any order.
#[track_caller]
fn check(work: &Value, expected: &str) {
    let (heard, expected) = (told(work), expected.split(' ').collect::<Vec<_>>());
    assert_eq!(heard, expected);
}

#[track_caller]
fn check_in_any_order(work: &Value, expected: &str) {
    let (mut heard, mut expected) = (told(work), expected.split(' ').collect::<Vec<_>>());
    assert_eq!(heard.last().map(String::as_str), expected.last().copied(), "the end comes last");
    for id in 0..3 {
        let at = |sign: &str| heard.iter().position(|it| *it == format!("{id}{sign}"));
        let ended = at("=").or_else(|| at("!"));
        assert!(ended.is_none() || at("+") < ended, "{heard:?}");
    }
    heard.sort();
    expected.sort_unstable();
    assert_eq!(heard, expected);
}

fn told(work: &Value) -> Vec<String> {
    let portal = Portal::with_entry(&one_job(work));
    let job = portal.start_job("demo", "");
    let heard = names(&portal.drain(&format!("job/{job}")));
    heard
        .iter()
        .map(|name| match name.split(' ').collect::<Vec<_>>()[..] {
            ["workStarted", id] => format!("{id}+"),
            ["workStopped", id, "true"] => format!("{id}="),
            ["workStopped", id, "false"] => format!("{id}!"),
            _ => name.clone(),
        })
        .collect()
}

fn seq(tasks: &[&str]) -> Value {
    json!({ "kind": "Seq", "works": tasks.iter().map(|task| run(task)).collect::<Vec<_>>() })
}

fn par(tasks: &[&str]) -> Value {
    json!({ "kind": "Par", "works": tasks.iter().map(|task| run(task)).collect::<Vec<_>>() })
}

fn alt(condition: &str, when_true: Option<&str>, when_false: Option<&str>) -> Value {
    let mut alt = json!({ "kind": "Alt", "condition": run(condition) });
    for (name, task) in [("trueWork", when_true), ("falseWork", when_false)] {
        if let Some(task) = task {
            alt[name] = run(task);
        }
    }
    alt
}

fn repeat(pre: Option<(bool, &str)>, body: &str, post: Option<(bool, &str)>) -> Value {
    let mut work = json!({ "kind": "Loop", "body": run(body) });
    for (name, condition) in [("preCondition", pre), ("postCondition", post)] {
        if let Some((expected, task)) = condition {
            work[name] = json!([expected, run(task)]);
        }
    }
    work
}

#[test]
fn a_task_decides() {
    check(&run("ok"), "0+ 0= jobSucceeded");
    check(&run("bad"), "0+ 0! jobFailed");
}

#[test]
fn a_sequence_ends_with_the_first_failure() {
    check(&seq(&["ok", "ok"]), "0+ 0= 1+ 1= jobSucceeded");
    check(&seq(&["bad", "ok"]), "0+ 0! jobFailed");
    check(&seq(&["ok", "bad"]), "0+ 0= 1+ 1! jobFailed");
}

#[test]
fn what_runs_at_once_runs_to_its_end() {
    check_in_any_order(&par(&["ok", "ok"]), "0+ 1+ 0= 1= jobSucceeded");
    check_in_any_order(&par(&["bad", "ok"]), "0+ 1+ 0! 1= jobFailed");
    check_in_any_order(&par(&["ok", "bad"]), "0+ 1+ 0= 1! jobFailed");
}

#[test]
fn an_alternative_follows_its_condition() {
    check(&alt("ok", Some("ok"), Some("bad")), "0+ 0= 1+ 1= jobSucceeded");
    check(&alt("bad", Some("bad"), Some("ok")), "0+ 0! 2+ 2= jobSucceeded");
    check(&alt("ok", Some("bad"), Some("ok")), "0+ 0= 1+ 1! jobFailed");
    check(&alt("bad", Some("ok"), Some("bad")), "0+ 0! 2+ 2! jobFailed");
}

#[test]
fn a_branch_that_is_not_there_succeeds() {
    check(&alt("ok", None, Some("bad")), "0+ 0= jobSucceeded");
    check(&alt("bad", Some("bad"), None), "0+ 0! jobSucceeded");
}

#[test]
fn a_loop_begins_and_goes_on_as_its_conditions_come_out() {
    check(&repeat(None, "ok", None), "0+ 0= jobSucceeded");
    check(&repeat(Some((true, "bad")), "ok", None), "0+ 0! jobSucceeded");
    check(&repeat(Some((true, "ok")), "ok", None), "0+ 0= 1+ 1= jobSucceeded");
    check(&repeat(None, "bad", Some((true, "ok"))), "1+ 1! jobFailed");
    check(&repeat(None, "ok", Some((true, "bad"))), "1+ 1= 0+ 0! jobSucceeded");
}

#[test]
fn a_loop_goes_round_until_it_is_enough() {
    check(
        &repeat(None, "counts", Some((false, "enough"))),
        "1+ 1= 0+ 0! 1+ 1= 0+ 0! 1+ 1= 0+ 0= jobSucceeded",
    );
}

#[test]
fn a_crash_is_not_an_answer_to_a_condition() {
    check(&alt("crashes", Some("ok"), Some("ok")), "0+ 0! jobFailed jobError");
}

#[test]
fn works_are_within_works() {
    let inner = alt("bad", None, Some("ok"));
    let work = json!({ "kind": "Seq", "works": [run("ok"), { "kind": "Par", "works": [inner, seq(&["ok", "bad"])] }] });
    let heard = told(&work);
    assert_eq!(heard[..2], ["0+", "0="]);
    assert_eq!(heard.last().map(String::as_str), Some("jobFailed"));
    // The condition, its branch, and both of the sequence.
    for name in ["1!", "2=", "3=", "4!"] {
        assert!(heard.iter().any(|it| it == name), "{heard:?}");
    }
}
