//! When a session that failed is said to be idle.
//!
//! Clients that wait for an answer stop waiting at `session.error`, and at the first `session.idle` after they sent their
//! message. One that sends another message because of an error would take the `session.idle` behind that error for the
//! end of its new message. So that one waits a moment, and is not told at all if there is work again.

use std::time::Duration;

use hangar_protocol::{Body, Event};

/// Delay before idle is published. A client that waits for the end does not notice it.
pub(crate) const GRACE: Duration = Duration::from_millis(100);

#[derive(Default)]
pub(crate) struct IdleDebounce {
    failed: bool,
    held: Option<Held>,
    /// Number of events held back.
    count: u64,
}

struct Held {
    number: u64,
    event: Box<Event>,
}

pub(crate) enum Publish {
    /// Publish this event, after the one that was held back.
    Now(Option<Box<Event>>),
    /// Ask again with this number after the delay.
    Later(u64),
}

impl IdleDebounce {
    pub(crate) fn pass(&mut self, event: &Event) -> Publish {
        match event.body() {
            Body::SessionIdle(_) if self.failed => {
                self.failed = false;
                self.count += 1;
                self.held = Some(Held { number: self.count, event: Box::new(event.clone()) });
                Publish::Later(self.count)
            }
            Body::PendingMessagesModified(_) | Body::UserMessage(_) | Body::TurnStart(_) => {
                self.failed = false;
                self.held = None;
                Publish::Now(None)
            }
            // Hooks are asked beside the work.
            Body::HookStart(_) | Body::HookEnd(_) => Publish::Now(None),
            body => {
                self.failed |= matches!(body, Body::SessionError(_));
                Publish::Now(self.held.take().map(|held| held.event))
            }
        }
    }

    /// The event that was held under a number, if it is still true.
    pub(crate) fn due(&mut self, number: u64) -> Option<Box<Event>> {
        self.held.take_if(|held| held.number == number).map(|held| held.event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks which events of a sequence are published; `time` stands for the end of the delay.
    fn check(row: &str, told: &str) {
        let mut idle_debounce = IdleDebounce::default();
        let mut heard = Vec::new();
        let mut waiting = Vec::new();
        for kind in row.split_whitespace() {
            if kind == "time" {
                heard
                    .extend(waiting.drain(..).filter_map(|number| idle_debounce.due(number)).map(|due| *due));
                continue;
            }
            let data = match kind {
                "session.error" => r#"{"errorType":"query","message":"m"}"#,
                "user.message" => r#"{"content":"c"}"#,
                "assistant.turn_start" => r#"{"turnId":"0"}"#,
                "session.shutdown" => "{}",
                "hook.end" => r#"{"hookInvocationId":"h","hookType":"errorOccurred","success":true}"#,
                _ => "{}",
            };
            let line =
                format!(r#"{{"type":"{kind}","data":{data},"id":"i","timestamp":"t","parentId":null}}"#);
            let event = Event::parse(&line).expect("an event");
            match idle_debounce.pass(&event) {
                Publish::Now(before) => heard.extend(before.into_iter().map(|before| *before).chain([event])),
                Publish::Later(number) => waiting.push(number),
            }
        }
        let heard: Vec<&str> = heard.iter().map(Event::kind).collect();
        assert_eq!(heard.join(" "), told, "{row}");
    }

    #[test]
    fn a_session_that_did_not_fail_is_idle_at_once() {
        check("assistant.idle session.idle", "assistant.idle session.idle");
        check(
            "session.error assistant.turn_start session.idle",
            "session.error assistant.turn_start session.idle",
        );
    }

    #[test]
    fn one_that_failed_is_idle_when_no_message_comes() {
        check("session.error assistant.idle session.idle", "session.error assistant.idle");
        check("session.error session.idle time", "session.error session.idle");
        check("session.error session.idle hook.end time", "session.error hook.end session.idle");
        check(
            "session.error session.idle session.shutdown time",
            "session.error session.idle session.shutdown",
        );
    }

    #[test]
    fn one_that_has_work_again_is_not_idle() {
        check(
            "session.error session.idle pending_messages.modified time user.message session.idle",
            "session.error pending_messages.modified user.message session.idle",
        );
        check(
            "session.error session.idle user.message session.error session.idle time",
            "session.error user.message session.error session.idle",
        );
    }
}
