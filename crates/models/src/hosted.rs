//! Tools that a vendor runs itself while a model answers. The session lists them, so that its rules apply to them too.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use hangar_agent::tool::{Access, Tool, ToolContext, ToolInput, ToolOutcome, ToolSchema, ToolSpec};

/// Name of the web search, in rules and requests.
pub const WEB_SEARCH: &str = "web_search";

/// The answer to a call that should not have reached the session.
const NOT_HERE: &str =
    "web_search is run by the model's provider, which did not run it for this model. Use another tool.";

/// A vendor's web search.
pub struct WebSearchTool(Arc<ToolSpec>);

impl Default for WebSearchTool {
    fn default() -> Self {
        Self(Arc::new(ToolSpec {
            name: WEB_SEARCH.to_owned(),
            title: Some("Searching the web".to_owned()),
            description: "Searches the web. The provider of the model runs it.".to_owned(),
            input: ToolSchema::Hosted,
        }))
    }
}

impl Tool for WebSearchTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    fn inspect(&self, _: &ToolInput) -> Result<Access, ToolOutcome> {
        Err(ToolOutcome::failure(NOT_HERE))
    }

    fn run(&self, _: ToolInput, _: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        futures_util::future::ready(ToolOutcome::failure(NOT_HERE)).boxed()
    }
}
