//! Prompts that a session sends itself after a time, once or again and again, while it is open.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

/// Schedules of a session.
const MAX_SCHEDULES: usize = 32;
/// Shorter intervals would ask the model without a pause.
const SHORTEST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);
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

struct Schedule {
    prompt: ScheduledPrompt,
    interval: Duration,
    recurring: bool,
    due: Moment,
}

/// Schedules by their ids, which are never used again.
#[derive(Default)]
pub(crate) struct Schedules {
    schedules: BTreeMap<u64, Schedule>,
    last_id: u64,
}

impl Schedules {
    /// Adds a schedule, and describes it.
    pub(crate) fn add(
        &mut self,
        prompt: ScheduledPrompt,
        interval: &str,
        recurring: bool,
        now: Moment,
    ) -> Result<Value, String> {
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
        self.last_id += 1;
        let schedule = Schedule { prompt, interval: every, recurring, due: now.after(every) };
        let described = described(self.last_id, &schedule);
        self.schedules.insert(self.last_id, schedule);
        Ok(described)
    }

    /// Removes a schedule, and describes it.
    pub(crate) fn stop(&mut self, id: u64) -> Option<Value> {
        self.schedules.remove(&id).map(|schedule| described(id, &schedule))
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

    /// Takes the prompts that are due. A recurring one is due again an interval from now, however late it is.
    pub(crate) fn take_due(&mut self, now: tokio::time::Instant) -> Vec<ScheduledPrompt> {
        let mut prompts = Vec::new();
        self.schedules.retain(|_, schedule| {
            let due = schedule.due;
            if due.instant > now {
                return true;
            }
            prompts.push(schedule.prompt.clone());
            schedule.due = due.after(now.duration_since(due.instant) + schedule.interval);
            schedule.recurring
        });
        prompts
    }
}

/// A schedule in the form that clients receive.
fn described(id: u64, schedule: &Schedule) -> Value {
    let mut entry = json!({
        "id": id,
        "intervalMs": u64::try_from(schedule.interval.as_millis()).unwrap_or(u64::MAX),
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
        schedules.add(prompt("again"), "20s", true, start).expect("a schedule");
        schedules.add(prompt("once"), "30s", false, start).expect("a schedule");
        assert_eq!(schedules.next_due(), Some(at(20)));
        assert_eq!(schedules.take_due(at(19)), []);
        // Late by more than an interval: it is sent once.
        assert_eq!(schedules.take_due(at(70)), [prompt("again"), prompt("once")]);
        assert_eq!(schedules.next_due(), Some(at(90)));
        assert_eq!(schedules.list()[0]["nextRunAt"], json!("1970-01-01T00:01:30Z"));
        assert_eq!(schedules.list().len(), 1);
        assert_eq!(schedules.stop(1).map(|entry| entry["prompt"].clone()), Some(json!("again")));
        assert_eq!(schedules.stop(1), None);
        assert!(schedules.is_empty() && schedules.next_due().is_none());
        // An id is never used again.
        let next = schedules.add(prompt("next"), "1m", true, start).expect("a schedule");
        assert_eq!((&next["id"], &next["intervalMs"]), (&json!(3), &json!(60_000)));
    }

    #[test]
    fn schedules_are_bounded() {
        let mut schedules = Schedules::default();
        let now = start();
        for _ in 0..MAX_SCHEDULES {
            schedules.add(prompt("x"), "1m", true, now).expect("a schedule");
        }
        assert!(schedules.add(prompt("x"), "1m", true, now).is_err_and(|error| error.contains("at most 32")));
        schedules.stop(1);
        assert!(schedules.add(prompt(" "), "1m", true, now).is_err());
        assert!(schedules.add(prompt(&"x".repeat(MAX_PROMPT + 1)), "1m", true, now).is_err());
    }
}
