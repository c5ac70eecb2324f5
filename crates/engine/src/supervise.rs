//! The task of a session, from its first input to its last event, and what becomes of a panic in it.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::engine::Engine;

/// A front end's task: it drives one engine.
pub trait FrontEndTask: Send {
    fn engine(&mut self) -> &mut Engine;

    /// Drives the session until it is over. Returns what went wrong, if something did.
    fn run(&mut self) -> BoxFuture<'_, Option<String>>;
}

/// Runs a session to its end and closes it. A panic, in a tool, in the session or in the front end's own code, is an
/// event of this session and its end; nobody else notices. `hurry` ends the wait for the session's last event.
pub async fn supervise<T: FrontEndTask>(task: &mut T, hurry: impl Future<Output = ()>) {
    let (failure, crashed) = match AssertUnwindSafe(task.run()).catch_unwind().await {
        Ok(failure) => (failure, false),
        Err(panic) => (Some(format!("the session crashed: {}", words(&*panic))), true),
    };
    let closing = AssertUnwindSafe(async {
        if let Some(message) = failure.as_ref().filter(|_| crashed) {
            tracing::error!(%message, "a session panicked");
            task.engine().crashed(message);
        }
        task.engine().close(failure, hurry).await
    });
    match closing.catch_unwind().await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(%error, "closing a session failed"),
        // Its next step is lost; its processes end with their owner.
        Err(panic) => tracing::error!(message = words(&*panic), "closing a session panicked"),
    }
}

/// Message of a panic.
fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason was given")
}
