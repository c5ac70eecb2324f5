//! Orders, logs and facts on real servers, and the same on this machine.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod claims;
mod growth;
mod queues;
mod runs;
mod servers;
mod slots;

use std::time::Duration;

use hangar_fleet::order::{Labels, Order, OrderId, OrderWorkspace, SessionSettings};
use hangar_fleet::{Broker, FleetSettings, VERSION};
use hangar_test_support::NatsServers;
use jiff::Timestamp;

/// Lease of the tests.
const LEASE: u64 = 2;

fn settings(servers: &NatsServers) -> FleetSettings {
    FleetSettings::of_url(&servers.url()).unwrap().with_lease(LEASE).unwrap()
}

async fn connect(servers: &NatsServers) -> Broker {
    Broker::connect(settings(servers), "test").await.unwrap()
}

fn order(id: &str, labels: &[&str]) -> Order {
    Order {
        v: VERSION,
        id: OrderId(id.to_owned()),
        session: uuid::Uuid::new_v4().to_string(),
        labels: Labels::parse(labels).unwrap(),
        prompt: id.to_owned(),
        settings: SessionSettings::default(),
        workspace: OrderWorkspace::Path { path: "/".into() },
        from: "test".to_owned(),
        placed: Timestamp::UNIX_EPOCH,
    }
}

/// Far longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);
