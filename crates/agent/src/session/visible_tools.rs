//! The tools of a request. Their list is append-only, for the provider's prefix cache and for reasoning that is bound
//! to it: the definition of a removed tool stays, a notice tells the model, and calls of it are refused. So do the session's
//! own tools of a mode that has ended. The list is rebuilt when the tools are replaced on purpose, or the role of the session
//! changes. The log has the order, for a session that is resumed.

use std::collections::BTreeSet;
use std::sync::Arc;

use hangar_protocol::data;
use serde_json::Value;

use super::own_tools::{self, OwnTool, TOOL_SEARCH, ToolConditions};
use super::{Session, Step};
use crate::interned;
use crate::model::LateTools;
use crate::tool::{ToolOutcome, ToolSource, ToolSpec};
use crate::tool_search;

/// The kind of tool search, as the event names it.
const STRATEGY: &str = "keyword";

impl Session {
    /// Tools that the model is shown, the session's own included.
    pub(super) fn visible_tools(&self) -> Arc<[Arc<ToolSpec>]> {
        let config = &self.config;
        let deferred = self.deferred();
        let own = own_tools::specs(self.tool_conditions(), |name| self.was_shown(name))
            .filter(|own| self.may_show_own(&own.name))
            // A client may register a tool of the same name; then that one is meant.
            .filter(|own| config.tools.iter().all(|tool| tool.name != own.name));
        let mut own = own.peekable();
        if own.peek().is_none() && self.active_role().is_none() && self.state.offered_tools.is_empty() {
            return Arc::clone(&self.config.tools);
        }
        // Shared, because most sessions show the same list, and a call keeps it alive.
        let own: Vec<Arc<ToolSpec>> = own.map(interned::spec).collect();
        let plays = |tool: &&Arc<ToolSpec>| self.plays(&tool.name) && !deferred.contains(tool.name.as_str());
        let there = config.tools.iter().chain(&self.shown.withdrawn);
        let mut tools: Vec<&Arc<ToolSpec>> = there.filter(plays).chain(&own).collect();
        tools.sort_by_key(|tool| self.place(&tool.name));
        interned::list(tools.into_iter())
    }

