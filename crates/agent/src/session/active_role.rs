//! A session and its agents: delegating work, and taking the role of an agent.

use std::sync::Arc;

use hangar_protocol::data;

use super::tools::CallStage;
use super::{Session, SessionEffect, Step};
use crate::agents::AgentDefinition;
use crate::agents::call::AgentCall;

impl Session {
    /// Has the driver perform a call of an agent tool. Its result comes as any tool's does.
    pub(super) fn start_agent_call(&mut self, id: &str, call: AgentCall, step: &mut Step) {
        let Some(running) = self.running(id) else { return };
        running.stage = CallStage::Running;
        step.effects.push(SessionEffect::Agents(id.to_owned(), call));
    }

    pub(super) fn agents_settled(&mut self, step: &mut Step) {
        if std::mem::take(&mut self.idle_owed) && self.is_idle() {
            self.emit(step, data::SessionIdle { aborted: None, mode: self.idle_mode() });
            step.effects.push(SessionEffect::Sync);
        }
    }

    /// The agent whose role the session has.
    pub fn active_role(&self) -> Option<&AgentDefinition> {
        let name = self.state.selected.as_deref()?;
        self.config.agent_config.as_deref()?.find(name)
    }

    pub(super) fn select_agent(&mut self, name: Option<String>, step: &mut Step) {
        match name {
            Some(name) => {
                let agent_config = self.config.agent_config.clone();
                let Some(agent) = agent_config.as_deref().and_then(|agent_config| agent_config.find(&name))
                else {
                    return;
                };
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
        self.update_role_prompt();
    }

    /// Sets the agents. The role of the session may change with them.
    pub fn set_agent_config(&mut self, agent_config: Option<Arc<crate::agents::config::AgentConfig>>) {
        self.config.agent_config = agent_config;
        self.update_role_prompt();
    }

    /// Renders the prompt of the session's role. It is part of every request, so it is made once.
    pub(super) fn update_role_prompt(&mut self) {
        self.system.role = self.active_role().map(|agent| {
            let tools = self.visible_tools().iter().map(|tool| tool.name.clone()).collect();
            self.config
                .agent_config
                .as_deref()
                .map_or_else(|| agent.role().into(), |agent_config| agent_config.prompt(agent, tools))
        });
    }
}
