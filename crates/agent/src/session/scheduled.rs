//! Scheduled prompts of a session, as a fold over its log.

use hangar_protocol::data::{HistoryTruncated, ScheduleCancelled, ScheduleCreated, schedule_of_source};
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

/// What the log of a session is given to take everything back from an event on: a rewind takes back what was said, not what was
/// scheduled or cancelled meanwhile.
pub fn rewind_to(events: &[Event], at: usize) -> Vec<Body> {
    let up_to_event_id = events[at].id().0.clone();
    let (before, now) = (ScheduledPrompts::of(&events[..at]), ScheduledPrompts::of(events));
    let cancelled = before.prompts.iter().filter(|prompt| !now.has(&prompt.created));
    let cancelled = cancelled.map(|prompt| ScheduleCancelled { id: prompt.created.id }.into());
    // Times of other programs' kinds are in members that are not read here.
    let created = now.prompts.iter().filter(|prompt| prompt.created.interval_ms.is_some());
    let created = created.filter(|prompt| !before.has(&prompt.created));
    let created = created.map(|prompt| prompt.created.clone().into());
    let truncated = Body::from(HistoryTruncated { up_to_event_id });
    [truncated].into_iter().chain(cancelled).chain(created).collect()
}

impl ScheduledPrompts {
    /// Highest number that a schedule may have: logs come from others too, and must leave some for the next one.
    pub const MAX_ID: u64 = 0xffff_ffff;

    /// What is left after the events of a session.
    fn of(events: &[Event]) -> Self {
        let mut scheduled = Self::default();
        for event in events.iter().filter(|event| event.agent_id().is_none()) {
            scheduled.apply(event.body());
        }
        scheduled
    }

    fn has(&self, created: &ScheduleCreated) -> bool {
        self.prompts.iter().any(|prompt| prompt.created == *created)
    }

    pub(super) fn apply(&mut self, body: &Body) {
        match body {
            Body::ScheduleCreated(created) if created.id > Self::MAX_ID => {}
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
    fn a_rewind_takes_back_nothing_that_was_scheduled_or_cancelled() {
        const DAILY: (&str, &str, &str) =
            ("t1", "session.schedule_created", r#"{"id":4,"cron":"0 9 * * *","prompt":"p"}"#);
        let later = ("t3", "session.schedule_created", r#"{"id":3,"intervalMs":60000,"prompt":"p"}"#);
        let log = [
            AGAIN,
            ONCE,
            DAILY,
            ("t3", "user.message", r#"{"content":"Hi."}"#),
            ("t3", "user.message", r#"{"content":"p","source":"schedule-1"}"#),
            ("t3", "user.message", r#"{"content":"p","source":"schedule-2"}"#),
            later,
            ("t3", "session.schedule_created", r#"{"id":5,"cron":"0 9 * * *","prompt":"p"}"#),
            ("t3", "session.schedule_created", r#"{"id":6,"intervalMs":60000,"prompt":"p"}"#),
            ("t3", "session.schedule_cancelled", r#"{"id":6}"#),
            ("t3", "session.schedule_cancelled", r#"{"id":4}"#),
        ];
        let log: Vec<Event> = log.iter().map(|(at, kind, data)| event(at, kind, data)).collect();
        let bodies = rewind_to(&log, 3);
        let mut left = ScheduledPrompts::of(&log[..3]);
        bodies.iter().for_each(|body| left.apply(body));
        let ids: Vec<u64> = left.prompts.iter().map(|prompt| prompt.created.id).collect();
        assert_eq!(ids, [1, 3]);
        assert!(matches!(&bodies[0], Body::HistoryTruncated(truncated) if truncated.up_to_event_id == "i"));
        // Where nothing was scheduled there is nothing to keep.
        assert_eq!(rewind_to(&log[..5], 3).len(), 1);
    }

    #[test]
    fn numbers_that_leave_none_for_the_next_are_ignored() {
        let highest =
            [1 << 32, u64::MAX].map(|id| format!(r#"{{"id":{id},"intervalMs":60000,"prompt":"p"}}"#));
        let highest = highest.map(|data| event("t1", "session.schedule_created", &data));
        assert_eq!(ScheduledPrompts::of(&highest), ScheduledPrompts::default());
    }

    #[test]
    fn what_was_stopped_or_copied_is_gone() {
        check(&[AGAIN, ONCE, ("t3", "session.schedule_cancelled", r#"{"id":1}"#)], &[(2, "t2")]);
        check(&[AGAIN, ("t3", "hangar.forked", r#"{"fromSessionId":"s"}"#)], &[]);
    }
}
