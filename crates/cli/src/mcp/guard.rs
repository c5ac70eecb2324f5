//! Keeps answers of MCP servers from filling the model's context.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use hangar_agent::tool::{Access, Tool, ToolContext, ToolInput, ToolOutcome, ToolSpec};
use hangar_tools::spill::Spill;

struct Fitted {
    tool: Arc<dyn Tool>,
    spill: Arc<Spill>,
}

/// The tool, with answers that are too large saved to a file.
pub(crate) fn fitted(tool: Arc<dyn Tool>, spill: &Arc<Spill>) -> Arc<dyn Tool> {
    Arc::new(Fitted { tool, spill: Arc::clone(spill) })
}

impl Tool for Fitted {
    fn spec(&self) -> &Arc<ToolSpec> {
        self.tool.spec()
    }

    fn inspect(&self, call: &ToolInput) -> Result<Access, ToolOutcome> {
        self.tool.inspect(call)
    }

    fn inspect_apart(&self, call: &ToolInput) -> Option<BoxFuture<'static, Result<Access, ToolOutcome>>> {
        self.tool.inspect_apart(call)
    }

    fn run(&self, call: ToolInput, context: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        let run = self.tool.run(call, context);
        let (spill, stem) = (Arc::clone(&self.spill), self.tool.spec().name.clone());
        Box::pin(async move {
            let mut outcome = run.await;
            let small = outcome.text.len() <= spill.threshold;
            outcome.text = spill.fit(outcome.text, &stem);
            if !small {
                // The blocks repeat the text; the file has all of it.
                outcome.content = None;
            }
            outcome
        })
    }
}
