//! Scheduled prompts of a session, as a fold over its log.

use hangar_protocol::data::{ScheduleCreated, schedule_of_source};
use hangar_protocol::{Body, Event};

/// A prompt that the session sends itself later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduledPrompt {
    pub created: ScheduleCreated,
    /// Time of its creation or of the last time it was sent, as the log has it. Absent for what this process logged.
    pub since: Option<String>,
}

/// Prompts that are still to be sent, by their numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScheduledPrompts {
    pub prompts: Vec<ScheduledPrompt>,
    /// Highest number that was given.
    pub last_id: u64,
}

impl ScheduledPrompts {
    pub(super) fn apply(&mut self, body: &Body) {
        match body {
            Body::ScheduleCreated(created) => {
                self.forget(created.id);
                self.last_id = self.last_id.max(created.id);
                self.prompts.push(ScheduledPrompt { created: created.clone(), since: None });
            }
            Body::ScheduleCancelled(cancelled) => self.forget(cancelled.id),
            // A copy of a session sends nothing that was scheduled in the original.
            Body::Forked(_) => self.prompts.clear(),
            Body::UserMessage(_) => {
                if let Some(id) = sender(body)
                    && let Some(sent) = self.prompts.iter().find(|prompt| prompt.created.id == id)
                    && sent.created.recurring == Some(false)
                {
                    self.forget(id);
                }
            }
            _ => {}
        }
    }

    /// Notes the time of an event that was applied.
    pub(super) fn date(&mut self, event: &Event) {
        let id = match event.body() {
            Body::ScheduleCreated(created) => Some(created.id),
            body => sender(body),
        };
        if let Some(prompt) = self.prompts.iter_mut().find(|prompt| Some(prompt.created.id) == id) {
            prompt.since = Some(event.timestamp().to_owned());
        }
    }

    fn forget(&mut self, id: u64) {
        self.prompts.retain(|prompt| prompt.created.id != id);
    }
}

/// The schedule that sent a message.
fn sender(body: &Body) -> Option<u64> {
    match body {
        Body::UserMessage(message) => message.source.as_deref().and_then(schedule_of_source),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at: &str, kind: &str, data: &str) -> Event {
        let text =
            format!(r#"{{"type":"{kind}","data":{data},"id":"i","timestamp":"{at}","parentId":null}}"#);
        Event::parse(&text).expect("an event")
    }

    /// Numbers and times of what is left after events.
    fn check(events: &[(&str, &str, &str)], expected: &[(u64, &str)]) {
        let mut scheduled = ScheduledPrompts::default();
        for (at, kind, data) in events {
            let event = event(at, kind, data);
            scheduled.apply(event.body());
            scheduled.date(&event);
        }
        let left = scheduled.prompts.iter();
        let left: Vec<(u64, &str)> =
            left.map(|prompt| (prompt.created.id, prompt.since.as_deref().unwrap_or_default())).collect();
        assert_eq!(left, expected);
    }

    const AGAIN: (&str, &str, &str) =
        ("t1", "session.schedule_created", r#"{"id":1,"intervalMs":60000,"prompt":"p","recurring":true}"#);
    const ONCE: (&str, &str, &str) =
        ("t2", "session.schedule_created", r#"{"id":2,"intervalMs":60000,"prompt":"p","recurring":false}"#);

    #[test]
    fn what_was_sent_once_is_gone_and_what_is_sent_again_counts_from_then() {
        check(&[AGAIN, ONCE], &[(1, "t1"), (2, "t2")]);
        let sent = |source| ("t3", "user.message", source);
        check(&[AGAIN, ONCE, sent(r#"{"content":"p","source":"schedule-1"}"#)], &[(1, "t3"), (2, "t2")]);
        check(&[AGAIN, ONCE, sent(r#"{"content":"p","source":"schedule-2"}"#)], &[(1, "t1")]);
        check(&[AGAIN, ONCE, sent(r#"{"content":"p"}"#)], &[(1, "t1"), (2, "t2")]);
    }

    #[test]
    fn what_was_stopped_or_copied_is_gone() {
        check(&[AGAIN, ONCE, ("t3", "session.schedule_cancelled", r#"{"id":1}"#)], &[(2, "t2")]);
        check(&[AGAIN, ("t3", "hangar.forked", r#"{"fromSessionId":"s"}"#)], &[]);
    }
}
