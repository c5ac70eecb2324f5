//! Resolution of paths: the facts that permission rules are matched against.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Links followed in one path before it is taken to be a cycle, as the kernel does.
const LINK_LIMIT: usize = 40;

/// The path from the root, with `.` and `..` removed by name. Links are not looked at.
pub fn absolute(cwd: &Path, given: impl AsRef<Path>) -> PathBuf {
    let mut path = PathBuf::new();
    for component in cwd.join(given).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                path.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => path.push(component),
        }
    }
    path
}

/// Resolves an absolute path, following every link on the way.
///
/// Parts that do not exist (yet) are taken by name under the deepest directory that does; a dangling link leads to its
/// target, since that is what a write through it would create.
pub fn resolve(path: &Path) -> PathBuf {
    follow(path).unwrap_or_else(|| path.to_path_buf())
}

/// Like [`resolve`], except that a link in the last place stands for itself: what a removal would remove.
pub fn resolve_entry(path: &Path) -> PathBuf {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => resolve(parent).join(name),
        _ => path.to_path_buf(),
    }
}

/// `None` for a cycle of links, which no call can open.
fn follow(path: &Path) -> Option<PathBuf> {
    let mut resolved = PathBuf::new();
    let mut rest: VecDeque<PathStep> = steps(path).collect();
    let mut links = 0;
    while let Some(step) = rest.pop_front() {
        match step {
            PathStep::Root(root) => resolved = root,
            // Everything in `resolved` is free of links, so its parent by name is its parent.
            PathStep::Up => {
                resolved.pop();
            }
            PathStep::Down(name) => {
                let candidate = resolved.join(&name);
                match fs::read_link(&candidate) {
                    Ok(target) => {
                        links += 1;
                        if links > LINK_LIMIT {
                            return None;
                        }
                        for step in steps(&target).collect::<Vec<_>>().into_iter().rev() {
                            rest.push_front(step);
                        }
                    }
                    // Not a link, not there, or not ours to look at: it stands for itself.
                    Err(_) => resolved = candidate,
                }
            }
        }
    }
    Some(resolved)
}

enum PathStep {
    /// The root, with the drive where there are drives.
    Root(PathBuf),
    Up,
    Down(OsString),
}

fn steps(path: &Path) -> impl Iterator<Item = PathStep> {
    let mut root = PathBuf::new();
    path.components().filter_map(move |component| match component {
        Component::Prefix(_) => {
            root.push(component);
            None
        }
        Component::RootDir => {
            root.push(component);
            Some(PathStep::Root(root.clone()))
        }
        Component::CurDir => None,
        Component::ParentDir => Some(PathStep::Up),
        Component::Normal(name) => Some(PathStep::Down(name.to_os_string())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_tidied_without_looking() {
        let check = |given: &str, expected: &str| {
            assert_eq!(absolute(Path::new("/w/sub"), given), Path::new(expected), "{given}");
        };
        check("a.txt", "/w/sub/a.txt");
        check("./x/../a.txt", "/w/sub/a.txt");
        check("../../../../a", "/a");
        check("/etc/../tmp/x", "/tmp/x");
        check(".", "/w/sub");
        check("~/x", "/w/sub/~/x");
    }

    #[cfg(unix)]
    mod links {
        use std::os::unix::fs::symlink;

        use super::*;

        /// A directory with `real/file`, and links as (name, target); checks where paths below it lead.
        fn check(links: &[(&str, &str)], cases: &[(&str, &str)]) {
            let dir = tempfile::tempdir().unwrap();
            let base = dir.path().canonicalize().unwrap();
            fs::create_dir(base.join("real")).unwrap();
            fs::write(base.join("real/file"), "").unwrap();
            for (name, target) in links {
                symlink(target.replace("$", &base.to_string_lossy()), base.join(name)).unwrap();
            }
            for (path, expected) in cases {
                let expected = base.join(expected);
                assert_eq!(resolve(&base.join(path)), absolute(&base, expected), "{path}");
            }
        }

        #[test]
        fn existing_paths_lead_through_their_links() {
            check(
                &[("dir", "real"), ("abs", "$/real/file"), ("up", "real/../real")],
                &[("dir/file", "real/file"), ("abs", "real/file"), ("up/file", "real/file")],
            );
        }

        #[test]
        fn missing_paths_keep_their_names_under_the_resolved_parent() {
            check(&[("dir", "real")], &[("dir/new/deep.txt", "real/new/deep.txt"), ("no/such", "no/such")]);
        }

        #[test]
        fn dangling_links_lead_to_what_a_write_would_create() {
            check(
                &[("gone", "real/new"), ("out", "/nowhere/at/all"), ("hop", "gone")],
                &[("gone", "real/new"), ("out", "/nowhere/at/all"), ("hop", "real/new")],
            );
        }

        #[test]
        fn a_parent_of_a_link_target_is_the_real_parent() {
            // `esc/..` by name would be the base; the link leads elsewhere first.
            check(&[("deep", "real"), ("esc", "deep/../..")], &[("esc/x", "../x")]);
        }

        #[test]
        fn a_cycle_stands_for_itself() {
            check(&[("a", "b"), ("b", "a")], &[("a/x", "a/x")]);
        }

        #[test]
        fn an_entry_is_the_link_and_not_its_target() {
            let dir = tempfile::tempdir().unwrap();
            let base = dir.path().canonicalize().unwrap();
            fs::create_dir(base.join("real")).unwrap();
            symlink("real", base.join("dir")).unwrap();
            symlink("/etc/passwd", base.join("real/link")).unwrap();
            assert_eq!(resolve_entry(&base.join("dir/link")), base.join("real/link"));
        }
    }
}
