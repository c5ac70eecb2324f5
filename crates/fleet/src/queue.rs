//! The queue of orders: what a worker does with it, wherever it is kept.

use std::time::Duration;

use async_trait::async_trait;

use crate::FleetError;
use crate::order::Order;

/// Orders that wait, by pool. Each is with one worker at a time.
#[async_trait]
pub trait OrderQueue: Send + Sync {
    /// Puts an order into the pool of its labels. One whose id is known is there already; false then.
    async fn put(&self, order: &Order) -> Result<bool, FleetError>;

    /// Names of the pools that have had orders.
    async fn pools(&self) -> Result<Vec<String>, FleetError>;

    /// Takes an order of a pool; waits for one for a while. An order that is neither extended nor settled within the lease goes to
    /// another worker.
    async fn pull(&self, pool: &str, wait: Duration) -> Result<Option<Box<dyn Ticket>>, FleetError>;

    /// Number of orders that wait or are being carried out.
    async fn count(&self) -> Result<u64, FleetError>;
}

/// An order that a worker holds.
#[async_trait]
pub trait Ticket: Send + Sync {
    /// The order as it was put.
    fn payload(&self) -> &[u8];

    /// Number of deliveries, this one included.
    fn deliveries(&self) -> u64;

    /// Begins the lease anew. An error means that the queue may give the order to another worker.
    async fn extend(&self) -> Result<(), FleetError>;

    /// Ends the delivery.
    async fn settle(&self, how: Settled) -> Result<(), FleetError>;
}

/// End of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    Done,
    /// Returned to the queue, for any worker after a delay.
    GiveBack(Duration),
    /// Removed from the queue for good.
    Never,
}
