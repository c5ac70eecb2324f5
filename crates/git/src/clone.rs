//! Clones of repositories that users name: the one call that uses the network.

use std::path::Path;
use std::time::Duration;

use crate::{CallLimits, Filters, Git, GitError, GitOutput, Repository, WorkTree, overrides};

/// Transports that a URL may name. `ext::` and the like start programs.
const TRANSPORTS: &str = "https:http:ssh:git:file";
/// Never asks: nobody may be there to answer.
const SSH: &str = "ssh -o BatchMode=yes";
/// Timeout of a clone.
const CLONE_TIMEOUT: Duration = Duration::from_secs(120);
/// Output of a clone that is read, in bytes.
const CLONE_OUTPUT: usize = 64 << 10;

/// The commit to clone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Revision {
    /// Branch or tag; the default branch when absent.
    pub reference: Option<String>,
    /// Full id of a commit, which has to be reachable from the branch.
    pub commit: Option<String>,
}

impl Git {
    /// Clones a repository into a directory that does not exist yet, without history unless a commit is named, and without its
    /// submodules. Nothing of the repository is run: it has no hooks, and filters are those of the user.
    pub async fn clone_into(
        &self,
        url: &str,
        revision: &Revision,
        into: &Path,
    ) -> Result<GitOutput, GitError> {
        if self.environment.is_offline && !url.starts_with("file://") {
            return Err(GitError::Offline);
        }
        let parent = into.parent().unwrap_or(Path::new("/"));
        let mut variables = self.environment.network().to_vec();
        variables.push(("GIT_ALLOW_PROTOCOL".into(), TRANSPORTS.into()));
        variables.push(("GIT_SSH_COMMAND".into(), SSH.into()));
        let call = WorkTree {
            git: self,
            directory: parent.to_owned(),
            settings: overrides::of_clone(),
            variables,
            repository: Repository::New,
        };
        let target = into.to_string_lossy();
        let mut args = vec!["clone", "--quiet", "--no-recurse-submodules", "--template="];
        if revision.commit.is_none() {
            args.extend(["--depth", "1"]);
        }
        if let Some(reference) = &revision.reference {
            args.extend(["--branch", reference]);
        }
        args.extend(["--", url, &target]);
        let limits = CallLimits { time: CLONE_TIMEOUT, output: CLONE_OUTPUT };
        let cloned = call.run(&args, limits).await?;
        match &revision.commit {
            Some(commit) if cloned.code == 0 => {
                let tree = self.open(into, Filters::User).await?;
                tree.run(&["checkout", "--quiet", "--detach", commit, "--"], limits).await
            }
            _ => Ok(cloned),
        }
    }
}
