//! The routes under `/api` beside `/api/v1`: sessions, tasks and jobs for clients that poll.
//!
//! A client starts a session, a task or a job, is given an id, and asks again and again what happened to it. What there is to
//! tell is told as callbacks ([`response`]): made from the events of a session ([`callbacks`]) and from the records of a run
//! ([`runs`]), and kept in a log for each ([`live`]), which the client finds by its id ([`table`]).

mod answer;
mod callbacks;
mod entities;
mod install;
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
use answer::Answer;
use entities::Tables;

pub use routes::routes;

/// How long a job or a task that was told to stop is waited for.
const STOPPING_TIME: Duration = Duration::from_secs(10);

/// What the routes are answered from.
pub struct Polling {
    hub: Hub,
    runs: Runs,
    roster: Arc<Roster>,
    tables: Arc<Tables>,
    /// Whether tests may install jobs of their own, and ends are forgotten sooner.
    test: bool,
    repo_root: PathBuf,
    /// Where sessions work that name no directory.
    workspace: PathBuf,
    /// Where `test` folders may be.
    roots: Vec<PathBuf>,
}

impl Polling {
    pub(crate) fn new(hub: Hub, runs: Runs, roster: Arc<Roster>, about: &About) -> Self {
        let About { repo_root, workspace, test, .. } = about.clone();
        let tables = Arc::new(Tables::new(test));
        let roots = vec![repo_root.clone(), workspace.clone()];
        Self { hub, runs, roster, tables, test, repo_root, workspace, roots }
    }

    fn config(&self) -> Answer {
        Answer::Done(json!({ "repoRoot": self.repo_root }))
    }

    /// Ends the server once this has been answered.
    fn stop(&self) -> Answer {
        self.hub.shut_down();
        Answer::Done(json!({}))
    }
}
