//! Placing orders: a message goes to the owner of its session, or becomes an order that opens the session.

use hangar_store::SessionId;
use jiff::Timestamp;

use crate::claim::LogClaim;
use crate::control::ControlCommand;
use crate::facts::{FleetSessionState, OriginFact, SessionFact};
use crate::fold::SessionFold;
use crate::order::{Order, OrderId};
use crate::queue::OrderQueue;
use crate::record::{FleetRecord, FleetTurnEnd, OrderEnd};
use crate::{Broker, FleetError, log};

/// Attempts to withdraw an order whose log grows meanwhile.
const WITHDRAWALS: u32 = 5;

/// Gives the message of an order to the owner of the session, or places the order. Returns once the servers have it. The id of the
/// order is that of the message, so that a repetition is the same message.
pub async fn deliver(broker: &Broker, queue: &dyn OrderQueue, order: &Order) -> Result<(), FleetError> {
    let id = order.session_id()?;
    let send = ControlCommand::Send { id: order.id.0.clone(), text: order.prompt.clone() };
    match broker.command(&id, send).await {
        Ok(()) => return Ok(()),
        Err(FleetError::NoOwner(_)) => {}
        // The owner may have accepted it, or be gone. The id makes the order the same message.
        Err(error) => tracing::debug!(%error, "the owner did not answer"),
    }
    place(broker, queue, order).await
}

/// Makes a session known that has no message yet, and returns its fact. The prompt of the order is not used.
pub async fn register(broker: &Broker, order: &Order) -> Result<SessionFact, FleetError> {
    broker.put_fact(&origin(order)).await?;
    let fact = SessionFact { state: FleetSessionState::Idle, order: None, ..SessionFact::queued(order) };
    broker.replace_fact(&fact, 0).await?;
    Ok(fact)
}

fn origin(order: &Order) -> OriginFact {
    OriginFact {
        session: order.session.clone(),
        labels: order.labels.clone(),
        workspace: order.workspace.clone(),
        settings: order.settings.clone(),
    }
}

/// Places an order, with the facts of its session.
pub async fn place(broker: &Broker, queue: &dyn OrderQueue, order: &Order) -> Result<(), FleetError> {
    // Before the order, so that a session that is listed can be opened again.
    broker.put_fact(&origin(order)).await?;
    queue.put(order).await?;
    let (known, sequence) = broker.fact_now::<SessionFact>(&order.session).await?;
    let queued = SessionFact::queued(order);
    let fact = match known {
        // The worker was faster, or is at another message.
        Some(known) if known.state == FleetSessionState::Running => return Ok(()),
        Some(known) => {
            let (title, created, kept) = (known.title, known.created, known.kept);
            SessionFact { title, created, kept, events: known.events, model: known.model, ..queued }
        }
        None => queued,
    };
    // A fact that changed meanwhile is newer.
    broker.replace_fact(&fact, sequence).await.map(drop)
}

/// Ends an order that no worker has taken, by claiming its log. False if it was taken or is over. The queue forgets it when a
/// worker is offered it next.
pub async fn withdraw(
    broker: &Broker,
    id: &SessionId,
    order: &OrderId,
    by: &str,
) -> Result<bool, FleetError> {
    let subject = log::session_subject(broker, id);
    for _ in 0..WITHDRAWALS {
        let fold = SessionFold::of(&log::read(broker, &subject).await?);
        if fold.owner.is_some() || fold.over.contains_key(order) {
            return Ok(false);
        }
        let at = Timestamp::now();
        let claimed = FleetRecord::Claimed { worker: by.to_owned(), order: order.clone(), delivery: 0, at };
        let claim = match LogClaim::take(broker, subject.clone(), fold.last, &claimed).await {
            Ok(claim) => claim,
            Err(FleetError::Moved { .. }) => continue,
            Err(error) => return Err(error),
        };
        let outcome = FleetTurnEnd::Cancelled;
        claim.append(&FleetRecord::TurnEnded { message: order.0.clone(), outcome, at }).await?;
        claim.append(&FleetRecord::Released { order: order.clone(), end: OrderEnd::Done, at }).await?;
        claim.give_up("the order was withdrawn");
        let (known, sequence) = broker.fact_now::<SessionFact>(id.as_str()).await?;
        if let Some(known) = known {
            let idle = SessionFact { state: FleetSessionState::Idle, order: None, at, why: None, ..known };
            broker.replace_fact(&idle, sequence).await?;
        }
        return Ok(true);
    }
    Ok(false)
}
