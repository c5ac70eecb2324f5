//! An open session for whoever composes it: its log, its files, and what it was before.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use hangar_agent::log::SessionLog;
use hangar_agent::session::State;
use hangar_agent::session::state::project;
use hangar_disk::Folder;
use hangar_files::{ClientFiles, SessionFiles};
use hangar_protocol::data::{NotificationKind, WorkingDirectory};
use hangar_protocol::{Body, Event, EventKind};
use hangar_store::client_session::{ClientSession, StoredSession};
use hangar_store::{OpenSession, SessionId, SessionMeta, Store, StoreError};
use hangar_tools::sql::Database;
use hangar_tools::tool_files::ToolFiles;

pub(crate) struct Home {
    log: OpenSession,
    /// The client that keeps its files, if one does.
    client: Option<ClientFiles>,
}

/// What a session that is gone on with was.
#[derive(Default)]
pub(crate) struct Past {
    pub(crate) state: State,
    /// Instructions that the model was told about in the course of it already.
    pub(crate) told: Vec<String>,
    /// Length of the log when it was read.
    log_bytes: u64,
}

impl Home {
    pub(crate) fn create(
        store: &Store,
        client_session: Option<ClientSession>,
        id: &SessionId,
        meta: SessionMeta,
    ) -> Result<Self> {
        let client = client_session.as_ref().map(|client_session| client_session.files.clone());
        let log = match client_session {
            Some(client_session) => client_session.create(id.clone(), meta)?,
            None => store.create(id, meta).map_err(in_use)?,
        };
        Ok(Self { log, client })
    }

    /// Opens a session for writing; `past` is what [`Past::look`] read.
    pub(crate) fn resume(
        store: &Store,
        client_session: Option<ClientSession>,
        id: &SessionId,
        past: Past,
    ) -> Result<(Self, Past)> {
        let client = client_session.as_ref().map(|client_session| client_session.files.clone());
        let (log, mut past) = match client_session {
            Some(client_session) => (client_session.resume(id.clone(), jiff::Timestamp::now())?, past),
            None => {
                let log = store.open(id).map_err(in_use)?;
                // Another process may have written in between.
                let is_whole = log.log_bytes() == past.log_bytes;
                (log, if is_whole { past } else { Past::of_store(store, id)? })
            }
        };
        // Where the log ends is known to the log alone.
        let state = &mut past.state;
        (state.end, state.last_event) = (log.end(), log.last_event_id().cloned());
        if state.session_id.is_empty() {
            state.session_id = id.to_string();
        }
        Ok((Self { log, client }, past))
    }

    /// The path of the directory, as whoever keeps it writes paths.
    pub(crate) fn dir(&self) -> PathBuf {
        self.log.dir()
    }

    pub(crate) fn log_bytes(&self) -> u64 {
        self.log.log_bytes()
    }

    pub(crate) fn set_context(&mut self, context: WorkingDirectory) -> Result<()> {
        Ok(self.log.set_context(context)?)
    }

    pub(crate) fn session_files(&self) -> &Arc<dyn SessionFiles> {
        self.log.files()
    }

    /// Where outputs go that are too large for the model.
    pub(crate) fn spill_dir(&self) -> PathBuf {
        ToolFiles::of_session(self.log.files()).1
    }

    /// The files that the tools for files work on.
    pub(crate) fn files(&self) -> ToolFiles {
        ToolFiles::of_session(self.log.files()).0
    }

    /// The session's tables, where there can be any.
    pub(crate) fn database(&self) -> Option<Database> {
        match &self.client {
            Some(client) => client.site().has_tables.then(|| Database::of_client(client.clone())),
            None => self.local_folder().map(Database::of_session),
        }
    }

    /// The directory on this machine, held open.
    pub(crate) fn local_folder(&self) -> Option<Folder> {
        self.log.files().local()?.folder().ok()
    }

    pub(crate) fn into_log(self) -> Box<dyn SessionLog> {
        Box::new(self.log)
    }
}

impl Past {
    /// Reads the state of a session without locking its log.
    pub(crate) fn look(
        store: &Store,
        client_session: Option<&ClientSession>,
        id: &SessionId,
    ) -> Result<Self> {
        match client_session {
            None => Self::of_store(store, id),
            Some(ClientSession { stored: Some(stored), .. }) => Ok(Self::of_client(stored)),
            Some(ClientSession { stored: None, .. }) => Err(StoreError::NotFound { id: id.clone() }.into()),
        }
    }

    fn of_client(stored: &StoredSession) -> Self {
        let mut past = Self::default();
        past.take(project(stored.events().collect()));
        past
    }

    fn of_store(store: &Store, id: &SessionId) -> Result<Self> {
        let log_bytes = store.log_bytes(id).unwrap_or_default();
        let mut past = Self { log_bytes, ..Self::default() };
        let rewound = store.read_kinds(id, |kind| kind == EventKind::HistoryTruncated)?.next().is_some();
        if rewound {
            // What was taken back has to be known before anything is taken in.
            past.take(project(store.read(id)?.collect::<Result<Vec<_>, _>>()?));
            return Ok(past);
        }
        for event in store.read_kinds(id, State::wants)? {
            past.take([event?]);
        }
        Ok(past)
    }

    fn take(&mut self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            // What an agent was told, the session was not.
            if event.agent_id().is_none()
                && let Body::SystemNotification(notification) = event.body()
                && let NotificationKind::InstructionDiscovered { source_path, .. } = &notification.kind
            {
                self.told.push(source_path.clone());
            }
            self.state.apply_event(&event);
        }
    }
}

fn in_use(error: StoreError) -> anyhow::Error {
    match error {
        StoreError::InUse { ref id, .. } => {
            let hint = format!("session {id} is in use; wait for it to end, or start a new one");
            anyhow::Error::from(error).context(hint)
        }
        other => other.into(),
    }
}
