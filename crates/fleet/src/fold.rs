//! State of a session in the fleet, as a fold over its log. Pure: no clock and no I/O.

use std::collections::BTreeMap;

use hangar_protocol::{Event, EventKind};

use crate::facts::FleetSessionState;
use crate::log::{LogEntry, LogItem};
use crate::order::OrderId;
use crate::record::{FleetRecord, FleetTurnEnd, OrderEnd};

/// Owner, messages and attempts of a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionFold {
    /// Claim that has not been released.
    pub owner: Option<Owner>,
    /// Messages that were accepted and whose turns have not ended, oldest first.
    pub waiting: Vec<Waiting>,
    /// Claims of each order that ended in silence: the worker neither released the log nor finished a turn.
    pub attempts: BTreeMap<OrderId, u32>,
    /// Ends of turns, by message.
    pub ended: BTreeMap<String, FleetTurnEnd>,
    /// Orders that are over.
    pub over: BTreeMap<OrderId, OrderEnd>,
    /// End of the last turn.
    pub last_turn: Option<FleetTurnEnd>,
    /// End of the last order that was released.
    pub last_release: Option<OrderEnd>,
    /// Worker of the last claim.
    pub last_worker: Option<String>,
    /// Reason why the last worker could not go on.
    pub trouble: Option<String>,
    /// Questions that wait for an answer, each with the event that asked it.
    pub asked: BTreeMap<String, serde_json::Value>,
    /// Last commit that was pushed, with its ref.
    pub kept: Option<(String, String)>,
    /// Lines of the log that are events.
    pub events: u64,
    /// Sequence of the last message.
    pub last: u64,
}

/// A claim of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub worker: String,
    pub order: OrderId,
    pub epoch: u64,
    /// Delivery of the order that it claimed for.
    pub delivery: u64,
}

/// A message whose turn has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    pub id: String,
    pub text: String,
    pub progress: TurnProgress,
}

/// Progress of the turn of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnProgress {
    Queued,
    /// It was begun, and the agent may not have been told of the message.
    Begun,
    /// The log has the message as an event.
    Told,
}

