//! The routes under `/api` beside `/api/v1`: sessions, tasks and jobs for clients that poll.
//!
//! A client starts a session, a task or a job, is given an id, and asks again and again what happened to it. What there is to
//! tell is told as callbacks ([`response`]): made from the events of a session ([`callbacks`]) and from the records of a run
//! ([`runs`]), and kept in a log for each ([`live`]), which the client finds by its id ([`table`]).

mod answer;
mod callbacks;
mod entities;
mod install;
mod item;
mod jobs;
mod live;
mod response;
mod routes;
mod runs;
mod sessions;
mod table;
mod tasks;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hangar_registry::hub::Hub;
use hangar_registry::runs::Runs;
use serde_json::json;

use crate::api::About;
use crate::roster::Roster;
use answer::PollingResponse;
use entities::PolledTables;

pub use routes::routes;

/// Longest wait for a job or a task that was told to stop.
const STOPPING_TIME: Duration = Duration::from_secs(10);

/// State behind the routes.
pub struct Polling {
    hub: Hub,
    runs: Runs,
    roster: Arc<Roster>,
    tables: Arc<PolledTables>,
    /// Whether tests may install jobs of their own, and ended items are removed sooner.
    test: bool,
    repo_root: PathBuf,
    /// Default working directory of sessions.
    workspace: PathBuf,
    /// Directories that may contain `test` directories.
    roots: Vec<PathBuf>,
}

impl Polling {
    pub(crate) fn new(hub: Hub, runs: Runs, roster: Arc<Roster>, about: &About) -> Self {
        let About { repo_root, workspace, test, .. } = about.clone();
        let tables = Arc::new(PolledTables::new(test));
        let roots = vec![repo_root.clone(), workspace.clone()];
        Self { hub, runs, roster, tables, test, repo_root, workspace, roots }
    }

    fn config(&self) -> PollingResponse {
        PollingResponse::Done(json!({ "repoRoot": self.repo_root }))
    }

    /// Ends the server once this has been answered.
    fn stop(&self) -> PollingResponse {
        self.hub.shut_down();
        PollingResponse::Done(json!({}))
    }
}
