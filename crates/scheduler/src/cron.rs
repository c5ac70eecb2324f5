//! Times of schedules: cron expressions in a time zone.
//!
//! Five fields: minute, hour, day of the month, month, day of the week, each with lists, ranges, steps and names; or one of
//! `@hourly`, `@daily`, `@weekly`, `@monthly` and `@yearly`. A day matches if both fields of days match, or, as in cron, either
//! one where both are restricted.
//!
//! Where clocks are set forward, a time that does not exist is moved by as much. Where they are set back, a time that exists
//! twice counts once, unless the schedule runs in every hour.

use std::str::FromStr;

use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp};

/// Days that are searched for the next time: a leap day is at most eight years away.
const DAYS_AHEAD: u32 = 366 * 8 + 2;
/// Missed times that are counted.
const MOST_MISSED: u32 = 1000;
/// Age at which a time that has passed counts as missed. A process that was away for less catches up.
const GRACE: SignedDuration = SignedDuration::from_secs(60);

/// A cron expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Whether the field of the hour is `*`, so that hours that exist twice count twice.
    every_hour: bool,
    any_day: bool,
    any_weekday: bool,
}

/// A cron expression that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    #[error("`{0}` needs five fields: minute, hour, day of the month, month, day of the week")]
    Fields(String),
    #[error(
        "the {field} `{text}` is not valid; it must be from {least} to {most}, as *, a list, a range or a step"
    )]
    Field { field: &'static str, text: String, least: u32, most: u32 },
    #[error("`{0}` is none of @hourly, @daily, @weekly, @monthly and @yearly")]
    Word(String),
}

struct FieldRange {
    name: &'static str,
    least: u32,
    most: u32,
    names: &'static [&'static str],
}

const FIELDS: [FieldRange; 5] = [
    FieldRange { name: "minute", least: 0, most: 59, names: &[] },
    FieldRange { name: "hour", least: 0, most: 23, names: &[] },
    FieldRange { name: "day of the month", least: 1, most: 31, names: &[] },
    FieldRange {
        name: "month",
        least: 1,
        most: 12,
        names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    },
    FieldRange {
        name: "day of the week",
        least: 0,
        most: 7,
        names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
    },
];

impl FieldRange {
    fn number(&self, text: &str) -> Option<u32> {
        let named = self.names.iter().position(|name| text.eq_ignore_ascii_case(name));
        let number = match named {
            Some(index) => u32::try_from(index).ok()? + self.least,
            None => text.parse().ok()?,
        };
        (self.least..=self.most).contains(&number).then_some(number)
    }

    /// Bits of the numbers that a field names.
    fn bits(&self, text: &str) -> Option<u64> {
        let mut bits = 0;
        for part in text.split(',') {
            let (range, step) = match part.split_once('/') {
                Some((range, step)) => (range, step.parse().ok().filter(|step| *step > 0)?),
                None => (part, 1),
            };
            let (from, to) = match range.split_once('-') {
                None if range == "*" => (self.least, self.most),
                Some((from, to)) => (self.number(from)?, self.number(to)?),
                None => {
                    let one = self.number(range)?;
                    (one, if part.contains('/') { self.most } else { one })
                }
            };
            if from > to {
                return None;
            }
            (from..=to).step_by(step).for_each(|number| bits |= 1 << number);
        }
        Some(bits)
    }
}

impl FromStr for Cron {
    type Err = CronError;

    fn from_str(text: &str) -> Result<Self, CronError> {
        let text = match text.trim() {
            "@hourly" => "0 * * * *",
            "@daily" | "@midnight" => "0 0 * * *",
            "@weekly" => "0 0 * * 0",
            "@monthly" => "0 0 1 * *",
            "@yearly" | "@annually" => "0 0 1 1 *",
            word if word.starts_with('@') => return Err(CronError::Word(word.to_owned())),
            fields => fields,
        };
        let words: Vec<&str> = text.split_whitespace().collect();
        let [_, hour, day, _, weekday] = words[..] else { return Err(CronError::Fields(text.to_owned())) };
        let mut bits = [0; 5];
        for ((bits, field), text) in bits.iter_mut().zip(&FIELDS).zip(&words) {
            let (field, name, least, most) = (field, field.name, field.least, field.most);
            let wrong = || CronError::Field { field: name, text: (*text).to_owned(), least, most };
            *bits = field.bits(text).ok_or_else(wrong)?;
        }
        let [minutes, hours, days, months, mut weekdays] = bits;
        // Sunday is both 0 and 7.
        weekdays |= weekdays >> 7;
        Ok(Self {
            minutes,
            hours,
            days,
            months,
            weekdays,
            every_hour: hour.starts_with('*'),
            any_day: day.starts_with('*'),
            any_weekday: weekday.starts_with('*'),
        })
    }
}

