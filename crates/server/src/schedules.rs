//! Prompts that a session sends itself after a time, once or again and again, while it is open. They are in its log, so the
//! next process that opens the session goes on with them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hangar_agent::session::{ScheduledPrompt as LoggedPrompt, ScheduledPrompts};
use hangar_protocol::Body;
use hangar_protocol::data::{ScheduleCancelled, ScheduleCreated};
use jiff::Timestamp;
use serde_json::{Value, json};

/// Schedules of a session.
const MAX_SCHEDULES: usize = 32;
/// Shorter intervals would ask the model without a pause.
const SHORTEST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);
/// Time after the opening of a session at which it sends a prompt that it missed while it was closed. A person who opened it
/// for something else can stop the prompt until then.
const CATCH_UP: Duration = Duration::from_secs(60);
/// Bytes of a prompt.
const MAX_PROMPT: usize = 64 << 10;

/// A moment, as timers and as people count it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) instant: tokio::time::Instant,
    pub(crate) time: Timestamp,
}

impl Moment {
    fn after(self, interval: Duration) -> Self {
        let time = self.time.checked_add(interval).unwrap_or(Timestamp::MAX);
        Self { instant: self.instant + interval, time }
    }
}

/// A prompt that is to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScheduledPrompt {
    pub(crate) prompt: String,
    /// What is shown in its place.
    pub(crate) shown: Option<String>,
}

/// A schedule that somebody wants.
pub(crate) struct WantedSchedule<'a> {
    pub(crate) prompt: ScheduledPrompt,
    pub(crate) interval: &'a str,
    pub(crate) recurring: bool,
    /// Whether the log has it, so that the next process goes on with it.
    pub(crate) logged: bool,
}

struct Schedule {
    prompt: ScheduledPrompt,
    interval: Duration,
    recurring: bool,
    logged: bool,
    due: Moment,
}

/// Schedules by their ids, which are never used again.
#[derive(Default)]
pub(crate) struct Schedules {
    schedules: BTreeMap<u64, Schedule>,
    last_id: u64,
    /// Schedules of the log that this process neither sends nor cancels: of other programs' kinds, or too many.
    left: BTreeSet<u64>,
}

impl Schedules {
    /// Schedules of a session that is opened, from its log.
    pub(crate) fn restored(logged: &ScheduledPrompts, now: Moment) -> Self {
        let mut found = Self { last_id: logged.last_id, ..Self::default() };
        for prompt in &logged.prompts {
            match restored(prompt, now).filter(|_| found.schedules.len() < MAX_SCHEDULES) {
                Some((id, schedule)) => _ = found.schedules.insert(id, schedule),
                None => _ = found.left.insert(prompt.created.id),
            }
        }
        found
    }

    /// Events after which the log has these schedules and no others, where parts of it were taken back.
    pub(crate) fn corrections(&self, logged: &ScheduledPrompts) -> Vec<Body> {
        let mine = logged.prompts.iter().filter(|prompt| prompt.created.interval_ms.is_some());
        let mine = mine.map(|prompt| prompt.created.id).filter(|id| !self.left.contains(id));
        let stopped = mine.filter(|id| !self.schedules.contains_key(id));
        let stopped = stopped.map(|id| ScheduleCancelled { id }.into());
        let is_logged = |id| logged.prompts.iter().any(|prompt| prompt.created.id == id);
        let missing = self.schedules.iter().filter(|(id, schedule)| schedule.logged && !is_logged(**id));
        stopped.chain(missing.map(|(id, schedule)| created(*id, schedule).into())).collect()
    }

    /// Adds a schedule. Returns its event, unless it is not logged, and its description.
    pub(crate) fn add(
        &mut self,
        wanted: WantedSchedule<'_>,
        now: Moment,
    ) -> Result<(Option<ScheduleCreated>, Value), String> {
        let WantedSchedule { prompt, interval, recurring, logged } = wanted;
        let every = parse(interval)?;
        if prompt.prompt.trim().is_empty() {
            return Err("the prompt is empty".to_owned());
        }
        if prompt.prompt.len() > MAX_PROMPT {
            return Err(format!("a scheduled prompt has at most {} KB", MAX_PROMPT >> 10));
        }
        if self.schedules.len() == MAX_SCHEDULES {
            return Err(format!("a session has at most {MAX_SCHEDULES} scheduled prompts; stop one first"));
        }
        if self.last_id >= ScheduledPrompts::MAX_ID {
            return Err(
                "the numbers of this session's scheduled prompts are used up; use a new session".to_owned()
            );
        }
        self.last_id += 1;
        let schedule = Schedule { prompt, interval: every, recurring, logged, due: now.after(every) };
        let event = logged.then(|| created(self.last_id, &schedule));
        let added = (event, described(self.last_id, &schedule));
        self.schedules.insert(self.last_id, schedule);
        Ok(added)
    }