impl SessionFold {
    pub fn of<'a>(entries: impl IntoIterator<Item = &'a LogEntry>) -> Self {
        let mut fold = Self::default();
        entries.into_iter().for_each(|entry| fold.apply(entry));
        fold
    }

    pub fn apply(&mut self, entry: &LogEntry) {
        self.last = self.last.max(entry.seq);
        match &entry.item {
            LogItem::Events(lines) => self.events_of(lines),
            LogItem::Record(record) => self.record(entry.seq, record),
        }
    }

    fn events_of(&mut self, lines: &[u8]) {
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            self.events += 1;
            let begun = self.waiting.iter_mut().find(|waiting| waiting.progress == TurnProgress::Begun);
            if let Some(waiting) = begun
                && is_prompt(line)
            {
                waiting.progress = TurnProgress::Told;
            }
        }
    }

    fn record(&mut self, seq: u64, record: &FleetRecord) {
        match record {
            FleetRecord::Claimed { worker, order, delivery, .. } => {
                self.last_worker = Some(worker.clone());
                self.asked.clear();
                self.owner = Some(Owner {
                    worker: worker.clone(),
                    order: order.clone(),
                    epoch: seq,
                    delivery: *delivery,
                });
                *self.attempts.entry(order.clone()).or_default() += 1;
            }
            FleetRecord::Message { id, text, .. } => {
                if !self.knows(id) {
                    let (id, text) = (id.clone(), text.clone());
                    self.waiting.push(Waiting { id, text, progress: TurnProgress::Queued });
                }
            }
            FleetRecord::TurnBegan { message } => {
                let began = self.waiting.iter_mut().find(|waiting| waiting.id == *message);
                if let Some(waiting) = began
                    && waiting.progress == TurnProgress::Queued
                {
                    waiting.progress = TurnProgress::Begun;
                }
            }
            FleetRecord::TurnEnded { message, outcome, .. } => {
                self.asked.clear();
                self.waiting.retain(|waiting| waiting.id != *message);
                self.ended.insert(message.clone(), outcome.clone());
                self.last_turn = Some(outcome.clone());
                if let Some(owner) = &self.owner {
                    self.attempts.remove(&owner.order);
                }
            }
            FleetRecord::Kept { reference, commit } => self.kept = Some((reference.clone(), commit.clone())),
            FleetRecord::Trouble { why } => self.trouble = Some(why.clone()),
            FleetRecord::Asked { id, event } => drop(self.asked.insert(id.clone(), event.clone())),
            FleetRecord::Settled { id } => drop(self.asked.remove(id)),
            FleetRecord::NotKept { .. } | FleetRecord::BegunAnew { .. } => {}
            FleetRecord::Released { order, end, .. } => {
                self.owner = None;
                self.asked.clear();
                self.last_release = Some(end.clone());
                match end {
                    OrderEnd::Done | OrderEnd::Parked { .. } => {
                        self.over.insert(order.clone(), end.clone());
                        self.attempts.remove(order);
                        if matches!(end, OrderEnd::Parked { .. }) {
                            // Its messages are not tried again either.
                            self.waiting.clear();
                        }
                    }
                    // Somebody who lets go in order has not failed.
                    OrderEnd::HandedOver => drop(self.attempts.remove(order)),
                }
            }
        }
    }

    /// Whether a message was accepted.
    pub fn knows(&self, message: &str) -> bool {
        self.ended.contains_key(message) || self.waiting.iter().any(|waiting| waiting.id == message)
    }

    /// What lists show of a session that nobody owns: its state, and the reason of it.
    pub fn at_rest(&self) -> (FleetSessionState, Option<String>) {
        match (&self.last_release, &self.last_turn) {
            (Some(OrderEnd::Parked { why }), _) => (FleetSessionState::Parked, Some(why.clone())),
            (Some(OrderEnd::HandedOver), _) => (FleetSessionState::Queued, None),
            (_, Some(FleetTurnEnd::Failed { message })) => (FleetSessionState::Failed, Some(message.clone())),
            _ => (FleetSessionState::Idle, None),
        }
    }

    /// Whether a worker that holds a delivery of an order may carry it out. The queue delivers an order again only when the lease
    /// of the delivery before has ended, so a later delivery takes the claim of an earlier one over, and never the reverse: a
    /// worker that slept before it could claim is offered nothing that another one has begun.
    pub fn decide(&self, order: &OrderId, delivery: u64, most_attempts: u32) -> Claimable {
        if self.over.contains_key(order) {
            return Claimable::Over;
        }
        match &self.owner {
            Some(owner) if owner.order != *order => Claimable::Owned(owner.clone()),
            Some(owner) if owner.delivery > 0 && delivery <= owner.delivery => {
                Claimable::Outdated(owner.clone())
            }
            _ => match self.attempts.get(order).copied().unwrap_or_default() {
                attempts if attempts >= most_attempts => Claimable::Exhausted { attempts },
                _ => Claimable::Free,
            },
        }
    }
}

/// Whether an order may be carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claimable {
    Free,
    /// It is carried out for another order.
    Owned(Owner),
    /// The same or a later delivery of it is being carried out.
    Outdated(Owner),
    /// The order was finished by an earlier delivery.
    Over,
    /// Too many workers were lost with it.
    Exhausted {
        attempts: u32,
    },
}

