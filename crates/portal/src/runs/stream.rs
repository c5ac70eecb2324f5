//! Reading a run from any record on: first its log, then what happens.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use hangar_jobs::record::RunId;
use hangar_jobs::store::RunStore;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

use super::{Runs, Told, WATCHED_QUEUE, lock};
use crate::frame::{self, Said};
use crate::subscription::Cut;
use crate::trouble::Trouble;

/// How often the log of a run is looked at that another process carries out. Only while somebody reads.
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub struct Following {
    runs: Runs,
    run: RunId,
    /// The first record that the reader does not have.
    next: u64,
    waiting: VecDeque<Bytes>,
    live: Option<broadcast::Receiver<Told>>,
    changes: watch::Receiver<u64>,
    /// Whether how the run is was told since it was last looked at.
    told: bool,
}

impl Runs {
    /// What happens in a run behind a record, and from then on.
    pub fn follow(&self, run: &RunId, after: Option<u64>) -> Result<Following, Trouble> {
        self.view(run)?;
        Ok(Following {
            runs: self.clone(),
            run: run.clone(),
            next: after.map_or(0, |after| after.saturating_add(1)),
            waiting: VecDeque::new(),
            live: None,
            changes: self.0.stage.changes.subscribe(),
            told: false,
        })
    }
}

impl Following {
    /// The next message for a stream.
    pub async fn next(&mut self) -> Result<Bytes, Cut> {
        loop {
            if let Some(message) = self.waiting.pop_front() {
                return Ok(message);
            }
            let stopping = self.runs.0.hub.stopping().clone();
            if let Some(live) = &mut self.live {
                let told = tokio::select! {
                    told = live.recv() => told,
                    () = stopping.cancelled() => return Err(Cut::Stopping),
                };
                match told {
                    Ok(Told::Record(seq, _)) if seq < self.next => {}
                    Ok(Told::Record(seq, said)) => {
                        self.next = seq + 1;
                        return Ok(said.frame());
                    }
                    Ok(Told::Changed(message)) => return Ok(message),
                    Err(RecvError::Lagged(_)) => return Err(Cut::Behind),
                    // The run has ended or was left; its log has the rest.
                    Err(RecvError::Closed) => {
                        self.live = None;
                        self.told = false;
                    }
                }
                continue;
            }
            self.join();
            if !self.waiting.is_empty() || self.live.is_some() {
                continue;
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY), if self.is_elsewhere() => {}
                _ = self.changes.changed() => self.told = false,
                () = stopping.cancelled() => return Err(Cut::Stopping),
            }
        }
    }

    /// Whether another process may be at it.
    fn is_elsewhere(&self) -> bool {
        self.runs.view(&self.run).is_ok_and(|view| view.end.is_none())
    }

    /// Reads what is on record, and listens from there on if the run is carried out here.
    fn join(&mut self) {
        let live = {
            let mut active = lock(&self.runs.0.stage.active);
            active.get_mut(&self.run).map(|active| {
                active.watchers.get_or_insert_with(|| broadcast::channel(WATCHED_QUEUE).0).subscribe()
            })
        };
        let records = self.runs.0.store.read(&self.run).unwrap_or_default();
        let new = records.iter().filter(|record| record.seq >= self.next);
        let mut last = None;
        for record in new {
            if let Ok(json) = serde_json::to_vec(record) {
                self.waiting.push_back(Said::new(Some(record.seq), &json).frame());
            }
            last = Some(record.seq);
        }
        if let Some(last) = last {
            self.next = last + 1;
            self.told = false;
        }
        self.live = live;
        if !std::mem::replace(&mut self.told, true)
            && let Ok(details) = self.runs.details(&self.run)
        {
            self.waiting.push_back(frame::named("run", &details.run));
        }
    }
}
