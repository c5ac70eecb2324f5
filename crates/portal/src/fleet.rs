//! The machines of a fleet, as the portal shows and steers them. The host hands them in.

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// The fleet of a portal.
pub trait FleetHost: Send + Sync {
    /// The fleet as its facts describe it.
    fn view(&self) -> FleetView;

    /// Tells a worker whether to take orders. False if there is no such worker.
    fn set_mode(&self, worker: &str, mode: WorkerMode) -> BoxFuture<'static, Result<bool, String>>;
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Fleet")]
pub struct FleetView {
    /// Addresses of the servers, without passwords.
    pub servers: String,
    /// Server that this portal is connected to.
    pub server: String,
    pub server_version: String,
    pub connected: bool,
    pub lease_seconds: u64,
    /// Sessions whose orders wait for a worker.
    pub orders_waiting: u64,
    /// Age of the order that waits longest.
    pub oldest_order_seconds: Option<f64>,
    /// Sessions that a worker has.
    pub sessions_running: u64,
    /// Sessions whose orders were given up.
    pub sessions_parked: u64,
    pub sessions: u64,
    pub workers: Vec<FleetWorker>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FleetWorker {
    pub name: String,
    /// ready, cordoned, draining, lost or gone.
    pub state: String,
    pub labels: Vec<String>,
    pub slots: u32,
    pub busy: u32,
    pub version: String,
    /// Free bytes of the disk with its home.
    pub free_bytes: Option<u64>,
    /// Load average over a minute.
    pub load: Option<f64>,
    /// Time of its last heartbeat.
    pub seen_at: String,
    pub seconds_since_heartbeat: u64,
    /// Sentence about orders that it could not take.
    pub trouble: Option<String>,
    /// Sessions that it took over from lost workers.
    pub takeovers: u64,
    /// Milliseconds of its last append to a log.
    pub append_ms: Option<f64>,
}

/// Whether a worker takes orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WorkerMode {
    Open,
    Cordoned,
    /// It takes no more orders, and exits when it has none.
    Draining,
}
