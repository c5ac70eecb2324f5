//! Where the paths of inspected calls led, so that a permission given for one place is not used on another.
//!
//! Minutes can pass between the question and the answer, and a link put in the way meanwhile would lead an approved
//! call elsewhere.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use hangar_agent::tool::ToolOutcome;

use crate::answer;

/// Calls remembered at once. Calls that were denied are never run and leave their places here until pushed out.
const CALL_LIMIT: usize = 1024;

#[derive(Debug, Default)]
pub(crate) struct Inspected(Mutex<VecDeque<(String, Vec<PathBuf>)>>);

impl Inspected {
    pub(crate) fn remember(&self, call_id: &str, places: Vec<PathBuf>) {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.retain(|(id, _)| id != call_id);
        if calls.len() == CALL_LIMIT {
            calls.pop_front();
        }
        calls.push_back((call_id.to_owned(), places));
    }

    /// `Err` if the call's places are not those it was inspected with.
    pub(crate) fn confirm(&self, call_id: &str, places: &[PathBuf]) -> Result<(), ToolOutcome> {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(position) = calls.iter().position(|(id, _)| id == call_id) else { return Ok(()) };
        let Some((_, inspected)) = calls.remove(position) else { return Ok(()) };
        if places == inspected {
            return Ok(());
        }
        let text = match places.iter().zip(&inspected).find(|(now, then)| now != then) {
            Some((now, then)) => format!(
                "The path led to {} when this call was permitted and leads to {} now; nothing was done.",
                then.display(),
                now.display()
            ),
            None => "The call names other paths than it was permitted for; nothing was done.".to_owned(),
        };
        Err(answer::failed("Path leads elsewhere", text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_changed_is_refused_once() {
        let inspected = Inspected::default();
        inspected.remember("c", vec![PathBuf::from("/w/a")]);
        let moved = inspected.confirm("c", &[PathBuf::from("/etc/a")]);
        assert!(moved.unwrap_err().text.contains("leads to /etc/a now"));
        assert_eq!(inspected.confirm("c", &[PathBuf::from("/etc/a")]), Ok(()));
    }

    #[test]
    fn a_call_with_other_places_is_refused() {
        let inspected = Inspected::default();
        inspected.remember("c", vec![PathBuf::from("/w/a")]);
        let more = inspected.confirm("c", &[PathBuf::from("/w/a"), PathBuf::from("/etc/a")]);
        assert!(more.unwrap_err().text.starts_with("The call names other paths"));
    }

    #[test]
    fn the_last_inspection_of_a_call_counts() {
        let inspected = Inspected::default();
        inspected.remember("c", vec![PathBuf::from("/w/a")]);
        inspected.remember("c", vec![PathBuf::from("/w/b")]);
        assert_eq!(inspected.confirm("c", &[PathBuf::from("/w/b")]), Ok(()));
    }

    #[test]
    fn calls_that_never_run_are_forgotten() {
        let inspected = Inspected::default();
        for n in 0..=CALL_LIMIT {
            inspected.remember(&n.to_string(), Vec::new());
        }
        assert_eq!(inspected.0.lock().unwrap().len(), CALL_LIMIT);
    }
}
