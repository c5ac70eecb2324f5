//! A working tree at one moment, to tell later what was changed since, by whomever and committed or not.
//!
//! It is a tree object in a directory of its own, with an index of its own: nothing is written to the repository.

use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::{CallLimits, Filters, Git, GitError, GitOutput, WorkTree};

/// Limits of one call. A tree that git cannot look through in this time is not counted.
const LIMITS: CallLimits = CallLimits { time: Duration::from_secs(10), output: 8 << 20 };
/// Size of a file from which on it is taken for data and is not counted.
const LARGE_FILE: u64 = 4 << 20;
/// Changed files that are named. The lines of all are counted.
const MAX_NAMED: usize = 1_000;
/// Age of a directory that was left behind by a process that was killed.
const STALE: Duration = Duration::from_secs(7 * 24 * 3600);

/// Changes between a snapshot and now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreeChanges {
    pub lines_added: u64,
    pub lines_removed: u64,
    /// By their whole paths.
    pub files: Vec<PathBuf>,
}

/// Its directory is removed when it is dropped.
#[derive(Debug)]
pub struct Snapshot {
    git: Git,
    directory: PathBuf,
    /// The top of the working tree.
    root: PathBuf,
    store: ObjectStore,
    tree: String,
}

impl Snapshot {
    /// Takes a snapshot of the working tree that a directory is in, if it is in one. Its objects are kept below `scratch`,
    /// in a directory of their own.
    pub async fn take(git: &Git, directory: &Path, scratch: &Path) -> Result<Option<Self>, GitError> {
        if !directory.ancestors().any(|dir| dir.join(".git").exists()) {
            return Ok(None);
        }
        let work_tree = git.open(directory, Filters::Off).await?;
        let paths = ["--show-toplevel", "--git-path", "index", "--git-path", "objects"];
        let ask = [&["rev-parse", "--path-format=absolute"][..], &paths].concat();
        let output = work_tree.run(&ask, LIMITS).await?;
        let text = output.text();
        let lines: Vec<&str> = text.lines().collect();
        // A directory with a line feed in its name is not expected to have such a file.
        let (0, [root, index, objects]) = (output.code, &lines[..]) else { return Ok(None) };
        let root = PathBuf::from(root);
        let store = ObjectStore::create(scratch, Path::new(index), Path::new(objects))?;
        let Some(tree) = store.write_tree(work_tree, &root).await? else { return Ok(None) };
        Ok(Some(Self { git: git.clone(), directory: directory.to_owned(), root, store, tree }))
    }

    /// Tree object of the snapshot.
    pub(crate) fn tree(&self) -> &str {
        &self.tree
    }

    /// The top of the working tree.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Tree object of the working tree as it is now.
    pub(crate) async fn tree_now(&self) -> Result<Option<String>, GitError> {
        // Opened again: the configuration may be another by now.
        let work_tree = self.git.open(&self.directory, Filters::Off).await?;
        self.store.write_tree(work_tree, &self.root).await
    }

    /// Runs git where it knows the objects of the snapshot.
    pub(crate) async fn run(&self, args: &[&str], limits: CallLimits) -> Result<GitOutput, GitError> {
        let work_tree = self.git.open(&self.directory, Filters::Off).await?;
        self.store.used_by(work_tree).run(args, limits).await
    }

    /// Changes since the snapshot.
    pub async fn changes(&self) -> Result<TreeChanges, GitError> {
        match self.tree_now().await? {
            Some(tree) if tree != self.tree => {
                let flags =
                    ["diff-tree", "-r", "-z", "--numstat", "--no-renames", "--no-ext-diff", "--no-textconv"];
                let output = self.run(&[&flags[..], &[&self.tree, &tree]].concat(), LIMITS).await?;
                Ok(count(&output, &self.root))
            }
            Some(_) | None => Ok(TreeChanges::default()),
        }
    }
}

