//! Checker of logs: what holds for every session of a fleet, whatever happened to its workers.

use std::collections::{BTreeMap, BTreeSet};

use hangar_protocol::{Body, Event};

use crate::fold::SessionFold;
use crate::log::{LogEntry, LogItem};
use crate::order::OrderId;
use crate::record::FleetRecord;

/// Violations of the rules of a log; empty if all hold.
///
/// Epochs never interleave; the events are one chain; each call has one start and at most one end, or was interrupted before its start; each order has one end; no
/// message has two; a claim that was not released is taken over by a later delivery of the same order alone.
pub fn problems(entries: &[LogEntry]) -> Vec<String> {
    let mut found = Vec::new();
    let mut epoch = 0;
    let mut last = 0;
    let mut ids = BTreeSet::new();
    let mut calls: BTreeMap<String, CallCount> = BTreeMap::new();
    let mut owner: Option<(&OrderId, u64)> = None;
    let (mut ended, mut released) = (BTreeMap::<String, u32>::new(), BTreeMap::<String, u32>::new());
    for entry in entries {
        if entry.seq <= last {
            found.push(format!("message {} comes after {last}", entry.seq));
        }
        last = entry.seq;
        if let LogItem::Record(FleetRecord::Claimed { order, delivery, .. }) = &entry.item {
            epoch = entry.seq;
            if let Some((owning, before)) = owner.replace((order, *delivery))
                && (owning != order || (before > 0 && *delivery <= before))
            {
                found.push(format!(
                    "claim {epoch} (delivery {delivery} of {order}) takes over from delivery {before} of {owning}"
                ));
            }
            continue;
        }
        if entry.epoch != epoch {
            found.push(format!("message {} is of epoch {}, during epoch {epoch}", entry.seq, entry.epoch));
        }
        match &entry.item {
            LogItem::Record(FleetRecord::TurnEnded { message, .. }) => {
                *ended.entry(message.clone()).or_default() += 1;
            }
            LogItem::Record(FleetRecord::Released { order, end, .. }) => {
                owner = None;
                if *end != crate::record::OrderEnd::HandedOver {
                    *released.entry(order.to_string()).or_default() += 1;
                }
            }
            LogItem::Record(_) => {}
            LogItem::Events(lines) => events(entry.seq, lines, &mut ids, &mut calls, &mut found),
        }
    }
    for (call, CallCount { starts, ends, successes }) in calls {
        // A worker that was lost after the model asked for a call, and before it began, leaves one that is closed as interrupted.
        if starts > 1 || ends > 1 || (starts == 0 && successes > 0) {
            found.push(format!(
                "call {call} has {starts} starts and {ends} ends, {successes} of them successful"
            ));
        }
    }
    let twice = |(name, times): (&String, &u32)| (*times > 1).then(|| format!("{name} has {times} ends"));
    found.extend(ended.iter().filter_map(twice));
    found.extend(released.iter().filter_map(twice));
    found
}

/// Events of a call.
#[derive(Default)]
struct CallCount {
    starts: u32,
    ends: u32,
    successes: u32,
}

fn events(
    seq: u64,
    lines: &[u8],
    ids: &mut BTreeSet<String>,
    calls: &mut BTreeMap<String, CallCount>,
    found: &mut Vec<String>,
) {
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let event = std::str::from_utf8(line).ok().and_then(|line| Event::parse(line).ok());
        let Some(event) = event else {
            found.push(format!("a line of message {seq} is no event"));
            continue;
        };
        if let Some(parent) = event.parent_id()
            && !ids.contains(&parent.0)
        {
            found.push(format!("event {} of message {seq} follows one that is not there", event.id().0));
        }
        if !ids.insert(event.id().0.clone()) {
            found.push(format!("event {} is there twice", event.id().0));
        }
        match event.body() {
            Body::ToolStart(start) => calls.entry(start.tool_call_id.clone()).or_default().starts += 1,
            Body::ToolComplete(done) => {
                let call = calls.entry(done.tool_call_id.clone()).or_default();
                call.ends += 1;
                call.successes += u32::from(done.success);
            }
            _ => {}
        }
    }
}

