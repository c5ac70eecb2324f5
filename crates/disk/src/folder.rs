//! A directory that is held open, and the files below it. No link below it is ever followed.
//!
//! Programs that a session runs can write where Hangar keeps its own files, and may put links, pipes or files of others
//! there. What is opened here is a regular file below the directory that was meant, or nothing.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

const PRIVATE_FILE: Mode = Mode::from_raw_mode(0o600);
const PRIVATE_DIR: Mode = Mode::from_raw_mode(0o700);

/// Opens a directory as a place to start from. Only Linux can do that without the right to list it.
#[cfg(any(target_os = "linux", target_os = "android"))]
const HOLD: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const HOLD: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// A directory held open. Clones hold the same one.
#[derive(Debug, Clone)]
pub struct Folder {
    fd: Arc<OwnedFd>,
    /// The path it had when it was opened, for people.
    path: PathBuf,
}

/// Identity of a file or directory: device and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    pub fn of(metadata: &Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }
}

/// Type of a directory entry. Links are not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    File,
    Folder,
    /// A link, a pipe, a socket or a device.
    Other,
}

impl FileKind {
    pub fn of(kind: std::fs::FileType) -> Self {
        if kind.is_file() {
            Self::File
        } else if kind.is_dir() {
            Self::Folder
        } else {
            Self::Other
        }
    }
}

impl Folder {
    /// Opens a directory that a person or a setting named. Links on the way there are theirs and are followed.
    pub fn open(path: &Path) -> io::Result<Self> {
        let fd = rustix::fs::openat(CWD, path, HOLD | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { fd: Arc::new(fd), path: path.to_owned() })
    }

    /// Like [`open`](Self::open), made with what is missing above it.
    pub fn ensure(path: &Path) -> io::Result<Self> {
        crate::ensure_dir(path)?;
        Self::open(path)
    }

    /// Opens a directory by an absolute path on which every link was resolved before. One that has a link in it now is
    /// refused.
    pub fn resolved(path: &Path) -> io::Result<Self> {
        let root = Self::open(Path::new("/"))?;
        match path.strip_prefix("/") {
            Ok(below) if below.as_os_str().is_empty() => Ok(root),
            Ok(below) => root.folder(below),
            Err(_) => Err(io::Error::new(io::ErrorKind::InvalidInput, "not an absolute path")),
        }
    }

