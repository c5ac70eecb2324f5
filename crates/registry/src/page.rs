//! A piece of a session's past.

use hangar_protocol::LogPosition;
use hangar_store::SessionId;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::error::RegistryError;
use crate::frame::is_shown;
use crate::hub::Hub;

/// Events of one page, and what they may weigh together: a page of huge events is short.
pub const MOST_EVENTS: u64 = 5000;
const MOST_BYTES: usize = 32 << 20;

/// Range of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageRange {
    /// The first events after this one.
    After(u64),
    /// The last ones before this one.
    Before(u64),
    /// The first events after one and before another.
    Between(u64, u64),
    Last,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "EventPage")]
pub struct Page {
    /// In ascending order.
    pub events: Vec<Numbered>,
    /// Number of the last event in the log.
    pub last: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "LoggedEvent")]
pub struct Numbered {
    pub seq: u64,
    #[schemars(with = "EventShape")]
    pub event: Box<RawValue>,
}

/// An event in the vocabulary of Copilot CLI. `data` depends on `type`.
#[derive(JsonSchema)]
#[schemars(rename = "Event", rename_all = "camelCase")]
#[expect(dead_code, reason = "describes events, which are passed on as they stand in the log")]
pub(crate) struct EventShape {
    id: String,
    timestamp: String,
    parent_id: Option<String>,
    #[schemars(rename = "type")]
    kind: String,
    data: serde_json::Value,
    /// Sent to listeners and not logged.
    #[schemars(skip_serializing_if = "Option::is_none")]
    ephemeral: Option<bool>,
    /// The sub-agent that the event belongs to.
    #[schemars(skip_serializing_if = "Option::is_none")]
    agent_id: Option<String>,
}

impl Hub {
    pub fn page(&self, id: &SessionId, span: PageRange, limit: u64) -> Result<Page, RegistryError> {
        let stats = match self.live(id) {
            Some(live) => live.state().stats.clone(),
            None => self.catalogue().stats(id)?,
        };
        let last = stats.at.seq;
        let (first, end) = match span {
            PageRange::After(after) => (after.saturating_add(1), after.saturating_add(limit).min(last)),
            PageRange::Between(after, before) => {
                let end = after.saturating_add(limit).min(before.saturating_sub(1)).min(last);
                (after.saturating_add(1), end)
            }
            PageRange::Before(before) => {
                let end = before.saturating_sub(1).min(last);
                ((end + 1).saturating_sub(limit).max(1), end)
            }
            PageRange::Last => ((last + 1).saturating_sub(limit).max(1), last),
        };
        let mut events = Vec::new();
        if first <= end {
            self.read(id, stats.mark_before(first), (first, end), &mut events)?;
        }
        if matches!(span, PageRange::Before(_) | PageRange::Last) {
            // Those next to where was asked for are the ones that matter.
            let mut weight = 0;
            let light = events.iter().rev().take_while(|event: &&Numbered| {
                weight += event.event.get().len();
                weight <= MOST_BYTES
            });
            let keep = light.count().max(1).min(events.len());
            events.drain(..events.len() - keep);
        }
        Ok(Page { events, last })
    }

    fn read(
        &self,
        id: &SessionId,
        from: LogPosition,
        (first, end): (u64, u64),
        events: &mut Vec<Numbered>,
    ) -> Result<(), RegistryError> {
        let mut follow = self.store().follow(id, from)?;
        let unreadable =
            |error: std::io::Error| RegistryError::Store(format!("reading session {id}: {error}"));
        while let Some((seq, line)) = follow.next_line().map_err(unreadable)? {
            if seq > end {
                break;
            }
            if seq < first {
                continue;
            }
            // A line that is no event, or is none of the reader's business, has a number and no content.
            let Ok(text) = std::str::from_utf8(line) else { continue };
            if is_shown(line)
                && let Ok(event) = serde_json::from_str::<Box<RawValue>>(text)
            {
                events.push(Numbered { seq, event });
            }
            if seq == end {
                break;
            }
        }
        Ok(())
    }
}
