//! Sessions of sub-agents: what differs from the main session.

use hangar_protocol::Body;
use hangar_protocol::data::{self, ModelSelection};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::run::{Ending, millis_between};
use super::{Context, Session, SessionEffect, Step};
use crate::agents::AgentTools;
use crate::agents::registry::CANCELLED;

/// Role of a session.
pub enum Role {
    /// The main session.
    Main,
    /// The session of a sub-agent.
    Agent(Box<AgentRole>),
}

pub struct AgentRole {
    pub id: String,
    /// Id of the call that started it.
    pub tool_call_id: String,
    /// Name of its definition.
    pub agent_type: String,
    /// Display name of its definition.
    pub title: String,
    /// Description of its definition.
    pub description: String,
    /// Name that its caller gave it.
    pub name: String,
    pub tools: AgentTools,
    /// Whether it has a role of its own, rather than its caller's.
    pub has_role: bool,
    pub selection: ModelSelection,
    /// Id of its parent: an agent, or the session.
    pub parent: String,
    pub depth: u32,
    pub started: Timestamp,
}

/// Outcome of an agent's work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentEnd {
    Answered(String),
    Failed(String),
    /// It was stopped.
    Cancelled,
}

/// Statistics of an agent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AgentStats {
    pub(super) tool_calls: u64,
    pub(super) asked_model: bool,
}

impl Session {
    pub(super) fn agent(&self) -> Option<&AgentRole> {
        match &self.config.role {
            Role::Main => None,
            Role::Agent(role) => Some(role),
        }
    }

    pub(super) fn open_agent(&mut self, step: &mut Step) {
        let Some(role) = self.agent() else { return };
        let selected = role.has_role.then(|| data::SubagentSelected {
            agent_name: role.agent_type.clone(),
            agent_display_name: role.title.clone(),
            tools: role.tools.listed(),
        });
        let configured = data::SubagentConfigured {
            model: self.state.model.clone(),
            multi_turn: true,
            reasoning_effort: self.state.effort.clone(),
        };
        if let Some(selected) = selected {
            self.emit(step, selected);
        }
        self.emit(step, configured);
    }

    /// Adds the id of the parent's call to an agent's event.
    pub(super) fn mark(&mut self, body: &mut Body) {
        let Role::Agent(role) = &self.config.role else { return };
        let call = || Some(role.tool_call_id.clone());
        match body {
            Body::ModelCallStart(_) => self.stats.asked_model = true,
            Body::ModelCallFailure(failure) => failure.source = "subagent".to_owned(),
            Body::MessageDelta(delta) => delta.parent_tool_call_id = call(),
            Body::AssistantMessage(message) => message.parent_tool_call_id = call(),
            Body::AssistantUsage(usage) => usage.parent_tool_call_id = call(),
            Body::UsageRecord(record) => record.usage.parent_tool_call_id = call(),
            Body::ToolStart(start) => {
                start.parent_tool_call_id = call();
                self.stats.tool_calls += 1;
            }
            Body::ToolComplete(complete) => complete.parent_tool_call_id = call(),
            _ => {}
        }
    }

    /// Reports the outcome to the parent.
    pub(super) fn agent_done(
        &mut self,
        ending: Ending,
        answer: String,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let failure = self.last_run.failure.take();
        let end = match ending {
            Ending::Answered | Ending::TaskComplete => AgentEnd::Answered(answer),
            Ending::Failed => AgentEnd::Failed(failure.unwrap_or_else(|| "The agent failed.".to_owned())),
            Ending::Rejected => AgentEnd::Failed("The user rejected what the agent wanted to do.".to_owned()),
            Ending::Aborted => AgentEnd::Cancelled,
        };
        let Some(role) = self.agent() else { return };
        let totals = &self.state.totals;
        let tokens = match (totals.input_tokens, totals.output_tokens) {
            (None, None) => None,
            (input, output) => Some(input.unwrap_or(0) + output.unwrap_or(0)),
        };
        let completed = data::SubagentCompleted {
            tool_call_id: role.tool_call_id.clone(),
            agent_name: role.agent_type.clone(),
            agent_display_name: role.name.clone(),
            model: Some(self.state.model.clone()),
            first_dispatched_model: self.stats.asked_model.then(|| self.state.model.clone()),
            model_selection_source: Some(role.selection),
            total_tool_calls: Some(self.stats.tool_calls),
            total_tokens: tokens,
            duration_ms: Some(millis_between(role.started, context.now)),
        };
        let error = match &end {
            AgentEnd::Answered(_) => None,
            AgentEnd::Failed(error) => Some(error.clone()),
            AgentEnd::Cancelled => Some(CANCELLED.to_owned()),
        };
        match error {
            None => self.emit(step, completed),
            Some(error) => self.emit(
                step,
                data::SubagentFailed {
                    tool_call_id: completed.tool_call_id,
                    agent_name: completed.agent_name,
                    agent_display_name: completed.agent_display_name,
                    error,
                    model: completed.model,
                    first_dispatched_model: completed.first_dispatched_model,
                    model_selection_source: completed.model_selection_source,
                    total_tool_calls: completed.total_tool_calls,
                    total_tokens: completed.total_tokens,
                    duration_ms: completed.duration_ms,
                },
            ),
        }
        step.effects.push(SessionEffect::AgentDone(end));
    }

    /// Input of `subagentStart` and `subagentStop`.
    pub(super) fn agent_facts(&self) -> Value {
        let transcript = self.config.session_dir.join("events.jsonl");
        let Some(role) = self.agent() else { return Value::Null };
        json!({
            "transcriptPath": transcript.display().to_string(),
            "agentName": role.agent_type,
            "agentDisplayName": role.title,
            "agentDescription": role.description,
            "agentId": role.id,
            "agentType": role.agent_type,
            "parentAgentId": role.parent,
        })
    }
}
