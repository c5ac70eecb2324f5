//! One mirror per repository, of which the workspaces are worktrees.

mod session_work;

pub(crate) use session_work::KeptWork;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hangar_git::{CallLimits, Git, GitOutput, RepositoryAccess};
use hangar_trackers::Credentials;
use tokio::sync::Mutex;

use super::source::hash;

/// Timeout of one git command; a first fetch is slow.
const PATIENCE: Duration = Duration::from_secs(900);
const MAX_OUTPUT: usize = 8 << 20;
const FETCH: &str = "+refs/heads/*:refs/remotes/origin/*";
/// Author of commits that keep work.
pub(super) const IDENTITY: [&str; 4] = ["-c", "user.name=hangar", "-c", "user.email=hangar@localhost"];

pub(crate) struct Mirror {
    git: Git,
    path: PathBuf,
    url: String,
    access: RepositoryAccess,
    /// Passwords of the login, where they change.
    tokens: Option<Arc<dyn Credentials>>,
    /// One change at a time in this process; the lock of the directory does it for others.
    pub(super) changes: Mutex<()>,
    /// Whether locks of an earlier process were removed.
    is_mended: AtomicBool,
}

impl Mirror {
    /// The mirror of a repository, which is created when it is first used.
    pub(crate) fn new(git: Git, directory: &Path, url: &str, access: RepositoryAccess) -> Self {
        let path = directory.join(format!("{}.git", hash(url)));
        Self {
            git,
            path,
            url: url.to_owned(),
            access,
            tokens: None,
            changes: Mutex::new(()),
            is_mended: AtomicBool::new(false),
        }
    }

    /// The mirror with a login whose password changes.
    pub(crate) fn with_tokens(self, tokens: Option<Arc<dyn Credentials>>) -> Self {
        Self { tokens, ..self }
    }

    async fn access(&self) -> Result<RepositoryAccess, String> {
        let mut access = self.access.clone();
        if let (Some(tokens), Some(login)) = (&self.tokens, &mut access.login) {
            login.password = tokens.token().await.map_err(|error| error.message)?;
        }
        Ok(access)
    }

    pub(super) async fn run(&self, args: &[&str]) -> Result<String, String> {
        let git_dir = self.path.to_string_lossy().into_owned();
        self.call(&self.path, &[&["--git-dir", git_dir.as_str()], args].concat()).await
    }

    pub(super) async fn call(&self, directory: &Path, args: &[&str]) -> Result<String, String> {
        let answer = self.answer(directory, args, MAX_OUTPUT).await?;
        match (answer.code, answer.cut) {
            (0, false) => Ok(answer.text()),
            (_, true) => Err(failed(args, &format!("it printed more than {MAX_OUTPUT} bytes"))),
            (_, false) => Err(failed(args, &answer.stderr)),
        }
    }

    /// The first bytes of what a command prints, and whether they are all.
    pub(super) async fn start_of(&self, args: &[&str], limit: usize) -> Result<(String, bool), String> {
        let git_dir = self.path.to_string_lossy().into_owned();
        let args = [&["--git-dir", git_dir.as_str()], args].concat();
        let answer = self.answer(&self.path, &args, limit).await?;
        match (answer.code, answer.cut) {
            // The last character may be cut as well.
            (_, true) => Ok((answer.text().trim_end_matches(char::REPLACEMENT_CHARACTER).to_owned(), false)),
            (0, false) => Ok((answer.text(), true)),
            (_, false) => Err(failed(&args, &answer.stderr)),
        }
    }

    async fn answer(&self, directory: &Path, args: &[&str], output: usize) -> Result<GitOutput, String> {
        let limits = CallLimits { time: PATIENCE, output };
        let access = self.access().await.map_err(|why| failed(args, &why))?;
        let answer = async {
            let tree = self.git.open_remote(directory, &access).await?;
            tree.run(args, limits).await
        };
        answer.await.map_err(|error| failed(args, &error.to_string()))
    }

    /// Holds the mirror for a change. Locks that a killed git left behind go.
    pub(super) async fn held(&self) -> Result<File, String> {
        let directory = self.path.clone();
        // Later ones may be those of agents that are at work.
        let mend = !self.is_mended.swap(true, Ordering::Relaxed);
        let held = tokio::task::spawn_blocking(move || {
            fs::create_dir_all(&directory)?;
            let file = File::open(&directory)?;
            file.lock()?;
            if mend {
                remove_locks(&directory, 0);
            }
            Ok::<_, std::io::Error>(file)
        });
        let held = held.await.map_err(|error| error.to_string())?;
        held.map_err(|error| format!("the mirror {} cannot be held: {error}", self.path.display()))
    }

    pub(super) async fn fetch(&self) -> Result<(), String> {
        if !self.path.join("HEAD").exists() {
            let path = self.path.to_string_lossy().into_owned();
            self.call(&self.path, &["init", "--quiet", "--bare", &path]).await?;
        }
        self.run(&["config", "remote.origin.url", &self.url]).await?;
        self.run(&["config", "remote.origin.fetch", FETCH]).await?;
        self.run(&["fetch", "--quiet", "--prune", "--no-tags", "origin", FETCH]).await.map(drop)
    }

    /// Commit that new branches begin at.
    pub(super) async fn base(&self, named: Option<&str>) -> Result<String, String> {
        if let Some(name) = named {
            for candidate in [format!("refs/remotes/origin/{name}"), name.to_owned()] {
                let commit = format!("{candidate}^{{commit}}");
                if let Ok(found) =
                    self.run(&["rev-parse", "--verify", "--quiet", "--end-of-options", &commit]).await
                {
                    return Ok(found);
                }
            }
            return Err(format!("the repository {} has no branch or commit `{name}`", self.url));
        }
        let head = self.run(&["ls-remote", "--symref", "origin", "HEAD"]).await?;
        let found = head
            .lines()
            .find_map(|line| line.strip_suffix("\tHEAD").filter(|line| !line.starts_with("ref:")));
        found.map(str::to_owned).ok_or_else(|| format!("the repository {} has no commit yet", self.url))
    }

