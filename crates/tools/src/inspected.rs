//! Resolved paths of inspected calls, so that a permission given for one path is not used on another.
//!
//! Minutes can pass between the question and the answer, and a link put in the way meanwhile would lead an approved
//! call elsewhere.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hangar_agent::tool::ToolOutcome;

use crate::answer;
use crate::held_paths::HeldPaths;

/// Calls remembered at once. Calls that were denied are never run and leave their places here until pushed out.
const CALL_LIMIT: usize = 1024;
/// The latest of them, whose directories are held open.
const HELD_CALLS: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct InspectedCalls(Mutex<VecDeque<(String, Arc<HeldPaths>)>>);

impl InspectedCalls {
    pub(crate) fn remember(&self, call_id: &str, places: HeldPaths) {
        let mut calls = self.0.lock();
        calls.retain(|(id, _)| id != call_id);
        if calls.len() == CALL_LIMIT {
            calls.pop_front();
        }
        calls.push_back((call_id.to_owned(), Arc::new(places)));
        if let Some(older) = calls.len().checked_sub(HELD_CALLS + 1) {
            calls[older].1 = Arc::new(calls[older].1.known());
        }
    }

    /// The places that a call was inspected with.
    pub(crate) fn of(&self, call_id: &str) -> Option<Arc<HeldPaths>> {
        let calls = self.0.lock();
        calls.iter().find(|(id, _)| id == call_id).map(|(_, places)| Arc::clone(places))
    }

    /// The places that a call was inspected with, for its run. `now` are those that it has by now; `Err` if they are others.
    pub(crate) fn confirm(&self, call_id: &str, now: &ResolvedPaths) -> Result<Arc<HeldPaths>, ToolOutcome> {
        let inspected = {
            let mut calls = self.0.lock();
            let position = calls.iter().position(|(id, _)| id == call_id);
            position.and_then(|position| calls.remove(position)).map(|(_, places)| places)
        };
        let Some(inspected) = inspected else { return now.unseen() };
        if !inspected.paths().eq(now.real.iter().map(PathBuf::as_path)) {
            return Err(moved(&inspected, &now.real));
        }
        match inspected.change() {
            None => Ok(inspected),
            Some(change) => Err(elsewhere(format!(
                "{change} that this call was permitted for; nothing was done. Look again and repeat the call."
            ))),
        }
    }
}

/// The paths of a call, resolved when it is run.
pub(crate) struct ResolvedPaths {
    pub(crate) real: Vec<PathBuf>,
    /// Whether each leads to where it says, with no link on the way.
    pub(crate) is_plain: bool,
    /// Whether a client keeps the files.
    pub(crate) is_away: bool,
}

impl ResolvedPaths {
    pub(crate) fn hold(&self) -> HeldPaths {
        let real = self.real.clone();
        if self.is_away { HeldPaths::of_client(real) } else { HeldPaths::hold(real) }
    }

    /// The places of a call that another process inspected, or that was forgotten since. A person was shown the paths, so
    /// they must lead to where they say.
    fn unseen(&self) -> Result<Arc<HeldPaths>, ToolOutcome> {
        if self.is_plain || self.is_away {
            return Ok(Arc::new(self.hold()));
        }
        Err(elsewhere(
            "The path leads through a link, and where it led when this call was permitted is not known; nothing was \
             done. Repeat the call."
                .to_owned(),
        ))
    }
}

fn moved(inspected: &HeldPaths, now: &[PathBuf]) -> ToolOutcome {
    let differs = |(now, then): &(&PathBuf, &Path)| now.as_path() != *then;
    elsewhere(match now.iter().zip(inspected.paths()).find(differs) {
        Some((now, then)) => format!(
            "The path led to {} when this call was permitted and leads to {} now; nothing was done.",
            then.display(),
            now.display()
        ),
        None => "The call names other paths than it was permitted for; nothing was done.".to_owned(),
    })
}

fn elsewhere(text: String) -> ToolOutcome {
    answer::failed("Path leads elsewhere", text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(paths: &[&str]) -> ResolvedPaths {
        let real = paths.iter().map(PathBuf::from).collect();
        ResolvedPaths { real, is_plain: true, is_away: false }
    }

    fn remember(inspected: &InspectedCalls, call_id: &str, paths: &[&str]) {
        inspected.remember(call_id, now(paths).hold());
    }

    #[test]
    fn a_place_that_changed_is_refused() {
        let inspected = InspectedCalls::default();
        remember(&inspected, "c", &["/w/a"]);
        let moved = inspected.confirm("c", &now(&["/etc/a"]));
        assert!(moved.unwrap_err().text.contains("leads to /etc/a now"));
    }

    #[test]
    fn a_call_that_nobody_here_inspected_leads_through_no_link() {
        let inspected = InspectedCalls::default();
        assert!(inspected.confirm("c", &now(&["/w/a"])).is_ok());
        let linked = ResolvedPaths { is_plain: false, ..now(&["/w/a"]) };
        assert!(inspected.confirm("c", &linked).unwrap_err().text.contains("is not known"));
    }

    #[test]
    fn a_call_with_other_places_is_refused() {
        let inspected = InspectedCalls::default();
        remember(&inspected, "c", &["/w/a"]);
        let more = inspected.confirm("c", &now(&["/w/a", "/etc/a"]));
        assert!(more.unwrap_err().text.starts_with("The call names other paths"));
    }

    #[test]
    fn the_last_inspection_of_a_call_counts() {
        let inspected = InspectedCalls::default();
        remember(&inspected, "c", &["/w/a"]);
        remember(&inspected, "c", &["/w/b"]);
        assert!(inspected.confirm("c", &now(&["/w/b"])).is_ok());
    }

    #[test]
    fn calls_that_never_run_are_forgotten() {
        let inspected = InspectedCalls::default();
        for n in 0..=CALL_LIMIT {
            remember(&inspected, &n.to_string(), &[]);
        }
        assert_eq!(inspected.0.lock().len(), CALL_LIMIT);
    }
}
