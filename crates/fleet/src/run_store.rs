//! Records of runs on the servers: one log each, with one writer, behind the trait that the files of a home have.
//!
//! The trait waits, as files do, so the connection has a runtime of its own. A run whose process was killed can be taken over when its
//! heartbeat is older than a lease.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc;

use hangar_jobs::record::{RunFact, RunId, RunRecord, Subject};
use hangar_jobs::store::{BrokenAt, RunLog, RunStatus, RunStore, RunStoreError, RunSummary};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::task::AbortHandle;

use crate::claim::LogClaim;
use crate::facts::FleetFact;
use crate::log::{self, LogEntry, LogItem};
use crate::order::OrderId;
use crate::record::FleetRecord;
use crate::{Broker, FleetError, FleetSettings};

/// Largest record, in bytes.
const MAX_RECORD: usize = 16 << 20;

/// Runs of a fleet.
pub struct FleetRunStore {
    runtime: Arc<Background>,
    broker: Broker,
    /// Name of this process in claims.
    owner: String,
    /// Directory of what runs make beside their work.
    scratch: PathBuf,
}

/// A runtime that may be dropped anywhere.
struct Background(Option<tokio::runtime::Runtime>);

impl Background {
    /// Carries a future out there, and waits for it here.
    fn wait<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, FleetError>> + Send + 'static,
    ) -> Result<T, FleetError> {
        let gone = || FleetError::Failed {
            doing: "asking the servers".to_owned(),
            why: "the process ends".to_owned(),
        };
        let runtime = self.0.as_ref().ok_or_else(gone)?;
        let (answer, answered) = mpsc::sync_channel(1);
        runtime.spawn(async move { answer.send(work.await) });
        answered.recv().map_err(|_| gone())?
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// A run as lists show it, and the heartbeat of its process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunListing {
    run: RunId,
    subject: Subject,
    working_directory: PathBuf,
    #[serde(with = "crate::time")]
    started: Timestamp,
    #[serde(with = "crate::time")]
    last: Timestamp,
    /// End of the run in a word; absent while it is not over.
    end: Option<RunOver>,
    /// Process that carries it out.
    owner: String,
    /// Heartbeat of that process; absent once it has let go.
    #[serde(default, with = "crate::time::optional")]
    beat: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum RunOver {
    Succeeded,
    Failed,
    Canceled,
    LimitReached,
    Interrupted,
}

impl FleetFact for RunListing {
    const KIND: &'static str = "run";

    fn id(&self) -> &str {
        &self.run.0
    }
}

impl RunListing {
    fn status(&self, lease: std::time::Duration) -> RunStatus {
        match self.end {
            Some(RunOver::Succeeded) => RunStatus::Succeeded,
            Some(RunOver::Failed) => RunStatus::Failed,
            Some(RunOver::Canceled) => RunStatus::Canceled,
            Some(RunOver::LimitReached) => RunStatus::LimitReached,
            Some(RunOver::Interrupted) => RunStatus::Interrupted,
            None if self.is_alive(lease) => RunStatus::Running,
            None => RunStatus::Interrupted,
        }
    }

    fn is_alive(&self, lease: std::time::Duration) -> bool {
        self.beat.is_some_and(|beat| Timestamp::now() < beat + lease)
    }
}

impl FleetRunStore {
    /// Connects. Must not be called where blocking is not allowed.
    pub fn connect(settings: FleetSettings, owner: &str, scratch: PathBuf) -> Result<Self, FleetError> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| FleetError::failed("starting the runtime", &error))?;
        let runtime = Arc::new(Background(Some(runtime)));
        let name = format!("hangar runs of {owner}");
        let broker = runtime.wait(async move { Broker::connect(settings, &name).await })?;
        Ok(Self { runtime, broker, owner: owner.to_owned(), scratch })
    }

    fn wait<T: Send + 'static>(
        &self,
        run: &RunId,
        work: impl Future<Output = Result<T, FleetError>> + Send + 'static,
    ) -> Result<T, RunStoreError> {
        self.runtime.wait(work).map_err(|error| failed(run, &error))
    }

    fn log(
        &self,
        run: &RunId,
        claim: LogClaim,
        listing: Option<RunListing>,
    ) -> Result<Box<dyn RunLog>, RunStoreError> {
        let scratch = self.scratch.join(&run.0);
        hangar_disk::ensure_dir(&scratch).map_err(|source| RunStoreError::Io {
            doing: "creating",
            path: scratch.clone(),
            source,
        })?;
        let (runtime, broker) = (Arc::clone(&self.runtime), self.broker.clone());
        let mut log = FleetRunLog {
            runtime,
            broker,
            claim,
            run: run.clone(),
            owner: self.owner.clone(),
            scratch,
            listing: None,
            beating: None,
        };
        if let Some(listing) = listing {
            log.show(RunListing {
                owner: self.owner.clone(),
                beat: Some(Timestamp::now()),
                end: None,
                ..listing
            })?;
        }
        Ok(Box::new(log))
    }
}