    /// Removes a schedule. Returns its event, unless it was not logged, and its description.
    pub(crate) fn stop(&mut self, id: u64) -> Option<(Option<ScheduleCancelled>, Value)> {
        let schedule = self.schedules.remove(&id)?;
        Some((schedule.logged.then_some(ScheduleCancelled { id }), described(id, &schedule)))
    }

    /// Descriptions of all, by id.
    pub(crate) fn list(&self) -> Vec<Value> {
        self.schedules.iter().map(|(id, schedule)| described(*id, schedule)).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.schedules.is_empty()
    }

    /// Time at which the next prompt is due.
    pub(crate) fn next_due(&self) -> Option<tokio::time::Instant> {
        self.schedules.values().map(|schedule| schedule.due.instant).min()
    }

    /// Takes the prompts that are due, with the numbers of their schedules. A recurring one is due again an interval from now, however late it is.
    pub(crate) fn take_due(&mut self, now: tokio::time::Instant) -> Vec<(u64, ScheduledPrompt)> {
        let mut prompts = Vec::new();
        self.schedules.retain(|id, schedule| {
            let due = schedule.due;
            if due.instant > now {
                return true;
            }
            prompts.push((*id, schedule.prompt.clone()));
            schedule.due = due.after(now.duration_since(due.instant) + schedule.interval);
            schedule.recurring
        });
        prompts
    }
}

/// A schedule of the log, unless it is of a kind that only other programs have.
fn restored(logged: &LoggedPrompt, now: Moment) -> Option<(u64, Schedule)> {
    let LoggedPrompt { created, since } = logged;
    let interval = Duration::from_millis(created.interval_ms?).clamp(SHORTEST, LONGEST);
    let since = since.as_ref().and_then(|since| since.parse::<Timestamp>().ok()).unwrap_or(now.time);
    let passed = Duration::try_from(now.time.duration_since(since)).unwrap_or_default();
    let left = interval.checked_sub(passed).filter(|left| !left.is_zero());
    let prompt = ScheduledPrompt { prompt: created.prompt.clone(), shown: created.display_prompt.clone() };
    let schedule = Schedule {
        prompt,
        interval,
        recurring: created.recurring.unwrap_or(true),
        logged: true,
        due: now.after(left.unwrap_or(CATCH_UP.min(interval))),
    };
    Some((created.id, schedule))
}

/// The event that a schedule begins with.
fn created(id: u64, schedule: &Schedule) -> ScheduleCreated {
    ScheduleCreated {
        id,
        interval_ms: Some(milliseconds(schedule.interval)),
        prompt: schedule.prompt.prompt.clone(),
        recurring: Some(schedule.recurring),
        display_prompt: schedule.prompt.shown.clone(),
    }
}

fn milliseconds(interval: Duration) -> u64 {
    u64::try_from(interval.as_millis()).unwrap_or(u64::MAX)
}

/// A schedule in the form that clients receive.
fn described(id: u64, schedule: &Schedule) -> Value {
    let mut entry = json!({
        "id": id,
        "intervalMs": milliseconds(schedule.interval),
        "prompt": schedule.prompt.prompt,
        "recurring": schedule.recurring,
        "nextRunAt": schedule.due.time.to_string(),
    });
    if let Some(shown) = &schedule.prompt.shown {
        entry["displayPrompt"] = json!(shown);
    }
    entry
}

