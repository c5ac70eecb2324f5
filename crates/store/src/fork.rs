//! A new session with the history of another.

use std::io;
use std::path::Path;

use hangar_agent::log::{LogError, Seq, SessionLog};
use hangar_disk as disk;
use hangar_protocol::{Event, ParseError};
use jiff::Timestamp;

use crate::{Filter, SessionId, SessionMeta, SessionName, Store, StoreError};

#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    #[error("the session has no event {0}")]
    NoEvent(String),
    #[error("there is nothing to copy before that event")]
    Empty,
    #[error("copying an event")]
    Event(#[from] ParseError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Log(#[from] LogError),
}

/// The events that a fork has: those that still count, up to one that it has no more, with the name of the new session.
pub fn events(mut kept: Vec<Event>, before: Option<&str>, to: &SessionId) -> Result<Vec<Event>, ForkError> {
    if let Some(boundary) = before {
        let at = kept.iter().position(|event| event.id().0 == boundary);
        kept.truncate(at.ok_or_else(|| ForkError::NoEvent(boundary.to_owned()))?);
    }
    if kept.is_empty() {
        return Err(ForkError::Empty);
    }
    kept.iter().map(|event| renamed(event, to)).collect()
}

/// What lists show of the fork.
pub fn meta(
    store: &Store,
    from: &SessionId,
    name: Option<String>,
    now: Timestamp,
) -> Result<SessionMeta, StoreError> {
    let known = store.list(&Filter::default())?.into_iter().find(|session| session.id == *from);
    let known = known.map(|session| session.meta);
    Ok(SessionMeta {
        context: known.as_ref().and_then(|meta| meta.context.clone()),
        name: name.map(SessionName::Given).or_else(|| known.as_ref().and_then(|meta| meta.name.clone())),
        client_name: None,
        summary_count: 0,
        created_at: now,
        updated_at: now,
    })
}

/// Writes the fork, with what its history speaks of.
pub fn create(
    store: &Store,
    from: &SessionId,
    id: &SessionId,
    meta: SessionMeta,
    events: &[Event],
) -> Result<(), ForkError> {
    let mut log = store.create(id, meta)?;
    for name in BESIDE_THE_LOG {
        let (theirs, ours) = (store.session_dir(from).join(name), log.dir().join(name));
        copy(&theirs, &ours).map_err(StoreError::io("copying", &theirs))?;
    }
    log.append(Seq(0), events)?;
    log.sync()?;
    Ok(())
}

/// The plan, summaries as files, and what files were before tools changed them.
const BESIDE_THE_LOG: [&str; 3] = ["plan.md", "checkpoints", "rewind-file-snapshots"];

/// Copies a file or a folder, if it is there. Links are not followed: what belongs to a session is in its folder.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let kind = match std::fs::symlink_metadata(from) {
        Ok(metadata) => metadata.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if kind.is_dir() {
        disk::ensure_dir(to)?;
        for entry in std::fs::read_dir(from)? {
            let name = entry?.file_name();
            copy(&from.join(&name), &to.join(&name))?;
        }
    } else if kind.is_file() {
        // Contents that are kept by their hash never change, so both sessions may have the same ones.
        let shared = from.parent().is_some_and(|dir| dir.ends_with("backups"));
        if !shared || std::fs::hard_link(from, to).is_err() {
            std::fs::copy(from, to)?;
        }
    }
    Ok(())
}

/// The first event of a log names its session.
fn renamed(event: &Event, id: &SessionId) -> Result<Event, ForkError> {
    if event.kind() != "session.start" {
        return Ok(event.clone());
    }
    let mut value = serde_json::to_value(event).unwrap_or_default();
    value["data"]["sessionId"] = id.as_str().into();
    Ok(Event::parse(&value.to_string())?)
}
