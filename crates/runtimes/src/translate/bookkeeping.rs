//! The account of a turn: which call to the model is under way, which tools run. Every translator keeps one, so that
//! starts and ends pair up in what we say even where they do not in what the agent says.

use std::collections::BTreeMap;

use hangar_protocol::AgentId;
use hangar_protocol::data::{self, ToolError, ToolRequest, ToolResult, ToolType};
use serde_json::Value;

use super::Translation;

/// Calls of tools that may be open at once. An agent that never ends its calls must not grow without bound.
const MAX_OPEN_CALLS: usize = 1024;

#[derive(Debug, Default)]
pub struct Bookkeeping {
    model: Option<String>,
    /// The open call to the model.
    turn: Option<u64>,
    turns: u64,
    open: BTreeMap<String, Option<AgentId>>,
}

/// End of a tool call.
#[derive(Debug, Default)]
pub(super) struct ToolEnd {
    pub(super) success: bool,
    pub(super) text: String,
    pub(super) code: Option<String>,
    pub(super) exit_code: Option<i32>,
    pub(super) detailed: Option<String>,
}

impl Bookkeeping {
    pub(super) fn set_model(&mut self, model: Option<&str>) {
        if let Some(model) = model {
            self.model = Some(model.to_owned());
        }
    }

    pub(super) fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Begins a call to the model, if none is under way.
    pub(super) fn open_turn(&mut self, said: &mut Translation) {
        if self.turn.is_none() {
            let turn = self.turns;
            self.turns += 1;
            self.turn = Some(turn);
            said.push(data::TurnStart { turn_id: turn.to_string(), interaction_id: None });
        }
    }

    pub(super) fn close_turn(&mut self, said: &mut Translation) {
        if let Some(turn) = self.turn.take() {
            said.push(data::TurnEnd { turn_id: turn.to_string() });
        }
    }

    fn turn_id(&self) -> Option<String> {
        self.turn.map(|turn| turn.to_string())
    }

    pub(super) fn message(
        &mut self,
        agent: Option<AgentId>,
        id: String,
        text: String,
        said: &mut Translation,
    ) {
        self.open_turn(said);
        said.facts.worked = true;
        let message = data::AssistantMessage {
            message_id: id,
            model: self.model.clone(),
            content: text,
            turn_id: self.turn_id(),
            ..Default::default()
        };
        said.push_from(agent, message);
    }

    /// A call of a tool: the model's request and its start.
    pub(super) fn tool_called(
        &mut self,
        agent: Option<AgentId>,
        call_id: &str,
        name: &str,
        arguments: Value,
        said: &mut Translation,
    ) {
        if self.open.contains_key(call_id) || self.open.len() >= MAX_OPEN_CALLS {
            return;
        }
        self.open_turn(said);
        said.facts.worked = true;
        let request = ToolRequest {
            tool_call_id: call_id.to_owned(),
            name: name.to_owned(),
            arguments: arguments.clone(),
            kind: Some(ToolType::Function),
            intention_summary: None,
            tool_title: None,
            mcp_server_name: None,
            mcp_tool_name: None,
        };
        let message = data::AssistantMessage {
            message_id: format!("{call_id}.request"),
            model: self.model.clone(),
            tool_requests: vec![request],
            turn_id: self.turn_id(),
            ..Default::default()
        };
        said.push_from(agent.clone(), message);
        let start = data::ToolStart {
            tool_call_id: call_id.to_owned(),
            tool_name: name.to_owned(),
            arguments,
            turn_id: self.turn_id(),
            model: self.model.clone(),
            shell_tool_info: None,
            mcp_server_name: None,
            mcp_tool_name: None,
            parent_tool_call_id: None,
        };
        said.push_from(agent.clone(), start);
        self.open.insert(call_id.to_owned(), agent);
    }

    pub(super) fn tool_ended(&mut self, call_id: &str, end: ToolEnd, said: &mut Translation) {
        let Some(agent) = self.open.remove(call_id) else { return };
        let (result, error) = if end.success {
            (
                Some(ToolResult { content: end.text, detailed_content: end.detailed, ..Default::default() }),
                None,
            )
        } else {
            (
                None,
                Some(ToolError { message: end.text, code: end.code.or_else(|| Some("failure".to_owned())) }),
            )
        };
        let complete = data::ToolComplete {
            tool_call_id: call_id.to_owned(),
            model: self.model.clone(),
            turn_id: self.turn_id(),
            shell_execution: end.exit_code.map(|exit_code| data::ShellExecution { exit_code }),
            success: end.success,
            result,
            error,
            ..Default::default()
        };
        said.push_from(agent, complete);
    }

    pub(super) fn is_open(&self, call_id: &str) -> bool {
        self.open.contains_key(call_id)
    }

    /// The output is over: whatever is still open did not end.
    pub(super) fn close(&mut self, said: &mut Translation) {
        for call_id in self.open.keys().cloned().collect::<Vec<_>>() {
            let end = ToolEnd {
                text: "The agent ended before the tool did.".to_owned(),
                code: Some("interrupted".to_owned()),
                ..ToolEnd::default()
            };
            self.tool_ended(&call_id, end, said);
        }
        self.close_turn(said);
    }
}
