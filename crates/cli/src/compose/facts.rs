//! Facts about the workspace of a session, for the model's first message. They are not in the system prompt, because the
//! sessions of one repository share it.

use std::path::Path;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hangar_agent::prompt::context::fact;
use hangar_git::{CallLimits, Filters, Git};
use hangar_spec::SystemMessageSpec;

use super::Checked;
use crate::credentials;

/// Maximum number of names of the working directory that the model gets.
const NAMES_TOLD: usize = 40;
/// Maximum number of names that are read. A larger directory is described without its names.
const NAMES_READ: usize = 2_000;
/// Time limit for the state of the working tree, for which the first prompt waits. After it, the model has to ask git
/// itself.
const GIT_BOUNDS: CallLimits = CallLimits { time: Duration::from_millis(150), output: 256 << 10 };

impl Checked<'_> {
    /// Facts that are known at once.
    pub(super) fn facts(&self, session_dir: &Path) -> Vec<String> {
        if self.replaces_system() {
            return Vec::new();
        }
        let folder = session_dir.display();
        let mut facts = vec![fact(&format!(
            "Session folder, for plans and notes that do not belong in the repository: {folder}"
        ))];
        if let Some(repository) = self.paths.shown_repository() {
            let branch = repository.branch.as_deref().map_or_else(|| "none checked out".to_owned(), fact);
            facts.push(format!("Git branch: {branch}"));
        }
        if self.paths.is_local {
            facts.extend(top_of(&self.paths.cwd));
        }
        facts
    }

    /// The state of the working tree. Git runs when the first prompt comes, since many sessions never have one.
    pub(super) fn git_state(&self) -> Option<BoxFuture<'static, Option<String>>> {
        if self.replaces_system() || !self.paths.is_local {
            return None;
        }
        self.paths.shown_repository()?;
        let sandbox = self.confinement.sandbox().cloned();
        let git = credentials::git().launched_by(sandbox.map(|sandbox| sandbox.wrap("git".as_ref())));
        let cwd = self.paths.cwd.clone();
        Some(async move { tokio::time::timeout(GIT_BOUNDS.time, state(&git, &cwd)).await.ok()? }.boxed())
    }

    /// Whether the client replaces the system prompt.
    fn replaces_system(&self) -> bool {
        matches!(self.request.spec.instructions.system, Some(SystemMessageSpec::Replace { .. }))
    }
}

/// The names in the working directory, those of directories with a slash.
fn top_of(cwd: &Path) -> Option<String> {
    let mut names: Vec<String> = Vec::new();
    for entry in std::fs::read_dir(cwd).ok()?.take(NAMES_READ + 1).filter_map(Result::ok) {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == ".git" {
            continue;
        }
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        names.push(fact(&name) + if is_dir { "/" } else { "" });
    }
    if names.is_empty() || names.len() > NAMES_READ {
        return None;
    }
    names.sort_unstable();
    let more = names.len().saturating_sub(NAMES_TOLD);
    names.truncate(NAMES_TOLD);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!("In the working directory: {}{more}", names.join(" ")))
}

/// The state of the working tree, if git can tell it in time.
async fn state(git: &Git, cwd: &Path) -> Option<String> {
    let status = ["status", "--porcelain", "--ignore-submodules=dirty"];
    let output = git.open(cwd, Filters::Off).await.ok()?.run(&status, GIT_BOUNDS).await.ok()?;
    (output.code == 0 || output.cut).then(|| format!("Git state: {}", told(&output.text(), output.cut)))
}

fn told(status: &str, cut: bool) -> String {
    let (untracked, changed): (Vec<&str>, Vec<&str>) =
        status.lines().partition(|line| line.starts_with("??"));
    let least = if cut { "at least " } else { "" };
    match (changed.len(), untracked.len()) {
        (0, 0) => "clean".to_owned(),
        (changed, 0) => format!("{least}{changed} changed"),
        (0, untracked) => format!("{least}{untracked} untracked"),
        (changed, untracked) => format!("{least}{changed} changed, {untracked} untracked"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_the_working_tree_is_counted() {
        let check = |status: &str, cut: bool, expected: &str| assert_eq!(told(status, cut), expected);
        check("", false, "clean");
        check(" M a\nA  b\n?? c", false, "2 changed, 1 untracked");
        check("?? c", false, "1 untracked");
        check("D  a\n M b", true, "at least 2 changed");
    }

    #[test]
    fn the_top_of_a_directory_is_listed_by_name() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(top_of(dir.path()), None);
        for name in ["b.rs", "a\nb"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        std::fs::create_dir_all(dir.path().join("src/deep")).unwrap();
        std::fs::create_dir(dir.path().join(".git")).unwrap();
        assert_eq!(top_of(dir.path()).as_deref(), Some("In the working directory: a b b.rs src/"));
        (0..60).for_each(|n| std::fs::write(dir.path().join(format!("{n}")), "").unwrap());
        assert!(top_of(dir.path()).unwrap().ends_with(" and 23 more"));
    }
}
