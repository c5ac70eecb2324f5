//! File descriptors: a command inherits its three streams only. Others that are open here came from our parent, and no
//! layer checks descriptors that are already open.

use std::io;

/// The first descriptor that is not one of the streams.
const FIRST: libc::c_uint = 3;

/// Marks all other descriptors close-on-exec. Safe to call between fork and exec.
pub(super) fn confine() -> io::Result<()> {
    #[expect(unsafe_code, reason = "no library offers the call")]
    // SAFETY: descriptors are marked, not closed: whoever has one in this process keeps it.
    let marked =
        unsafe { libc::syscall(libc::SYS_close_range, FIRST, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if marked == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
