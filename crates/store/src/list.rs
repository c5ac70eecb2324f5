//! Finding sessions: lists for people and programs, and what a user means by a piece of an id or a name.

use std::fs::File;
use std::io;

use hangar_protocol::data::WorkingDirectory;
use jiff::{SignedDuration, Timestamp};

use crate::session::{LOG_FILE, last_event};
use crate::store::{meta_from_log, modified, read_document};
use crate::{ResolveError, SessionId, SessionMeta, SessionName, Store, StoreError};

/// Shorter beginnings of an id are too likely to mean something else.
const MIN_PREFIX: usize = 7;

/// A writer that ended well has stored the time of its last event, so its log is hardly younger than that. A log may
/// be younger because its writer was killed, or because it was copied; its last event tells which.
const FRESH: SignedDuration = SignedDuration::from_secs(2);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSummary {
    pub id: SessionId,
    /// `updated_at` is the time of the last event, also if the session's writer was killed.
    pub meta: SessionMeta,
    pub log_bytes: u64,
}

/// Filter on sessions; `None` matches all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    pub cwd: Option<String>,
    pub git_root: Option<String>,
    pub repository: Option<String>,
    pub branch: Option<String>,
}

impl Filter {
    fn admits(&self, context: Option<&WorkingDirectory>) -> bool {
        let Some(context) = context else { return *self == Self::default() };
        let admits = |wanted: &Option<String>, is: Option<&str>| wanted.is_none() || wanted.as_deref() == is;
        admits(&self.cwd, Some(&context.cwd))
            && admits(&self.git_root, context.git_root.as_deref())
            && admits(&self.repository, context.repository.as_deref())
            && admits(&self.branch, context.branch.as_deref())
    }
}

impl Store {
    /// Sessions, the one written last first. A log is opened only where `workspace.yaml` is missing or out of date, and
    /// then only its first or last event is read.
    pub fn list(&self, filter: &Filter) -> Result<Vec<SessionSummary>, StoreError> {
        let mut sessions: Vec<SessionSummary> =
            self.ids()?.into_iter().filter_map(|id| self.summary(id, filter)).collect();
        sessions.sort_by(|a, b| b.meta.updated_at.cmp(&a.meta.updated_at).then_with(|| a.id.cmp(&b.id)));
        Ok(sessions)
    }

    /// One session as lists show it.
    pub fn look(&self, id: &SessionId) -> Option<SessionSummary> {
        self.summary(id.clone(), &Filter::default())
    }

    /// The session that was written last.
    pub fn last(&self, filter: &Filter) -> Result<Option<SessionSummary>, StoreError> {
        Ok(self.list(filter)?.into_iter().next())
    }

    /// The session that a user means: by its id, by the beginning of its id, or by its name in any case.
    pub fn resolve(&self, text: &str) -> Result<SessionId, ResolveError> {
        if let Ok(id) = text.parse::<SessionId>()
            && self.contains(&id)
        {
            return Ok(id);
        }
        let by_prefix = self.ids_starting_with(text)?;
        if let [id] = by_prefix.as_slice() {
            return Ok(id.clone());
        }
        let by_name = self.ids_named(text)?;
        if let [id] = by_name.as_slice() {
            return Ok(id.clone());
        }
        let ids = if by_name.is_empty() { by_prefix } else { by_name };
        let text = text.to_owned();
        if ids.is_empty() {
            Err(ResolveError::NotFound { text })
        } else {
            Err(ResolveError::Ambiguous { text, ids })
        }
    }

    fn ids_starting_with(&self, text: &str) -> Result<Vec<SessionId>, StoreError> {
        if text.len() < MIN_PREFIX {
            return Ok(Vec::new());
        }
        let starts = |id: &SessionId| {
            id.as_str().get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text))
                && self.contains(id)
        };
        let mut ids: Vec<SessionId> = self.ids()?.into_iter().filter(starts).collect();
        ids.sort();
        Ok(ids)
    }

    /// Names that users gave go before names that were made from prompts.
    fn ids_named(&self, text: &str) -> Result<Vec<SessionId>, StoreError> {
        let wanted = text.to_lowercase();
        let (mut given, mut derived) = (Vec::new(), Vec::new());
        for session in self.list(&Filter::default())? {
            match session.meta.name {
                Some(SessionName::Given(name)) if name.to_lowercase() == wanted => given.push(session.id),
                Some(SessionName::Derived(name)) if name.to_lowercase() == wanted => derived.push(session.id),
                _ => {}
            }
        }
        Ok(if given.is_empty() { derived } else { given })
    }

    /// Ids of all directory entries that can be sessions.
    pub fn ids(&self) -> Result<Vec<SessionId>, StoreError> {
        let entries = match std::fs::read_dir(self.root()) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(StoreError::io("listing", self.root())(error)),
        };
        Ok(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
    }

    /// `None` if this is no session, or not one that the filter admits. A session that cannot be read well must not
    /// hide the others.
    fn summary(&self, id: SessionId, filter: &Filter) -> Option<SessionSummary> {
        let folder = self.folder(&id).ok()?;
        let log = folder.read(LOG_FILE).ok()?;
        let metadata = log.metadata().ok()?;
        let written = modified(&metadata);
        let mut meta = SessionMeta::from_document(&read_document(&folder))
            .unwrap_or_else(|| meta_from_log(&folder, written));
        if written.duration_since(meta.updated_at) > FRESH
            && let Some(time) = last_event_time(&log, metadata.len())
        {
            meta.updated_at = meta.updated_at.max(time);
        }
        filter.admits(meta.context.as_ref()).then_some(SessionSummary { id, meta, log_bytes: metadata.len() })
    }
}

fn last_event_time(log: &File, end: u64) -> Option<Timestamp> {
    last_event(log, end).ok()??.timestamp().parse().ok()
}
