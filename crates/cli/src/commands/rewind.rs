//! `hangar sessions fork` and `hangar sessions rewind`: going back, in a new session or in the same one.

use anyhow::{Context as _, Result, anyhow, bail};
use hangar_agent::log::SessionLog;
use hangar_agent::session::state::project;
use hangar_agent::session::{iso, rewind_to};
use hangar_protocol::{Body, Event, EventId};
use hangar_store::fork::{self, ForkError};
use hangar_store::rewind::{changes_of, points, restore};
use hangar_store::snapshots::Snapshots;
use hangar_store::{SessionId, Store};

use super::print_line;
use crate::{resumed, selection};

/// Characters of a prompt that a list shows.
const EXCERPT: usize = 72;

/// Events of a session that were not rewound.
fn events(store: &Store, id: &SessionId) -> Result<Vec<Event>> {
    Ok(project(store.read(id)?.collect::<Result<Vec<_>, _>>()?))
}

fn no_event(session: &str, event: &str) -> anyhow::Error {
    anyhow!("the session has no event `{event}`; `hangar sessions rewind {session}` lists its prompts")
}

pub(super) fn fork(store: &Store, session: &str, before: Option<String>, name: Option<String>) -> Result<()> {
    let from = selection::resolve(store, session)?;
    let id: SessionId = uuid::Uuid::new_v4().to_string().parse()?;
    let now = jiff::Timestamp::now();
    let kept = fork::events(events(store, &from)?, before.as_deref(), (&from, &id), now);
    let kept = kept.map_err(|error| match error {
        ForkError::NoEvent(event) => no_event(session, &event),
        other => other.into(),
    })?;
    let meta = fork::meta(store, &from, name, now)?;
    fork::create(store, &from, &id, meta, &kept)?;
    print_line(&format!("Forked {from} as {id}. Go on with: hangar --resume={id} -p \"...\""))
}

/// Lists the prompts that a session can be rewound to.
pub(super) fn list(store: &Store, session: &str) -> Result<()> {
    let id = selection::resolve(store, session)?;
    let events = events(store, &id)?;
    let changes = Snapshots::new(store.folder(&id)?).changes()?;
    for at in points(&events) {
        let event = &events[at];
        let Body::UserMessage(message) = event.body() else { continue };
        let line: String = message.content.lines().next().unwrap_or_default().chars().take(EXCERPT).collect();
        let files = changes_of(&changes, &events[at..]).len();
        let files = if files == 0 { String::new() } else { format!("  ({files} files since)") };
        print_line(&format!("{}  {}  {line}{files}", event.id().0, event.timestamp()))?;
    }
    Ok(())
}

/// Rewinds the session to before a prompt.
pub(super) fn rewind(store: &Store, session: &str, to: &str, files: bool) -> Result<()> {
    let id = selection::resolve(store, session)?;
    // No other process may continue the session meanwhile.
    let mut log = store.open(&id)?;
    let events = events(store, &id)?;
    let Some(at) = events.iter().position(|event| event.id().0 == to) else {
        return Err(no_event(session, to));
    };
    if files {
        let snapshots = Snapshots::new(store.folder(&id)?);
        if !snapshots.exist() {
            bail!("the session saved no files before tools changed them; omit --files");
        }
        let here = std::env::current_dir().context("the current directory is gone")?;
        let within = resumed::directory(store, &id, log.meta(), &here)?.canonicalize()?;
        let changes = changes_of(&snapshots.changes()?, &events[at..]);
        let restored = restore(&snapshots, &changes, &[within])?;
        for path in &restored.files {
            print_line(&format!("Restored {}", path.display()))?;
        }
        for (path, reason) in &restored.skipped {
            print_line(&format!("Left {} as it is: {}", path.display(), reason.told()))?;
        }
    }
    let now = iso(jiff::Timestamp::now());
    let mut last = log.last_event_id().cloned();
    let mut taken_back = Vec::new();
    for body in rewind_to(&events, at) {
        let fresh = EventId(uuid::Uuid::new_v4().to_string());
        let parent = last.replace(fresh.clone());
        taken_back.push(Event::new(fresh, now.clone(), parent, None, body));
    }
    let end = log.end();
    log.append(end, &taken_back)?;
    log.sync()?;
    print_line(&format!("Took back {} events of {id}.", events.len() - at))
}
