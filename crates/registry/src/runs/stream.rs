//! Reading a run from any record on: first its log, then what happens.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use hangar_jobs::record::{RunFact, RunId};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

use super::{RunNews, Runs, WATCHED_QUEUE};
use crate::error::RegistryError;
use crate::frame::{self, SseFrame};
use crate::subscription::SubscriptionEnd;

/// Polling interval of a run's log that another process may write. It is polled only while there is a reader.
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub struct Following {
    runs: Runs,
    run: RunId,
    /// The first record that the reader does not have.
    next: u64,
    /// Offset up to which the log was read.
    offset: u64,
    /// Frames that were read and not yet returned.
    waiting: VecDeque<Bytes>,
    /// Whether the last read reached the end of the log.
    level: bool,
    /// Whether the state of the run was sent since then.
    told: bool,
    /// Whether the end of the run was read.
    ended: bool,
    /// For a run that is carried out here.
    live: Option<broadcast::Receiver<RunNews>>,
    changes: watch::Receiver<u64>,
}

impl Runs {
    /// Records of a run after the given one, then live ones.
    pub fn follow(&self, run: &RunId, after: Option<u64>) -> Result<Following, RegistryError> {
        let last = self.view(run)?.next_seq.saturating_sub(1);
        if after.is_some_and(|after| after > last) {
            return Err(RegistryError::Invalid(format!(
                "the last record of run {run} has the number {last}"
            )));
        }
        Ok(Following {
            runs: self.clone(),
            run: run.clone(),
            next: after.map_or(0, |after| after.saturating_add(1)),
            offset: 0,
            waiting: VecDeque::new(),
            level: false,
            told: false,
            ended: false,
            live: None,
            changes: self.0.active_runs.changes.subscribe(),
        })
    }
}

impl Following {
    /// The next message for a stream.
    pub async fn next(&mut self) -> Result<Bytes, SubscriptionEnd> {
        loop {
            if let Some(message) = self.waiting.pop_front() {
                return Ok(message);
            }
            if !self.level {
                self.catch_up();
                continue;
            }
            let stopping = self.runs.0.hub.stopping().clone();
            let Some(live) = &mut self.live else {
                tokio::select! {
                    () = tokio::time::sleep(LOOK_EVERY), if !self.ended => {}
                    _ = self.changes.changed() => self.told = false,
                    () = stopping.cancelled() => return Err(SubscriptionEnd::Stopping),
                }
                self.level = false;
                continue;
            };
            let told = tokio::select! {
                told = live.recv() => told,
                () = stopping.cancelled() => return Err(SubscriptionEnd::Stopping),
            };
            match told {
                Ok(RunNews::Record(seq, _)) if seq < self.next => {}
                Ok(RunNews::Record(seq, frame)) => {
                    self.next = seq + 1;
                    return Ok(frame.bytes());
                }
                Ok(RunNews::Changed(message)) => return Ok(message),
                Err(RecvError::Lagged(_)) => return Err(SubscriptionEnd::Behind),
                // The run has ended or was left; its log has the rest.
                Err(RecvError::Closed) => {
                    self.live = None;
                    (self.level, self.told) = (false, false);
                }
            }
        }
    }

    /// Reads a part of the log. The subscription to live records starts before, so that none is missed.
    fn catch_up(&mut self) {
        if self.live.is_none() {
            let mut active = self.runs.0.active_runs.runs.lock();
            self.live = active.get_mut(&self.run).map(|active| {
                active.watchers.get_or_insert_with(|| broadcast::channel(WATCHED_QUEUE).0).subscribe()
            });
        }
        // A log that cannot be read tells nothing more.
        let (records, offset) = self.runs.0.store.read_on(&self.run, self.offset).unwrap_or_default();
        self.level = records.is_empty();
        self.offset = self.offset.max(offset);
        for record in &records {
            self.ended |= matches!(record.fact, RunFact::RunEnded { .. });
            if record.seq < self.next {
                continue;
            }
            self.next = record.seq + 1;
            self.told = false;
            if let Ok(json) = serde_json::to_vec(record) {
                self.waiting.push_back(SseFrame::new(Some(record.seq), &json).bytes());
            }
        }
        if self.level
            && !std::mem::replace(&mut self.told, true)
            && let Ok(details) = self.runs.details(&self.run)
        {
            self.waiting.push_back(frame::named("run", &details.run));
        }
    }
}
