//! Follows a working tree from a snapshot on: each step tells which files differ from the step before, with their contents.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::snapshot::Snapshot;
use crate::{CallLimits, GitError};

/// Limits of the list of files, and of the content of one.
const LIST: CallLimits = CallLimits { time: Duration::from_secs(10), output: 1 << 20 };
const CONTENT: CallLimits = CallLimits { time: Duration::from_secs(10), output: 1 << 20 };
/// Files of one step whose contents are read. Others are named only.
const MOST_CONTENTS: usize = 100;
/// Mode of a symbolic link, in git's words.
const LINK: &[u8] = b"120000";

/// Content of a file at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileContent {
    /// There was no such file.
    Absent,
    Bytes(Vec<u8>),
    /// Too large, a link, or one file too many.
    Unknown,
}

/// A file that differs between two moments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDifference {
    /// The whole path.
    pub path: PathBuf,
    pub before: FileContent,
    pub after: FileContent,
}

/// Follows a working tree.
#[derive(Debug)]
pub struct TreeFollower {
    snapshot: Arc<Snapshot>,
    /// Tree of the last step.
    tree: String,
}

/// Mode and object of a file on one side of a difference.
type Side<'a> = (&'a [u8], &'a str);

impl TreeFollower {
    pub fn new(snapshot: Arc<Snapshot>) -> Self {
        Self { tree: snapshot.tree().to_owned(), snapshot }
    }

    /// Differences since the last step.
    pub async fn step(&mut self) -> Result<Vec<FileDifference>, GitError> {
        let Some(now) = self.snapshot.tree_now().await? else { return Ok(Vec::new()) };
        if now == self.tree {
            return Ok(Vec::new());
        }
        let before = std::mem::replace(&mut self.tree, now);
        let flags = ["diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames"];
        let list = self.snapshot.run(&[&flags[..], &[&before, &self.tree]].concat(), LIST).await?;
        let mut differences = Vec::new();
        let mut fields = list.stdout.split(|byte| *byte == 0);
        while let (Some(sides), Some(path)) = (fields.next(), fields.next()) {
            let Some((before, after)) = sides_of(sides) else { continue };
            let reads = differences.len() < MOST_CONTENTS;
            differences.push(FileDifference {
                path: self.snapshot.root().join(OsStr::from_bytes(path)),
                before: self.content(before, reads).await?,
                after: self.content(after, reads).await?,
            });
        }
        Ok(differences)
    }

    async fn content(&self, (mode, object): Side<'_>, reads: bool) -> Result<FileContent, GitError> {
        if object.bytes().all(|digit| digit == b'0') {
            return Ok(FileContent::Absent);
        }
        if !reads || mode == LINK {
            return Ok(FileContent::Unknown);
        }
        let output = self.snapshot.run(&["cat-file", "blob", object], CONTENT).await?;
        Ok(match output.code == 0 && !output.cut {
            true => FileContent::Bytes(output.stdout),
            false => FileContent::Unknown,
        })
    }
}

/// Both sides of `:100644 100644 OBJECT OBJECT M`.
fn sides_of(line: &[u8]) -> Option<(Side<'_>, Side<'_>)> {
    let mut words = line.strip_prefix(b":")?.split(|byte| *byte == b' ');
    let (old_mode, new_mode) = (words.next()?, words.next()?);
    let mut object = || std::str::from_utf8(words.next()?).ok();
    let (old, new) = (object()?, object()?);
    Some(((old_mode, old), (new_mode, new)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Environment, Git};

    #[tokio::test]
    async fn each_step_has_what_changed_since_the_one_before() {
        let home = tempfile::tempdir().unwrap();
        let repo = home.path().join("repo");
        std::fs::create_dir(&repo).unwrap();
        let run = |script: &str| {
            let mut shell = std::process::Command::new("sh");
            shell.args(["-ec", script]).current_dir(&repo).env("HOME", home.path());
            assert!(shell.env("GIT_CONFIG_NOSYSTEM", "1").status().unwrap().success(), "{script}");
        };
        run(
            "git init -q -b main .; echo 1 > a; git add .; git -c user.name=t -c user.email=t@x commit -qm one",
        );
        let variables = [("PATH", std::env::var_os("PATH").unwrap()), ("HOME", home.path().into())];
        let git = Git::new(Environment::of(variables.map(|(name, value)| (name.into(), value))));
        let snapshot = Snapshot::take(&git, &repo, &home.path().join("scratch")).await.unwrap().unwrap();
        let root = snapshot.root().to_owned();
        let mut follower = TreeFollower::new(Arc::new(snapshot));
        assert_eq!(follower.step().await.unwrap(), []);
        let bytes = |text: &str| FileContent::Bytes(text.into());
        run("echo 2 >> a; git add a; git -c user.name=t -c user.email=t@x commit -qm two; ln -s a link");
        let changed = |path: &str, before, after| FileDifference { path: root.join(path), before, after };
        let first = follower.step().await.unwrap();
        assert_eq!(
            first,
            [
                changed("a", bytes("1\n"), bytes("1\n2\n")),
                changed("link", FileContent::Absent, FileContent::Unknown),
            ]
        );
        run("rm a; printf new > b");
        let second = follower.step().await.unwrap();
        assert_eq!(
            second,
            [
                changed("a", bytes("1\n2\n"), FileContent::Absent),
                changed("b", FileContent::Absent, bytes("new")),
            ]
        );
    }
}