fn failed(run: &RunId, error: &FleetError) -> RunStoreError {
    match error {
        FleetError::Moved { .. } => RunStoreError::Busy(run.clone()),
        error => RunStoreError::Remote { run: run.clone(), why: error.to_string() },
    }
}

fn subject(broker: &Broker, run: &RunId) -> Result<String, RunStoreError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match !run.0.is_empty() && run.0.len() <= 128 && run.0.chars().all(plain) {
        true => Ok(broker.subject(&format!("log.run.{run}"))),
        false => Err(RunStoreError::NotFound(run.clone())),
    }
}

/// The records of a log.
fn records(run: &RunId, entries: &[LogEntry]) -> Result<Vec<RunRecord>, RunStoreError> {
    let mut records = Vec::new();
    for entry in entries {
        let LogItem::Events(lines) = &entry.item else { continue };
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let record = serde_json::from_slice(line).map_err(|error| RunStoreError::Corrupt {
                run: run.clone(),
                place: BrokenAt::Line(records.len() + 1),
                why: error.to_string(),
            })?;
            records.push(record);
        }
    }
    Ok(records)
}

impl RunStore for FleetRunStore {
    fn create(&self, run: &RunId) -> Result<Box<dyn RunLog>, RunStoreError> {
        let subject = subject(&self.broker, run)?;
        let (broker, claimed) = (self.broker.clone(), claimed(&self.owner, run));
        let claim = self.wait(run, async move { LogClaim::take(&broker, subject, 0, &claimed).await })?;
        self.log(run, claim, None)
    }

    fn open(&self, run: &RunId) -> Result<(Vec<RunRecord>, Box<dyn RunLog>), RunStoreError> {
        let subject = subject(&self.broker, run)?;
        let (broker, id) = (self.broker.clone(), run.0.clone());
        let listing = self.wait(run, async move { broker.fact_now::<RunListing>(&id).await })?.0;
        if listing.as_ref().is_some_and(|listing| listing.is_alive(self.broker.settings().lease)) {
            return Err(RunStoreError::Busy(run.clone()));
        }
        let (broker, place) = (self.broker.clone(), subject.clone());
        let entries = self.wait(run, async move { log::read(&broker, &place).await })?;
        let Some(last) = entries.last().map(|entry| entry.seq) else {
            return Err(RunStoreError::NotFound(run.clone()));
        };
        let records = records(run, &entries)?;
        let (broker, claimed) = (self.broker.clone(), claimed(&self.owner, run));
        let claim = self.wait(run, async move { LogClaim::take(&broker, subject, last, &claimed).await })?;
        Ok((records, self.log(run, claim, listing)?))
    }

    fn read(&self, run: &RunId) -> Result<Vec<RunRecord>, RunStoreError> {
        let subject = subject(&self.broker, run)?;
        let broker = self.broker.clone();
        let entries = self.wait(run, async move { log::read(&broker, &subject).await })?;
        match entries.is_empty() {
            true => Err(RunStoreError::NotFound(run.clone())),
            false => records(run, &entries),
        }
    }

    fn list(&self, most: usize) -> Result<Vec<RunSummary>, RunStoreError> {
        let (broker, lease) = (self.broker.clone(), self.broker.settings().lease);
        let none = RunId("*".to_owned());
        let mut all = self.wait(&none, async move { broker.facts::<RunListing>().await })?;
        all.sort_unstable_by(|a, b| b.run.cmp(&a.run));
        let summary = |listing: RunListing| RunSummary {
            status: listing.status(lease),
            run: listing.run,
            subject: listing.subject,
            working_directory: listing.working_directory,
            started: listing.started,
            last: listing.last,
        };
        Ok(all.into_iter().take(most).map(summary).collect())
    }
}

