//! Lease of an order: extended every third of its time, and over before it ends if it cannot be extended.
//!
//! A lease begins before its worker hears of it: when the worker asked for an order, or for an extension. Time is that of a clock
//! that goes on while the machine sleeps, so a machine that was suspended, or a process that was stopped, finds its lease over.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use tokio_util::sync::CancellationToken;

use crate::queue::Ticket;

/// Longest sleep of the keeper, as a part of a third of the lease: the timers of a suspended machine stand still.
const STEPS: u32 = 4;

/// A point in time, since the machine was started. Suspended time counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeaseInstant(Duration);

impl LeaseInstant {
    pub fn now() -> Self {
        Self(since_start())
    }
}

fn since_start() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    #[cfg(target_os = "linux")]
    const CLOCK: ClockId = ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    const CLOCK: ClockId = ClockId::Monotonic;
    let time = clock_gettime(CLOCK);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

/// Time at which the holder of a lease must have stopped. Clones share it.
#[derive(Debug, Clone)]
pub struct LeaseEnd(Arc<Ending>);

#[derive(Debug)]
struct Ending {
    /// Nanoseconds on the clock.
    at: AtomicU64,
    clock: fn() -> Duration,
}

impl LeaseEnd {
    fn new(at: Duration, clock: fn() -> Duration) -> Self {
        Self(Arc::new(Ending { at: AtomicU64::new(nanos(at)), clock }))
    }

    /// Whether the time has come, by the clock alone: a process that was stopped knows at once.
    pub fn has_come(&self) -> bool {
        self.left().is_zero()
    }

    fn left(&self) -> Duration {
        let left = self.0.at.load(Ordering::Acquire).saturating_sub(nanos((self.0.clock)()));
        Duration::from_nanos(left)
    }

    fn set(&self, at: Duration) {
        self.0.at.store(nanos(at), Ordering::Release);
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Keeps the lease of an order until it is dropped. `over` is cancelled when two thirds have passed without an extension, so that
/// a third is left to stop the agents.
pub struct LeaseKeeper {
    over: CancellationToken,
    end: LeaseEnd,
    task: tokio::task::JoinHandle<()>,
}

impl LeaseKeeper {
    /// Keeps a lease that began at `since` or later.
    pub fn start(ticket: Arc<dyn Ticket>, lease: Duration, since: LeaseInstant) -> Self {
        Self::with_clock(ticket, lease, since.0, since_start)
    }

    fn with_clock(
        ticket: Arc<dyn Ticket>,
        lease: Duration,
        since: Duration,
        clock: fn() -> Duration,
    ) -> Self {
        let over = CancellationToken::new();
        let third = lease / 3;
        let end = LeaseEnd::new(since + 2 * third, clock);
        let kept = Kept { ticket, third, end: end.clone(), over: over.clone() };
        let task = tokio::spawn(FutureExt::boxed(kept.keep(since + third)));
        Self { over, end, task }
    }

    /// Cancelled when the lease cannot be kept.
    pub fn over(&self) -> &CancellationToken {
        &self.over
    }

    /// Time at which everything must have stopped.
    pub fn end(&self) -> &LeaseEnd {
        &self.end
    }

    /// Whether the order may be with another worker.
    pub fn is_over(&self) -> bool {
        self.over.is_cancelled() || self.end.has_come()
    }
}

impl Drop for LeaseKeeper {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Kept {
    ticket: Arc<dyn Ticket>,
    third: Duration,
    end: LeaseEnd,
    over: CancellationToken,
}

impl Kept {
    async fn keep(self, mut due: Duration) {
        let now = self.end.0.clock;
        while !self.end.has_come() {
            let pause = due.saturating_sub(now()).min(self.end.left());
            if !pause.is_zero() {
                tokio::time::sleep(pause.min(self.third / STEPS)).await;
                continue;
            }
            // The time before the request counts: the server may begin the lease when it arrives.
            let asked = now();
            match tokio::time::timeout(self.end.left(), self.ticket.extend()).await {
                // An answer that came too late may be about the lease of another worker.
                Ok(Ok(())) if !self.end.has_come() => {
                    self.end.set(asked + 2 * self.third);
                    due = asked + self.third;
                }
                Ok(Ok(())) | Err(_) => {}
                Ok(Err(error)) => {
                    tracing::warn!(%error, "a lease could not be extended");
                    // A refusal comes at once; the next attempt need not.
                    due = now() + self.third / STEPS;
                }
            }
        }
        self.over.cancel();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;
    use std::sync::atomic::AtomicU32;

    use async_trait::async_trait;
    use tokio::time::Instant;

    use super::*;
    use crate::FleetError;
    use crate::queue::Settled;

    const LEASE: Duration = Duration::from_secs(30);

    /// Answers so many extensions, then none.
    struct Answers(AtomicU32);

    #[async_trait]
    impl Ticket for Answers {
        fn payload(&self) -> &[u8] {
            b""
        }

        fn deliveries(&self) -> u64 {
            1
        }

        async fn extend(&self) -> Result<(), FleetError> {
            let left = self.0.load(Ordering::Relaxed);
            match left {
                0 => std::future::pending().await,
                left => self.0.store(left - 1, Ordering::Relaxed),
            }
            Ok(())
        }

        async fn settle(&self, _: Settled) -> Result<(), FleetError> {
            Ok(())
        }
    }

    /// The paused clock of the timers.
    fn timers() -> Duration {
        thread_local!(static START: OnceLock<Instant> = const { OnceLock::new() });
        START.with(|start| start.get_or_init(Instant::now).elapsed()) + Duration::from_secs(1000)
    }

    /// The same on a machine that was suspended for an hour after 5 seconds.
    fn suspended() -> Duration {
        let time = timers();
        if time < Duration::from_secs(1005) { time } else { time + Duration::from_secs(3600) }
    }

    /// Seconds until the lease is over, asked for `waited` seconds before it was given.
    async fn seconds(answers: u32, waited: u64, clock: fn() -> Duration) -> u64 {
        let began = Instant::now();
        let since = clock() - Duration::from_secs(waited);
        let ticket = Arc::new(Answers(AtomicU32::new(answers)));
        let keeper = LeaseKeeper::with_clock(ticket, LEASE, since, clock);
        keeper.over().cancelled().await;
        assert!(keeper.is_over());
        began.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_cannot_be_extended_is_over_before_it_ends() {
        assert_eq!(seconds(0, 0, timers).await, 20);
    }

    #[tokio::test(start_paused = true)]
    async fn an_extension_begins_it_anew() {
        assert_eq!(seconds(1, 0, timers).await, 30);
        assert_eq!(seconds(3, 0, timers).await, 50);
    }

    #[tokio::test(start_paused = true)]
    async fn the_wait_for_an_order_is_part_of_its_lease() {
        assert_eq!(seconds(0, 8, timers).await, 12);
        assert_eq!(seconds(0, 25, timers).await, 0);
        // Extended at once.
        assert_eq!(seconds(1, 12, timers).await, 20);
    }

    #[tokio::test(start_paused = true)]
    async fn a_machine_that_was_suspended_knows_that_its_lease_is_over() {
        let over = seconds(100, 0, suspended).await;
        assert!((5..8).contains(&over), "{over}");
    }
}
