//! Where a session's files are: in the home directory, or with the client that keeps them. What composing a session
//! needs to know of them, and nothing else.

use std::path::PathBuf;

use anyhow::Result;
use hangar_agent::log::SessionLog;
use hangar_agent::session::State;
use hangar_agent::session::state::project;
use hangar_disk::Folder;
use hangar_protocol::data::{NotificationKind, WorkingDirectory};
use hangar_protocol::{Body, Event, EventKind};
use hangar_server::Away;
use hangar_store::away::{AwaySession, Kept};
use hangar_store::{OpenSession, SessionId, SessionMeta, Store, StoreError};
use hangar_tools::paths;
use hangar_tools::place::Files;
use hangar_tools::sql::Database;

/// An open session, and where it is.
pub(crate) enum Home {
    Here(OpenSession),
    Client(AwaySession),
}

/// What a session that is gone on with was.
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
        away: Option<Away>,
        id: &SessionId,
        meta: SessionMeta,
    ) -> Result<Self> {
        Ok(match away {
            Some(away) => Self::Client(AwaySession::create(id.clone(), away.home, meta)?),
            None => Self::Here(store.create(id, meta).map_err(in_use)?),
        })
    }

    /// Opens a session for writing; `past` is what [`Past::look`] read.
    pub(crate) fn resume(
        store: &Store,
        away: Option<Away>,
        id: &SessionId,
        past: Past,
    ) -> Result<(Self, Past)> {
        match away {
            Some(Away { home, kept: Some(kept) }) => {
                let log = AwaySession::resume(id.clone(), home, kept, jiff::Timestamp::now())?;
                Ok(Self::Client(log).with(past))
            }
            Some(Away { kept: None, .. }) => Err(StoreError::NotFound { id: id.clone() }.into()),
            None => {
                let log = store.open(id).map_err(in_use)?;
                // Another process may have written in between.
                let is_whole = log.log_bytes() == past.log_bytes;
                let past = if is_whole { past } else { Past::of_store(store, id)? };
                Ok(Self::Here(log).with(past))
            }
        }
    }

    /// Where the log ends is known to the log alone.
    fn with(self, mut past: Past) -> (Self, Past) {
        let state = &mut past.state;
        (state.end, state.last_event) = match &self {
            Self::Here(log) => (log.end(), log.last_event_id().cloned()),
            Self::Client(log) => (log.end(), log.last_event_id().cloned()),
        };
        if state.session_id.is_empty() {
            state.session_id = self.id().to_string();
        }
        (self, past)
    }

    pub(crate) fn id(&self) -> &SessionId {
        match self {
            Self::Here(log) => log.id(),
            Self::Client(log) => log.id(),
        }
    }

    /// The folder, in the words of whoever keeps it.
    pub(crate) fn dir(&self) -> PathBuf {
        match self {
            Self::Here(log) => log.dir().to_path_buf(),
            Self::Client(log) => PathBuf::from(log.home().root()),
        }
    }

    pub(crate) fn log_bytes(&self) -> u64 {
        match self {
            Self::Here(log) => log.log_bytes(),
            Self::Client(log) => log.log_bytes(),
        }
    }

    pub(crate) fn set_context(&mut self, context: WorkingDirectory) -> Result<()> {
        match self {
            Self::Here(log) => log.set_context(context)?,
            Self::Client(log) => log.note(hangar_agent::log::Fact::Context(context))?,
        }
        Ok(())
    }

    /// Where outputs go that are too large for the model.
    pub(crate) fn spill_dir(&self) -> PathBuf {
        match self {
            // The folder is the session's own; a link that is put in its place is not followed.
            Self::Here(log) => paths::resolve_entry(&log.files_dir()),
            Self::Client(log) => PathBuf::from(log.home().path("temp")),
        }
    }

    /// Whose files the tools for files are about.
    pub(crate) fn files(&self) -> Files {
        match self {
            Self::Here(_) => Files::Here,
            Self::Client(log) => Files::Client(log.home().files.clone()),
        }
    }

    /// The session's tables, where there can be any.
    pub(crate) fn database(&self) -> Option<Database> {
        match self {
            Self::Here(log) => Some(Database::of_session(log.folder().clone())),
            Self::Client(log) => log.home().has_tables.then(|| Database::of_client(log.home().files.clone())),
        }
    }

    /// The folder on this machine, held open.
    pub(crate) fn local_folder(&self) -> Option<&Folder> {
        match self {
            Self::Here(log) => Some(log.folder()),
            Self::Client(_) => None,
        }
    }

    /// Reads the plan as it is now, without waiting.
    pub(crate) fn plan_reader(&self) -> PlanReader {
        match self {
            Self::Here(log) => PlanReader::Session(log.folder().clone()),
            Self::Client(log) => PlanReader::Client(log.home().clone()),
        }
    }

    pub(crate) fn into_log(self) -> Box<dyn SessionLog> {
        match self {
            Self::Here(log) => Box::new(log),
            Self::Client(log) => Box::new(log),
        }
    }
}

pub(crate) enum PlanReader {
    Session(Folder),
    Client(hangar_files::ClientHome),
}

impl PlanReader {
    pub(crate) fn read(&self) -> Option<String> {
        match self {
            Self::Session(folder) => hangar_store::plan(folder),
            Self::Client(home) => home.plan(),
        }
    }
}

impl Past {
    /// Reads the state of a session without locking its log.
    pub(crate) fn look(store: &Store, away: Option<&Away>, id: &SessionId) -> Result<Self> {
        match away {
            None => Self::of_store(store, id),
            Some(Away { kept: Some(kept), .. }) => Ok(Self::of_client(kept)),
            Some(Away { kept: None, .. }) => Err(StoreError::NotFound { id: id.clone() }.into()),
        }
    }

    fn of_client(kept: &Kept) -> Self {
        let mut past = Self { state: State::default(), told: Vec::new(), log_bytes: 0 };
        past.take(project(kept.events().collect()));
        past
    }

    fn of_store(store: &Store, id: &SessionId) -> Result<Self> {
        let log_bytes = store.log_bytes(id).unwrap_or_default();
        let mut past = Self { state: State::default(), told: Vec::new(), log_bytes };
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
