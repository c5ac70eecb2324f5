//! Which session a run is about.

use anyhow::{Result, anyhow, bail};
use hangar_store::{Filter, ResolveError, SessionId, Store};

use crate::args::RunArgs;

#[derive(Debug)]
pub(crate) enum Selection {
    New { id: SessionId, name: Option<String> },
    Resume(SessionId),
}

pub(crate) fn select(store: &Store, args: &RunArgs) -> Result<Selection> {
    let new =
        |id: String| -> Result<Selection> { Ok(Selection::New { id: id.parse()?, name: args.name.clone() }) };
    if let Some(text) = &args.session_id {
        let known = text.parse::<SessionId>().ok().filter(|id| store.contains(id));
        return match known {
            Some(id) => Ok(Selection::Resume(id)),
            None if uuid::Uuid::try_parse(text).is_ok() => new(text.clone()),
            None => bail!(
                "no session has the id `{text}`, and a new one needs a UUID; to resume by name or prefix use --resume={text}"
            ),
        };
    }
    if let Some(text) = &args.resume {
        if text.is_empty() {
            bail!(
                "--resume needs a session: an id, the start of one, or a name; `hangar sessions` lists them"
            );
        }
        return resolve(store, text).map(Selection::Resume);
    }
    if args.continue_last
        && let Some(latest) = store.last(&Filter::default())?
    {
        return Ok(Selection::Resume(latest.id));
    }
    new(uuid::Uuid::new_v4().to_string())
}

/// A session by id, unique prefix or name.
pub(crate) fn resolve(store: &Store, text: &str) -> Result<SessionId> {
    store.resolve(text).map_err(|error| match error {
        ResolveError::NotFound { .. } => {
            anyhow!("no session has the id, prefix or name `{text}`; `hangar sessions` lists them")
        }
        ResolveError::Ambiguous { ref ids, .. } => {
            let ids: Vec<&str> = ids.iter().take(5).map(SessionId::as_str).collect();
            anyhow!("`{text}` fits several sessions ({}); give more of the id", ids.join(", "))
        }
        ResolveError::Store(_) => anyhow::Error::from(error),
    })
}