fn has(bits: u64, number: i8) -> bool {
    u32::try_from(number).is_ok_and(|number| bits & (1 << number) != 0)
}

impl Cron {
    fn is_day(&self, date: Date) -> bool {
        let day = has(self.days, date.day());
        let weekday = has(self.weekdays, date.weekday().to_sunday_zero_offset());
        let matches = match (self.any_day, self.any_weekday) {
            (false, false) => day || weekday,
            (true, _) | (_, true) => day && weekday,
        };
        matches && has(self.months, date.month())
    }

    /// The first time after another. `None` if there is none, as on the 30th of February.
    pub fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let mut date = after.to_zoned(zone.clone()).date().yesterday().ok()?;
        let mut found: Option<Timestamp> = None;
        for _ in 0..DAYS_AHEAD {
            if self.is_day(date) {
                let of_day = self.times(date, zone).into_iter().filter(|time| *time > after).min();
                // A day whose clocks are set back over midnight ends after the next one has begun.
                match (found, of_day) {
                    (Some(first), Some(second)) => return Some(first.min(second)),
                    (Some(first), None) => return Some(first),
                    (None, of_day) => found = of_day,
                }
            } else if found.is_some() {
                return found;
            }
            date = date.tomorrow().ok()?;
        }
        found
    }

    /// Times on a day, in no order.
    fn times(&self, date: Date, zone: &TimeZone) -> Vec<Timestamp> {
        let hours = (0..24).filter(|hour| has(self.hours, *hour));
        let clocks = hours.flat_map(|hour| {
            (0..60).filter(|minute| has(self.minutes, *minute)).map(move |minute| date.at(hour, minute, 0, 0))
        });
        clocks.flat_map(|clock| self.instants(clock, zone)).collect()
    }

    fn instants(&self, clock: DateTime, zone: &TimeZone) -> Vec<Timestamp> {
        let ambiguous = zone.to_ambiguous_timestamp(clock);
        match ambiguous.offset() {
            AmbiguousOffset::Unambiguous { .. } => ambiguous.compatible().into_iter().collect(),
            AmbiguousOffset::Gap { .. } if self.every_hour => Vec::new(),
            AmbiguousOffset::Gap { .. } => ambiguous.compatible().into_iter().collect(),
            AmbiguousOffset::Fold { .. } if self.every_hour => {
                ambiguous.earlier().into_iter().chain(ambiguous.later()).collect()
            }
            AmbiguousOffset::Fold { .. } => ambiguous.earlier().into_iter().collect(),
        }
    }

    /// Times that have become due after `last`, up to now.
    pub fn due(&self, last: Timestamp, now: Timestamp, zone: &TimeZone) -> DueTimes {
        let mut due = DueTimes { slot: None, missed: 0, last };
        let mut at = last;
        while let Some(next) = self.next(at, zone).filter(|next| *next <= now) {
            if due.missed >= MOST_MISSED {
                // The rest need not be counted, only passed.
                due.last = now;
                return due;
            }
            match now.duration_since(next) <= GRACE {
                true => {
                    due.missed += u32::from(due.slot.is_some());
                    due.slot = Some(next);
                }
                false => due.missed += 1,
            }
            (at, due.last) = (next, next);
        }
        due
    }
}

