//! Runs of jobs: started, followed, stopped and continued. Their tasks work in sessions of the hub.

mod agents;
mod installed;
mod slots;
mod stream;
mod view;

use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use hangar_jobs::driver::{
    Controls, Executor, RunDriver, RunEnvironment, RunListener, RunNotice, RunStartError,
};
use hangar_jobs::prompt_run::{PromptWork, is_prompt, prompt_order};
use hangar_jobs::record::{RunFact, RunId, RunOrder, RunRecord, Subject, TaskSessionId};
use hangar_jobs::store::{FileStore, RunStatus, RunStore, RunStoreError};
use hangar_runtimes::runtime::AgentSession;
use tokio::sync::{broadcast, watch};

use crate::error::RegistryError;
use crate::frame::{self, SseFrame};
use crate::hub::{BadWorkspace, Hub};
pub use agents::hub_runtimes;
pub use slots::HubSlots;
use view::RunView;

pub use installed::{InstalledJobs, JobsView};
pub use stream::Following;
pub use view::{DecisionView, Run, RunDetails, RunState, SessionView, WorkState, WorkView};

/// Capacity of a subscriber's queue of records.
const WATCHED_QUEUE: usize = 1024;
/// Runs that have ended and whose views are kept.
const KEPT: usize = 256;

/// Configuration of the runs.
pub struct RunsConfig {
    pub store: FileStore,
    /// An MCP configuration that offers the job tools.
    pub job_tools: Option<String>,
    pub environment: RunEnvironment,
    pub now: fn() -> jiff::Timestamp,
}

#[derive(Clone)]
pub struct Runs(Arc<Inner>);

struct Inner {
    hub: Hub,
    store: FileStore,
    executor: Arc<Executor>,
    active_runs: Arc<ActiveRuns>,
    installed: Mutex<Option<InstalledJobs>>,
}

/// Active runs and their listeners.
struct ActiveRuns {
    hub: Hub,
    runs: Mutex<HashMap<RunId, ActiveRun>>,
    /// Runs that are being resumed, so that only one caller resumes each.
    resuming: Mutex<HashSet<RunId>>,
    ended: Mutex<HashMap<RunId, Arc<RunView>>>,
    /// Changes when a run becomes active or inactive.
    changes: watch::Sender<u64>,
}

struct ActiveRun {
    view: RunView,
    controls: Option<Controls>,
    watchers: Option<broadcast::Sender<RunNews>>,
}

impl ActiveRun {
    fn new(view: RunView) -> Self {
        Self { view, controls: None, watchers: None }
    }
}

/// Removes the run from `resuming` when dropped.
struct Resuming<'a> {
    active_runs: &'a ActiveRuns,
    run: &'a RunId,
}

impl Drop for Resuming<'_> {
    fn drop(&mut self) {
        self.active_runs.resuming.lock().remove(self.run);
    }
}

/// Listeners of one run: those of all runs, and the one that it was started with.
struct Hearers {
    active_runs: Arc<ActiveRuns>,
    listener: Option<Arc<dyn RunListener>>,
}

impl RunListener for Hearers {
    fn hear(&self, run: &RunId, notice: RunNotice<'_>) {
        if let RunNotice::Record(record) = notice {
            self.active_runs.record(run, record);
        }
        if let Some(listener) = &self.listener {
            listener.hear(run, notice);
        }
    }
}

/// Update about a run.
#[derive(Debug, Clone)]
pub(crate) enum RunNews {
    Record(u64, SseFrame),
    Changed(Bytes),
}

impl Runs {
    pub fn new(hub: Hub, config: RunsConfig) -> Self {
        let active_runs = Arc::new(ActiveRuns {
            hub: hub.clone(),
            runs: Mutex::default(),
            resuming: Mutex::default(),
            ended: Mutex::default(),
            changes: watch::Sender::new(0),
        });
        let executor = Arc::new(Executor {
            runtimes: hub_runtimes(&hub),
            store: Arc::new(config.store.clone()),
            slots: Arc::new(HubSlots::new(&hub)),
            job_tools: config.job_tools,
            environment: config.environment,
            now: config.now,
        });
        forget_ended(&hub, &config.store);
        obey_stops(&hub, &active_runs);
        Self(Arc::new(Inner { hub, store: config.store, executor, active_runs, installed: Mutex::default() }))
    }

    /// The MCP configuration that offers the job tools.
    pub fn job_tools(&self) -> Option<String> {
        self.0.executor.job_tools.clone()
    }

    pub fn hub(&self) -> &Hub {
        &self.0.hub
    }

    // ---- starting and stopping ----