    fn tool_conditions(&self) -> ToolConditions<'_> {
        let config = &self.config;
        ToolConditions {
            mode: self.mode(),
            may_ask: config.may_ask,
            questions_answered: config.clients.questions,
            plans_reviewed: self.answerable.plans,
            // A session that has searched once may search again.
            defers_tools: !self.deferred().is_empty() || !self.state.found_tools.is_empty(),
            agent_config: config.agent_config.as_deref(),
        }
    }

    /// Place of a tool in the list: those that were offered, then those that were not, then those that were searched for.
    fn place(&self, name: &str) -> (usize, usize) {
        let offered = self.state.offered_tools.iter().position(|offered| offered.name == name);
        let found = self.state.found_tools.iter().position(|found| found == name);
        (offered.unwrap_or(usize::MAX), found.map_or(0, |found| found + 1))
    }

    /// The tools of a request that the conversation did not begin with.
    pub(super) fn late_tools(&self, tools: &[Arc<ToolSpec>]) -> Vec<LateTools> {
        let offered = &self.state.offered_tools;
        let mut late: Vec<LateTools> = Vec::new();
        if offered.is_empty() {
            return late;
        }
        for (first, tool) in tools.iter().enumerate() {
            let known = offered.iter().find(|offered| offered.name == tool.name);
            let behind = known.map_or(self.state.conversation.len(), |offered| offered.behind);
            let before = late.last().map_or(0, |late| late.behind);
            if behind > before {
                late.push(LateTools { first, behind });
            }
        }
        late
    }

    /// Whether the role of the session has a tool.
    fn plays(&self, name: &str) -> bool {
        self.active_role().is_none_or(|agent| agent.tools.admits(name))
    }

    /// Whether an own tool may be shown, if its conditions are met.
    fn may_show_own(&self, name: &str) -> bool {
        self.agent().is_none_or(|role| role.tools.admits(name))
            && self.plays(name)
            && self.config.own_tools.admits(ToolSource::Builtin, name)
    }

    pub(super) fn was_shown(&self, name: &str) -> bool {
        self.state.offered_tools.iter().any(|offered| offered.name == name)
    }

    /// Whether a tool is in the requests although it is gone, or of a mode that has ended.
    pub(super) fn is_withdrawn(&self, name: &str) -> bool {
        self.shown.withdrawn.iter().any(|tool| tool.name == name)
            || OwnTool::named(name).is_some_and(|own| self.is_left_over(own))
    }

    /// Whether an own tool is only in the requests because it once was.
    fn is_left_over(&self, own: OwnTool) -> bool {
        self.was_shown(own.name())
            && !own.is_shown(self.tool_conditions())
            && self.config.tools.iter().all(|tool| tool.name != own.name())
    }

    /// Logs the tools that a request is the first to have.
    pub(super) fn note_shown(&mut self, tools: &[Arc<ToolSpec>], step: &mut Step) {
        let new = tools.iter().filter(|tool| !self.was_shown(&tool.name));
        let tool_names: Vec<String> = new.map(|tool| tool.name.clone()).collect();
        if !tool_names.is_empty() {
            self.emit(step, data::ToolsOffered { tool_names });
        }
    }

    /// Sets the tools that are hidden behind a search when they are many.
    pub fn set_deferrable(&mut self, names: BTreeSet<String>) {
        if let Some(deferral) = &mut self.config.deferral
            && *deferral.names != names
        {
            deferral.names = Arc::new(names);
        }
    }

    /// Whether tools are too many to be shown, and the model can search for them.
    fn defers(&self) -> bool {
        let config = &self.config;
        let applies =
            |deferral: &tool_search::Deferral| deferral.applies(&config.tools, config.max_prompt_tokens);
        config.deferral.as_ref().is_some_and(applies) && self.may_show_own(TOOL_SEARCH)
    }

    /// Names of the tools that are there and not shown. Those that were once shown stay.
    fn deferred(&self) -> BTreeSet<&str> {
        if !self.defers() {
            return BTreeSet::new();
        }
        let names = self.config.deferral.iter().flat_map(|deferral| deferral.names.iter());
        let hidden = names.filter(|name| !self.was_shown(name) && !self.state.found_tools.contains(name));
        hidden.map(String::as_str).collect()
    }

    /// Names of the tools that can be searched for, found or not.
    pub(super) fn deferred_names(&self) -> String {
        if !self.defers() {
            return String::new();
        }
        let is_deferrable =
            |name: &str| self.config.deferral.as_ref().is_some_and(|deferral| deferral.names.contains(name));
        let names = self.config.tools.iter().map(|tool| tool.name.as_str());
        tool_search::names(names.filter(|name| is_deferrable(name) && self.plays(name)))
    }

    pub(super) fn search_tools(&mut self, id: &str, arguments: &Value, step: &mut Step) {
        let Some(query) = arguments["query"].as_str() else {
            return self.complete(id, ToolOutcome::failure("\"query\": Required"), step);
        };
        let deferrable = |tool: &&Arc<ToolSpec>| {
            self.config.deferral.as_ref().is_some_and(|deferral| deferral.names.contains(&tool.name))
                && self.plays(&tool.name)
        };
        let tools = self.config.tools.iter().filter(deferrable);
        let found = tool_search::search(tools, query.trim(), arguments["limit"].as_u64());
        let text = tool_search::told(&found, query);
        let names: Vec<String> = found.iter().map(|tool| tool.name.clone()).collect();
        self.complete(id, ToolOutcome::success(text), step);
        self.activate(names, step);
    }

    /// Shows a tool that the model has called without searching for it: it knows the name from a message.
    pub(super) fn load_called(&mut self, name: &str, step: &mut Step) {
        if self.deferred().contains(name) && self.plays(name) {
            self.activate(vec![name.to_owned()], step);
        }
    }

    fn activate(&mut self, names: Vec<String>, step: &mut Step) {
        let tool_names: Vec<String> =
            names.into_iter().filter(|name| !self.state.found_tools.contains(name)).collect();
        if !tool_names.is_empty() {
            self.emit(step, data::ToolSearchActivated { strategy: STRATEGY.to_owned(), tool_names });
        }
    }
}
