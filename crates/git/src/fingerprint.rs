//! Fingerprint of a working tree: it differs when a commit, the list of changed files or their contents differ.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::path::Path;
use std::time::Duration;

use crate::{CallLimits, Filters, Git, GitError};

/// Limits of one call. A diff beyond them counts by its beginning.
const LIMITS: CallLimits = CallLimits { time: Duration::from_secs(10), output: 8 << 20 };

/// Fingerprint of the working tree that a directory is in; `None` outside one. Contents of files that git does not know do
/// not count.
pub async fn fingerprint(git: &Git, directory: &Path) -> Result<Option<u64>, GitError> {
    if !directory.ancestors().any(|dir| dir.join(".git").exists()) {
        return Ok(None);
    }
    let work_tree = git.open(directory, Filters::Off).await?;
    let mut digest = DefaultHasher::new();
    let diff = ["diff", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all"];
    let status = ["status", "--porcelain", "-z", "--ignore-submodules=dirty"];
    for args in [&["rev-parse", "HEAD"][..], &status, &diff] {
        work_tree.run(args, LIMITS).await?.stdout.hash(&mut digest);
    }
    Ok(Some(digest.finish()))
}