    /// Starts a job that is installed.
    pub fn start_job(
        &self,
        name: &str,
        input: String,
        workspace: PathBuf,
        agent: Option<String>,
    ) -> Result<RunDetails, RegistryError> {
        let entry = self.entry().ok_or(RegistryError::NoEntry)?;
        let job = entry.jobs.get(name).ok_or_else(|| RegistryError::NoJob(name.to_owned()))?;
        if job.require_user_input == Some(true) && input.trim().is_empty() {
            return Err(RegistryError::Unprocessable(format!(
                "the job `{name}` needs input: give an `input`"
            )));
        }
        let order = RunOrder {
            subject: Subject::Job { name: name.to_owned() },
            input,
            working_directory: workspace,
            runtime: agent,
            entry,
        };
        self.check_workspace(&order).map_err(|bad| bad.of(&order.working_directory))?;
        let run = self.begin(None, |executor, hearers| executor.start(order, hearers))?.0;
        self.details(&run)
    }

    /// Starts a run of one prompt. It waits for its slot in the queue like a job.
    pub fn start_prompt(&self, work: PromptWork) -> Result<RunDetails, RegistryError> {
        if work.prompt.trim().is_empty() {
            return Err(RegistryError::Unprocessable("the prompt is empty".to_owned()));
        }
        let order = prompt_order(work).map_err(|error| RegistryError::Unprocessable(error.to_string()))?;
        self.check_workspace(&order).map_err(|bad| bad.of(&order.working_directory))?;
        let run = self.begin(None, |executor, hearers| executor.start(order, hearers))?.0;
        self.details(&run)
    }

    /// Checks that the agents of a run can work in its directory, as far as this machine can tell.
    pub fn check_workspace(&self, order: &RunOrder) -> Result<(), BadWorkspace> {
        let hub = &self.0.hub;
        let runtimes = order.runtimes();
        let default = hub.default_runtime();
        let names = runtimes.iter().map(|name| name.unwrap_or(&default));
        hub.check_workspace(&order.working_directory, names)
    }

    /// Starts a run with a listener.
    pub fn start(
        &self,
        order: RunOrder,
        listener: Arc<dyn RunListener>,
    ) -> Result<(RunId, Controls), RegistryError> {
        self.begin(Some(listener), |executor, hearers| executor.start(order, hearers))
    }

    /// Starts a run under an id that was chosen before, such as one that a schedule has put on record.
    pub fn start_as(&self, run: RunId, order: RunOrder) -> Result<(), RegistryError> {
        self.begin(None, |executor, hearers| executor.start_as(run, order, hearers)).map(drop)
    }

    /// Starts a task in a session that stays its owner's.
    pub fn start_borrowing(
        &self,
        order: RunOrder,
        session: (TaskSessionId, AgentSession),
        listener: Arc<dyn RunListener>,
    ) -> Result<(RunId, Controls), RegistryError> {
        self.begin(Some(listener), |executor, hearers| executor.start_borrowing(order, session, hearers))
    }

    /// Continues a run whose process ended.
    pub fn resume(&self, run: &RunId) -> Result<RunDetails, RegistryError> {
        let active_runs = &self.0.active_runs;
        let under_way = || RegistryError::RunUnderWay(run.0.clone());
        let _resuming = active_runs.resuming(run).ok_or_else(under_way)?;
        if self.is_active(run) {
            return Err(under_way());
        }
        let view = self.view(run)?;
        if view.end.is_some() {
            return Err(RegistryError::RunEnded(run.0.clone()));
        }
        active_runs.runs.lock().insert(run.clone(), ActiveRun::new(RunView::clone(&view)));
        let begun = self.begin(None, |executor, hearers| executor.resume(run, hearers));
        if begun.is_err() {
            active_runs.leave(run);
        }
        begun?;
        self.details(run)
    }

    /// Continues the prompts in the queue whose process has ended. Jobs are left to the people who started them.
    pub fn resume_prompts(&self) {
        for run in self.0.hub.scheduler().runs().into_iter().map(RunId) {
            let interrupted =
                self.0.store.look(&run).is_some_and(|summary| summary.status == RunStatus::Interrupted);
            if interrupted
                && self.order(&run).is_ok_and(|order| is_prompt(&order))
                && let Err(error) = self.resume(&run)
            {
                tracing::warn!(%run, %error, "the queued prompt cannot be continued");
            }
        }
    }

    /// The order that a run was started with.
    fn order(&self, run: &RunId) -> Result<RunOrder, RegistryError> {
        let records = self.0.store.read(run).map_err(|error| unread(run, &error))?;
        let order = records.into_iter().next().and_then(|record| match record.fact {
            RunFact::RunStarted { order, .. } => Some(order),
            _ => None,
        });
        order.ok_or_else(|| RegistryError::NoRun(run.0.clone()))
    }

