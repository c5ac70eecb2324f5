//! Choice of the session: a new one or one to resume.

use anyhow::{Result, anyhow, bail};
use hangar_protocol::EventKind;
use hangar_store::{Filter, ResolveError, SessionId, Store};

use crate::args::RunArgs;

#[derive(Debug, Clone)]
pub(crate) enum SessionSelection {
    New { id: SessionId, name: Option<String> },
    Resume(SessionId),
}

impl SessionSelection {
    pub(crate) fn id(&self) -> &SessionId {
        match self {
            Self::New { id, .. } | Self::Resume(id) => id,
        }
    }

    /// A session by its id, which may not be there yet.
    pub(crate) fn by_id(id: SessionId, exists: bool) -> Self {
        if exists { Self::Resume(id) } else { Self::New { id, name: None } }
    }
}

/// Flags that select a session.
pub(crate) struct Typed<'a> {
    pub(crate) session_id: Option<&'a str>,
    pub(crate) resume: Option<&'a str>,
    pub(crate) continue_last: bool,
    pub(crate) name: Option<&'a str>,
}

impl<'a> From<&'a RunArgs> for Typed<'a> {
    fn from(args: &'a RunArgs) -> Self {
        Self {
            session_id: args.selection.session_id.as_deref(),
            resume: args.selection.resume.as_deref(),
            continue_last: args.selection.continue_last,
            name: args.selection.name.as_deref(),
        }
    }
}

pub(crate) fn select<'a>(store: &Store, typed: impl Into<Typed<'a>>) -> Result<SessionSelection> {
    let args = typed.into();
    let new = |id: &str| -> Result<SessionSelection> {
        Ok(SessionSelection::New { id: id.parse()?, name: args.name.map(str::to_owned) })
    };
    if let Some(text) = args.session_id {
        let known = text.parse::<SessionId>().ok().filter(|id| store.contains(id));
        return match known {
            Some(id) if args.name.is_some() => bail!(
                "--name is for a new session, and session {id} exists already: leave --name out, or pass the UUID of a new \
                 session"
            ),
            Some(id) => Ok(SessionSelection::Resume(id)),
            None if uuid::Uuid::try_parse(text).is_ok() => new(text),
            None => bail!(
                "no session has the id `{text}`, and a new one needs a UUID; to resume by name or prefix use --resume={text}"
            ),
        };
    }
    if let Some(text) = args.resume {
        if text.is_empty() {
            bail!(
                "--resume needs a session: an id, the start of one, or a name; `hangar sessions` lists them"
            );
        }
        return resolve(store, text).map(SessionSelection::Resume);
    }
    if args.continue_last
        && let Some(latest) = latest(store)?
    {
        return Ok(SessionSelection::Resume(latest));
    }
    new(&uuid::Uuid::new_v4().to_string())
}

/// The last session with a prompt, sent or scheduled. A process that is killed early leaves an empty one.
fn latest(store: &Store) -> Result<Option<SessionId>> {
    for session in store.list(&Filter::default())? {
        if was_prompted(store, &session.id)? {
            return Ok(Some(session.id));
        }
    }
    Ok(None)
}

/// Whether a session has a prompt, or had one that it sends itself later.
pub(crate) fn was_prompted(store: &Store, id: &SessionId) -> Result<bool> {
    let is_prompt = |kind| matches!(kind, EventKind::UserMessage | EventKind::ScheduleCreated);
    let mut said = store.read_kinds(id, is_prompt)?;
    Ok(said.next().is_some())
}

/// A session by id, unique prefix or name.
pub(crate) fn resolve(store: &Store, text: &str) -> Result<SessionId> {
    store.resolve(text).map_err(|error| match error {
        ResolveError::NotFound { .. } => {
            anyhow!(
                "no session has the id `{text}`, its beginning (at least 7 characters) or its name; `hangar sessions` lists them"
            )
        }
        ResolveError::Ambiguous { ref ids, .. } => {
            let ids: Vec<&str> = ids.iter().take(5).map(SessionId::as_str).collect();
            anyhow!("`{text}` fits several sessions ({}); give more of the id", ids.join(", "))
        }
        ResolveError::Store(_) => anyhow::Error::from(error),
    })
}
