//! The beginning of a request: system prompt and tools. Vendors bind reasoning to it, and refuse reasoning of the calls under way
//! behind another one, so it stays until the cycle of calls has ended. Tools that come meanwhile, or that another mode has,
//! are offered with the next prompt. Only tools that the model has searched for are added at once.

use std::sync::Arc;

use hangar_protocol::data;

use super::{Session, Step};
use crate::interned;
use crate::model::ModelRequest;
use crate::tool::ToolSpec;

#[derive(Debug, Clone)]
pub(super) struct Beginning {
    /// Another model is not sent the reasoning that is bound to it.
    model: String,
    pub(super) system: Arc<str>,
    pub(super) tools: Arc<[Arc<ToolSpec>]>,
}

impl Beginning {
    fn has(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name == name)
    }
}

impl Session {
    /// System prompt and tools of the next request.
    pub(super) fn beginning(&self) -> Beginning {
        let Some(kept) = self.kept_beginning() else {
            let model = self.state.model.clone();
            return Beginning { model, system: self.system(), tools: self.visible_tools() };
        };
        let visible = self.visible_tools();
        let found = |tool: &&Arc<ToolSpec>| {
            !kept.has(&tool.name) && self.state.found_tools.iter().any(|found| *found == tool.name)
        };
        if !visible.iter().any(|tool| found(&tool)) {
            return kept.clone();
        }
        let tools = interned::list(kept.tools.iter().chain(visible.iter().filter(found)));
        Beginning { tools, ..kept.clone() }
    }

    /// The beginning that the cycle under way is bound to.
    fn kept_beginning(&self) -> Option<&Beginning> {
        let kept = self.run.as_ref()?.beginning.as_ref()?;
        (kept.model == self.state.model && self.state.conversation.is_bound(0)).then_some(kept)
    }

    /// Keeps the beginning of a request for those that follow in the same cycle, and tells which tools wait for its end.
    pub(super) fn keep_beginning(&mut self, request: &ModelRequest, step: &mut Step) {
        let kept = Beginning {
            model: request.model.clone(),
            system: Arc::clone(&request.system),
            tools: Arc::clone(&request.tools),
        };
        let held = match self.kept_beginning() {
            Some(_) => self.visible_tools().iter().filter(|tool| !kept.has(&tool.name)).count(),
            None => 0,
        };
        let Some(run) = &mut self.run else { return };
        run.beginning = Some(kept);
        if held > std::mem::replace(&mut run.held_tools, held) {
            let message = format!(
                "{held} new tool(s) are offered from the next prompt on: the model's reasoning is bound to the tools that it \
                 began with."
            );
            self.emit(step, data::SessionInfo::new("tools_held", message));
        }
    }
}