/// Times of a schedule that have passed since it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueTimes {
    /// The newest one, unless it is too long ago.
    pub slot: Option<Timestamp>,
    /// Number of times that were missed. They are reported once and not made up for.
    pub missed: u32,
    /// The latest time that was handled, started or missed.
    pub last: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str) -> TimeZone {
        TimeZone::get(name).expect(name)
    }

    /// Times after a first one, in the zone.
    #[track_caller]
    fn check(cron: &str, name: &str, after: &str, expected: &[&str]) {
        let (cron, zone) = (cron.parse::<Cron>().expect(cron), zone(name));
        let mut at: Timestamp = after.parse().expect(after);
        for expected in expected {
            at = cron.next(at, &zone).expect("another time");
            assert_eq!(at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M %:z").to_string(), *expected);
        }
    }

    #[test]
    fn fields_have_lists_ranges_steps_and_names() {
        check(
            "*/20 3 * * *",
            "UTC",
            "2026-01-01T03:20:00Z",
            &["2026-01-01 03:40 +00:00", "2026-01-02 03:00 +00:00"],
        );
        check(
            "5,10 0 1 jan-feb *",
            "UTC",
            "2026-01-01T00:05:00Z",
            &["2026-01-01 00:10 +00:00", "2026-02-01 00:05 +00:00"],
        );
        check("0 9 * * mon-fri", "UTC", "2026-01-02T09:00:00Z", &["2026-01-05 09:00 +00:00"]);
        check("0 9 * * 7", "UTC", "2026-01-01T00:00:00Z", &["2026-01-04 09:00 +00:00"]);
        // Either field of days, where both are restricted.
        check(
            "0 0 13 * fri",
            "UTC",
            "2026-02-07T00:00:00Z",
            &["2026-02-13 00:00 +00:00", "2026-02-20 00:00 +00:00"],
        );
        check("@daily", "Asia/Tokyo", "2026-01-01T00:00:00Z", &["2026-01-02 00:00 +09:00"]);
        check("0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", &["2028-02-29 00:00 +00:00"]);
    }

    #[test]
    fn a_time_that_does_not_exist_is_moved_and_one_that_exists_twice_counts_once() {
        let berlin = "Europe/Berlin";
        check(
            "30 2 * * *",
            berlin,
            "2026-03-28T02:00:00Z",
            &["2026-03-29 03:30 +02:00", "2026-03-30 02:30 +02:00"],
        );
        check(
            "30 2,3 * * *",
            berlin,
            "2026-03-28T12:00:00Z",
            &["2026-03-29 03:30 +02:00", "2026-03-30 02:30 +02:00"],
        );
        check(
            "30 2 * * *",
            berlin,
            "2026-10-24T12:00:00Z",
            &["2026-10-25 02:30 +02:00", "2026-10-26 02:30 +01:00"],
        );
    }

    #[test]
    fn a_schedule_of_every_hour_has_the_hours_that_there_are() {
        let berlin = "Europe/Berlin";
        check(
            "0 * * * *",
            berlin,
            "2026-03-29T00:30:00Z",
            &["2026-03-29 03:00 +02:00", "2026-03-29 04:00 +02:00"],
        );
        check(
            "0 * * * *",
            berlin,
            "2026-10-24T23:30:00Z",
            &["2026-10-25 02:00 +02:00", "2026-10-25 02:00 +01:00", "2026-10-25 03:00 +01:00"],
        );
    }

    #[test]
    fn a_day_that_never_comes_is_known() {
        let never: Cron = "0 0 30 2 *".parse().expect("valid");
        assert_eq!(never.next(Timestamp::UNIX_EPOCH, &TimeZone::UTC), None);
    }

    #[track_caller]
    fn check_refused(cron: &str, says: &str) {
        let error = cron.parse::<Cron>().expect_err(cron).to_string();
        assert!(error.contains(says), "{error}");
    }

    #[test]
    fn mistakes_are_named() {
        check_refused("0 0 * *", "needs five fields");
        check_refused("60 0 * * *", "the minute `60` is not valid; it must be from 0 to 59");
        check_refused("0 5-3 * * *", "the hour `5-3`");
        check_refused("0 0 * foo *", "the month `foo`");
        check_refused("*/0 0 * * *", "the minute `*/0`");
        check_refused("@often", "`@often` is none of");
    }

    #[track_caller]
    fn check_due(last: &str, now: &str, slot: Option<&str>, missed: u32) {
        let cron: Cron = "0 * * * *".parse().expect("valid");
        let [last, now]: [Timestamp; 2] = [last, now].map(|time| time.parse().expect("a time"));
        let due = cron.due(last, now, &TimeZone::UTC);
        assert_eq!((due.slot.map(|slot| slot.to_string()).as_deref(), due.missed), (slot, missed));
    }

    #[test]
    fn missed_times_are_counted_and_not_made_up_for() {
        check_due("2026-01-01T00:00:00Z", "2026-01-01T00:59:59Z", None, 0);
        check_due("2026-01-01T00:00:00Z", "2026-01-01T01:00:30Z", Some("2026-01-01T01:00:00Z"), 0);
        check_due("2026-01-01T00:00:00Z", "2026-01-01T05:00:30Z", Some("2026-01-01T05:00:00Z"), 4);
        check_due("2026-01-01T00:00:00Z", "2026-01-01T05:30:00Z", None, 5);
        check_due("2020-01-01T00:00:00Z", "2026-01-01T05:30:00Z", None, 1000);
    }
}
