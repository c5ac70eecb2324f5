//! Repetitions: a model that makes the same call again and again and gets the same result is told so, and then stopped.
//!
//! A call whose result changes is not a repetition, nor is a call that waits: polling is work. A call or result that is
//! new in the run is progress and resets the counts: tests that fail the same way between two edits are not a loop.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use hangar_protocol::data;

use super::{Context, Session, Step};
use crate::prompt::notices;
use crate::tool::ToolOutcome;

/// Repetitions after which the model is told.
const TOLD_AFTER: u32 = 3;
/// Repetitions after which the run is stopped.
const STOPPED_AFTER: u32 = 5;
/// Turns that take longer than this are waiting for something.
const WAIT: Duration = Duration::from_secs(10);
/// Calls that are remembered. A run that made so many different ones is not in a loop with the first of them.
const REMEMBERED: usize = 4096;

/// A call with its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct CallPrint(u64);

impl CallPrint {
    pub(super) fn new(name: &str, arguments: &serde_json::Value, success: bool, result: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        (name, arguments.to_string(), success, result).hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// Calls of a run and their results.
#[derive(Debug, Default)]
pub(super) struct Repetitions {
    seen: HashSet<CallPrint>,
    counts: HashMap<CallPrint, u32>,
}

impl Repetitions {
    /// Whether a call has been repeated so often that the model is told with its result.
    fn tells(&self, print: CallPrint) -> bool {
        self.counts.get(&print) == Some(&(TOLD_AFTER - 1))
    }

    /// Takes the calls of a turn, by name. Returns the call that stops the run, if one does, and how often it was made.
    fn turn<'a>(&mut self, calls: &[(&'a str, CallPrint)]) -> Option<(&'a str, u32)> {
        if self.seen.len() > REMEMBERED {
            *self = Self::default();
        }
        if calls.iter().filter(|(_, print)| self.seen.insert(*print)).count() > 0 {
            self.counts.clear();
        }
        // The same call twice in one answer is one repetition.
        let calls: BTreeMap<CallPrint, &str> = calls.iter().map(|(name, print)| (*print, *name)).collect();
        let mut stopped = None;
        for (print, name) in calls {
            let count = self.counts.entry(print).or_default();
            *count += 1;
            if *count >= STOPPED_AFTER {
                stopped = Some((name, *count));
            }
        }
        stopped
    }
}

impl Session {
    /// Tells the model that it repeats itself, in the result of its call: a separate message after results makes some
    /// models stop.
    pub(super) fn tell_repetition(&self, name: &str, print: CallPrint, outcome: &mut ToolOutcome) {
        if self.run.as_ref().is_some_and(|run| run.repetitions.tells(print)) {
            outcome.detailed.get_or_insert_with(|| outcome.text.clone());
            outcome.text.push_str("\n\n");
            outcome.text.push_str(&notices::repeated(name, TOLD_AFTER));
        }
    }

    /// Notes the calls of a turn, and ends the run of a model that keeps repeating itself. True if it did.
    pub(super) fn check_repetition(
        &mut self,
        calls: &[(String, CallPrint)],
        took: Duration,
        step: &mut Step,
        context: &mut Context<'_>,
    ) -> bool {
        let Some(run) = self.run.as_mut().filter(|_| took < WAIT) else { return false };
        let calls: Vec<(&str, CallPrint)> =
            calls.iter().map(|(name, print)| (name.as_str(), *print)).collect();
        let Some((name, times)) = run.repetitions.turn(&calls) else { return false };
        let message = notices::stopped_repeating(name, times);
        self.announce_error(&message, step, context);
        self.fail_run(data::SessionError::new("repetition", message), step, context);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns of calls `name=result`, separated by blanks; prints the consequence of each turn.
    fn check(turns: &[&str], expected: &[&str]) {
        let mut repetitions = Repetitions::default();
        let followed: Vec<String> = turns
            .iter()
            .map(|turn| {
                let calls: Vec<(&str, CallPrint)> = turn
                    .split(' ')
                    .map(|call| {
                        let (name, result) = call.split_once('=').unwrap();
                        (name, CallPrint::new(name, &serde_json::Value::Null, true, result))
                    })
                    .collect();
                let told = calls.iter().find(|(_, print)| repetitions.tells(*print)).map(|(name, _)| *name);
                match (repetitions.turn(&calls), told) {
                    (Some((name, times)), _) => format!("{name} stopped at {times}"),
                    (None, Some(name)) => format!("{name} told at 3"),
                    (None, None) => "-".to_owned(),
                }
            })
            .collect();
        assert_eq!(followed, expected);
    }

    #[test]
    fn a_call_with_the_same_result_is_told_and_then_stopped() {
        check(&["a=1"; 5], &["-", "-", "a told at 3", "-", "a stopped at 5"]);
    }

    #[test]
    fn a_loop_of_two_calls_is_one_too() {
        let turns = ["a=1", "b=1", "a=1", "b=1", "a=1", "b=1", "a=1", "b=1", "a=1", "b=1", "a=1"];
        let told = ["-", "-", "-", "-", "-", "b told at 3", "a told at 3", "-", "-", "b stopped at 5"];
        check(&turns[..10], &told);
    }

    #[test]
    fn changing_results_are_no_repetition() {
        check(&["a=1", "a=2", "a=3", "a=4", "a=5", "a=6"], &["-"; 6]);
    }

    #[test]
    fn something_new_in_between_begins_the_count_again() {
        check(&["t=bad", "e=1", "t=bad", "e=2", "t=bad", "e=3", "t=bad", "e=4", "t=bad"], &["-"; 9]);
    }

    #[test]
    fn the_same_call_twice_in_one_answer_counts_once() {
        check(&["a=1 a=1", "a=1 a=1", "a=1 a=1"], &["-", "-", "a told at 3"]);
    }
}