    /// Starts the same again.
    pub fn retry(&self, run: &RunId) -> Result<RunDetails, RegistryError> {
        let order = self.order(run)?;
        if matches!(order.subject, Subject::Task { borrowed_session: Some(_), .. }) {
            return Err(RegistryError::Unprocessable(
                "the task worked in a session of somebody else; start it there again".to_owned(),
            ));
        }
        let run = self.begin(None, |executor, hearers| executor.start(order, hearers))?.0;
        self.details(&run)
    }

    pub async fn stop(&self, run: &RunId) -> Result<RunDetails, RegistryError> {
        let controls = self.0.active_runs.runs.lock().get(run).and_then(|active| active.controls.clone());
        match controls {
            Some(controls) => controls.stop().await,
            None if self.view(run)?.end.is_some() => return Err(RegistryError::RunEnded(run.0.clone())),
            None => {
                return Err(RegistryError::Unprocessable(format!("run {run} is not carried out here")));
            }
        }
        self.details(run)
    }

    /// Removes the record of a run that is not carried out by any process. Its sessions stay.
    pub fn delete(&self, run: &RunId) -> Result<(), RegistryError> {
        if self.is_under_way(run) {
            return Err(RegistryError::RunUnderWay(run.0.clone()));
        }
        self.0.store.delete(run).map_err(|error| unread(run, &error))?;
        self.0.hub.scheduler().withdraw_run(&run.0);
        self.0.active_runs.ended.lock().remove(run);
        self.0.hub.announce("gone", &serde_json::json!({ "kind": "run", "id": run.0 }));
        Ok(())
    }

    fn begin(
        &self,
        listener: Option<Arc<dyn RunListener>>,
        start: impl FnOnce(&Arc<Executor>, Arc<dyn RunListener>) -> Result<RunDriver, RunStartError>,
    ) -> Result<(RunId, Controls), RegistryError> {
        if self.0.hub.stopping().is_cancelled() {
            return Err(RegistryError::Stopping);
        }
        let active_runs = &self.0.active_runs;
        let hearers = Arc::new(Hearers { active_runs: Arc::clone(active_runs), listener });
        let running = start(&self.0.executor, hearers).map_err(refused)?;
        let (run, controls) = (running.run().clone(), running.controls());
        if let Some(active) = active_runs.runs.lock().get_mut(&run) {
            active.controls = Some(controls.clone());
        }
        active_runs.changes.send_modify(|changes| *changes += 1);
        let (hub, active_runs, id) = (self.0.hub.clone(), Arc::clone(active_runs), run.clone());
        self.0.hub.spawn(async move {
            // A run that is interrupted by the shutdown can be resumed.
            tokio::select! {
                ended = running.to_end() => if let Err(error) = ended {
                    tracing::error!(run = %id, %error, "the run could not be put on record");
                },
                () = hub.stopping().cancelled() => {}
            }
            active_runs.leave(&id);
        });
        Ok((run, controls))
    }

    // ---- looking ----

    pub fn list(&self, limit: usize, before: Option<&str>) -> Result<Vec<Run>, RegistryError> {
        let page =
            self.0.store.page(before, limit).map_err(|error| RegistryError::Store(error.to_string()))?;
        let runs = page.into_iter().filter_map(|summary| {
            let view = self.view(&summary.run).ok()?;
            let mut run = view.run(summary.status == RunStatus::Running || self.is_active(&summary.run));
            if view.end.is_none() {
                view.explain(&mut run, &self.0.hub.scheduler().reasons(&summary.run.0));
            }
            Some(run)
        });
        Ok(runs.collect())
    }

    pub fn details(&self, run: &RunId) -> Result<RunDetails, RegistryError> {
        let view = self.view(run)?;
        let mut details = view.details(self.is_under_way(run));
        view.explain(&mut details.run, &self.0.hub.scheduler().reasons(&run.0));
        Ok(details)
    }

    fn is_active(&self, run: &RunId) -> bool {
        self.0.active_runs.runs.lock().contains_key(run)
    }

    fn is_under_way(&self, run: &RunId) -> bool {
        self.is_active(run)
            || self.0.store.look(run).is_some_and(|summary| summary.status == RunStatus::Running)
    }

    fn view(&self, run: &RunId) -> Result<Arc<RunView>, RegistryError> {
        let active_runs = &self.0.active_runs;
        if let Some(active) = active_runs.runs.lock().get(run) {
            return Ok(Arc::new(active.view.clone()));
        }
        if let Some(view) = active_runs.ended.lock().get(run) {
            return Ok(Arc::clone(view));
        }
        let records = self.0.store.read(run).map_err(|error| unread(run, &error))?;
        let view = RunView::fold(&records).ok_or_else(|| RegistryError::NoRun(run.0.clone()))?;
        let view = Arc::new(view);
        if view.end.is_some() {
            active_runs.keep(run, Arc::clone(&view));
        }
        Ok(view)
    }
}

