//! The way of a call that writes one file: its path leads where it led when the call was permitted, and no other call
//! writes there meanwhile.

use std::sync::Arc;

use hangar_agent::tool::{HeldFiles, ToolContext, ToolInput, ToolOutcome};

use super::{locate, locks};
use crate::answer;
use crate::inspected::InspectedCalls;
use crate::tool_files::ToolFiles;
use crate::workspace::{Location, Workspace};

/// Arguments that name the file to write.
pub(super) trait Names {
    fn path(&self) -> &str;
}

/// The file of a call as it was inspected; if the call was not inspected here, as it is now.
pub(super) fn held(
    workspace: &Workspace,
    inspected: &InspectedCalls,
    call: &ToolInput,
    arguments: &impl Names,
) -> Option<Arc<dyn HeldFiles>> {
    if let Some(places) = inspected.of(&call.call_id) {
        return Some(places);
    }
    let location = locate(workspace, arguments.path()).ok()?;
    Some(Arc::new(workspace.now(&location).hold()))
}

/// Exclusive claim to write a file, until it is dropped.
pub(super) struct Claim<A> {
    arguments: A,
    location: Location,
    files: ToolFiles,
    guards: locks::Guards,
}

impl<A: Names + Send + 'static> Claim<A> {
    /// Waits for the file, no longer than the call may last. The error is the call's answer.
    pub(super) async fn take(
        workspace: &Workspace,
        inspected: &InspectedCalls,
        call: &ToolInput,
        arguments: Result<A, ToolOutcome>,
        context: &ToolContext,
    ) -> Result<Self, ToolOutcome> {
        let arguments = arguments?;
        let location = locate(workspace, arguments.path())?;
        let places = inspected.confirm(&call.call_id, &workspace.now(&location))?;
        tokio::select! {
            guards = locks::lock([location.real.clone()]) => {
                Ok(Self { arguments, location, files: workspace.files.held(&places), guards })
            },
            () = context.cancel.cancelled() => Err(answer::interrupted()),
        }
    }

    pub(super) fn location(&self) -> &Location {
        &self.location
    }

    pub(super) async fn write(
        self,
        context: &ToolContext,
        write: fn(&ToolFiles, &Location, &A) -> Result<ToolOutcome, ToolOutcome>,
    ) -> ToolOutcome {
        answer::writing(&context.cancel, move || {
            let Self { arguments, location, files, guards } = self;
            let outcome = write(&files, &location, &arguments).unwrap_or_else(|answer| answer);
            drop(guards);
            outcome
        })
        .await
    }
}
