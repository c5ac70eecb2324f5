//! What a session asks about the place where it works: its plan, its todos, and whether anything has changed.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use futures_util::future::BoxFuture;
use hangar_agent::driver::Surroundings;
use hangar_protocol::data::Commitments;
use tokio::process::Command;

use crate::workspace::git::Repository;

/// What of a plan is kept before the model, in bytes.
const PLAN_LIMIT: usize = 64 << 10;
/// How long Git may take to say whether anything has changed.
const GIT_LIMIT: Duration = Duration::from_secs(20);

pub(crate) struct Place {
    session_dir: PathBuf,
    cwd: PathBuf,
    /// The commit that was checked out when the work began; `None` outside of a repository.
    base: Option<String>,
}

impl Place {
    pub(crate) fn new(session_dir: &Path, cwd: &Path, repository: Option<&Repository>) -> Self {
        Self {
            session_dir: session_dir.to_owned(),
            cwd: cwd.to_owned(),
            base: repository.and_then(|repository| repository.head.clone()),
        }
    }
}

impl Surroundings for Place {
    fn commitments(&mut self) -> Commitments {
        let plan = std::fs::read_to_string(self.session_dir.join("plan.md")).ok();
        let plan = plan.filter(|plan| !plan.trim().is_empty()).map(|mut plan| {
            plan.truncate(plan.floor_char_boundary(PLAN_LIMIT));
            plan
        });
        Commitments { plan, todos: hangar_tools::sql::open_todos(&self.session_dir.join("session.db")) }
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