/// Whether a line is a message of the session's user.
fn is_prompt(line: &[u8]) -> bool {
    // The cheap test first: few lines contain the words.
    let marker = b"\"user.message\"";
    if !line.windows(marker.len()).any(|window| window == marker) {
        return false;
    }
    let parsed = std::str::from_utf8(line).ok().and_then(|text| Event::parse(text).ok());
    parsed
        .is_some_and(|event| event.event_kind() == Some(EventKind::UserMessage) && event.agent_id().is_none())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    const PROMPT: &str = r#"{"id":"1","timestamp":"2026-01-01T00:00:00.000Z","parentId":null,"type":"user.message","data":{"content":"hi"}}"#;

    /// A log: `claim o`, `claim2 o` (for the second delivery), `message m`, `began m`, `prompt`, `ended m`, `failed m`, `released o`, `parked o`, `handed o`.
    fn fold(log: &[&str]) -> SessionFold {
        let at = Timestamp::UNIX_EPOCH;
        let entries: Vec<LogEntry> = log
            .iter()
            .enumerate()
            .map(|(n, step)| {
                let (word, name) = step.split_once(' ').unwrap_or((step, ""));
                let (name, order) = (name.to_owned(), OrderId(name.to_owned()));
                let record = match word {
                    "claim" => FleetRecord::Claimed { worker: "w".to_owned(), order, delivery: 0, at },
                    "claim2" => FleetRecord::Claimed { worker: "w".to_owned(), order, delivery: 2, at },
                    "message" => FleetRecord::Message { id: name.clone(), text: name, at },
                    "began" => FleetRecord::TurnBegan { message: name },
                    "ended" => FleetRecord::TurnEnded { message: name, outcome: FleetTurnEnd::Completed, at },
                    "failed" => {
                        let outcome = FleetTurnEnd::Failed { message: "it broke".to_owned() };
                        FleetRecord::TurnEnded { message: name, outcome, at }
                    }
                    "released" => FleetRecord::Released { order, end: OrderEnd::Done, at },
                    "parked" => {
                        let why = "given up".to_owned();
                        FleetRecord::Released { order, end: OrderEnd::Parked { why }, at }
                    }
                    "handed" => FleetRecord::Released { order, end: OrderEnd::HandedOver, at },
                    "prompt" => {
                        let lines = format!("{PROMPT}\n").into_bytes();
                        return LogEntry { seq: n as u64 + 1, epoch: 0, item: LogItem::Events(lines.into()) };
                    }
                    _ => unreachable!("{step}"),
                };
                LogEntry { seq: n as u64 + 1, epoch: 0, item: LogItem::Record(record) }
            })
            .collect();
        SessionFold::of(&entries)
    }

    #[track_caller]
    fn check(log: &[&str], order: &str, expected: &str) {
        check_delivery(log, order, 1, expected);
    }

    #[track_caller]
    fn check_delivery(log: &[&str], order: &str, delivery: u64, expected: &str) {
        let fold = fold(log);
        let waiting: Vec<String> =
            fold.waiting.iter().map(|waiting| format!("{} {:?}", waiting.id, waiting.progress)).collect();
        let claimable = match fold.decide(&OrderId(order.to_owned()), delivery, 2) {
            Claimable::Free => "free".to_owned(),
            Claimable::Owned(owner) => format!("owned by {}", owner.order),
            Claimable::Outdated(owner) => format!("delivery {} has it", owner.delivery),
            Claimable::Over => "over".to_owned(),
            Claimable::Exhausted { attempts } => format!("exhausted after {attempts}"),
        };
        assert_eq!(format!("{claimable}; {}", waiting.join(", ")), expected);
    }

    #[test]
    fn a_message_waits_until_its_turn_has_ended() {
        check(&["claim o", "message m"], "o", "free; m Queued");
        check(&["claim o", "message m", "began m"], "o", "free; m Begun");
        check(&["claim o", "message m", "began m", "prompt"], "o", "free; m Told");
        check(&["claim o", "message m", "began m", "prompt", "ended m"], "o", "free; ");
        check(&["claim o", "message m", "message m"], "o", "free; m Queued");
    }

    #[test]
    fn one_order_at_a_time_owns_a_session() {
        check(&["claim o", "message m"], "p", "owned by o; m Queued");
        check(&["claim o", "message m", "began m", "ended m", "released o"], "p", "free; ");
        check(&["claim o", "released o"], "o", "over; ");
    }

    #[test]
    fn a_later_delivery_takes_over_and_an_earlier_one_does_not() {
        for delivery in [1, 2] {
            check_delivery(&["claim2 o"], "o", delivery, "delivery 2 has it; ");
        }
        check_delivery(&["claim2 o"], "o", 3, "free; ");
        check_delivery(&["claim2 o", "handed o"], "o", 1, "free; ");
        check_delivery(&["claim2 o"], "p", 1, "owned by o; ");
    }

    #[test]
    fn an_order_that_loses_its_workers_is_given_up() {
        check(&["claim o", "claim o"], "o", "exhausted after 2; ");
        check(&["claim o", "handed o", "claim o"], "o", "free; ");
        check(&["claim o", "message m", "ended m", "claim o"], "o", "free; ");
        check(&["claim o", "message m", "parked o"], "o", "over; ");
    }

    #[test]
    fn the_log_says_what_lists_show_of_a_session_that_nobody_owns() {
        let check = |log: &[&str], state, why: Option<&str>| {
            assert_eq!(fold(log).at_rest(), (state, why.map(str::to_owned)), "{log:?}");
        };
        check(&["claim o", "message m", "ended m", "released o"], FleetSessionState::Idle, None);
        check(&["claim o", "failed m", "released o"], FleetSessionState::Failed, Some("it broke"));
        check(&["claim o", "failed m", "ended n", "released o"], FleetSessionState::Idle, None);
        check(&["claim o", "parked o"], FleetSessionState::Parked, Some("given up"));
        check(&["claim o", "ended m", "handed o"], FleetSessionState::Queued, None);
        check(&["claim o", "parked o", "claim p", "ended m", "released p"], FleetSessionState::Idle, None);
    }
}
