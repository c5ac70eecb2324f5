//! Joining a session that is alive: its past comes from the log, what happens from the connection, and the questions that wait
//! for an answer are asked again. Nothing is missed, and nothing is shown twice.

use std::collections::HashSet;

use hangar_protocol::{Body, Event, EventId};
use serde_json::{Value, json};

/// Kinds of events that ask something, and that settle it.
const KINDS: [&str; 8] = [
    "permission.requested",
    "permission.completed",
    "user_input.requested",
    "user_input.completed",
    "elicitation.requested",
    "elicitation.completed",
    "exit_plan_mode.requested",
    "exit_plan_mode.completed",
];
/// Events that are looked through for open questions.
const MOST: usize = 1000;

/// Facts about the session that a joining view already has.
#[derive(Debug, Default)]
pub(crate) struct Joining {
    /// Whether the session is being opened. What it says until then is in the log that is read afterwards.
    opening: bool,
    /// Events of the past that were shown.
    history: HashSet<EventId>,
    /// Questions that came by the connection since, until the open ones are known.
    asked: Option<HashSet<EventId>>,
}

impl Joining {
    pub(super) fn begin(&mut self) {
        *self = Self { opening: true, ..Self::default() };
    }

    /// The session is open, and this is its past.
    pub(super) fn opened(&mut self, past: &[Event]) {
        let history = past.iter().map(|event| event.id().clone()).collect();
        *self = Self { opening: false, history, asked: Some(HashSet::new()) };
    }

    /// Forgets a session that was joined.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Whether an event is new to the view.
    pub(super) fn admits(&mut self, event: &Event) -> bool {
        if self.opening || self.history.remove(event.id()) {
            return false;
        }
        if let Some(asked) = &mut self.asked
            && matches!(change(event), Some(Change::Asks(_)))
        {
            asked.insert(event.id().clone());
        }
        true
    }

    /// Parameters of the request for the recent questions.
    pub(crate) fn request() -> Value {
        json!({ "types": KINDS, "max": MOST })
    }

    /// Questions in the answer that are open and that the view has not been asked.
    pub(crate) fn open_questions(&mut self, answer: &Value) -> Vec<Event> {
        let asked = self.asked.take().unwrap_or_default();
        let events = answer["events"].as_array().into_iter().flatten();
        let mut open: Vec<Event> = Vec::new();
        for event in events.filter_map(|event| Event::parse(&event.to_string()).ok()) {
            match change(&event) {
                Some(Change::Asks(_)) => open.push(event),
                Some(Change::Settles(id)) => {
                    open.retain(|open| !matches!(change(open), Some(Change::Asks(asked)) if asked == id));
                }
                None => {}
            }
        }
        open.retain(|event| !asked.contains(event.id()));
        open
    }
}

/// Effect of an event on the questions of a session.
pub(super) enum Change<'a> {
    Asks(&'a str),
    Settles(&'a str),
}

pub(super) fn change(event: &Event) -> Option<Change<'_>> {
    Some(match event.body() {
        Body::PermissionRequested(asked) => Change::Asks(&asked.request_id),
        Body::UserInputRequested(asked) => Change::Asks(&asked.request_id),
        Body::ElicitationRequested(asked) => Change::Asks(&asked.request_id),
        Body::ExitPlanModeRequested(asked) => Change::Asks(&asked.request_id),
        Body::PermissionCompleted(done) => Change::Settles(&done.request_id),
        Body::UserInputCompleted(done) => Change::Settles(&done.request_id),
        Body::ElicitationCompleted(done) => Change::Settles(&done.request_id),
        Body::ExitPlanModeCompleted(done) => Change::Settles(&done.request_id),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(id: &str) -> Value {
        json!({
            "type": "user_input.requested", "id": id, "timestamp": "t", "parentId": null, "ephemeral": true,
            "data": { "requestId": format!("q-{id}"), "question": "?" },
        })
    }

    fn answered(id: &str) -> Value {
        json!({
            "type": "user_input.completed", "id": format!("a-{id}"), "timestamp": "t", "parentId": null, "ephemeral": true,
            "data": { "requestId": format!("q-{id}"), "answer": "!", "wasFreeform": true },
        })
    }

    fn event(value: &Value) -> Event {
        Event::parse(&value.to_string()).unwrap()
    }

    #[test]
    fn what_is_in_the_log_is_shown_once() {
        let mut joining = Joining::default();
        joining.begin();
        assert!(!joining.admits(&event(&question("early"))), "the log has it, if it is kept at all");
        joining.opened(&[event(&question("past"))]);
        assert!(!joining.admits(&event(&question("past"))));
        assert!(joining.admits(&event(&question("new"))));
        joining.clear();
        assert!(joining.admits(&event(&question("past"))));
    }

    #[test]
    fn open_questions_are_asked_once() {
        let mut joining = Joining::default();
        joining.opened(&[]);
        assert!(joining.admits(&event(&question("live"))));
        let answer = json!({ "events": [question("a"), question("b"), answered("a"), question("live")] });
        let open = joining.open_questions(&answer);
        let ids: Vec<&str> = open.iter().map(|event| event.id().0.as_str()).collect();
        assert_eq!(ids, ["b"]);
    }
}
