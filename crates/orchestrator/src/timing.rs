//! Times: when something is tried again, and when a turn has taken too long.

use std::time::Duration;

/// Delay before the session that continues one which ended well.
pub const CONTINUATION: Duration = Duration::from_secs(1);
/// Delay after the first failure. It doubles with each further one.
const FIRST_BACKOFF: Duration = Duration::from_secs(10);
/// More doublings could overflow before `min` could help.
const MOST_DOUBLINGS: u32 = 16;

/// Delay after so many failures in a row.
pub fn backoff(failures: u32, longest: Duration) -> Duration {
    let doublings = failures.saturating_sub(1).min(MOST_DOUBLINGS);
    FIRST_BACKOFF.saturating_mul(1 << doublings).min(longest)
}

/// A limit that a turn has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overdue {
    Turn(Duration),
    Stall(Duration),
}

impl Overdue {
    /// Name of the error.
    pub fn kind(self) -> &'static str {
        match self {
            Overdue::Turn(_) => "turn_timeout",
            Overdue::Stall(_) => "turn_stalled",
        }
    }

    pub fn sentence(self) -> String {
        match self {
            Overdue::Turn(limit) => format!("the turn was not done after {} s", limit.as_secs_f64()),
            Overdue::Stall(limit) => format!("the agent was silent for {} s", limit.as_secs_f64()),
        }
    }
}
