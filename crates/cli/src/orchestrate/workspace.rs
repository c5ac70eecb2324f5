//! Workspaces: a directory for each issue, a plain one or a worktree of a mirror of the repository.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use hangar_workflow::Config;
use serde::{Deserialize, Serialize};

use super::mirror::Mirror;
use super::source::hash;

/// Directory of files between the orchestrator and the agent.
pub(super) const SIDE: &str = ".sortie";
const STATUS: &str = "status";
const OWNER: &str = "owner.json";
/// Most files whose sizes are added up.
const MAX_FILES: usize = 2_000_000;
/// Unit in which a file system counts.
const BLOCK: u64 = 512;
/// Longest first line of the status file.
const MAX_STATUS: usize = 1024;
/// Longest part of an identifier in the name of a directory.
const MAX_KEY: usize = 96;

/// Issue that a workspace belongs to. Another workflow with the same root may have one of the same name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Owner {
    pub(super) workflow: String,
    pub(super) issue: String,
}

/// Name of the directory of an issue. Distinct identifiers have distinct names: one that had to be changed has a hash.
pub(super) fn key(identifier: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '_' };
    let key: String = identifier.chars().map(plain).take(MAX_KEY).collect();
    match key == identifier && !key.is_empty() && !key.starts_with('.') {
        true => key,
        false => format!("{}-{}", key.trim_start_matches('.'), hash(identifier)),
    }
}

/// A workspace that is ready.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) path: PathBuf,
    pub(super) branch: Option<String>,
    /// Whether it was created now. It counts as created once [`Ready::finish`] was called.
    pub(super) is_new: bool,
    draft: PathBuf,
}

/// File beside a workspace that is not complete: one that is being created, or removed.
fn draft_of(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.creating"))
}

/// Whether a workspace is all there.
pub(super) fn is_complete(path: &Path) -> bool {
    path.is_dir() && !draft_of(path).exists()
}

impl Ready {
    /// Notes that the workspace is complete.
    pub(super) fn finish(&self) -> Result<(), String> {
        match fs::remove_file(&self.draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed("completing", &self.draft, &error))
            }
            _ => Ok(()),
        }
    }
}

fn failed(doing: &str, path: &Path, error: &io::Error) -> String {
    format!("{doing} {}: {error}", path.display())
}

/// Creates the workspace of an issue, or takes the one that is there.
pub(super) async fn prepare(
    config: &Config,
    mirror: Option<&Mirror>,
    identifier: &str,
    branch: &str,
    base: Option<&str>,
    owner: &Owner,
) -> Result<Ready, String> {
    let root = &config.workspace.root;
    fs::create_dir_all(root).map_err(|error| failed("creating", root, &error))?;
    let root = root.canonicalize().map_err(|error| failed("opening", root, &error))?;
    let path = root.join(key(identifier));
    let draft = draft_of(&path);
    // A directory whose creation was interrupted by a kill was never used; the work of one whose removal was is kept.
    if draft.exists() {
        if let Some(mirror) = mirror {
            mirror.forget(&path).await;
        }
        discard(&path)?;
    }
    let branch = mirror.map(|_| branch.to_owned());
    if is_workspace(&path)? {
        check_owner(&path, owner)?;
        side_files(&path, owner)?;
        return Ok(Ready { path, branch, is_new: false, draft });
    }
    File::create(&draft).map_err(|error| failed("creating", &draft, &error))?;
    match (mirror, &branch) {
        (Some(mirror), Some(branch)) => {
            mirror.check_out(&path, branch, base).await?;
        }
        _ => fs::create_dir(&path).map_err(|error| failed("creating", &path, &error))?,
    }
    side_files(&path, owner)?;
    Ok(Ready { path, branch, is_new: true, draft })
}

/// Whether there is a workspace. A link or a file in its place is refused.
fn is_workspace(path: &Path) -> Result<bool, String> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => Ok(true),
        Ok(_) => Err(format!(
            "{} is in the place of a workspace and is no directory; move it away",
            path.display()
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(failed("looking at", path, &error)),
    }
}

fn check_owner(path: &Path, owner: &Owner) -> Result<(), String> {
    let Ok(bytes) = fs::read(path.join(SIDE).join(OWNER)) else { return Ok(()) };
    match serde_json::from_slice::<Owner>(&bytes) {
        Ok(found) if found != *owner => Err(format!(
            "{} is the workspace of an issue of another workflow; give each its own `workspace.root`",
            path.display()
        )),
        _ => Ok(()),
    }
}

/// Files that git does not see.
fn side_files(path: &Path, owner: &Owner) -> Result<(), String> {
    let side = path.join(SIDE);
    let written = (|| {
        fs::create_dir_all(&side)?;
        fs::write(side.join(".gitignore"), "*\n")?;
        fs::write(side.join(OWNER), serde_json::to_vec(owner)?)
    })();
    written.map_err(|error| failed("writing", &side, &error))
}

/// Removes the word of an earlier session.
pub(super) fn clear_status(path: &Path) {
    let _ = fs::remove_file(path.join(SIDE).join(STATUS));
}

/// First line of the status file, if the agent wrote one.
pub(super) fn status(path: &Path) -> Option<String> {
    let file = path.join(SIDE).join(STATUS);
    if !fs::symlink_metadata(&file).is_ok_and(|found| found.is_file()) {
        return None;
    }
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(File::open(file).ok()?, MAX_STATUS as u64), &mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let word = text.lines().next().unwrap_or_default().trim();
    (!word.is_empty()).then(|| word.to_owned())
}

