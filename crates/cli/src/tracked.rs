//! Keeps files as they were before tools change them, so that a session can be rewound.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use hangar_agent::tool::{Access, HeldFiles, Tool, ToolContext, ToolInput, ToolOutcome, ToolSpec};
use hangar_store::snapshots::{FileChange, FileState, Snapshots, Version};

/// Files of one call that are kept.
const MAX_FILES: usize = 256;

pub(crate) struct TrackedTool {
    tool: Arc<dyn Tool>,
    snapshots: Arc<Snapshots>,
}

impl TrackedTool {
    /// Wraps a tool that changes files; returns others unchanged.
    pub(crate) fn watch(tool: Arc<dyn Tool>, snapshots: &Arc<Snapshots>) -> Arc<dyn Tool> {
        match tool.spec().name.as_str() {
            "create" | "edit" | "apply_patch" => Arc::new(Self { tool, snapshots: Arc::clone(snapshots) }),
            _ => tool,
        }
    }
}

impl Tool for TrackedTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        self.tool.spec()
    }

    fn inspect(&self, call: &ToolInput) -> Result<Access, ToolOutcome> {
        self.tool.inspect(call)
    }

    fn run(&self, call: ToolInput, context: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        // The call is not inspected again: its paths may lead elsewhere now than when it was permitted.
        let Some(held) = self.tool.held(&call) else { return self.tool.run(call, context) };
        let (tool, snapshots) = (Arc::clone(&self.tool), Arc::clone(&self.snapshots));
        Box::pin(async move {
            let call_id = call.call_id.clone();
            let (keeper, files) = (Arc::clone(&snapshots), Arc::clone(&held));
            let keep = move || -> Vec<(PathBuf, Version)> {
                let paths = files.paths().into_iter().take(MAX_FILES);
                paths
                    .map(|path| (keep(&keeper, &*files, &path), path))
                    .map(|(version, path)| (path, version))
                    .collect()
            };
            let before = tokio::task::spawn_blocking(keep).await.unwrap_or_default();
            let outcome = tool.run(call, context).await;
            let alone = before.len() == 1;
            let (added, removed) = (outcome.changes.lines_added, outcome.changes.lines_removed);
            let record = move || {
                for (path, before) in before {
                    let after = found(&*held, &path).version();
                    if after == before && after != Version::Unknown {
                        continue;
                    }
                    let change = FileChange {
                        call_id: call_id.clone(),
                        path,
                        before,
                        after,
                        lines_added: if alone { added } else { 0 },
                        lines_removed: if alone { removed } else { 0 },
                    };
                    if let Err(error) = snapshots.record(&change) {
                        tracing::warn!(%error, "a change of a file cannot be rewound");
                    }
                }
            };
            let _ = tokio::task::spawn_blocking(record).await;
            outcome
        })
    }
}

fn found(files: &dyn HeldFiles, path: &Path) -> FileState {
    FileState::from_read(files.read(path, FileState::LIMIT + 1))
}

/// Saves a file. If that fails, it can still be changed, but not restored.
fn keep(snapshots: &Snapshots, files: &dyn HeldFiles, path: &Path) -> Version {
    snapshots.keep(&found(files, path)).unwrap_or_else(|error| {
        tracing::warn!(%error, "a file cannot be kept as it was");
        Version::Unknown
    })
}
