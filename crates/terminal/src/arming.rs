//! Arming of dialogs, so that a key that was meant for something else does not answer a question.

/// Time without a key after which a dialog takes keys, in milliseconds.
pub const QUIET_TIME: u64 = 300;

/// Whether a dialog takes keys yet. It has to be on the screen, and the keyboard quiet, for [`QUIET_TIME`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arming {
    since: u64,
    armed: bool,
}

impl Arming {
    pub fn new(now: u64) -> Self {
        Self { since: now, armed: false }
    }

    /// For a dialog that follows from a key of the person: the next key is for it.
    pub fn at_once() -> Self {
        Self { since: 0, armed: true }
    }

    /// Whether a key that comes now is for the dialog. One that comes too early makes it wait again.
    pub fn takes_key(&mut self, now: u64) -> bool {
        self.is_armed(now);
        if !self.armed {
            self.since = now;
        }
        self.armed
    }

    pub fn is_armed(&mut self, now: u64) -> bool {
        self.armed |= now.saturating_sub(self.since) >= QUIET_TIME;
        self.armed
    }

    /// When the dialog takes keys, unless one comes before.
    pub fn due(&self) -> Option<u64> {
        (!self.armed).then_some(self.since + QUIET_TIME)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_within_the_quiet_time_answers_nothing_and_starts_it_again() {
        let mut arming = Arming::new(1_000);
        assert!(!arming.takes_key(1_100));
        assert!(!arming.takes_key(1_399));
        assert_eq!(arming.due(), Some(1_699));
        assert!(arming.takes_key(1_699));
        assert!(arming.takes_key(1_700), "once armed, keys may follow each other");
        assert_eq!(arming.due(), None);
    }
}
