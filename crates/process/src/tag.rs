//! A mark in a resource limit, for processes that cleared their environment.
//!
//! A process that clears its environment, leaves its group and is orphaned still has its resource limits, which its children
//! inherit. RLIMIT_RTTIME is unlimited everywhere; as a mark it is a number of microseconds beyond any that somebody could
//! mean.

use std::io;

/// Above all plausible limits.
const BASE: u64 = 1 << 62;
/// Bits for the number of a command within its session.
const COMMAND_BITS: u32 = 24;

/// The tag of a mark. Those of one session differ in the last bits alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessTag(u64);

impl ProcessTag {
    /// The mark of a numbered command is the session's, which ends with a colon, and the number with a dot. Any other mark
    /// is hashed as a whole: two that differ only in what follows a colon are not the same command.
    pub(crate) fn of(mark: &str) -> Self {
        let numbered = mark.rsplit_once(':').and_then(|(session, command)| match command {
            "" => Some((session, 0)),
            command => Some((session, command.strip_suffix('.')?.parse().ok()?)),
        });
        let (session, number) = numbered.unwrap_or((mark, 0_u64));
        // FNV-1a: small, and the same in every process.
        let hash = session
            .bytes()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        Self(BASE | u64::from(hash) << COMMAND_BITS | number & ((1 << COMMAND_BITS) - 1))
    }

    pub(crate) fn number(self) -> u64 {
        self.0
    }

    /// Tags the calling process and all that it starts. Safe to call between fork and exec.
    #[cfg(target_os = "linux")]
    pub(crate) fn put_on(self) -> io::Result<()> {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let maximum = getrlimit(Resource::Rttime).maximum;
        // If that limit is set after all, the mark in the environment is used.
        if maximum.is_none_or(|maximum| maximum >= self.0) {
            let _ = setrlimit(Resource::Rttime, Rlimit { current: Some(self.0), maximum });
        }
        Ok(())
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn put_on(self) -> io::Result<()> {
        Ok(())
    }

    /// Returns whether `/proc/PID/limits` carries this tag, or one of the same session.
    #[cfg(target_os = "linux")]
    pub(crate) fn is_on(self, limits: &str, all_of_session: bool) -> bool {
        let line = limits.lines().find_map(|line| line.strip_prefix("Max realtime timeout"));
        let soft =
            line.and_then(|line| line.split_whitespace().next()).and_then(|soft| soft.parse::<u64>().ok());
        let ignored = if all_of_session { COMMAND_BITS } else { 0 };
        soft.is_some_and(|soft| soft >> ignored == self.0 >> ignored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_a_session_share_all_but_the_last_bits() {
        let session = ProcessTag::of("shell:7-1:");
        let limits = |tag: ProcessTag| format!("Max realtime timeout      {}  unlimited  us", tag.number());
        let first = ProcessTag::of("shell:7-1:1.");
        assert!(session.is_on(&limits(first), true) && first.is_on(&limits(first), false));
        assert!(!first.is_on(&limits(ProcessTag::of("shell:7-1:2.")), false));
        assert!(!session.is_on(&limits(ProcessTag::of("shell:7-2:1.")), true));
        assert!(!session.is_on(&limits(ProcessTag::of("detached:shell:7-1:1.")), true));
        assert_ne!(ProcessTag::of("git:5f0c"), ProcessTag::of("git:91ab"));
        assert!(!session.is_on("Max realtime timeout      unlimited  unlimited  us", true));
    }
}
