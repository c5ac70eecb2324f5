//! State of a session's work: its plan, its todos, and whether the working tree has changed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use hangar_agent::driver::Surroundings;
use hangar_files::SessionFiles;
use hangar_git::{CallLimits, Filters, Git, GitError};
use hangar_protocol::data::PlanAndTodos;
use hangar_sandbox::Sandbox;
use hangar_tools::sql::Database;

use crate::credentials;
use crate::workspace::git::Repository;

/// Maximum size of the plan in the model's context, in bytes.
const PLAN_LIMIT: usize = 64 << 10;
/// Time limit of the check for changes. The first change is enough to know.
const GIT_BOUNDS: CallLimits = CallLimits { time: Duration::from_secs(20), output: 0 };

pub(crate) struct SessionWork {
    files: Arc<dyn SessionFiles>,
    database: Option<Arc<Database>>,
    cwd: PathBuf,
    /// The commit that was checked out when the work began; `None` outside of a repository.
    base: Option<String>,
    /// Git, confined like the session's commands, since they may have written the repository's settings.
    git: Git,
}

impl SessionWork {
    pub(crate) fn new(
        files: Arc<dyn SessionFiles>,
        database: Option<Arc<Database>>,
        cwd: &Path,
        repository: Option<&Repository>,
        sandbox: Option<Sandbox>,
    ) -> Self {
        Self {
            files,
            database,
            cwd: cwd.to_owned(),
            base: repository.and_then(|repository| repository.head.clone()),
            git: credentials::git().launched_by(sandbox.map(|sandbox| sandbox.wrap("git".as_ref()))),
        }
    }
}

impl Surroundings for SessionWork {
    fn plan_and_todos(&mut self) -> PlanAndTodos {
        let plan = self.files.plan().filter(|plan| !plan.trim().is_empty()).map(|mut plan| {
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
        PlanAndTodos { plan, todos }
    }

    fn unchanged(&self) -> BoxFuture<'static, bool> {
        let (cwd, base) = (self.cwd.clone(), self.base.clone());
        let git = self.git.clone();
        Box::pin(async move {
            let Some(base) = base else { return false };
            let moved = Repository::find(&cwd).and_then(|repository| repository.head) != Some(base);
            if moved {
                return false;
            }
            // Without Git, or if it takes too long, nothing is known.
            is_clean(&git, &cwd).await.unwrap_or(false)
        })
    }
}

/// Whether the working tree is as it was checked out.
async fn is_clean(git: &Git, cwd: &Path) -> Result<bool, GitError> {
    let status = ["status", "--porcelain", "--ignore-submodules=dirty"];
    let answer = git.open(cwd, Filters::Off).await?.run(&status, GIT_BOUNDS).await?;
    Ok(answer.code == 0 && !answer.cut)
}