    /// Like [`resolved`](Self::resolved), made with what is missing above it.
    pub fn ensure_resolved(path: &Path) -> io::Result<Self> {
        match Self::resolved(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let below = path.strip_prefix("/").unwrap_or(path);
                Self::open(Path::new("/"))?.ensure_folder(below)
            }
            opened => opened,
        }
    }

    /// The path that the directory had when it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Path of the directory for code that opens files by path: through the held descriptor, where the system supports
    /// it. Valid as long as the folder is held.
    pub fn fd_path(&self) -> PathBuf {
        if cfg!(any(target_os = "linux", target_os = "android")) {
            PathBuf::from(format!("/proc/self/fd/{}", self.fd.as_raw_fd()))
        } else {
            self.path.clone()
        }
    }

    pub fn identity(&self) -> io::Result<Identity> {
        Ok(Identity::of(&File::from(self.fd.try_clone()?).metadata()?))
    }

    /// Opens a directory below.
    pub fn folder(&self, name: impl AsRef<Path>) -> io::Result<Self> {
        let name = name.as_ref();
        let fd = self.open_below(name, HOLD, Mode::empty())?;
        Ok(Self { fd: Arc::new(fd), path: self.path.join(name) })
    }

    /// Opens a directory below, made with what is missing above it, for its owner alone.
    pub fn ensure_folder(&self, name: impl AsRef<Path>) -> io::Result<Self> {
        self.ensure_folder_for(name.as_ref(), PRIVATE_DIR)
    }

    /// Like [`ensure_folder`](Self::ensure_folder), for whom the umask leaves it to.
    pub fn ensure_shared_folder(&self, name: impl AsRef<Path>) -> io::Result<Self> {
        self.ensure_folder_for(name.as_ref(), Mode::from_raw_mode(0o777))
    }

    fn ensure_folder_for(&self, name: &Path, mode: Mode) -> io::Result<Self> {
        let mut at = self.clone();
        for part in parts(name)? {
            at = match at.folder(part) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    match rustix::fs::mkdirat(&*at.fd, part, mode) {
                        Ok(()) | Err(Errno::EXIST) => at.folder(part)?,
                        Err(error) => return Err(error.into()),
                    }
                }
                opened => opened?,
            };
        }
        Ok(at)
    }

    /// Like [`ensure_folder`](Self::ensure_folder), for a name that only we use: what has it and is no directory is set
    /// aside under another name.
    pub fn own_folder(&self, name: &str) -> io::Result<Self> {
        match self.ensure_folder(name) {
            Err(_) if matches!(self.kind(name), Ok(FileKind::File | FileKind::Other)) => {
                self.rename(name, unique(OsStr::new(name), "in-the-way"))?;
                self.ensure_folder(name)
            }
            opened => opened,
        }
    }

    /// Opens a file to read it.
    pub fn read(&self, name: impl AsRef<Path>) -> io::Result<File> {
        self.open_file(name.as_ref(), OFlags::RDONLY, Mode::empty())
    }

    /// At most `limit` bytes of a file.
    pub fn read_bytes(&self, name: impl AsRef<Path>, limit: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.read(name)?.take(limit).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// At most `limit` bytes of a text file; what is not UTF-8 becomes replacement characters.
    pub fn read_text(&self, name: impl AsRef<Path>, limit: u64) -> io::Result<String> {
        Ok(crate::text(self.read_bytes(name, limit)?))
    }

    /// Creates a file that must not exist, for its owner alone.
    pub fn create_new(&self, name: impl AsRef<Path>) -> io::Result<File> {
        self.create_for(name.as_ref(), OFlags::empty(), PRIVATE_FILE)
    }

    /// Like [`create_new`](Self::create_new), for whom the umask leaves it to.
    pub fn create_shared(&self, name: impl AsRef<Path>) -> io::Result<File> {
        self.create_for(name.as_ref(), OFlags::empty(), Mode::from_raw_mode(0o666))
    }

    /// Like [`create_new`](Self::create_new), to be appended to.
    pub fn create_log(&self, name: impl AsRef<Path>) -> io::Result<File> {
        self.create_for(name.as_ref(), OFlags::APPEND, PRIVATE_FILE)
    }

    fn create_for(&self, name: &Path, more: OFlags, mode: Mode) -> io::Result<File> {
        self.open_file(name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | more, mode)
    }

    /// Opens a file that exists to read it and to write into it.
    pub fn update(&self, name: impl AsRef<Path>) -> io::Result<File> {
        self.open_file(name.as_ref(), OFlags::RDWR, Mode::empty())
    }

    /// Opens a file that exists to append to it. One that has a second name is made ours first: its content is copied to
    /// a new file of this name, so that what is behind the other name stays as it is and nothing of ours is lost.
    pub fn append(&self, name: impl AsRef<Path>) -> io::Result<File> {
        let name = name.as_ref();
        let flags = OFlags::RDWR | OFlags::APPEND;
        let mut file = self.open_file(name, flags, Mode::empty())?;
        if file.metadata()?.nlink() > 1 {
            let (folder, base) = self.split(name)?;
            folder.put(&base, |draft| io::copy(&mut file, draft).map(drop))?;
            return self.open_file(name, flags, Mode::empty());
        }
        Ok(file)
    }

    /// Like [`append`](Self::append), for a file that is created if there is none.
    pub fn append_or_create(&self, name: impl AsRef<Path>) -> io::Result<File> {
        let name = name.as_ref();
        match self.append(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => match self.create_log(name) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.append(name),
                created => created,
            },
            opened => opened,
        }
    }

    /// Replaces a file in one step, whatever the name stood for: a link is replaced and not followed, and a directory is
    /// set aside under another name.
    pub fn replace(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> io::Result<()> {
        let (folder, base) = self.split(name.as_ref())?;
        folder.put(&base, |draft| draft.write_all(content.as_ref()))
    }

    fn put(&self, base: &OsStr, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
        let draft = unique(base, "tmp");
        let moved = self.create_new(&draft).and_then(|mut file| fill(&mut file)).and_then(|()| {
            match rustix::fs::renameat(&*self.fd, &draft, &*self.fd, base) {
                Err(Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST) => {
                    let aside = unique(base, "in-the-way");
                    rustix::fs::renameat(&*self.fd, base, &*self.fd, &aside)?;
                    Ok(rustix::fs::renameat(&*self.fd, &draft, &*self.fd, base)?)
                }
                done => Ok(done?),
            }
        });
        if moved.is_err() {
            // The error that is reported is the one that matters; a leftover is harmless.
            let _ = rustix::fs::unlinkat(&*self.fd, &draft, AtFlags::empty());
        }
        moved
    }

    /// Removes the name of a file or a link.
    pub fn remove(&self, name: impl AsRef<Path>) -> io::Result<()> {
        let (folder, base) = self.split(name.as_ref())?;
        Ok(rustix::fs::unlinkat(&*folder.fd, &base, AtFlags::empty())?)
    }

    /// Removes a directory with everything in it.
    pub fn remove_all(&self, name: impl AsRef<Path>) -> io::Result<()> {
        let (folder, base) = self.split(name.as_ref())?;
        std::fs::remove_dir_all(folder.fd_path().join(base))
    }

    /// Gives a file or directory another name below.
    pub fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
        let ((source, old), (target, new)) = (self.split(from.as_ref())?, self.split(to.as_ref())?);
        Ok(rustix::fs::renameat(&*source.fd, &old, &*target.fd, &new)?)
    }

    /// Metadata of an entry. Links are not followed.
    pub fn status(&self, name: impl AsRef<Path>) -> io::Result<Metadata> {
        let name = name.as_ref();
        #[cfg(any(target_os = "linux", target_os = "android"))]
        return File::from(self.open_below(name, OFlags::PATH, Mode::empty())?).metadata();
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        {
            let (folder, base) = self.split(name)?;
            std::fs::symlink_metadata(folder.path.join(base))
        }
    }

    pub fn kind(&self, name: impl AsRef<Path>) -> io::Result<FileKind> {
        Ok(FileKind::of(self.status(name)?.file_type()))
    }

    /// Some of the names in the directory, in no order.
    pub fn entries(&self, limit: usize) -> io::Result<Vec<(OsString, FileKind)>> {
        use std::os::unix::ffi::OsStringExt;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut found = Vec::new();
        for entry in Dir::new(rustix::fs::openat(&*self.fd, ".", flags, Mode::empty())?)? {
            let entry = entry?;
            let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::RegularFile => FileKind::File,
                FileType::Directory => FileKind::Folder,
                // Some file systems do not say it in a list.
                FileType::Unknown => self.kind(&name)?,
                _ => FileKind::Other,
            };
            found.push((name, kind));
            if found.len() == limit {
                break;
            }
        }
        Ok(found)
    }

    /// Makes the names in the directory survive a power cut.
    pub fn sync(&self) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        File::from(rustix::fs::openat(&*self.fd, ".", flags, Mode::empty())?).sync_all()
    }

    /// The directory of a path below, and the name in it.
    fn split(&self, name: &Path) -> io::Result<(Self, OsString)> {
        let base = parts(name)?.last().copied().unwrap_or_default().to_owned();
        let folder = match name.parent().filter(|above| !above.as_os_str().is_empty()) {
            Some(above) => self.folder(above)?,
            None => self.clone(),
        };
        Ok((folder, base))
    }

    fn open_file(&self, name: &Path, flags: OFlags, mode: Mode) -> io::Result<File> {
        // Opening a pipe must not wait for its other end.
        let file = File::from(self.open_below(name, flags | OFlags::NONBLOCK | OFlags::NOCTTY, mode)?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(self.no_file(name)) }
    }

    fn open_below(&self, name: &Path, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        parts(name)?;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        open_beneath(&self.fd, name, flags, mode).map_err(|error| match error {
            Errno::LOOP => self.is_link(name),
            Errno::NOTDIR if self.has_link(name) => self.is_link(name),
            // A pipe without a reader, or a socket; a directory instead of a file.
            Errno::NXIO | Errno::ISDIR => self.no_file(name),
            error => error.into(),
        })
    }

    /// Whether a component of the path, or the name itself, is a link.
    fn has_link(&self, name: &Path) -> bool {
        let path = |above: &Path| self.fd_path().join(above);
        name.ancestors().any(|above| {
            !above.as_os_str().is_empty()
                && std::fs::symlink_metadata(path(above)).is_ok_and(|found| found.file_type().is_symlink())
        })
    }

    fn is_link(&self, name: &Path) -> io::Error {
        let path = self.path.join(name);
        let text = format!("{} is a link or leads through one, and is not followed", path.display());
        io::Error::new(io::ErrorKind::InvalidInput, text)
    }

    fn no_file(&self, name: &Path) -> io::Error {
        let text = format!("{} is no regular file", self.path.join(name).display());
        io::Error::new(io::ErrorKind::InvalidInput, text)
    }
}

