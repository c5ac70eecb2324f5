//! Ordinary commands that must still work unasked, with their usual output.

use hangar_test_support::Finished;
use hangar_test_support::attacks::{Control, Corpus, PATH};
use parking_lot::Mutex;
use serde_json::Value;

use super::batch::{bash, each};
use super::machine::{Ground, User, may_become_nobody};

/// Fewer lines than this would not be a control group.
const LINES: usize = 120;

fn is_installed(program: &str) -> bool {
    PATH.split(':').any(|dir| std::path::Path::new(dir).join(program).exists())
}

/// Why a line did not do what it should.
fn failure(result: &Value, expected: &str) -> Option<String> {
    let content = result["data"]["result"]["content"].as_str().unwrap_or_default();
    let fine = result["data"]["shellExecution"]["exitCode"] == 0 && content.contains(expected);
    (!fine).then(|| if content.is_empty() { result["data"]["error"].to_string() } else { content.to_owned() })
}

fn check(user: User, env: &[(&str, &str)]) {
    let (corpus, ground) = (Corpus::read(), Ground::new(user));
    let wanted: Vec<&Control> =
        corpus.controls.iter().filter(|line| line.needs.as_deref().is_none_or(is_installed)).collect();
    let batches: Vec<&[&Control]> = wanted.chunk_by(|one, other| one.section == other.section).collect();
    let failures = Mutex::new(Vec::new());
    each(&batches, |batch| {
        let section = corpus.section(batch[0].section);
        let machine = ground.machine(&section.setup);
        let calls: Vec<String> = batch.iter().map(|line| bash(&machine.fill_in(&line.command))).collect();
        let run = machine.session(&calls, &section.flags, env);
        let events = run.events();
        let results = Finished::of_type(&events, "tool.execution_complete");
        assert_eq!(results.len(), batch.len(), "{}{}", run.stdout, run.stderr);
        for (line, result) in batch.iter().zip(results) {
            if let Some(why) = failure(result, &machine.fill_in(&line.expected)) {
                let place = corpus.place(line.section, line.line);
                let text = format!("{place}: {:?}: {why}", line.command);
                failures.lock().push(text);
            }
        }
    });
    let mut failures = failures.into_inner();
    failures.sort();
    assert!(
        failures.is_empty(),
        "{} of {} lines do not work:\n{}",
        failures.len(),
        wanted.len(),
        failures.join("\n")
    );
}

#[test]
fn ordinary_work_goes_on_unasked() {
    check(User::Current, &[]);
}

#[test]
fn ordinary_work_of_an_ordinary_user_goes_on_unasked() {
    if may_become_nobody() {
        check(User::Nobody, &[]);
    }
}

#[test]
fn ordinary_work_goes_on_unasked_where_namespaces_are_refused() {
    check(User::Current, &[("HANGAR_SANDBOX_WITHOUT", "namespaces")]);
}

#[test]
fn the_control_group_is_large_enough() {
    assert!(Corpus::read().controls.len() >= LINES, "{}", Corpus::read().controls.len());
}
