//! `apply_patch`: changes to several files in one text, made all together or not at all.

mod apply;
mod hunks;
mod parse;
mod plan;

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use hangar_agent::interned;
use hangar_agent::tool::{
    Access, HeldFiles, Tool, ToolContext, ToolInput, ToolOutcome, ToolSchema, ToolSpec,
};
use serde_json::Value;

use self::parse::Operation;
use self::plan::PatchOutcome;
use crate::answer;
use crate::arguments;
use crate::files::{WriteRequest, locks};
use crate::inspected::InspectedCalls;
use crate::workspace::Workspace;

/// For providers that can hold a model to it.
const GRAMMAR: &str = include_str!("grammar.lark");

pub struct ApplyPatch {
    spec: Arc<ToolSpec>,
    workspace: Arc<Workspace>,
    inspected: Arc<InspectedCalls>,
}

impl ApplyPatch {
    pub fn new(workspace: Arc<Workspace>) -> Self {
        Self {
            spec: interned::spec(ToolSpec {
                name: "apply_patch".to_owned(),
                title: Some("Applying patch".to_owned()),
                description: "Adds, changes, moves and deletes files by a patch in this form:\n\
                              *** Begin Patch\n\
                              *** Add File: path/new.txt\n\
                              +a line of the new file\n\
                              *** Update File: path/old.txt\n\
                              *** Move to: path/renamed.txt\n\
                              @@ a line above the change, such as the head of its function\n \
                              a line that stays\n\
                              -a line that goes\n\
                              +a line that comes\n\
                              *** Delete File: path/gone.txt\n\
                              *** End Patch\n\
                              `Move to` and the text behind @@ are optional. Show about three unchanged lines on \
                              either side of a change; hunks of a file are in its order. `*** End of File` after a \
                              hunk says that it ends the file. If any part does not fit, nothing is changed."
                    .to_owned(),
                input: ToolSchema::Custom { grammar: Some(GRAMMAR.to_owned()) },
            }),
            workspace,
            inspected: Arc::default(),
        }
    }
}

impl Tool for ApplyPatch {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn inspect(&self, call: &ToolInput) -> Result<Access, ToolOutcome> {
        let operations = parse(call)?;
        let places = plan::places(&self.workspace, &operations);
        let in_workspace = places.real.iter().all(|place| self.workspace.contains(place));
        self.inspected.remember(&call.call_id, places.hold());
        let plan = match plan::plan(&self.workspace, &operations) {
            Ok(plan) => Some(plan),
            Err(error) if in_workspace => return Err(refused(&error)),
            // That a patch does not fit a file outside the workspace is not told before a permission is given.
            Err(_) => None,
        };
        let shown = self.shown_first(&operations);
        let new_content = match (operations.as_slice(), &plan) {
            ([_], Some(plan)) => plan.entries.values().find_map(|entry| entry.new.as_deref()),
            _ => None,
        };
        let request = WriteRequest {
            call_id: &call.call_id,
            intention: intention(&operations),
            shown: &shown,
            diff: plan.as_ref().map(|plan| plan.report.diff.clone()).unwrap_or_default(),
            new_content,
            reads: Vec::new(),
            writes: places.real,
        };
        Ok(Access::Needs(Box::new(request.into_access())))
    }

    fn held(&self, call: &ToolInput) -> Option<Arc<dyn HeldFiles>> {
        if let Some(places) = self.inspected.of(&call.call_id) {
            return Some(places);
        }
        Some(Arc::new(plan::places(&self.workspace, &parse(call).ok()?).hold()))
    }

    fn run(&self, call: ToolInput, context: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        let workspace = Arc::clone(&self.workspace);
        let inspected = Arc::clone(&self.inspected);
        Box::pin(async move {
            let prepared = parse(&call).and_then(|operations| {
                let now = plan::places(&workspace, &operations);
                let places = inspected.confirm(&call.call_id, &now)?;
                Ok((operations, now.real, workspace.held(&places)))
            });
            let (operations, places, workspace) = match prepared {
                Ok(prepared) => prepared,
                Err(answer) => return answer,
            };
            let guards = tokio::select! {
                guards = locks::lock(places) => guards,
                () = context.cancel.cancelled() => return answer::interrupted(),
            };
            answer::writing(&context.cancel, move || {
                let _guards = guards;
                apply(&workspace, &operations).unwrap_or_else(|answer| answer)
            })
            .await
        })
    }
}

impl ApplyPatch {
    /// The file that stands for the patch where there is room for one: the first outside the workspace, since that is
    /// what a person must know, or else the first.
    fn shown_first(&self, operations: &[Operation]) -> PathBuf {
        let mut locations = operations.iter().map(|operation| {
            let path = match operation {
                Operation::Update { move_to: Some(path), .. } => path,
                Operation::Add { path, .. } | Operation::Delete { path } | Operation::Update { path, .. } => {
                    path
                }
            };
            self.workspace.locate(path)
        });
        let first = locations.next();
        let outside =
            first.clone().into_iter().chain(locations).find(|at| !self.workspace.contains(&at.real));
        outside.or(first).map(|at| at.shown).unwrap_or_default()
    }
}

fn parse(call: &ToolInput) -> Result<Vec<Operation>, ToolOutcome> {
    let patch = match &call.arguments {
        Value::String(patch) => patch.clone(),
        _ => arguments::read(call, |a| a.required_text("input"))?,
    };
    parse::parse(&patch).map_err(|error| ToolOutcome::failure(format!("Failed to parse patch: {error}")))
}

fn refused(error: &impl std::fmt::Display) -> ToolOutcome {
    ToolOutcome::failure(format!("Failed to apply patch: Error: {error}"))
}

fn intention(operations: &[Operation]) -> String {
    match operations {
        [Operation::Add { .. }] => "Create file".to_owned(),
        [Operation::Delete { .. }] => "Delete file".to_owned(),
        [Operation::Update { move_to: Some(_), .. }] => "Move and update file".to_owned(),
        [Operation::Update { move_to: None, .. }] => "Update file".to_owned(),
        several => format!("Apply a patch to {} files", several.len()),
    }
}

fn apply(workspace: &Workspace, operations: &[Operation]) -> Result<ToolOutcome, ToolOutcome> {
    let mut plan = plan::plan(workspace, operations).map_err(|error| refused(&error))?;
    let text = summary(&plan.outcomes);
    let report = std::mem::take(&mut plan.report);
    apply::apply(&workspace.files, plan).map_err(|error| refused(&error))?;
    Ok(ToolOutcome { detailed: Some(report.diff), changes: report.changes, ..ToolOutcome::success(text) })
}

fn summary(outcomes: &[PatchOutcome]) -> String {
    let (mut added, mut modified, mut deleted) = (Vec::new(), Vec::new(), Vec::new());
    for outcome in outcomes {
        match outcome {
            PatchOutcome::Added(path) => added.push(path.display().to_string()),
            PatchOutcome::Updated(path) | PatchOutcome::Moved { to: path } => {
                modified.push(path.display().to_string());
            }
            PatchOutcome::Deleted(path) => deleted.push(path.display().to_string()),
        }
    }
    [("Added", added), ("Modified", modified), ("Deleted", deleted)]
        .into_iter()
        .filter(|(_, paths)| !paths.is_empty())
        .map(|(verb, paths)| format!("{verb} {} file(s): {}", paths.len(), paths.join(", ")))
        .collect::<Vec<_>>()
        .join("\n")
}
