//! Namespaces: one of mounts, in which all but the writable directories is mounted read-only and terminals are the
//! command's own, and one of what processes share by number.
//!
//! Landlock knows reading and writing of content. Modes, owners, times and extended attributes are only kept by a
//! read-only mount. Where namespaces cannot be had the other layers stand alone, and what a command cannot have to itself
//! they keep from it.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

use crate::Policy;

const NOTHING: Option<&str> = None;

/// What a command has to itself.
#[derive(Debug, Default)]
pub(super) struct Own {
    /// Mounts, so that nothing about files outside can be changed.
    pub(super) metadata: bool,
    /// Shared memory, semaphores and message queues.
    pub(super) ipc: bool,
    /// Terminals: what others type cannot be read, and nothing can be shown to them.
    pub(super) terminals: bool,
}

pub(super) fn confine(policy: &Policy) -> Own {
    let mut own = Own::default();
    own.metadata = mount_apart(policy, &mut own).is_ok();
    own
}

fn mount_apart(policy: &Policy, own: &mut Own) -> io::Result<()> {
    let cwd = std::env::current_dir()?;
    enter_namespace()?;
    own.ipc = unshare(CloneFlags::CLONE_NEWIPC).is_ok();
    // What is mounted here must not show up outside.
    mount(NOTHING, "/", NOTHING, MsFlags::MS_REC | MsFlags::MS_SLAVE, NOTHING)?;
    let real = |paths: &[PathBuf]| -> Vec<PathBuf> {
        paths.iter().filter_map(|path| path.canonicalize().ok()).collect()
    };
    let (writable, protected) = (real(&policy.writable), real(&policy.protected));
    for path in writable.iter().chain(&protected) {
        mount(Some(path), path, NOTHING, MsFlags::MS_BIND | MsFlags::MS_REC, NOTHING)?;
    }
    let mut refused = None;
    for Mounted { at, flags } in mounted()? {
        let stays = writable.iter().any(|dir| at.starts_with(dir)) && !protected.contains(&at);
        if stays || flags.contains(MsFlags::MS_RDONLY) {
            continue;
        }
        let flags = flags | MsFlags::MS_RDONLY | MsFlags::MS_REMOUNT | MsFlags::MS_BIND;
        match mount(NOTHING, &at, NOTHING, flags, NOTHING) {
            // Hidden under another mount: nobody gets there.
            Ok(()) | Err(Errno::ENOENT | Errno::ENOTDIR | Errno::EINVAL) => {}
            Err(error) => refused = Some(error),
        }
    }
    own.terminals = mount_terminals().is_ok();
    // By its path again: the directory is now reached through the new mounts.
    std::env::set_current_dir(cwd)?;
    refused.map_or(Ok(()), |error| Err(error.into()))
}

/// New terminals are made in a place of their own, beside those of everybody else.
fn mount_terminals() -> io::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    let options = Some("newinstance,ptmxmode=0666,mode=0620");
    mount(Some("devpts"), "/dev/pts", Some("devpts"), flags, options)?;
    Ok(mount(Some("/dev/pts/ptmx"), "/dev/ptmx", NOTHING, MsFlags::MS_BIND, NOTHING)?)
}

/// Without privileges, a user namespace brings the right to mount. Whoever has it does not need one.
fn enter_namespace() -> io::Result<()> {
    let (user, group) = (geteuid(), getegid());
    if user.is_root() && unshare(CloneFlags::CLONE_NEWNS).is_ok() {
        return Ok(());
    }
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS)?;
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
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
