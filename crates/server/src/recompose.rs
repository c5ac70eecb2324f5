//! Changes of a session that is alive: a client that joins, options that are updated, another model, MCP servers that are
//! read again. Whoever composed the session composes the parts that change, in the same way.

use std::path::PathBuf;
use std::sync::Arc;

use hangar_spec::{SessionSpec, WorkspaceOptions};

use crate::hub::Live;
use crate::inference;
use crate::methods::Failure;
use crate::opener::{Parts, Recompose, Recomposed};

/// Composes parts of a session as they are to be with a change, and says what the session is asked to be then. The session
/// itself is not changed, so that nothing is if this fails.
pub(crate) async fn recompose(
    live: &Live,
    change: SessionSpec,
    parts: Parts,
) -> Result<(SessionSpec, Recomposed), Failure> {
    let (composer, mut spec, model) = live
        .ask(|task| (Arc::clone(&task.composer), task.spec.clone(), task.session().state().model.clone()))
        .await?;
    // The model may have been changed since one was asked for.
    let model = change.model.name.clone().unwrap_or(model);
    spec.adopt(change);
    spec.model.name = Some(model).filter(|model| !model.is_empty());
    let ways = inference::ways(&live.audience, &spec, live.audience.courier().is_some());
    let recomposed = composer.recompose(Recompose { spec: &spec, ways, parts })?;
    Ok((spec, recomposed))
}

/// The change of a session that is to work somewhere else.
pub(crate) fn move_to(directory: PathBuf) -> SessionSpec {
    SessionSpec {
        workspace: WorkspaceOptions { directory: Some(directory), ..WorkspaceOptions::default() },
        ..SessionSpec::default()
    }
}
