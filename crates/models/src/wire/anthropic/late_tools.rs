//! Tools that are added in the middle of a conversation, as messages of the system. The list of tools stays as it was, and with it
//! the cache and the thinking that is bound to it.

use hangar_agent::tool::ToolSpec;
use serde_json::{Value, json};
use std::sync::Arc;

use super::request::Tool;
use crate::facts::Endpoint;
use crate::wire::Ask;

/// The role of the messages that add tools.
pub(super) const ROLE: &str = "system";

/// The groups of tools that are still to be added, while the messages of a request are written.
pub(super) struct LateTools<'a> {
    ask: &'a Ask<'a>,
    groups: Vec<(usize, &'a [Arc<ToolSpec>])>,
    /// Whether the last message is of the user: only there may the system speak.
    is_users: bool,
}

impl<'a> LateTools<'a> {
    pub(super) fn of(ask: &'a Ask<'_>) -> Self {
        let groups = if ask.adds_tools() { ask.request.later_tools().collect() } else { Vec::new() };
        Self { ask, groups, is_users: false }
    }

    /// Notes a message. Returns the tools that are added before it, where the turn of the user ends.
    pub(super) fn before(&mut self, at: usize, role: &str) -> Vec<Value> {
        let due = if role == "assistant" { self.due(at) } else { Vec::new() };
        self.is_users = role == "user";
        due
    }

    /// The tools that are added behind the last message.
    pub(super) fn rest(&mut self) -> Vec<Value> {
        self.due(usize::MAX)
    }

    fn due(&mut self, at: usize) -> Vec<Value> {
        if !self.is_users {
            return Vec::new();
        }
        let due = self.groups.iter().take_while(|(behind, _)| *behind <= at).count();
        let search = self.ask.search(Endpoint::Messages);
        let tools = self.groups.drain(..due).flat_map(|(_, tools)| tools);
        let added = tools.filter_map(|spec| Tool::of(search, spec));
        added.map(|tool| json!({ "type": "tool_addition", "tool": { "type": "tool_definition", "definition": tool } })).collect()
    }
}
