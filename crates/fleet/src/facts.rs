//! Facts, of which lists are made: one message per subject, such as the heartbeat of a worker or the state of a session.

use std::time::Duration;

use async_nats::jetstream::consumer::{DeliverPolicy, pull};
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{DirectGetErrorKind, LastRawMessageErrorKind};
use futures_util::StreamExt;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::order::{Labels, Order, OrderId, OrderWorkspace, SessionSettings};
use crate::{Broker, FleetError, VERSION};

/// Most facts that one list reads.
const MAX_FACTS: usize = 200_000;
/// Refusal of a message whose expected sequence is not the last one.
const OVERTAKEN: &str = "wrong last sequence";
/// Characters of the title of a session.
const TITLE: usize = 80;
/// Attempts to write a fact while a leader is elected.
const WRITES: u32 = 20;
const WRITE_PAUSE: Duration = Duration::from_millis(250);

/// A kind of facts, with its place in subjects.
pub trait FleetFact: Serialize + DeserializeOwned {
    const KIND: &'static str;

    /// Identity within the kind: one token of a subject.
    fn id(&self) -> &str;
}

/// Heartbeat of a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkerFact {
    pub name: String,
    pub labels: Labels,
    pub slots: u32,
    pub busy: u32,
    pub version: String,
    /// Free bytes of the disk with its home.
    pub free_bytes: Option<u64>,
    /// Load average over a minute.
    pub load: Option<f64>,
    #[serde(with = "crate::time")]
    pub at: Timestamp,
    /// Instruction of the operator that it follows.
    #[serde(default)]
    pub mode: CordonMode,
    /// Whether it has exited in an orderly way.
    #[serde(default)]
    pub gone: bool,
    /// Sentence about orders that it could not take.
    #[serde(default)]
    pub trouble: Option<String>,
    /// Sessions that it took over from lost workers.
    #[serde(default)]
    pub takeovers: u64,
    /// Milliseconds of the last append to a log.
    #[serde(default)]
    pub append_ms: Option<f64>,
}

impl FleetFact for WorkerFact {
    const KIND: &'static str = "worker";

    fn id(&self) -> &str {
        &self.name
    }
}

/// Instruction of an operator to a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CordonFact {
    pub worker: String,
    pub mode: CordonMode,
    #[serde(with = "crate::time")]
    pub at: Timestamp,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CordonMode {
    /// It takes orders.
    #[default]
    Open,
    /// It takes no further orders.
    Cordoned,
    /// It takes no further orders, and exits when it has finished those it has.
    Draining,
}

impl FleetFact for CordonFact {
    const KIND: &'static str = "cordon";

    fn id(&self) -> &str {
        &self.worker
    }
}

/// A session, as lists show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionFact {
    pub session: String,
    pub state: FleetSessionState,
    pub worker: Option<String>,
    /// Beginning of its first prompt, or its name.
    pub title: String,
    pub remote: Option<String>,
    #[serde(with = "crate::time")]
    pub at: Timestamp,
    /// Error of its last turn, or the reason why it waits or is parked.
    #[serde(default)]
    pub why: Option<String>,
    /// Time of its first order.
    #[serde(default, with = "crate::time::optional")]
    pub created: Option<Timestamp>,
    /// Order that waits for a worker.
    #[serde(default)]
    pub order: Option<OrderId>,
    #[serde(default)]
    pub runtime: Option<String>,
    /// Named agent.
    #[serde(default)]
    pub agent: Option<String>,
    #[serde(default)]
    pub model: Option<String>,
    /// Directory of the workers, where there is no remote.
    #[serde(default)]
    pub path: Option<String>,
    /// Lines of its log, when the fact was written.
    #[serde(default)]
    pub events: u64,
    /// Questions that wait for an answer.
    #[serde(default)]
    pub asked: u32,
    /// Whether people answer its questions.
    #[serde(default)]
    pub asks: bool,
    /// Run that it works for.
    #[serde(default)]
    pub run: Option<String>,
    /// Ref of the remote at which its work was kept.
    #[serde(default)]
    pub kept: Option<String>,
}

impl SessionFact {
    /// A session whose order waits for a worker.
    pub fn queued(order: &Order) -> Self {
        let (remote, path) = match &order.workspace {
            OrderWorkspace::Git { remote, .. } => (Some(remote.clone()), None),
            OrderWorkspace::Path { path } => (None, Some(path.display().to_string())),
        };
        let settings = &order.settings;
        Self {
            session: order.session.clone(),
            state: FleetSessionState::Queued,
            worker: None,
            title: title(settings.name.as_deref().unwrap_or(&order.prompt)),
            remote,
            at: order.placed,
            why: None,
            created: Some(order.placed),
            order: Some(order.id.clone()),
            runtime: settings.runtime.clone(),
            agent: settings.agent.clone(),
            model: settings.model.clone(),
            path,
            events: 0,
            asked: 0,
            asks: settings.asks,
            run: settings.run.as_ref().and_then(|run| run["run"].as_str()).map(str::to_owned),
            kept: None,
        }
    }
}

/// A text as the title of a session: its first line, cut.
pub fn title(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(TITLE).collect()
}

/// Settings with which a session was opened, for the orders that open it again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OriginFact {
    pub session: String,
    pub labels: Labels,
    pub workspace: OrderWorkspace,
    pub settings: SessionSettings,
}

impl FleetFact for OriginFact {
    const KIND: &'static str = "origin";

