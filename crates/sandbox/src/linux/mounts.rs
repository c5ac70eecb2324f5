//! The mount namespace of a command: everything but the writable directories is read-only, `/proc` shows its own processes,
//! `/dev/pts` its own terminals, and denied paths are empty.
//!
//! Landlock knows reading and writing of content. Modes, owners, times and extended attributes are only kept by a
//! read-only mount. Where a namespace of mounts cannot be had the other layers stand alone, and what a command cannot have
//! to itself they keep from it.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};

use super::exact::open_exactly;
use super::namespaces::Entered;
use crate::{Metadata, SandboxPolicy, Unavailable, deepest};

const NOTHING: Option<&str> = None;

/// Resources that a command does not share with the rest of the machine.
#[derive(Debug, Default)]
pub(super) struct Isolation {
    /// Mounts: metadata of files outside cannot be changed.
    pub(super) metadata: bool,
    /// System V and POSIX IPC.
    pub(super) ipc: bool,
    /// Terminals: what others type cannot be read, and nothing can be shown to them.
    pub(super) terminals: bool,
    /// Processes, and a `/proc` that shows no others.
    pub(super) processes: bool,
}

pub(super) fn confine(policy: &SandboxPolicy, entered: Entered) -> Result<Isolation, Unavailable> {
    let mut isolation = Isolation { ipc: entered.ipc, ..Isolation::default() };
    if entered.mounts {
        isolation.metadata = match mount_private(policy, entered, &mut isolation) {
            Ok(()) => true,
            Err(Failed::Changed(changed)) => return Err(changed),
            Err(Failed::Refused) => false,
        };
    }
    Ok(isolation)
}

/// Reason why the mounts were not made.
enum Failed {
    /// The machine refuses them.
    Refused,
    /// A path is no longer what it was when the session began.
    Changed(Unavailable),
}

impl From<io::Error> for Failed {
    fn from(_: io::Error) -> Self {
        Self::Refused
    }
}

impl From<Errno> for Failed {
    fn from(_: Errno) -> Self {
        Self::Refused
    }
}

fn mount_private(policy: &SandboxPolicy, entered: Entered, isolation: &mut Isolation) -> Result<(), Failed> {
    // Mounts made here must not show up outside, nor the other way round.
    mount(NOTHING, "/", NOTHING, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NOTHING)?;
    isolation.processes = entered.processes && mount_processes().is_ok();
    if policy.metadata == Metadata::Frozen {
        return Ok(());
    }
    let cwd = std::env::current_dir()?;
    let (writable, protected) = (&policy.writable, &policy.protected);
    // The root of everything is a mount already.
    for path in writable.iter().chain(protected).filter(|path| path.parent().is_some()) {
        pin(path)?;
    }
    let denied: Vec<PathBuf> = policy.denied.iter().filter_map(|path| path.canonicalize().ok()).collect();
    hide(&denied, writable)?;
    let mut refused = None;
    for Mounted { at, flags } in mounted()? {
        let stays = deepest(writable, &at) > deepest(protected, &at);
        if stays || flags.contains(MsFlags::MS_RDONLY) {
            continue;
        }
        let flags = flags | MsFlags::MS_RDONLY | MsFlags::MS_REMOUNT | MsFlags::MS_BIND;
        match mount(NOTHING, &at, NOTHING, flags, NOTHING) {
            // Hidden under another mount, so it cannot be reached.
            Ok(()) | Err(Errno::ENOENT | Errno::ENOTDIR | Errno::EINVAL) => {}
            Err(error) => refused = Some(error),
        }
    }
    isolation.terminals = mount_terminals().is_ok();
    // By its path again: the directory is now reached through the new mounts.
    std::env::set_current_dir(cwd)?;
    refused.map_or(Ok(()), |error: Errno| Err(error.into()))
}

/// Mounts a path over itself: it can then be mounted otherwise than what is around it, and not be renamed.
fn pin(path: &Path) -> Result<(), Failed> {
    let Some(opened) = open_exactly(path).map_err(Failed::Changed)? else { return Ok(()) };
    let opened = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()));
    mount(Some(&opened), &opened, NOTHING, MsFlags::MS_BIND | MsFlags::MS_REC, NOTHING)?;
    Ok(())
}

