//! The way of a call that writes one file: its path leads where it led when the call was permitted, and no other call
//! writes there meanwhile.

use hangar_agent::tool::{ToolContext, ToolInput, ToolOutcome};

use super::{locate, locks};
use crate::answer;
use crate::inspected::Inspected;
use crate::place::Files;
use crate::workspace::{Location, Workspace};

/// Arguments that name the file to write.
pub(super) trait Names {
    fn path(&self) -> &str;
}

/// A file that is ours to write until this is gone.
pub(super) struct Claim<A> {
    arguments: A,
    location: Location,
    files: Files,
    guards: locks::Guards,
}

impl<A: Names + Send + 'static> Claim<A> {
    /// Waits for the file, no longer than the call may last. The error is the call's answer.
    pub(super) async fn take(
        workspace: &Workspace,
        inspected: &Inspected,
        call: &ToolInput,
        arguments: Result<A, ToolOutcome>,
        context: &ToolContext,
    ) -> Result<Self, ToolOutcome> {
        let arguments = arguments?;
        let location = locate(workspace, arguments.path())?;
        inspected.confirm(&call.call_id, std::slice::from_ref(&location.real))?;
        tokio::select! {
            guards = locks::lock([location.real.clone()]) => {
                Ok(Self { arguments, location, files: workspace.files.clone(), guards })
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
        write: fn(&Files, &Location, &A) -> Result<ToolOutcome, ToolOutcome>,
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
