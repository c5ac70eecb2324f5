//! When two runs count as the same.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use similar::TextDiff;

use super::case::{Captures, Interruption, Line};

/// Says "something changed, look": tens of them per shell call, at moments that nobody can depend on.
const NOISE: &str = "session.background_tasks_changed";

/// How many pieces an answer comes in is the model's and the network's affair.
const DELTAS: [&str; 3] =
    ["assistant.message_delta", "assistant.tool_call_delta", "assistant.reasoning_delta"];

/// A shell's output comes as both of these; how often, and in which order, depends on the pipe.
const SHELL_OUTPUT: [&str; 2] = ["tool.shell_output", "tool.execution_partial_result"];

/// Compares what came with what was expected and explains every difference.
pub(crate) fn differences(
    interruption: Option<&Interruption>,
    expected: Vec<Line>,
    observed: Vec<Line>,
) -> Vec<String> {
    let [expected, observed] =
        [expected, observed].map(|lines| settle(interruption, condense(main_agent_first(lines))));
    let text = |lines: &[Line]| {
        let mark = |line: &Line| if line.of_sub_agent { "> " } else { "" };
        lines.iter().map(|line| format!("{}{}\n", mark(line), line.text)).collect::<String>()
    };
    let (wanted, got) = (text(&expected), text(&observed));
    if wanted != got {
        let diff = TextDiff::from_lines(wanted.as_str(), got.as_str());
        return vec![format!(
            "the events differ (- expected, + observed)\n{}",
            diff.unified_diff().context_radius(2).header("expected", "observed")
        )];
    }
    let lacking = |(wanted, got): (&Line, &Line)| {
        let missing: Vec<&str> = wanted.fields.difference(&got.fields).map(String::as_str).collect();
        (!missing.is_empty()).then(|| format!("`{}` lacks {}", got.text, missing.join(", ")))
    };
    expected.iter().zip(&observed).filter_map(lacking).collect()
}

/// A sub-agent works beside the main one: only the order within each of the two counts.
fn main_agent_first(mut lines: Vec<Line>) -> Vec<Line> {
    lines.sort_by_key(|line| line.of_sub_agent);
    lines
}

/// Leaves out noise and makes one of what comes in pieces.
fn condense(lines: Vec<Line>) -> Vec<Line> {
    let mut out: Vec<Line> = Vec::new();
    for line in lines {
        if line.kind == NOISE {
            continue;
        }
        let same = |last: &Line| last.kind == line.kind;
        if DELTAS.contains(&line.kind.as_str()) && out.last().is_some_and(same) {
            continue;
        }
        if SHELL_OUTPUT.contains(&line.kind.as_str()) {
            let run = out.iter().rev().take_while(|last| SHELL_OUTPUT.contains(&last.kind.as_str()));
            if run.clone().any(same) {
                continue;
            }
            // `tool.shell_output` is the first of the pair, whichever came first.
            let at = out.len() - if line.kind == SHELL_OUTPUT[0] { run.count() } else { 0 };
            out.insert(at, line);
            continue;
        }
        out.push(line);
    }
    out
}

/// The reference tears down in an order that changes from run to run: between a signal and `assistant.idle` only the
/// set of events counts. It also gives one reason for its abort or another, and mentions the cancellation or does not,
/// by who notices first; both signals were seen to do either.
fn settle(interruption: Option<&Interruption>, mut lines: Vec<Line>) -> Vec<Line> {
    let Some(interruption) = interruption else { return lines };
    lines.retain(|line| line.text != "session.info infoType=cancellation");
    for line in lines.iter_mut().filter(|line| line.kind == "abort") {
        line.text = line.kind.clone();
    }
    let Some(signal) = lines.iter().position(|line| line.kind == interruption.on) else { return lines };
    let idle = lines.iter().position(|line| line.kind == "assistant.idle").unwrap_or(lines.len());
    if signal + 1 < idle {
        lines[signal + 1..idle].sort_by(|a, b| a.text.cmp(&b.text));
    }
    lines
}