impl ActiveRuns {
    fn keep(&self, run: &RunId, view: Arc<RunView>) {
        let mut ended = self.ended.lock();
        if ended.len() >= KEPT
            && let Some(any) = ended.keys().next().cloned()
        {
            ended.remove(&any);
        }
        ended.insert(run.clone(), view);
    }

    /// Claims the resumption of a run. `None` if another caller has claimed it.
    fn resuming<'a>(&'a self, run: &'a RunId) -> Option<Resuming<'a>> {
        self.resuming.lock().insert(run.clone()).then(|| Resuming { active_runs: self, run })
    }

    /// Removes the run from those that are carried out here.
    fn leave(&self, run: &RunId) {
        let Some(active) = self.runs.lock().remove(run) else { return };
        let shown = active.view.run(false);
        if active.view.end.is_some() {
            self.keep(run, Arc::new(active.view));
        }
        self.hub.announce("run", &shown);
        let reason = || shown.reason.clone().unwrap_or_else(|| "A task has failed.".to_owned());
        match shown.state {
            RunState::Succeeded => self.hub.notify_run(&run.0, &shown.job, &shown.workspace, None),
            RunState::Failed | RunState::Limited => {
                self.hub.notify_run(&run.0, &shown.job, &shown.workspace, Some(&reason()));
            }
            // A person stopped it, or the process ends.
            RunState::Running | RunState::Canceled | RunState::Interrupted => {}
        }
        if let Some(watchers) = active.watchers {
            let _ = watchers.send(RunNews::Changed(frame::named("run", &shown)));
        }
        self.changes.send_modify(|changes| *changes += 1);
    }

    fn record(&self, run: &RunId, record: &RunRecord) {
        let mut all = self.runs.lock();
        if let RunFact::RunStarted { .. } = &record.fact {
            let Some(view) = RunView::begin(record) else { return };
            all.insert(run.clone(), ActiveRun::new(view));
        }
        let Some(active) = all.get_mut(run) else { return };
        if !matches!(record.fact, RunFact::RunStarted { .. }) {
            active.view.apply(record);
        }
        let shown = active.view.run(true);
        if let Some(watchers) = active.watchers.take_if(|watchers| watchers.receiver_count() == 0) {
            drop(watchers);
        }
        if let Some(watchers) = &active.watchers
            && let Ok(json) = serde_json::to_vec(record)
        {
            let _ = watchers.send(RunNews::Record(record.seq, SseFrame::new(Some(record.seq), &json)));
            let _ = watchers.send(RunNews::Changed(frame::named("run", &shown)));
        }
        drop(all);
        self.hub.announce("run", &shown);
    }
}

/// Removes work of runs that have ended from the queue: their process was killed before it could.
pub fn forget_ended(hub: &Hub, store: &FileStore) {
    hub.scheduler().forget(|item| {
        let Some(run) = &item.run else { return false };
        let status = store.look(&RunId(run.clone())).map(|summary| summary.status);
        !matches!(status, Some(RunStatus::Running | RunStatus::Interrupted))
    });
}

/// Stops all runs of this process, and the turns that no run holds, whenever everything is told to stop.
fn obey_stops(hub: &Hub, active_runs: &Arc<ActiveRuns>) {
    let (stopping, active_runs) = (hub.clone(), Arc::downgrade(active_runs));
    hub.spawn(async move {
        loop {
            tokio::select! {
                () = stopping.scheduler().stopped() => {}
                () = stopping.stopping().cancelled() => return,
            }
            let Some(active_runs) = active_runs.upgrade() else { return };
            let controls: Vec<Controls> =
                active_runs.runs.lock().values().filter_map(|active| active.controls.clone()).collect();
            drop(active_runs);
            for controls in controls {
                controls.stop().await;
            }
            stopping.abort_all().await;
        }
    });
}

fn unread(run: &RunId, error: &RunStoreError) -> RegistryError {
    match error {
        RunStoreError::NotFound(_) => RegistryError::NoRun(run.0.clone()),
        other => RegistryError::Store(other.to_string()),
    }
}

fn refused(error: RunStartError) -> RegistryError {
    match error {
        RunStartError::Ended(run) => RegistryError::RunEnded(run.0),
        RunStartError::Store(RunStoreError::Busy(run)) => RegistryError::RunUnderWay(run.0),
        RunStartError::Store(RunStoreError::NotFound(run)) => RegistryError::NoRun(run.0),
        RunStartError::Store(error) => RegistryError::Store(error.to_string()),
        other => RegistryError::Unprocessable(other.to_string()),
    }
}
