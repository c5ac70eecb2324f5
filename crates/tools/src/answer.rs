//! The answers that several tools give alike.

use hangar_agent::tool::{ToolContext, ToolOutcome, ToolStatus};
use hangar_protocol::Body;
use tokio_util::sync::CancellationToken;

/// A failure with a short form for the event and the full text for the model.
pub(crate) fn failed(short: impl Into<String>, text: impl Into<String>) -> ToolOutcome {
    ToolOutcome { error: Some(short.into()), ..ToolOutcome::failure(text) }
}

pub(crate) fn interrupted() -> ToolOutcome {
    ToolOutcome::of(
        ToolStatus::Interrupted,
        "The execution of this tool, or a previous tool was interrupted.",
    )
}

/// Runs work that only reads on a blocking thread, and returns as soon as it is done or cancelled.
///
/// Cancelled work is not stopped from here: work that can take long looks at the token itself.
pub(crate) async fn looking(
    cancel: CancellationToken,
    work: impl FnOnce() -> ToolOutcome + Send + 'static,
) -> ToolOutcome {
    let task = writing(&cancel, work);
    tokio::select! {
        // A finished result wins over a cancellation.
        biased;
        outcome = task => outcome,
        () = cancel.cancelled() => interrupted(),
    }
}

/// Runs work that changes something on a blocking thread. Once begun, it is finished and its result returned.
pub(crate) async fn writing(
    cancel: &CancellationToken,
    work: impl FnOnce() -> ToolOutcome + Send + 'static,
) -> ToolOutcome {
    if cancel.is_cancelled() {
        return interrupted();
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(error) => ToolOutcome::failure(format!("The tool failed: {error}")),
    }
}

/// Reports progress to the loop. A cancelled call does not wait for room in the queue, and a missing listener is not a
/// failure of the work.
pub(crate) async fn tell(context: &ToolContext, event: Body) {
    tokio::select! {
        biased;
        _ = context.progress.send(Box::new(event)) => {}
        () = context.cancel.cancelled() => {}
    }
}
