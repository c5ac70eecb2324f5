//! Repetitions: a model that makes the same call again and again and gets the same result is told so, and then stopped.
//!
//! A call whose result changes is not one of them, nor is a call that waits: polling is work. What has not been seen
//! before in the run is progress, and the counts begin again: tests that fail the same way between two edits are not a
//! loop.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use super::ending::message;
use super::{Context, Session, Step};
use crate::prompt::notices;

/// Source of the message to a model that repeats itself.
const SOURCE: &str = "repetition";
/// Repetitions after which the model is told.
const TOLD_AFTER: u32 = 3;
/// Repetitions after which the run is stopped.
const STOPPED_AFTER: u32 = 5;
/// Turns that take longer wait for something.
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

/// What follows from the calls of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Loop {
    None,
    /// The model is told that it repeats this call.
    Told(String, u32),
    /// The run is stopped because of this call.
    Stopped(String, u32),
}

/// Calls of a run and their results.
#[derive(Debug, Default)]
pub(super) struct Repetitions {
    seen: HashSet<CallPrint>,
    counts: HashMap<CallPrint, u32>,
}

impl Repetitions {
    /// Takes the calls of a turn, by name.
    fn turn(&mut self, calls: &[(&str, CallPrint)]) -> Loop {
        if self.seen.len() > REMEMBERED {
            *self = Self::default();
        }
        if calls.iter().filter(|(_, print)| self.seen.insert(*print)).count() > 0 {
            self.counts.clear();
        }
        let mut worst = Loop::None;
        // The same call twice in one answer is one repetition.
        for (print, name) in calls.iter().map(|(name, print)| (print, *name)).collect::<BTreeSet<_>>() {
            let count = self.counts.entry(*print).or_default();
            *count += 1;
            match *count {
                STOPPED_AFTER.. => return Loop::Stopped(name.to_owned(), *count),
                TOLD_AFTER => worst = Loop::Told(name.to_owned(), *count),
                _ => {}
            }
        }
        worst
    }
}

impl Session {
    /// Notes the calls of a turn and tells a model that repeats itself. True if the run was stopped.
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
        match run.repetitions.turn(&calls) {
            Loop::None => false,
            Loop::Told(name, times) => {
                self.emit(step, message(SOURCE, notices::repeated(&name, times)));
                false
            }
            Loop::Stopped(name, times) => {
                let message = notices::stopped_repeating(&name, times);
                self.announce_error(&message, step, context);
                self.fail_run("repetition", message, None, None, step, context);
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns of calls `name=result`, separated by blanks; prints what follows from each turn.
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
                match repetitions.turn(&calls) {
                    Loop::None => "-".to_owned(),
                    Loop::Told(name, times) => format!("{name} told at {times}"),
                    Loop::Stopped(name, times) => format!("{name} stopped at {times}"),
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