fn claimed(owner: &str, run: &RunId) -> FleetRecord {
    FleetRecord::Claimed {
        worker: owner.to_owned(),
        order: OrderId(run.0.clone()),
        delivery: 0,
        at: Timestamp::now(),
    }
}

/// The log of a run, with its one writer.
struct FleetRunLog {
    runtime: Arc<Background>,
    broker: Broker,
    claim: LogClaim,
    run: RunId,
    owner: String,
    scratch: PathBuf,
    listing: Option<RunListing>,
    /// Task that publishes the heartbeat.
    beating: Option<AbortHandle>,
}

impl FleetRunLog {
    /// Publishes what lists show, and goes on with the heartbeat.
    fn show(&mut self, listing: RunListing) -> Result<(), RunStoreError> {
        if let Some(beating) = self.beating.take() {
            beating.abort();
        }
        let (broker, fact) = (self.broker.clone(), listing.clone());
        let put = self.runtime.wait(async move { broker.put_fact(&fact).await });
        put.map_err(|error| failed(&self.run, &error))?;
        if listing.end.is_none()
            && let Some(runtime) = &self.runtime.0
        {
            let (broker, mut fact) = (self.broker.clone(), listing.clone());
            let over = self.claim.over().clone();
            let beats = async move {
                loop {
                    tokio::select! {
                        () = tokio::time::sleep(broker.settings().lease / 3) => {}
                        () = over.cancelled() => return,
                    }
                    fact.beat = Some(Timestamp::now());
                    if let Err(error) = broker.put_fact(&fact).await {
                        tracing::warn!(%error, run = %fact.run, "the heartbeat of a run could not be published");
                    }
                }
            };
            self.beating = Some(runtime.spawn(beats).abort_handle());
        }
        self.listing = Some(listing);
        Ok(())
    }

    /// What lists show after a record, if that changes.
    fn listing_after(&self, record: &RunRecord) -> Option<RunListing> {
        match (&record.fact, &self.listing) {
            (RunFact::RunStarted { order, .. }, _) => Some(RunListing {
                run: self.run.clone(),
                subject: order.subject.clone(),
                working_directory: order.working_directory.clone(),
                started: record.at,
                last: record.at,
                end: None,
                owner: self.owner.clone(),
                beat: Some(Timestamp::now()),
            }),
            (RunFact::RunEnded { end }, Some(listing)) => {
                let end = match RunStatus::from(end) {
                    RunStatus::Succeeded => RunOver::Succeeded,
                    RunStatus::Canceled => RunOver::Canceled,
                    RunStatus::LimitReached => RunOver::LimitReached,
                    RunStatus::Interrupted | RunStatus::Running => RunOver::Interrupted,
                    RunStatus::Failed => RunOver::Failed,
                };
                Some(RunListing { end: Some(end), last: record.at, beat: None, ..listing.clone() })
            }
            _ => None,
        }
    }
}

impl RunLog for FleetRunLog {
    fn append(&mut self, record: &RunRecord) -> Result<(), RunStoreError> {
        let mut line = serde_json::to_vec(record)
            .map_err(|error| RunStoreError::Remote { run: self.run.clone(), why: error.to_string() })?;
        line.push(b'\n');
        if line.len() > MAX_RECORD {
            return Err(RunStoreError::Full(self.run.clone()));
        }
        let run = self.run.clone();
        self.claim.append_lines(&line).map_err(|error| failed(&run, &error))?;
        // A record is there before anything follows from it.
        if let Some(settled) = self.claim.settled() {
            self.runtime.wait(settled).map_err(|error| failed(&run, &error))?;
        }
        match self.listing_after(record) {
            Some(listing) => self.show(listing),
            None => Ok(()),
        }
    }

    fn scratch(&self) -> &Path {
        &self.scratch
    }
}

impl Drop for FleetRunLog {
    fn drop(&mut self) {
        if let Some(beating) = self.beating.take() {
            beating.abort();
        }
        self.claim.give_up("the process has let go of the run");
        // Whoever takes it over need not wait for the lease.
        if let Some(listing) = self.listing.take().filter(|listing| listing.end.is_none()) {
            let (broker, free) = (self.broker.clone(), RunListing { beat: None, ..listing });
            let _ = self.runtime.wait(async move { broker.put_fact(&free).await });
        }
    }
}
