//! Cache marks: how many, where, and in which order.

use serde_json::Value;

use super::error::invalid;
use super::messages::list;
use crate::cache::CacheMark;
use crate::refusal::Refusal;

const MAX_MARKS: usize = 4;

/// The mark of a block.
pub(super) fn mark(block: &Value) -> Option<CacheMark> {
    match (block["cache_control"]["type"].as_str(), block["cache_control"]["ttl"].as_str()) {
        (Some(_), Some("1h")) => Some(CacheMark::OneHour),
        (Some(_), _) => Some(CacheMark::FiveMinutes),
        (None, _) => None,
    }
}

pub(super) fn check(body: &Value) -> Result<(), Refusal> {
    let mut marks = Vec::new();
    let mut note = |path: String, block: &Value| marks.extend(mark(block).map(|mark| (path, mark)));
    for (index, tool) in list(&body["tools"]).iter().enumerate() {
        note(format!("tools.{index}"), tool);
    }
    for (index, block) in list(&body["system"]).iter().enumerate() {
        note(format!("system.{index}"), block);
    }
    for (index, message) in list(&body["messages"]).iter().enumerate() {
        for (place, block) in list(&message["content"]).iter().enumerate() {
            let path = format!("messages.{index}.content.{place}");
            for (inner, part) in list(&block["content"]).iter().enumerate() {
                note(format!("{path}.content.{inner}"), part);
            }
            note(path, block);
        }
    }
    note("request".to_owned(), body);
    if marks.len() > MAX_MARKS {
        let found = marks.len();
        return Err(invalid(format!(
            "A maximum of {MAX_MARKS} blocks with cache_control may be provided. Found {found}."
        )));
    }
    let late = marks.windows(2).find(|pair| pair[0].1 < pair[1].1);
    if let Some([_, (path, _)]) = late {
        return Err(invalid(format!(
            "{path}.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control \
             block. Note that blocks are processed in the following order: `tools`, `system`, `messages`."
        )));
    }
    Ok(())
}
