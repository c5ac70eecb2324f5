//! A session and its agents: handing work out, hearing of it, and playing the role of one.

use std::sync::Arc;

use hangar_protocol::data;

use super::tools::Stage;
use super::{AgentReport, Context, Effect, Origin, Prompt, ReadForModel, Session, Step, Timing};
use crate::agents::AgentDefinition;
use crate::agents::call::AgentCall;
use crate::hook::HookKind;

impl Session {
    /// Has the driver deal with a call; its result comes as any tool's does.
    pub(super) fn deal_with_agents(&mut self, id: &str, call: AgentCall, step: &mut Step) {
        let Some(running) = self.running(id) else { return };
        running.stage = Stage::Running;
        step.effects.push(Effect::Agents(id.to_owned(), call));
    }

    pub(super) fn agent_report(&mut self, report: AgentReport, step: &mut Step, context: &mut Context<'_>) {
        self.send(prompt_of(report), step, context);
    }

    /// Keeps news for the next prompt: a session that was just resumed is not woken by it.
    pub(crate) fn owe(&mut self, report: AgentReport) {
        self.owed.push(prompt_of(report));
    }

    pub(super) fn agents_settled(&mut self, step: &mut Step) {
        if std::mem::take(&mut self.idle_owed) && self.is_idle() {
            self.emit(step, data::SessionIdle { aborted: None, mode: None });
            step.effects.push(Effect::Sync);
        }
    }

    /// Puts a call and its result into the conversation that the model would have made next.
    pub(super) fn read_for_model(&mut self, read: ReadForModel, step: &mut Step, context: &mut Context<'_>) {
        let tool_call_id = context.entropy.uuid();
        let request = data::ToolRequest {
            tool_call_id: tool_call_id.clone(),
            name: "read_agent".to_owned(),
            arguments: read.arguments.clone(),
            kind: None,
            intention_summary: None,
            tool_title: None,
            mcp_server_name: None,
            mcp_tool_name: None,
        };
        let message = data::AssistantMessage {
            message_id: context.entropy.uuid(),
            tool_requests: vec![request],
            ..Default::default()
        };
        self.emit(step, message);
        let start = data::ToolStart {
            tool_call_id: tool_call_id.clone(),
            tool_name: "read_agent".to_owned(),
            arguments: read.arguments,
            turn_id: None,
            model: None,
            shell_tool_info: None,
            mcp_server_name: None,
            mcp_tool_name: None,
            parent_tool_call_id: None,
        };
        self.emit(step, start);
        let (result, error) = super::tools::result_of(read.outcome);
        let complete = data::ToolComplete {
            tool_call_id,
            success: error.is_none(),
            result,
            error,
            tool_telemetry: Some(serde_json::json!({ "properties": {}, "metrics": {} })),
            ..Default::default()
        };
        self.emit(step, complete);
    }

    /// The agent whose role the session plays.
    pub fn cast(&self) -> Option<&AgentDefinition> {
        let name = self.state.selected.as_deref()?;
        self.config.crew.as_deref()?.find(name)
    }

    pub(super) fn system(&self) -> Arc<str> {
        Arc::clone(self.cast.as_ref().unwrap_or(&self.config.system))
    }

    pub(super) fn select_agent(&mut self, name: Option<String>, step: &mut Step) {
        match name {
            Some(name) => {
                let crew = self.config.crew.clone();
                let Some(agent) = crew.as_deref().and_then(|crew| crew.find(&name)) else { return };
                let selected = data::SubagentSelected {
                    agent_name: agent.name.clone(),
                    agent_display_name: agent.display_name.clone(),
                    tools: agent.tools.listed(),
                };
                self.emit(step, selected);
            }
            None if self.state.selected.is_some() => self.emit(step, data::SubagentDeselected {}),
            None => {}
        }
        self.recast();
    }

    /// Other agents than before. The role that the session plays may have changed with them.
    pub fn set_crew(&mut self, crew: Option<Arc<crate::agents::crew::Crew>>) {
        self.config.crew = crew;
        self.recast();
    }

    /// Words the prompt of the role that the session plays. It is part of every request, so it is made once.
    pub(super) fn recast(&mut self) {
        self.cast = self.cast().map(|agent| {
            let tools = self.visible_tools().iter().map(|tool| tool.name.clone()).collect();
            self.config.crew.as_deref().map_or_else(|| agent.role().into(), |crew| crew.prompt(agent, tools))
        });
    }
}

fn prompt_of(report: AgentReport) -> Prompt {
    Prompt {
        timing: Timing::Steer,
        origin: Origin::AgentReport { kind: report.notice.kind, read: report.read.map(Box::new) },
        ..Prompt::user(report.notice.text)
    }
}
