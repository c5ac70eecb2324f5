//! Working directory of a resumed session. Other programs may have written to its folder since, so the folder must not
//! lead the session to a directory that it never had.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use hangar_store::{SessionId, SessionMeta, Store};

/// The directory that the session worked in last, as its log says too.
pub(crate) fn directory(store: &Store, id: &SessionId, meta: &SessionMeta, here: &Path) -> Result<PathBuf> {
    let Some(context) = &meta.context else { return Ok(here.to_path_buf()) };
    let stored = PathBuf::from(&context.cwd);
    if stored != here && !store.directories(id)?.contains(&context.cwd) {
        bail!(
            "workspace.yaml of session {id} says that it worked in {}, which its log does not say; pass -C to say \
             where to go on",
            stored.display()
        );
    }
    if !stored.is_dir() {
        bail!(
            "session {id} worked in {}, which no longer exists; pass -C DIR to continue elsewhere",
            stored.display()
        );
    }
    Ok(stored)
}
