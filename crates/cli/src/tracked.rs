//! Keeps files as they were before tools change them, so that a session can be rewound.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use hangar_agent::tool::{Access, Tool, ToolContext, ToolInput, ToolOutcome, ToolSpec};
use hangar_protocol::permission::PermissionRequest;
use hangar_store::snapshots::{FileChange, Snapshots, Version, version};

/// Files of one call that are kept.
const MAX_FILES: usize = 256;

pub(crate) struct Tracked {
    tool: Arc<dyn Tool>,
    snapshots: Arc<Snapshots>,
}

impl Tracked {
    /// The tool, watched if it is one that changes files.
    pub(crate) fn watch(tool: Arc<dyn Tool>, snapshots: &Arc<Snapshots>) -> Arc<dyn Tool> {
        match tool.spec().name.as_str() {
            "create" | "edit" | "apply_patch" => Arc::new(Self { tool, snapshots: Arc::clone(snapshots) }),
            _ => tool,
        }
    }

    fn writes(&self, call: &ToolInput) -> Vec<PathBuf> {
        match self.tool.inspect(call) {
            Ok(Access::Needs(access)) if matches!(access.request, PermissionRequest::Write { .. }) => {
                access.writes.into_iter().take(MAX_FILES).collect()
            }
            Ok(_) | Err(_) => Vec::new(),
        }
    }
}

impl Tool for Tracked {
    fn spec(&self) -> &Arc<ToolSpec> {
        self.tool.spec()
    }

    fn inspect(&self, call: &ToolInput) -> Result<Access, ToolOutcome> {
        self.tool.inspect(call)
    }

    fn run(&self, call: ToolInput, context: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        let paths = self.writes(&call);
        if paths.is_empty() {
            return self.tool.run(call, context);
        }
        let (tool, snapshots) = (Arc::clone(&self.tool), Arc::clone(&self.snapshots));
        Box::pin(async move {
            let call_id = call.call_id.clone();
            let keeper = Arc::clone(&snapshots);
            let keep = move || -> Vec<(PathBuf, Version)> {
                // A file that cannot be kept can still be changed; it is not restored.
                let kept = |path: PathBuf| (keeper.keep(&path).unwrap_or(Version::Unknown), path);
                paths.into_iter().map(kept).map(|(version, path)| (path, version)).collect()
            };
            let before = tokio::task::spawn_blocking(keep).await.unwrap_or_default();
            let outcome = tool.run(call, context).await;
            let alone = before.len() == 1;
            let (added, removed) = (outcome.changes.lines_added, outcome.changes.lines_removed);
            let record = move || {
                for (path, before) in before {
                    let after = version(&path).unwrap_or(Version::Unknown);
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
