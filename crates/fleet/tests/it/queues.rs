//! The rules of a queue, held by the one in a file, by a server of today and by an old one.

use std::sync::Arc;
use std::time::Duration;

use hangar_fleet::FleetError;
use hangar_fleet::file_queue::FileQueue;
use hangar_fleet::order::Order;
use hangar_fleet::queue::{OrderQueue, Settled, Ticket};
use hangar_fleet::work_queue::WorkQueue;
use hangar_test_support::{NatsServers, NatsVersion};

use crate::{LEASE, LONG, connect, order};

async fn pull(queue: &dyn OrderQueue, pool: &str) -> (Order, Box<dyn Ticket>) {
    let ticket = queue.pull(pool, LONG).await.unwrap().expect("an order");
    (Order::parse(ticket.payload()).unwrap(), ticket)
}

async fn nothing(queue: &dyn OrderQueue, pool: &str) {
    assert!(queue.pull(pool, Duration::from_millis(150)).await.unwrap().is_none());
}

/// Whether a queue keeps a delay; old servers give an order back at once.
#[derive(PartialEq)]
enum Delays {
    Kept,
    Unknown,
}

/// All rules.
async fn suite(queue: Arc<dyn OrderQueue>, delays: Delays) {
    let queue = &*queue;

    // Orders of a pool come in their order, each once, and an id that is known is no second order.
    assert!(queue.put(&order("one", &[])).await.unwrap());
    assert!(queue.put(&order("two", &[])).await.unwrap());
    assert!(!queue.put(&order("one", &[])).await.unwrap());
    let (first, one) = pull(queue, "any").await;
    let (second, two) = pull(queue, "any").await;
    assert_eq!((first.prompt.as_str(), second.prompt.as_str()), ("one", "two"));
    assert_eq!((one.deliveries(), two.deliveries()), (1, 1));
    nothing(queue, "any").await;

    // One that is done or refused for good never comes again.
    one.settle(Settled::Done).await.unwrap();
    two.settle(Settled::Never).await.unwrap();
    assert_eq!(queue.count().await.unwrap(), 0);

    // An extended lease lasts; one that is not goes to another.
    queue.put(&order("leased", &[])).await.unwrap();
    let (_, held) = pull(queue, "any").await;
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_secs(LEASE) / 3).await;
        held.extend().await.unwrap();
        nothing(queue, "any").await;
    }
    let (again, ticket) = pull(queue, "any").await;
    assert_eq!((again.prompt.as_str(), ticket.deliveries()), ("leased", 2));

    // What is given back comes again.
    ticket.settle(Settled::GiveBack(Duration::ZERO)).await.unwrap();
    let (_, ticket) = pull(queue, "any").await;
    assert_eq!(ticket.deliveries(), 3);
    if delays == Delays::Kept {
        ticket.settle(Settled::GiveBack(Duration::from_secs(1))).await.unwrap();
        nothing(queue, "any").await;
        let (_, ticket) = pull(queue, "any").await;
        ticket.settle(Settled::Done).await.unwrap();
    } else {
        ticket.settle(Settled::Done).await.unwrap();
    }
    assert_eq!(queue.count().await.unwrap(), 0);

    // Pools are apart.
    queue.put(&order("gpu", &["linux", "gpu"])).await.unwrap();
    nothing(queue, "any").await;
    let mut pools = queue.pools().await.unwrap();
    pools.sort();
    assert_eq!(pools, ["any", "gpu_linux"]);
    let (_, ticket) = pull(queue, "gpu_linux").await;
    ticket.settle(Settled::Done).await.unwrap();
}

#[tokio::test]
async fn the_queue_in_a_file_keeps_the_rules() {
    let directory = tempfile::tempdir().unwrap();
    let open =
        || FileQueue::open(directory.path(), Duration::from_secs(LEASE), jiff::Timestamp::now).unwrap();
    suite(Arc::new(open()), Delays::Kept).await;

    // Another process sees the same queue.
    open().put(&order("left", &[])).await.unwrap();
    let (left, _ticket) = pull(&open(), "any").await;
    assert_eq!(left.prompt, "left");
}

#[tokio::test]
async fn the_queue_on_a_server_keeps_the_rules() {
    let servers = NatsServers::one();
    let broker = connect(&servers).await;
    suite(Arc::new(WorkQueue::new(&broker)), Delays::Kept).await;
}

#[tokio::test]
async fn the_queue_on_an_old_server_keeps_the_rules() {
    let servers = NatsServers::start(NatsVersion::Debian, 1, "");
    let broker = connect(&servers).await;
    suite(Arc::new(WorkQueue::new(&broker)), Delays::Unknown).await;
}

#[tokio::test]
async fn a_full_queue_refuses_new_orders_and_keeps_the_old() {
    let servers = NatsServers::one();
    let small = hangar_fleet::FleetSettings { work_bytes: 4096, ..crate::settings(&servers) };
    let broker = hangar_fleet::Broker::connect(small, "test").await.unwrap();
    let queue = WorkQueue::new(&broker);
    let mut accepted = 0;
    let refused = loop {
        match queue.put(&order(&format!("order-{accepted}"), &[])).await {
            Ok(_) => accepted += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, FleetError::Full { stream: "WORK", .. }), "{refused}");
    assert_eq!(queue.count().await.unwrap(), accepted);
    for n in 0..accepted {
        let (order, ticket) = pull(&queue, "any").await;
        assert_eq!(order.prompt, format!("order-{n}"));
        ticket.settle(Settled::Done).await.unwrap();
    }
}
