//! Tool calls: resolving a name for a lane, inspecting a call, and running it.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};

use super::Driver;
use super::lane::LaneId;
use crate::permissions::Grant;
use crate::session::{Inspection, SessionInput};
use crate::tool::{Tool, ToolContext, ToolInput, ToolOutcome};

/// Result of inspecting calls, now or as a future.
pub(super) enum Inspected {
    Now(Vec<Inspection>),
    Later(BoxFuture<'static, Vec<Inspection>>),
}

impl Driver {
    /// Tool of this name in a lane: one of its own, or a shared one.
    fn tool(&self, id: LaneId, name: &str) -> Option<&Arc<dyn Tool>> {
        let toolset = self.lanes.get(&id).and_then(|lane| lane.agent.as_ref()?.toolset.as_ref());
        let own = toolset.and_then(|toolset| toolset.tools.iter().find(|tool| tool.spec().name == name));
        own.or_else(|| self.host.tools.find(name))
    }

    pub(super) fn inspect(&self, id: LaneId, calls: Vec<(String, ToolInput)>) -> Inspected {
        let mut now = Vec::with_capacity(calls.len());
        let mut later: Vec<BoxFuture<'static, Inspection>> = Vec::new();
        for (name, input) in calls {
            let call_id = input.call_id.clone();
            let tool = self.tool(id, &name);
            if let Some(access) = tool.and_then(|tool| tool.inspect_apart(&input)) {
                later.push(Box::pin(async move { Inspection { access: access.await, call_id } }));
                continue;
            }
            let access = match tool {
                Some(tool) => tool.inspect(&input),
                None => Err(ToolOutcome::failure(format!("Tool '{name}' is not there."))),
            };
            now.push(Inspection { access, call_id });
        }
        if later.is_empty() {
            return Inspected::Now(now);
        }
        Inspected::Later(Box::pin(async move {
            now.extend(futures_util::future::join_all(later).await);
            now
        }))
    }

    pub(super) fn run_tool(&mut self, id: LaneId, name: &str, input: ToolInput, grant: Grant) {
        let Some(lane) = self.lanes.get(&id) else { return };
        let call_id = input.call_id.clone();
        let run = match self.tool(id, name) {
            Some(tool) => {
                let context = ToolContext {
                    grant,
                    cancel: lane.tools.child_token(),
                    hurry: lane.hurry.clone(),
                    progress: lane.progress.clone(),
                };
                tool.run(input, context)
            }
            None => {
                let outcome = ToolOutcome::failure(format!("Tool '{name}' is not there."));
                std::future::ready(outcome).boxed()
            }
        };
        self.running.work.push(Box::pin(async move {
            (id, Some(SessionInput::ToolDone { call_id, outcome: run.await }))
        }));
    }
}