/// Mounts something empty over what is denied within a writable directory, where Landlock could not deny it.
///
/// The directories on the way to it stay where they are, or it would have another name next time.
fn hide(denied: &[PathBuf], writable: &[PathBuf]) -> Result<(), Failed> {
    let mut left: Vec<PathBuf> =
        denied.iter().filter(|path| writable.iter().any(|dir| path.starts_with(dir))).cloned().collect();
    let above = |path: &Path| -> Vec<PathBuf> {
        let inside = |dir: &Path| writable.iter().any(|root| dir.starts_with(root) && dir != root);
        path.ancestors().skip(1).filter(|dir| inside(dir)).map(PathBuf::from).collect()
    };
    let mut ways: Vec<PathBuf> = left.iter().flat_map(|path| above(path)).collect();
    ways.extend(left.iter().filter(|path| writable.iter().any(|dir| dir.starts_with(path))).cloned());
    ways.sort();
    ways.dedup();
    for way in ways {
        pin(&way)?;
    }
    while let Some(path) = left.pop() {
        if writable.contains(&path) {
            continue;
        }
        // Its writable parts stay writable.
        if writable.iter().any(|dir| dir.starts_with(&path)) {
            left.extend(std::fs::read_dir(&path)?.flatten().map(|entry| entry.path()));
            continue;
        }
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            let flags = MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
            mount(Some("tmpfs"), &path, Some("tmpfs"), flags, Some("size=4k,mode=0500"))?;
        } else {
            mount(Some("/dev/null"), &path, NOTHING, MsFlags::MS_BIND, NOTHING)?;
        }
    }
    Ok(())
}

/// A view of the processes of this namespace alone. Refused in containers whose own view is restricted.
fn mount_processes() -> io::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    Ok(mount(Some("proc"), "/proc", Some("proc"), flags, NOTHING)?)
}

/// Mounts a private `/dev/pts`: new terminals are separate from those of other processes.
fn mount_terminals() -> io::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    let options = Some("newinstance,ptmxmode=0666,mode=0620");
    mount(Some("devpts"), "/dev/pts", Some("devpts"), flags, options)?;
    Ok(mount(Some("/dev/pts/ptmx"), "/dev/ptmx", NOTHING, MsFlags::MS_BIND, NOTHING)?)
}

struct Mounted {
    at: PathBuf,
    flags: MsFlags,
}

fn mounted() -> io::Result<Vec<Mounted>> {
    let table = std::fs::read("/proc/self/mountinfo")?;
    Ok(table.split(|byte| *byte == b'\n').filter_map(parse).collect())
}

/// One line: `36 35 98:0 /root /mount/point rw,noatime ...`.
fn parse(line: &[u8]) -> Option<Mounted> {
    let mut fields = line.split(|byte| *byte == b' ').skip(4);
    let at = unescape(fields.next()?);
    let options = std::str::from_utf8(fields.next()?).ok()?;
    let flags = options.split(',').fold(MsFlags::empty(), |flags, option| {
        flags
            | match option {
                "ro" => MsFlags::MS_RDONLY,
                "nosuid" => MsFlags::MS_NOSUID,
                "nodev" => MsFlags::MS_NODEV,
                "noexec" => MsFlags::MS_NOEXEC,
                "noatime" => MsFlags::MS_NOATIME,
                "nodiratime" => MsFlags::MS_NODIRATIME,
                "relatime" => MsFlags::MS_RELATIME,
                _ => MsFlags::empty(),
            }
    });
    Some(Mounted { at, flags })
}

/// Blanks and the like are written as `\040`.
fn unescape(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|_| *first == b'\\');
        let code = octal.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match code {
            Some(code) => {
                bytes.push(code);
                rest = &after[3..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    Path::new(&OsString::from_vec(bytes)).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_mount_table_keep_their_flags_and_blanks() {
        let line = b"36 35 98:0 /r /mnt/my\\040disk rw,nosuid,relatime shared:1 - ext4 /dev/sda rw";
        let Mounted { at, flags } = parse(line).unwrap();
        assert_eq!(at, Path::new("/mnt/my disk"));
        assert_eq!(flags, MsFlags::MS_NOSUID | MsFlags::MS_RELATIME);
        assert!(parse(b"").is_none());
    }
}
