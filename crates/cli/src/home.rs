//! Open session for composition: its log, its files, and its earlier state.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use hangar_agent::log::{ListedFact, ListedProvider, SessionLog, SessionNotes};
use hangar_agent::session::ConversationState;
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

/// Earlier state of a resumed session.
#[derive(Default)]
pub(crate) struct Past {
    pub(crate) state: ConversationState,
    /// Instructions that were added to the model's context on demand.
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
            None => store.create(id, meta)?,
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
                let log = store.open(id)?;
                // Another process may have written in between.
                let is_whole = log.log_bytes() == past.log_bytes;
                (log, if is_whole { past } else { Past::of_store(store, id)? })
            }
        };
        // Only the log knows where it ends.
        let state = &mut past.state;
        (state.end, state.last_event) = (log.end(), log.last_event_id().cloned());
        if state.session_id.is_empty() {
            state.session_id = id.to_string();
        }
        Ok((Self { log, client }, past))
    }

    /// Path of the directory, in the notation of its owner.
    pub(crate) fn dir(&self) -> PathBuf {
        self.log.dir()
    }

    pub(crate) fn log_bytes(&self) -> u64 {
        self.log.log_bytes()
    }

    pub(crate) fn set_context(&mut self, context: WorkingDirectory) -> Result<()> {
        Ok(self.log.set_context(context)?)
    }

    pub(crate) fn set_model_provider(&mut self, provider: ListedProvider) -> Result<()> {
        Ok(self.log.note(ListedFact::ModelProvider(provider))?)
    }

    pub(crate) fn session_files(&self) -> &Arc<dyn SessionFiles> {
        self.log.files()
    }

    /// Storage of outputs that are too large for the model.
    pub(crate) fn spill_dir(&self) -> PathBuf {
        ToolFiles::of_session(self.log.files()).1
    }

    /// Files that the file tools work on.
    pub(crate) fn files(&self) -> ToolFiles {
        ToolFiles::of_session(self.log.files()).0
    }

    /// The session's database, if it can have one.
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
            // Rewound events must be known before the fold starts.
            past.take(project(store.read(id)?.collect::<Result<Vec<_>, _>>()?));
            return Ok(past);
        }
        for event in store.read_kinds(id, ConversationState::wants)? {
            past.take([event?]);
        }
        Ok(past)
    }

    fn take(&mut self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            // Instructions that a sub-agent received are not in the session's context.
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
