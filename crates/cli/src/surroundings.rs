//! What a session asks about the place where it works: its plan, its todos, and whether anything has changed.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use hangar_agent::driver::Surroundings;
use hangar_protocol::data::Commitments;
use hangar_sandbox::Sandbox;
use hangar_tools::sql::Database;
use tokio::io::AsyncReadExt;
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
    /// What confines the session's commands: what they left in the repository's settings, Git would run for us.
    sandbox: Option<Sandbox>,
}

impl Place {
    pub(crate) fn new(
        plan: PlanReader,
        database: Option<Arc<Database>>,
        cwd: &Path,
        repository: Option<&Repository>,
        sandbox: Option<Sandbox>,
    ) -> Self {
        Self {
            plan,
            database,
            cwd: cwd.to_owned(),
            base: repository.and_then(|repository| repository.head.clone()),
            sandbox,
        }
    }
}

impl Surroundings for Place {
    fn commitments(&mut self) -> Commitments {
        let plan = self.plan.read().filter(|plan| !plan.trim().is_empty()).map(|mut plan| {
            let left_out = plan.len().saturating_sub(PLAN_LIMIT);
            if left_out > 0 {
                plan.truncate(plan.floor_char_boundary(PLAN_LIMIT));
                plan.push_str(&format!(
                    "\n[{left_out} bytes left out; plan.md in the session folder has them]"
                ));
            }
            plan
        });
        let todos = self.database.as_ref().map(|database| database.open_todos()).unwrap_or_default();
        Commitments { plan, todos }
    }

    fn unchanged(&self) -> BoxFuture<'static, bool> {
        let (cwd, base) = (self.cwd.clone(), self.base.clone());
        let git = Command::from(hangar_sandbox::command(self.sandbox.as_ref(), "git"));
        Box::pin(async move {
            let Some(base) = base else { return false };
            let moved = Repository::find(&cwd).and_then(|repository| repository.head) != Some(base);
            if moved {
                return false;
            }
            // Without Git, or with one that takes too long, nothing is known.
            matches!(tokio::time::timeout(GIT_LIMIT, is_clean(git, &cwd)).await, Ok(Ok(true)))
        })
    }
}

/// Whether the working tree is as it was checked out. The first change that is told is enough to know that it is not.
async fn is_clean(mut git: Command, cwd: &Path) -> io::Result<bool> {
    let mut child = git
        .args(["--no-optional-locks", "-c", "core.fsmonitor=false", "status", "--porcelain"])
        .current_dir(cwd)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    if let Some(mut changes) = child.stdout.take()
        && changes.read(&mut [0]).await? > 0
    {
        return Ok(false);
    }
    Ok(child.wait().await?.success())
}
