//! The tools of a request. Their list is append-only, for the provider's prefix cache and for reasoning that is bound
//! to it: the definition of a removed tool stays, a notice tells the model, and calls of it are refused. The list is
//! rebuilt when the tools are replaced on purpose, or the mode or role of the session changes.

use std::collections::BTreeSet;
use std::sync::Arc;

use hangar_protocol::data;
use serde_json::Value;

use super::own_tools::{self, TOOL_SEARCH, ToolConditions};
use super::{Session, Step};
use crate::interned;
use crate::tool::{ToolOutcome, ToolSource, ToolSpec};
use crate::tool_search;

/// The kind of tool search, as the event names it.
const STRATEGY: &str = "keyword";

impl Session {
    /// Tools that the model is shown, the session's own included.
    pub(super) fn visible_tools(&self) -> Arc<[Arc<ToolSpec>]> {
        let config = &self.config;
        let deferred = self.deferred();
        let conditions = ToolConditions {
            mode: self.mode(),
            may_ask: config.may_ask,
            questions_answered: config.questions_answered,
            plans_reviewed: self.answerable.plans,
            // A session that has searched once may search again, after a resume too.
            defers_tools: !deferred.is_empty()
                || self.was_shown(TOOL_SEARCH)
                || !self.state.found_tools.is_empty(),
            agent_config: config.agent_config.as_deref(),
        };
        let own = own_tools::specs(conditions)
            .filter(|own| self.may_show_own(&own.name))
            // A client may register a tool of the same name; then that one is meant.
            .filter(|own| config.tools.iter().all(|tool| tool.name != own.name));
        let mut own = own.peekable();
        if own.peek().is_none() && self.active_role().is_none() && self.shown_tools.is_empty() {
            return Arc::clone(&self.config.tools);
        }
        // Shared, because most sessions show the same list, and a call keeps it alive.
        let own: Vec<Arc<ToolSpec>> = own.map(interned::spec).collect();
        let plays = |tool: &&Arc<ToolSpec>| self.plays(&tool.name) && !deferred.contains(tool.name.as_str());
        let there = config.tools.iter().chain(&self.withdrawn_tools);
        let mut tools: Vec<&Arc<ToolSpec>> = there.filter(plays).chain(&own).collect();
        tools.sort_by_key(|tool| self.place(&tool.name));
        interned::list(tools.into_iter())
    }

    /// Place of a tool in the list: those that were shown, then those that were not, then those that were searched for. A
    /// resumed session knows only the last.
    fn place(&self, name: &str) -> (usize, usize) {
        let position = |names: &[String]| names.iter().position(|known| known == name);
        let shown = position(&self.shown_tools).unwrap_or(usize::MAX);
        (shown, position(&self.state.found_tools).map_or(0, |found| found + 1))
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
        self.shown_tools.iter().any(|shown| shown == name)
    }

    /// Whether a tool is in the requests although it is gone.
    pub(super) fn is_withdrawn(&self, name: &str) -> bool {
        self.withdrawn_tools.iter().any(|tool| tool.name == name)
    }

    /// Notes the tools of a request.
    pub(super) fn note_shown(&mut self, tools: &[Arc<ToolSpec>]) {
        for tool in tools {
            if !self.was_shown(&tool.name) {
                self.shown_tools.push(tool.name.clone());
            }
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
