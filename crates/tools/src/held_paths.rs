//! The paths of an inspected call, resolved, with their directories held open and the files found there.
//!
//! Minutes can pass between the question and the answer. The run goes by way of what is held here, so that a permission
//! for one place is not used on another.

use std::fs::{FileType, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hangar_agent::tool::HeldFiles;
use hangar_disk::{Folder, Identity};

use crate::files::anchor::{Anchor, Permitted};
use crate::files::content;

/// Directories that all calls of this process together hold open. Calls that are denied hold theirs for a while, and a
/// process has few files to open. What is not held is known by its device and inode, and opened anew for the run.
const HELD_LIMIT: usize = 256;

static HELD_FOLDERS: AtomicUsize = AtomicUsize::new(0);

/// Prefix of temporary names beside a file.
const OURS: &str = ".hangar-";

/// The paths of a call, in the order in which it names them.
#[derive(Debug, Default)]
pub struct HeldPaths(Vec<HeldPath>);

#[derive(Debug)]
struct HeldPath {
    /// Absolute, links resolved.
    path: PathBuf,
    /// The deepest directory above it that was there; absent where none can be opened, or a client keeps it.
    above: Option<Arc<HeldParent>>,
    /// The file that was there, if any.
    found: Option<FileStamp>,
}

/// A file or a directory. A number that was free in between may be used again, but not for the same file, so what kind of thing
/// it is counts too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    identity: Identity,
    kind: FileType,
}

impl FileStamp {
    fn of(metadata: &Metadata) -> Self {
        Self { identity: Identity::of(metadata), kind: metadata.file_type() }
    }
}

#[derive(Debug)]
struct HeldParent {
    path: PathBuf,
    identity: Identity,
    held: Option<CountedFolder>,
}

/// A directory held open, counted.
#[derive(Debug)]
struct CountedFolder(Folder);

impl CountedFolder {
    fn new(folder: Folder) -> Option<Self> {
        let counted = HELD_FOLDERS
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| (held < HELD_LIMIT).then(|| held + 1));
        counted.is_ok().then(|| Self(folder))
    }
}

impl Drop for CountedFolder {
    fn drop(&mut self) {
        HELD_FOLDERS.fetch_sub(1, Ordering::Relaxed);
    }
}

impl HeldParent {
    fn find(path: &Path) -> Option<Self> {
        let folder = path.ancestors().skip(1).find_map(|above| Folder::resolved(above).ok())?;
        Some(Self {
            path: folder.path().to_owned(),
            identity: folder.identity().ok()?,
            held: CountedFolder::new(folder),
        })
    }

    fn folder(&self) -> io::Result<Folder> {
        match &self.held {
            Some(CountedFolder(folder)) => Ok(folder.clone()),
            None => Folder::resolved(&self.path),
        }
    }

    /// Whether the path still leads to this directory.
    fn is_there(&self) -> bool {
        Folder::resolved(&self.path)
            .and_then(|folder| folder.identity())
            .is_ok_and(|now| now == self.identity)
    }
}

impl HeldPath {
    /// Places in one directory hold it once.
    fn find(path: PathBuf, others: &[Self]) -> Self {
        let same = others.iter().filter_map(|other| other.above.as_ref());
        let mut same = same.filter(|above| path.parent() == Some(above.path.as_path()));
        let above = same.next().cloned().or_else(|| HeldParent::find(&path).map(Arc::new));
        let found = above.as_ref().and_then(|above| {
            let status = above.folder().ok()?.status(path.strip_prefix(&above.path).ok()?).ok()?;
            Some(FileStamp::of(&status))
        });
        Self { path, above, found }
    }

    /// Reason for which the path is not the one that was inspected.
    fn change(&self) -> Option<String> {
        let path = self.path.display();
        let above = self.above.as_ref()?;
        if !above.is_there() {
            return Some(format!("The directory {} is not the one", above.path.display()));
        }
        let below = self.path.strip_prefix(&above.path).ok()?;
        let now = match above.folder().and_then(|folder| folder.status(below)) {
            Ok(now) => now,
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                return Some(format!("A link was put in the way of {path}, which is not the place"));
            }
            // A missing directory cannot be used; the tool that tries reports it.
            Err(_) => return None,
        };
        if self.found == Some(FileStamp::of(&now)) {
            return None;
        }
        // Editors and our own tools replace a file by a new one. If that has no other name it is in this place alone.
        let replaced = now.is_file() && std::os::unix::fs::MetadataExt::nlink(&now) == 1;
        (!replaced).then(|| format!("What is at {path} is not the file"))
    }
}

impl HeldPaths {
    /// Takes hold of places on this machine.
    pub(crate) fn hold(paths: Vec<PathBuf>) -> Self {
        let mut places = Vec::with_capacity(paths.len());
        for path in paths {
            places.push(HeldPath::find(path, &places));
        }
        Self(places)
    }

