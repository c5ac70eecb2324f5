//! What a session asks about the place where it works: its plan, its todos, and whether anything has changed.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use hangar_agent::driver::Surroundings;
use hangar_protocol::data::Commitments;
use hangar_tools::sql::Database;
use tokio::process::Command;

use crate::home::PlanReader;
use crate::workspace::git::Repository;

/// What of a plan is kept before the model, in bytes.
const PLAN_LIMIT: usize = 64 << 10;
/// How long Git may take to say whether anything has changed.
const GIT_LIMIT: Duration = Duration::from_secs(20);

pub(crate) struct Place {
    plan: PlanReader,
    database: Option<Arc<Database>>,
    cwd: PathBuf,
    /// The commit that was checked out when the work began; `None` outside of a repository.
    base: Option<String>,
}

impl Place {
    pub(crate) fn new(
        plan: PlanReader,
        database: Option<Arc<Database>>,
        cwd: &Path,
        repository: Option<&Repository>,
    ) -> Self {
        Self {
            plan,
            database,
            cwd: cwd.to_owned(),
            base: repository.and_then(|repository| repository.head.clone()),
        }
    }
}

impl Surroundings for Place {
    fn commitments(&mut self) -> Commitments {
        let plan = self.plan.read().filter(|plan| !plan.trim().is_empty()).map(|mut plan| {
            plan.truncate(plan.floor_char_boundary(PLAN_LIMIT));
            plan
        });
        let todos = self.database.as_ref().map(|database| database.open_todos()).unwrap_or_default();
        Commitments { plan, todos }
    }

    fn unchanged(&self) -> BoxFuture<'static, bool> {
        let (cwd, base) = (self.cwd.clone(), self.base.clone());
        Box::pin(async move {
            let Some(base) = base else { return false };
            let moved = Repository::find(&cwd).and_then(|repository| repository.head) != Some(base);
            if moved {
                return false;
            }
            let status = Command::new("git")
                .args(["--no-optional-locks", "status", "--porcelain"])
                .current_dir(&cwd)
                .stdin(Stdio::null())
                .stderr(Stdio::null())
                .process_group(0)
                .kill_on_drop(true)
                .output();
            match tokio::time::timeout(GIT_LIMIT, status).await {
                Ok(Ok(output)) => output.status.success() && output.stdout.is_empty(),
                // Without Git nothing is known.
                Ok(Err(_)) | Err(_) => false,
            }
        })
    }
}