/// Removes a workspace. Work that was not committed is kept under a ref, whose name is the result.
pub(super) async fn remove(mirror: Option<&Mirror>, path: &Path) -> Result<Option<String>, String> {
    let draft = draft_of(path);
    // What a removal that was interrupted left behind is no work. The file has the name of the ref.
    let kept = match (fs::read_to_string(&draft), is_workspace(path)?) {
        (Ok(kept), _) => Some(kept).filter(|kept| !kept.is_empty()),
        (Err(_), false) => return Ok(None),
        (Err(_), true) => {
            let kept = match mirror {
                Some(mirror) => mirror.keep_changes(path).await?,
                None => None,
            };
            fs::write(&draft, kept.as_deref().unwrap_or_default())
                .map_err(|error| failed("creating", &draft, &error))?;
            kept
        }
    };
    if let Some(mirror) = mirror {
        mirror.forget(path).await;
    }
    discard(path)?;
    fs::remove_file(&draft).map_err(|error| failed("removing", &draft, &error))?;
    Ok(kept)
}

/// Space that a workspace takes on the disk. Links are not followed.
pub(super) async fn size(path: &Path) -> Option<u64> {
    let path = path.to_owned();
    let space = tokio::task::spawn_blocking(move || Some(space(fs::read_dir(path).ok()?, Vec::new())));
    space.await.ok().flatten()
}

/// Space of the entries of a directory, and of more directories. Those that vanish or cannot be read have none.
fn space(mut entries: fs::ReadDir, mut open: Vec<PathBuf>) -> u64 {
    let (mut bytes, mut left) = (0, MAX_FILES);
    loop {
        for entry in entries.flatten() {
            let Ok(found) = entry.metadata() else { continue };
            bytes += found.blocks() * BLOCK;
            left -= 1;
            if left == 0 {
                return bytes;
            }
            if found.is_dir() {
                open.push(entry.path());
            }
        }
        let next = std::iter::from_fn(|| open.pop()).find_map(|directory| fs::read_dir(directory).ok());
        let Some(next) = next else { return bytes };
        entries = next;
    }
}

fn discard(path: &Path) -> Result<(), String> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("removing", path, &error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_distinct() {
        assert_eq!(key("PROJ-1"), "PROJ-1");
        assert_eq!(key("a_b"), "a_b");
        let changed = ["a/b", "a b", "..", ".", "", ".x", "ä", &"x".repeat(200), &"x".repeat(201)];
        let keys: std::collections::BTreeSet<String> = changed.iter().map(|name| key(name)).collect();
        assert_eq!(keys.len(), changed.len(), "{keys:?}");
        for key in keys {
            assert!(!key.contains('/') && !key.starts_with('.') && key.len() < 128, "{key}");
        }
    }

    fn config(root: &Path) -> Config {
        let text = format!(
            "---\ntracker: {{ kind: file, active_states: [a] }}\nworkspace: {{ root: '{}' }}\n---\nx\n",
            root.display()
        );
        hangar_workflow::load(&text, root, &Default::default()).unwrap().config
    }

    #[tokio::test]
    async fn a_workspace_whose_removal_was_interrupted_is_not_used_again() {
        let place = tempfile::tempdir().unwrap();
        let (config, owner) =
            (config(place.path()), Owner { workflow: "w".to_owned(), issue: "i".to_owned() });
        let prepare = async || {
            let ready = prepare(&config, None, "A", "b", None, &owner).await.unwrap();
            ready.finish().unwrap();
            ready
        };
        let path = prepare().await.path;
        fs::write(path.join("work"), "x").unwrap();
        assert!(!prepare().await.is_new && is_complete(&path));
        fs::write(draft_of(&path), "refs/hangar/kept/A/1").unwrap();
        assert!(!is_complete(&path), "what is left of it is no workspace");
        assert!(prepare().await.is_new && !path.join("work").exists(), "it is made anew");
        // The removal goes on where it was, also without the directory.
        for is_there in [true, false] {
            prepare().await;
            fs::write(draft_of(&path), "refs/hangar/kept/A/1").unwrap();
            if !is_there {
                fs::remove_dir_all(&path).unwrap();
            }
            assert_eq!(remove(None, &path).await.unwrap().as_deref(), Some("refs/hangar/kept/A/1"));
            assert!(!path.exists() && !draft_of(&path).exists());
        }
        prepare().await;
        assert_eq!(remove(None, &path).await.unwrap(), None);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0, "nothing is left");
    }

    #[tokio::test]
    async fn the_size_of_a_workspace_is_that_of_its_files() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("deep")).unwrap();
        fs::write(place.path().join("deep/file"), vec![1; 100_000]).unwrap();
        std::os::unix::fs::symlink("/", place.path().join("everything")).unwrap();
        let bytes = size(place.path()).await.unwrap();
        assert!((100_000..1_000_000).contains(&bytes), "{bytes}");
        assert_eq!(size(&place.path().join("nothing")).await, None);
        let vanished = vec![place.path().join("deep"), place.path().join("nothing")];
        let root = fs::read_dir(place.path().join("deep")).unwrap();
        assert!(space(root, vanished) >= 200_000, "the others count all the same");
    }

    #[test]
    fn the_status_is_a_first_line_of_a_plain_file() {
        let place = tempfile::tempdir().unwrap();
        let side = place.path().join(SIDE);
        fs::create_dir(&side).unwrap();
        assert_eq!(status(place.path()), None);
        fs::write(side.join(STATUS), "blocked\nmore\n").unwrap();
        assert_eq!(status(place.path()).as_deref(), Some("blocked"));
        clear_status(place.path());
        std::os::unix::fs::symlink("/etc/hostname", side.join(STATUS)).unwrap();
        assert_eq!(status(place.path()), None, "a link is not followed");
    }
}
