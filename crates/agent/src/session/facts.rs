//! Facts of the session that are sent to the model in messages: its directory, its own name, its permissions.

use super::Session;
use crate::prompt::context;

impl Session {
    /// Adds a fact that took time to find out.
    pub fn add_fact(&mut self, fact: String) {
        if !self.config.facts.is_empty() {
            self.config.facts.push(fact);
        }
    }

    /// Facts for the next message: those that are new or have changed since they were told.
    pub(super) fn news_of_facts(&self) -> Option<String> {
        context::news(&self.facts(), &self.state.told_facts)
    }

    fn facts(&self) -> Vec<String> {
        let mut facts = self.config.facts.clone();
        let deferred = self.deferred_names();
        if !deferred.is_empty() {
            facts.push(format!("Tools that tool_search_tool finds: {deferred}"));
        }
        if self.config.facts.is_empty() {
            return facts;
        }
        if !self.state.model.is_empty() {
            facts.push(format!("Model: {}", context::fact(&self.state.model)));
        }
        let permissions = self.config.policy.told(self.config.clients.permissions);
        facts.extend(permissions.map(|permissions| format!("Permissions: {}", context::fact(&permissions))));
        facts
    }
}