    fn id(&self) -> &str {
        &self.session
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FleetSessionState {
    Queued,
    Running,
    Idle,
    Failed,
    Parked,
}

impl FleetFact for SessionFact {
    const KIND: &'static str = "session";

    fn id(&self) -> &str {
        &self.session
    }
}

#[derive(Serialize, Deserialize)]
struct Envelope<T> {
    v: u32,
    #[serde(flatten)]
    fact: T,
}

/// Whether a name can be a token of a subject.
pub fn check_name(name: &str) -> Result<(), FleetError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match !name.is_empty() && name.len() <= 64 && name.chars().all(plain) {
        true => Ok(()),
        false => Err(FleetError::Invalid(format!(
            "`{name}` is no name of a worker; one has 1 to 64 letters, digits, `-` and `_`"
        ))),
    }
}

impl Broker {
    /// Replaces a fact.
    pub async fn put_fact<F: FleetFact>(&self, fact: &F) -> Result<(), FleetError> {
        self.write_fact(fact, None).await.map(drop)
    }

    /// Replaces a fact unless it has changed since the given sequence. False if it has.
    pub async fn replace_fact<F: FleetFact>(&self, fact: &F, known: u64) -> Result<bool, FleetError> {
        self.write_fact(fact, Some(known)).await
    }

    async fn write_fact<F: FleetFact>(&self, fact: &F, known: Option<u64>) -> Result<bool, FleetError> {
        let subject = self.subject(&format!("fact.{}.{}", F::KIND, fact.id()));
        let payload = serde_json::to_vec(&Envelope { v: VERSION, fact })
            .map_err(|error| FleetError::failed("encoding a fact", &error))?;
        let mut tries = 0;
        loop {
            let mut message = PublishMessage::build().payload(payload.clone().into());
            if let Some(known) = known {
                message = message.expected_last_subject_sequence(known);
            }
            let written = match self.context().send_publish(subject.clone(), message).await {
                Ok(acknowledged) => acknowledged.await,
                Err(error) => Err(error),
            };
            match written {
                Ok(_) => return Ok(true),
                Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => return Ok(false),
                Err(error)
                    if tries < WRITES
                        && matches!(
                            error.kind(),
                            PublishErrorKind::TimedOut | PublishErrorKind::StreamNotFound
                        ) =>
                {
                    tries += 1;
                    tokio::time::sleep(WRITE_PAUSE).await;
                }
                Err(error) => {
                    let failed = FleetError::failed("writing a fact", &error);
                    // Of two at once, a cluster refuses one with a code that the library does not know.
                    return match &failed {
                        FleetError::Failed { why, .. } if known.is_some() && why.contains(OVERTAKEN) => {
                            Ok(false)
                        }
                        _ => Err(failed),
                    };
                }
            }
        }
    }

    /// One fact. `None` if it was never written, or by a newer version.
    pub async fn fact<F: FleetFact>(&self, id: &str) -> Result<Option<F>, FleetError> {
        let subject = self.subject(&format!("fact.{}.{id}", F::KIND));
        match self.fact_stream().direct_get_last_for_subject(subject).await {
            Ok(message) => Ok(parse(&message.payload)),
            Err(error) if error.kind() == DirectGetErrorKind::NotFound => Ok(None),
            Err(error) => Err(FleetError::failed("reading a fact", &error)),
        }
    }

    /// One fact with its sequence, zero if it was never written. The leader of the stream answers, so it is the last one.
    pub async fn fact_now<F: FleetFact>(&self, id: &str) -> Result<(Option<F>, u64), FleetError> {
        let subject = self.subject(&format!("fact.{}.{id}", F::KIND));
        match self.fact_stream().get_last_raw_message_by_subject(&subject).await {
            Ok(message) => Ok((parse(&message.payload), message.sequence)),
            Err(error) => match error.kind() {
                LastRawMessageErrorKind::NoMessageFound => Ok((None, 0)),
                LastRawMessageErrorKind::JetStream(refused) if refused.code() == 404 => Ok((None, 0)),
                _ => Err(FleetError::failed("reading a fact", &error)),
            },
        }
    }

    /// All facts of a kind, in no order. Those of a newer version are left out.
    pub async fn facts<F: FleetFact>(&self) -> Result<Vec<F>, FleetError> {
        let failed = || FleetError::of("reading the facts");
        let config = pull::OrderedConfig {
            filter_subject: self.subject(&format!("fact.{}.*", F::KIND)),
            deliver_policy: DeliverPolicy::LastPerSubject,
            ..pull::OrderedConfig::default()
        };
        let consumer =
            self.fact_stream().create_consumer(config).await.map_err(|error| failed()(error.into()))?;
        let mut left = consumer.cached_info().num_pending;
        let mut all = Vec::new();
        if left == 0 {
            return Ok(all);
        }
        let mut messages = consumer.messages().await.map_err(|error| failed()(error.into()))?;
        while left > 0 && all.len() < MAX_FACTS {
            let Some(message) = messages.next().await else { break };
            let message = message.map_err(|error| failed()(error.into()))?;
            left = message.info().map_err(failed())?.pending;
            all.extend(parse(&message.payload));
        }
        Ok(all)
    }
}

pub(crate) fn parse<F: FleetFact>(payload: &[u8]) -> Option<F> {
    let envelope: Envelope<F> = serde_json::from_slice(payload).ok()?;
    (envelope.v <= VERSION).then_some(envelope.fact)
}
