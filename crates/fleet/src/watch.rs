//! Facts as they change, for those who show lists: first all that there are, then the changes.

use std::time::Duration;

use async_nats::jetstream::consumer::{DeliverPolicy, pull};
use futures_util::StreamExt;

use crate::facts::{FleetFact, SessionFact, WorkerFact, parse};
use crate::{Broker, FleetError};

/// Pause before a reader begins again after an error.
const AGAIN: Duration = Duration::from_secs(1);

/// A fact that is new or has changed.
#[derive(Debug, Clone)]
pub enum FactChange {
    Session(Box<SessionFact>),
    Worker(Box<WorkerFact>),
    /// All facts that there were when the reader began have been given out.
    CaughtUp,
}

/// Reader of the facts of sessions and workers. Survives the loss of servers; a fact may come twice.
pub struct FactReader {
    broker: Broker,
    messages: Option<pull::Ordered>,
    /// Facts that were there when the reader began and have not come yet.
    missing: Option<u64>,
}

impl FactReader {
    pub async fn open(broker: &Broker) -> Result<Self, FleetError> {
        let mut reader = Self { broker: broker.clone(), messages: None, missing: None };
        reader.begin().await?;
        Ok(reader)
    }

    async fn begin(&mut self) -> Result<(), FleetError> {
        let failed =
            |error: Box<dyn std::error::Error + Send + Sync>| FleetError::of("reading the facts")(error);
        // Servers before 2.10 take one filter, so what is of no interest is left out here.
        let config = pull::OrderedConfig {
            filter_subject: self.broker.subject("fact.>"),
            deliver_policy: DeliverPolicy::LastPerSubject,
            ..pull::OrderedConfig::default()
        };
        let consumer = self.broker.fact_stream().create_consumer(config).await;
        let consumer = consumer.map_err(|error| failed(error.into()))?;
        self.missing = Some(consumer.cached_info().num_pending);
        self.messages = Some(consumer.messages().await.map_err(|error| failed(error.into()))?);
        Ok(())
    }

    /// The next change. Waits as long as there is none.
    pub async fn next(&mut self) -> FactChange {
        loop {
            if self.missing == Some(0) {
                self.missing = None;
                return FactChange::CaughtUp;
            }
            let Some(messages) = &mut self.messages else {
                if let Err(error) = self.begin().await {
                    tracing::debug!(%error, "the facts cannot be read");
                    tokio::time::sleep(AGAIN).await;
                }
                continue;
            };
            let Some(Ok(message)) = messages.next().await else {
                self.messages = None;
                tokio::time::sleep(AGAIN).await;
                continue;
            };
            if let Some(missing) = &mut self.missing {
                *missing = missing.saturating_sub(1);
            }
            let kind = message.subject.rsplit('.').nth(1).unwrap_or_default();
            let change = match kind {
                SessionFact::KIND => parse(&message.payload).map(|fact| FactChange::Session(Box::new(fact))),
                WorkerFact::KIND => parse(&message.payload).map(|fact| FactChange::Worker(Box::new(fact))),
                _ => None,
            };
            if let Some(change) = change {
                return change;
            }
        }
    }
}
