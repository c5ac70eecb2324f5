//! What a command inherits: its three streams. Whatever else is open here, we were given by whoever started us; no layer
//! asks again about what is open already.

use crate::Unavailable;

/// The first descriptor that is not one of the streams.
const FIRST: libc::c_uint = 3;

/// Takes effect when the command is run.
pub(super) fn confine() -> Result<(), Unavailable> {
    #[expect(unsafe_code, reason = "no library offers the call")]
    // SAFETY: descriptors are marked, not closed: whoever has one in this process keeps it.
    let marked =
        unsafe { libc::syscall(libc::SYS_close_range, FIRST, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if marked == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    Err(Unavailable::Refused(format!("files that are open cannot be kept from it: {error}")))
}
