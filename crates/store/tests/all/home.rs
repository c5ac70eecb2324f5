//! A store in a directory of its own, and events to put into it.

use std::path::Path;

use hangar_agent::log::{Seq, SessionLog};
use hangar_protocol::data::{UserMessage, WorkingDirectory};
use hangar_protocol::{Event, EventId};
use hangar_store::{OpenSession, SessionId, SessionMeta, Store};
use jiff::Timestamp;
use tempfile::TempDir;

pub(crate) struct Home {
    pub(crate) dir: TempDir,
    pub(crate) store: Store,
}

impl Home {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path());
        Self { dir, store }
    }

    pub(crate) fn create(&self, name: &str) -> OpenSession {
        self.store.create(&id(name), meta("/work")).unwrap()
    }

    pub(crate) fn log(&self, name: &str) -> std::path::PathBuf {
        self.store.session_dir(&id(name)).join("events.jsonl")
    }
}

pub(crate) fn id(text: &str) -> SessionId {
    text.parse().unwrap()
}

/// Long ago, so that the times of files, which are now, are always later.
pub(crate) fn past(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000_000 + second).unwrap()
}

pub(crate) fn meta(cwd: &str) -> SessionMeta {
    let context = WorkingDirectory { cwd: cwd.to_owned(), git_root: None, repository: None, branch: None };
    SessionMeta::new(context, past(0))
}

pub(crate) fn event(n: u64, content: &str) -> Event {
    let message = UserMessage { content: content.to_owned(), ..UserMessage::default() };
    let parent = (n > 0).then(|| EventId(format!("e{}", n - 1)));
    let time = format!("{:.3}", past(n as i64));
    Event::new(EventId(format!("e{n}")), time, parent, None, message.into())
}

pub(crate) fn append(session: &mut OpenSession, event: Event) -> Seq {
    session.append(session.end(), &[event]).unwrap()
}

pub(crate) fn ids(store: &Store, name: &str) -> Vec<String> {
    store.read(&id(name)).unwrap().map(|event| event.unwrap().id().0.clone()).collect()
}

pub(crate) fn file_names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
