//! Searching the workspace: `grep` and `glob`.
//!
//! Both see what a developer would: hidden files too, but nothing that ignore files exclude and nothing of `.git`; they
//! follow no links below the places they are given. Results are in the order of their paths.

mod glob;
mod grep;
mod lines;
mod walk;

use std::path::Path;

use hangar_agent::tool::{AccessRequest, ToolInput};
use hangar_protocol::permission::PermissionRequest;

use crate::workspace::Workspace;

pub use glob::Glob;
pub use grep::Grep;

use walk::Root;

/// The request to read the places of a search. The one shown is the first outside the workspace, if there is one.
fn access(
    workspace: &Workspace,
    call: &ToolInput,
    roots: &[Root],
    intention: impl Fn(&Path) -> String,
) -> AccessRequest {
    let shown = roots
        .iter()
        .find(|root| !workspace.contains(&root.location.real))
        .or(roots.first())
        .map_or(workspace.cwd.as_path(), |root| root.location.shown.as_path());
    AccessRequest {
        request: PermissionRequest::Read {
            tool_call_id: Some(call.call_id.clone()),
            intention: intention(shown),
            path: shown.display().to_string(),
        },
        reads: walk::places(roots).real,
        writes: Vec::new(),
    }
}
