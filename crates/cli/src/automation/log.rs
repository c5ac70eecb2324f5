//! The log of schedules and hooks: what was claimed, started and missed. A claim is written before its work starts, so that no slot
//! and no delivery starts work twice, in whichever process and after whichever kill.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use hangar_scheduler::record::iso;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::tables::Work;

/// Length of the log at which it is compacted.
const COMPACT_BYTES: u64 = 1 << 20;
/// Largest log that is read.
const MAX_BYTES: u64 = 16 << 20;
/// Deliveries that are remembered, so that a repeated one is recognised.
const MOST_DELIVERIES: usize = 2000;

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "type")]
pub(crate) enum Fact {
    /// A schedule counts from here on: it is new, or its times were changed.
    Seen {
        schedule: String,
        times: String,
        #[serde(with = "iso")]
        last: Timestamp,
    },
    /// A slot of a schedule is taken; its run is about to start.
    Slot {
        schedule: String,
        #[serde(with = "iso")]
        slot: Timestamp,
        run: String,
        work: Work,
    },
    /// A delivery of a hook is taken; its run is about to start.
    Delivery {
        hook: String,
        delivery: String,
        #[serde(with = "iso")]
        at: Timestamp,
        run: String,
        work: Work,
    },
    Started {
        run: String,
    },
    /// The run could not be started.
    Failed {
        run: String,
        error: String,
    },
    /// Slots at which nothing was started.
    Missed {
        schedule: String,
        count: u32,
        #[serde(with = "iso")]
        last: Timestamp,
        reason: String,
    },
}

/// History of a schedule.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScheduleState {
    pub(crate) times: String,
    /// Up to which all slots are dealt with.
    pub(crate) last: Timestamp,
    pub(crate) last_slot: Option<Timestamp>,
    pub(crate) last_run: Option<String>,
    pub(crate) missed: Option<Missed>,
    /// Why the last run could not be started.
    pub(crate) error: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Missed {
    pub(crate) count: u32,
    pub(crate) last: Timestamp,
    pub(crate) reason: String,
}

/// A delivery that was taken.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Delivery {
    pub(crate) hook: String,
    pub(crate) id: String,
    pub(crate) at: Timestamp,
    pub(crate) run: String,
}

/// State of all schedules and hooks: a fold over the log.
#[derive(Debug, Clone, Default)]
pub(crate) struct AutomationState {
    pub(crate) schedules: BTreeMap<String, ScheduleState>,
    pub(crate) deliveries: VecDeque<Delivery>,
    /// Claims whose runs have not been started, as far as the log tells.
    pub(crate) claims: BTreeMap<String, Work>,
    /// Runs that were started, the newest last.
    pub(crate) started: VecDeque<String>,
}

impl AutomationState {
    fn apply(&mut self, fact: Fact) {
        match fact {
            Fact::Seen { schedule, times, last } => {
                let before = self.schedules.remove(&schedule);
                let state = ScheduleState {
                    times,
                    last,
                    last_slot: before.as_ref().and_then(|before| before.last_slot),
                    last_run: before.and_then(|before| before.last_run),
                    missed: None,
                    error: None,
                };
                self.schedules.insert(schedule, state);
            }
            Fact::Slot { schedule, slot, run, work } => {
                if let Some(state) = self.schedules.get_mut(&schedule) {
                    state.last = slot.max(state.last);
                    state.last_slot = Some(slot);
                    state.last_run = Some(run.clone());
                    state.error = None;
                }
                self.claims.insert(run, work);
            }
            Fact::Delivery { hook, delivery, at, run, work } => {
                if self.deliveries.len() >= MOST_DELIVERIES {
                    self.deliveries.pop_front();
                }
                self.deliveries.push_back(Delivery { hook, id: delivery, at, run: run.clone() });
                self.claims.insert(run, work);
            }
            Fact::Started { run } => {
                self.claims.remove(&run);
                if self.started.len() >= MOST_DELIVERIES {
                    self.started.pop_front();
                }
                self.started.push_back(run);
            }
            Fact::Failed { run, error } => {
                self.claims.remove(&run);
                let failed = self.schedules.values_mut().find(|state| state.last_run.as_ref() == Some(&run));
                if let Some(state) = failed {
                    state.error = Some(error);
                    state.last_run = None;
                }
            }
            Fact::Missed { schedule, count, last, reason } => {
                if let Some(state) = self.schedules.get_mut(&schedule) {
                    state.last = last.max(state.last);
                    state.missed = Some(Missed { count, last, reason });
                }
            }
        }
    }
}

/// The file, for the process that holds its lock.
pub(crate) struct AutomationLog {
    path: PathBuf,
}

impl AutomationLog {
    pub(crate) fn new(home: &Path) -> Self {
        Self { path: home.join("automation").join("log.jsonl") }
    }

