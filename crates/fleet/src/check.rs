//! Checker of logs: what holds for every session of a fleet, whatever happened to its workers.

use std::collections::{BTreeMap, BTreeSet};

use hangar_protocol::{Body, Event};

use crate::fold::SessionFold;
use crate::log::{LogEntry, LogItem};
use crate::record::FleetRecord;

/// Violations of the rules of a log; empty if all hold.
///
/// Epochs never interleave; the events are one chain; each call has one start and at most one end; each order has one end; no
/// message has two.
pub fn problems(entries: &[LogEntry]) -> Vec<String> {
    let mut found = Vec::new();
    let mut epoch = 0;
    let mut last = 0;
    let mut ids = BTreeSet::new();
    let mut calls: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    let (mut ended, mut released) = (BTreeMap::<String, u32>::new(), BTreeMap::<String, u32>::new());
    for entry in entries {
        if entry.seq <= last {
            found.push(format!("message {} comes after {last}", entry.seq));
        }
        last = entry.seq;
        if let LogItem::Record(FleetRecord::Claimed { .. }) = &entry.item {
            epoch = entry.seq;
            continue;
        }
        if entry.epoch != epoch {
            found.push(format!("message {} is of epoch {}, during epoch {epoch}", entry.seq, entry.epoch));
        }
        match &entry.item {
            LogItem::Record(FleetRecord::TurnEnded { message, .. }) => {
                *ended.entry(message.clone()).or_default() += 1;
            }
            LogItem::Record(FleetRecord::Released { order, end, .. })
                if *end != crate::record::OrderEnd::HandedOver =>
            {
                *released.entry(order.to_string()).or_default() += 1;
            }
            LogItem::Record(_) => {}
            LogItem::Events(lines) => events(entry.seq, lines, &mut ids, &mut calls, &mut found),
        }
    }
    for (call, (starts, ends)) in calls {
        if starts != 1 || ends > 1 {
            found.push(format!("call {call} has {starts} starts and {ends} ends"));
        }
    }
    let twice = |(name, times): (&String, &u32)| (*times > 1).then(|| format!("{name} has {times} ends"));
    found.extend(ended.iter().filter_map(twice));
    found.extend(released.iter().filter_map(twice));
    found
}

fn events(
    seq: u64,
    lines: &[u8],
    ids: &mut BTreeSet<String>,
    calls: &mut BTreeMap<String, (u32, u32)>,
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
            Body::ToolStart(start) => calls.entry(start.tool_call_id.clone()).or_default().0 += 1,
            Body::ToolComplete(done) => calls.entry(done.tool_call_id.clone()).or_default().1 += 1,
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
