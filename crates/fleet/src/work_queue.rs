//! The queue of orders on the servers: one stream, and one consumer per pool that all its workers share.

use std::collections::HashMap;
use std::time::Duration;

use async_nats::jetstream::AckKind;
use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::{Message, PublishMessage};
use async_trait::async_trait;
use futures_util::StreamExt;
use tokio::sync::Mutex;

use crate::order::Order;
use crate::queue::{OrderQueue, Settled, Ticket};
use crate::{Broker, FleetError};

/// Orders of one pool that are carried out at once, at most.
const MAX_AT_WORK: i64 = 100_000;
/// Shortest wait that a server takes.
const SHORTEST: Duration = Duration::from_millis(100);
/// Time beyond the wait for the server's answer.
const GRACE: Duration = Duration::from_secs(2);
/// Attempts to place an order while a leader is elected.
const PLACING: u32 = 40;
const PLACING_PAUSE: Duration = Duration::from_millis(250);

/// The queue of a fleet.
pub struct WorkQueue {
    broker: Broker,
    consumers: Mutex<HashMap<String, PullConsumer>>,
}

impl WorkQueue {
    pub fn new(broker: &Broker) -> Self {
        Self { broker: broker.clone(), consumers: Mutex::default() }
    }

    /// The consumer of a pool, created if it is missing.
    async fn consumer(&self, pool: &str) -> Result<PullConsumer, FleetError> {
        if let Some(known) = self.consumers.lock().await.get(pool) {
            return Ok(known.clone());
        }
        let config = pull::Config {
            durable_name: Some(pool.to_owned()),
            filter_subject: self.subject(pool),
            ack_policy: AckPolicy::Explicit,
            ack_wait: self.broker.settings().lease,
            // Attempts are counted in the log of the session: a delivery that was given back is none.
            max_deliver: -1,
            max_ack_pending: MAX_AT_WORK,
            ..pull::Config::default()
        };
        let consumer = self
            .broker
            .work()
            .create_consumer(config)
            .await
            .map_err(|error| FleetError::failed(format!("opening the pool {pool}"), &error))?;
        self.consumers.lock().await.insert(pool.to_owned(), consumer.clone());
        Ok(consumer)
    }

    fn subject(&self, pool: &str) -> String {
        self.broker.subject(&format!("work.{pool}"))
    }
}

#[async_trait]
impl OrderQueue for WorkQueue {
    async fn put(&self, order: &Order) -> Result<bool, FleetError> {
        let pool = order.labels.pool();
        // Workers find pools by their consumers.
        self.consumer(&pool).await?;
        let payload =
            serde_json::to_vec(order).map_err(|error| FleetError::failed("encoding an order", &error))?;
        let mut tries = 0;
        loop {
            let publish = PublishMessage::build().payload(payload.clone().into()).message_id(&order.id.0);
            let placed = match self.broker.context().send_publish(self.subject(&pool), publish).await {
                Ok(acknowledged) => acknowledged.await,
                Err(error) => Err(error),
            };
            match placed {
                Ok(acknowledged) => return Ok(!acknowledged.duplicate),
                // The id makes a repetition harmless.
                Err(error)
                    if tries < PLACING
                        && matches!(
                            error.kind(),
                            PublishErrorKind::TimedOut
                                | PublishErrorKind::BrokenPipe
                                | PublishErrorKind::StreamNotFound
                        ) =>
                {
                    tries += 1;
                    tokio::time::sleep(PLACING_PAUSE).await;
                }
                Err(error) => {
                    let failed = FleetError::failed("placing an order", &error);
                    return match failed {
                        FleetError::Failed { why, .. }
                            if why.contains("maximum") || why.contains("resource") =>
                        {
                            Err(FleetError::Full { stream: "WORK", why })
                        }
                        failed => Err(failed),
                    };
                }
            }
        }
    }

    async fn pools(&self) -> Result<Vec<String>, FleetError> {
        let mut names = self.broker.work().consumer_names();
        let mut pools = Vec::new();
        while let Some(name) = names.next().await {
            pools.push(name.map_err(|error| FleetError::failed("listing the pools", &error))?);
        }
        Ok(pools)
    }

    async fn pull(&self, pool: &str, wait: Duration) -> Result<Option<Box<dyn Ticket>>, FleetError> {
        let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
            FleetError::of(format!("taking an order of the pool {pool}"))(error)
        };
        let consumer = self.consumer(pool).await?;
        let wait = wait.max(SHORTEST);
        let batch = consumer.batch().max_messages(1).expires(wait);
        let mut messages = batch.messages().await.map_err(|error| failed(error.into()))?;
        match tokio::time::timeout(wait + GRACE, messages.next()).await {
            Ok(Some(Ok(message))) => {
                let delivered = message.info().map_err(&failed)?.delivered;
                let deliveries = u64::try_from(delivered).unwrap_or(1);
                let patience = self.broker.settings().lease / 3;
                Ok(Some(Box::new(WorkTicket { message, deliveries, patience })))
            }
            Ok(Some(Err(error))) => {
                // The consumer may be gone with its server.
                self.consumers.lock().await.remove(pool);
                Err(failed(error))
            }
            Ok(None) | Err(_) => Ok(None),
        }
    }

    async fn count(&self) -> Result<u64, FleetError> {
        let info = self.broker.work().get_info().await;
        Ok(info.map_err(|error| FleetError::failed("counting the orders", &error))?.state.messages)
    }
}

struct WorkTicket {
    message: Message,
    deliveries: u64,
    /// Time limit of a confirmation.
    patience: Duration,
}

impl WorkTicket {
    /// Tells the server, and waits for its confirmation.
    async fn tell(&self, kind: AckKind) -> Result<(), FleetError> {
        match tokio::time::timeout(self.patience, self.message.double_ack_with(kind)).await {
            Ok(told) => told.map_err(FleetError::of("settling an order")),
            Err(elapsed) => Err(FleetError::failed("settling an order", &elapsed)),
        }
    }
}

#[async_trait]
impl Ticket for WorkTicket {
    fn payload(&self) -> &[u8] {
        &self.message.payload
    }

    fn deliveries(&self) -> u64 {
        self.deliveries
    }

    async fn extend(&self) -> Result<(), FleetError> {
        self.tell(AckKind::Progress).await
    }

    async fn settle(&self, how: Settled) -> Result<(), FleetError> {
        self.tell(match how {
            Settled::Done => AckKind::Ack,
            Settled::GiveBack(delay) if delay.is_zero() => AckKind::Nak(None),
            Settled::GiveBack(delay) => AckKind::Nak(Some(delay)),
            Settled::Never => AckKind::Term,
        })
        .await
    }
}
