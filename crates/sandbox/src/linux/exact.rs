//! Opens the paths of a policy without following links.
//!
//! The paths of a policy had no links in them when it was made. A command of the same session may have put one there since,
//! to be given what it leads to.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

use crate::Unavailable;

/// Opens a path that has no links in it, as a place only. `None` if it is not there.
pub(super) fn open_exactly(path: &Path) -> Result<Option<OwnedFd>, Unavailable> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(CWD, path, flags, Mode::empty(), resolve) {
        Ok(opened) => Ok(Some(opened)),
        Err(Errno::LOOP) => Err(Unavailable::Changed(path.to_owned())),
        // Gone, never there or out of reach.
        Err(_) => Ok(None),
    }
}