/// Properties of the events of every run, whatever the case.
pub(crate) fn broken_rules(captures: &Captures, events: &[Value]) -> Vec<String> {
    let mut broken = Vec::new();
    let mut ids = HashSet::new();
    let mut calls = HashSet::new();
    let mut messages: HashMap<&str, String> = HashMap::new();
    for event in events {
        let line = captures.line(event).text;
        let kind = event["type"].as_str().unwrap_or_default();
        let data = &event["data"];
        let message_id = data["messageId"].as_str().unwrap_or_default();
        if kind == "result" {
            continue;
        }
        match event["id"].as_str() {
            Some(id) if ids.insert(id) => {}
            id => broken.push(format!("`{line}` has the id {id:?}, which is missing or not its own")),
        }
        if event["timestamp"].as_str().is_none_or(|time| !time.ends_with('Z')) {
            broken.push(format!("`{line}` has no time in UTC"));
        }
        if event["parentId"] == event["id"] {
            broken.push(format!("`{line}` is its own parent"));
        }
        match kind {
            "tool.execution_start" => drop(calls.insert(data["toolCallId"].as_str())),
            // A call that an earlier process left open is closed without a start in this one.
            "tool.execution_complete"
                if !calls.remove(&data["toolCallId"].as_str()) && data["error"]["code"] != "interrupted" =>
            {
                broken.push(format!("`{line}` ends a call that was not started"));
            }
            "assistant.message_start" => drop(messages.insert(message_id, String::new())),
            "assistant.message_delta" => match messages.get_mut(message_id) {
                Some(text) => text.push_str(data["deltaContent"].as_str().unwrap_or_default()),
                None => broken.push(format!("`{line}` belongs to no message that was started")),
            },
            "assistant.message" => {
                if let Some(text) = messages.remove(message_id)
                    && data["content"] != text.as_str()
                {
                    broken.push(format!("`{line}` is not what its pieces said: {text:?}"));
                }
            }
            _ => {}
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::captures::case::SignalName;

    /// One event per line, in the notation of `cases.json`.
    #[track_caller]
    fn check(expected: &str, observed: &str, problem: Option<&str>) {
        check_interrupted(None, expected, observed, problem);
    }

    #[track_caller]
    fn check_interrupted(on: Option<&str>, expected: &str, observed: &str, problem: Option<&str>) {
        let captures = Captures::load();
        let lines = |text: &str| text.lines().map(|line| captures.parse(line.trim())).collect::<Vec<_>>();
        let interruption = on.map(|on| Interruption { send: SignalName::Int, on: on.to_owned() });
        let found = differences(interruption.as_ref(), lines(expected), lines(observed)).join("\n");
        match problem {
            Some(problem) => assert!(found.contains(problem), "{found:?}"),
            None => assert_eq!(found, ""),
        }
    }

    #[test]
    fn a_missing_event_is_shown() {
        check(
            "assistant.turn_end turnId=0\nassistant.idle",
            "assistant.idle",
            Some("-assistant.turn_end turnId=0"),
        );
    }

    #[test]
    fn another_order_is_shown() {
        check("assistant.idle\nabort", "abort\nassistant.idle", Some("+abort"));
    }

    #[test]
    fn another_value_is_shown() {
        check(
            "session.error errorType=query",
            "session.error errorType=quota",
            Some("+session.error errorType=quota"),
        );
    }

    #[test]
    fn a_missing_field_is_named() {
        check(
            "session.error errorType=query",
            "session.error errorType=query -message",
            Some("lacks message"),
        );
    }

    #[test]
    fn a_field_more_is_no_difference() {
        check("abort", "abort +later", None);
    }

    #[test]
    fn noise_and_the_number_of_pieces_do_not_count() {
        check(
            "assistant.message_delta\nassistant.idle",
            "assistant.message_delta\nassistant.message_delta\nsession.background_tasks_changed\nassistant.idle",
            None,
        );
    }

    #[test]
    fn the_two_forms_of_shell_output_may_alternate() {
        check(
            "tool.shell_output\ntool.execution_partial_result\nassistant.idle",
            "tool.execution_partial_result\ntool.shell_output\ntool.execution_partial_result\nassistant.idle",
            None,
        );
    }

    #[test]
    fn output_of_one_form_alone_is_a_difference() {
        check(
            "tool.shell_output\ntool.execution_partial_result",
            "tool.shell_output",
            Some("-tool.execution_partial_result"),
        );
    }

    #[test]
    fn a_sub_agent_may_interleave_with_the_main_one() {
        check("abort\n> abort\nassistant.idle", "> abort\nabort\nassistant.idle", None);
        check("abort\n> abort", "abort\nabort", Some("+abort"));
    }

    #[test]
    fn after_a_signal_the_order_is_free_until_idle() {
        let expected =
            "assistant.message_delta\nagent.interrupted\nabort reason=user_initiated\nassistant.idle";
        let observed = "assistant.message_delta\nabort reason=user_abort\nagent.interrupted\nassistant.idle";
        check_interrupted(Some("assistant.message_delta"), expected, observed, None);
        let early = "agent.interrupted\nassistant.message_delta\nabort\nassistant.idle";
        check_interrupted(Some("assistant.message_delta"), expected, early, Some("+agent.interrupted"));
    }
}
