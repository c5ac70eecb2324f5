//! Lease of an order: extended every third of its time, and over before it ends if it cannot be extended.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::queue::Ticket;

/// Keeps the lease of an order until it is dropped. `over` is cancelled when two thirds have passed without an extension, so that
/// a third is left to stop the agents.
pub struct LeaseKeeper {
    over: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl LeaseKeeper {
    pub fn start(ticket: Arc<dyn Ticket>, lease: Duration) -> Self {
        let over = CancellationToken::new();
        let task = tokio::spawn(FutureExt::boxed(keep(ticket, lease, over.clone())));
        Self { over, task }
    }

    /// Cancelled when the lease cannot be kept.
    pub fn over(&self) -> &CancellationToken {
        &self.over
    }
}

impl Drop for LeaseKeeper {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn keep(ticket: Arc<dyn Ticket>, lease: Duration, over: CancellationToken) {
    let third = lease / 3;
    let mut extended = Instant::now();
    loop {
        tokio::time::sleep(third.min((extended + 2 * third).saturating_duration_since(Instant::now()))).await;
        // The time before the request counts: the server may begin the lease when it arrives.
        let asked = Instant::now();
        if asked < extended + 2 * third {
            let answer = tokio::time::timeout_at(extended + 2 * third, ticket.extend()).await;
            match answer {
                Ok(Ok(())) => {
                    extended = asked;
                    continue;
                }
                Ok(Err(error)) => {
                    tracing::warn!(%error, "a lease could not be extended");
                    // A refusal comes at once; the next attempt need not.
                    tokio::time::sleep(third / 4).await;
                }
                Err(_) => {}
            }
        }
        if Instant::now() >= extended + 2 * third {
            over.cancel();
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use async_trait::async_trait;

    use super::*;
    use crate::FleetError;
    use crate::queue::Settled;

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

    async fn check(answers: u32, seconds: u64) {
        let began = Instant::now();
        let lease = Duration::from_secs(30);
        let keeper = LeaseKeeper::start(Arc::new(Answers(AtomicU32::new(answers))), lease);
        keeper.over().cancelled().await;
        assert_eq!(began.elapsed().as_secs(), seconds);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_cannot_be_extended_is_over_before_it_ends() {
        check(0, 20).await;
    }

    #[tokio::test(start_paused = true)]
    async fn an_extension_begins_it_anew() {
        check(1, 30).await;
        check(3, 50).await;
    }
}