fn count(output: &GitOutput, root: &Path) -> TreeChanges {
    let mut changes = TreeChanges::default();
    for line in output.stdout.split(|byte| *byte == 0) {
        let mut fields = line.splitn(3, |byte| *byte == b'\t');
        let (Some(added), Some(removed), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        // Files without lines have a dash there.
        let lines = |field: &[u8]| std::str::from_utf8(field).ok().and_then(|text| text.parse::<u64>().ok());
        changes.lines_added += lines(added).unwrap_or(0);
        changes.lines_removed += lines(removed).unwrap_or(0);
        if changes.files.len() < MAX_NAMED {
            changes.files.push(root.join(OsStr::from_bytes(path)));
        }
    }
    changes
}

/// A directory with an index and the objects that the repository does not have.
#[derive(Debug)]
struct ObjectStore {
    dir: PathBuf,
    /// The objects of the repository.
    alternate: OsString,
}

impl ObjectStore {
    fn create(scratch: &Path, index: &Path, objects: &Path) -> io::Result<Self> {
        remove_stale(scratch);
        let dir = scratch.join(uuid::Uuid::new_v4().to_string());
        DirBuilder::new().recursive(true).mode(0o700).create(dir.join("objects"))?;
        let store = Self { dir, alternate: as_alternate(objects) };
        match std::fs::copy(index, store.index()) {
            // With its time: git looks again into files that are not older than the index.
            Ok(_) => {
                let written = index.metadata()?.modified()?;
                File::options().write(true).open(store.index())?.set_modified(written)?;
            }
            // Nothing was ever added.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        Ok(store)
    }

    fn index(&self) -> PathBuf {
        self.dir.join("index")
    }

    /// The same tree, with this index and these objects.
    fn used_by<'a>(&self, tree: WorkTree<'a>) -> WorkTree<'a> {
        tree.with_variables(vec![
            ("GIT_INDEX_FILE".into(), self.index().into()),
            ("GIT_OBJECT_DIRECTORY".into(), self.dir.join("objects").into()),
            ("GIT_ALTERNATE_OBJECT_DIRECTORIES".into(), self.alternate.clone()),
        ])
    }

    /// The working tree as it is now, as a tree object. `None` if git cannot make one of it.
    async fn write_tree(&self, tree: WorkTree<'_>, root: &Path) -> Result<Option<String>, GitError> {
        let tree = self.used_by(tree).at(root);
        // One by one, by their names: a submodule has a configuration of its own, and is not looked into.
        let listed = tree.run(&["ls-files", "-z", "-m", "-o", "--exclude-standard"], LIMITS).await?;
        if listed.code != 0 || listed.cut {
            return Ok(None);
        }
        let mut paths: Vec<&[u8]> = listed.stdout.split(|byte| *byte == 0).collect();
        paths.sort_unstable();
        paths.dedup();
        paths.retain(|path| !path.is_empty() && is_counted(&root.join(OsStr::from_bytes(path))));
        if !paths.is_empty() {
            let file = self.dir.join("paths");
            std::fs::write(&file, paths.join(&0))?;
            let from = format!("--pathspec-from-file={}", file.display());
            let add = ["--literal-pathspecs", "-c", "core.compression=0", "add", "--force", "--sparse"];
            let add = [&add[..], &["--ignore-errors", "--pathspec-file-nul", &from]].concat();
            tree.run(&add, LIMITS).await?;
        }
        let written = tree.run(&["write-tree"], LIMITS).await?;
        Ok((written.code == 0).then(|| written.text()))
    }
}