    /// Places of a client, which has no links that we could know of.
    pub(crate) fn of_client(paths: Vec<PathBuf>) -> Self {
        Self(paths.into_iter().map(|path| HeldPath { path, above: None, found: None }).collect())
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|place| place.path.as_path())
    }

    /// The same places, known but no longer held.
    pub(crate) fn known(&self) -> Self {
        let above = |above: &HeldParent| HeldParent {
            path: above.path.clone(),
            identity: above.identity,
            held: None,
        };
        let known = |place: &HeldPath| HeldPath {
            path: place.path.clone(),
            above: place.above.as_deref().map(above).map(Arc::new),
            found: place.found,
        };
        Self(self.0.iter().map(known).collect())
    }

    /// Reason for which one of the paths has changed, if one has.
    pub(crate) fn change(&self) -> Option<String> {
        self.0.iter().find_map(HeldPath::change)
    }

    /// A path by way of what is held: one of the places, a directory on the way to one, or a name of ours beside one.
    pub(crate) fn anchor(&self, path: &Path) -> io::Result<Anchor> {
        for place in &self.0 {
            let Some(above) = &place.above else { continue };
            let beside = path.parent() == place.path.parent()
                && path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(OURS));
            if !(place.path.starts_with(path) || beside) {
                continue;
            }
            let Ok(below) = path.strip_prefix(&above.path) else { continue };
            let Some(name) = below.file_name() else { continue };
            let folder = match below.parent().filter(|parent| !parent.as_os_str().is_empty()) {
                Some(parent) => above.folder()?.folder(parent)?,
                None => above.folder()?,
            };
            let permitted = (place.path == path).then_some(Permitted(place.found.map(|seen| seen.identity)));
            return Ok(Anchor::new(folder, name.to_owned(), permitted));
        }
        let text = format!("{} is not where the call led when it was permitted", path.display());
        Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
    }

    /// Whether a path is a directory that is held, which stands for itself.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        self.0.iter().any(|place| place.above.as_ref().is_some_and(|above| above.path == path))
    }
}

impl HeldFiles for HeldPaths {
    fn paths(&self) -> Vec<PathBuf> {
        self.paths().map(Path::to_owned).collect()
    }

    fn read(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        content::open(&self.anchor(path)?)?.take(limit).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::tool_files::ToolFiles;

    /// Holds `dir/file`, lets somebody meddle, and says what is told of it. What is outside stays as it was.
    fn check(meddle: impl Fn(&Path), told: Option<&str>) {
        for is_held in [true, false] {
            let place = tempfile::tempdir().unwrap();
            let root = place.path().canonicalize().unwrap();
            for (dir, text) in [("dir", "ours"), ("outside", "theirs")] {
                fs::create_dir(root.join(dir)).unwrap();
                fs::write(root.join(dir).join("file"), text).unwrap();
            }
            let path = root.join("dir/file");
            let places = HeldPaths::hold(vec![path.clone()]);
            let places = if is_held { places } else { places.known() };
            meddle(&root);
            let change = places.change();
            assert_eq!(change.is_some(), told.is_some(), "{change:?}");
            if let (Some(change), Some(told)) = (change, told) {
                assert!(change.contains(told), "{change}");
            }
            // Even without a question.
            let files = ToolFiles::Held(Arc::new(places));
            let _ = (files.replace(&path, b"new"), files.create(&path, b"new"), files.remove(&path));
            assert!(files.replace(&root.join("outside/file"), b"new").is_err());
            assert!(files.read(&root.join("outside/file")).is_err());
            assert_eq!(fs::read(root.join("outside/file")).unwrap(), b"theirs");
            assert_eq!(fs::read_dir(root.join("outside")).unwrap().count(), 1);
        }
    }

    #[test]
    fn what_is_as_it_was_is_used() {
        check(|_| {}, None);
        check(|root| fs::write(root.join("dir/file"), "changed").unwrap(), None);
        check(|root| fs::remove_file(root.join("dir/file")).unwrap(), None);
    }

    #[test]
    fn a_file_that_was_replaced_by_another_of_one_name_is_used() {
        let replace = |root: &Path| {
            fs::write(root.join("dir/new"), "new").unwrap();
            fs::rename(root.join("dir/new"), root.join("dir/file")).unwrap();
        };
        check(replace, None);
    }

    #[test]
    fn another_directory_is_not_the_one_that_was_inspected() {
        let away = |root: &Path| fs::rename(root.join("dir"), root.join("away")).unwrap();
        let link = |root: &Path| {
            away(root);
            symlink(root.join("outside"), root.join("dir")).unwrap();
        };
        check(link, Some("dir is not the one"));
        let other = |root: &Path| {
            away(root);
            fs::create_dir(root.join("dir")).unwrap();
            fs::write(root.join("dir/file"), "other").unwrap();
        };
        check(other, Some("dir is not the one"));
    }

    #[test]
    fn a_link_is_not_the_file_that_was_inspected() {
        let soft = |root: &Path| {
            fs::remove_file(root.join("dir/file")).unwrap();
            symlink(root.join("outside/file"), root.join("dir/file")).unwrap();
        };
        check(soft, Some("is not the file"));
        let hard = |root: &Path| {
            fs::remove_file(root.join("dir/file")).unwrap();
            fs::hard_link(root.join("outside/file"), root.join("dir/file")).unwrap();
        };
        check(hard, Some("is not the file"));
    }

    #[test]
    fn no_more_is_held_than_a_process_can_spare() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let many: Vec<HeldPaths> =
            (0..2 * HELD_LIMIT).map(|_| HeldPaths::hold(vec![root.join("file")])).collect();
        assert!(HELD_FOLDERS.load(Ordering::Relaxed) <= HELD_LIMIT);
        assert!(many.iter().all(|places| places.change().is_none()));
    }
}