/// An interval: `30s`, `5m`, `2h`, `1d`.
fn parse(text: &str) -> Result<Duration, String> {
    let refusal =
        || format!("`{text}` is not an interval: a number with s, m, h or d, such as 30s, 5m or 2h");
    let text = text.trim();
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(refusal)?;
    let unit = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 24 * 3600,
        _ => return Err(refusal()),
    };
    let seconds =
        number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit)).ok_or_else(refusal)?;
    let interval = Duration::from_secs(seconds);
    if interval < SHORTEST {
        return Err(format!("the shortest interval is {} seconds", SHORTEST.as_secs()));
    }
    if interval > LONGEST {
        return Err("the longest interval is 365 days".to_owned());
    }
    Ok(interval)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(text: &str) -> ScheduledPrompt {
        ScheduledPrompt { prompt: text.to_owned(), shown: None }
    }

    fn wanted<'a>(text: &str, interval: &'a str, recurring: bool) -> WantedSchedule<'a> {
        WantedSchedule { prompt: prompt(text), interval, recurring, logged: true }
    }

    fn start() -> Moment {
        Moment { instant: tokio::time::Instant::now(), time: Timestamp::UNIX_EPOCH }
    }

    #[test]
    fn intervals_are_a_number_with_a_unit() {
        let check = |text: &str, expected: Result<u64, &str>| {
            let parsed = parse(text).map(|interval| interval.as_secs());
            match (parsed, expected) {
                (Err(error), Err(part)) => assert!(error.contains(part), "{text}: {error}"),
                (parsed, expected) => assert_eq!(parsed, expected.map_err(str::to_owned), "{text}"),
            }
        };
        check("30s", Ok(30));
        check(" 5m", Ok(300));
        check("2h", Ok(7200));
        check("1d", Ok(86_400));
        check("4s", Err("the shortest interval is 5 seconds"));
        check("366d", Err("the longest"));
        for odd in
            ["", "s", "5", "m5", "-5m", "1.5h", "5ｍ", "99999999999999999999m", "18446744073709551615d"]
        {
            check(odd, Err("is not an interval"));
        }
    }

    #[test]
    fn prompts_are_due_once_or_again_and_again() {
        let start = start();
        let at = |seconds| start.instant + Duration::from_secs(seconds);
        let mut schedules = Schedules::default();
        schedules.add(wanted("again", "20s", true), start).expect("a schedule");
        schedules.add(wanted("once", "30s", false), start).expect("a schedule");
        assert_eq!(schedules.next_due(), Some(at(20)));
        assert_eq!(schedules.take_due(at(19)), []);
        // Late by more than an interval: it is sent once.
        assert_eq!(schedules.take_due(at(70)), [(1, prompt("again")), (2, prompt("once"))]);
        assert_eq!(schedules.next_due(), Some(at(90)));
        assert_eq!(schedules.list()[0]["nextRunAt"], json!("1970-01-01T00:01:30Z"));
        assert_eq!(schedules.list().len(), 1);
        let (stopped, entry) = schedules.stop(1).expect("the schedule");
        assert_eq!((stopped, &entry["prompt"]), (Some(ScheduleCancelled { id: 1 }), &json!("again")));
        assert_eq!(schedules.stop(1), None);
        assert!(schedules.is_empty() && schedules.next_due().is_none());
        // An id is never used again.
        let (_, next) = schedules.add(wanted("next", "1m", true), start).expect("a schedule");
        assert_eq!((&next["id"], &next["intervalMs"]), (&json!(3), &json!(60_000)));
    }

    #[test]
    fn schedules_are_bounded() {
        let mut schedules = Schedules::default();
        let now = start();
        for _ in 0..MAX_SCHEDULES {
            schedules.add(wanted("x", "1m", true), now).expect("a schedule");
        }
        let refused = schedules.add(wanted("x", "1m", true), now);
        assert!(refused.is_err_and(|error| error.contains("at most 32")));
        schedules.stop(1);
        assert!(schedules.add(wanted(" ", "1m", true), now).is_err());
        assert!(schedules.add(wanted(&"x".repeat(MAX_PROMPT + 1), "1m", true), now).is_err());
    }

    /// Seconds after the opening at which prompts are due that were logged at the beginning of time.
    fn check_restored(prompts: &[(&str, bool)], opened: i64, expected: &[u64]) {
        let mut before = Schedules::default();
        let mut logged = ScheduledPrompts::default();
        for (interval, recurring) in prompts {
            let (created, _) = before.add(wanted("p", interval, *recurring), start()).expect("a schedule");
            let created = created.expect("an event");
            logged.last_id = created.id;
            let since = Some(Timestamp::UNIX_EPOCH.to_string());
            logged.prompts.push(LoggedPrompt { created, since });
        }
        let time = Timestamp::from_second(opened).expect("a time");
        let now = Moment { instant: tokio::time::Instant::now(), time };
        let mut after = Schedules::restored(&logged, now);
        let due: Vec<u64> =
            after.schedules.values().map(|schedule| (schedule.due.instant - now.instant).as_secs()).collect();
        assert_eq!(due, expected);
        assert!(after.corrections(&logged).is_empty());
        let (next, _) = after.add(wanted("next", "1m", true), now).expect("a schedule");
        let next = next.expect("an event");
        assert_eq!(next.id, logged.last_id + 1);
        let corrections = after.corrections(&logged);
        assert!(matches!(&corrections[..], [Body::ScheduleCreated(created)] if created.id == next.id));
        after.stop(1);
        after.stop(next.id);
        let corrections = after.corrections(&logged);
        assert!(matches!(&corrections[..], [Body::ScheduleCancelled(cancelled)] if cancelled.id == 1));
    }

    #[test]
    fn numbers_of_schedules_are_used_up_at_last() {
        let log = ScheduledPrompts { last_id: ScheduledPrompts::MAX_ID - 1, ..ScheduledPrompts::default() };
        let mut schedules = Schedules::restored(&log, start());
        let (_, last) = schedules.add(wanted("p", "1m", true), start()).expect("a schedule");
        assert_eq!(last["id"], json!(ScheduledPrompts::MAX_ID));
        let refused = schedules.add(wanted("p", "1m", true), start());
        assert!(refused.is_err_and(|error| error.contains("are used up")));
    }

    #[test]
    fn schedules_of_clients_without_trust_are_never_logged() {
        let mut schedules = Schedules::default();
        let untrusted = WantedSchedule { logged: false, ..wanted("p", "1m", true) };
        let (event, entry) = schedules.add(untrusted, start()).expect("a schedule");
        assert_eq!((event, &entry["id"]), (None, &json!(1)));
        assert_eq!(schedules.list().len(), 1);
        // Nor after a rewind.
        assert!(schedules.corrections(&ScheduledPrompts::default()).is_empty());
        let (event, _) = schedules.stop(1).expect("the schedule");
        assert_eq!(event, None);
    }

    #[test]
    fn schedules_that_are_not_its_own_stay_in_the_log() {
        let logged = |id, interval_ms| {
            let created = ScheduleCreated {
                id,
                interval_ms,
                prompt: "p".to_owned(),
                recurring: None,
                display_prompt: None,
            };
            LoggedPrompt { created, since: None }
        };
        let mut log = ScheduledPrompts::default();
        // One of another program, with a time of its own kind; then more than a session has.
        log.prompts.push(logged(1, None));
        log.prompts.extend((2..=40).map(|id| logged(id, Some(60_000))));
        log.last_id = 40;
        let mut schedules = Schedules::restored(&log, start());
        let ids: Vec<u64> = schedules.schedules.keys().copied().collect();
        assert_eq!(ids, (2..=33).collect::<Vec<u64>>());
        assert!(schedules.corrections(&log).is_empty());
        // Nor does it cancel one of another program that a rewind brings back.
        log.prompts.push(logged(41, None));
        assert!(schedules.corrections(&log).is_empty());
        schedules.stop(2);
        let corrections = schedules.corrections(&log);
        assert!(matches!(&corrections[..], [Body::ScheduleCancelled(cancelled)] if cancelled.id == 2));
    }

    #[test]
    fn schedules_go_on_where_the_log_left_them() {
        check_restored(&[("10m", true), ("10m", false)], 60, &[540, 540]);
        // What was missed is sent a minute after the opening, or sooner if that is how often it is sent.
        check_restored(&[("10m", true), ("10m", false), ("5s", true)], 6_000, &[60, 60, 5]);
        // A clock that was set back delays nothing by more than the interval.
        check_restored(&[("10m", true)], -6_000, &[600]);
    }
}
