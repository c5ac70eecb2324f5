//! A new session with the history of another.

use std::ffi::OsStr;
use std::io;

use hangar_agent::log::{LogError, Seq, SessionLog};
use hangar_disk::{FileKind, Folder};
use hangar_protocol::data::Forked;
use hangar_protocol::{Event, EventId, EventKind, ParseError};
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

/// Events of the fork `to` of the session `from`: those that were not rewound, up to `before`, and the mark that separates
/// them from its own.
pub fn events(
    mut kept: Vec<Event>,
    before: Option<&str>,
    (from, to): (&SessionId, &SessionId),
    now: Timestamp,
) -> Result<Vec<Event>, ForkError> {
    if let Some(boundary) = before {
        let at = kept.iter().position(|event| event.id().0 == boundary);
        kept.truncate(at.ok_or_else(|| ForkError::NoEvent(boundary.to_owned()))?);
    }
    let Some(last) = kept.last() else { return Err(ForkError::Empty) };
    let mark = Event::new(
        // The session is new, so no other event has its id.
        EventId(to.to_string()),
        format!("{now:.3}"),
        Some(last.id().clone()),
        None,
        Forked { from_session_id: from.to_string() }.into(),
    );
    kept.iter().map(|event| renamed(event, to)).chain([Ok(mark)]).collect()
}

/// Metadata of the fork.
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
        model_provider: known.and_then(|meta| meta.model_provider),
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
    let folder = |id: &SessionId| store.folder(id).map_err(StoreError::io("opening", &store.session_dir(id)));
    let (theirs, ours) = (folder(from)?, folder(id)?);
    for name in BESIDE_THE_LOG {
        copy(&theirs, &ours, name.as_ref()).map_err(StoreError::io("copying", &theirs.path().join(name)))?;
    }
    log.append(Seq(0), events)?;
    log.sync()?;
    Ok(())
}

/// The plan, summaries as files, and what files were before tools changed them.
const BESIDE_THE_LOG: [&str; 3] = ["plan.md", "checkpoints", "rewind-file-snapshots"];

/// Files and folders of one folder that are copied.
const MAX_ENTRIES: usize = 100_000;

/// Copies a file or a folder, if it is there. Links are not followed: what belongs to a session is in its folder.
fn copy(from: &Folder, to: &Folder, name: &OsStr) -> io::Result<()> {
    match from.kind(name) {
        Ok(FileKind::Folder) => {
            let (from, to) = (from.folder(name)?, to.ensure_folder(name)?);
            for (name, _) in from.entries(MAX_ENTRIES)? {
                copy(&from, &to, &name)?;
            }
            Ok(())
        }
        Ok(FileKind::File) => {
            io::copy(&mut from.read(name)?, &mut to.create_new(name)?)?;
            Ok(())
        }
        Ok(FileKind::Other) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// The first event of a log names its session.
fn renamed(event: &Event, id: &SessionId) -> Result<Event, ForkError> {
    if event.event_kind() != Some(EventKind::SessionStart) {
        return Ok(event.clone());
    }
    let mut value = serde_json::to_value(event).unwrap_or_default();
    value["data"]["sessionId"] = id.as_str().into();
    Ok(Event::parse(&value.to_string())?)
}
