//! When the work of a session has ended: the session is idle, and what it left in the background has ended too or has
//! been waited for long enough. One rule for every front end.

use std::time::Duration;

use tokio::time::Instant;

/// Maximum wait for background work, unless `COPILOT_TASK_WAIT_TIMEOUT_SECONDS` sets another.
pub const DEFAULT_TASK_WAIT: Duration = Duration::from_secs(600);

/// Maximum delay of the message that a background command has ended.
const NEWS_PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Wait {
    limit: Duration,
    phase: WaitPhase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WaitPhase {
    /// No submission is in progress.
    Resting,
    Working,
    /// The session is idle; its background work may go on until then. Events do not prolong it.
    Background(Instant),
    /// The background work has ended, and the session has until then to hear of it.
    News(Instant),
    /// The work was aborted: it has ended as soon as the session is idle.
    Stopping,
}

/// Activity of a session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Activity {
    pub(crate) idle: bool,
    /// Commands or sub-agents that go on while the session is idle.
    pub(crate) background: bool,
}

impl Wait {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, phase: WaitPhase::Resting }
    }

    /// Starts waiting for a submission.
    pub(crate) fn begin(&mut self) {
        self.phase = WaitPhase::Working;
    }

    /// Stops waiting for earlier submissions. A session that still works is noticed again.
    pub(crate) fn forget(&mut self) {
        self.phase = WaitPhase::Resting;
    }

    pub(crate) fn stop(&mut self) {
        if self.phase != WaitPhase::Resting {
            self.phase = WaitPhase::Stopping;
        }
    }

    pub(crate) fn is_resting(&self) -> bool {
        self.phase == WaitPhase::Resting
    }

    /// When to look again, if nothing happens before.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self.phase {
            WaitPhase::Background(until) | WaitPhase::News(until) => Some(until),
            WaitPhase::Resting | WaitPhase::Working | WaitPhase::Stopping => None,
        }
    }

    /// Whether the work has just ended. True once for each submission.
    pub(crate) fn has_ended(&mut self, Activity { idle, background }: Activity, now: Instant) -> bool {
        if idle && self.phase == WaitPhase::Resting {
            return false;
        }
        self.phase = match self.phase {
            WaitPhase::Stopping if !idle => WaitPhase::Stopping,
            _ if !idle => WaitPhase::Working,
            WaitPhase::Background(until) | WaitPhase::News(until) if until <= now => WaitPhase::Resting,
            WaitPhase::Background(until) if background => WaitPhase::Background(until),
            WaitPhase::Background(_) => WaitPhase::News(now + NEWS_PATIENCE),
            WaitPhase::News(until) if !background => WaitPhase::News(until),
            WaitPhase::Working | WaitPhase::News(_) if background => WaitPhase::Background(now + self.limit),
            WaitPhase::Resting | WaitPhase::Working | WaitPhase::News(_) | WaitPhase::Stopping => {
                WaitPhase::Resting
            }
        };
        self.phase == WaitPhase::Resting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a row of moments: `w` the session works, `i` it is idle, `b` it is idle with work in the background; a number
    /// lets so many seconds pass, `begin` and `stop` come from outside. Each moment at which the work ends is marked.
    fn check(row: &str, expected: &str) {
        let mut wait = Wait::new(Duration::from_secs(10));
        let mut now = Instant::now();
        let mut played = Vec::new();
        for moment in row.split_whitespace() {
            let load = match moment {
                "w" => Activity { idle: false, background: false },
                "i" => Activity { idle: true, background: false },
                "b" => Activity { idle: true, background: true },
                "begin" => {
                    wait.begin();
                    continue;
                }
                "stop" => {
                    wait.stop();
                    continue;
                }
                seconds => {
                    now += Duration::from_secs(seconds.parse().unwrap());
                    continue;
                }
            };
            played.push(if wait.has_ended(load, now) { "ended" } else { moment });
        }
        assert_eq!(played.join(" "), expected, "{row}");
    }

    #[test]
    fn work_ends_once_when_the_session_is_idle() {
        check("i i", "i i");
        check("begin w w i i", "w w ended i");
        check("begin i i", "ended i");
    }

    #[test]
    fn background_work_is_waited_for_with_one_deadline_whatever_happens_meanwhile() {
        check("begin w b 5 b 4 b 1 b b", "w b b b ended b");
    }

    #[test]
    fn the_end_of_background_work_is_news_that_the_session_may_act_on() {
        check("begin w b i w i i", "w b i w ended i");
        check("begin w b i 1 i", "w b i ended");
        check("begin w b i b 9 b 1 b", "w b i b b ended");
    }

    #[test]
    fn work_that_was_stopped_waits_for_nothing() {
        check("begin w stop w b b", "w w ended b");
        check("stop i", "i");
    }

    #[test]
    fn a_session_that_goes_on_by_itself_ends_too() {
        check("w i i", "w ended i");
    }
}