/// Problems of a session that should have come to its end: besides the rules of its log, nothing waits and nobody owns it.
pub fn unfinished(entries: &[LogEntry]) -> Vec<String> {
    let fold = SessionFold::of(entries);
    let waiting = fold.waiting.iter().map(|waiting| format!("message {} waits", waiting.id));
    let owned = fold.owner.iter().map(|owner| format!("{} owns it", owner.worker));
    waiting.chain(owned).collect()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::record::OrderEnd;

    const AT: Timestamp = Timestamp::UNIX_EPOCH;

    fn claimed(order: &str, delivery: u64) -> FleetRecord {
        FleetRecord::Claimed { worker: "w".to_owned(), order: OrderId(order.to_owned()), delivery, at: AT }
    }

    fn released(order: &str, end: OrderEnd) -> FleetRecord {
        FleetRecord::Released { order: OrderId(order.to_owned()), end, at: AT }
    }

    #[track_caller]
    fn check(records: Vec<FleetRecord>, expected: &[&str]) {
        let mut epoch = 0;
        let entries = (1..).zip(records).map(|(seq, record)| {
            if matches!(record, FleetRecord::Claimed { .. }) {
                epoch = seq;
            }
            LogEntry { seq, epoch, item: LogItem::Record(record) }
        });
        assert_eq!(problems(&entries.collect::<Vec<_>>()), expected);
    }

    /// A log of calls: `start`, `done` and `interrupted`.
    #[track_caller]
    fn check_calls(steps: &[&str], expected: &[&str]) {
        let mut lines = String::new();
        for (n, step) in steps.iter().enumerate() {
            let (kind, data) = match *step {
                "start" => ("tool.execution_start", r#""toolName":"bash","arguments":{}"#),
                "done" => ("tool.execution_complete", r#""success":true"#),
                "interrupted" => ("tool.execution_complete", r#""success":false"#),
                _ => unreachable!("{step}"),
            };
            lines.push_str(&format!(
                r#"{{"id":"{n}","timestamp":"2026-01-01T00:00:00.000Z","parentId":null,"type":"{kind}","data":{{"toolCallId":"c",{data}}}}}"#
            ));
            lines.push('\n');
        }
        let entry = LogEntry { seq: 1, epoch: 0, item: LogItem::Events(lines.into_bytes().into()) };
        assert_eq!(problems(&[entry]), expected);
    }

    #[test]
    fn a_call_has_one_start_and_one_end_or_was_interrupted_before() {
        check_calls(&["start", "done"], &[]);
        check_calls(&["start"], &[]);
        check_calls(&["start", "interrupted"], &[]);
        check_calls(&["interrupted"], &[]);
        check_calls(&["done"], &["call c has 0 starts and 1 ends, 1 of them successful"]);
        check_calls(&["start", "start"], &["call c has 2 starts and 0 ends, 0 of them successful"]);
        check_calls(
            &["start", "done", "interrupted"],
            &["call c has 1 starts and 2 ends, 1 of them successful"],
        );
    }

    #[test]
    fn a_claim_is_taken_over_by_a_later_delivery_of_its_order() {
        check(vec![claimed("o", 1), claimed("o", 3), released("o", OrderEnd::Done)], &[]);
        check(vec![claimed("o", 2), released("o", OrderEnd::HandedOver), claimed("o", 1)], &[]);
        check(vec![claimed("o", 1), released("o", OrderEnd::Done), claimed("p", 1)], &[]);
        let before = "claim 2 (delivery 1 of o) takes over from delivery 2 of o";
        check(vec![claimed("o", 2), claimed("o", 1)], &[before]);
        check(
            vec![claimed("o", 1), claimed("p", 2)],
            &["claim 2 (delivery 2 of p) takes over from delivery 1 of o"],
        );
    }
}