/// The names that a path below a directory is made of. Nothing else may be in it.
fn parts(name: &Path) -> io::Result<Vec<&OsStr>> {
    let refused = || {
        let text = format!("`{}` is no path below a directory", name.display());
        io::Error::new(io::ErrorKind::InvalidInput, text)
    };
    let parts = name.components().map(|component| match component {
        Component::Normal(part) => Ok(part),
        _ => Err(refused()),
    });
    let parts = parts.collect::<io::Result<Vec<_>>>()?;
    if parts.is_empty() { Err(refused()) } else { Ok(parts) }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn open_beneath(fd: &OwnedFd, name: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    use rustix::fs::ResolveFlags;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(fd, name, flags, mode, resolve) {
        // An older kernel, or one that is told to hide it.
        Err(Errno::NOSYS | Errno::PERM) => open_stepwise(fd, name, flags, mode),
        opened => opened,
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn open_beneath(fd: &OwnedFd, name: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    open_stepwise(fd, name, flags, mode)
}

/// Opens one directory after the other, none of which may be a link.
fn open_stepwise(fd: &OwnedFd, name: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    let step = HOLD | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut held: Option<OwnedFd> = None;
    let parts: Vec<&OsStr> = name.iter().collect();
    let (last, above) = parts.split_last().ok_or(Errno::INVAL)?;
    for part in above {
        held = Some(rustix::fs::openat(held.as_ref().unwrap_or(fd), *part, step, Mode::empty())?);
    }
    rustix::fs::openat(held.as_ref().unwrap_or(fd), *last, flags, mode)
}

/// Unique name beside another one.
pub(crate) fn unique(name: &OsStr, ending: &str) -> OsString {
    /// Distinguishes concurrent writes of this process to one file.
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut unique = name.to_owned();
    unique.push(format!(".{}-{}.{ending}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
    unique
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// A folder `ours` with a file `kept`, beside `outside` with a file `theirs`.
    fn place() -> (tempfile::TempDir, Folder, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let outside = root.join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("theirs"), "theirs").unwrap();
        let ours = Folder::ensure(&root.join("ours")).unwrap();
        ours.replace("kept", "kept").unwrap();
        (place, ours, outside)
    }

    /// Checks that every writing operation refuses a name below a folder.
    fn refuses(folder: &Folder, name: &str) {
        assert!(folder.read(name).is_err(), "{name}");
        assert!(folder.update(name).is_err(), "{name}");
        assert!(folder.append(name).is_err(), "{name}");
        assert!(folder.append_or_create(name).is_err(), "{name}");
        assert!(folder.create_new(name).is_err(), "{name}");
    }

    #[test]
    fn links_are_not_followed_wherever_they_are() {
        let (_place, folder, outside) = place();
        symlink(outside.join("theirs"), folder.path().join("link")).unwrap();
        symlink(outside.join("new"), folder.path().join("dangling")).unwrap();
        symlink(&outside, folder.path().join("dir")).unwrap();
        for name in ["link", "dangling", "dir/theirs", "dir/new"] {
            refuses(&folder, name);
            // As on a kernel that cannot do it in one step.
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW;
            assert!(open_stepwise(&folder.fd, Path::new(name), flags, Mode::empty()).is_err());
        }
        assert!(folder.replace("dir/theirs", "x").is_err());
        assert!(folder.remove("dir/theirs").is_err());
        assert!(folder.rename("kept", "dir/new").is_err());
        assert!(folder.folder("dir").is_err() && folder.ensure_folder("dir/more").is_err());
        assert!(Folder::resolved(&folder.path().join("dir")).is_err());
        let told = folder.read("link").unwrap_err().to_string();
        assert!(told.ends_with("ours/link is a link or leads through one, and is not followed"), "{told}");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
        assert_eq!(fs::read(outside.join("theirs")).unwrap(), b"theirs");
    }

    #[test]
    fn a_path_that_is_none_below_is_refused() {
        let (_place, folder, _) = place();
        for name in ["", ".", "..", "../outside/theirs", "/etc/passwd", "a/../../outside/theirs"] {
            refuses(&folder, name);
        }
    }

    #[test]
    fn pipes_and_directories_are_no_files_and_do_not_keep_us_waiting() {
        let (_place, folder, _) = place();
        rustix::fs::mkfifoat(CWD, folder.path().join("pipe"), PRIVATE_FILE).unwrap();
        folder.ensure_folder("dir").unwrap();
        for name in ["pipe", "dir"] {
            refuses(&folder, name);
        }
        assert!(folder.append("pipe").unwrap_err().to_string().ends_with("ours/pipe is no regular file"));
    }

    #[test]
    fn what_is_in_the_way_of_a_replacement_is_replaced_or_set_aside() {
        let (_place, folder, outside) = place();
        symlink(outside.join("theirs"), folder.path().join("link")).unwrap();
        fs::hard_link(outside.join("theirs"), folder.path().join("hard")).unwrap();
        rustix::fs::mkfifoat(CWD, folder.path().join("pipe"), PRIVATE_FILE).unwrap();
        folder.ensure_folder("dir/full").unwrap();
        for name in ["link", "hard", "pipe", "dir"] {
            folder.replace(name, "ours").unwrap();
            assert_eq!(folder.read_text(name, 99).unwrap(), "ours", "{name}");
        }
        assert_eq!(fs::read(outside.join("theirs")).unwrap(), b"theirs");
        symlink(&outside, folder.path().join("own")).unwrap();
        folder.own_folder("own").unwrap().replace("theirs", "ours").unwrap();
        let aside = folder
            .entries(99)
            .unwrap()
            .into_iter()
            .find(|(name, _)| name.to_string_lossy().starts_with("dir."))
            .unwrap()
            .0;
        assert!(folder.folder(Path::new(&aside).join("full")).is_ok());
    }

    #[test]
    fn a_file_of_two_names_is_copied_before_it_is_appended_to() {
        let (_place, folder, outside) = place();
        fs::hard_link(outside.join("theirs"), folder.path().join("log")).unwrap();
        folder.append("log").unwrap().write_all(b" and ours").unwrap();
        assert_eq!(folder.read_text("log", 99).unwrap(), "theirs and ours");
        assert_eq!(fs::read(outside.join("theirs")).unwrap(), b"theirs");
    }

    #[test]
    fn a_folder_that_is_held_is_the_one_that_was_opened() {
        let (_place, folder, outside) = place();
        let moved = folder.path().with_file_name("moved");
        fs::rename(folder.path(), &moved).unwrap();
        symlink(&outside, folder.path()).unwrap();
        folder.create_new("new").unwrap();
        assert!(moved.join("new").exists() && !outside.join("new").exists());
    }

    #[test]
    fn files_and_folders_are_their_owners_alone() {
        let (_place, folder, _) = place();
        folder.ensure_folder("a/b").unwrap();
        folder.append_or_create("a/b/log").unwrap().write_all(b"x").unwrap();
        folder.append_or_create("a/b/log").unwrap().write_all(b"y").unwrap();
        assert_eq!(folder.read_text("a/b/log", 99).unwrap(), "xy");
        let mode = |name: &str| folder.status(name).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("a"), mode("a/b"), mode("a/b/log"), mode("kept")), (0o700, 0o700, 0o600, 0o600));
    }
}