    /// Reads the log, decides, and writes the decision down, while no other process does.
    pub(crate) fn transact<T>(&self, decide: impl FnOnce(&AutomationState) -> (Vec<Fact>, T)) -> Result<T> {
        let shown = || format!("cannot use {}", self.path.display());
        if let Some(dir) = self.path.parent() {
            std::fs::create_dir_all(dir).with_context(shown)?;
        }
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&self.path)
            .with_context(shown)?;
        file.lock().with_context(shown)?;
        let (state, facts, length) = read(&mut file).with_context(shown)?;
        let (new, result) = decide(&state);
        let mut text = String::new();
        for fact in &new {
            text.push_str(&serde_json::to_string(fact)?);
            text.push('\n');
        }
        if length > COMPACT_BYTES {
            self.compact(&file, facts, &text).with_context(shown)?;
        } else if !text.is_empty() {
            file.write_all(text.as_bytes()).and_then(|()| file.sync_data()).with_context(shown)?;
        }
        Ok(result)
    }

    /// Rewrites the file with its newest half. Schedules keep their newest facts. The lock is that of this file, so it is
    /// rewritten in place.
    fn compact(&self, mut file: &File, facts: Vec<Fact>, more: &str) -> Result<()> {
        let mut state = AutomationState::default();
        facts.iter().cloned().for_each(|fact| state.apply(fact));
        let mut text = String::new();
        for (name, schedule) in &state.schedules {
            let seen =
                Fact::Seen { schedule: name.clone(), times: schedule.times.clone(), last: schedule.last };
            text.push_str(&serde_json::to_string(&seen)?);
            text.push('\n');
        }
        for fact in &facts[facts.len() / 2..] {
            if !matches!(fact, Fact::Seen { .. }) {
                text.push_str(&serde_json::to_string(fact)?);
                text.push('\n');
            }
        }
        text.push_str(more);
        let copy = self.path.with_extension("new");
        hangar_disk::keep(&copy, &text)?;
        file.set_len(0)?;
        file.write_all(text.as_bytes())?;
        file.sync_data()?;
        let _ = std::fs::remove_file(&copy);
        Ok(())
    }

    pub(crate) fn state(&self) -> Result<AutomationState> {
        self.transact(|state| (Vec::new(), state.clone()))
    }
}

/// The state, its facts and the length of the file. An unfinished last line is cut off.
fn read(file: &mut File) -> Result<(AutomationState, Vec<Fact>, u64)> {
    let mut text = String::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(MAX_BYTES).read_to_string(&mut text)?;
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    if whole < text.len() {
        file.set_len(whole as u64)?;
    }
    // A line of a newer version is left alone.
    let facts: Vec<Fact> = text[..whole].lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let mut state = AutomationState::default();
    facts.iter().cloned().for_each(|fact| state.apply(fact));
    Ok((state, facts, whole as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work() -> Work {
        Work { job: None, jobs_file: None, input: "hi".to_owned(), agent: None, model: None, workspace: None }
    }

    #[test]
    fn a_claim_is_there_after_a_kill_and_an_unfinished_line_is_not() {
        let home = tempfile::tempdir().unwrap();
        let log = AutomationLog::new(home.path());
        let last = Timestamp::UNIX_EPOCH;
        let claim = Fact::Slot { schedule: "a".to_owned(), slot: last, run: "r1".to_owned(), work: work() };
        let seen = Fact::Seen { schedule: "a".to_owned(), times: "t".to_owned(), last };
        log.transact(|_| (vec![seen, claim], ())).unwrap();
        let mut file = OpenOptions::new().append(true).open(&log.path).unwrap();
        file.write_all(b"{\"type\":\"started\",\"run\":").unwrap();
        let state = log.state().unwrap();
        assert_eq!(state.claims.keys().collect::<Vec<_>>(), ["r1"]);
        log.transact(|_| (vec![Fact::Started { run: "r1".to_owned() }], ())).unwrap();
        let state = log.state().unwrap();
        assert!(state.claims.is_empty() && state.started == ["r1"]);
    }

    #[test]
    fn a_long_log_is_compacted_and_keeps_schedules_and_new_deliveries() {
        let home = tempfile::tempdir().unwrap();
        let log = AutomationLog::new(home.path());
        let last = Timestamp::UNIX_EPOCH;
        let seen = Fact::Seen { schedule: "a".to_owned(), times: "t".to_owned(), last };
        log.transact(|_| (vec![seen], ())).unwrap();
        let input = "x".repeat(20_000);
        for number in 0..60 {
            let delivery = Fact::Delivery {
                hook: "h".to_owned(),
                delivery: number.to_string(),
                at: last,
                run: format!("r{number}"),
                work: Work { input: input.clone(), ..work() },
            };
            log.transact(|_| (vec![delivery], ())).unwrap();
        }
        let state = log.state().unwrap();
        assert!(std::fs::metadata(&log.path).unwrap().len() < COMPACT_BYTES + 50_000);
        assert!(state.schedules.contains_key("a"));
        assert_eq!(state.deliveries.back().unwrap().id, "59");
    }
}