impl Drop for ObjectStore {
    fn drop(&mut self) {
        // Files that cannot be removed now are removed when they are stale.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Whether a file that git lists as new, changed or deleted is counted.
fn is_counted(path: &Path) -> bool {
    match path.symlink_metadata() {
        Ok(meta) => meta.is_symlink() || (meta.is_file() && meta.len() <= LARGE_FILE),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

fn remove_stale(scratch: &Path) {
    let Ok(entries) = std::fs::read_dir(scratch) else { return };
    for entry in entries.flatten() {
        let modified = entry.metadata().and_then(|meta| meta.modified());
        let age = modified.ok().and_then(|at| SystemTime::now().duration_since(at).ok());
        if age.is_some_and(|age| age > STALE) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// A directory as git's list of them names it: a colon would end its name.
fn as_alternate(objects: &Path) -> OsString {
    let bytes = objects.as_os_str().as_bytes();
    if !bytes.contains(&b':') && !bytes.starts_with(b"\"") {
        return objects.into();
    }
    let escaped = objects.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Environment;

    const COMMIT: &str = "git -c user.name=t -c user.email=t@x commit -qm";
    /// Three files, one of which says what is ignored.
    const COMMITTED: &str =
        "printf '1\\n2\\n3\\n' > a; echo b > b; echo out > .gitignore; git add .; $COMMIT one";

    /// Checks the changes, from the state of a repository and the actions after the snapshot.
    async fn check(before: &str, after: &str, (added, removed, files): (u64, u64, &[&str])) {
        let home = tempfile::tempdir().unwrap();
        let repo = home.path().join("a:b");
        std::fs::create_dir(&repo).unwrap();
        let run = |script: &str| {
            let mut shell = std::process::Command::new("sh");
            shell.args(["-ec", &script.replace("$COMMIT", COMMIT)]).current_dir(&repo);
            let status = shell.env("HOME", home.path()).env("GIT_CONFIG_NOSYSTEM", "1").status();
            assert!(status.unwrap().success(), "{script}");
        };
        run("git init -q -b main .");
        run(before);
        let variables = [("PATH", std::env::var_os("PATH").unwrap()), ("HOME", home.path().into())];
        let git = Git::new(Environment::of(variables.map(|(name, value)| (name.into(), value))));
        let scratch = home.path().join("scratch");
        let snapshot = Snapshot::take(&git, &repo, &scratch).await.unwrap().expect("a repository");
        run(after);
        let objects = || walk(&repo.join(".git"));
        let made = objects();
        let changes = snapshot.changes().await.unwrap();
        let files: Vec<PathBuf> = files.iter().map(|file| snapshot.root.join(file)).collect();
        assert_eq!(changes, TreeChanges { lines_added: added, lines_removed: removed, files }, "{after}");
        assert_eq!(objects(), made, "something was written to the repository");
        drop(snapshot);
        assert_eq!(walk(&scratch), Vec::<PathBuf>::new());
    }

    fn walk(dir: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        let mut found: Vec<PathBuf> =
            entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect();
        found.sort();
        found
    }

    #[tokio::test]
    async fn edits_new_files_and_deletions_are_counted_and_ignored_files_are_not() {
        let after = "printf '1\\nzwei\\n3\\n4\\n' > a; rm b; printf 'x\\ny\\n' > 'n ew'; echo x > out";
        check(COMMITTED, after, (4, 2, &["a", "b", "n ew"])).await;
    }

    #[tokio::test]
    async fn it_makes_no_difference_whether_somebody_commits() {
        check(COMMITTED, "echo 4 >> a; git add a; $COMMIT two; echo 5 >> a; git add a", (2, 0, &["a"])).await;
    }

    #[tokio::test]
    async fn what_was_changed_before_the_snapshot_is_not_counted() {
        let before = format!("{COMMITTED}; echo dirty >> a; echo new > new");
        check(&before, "true", (0, 0, &[])).await;
        check(&before, "echo more >> a; echo more >> new; rm b", (2, 1, &["a", "b", "new"])).await;
    }

    #[tokio::test]
    async fn a_repository_without_a_commit_has_changes_too() {
        check("true", "echo a > a", (1, 0, &["a"])).await;
    }

    #[tokio::test]
    async fn large_files_are_not_counted_and_files_without_lines_have_none() {
        let after = "head -c 5000000 /dev/zero > large; printf 'a\\0b' > binary";
        check(COMMITTED, after, (0, 0, &["binary"])).await;
    }

    #[tokio::test]
    async fn a_repository_within_is_not_looked_into() {
        let before = format!("git init -q sub; cd sub; {COMMITTED}; cd ..; {COMMITTED} 2>/dev/null");
        check(&before, "echo more >> sub/a; git init -q new; echo x > new/x; echo 4 >> a", (1, 0, &["a"]))
            .await;
    }

    #[tokio::test]
    async fn a_directory_in_no_repository_has_no_snapshot() {
        let tree = tempfile::tempdir().unwrap();
        let taken = Snapshot::take(&Git::default(), tree.path(), tree.path()).await.unwrap();
        assert!(taken.is_none());
    }
}
