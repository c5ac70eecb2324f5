//! Facts about a Git repository, read from its files. Starting `git` would cost more than everything else at start-up.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Largest file of a repository's administration that is read.
const FILE_LIMIT: u64 = 4 * 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Repository {
    /// The top of the working tree.
    pub(crate) root: PathBuf,
    /// `owner/name`, from the address of the remote `origin`.
    pub(crate) name: Option<String>,
    /// Branch; `None` while none is checked out.
    pub(crate) branch: Option<String>,
    /// Id of the commit that is checked out; `None` before the first one.
    pub(crate) head: Option<String>,
}

impl Repository {
    /// The repository that a directory is in.
    pub(crate) fn find(start: &Path) -> Option<Self> {
        start.ancestors().find_map(|dir| Some((dir, Administration::of(dir)?))).map(|(root, admin)| {
            let head = admin.read("HEAD");
            let branch_ref = head.as_deref().and_then(|head| head.strip_prefix("ref:")).map(str::trim);
            Self {
                root: root.to_owned(),
                name: admin.origin().as_deref().and_then(name_of),
                branch: branch_ref.and_then(|name| name.strip_prefix("refs/heads/")).map(str::to_owned),
                head: match branch_ref {
                    Some(name) => admin.commit(name),
                    None => head.filter(|text| is_commit(text)),
                },
            }
        })
    }
}

/// The directories that Git keeps for one working tree.
#[derive(Debug)]
struct Administration {
    /// Directory of this working tree alone.
    own: PathBuf,
    /// Directory that all working trees of the repository share; the same unless this one was added to another.
    shared: PathBuf,
}

impl Administration {
    fn of(root: &Path) -> Option<Self> {
        let dot_git = root.join(".git");
        let metadata = std::fs::metadata(&dot_git).ok()?;
        let own = if metadata.is_dir() {
            dot_git
        } else {
            // A worktree or a submodule: the file says where the directory is.
            root.join(read_limited(&dot_git)?.strip_prefix("gitdir:")?.trim())
        };
        if !own.join("HEAD").is_file() {
            return None;
        }
        let shared = match read_limited(&own.join("commondir")) {
            Some(path) => own.join(path),
            None => own.clone(),
        };
        Some(Self { own, shared })
    }

    fn read(&self, name: &str) -> Option<String> {
        read_limited(&self.own.join(name))
    }

    fn commit(&self, name: &str) -> Option<String> {
        // A name from a file becomes a path: it must not lead elsewhere.
        if name.split('/').any(|part| part.is_empty() || part == "..") {
            return None;
        }
        let loose = read_limited(&self.own.join(name)).or_else(|| read_limited(&self.shared.join(name)));
        match loose {
            Some(text) => Some(text).filter(|text| is_commit(text)),
            None => self.packed(name),
        }
    }

    fn packed(&self, name: &str) -> Option<String> {
        let file = File::open(self.shared.join("packed-refs")).ok()?;
        let lines = BufReader::new(file.take(FILE_LIMIT)).lines();
        lines.map_while(Result::ok).find_map(|line| {
            let (commit, packed) = line.split_once(' ')?;
            (packed == name && is_commit(commit)).then(|| commit.to_owned())
        })
    }

    /// The address of the remote `origin`.
    fn origin(&self) -> Option<String> {
        let config = read_limited(&self.shared.join("config"))?;
        let mut in_origin = false;
        for line in config.lines().map(str::trim) {
            if let Some(section) = line.strip_prefix('[') {
                let section = section.split(']').next().unwrap_or_default();
                in_origin = section.split_whitespace().eq(["remote", "\"origin\""]);
            } else if in_origin
                && let Some((name, value)) = line.split_once('=')
                && name.trim().eq_ignore_ascii_case("url")
            {
                return Some(value.trim().trim_matches('"').to_owned());
            }
        }
        None
    }
}

fn read_limited(path: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(path).ok()?.take(FILE_LIMIT).read_to_string(&mut text).ok()?;
    text.truncate(text.trim_end().len());
    Some(text)
}

fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// `owner/name` of an address such as `https://host/owner/name.git` or `git@host:owner/name`. A user and a password before
/// the host are ignored.
fn name_of(address: &str) -> Option<String> {
    let path = match address.split_once("://") {
        Some(("file", _)) => return None,
        Some((_, rest)) => rest.split_once('/')?.1,
        None => {
            let (host, path) = address.split_once(':')?;
            // A slash before the colon makes it a path on this machine.
            if host.contains('/') {
                return None;
            }
            path
        }
    };
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    (path.contains('/') && !path.contains(['?', '#'])).then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "1234567890123456789012345678901234567890";

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (name, content) in files {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
    }

    fn check(files: &[(&str, &str)], start: &str, expected: Option<(&str, Option<&str>, Option<&str>)>) {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), files);
        std::fs::create_dir_all(dir.path().join(start)).unwrap();
        let found = Repository::find(&dir.path().join(start));
        let expected = expected.map(|(root, branch, head)| Repository {
            root: dir.path().join(root),
            name: None,
            branch: branch.map(str::to_owned),
            head: head.map(str::to_owned),
        });
        assert_eq!(found.map(|found| Repository { name: None, ..found }), expected);
    }

    #[test]
    fn a_directory_outside_of_any_repository_has_none() {
        check(&[("r/.git/config", "")], "r", None);
        check(&[], "r", None);
    }

    #[test]
    fn a_repository_is_found_from_below() {
        let files = [("r/.git/HEAD", "ref: refs/heads/feat/x\n"), ("r/.git/refs/heads/feat/x", COMMIT)];
        check(&files, "r/a/b", Some(("r", Some("feat/x"), Some(COMMIT))));
    }

    #[test]
    fn a_new_repository_has_a_branch_but_no_commit() {
        check(&[("r/.git/HEAD", "ref: refs/heads/main\n")], "r", Some(("r", Some("main"), None)));
    }

    #[test]
    fn a_packed_branch_is_found() {
        let packed = format!("# pack-refs with: peeled\n{COMMIT} refs/heads/main\n^{COMMIT}\n");
        check(
            &[("r/.git/HEAD", "ref: refs/heads/main"), ("r/.git/packed-refs", &packed)],
            "r",
            Some(("r", Some("main"), Some(COMMIT))),
        );
    }

    #[test]
    fn a_commit_can_be_checked_out_without_a_branch() {
        check(&[("r/.git/HEAD", COMMIT)], "r", Some(("r", None, Some(COMMIT))));
    }

    #[test]
    fn a_worktree_shares_branches_and_remotes() {
        let files = [
            ("main/.git/HEAD", "ref: refs/heads/main"),
            ("main/.git/refs/heads/side", COMMIT),
            ("main/.git/worktrees/w/HEAD", "ref: refs/heads/side"),
            ("main/.git/worktrees/w/commondir", "../..\n"),
            ("w/.git", "gitdir: ../main/.git/worktrees/w\n"),
        ];
        check(&files, "w", Some(("w", Some("side"), Some(COMMIT))));
    }

    #[test]
    fn a_branch_name_cannot_lead_out_of_the_repository() {
        let files = [("r/.git/HEAD", "ref: refs/heads/../../../../secret"), ("secret", COMMIT)];
        check(&files, "r", Some(("r", Some("../../../../secret"), None)));
    }

    #[test]
    fn the_name_comes_from_the_origin() {
        let dir = tempfile::tempdir().unwrap();
        let config = "[core]\n\turl = no\n[remote \"upstream\"]\n\turl = https://x/a/b\n[remote \"origin\"]\n\tfetch = f\n\turl = \
                      https://me:secret@github.com/acme/widgets.git\n";
        write(dir.path(), &[(".git/HEAD", COMMIT), (".git/config", config)]);
        assert_eq!(Repository::find(dir.path()).unwrap().name.as_deref(), Some("acme/widgets"));
    }

    #[test]
    fn names_are_read_from_all_forms_of_addresses() {
        for (address, name) in [
            ("https://github.com/acme/widgets", Some("acme/widgets")),
            ("https://github.com/acme/widgets.git/", Some("acme/widgets")),
            ("git@github.com:acme/widgets.git", Some("acme/widgets")),
            ("ssh://git@host:2222/acme/widgets.git", Some("acme/widgets")),
            ("https://gitlab.com/group/sub/widgets.git", Some("group/sub/widgets")),
            ("/srv/git/widgets.git", None),
            ("../widgets", None),
            ("file:///srv/git/widgets.git", None),
            ("https://host/widgets", None),
            ("./a:b/c", None),
        ] {
            assert_eq!(name_of(address).as_deref(), name, "{address}");
        }
    }
}
