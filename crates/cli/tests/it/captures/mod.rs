//! Hangar does what the reference was recorded to do.

pub(crate) mod case;
mod compare;
mod differences;
pub(crate) mod run;

use std::collections::BTreeSet;

use case::{Captures, Case};
use differences::{FIELDS_NOT_SENT, PENDING, expected_log, is_withheld};
use hangar_test_support::Finished;
use run::{Chain, Outcome, Subject, run_all};

/// The list of intended differences as its readers get it.
const COMPAT: &str = include_str!("../../../../../docs/compat.md");

#[test]
fn every_recorded_case_matches() {
    let captures = Captures::load();
    let subject = Subject::chosen();
    let chains = run_all(&captures, &subject, &[]);
    let mut report = String::new();
    let (mut matched, mut pending) = (0, 0);
    for (case, outcome) in chains.iter().flat_map(|chain| &chain.outcomes) {
        let problems = match outcome {
            Ok(outcome) => problems(&captures, &subject, case, outcome),
            Err(reason) => vec![reason.clone()],
        };
        let waits = subject.is_hangar() && PENDING.iter().any(|(name, _)| *name == case.name);
        match (problems.is_empty(), waits) {
            (true, false) => matched += 1,
            (false, true) => pending += 1,
            (true, true) => {
                report.push_str(&format!("== {}: passes, so it is not pending any more\n\n", case.name));
            }
            (false, false) => report.push_str(&format!("== {}\n{}\n\n", case.name, problems.join("\n"))),
        }
    }
    if subject.is_hangar() {
        report.push_str(&log_problems(&captures, &chains));
        report.push_str(&fields_sent_after_all(&chains));
    }
    println!("{matched} of {} cases match, {pending} are pending", captures.cases.len());
    assert!(report.is_empty(), "{matched} of {} cases match\n{report}", captures.cases.len());
}

fn problems(captures: &Captures, subject: &Subject, case: &Case, outcome: &Outcome) -> Vec<String> {
    let Outcome { finished, requests } = outcome;
    let expected = subject.expectation(captures, case);
    let mut problems = Vec::new();
    if finished.exit != expected.exit {
        problems.push(format!("exit code {} instead of {}", finished.exit, expected.exit));
    }
    if case.requests.as_ref().is_some_and(|expected| expected != requests) {
        problems.push(format!("the model answered {requests:?} instead of {:?}", case.requests));
    }
    if case.stderr.is_some_and(|used| used == finished.stderr.trim().is_empty()) {
        problems
            .push(format!("stderr should be {}", if case.stderr == Some(true) { "used" } else { "empty" }));
    }
    if case.text.as_ref().is_some_and(|text| *text != finished.stdout) {
        problems.push(format!("stdout is {:?} instead of {:?}", finished.stdout, case.text));
    }
    let lines = finished.stdout.lines().filter(|line| !line.trim().is_empty()).count();
    if case.text_lines.is_some_and(|expected| expected != lines) {
        problems
            .push(format!("stdout should have {:?} lines of text: {:?}", case.text_lines, finished.stdout));
    }
    if let Some(expected) = expected.events {
        let events = finished.events();
        let mut observed: Vec<_> = events.iter().map(|event| captures.line(event)).collect();
        if subject.may_omit_result(case) {
            observed.retain(|line| line.kind != "result");
        }
        problems.extend(compare::differences(case.signal.as_ref(), expected, observed));
        problems.extend(compare::broken_rules(captures, &events));
        let said = Finished::of_type(&events, "user.message").first().map(|event| &event["data"]["content"]);
        if let (Some(prompt), Some(said)) = (case.literal_prompt(), said)
            && said != prompt
        {
            problems.push(format!("the user's message is {said}, not the prompt"));
        }
    }
    if !problems.is_empty() && !finished.stderr.is_empty() {
        problems.push(format!("stderr: {}", finished.stderr));
    }
    problems
}

fn log_problems(captures: &Captures, chains: &[Chain]) -> String {
    let name = captures.log.session.as_str();
    let chain = chains.iter().find(|chain| chain.outcomes.iter().any(|(case, _)| case.name == name));
    let Some((chain, id)) = chain.and_then(|chain| Some((chain, chain.sessions.get(name)?))) else {
        return format!("== the log of {name}: there is no such session\n\n");
    };
    let events = chain.scratch.log(id);
    let events =
        events.lines().map(|line| serde_json::from_str(line).expect("a log holds one event per line"));
    // The list of tools is Hangar's own, for sessions that are resumed.
    let events = events.filter(|event: &serde_json::Value| event["type"] != "hangar.tools_offered");
    let observed = events.map(|event| captures.line(&event)).collect();
    let problems = compare::differences(None, expected_log(captures), observed);
    if problems.is_empty() {
        String::new()
    } else {
        format!("== the log of {name}\n{}\n\n", problems.join("\n"))
    }
}

fn fields_sent_after_all(chains: &[Chain]) -> String {
    let mut sent = BTreeSet::new();
    let runs = chains.iter().flat_map(|chain| &chain.outcomes).filter(|(case, _)| case.prints_json());
    for (case, outcome) in runs.filter_map(|(case, outcome)| Some((case, outcome.as_ref().ok()?))) {
        for event in outcome.finished.events() {
            let kind = event["type"].as_str().unwrap_or_default();
            let fields = event["data"].as_object().into_iter().flat_map(|data| data.keys());
            for field in fields.filter(|field| is_withheld(kind, field)) {
                sent.insert(format!(
                    "== {}: `{kind}` has `{field}`, which is listed as not sent\n",
                    case.name
                ));
            }
        }
    }
    sent.into_iter().collect()
}

#[test]
fn every_listed_difference_is_in_the_recordings_and_in_the_document() {
    let captures = Captures::load();
    let recorded: Vec<_> = captures
        .cases
        .iter()
        .filter_map(|case| captures.events(case))
        .flatten()
        .chain(captures.log_events())
        .collect();
    for (kind, field, _) in FIELDS_NOT_SENT {
        let known =
            recorded.iter().any(|line| (*kind == "*" || line.kind == *kind) && line.fields.contains(*field));
        assert!(known, "no recording has the field {field} in {kind}");
        assert!(
            COMPAT.contains(&format!("| `{kind}` | `{field}` |")),
            "docs/compat.md has no row for {kind} {field}"
        );
    }
    for (name, _) in PENDING {
        captures.case(name);
        assert!(
            COMPAT.contains(&format!("`{name}`")),
            "docs/compat.md does not name the pending case {name}"
        );
    }
}
