//! A home with sessions and runs in it.

use std::path::Path;
use std::sync::Arc;

use hangar_jobs::driver::RunEnvironment;
use hangar_jobs::read::{Format, read_entry};
use hangar_jobs::store::FileStore;
use hangar_jobs::validate::validate_entry;
use hangar_registry::hub::{Hub, HubConfig, NewSession};
use hangar_registry::ledger::{Ledger, LedgerConfig};
use hangar_registry::queue::{Scheduler, SchedulerConfig};
use hangar_registry::resource::SessionPolicy;
use hangar_registry::runs::{Runs, RunsConfig};
use hangar_scheduler::limits::Limits;
use hangar_scheduler::retry::RetryPolicy;
use hangar_store::{SessionId, Store};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::fake::{Fake, Machine};

pub(crate) struct Stage {
    home: tempfile::TempDir,
    pub(crate) hub: Hub,
    pub(crate) runs: Runs,
}

const ENTRY: &str = "
models: { driving: m }
tasks:
  waits: { model: { category: driving }, prompt: 'wait', requireUserInput: false }
jobs:
  waits: { work: { kind: Ref, taskId: waits } }
";

impl Stage {
    pub(crate) fn new() -> Self {
        Self::on(tempfile::tempdir().unwrap())
    }

    fn on(home: tempfile::TempDir) -> Self {
        let store = Store::new(home.path());
        let machine = Machine { store: store.clone(), runtimes: vec![Arc::new(Fake::new())] };
        let scheduler = Scheduler::open(SchedulerConfig {
            dir: home.path().join("queue"),
            limits: Limits::global(1),
            retries: RetryPolicy::default().scaled(0.0),
            now: Timestamp::now,
            random: || 0.0,
            zone: TimeZone::UTC,
        });
        let scheduler = scheduler.unwrap();
        let ledger = Ledger::open(LedgerConfig {
            dir: home.path().join("ledger"),
            store: store.clone(),
            runs: FileStore::new(home.path().join("runs")),
            agents: vec!["fake".to_owned()],
            own: "native".to_owned(),
            zone: TimeZone::UTC,
        });
        let ledger = ledger.unwrap();
        let now = Timestamp::now;
        let hub = Hub::new(HubConfig { host: Arc::new(machine), store, scheduler, ledger, fleet: None, now });
        let environment = RunEnvironment {
            variables: Vec::new(),
            git: hangar_git::Git::new(hangar_git::Environment::of(std::env::vars_os())),
            clean: Arc::new(|record| record),
        };
        let store = FileStore::new(home.path().join("runs"));
        let config = RunsConfig { store, job_tools: Some("{}".to_owned()), environment, now: Timestamp::now };
        let runs = Runs::new(hub.clone(), config);
        let entry = read_entry(ENTRY, Format::Yaml, "test:").unwrap();
        runs.install(Path::new("/entry.yaml"), Arc::new(validate_entry(entry, "test:").unwrap()));
        Self { home, hub, runs }
    }

    /// The same home, once the process that had it is gone.
    pub(crate) async fn again(self) -> Self {
        let Self { home, hub, runs } = self;
        hub.close().await;
        drop((hub, runs));
        Self::on(home)
    }

    pub(crate) async fn open(&self, policy: SessionPolicy) -> SessionId {
        let workspace = self.home.path().to_owned();
        let new = NewSession { workspace, policy: Some(policy), ..NewSession::default() };
        self.hub.open(new).await.unwrap().id.parse().unwrap()
    }

    pub(crate) fn workspace(&self) -> &Path {
        self.home.path()
    }
}
