//! Recomposition of live sessions: when a client joins, options are updated, the model is switched, or the MCP servers are
//! reloaded. The composer of the session makes the parts that change, as it did when the session was opened.

use std::path::PathBuf;
use std::sync::Arc;

use hangar_spec::{SessionSpec, WorkspaceOptions};

use crate::hub::ServedSession;
use crate::inference;
use crate::methods::Failure;
use crate::opener::{RecomposeRequest, RecomposeScope, Recomposed};

/// Recomposes parts of a session for a change of its settings, and returns the new settings with them. The session itself is
/// not changed yet, so an error leaves it as it is.
pub(crate) async fn recompose(
    live: &ServedSession,
    change: SessionSpec,
    scope: RecomposeScope,
) -> Result<(SessionSpec, Recomposed), Failure> {
    let (recomposer, mut spec, model) = live
        .ask(|task| (Arc::clone(&task.recomposer), task.spec.clone(), task.session().state().model.clone()))
        .await?;
    // The current model may differ from the one that the settings name.
    let model = change.model.name.clone().unwrap_or(model);
    spec.adopt(change);
    spec.model.name = Some(model).filter(|model| !model.is_empty());
    let transport = inference::transport(&live.audience, &spec, live.audience.request_proxy().is_some());
    let recomposed = recomposer.recompose(RecomposeRequest { spec: &spec, transport, scope })?;
    Ok((spec, recomposed))
}

/// A change of the working directory.
pub(crate) fn move_to(directory: PathBuf) -> SessionSpec {
    SessionSpec {
        workspace: WorkspaceOptions { directory: Some(directory), ..WorkspaceOptions::default() },
        ..SessionSpec::default()
    }
}
