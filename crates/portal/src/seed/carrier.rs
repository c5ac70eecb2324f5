//! Carries runs out beside everything else, and has the jobs that there are.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hangar_jobs::driver::{Audience, Controls, Running, StartError, Workshop};
use hangar_jobs::record::{RunOrder, SessionId};
use hangar_jobs::store::RunStore;
use hangar_jobs::validate::ValidEntry;
use hangar_runtimes::runtime::Live;

use crate::hub::Hub;

#[derive(Clone)]
pub struct Runs(Arc<Inner>);

struct Inner {
    hub: Hub,
    store: Arc<dyn RunStore>,
    job_tools: Option<String>,
    entry: Mutex<Option<(PathBuf, Arc<ValidEntry>)>>,
}

impl Runs {
    pub fn new(hub: Hub, store: Arc<dyn RunStore>, job_tools: Option<String>) -> Self {
        Self(Arc::new(Inner { hub, store, job_tools, entry: Mutex::default() }))
    }

    pub(crate) fn job_tools(&self) -> Option<String> {
        self.0.job_tools.clone()
    }

    pub fn entry(&self) -> Option<Arc<ValidEntry>> {
        self.installed().as_ref().map(|(_, entry)| Arc::clone(entry))
    }

    pub fn install(&self, path: PathBuf, entry: Arc<ValidEntry>) {
        *self.installed() = Some((path, entry));
    }

    pub(crate) fn start(&self, order: RunOrder, audience: Arc<dyn Audience>) -> Result<Controls, StartError> {
        Ok(self.carry_out(self.workshop(audience).start(order)?))
    }

    pub(crate) fn start_borrowing(
        &self,
        order: RunOrder,
        (session, live): (SessionId, Live),
        audience: Arc<dyn Audience>,
    ) -> Result<Controls, StartError> {
        Ok(self.carry_out(self.workshop(audience).start_borrowing(order, session, live)?))
    }

    fn workshop(&self, audience: Arc<dyn Audience>) -> Arc<Workshop> {
        Arc::new(Workshop {
            runtimes: self.0.hub.runtimes().to_vec(),
            store: Arc::clone(&self.0.store),
            audience,
            job_tools: self.job_tools(),
            now: jiff::Timestamp::now,
        })
    }

    fn carry_out(&self, running: Running) -> Controls {
        let controls = running.controls();
        let stopping = self.0.hub.stopping().clone();
        self.0.hub.spawn(async move {
            tokio::select! {
                ended = running.to_end() => if let Err(error) = ended {
                    tracing::warn!(%error, "a run could not be written down");
                },
                // It is left to be resumed.
                () = stopping.cancelled() => {}
            }
        });
        controls
    }

    fn installed(&self) -> MutexGuard<'_, Option<(PathBuf, Arc<ValidEntry>)>> {
        self.0.entry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
