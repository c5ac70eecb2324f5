//! What a worker leaves behind that was lost after the end of an order was stored: a list that shows the session at work, and its
//! slot. Nobody else mends them, because the order is over.

use hangar_store::SessionId;
use jiff::Timestamp;

use crate::facts::{FleetSessionState, SessionFact};
use crate::fold::SessionFold;
use crate::{Broker, FleetError, log};

/// Shows a session as its log says, and frees its slot. Does nothing while somebody owns the session.
pub async fn clear(broker: &Broker, id: &SessionId) -> Result<(), FleetError> {
    // Before the log: who claims it after that replaces the fact later too.
    let (known, sequence) = broker.fact_now::<SessionFact>(id.as_str()).await?;
    let fold = SessionFold::of(&log::read(broker, &log::session_subject(broker, id)).await?);
    if fold.owner.is_some() {
        return Ok(());
    }
    if let Some(known) = known
        && known.state == FleetSessionState::Running
    {
        let (state, why) = fold.at_rest();
        let kept = fold.kept.map(|(reference, _)| reference).or(known.kept);
        let at = Timestamp::now();
        let fact = SessionFact { state, why, at, kept, worker: None, asked: 0, events: fold.events, ..known };
        // One that changed meanwhile is newer.
        broker.replace_fact(&fact, sequence).await?;
    }
    broker.free_left_slot(id.as_str()).await
}
