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
        /// What starts; absent when it was started and the log compacted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        work: Option<Work>,
    },
    /// A delivery of a hook is taken; its run is about to start.
    Delivery {
        hook: String,
        delivery: String,
        #[serde(with = "iso")]
        at: Timestamp,
        run: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        work: Option<Work>,
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
                self.claims.extend(work.map(|work| (run, work)));
            }
            Fact::Delivery { hook, delivery, at, run, work } => {
                if self.deliveries.len() >= MOST_DELIVERIES {
                    self.deliveries.pop_front();
                }
                self.deliveries.push_back(Delivery { hook, id: delivery, at, run: run.clone() });
                self.claims.extend(work.map(|work| (run, work)));
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
                // It started nothing, so it may come again.
                self.deliveries.retain(|taken| taken.run != run);
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

/// Stands for the run of a slot whose work could not be started.
const UNSTARTED: &str = "unstarted";

impl AutomationState {
    /// The shortest facts that this state follows from. Work that was started is left out.
    fn facts(&self) -> Vec<Fact> {
        let mut facts = Vec::new();
        for (name, known) in &self.schedules {
            let (schedule, times) = (name.clone(), known.times.clone());
            facts.push(Fact::Seen { schedule, times, last: known.last });
            if let Some(slot) = known.last_slot {
                let run = known.last_run.clone().unwrap_or_else(|| UNSTARTED.to_owned());
                let work = self.claims.get(&run).cloned();
                facts.push(Fact::Slot { schedule: name.clone(), slot, run, work });
            }
            if let Some(error) = &known.error {
                facts.push(Fact::Failed { run: UNSTARTED.to_owned(), error: error.clone() });
            }
            if let Some(Missed { count, last, reason }) = known.missed.clone() {
                facts.push(Fact::Missed { schedule: name.clone(), count, last, reason });
            }
        }
        facts.extend(self.deliveries.iter().map(|taken| Fact::Delivery {
            hook: taken.hook.clone(),
            delivery: taken.id.clone(),
            at: taken.at,
            run: taken.run.clone(),
            work: self.claims.get(&taken.run).cloned(),
        }));
        facts.extend(self.started.iter().map(|run| Fact::Started { run: run.clone() }));
        facts
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
        let (state, length) = read(&mut file).with_context(shown)?;
        let (new, result) = decide(&state);
        let mut text = String::new();
        for fact in &new {
            text.push_str(&serde_json::to_string(fact)?);
            text.push('\n');
        }
        if length > COMPACT_BYTES {
            self.compact(&file, &state, &text).with_context(shown)?;
        } else if !text.is_empty() {
            file.write_all(text.as_bytes()).and_then(|()| file.sync_data()).with_context(shown)?;
        }
        Ok(result)
    }

    /// Rewrites the file as the facts of its state. The lock is that of this file, so it is rewritten in place.
    fn compact(&self, mut file: &File, state: &AutomationState, more: &str) -> Result<()> {
        let mut text = String::new();
        for fact in state.facts() {
            text.push_str(&serde_json::to_string(&fact)?);
            text.push('\n');
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

/// The state and the length of the file. An unfinished last line is cut off.
fn read(file: &mut File) -> Result<(AutomationState, u64)> {
    let mut text = String::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(MAX_BYTES).read_to_string(&mut text)?;
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    if whole < text.len() {
        file.set_len(whole as u64)?;
    }
    // A line of a newer version is left alone.
    let facts = text[..whole].lines().filter_map(|line| serde_json::from_str(line).ok());
    let mut state = AutomationState::default();
    facts.for_each(|fact| state.apply(fact));
    Ok((state, whole as u64))
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
        let claim =
            Fact::Slot { schedule: "a".to_owned(), slot: last, run: "r1".to_owned(), work: Some(work()) };
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
                work: Some(Work { input: input.clone(), ..work() }),
            };
            let started = Fact::Started { run: format!("r{number}") };
            log.transact(|_| (vec![delivery, started], ())).unwrap();
        }
        let state = log.state().unwrap();
        assert!(std::fs::metadata(&log.path).unwrap().len() < COMPACT_BYTES + 50_000);
        assert!(state.schedules.contains_key("a"));
        let known: Vec<String> = state.deliveries.iter().map(|taken| taken.id.clone()).collect();
        let all: Vec<String> = (0..60).map(|number| number.to_string()).collect();
        assert_eq!(known, all, "each is still known, however large it was");
    }

    #[test]
    fn a_state_follows_from_its_own_facts() {
        let mut state = AutomationState::default();
        let (a, b) = (Timestamp::UNIX_EPOCH, Timestamp::from_second(60).unwrap());
        let text = |text: &str| text.to_owned();
        for name in ["fails", "misses", "new", "runs", "waits"] {
            state.apply(Fact::Seen { schedule: text(name), times: text("t"), last: a });
        }
        for name in ["fails", "misses", "runs", "waits"] {
            let work = Some(work());
            state.apply(Fact::Slot { schedule: text(name), slot: b, run: format!("run-{name}"), work });
        }
        state.apply(Fact::Failed { run: text("run-fails"), error: text("no folder") });
        state.apply(Fact::Started { run: text("run-runs") });
        let reason = text("busy");
        state.apply(Fact::Missed { schedule: text("misses"), count: 2, last: b, reason });
        let (hook, delivery, run) = (text("h"), text("d"), text("r"));
        state.apply(Fact::Delivery { hook, delivery, at: a, run, work: Some(work()) });
        let mut again = AutomationState::default();
        state.facts().into_iter().for_each(|fact| again.apply(fact));
        assert_eq!(format!("{again:#?}"), format!("{state:#?}"));
    }
}