    /// Checks a branch out. One that is there goes on where it was; a new one begins at the base.
    pub(super) async fn check_out(
        &self,
        path: &Path,
        branch: &str,
        base: Option<&str>,
    ) -> Result<(), String> {
        let _changes = self.changes.lock().await;
        let _held = self.held().await?;
        self.fetch().await?;
        self.run(&["worktree", "prune"]).await?;
        let place = path.to_string_lossy().into_owned();
        let own = format!("refs/heads/{branch}");
        let theirs = format!("refs/remotes/origin/{branch}");
        let is_there = async |name: &str| self.run(&["rev-parse", "--verify", "--quiet", name]).await.is_ok();
        let mut args = vec!["worktree", "add", "--quiet", "--no-checkout"];
        let start;
        if is_there(&own).await {
            args.extend([place.as_str(), branch]);
        } else {
            start = if is_there(&theirs).await { theirs.clone() } else { self.base(base).await? };
            args.extend(["-b", branch, &place, &start]);
        }
        self.run(&args).await?;
        // The configuration of the new worktree is looked at before its files are written.
        self.call(path, &["reset", "--quiet", "--hard", "HEAD"]).await.map(drop)
    }

    /// Whether a directory is a worktree of this mirror. An agent could have put another repository in its place.
    pub(super) async fn is_ours(&self, path: &Path) -> Result<(), String> {
        let found = self.call(path, &["rev-parse", "--path-format=absolute", "--git-common-dir"]).await?;
        let real = |path: &Path| path.canonicalize().ok();
        match real(Path::new(&found)) == real(&self.path) {
            true => Ok(()),
            false => Err(format!("{} is no longer a worktree of the repository", path.display())),
        }
    }

    /// Keeps work that was not committed as a commit under a ref of its own.
    pub(super) async fn keep_changes(&self, path: &Path) -> Result<Option<String>, String> {
        let _changes = self.changes.lock().await;
        let _held = self.held().await?;
        if self.call(path, &["status", "--porcelain", "--ignore-submodules=dirty"]).await?.is_empty() {
            return Ok(None);
        }
        self.call(path, &["add", "--all"]).await?;
        let tree = self.call(path, &["write-tree"]).await?;
        let message = "Work that was not committed when the workspace was removed";
        let commit = [&IDENTITY[..], &["commit-tree", &tree, "-p", "HEAD", "-m", message]].concat();
        let commit = self.call(path, &commit).await?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let kept = format!("refs/hangar/kept/{name}/{}", &commit[..commit.len().min(12)]);
        self.run(&["update-ref", &kept, &commit]).await?;
        Ok(Some(kept))
    }

    /// Makes the mirror forget a worktree. Its branch stays.
    pub(crate) async fn forget(&self, path: &Path) {
        let _changes = self.changes.lock().await;
        let Ok(_held) = self.held().await else { return };
        let place = path.to_string_lossy().into_owned();
        self.drop_worktree(path, &place).await;
        let _ = self.run(&["worktree", "prune"]).await;
    }

    /// Removes a worktree, also one whose creation was killed: git locks it until it is complete.
    async fn drop_worktree(&self, path: &Path, place: &str) {
        let _ = self.run(&["worktree", "unlock", place]).await;
        let _ = self.run(&["worktree", "remove", "--force", place]).await;
        let _ = fs::remove_dir_all(path);
    }
}

fn failed(args: &[&str], why: &str) -> String {
    format!("`git {}` failed: {why}", args.join(" "))
}

/// Deepest directory that may have a lock of a ref.
const MAX_DEPTH: usize = 8;

/// Removes the lock files of a repository that nobody changes now.
fn remove_locks(directory: &Path, depth: usize) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() && depth < MAX_DEPTH && name != "objects" {
            remove_locks(&path, depth + 1);
        } else if kind.is_file() && name.to_string_lossy().ends_with(".lock") {
            let _ = fs::remove_file(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_start_of_a_long_output_is_shown() {
        let place = tempfile::tempdir().unwrap();
        let mirror = Mirror::new(Git::default(), place.path(), "u", RepositoryAccess::default());
        fs::create_dir(&mirror.path).unwrap();
        let path = mirror.path.to_string_lossy().into_owned();
        mirror.call(&mirror.path, &["init", "--quiet", "--bare", &path]).await.unwrap();
        let file = place.path().join("file");
        let hash = async |text: &str| {
            fs::write(&file, text).unwrap();
            mirror.run(&["hash-object", "-w", &file.to_string_lossy()]).await.unwrap()
        };
        let (before, after) = (hash("").await, hash(&"ä".repeat(5 << 20)).await);
        let diff: [&str; 3] = ["diff", &before, &after];
        let (shown, is_complete) = mirror.start_of(&diff, 1000).await.unwrap();
        assert!(shown.ends_with("ää") && (990..=1000).contains(&shown.len()) && !is_complete, "{shown}");
        let whole = mirror.start_of(&["cat-file", "-t", &after], 1000).await.unwrap();
        assert_eq!(whole, ("blob".to_owned(), true));
        let missing = mirror.start_of(&["cat-file", "-t", "nothing"], 1000).await.unwrap_err();
        assert!(missing.contains("cat-file -t nothing` failed"), "{missing}");
        let all = mirror.run(&diff).await.unwrap_err();
        assert!(all.contains("more than 8388608 bytes"), "{all}");
    }
}
